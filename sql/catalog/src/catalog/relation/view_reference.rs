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

/// A name that no query can write: of a column that is looked at as if nobody could name it.
pub const HIDDEN_COLUMN: &str = "\u{1}hidden";

impl ViewReference {
    /// Takes a column of a relation, which has gone, out of references.
    pub fn lose_column(references: &mut [ViewReference], relation: Oid, place: usize) {
        for reference in references.iter_mut().filter(|reference| reference.relation == relation) {
            if place < reference.columns.len() {
                reference.columns.remove(place);
            }
        }
    }

    /// Lets nobody name a column of a relation by references.
    pub fn hide_column(references: &mut [ViewReference], relation: Oid, place: usize) {
        for reference in references.iter_mut().filter(|reference| reference.relation == relation) {
            if let Some(name) = reference.columns.get_mut(place) {
                HIDDEN_COLUMN.clone_into(name);
            }
        }
    }
}
