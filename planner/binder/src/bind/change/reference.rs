//! The statements that foreign keys run: bound here, for they need defaults, conditions and casts.

use archipel_sql::ast::ReferentialAction;
use archipel_sql::catalog::{Catalog, ForeignKey, TableRef, TypesAlong};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::FunctionContext;
use archipel_sql::types::Type;

use crate::bind::binder::{BindEnv, Binder};
use crate::bind::clause::Clause;
use crate::bound::{BoundChecks, BoundDelete, BoundExpr, BoundIndexExpression, BoundUpdate, ExprKind};
use crate::partition::Family;

/// What happens to the rows that reference one which goes or changes.
pub enum ReferenceChange {
    Delete(BoundDelete),
    Update(BoundUpdate),
}

/// Binds an action. One depth out stand the referenced row's old key values, of these types, and
/// after them its new ones.
pub fn bind_reference_change(
    catalog: &Catalog,
    child: &TableRef,
    key: &ForeignKey,
    types: &[Type],
    deletes: bool,
    action: ReferentialAction,
    filter: BoundExpr,
) -> Result<ReferenceChange> {
    if deletes && action == ReferentialAction::Cascade {
        let (table, family) = (child.clone(), Family::of(catalog, child)?.filter(|_| child.is_partitioned()));
        let filter = Some(filter);
        let delete = BoundDelete {
            table,
            alias: None,
            family,
            numbered: None,
            using: None,
            filter,
            returning: None,
            alone: false,
        };
        return Ok(ReferenceChange::Delete(delete));
    }
    let path = ["public".to_owned()];
    let names = TypesAlong { catalog, search_path: &path };
    let context = FunctionContext { now: 0, session: &names };
    let mut env = BindEnv::new(catalog, &path, &context);
    env.late_literals = true;
    let mut binder = Binder::new(&mut env);
    let mut set = Vec::with_capacity(key.columns.len());
    for (place, (&column, ty)) in key.columns.iter().zip(types).enumerate() {
        if deletes && !key.on_delete_columns.is_empty() && !key.on_delete_columns.contains(&column) {
            continue;
        }
        let target = &child.columns[usize::from(column)];
        let value = match action {
            ReferentialAction::SetNull => {
                binder.coerce_domain(BoundExpr::constant(Datum::Null, target.ty), target.domain)?
            }
            ReferentialAction::SetDefault => binder.default_value(child, usize::from(column))?,
            _ => {
                let new = ExprKind::Column { depth: 1, index: (types.len() + place) as u16 };
                binder.assign_column(BoundExpr::new(new, *ty), target)?
            }
        };
        set.push((column, value));
    }
    let checks = binder.checks(child)?;
    let table = child.clone();
    Ok(ReferenceChange::Update(BoundUpdate {
        table,
        alias: None,
        family: Family::of(catalog, child)?.filter(|_| child.is_partitioned()),
        numbered: None,
        from: None,
        filter: Some(filter),
        set,
        checks,
        returning: None,
    }))
}

/// A table's generated columns, with their expressions over its row.
pub fn bind_generated(catalog: &Catalog, table: &TableRef) -> Result<Vec<(u16, BoundExpr)>> {
    if table.columns.iter().all(|column| column.generated.is_none()) {
        return Ok(Vec::new());
    }
    let names = TypesAlong { catalog, search_path: &[] };
    let context = FunctionContext { now: 0, session: &names };
    let mut env = BindEnv::new(catalog, &[], &context);
    env.late_literals = true;
    Binder::new(&mut env).generated(table)
}

/// A table's CHECK conditions over its row.
pub fn bind_checks(catalog: &Catalog, table: &TableRef) -> Result<BoundChecks> {
    if table.checks.is_empty() {
        return Ok(Vec::new());
    }
    let names = TypesAlong { catalog, search_path: &[] };
    let context = FunctionContext { now: 0, session: &names };
    let mut env = BindEnv::new(catalog, &[], &context);
    env.late_literals = true;
    Binder::new(&mut env).checks(table)
}

/// A definition of a table as statements will bind it: a generated column's expression, what an
/// index is over, an index's condition.
pub(crate) fn bind_definition(
    catalog: &Catalog,
    table: &TableRef,
    text: &str,
    clause: Clause,
) -> Result<BoundExpr> {
    let names = TypesAlong { catalog, search_path: &[] };
    let context = FunctionContext { now: 0, session: &names };
    let mut env = BindEnv::new(catalog, &[], &context);
    Binder::new(&mut env).definition(table, text, clause)
}

/// What a table's rows store for indexes alone.
pub fn bind_index_expressions(catalog: &Catalog, table: &TableRef) -> Result<Vec<BoundIndexExpression>> {
    if table.index_expressions().next().is_none() {
        return Ok(Vec::new());
    }
    let names = TypesAlong { catalog, search_path: &[] };
    let context = FunctionContext { now: 0, session: &names };
    let mut env = BindEnv::new(catalog, &[], &context);
    Binder::new(&mut env).index_expressions(table)
}
