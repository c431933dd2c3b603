//! Indexes over expressions of a column whose type changes (RememberIndexForRebuilding): what rows store for them
//! goes before the column has its new type, and is computed anew from that.

use archipel_engine::id::TreeId;
use archipel_engine::txn::DdlOp;
use archipel_sql::catalog::{EXPRESSION, Index, Table, TableRef};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::type_table::TypeNames;

use crate::bind::BindEnv;
use crate::bind::modify::{check_index_predicate, index_expression_type};
use crate::expression::check;
use crate::relation::index_entries::store_expressions;
use crate::relation::{constraint, distribution};
use crate::row::{in_keys, index_def};
use crate::work::Work;

/// The indexes that were taken off, with their places, and the column they were over.
pub(super) struct TakenOff {
    indexes: Vec<(usize, Index)>,
    column: u16,
}

/// Takes off the indexes of a table that store what is computed of a column.
pub(super) fn take_off(table: &mut Table, place: u16, work: &mut Work<'_>) -> Result<TakenOff> {
    let mut taken = Vec::new();
    let mut left = Vec::with_capacity(table.indexes.len());
    for (at, index) in table.indexes.iter().enumerate() {
        let mut uses = false;
        for expression in &index.expressions {
            uses |= check::text_uses_column(&index.stored_text(expression), table, place)?;
        }
        match uses {
            true => taken.push((at, index.clone())),
            false => left.push(index.clone()),
        }
    }
    for (_, index) in &taken {
        work.operation(DdlOp::DropIndex { table: TreeId(table.tree), index: TreeId(index.tree) });
    }
    table.indexes = left;
    Ok(TakenOff { indexes: taken, column: place })
}

/// Makes them anew over the table as it is now.
pub(super) fn put_back(mut table: TableRef, taken: TakenOff, work: &mut Work<'_>) -> Result<()> {
    check_kept(&table, taken.column, work)?;
    for (at, mut index) in taken.indexes {
        index.tree = if table.is_partitioned() { 0 } else { work.tree() };
        index.global_group = None;
        bind_anew(&mut index, &table, work)?;
        if index.unique {
            work.name_unique(index.tree, &index.name);
        }
        let oid = index.oid;
        let mut changed = (*table).clone();
        changed.indexes.insert(at, index);
        distribution::place_indexes(&mut changed, work);
        let changed = work.put_table(changed);
        if let Some(index) = changed.indexes.iter().find(|index| index.oid == oid) {
            store_expressions(&table, &changed, index, work);
            let index = index_def(&changed, index);
            work.operation(DdlOp::CreateIndex { table: TreeId(table.tree), index });
        }
        table = changed;
    }
    Ok(())
}

/// Indexes that store nothing of their own stay as they are, if what they say still means something.
fn check_kept(table: &TableRef, column: u16, work: &Work<'_>) -> Result<()> {
    let nominal = table.nominal.indexes.iter().map(|nominal| &nominal.index);
    for index in table.indexes.iter().chain(nominal) {
        let mut env = BindEnv::new(&work.catalog, work.search_path(), work.env.context);
        if let Some(predicate) = &index.predicate
            && check::text_uses_column(predicate, table, column)?
        {
            check_index_predicate(table, predicate, &mut env)?;
        }
        for expression in &index.expressions {
            if check::text_uses_column(&expression.text, table, column)? {
                index_expression_type(table, &expression.text, &mut env)?;
            }
        }
    }
    Ok(())
}

/// What an index is over has another type where a column that it reads has one.
fn bind_anew(index: &mut Index, table: &TableRef, work: &Work<'_>) -> Result<()> {
    let plain = index.columns.iter().map(|part| part.column).filter(|column| *column != EXPRESSION);
    constraint::check_key_types(table, &plain.collect::<Vec<u16>>(), work)?;
    let mut env = BindEnv::new(&work.catalog, work.search_path(), work.env.context);
    if let Some(predicate) = &index.predicate {
        check_index_predicate(table, predicate, &mut env)?;
    }
    for expression in &mut index.expressions {
        expression.ty = index_expression_type(table, &expression.text, &mut env)?;
        if !in_keys(expression.ty) || expression.ty.oid.holds_fields() {
            return Err(SqlError::unsupported(format_args!(
                "an index on an expression of type {}",
                work.format_type(expression.ty)
            )));
        }
    }
    Ok(())
}
