//! Constraints of columns, the options of their sequences, and the keys of indexes.

use super::{Expression, QualifiedName, TypeName};

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnConstraint {
    /// CONSTRAINT name.
    pub name: Option<String>,
    /// Where it begins; 0 for what was not written.
    pub position: u32,
    pub kind: ColumnConstraintKind,
    pub deferrable: Deferrable,
    /// NO INHERIT, of a CHECK.
    pub no_inherit: bool,
    /// WITH (…), of a key.
    pub options: Vec<(String, Option<String>)>,
    /// USING INDEX TABLESPACE, of a key.
    pub tablespace: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ColumnConstraintKind {
    NotNull,
    Null,
    Default(Expression),
    PrimaryKey,
    Unique {
        nulls_not_distinct: bool,
    },
    Check(Expression),
    References(References),
    /// GENERATED ALWAYS AS (…) STORED.
    Generated(Expression),
    /// GENERATED { ALWAYS | BY DEFAULT } AS IDENTITY.
    Identity {
        always: bool,
        options: Vec<SequenceOption>,
    },
}

/// What a constraint says about when it is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deferrable {
    pub deferrable: bool,
    pub initially_deferred: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct References {
    pub table: QualifiedName,
    /// Empty: the primary key.
    pub columns: Vec<String>,
    /// MATCH FULL was asked for.
    pub match_full: bool,
    pub on_delete: ReferentialAction,
    pub on_update: ReferentialAction,
    /// What ON DELETE SET NULL and SET DEFAULT change; empty for all columns.
    pub on_delete_columns: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ReferentialAction {
    #[default]
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

impl ReferentialAction {
    /// pg_constraint.confdeltype and confupdtype.
    pub fn letter(self) -> &'static str {
        match self {
            ReferentialAction::NoAction => "a",
            ReferentialAction::Restrict => "r",
            ReferentialAction::Cascade => "c",
            ReferentialAction::SetNull => "n",
            ReferentialAction::SetDefault => "d",
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            ReferentialAction::NoAction => "NO ACTION",
            ReferentialAction::Restrict => "RESTRICT",
            ReferentialAction::Cascade => "CASCADE",
            ReferentialAction::SetNull => "SET NULL",
            ReferentialAction::SetDefault => "SET DEFAULT",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexElement {
    pub key: IndexKey,
    pub position: u32,
    pub collation: Option<QualifiedName>,
    pub operator_class: Option<QualifiedName>,
    pub descending: bool,
    pub nulls_first: Option<bool>,
}

// Statements are parsed once and kept once: the size of a rare variant costs nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum IndexKey {
    Column(String),
    Expression(Expression),
}

#[derive(Clone, Debug, PartialEq)]
pub enum SequenceOption {
    As(TypeName),
    Increment(i64),
    /// `None`: NO MINVALUE.
    MinValue(Option<i64>),
    MaxValue(Option<i64>),
    Start(i64),
    Restart(Option<i64>),
    /// SEQUENCE NAME, of identity columns alone; its position is the word's.
    Name(QualifiedName),
    Cache(i64),
    Cycle(bool),
    /// `None`: OWNED BY NONE; else table and column.
    OwnedBy(Option<(QualifiedName, String)>),
}
