//! Cursors: OPEN, FETCH, MOVE, CLOSE, loops over cursors, and WHERE CURRENT OF.
//!
//! A cursor's query runs at OPEN ([`archipel_planner::native::cursor`]). Where the query reads
//! one table row by row, or locks the rows of several, the tables' primary keys stand behind the
//! columns the query names, so that CURRENT OF is a condition on a key; they are left out of what
//! FETCH answers.

use std::sync::Arc;

use archipel_planner::bound::{BoundExpr, ExprKind, OutputColumn};
use archipel_planner::native::{self, CompileEnv, ExecResult, RoutineLinker};
use archipel_sql::ast::{FetchDirection, Statement as SqlAst};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::SessionHost;
use archipel_sql::parser::parse_statement;
use archipel_sql::types::Type;
use parking_lot::Mutex;
use sqlparser::ast::{BinaryOperator, Expr, Ident};

use super::assignment::walk;
use super::cursor_query::{BoundCursor, HIDDEN, changed, fixed, key_of};
use super::loops::Rounds;
use super::path::Path;
use super::text_purpose::TextFor;
use crate::compile::Environment;
use crate::compile::compiler::Compiler;
use crate::compile::record::shape;
use crate::plpgsql::ast::*;
use crate::run::operation::cursor_plan::{
    CastList, CurrentOfPlan, CursorName, CursorPlace, FetchCasts, FetchInto, FetchPlan, Movement,
};
use crate::run::operation::site::Site;
use crate::run::operation::*;

/// Tells places of FETCH from those of EXECUTE.
const FETCHES: u64 = 1 << 63;

impl Compiler<'_> {
    /// The register of a cursor variable, and the variable's name.
    fn cursor_place(&self, cursor: VariableId) -> CursorPlace {
        let variable = &self.body.variables[cursor as usize];
        let constant = variable.constant.then(|| variable.declared_constant());
        CursorPlace { register: self.register_of(cursor), name: variable.name.as_str().into(), constant }
    }

    fn bind_cursor(&self, query: &Fragment) -> Result<BoundCursor> {
        let statement = parse_statement(&query.text)?;
        BoundCursor::of(&statement, self.environment, &|statement| self.bind_ast(query, statement))
    }

    /// The arguments of a bound cursor: variables its query sees.
    fn cursor_arguments(&mut self, site: Site, args: &[Fragment], declared: &[VariableId]) -> Vec<Operation> {
        let mut operations = Vec::new();
        for (arg, variable) in args.iter().zip(declared) {
            let result = (|| {
                let target =
                    Target { variable: *variable, path: Vec::new(), text: String::new(), start: arg.start };
                let (register, ty) = self.scalar_target(&target)?;
                let bound = self.bind(arg, Some(ty))?;
                let symbol = self.trace.symbol(&bound);
                let value = self.plan_part(&bound)?;
                self.trace.set(register, symbol);
                Ok(OperationKind::Assign { register, value })
            })();
            operations.push(self.or_fail(site, result));
        }
        operations
    }

    /// OPEN of a bound cursor.
    fn open_bound(
        &mut self,
        site: Site,
        cursor: VariableId,
        args: &[Fragment],
    ) -> Result<(OpenPlan, BoundColumns)> {
        let Some(declared) = self.body.variables[cursor as usize].cursor.clone() else {
            return Err(SqlError::internal("not a bound cursor"));
        };
        let arguments = self.cursor_arguments(site, args, &declared.args);
        let bound = self.bind_cursor(&declared.query)?;
        let columns = bound.named();
        let compiled = self.plan(&bound.bound)?;
        let plan = OpenPlan {
            cursor: self.cursor_place(cursor),
            arguments,
            query: OpenedQuery::Static(Box::new(bound.compiled(compiled, &declared.query.text))),
            scroll: declared.scroll,
        };
        Ok((plan, columns))
    }

    pub(super) fn open_cursor(
        &mut self,
        site: Site,
        cursor: VariableId,
        scroll: Option<bool>,
        args: &[Fragment],
        query: Option<&Fragment>,
        dynamic: Option<&Dynamic>,
    ) -> Result<OperationKind> {
        let query = match (query, dynamic) {
            (None, None) => {
                let plan = self.open_bound(site, cursor, args)?.0;
                self.trace.forget(plan.cursor.register, "a cursor");
                return Ok(OperationKind::Open(Box::new(plan)));
            }
            (Some(query), _) => {
                let bound = self.bind_cursor(query)?;
                let compiled = self.plan(&bound.bound)?;
                OpenedQuery::Static(Box::new(bound.compiled(compiled, &query.text)))
            }
            (None, Some(dynamic)) => {
                OpenedQuery::Dynamic(Box::new(self.dynamic_plan(dynamic, None, TextFor::Statement)?))
            }
        };
        let cursor = self.cursor_place(cursor);
        self.trace.forget(cursor.register, "a cursor");
        Ok(OperationKind::Open(Box::new(OpenPlan { cursor, arguments: Vec::new(), query, scroll })))
    }

    /// The columns of a cursor, from what this routine opens it for; `None` if it is opened
    /// elsewhere, or for queries of different structure.
    fn cursor_columns(&self, cursor: VariableId) -> Option<BoundColumns> {
        if let Some(declared) = &self.body.variables[cursor as usize].cursor {
            return Some(self.bind_cursor(&declared.query).ok()?.named());
        }
        let mut found: Option<BoundColumns> = None;
        let mut same = true;
        let mut see = |statement: &Statement| {
            let StatementKind::Open { cursor: opened, query, dynamic, .. } = &statement.kind else { return };
            if *opened != cursor {
                return;
            }
            let columns = match (query, dynamic) {
                (Some(query), _) => self.bind_cursor(query).ok().map(|bound| bound.named()),
                (None, Some(dynamic)) => self.constant_columns(dynamic),
                _ => None,
            };
            same &= columns.is_some() && found.as_ref().is_none_or(|known| Some(known) == columns.as_ref());
            found = columns;
        };
        let block = &self.body.block;
        walk(&block.body, &mut see);
        for handler in block.exceptions.iter().flat_map(|exceptions| &exceptions.handlers) {
            walk(&handler.body, &mut see);
        }
        found.filter(|_| same)
    }

    pub(super) fn fetch(
        &mut self,
        line: u32,
        cursor: VariableId,
        direction: &Direction,
        into: Option<&Into>,
    ) -> Result<OperationKind> {
        let direction = match (fixed(direction), direction) {
            (Some(direction), _) => Movement::Fixed(direction),
            (None, Direction::Absolute(count)) => {
                Movement::Counted(FetchDirection::Absolute, self.expression(count, Some(Type::INT4))?)
            }
            (None, Direction::Relative(count)) => {
                Movement::Counted(FetchDirection::Relative, self.expression(count, Some(Type::INT4))?)
            }
            (None, Direction::Count { forward: false, count }) => {
                Movement::Counted(FetchDirection::Backward, self.expression(count, Some(Type::INT4))?)
            }
            (None, Direction::Count { count, .. }) => {
                Movement::Counted(FetchDirection::Forward, self.expression(count, Some(Type::INT4))?)
            }
            (None, _) => return Err(SqlError::internal("a direction without a count")),
        };
        let into = match into {
            None => None,
            Some(into) => {
                let (alternatives, found) = self.fetched(line, cursor, into)?;
                let (targets, types): (Vec<Targets>, Vec<Vec<Type>>) = alternatives.into_iter().unzip();
                for register in targets.iter().flat_map(|targets| &targets.registers) {
                    self.trace.forget(*register, "fetched from a cursor");
                }
                let width = types.iter().map(Vec::len).max().unwrap_or_default();
                let scratch: Vec<u32> = (0..width).map(|_| self.scratch()).collect();
                for register in &scratch {
                    self.trace.forget(*register, "fetched from a cursor");
                }
                let row = self.row_of_domain(&into.targets);
                let gathers = row.is_some();
                let casts = Casts {
                    environment: self.environment.clone(),
                    linker: self.shared_linker(),
                    types,
                    row,
                    scratch: scratch.clone(),
                    found,
                    kept: Mutex::new(Vec::new()),
                };
                Some(FetchInto { targets, scratch, gathers, casts: Arc::new(casts) })
            }
        };
        self.found_unknown();
        Ok(OperationKind::Fetch(Box::new(FetchPlan { cursor: self.cursor_place(cursor), direction, into })))
    }

    /// Where FETCH stores its rows, and the types of that, for each structure they may have; where these
    /// show at run time, the place and what is known of it.
    fn fetched(&mut self, line: u32, cursor: VariableId, into: &Into) -> Result<(Alternatives, Found)> {
        let of_record =
            |target: &Target| target.path.is_empty() && self.storage[target.variable as usize].is_record();
        let columns = match into.targets.iter().any(of_record) {
            true => self.cursor_columns(cursor),
            false => Some(Vec::new()),
        };
        match (&into.targets[..], columns) {
            ([target], None) if self.takes_record(&into.targets) => {
                let at = FETCHES | u64::from(line) << 16 | u64::from(cursor);
                let place = shape::Place::new(self.routine, at);
                let structures = self.environment.shapes.get(place);
                let alternatives = self.each_of(target.variable, &structures)?;
                Ok((alternatives, Some((place, structures))))
            }
            (targets, columns) => Ok((vec![self.places(targets, &columns.unwrap_or_default())?], None)),
        }
    }

    pub(super) fn close_cursor(&self, cursor: VariableId) -> OperationKind {
        OperationKind::Close { cursor: self.cursor_place(cursor) }
    }

    /// FOR over a bound cursor.
    pub(super) fn for_cursor(
        &mut self,
        site: Site,
        label: &Option<String>,
        record: VariableId,
        cursor: VariableId,
        args: &[Fragment],
        body: &[Statement],
    ) -> Result<Path> {
        let target = Target { variable: record, path: Vec::new(), text: String::new(), start: 0 };
        let prepared = self.open_bound(site, cursor, args).and_then(|(open, columns)| {
            let (targets, _) = self.places(std::slice::from_ref(&target), &columns)?;
            Ok((open, targets))
        });
        let (open, targets) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Ok((self.or_fail(site, Err(error)), true)),
        };
        let (number, operations) =
            self.loop_over_rows(label, body, Rounds::Ending, (&targets.registers, "fetched from a cursor"))?;
        let kind = LoopKind::Cursor { open: Box::new(open), targets };
        Ok((self.loop_operation(site, number, kind, operations), true))
    }

    /// `UPDATE … WHERE CURRENT OF` and DELETE: `statement` has TRUE in the condition's place.
    /// The key of the cursor's row is read into registers first.
    pub(super) fn current_of(
        &mut self,
        site: Site,
        mut statement: SqlAst,
        cursor: &str,
        text: &Fragment,
    ) -> Result<(SqlAst, Operation)> {
        let (table, qualifier) = changed(&statement, self.environment)?;
        let key = key_of(&table)?;
        let mut registers = Vec::new();
        let mut condition: Option<Expr> = None;
        for (column, ty) in key {
            let register = self.scratch();
            self.trace.forget(register, "the row of a cursor");
            registers.push(register);
            self.hidden.push(BoundExpr::new(ExprKind::Variable(register), ty));
            let name = format!("{HIDDEN}{}", self.hidden.len() - 1);
            let equal = Expr::BinaryOp {
                left: Box::new(Expr::CompoundIdentifier(vec![
                    qualifier.clone(),
                    Ident::with_quote('"', column),
                ])),
                op: BinaryOperator::Eq,
                right: Box::new(Expr::Identifier(Ident::with_quote('"', name))),
            };
            condition = Some(match condition {
                None => equal,
                Some(before) => {
                    Expr::BinaryOp { left: Box::new(before), op: BinaryOperator::And, right: Box::new(equal) }
                }
            });
        }
        match &mut statement {
            SqlAst::Update(update) => update.selection = condition,
            SqlAst::Delete(delete) => delete.selection = condition,
            _ => {}
        }
        // A variable of that name holds the cursor's; otherwise it is the cursor's itself.
        let named = self.body.names.find(text.names, &[cursor], &|_| false).map(|(id, _)| id);
        let name = match named {
            Some(id) => CursorName::In(self.cursor_place(id)),
            None => CursorName::Is(cursor.into()),
        };
        let plan = CurrentOfPlan {
            cursor: name,
            table: table.oid,
            table_name: table.name.as_str().into(),
            text: text.text.as_str().into(),
            registers,
        };
        Ok((statement, Operation { site, rights: None, kind: OperationKind::CurrentOf(Box::new(plan)) }))
    }

    /// The value of a hidden name.
    pub(in crate::compile) fn hidden_value(&self, name: &str) -> Option<BoundExpr> {
        self.hidden.get(name.strip_prefix(HIDDEN)?.parse::<usize>().ok()?).cloned()
    }

    /// A bound cursor's variable holds the cursor's name from the start.
    pub(super) fn name_cursor(&mut self, id: VariableId, site: Site) -> Operation {
        let name = Datum::text(self.body.variables[id as usize].name.as_str());
        let register = self.register_of(id);
        let kind = self
            .plan_part(&Self::constant(name, Type::REFCURSOR))
            .map(|value| OperationKind::Assign { register, value });
        self.or_fail(site, kind)
    }
}

type BoundColumns = Vec<(String, Type)>;
type Alternatives = Vec<(Targets, Vec<Type>)>;
type Found = Option<(shape::Place, Vec<shape::Structure>)>;

/// How many lists of casts one FETCH keeps; beyond that they are made again.
const CASTS_KEPT_MAX: usize = 64;

/// Casts from the columns a cursor turns out to have to the types of FETCH's targets.
struct Casts {
    environment: Environment,
    linker: Arc<dyn RoutineLinker + Send + Sync>,
    /// Those of each structure that rows may have.
    types: Vec<Vec<Type>>,
    /// The composite type whose domain the only target is of: rows come as records then.
    row: Option<Type>,
    scratch: Vec<u32>,
    /// Where a record takes the structure of rows that show at run time.
    found: Found,
    /// By the structure and the columns' types.
    kept: Mutex<Vec<(usize, Vec<Type>, CastList)>>,
}

impl FetchCasts for Casts {
    fn of(&self, columns: &[OutputColumn], session: &dyn SessionHost) -> ExecResult<(usize, CastList)> {
        let taken = match &self.found {
            Some((place, compiled)) => self.environment.shapes.check(*place, compiled, columns)?,
            None => 0,
        };
        let from: Vec<Type> = columns.iter().map(|column| column.ty).collect();
        let known = |(other, types, _): &&(usize, Vec<Type>, CastList)| *other == taken && *types == from;
        if let Some((_, _, known)) = self.kept.lock().iter().find(known) {
            return Ok((taken, known.clone()));
        }
        // The columns may have types that were made after the routine was compiled.
        let environment = self.environment.of_session(session);
        let linker = self
            .linker
            .at(&environment.catalog, Some(environment.reader()))
            .unwrap_or_else(|| self.linker.clone());
        let env = CompileEnv {
            tables: environment.tables.as_ref(),
            catalog: &environment.catalog,
            search_path: &environment.search_path,
            routines: linker.as_ref(),
        };
        let mut casts = Vec::new();
        let types = self.types.get(taken).map(Vec::as_slice).unwrap_or_default();
        let gathered = match (self.row, &self.scratch[..], types) {
            (Some(row), [register], [declared]) => {
                let record = BoundExpr::new(ExprKind::Variable(*register), Type::RECORD);
                let row = crate::compile::cast::row_of_record(&record, &from, row, &environment)?;
                let cast = crate::compile::cast::cast(row, *declared, &environment)?;
                casts.push(Some(native::compile_expr(&cast, &env)?));
                true
            }
            _ => false,
        };
        let each: &[Type] = if gathered { &[] } else { &from };
        for ((from, to), register) in each.iter().zip(types).zip(&self.scratch) {
            if from.oid == to.oid && (to.typmod < 0 || to.typmod == from.typmod) {
                casts.push(None);
                continue;
            }
            let value = BoundExpr::new(ExprKind::Variable(*register), *from);
            let cast = crate::compile::cast::cast(value, *to, &environment)?;
            casts.push(Some(native::compile_expr(&cast, &env)?));
        }
        let casts: CastList = Arc::new(casts);
        let mut kept = self.kept.lock();
        if kept.len() >= CASTS_KEPT_MAX {
            kept.clear();
        }
        kept.push((taken, from, casts.clone()));
        Ok((taken, casts))
    }
}
