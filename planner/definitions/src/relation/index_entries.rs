//! What rows store for the entries of an index.

use archipel_engine::id::TreeId;
use archipel_engine::txn::DdlOp;
use archipel_sql::catalog::{Index, Table};

use crate::row::table_def;
use crate::work::{Work, column_source};
use crate::{Computed, ComputedValue};
/// Has rows store what an index is over before there are entries of it.
pub(crate) fn store_expressions(table: &Table, changed: &Table, index: &Index, work: &mut Work<'_>) {
    for expression in &index.expressions {
        let Some(column) = changed.stored_place(index.oid, expression.place) else { continue };
        let text = index.stored_text(expression);
        work.compute(Computed {
            column: usize::from(column),
            ty: expression.ty,
            not_null: None,
            once: false,
            value: ComputedValue::of_definition(&work.catalog, table, &text, expression.ty),
        });
    }
    let mut def = table_def(changed);
    def.indexes.retain(|other| other.id != TreeId(index.tree));
    let columns = column_source::sources(table, changed, column_source::all_kept(table));
    work.operation(DdlOp::AlterTable { def, columns });
}
