//! Indexes of a table.

use serde::{Deserialize, Serialize};

use crate::types::{Oid, Type};

impl Index {
    /// The part of the key at a place, if rows store it for the index alone.
    pub fn expression(&self, place: usize) -> Option<&IndexExpression> {
        self.expressions.iter().find(|expression| usize::from(expression.place) == place)
    }

    /// Whether two rows never agree in the key's columns: what a foreign key can point at.
    pub fn is_plain_key(&self) -> bool {
        self.unique && self.expressions.is_empty()
    }

    /// The SQL text of what rows store of an expression.
    pub fn stored_text(&self, expression: &IndexExpression) -> String {
        match &self.predicate {
            Some(predicate) if expression.guarded => {
                format!("CASE WHEN ({predicate}) THEN ({}) END", expression.text)
            }
            _ => expression.text.clone(),
        }
    }

    /// The oid of the UNIQUE constraint behind which it stands.
    pub fn constraint_oid(&self) -> Option<Oid> {
        self.constraint.then_some(Oid(self.oid.0 + 1))
    }

    /// Where its entries were asked to be; `None` if nobody has said.
    pub fn placement(&self) -> Option<PlacementOption> {
        let (_, word) = self.options.iter().find(|(name, _)| name == PLACEMENT)?;
        PlacementOption::of_word(word)
    }

    /// Whether a column is a part of its key as it is.
    pub fn has_column(&self, column: u16) -> bool {
        self.columns.iter().any(|part| part.column == column)
    }
}

/// The storage parameter that says where the entries of an index are to be.
pub const PLACEMENT: &str = "placement";

/// What `WITH (placement = …)` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementOption {
    /// In the partitions of their rows: the distribution column leads the key, whether the definition
    /// names it first, later or not at all.
    Prefixed,
    /// In partitions of their own.
    Global,
}

impl PlacementOption {
    /// What a word means, as it is kept: in lower case.
    pub fn of_word(word: &str) -> Option<PlacementOption> {
        match word {
            "prefixed" => Some(PlacementOption::Prefixed),
            "global" => Some(PlacementOption::Global),
            _ => None,
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            PlacementOption::Prefixed => "prefixed",
            PlacementOption::Global => "global",
        }
    }
}

/// Where the entries of an index are, by its definition and that of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryPlacement {
    /// In the partitions of their rows, under the index's own key.
    WithRows,
    /// In the partitions of their rows, under this column and then the rest of the index's key: the
    /// distribution column, which the definition does not begin with.
    LedBy(u16),
    /// In partitions of their own.
    Apart,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    pub oid: Oid,
    pub name: String,
    pub columns: Vec<IndexColumn>,
    pub unique: bool,
    /// NULLS NOT DISTINCT: a NULL equals another one.
    #[serde(default)]
    pub nulls_equal: bool,
    /// Created by a UNIQUE constraint of the same name.
    pub constraint: bool,
    /// The engine's number for the index's entries.
    pub tree: u32,
    /// `None`: in the table's partitions; else the group the entries are distributed in.
    pub global_group: Option<u32>,
    /// Columns of INCLUDE. The entries lead to the rows, which hold them.
    #[serde(default)]
    pub include: Vec<u16>,
    /// The condition of a partial index, as SQL text. An index that is not unique has an entry for
    /// every row all the same: it serves any query.
    #[serde(default)]
    pub predicate: Option<String>,
    /// The parts of its key that are no plain columns.
    #[serde(default)]
    pub expressions: Vec<IndexExpression>,
    /// Partitions: the index of the table it is part of.
    #[serde(default)]
    pub parent: Option<Oid>,
    /// Asked for as a hash index. It is an ordered tree as others are, which promises more.
    #[serde(default)]
    pub hash: bool,
    /// The operator classes that were named for its parts, where they are not the types' own. Empty where
    /// all are. They order values as keys are ordered: this is for whoever reads the definition.
    #[serde(default)]
    pub classes: Vec<Option<String>>,
    /// Storage parameters, as written. Most speak of pages, which do not exist here; [`PLACEMENT`] is
    /// followed.
    #[serde(default)]
    pub options: Vec<(String, String)>,
}

/// A part of an index's key that is stored in the table's rows for the index alone, after the
/// visible columns and the hidden row number.
///
/// A partial unique index says nothing of the rows that do not meet its condition. The first part
/// of its key is NULL for those, and NULLs equal nobody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexExpression {
    /// Its place in [`Index::columns`].
    pub place: u16,
    /// SQL text over the row's columns.
    pub text: String,
    pub ty: Type,
    /// NULL where the index's condition does not hold.
    pub guarded: bool,
    /// What the index calls its column: the function's name, `expr`, `expr1`.
    #[serde(default)]
    pub name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexColumn {
    /// [`EXPRESSION`] for an expression.
    pub column: u16,
    pub descending: bool,
    pub nulls_first: bool,
    /// The collation that was named, where it is not that of what it is over.
    #[serde(default)]
    pub collation: Option<Oid>,
}
