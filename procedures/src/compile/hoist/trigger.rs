//! Triggers that may come to a definition.
//!
//! What fires inside of a statement cannot stop, so these fire around it: rows pass the BEFORE ROW
//! triggers of an INSERT before it, which is then told of those left, and AFTER ROW triggers are called
//! for the rows that a statement has answered. Only tables some of whose triggers may leave a statement to the
//! session are treated so; the triggers see the rows before their own in the table no sooner than all of
//! them are there.

use std::sync::Arc;

use archipel_planner::bound::{
    BoundExpr, BoundInsert, BoundQuery, BoundStatement, OutputColumn, Rel, Returning, SetCall,
};
use archipel_planner::native::TriggerPart;
use archipel_sql::catalog::{Catalog, RoutineRef, Table, TableKind, TableRef, Trigger, TriggerEvent};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::types::{Oid, Type};

use super::walk::Walk;
use crate::registry::query_as_routine;
use crate::run::operation::{Hoisted, HoistedTrigger, HoistedTriggers};
use crate::trigger::TriggerProgram;

impl Walk<'_, '_> {
    /// Lets the rows of an INSERT pass the BEFORE ROW triggers before it.
    pub(super) fn before_insert(&mut self, insert: &mut BoundInsert) -> Result<()> {
        let fired = Fired { event: TriggerEvent::Insert, set: None, before: true };
        let first = |trigger: &Trigger| trigger.before && !trigger.row && fired.fires(trigger, &insert.table);
        if insert.family.is_some() || insert.table.triggers.iter().any(first) {
            return Ok(());
        }
        let Some(triggers) = self.triggers_of(&insert.table, &fired)? else { return Ok(()) };
        let types = insert.source.types();
        let column = |ty: &Type| OutputColumn { name: String::new(), ty: *ty, source: None };
        let rel = std::mem::replace(&mut insert.source, Rel::Unit);
        let query = BoundQuery { columns: types.iter().map(column).collect(), rel };
        let rows = self.among_ctes(BoundStatement::Query(query));
        let rows = HoistedTriggers {
            input: self.compiler.plan_whole(&rows)?,
            width: types.len(),
            old: None,
            new: Some(0),
            triggers,
            before: true,
            register: self.compiler.register_of_answer(),
        };
        insert.source = self.triggered_rows(rows, types);
        insert.table = fired.without(&insert.table);
        Ok(())
    }

    /// The AFTER ROW triggers of a statement that may come to a definition, where they can be called for
    /// the rows it answers.
    pub(super) fn fired_after<'s>(
        &self,
        table: &TableRef,
        event: TriggerEvent,
        set: Option<&'s [u16]>,
    ) -> Option<Fired<'s>> {
        let fired = Fired { event, set, before: false };
        let later = |trigger: &Trigger| {
            let later = !trigger.row || trigger.constraint.is_some() || !trigger.transitions().is_empty();
            !trigger.before && later && fired.fires(trigger, table)
        };
        (!table.triggers.iter().any(later) && self.may_define(table, &fired)).then_some(fired)
    }

    /// Calls the AFTER ROW triggers for the rows a statement answers: it becomes a query over them. An
    /// UPDATE answers the old row where its FROM begins.
    pub(super) fn after_rows(&mut self, statement: &mut BoundStatement, joined: bool) -> Result<()> {
        let columns: Vec<u16>;
        let (table, returning, fired) = match &mut *statement {
            BoundStatement::Insert(insert) if insert.family.is_none() => {
                let updates = insert.on_conflict.as_ref().is_some_and(|conflict| conflict.update.is_some());
                let fired = self.fired_after(&insert.table, TriggerEvent::Insert, None);
                (&mut insert.table, &mut insert.returning, fired.filter(|_| !updates))
            }
            BoundStatement::Update(update) if update.family.is_none() && joined => {
                columns = update.set.iter().map(|(column, _)| *column).collect();
                let fired = self.fired_after(&update.table, TriggerEvent::Update, Some(&columns));
                (&mut update.table, &mut update.returning, fired)
            }
            BoundStatement::Delete(delete) if delete.family.is_none() && !delete.alone => {
                let fired = self.fired_after(&delete.table, TriggerEvent::Delete, None);
                (&mut delete.table, &mut delete.returning, fired)
            }
            _ => return Ok(()),
        };
        let Some(fired) = fired else { return Ok(()) };
        let Some(triggers) = self.triggers_of(table, &fired)? else { return Ok(()) };
        *table = fired.without(table);
        let width = table.columns.len();
        let (old, new) = match fired.event {
            TriggerEvent::Insert => (None, Some(0)),
            TriggerEvent::Delete => (Some(0), None),
            _ => (Some(width), Some(0)),
        };
        let nothing = || Returning {
            exprs: vec![BoundExpr::constant(Datum::Null, Type::BOOL)],
            columns: vec![unnamed(&Type::BOOL)],
        };
        let Returning { exprs: shown, columns } = returning.take().unwrap_or_else(nothing);
        let mut exprs = Vec::new();
        for from in [new.or(old), old.filter(|_| new.is_some())].into_iter().flatten() {
            let row = table.columns.iter().enumerate();
            exprs.extend(row.map(|(place, column)| BoundExpr::column(from + place, column.ty)));
        }
        let rows = exprs.len();
        exprs.extend(shown);
        let types: Vec<Type> = exprs.iter().map(|expr| expr.ty).collect();
        *returning = Some(Returning { exprs, columns: types.iter().map(unnamed).collect() });
        let answered = types[rows..].iter().enumerate();
        let exprs = answered.map(|(place, ty)| BoundExpr::column(rows + place, *ty)).collect();
        let input = self.among_ctes(statement.clone());
        let rows = HoistedTriggers {
            input: self.compiler.plan_whole(&input)?,
            width,
            old,
            new,
            triggers,
            before: false,
            register: self.compiler.register_of_answer(),
        };
        let rel = Rel::Project { input: Box::new(self.triggered_rows(rows, types)), exprs };
        *statement = BoundStatement::Query(BoundQuery { rel, columns });
        Ok(())
    }

    /// The rows of a statement, of these types, past triggers.
    fn triggered_rows(&mut self, rows: HoistedTriggers, types: Vec<Type>) -> Rel {
        let register = rows.register;
        self.compiler.answers.calls.push(Hoisted::Triggers(Box::new(rows)));
        let routine = self.compiler.answered((*query_as_routine("", &[])).clone(), Some(register));
        Rel::Function { call: SetCall::Routine { routine, args: Vec::new() }, ordinality: false, types }
    }

    /// Whether triggers may leave a statement to the session, and may be called around the statement.
    fn may_define(&self, table: &TableRef, fired: &Fired<'_>) -> bool {
        let catalog = &self.compiler.environment.catalog;
        let defines = |trigger: &Trigger| {
            let function = catalog.trigger_function(trigger);
            function.is_some_and(|function| may_define(&function, catalog, &mut Vec::new()))
        };
        let plain = |trigger: &Trigger| trigger.parent.is_none() && trigger.transitions().is_empty();
        let triggers = || table.triggers.iter().filter(|trigger| fired.are(trigger, table));
        table.kind == TableKind::Table && triggers().any(defines) && triggers().all(plain)
    }

    /// Whether a statement fires row triggers that may leave one to the session.
    pub(super) fn fires_definitions(&self, statement: &BoundStatement) -> bool {
        let (table, event) = match statement {
            BoundStatement::Insert(insert) => (&insert.table, TriggerEvent::Insert),
            BoundStatement::Update(update) => (&update.table, TriggerEvent::Update),
            BoundStatement::Delete(delete) => (&delete.table, TriggerEvent::Delete),
            BoundStatement::With { statement, .. } => return self.fires_definitions(statement),
            BoundStatement::Query(_) | BoundStatement::Merge(_) | BoundStatement::Call(_) => return false,
        };
        [true, false]
            .iter()
            .any(|before| self.may_define(table, &Fired { event, set: None, before: *before }))
    }

    /// Row triggers that a statement fires, in the form that can stop, if some of them may come to that.
    fn triggers_of(&mut self, table: &TableRef, fired: &Fired<'_>) -> Result<Option<Vec<HoistedTrigger>>> {
        if !self.may_define(table, fired) {
            return Ok(None);
        }
        let mut linked = Vec::new();
        for trigger in table.triggers.iter().filter(|trigger| fired.are(trigger, table)) {
            let linker = self.compiler.linker.clone();
            let link = |part| linker.link_trigger(table, trigger, fired.event, part);
            let Ok(program) = link(TriggerPart::Pieces)?.as_any().downcast::<TriggerProgram>() else {
                // It fires itself.
                return Ok(None);
            };
            let TriggerProgram::Function(function, variables) = &*program else { return Ok(None) };
            let condition = match &trigger.condition {
                Some(_) => Some(link(TriggerPart::Condition)?),
                None => None,
            };
            linked.push(HoistedTrigger {
                function: function.clone(),
                variables: variables.clone(),
                condition,
            });
        }
        Ok(Some(linked))
    }
}

/// The BEFORE, or AFTER, ROW triggers that a statement fires.
pub(super) struct Fired<'s> {
    event: TriggerEvent,
    /// The columns of an UPDATE.
    set: Option<&'s [u16]>,
    before: bool,
}

impl Fired<'_> {
    fn fires(&self, trigger: &Trigger, table: &TableRef) -> bool {
        trigger.answers(self.event, table, self.set)
    }

    fn are(&self, trigger: &Trigger, table: &TableRef) -> bool {
        trigger.row && !trigger.instead && trigger.before == self.before && self.fires(trigger, table)
    }

    /// A table that fires none of them.
    fn without(&self, table: &TableRef) -> TableRef {
        let mut without = Table::clone(table);
        for trigger in without.triggers.iter_mut().filter(|trigger| self.are(trigger, table)) {
            trigger.events.retain(|event| *event != self.event);
        }
        Arc::new(without)
    }
}

fn unnamed(ty: &Type) -> OutputColumn {
    OutputColumn { name: "?column?".to_owned(), ty: *ty, source: None }
}

/// Whether a trigger of a table of this name may leave a statement to the session.
fn fires_definitions(table: &str, catalog: &Catalog, seen: &mut Vec<Oid>) -> bool {
    let tables = catalog.tables().filter(|known| known.name == table);
    let functions = tables.flat_map(|table| &table.triggers).map(|trigger| catalog.trigger_function(trigger));
    let functions: Vec<RoutineRef> = functions.flatten().collect();
    functions.iter().any(|function| may_define(function, catalog, seen))
}

/// Words that statements begin with which routines leave to their session; what EXECUTE runs may be one.
const LEFT_TO_THE_SESSION: [&str; 16] = [
    "alter", "analyze", "cluster", "comment", "create", "discard", "drop", "execute", "grant", "import",
    "lock", "refresh", "reindex", "reset", "revoke", "security",
];

/// Whether a routine, or one that it names, may leave a statement to the session.
fn may_define(routine: &RoutineRef, catalog: &Catalog, seen: &mut Vec<Oid>) -> bool {
    if seen.contains(&routine.oid) {
        return false;
    }
    seen.push(routine.oid);
    let source = routine.source.to_lowercase();
    let mut before = ";";
    for word in source.split_inclusive(|c: char| !(c.is_alphanumeric() || c == '_')) {
        let (name, end) = match word.char_indices().next_back() {
            Some((at, end)) if !(end.is_alphanumeric() || end == '_') => (&word[..at], &word[at..]),
            _ => (word, ""),
        };
        let begins = matches!(before, ";" | "begin" | "then" | "else" | "loop");
        if LEFT_TO_THE_SESSION.contains(&name) || (name == "set" && begins) {
            return true;
        }
        if end == "(" {
            let mut called = catalog.routines_all().filter(|called| called.name == name);
            if called.any(|called| may_define(called, catalog, seen)) {
                return true;
            }
        }
        if before == "into" && fires_definitions(name, catalog, seen) {
            return true;
        }
        if !name.is_empty() {
            before = name;
        }
        if !end.trim().is_empty() {
            before = end;
        }
    }
    false
}
