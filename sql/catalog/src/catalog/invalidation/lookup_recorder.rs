//! Who writes down what was looked up in a catalog, and the answers: [`super::lookups`] says what for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::catalog::operator_class::OperatorClassRef;
use crate::catalog::{Access, ObjectKind, Role, RoutineRef, Schema, SequenceRef, TableRef, UserTypeRef};
use crate::types::Oid;

/// Answers by what was asked for.
pub(in crate::catalog) type ByOid<T> = FxHashMap<Oid, Option<T>>;

pub(in crate::catalog) type ByName<T> = FxHashMap<Box<str>, T>;

/// Schema, then name.
pub(in crate::catalog) type InSchema<T> = ByName<ByName<T>>;

/// Look-ups and their answers. See the module's head.
#[derive(Debug, Default)]
pub struct Lookups {
    pub(in crate::catalog) tables: ByOid<TableRef>,
    pub(in crate::catalog) composites: ByOid<TableRef>,
    pub(in crate::catalog) sequences: ByOid<SequenceRef>,
    pub(in crate::catalog) routines: ByOid<RoutineRef>,
    pub(in crate::catalog) types: ByOid<UserTypeRef>,
    pub(in crate::catalog) labels: ByOid<Arc<str>>,
    pub(in crate::catalog) classes: ByOid<OperatorClassRef>,
    pub(in crate::catalog) schemas: ByOid<Arc<Schema>>,
    pub(in crate::catalog) roles: ByOid<Arc<Role>>,
    pub(in crate::catalog) access: ByOid<Arc<Access>>,
    /// Tables of indexes.
    pub(in crate::catalog) index_tables: ByOid<Oid>,
    pub(in crate::catalog) heirs: FxHashMap<Oid, Vec<Oid>>,
    /// Tables with foreign keys to one.
    pub(in crate::catalog) referencing: FxHashMap<Oid, Vec<TableRef>>,
    pub(in crate::catalog) schema_names: ByName<Option<Arc<Schema>>>,
    pub(in crate::catalog) role_names: ByName<Option<Arc<Role>>>,
    pub(in crate::catalog) relation_names: InSchema<Option<Oid>>,
    pub(in crate::catalog) routine_names: InSchema<Vec<Oid>>,
    pub(in crate::catalog) type_names: InSchema<Option<Oid>>,
    /// Kinds of which all objects were gone through, with the mark of that moment.
    pub(in crate::catalog) all: FxHashMap<ObjectKind, Arc<()>>,
    /// Those of what was compiled before and made use of.
    pub(in crate::catalog) parts: Vec<Arc<Lookups>>,
}

/// Where a handle writes its look-ups down. What was compiled keeps its handle for what it will look
/// up when it runs: that is none of the plan's.
#[derive(Debug, Default)]
pub struct LookupRecorder {
    finished: AtomicBool,
    lookups: Mutex<Lookups>,
}

impl LookupRecorder {
    pub(in crate::catalog) fn note(&self, write: impl FnOnce(&mut Lookups)) {
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
