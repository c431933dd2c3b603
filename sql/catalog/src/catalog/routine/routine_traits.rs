//! What a routine's declaration says besides its name and types, and its body where that is no text.

use serde::{Deserialize, Serialize};

use crate::catalog::ViewReference;
use crate::types::Oid;

/// What a routine's declaration says besides its type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoutineTraits {
    pub security_definer: bool,
    pub leakproof: bool,
    /// 'u', 'r' or 's'.
    pub parallel: char,
    /// `None`: the default.
    pub cost: Option<f64>,
    pub rows: Option<f64>,
    /// SET clauses: settings and their values while it runs.
    pub settings: Vec<(String, String)>,
    /// A body without quotes (RETURN, BEGIN ATOMIC) as it was understood when it was written.
    #[serde(default)]
    pub stored: Option<Box<StoredBody>>,
    /// `create_distributed_function`: the table whose distribution column has the argument's values.
    #[serde(default)]
    pub distribution_table: Option<Oid>,
    /// The extension it came with.
    #[serde(default)]
    pub extension: Option<String>,
}

/// Statements of a routine whose names mean what they meant when it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredBody {
    /// With the numbers of its references in the place of relations.
    pub text: String,
    pub references: Vec<ViewReference>,
    pub search_path: Vec<String>,
    /// Whether it was written as RETURN of an expression.
    #[serde(default)]
    pub returns: bool,
}

impl StoredBody {
    /// The body when a column of a relation has gone, which it must not have used.
    #[must_use]
    pub fn without_column(&self, relation: Oid, place: usize) -> StoredBody {
        let mut body = self.clone();
        ViewReference::lose_column(&mut body.references, relation, place);
        body
    }

    /// The body as it would be if nobody could name a column of a relation.
    #[must_use]
    pub fn hiding_column(&self, relation: Oid, place: usize) -> StoredBody {
        let mut body = self.clone();
        ViewReference::hide_column(&mut body.references, relation, place);
        body
    }
}

impl Default for RoutineTraits {
    fn default() -> RoutineTraits {
        RoutineTraits {
            security_definer: false,
            leakproof: false,
            parallel: 'u',
            cost: None,
            rows: None,
            settings: Vec::new(),
            stored: None,
            distribution_table: None,
            extension: None,
        }
    }
}
