//! Steps that bring the system catalog of a data directory up to this version.
//!
//! A step is a script of definitions in SQL, or a change of what the catalog keeps, run once, as the system,
//! in one transaction with the catalog row that says it ran. Steps are never changed once released and never skipped: a
//! new one goes at the end. The files of the log and of checkpoints have a format version of
//! their own, in `engine`; a step may assume that the engine could read the directory.
//!
//! Invariant: versions count up from 1 without gaps.

use std::fmt;

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub version: u32,
    pub name: &'static str,
    pub change: Change,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Runs statements separated by semicolons.
    Script(&'static str),
    /// Puts ids into the place of names in defaults, conditions, views and bodies.
    NamesToIds,
    /// Writes rows in the form of this version that were kept in another one.
    RewrittenRows,
    /// Makes the tables of large objects.
    LargeObjects,
}

/// All steps, oldest first.
pub const STEPS: &[Step] = &[
    Step { version: 1, name: "schemas", change: Change::Script(include_str!("../sql/0001_schemas.sql")) },
    Step { version: 2, name: "ids for names", change: Change::NamesToIds },
    Step { version: 3, name: "rows of all databases", change: Change::RewrittenRows },
    Step { version: 4, name: "large objects", change: Change::LargeObjects },
];

/// The catalog version that all steps together lead to.
pub const CURRENT_VERSION: u32 = STEPS[STEPS.len() - 1].version;

/// The data directory's catalog was written by a newer server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewerCatalog {
    pub found: u32,
}

impl fmt::Display for NewerCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the data directory's catalog has version {}, this version of archipel knows {CURRENT_VERSION}",
            self.found
        )
    }
}

impl std::error::Error for NewerCatalog {}

/// The steps that a catalog of version `found` (0: a new data directory) still needs.
pub fn pending(found: u32) -> Result<&'static [Step], NewerCatalog> {
    STEPS.get(found as usize..).ok_or(NewerCatalog { found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_count_up_from_one() {
        for (place, step) in STEPS.iter().enumerate() {
            assert_eq!(step.version as usize, place + 1, "{}", step.name);
        }
    }

    #[test]
    fn a_newer_catalog_is_refused() {
        assert_eq!(pending(0).unwrap().len(), STEPS.len());
        assert!(pending(CURRENT_VERSION).unwrap().is_empty());
        let error = pending(CURRENT_VERSION + 1).unwrap_err();
        assert!(error.to_string().contains("this version of archipel knows"));
    }
}
