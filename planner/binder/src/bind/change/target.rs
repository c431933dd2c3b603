//! What INSERT, UPDATE and DELETE change: a table, or the table below a view that is simple enough
//! to tell which of its rows is meant (rewriteTargetView), or the view itself where INSTEAD OF
//! triggers take its rows.
//!
//! A view is simple if it chooses columns and rows of one table, or of one such view. Its columns
//! are expressions over the table's row; those that are plain columns can be changed.

use std::sync::Arc;

use archipel_sql::catalog::HIDDEN_COLUMN;
use archipel_sql::catalog::{
    Catalog, CheckOption, Privileges, SYSTEM_COLUMNS, Table, TableKind, TableRef, TriggerEvent, View,
    ViewReference,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{FunctionContext, Intrinsic};
use archipel_sql::system::Changeable;
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::{ObjectName, Query, Select, SetExpr, TableAlias, TableFactor};

use crate::bind::binder::{BindEnv, Binder};
use crate::bind::from::barrier::{all_of, in_turn};
use crate::bind::from::{behind_family, row_number};
use crate::bind::level::{Relation, ScopeColumn};
use crate::bind::name::{object_name_parts, own_rows, schema_and_name};
use crate::bind::visit::{raise_depth, visit_expr, visit_expr_mut};
use crate::bound::*;
use crate::partition::Family;

/// The kind of change, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Insert,
    Update,
    Delete,
    Merge,
}

impl Change {
    /// What it needs; a MERGE says it with each of its actions.
    fn privilege(self) -> Privileges {
        match self {
            Change::Insert => Privileges::INSERT,
            Change::Update => Privileges::UPDATE,
            Change::Delete => Privileges::DELETE,
            Change::Merge => Privileges::NONE,
        }
    }
}

/// See the module's head.
pub(crate) struct ChangeTarget {
    pub table: TableRef,
    /// Where its rows are, if others keep them.
    pub family: Option<Arc<Family>>,
    /// The table with the numbers of its rows, if the statement asks for those.
    pub numbered: Option<TableRef>,
    view: Option<ViewTarget>,
    /// The names that a stored body knows it and its columns by.
    known_as: Option<ViewReference>,
}

/// A simple view over the rows of a table.
struct ViewTarget {
    view: TableRef,
    /// Its columns.
    columns: Vec<BoundExpr>,
    /// Which rows it shows, with the names of the views that say so.
    filters: Vec<(String, BoundExpr)>,
    /// What its check options demand of new rows, with the views' names.
    checks: Vec<(String, BoundExpr)>,
    /// In whose name the table is changed; `None`: of whoever runs the statement.
    acting: Option<Oid>,
    /// How many of the filters are those of a security barrier: no other is to learn anything of rows that they
    /// leave out.
    barred: usize,
}

impl ChangeTarget {
    pub fn of_table(table: TableRef) -> ChangeTarget {
        ChangeTarget { table, family: None, numbered: None, view: None, known_as: None }
    }

    /// How many columns a row of it has, its table's number included where that is not always the
    /// same, or its own.
    pub fn row_width(&self) -> usize {
        match &self.family {
            Some(family) => family.root.columns.len() + 1,
            None => self.table.columns.len() + usize::from(self.numbered.is_some()),
        }
    }

    /// What a column is called today that the statement knows by this name.
    fn today<'n>(&'n self, name: &'n str) -> &'n str {
        let Some(known) = &self.known_as else { return name };
        let named = self.view.as_ref().map_or(&self.table, |view| &view.view);
        let place = known.columns.iter().position(|column| column == name);
        place.and_then(|place| named.columns.get(place)).map_or(name, |column| &column.name)
    }

    /// The table's column that a name at a position means.
    pub fn column(&self, name: &str, change: Change, position: Option<u32>) -> Result<u16> {
        let name = self.today(name);
        let Some(view) = &self.view else {
            let found = self.table.column_index(name);
            return found.ok_or_else(|| {
                let error = match change {
                    Change::Update if SYSTEM_COLUMNS.contains(&name) => SqlError::new(
                        SqlState::FEATURE_NOT_SUPPORTED,
                        format!("cannot assign to system column \"{name}\""),
                    ),
                    _ => undefined_target(name, &self.table),
                };
                error.at(position)
            });
        };
        let found = view.view.column_index(name);
        let place = found.ok_or_else(|| undefined_target(name, &view.view).at(position))?;
        view.base_column(usize::from(place), change)
    }

    /// Gives what was named, and its columns, the names that a stored body knows them by. Columns that came
    /// later are none to it.
    fn put_known_names(&self, relation: &mut Relation) {
        let Some(known) = &self.known_as else { return };
        relation.name = Some(known.name.clone());
        for (place, column) in relation.columns.iter_mut().enumerate() {
            match known.columns.get(place) {
                Some(name) => column.name.clone_from(name),
                None => column.hidden = true,
            }
        }
    }

    /// What was named: the view, or the table.
    pub fn named(&self) -> Oid {
        self.view.as_ref().map_or(self.table.oid, |view| view.view.oid)
    }

    /// The table below a view, and in whose name it is changed.
    pub fn below(&self) -> Option<(Oid, Option<Oid>)> {
        self.view.as_ref().map(|view| (self.table.oid, view.acting))
    }

    /// How many columns that has.
    pub fn width(&self) -> u16 {
        self.view.as_ref().map_or(&self.table, |view| &view.view).columns.len() as u16
    }

    /// The one-based number of a column in what was named.
    pub fn named_column(&self, name: &str) -> Option<u16> {
        let named = self.view.as_ref().map_or(&self.table, |view| &view.view);
        named.column_index(self.today(name)).map(|place| place + 1)
    }

    /// The columns an INSERT without a list fills, as far as they can be filled.
    pub fn all_columns(&self) -> Vec<usize> {
        let Some(view) = &self.view else {
            let known = self.known_as.as_ref().map_or(&[][..], |known| &known.columns[..]);
            let is_hidden = |place: &usize| known.get(*place).is_some_and(|name| name == HIDDEN_COLUMN);
            return (0..self.table.columns.len()).filter(|place| !is_hidden(place)).collect();
        };
        view.columns.iter().map_while(plain_column).map(usize::from).collect()
    }

    /// Refuses a value beyond [`ChangeTarget::all_columns`], for a column that cannot be filled,
    /// and two values for one column of the table.
    pub fn check_fillable(&self, given: usize) -> Result<()> {
        let Some(view) = &self.view else { return Ok(()) };
        let filled = self.all_columns();
        let filled = &filled[..filled.len().min(given)];
        if let Some(twice) = filled.iter().enumerate().find(|(at, column)| filled[..*at].contains(column)) {
            let name = &self.table.columns[*twice.1].name;
            let message = format!("multiple assignments to same column \"{name}\"");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        let first = view.columns.iter().position(|column| plain_column(column).is_none());
        match first.filter(|first| *first < given) {
            Some(first) => view.base_column(first, Change::Insert).map(drop),
            None => Ok(()),
        }
    }

    /// What a column that is not given becomes, where the view says so.
    pub fn default(&self, column: usize) -> Option<&str> {
        let view = self.view.as_ref()?;
        let place = view.columns.iter().position(|expr| plain_column(expr) == Some(column as u16))?;
        view.view.columns.get(place)?.default.as_deref()
    }

    /// In whose name the table is changed by a statement in this name.
    pub fn acting(&self, around: Option<Oid>) -> Option<Oid> {
        self.view.as_ref().map_or(around, |view| view.acting)
    }

    /// The condition of a change: what policies demand, the view's and the statement's own.
    pub fn filter(&self, own: Option<BoundExpr>, policies: Vec<BoundExpr>) -> Option<BoundExpr> {
        let own = self.filter_of_view(own);
        if policies.is_empty() { own } else { all_of(in_turn(policies, own.into_iter().collect())) }
    }

    fn filter_of_view(&self, own: Option<BoundExpr>) -> Option<BoundExpr> {
        let Some(view) = &self.view else { return own };
        let (barrier, others) = view.filters.split_at(view.barred.min(view.filters.len()));
        let of = |filters: &[(String, BoundExpr)]| -> Vec<BoundExpr> {
            filters.iter().map(|(_, filter)| filter.clone()).collect()
        };
        let mut others = of(others);
        others.extend(own);
        all_of(in_turn(of(barrier), others))
    }

    /// What new rows must meet beside the table's own conditions.
    pub fn checks(&self) -> impl Iterator<Item = BoundCheck> {
        self.view.iter().flat_map(|view| &view.checks).map(|(name, expr)| {
            let kind = ExprKind::IsBool { expr: Box::new(expr.clone()), value: true, negated: false };
            let expr = BoundExpr::new(kind, Type::BOOL);
            BoundCheck { name: name.clone(), expr, kind: CheckKind::View, always: true }
        })
    }
}

impl ViewTarget {
    fn base_column(&self, place: usize, change: Change) -> Result<u16> {
        plain_column(&self.columns[place]).ok_or_else(|| {
            let what = match change {
                Change::Insert => "insert into",
                Change::Update | Change::Delete | Change::Merge => "update",
            };
            SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "cannot {what} column \"{}\" of view \"{}\"",
                    self.view.columns[place].name, self.view.name
                ),
            )
            .with_detail(match is_system_column(&self.columns[place]) {
                true => "View columns that refer to system columns are not updatable.",
                false => "View columns that are not columns of their base relation are not updatable.",
            })
        })
    }
}

fn plain_column(expr: &BoundExpr) -> Option<u16> {
    match &expr.kind {
        ExprKind::Column { depth: 0, index } => Some(*index),
        _ => None,
    }
}

/// Whether a column of a view is a system column of the table below, as far as that can be told.
fn is_system_column(expr: &BoundExpr) -> bool {
    let made = [Intrinsic::RowPlace, Intrinsic::RowVersion];
    matches!(&expr.kind, ExprKind::Call { function, .. } if made.iter().any(|one| function.function.is(*one)))
}

/// The table below a view.
struct Below {
    table: TableRef,
    family: Option<Arc<Family>>,
}

/// The family that a change is about: new rows of a table whose heirs have more are its own.
fn changed_family(family: Option<Arc<Family>>, change: Change) -> Option<Arc<Family>> {
    family.filter(|family| change != Change::Insert || family.root.is_partitioned())
}

/// Columns and conditions over the row of one table.
struct Simple {
    table: TableRef,
    family: Option<Arc<Family>>,
    columns: Vec<BoundExpr>,
    filters: Vec<BoundExpr>,
}

impl Simple {
    /// Whether it reads the numbers of rows, which stand behind the columns of a table alone.
    fn reads_numbers(&self) -> bool {
        let width = self.table.columns.len();
        let mut found = false;
        for expr in self.columns.iter().chain(&self.filters).filter(|_| self.family.is_none()) {
            visit_expr(expr, 0, &mut |part, nesting| {
                found |= matches!(part.kind, ExprKind::Column { depth, index }
                    if depth == nesting && usize::from(index) >= width);
                !found
            });
        }
        found
    }
}

/// A plan as choices of columns and rows of one table; `None` if it is more.
fn simple(rel: &Rel) -> Option<Simple> {
    match rel {
        Rel::Scan { table, lock: None, .. } if table.kind == TableKind::Table => {
            let table = table.without_numbers().map_or_else(|| table.clone(), TableRef::new);
            let columns = table
                .columns
                .iter()
                .enumerate()
                .map(|(at, column)| BoundExpr::column(at, column.ty))
                .collect();
            Some(Simple { table, family: None, columns, filters: Vec::new() })
        }
        Rel::Family { family, lock: None, .. } if !family.has_numbers() => {
            let table = family.root.clone();
            let columns = table.columns.iter().enumerate();
            let columns = columns.map(|(at, column)| BoundExpr::column(at, column.ty)).collect();
            Some(Simple { table, family: Some(family.clone()), columns, filters: Vec::new() })
        }
        Rel::Filter { input, predicate } => {
            let mut below = simple(input)?;
            below.filters.push(over(predicate, &below.columns));
            Some(below)
        }
        // A view with a LIMIT or OFFSET of its own has been refused: this keeps conditions out of one below.
        Rel::Sort { input, .. } | Rel::Limit { input, limit: None, .. } => simple(input),
        Rel::Project { input, exprs } => {
            let below = simple(input)?;
            let columns = exprs.iter().map(|expr| over(expr, &below.columns)).collect();
            Some(Simple { columns, ..below })
        }
        _ => None,
    }
}

/// An expression over columns as one over what those are made of.
pub(crate) fn over(expr: &BoundExpr, columns: &[BoundExpr]) -> BoundExpr {
    let mut own = expr.clone();
    visit_expr_mut(&mut own, 0, &mut |part, nesting| {
        if let ExprKind::Column { depth, index } = part.kind
            && depth == nesting
            && let Some(made) = columns.get(usize::from(index))
        {
            let mut made = made.clone();
            raise_depth(&mut made, nesting);
            *part = made;
            return false;
        }
        true
    });
    own
}

/// Whether a table is pg_class. What its statistics are set to are hints to PostgreSQL's planner, as
/// settings are; this server counts its rows itself and takes none.
pub(super) fn has_statistics(table: &TableRef) -> bool {
    table.kind == TableKind::System && table.schema == "pg_catalog" && table.name == "pg_class"
}

impl Binder<'_, '_> {
    /// What a name of a table or view lets a statement change.
    pub(crate) fn change_target(&mut self, name: &ObjectName, change: Change) -> Result<ChangeTarget> {
        if let [only] = &object_name_parts(name)?[..]
            && self.env.variables.is_some_and(|scope| scope.relation(only).is_some())
        {
            let message = format!("relation \"{only}\" cannot be the target of a modifying statement");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let (name, only) = own_rows(name);
        let name = &*name;
        let (schema, written) = schema_and_name(name)?;
        self.need_schema(schema.as_deref());
        let table = self.require_table(name)?;
        self.need(&table, change.privilege());
        let known_as = self.view_reference(schema.as_deref(), &written).cloned();
        if table.kind == TableKind::View && change != Change::Merge {
            if has_instead_of(&table, change) {
                // The triggers are given the view's rows.
                return Ok(ChangeTarget { known_as, ..ChangeTarget::of_table(table) });
            }
            let view = self.view_target(&table, change)?;
            let family = changed_family(view.0.family, change);
            let view = (view.0.table, Some(view.1));
            return Ok(ChangeTarget { table: view.0, family, numbered: None, view: view.1, known_as });
        }
        let table = match change == Change::Update && has_statistics(&table) {
            true => return Ok(ChangeTarget::of_table(table)),
            false => self.changed_table(name)?,
        };
        let family = match (only, table.is_partitioned()) {
            (true, true) => Some(Arc::new(Family::without_rows(&table))),
            (true, false) => None,
            (false, _) => Family::of(self.env.catalog, &table)?,
        };
        let family = changed_family(family, change);
        let is_told = matches!(change, Change::Update | Change::Delete);
        let numbered = if is_told && family.is_none() { self.numbered(&table) } else { None };
        let family = match family {
            Some(_) if is_told && !only => self.numbered_family(&table)?.or(family),
            family => family,
        };
        Ok(ChangeTarget { family, numbered, known_as, ..ChangeTarget::of_table(table) })
    }

    /// The names a target offers to its own statement.
    pub(crate) fn target_relation(
        &self,
        target: &ChangeTarget,
        alias: Option<&TableAlias>,
    ) -> Result<Relation> {
        let Some(view) = &target.view else {
            let mut relation = self.table_relation(&target.table, None, Some(&target.table.schema))?;
            target.put_known_names(&mut relation);
            self.apply_alias(&mut relation, alias, None)?;
            relation.columns.extend(target.family.as_deref().into_iter().flat_map(behind_family));
            if target.numbered.is_some() {
                relation.columns.push(row_number(target.table.columns.len()));
            }
            return Ok(relation);
        };
        let columns = view
            .view
            .columns
            .iter()
            .zip(&view.columns)
            .map(|(column, expr)| ScopeColumn {
                name: column.name.clone(),
                expr: expr.clone(),
                source: None,
                hidden: false,
            })
            .collect();
        let mut relation = Relation::new(Some(view.view.name.clone()), columns);
        relation.schema = Some(view.view.schema.clone());
        relation.named = Some(view.view.oid);
        target.put_known_names(&mut relation);
        self.apply_alias(&mut relation, alias, None)?;
        Ok(relation)
    }

    fn view_target(&mut self, view: &TableRef, change: Change) -> Result<(Below, ViewTarget)> {
        let refused = |detail: &str| not_updatable(view, change, detail);
        let Some(stored) = &view.view else { return Err(SqlError::internal("a view without a query")) };
        let query = archipel_sql::parser::parse_query(&stored.query)?;
        if let Some(detail) = more_than_simple(&query) {
            return Err(refused(detail));
        }
        self.env.is_target = true;
        let bound = self.view_rows(view);
        self.env.is_target = false;
        let bound = bound?;
        let Some(simple) = simple(&bound.rel) else {
            return Err(refused(of_other_rel(&bound.rel)));
        };
        if simple.reads_numbers() {
            return Err(SqlError::unsupported(format_args!(
                "changing view \"{}\", which shows the ctid of a table without a primary key",
                view.name
            )));
        }
        let fixed = !simple.columns.iter().any(|column| plain_column(column).is_some());
        if fixed && change != Change::Delete {
            return Err(refused("Views that have no updatable columns are not automatically updatable."));
        }
        // The view that this one is over, if it is no table.
        let Some(source) = source_of(&query).and_then(|number| stored.references.get(number)) else {
            return Err(refused(NOT_ONE_TABLE));
        };
        let mut acting = self.acting_in(view.oid, stored);
        self.need_columns(source.relation, change.privilege(), &[], acting);
        let below = self.env.catalog.table_by_oid(source.relation).filter(|t| t.kind == TableKind::View);
        let (inherited, own) = match below {
            Some(below) => {
                if has_instead_of(&below, change) {
                    return Err(SqlError::unsupported(format_args!(
                        "changing view \"{}\" through the INSTEAD OF triggers of view \"{}\"",
                        view.name, below.name
                    )));
                }
                let (_, below) = self.view_target(&below, change)?;
                acting = below.acting;
                let own = simple.filters.into_iter().skip(below.filters.len()).collect();
                (Some(below), own)
            }
            None => (None, simple.filters),
        };
        let barred_below = inherited.as_ref().map_or(0, |below| below.barred);
        let own: Vec<BoundExpr> = own;
        let own = own.into_iter().map(|filter| (view.name.clone(), filter));
        let (mut filters, mut checks) = match inherited {
            None => (Vec::new(), Vec::new()),
            Some(below) if stored.check_option == Some(CheckOption::Cascaded) => {
                (below.filters.clone(), below.filters)
            }
            Some(below) => (below.filters, below.checks),
        };
        filters.extend(own.clone());
        if stored.check_option.is_some() {
            checks.extend(own);
        }
        let barred = if stored.is_barrier() { filters.len() } else { barred_below };
        let target =
            ViewTarget { view: view.clone(), columns: simple.columns, filters, checks, acting, barred };
        Ok((Below { table: simple.table, family: simple.family }, target))
    }

    /// A view's own rows, without locks.
    fn view_rows(&mut self, view: &TableRef) -> Result<BoundQuery> {
        self.nested(|binder| binder.view_query(view, Vec::new()))
    }
}

/// What of its rows a view lets statements change by itself (chapter "CREATE VIEW", Updatable Views).
pub fn changeable(
    view: &Table,
    catalog: &Catalog,
    search_path: &[String],
    context: &FunctionContext<'_>,
) -> Changeable {
    let Some(view) = catalog.table_by_oid(view.oid) else { return Changeable::default() };
    let target = |change| {
        let mut env = BindEnv::new(catalog, search_path, context);
        Binder::new(&mut env).view_target(&view, change).ok().map(|(_, target)| target)
    };
    let updated = target(Change::Update);
    let columns = updated.iter().flat_map(|target| &target.columns);
    Changeable {
        insert: target(Change::Insert).is_some(),
        update: updated.is_some(),
        delete: target(Change::Delete).is_some(),
        columns: columns.map(|column| plain_column(column).is_some()).collect(),
    }
}

/// Whether triggers of a view take its changes.
fn has_instead_of(view: &TableRef, change: Change) -> bool {
    let event = match change {
        Change::Insert => TriggerEvent::Insert,
        Change::Update => TriggerEvent::Update,
        Change::Delete => TriggerEvent::Delete,
        Change::Merge => return false,
    };
    view.has_instead_of(event)
}

/// Why a view cannot be changed, in PostgreSQL's words.
fn not_updatable(view: &TableRef, change: Change, detail: &str) -> SqlError {
    let (what, doing, event) = match change {
        Change::Insert => ("insert into", "inserting into", "INSERT"),
        Change::Update => ("update", "updating", "UPDATE"),
        Change::Delete | Change::Merge => ("delete from", "deleting from", "DELETE"),
    };
    SqlError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("cannot {what} view \"{}\"", view.name),
    )
    .with_detail(detail)
    .with_hint(format!(
        "To enable {doing} the view, provide an INSTEAD OF {event} trigger or an unconditional ON {event} DO INSTEAD rule."
    ))
}

/// What a query has that a simple view has not, as far as its syntax tells.
fn more_than_simple(query: &Query) -> Option<&'static str> {
    let select: &Select = match query.body.as_ref() {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { .. } => {
            return Some("Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.");
        }
        _ => return Some(NOT_ONE_TABLE),
    };
    let grouped =
        !matches!(&select.group_by, sqlparser::ast::GroupByExpr::Expressions(list, _) if list.is_empty());
    if select.distinct.is_some() {
        return Some("Views containing DISTINCT are not automatically updatable.");
    }
    if grouped {
        return Some("Views containing GROUP BY are not automatically updatable.");
    }
    if select.having.is_some() {
        return Some("Views containing HAVING are not automatically updatable.");
    }
    if query.with.is_some() {
        return Some("Views containing WITH are not automatically updatable.");
    }
    if query.limit_clause.is_some() || query.fetch.is_some() {
        return Some("Views containing LIMIT or OFFSET are not automatically updatable.");
    }
    None
}

/// Which of its references a view's FROM names, if it names one and nothing else.
fn source_of(query: &Query) -> Option<usize> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let [from] = &select.from[..] else { return None };
    let (TableFactor::Table { name, .. }, []) = (&from.relation, &from.joins[..]) else { return None };
    let parts = object_name_parts(name).ok()?;
    parts.last()?.parse().ok()
}

const NOT_ONE_TABLE: &str =
    "Views that do not select from a single table or view are not automatically updatable.";

fn of_other_rel(rel: &Rel) -> &'static str {
    match rel {
        Rel::Aggregate { .. } => "Views that return aggregate functions are not automatically updatable.",
        Rel::Window { .. } => "Views that return window functions are not automatically updatable.",
        Rel::ProjectSet { .. } => {
            "Views that return set-returning functions are not automatically updatable."
        }
        Rel::Project { input, .. } | Rel::Filter { input, .. } | Rel::Sort { input, .. } => {
            of_other_rel(input)
        }
        _ => NOT_ONE_TABLE,
    }
}

/// Refuses a check option for a view that cannot be changed.
pub fn check_updatable(view: &View, env: &BindEnv<'_>) -> Result<()> {
    let query = archipel_sql::parser::parse_query(&view.query)?;
    let detail = match more_than_simple(&query) {
        Some(detail) => Some(detail),
        None => {
            let mut own = BindEnv::new(env.catalog, env.search_path, env.context);
            own.references = &view.references;
            let bound = Binder::new(&mut own).query_with_locks(&query, Vec::new())?;
            simple(&bound.rel).is_none().then(|| of_other_rel(&bound.rel))
        }
    };
    match detail {
        None => Ok(()),
        Some(detail) => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "WITH CHECK OPTION is supported only on automatically updatable views",
        )
        .with_hint(detail)),
    }
}

pub(crate) fn undefined_target(column: &str, table: &TableRef) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_COLUMN,
        format!("column \"{column}\" of relation \"{}\" does not exist", table.name),
    )
}
