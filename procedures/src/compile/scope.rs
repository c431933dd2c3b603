//! What names in SQL mean, and the binding of fragments.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};

use archipel_planner::bind::visit;
use archipel_planner::bind::{self, BindEnv, VariableConflict, VariableScope};
use archipel_planner::bound::{BoundExpr, BoundStatement, ExprKind};
use archipel_sql::ast::Statement as SqlAst;
use archipel_sql::catalog::{Language, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser;
use archipel_sql::types::{Oid, Type};
use rustc_hash::FxHasher;
use sqlparser::ast::Expr;

use super::compiler::Compiler;
use super::environment::{bind_env, is_input, no_session};
use super::error_context::{about_converted, about_fragment, about_statement, expression_line};
use super::explain;
use super::record::variable::{Field, RecordState, Storage};
use crate::plpgsql::ast::*;
use crate::run::context_line;
use crate::run::operation::expression::{Compiled, Expression};

/// The names visible at one fragment.
pub(super) struct Scope<'c, 'a> {
    pub compiler: &'c Compiler<'a>,
    pub names: NamesId,
    /// A better message than the binder can give.
    pub error: RefCell<Option<SqlError>>,
}

impl Scope<'_, '_> {
    fn find(&self, parts: &[&str]) -> Option<(VariableId, usize)> {
        let is_record = |id: VariableId| {
            let storage = &self.compiler.storage[id as usize];
            if storage.is_whole_record() {
                self.compiler.asked.borrow_mut().push(id);
            }
            storage.is_record() || storage.is_row_value()
        };
        let found = self.compiler.body.names.find(self.names, parts, &is_record)?;
        self.compiler.flow.borrow_mut().read(found.0);
        Some(found)
    }

    /// The fields of a value of a composite type.
    fn fields_of(&self, whole: &BoundExpr) -> Vec<(String, BoundExpr)> {
        let Some(table) = self.compiler.environment.catalog.table_of_row_type(whole.ty.oid) else {
            return Vec::new();
        };
        let field = |(place, column): (usize, &archipel_sql::catalog::Column)| {
            let kind = ExprKind::Field { record: Box::new(whole.clone()), index: place as u16 };
            (column.name.clone(), BoundExpr::new(kind, column.ty).of_domain(column.domain))
        };
        table.columns.iter().enumerate().map(field).collect()
    }

    fn refuse(&self, error: SqlError) {
        self.error.borrow_mut().get_or_insert(error);
    }

    /// Why a record variable has no fields here.
    fn no_structure(&self, id: VariableId) {
        let name = &self.compiler.body.variables[id as usize].name;
        let state = match &self.compiler.storage[id as usize] {
            Storage::Record { state, .. } => *state,
            _ => return,
        };
        self.refuse(match state {
            RecordState::Ambiguous | RecordState::OneOf(_) => SqlError::unsupported(format_args!(
                "reading record variable \"{name}\", which may hold rows of different structure here,"
            )),
            _ => SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("record \"{name}\" is not assigned yet"),
            )
            .with_detail("The tuple structure of a not-yet-assigned record is indeterminate."),
        });
    }
}

/// What a register holds, as one of the type that it was declared of: a domain over `ty`, or that.
fn read(register: u32, ty: Type, declared: Type) -> BoundExpr {
    let domain = (declared.oid != ty.oid).then_some(declared.oid);
    BoundExpr::new(ExprKind::Variable(register), ty).of_domain(domain)
}

/// The value of a variable that has fields.
fn whole_row(storage: &Storage, fields: &[Field]) -> BoundExpr {
    let item = |field: &Field| read(field.register, field.ty, field.declared);
    let names = fields.iter().map(|field| field.name.clone()).collect();
    let row = ExprKind::Row(fields.iter().map(item).collect(), Some(names));
    let (ty, present) = match storage {
        Storage::Row { ty, present: Some(present), .. } => (ty, present),
        storage => return BoundExpr::new(row, storage.row_type()),
    };
    // NULL, unless a row of NULLs was assigned.
    let present = BoundExpr::new(ExprKind::Variable(*present), Type::BOOL);
    let is_null = |value| BoundExpr::new(ExprKind::IsNull(Box::new(value)), Type::BOOL);
    let absent = [present].into_iter().chain(fields.iter().map(item)).map(is_null).collect();
    let absent = BoundExpr::new(ExprKind::And(absent), Type::BOOL);
    let null = BoundExpr::new(ExprKind::Const(Datum::Null), *ty);
    let otherwise = Some(Box::new(BoundExpr::new(row, *ty)));
    BoundExpr::new(ExprKind::Case { arms: vec![(absent, null)], otherwise }, *ty)
}

impl VariableScope for Scope<'_, '_> {
    fn resolve(&self, parts: &[&str]) -> Option<BoundExpr> {
        if let [name] = parts
            && let Some(value) = self.compiler.hidden_value(name)
        {
            return Some(value);
        }
        let (id, used) = self.find(parts)?;
        let storage = &self.compiler.storage[id as usize];
        if let Storage::Scalar { register, ty, declared } = storage {
            let whole = read(*register, *ty, *declared);
            return match &parts[used..] {
                [] => Some(whole),
                [name] => {
                    let found = self.fields_of(&whole).into_iter().find(|(field, _)| field == name);
                    if found.is_none() {
                        self.refuse(self.compiler.no_field(id, name));
                    }
                    found.map(|(_, field)| field)
                }
                _ => None,
            };
        }
        if let Storage::Record { state: RecordState::Null, .. } = storage
            && used == parts.len()
        {
            return Some(BoundExpr::new(ExprKind::Const(Datum::Null), Type::RECORD));
        }
        let Some(fields) = storage.fields() else {
            let tagged = match &parts[used..] {
                [] => self.compiler.tagged(id, None),
                [field] => self.compiler.tagged(id, Some(field)),
                _ => None,
            };
            // As a whole, one without a structure is NULL.
            if used == parts.len()
                && matches!(storage, Storage::Record { state: RecordState::Unassigned, .. })
            {
                return Some(BoundExpr::new(ExprKind::Const(Datum::Null), Type::RECORD));
            }
            if tagged.is_none() {
                self.no_structure(id);
            }
            return tagged;
        };
        if used == parts.len() {
            return Some(whole_row(storage, fields));
        }
        let name = parts[used];
        let Some(field) = fields.iter().find(|f| f.name == name) else {
            let variable = &self.compiler.body.variables[id as usize].name;
            self.refuse(SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("record \"{variable}\" has no field \"{name}\""),
            ));
            return None;
        };
        (used + 1 == parts.len()).then_some(read(field.register, field.ty, field.declared))
    }

    fn fields(&self, parts: &[&str]) -> Option<Vec<(String, BoundExpr)>> {
        let (id, used) = self.find(parts)?;
        let storage = &self.compiler.storage[id as usize];
        if let (Storage::Scalar { register, ty, .. }, true) = (storage, used == parts.len())
            && storage.is_row_value()
        {
            let whole = BoundExpr::new(ExprKind::Variable(*register), *ty);
            return Some(self.fields_of(&whole));
        }
        if used != parts.len() || !storage.is_record() {
            return None;
        }
        let Some(fields) = storage.fields() else {
            self.no_structure(id);
            return None;
        };
        let field = |f: &crate::compile::record::variable::Field| {
            (f.name.clone(), read(f.register, f.ty, f.declared))
        };
        Some(fields.iter().map(field).collect())
    }

    fn parameter(&self, number: u16) -> Option<BoundExpr> {
        let compiler = self.compiler;
        let parameters = compiler.routine.args.iter().zip(&compiler.body.parameters);
        // PL/pgSQL numbers its OUT parameters among the others; LANGUAGE sql has none.
        let counts = |mode| match compiler.routine.language {
            Language::PlPgSql => true,
            Language::Sql => is_input(mode),
        };
        let mut counted = parameters.filter(|(arg, _)| counts(arg.mode));
        let (_, &id) = counted.nth(usize::from(number))?;
        compiler.flow.borrow_mut().read(id);
        match &compiler.storage[id as usize] {
            Storage::Scalar { register, ty, declared } => Some(read(*register, *ty, *declared)),
            Storage::Record { state: RecordState::Null | RecordState::Unassigned, .. } => {
                Some(BoundExpr::new(ExprKind::Const(Datum::Null), Type::RECORD))
            }
            storage => match storage.fields() {
                Some(fields) => Some(whole_row(storage, fields)),
                None => compiler.tagged(id, None),
            },
        }
    }

    fn relation(&self, name: &str) -> Option<(BoundExpr, TableRef)> {
        self.compiler.trigger.as_ref()?.transitions.table(name)
    }

    fn conflict(&self) -> VariableConflict {
        match self.compiler.conflict() {
            Conflict::Error => VariableConflict::Error,
            Conflict::UseVariable => VariableConflict::Variable,
            Conflict::UseColumn => VariableConflict::Column,
        }
    }
}

/// An expression fragment, parsed: PL/pgSQL's expressions are SELECT lists, so `count(*) FROM t`
/// is one.
pub(crate) enum ParsedExpression {
    Plain(Box<Expr>),
    Query(Box<sqlparser::ast::Query>),
}

pub(crate) fn parse_fragment_expression(text: &str) -> Result<ParsedExpression> {
    match parser::parse_expression(text) {
        Ok(expr) => Ok(ParsedExpression::Plain(Box::new(expr))),
        Err(error) => match parser::parse_query(&format!("SELECT {text}")) {
            Ok(query) => Ok(ParsedExpression::Query(query)),
            Err(_) => Err(error),
        },
    }
}

impl Compiler<'_> {
    /// Runs `work` with a binding environment in which the fragment's names are visible.
    pub(super) fn binding<T>(
        &self,
        fragment: &Fragment,
        work: impl FnOnce(&mut BindEnv<'_>) -> Result<T>,
    ) -> Result<T> {
        let scope = Scope { compiler: self, names: fragment.names, error: RefCell::new(None) };
        let names = self.environment.type_names();
        let context = no_session(&names);
        let result = {
            let mut env = bind_env(self.environment, &context, &fragment.text);
            env.variables = Some(&scope);
            env.literals_of = self.kept_plan(fragment);
            let result = work(&mut env);
            self.needed.borrow_mut().append(&mut env.required);
            result
        };
        let plpgsql = self.routine.language == Language::PlPgSql;
        result.map_err(|error| match scope.error.into_inner() {
            // Of a record variable: PostgreSQL finds that as it runs the query.
            Some(error) if plpgsql => context_line::add_line(error, &expression_line(fragment)),
            Some(error) => error,
            None if plpgsql && is_unregistered(&error) => {
                context_line::add_line(error, &expression_line(fragment))
            }
            None if plpgsql => about_fragment(error, fragment),
            None => error,
        })
    }

    /// What tells the literals of a piece of this routine from others', where PostgreSQL keeps its plan: a
    /// statement or an expression of a function of PL/pgSQL.
    fn kept_plan(&self, fragment: &Fragment) -> Option<u64> {
        if self.routine.language != Language::PlPgSql || self.routine.oid == Oid(0) {
            return None;
        }
        let mut hasher = FxHasher::default();
        (self.routine.oid, self.routine.version, fragment.start).hash(&mut hasher);
        Some(hasher.finish())
    }

    /// Binds an expression; with a target, as PL/pgSQL assigns to it.
    pub(super) fn bind(&self, fragment: &Fragment, target: Option<Type>) -> Result<BoundExpr> {
        let mut bound = self.bind_whole(fragment, target)?;
        if let Some(rows) = &self.trigger {
            rows.blank(&mut bound);
        }
        Ok(bound)
    }

    fn bind_whole(&self, fragment: &Fragment, target: Option<Type>) -> Result<BoundExpr> {
        match parse_fragment_expression(&fragment.text)? {
            ParsedExpression::Plain(expr) => self.binding(fragment, |env| {
                if matches!(&*expr, Expr::Value(_)) && !self.assigns {
                    // Of no type before it is used, and that is each time. What is assigned has that of its
                    // target.
                    env.literals_of = None;
                }
                let Some(target) = target else {
                    return bind::bind_expression(&expr, env, None);
                };
                match bind::bind_expression(&expr, env, Some(target)) {
                    Ok(bound) => Ok(bound),
                    Err(error) if answers_rows(&error) => {
                        let query = parser::parse_query(&format!("SELECT {}", fragment.text))?;
                        let bound = bind::bind_expression(&Expr::Subquery(query), env, None)?;
                        bind::coerce_plpgsql(bound, target, env)
                    }
                    Err(error) if is_cast_error(&error) => {
                        let bound = bind::bind_expression(&expr, env, None)?;
                        bind::coerce_plpgsql(bound, target, env)
                    }
                    Err(error) => Err(error),
                }
            }),
            ParsedExpression::Query(query) => {
                let expr = Expr::Subquery(query);
                self.binding(fragment, |env| {
                    let bound = bind::bind_expression(&expr, env, None)?;
                    match target {
                        Some(target) => bind::coerce_plpgsql(bound, target, env),
                        None => Ok(bound),
                    }
                })
            }
        }
    }

    /// Whether an expression is a query of its own: one with FROM, or with a function that answers rows.
    pub(super) fn is_query(&self, fragment: &Fragment, bound: &BoundExpr) -> bool {
        let mut asks = false;
        visit::visit_expr(bound, 0, &mut |part, _| {
            asks |= matches!(part.kind, ExprKind::Subquery(_));
            !asks
        });
        if !asks {
            return false;
        }
        match parse_fragment_expression(&fragment.text) {
            Ok(ParsedExpression::Plain(expr)) => {
                // What it reads is known already.
                let needed = self.needed.take();
                let bound = self.binding(fragment, |env| bind::bind_expression(&expr, env, None));
                self.needed.replace(needed);
                bound.is_err_and(|error| answers_rows(&error))
            }
            Ok(ParsedExpression::Query(_)) => true,
            Err(_) => false,
        }
    }

    /// An error of what is assigned, if it is that it has not one column.
    pub(super) fn about_columns(&self, error: SqlError, value: &Fragment, line: &str) -> SqlError {
        let columns = match parse_fragment_expression(&value.text) {
            _ if value.text.trim().is_empty() => Some(0),
            Ok(ParsedExpression::Query(query)) => {
                let bound = self.bind_ast(value, &SqlAst::Query(query));
                bound.ok().map(|bound| bound.columns().len())
            }
            _ => None,
        };
        match columns.filter(|columns| *columns != 1) {
            Some(columns) => {
                let message = format!("assignment source returned {columns} columns");
                context_line::add_line(SqlError::new(SqlState::SYNTAX_ERROR, message), line)
            }
            None => error,
        }
    }

    /// Binds and compiles an expression.
    pub(super) fn expression(&mut self, fragment: &Fragment, target: Option<Type>) -> Result<Compiled> {
        let bound = self.bind(fragment, target)?;
        self.plan_spoken(&bound, expression_line(fragment))
    }

    /// The same for a statement that a machine may run.
    pub(super) fn typed(&mut self, fragment: &Fragment, target: Option<Type>) -> Result<Expression> {
        let bound = self.bind(fragment, target).map_err(|error| about_converted(error, fragment))?;
        self.plan_typed(&bound, expression_line(fragment))
    }

    /// The same for a part of a statement that CONTEXT lines name as `line`.
    pub(super) fn typed_in(&mut self, fragment: &Fragment, target: Type, line: &str) -> Result<Expression> {
        let bound = self.bind(fragment, Some(target)).map_err(|error| about_converted(error, fragment))?;
        self.plan_typed(&bound, line.to_string())
    }

    /// Binds and compiles a condition.
    pub(super) fn condition(&mut self, fragment: &Fragment) -> Result<Expression> {
        self.typed(fragment, Some(Type::BOOL))
    }

    /// Casts an expression over registers as PL/pgSQL assigns.
    pub(super) fn cast(&self, expr: BoundExpr, target: Type) -> Result<BoundExpr> {
        let names = self.environment.type_names();
        let context = no_session(&names);
        let mut env = bind_env(self.environment, &context, "");
        let bound = bind::coerce_plpgsql(expr, target, &mut env);
        self.needed.borrow_mut().append(&mut env.required);
        bound
    }

    /// Asks the binder for something over registers.
    pub(super) fn with_environment<T>(&self, work: impl FnOnce(&mut BindEnv<'_>) -> Result<T>) -> Result<T> {
        let names = self.environment.type_names();
        let context = no_session(&names);
        let mut env = bind_env(self.environment, &context, "");
        let result = work(&mut env);
        self.needed.borrow_mut().append(&mut env.required);
        result
    }

    /// A value of jsonb in a register with a part of it assigned.
    pub(super) fn json_with_part(
        &self,
        base: BoundExpr,
        steps: Vec<BoundExpr>,
        part: BoundExpr,
    ) -> Result<BoundExpr> {
        let names = self.environment.type_names();
        let context = no_session(&names);
        let mut env = bind_env(self.environment, &context, "");
        let bound = bind::assign_json_part(base, steps, part, &mut env);
        self.needed.borrow_mut().append(&mut env.required);
        bound
    }

    /// Parses and binds a SQL statement.
    pub(super) fn bind_sql(&self, fragment: &Fragment) -> Result<BoundStatement> {
        let statement = parser::parse_statement(&fragment.text)?;
        self.bind_ast(fragment, &statement)
    }

    pub(super) fn bind_ast(&self, fragment: &Fragment, statement: &SqlAst) -> Result<BoundStatement> {
        if let SqlAst::Unsupported { what, .. } = statement {
            return Err(SqlAst::refusal(what));
        }
        if let SqlAst::Explain(explain) = statement {
            let linker = self.linker.as_ref();
            return explain::rows(explain, self.environment, linker, &|inner| self.bind_ast(fragment, inner));
        }
        let mut bound =
            self.binding(fragment, |env| bind::bind_statement(statement, env)).map_err(|error| {
                let error = about_statement(error, fragment);
                let fields = error.fields();
                let placed =
                    fields.internal.is_some() || fields.position.is_some() || fields.context.is_some();
                // What has no place in the statement is said of all of it.
                if placed || self.routine.language != Language::PlPgSql {
                    return error;
                }
                context_line::add_line(error, &context_line::statement_line(&fragment.text))
            })?;
        if let Some(rows) = &self.trigger {
            rows.blank_statement(&mut bound);
        }
        Ok(bound)
    }
}

/// Whether an error says of a record variable that SQL does not know its fields, which is found where its
/// query runs.
fn is_unregistered(error: &SqlError) -> bool {
    error.message() == "record type has not been registered" && error.fields().position.is_none()
}

/// Whether an expression is refused for a function in it that answers rows.
fn answers_rows(error: &SqlError) -> bool {
    error.message() == "set-returning functions are not allowed in this expression"
}

fn is_cast_error(error: &SqlError) -> bool {
    matches!(error.state(), SqlState::CANNOT_COERCE | SqlState::DATATYPE_MISMATCH)
}
