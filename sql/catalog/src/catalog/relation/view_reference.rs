//! A relation that a stored query reads.

use serde::{Deserialize, Serialize};

use crate::types::Oid;

/// A relation a view reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewReference {
    pub relation: Oid,
    /// The name the view knows it by.
    pub name: String,
    /// The names of its columns when the view was made: later ones are not the view's.
    pub columns: Vec<String>,
}
