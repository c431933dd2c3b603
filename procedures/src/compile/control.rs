//! Blocks, branches and loops.

use archipel_planner::bound::{BoundExpr, ExprKind};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::element_of;
use archipel_sql::types::Type;

use super::statement::FallsThrough;
use super::storage::{RecordState, Storage};
use super::trace::Symbol;
use super::{Compiler, OpenLabel};
use crate::plpgsql::ast::*;
use crate::plpgsql::lexer::{self, TokenKind};
use crate::run::operation::*;

type Compiled2 = (Operation, FallsThrough);

/// What is known where a path ends.
struct PathEnd {
    symbols: Vec<Symbol>,
    records: Vec<RecordState>,
}

impl Compiler<'_> {
    fn path_end(&self) -> PathEnd {
        PathEnd { symbols: self.trace.snapshot(), records: self.record_states() }
    }

    fn go_to(&mut self, end: &PathEnd) {
        self.trace.restore(end.symbols.clone());
        self.set_record_states(&end.records);
    }

    /// Continues where several paths meet.
    fn meet(&mut self, ends: Vec<PathEnd>) {
        let Some(first) = ends.first() else { return };
        let mut records = first.records.clone();
        for end in &ends[1..] {
            for (here, other) in records.iter_mut().zip(&end.records) {
                *here = match (*here, *other) {
                    (a, b) if a == b => a,
                    (RecordState::Unassigned, b) => b,
                    (a, RecordState::Unassigned) => a,
                    _ => RecordState::Ambiguous,
                };
            }
        }
        self.set_record_states(&records);
        self.trace.join(ends.into_iter().map(|end| end.symbols).collect());
    }

    /// The outermost block.
    pub fn block(&mut self, block: &Block) -> Result<Operation> {
        Ok(self.inner_block(block)?.0)
    }

    pub(super) fn inner_block(&mut self, block: &Block) -> Result<Compiled2> {
        let site = Self::site(block.line, "statement block");
        let number = self.open(block.label.clone(), false);
        let entry = self.path_end();
        let mut body = self.initialise(&block.declared)?;
        let (statements, mut through) = self.statements(&block.body)?;
        body.extend(statements);
        let mut ends = Vec::new();
        if through {
            ends.push(self.path_end());
        }
        let handlers = match &block.exceptions {
            None => None,
            Some(exceptions) => {
                let assigned = assigned_in(self, &block.body);
                let mut plans = Vec::new();
                for handler in &exceptions.handlers {
                    // The error may have come from anywhere in the body.
                    self.go_to(&entry);
                    self.forget_all(&assigned, "assigned in a block that failed");
                    let (operations, falls) = self.statements(&handler.body)?;
                    if falls {
                        ends.push(self.path_end());
                    }
                    through |= falls;
                    plans.push(HandlerPlan { conditions: handler.conditions.clone(), body: operations });
                }
                Some(Handlers {
                    sqlstate: self.register_of(exceptions.sqlstate),
                    sqlerrm: self.register_of(exceptions.sqlerrm),
                    handlers: plans,
                })
            }
        };
        self.labels.pop();
        self.meet(ends);
        if block.label.is_some() && self.left_early(&block.body) {
            let assigned = assigned_in(self, &block.body);
            self.forget_all(&assigned, "assigned in a block that may be left early");
            through = true;
        }
        if handlers.is_none() && block.label.is_none() {
            return Ok((Operation { site, kind: OperationKind::Sequence(body) }, through));
        }
        Ok((Operation { site, kind: OperationKind::Block { number, body, handlers } }, through))
    }

    /// Whether some EXIT names a label.
    fn left_early(&self, body: &[Statement]) -> bool {
        let mut found = false;
        walk(body, &mut |statement| {
            found |= matches!(&statement.kind, StatementKind::Leave { exit: true, label: Some(_), .. });
        });
        found
    }

    fn open(&mut self, label: Option<String>, is_loop: bool) -> u32 {
        self.numbers += 1;
        self.labels.push(OpenLabel { label, number: self.numbers, is_loop });
        self.numbers
    }

    pub(super) fn forget_all(&mut self, variables: &[VariableId], reason: &str) {
        for id in variables {
            let registers: Vec<u32> = match &self.storage[*id as usize] {
                Storage::Scalar { register, .. } => vec![*register],
                Storage::Row { fields, .. } => fields.iter().map(|f| f.register).collect(),
                Storage::Record { shapes, .. } => shapes.iter().flatten().map(|f| f.register).collect(),
            };
            for register in registers {
                self.trace.forget(register, reason);
            }
        }
    }

    pub(super) fn if_statement(
        &mut self,
        site: Site,
        arms: &[(Fragment, Vec<Statement>)],
        otherwise: &[Statement],
    ) -> Result<Compiled2> {
        let entry = self.path_end();
        let mut ends = Vec::new();
        let mut compiled = Vec::new();
        let mut failed = None;
        for (condition, body) in arms {
            let condition = self.condition(condition);
            let (body, through) = self.statements(body)?;
            if through {
                ends.push(self.path_end());
            }
            self.go_to(&entry);
            match condition {
                Ok(condition) => compiled.push((condition, body)),
                // Reached when the conditions before it are false.
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let otherwise = match failed {
            Some(error) => vec![self.or_fail(site, Err(error))],
            None => {
                let (body, through) = self.statements(otherwise)?;
                if through {
                    ends.push(self.path_end());
                }
                body
            }
        };
        let through = !ends.is_empty();
        self.meet(ends);
        Ok((Operation { site, kind: OperationKind::If { arms: compiled, otherwise } }, through))
    }

    pub(super) fn case_statement(
        &mut self,
        site: Site,
        operand: Option<&Fragment>,
        arms: &[(Vec<Fragment>, Vec<Statement>)],
        otherwise: Option<&[Statement]>,
    ) -> Result<Compiled2> {
        let mut before = Vec::new();
        let mut tested = None;
        if let Some(operand) = operand {
            match self.bind(operand, None).and_then(|bound| {
                let ty = bound.ty;
                Ok((self.plan_expression(&bound)?, ty))
            }) {
                Err(error) => return Ok((self.or_fail(site, Err(error)), true)),
                Ok((value, ty)) => {
                    let register = self.scratch();
                    self.trace.forget(register, "the value of a CASE");
                    before.push(Operation { site, kind: OperationKind::Assign { register, value } });
                    tested = Some(BoundExpr { kind: ExprKind::Variable(register), ty });
                }
            }
        }
        let entry = self.path_end();
        let mut ends = Vec::new();
        let mut compiled = Vec::new();
        let mut failed = None;
        for (tests, body) in arms {
            let condition = self.case_condition(tested.as_ref(), tests);
            let (body, through) = self.statements(body)?;
            if through {
                ends.push(self.path_end());
            }
            self.go_to(&entry);
            match condition {
                Ok(condition) => compiled.push((condition, body)),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let otherwise = match (failed, otherwise) {
            (Some(error), _) => vec![self.or_fail(site, Err(error))],
            (None, Some(body)) => {
                let (body, through) = self.statements(body)?;
                if through {
                    ends.push(self.path_end());
                }
                body
            }
            (None, None) => {
                let error = SqlError::new(SqlState::CASE_NOT_FOUND, "case not found")
                    .with_hint("CASE statement is missing ELSE part.");
                vec![Operation { site, kind: OperationKind::Fail { error: Box::new(error) } }]
            }
        };
        let through = !ends.is_empty();
        self.meet(ends);
        let kind = OperationKind::If { arms: compiled, otherwise };
        before.push(Operation { site, kind });
        Ok((Operation { site, kind: OperationKind::Sequence(before) }, through))
    }

    /// `operand = test OR …`, or the one condition of a searched CASE.
    fn case_condition(&mut self, tested: Option<&BoundExpr>, tests: &[Fragment]) -> Result<Compiled> {
        let Some(tested) = tested else {
            return match tests {
                [condition] => self.condition(condition),
                _ => Err(SqlError::internal("a searched CASE tests one condition an arm")),
            };
        };
        let mut conditions = Vec::new();
        for test in tests {
            conditions.push(self.equality(tested, test)?);
        }
        let bound = match conditions.len() {
            1 => conditions.remove(0),
            _ => BoundExpr { kind: ExprKind::Or(conditions), ty: Type::BOOL },
        };
        self.plan_expression(&bound)
    }

    /// `tested = test`, by the rules of the operator.
    fn equality(&self, tested: &BoundExpr, test: &Fragment) -> Result<BoundExpr> {
        let expr = archipel_sql::parser::parse_expression(&test.text)?;
        self.binding(test, |env| archipel_planner::bind::bind_equality(tested.clone(), &expr, env))
    }

    pub(super) fn leave(
        &mut self,
        exit: bool,
        label: Option<&str>,
        when: Option<&Fragment>,
    ) -> Result<OperationKind> {
        let when = when.map(|when| self.condition(when)).transpose()?;
        let target = self
            .labels
            .iter()
            .rev()
            .find(|open| match label {
                Some(label) => open.label.as_deref() == Some(label),
                None => open.is_loop,
            })
            .map(|open| open.number);
        match target {
            Some(target) => Ok(OperationKind::Leave { exit, target, when }),
            // The routine's own name labels the whole of it.
            None => Ok(OperationKind::Leave { exit, target: 0, when }),
        }
    }

    /// Compiles a loop's body. What the body assigns is unknown at its head and after the loop.
    fn body(
        &mut self,
        label: &Option<String>,
        body: &[Statement],
        enter: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<(u32, Vec<Operation>)> {
        let assigned = assigned_in(self, body);
        self.forget_all(&assigned, "assigned in a loop");
        let entry = self.record_states();
        let accesses = self.accesses.len();
        let failures = self.failures.len();
        let number = self.open(label.clone(), true);
        enter(self)?;
        let (mut operations, _) = self.statements(body)?;
        let end = self.record_states();
        let changed: Vec<bool> = entry
            .iter()
            .zip(&end)
            .map(|(before, after)| before != after && *before != RecordState::Unassigned)
            .collect();
        if changed.contains(&true) {
            // The next round would start with another structure: nothing may read it before
            // it is assigned again.
            self.accesses.truncate(accesses);
            self.failures.truncate(failures);
            let states: Vec<RecordState> = entry
                .iter()
                .zip(&changed)
                .map(|(state, changed)| if *changed { RecordState::Ambiguous } else { *state })
                .collect();
            self.set_record_states(&states);
            self.forget_all(&assigned, "assigned in a loop");
            enter(self)?;
            operations = self.statements(body)?.0;
        }
        self.labels.pop();
        self.forget_all(&assigned, "assigned in a loop");
        self.found_unknown();
        Ok((number, operations))
    }

    fn loop_operation(&self, site: Site, number: u32, kind: LoopKind, body: Vec<Operation>) -> Operation {
        Operation { site, kind: OperationKind::Loop(Box::new(Looping { number, kind, body })) }
    }

    pub(super) fn forever(
        &mut self,
        site: Site,
        label: &Option<String>,
        body: &[Statement],
    ) -> Result<Compiled2> {
        let (number, operations) = self.body(label, body, &mut |_| Ok(()))?;
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
    ) -> Result<Compiled2> {
        let assigned = assigned_in(self, body);
        self.forget_all(&assigned, "assigned in a loop");
        let condition = self.condition(condition);
        let (number, operations) = self.body(label, body, &mut |_| Ok(()))?;
        Ok((
            match condition {
                Ok(condition) => self.loop_operation(site, number, LoopKind::While { condition }, operations),
                Err(error) => self.or_fail(site, Err(error)),
            },
            true,
        ))
    }

    pub(super) fn for_integer(&mut self, site: Site, kind: &StatementKind) -> Result<Compiled2> {
        let StatementKind::ForInteger { label, variable, lower, upper, step, reverse, body } = kind else {
            return Err(SqlError::internal("not an integer loop"));
        };
        let register = self.register_of(*variable);
        let name = self.body.variables[*variable as usize].name.clone();
        let bounds = (|| {
            let low = self.bind(lower, Some(Type::INT4))?;
            let high = self.bind(upper, Some(Type::INT4))?;
            let step = step.as_ref().map(|step| self.expression(step, Some(Type::INT4))).transpose()?;
            Ok((self.plan_expression(&low)?, self.plan_expression(&high)?, step, low, high))
        })();
        let (lower, upper, step, low, high) = match bounds {
            Ok(bounds) => bounds,
            Err(error) => return Ok((self.or_fail(site, Err(error)), true)),
        };
        let (from, to) = if *reverse { (&high, &low) } else { (&low, &high) };
        // The bounds are evaluated before the first round.
        let (from, to) = (self.trace.symbol(from), self.trace.symbol(to));
        let (number, operations) = self.body(label, body, &mut |compiler| {
            compiler.trace.open_counter(register, &name, &from, &to);
            Ok(())
        })?;
        let kind = LoopKind::Integer { register, lower, upper, step, reverse: *reverse };
        Ok((self.loop_operation(site, number, kind, operations), true))
    }

    pub(super) fn for_query(
        &mut self,
        site: Site,
        label: &Option<String>,
        targets: &[Target],
        query: &Fragment,
        body: &[Statement],
    ) -> Result<Compiled2> {
        let assigned = assigned_in(self, body);
        let prepared = (|| {
            let mut bound = self.bind_sql(query)?;
            if super::into::output_columns(&bound).is_empty() {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    "cannot open a query that returns no columns as cursor",
                ));
            }
            let places = self.row_targets(targets, &mut bound)?;
            let compiled = self.plan(&bound)?;
            Ok((SqlStatement { compiled, text: None }, places))
        })();
        let _ = assigned;
        let (statement, places) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Ok((self.or_fail(site, Err(error)), true)),
        };
        let registers = places.registers.clone();
        let (number, operations) = self.body(label, body, &mut |compiler| {
            for register in &registers {
                compiler.trace.forget(*register, "read from a table");
            }
            Ok(())
        })?;
        for register in &registers {
            self.trace.forget(*register, "read from a table");
        }
        let kind = LoopKind::Rows { statement: Box::new(statement), targets: places };
        Ok((self.loop_operation(site, number, kind, operations), true))
    }

    /// FOR over a bound cursor: its query, the arguments assigned first.
    pub(super) fn for_cursor(
        &mut self,
        site: Site,
        label: &Option<String>,
        record: VariableId,
        cursor: VariableId,
        args: &[Fragment],
        body: &[Statement],
    ) -> Result<Compiled2> {
        let Some(cursor) = self.body.variables[cursor as usize].cursor.clone() else {
            return Err(SqlError::internal("not a bound cursor"));
        };
        let mut operations = Vec::new();
        for (arg, variable) in args.iter().zip(&cursor.args) {
            let result = (|| {
                let target = Target { variable: *variable, path: Vec::new(), text: String::new() };
                let (register, ty) = self.scalar_target(&target)?;
                let bound = self.bind(arg, Some(ty))?;
                let symbol = self.trace.symbol(&bound);
                let value = self.plan_expression(&bound)?;
                self.trace.set(register, symbol);
                Ok(OperationKind::Assign { register, value })
            })();
            operations.push(self.or_fail(site, result));
        }
        let target = Target { variable: record, path: Vec::new(), text: String::new() };
        let (looping, through) = self.for_query(site, label, &[target], &cursor.query, body)?;
        operations.push(looping);
        Ok((Operation { site, kind: OperationKind::Sequence(operations) }, through))
    }

    pub(super) fn for_dynamic(
        &mut self,
        site: Site,
        label: &Option<String>,
        targets: &[Target],
        query: &Dynamic,
        body: &[Statement],
    ) -> Result<Compiled2> {
        let into = Into { strict: false, targets: targets.to_vec() };
        let plan = match self.dynamic_plan(query, Some(&into), false) {
            Ok(plan) => plan,
            Err(error) => return Ok((self.or_fail(site, Err(error)), true)),
        };
        let registers: Vec<u32> =
            plan.into.as_ref().map(|into| into.targets.registers.clone()).unwrap_or_default();
        let (number, operations) = self.body(label, body, &mut |compiler| {
            for register in &registers {
                compiler.trace.forget(*register, "read by dynamic SQL");
            }
            Ok(())
        })?;
        for register in &registers {
            self.trace.forget(*register, "read by dynamic SQL");
        }
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
    ) -> Result<Compiled2> {
        let prepared = (|| {
            let bound = self.bind(array, None)?;
            let Some(element) = element_of(bound.ty.oid) else {
                return Err(SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "FOREACH expression must yield an array, not type {}",
                        archipel_sql::type_table::format_type(bound.ty)
                    ),
                ));
            };
            let [target] = targets else {
                return Err(SqlError::unsupported("FOREACH into several variables"));
            };
            let (register, ty) = self.scalar_target(target)?;
            let wanted = if slice == 0 { Type { oid: element, typmod: bound.ty.typmod } } else { bound.ty };
            let symbol = match self.trace.symbol(&bound) {
                Symbol::Known(array) if slice == 0 => Symbol::ElementOf(array),
                Symbol::Unknown(reason) => Symbol::Unknown(reason),
                _ => Symbol::Unknown("the elements of an array".into()),
            };
            let not_null = self.not_null(target.variable).map(|name| (0, name)).into_iter().collect();
            let array = self.plan_expression(&bound)?;
            if wanted.oid == ty.oid {
                let targets = Targets { registers: vec![register], not_null };
                return Ok((array, targets, symbol, register, None));
            }
            // The element is cast before the body runs.
            let scratch = self.scratch();
            let from = BoundExpr { kind: ExprKind::Variable(scratch), ty: wanted };
            let cast = self.cast(from, ty)?;
            let value = self.plan_expression(&cast)?;
            let targets = Targets { registers: vec![scratch], not_null: Vec::new() };
            Ok((
                array,
                targets,
                Symbol::Unknown("converted elements of an array".into()),
                register,
                Some(value),
            ))
        })();
        let (array, places, symbol, register, cast) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Ok((self.or_fail(site, Err(error)), true)),
        };
        let (number, mut operations) = self.body(label, body, &mut |compiler| {
            compiler.trace.set(register, symbol.clone());
            Ok(())
        })?;
        if let Some(value) = cast {
            operations.insert(0, Operation { site, kind: OperationKind::Assign { register, value } });
        }
        self.trace.forget(register, "the last element of an array");
        let kind = LoopKind::Array { array, slice, targets: places };
        Ok((self.loop_operation(site, number, kind, operations), true))
    }
}

/// Visits statements, nested ones included.
pub(super) fn walk(statements: &[Statement], visit: &mut dyn FnMut(&Statement)) {
    for statement in statements {
        visit(statement);
        match &statement.kind {
            StatementKind::Block(block) => {
                walk(&block.body, visit);
                for handler in block.exceptions.iter().flat_map(|e| &e.handlers) {
                    walk(&handler.body, visit);
                }
            }
            StatementKind::If { arms, otherwise } => {
                arms.iter().for_each(|(_, body)| walk(body, visit));
                walk(otherwise, visit);
            }
            StatementKind::Case { arms, otherwise, .. } => {
                arms.iter().for_each(|(_, body)| walk(body, visit));
                walk(otherwise.as_deref().unwrap_or_default(), visit);
            }
            StatementKind::Loop { body, .. }
            | StatementKind::While { body, .. }
            | StatementKind::ForInteger { body, .. }
            | StatementKind::ForQuery { body, .. }
            | StatementKind::ForDynamic { body, .. }
            | StatementKind::ForCursor { body, .. }
            | StatementKind::ForEach { body, .. } => walk(body, visit),
            _ => {}
        }
    }
}

/// Variables that statements may assign.
fn assigned_in(compiler: &Compiler<'_>, statements: &[Statement]) -> Vec<VariableId> {
    let mut assigned = vec![compiler.body.found];
    walk(statements, &mut |statement| match &statement.kind {
        StatementKind::Assign { target, .. } => assigned.push(target.variable),
        StatementKind::Block(block) => {
            assigned.extend(&block.declared);
            if let Some(exceptions) = &block.exceptions {
                assigned.extend([exceptions.sqlstate, exceptions.sqlerrm]);
            }
        }
        StatementKind::ForInteger { variable, .. } => assigned.push(*variable),
        StatementKind::ForQuery { targets, .. }
        | StatementKind::ForDynamic { targets, .. }
        | StatementKind::ForEach { targets, .. } => {
            assigned.extend(targets.iter().map(|t| t.variable));
        }
        StatementKind::ForCursor { record, cursor, .. } => {
            assigned.push(*record);
            let cursor = &compiler.body.variables[*cursor as usize].cursor;
            assigned.extend(cursor.iter().flat_map(|c| &c.args));
        }
        StatementKind::Sql { text, into } => {
            assigned.extend(into.iter().flat_map(|i| &i.targets).map(|t| t.variable));
            assigned.extend(call_variables(compiler, text));
        }
        StatementKind::Dynamic { into, .. } => {
            assigned.extend(into.iter().flat_map(|i| &i.targets).map(|t| t.variable));
        }
        StatementKind::GetDiagnostics { items, .. } => {
            assigned.extend(items.iter().map(|(target, _)| target.variable));
        }
        _ => {}
    });
    assigned.sort_unstable();
    assigned.dedup();
    assigned
}

/// Variables named in a CALL: any of them may be an OUT argument.
fn call_variables(compiler: &Compiler<'_>, text: &Fragment) -> Vec<VariableId> {
    let is_call = text.text.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("call"));
    let Some(tokens) = is_call.then(|| lexer::scan(&text.text).ok()).flatten() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for token in &tokens {
        let name = match &token.kind {
            TokenKind::Word { text, .. } => text.clone(),
            TokenKind::Parameter(number) => format!("${number}"),
            _ => continue,
        };
        if let Some((id, _)) = compiler.body.names.find(text.names, &[&name], &|_| true) {
            found.push(id);
        }
    }
    found
}
