//! Rows whose structure shows only when they come: `FOR r IN EXECUTE text`, `EXECUTE text INTO r`
//! and FETCH from a cursor that was opened elsewhere, `r` being a `record`.
//!
//! Fields of records are registers, given out when a routine is compiled. Where the structure is
//! not known then, the first run finds it: it is noted here, the run is undone as one whose
//! tables have changed would be, and the routine is compiled anew with what is known now. A place
//! may meet several, and is compiled for all of them ([`super::variant`]). A text that is constant has
//! another structure when its tables have.

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

/// How many structures of one place are remembered.
const STRUCTURES_MAX: usize = 32;

pub(crate) type Columns = Vec<(String, Type)>;

/// A structure of rows, with a number of its own.
#[derive(Clone, Debug)]
pub(crate) struct Structure {
    pub number: i32,
    pub columns: Columns,
}

impl Structure {
    fn is_of(&self, found: &[OutputColumn]) -> bool {
        self.columns.len() == found.len()
            && self.columns.iter().zip(found).all(|((name, ty), c)| *name == c.name && *ty == c.ty)
    }
}

#[derive(Default)]
struct Known {
    /// The last found comes last.
    places: FxHashMap<Place, Vec<Structure>>,
    numbers: i32,
}

impl Known {
    fn note(&mut self, place: Place, columns: Columns) {
        if self.places.len() >= PLACES_MAX {
            self.places.clear();
        }
        // A structure has one number wherever it is met.
        let met = self.places.values().flatten().find(|known| known.columns == columns).cloned();
        let structure = met.unwrap_or_else(|| {
            self.numbers = self.numbers.wrapping_add(1);
            Structure { number: self.numbers, columns }
        });
        let here = self.places.entry(place).or_default();
        here.retain(|known| known.number != structure.number);
        if here.len() >= STRUCTURES_MAX {
            here.remove(0);
        }
        here.push(structure);
    }
}

/// What runs have found.
#[derive(Default)]
pub struct Shapes {
    known: RwLock<Known>,
    /// Counts what was found: what was compiled before is outdated.
    generation: AtomicU64,
}

impl Shapes {
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The structures that rows of a place have had.
    pub(crate) fn get(&self, place: Place) -> Vec<Structure> {
        self.known.read().places.get(&place).cloned().unwrap_or_default()
    }

    /// Which of the structures the routine was compiled for rows have; if none, theirs is noted.
    pub(crate) fn check(
        &self,
        place: Place,
        compiled: &[Structure],
        found: &[OutputColumn],
    ) -> ExecResult<usize> {
        if let Some(at) = compiled.iter().position(|known| known.is_of(found)) {
            return Ok(at);
        }
        let columns = found.iter().map(|column| (column.name.clone(), column.ty)).collect();
        self.find(place, compiled, columns)
    }

    /// As [`Shapes::check`].
    pub(crate) fn find(&self, place: Place, compiled: &[Structure], columns: Columns) -> ExecResult<usize> {
        if let Some(at) = compiled.iter().position(|known| known.columns == columns) {
            return Ok(at);
        }
        self.known.write().note(place, columns);
        self.generation.fetch_add(1, Ordering::AcqRel);
        Err(ExecError::Stop(archipel_engine::Stop::Recompile))
    }

    /// The structures that rows of a place have had, the one among them that they have now: a record may
    /// hold a row of before when the tables have changed.
    pub(crate) fn with(&self, place: Place, now: Columns) -> Vec<Structure> {
        let here = self.get(place);
        if here.iter().any(|known| known.columns == now) {
            return here;
        }
        self.known.write().note(place, now);
        self.get(place)
    }
}
