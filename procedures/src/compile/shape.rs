//! Rows whose structure shows only when they come: `FOR r IN EXECUTE text`, `EXECUTE text INTO r`
//! and FETCH from a cursor that was opened elsewhere, `r` being a `record`.
//!
//! Fields of records are registers, given out when a routine is compiled. Where the structure is
//! not known then, the first run finds it: it is noted here, the run is undone as one whose
//! tables have changed would be, and the routine is compiled anew with what is known now.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use archipel_planner::bound::OutputColumn;
use archipel_planner::native::{ExecError, ExecResult};
use archipel_sql::catalog::Routine;
use archipel_sql::types::{Oid, Type};
use parking_lot::RwLock;
use rustc_hash::{FxHashMap, FxHasher};

/// How many places are remembered; beyond that all are found again.
const PLACES_MAX: usize = 10_000;

/// A place in a routine that gives rows: the routine, its source, where in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    routine: Oid,
    source: u64,
    at: u64,
}

impl Place {
    pub fn new(routine: &Routine, at: u64) -> Place {
        let mut hasher = FxHasher::default();
        routine.source.hash(&mut hasher);
        for arg in &routine.args {
            arg.ty.oid.hash(&mut hasher);
        }
        Place { routine: routine.oid, source: hasher.finish(), at }
    }
}

pub(crate) type Columns = Vec<(String, Type)>;

/// What runs have found.
#[derive(Default)]
pub struct Shapes {
    known: RwLock<FxHashMap<Place, Columns>>,
    /// Counts what was found: what was compiled before is outdated.
    generation: AtomicU64,
}

impl Shapes {
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn get(&self, place: Place) -> Option<Columns> {
        self.known.read().get(&place).cloned()
    }

    /// Goes on if rows have the structure the routine was compiled for; otherwise notes theirs.
    pub(crate) fn check(
        &self,
        place: Place,
        compiled: Option<&Columns>,
        found: &[OutputColumn],
    ) -> ExecResult<()> {
        let same = |known: &Columns| {
            known.len() == found.len()
                && known
                    .iter()
                    .zip(found)
                    .all(|((name, ty), column)| *name == column.name && *ty == column.ty)
        };
        if compiled.is_some_and(same) {
            return Ok(());
        }
        let found = found.iter().map(|column| (column.name.clone(), column.ty)).collect();
        let mut known = self.known.write();
        if known.len() >= PLACES_MAX {
            known.clear();
        }
        known.insert(place, found);
        self.generation.fetch_add(1, Ordering::AcqRel);
        Err(ExecError::Stop(archipel_engine::Stop::Recompile))
    }
}
