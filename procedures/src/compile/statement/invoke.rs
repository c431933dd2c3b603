//! CALL of procedures, and EXECUTE.

use std::sync::Arc;

use archipel_planner::bind;
use archipel_planner::bound::{BoundExpr, BoundStatement, ExprKind};
use archipel_sql::ast::{self, Statement as SqlAst};
use archipel_sql::catalog::ArgMode;
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::{Keeps, parse_expression, parse_statement, standard_strings};
use archipel_sql::types::{Oid, Type};

use super::text_purpose::TextFor;
use crate::compile::compiler::Compiler;
use crate::compile::error_context::expression_line;
use crate::compile::record::shape;
use crate::compile::record::variable::Storage;
use crate::compile::text::{TextBinder, bind_parsed, bind_text, is_constant, several};
use crate::compile::trace;
use crate::compile::trace::unknown_access::unknown_access;
use crate::compile::trigger::rows::Transitions;
use crate::plpgsql::ast::*;
use crate::run::context;
use crate::run::operation::expression::Compiled;
use crate::run::operation::into::{IntoPlan, StrictParameters};
use crate::run::operation::*;

impl Compiler<'_> {
    /// `CALL procedure(…)`: OUT arguments are variables and take the results.
    pub(in crate::compile) fn call(&mut self, call: &ast::Call, text: &Fragment) -> Result<OperationKind> {
        let bound = self.bind_ast(text, &SqlAst::Call(call.clone()))?;
        let BoundStatement::Call(bound) = bound else {
            return Err(SqlError::internal("CALL bound to something else"));
        };
        let routine = self.linker.link(&bound.routine)?;
        for access in routine.accesses() {
            let access = trace::bind_arguments(access, &bound.args);
            let access = self.trace.access(&access);
            self.note(access);
        }
        let mut args = Vec::new();
        for arg in &bound.args {
            args.push(self.plan_expression(arg)?);
        }
        let mut registers = Vec::new();
        let mut not_null = Vec::new();
        let mut taken_apart = Vec::new();
        let outs = bound
            .routine
            .args
            .iter()
            .enumerate()
            .filter(|(_, arg)| matches!(arg.mode, ArgMode::Out | ArgMode::InOut));
        for (position, arg) in outs {
            let given = call
                .args
                .iter()
                .find(|given| given.name.is_some() && given.name == arg.name)
                .or_else(|| call.args.get(position).filter(|given| given.name.is_none()));
            let Some(given) = given else {
                // Left out, its default taken: that takes nothing.
                return Err(not_writable(arg.name.as_deref(), position));
            };
            let target = self.out_target(&given.value.text, text, arg.name.as_deref(), position)?;
            if let (Storage::Row { ty, fields, present }, []) =
                (self.storage[target.variable as usize].clone(), &target.path[..])
            {
                if arg.domain.is_some() {
                    return Err(not_writable(arg.name.as_deref(), position));
                }
                if ty.oid != arg.ty.oid {
                    return Err(SqlError::unsupported(format_args!(
                        "an OUT argument of another type than its variable \"{}\"",
                        target.text
                    )));
                }
                self.require_changeable(target.variable)?;
                // The row is taken apart when the procedure has ended.
                let register = self.scratch();
                registers.push(register);
                let value = BoundExpr::new(ExprKind::Variable(register), ty);
                let value = self.plan_expression(&value)?;
                for field in &fields {
                    self.trace.forget(field.register, "the result of a procedure");
                }
                let own = fields.iter().map(|field| field.register).collect();
                let targets = Targets { present, ..Targets::of(own) };
                taken_apart.push(OperationKind::AssignRecord { targets, value });
                continue;
            }
            let (register, ty) = self.scalar_target(&target)?;
            if ty.oid != arg.declared().oid {
                // PostgreSQL finds a cast where it wants a variable: to a domain, too.
                return Err(not_writable(arg.name.as_deref(), position));
            }
            self.require_changeable(target.variable)?;
            if let Some(name) = self.not_null(target.variable) {
                not_null.push((registers.len() as u32, name));
            }
            registers.push(register);
        }
        for register in &registers {
            self.trace.forget(*register, "the result of a procedure");
        }
        let targets = (!registers.is_empty()).then(|| Targets { not_null, ..Targets::of(registers) });
        let call = OperationKind::Call { routine, args, targets, text: text.text.as_str().into() };
        if taken_apart.is_empty() {
            return Ok(call);
        }
        let site = Compiler::site(text.line, "CALL");
        let operation = |kind| Operation { site, rights: None, kind };
        Ok(OperationKind::Sequence([call].into_iter().chain(taken_apart).map(operation).collect()))
    }

    /// A procedure's result is given to a variable that may change (exec_check_assignable).
    fn require_changeable(&self, variable: VariableId) -> Result<()> {
        let variable = &self.body.variables[variable as usize];
        if variable.constant { Err(variable.declared_constant()) } else { Ok(()) }
    }

    /// The variable given for an OUT argument.
    fn out_target(
        &self,
        given: &str,
        text: &Fragment,
        name: Option<&str>,
        position: usize,
    ) -> Result<Target> {
        let refused = || not_writable(name, position);
        let mut given_expr = parse_expression(given)?;
        while let sqlparser::ast::Expr::Nested(inner) = given_expr {
            given_expr = *inner;
        }
        let parts: Vec<String> = match given_expr {
            sqlparser::ast::Expr::Identifier(ident) => vec![bind::name::ident_name(&ident)],
            sqlparser::ast::Expr::CompoundIdentifier(idents) => {
                idents.iter().map(bind::name::ident_name).collect()
            }
            sqlparser::ast::Expr::Value(value) => match value.value {
                sqlparser::ast::Value::Placeholder(number) => vec![number],
                _ => return Err(refused()),
            },
            _ => return Err(refused()),
        };
        let names: Vec<&str> = parts.iter().map(String::as_str).collect();
        let is_record = |id: VariableId| self.storage[id as usize].is_record();
        let Some((variable, used)) = self.body.names.find(text.names, &names, &is_record) else {
            return Err(refused());
        };
        let path = parts[used..].iter().map(|part| Step::Field(part.clone())).collect();
        Ok(Target { variable, path, text: given.to_string(), start: text.start })
    }

    pub(in crate::compile) fn execute(
        &mut self,
        query: &Dynamic,
        into: Option<&Into>,
    ) -> Result<OperationKind> {
        Ok(OperationKind::Dynamic(Box::new(self.dynamic_plan(query, into, TextFor::Statement)?)))
    }

    /// EXECUTE and its relatives: bound when it runs, because its text is known only then.
    pub(super) fn dynamic_plan(
        &mut self,
        query: &Dynamic,
        into: Option<&Into>,
        used: TextFor,
    ) -> Result<DynamicPlan> {
        let bound_text = self.bind(&query.text, Some(Type::TEXT))?;
        let mut using = Vec::new();
        let mut types = Vec::new();
        for value in &query.using {
            let bound = self.bind(value, None)?;
            types.push(bound.ty);
            using.push(self.plan_spoken(&bound, expression_line(value))?);
        }
        let mut wanted = None;
        let mut found = None;
        let row = into.and_then(|into| self.row_of_domain(&into.targets));
        let into = match into {
            None => None,
            Some(into) => {
                let place = shape::Place::new(self.routine, query.text.start as u64);
                let structures = match &into.targets[..] {
                    [_] if self.takes_record(&into.targets) => {
                        self.structures_of_text(place, &bound_text, &types)
                    }
                    _ => None,
                };
                let (targets, types) = match (&into.targets[..], structures) {
                    ([target], Some(structures)) => {
                        let (registers, types) = self.one_of(target.variable, &structures)?;
                        found = Some((place, structures));
                        (Targets::of(registers), types)
                    }
                    (targets, _) => {
                        let columns = match self.takes_record(targets) {
                            true => self.text_columns(&bound_text, &types)?,
                            false => Vec::new(),
                        };
                        let (targets, types) = self.places(targets, &columns)?;
                        (targets, vec![(0, types)])
                    }
                };
                for register in &targets.registers {
                    self.trace.forget(*register, "read by dynamic SQL");
                }
                wanted = Some(types);
                let parameters = StrictParameters {
                    told: self.body.print_strict,
                    values: self.using_values(&query.using)?,
                };
                Some(IntoPlan {
                    strict: into.strict,
                    modifies: false,
                    targets,
                    parameters,
                    surplus: 0,
                    casts: Vec::new(),
                    direct: false,
                })
            }
        };
        let returns = used == TextFor::Result;
        let result = returns.then(|| self.columns.clone());
        // What it touches shows only when it runs.
        self.note(unknown_access("dynamic SQL", "EXECUTE is bound when it runs"));
        let text = self.plan_expression(&bound_text)?;
        let binder = Arc::new(TextBinder {
            environment: self.environment.clone(),
            linker: self.shared_linker(),
            types,
            transitions: self.transitions().cloned(),
            wanted,
            row,
            looped: used == TextFor::Loop,
            result,
            found,
            known: Default::default(),
        });
        Ok(DynamicPlan { text, using, into, returns, looped: used == TextFor::Loop, binder })
    }

    /// USING as text, for what INTO STRICT tells.
    fn using_values(&mut self, using: &[Fragment]) -> Result<Vec<(Box<str>, Compiled)>> {
        let mut values = Vec::new();
        for (index, value) in using.iter().enumerate() {
            let value = self.bind(value, None)?;
            let text = match value.ty.oid {
                Oid::TEXT | Oid::UNKNOWN => value,
                _ => BoundExpr::new(ExprKind::ConvertIo(Box::new(value)), Type::TEXT),
            };
            values.push((format!("${}", index + 1).into(), self.plan_expression(&text)?));
        }
        Ok(values)
    }

    /// Whether one of the targets is a variable that takes the structure of the rows.
    pub(super) fn takes_record(&self, targets: &[Target]) -> bool {
        targets.iter().any(|target| {
            target.path.is_empty() && matches!(self.storage[target.variable as usize], Storage::Record { .. })
        })
    }

    /// The tables that the trigger names whose function this is.
    fn transitions(&self) -> Option<&Transitions> {
        self.trigger.as_ref().map(|rows| &rows.transitions)
    }

    /// The columns of an EXECUTE whose text is a constant.
    pub(super) fn constant_columns(&self, query: &Dynamic) -> Option<Vec<(String, Type)>> {
        let text = self.bind(&query.text, Some(Type::TEXT)).ok()?;
        let types: Result<Vec<Type>> =
            query.using.iter().map(|value| Ok(self.bind(value, None)?.ty)).collect();
        self.text_columns(&text, &types.ok()?).ok()
    }

    /// The structures of the rows at a place where a text is executed: those that earlier runs have found,
    /// and that of a constant text. `None` where that one is all there is.
    fn structures_of_text(
        &self,
        place: shape::Place,
        text: &BoundExpr,
        types: &[Type],
    ) -> Option<Vec<shape::Structure>> {
        if !is_constant(text) {
            return Some(self.environment.shapes.get(place));
        }
        let columns = self.text_columns(text, types).ok()?;
        let structures = self.environment.shapes.with(place, columns);
        (structures.len() > 1).then_some(structures)
    }

    fn text_columns(&self, text: &BoundExpr, types: &[Type]) -> Result<Vec<(String, Type)>> {
        let (ExprKind::Const(Datum::Text(text)), true) = (&text.kind, is_constant(text)) else {
            return Err(SqlError::unsupported("EXECUTE of computed text into a record variable"));
        };
        let within = (self.environment, self.linker.as_ref());
        let standard = standard_strings(text, self.environment.strings, Keeps::Characters).text?;
        let text = &*standard;
        // The last statement answers.
        let several = several(text).and_then(|mut statements| statements.pop());
        let text = several.as_deref().unwrap_or(text);
        let bound = match parse_statement(text) {
            Ok(call @ SqlAst::Call(_)) => bind_parsed(within, &call, text, types, self.transitions()),
            _ => bind_text(within, text, types, self.transitions()),
        };
        let (bound, _) = bound.map_err(|error| context::of_statement(error, text))?;
        Ok(bound.columns().iter().map(|c| (c.name.clone(), c.ty)).collect())
    }
}

/// An argument that is no variable cannot take what a procedure gives for a parameter.
fn not_writable(name: Option<&str>, position: usize) -> SqlError {
    let named = name.map_or_else(|| (position + 1).to_string(), |name| format!("\"{name}\""));
    let message = format!(
        "procedure parameter {named} is an output parameter but corresponding argument is not writable"
    );
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}
