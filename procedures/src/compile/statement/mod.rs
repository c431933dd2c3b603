//! Statements without a structure of their own: assignment, SQL, RAISE and the like.
//!
//! - [`initial`] values; [`control`] blocks and branches; [`loops`]; [`into`] rows into variables
//! - [`result`]  RETURN; [`invoke`] CALL and EXECUTE; [`cursor`]; [`raise`]; [`command`] what is left to the session
//! - [`append`]  values that grow in place
//! - [`assignment`] which variables statements assign; [`path`] paths through a body
//! - [`cursor_query`] queries of cursors; [`command_text`] which statements are left to the session
//! - [`result_columns`] the columns of what is answered; [`text_purpose`] what rows of an EXECUTE are for

mod append;
pub(super) mod assignment;
pub(super) mod command;
pub(super) mod command_text;
pub(super) mod control;
pub(super) mod cursor;
pub(super) mod cursor_query;
mod initial;
pub(super) mod into;
pub(super) mod invoke;
mod loops;
mod path;
mod raise;
pub(super) mod result;
pub(super) mod result_columns;
mod text_purpose;

use std::sync::Arc;

use crate::rights::Rights;
use archipel_planner::bind::{self, visit};
use archipel_planner::bound::{BoundExpr, BoundStatement, ExprKind, Subscript};
use archipel_sql::ast::Statement as SqlAst;
use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::parse_statement;
use archipel_sql::type_table::element_of;
use archipel_sql::types::{Oid, Type};

use super::compiler::Compiler;
use super::environment::unsupported;
use super::error_context::{about_assignment, one_row};
use super::hoist::answers::{after_calls, is_open_for_calls};
use super::record::variable::{RecordState, Storage};
use super::trace::flow;
use crate::plpgsql::ast::*;
use crate::plpgsql::{current_of, whole_row};
use crate::run::operation::into::{IntoPlan, StrictParameters};
use crate::run::operation::*;
use crate::run::{context, context_line};
use into::before_parts;
use path::FallsThrough;

/// Whether a statement is SET TRANSACTION.
fn sets_modes(text: &str) -> bool {
    matches!(parse_statement(text), Ok(SqlAst::SetTransaction(_)))
}

impl Compiler<'_> {
    pub(super) fn statements(&mut self, statements: &[Statement]) -> Result<(Vec<Operation>, FallsThrough)> {
        let mut operations = Vec::with_capacity(statements.len());
        let mut through = true;
        let mut ended = false;
        for statement in statements {
            self.begins = ended;
            let (operation, falls) = self.statement(statement)?;
            ended = match &statement.kind {
                StatementKind::EndTransaction { .. } => true,
                StatementKind::Sql { text, .. } => ended && sets_modes(&text.text),
                _ => false,
            };
            operations.push(operation);
            through &= falls;
        }
        Ok((operations, through))
    }

    fn statement(&mut self, statement: &Statement) -> Result<(Operation, FallsThrough)> {
        let kind = &statement.kind;
        self.flow.get_mut().begin(statement.line, flow::loop_targets(kind));
        // What is inside of it asks for itself.
        let outer = self.needed.take();
        let outer_calls = self.begin_calls(statement.line, is_open_for_calls(kind));
        let mut compiled = self.statement_inside(statement);
        let calls = self.end_calls(outer_calls);
        compiled = compiled.map(|(operation, through)| (after_calls(calls, operation), through));
        let put = std::mem::take(&mut self.parts_put);
        compiled = compiled.map(|(operation, through)| (before_parts(operation, put), through));
        let needed = self.needed.replace(outer);
        if let Ok((operation, _)) = &mut compiled {
            operation.rights = Rights::of(needed).map(Arc::new);
        }
        let mut assigned = Vec::new();
        if !flow::is_compound(kind) {
            assigned = assignment::assigned_in(self, std::slice::from_ref(statement));
            assigned.retain(|variable| *variable != self.body.found || flow::sets_found(kind));
        }
        self.flow.get_mut().end(&assigned);
        compiled
    }

    fn statement_inside(&mut self, statement: &Statement) -> Result<(Operation, FallsThrough)> {
        let line = statement.line;
        let site = |what| Self::site(line, what);
        let plain = |operation: Operation| Ok((operation, true));
        self.require_scalars(&statement.kind)?;
        match &statement.kind {
            StatementKind::Block(block) => self.inner_block(block),
            StatementKind::Assign { target, value } => {
                self.require_record(target)?;
                let line = self.assignment_line(target, value);
                self.assigns = true;
                let kind = self.assign(target, value, &line).map_err(|e| about_assignment(e, value, &line));
                self.assigns = false;
                plain(command_text::taking_settings(self.or_fail(site("assignment"), kind), value))
            }
            StatementKind::If { arms, otherwise } => self.if_statement(site("IF"), arms, otherwise),
            StatementKind::Case { operand, arms, otherwise } => {
                self.case_statement(site("CASE"), operand.as_ref(), arms, otherwise.as_deref())
            }
            StatementKind::Loop { label, body } => self.forever(site("LOOP"), label, body),
            StatementKind::While { label, condition, body } => {
                self.while_loop(site("WHILE"), label, condition, body)
            }
            StatementKind::ForInteger { .. } => {
                self.for_integer(site("FOR with integer loop variable"), &statement.kind)
            }
            StatementKind::ForQuery { label, targets, query, body } => {
                self.for_query(site("FOR over SELECT rows"), label, targets, query, body)
            }
            StatementKind::ForDynamic { label, targets, query, body } => {
                self.for_dynamic(site("FOR over EXECUTE statement"), label, targets, query, body)
            }
            StatementKind::ForCursor { label, record, cursor, args, body } => {
                self.for_cursor(site("FOR over cursor"), label, *record, *cursor, args, body)
            }
            StatementKind::ForEach { label, targets, slice, array, body } => {
                self.foreach(site("FOREACH over array"), label, targets, *slice, array, body)
            }
            StatementKind::Leave { exit, label, when } => {
                let what = if *exit { "EXIT" } else { "CONTINUE" };
                let kind = self.leave(*exit, label.as_deref(), when.as_ref());
                Ok((self.or_fail(site(what), kind), when.is_some()))
            }
            StatementKind::Return { value } => {
                let kind = self.return_value(value.as_ref());
                let site = self.site_of_return(site("RETURN"), &kind);
                Ok((self.or_fail(site, kind), false))
            }
            StatementKind::ReturnNext { value } => {
                let kind = self.return_next(value.as_ref());
                plain(self.or_fail(site("RETURN NEXT"), kind))
            }
            StatementKind::ReturnQuery { query } => {
                let kind = self.return_query(query);
                plain(self.or_fail(site("RETURN QUERY"), kind))
            }
            StatementKind::ReturnQueryDynamic { query } => {
                let kind = self.return_dynamic(query);
                plain(self.or_fail(site("RETURN QUERY"), kind))
            }
            StatementKind::Raise(raise) => {
                let kind = self.raise(raise);
                Ok((self.or_fail(site("RAISE"), kind), raise.level != Level::Exception))
            }
            StatementKind::Assert { condition, message } => {
                let kind = self.assert(condition, message.as_ref());
                plain(self.or_fail(site("ASSERT"), kind))
            }
            StatementKind::Sql { text, into } => {
                let (operation, falls_through) = self.sql_statement(line, text, into.as_ref())?;
                Ok((command_text::taking_settings(operation, text), falls_through))
            }
            StatementKind::Perform { query } => {
                let kind = self.perform(query);
                plain(command_text::taking_settings(self.or_fail(site("PERFORM"), kind), query))
            }
            StatementKind::Dynamic { query, into } => {
                let kind = self.execute(query, into.as_ref());
                plain(self.or_fail(site("EXECUTE"), kind))
            }
            StatementKind::GetDiagnostics { stacked, items } => {
                let what = if *stacked { "GET STACKED DIAGNOSTICS" } else { "GET DIAGNOSTICS" };
                let kind = self.get_diagnostics(*stacked, items);
                plain(self.or_fail(site(what), kind))
            }
            StatementKind::Open { cursor, scroll, args, query, dynamic } => {
                let site = site("OPEN");
                let kind = self.open_cursor(site, *cursor, *scroll, args, query.as_ref(), dynamic.as_ref());
                plain(self.or_fail(site, kind))
            }
            StatementKind::Fetch { cursor, direction, into } => {
                let what = if into.is_some() { "FETCH" } else { "MOVE" };
                let kind = self.fetch(line, *cursor, direction, into.as_ref());
                plain(self.or_fail(site(what), kind))
            }
            StatementKind::Close { cursor } => {
                plain(Operation { site: site("CLOSE"), rights: None, kind: self.close_cursor(*cursor) })
            }
            StatementKind::EndTransaction { commit, chain } => {
                let what = if *commit { "COMMIT" } else { "ROLLBACK" };
                let changing = self.labels.iter().any(|open| open.changing);
                let kind = OperationKind::EndTransaction { commit: *commit, chain: *chain, changing };
                plain(Operation { site: site(what), rights: None, kind })
            }
            StatementKind::Null => {
                let kind = OperationKind::Sequence(Vec::new());
                plain(Operation { site: site("NULL"), rights: None, kind })
            }
        }
    }

    /// Whether a variable refuses NULL, and its name then.
    pub(super) fn not_null(&self, variable: VariableId) -> Option<Box<str>> {
        let variable = &self.body.variables[variable as usize];
        variable.not_null.then(|| variable.name.as_str().into())
    }

    /// An assignment; CONTEXT lines may name it as `line`.
    pub(super) fn assign(&mut self, target: &Target, value: &Fragment, line: &str) -> Result<OperationKind> {
        let storage = self.storage[target.variable as usize].clone();
        match (&storage, &target.path[..]) {
            (Storage::Scalar { register, declared, .. }, []) => {
                let mut bound = match self.bind(value, Some(*declared)) {
                    Ok(bound) => bound,
                    Err(error) => return Err(self.about_columns(error, value, line)),
                };
                if *declared == Type::RECORD && bound.ty.oid.is_composite() {
                    bound = BoundExpr::new(ExprKind::Relabel(Box::new(bound)), Type::RECORD);
                }
                let symbol = self.trace.symbol(&bound);
                if let Some(appended) = self.append(*register, &bound, target.variable)? {
                    self.trace.set(*register, symbol);
                    return Ok(appended);
                }
                let mut planned = self.plan_typed(&bound, line.to_string())?;
                if self.is_query(value, &bound) {
                    planned.run = one_row(planned.run, line);
                }
                let value = planned;
                self.trace.set(*register, symbol);
                Ok(match self.not_null(target.variable) {
                    None => OperationKind::Assign { register: *register, value },
                    Some(name) => OperationKind::AssignChecked { register: *register, value, name },
                })
            }
            (Storage::Scalar { register, ty, declared }, path) if ty.oid == Oid::JSONB => {
                self.assign_json_part(*register, *declared, path, value)
            }
            (Storage::Scalar { register, declared, .. }, path) => {
                let name = self.body.variables[target.variable as usize].name.clone();
                self.assign_part(*register, (*declared, &name), path, value, line)
            }
            (record, [Step::Field(name), path @ ..]) => {
                let field = record.fields().and_then(|fields| fields.iter().find(|f| f.name == *name));
                let Some(field) = field.cloned() else {
                    return Err(context_line::add_line(self.no_field(target.variable, name), line));
                };
                match path {
                    [] => {}
                    [Step::Index(_) | Step::Slice(..), ..] if field.ty.oid == Oid::JSONB => {
                        return self.assign_json_part(field.register, field.declared, path, value);
                    }
                    _ => {
                        let declared = (field.declared, name.as_str());
                        let assigned = self.assign_part(field.register, declared, path, value, line)?;
                        return Ok(self.with_presence(target.variable, assigned));
                    }
                }
                let bound = self.bind(value, Some(field.declared))?;
                let symbol = self.trace.symbol(&bound);
                let value = self.plan_typed(&bound, line.to_string())?;
                self.trace.set(field.register, symbol);
                let assigned = OperationKind::Assign { register: field.register, value };
                // With a field that is something the row is there without being told.
                let is_something = matches!(&bound.kind, ExprKind::Const(value) if !value.is_null());
                Ok(if is_something { assigned } else { self.with_presence(target.variable, assigned) })
            }
            (_, []) => self.assign_record(target.variable, value),
            _ => Err(SqlError::new(SqlState::DATATYPE_MISMATCH, "a record has no subscripts")),
        }
    }

    /// An assignment to a field, after which the row is there, be all its fields NULL.
    fn with_presence(&self, variable: VariableId, assigned: OperationKind) -> OperationKind {
        match (self.presence(variable), assigned) {
            (present @ Some(_), OperationKind::Assign { register, value }) => OperationKind::AssignRow {
                targets: Targets { present, ..Targets::of(vec![register]) },
                values: vec![value.run],
            },
            (_, assigned) => assigned,
        }
    }

    pub(super) fn no_field(&self, variable: VariableId, field: &str) -> SqlError {
        let name = &self.body.variables[variable as usize].name;
        match &self.storage[variable as usize] {
            Storage::Record { state: RecordState::Null | RecordState::Unassigned, .. } => SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("record \"{name}\" is not assigned yet"),
            )
            .with_detail("The tuple structure of a not-yet-assigned record is indeterminate."),
            Storage::Record { state: RecordState::Ambiguous | RecordState::OneOf(_), .. } => {
                SqlError::unsupported(format_args!(
                    "assigning to a field of record variable \"{name}\", which may hold rows of different structure here,"
                ))
            }
            _ => SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("record \"{name}\" has no field \"{field}\""),
            ),
        }
    }

    /// An assignment to a part of what a register holds, which a variable or a field names.
    fn assign_part(
        &mut self,
        register: u32,
        (declared, name): (Type, &str),
        path: &[Step],
        value: &Fragment,
        line: &str,
    ) -> Result<OperationKind> {
        if let Some(assigned) = self.assign_element(register, declared, path, value, line)? {
            return Ok(assigned);
        }
        let (ty, _) = self.environment.catalog.plain_type(declared);
        let mut way = bind::PartWay::default();
        for step in path {
            match step {
                Step::Field(name) => way.field(name),
                Step::Index(index) => way.subscript(Subscript::Index(self.bind(index, None)?)),
                Step::Slice(lower, upper) => {
                    let bound = |bound: &Option<Fragment>| {
                        bound.as_ref().map(|bound| self.bind(bound, None)).transpose()
                    };
                    way.subscript(Subscript::Slice { lower: bound(lower)?, upper: bound(upper)? });
                }
            }
        }
        let wanted = self.with_environment(|env| bind::part_declared(ty, &way, name, env))?;
        let part = self.bind(value, Some(wanted))?;
        let base = BoundExpr::new(ExprKind::Variable(register), ty);
        let mut bound = self.with_environment(|env| bind::assign_part(base, way, part, name, env))?;
        if declared.oid != ty.oid {
            bound = self.cast(bound, declared)?;
        }
        self.trace.forget(register, "a part of it assigned");
        let value = self.plan_typed(&bound, line.to_string())?;
        Ok(OperationKind::Assign { register, value })
    }

    /// An assignment to an element or a slice of an array, without anything behind it: that is done
    /// in place. `None` for what it is not.
    fn assign_element(
        &mut self,
        register: u32,
        declared: Type,
        path: &[Step],
        value: &Fragment,
        line: &str,
    ) -> Result<Option<OperationKind>> {
        let (ty, domain) = self.environment.catalog.plain_type(declared);
        let of_domain = domain.and_then(|domain| self.environment.catalog.user_type_of(domain));
        let Some(element) = element_of(ty.oid) else { return Ok(None) };
        if of_domain.as_ref().is_some_and(|domain| domain.oid == declared.oid) {
            return Ok(None);
        }
        if let [Step::Slice(lower, upper)] = path {
            let bound = |this: &mut Self, bound: &Option<Fragment>| {
                let bound = bound.as_ref().map(|bound| this.bind(bound, Some(Type::INT4))).transpose()?;
                bound.map(|bound| this.plan_spoken(&bound, line.to_string())).transpose()
            };
            let bounds = (bound(self, lower)?, bound(self, upper)?);
            let value = self.bind(value, Some(declared))?;
            let value = self.plan_spoken(&value, line.to_string())?;
            self.trace.forget(register, "an array built while it runs");
            return Ok(Some(OperationKind::AssignSlice { register, bounds, value }));
        }
        if !path.iter().all(|step| matches!(step, Step::Index(_))) {
            return Ok(None);
        }
        let mut subscripts = Vec::new();
        for step in path {
            if let Step::Index(index) = step {
                subscripts.push(self.typed_in(index, Type::INT4, line)?);
            }
        }
        let element_type = match of_domain {
            Some(domain) => Type::of(domain.oid),
            None => Type { oid: element, typmod: ty.typmod },
        };
        let value = self.bind(value, Some(element_type))?;
        let symbol = self.trace.symbol(&value);
        let value = self.plan_typed(&value, line.to_string())?;
        self.trace.fill(register, &symbol, "an array built while it runs");
        Ok(Some(OperationKind::AssignElement { register, element, subscripts, value }))
    }

    /// `j['key'][0] := value`, where `j` is jsonb.
    fn assign_json_part(
        &mut self,
        register: u32,
        declared: Type,
        path: &[Step],
        fragment: &Fragment,
    ) -> Result<OperationKind> {
        let mut steps = Vec::with_capacity(path.len());
        for step in path {
            steps.push(match step {
                Step::Index(index) => self.bind(index, None)?,
                Step::Slice(..) => {
                    let message = "jsonb subscript does not support slices";
                    return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
                }
                Step::Field(_) => return Err(unsupported("assignment to a field of a part of jsonb")),
            });
        }
        let part = self.bind(fragment, Some(Type::of(Oid::JSONB)))?;
        let base = BoundExpr::new(ExprKind::Variable(register), Type::of(Oid::JSONB));
        let bound = self.json_with_part(base, steps, part)?;
        let value = match declared.oid {
            Oid::JSONB => bound,
            _ => self.cast(bound, declared)?,
        };
        let line = super::error_context::expression_line(fragment);
        let value = self.plan_typed(&value, line)?;
        self.trace.forget(register, "jsonb built while it runs");
        Ok(OperationKind::Assign { register, value })
    }

    /// `record := value`.
    fn assign_record(&mut self, variable: VariableId, value: &Fragment) -> Result<OperationKind> {
        let mut bound = self.bind(value, None)?;
        // What is no row becomes one of the variable's type, if it can.
        if let Storage::Row { ty, .. } = self.storage[variable as usize]
            && bound.ty != Type::RECORD
            && !bound.ty.oid.is_composite()
            && !matches!(&bound.kind, ExprKind::Const(value) if value.is_null())
        {
            bound = self.bind(value, Some(ty))?;
        }
        if matches!(&bound.kind, ExprKind::Const(value) if value.is_null()) && self.is_open_record(variable) {
            return Ok(match (self.null_record(variable), self.not_null(variable)) {
                (OperationKind::AssignRow { targets, values }, name @ Some(_)) => {
                    OperationKind::AssignRow { targets: Targets { whole_not_null: name, ..targets }, values }
                }
                (kind, _) => kind,
            });
        }
        // One that only tells what it is when it is there becomes a row of a type by way of text.
        if !self.is_open_record(variable) && self.assigned_columns(&bound)?.is_none() {
            bound = self.cast(bound, self.storage[variable as usize].row_type())?;
        }
        // A row of a type that has a name stays one.
        let is_named = self.environment.catalog.table_of_row_type(bound.ty.oid).is_some();
        let ty = if is_named { bound.ty } else { Type::RECORD };
        let Some(columns) = self.assigned_columns(&bound)? else {
            let found = self.plan_expression(&bound)?;
            return self.assign_found(variable, value.start as u64, found);
        };
        // Another record variable keeps what its fields were declared to be.
        let named = match (self.record_named(value), &bound.kind) {
            (Some(fields), ExprKind::Row(..) | ExprKind::Const(_)) => fields,
            _ => columns,
        };
        let fields = match &self.storage[variable as usize] {
            Storage::Row { fields, .. } => fields.clone(),
            _ => self.reshape_as(variable, &named, ty),
        };
        let registers = fields.iter().map(|f| f.register).collect();
        let whole_not_null = self.not_null(variable);
        let (present, tag) = (self.presence(variable), self.tag_of(variable)?);
        let targets = Targets { present, whole_not_null, tag, ..Targets::of(registers) };
        match bound.kind {
            ExprKind::Row(items, _) => {
                let mut values = Vec::new();
                let mut symbols = Vec::new();
                for (item, field) in items.into_iter().zip(&fields) {
                    let item = self.cast_unless_one(item, field.declared)?;
                    symbols.push((field.register, self.trace.symbol(&item)));
                    values.push(self.plan_expression(&item)?);
                }
                for (register, symbol) in symbols {
                    self.trace.set(register, symbol);
                }
                Ok(OperationKind::AssignRow { targets, values })
            }
            _ => {
                let value = self.plan_expression(&bound)?;
                for field in &fields {
                    self.trace.forget(field.register, "a field of a computed record");
                }
                Ok(OperationKind::AssignRecord { targets, value })
            }
        }
    }

    /// A record variable without a row, and without a structure.
    pub(super) fn null_record(&mut self, variable: VariableId) -> OperationKind {
        let registers = self.record_registers(variable);
        self.nulled += 1;
        for register in &registers {
            self.trace.forget(*register, "a field of a record that was NULL");
        }
        if let Storage::Record { state, .. } = &mut self.storage[variable as usize] {
            *state = RecordState::Null;
        }
        OperationKind::AssignRow { targets: Targets::of(registers), values: Vec::new() }
    }

    /// The fields of a record variable that a fragment names, and nothing else.
    fn record_named(&self, value: &Fragment) -> Option<Vec<(String, Type)>> {
        let is_record = |id: VariableId| self.storage[id as usize].is_record();
        let (id, _) =
            self.body.names.find(value.names, &[value.text.trim().to_lowercase().as_str()], &is_record)?;
        let fields = self.storage[id as usize].fields()?;
        Some(fields.iter().map(|f| (f.name.clone(), f.declared)).collect())
    }

    fn perform(&mut self, query: &Fragment) -> Result<OperationKind> {
        let text = format!("SELECT {}", query.text);
        let fragment = Fragment { text, ..query.clone() };
        let bound = self.bind_sql(&fragment)?;
        let compiled = self.plan(&bound)?;
        let text = Some(fragment.text.into());
        Ok(OperationKind::Perform(SqlStatement { compiled, text }))
    }

    fn sql_statement(
        &mut self,
        line: u32,
        text: &Fragment,
        into: Option<&Into>,
    ) -> Result<(Operation, FallsThrough)> {
        if let Some((stripped, cursor)) = current_of::split(&text.text) {
            let site = Self::site(line, "SQL statement");
            let result = parse_statement(&stripped)
                .and_then(|statement| self.current_of(site, statement, &cursor, text))
                .and_then(|(statement, before)| Ok((before, self.rows_statement(&statement, text, into)?)));
            let kind = result.map(|(before, kind)| {
                OperationKind::Sequence(vec![before, Operation { site, rights: None, kind }])
            });
            return Ok((self.or_fail(site, kind), true));
        }
        let parsed = match whole_row::expand(&text.text, &|name| self.field_names(name, text.names)) {
            Some(expanded) => parse_statement(&expanded),
            None => parse_statement(&text.text),
        };
        let what = match &parsed {
            Ok(SqlAst::Call(_)) => "CALL",
            Ok(SqlAst::Do(_)) => "DO",
            _ => "SQL statement",
        };
        let site = Self::site(line, what);
        let kind = parsed.and_then(|statement| match &statement {
            SqlAst::Call(call) => self.call(call, text),
            SqlAst::Query(_)
            | SqlAst::Insert(_)
            | SqlAst::Update(_)
            | SqlAst::Delete(_)
            | SqlAst::Explain(_)
            | SqlAst::Show(_)
            | SqlAst::Merge(_) => self.rows_statement(&statement, text, into),
            SqlAst::Unsupported { what, .. } => Err(SqlAst::refusal(what)),
            other if command_text::is_command(other) => self.command(text, other.tag()),
            other => self.notify(other, text).unwrap_or_else(|| Err(command_text::refused(other))),
        });
        Ok((self.or_fail(site, kind), true))
    }

    fn rows_statement(
        &mut self,
        statement: &SqlAst,
        text: &Fragment,
        into: Option<&Into>,
    ) -> Result<OperationKind> {
        let mut bound = self.bind_ast(text, statement)?;
        if self.routine.volatility != 'v' && into::modifies(&bound) {
            let message = format!("{} is not allowed in a non-volatile function", statement.tag());
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            return Err(context::of_statement(error, &text.text));
        }
        let context = Some(text.text.as_str().into());
        let Some(into) = into else {
            if !bound.columns().is_empty() {
                let error = SqlError::new(SqlState::SYNTAX_ERROR, "query has no destination for result data");
                return Err(match bound {
                    BoundStatement::Query(_) if matches!(statement, SqlAst::Query(_)) => error
                        .with_hint("If you want to discard the results of a SELECT, use PERFORM instead."),
                    _ => error,
                });
            }
            let compiled = self.plan(&bound)?;
            self.found_unknown();
            return Ok(OperationKind::Sql {
                statement: SqlStatement { compiled, text: context },
                into: None,
            });
        };
        if bound.columns().is_empty() && !matches!(bound, BoundStatement::Query(_)) {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "INTO used with a command that cannot return data",
            ));
        }
        let modifies = into::modifies(&bound);
        let columns = bound.columns().len() as i32;
        let (targets, casts) = self.targets_of_into(&into.targets, &mut bound)?;
        let surplus = columns - targets.registers.len() as i32;
        let parameters = match into.strict || modifies {
            true => self.strict_parameters(&bound)?,
            false => StrictParameters::default(),
        };
        let compiled = self.plan(&bound)?;
        for register in &targets.registers {
            self.trace.forget(*register, "read from a table");
        }
        self.trace_reference_read(&bound, (&targets, &casts), &text.text);
        self.found_unknown();
        let as_they_are = surplus == 0 && casts.is_empty() && targets.not_null.is_empty();
        let direct = as_they_are && targets.whole_not_null.is_none() && compiled.reads_row();
        Ok(OperationKind::Sql {
            statement: SqlStatement { compiled, text: context },
            into: Some(IntoPlan {
                strict: into.strict,
                modifies,
                targets,
                parameters,
                surplus,
                casts,
                direct,
            }),
        })
    }

    /// The variables that a statement reads, in the order of their declarations.
    fn strict_parameters(&mut self, bound: &BoundStatement) -> Result<StrictParameters> {
        let mut read = Vec::new();
        visit::visit_statement(bound, 0, &mut |part, _| {
            if let ExprKind::Variable(register) = part.kind {
                read.push(register);
            }
            true
        });
        let mut values = Vec::new();
        for id in 0..self.storage.len() {
            let Storage::Scalar { register, ty, .. } = self.storage[id] else { continue };
            if !read.contains(&register) {
                continue;
            }
            let value = BoundExpr::new(ExprKind::Variable(register), ty);
            let text = BoundExpr::new(ExprKind::ConvertIo(Box::new(value)), Type::TEXT);
            values.push((self.body.variables[id].name.as_str().into(), self.plan_expression(&text)?));
        }
        Ok(StrictParameters { told: self.body.print_strict, values })
    }

    /// The fields of a record variable as names in SQL, which knows those of rows of a named type alone.
    fn field_names(&self, name: &str, names: NamesId) -> Option<Vec<String>> {
        let is_record = |id: VariableId| self.storage[id as usize].is_record();
        let (id, _) = self.body.names.find(names, &[name, "*"], &is_record)?;
        let storage = &self.storage[id as usize];
        let fields = storage.fields().filter(|_| storage.row_type() != Type::RECORD)?;
        Some(
            fields
                .iter()
                .map(|f| format!("{}.{}", quote_identifier(name), quote_identifier(&f.name)))
                .collect(),
        )
    }

    /// FOUND is not known beforehand after a statement.
    pub(super) fn found_unknown(&mut self) {
        let found = self.register_of(self.body.found);
        self.trace.forget(found, "FOUND");
    }

    pub(super) fn shared_linker(&self) -> Arc<dyn archipel_planner::native::RoutineLinker + Send + Sync> {
        self.linker.clone()
    }
}
