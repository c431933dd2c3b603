//! Triggers of INSERT that may come to a definition.
//!
//! What fires inside of a statement cannot stop, so these fire around it: the rows pass the BEFORE ROW
//! triggers before the statement, which is then told of those left, and the AFTER ROW triggers are called
//! for the rows that it has answered. Only tables some of whose triggers may leave a statement to the
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
        let first = |trigger: &&Trigger| trigger.before && !trigger.row && fires(trigger, &insert.table);
        if insert.family.is_some() || insert.table.triggers.iter().any(|trigger| first(&trigger)) {
            return Ok(());
        }
        let Some(triggers) = self.triggers_of(&insert.table, true)? else { return Ok(()) };
        let types = insert.source.types();
        let column = |ty: &Type| OutputColumn { name: String::new(), ty: *ty, source: None };
        let rel = std::mem::replace(&mut insert.source, Rel::Unit);
        let query = BoundQuery { columns: types.iter().map(column).collect(), rel };
        let rows = self.among_ctes(BoundStatement::Query(query));
        insert.source = self.triggered_rows(&rows, types.len(), (triggers, true), types)?;
        insert.table = without_triggers(&insert.table, true);
        Ok(())
    }

    /// Calls the AFTER ROW triggers of an INSERT for the rows it answers: it becomes a query over them.
    pub(super) fn after_insert(&mut self, statement: &mut BoundStatement) -> Result<()> {
        let BoundStatement::Insert(insert) = &mut *statement else { return Ok(()) };
        let last = |trigger: &&Trigger| {
            let later = !trigger.row || trigger.constraint.is_some() || !trigger.transitions().is_empty();
            !trigger.before && later && fires(trigger, &insert.table)
        };
        let updates = insert.on_conflict.as_ref().is_some_and(|conflict| conflict.update.is_some());
        if updates || insert.family.is_some() || insert.table.triggers.iter().any(|trigger| last(&trigger)) {
            return Ok(());
        }
        let Some(triggers) = self.triggers_of(&insert.table, false)? else { return Ok(()) };
        insert.table = without_triggers(&insert.table, false);
        let width = insert.table.columns.len();
        let nothing = || Returning {
            exprs: vec![BoundExpr::constant(Datum::Null, Type::BOOL)],
            columns: vec![OutputColumn { name: "?column?".to_owned(), ty: Type::BOOL, source: None }],
        };
        let Returning { exprs: shown, columns } = insert.returning.take().unwrap_or_else(nothing);
        let row = insert.table.columns.iter().enumerate();
        let mut exprs: Vec<BoundExpr> =
            row.map(|(place, column)| BoundExpr::column(place, column.ty)).collect();
        exprs.extend(shown);
        let types: Vec<Type> = exprs.iter().map(|expr| expr.ty).collect();
        let unnamed = |ty: &Type| OutputColumn { name: "?column?".to_owned(), ty: *ty, source: None };
        insert.returning = Some(Returning { exprs, columns: types.iter().map(unnamed).collect() });
        let rows = self.among_ctes(statement.clone());
        let answered = types[width..].iter().enumerate();
        let exprs = answered.map(|(place, ty)| BoundExpr::column(width + place, *ty)).collect();
        let input = self.triggered_rows(&rows, width, (triggers, false), types)?;
        let rel = Rel::Project { input: Box::new(input), exprs };
        *statement = BoundStatement::Query(BoundQuery { rel, columns });
        Ok(())
    }

    /// The rows of a statement, of these types, past triggers that see so many of the columns.
    fn triggered_rows(
        &mut self,
        rows: &BoundStatement,
        width: usize,
        (triggers, before): (Vec<HoistedTrigger>, bool),
        types: Vec<Type>,
    ) -> Result<Rel> {
        let input = self.compiler.plan_whole(rows)?;
        let register = self.compiler.register_of_answer();
        let triggers = HoistedTriggers { input, width, triggers, before, register };
        self.compiler.answers.calls.push(Hoisted::Triggers(Box::new(triggers)));
        let routine = self.compiler.answered((*query_as_routine("", &[])).clone(), Some(register));
        Ok(Rel::Function { call: SetCall::Routine { routine, args: Vec::new() }, ordinality: false, types })
    }

    /// The row triggers that an INSERT fires, in the form that can stop, if some of them may come to that.
    fn triggers_of(&mut self, table: &TableRef, before: bool) -> Result<Option<Vec<HoistedTrigger>>> {
        let catalog = self.compiler.environment.catalog.clone();
        let triggers = table.triggers.iter();
        let fired: Vec<&Trigger> =
            triggers.filter(|trigger| is_one(trigger, before) && fires(trigger, table)).collect();
        let defines = |trigger: &&Trigger| {
            catalog
                .trigger_function(trigger)
                .is_some_and(|function| may_define(&function, &catalog, &mut Vec::new()))
        };
        let plain = |trigger: &Trigger| trigger.parent.is_none() && trigger.transitions().is_empty();
        if table.kind != TableKind::Table
            || !fired.iter().any(|trigger| defines(trigger))
            || !fired.iter().all(|trigger| plain(trigger))
        {
            return Ok(None);
        }
        let mut linked = Vec::with_capacity(fired.len());
        for trigger in fired {
            let linker = self.compiler.linker.clone();
            let link = |part| linker.link_trigger(table, trigger, TriggerEvent::Insert, part);
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

fn is_one(trigger: &Trigger, before: bool) -> bool {
    trigger.row && !trigger.instead && trigger.before == before
}

fn fires(trigger: &Trigger, table: &TableRef) -> bool {
    trigger.answers(TriggerEvent::Insert, table, None)
}

/// A table whose BEFORE, or AFTER, ROW triggers do not fire for INSERT.
fn without_triggers(table: &TableRef, before: bool) -> TableRef {
    let mut table = Table::clone(table);
    for trigger in table.triggers.iter_mut().filter(|trigger| is_one(trigger, before)) {
        trigger.events.retain(|event| *event != TriggerEvent::Insert);
    }
    Arc::new(table)
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
