//! SEARCH and CYCLE (rewriteSearchCycle.c): columns that a recursive query gets beside its own. Both
//! terms are rewritten as queries around what was written:
//!
//! - the first one begins the sequence or the path with the row it found;
//! - the recursive one appends its row to what the row it came from has, marks a row that is on its
//!   own path, and goes no further from a marked one.

use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::{CycleClause, RecursionClauses, SearchClause, parse_query, recursion_clauses};
use archipel_sql::type_table::TypeNames;
use sqlparser::ast;
use sqlparser::ast::{Expr, Ident, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins};

use crate::bind::binder::Binder;
use crate::bind::level::{Level, LevelKind};
use crate::bind::name::{ident_name, schema_and_name};

/// Names of the queries around the terms: nobody can write them unquoted.
const FIRST: &str = "\"*TLOCRN*\"";
const NEXT: &str = "\"*TROCRN*\"";

/// The terms of a recursive query with the columns of its clauses.
pub(super) struct Traversal {
    pub first: SetExpr,
    pub recursive: SetExpr,
    /// All columns; the query's own come first.
    pub names: Vec<String>,
    /// How many are the query's own.
    pub own: usize,
}

fn refused(state: SqlState, message: String, position: Option<u32>) -> SqlError {
    SqlError::new(state, message).at(position)
}

/// The clauses after a query of WITH.
pub(crate) fn clauses_of(cte: &ast::Cte) -> Result<RecursionClauses> {
    match &cte.from {
        None => Ok(RecursionClauses::default()),
        Some(name) => recursion_clauses(&name.value)
            .unwrap_or_else(|| Err(SqlError::unsupported("FROM in a WITH query's name"))),
    }
}

/// Where the first of the clauses stands; `None` if there are none.
pub(crate) fn place_of(clauses: &RecursionClauses) -> Option<Option<u32>> {
    let search = clauses.search.as_ref().map(|search| search.position);
    search.or_else(|| clauses.cycle.as_ref().map(|cycle| cycle.position))
}

/// What the clauses are called in messages.
struct Clause<'c> {
    kind: &'static str,
    columns: &'c [String],
    /// The columns it adds, and what they are called.
    added: Vec<(&'static str, &'c str)>,
    position: Option<u32>,
}

impl Clause<'_> {
    fn check(&self, own: &[String]) -> Result<()> {
        let Clause { kind, columns, added, position } = self;
        for (place, column) in columns.iter().enumerate() {
            if !own.contains(column) {
                let message = format!("{kind} column \"{column}\" not in WITH query column list");
                return Err(refused(SqlState::SYNTAX_ERROR, message, *position));
            }
            if columns[..place].contains(column) {
                let message = format!("{kind} column \"{column}\" specified more than once");
                return Err(refused(SqlState::DUPLICATE_COLUMN, message, *position));
            }
        }
        for (what, name) in added {
            if own.iter().any(|column| column == name) {
                let message = format!("{what} column name \"{name}\" already used in WITH query column list");
                return Err(refused(SqlState::SYNTAX_ERROR, message, *position));
            }
        }
        same(added, position)
    }
}

/// Fails for two columns of one name.
fn same(added: &[(&'static str, &str)], position: &Option<u32>) -> Result<()> {
    for (place, (what, name)) in added.iter().enumerate() {
        if let Some((other, _)) = added[place + 1..].iter().find(|(_, other)| other == name) {
            let message = format!("{what} column name and {other} column name are the same");
            return Err(refused(SqlState::SYNTAX_ERROR, message, *position));
        }
    }
    Ok(())
}

fn check(clauses: &RecursionClauses, own: &[String]) -> Result<()> {
    let mut added = Vec::new();
    if let Some(SearchClause { columns, sequence, position, .. }) = &clauses.search {
        added.push(("search sequence", sequence.as_str()));
        Clause { kind: "search", columns, added: added.clone(), position: *position }.check(own)?;
    }
    if let Some(CycleClause { columns, mark, path, position, .. }) = &clauses.cycle {
        let of_cycle = vec![("cycle mark", mark.as_str()), ("cycle path", path.as_str())];
        added.extend(of_cycle.iter().copied());
        Clause { kind: "cycle", columns, added: of_cycle, position: *position }.check(own)?;
    }
    same(&added, &place_of(clauses).flatten())
}

/// `ROW(of.a, of.b)`.
fn row(of: &str, columns: &[String]) -> String {
    let items: Vec<String> =
        columns.iter().map(|column| format!("{of}.{}", quote_identifier(column))).collect();
    format!("ROW({})", items.join(", "))
}

impl Binder<'_, '_> {
    /// The terms of the recursive query `name` as its clauses have them.
    pub(super) fn traversal(
        &mut self,
        name: &str,
        names: &[String],
        (first, recursive): (&SetExpr, &SetExpr),
        clauses: &RecursionClauses,
    ) -> Result<Option<Traversal>> {
        if place_of(clauses).is_none() {
            return Ok(None);
        }
        let side = |side: &str| {
            let message =
                format!("with a SEARCH or CYCLE clause, the {side} side of the UNION must be a SELECT");
            SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        };
        if is_set_operation(first) {
            return Err(side("left"));
        }
        if is_set_operation(recursive) {
            return Err(side("right"));
        }
        let found = self.set_operand(first)?.columns;
        let given = names.iter().cloned().map(Some).chain(std::iter::repeat(None));
        let mut own: Vec<String> =
            found.into_iter().zip(given).map(|(column, name)| name.unwrap_or(column.name)).collect();
        check(clauses, &own)?;
        let count = own.len();
        let columns = own.clone();
        let (mut begins, mut goes_on, mut condition) = (Vec::new(), Vec::new(), String::new());
        if let Some(search) = &clauses.search {
            let sequence = format!("{NEXT}.{}", quote_identifier(&search.sequence));
            let (here, next) = (row(FIRST, &search.columns), row(NEXT, &search.columns));
            if search.breadth {
                begins.push(here.replacen("ROW(", "ROW(0::bigint, ", 1));
                let depth = format!("ROW(archipel_first_field({sequence}) + 1, ");
                goes_on.push(next.replacen("ROW(", &depth, 1));
            } else {
                begins.push(format!("ARRAY[{here}]"));
                goes_on.push(format!("{sequence} || {next}"));
            }
            own.push(search.sequence.clone());
        }
        if let Some(cycle) = &clauses.cycle {
            let (value, default) = self.cycle_marks(cycle)?;
            let path = format!("{NEXT}.{}", quote_identifier(&cycle.path));
            let next = row(NEXT, &cycle.columns);
            begins.push(default.clone());
            begins.push(format!("ARRAY[{}]", row(FIRST, &cycle.columns)));
            goes_on.push(format!("CASE WHEN {next} = ANY ({path}) THEN {value} ELSE {default} END"));
            goes_on.push(format!("{path} || {next}"));
            condition = format!(" WHERE {NEXT}.{} <> {value}", quote_identifier(&cycle.mark));
            own.extend([cycle.mark.clone(), cycle.path.clone()]);
        }
        let list = |of: &str, extra: &[String]| {
            let plain = columns.iter().map(|column| format!("{of}.{}", quote_identifier(column)));
            plain.chain(extra.iter().cloned()).collect::<Vec<_>>().join(", ")
        };
        let quoted =
            |names: &[String]| names.iter().map(|name| quote_identifier(name)).collect::<Vec<_>>().join(", ");
        let first = around(
            &format!("SELECT {} FROM (SELECT 1) {FIRST}({})", list(FIRST, &begins), quoted(&columns)),
            first.clone(),
        )?;
        let recursive = around(
            &format!("SELECT {} FROM (SELECT 1) {NEXT}({}){condition}", list(NEXT, &goes_on), quoted(&own)),
            with_columns(recursive, name, &own[count..])?,
        )?;
        Ok(Some(Traversal { first, recursive, names: own, own: count }))
    }

    /// The marks of a row that closes a cycle and of others, as text of one type.
    fn cycle_marks(&mut self, cycle: &CycleClause) -> Result<(String, String)> {
        let Some((value, default)) = &cycle.values else {
            return Ok(("TRUE".to_owned(), "FALSE".to_owned()));
        };
        let position = self.start(default);
        let types = self.with_level(Level::new(LevelKind::Plain, Vec::new()), |binder| {
            Ok([binder.expr(value)?.ty, binder.expr(default)?.ty])
        })?;
        let common = self.common_type(&types.0, "CYCLE").map_err(|error| error.at(position))?;
        self.require_equality(common)?;
        let cast = |value: &Expr| format!("CAST({value} AS {})", self.format_type(common));
        Ok((cast(value), cast(default)))
    }
}

fn is_set_operation(body: &SetExpr) -> bool {
    match body {
        SetExpr::SetOperation { .. } => true,
        SetExpr::Query(query) => query.with.is_none() && is_set_operation(&query.body),
        _ => false,
    }
}

/// A query around another in the place of its derived table.
fn around(text: &str, inner: SetExpr) -> Result<SetExpr> {
    let mut query = parse_query(text)?;
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) =
            select.from.first_mut().map(|from| &mut from.relation)
    {
        *subquery.body = inner;
    }
    Ok(*query.body)
}

/// A recursive term that also answers these columns of the query it refers to.
fn with_columns(recursive: &SetExpr, name: &str, columns: &[String]) -> Result<SetExpr> {
    let mut changed = recursive.clone();
    let reference = select_of(&mut changed).and_then(|select| {
        let reference = select.from.iter().find_map(|from| reference_in(from, name))?;
        for column in columns {
            let parts = vec![reference.clone(), Ident::with_quote('"', column.clone())];
            select.projection.push(SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)));
        }
        Some(())
    });
    match reference {
        Some(()) => Ok(changed),
        None => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!(
                "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{name}\" must be at the top level of its right-hand SELECT"
            ),
        )),
    }
}

fn select_of(body: &mut SetExpr) -> Option<&mut Select> {
    match body {
        SetExpr::Select(select) => Some(select.as_mut()),
        SetExpr::Query(query) => {
            let Query { with: None, body, .. } = query.as_mut() else { return None };
            select_of(body)
        }
        _ => None,
    }
}

/// What a query is called where it stands among these tables.
fn reference_in(from: &TableWithJoins, name: &str) -> Option<Ident> {
    let of_factor = |factor: &TableFactor| match factor {
        TableFactor::Table { name: table, alias, args: None, .. } => match schema_and_name(table) {
            Ok((None, found)) if found == name => Some(match alias {
                Some(alias) => Ident::with_quote('"', ident_name(&alias.name)),
                None => Ident::with_quote('"', found),
            }),
            _ => None,
        },
        TableFactor::NestedJoin { table_with_joins, alias: None, .. } => reference_in(table_with_joins, name),
        _ => None,
    };
    of_factor(&from.relation).or_else(|| from.joins.iter().find_map(|join| of_factor(&join.relation)))
}
