//! CREATE INDEX and DROP INDEX.

use archipel_engine::id::TreeId;
use archipel_engine::txn::DdlOp;
use archipel_sql::ast::{CreateIndex, Drop, Expression, IndexElement, IndexKey, QualifiedName};
use archipel_sql::catalog::dependency::{Dependent, still_depended_on};
use archipel_sql::catalog::names::quote_identifier;
use archipel_sql::catalog::{
    EXPRESSION, Index, IndexColumn, IndexExpression, Persistence, Relation, SYSTEM_COLUMNS, Table, TableKind,
    TableRef,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::TypeNames;
use rustc_hash::FxHashSet;
use sqlparser::ast::Expr;

use super::constraint::{check_key_types, included, require_class};
use super::index_entries::store_expressions;
use super::index_options::check_parts;
use super::index_placement::check_placement;
use super::storage_option::index_options;
use super::table::other_collation;
use super::{access_method, distribution, nominal, partition_keys, tablespace};
use crate::alter::alter_inheritance;
use crate::bind::modify::{check_index_predicate, index_expression_type};
use crate::bind::name::{ident_name, name_of};
use crate::bind::stored_expression::About;
use crate::bind::{BindEnv, Clause};
use crate::drop::cascade;
use crate::expression::check::{check_index_condition, check_index_expression, check_written};
use crate::expression::{check, stored_expression};
use crate::function::operator_class;
use crate::function::operator_class::{Decides, check_collation_and_class};
use crate::row::{in_keys, index_def, table_def};
use crate::work::{Work, column_source};

pub(crate) fn create_index(create: &CreateIndex, work: &mut Work<'_>) -> Result<()> {
    let table = indexed_table(create, work)?;
    tablespace::check(create.tablespace.as_deref(), table.is_partitioned(), work)?;
    if let Some(name) = &create.name
        && work.catalog.is_relation(&table.schema, name)
    {
        let message = format!("relation \"{name}\" already exists");
        if create.if_not_exists {
            work.notice_as(SqlState::DUPLICATE_TABLE, format!("{message}, skipping"));
            return Ok(());
        }
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    check_form(create, &table)?;
    match create.method.as_deref() {
        // Every index is an ordered tree; hash indexes only promise less.
        None | Some("btree") => {}
        Some("hash") => check_hash(create)?,
        Some(method @ ("gin" | "gist" | "spgist" | "brin")) => {
            return nominal::create_index(create, method, &table, work);
        }
        Some(method) => return Err(access_method::refuse_for_index(method)),
    }
    // The rows that such an index says nothing of are told by a NULL in its key.
    if create.nulls_not_distinct && create.unique && create.predicate.is_some() {
        return Err(SqlError::unsupported("NULLS NOT DISTINCT of an index with a condition"));
    }
    let include = included(&table, &create.include)?;
    let predicate = written_predicate(create, &table, work)?;
    let options = index_options(create.method.as_deref().unwrap_or("btree"), &create.options)?;
    let mut env = BindEnv::new(&work.catalog, work.search_path(), work.env.context);
    if let Some(predicate) = &predicate {
        check_index_predicate(&table, predicate, &mut env)?;
        // Whoever makes the index asks it of the rows that are there.
        if !work.env.system {
            work.authority().require_all(&std::mem::take(&mut env.required))?;
        }
    }
    let (columns, mut expressions, names) = index_parts(create, &table, &mut env, work)?;
    let classes = named_classes(create, &table, (&columns, &expressions));
    let numbers: Vec<u16> =
        columns.iter().map(|part| part.column).filter(|column| *column != EXPRESSION).collect();
    check_key_types(&table, &numbers, work)?;
    if create.unique && predicate.is_some() {
        guard_first(&columns, &mut expressions, &table);
    }
    let name = index_name(create, &table, (&include, names), work);
    if create.unique {
        partition_keys::check_unique(
            &table,
            &columns.iter().map(|part| part.column).collect::<Vec<_>>(),
            false,
        )?;
    }
    let index = Index {
        oid: work.oids(2),
        name: name.clone(),
        columns,
        unique: create.unique,
        nulls_equal: create.unique && create.nulls_not_distinct,
        constraint: false,
        tree: if table.is_partitioned() { 0 } else { work.tree() },
        global_group: None,
        include,
        predicate,
        expressions,
        parent: None,
        hash: create.method.as_deref() == Some("hash"),
        classes,
        options,
    };
    work.name_unique(index.tree, &name);
    let mut changed = (*table).clone();
    check_placement(&changed, &index)?;
    changed.indexes.push(index);
    distribution::place_some_indexes(&mut changed, table.indexes.len()..table.indexes.len() + 1, work);
    let changed = work.put_table(changed);
    let index = changed.indexes.last().expect("pushed above");
    if !index.expressions.is_empty() {
        store_expressions(&table, &changed, index, work);
    }
    work.operation(DdlOp::CreateIndex { table: TreeId(table.tree), index: index_def(&changed, index) });
    if create.only {
        return Ok(());
    }
    let fresh = index.oid;
    partition_keys::spread(table.oid, Some(&[fresh]), work)?;
    check_parts(table.oid, fresh, work)
}

/// The table that an index is to be of, which whoever asks must own.
fn indexed_table(create: &CreateIndex, work: &Work<'_>) -> Result<TableRef> {
    let table = work.catalog.require_table(&create.table, work.search_path())?;
    if table.kind == TableKind::View {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("cannot create index on relation \"{}\"", table.name),
        )
        .with_detail("This operation is not supported for views."));
    }
    work.require_owner(table.oid)?;
    work.check_changeable(&table)?;
    Ok(table)
}

/// Refuses the words of a statement that do not go together, or not with its table.
fn check_form(create: &CreateIndex, table: &Table) -> Result<()> {
    if create.name.is_none() && create.if_not_exists {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "IF NOT EXISTS requires that you name the index"));
    }
    if create.concurrently && table.is_partitioned() {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot create index on partitioned table \"{}\" concurrently", table.name),
        ));
    }
    Ok(())
}

/// The condition of a partial index, as it is kept.
fn written_predicate(create: &CreateIndex, table: &TableRef, work: &Work<'_>) -> Result<Option<String>> {
    let Some(predicate) = &create.predicate else { return Ok(None) };
    check_index_condition(predicate, table)?;
    check_written(table, predicate, Clause::IndexPredicate, work)?;
    let about = About::Row(table.clone());
    let clause = Clause::IndexPredicate;
    stored_expression::settled_text(&predicate.text, &about, clause, None, work).map(Some)
}

/// The name that an index is given, or one made of the columns it includes and the names its key's
/// parts lend.
fn index_name(
    create: &CreateIndex,
    table: &Table,
    (include, names): (&[u16], Vec<String>),
    work: &Work<'_>,
) -> String {
    if let Some(name) = &create.name {
        return name.clone();
    }
    let included = include.iter().map(|&column| table.columns[usize::from(column)].name.clone());
    let names: Vec<String> = names.into_iter().chain(included).collect();
    work.free_relation_name(&table.schema, [&table.name, &names.join("_"), "idx"], &[])
}

/// A part of a key that is an expression, which stands at a position; its place and its name are the
/// caller's to give.
fn index_expression(
    (expression, position): (&Expression, u32),
    table: &TableRef,
    env: &mut BindEnv<'_>,
    work: &Work<'_>,
) -> Result<IndexExpression> {
    check_index_expression(expression, table)?;
    let clause = Clause::IndexExpression;
    check_written(table, expression, clause, work)?;
    let about = About::Row(table.clone());
    let text = stored_expression::settled_text(&expression.text, &about, clause, None, work)?;
    let ty = index_expression_type(table, &text, env)?;
    // What an index stores of its own keeps its fields when a composite type loses one.
    if !in_keys(ty) || ty.oid.holds_fields() {
        return Err(SqlError::unsupported(format_args!(
            "an index on an expression of type {}",
            work.format_type(ty)
        ))
        .at(Some(position)));
    }
    Ok(IndexExpression { place: 0, text, ty, guarded: false, name: String::new() })
}

/// The key's parts, those that are expressions, and the names they lend to the index's.
fn index_parts(
    create: &CreateIndex,
    table: &TableRef,
    env: &mut BindEnv<'_>,
    work: &Work<'_>,
) -> Result<(Vec<IndexColumn>, Vec<IndexExpression>, Vec<String>)> {
    let (mut columns, mut expressions, mut names) = (Vec::new(), Vec::new(), Vec::<String>::new());
    for (place, element) in create.elements.iter().enumerate() {
        let (column, mut name) = match &element.key {
            IndexKey::Column(name) => (column_of(table, name, element.position)?, name.clone()),
            IndexKey::Expression(expression) => match &expression.expr {
                // A column in parentheses is a column.
                Expr::Identifier(ident) => {
                    let name = ident_name(ident);
                    (column_of(table, &name, element.position)?, name)
                }
                expr => {
                    let part = index_expression((expression, element.position), table, env, work)?;
                    expressions.push(IndexExpression { place: place as u16, ..part });
                    (EXPRESSION, name_of(expr).unwrap_or_else(|| "expr".to_owned()))
                }
            },
        };
        let stem = name.clone();
        for number in 1.. {
            if !names.contains(&name) {
                break;
            }
            name = format!("{stem}{number}");
        }
        if let Some(expression) = expressions.last_mut().filter(|_| column == EXPRESSION) {
            expression.name.clone_from(&name);
        }
        names.push(name);
        let ty = match expressions.last().filter(|_| column == EXPRESSION) {
            Some(expression) => expression.ty,
            None => table.columns[usize::from(column)].ty,
        };
        let method = create.method.as_deref().unwrap_or("btree");
        let decides = if create.unique { Decides::Rows } else { Decides::Path };
        if element.operator_class.is_none() && matches!(method, "btree" | "hash") {
            require_class(ty, method)?;
        }
        check_collation_and_class(element, method, ty, decides, work)?;
        let nulls_first = element.nulls_first.unwrap_or(element.descending);
        let own = match expressions.last().filter(|_| column == EXPRESSION) {
            Some(expression) => check::collation(&expression.text, table)?,
            None => table.columns[usize::from(column)].collation,
        };
        let collation = other_collation(element, own);
        columns.push(IndexColumn { column, descending: element.descending, nulls_first, collation });
    }
    Ok((columns, expressions, names))
}

/// The operator classes that its parts are given and that are not those of their types.
fn named_classes(
    create: &CreateIndex,
    table: &Table,
    (columns, expressions): (&[IndexColumn], &[IndexExpression]),
) -> Vec<Option<String>> {
    let method = create.method.as_deref().unwrap_or("btree");
    let named = |(place, element): (usize, &IndexElement)| {
        let class = &element.operator_class.as_ref()?.name;
        let ty = match columns.get(place)?.column {
            EXPRESSION => expressions.iter().find(|part| usize::from(part.place) == place)?.ty,
            column => table.columns.get(usize::from(column))?.ty,
        };
        (!operator_class::is_own(class, method, ty)).then(|| class.clone())
    };
    let classes: Vec<Option<String>> = create.elements.iter().enumerate().map(named).collect();
    if classes.iter().all(Option::is_none) { Vec::new() } else { classes }
}

/// A partial unique index keeps NULL for the first part of its key of rows it says nothing about.
fn guard_first(columns: &[IndexColumn], expressions: &mut Vec<IndexExpression>, table: &Table) {
    if let Some(first) = expressions.iter_mut().find(|expression| expression.place == 0) {
        first.guarded = true;
        return;
    }
    if let Some(column) = columns.first().and_then(|part| table.columns.get(usize::from(part.column))) {
        let text = quote_identifier(&column.name);
        let name = column.name.clone();
        expressions.insert(0, IndexExpression { place: 0, text, ty: column.ty, guarded: true, name });
    }
}

fn column_of(table: &Table, name: &str, position: u32) -> Result<u16> {
    table.column_index(name).ok_or_else(|| match SYSTEM_COLUMNS.contains(&name) {
        true => SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "index creation on system columns is not supported",
        ),
        false => SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"))
            .at(Some(position)),
    })
}

/// What PostgreSQL's hash indexes cannot do.
fn check_hash(create: &CreateIndex) -> Result<()> {
    let missing = |what: &str| {
        let message = format!("access method \"hash\" does not support {what}");
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
    };
    if create.unique {
        return missing("unique indexes");
    }
    if !create.include.is_empty() {
        return missing("included columns");
    }
    match &create.elements[..] {
        [element] if element.descending => missing("ASC/DESC options"),
        [element] if element.nulls_first.is_some() => missing("NULLS FIRST/LAST options"),
        [_] => Ok(()),
        _ => missing("multicolumn indexes"),
    }
}

/// One name of DROP INDEX.
pub(crate) fn drop_index(
    name: &QualifiedName,
    relation: &Relation,
    drop: &Drop,
    work: &mut Work<'_>,
) -> Result<()> {
    let above = match relation {
        Relation::PrimaryKey(table) => table.primary_key.as_ref().and_then(|key| key.parent),
        Relation::Index(table, place) => table.indexes[*place].parent,
        _ => None,
    };
    if let Some(above) = above.and_then(|parent| work.catalog.relation_by_oid(parent)) {
        return Err(SqlError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!("cannot drop index {} because index {} requires it", relation.name(), above.name()),
        )
        .with_hint(format!("You can drop index {} instead.", above.name())));
    }
    let table = match relation {
        Relation::Nominal(table, place) => {
            nominal::drop_index(table, *place, work);
            return Ok(());
        }
        Relation::PrimaryKey(table) => {
            return Err(needed_by_constraint(relation.name(), &table.name));
        }
        Relation::Index(table, place) if table.indexes[*place].constraint => {
            return Err(needed_by_constraint(relation.name(), &table.name));
        }
        Relation::Index(table, _) => table,
        other => {
            let what = if matches!(other, Relation::Table(_)) { "TABLE" } else { "SEQUENCE" };
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("\"{}\" is not an index", name.name),
            )
            .with_hint(format!("Use DROP {what} to remove a {}.", what.to_lowercase())));
        }
    };
    let Some(place) = table.indexes.iter().position(|index| index.name == relation.name()) else {
        return Ok(());
    };
    let index = &table.indexes[place];
    let columns: Vec<u16> = index.columns.iter().map(|column| column.column).collect();
    let in_need = match index.is_plain_key() {
        true => keys_in_need(table, &columns, work),
        false => Vec::new(),
    };
    if !in_need.is_empty() && !drop.cascade {
        let error = still_depended_on(&format!("index {}", index.name), &in_need, work);
        return Err(match drop.names.len() {
            1 => error,
            _ => {
                let message = "cannot drop desired object(s) because other objects depend on them";
                let detail = error.fields().detail.clone().unwrap_or_default();
                SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
                    .with_detail(detail)
                    .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
            }
        });
    }
    if drop.concurrently && table.is_partitioned() && table.persistence != Persistence::Temporary {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot drop partitioned index \"{}\" concurrently", index.name),
        ));
    }
    if in_need.is_empty() {
        remove(table, place, work);
        return Ok(());
    }
    cascade::cascade_notice(&in_need, work);
    cascade::drop_foreign_keys(&in_need, &FxHashSet::default(), work);
    // Without its keys the table may be another version of itself.
    if let Some(table) = work.catalog.table_by_oid(table.oid) {
        remove(&table, place, work);
    }
    Ok(())
}

/// Takes an index from its table, and what is part of it from the table's partitions.
pub(crate) fn remove(table: &TableRef, place: usize, work: &mut Work<'_>) {
    let oid = table.indexes[place].oid;
    for heir in work.catalog.heirs(table.oid) {
        let of_index = heir.indexes.iter().position(|index| index.parent == Some(oid));
        match of_index {
            Some(place) if !heir.indexes[place].constraint => remove(&heir, place, work),
            // A constraint's index stays with it.
            _ => alter_inheritance::mark(heir.oid, work, |heir| {
                let key = heir.primary_key.iter_mut().map(|key| &mut key.parent);
                let parents = key.chain(heir.indexes.iter_mut().map(|index| &mut index.parent));
                parents.filter(|parent| **parent == Some(oid)).for_each(|parent| *parent = None);
            }),
        }
    }
    let tree = TreeId(table.indexes[place].tree);
    work.operation(DdlOp::DropIndex { table: TreeId(table.tree), index: tree });
    let mut changed = (**table).clone();
    let dropped = changed.indexes.remove(place);
    let changed = work.put_table(changed);
    if !dropped.expressions.is_empty() {
        let columns = column_source::sources(table, &changed, column_source::all_kept(table));
        work.operation(DdlOp::AlterTable { def: table_def(&changed), columns });
    }
}

/// The foreign keys that point at exactly these columns, if no other key of the table serves them.
pub(crate) fn keys_in_need(table: &TableRef, columns: &[u16], work: &Work<'_>) -> Vec<Dependent> {
    let sorted = |columns: &[u16]| {
        let mut columns = columns.to_vec();
        columns.sort_unstable();
        columns
    };
    let wanted = sorted(columns);
    let primary = table.primary_key.iter().map(|key| sorted(&key.columns));
    let unique = table
        .indexes
        .iter()
        .filter(|index| index.is_plain_key())
        .map(|index| sorted(&index.columns.iter().map(|column| column.column).collect::<Vec<_>>()));
    if primary.chain(unique).filter(|key| *key == wanted).count() > 1 {
        return Vec::new();
    }
    let own = table.foreign_keys.iter().enumerate().filter(|(_, key)| key.references == table.oid);
    let own = own.map(|(place, _)| Dependent::ForeignKey(table.clone(), place));
    let all = own.chain(work.catalog.dependents_of_table(table));
    all.filter(|dependent| match dependent {
        Dependent::ForeignKey(other, place) => {
            sorted(&other.foreign_keys[*place].referenced_columns) == wanted
        }
        _ => false,
    })
    .collect()
}

fn needed_by_constraint(index: &str, table: &str) -> SqlError {
    SqlError::new(
        SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
        format!("cannot drop index {index} because constraint {index} on table {table} requires it"),
    )
    .with_hint(format!("You can drop constraint {index} on table {table} instead."))
}
