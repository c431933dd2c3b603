//! Cursors: OPEN, FETCH, MOVE, CLOSE, loops over cursors, and WHERE CURRENT OF.
//!
//! A cursor's query runs at OPEN ([`archipel_planner::native::cursor`]). Where the query reads
//! one table row by row, or locks the rows of several, the tables' primary keys stand behind the
//! columns the query names, so that CURRENT OF is a condition on a key; they are left out of what
//! FETCH answers.

use std::sync::Arc;

use archipel_planner::bind;
use archipel_planner::bound::{BoundExpr, BoundStatement, ExprKind, OutputColumn};
use archipel_planner::native::cursor::CursorKey;
use archipel_planner::native::{self, CompileEnv, ExecResult, RoutineLinker};
use archipel_sql::ast::{FetchDirection, Statement as SqlAst, row_lock};
use archipel_sql::catalog::{ROW_PLACE, Table, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::SessionHost;
use archipel_sql::parser::parse_statement;
use archipel_sql::types::Type;
use parking_lot::Mutex;
use sqlparser::ast::{
    BinaryOperator, Expr, FromTable, GroupByExpr, Ident, LockClause, SelectItem, SetExpr, TableFactor,
    TableWithJoins,
};

use super::control::{Path, walk};
use super::invoke::TextFor;
use super::loops::Rounds;
use super::{Compiler, Environment, shape};
use crate::plpgsql::ast::*;
use crate::run::operation::*;

/// Tells places of FETCH from those of EXECUTE.
const FETCHES: u64 = 1 << 63;

/// Marks names no SQL can spell: the key of a cursor's row.
pub(super) const HIDDEN: char = '\u{1}';

/// Binds a cursor's query, the keys of its tables behind its columns where there are some.
pub(super) struct BoundCursor {
    pub bound: BoundStatement,
    pub columns: Arc<[OutputColumn]>,
    keys: Arc<[CursorKey]>,
    /// FOR UPDATE and the like: such a cursor does not move backwards.
    locks: bool,
}

impl BoundCursor {
    /// Binds a cursor's query, with the keys of its rows where it is simply updatable.
    ///
    /// # Errors
    /// Those of binding.
    pub fn of(
        statement: &SqlAst,
        environment: &Environment,
        bind: &dyn Fn(&SqlAst) -> Result<BoundStatement>,
    ) -> Result<BoundCursor> {
        let locks = matches!(statement, SqlAst::Query(query) if !query.locks.is_empty());
        if let Some((keyed, mut keys)) = with_row_keys(statement, environment)
            && let Ok(bound) = bind(&keyed)
        {
            let columns = bound.columns();
            let added: usize = keys.iter().map(|key| key.values.len()).sum();
            let visible = columns.len() - added;
            for key in &mut keys {
                key.values = visible + key.values.start..visible + key.values.end;
            }
            let columns = columns[..visible].into();
            return Ok(BoundCursor { bound, columns, keys: keys.into(), locks });
        }
        let bound = bind(statement)?;
        if bound.columns().is_empty() {
            return Err(SqlError::new(
                SqlState(*b"42P11"),
                format!("cannot open {} query as cursor", statement.tag()),
            ));
        }
        let columns = bound.columns().into();
        Ok(BoundCursor { bound, columns, keys: Arc::default(), locks })
    }

    /// The same with its query compiled; `text`: the query as it is written.
    pub fn compiled(self, compiled: native::CompiledStatement, text: &str) -> CursorQuery {
        let is_over_rows = match &self.bound {
            BoundStatement::Query(query) => query.rel.is_over_rows(),
            _ => true,
        };
        CursorQuery {
            is_over_rows,
            compiled,
            text: text.trim().into(),
            columns: self.columns,
            keys: self.keys,
            locks: self.locks,
        }
    }

    fn named(&self) -> Vec<(String, Type)> {
        self.columns.iter().map(|c| (c.name.clone(), c.ty)).collect()
    }
}

/// A query over the rows of one table, or that locks those of several, with their primary keys behind
/// its columns; places count from there. Where a key cannot stand there (beside an aggregate, say), it
/// does not bind.
pub fn with_row_keys(statement: &SqlAst, environment: &Environment) -> Option<(SqlAst, Vec<CursorKey>)> {
    let SqlAst::Query(query) = statement else { return None };
    let SetExpr::Select(select) = &*query.body else { return None };
    let grouped = match &select.group_by {
        GroupByExpr::Expressions(by, _) => !by.is_empty(),
        GroupByExpr::All(_) => true,
    };
    if query.with.is_some() || select.distinct.is_some() || grouped || select.having.is_some() {
        return None;
    }
    let tables: Vec<(TableRef, Ident)> = match (&select.from[..], query.locks.is_empty()) {
        ([only], true) => table_of(only, environment).into_iter().collect(),
        (_, true) => return None,
        (from, false) => {
            let joined = from.iter().flat_map(|from| from.joins.iter().map(|join| &join.relation));
            let factors = from.iter().map(|from| &from.relation).chain(joined);
            let tables = factors.filter_map(|factor| table_of_factor(factor, environment));
            tables.filter(|(_, name)| query.locks.iter().any(|lock| locks(lock, name))).collect()
        }
    };
    let (mut keyed, mut keys, mut added) = (query.clone(), Vec::new(), 0);
    let SetExpr::Select(select) = &mut *keyed.body else { return None };
    for (table, qualifier) in tables {
        let Some(key) = row_key(&table) else { continue };
        for (name, _) in &key {
            let path = Expr::CompoundIdentifier(vec![qualifier.clone(), Ident::with_quote('"', *name)]);
            select.projection.push(SelectItem::UnnamedExpr(path));
        }
        keys.push(CursorKey { table: table.oid, values: added..added + key.len() });
        added += key.len();
    }
    (!keys.is_empty()).then_some((SqlAst::Query(keyed), keys))
}

/// The columns that tell a table's row from the others, with their types: its primary key, or the
/// place of the row.
fn row_key(table: &Table) -> Option<Vec<(&str, Type)>> {
    let Some(key) = &table.primary_key else {
        return table.has_hidden_id().then(|| vec![(ROW_PLACE, Type::TID)]);
    };
    let columns = key.columns.iter().map(|column| &table.columns[usize::from(*column)]);
    Some(columns.map(|column| (column.name.as_str(), column.ty)).collect())
}

/// Whether FOR UPDATE, or the like, locks the rows of the table that has this name in the query.
fn locks(lock: &LockClause, name: &Ident) -> bool {
    row_lock(lock).is_ok_and(|lock| lock.of.is_none_or(|of| of == bind::name::ident_name(name)))
}

/// The one table of a FROM item, and the name its columns have there.
fn table_of(from: &TableWithJoins, environment: &Environment) -> Option<(TableRef, Ident)> {
    from.joins.is_empty().then(|| table_of_factor(&from.relation, environment)).flatten()
}

fn table_of_factor(factor: &TableFactor, environment: &Environment) -> Option<(TableRef, Ident)> {
    let TableFactor::Table { name, alias, args: None, .. } = factor else { return None };
    let parts = bind::name::object_name_parts(name).ok()?;
    let (last, schema) = parts.split_last()?;
    let schema = schema.last().map(String::as_str);
    let table = environment.catalog.table(schema, last, &environment.search_path)?;
    let qualifier = match alias {
        Some(alias) => alias.name.clone(),
        None => Ident::with_quote('"', last),
    };
    Some((table, qualifier))
}

/// The table whose row an UPDATE or DELETE with WHERE CURRENT OF changes.
pub struct ChangedTable {
    pub table: TableRef,
    /// The name its columns have in the statement, as SQL writes it.
    pub qualifier: String,
    /// The columns that tell its rows apart, likewise, with their types.
    pub key: Vec<(String, Type)>,
}

/// The table that a statement with WHERE CURRENT OF changes.
pub fn changed_table(statement: &SqlAst, environment: &Environment) -> Result<ChangedTable> {
    let (table, qualifier) = changed(statement, environment)?;
    let key = key_of(&table)?;
    let quoted = |(column, ty): (&str, Type)| (Ident::with_quote('"', column).to_string(), ty);
    let key = key.into_iter().map(quoted).collect();
    Ok(ChangedTable { qualifier: qualifier.to_string(), key, table })
}

fn changed(statement: &SqlAst, environment: &Environment) -> Result<(TableRef, Ident)> {
    let changed = match statement {
        SqlAst::Update(update) => Some(&update.table),
        SqlAst::Delete(delete) => match &delete.from {
            FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables) => tables.first(),
        },
        _ => None,
    };
    changed
        .and_then(|from| table_of(from, environment))
        .ok_or_else(|| SqlError::unsupported("WHERE CURRENT OF here"))
}

fn key_of(table: &Table) -> Result<Vec<(&str, Type)>> {
    row_key(table).ok_or_else(|| {
        SqlError::unsupported("WHERE CURRENT OF for a partitioned table without a primary key")
    })
}

/// How FETCH and MOVE go, once their count is known.
fn fixed(direction: &Direction) -> Option<FetchDirection> {
    Some(match direction {
        Direction::Next => FetchDirection::Forward(1),
        Direction::Prior => FetchDirection::Backward(1),
        Direction::First => FetchDirection::Absolute(1),
        Direction::Last => FetchDirection::Absolute(-1),
        Direction::All { forward: true } => FetchDirection::Forward(i64::MAX),
        Direction::All { forward: false } => FetchDirection::Backward(i64::MAX),
        _ => return None,
    })
}

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
    pub(super) fn hidden_value(&self, name: &str) -> Option<BoundExpr> {
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
        let linker = self.linker.at(&environment.catalog).unwrap_or_else(|| self.linker.clone());
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
                let row = super::into::row_of_record(&record, &from, row, &environment)?;
                let cast = super::scope::cast(row, *declared, &environment)?;
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
            let cast = super::scope::cast(value, *to, &environment)?;
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
