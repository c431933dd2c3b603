//! Triggers that may come to a definition.
//!
//! What fires inside of a statement cannot stop, so these fire around it. BEFORE STATEMENT triggers come
//! first; rows pass the BEFORE ROW triggers before the statement, which is then told of those left; AFTER
//! ROW triggers are called for the rows that it has answered, and AFTER STATEMENT triggers behind them. Only
//! tables some of whose triggers may leave a statement to the session are treated so; the triggers see the
//! rows before their own in the table no sooner than all of them are there.

use std::sync::Arc;

use archipel_planner::bound::{
    BoundExpr, BoundInsert, BoundQuery, BoundStatement, OutputColumn, Rel, Returning, SetCall,
};
use archipel_planner::native::TriggerPart;
use archipel_sql::catalog::{Catalog, RoutineRef, Table, TableKind, TableRef, Trigger, TriggerEvent};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::types::{Oid, Type};

use super::state::Walk;
use crate::query_routine::query_as_routine;
use crate::run::operation::RowPlaces;
use crate::run::operation::{Hoisted, HoistedTrigger, HoistedTriggers};
use crate::trigger::TriggerProgram;

/// Which triggers of one event fire around a statement.
pub(super) struct Fires {
    event: TriggerEvent,
    /// The columns of an UPDATE.
    set: Option<Vec<u16>>,
    /// BEFORE STATEMENT.
    pub first: bool,
    /// BEFORE ROW.
    pub before: bool,
    /// AFTER ROW.
    pub after: bool,
    /// AFTER STATEMENT.
    pub last: bool,
}

/// When triggers fire, in their turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FiringPoint {
    BeforeStatement,
    BeforeRow,
    AfterRow,
    AfterStatement,
}

impl FiringPoint {
    fn of(trigger: &Trigger) -> Option<FiringPoint> {
        match (trigger.instead, trigger.before, trigger.row) {
            (true, ..) => None,
            (false, true, false) => Some(FiringPoint::BeforeStatement),
            (false, true, true) => Some(FiringPoint::BeforeRow),
            (false, false, true) => Some(FiringPoint::AfterRow),
            (false, false, false) => Some(FiringPoint::AfterStatement),
        }
    }
}

/// The triggers that a statement fires at one of them.
pub(super) struct Group<'f> {
    event: TriggerEvent,
    set: Option<&'f [u16]>,
    point: FiringPoint,
}

impl Fires {
    pub fn any(&self) -> bool {
        self.first || self.before || self.after || self.last
    }

    /// Whether there are BEFORE ROW triggers, wherever they fire.
    pub fn has_before_rows(&self, table: &TableRef) -> bool {
        self.group(FiringPoint::BeforeRow).of(table).next().is_some()
    }

    /// Whether AFTER STATEMENT triggers, wherever they fire, name the rows that came or went.
    pub fn name_rows(&self, table: &TableRef) -> bool {
        self.group(FiringPoint::AfterStatement).name_rows(table)
    }

    /// Those of rows alone.
    pub fn of_rows(self) -> Fires {
        Fires { first: false, last: false, ..self }
    }

    pub fn is_update(&self) -> bool {
        self.event == TriggerEvent::Update
    }

    fn group(&self, point: FiringPoint) -> Group<'_> {
        Group { event: self.event, set: self.set.as_deref(), point }
    }

    /// A table whose triggers fire for no other columns than those of the UPDATE as it was written.
    pub fn of_columns(&self, table: &TableRef) -> TableRef {
        let mut own = Table::clone(table);
        for trigger in &mut own.triggers {
            if !trigger.answers(self.event, table, self.set.as_deref()) {
                trigger.events.retain(|event| *event != self.event);
            }
        }
        Arc::new(own)
    }
}

impl Group<'_> {
    fn are(&self, trigger: &Trigger, table: &TableRef) -> bool {
        FiringPoint::of(trigger) == Some(self.point) && trigger.answers(self.event, table, self.set)
    }

    fn of<'t>(&'t self, table: &'t TableRef) -> impl Iterator<Item = &'t Trigger> {
        table.triggers.iter().filter(|trigger| self.are(trigger, table))
    }

    /// Whether some of them name the rows that came or went.
    fn name_rows(&self, table: &TableRef) -> bool {
        self.of(table).any(|trigger| !trigger.transitions().is_empty())
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

impl Walk<'_, '_> {
    /// The triggers that fire around a statement, for each of its events; none for one without.
    pub(super) fn firing(&self, statement: &BoundStatement) -> Vec<Fires> {
        match statement {
            BoundStatement::Insert(insert) if insert.family.is_none() => {
                let mut firing = vec![self.fires(&insert.table, TriggerEvent::Insert, None)];
                let update = insert.on_conflict.as_ref().and_then(|conflict| conflict.update.as_ref());
                if let Some((set, _)) = update {
                    let columns = set.iter().map(|(column, _)| *column).collect();
                    firing.push(self.fires(&insert.table, TriggerEvent::Update, Some(columns)));
                    // Which of the rows were updated is not known, unless that is done before.
                    let table = &insert.table;
                    let names = |fires: &Fires| fires.last && fires.name_rows(table);
                    let updates = firing[1].after && !self.is_upsert_in_parts(insert, &firing);
                    let mixed = firing[0].after || updates || firing.iter().any(names);
                    for fires in &mut firing {
                        fires.after = false;
                        fires.last &= !mixed;
                    }
                    // Neither is which of them will be.
                    firing[1].before = false;
                }
                firing
            }
            BoundStatement::Update(update) if update.family.is_none() => {
                let columns = update.set.iter().map(|(column, _)| *column).collect();
                let mut fires = self.fires(&update.table, TriggerEvent::Update, Some(columns));
                if update.table.columns.iter().any(|column| column.generated.is_some()) {
                    (fires.before, fires.after) = (false, false);
                }
                vec![fires]
            }
            BoundStatement::Delete(delete) if delete.family.is_none() && !delete.alone => {
                vec![self.fires(&delete.table, TriggerEvent::Delete, None)]
            }
            BoundStatement::With { statement, .. } => self.firing(statement),
            _ => Vec::new(),
        }
    }

    /// Whether a statement fires triggers that may leave one to the session.
    pub(super) fn fires_definitions(&self, statement: &BoundStatement) -> bool {
        let firing = self.firing(statement);
        let updates =
            matches!(statement, BoundStatement::Insert(insert) if self.is_upsert_in_parts(insert, &firing));
        updates || firing.iter().any(Fires::any)
    }

    pub(super) fn fires(&self, table: &TableRef, event: TriggerEvent, set: Option<Vec<u16>>) -> Fires {
        let mut fires = Fires { event, set, first: false, before: false, after: false, last: false };
        if table.kind != TableKind::Table {
            return fires;
        }
        let catalog = &self.compiler.environment.catalog;
        let defines = |trigger: &Trigger| {
            let function = catalog.trigger_function(trigger);
            function.is_some_and(|function| may_define(&function, catalog, &mut Vec::new()))
        };
        // Those of partitions may not move rows; those that can wait for the end of the transaction may.
        let waits = |trigger: &Trigger| trigger.constraint.is_some_and(|timing| timing.deferrable);
        let plain = |trigger: &Trigger| trigger.parent.is_none() && !waits(trigger);
        for (row, statement) in [
            (FiringPoint::BeforeRow, FiringPoint::BeforeStatement),
            (FiringPoint::AfterRow, FiringPoint::AfterStatement),
        ] {
            let (rows, alone) = (fires.group(row), fires.group(statement));
            if !rows.of(table).chain(alone.of(table)).all(plain) {
                continue;
            }
            let of_rows = rows.of(table).any(defines);
            // In their turn: before those of rows, and behind them.
            let of_itself = alone.of(table).any(|trigger| of_rows || defines(trigger));
            match row == FiringPoint::BeforeRow {
                true => (fires.before, fires.first) = (of_rows, of_itself),
                false => (fires.after, fires.last) = (of_rows, of_itself),
            }
        }
        fires
    }

    /// Fires the BEFORE STATEMENT triggers; the statement fires them no more.
    pub(super) fn fire_first(&mut self, table: &mut TableRef, firing: &[Fires]) -> Result<()> {
        for fires in firing.iter().filter(|fires| fires.first) {
            if let Some(triggers) = self.taken(table, &fires.group(FiringPoint::BeforeStatement))? {
                self.fire_alone(triggers, true, None);
            }
        }
        Ok(())
    }

    /// Fires the triggers of a statement as such, which may name rows that are told where they are.
    fn fire_alone(&mut self, triggers: Vec<HoistedTrigger>, before: bool, changed: Option<(u32, RowPlaces)>) {
        let (changed, places) =
            changed.map(|(register, places)| (Some(register), places)).unwrap_or_default();
        let register = self.compiler.register_of_answer();
        let fired = HoistedTriggers { input: None, places, triggers, before, changed, register };
        self.compiler.answers.calls.push(Hoisted::Triggers(Box::new(fired)));
    }

    /// Lets the rows of an INSERT pass the BEFORE ROW triggers before it.
    pub(super) fn before_insert(&mut self, insert: &mut BoundInsert, fires: &Fires) -> Result<()> {
        let source = &mut insert.source;
        let places = RowPlaces { width: source.width(), old: None, new: Some(0), fixed: Vec::new() };
        self.before_rows(&mut insert.table, fires, source, places).map(drop)
    }

    /// Lets the rows of a query pass the BEFORE ROW triggers of a table, which fires them no more: those
    /// left are as the triggers have left them. False if these fire where they are.
    pub(super) fn before_rows(
        &mut self,
        table: &mut TableRef,
        fires: &Fires,
        rel: &mut Rel,
        places: RowPlaces,
    ) -> Result<bool> {
        if !fires.before {
            return Ok(false);
        }
        let Some(triggers) = self.taken(table, &fires.group(FiringPoint::BeforeRow))? else {
            return Ok(false);
        };
        let types = rel.types();
        let column = |ty: &Type| OutputColumn { name: String::new(), ty: *ty, source: None };
        let columns = types.iter().map(column).collect();
        let query = BoundQuery { columns, rel: std::mem::replace(rel, Rel::Unit) };
        let rows = self.among_ctes(BoundStatement::Query(query));
        let rows = HoistedTriggers {
            input: Some(self.compiler.plan_whole(&rows)?),
            places,
            triggers,
            before: true,
            changed: None,
            register: self.compiler.register_of_answer(),
        };
        *rel = self.triggered_rows(rows, types);
        Ok(true)
    }

    /// Calls the AFTER triggers for the rows a statement answers: it becomes a query over them. An UPDATE
    /// whose rows were read before has the old row where its FROM begins.
    pub(super) fn after_rows(
        &mut self,
        statement: &mut BoundStatement,
        firing: &[Fires],
        joined: bool,
    ) -> Result<()> {
        let Some(fires) = firing.first() else { return Ok(()) };
        let mut behind = 0;
        let (table, returning) = match &mut *statement {
            BoundStatement::Insert(insert) => (&mut insert.table, &mut insert.returning),
            BoundStatement::Update(update) => {
                behind = update.table.columns.len() + usize::from(update.numbered.is_some());
                (&mut update.table, &mut update.returning)
            }
            BoundStatement::Delete(delete) => (&mut delete.table, &mut delete.returning),
            _ => return Ok(()),
        };
        let names = fires.last && fires.name_rows(table);
        let asks = fires.after || names;
        if asks && fires.event == TriggerEvent::Update && !joined {
            return Ok(());
        }
        let mut triggers = Vec::new();
        if fires.after {
            match self.taken(table, &fires.group(FiringPoint::AfterRow))? {
                Some(taken) => triggers = taken,
                None => return Ok(()),
            }
        }
        let mut last = Vec::new();
        // The UPDATE of ON CONFLICT is over before the INSERT is.
        for fires in firing.iter().rev().filter(|fires| fires.last) {
            last.extend(self.taken(table, &fires.group(FiringPoint::AfterStatement))?);
        }
        if triggers.is_empty() && last.is_empty() {
            return Ok(());
        }
        let width = table.columns.len();
        let nothing = || Returning {
            exprs: vec![BoundExpr::constant(Datum::Null, Type::BOOL)],
            columns: vec![unnamed(&Type::BOOL)],
        };
        let Returning { exprs: shown, columns } = returning.take().unwrap_or_else(nothing);
        let (old, new, read) = match (asks, fires.event) {
            (false, _) => (None, None, Vec::new()),
            (true, TriggerEvent::Insert) => (None, Some(0), vec![0]),
            (true, TriggerEvent::Delete) => (Some(0), None, vec![0]),
            (true, _) => (Some(width), Some(0), vec![0, behind]),
        };
        let mut exprs = Vec::new();
        for from in read {
            let row = table.columns.iter().enumerate();
            exprs.extend(row.map(|(place, column)| BoundExpr::column(from + place, column.ty)));
        }
        let rows = exprs.len();
        exprs.extend(shown);
        let types: Vec<Type> = exprs.iter().map(|expr| expr.ty).collect();
        *returning = Some(Returning { exprs, columns: types.iter().map(unnamed).collect() });
        let answered = types[rows..].iter().enumerate();
        let exprs = answered.map(|(place, ty)| BoundExpr::column(rows + place, *ty)).collect();
        let places = || RowPlaces { width, old, new, fixed: Vec::new() };
        let input = self.among_ctes(statement.clone());
        let rows = HoistedTriggers {
            input: Some(self.compiler.plan_whole(&input)?),
            places: places(),
            triggers,
            before: false,
            changed: None,
            register: self.compiler.register_of_answer(),
        };
        let register = rows.register;
        let rel = Rel::Project { input: Box::new(self.triggered_rows(rows, types)), exprs };
        for triggers in last {
            self.fire_alone(triggers, false, Some((register, places())));
        }
        *statement = BoundStatement::Query(BoundQuery { rel, columns });
        Ok(())
    }

    /// The rows of a statement, of these types, past triggers.
    fn triggered_rows(&mut self, rows: HoistedTriggers, types: Vec<Type>) -> Rel {
        let register = rows.register;
        self.compiler.answers.calls.push(Hoisted::Triggers(Box::new(rows)));
        let routine = self.compiler.answered((*query_as_routine("", &[])).clone(), Some(register));
        Rel::Function {
            call: SetCall::Routine { routine, args: Vec::new() },
            ordinality: false,
            types,
            alias: None,
        }
    }

    /// The triggers of a group in the form that can stop, which the table then fires no more; `None` if
    /// they fire themselves.
    fn taken(&mut self, table: &mut TableRef, group: &Group<'_>) -> Result<Option<Vec<HoistedTrigger>>> {
        let mut linked = Vec::new();
        for trigger in group.of(table) {
            let linker = self.compiler.linker.clone();
            let link = |part| linker.link_trigger(table, trigger, group.event, part);
            let Ok(program) = link(TriggerPart::Pieces)?.as_any().downcast::<TriggerProgram>() else {
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
                named: trigger.transitions(),
                fires_in: trigger.fires_in(),
            });
        }
        *table = group.without(table);
        Ok(Some(linked))
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
