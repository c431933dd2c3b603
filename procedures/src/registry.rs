//! The compiled routines of a server: found by the routine and the search path, compiled on first use,
//! and again when the catalog has come to answer otherwise what was asked of it ([`Validity`]), or the
//! engine has made other tables of it ([`TableVersions`]).
//!
//! Routines call each other through a [`Linker`]. One that calls itself, directly or through
//! others, meets itself while it is being compiled: it gets a handle that looks the routine up
//! when it is called. So does one that calls others so deep that the stack does not do for
//! compiling them all, one inside of the other.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use archipel_planner::bind::coerce;
use archipel_planner::bound::BoundStatement;
use archipel_planner::native::{
    CompiledRoutine, ExecContext, ExecResult, RoutineLinker, RowSink, TriggerPart, is_outdated,
};
use archipel_planner::route::{Access, RouteKey};
use archipel_sql::catalog::{
    Catalog, CatalogChange, Language, LookupRecorder, Object, ObjectKind, Routine, RoutineKind, RoutineRef,
    TableRef, Trigger, TriggerEvent, Validity,
};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::parser::StringSyntax;
use archipel_sql::types::{Oid, Type};
use archipel_sql::{interrupt, stack};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use crate::compile::record::shape::Shapes;
use crate::compile::{self, Environment, Reader};
use crate::plpgsql::ast::Conflict;
use crate::query_routine::{query_as_routine, unnamed};
use crate::run::context_line;
use crate::run::late::{FindProgram, LateProgram, gone};
use crate::run::operation::{ContextLanguage, Program};
use crate::table_versions::{TableRecorder, TableVersions};
use crate::trigger::{self, TriggerProgram, TriggerUse};

/// So many forms of one routine are kept, for search paths and types of arguments; beyond that the
/// oldest goes.
const FORMS_MAX: usize = 64;

/// One compiled routine and what it was compiled from.
struct Entry {
    version: u64,
    /// Of the arguments, and of the result, as a call has them: a polymorphic routine is compiled for each
    /// combination.
    types: Vec<Oid>,
    /// What was known of rows.
    generation: u64,
    validity: Validity,
    tables: TableVersions,
    search_path: Arc<[String]>,
    path_of_calls: Option<Arc<[String]>>,
    in_pieces: bool,
    conflict: Conflict,
    strings: StringSyntax,
    /// For whom it was compiled, if policies went into it.
    reader: Option<Reader>,
    program: Arc<Program>,
}

impl Entry {
    fn is_current(&self, routine: &Routine, environment: &Environment) -> bool {
        self.version == routine.version
            && self.is_form_of(routine, environment)
            && self.generation == environment.shapes.generation()
            && self.validity.holds(&environment.catalog)
            && self.tables.hold(environment.tables.as_ref())
    }

    /// Whether it was compiled for the same use.
    fn is_form_of(&self, routine: &Routine, environment: &Environment) -> bool {
        self.in_pieces == environment.in_pieces
            && self.conflict == environment.conflict
            && self.strings == environment.strings
            && self.reader.is_none_or(|reader| reader == environment.reader())
            && self.search_path == environment.search_path
            && self.path_of_calls == environment.path_of_calls
            && self.is_instance(routine)
    }

    fn is_instance(&self, routine: &Routine) -> bool {
        types_of(routine).eq(self.types.iter().copied())
    }
}

fn types_of(routine: &Routine) -> impl Iterator<Item = Oid> + '_ {
    routine.args.iter().map(|arg| arg.declared().oid).chain([routine.declared_result().oid])
}

/// A polymorphic routine as PostgreSQL validates it where nobody has called it: for integers.
fn for_integers(routine: &RoutineRef) -> RoutineRef {
    if !is_polymorphic(routine) {
        return routine.clone();
    }
    let mut concrete = (**routine).clone();
    let tys = concrete.args.iter_mut().map(|arg| &mut arg.ty).chain([&mut concrete.result]);
    for ty in tys {
        match ty.oid {
            Oid::ANYARRAY | Oid::ANYCOMPATIBLEARRAY => {
                ty.oid = archipel_sql::type_table::array_of(Oid::INT4).unwrap_or(ty.oid);
            }
            oid if coerce::is_polymorphic(oid) && oid != Oid::ANY => ty.oid = Oid::INT4,
            _ => {}
        }
    }
    Arc::new(concrete)
}

fn is_polymorphic(routine: &Routine) -> bool {
    routine.args.iter().any(|arg| coerce::is_polymorphic(arg.ty.oid))
}

/// One trigger compiled for one event, and what it was compiled from.
struct TriggerEntry {
    table: Oid,
    /// What was known of rows.
    generation: u64,
    validity: Validity,
    tables: TableVersions,
    search_path: Arc<[String]>,
    conflict: Conflict,
    strings: StringSyntax,
    /// As of [`Entry`].
    reader: Option<Reader>,
    program: Arc<TriggerProgram>,
}

impl TriggerEntry {
    /// Whether it was compiled for the same use.
    fn is_form_of(&self, environment: &Environment) -> bool {
        self.search_path == environment.search_path
            && self.conflict == environment.conflict
            && self.strings == environment.strings
            && self.reader.is_none_or(|reader| reader == environment.reader())
    }
}

/// What is being compiled, with what it asks of the catalog and of the engine written down.
fn noting(environment: &Environment) -> (Environment, Arc<LookupRecorder>, Arc<TableRecorder>) {
    let (catalog, recorder) = environment.catalog.noting();
    let tables = TableRecorder::new(environment.tables.clone());
    (Environment { catalog, tables: tables.clone(), ..environment.clone() }, recorder, tables)
}

/// All compiled routines.
#[derive(Default)]
pub struct Registry {
    entries: RwLock<FxHashMap<Oid, Vec<Entry>>>,
    /// What is known of rows that only runs can know.
    shapes: Arc<Shapes>,
    triggers: RwLock<FxHashMap<TriggerKey, Vec<TriggerEntry>>>,
}

type TriggerKey = (Oid, TriggerEvent, TriggerPart);

/// What is being compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnderWay {
    Routine(Oid),
    Trigger(TriggerKey),
}

impl Registry {
    pub fn new() -> Arc<Registry> {
        Arc::new(Registry::default())
    }

    /// The compiled form of a routine.
    pub fn program(
        self: &Arc<Self>,
        routine: &RoutineRef,
        environment: &Environment,
    ) -> Result<Arc<Program>> {
        self.program_within(routine, environment, &[])
    }

    fn program_within(
        self: &Arc<Self>,
        routine: &RoutineRef,
        environment: &Environment,
        compiling: &[UnderWay],
    ) -> Result<Arc<Program>> {
        let environment = &Environment { shapes: self.shapes.clone(), ..environment.of(routine) };
        let routine = &for_integers(routine);
        let generation = self.shapes.generation();
        if let Some(entries) = self.entries.read().get(&routine.oid)
            && let Some(entry) = entries.iter().find(|entry| entry.is_current(routine, environment))
        {
            environment.catalog.note_part(entry.validity.lookups());
            return Ok(entry.program.clone());
        }
        require_room()?;
        let (own, recorder, tables) = noting(environment);
        // Whatever else it asks, it is good for this definition alone.
        let _ = own.catalog.routine_by_oid(routine.oid);
        let compiled = self.compile(routine, &own, compiling);
        let lookups = recorder.finish();
        // That it does not compile, too, is an answer.
        environment.catalog.note_part(&lookups);
        let program = Arc::new(compiled.map_err(|error| of_call(routine, error))?);
        require_its_own_errors()?;
        let entry = Entry {
            version: routine.version,
            reader: lookups.have_row_security().then(|| environment.reader()),
            types: types_of(routine).collect(),
            generation,
            validity: Validity::of(lookups, &environment.catalog),
            tables: tables.finish(),
            search_path: environment.search_path.clone(),
            path_of_calls: environment.path_of_calls.clone(),
            in_pieces: environment.in_pieces,
            conflict: environment.conflict,
            strings: environment.strings,
            program: program.clone(),
        };
        let mut entries = self.entries.write();
        if entries.len() == entries.capacity() {
            // Whoever had a catalog of before may have compiled what was forgotten.
            let catalog = environment.catalog.without_notes();
            entries.retain(|known, _| catalog.routine_by_oid(*known).is_some());
        }
        let kept = entries.entry(routine.oid).or_default();
        kept.retain(|old| old.version == routine.version && !old.is_form_of(routine, environment));
        if kept.len() >= FORMS_MAX {
            kept.remove(0);
        }
        kept.push(entry);
        Ok(program)
    }

    fn compile(
        self: &Arc<Self>,
        routine: &RoutineRef,
        environment: &Environment,
        compiling: &[UnderWay],
    ) -> Result<Program> {
        if routine.result == Type::TRIGGER {
            return Err(trigger::direct_call(routine));
        }
        if routine.kind == RoutineKind::Aggregate {
            return Err(archipel_sql::error::SqlError::internal(format!(
                "aggregate {} is compiled by itself",
                routine.name
            )));
        }
        let routine = &environment.read(routine)?;
        let outermost = compiling.is_empty();
        let mut compiling = compiling.to_vec();
        compiling.push(UnderWay::Routine(routine.oid));
        let mut program =
            compile::compile(routine, environment, &self.linker_within(environment, compiling))?;
        let recursive =
            |access: &Access| matches!(&access.key, RouteKey::Unknown(reason) if reason == RECURSION);
        if outermost && program.accesses.iter().all(|a| recursive(a) && a.table == routine.name) {
            // It calls itself and touches nothing.
            program.accesses.clear();
            program.routes.clear();
        }
        Ok(program)
    }

    /// Compiles a routine that is being created, and keeps nothing: the errors PostgreSQL
    /// reports at CREATE. Positions count characters of the body from one.
    pub fn validate(self: &Arc<Self>, routine: &RoutineRef, environment: &Environment) -> Result<()> {
        if routine.result == Type::TRIGGER {
            return trigger::check_grammar(&environment.of(routine).read(routine)?);
        }
        if is_polymorphic(routine) && routine.language == Language::Sql {
            // Its statements bind only for actual types.
            let routine = environment.of(routine).read(routine)?;
            return archipel_sql::parser::parse(&compile::statements_text(&routine.source)).map(drop);
        }
        let environment = environment.of(routine);
        self.compile(&for_integers(routine), &environment, &[])?;
        compile::trace::hint::check(routine, &environment, self.linker(&environment).as_ref())
    }

    /// Compiles the condition of a trigger that is being created, and keeps nothing.
    pub fn validate_trigger(
        self: &Arc<Self>,
        table: &TableRef,
        trigger: &Trigger,
        environment: &Environment,
    ) -> Result<()> {
        if trigger.condition.is_none() {
            return Ok(());
        }
        for event in &trigger.events {
            let used = TriggerUse { table, trigger, event: *event };
            let linker = self.linker_within(environment, Vec::new());
            trigger::compile(&used, TriggerPart::Condition, environment, &linker)?;
        }
        Ok(())
    }

    fn trigger_within(
        self: &Arc<Self>,
        used: &TriggerUse<'_>,
        part: TriggerPart,
        environment: &Environment,
        compiling: &[UnderWay],
    ) -> Result<Arc<TriggerProgram>> {
        let key = (used.trigger.oid, used.event, part);
        let function = match part {
            TriggerPart::Function | TriggerPart::Pieces => environment.catalog.trigger_function(used.trigger),
            TriggerPart::Condition => None,
        };
        let environment = match &function {
            Some(function) => environment.of(function),
            None => environment.clone(),
        };
        // A statement that fires it itself cannot stop.
        let in_pieces = environment.in_pieces && part == TriggerPart::Pieces;
        let environment = &Environment { shapes: self.shapes.clone(), in_pieces, ..environment };
        let generation = self.shapes.generation();
        let is_current = |entry: &&TriggerEntry| {
            entry.is_form_of(environment)
                && entry.generation == generation
                && entry.validity.holds(&environment.catalog)
                && entry.tables.hold(environment.tables.as_ref())
        };
        if let Some(entries) = self.triggers.read().get(&key)
            && let Some(entry) = entries.iter().find(is_current)
        {
            environment.catalog.note_part(entry.validity.lookups());
            return Ok(entry.program.clone());
        }
        require_room()?;
        let mut compiling = compiling.to_vec();
        compiling.push(UnderWay::Trigger(key));
        let (own, recorder, tables) = noting(environment);
        own.catalog.note_table(used.table);
        let linker = self.linker_within(&own, compiling);
        let compiled = trigger::compile(used, part, &own, &linker);
        let lookups = recorder.finish();
        environment.catalog.note_part(&lookups);
        let program = Arc::new(compiled?);
        require_its_own_errors()?;
        let entry = TriggerEntry {
            table: used.table.oid,
            reader: lookups.have_row_security().then(|| environment.reader()),
            generation,
            validity: Validity::of(lookups, &environment.catalog),
            tables: tables.finish(),
            search_path: environment.search_path.clone(),
            conflict: environment.conflict,
            strings: environment.strings,
            program: program.clone(),
        };
        let mut triggers = self.triggers.write();
        // Those of a trigger that is gone are of no use.
        let catalog = environment.catalog.without_notes();
        let is_there = |trigger: Oid, entry: &TriggerEntry| {
            let table = catalog.table_in_place(entry.table);
            table.is_some_and(|table| table.triggers.iter().any(|known| known.oid == trigger))
        };
        triggers.retain(|key, known| known.first().is_some_and(|entry| is_there(key.0, entry)));
        let kept = triggers.entry(key).or_default();
        kept.retain(|old| !old.is_form_of(environment));
        if kept.len() >= FORMS_MAX {
            kept.remove(0);
        }
        kept.push(entry);
        Ok(program)
    }

    /// Compiles an anonymous block (DO).
    pub fn block(self: &Arc<Self>, source: &str, environment: &Environment) -> Result<Arc<Program>> {
        let routine = Arc::new(unnamed(source));
        let environment = &Environment { shapes: self.shapes.clone(), ..environment.clone() };
        let linker = self.linker_within(environment, Vec::new());
        let routine = environment.read(&routine)?;
        compile::compile_block(&routine, environment, &linker).map(Arc::new)
    }

    /// Compiles a query with parameters of these types in pieces, as a routine would have it that
    /// CONTEXT lines do not name: so it can stop where a routine that it calls leaves a statement
    /// to the session.
    pub fn query_in_pieces(
        self: &Arc<Self>,
        source: &str,
        params: &[Type],
        environment: &Environment,
    ) -> Result<Arc<Program>> {
        let routine = query_as_routine(source, params);
        let environment =
            &Environment { shapes: self.shapes.clone(), in_pieces: true, ..environment.clone() };
        let linker = self.linker_within(environment, Vec::new());
        let mut program = compile::compile(&routine, environment, &linker)?;
        program.language = ContextLanguage::Inlined;
        Ok(Arc::new(program))
    }

    /// The same of a statement that changes rows, bound over its parameters: it answers a row for each.
    /// `None` if it has no calls that are made before it.
    pub fn statement_in_pieces(
        self: &Arc<Self>,
        text: &str,
        bound: &BoundStatement,
        params: &[Type],
        environment: &Environment,
    ) -> Result<Option<Arc<Program>>> {
        let routine = query_as_routine(text, params);
        let environment =
            &Environment { shapes: self.shapes.clone(), in_pieces: true, ..environment.clone() };
        let linker = self.linker_within(environment, Vec::new());
        Ok(compile::compile_bound(bound.clone(), &routine, environment, &linker)?.map(Arc::new))
    }

    /// Forgets the routines that were dropped or replaced by changes of the catalog, which are
    /// published: nobody who comes from now on asks for them.
    pub fn forget_changed(&self, changes: &[CatalogChange]) {
        let changed = changes.iter().filter_map(|change| match change {
            CatalogChange::Put(Object::Routine(routine)) => Some(routine.oid),
            CatalogChange::Drop(ObjectKind::Routine, oid) => Some(*oid),
            _ => None,
        });
        for routine in changed {
            self.entries.write().remove(&routine);
        }
    }

    /// What statements call routines through.
    pub fn linker(self: &Arc<Self>, environment: &Environment) -> Arc<dyn RoutineLinker + Send + Sync> {
        self.linker_within(environment, Vec::new())
    }

    fn linker_within(
        self: &Arc<Self>,
        environment: &Environment,
        compiling: Vec<UnderWay>,
    ) -> Arc<dyn RoutineLinker + Send + Sync> {
        Arc::new(Linker {
            registry: Arc::downgrade(self),
            environment: environment.clone(),
            compiling,
            asked: Arc::default(),
        })
    }
}

/// Links calls to compiled routines. It holds the registry weakly: compiled routines keep
/// their linker, and the registry keeps them.
struct Linker {
    registry: Weak<Registry>,
    environment: Environment,
    /// What is being compiled, outermost first.
    compiling: Vec<UnderWay>,
    /// Whether something that was linked asks where its callers are.
    asked: Arc<AtomicBool>,
}

impl Linker {
    /// Why something is looked up when it is called and not now, if so.
    fn why_late(&self, wanted: UnderWay) -> Option<&'static str> {
        if self.compiling.contains(&wanted) {
            return Some(RECURSION);
        }
        // Nothing is too deep by itself: running, it has the stack that compiling took.
        (!self.compiling.is_empty() && stack::is_half_used()).then_some(DEPTH)
    }

    fn linked(&self, routine: Arc<dyn CompiledRoutine>) -> Arc<dyn CompiledRoutine> {
        if routine.asks_callers() {
            self.asked.store(true, Ordering::Relaxed);
        }
        routine
    }
}

impl RoutineLinker for Linker {
    fn link(&self, routine: &RoutineRef) -> Result<Arc<dyn CompiledRoutine>> {
        let registry = self.registry.upgrade().ok_or_else(gone)?;
        if let Some(reason) = self.why_late(UnderWay::Routine(routine.oid)) {
            let late = Late {
                registry: self.registry.clone(),
                environment: self.environment.clone(),
                called: Called::Routine(routine.clone()),
                accesses: [compile::unknown_access(&routine.name, reason)],
            };
            return Ok(self.linked(Arc::new(late)));
        }
        Ok(self.linked(registry.program_within(routine, &self.environment, &self.compiling)?))
    }

    fn link_trigger(
        &self,
        table: &TableRef,
        trigger: &Trigger,
        event: TriggerEvent,
        part: TriggerPart,
    ) -> Result<Arc<dyn CompiledRoutine>> {
        let registry = self.registry.upgrade().ok_or_else(gone)?;
        if let Some(reason) = self.why_late(UnderWay::Trigger((trigger.oid, event, part))) {
            let late = Late {
                registry: self.registry.clone(),
                environment: self.environment.clone(),
                called: Called::Trigger(table.clone(), Box::new(trigger.clone()), event, part),
                accesses: [compile::unknown_access(&table.name, reason)],
            };
            return Ok(self.linked(Arc::new(late)));
        }
        let used = TriggerUse { table, trigger, event };
        Ok(self.linked(registry.trigger_within(&used, part, &self.environment, &self.compiling)?))
    }

    fn at(
        &self,
        catalog: &Catalog,
        reader: Option<(Oid, bool)>,
    ) -> Option<Arc<dyn RoutineLinker + Send + Sync>> {
        let environment = self.environment.read_by(reader.unwrap_or(self.environment.reader()));
        Some(Arc::new(Linker {
            registry: self.registry.clone(),
            environment: Environment { catalog: catalog.clone(), ..environment },
            compiling: self.compiling.clone(),
            asked: self.asked.clone(),
        }))
    }

    fn asked_below(&self) -> Arc<AtomicBool> {
        self.asked.clone()
    }
}

/// 54001 where there is too little stack left to compile a routine: a statement of it that is refused
/// for that would be refused ever after.
fn require_room() -> Result<()> {
    if stack::is_half_used() { Err(stack::too_deep()) } else { Ok(()) }
}

/// Refuses to keep what was compiled while its statement was asked to end, or to go on elsewhere: a statement
/// of it may have failed with that, and would ever after.
fn require_its_own_errors() -> Result<()> {
    interrupt::check()
}

/// What a call tells of a body that means nothing now: where in the body that is, of which the client's own
/// text has no place, and for SQL that it was found in inlining or at the start (functions.c, clauses.c).
fn of_call(routine: &Routine, mut error: SqlError) -> SqlError {
    let fields = error.fields_mut();
    let position = fields.position.take();
    // What is kept of a body without quotes is not what was written.
    if fields.internal.is_none() && routine.traits.stored.is_none() {
        fields.internal = position.map(|position| (position, routine.source.clone()));
    }
    if routine.language != Language::Sql || is_outdated(&error) {
        return error;
    }
    let name = format!("SQL function \"{}\"", routine.name);
    // The words of CREATE.
    let fields = error.fields_mut();
    if fields.context.as_deref() == Some(name.as_str()) {
        fields.context = None;
    }
    // Of several statements none is looked at for that.
    let several = || archipel_sql::parser::parse(&routine.source).is_ok_and(|parsed| parsed.len() != 1);
    let is_inlined = routine.kind == RoutineKind::Function
        && !routine.returns_set
        && routine.result.oid != Oid::RECORD
        && !routine.traits.security_definer
        && routine.traits.settings.is_empty()
        && !several();
    let when = if is_inlined { "during inlining" } else { "during startup" };
    context_line::add_line(error, &format!("{name} {when}"))
}

/// What is known of a recursive call beforehand.
const RECURSION: &str = "called again with arguments found while it runs";

/// The same of one that is called deeper than routines are compiled together.
const DEPTH: &str = "called by too many routines, one inside of the other, to be looked into beforehand";

/// A routine that was being compiled when it was linked, or too deep inside of others: it is looked up
/// when it is called.
struct Late {
    registry: Weak<Registry>,
    environment: Environment,
    called: Called,
    accesses: [Access; 1],
}

enum Called {
    Routine(RoutineRef),
    Trigger(TableRef, Box<Trigger>, TriggerEvent, TriggerPart),
}

impl FindProgram for Late {
    fn find(&self) -> Result<Arc<Program>> {
        let Called::Routine(called) = &self.called else { return Err(gone()) };
        self.registry.upgrade().ok_or_else(gone)?.program(called, &self.environment)
    }
}

impl CompiledRoutine for Late {
    fn call(&self, ctx: &mut ExecContext<'_, '_>, args: &[Datum], sink: &mut dyn RowSink) -> ExecResult<()> {
        let registry = self.registry.upgrade().ok_or_else(gone)?;
        let environment = self.environment.of_session(ctx.functions.session);
        match &self.called {
            Called::Routine(routine) => registry.program(routine, &environment)?.invoke(ctx, args, sink),
            Called::Trigger(table, trigger, event, part) => {
                let used = TriggerUse { table, trigger, event: *event };
                registry.trigger_within(&used, *part, &environment, &[])?.call(ctx, args, sink)
            }
        }
    }

    fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// What it is compiled to shows later; what it says is there to read.
    fn asks_callers(&self) -> bool {
        let function = match &self.called {
            Called::Routine(routine) => Some(routine.clone()),
            Called::Trigger(_, trigger, ..) => self.environment.catalog.routine_by_oid(trigger.function),
        };
        let words = ["pg_context", "pg_exception_context"];
        function.is_some_and(|function| {
            let source = function.source.to_ascii_lowercase();
            words.iter().any(|word| source.contains(word))
        })
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        Arc::new(LateProgram(self))
    }
}

impl CompiledRoutine for Program {
    fn call(&self, ctx: &mut ExecContext<'_, '_>, args: &[Datum], sink: &mut dyn RowSink) -> ExecResult<()> {
        self.invoke(ctx, args, sink)
    }

    fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    fn asks_callers(&self) -> bool {
        self.asks || self.tells()
    }

    fn dissolved(&self) -> Option<bool> {
        self.dissolved
    }

    fn signature(&self) -> Option<&str> {
        Some(&self.signature)
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
