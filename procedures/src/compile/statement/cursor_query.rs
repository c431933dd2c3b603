//! The queries of cursors, and changes of the rows these stand on.

use std::sync::Arc;

use archipel_planner::bound::{BoundStatement, OutputColumn};
use archipel_planner::native::cursor::CursorKey;
use archipel_planner::{bind, native};
use archipel_sql::ast::{FetchDirection, Statement as SqlAst, row_lock};
use archipel_sql::catalog::{ROW_PLACE, Table, TableRef};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::types::Type;
use sqlparser::ast::{
    Expr, FromTable, GroupByExpr, Ident, LockClause, SelectItem, SetExpr, TableFactor, TableWithJoins,
};

use crate::compile::Environment;
use crate::plpgsql::ast::Direction;
use crate::run::operation::CursorQuery;

/// Marks names no SQL can spell: the key of a cursor's row.
pub(super) const HIDDEN: char = '\u{1}';

/// Binds a cursor's query, the keys of its tables behind its columns where there are some.
pub(in crate::compile) struct BoundCursor {
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

    pub(super) fn named(&self) -> Vec<(String, Type)> {
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

pub(super) fn changed(statement: &SqlAst, environment: &Environment) -> Result<(TableRef, Ident)> {
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

pub(super) fn key_of(table: &Table) -> Result<Vec<(&str, Type)>> {
    row_key(table).ok_or_else(|| {
        SqlError::unsupported("WHERE CURRENT OF for a partitioned table without a primary key")
    })
}

/// How FETCH and MOVE go, once their count is known.
pub(super) fn fixed(direction: &Direction) -> Option<FetchDirection> {
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
