//! Loops. What a body assigns is unknown at the loop's head and after it; a body that leaves a
//! record variable with another structure is compiled again without it.

use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_planner::native::scalar::{self, SharedExpr};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::{TypeNames, element_of};
use archipel_sql::types::{Oid, Type};

use super::assignment::{assigned_in, walk};
use super::path::Path;
use super::text_purpose::TextFor;
use crate::compile::compiler::Compiler;
use crate::compile::error_context::{about_converted, expression_line};
use crate::compile::hoist::answers::after_calls;
use crate::compile::record::variable::{RecordState, Storage};
use crate::compile::trace::symbols::Symbol;
use crate::plpgsql::ast::*;
use crate::run::operation::site::Site;
use crate::run::operation::*;

/// How often a loop is compiled to find the structures its records have at its head.
const ROUNDS_MAX: u32 = 8;

/// How a loop ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounds {
    /// Where it is left, and nowhere else.
    Endless,
    Ending,
    /// With the rows of a statement that changes them.
    OfChange,
}

/// Each round begins with what puts fields into the rows that they are parts of.
fn put_first(operations: &mut Vec<Operation>, put: Vec<OperationKind>, site: Site) {
    let put = put.into_iter().map(|kind| Operation { site, rights: None, kind });
    operations.splice(0..0, put);
}

impl Compiler<'_> {
    /// Compiles a loop's body. What the body assigns is unknown at its head and after the loop.
    fn body(
        &mut self,
        label: &Option<String>,
        body: &[Statement],
        kind: Rounds,
        enter: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<(u32, Vec<Operation>)> {
        let assigned = assigned_in(self, body);
        self.doubt_null_records(&assigned);
        self.forget_all(&assigned, "assigned in a loop");
        let mut head = self.record_states();
        let accesses = self.accesses.len();
        let failures = self.failures.len();
        let number = self.open(label.clone(), true);
        if let Some(open) = self.labels.last_mut() {
            open.changing = kind == Rounds::OfChange;
        }
        let actions = self.flow.get_mut().actions();
        let round = self.flow.get_mut().enter_loop(&assigned);
        let mut rounds = 0;
        let operations = loop {
            let (nulled, registers) = (self.nulled, self.registers_of_records());
            let answers = self.answers_so_far();
            enter(self)?;
            let (operations, _) = self.statements(body)?;
            let mut end = self.record_states();
            for continued in
                self.labels.last_mut().map(|open| std::mem::take(&mut open.continued)).into_iter().flatten()
            {
                end = self.records_meet(&end, &continued);
            }
            let next = self.next_round(&head, &end);
            // A record that is made NULL is so in the registers, too, that it only gets further below.
            let renulls = self.nulled != nulled && self.registers_of_records() != registers;
            if next == head && !renulls {
                break operations;
            }
            // The next round would start with another structure.
            rounds += 1;
            let unknown = |(state, known): (&RecordState, &RecordState)| {
                if rounds < ROUNDS_MAX || state == known { *state } else { RecordState::Ambiguous }
            };
            head = next.iter().zip(&head).map(unknown).collect();
            self.accesses.truncate(accesses);
            self.failures.truncate(failures);
            self.flow.get_mut().truncate(actions);
            self.forget_answers(answers);
            if let Some(open) = self.labels.last_mut() {
                open.left.clear();
            }
            self.set_record_states(&head);
            self.forget_all(&assigned, "assigned in a loop");
        };
        let left = self.labels.pop().map(|open| open.left).unwrap_or_default();
        let ends = kind != Rounds::Endless;
        if ends {
            let end = self.record_states();
            let known = self.records_meet(&head, &end);
            self.set_record_states(&known);
        }
        self.left_with(left, ends);
        self.flow.get_mut().leave_loop(round, &assigned, actions);
        self.doubt_null_records(&assigned);
        // What the last round left in them shows where rows belong, and routes nothing.
        let last = self.trace.snapshot();
        self.forget_all(&assigned, "assigned in a loop");
        self.trace.recall(&last);
        self.found_unknown();
        Ok((number, operations))
    }

    /// The structures of the records in any round of a loop, by those of the first and those a round ends
    /// with. What is NULL at the end of one is so in the registers of any structure.
    fn next_round(&self, head: &[RecordState], end: &[RecordState]) -> Vec<RecordState> {
        let met = self.records_meet(head, end);
        let kept = |((before, after), met): ((&RecordState, &RecordState), RecordState)| match (before, after)
        {
            (RecordState::Unassigned | RecordState::Null, _) | (_, RecordState::Null) => *before,
            _ => met,
        };
        head.iter().zip(end).zip(met).map(kept).collect()
    }

    pub(super) fn loop_operation(
        &self,
        site: Site,
        number: u32,
        kind: LoopKind,
        body: Vec<Operation>,
    ) -> Operation {
        Operation {
            site,
            rights: None,
            kind: OperationKind::Loop(Box::new(Looping { number, kind, body, machine: None })),
        }
    }

    pub(super) fn forever(&mut self, site: Site, label: &Option<String>, body: &[Statement]) -> Result<Path> {
        let (number, operations) = self.body(label, body, Rounds::Endless, &mut |_| Ok(()))?;
        let mut leaves = false;
        walk(body, &mut |statement| {
            leaves |= matches!(&statement.kind, StatementKind::Leave { exit: true, .. });
        });
        Ok((self.loop_operation(site, number, LoopKind::Forever, operations), leaves))
    }

    pub(super) fn while_loop(
        &mut self,
        site: Site,
        label: &Option<String>,
        condition: &Fragment,
        body: &[Statement],
    ) -> Result<Path> {
        let assigned = assigned_in(self, body);
        self.doubt_null_records(&assigned);
        self.forget_all(&assigned, "assigned in a loop");
        let outer = self.begin_calls(site.line, true);
        let condition = self.condition(condition);
        let calls = self.end_calls(outer);
        let (number, mut operations) = self.body(label, body, Rounds::Ending, &mut |_| Ok(()))?;
        Ok((
            match condition {
                // The calls are made in each round.
                Ok(condition) if !calls.is_empty() => {
                    let leave = OperationKind::Leave { exit: true, target: number, when: None };
                    let otherwise = vec![Operation { site, rights: None, kind: leave }];
                    let kind = OperationKind::If { arms: vec![(condition, Vec::new())], otherwise };
                    operations.insert(0, after_calls(calls, Operation { site, rights: None, kind }));
                    self.loop_operation(site, number, LoopKind::Forever, operations)
                }
                Ok(condition) => self.loop_operation(site, number, LoopKind::While { condition }, operations),
                Err(error) => self.or_fail(site, Err(error)),
            },
            true,
        ))
    }

    pub(super) fn for_integer(&mut self, site: Site, kind: &StatementKind) -> Result<Path> {
        let StatementKind::ForInteger { label, variable, lower, upper, step, reverse, body } = kind else {
            return Err(SqlError::internal("not an integer loop"));
        };
        let register = self.register_of(*variable);
        let name = self.body.variables[*variable as usize].name.clone();
        let bounds = (|| {
            let integer = Some(Type::INT4);
            let low = self.bind(lower, integer).map_err(|error| about_converted(error, lower))?;
            let high = self.bind(upper, integer).map_err(|error| about_converted(error, upper))?;
            let from = self.plan_typed(&low, expression_line(lower))?;
            let to = self.plan_typed(&high, expression_line(upper))?;
            let step = step.as_ref().map(|step| self.typed(step, Some(Type::INT4))).transpose()?;
            Ok((from, to, step, low, high))
        })();
        let (lower, upper, step, low, high) = match bounds {
            Ok(bounds) => bounds,
            Err(error) => return Ok((self.or_fail(site, Err(error)), true)),
        };
        let (from, to) = if *reverse { (&high, &low) } else { (&low, &high) };
        // The bounds are evaluated before the first round.
        let (from, to) = (self.trace.symbol(from), self.trace.symbol(to));
        let mut counter = 0;
        let (number, operations) = self.body(label, body, Rounds::Ending, &mut |compiler| {
            counter = compiler.trace.open_counter(register, &name, &from, &to);
            Ok(())
        })?;
        let ahead = self.rows_of_counter(counter, register, &name);
        let kind =
            LoopKind::Integer { register, lower, upper, step: step.map(Box::new), reverse: *reverse, ahead };
        Ok((self.loop_operation(site, number, kind, operations), true))
    }

    pub(super) fn for_query(
        &mut self,
        site: Site,
        label: &Option<String>,
        targets: &[Target],
        query: &Fragment,
        body: &[Statement],
    ) -> Result<Path> {
        let assigned = assigned_in(self, body);
        let prepared = (|| {
            let mut bound = self.bind_sql(query)?;
            if bound.columns().is_empty() {
                let what = query.text.split_whitespace().next().unwrap_or_default().to_uppercase();
                let message = format!("cannot open {what} query as cursor");
                return Err(SqlError::new(SqlState(*b"42P11"), message));
            }
            let places = self.row_targets(targets, &mut bound)?;
            let kind = if super::into::modifies(&bound) { Rounds::OfChange } else { Rounds::Ending };
            let compiled = self.plan(&bound)?;
            Ok((SqlStatement { compiled, text: None }, places, kind))
        })();
        let _ = assigned;
        let (statement, places, kind) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Ok((self.or_fail(site, Err(error)), true)),
        };
        let registers = places.registers.clone();
        let put = std::mem::take(&mut self.parts_put);
        let (number, mut operations) =
            self.loop_over_rows(label, body, kind, (&registers, "read from a table"))?;
        put_first(&mut operations, put, site);
        let kind = LoopKind::Rows { statement: Box::new(statement), targets: places };
        Ok((self.loop_operation(site, number, kind, operations), true))
    }

    /// The body of a loop whose rows are stored in these registers.
    pub(super) fn loop_over_rows(
        &mut self,
        label: &Option<String>,
        body: &[Statement],
        kind: Rounds,
        (registers, reason): (&[u32], &str),
    ) -> Result<(u32, Vec<Operation>)> {
        let compiled = self.body(label, body, kind, &mut |compiler| {
            for register in registers {
                compiler.trace.forget(*register, reason);
            }
            Ok(())
        })?;
        for register in registers {
            self.trace.forget(*register, reason);
        }
        Ok(compiled)
    }

    pub(super) fn for_dynamic(
        &mut self,
        site: Site,
        label: &Option<String>,
        targets: &[Target],
        query: &Dynamic,
        body: &[Statement],
    ) -> Result<Path> {
        let into = Into { strict: false, targets: targets.to_vec() };
        let plan = match self.dynamic_plan(query, Some(&into), TextFor::Loop) {
            Ok(plan) => plan,
            Err(error) => return Ok((self.or_fail(site, Err(error)), true)),
        };
        let registers: Vec<u32> =
            plan.into.as_ref().map(|into| into.targets.registers.clone()).unwrap_or_default();
        let put = std::mem::take(&mut self.parts_put);
        let (number, mut operations) =
            self.loop_over_rows(label, body, Rounds::Ending, (&registers, "read by dynamic SQL"))?;
        put_first(&mut operations, put, site);
        let kind = LoopKind::DynamicRows { plan: Box::new(plan) };
        Ok((self.loop_operation(site, number, kind, operations), true))
    }

    pub(super) fn foreach(
        &mut self,
        site: Site,
        label: &Option<String>,
        targets: &[Target],
        slice: u32,
        array: &Fragment,
        body: &[Statement],
    ) -> Result<Path> {
        let prepared = (|| {
            let bound = self.bind(array, None)?;
            let Some(element) = element_of(bound.ty.oid) else {
                return Err(SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "FOREACH expression must yield an array, not type {}",
                        self.environment.type_names().type_name(bound.ty.oid)
                    ),
                ));
            };
            let [target] = targets else {
                let (scratch, kind) = self.fields_of_element(targets, element, slice)?;
                let symbol = Symbol::Unknown("rows in an array".into());
                let array: SharedExpr = self.plan_expression(&bound)?.into();
                let over = (array, scalar::reads(&bound).into(), element);
                return Ok((over, Targets::of(vec![scratch]), symbol, scratch, Some(kind)));
            };
            if slice == 0 && target.path.is_empty() && self.storage[target.variable as usize].is_record() {
                let taken_apart = self.row_of_element(target.variable, element, array.start as u64)?;
                let symbol = Symbol::Unknown("rows in an array".into());
                let array: SharedExpr = self.plan_expression(&bound)?.into();
                let over = (array, scalar::reads(&bound).into(), element);
                let (scratch, kind) = taken_apart;
                return Ok((over, Targets::of(vec![scratch]), symbol, scratch, Some(kind)));
            }
            let (register, ty) = self.scalar_target(target)?;
            let refused = match (slice, element_of(ty.oid)) {
                (0, Some(_)) => Some("FOREACH loop variable must not be of an array type"),
                (1.., None) => Some("FOREACH ... SLICE loop variable must be of an array type"),
                _ => None,
            };
            if let Some(message) = refused {
                return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
            }
            let wanted = if slice == 0 { Type { oid: element, typmod: bound.ty.typmod } } else { bound.ty };
            let symbol = match self.trace.symbol(&bound) {
                Symbol::Known(array) if slice == 0 => Symbol::ElementOf(array),
                Symbol::Filled(known, reason) if slice == 0 => Symbol::Sometimes(known, reason),
                Symbol::Sometimes(_, reason) | Symbol::Unknown(reason) => Symbol::Unknown(reason),
                _ => Symbol::Unknown("the elements of an array".into()),
            };
            let not_null = self.not_null(target.variable).map(|name| (0, name)).into_iter().collect();
            let array: SharedExpr = self.plan_expression(&bound)?.into();
            let over = (array, scalar::reads(&bound).into(), wanted.oid);
            if wanted.oid == ty.oid {
                let targets = Targets { not_null, ..Targets::of(vec![register]) };
                return Ok((over, targets, symbol, register, None));
            }
            // The element is cast before the body runs.
            let scratch = self.scratch();
            let from = BoundExpr::new(ExprKind::Variable(scratch), wanted);
            let cast = self.cast(from, ty)?;
            let value = self.plan_part(&cast)?;
            let targets = Targets::of(vec![scratch]);
            Ok((
                over,
                targets,
                Symbol::Unknown("converted elements of an array".into()),
                register,
                Some(OperationKind::Assign { register, value }),
            ))
        })();
        let ((array, reads, element), places, symbol, register, first) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Ok((self.or_fail(site, Err(error)), true)),
        };
        let put = std::mem::take(&mut self.parts_put);
        let (number, mut operations) = self.body(label, body, Rounds::Ending, &mut |compiler| {
            compiler.trace.set(register, symbol.clone());
            Ok(())
        })?;
        put_first(&mut operations, put, site);
        if let Some(kind) = first {
            operations.insert(0, Operation { site, rights: None, kind });
        }
        self.trace.forget(register, "the last element of an array");
        let kind = LoopKind::Array { array, reads, slice, targets: places, element };
        Ok((self.loop_operation(site, number, kind, operations), true))
    }

    /// An element that is a row on its way into several variables: as
    /// [`Compiler::row_of_element`].
    fn fields_of_element(
        &mut self,
        targets: &[Target],
        element: Oid,
        slice: u32,
    ) -> Result<(u32, OperationKind)> {
        let relation = self.environment.catalog.table_of_row_type(element);
        let Some(relation) = relation.filter(|_| slice == 0) else {
            let message = match slice {
                0 => "cannot assign non-composite value to a record variable",
                _ => "FOREACH ... SLICE loop variable must be of an array type",
            };
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        };
        let columns = crate::compile::record::storage::declared_columns(&relation);
        let (places, types) = self.places(targets, &columns)?;
        for register in &places.registers {
            self.trace.forget(*register, "rows in an array");
        }
        let scratch = self.scratch();
        let mut values = Vec::new();
        for (index, (ty, (_, column))) in types.iter().zip(&columns).enumerate() {
            let record = BoundExpr::new(ExprKind::Variable(scratch), Type::of(element));
            let field = ExprKind::Field { record: Box::new(record), index: index as u16 };
            let value = self.cast_unless_one(BoundExpr::new(field, *column), *ty)?;
            values.push(self.plan_expression(&value)?);
        }
        Ok((scratch, OperationKind::AssignRow { targets: places, values }))
    }

    /// An element that is a row on its way into a variable that takes rows: a register for it, and what
    /// takes it apart. `at` is where the array stands.
    fn row_of_element(
        &mut self,
        variable: VariableId,
        element: Oid,
        at: u64,
    ) -> Result<(u32, OperationKind)> {
        if element == Oid::RECORD && self.is_open_record(variable) {
            let scratch = self.scratch();
            let value = BoundExpr::new(ExprKind::Variable(scratch), Type::RECORD);
            let value = self.plan_expression(&value)?;
            return Ok((scratch, self.assign_found(variable, at, value)?));
        }
        let Some(relation) = self.environment.catalog.table_of_row_type(element) else {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                "cannot assign non-composite value to a record variable",
            ));
        };
        let columns = crate::compile::record::storage::declared_columns(&relation);
        let fields = match &self.storage[variable as usize] {
            Storage::Row { ty, .. } if ty.oid != element => {
                return Err(SqlError::unsupported("FOREACH over rows of another type than its variable"));
            }
            Storage::Row { fields, .. } => fields.clone(),
            _ => self.reshape_as(variable, &columns, Type::of(element)),
        };
        for field in &fields {
            self.trace.forget(field.register, "rows in an array");
        }
        let scratch = self.scratch();
        let value = BoundExpr::new(ExprKind::Variable(scratch), Type::of(element));
        let value = self.plan_expression(&value)?;
        let registers = fields.iter().map(|field| field.register).collect();
        let (present, tag) = (self.presence(variable), self.tag_of(variable)?);
        let targets = Targets { present, tag, ..Targets::of(registers) };
        Ok((scratch, OperationKind::AssignRecord { targets, value }))
    }
}
