//! Who writes down what was looked up in a catalog, and the answers: [`super::lookups`] says what for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::operator_class::OperatorClassRef;
use super::{Access, ObjectKind, Role, RoutineRef, Schema, SequenceRef, TableRef, UserTypeRef};
use crate::types::Oid;

/// Answers by what was asked for.
pub(super) type ByOid<T> = FxHashMap<Oid, Option<T>>;

pub(super) type ByName<T> = FxHashMap<Box<str>, T>;

/// Schema, then name.
pub(super) type InSchema<T> = ByName<ByName<T>>;

/// Look-ups and their answers. See the module's head.
#[derive(Debug, Default)]
pub struct Lookups {
    pub(super) tables: ByOid<TableRef>,
    pub(super) composites: ByOid<TableRef>,
    pub(super) sequences: ByOid<SequenceRef>,
    pub(super) routines: ByOid<RoutineRef>,
    pub(super) types: ByOid<UserTypeRef>,
    pub(super) labels: ByOid<Arc<str>>,
    pub(super) classes: ByOid<OperatorClassRef>,
    pub(super) schemas: ByOid<Arc<Schema>>,
    pub(super) roles: ByOid<Arc<Role>>,
    pub(super) access: ByOid<Arc<Access>>,
    /// Tables of indexes.
    pub(super) index_tables: ByOid<Oid>,
    pub(super) heirs: FxHashMap<Oid, Vec<Oid>>,
    /// Tables with foreign keys to one.
    pub(super) referencing: FxHashMap<Oid, Vec<TableRef>>,
    pub(super) schema_names: ByName<Option<Arc<Schema>>>,
    pub(super) role_names: ByName<Option<Arc<Role>>>,
    pub(super) relation_names: InSchema<Option<Oid>>,
    pub(super) routine_names: InSchema<Vec<Oid>>,
    pub(super) type_names: InSchema<Option<Oid>>,
    /// Kinds of which all objects were gone through, with the mark of that moment.
    pub(super) all: FxHashMap<ObjectKind, Arc<()>>,
    /// Those of what was compiled before and made use of.
    pub(super) parts: Vec<Arc<Lookups>>,
}

/// Where a handle writes its look-ups down. What was compiled keeps its handle for what it will look
/// up when it runs: that is none of the plan's.
#[derive(Debug, Default)]
pub struct LookupRecorder {
    finished: AtomicBool,
    lookups: Mutex<Lookups>,
}

impl LookupRecorder {
    pub(super) fn note(&self, write: impl FnOnce(&mut Lookups)) {
        if !self.finished.load(Ordering::Relaxed) {
            write(&mut self.lookups.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// What has been asked; nothing is written down any more.
    pub fn finish(&self) -> Arc<Lookups> {
        self.finished.store(true, Ordering::Relaxed);
        let mut lookups = self.lookups.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::new(std::mem::take(&mut *lookups))
    }
}
