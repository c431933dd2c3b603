//! What compilation may ask of the outside: tables, the catalog, compiled routines.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use archipel_engine::TableMeta;
use archipel_engine::id::TreeId;
use archipel_sql::catalog::{Catalog, RoutineRef, TableRef, Trigger, TriggerEvent};
use archipel_sql::error::Result;
use archipel_sql::system::Defined;
use archipel_sql::types::Oid;

use crate::native::run::routine::CompiledRoutine;

/// The engine's tables, by tree.
pub trait TableSource {
    fn table(&self, tree: TreeId) -> Option<Arc<TableMeta>>;

    /// How many rows a table has, about; zero where that is not known.
    fn rows(&self, _tree: TreeId) -> u64 {
        0
    }
}

impl TableSource for archipel_engine::Engine {
    fn table(&self, tree: TreeId) -> Option<Arc<TableMeta>> {
        archipel_engine::Engine::table(self, tree)
    }

    fn rows(&self, tree: TreeId) -> u64 {
        self.rows_at_most(tree)
    }
}

/// Whether a plan failed because the engine has a definition that the catalog does not say yet: it
/// can be made as soon as whoever defines has published it.
pub fn is_outdated(error: &archipel_sql::error::SqlError) -> bool {
    error.state() == archipel_sql::error::SqlState::INTERNAL_ERROR && error.fields().table.is_some()
}

/// Finds the compiled form of a deployed routine, compiling it if need be.
pub trait RoutineLinker {
    fn link(&self, routine: &RoutineRef) -> Result<Arc<dyn CompiledRoutine>>;

    /// The compiled form of a trigger of a table for one event: called with the old and the new
    /// row, NULL for one there is not. Its function answers the row to go on with, or none; its
    /// condition answers whether to call the function.
    fn link_trigger(
        &self,
        table: &TableRef,
        trigger: &Trigger,
        event: TriggerEvent,
        part: TriggerPart,
    ) -> Result<Arc<dyn CompiledRoutine>> {
        let _ = (event, part);
        Err(archipel_sql::error::SqlError::unsupported(format_args!(
            "firing trigger {} of {} here",
            trigger.name, table.name
        )))
    }

    /// The same for another version of the catalog and, if one is given, another role and setting of
    /// `row_security`; `None` where that makes no difference.
    fn at(
        &self,
        catalog: &Catalog,
        reader: Option<(Oid, bool)>,
    ) -> Option<Arc<dyn RoutineLinker + Send + Sync>> {
        let _ = (catalog, reader);
        None
    }

    /// Set once what was linked here may ask where its callers are
    /// ([`CompiledRoutine::asks_callers`]): the routine it is linked into has to tell then.
    fn asked_below(&self) -> Arc<AtomicBool> {
        Arc::default()
    }
}

/// What of a trigger is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TriggerPart {
    Function,
    /// WHEN.
    Condition,
    /// The function, in the form that can stop for the session if there is one.
    Pieces,
}

/// A linker for places without routines.
pub struct NoRoutines;
impl RoutineLinker for NoRoutines {
    fn link(&self, routine: &RoutineRef) -> Result<Arc<dyn CompiledRoutine>> {
        Err(archipel_sql::error::SqlError::unsupported(format_args!(
            "calling {}.{} here",
            routine.schema, routine.name
        )))
    }
}

/// What compilation may ask of the outside.
pub struct CompileEnv<'a> {
    pub tables: &'a dyn TableSource,
    pub catalog: &'a Catalog,
    /// Along which plans that are told name the types of users.
    pub search_path: &'a [String],
    pub routines: &'a dyn RoutineLinker,
}

impl<'a> CompileEnv<'a> {
    /// Who says what types are called and what values of users' types are.
    pub(crate) fn session(&self) -> Defined<'a> {
        Defined { catalog: self.catalog, search_path: self.search_path }
    }
}
