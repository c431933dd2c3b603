//! ALTER TABLE's actions on one column: ADD COLUMN, ALTER COLUMN … TYPE, identities.

use archipel_engine::txn::{ColumnSource, DdlOp, OwnedCell};
use archipel_sql::ast::{
    ColumnDefinition, Expression, IdentityChange, QualifiedName, SequenceOption, Statement,
    TableConstraintKind, TypeName,
};
use archipel_sql::catalog::names::{quote_identifier, quote_qualified};
use archipel_sql::catalog::{
    Catalog, Column, ColumnStorage, DistributedBy, Distribution, Identity, ObjectKind, Relation, Table,
    TableRef,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::CastContext;
use archipel_sql::type_table::{TypeNames, element_of, is_date_or_time, type_info};
use archipel_sql::types::{Oid, Type};

use super::index_rebuild;
use crate::bind::stored_expression::About;
use crate::bind::{BindEnv, Clause, bind_expression, bind_statement};
use crate::bound::BoundStatement;
use crate::data_type::composite;
use crate::expression::{check, stored_expression};
use crate::relation::constraint::Deferred;
use crate::relation::index_placement::check_constraints;
use crate::relation::sequence::SequenceRequest;
use crate::relation::{collation, constraint, distribution, partition_keys, sequence, table, view_query};
use crate::row::{Codec, table_def};
use crate::work::change::{column_place, finish, touch, validate_not_null};
use crate::work::rewrite::{Computed, ComputedValue};
use crate::work::{Work, column_source, validation};

/// Adds a column at the end. Rows take its default: a constant, or a value computed for each.
pub(super) fn add_column(
    before: Table,
    definition: &ColumnDefinition,
    if_not_exists: bool,
    work: &mut Work<'_>,
) -> Result<()> {
    let name = &definition.name;
    if before.column_index(name).is_some() {
        let message = format!("column \"{name}\" of relation \"{}\" already exists", before.name);
        if if_not_exists {
            work.notice_as(SqlState::DUPLICATE_COLUMN, format!("{message}, skipping"));
            return Ok(());
        }
        return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
    }
    let made = table::make_column(definition, &before, work)?;
    composite::check_column(&made.column, &before, work)?;
    // Rows in other tables' columns would lack the value.
    let default = made.column.default.as_deref().filter(|text| !text.eq_ignore_ascii_case("null"));
    if default.is_some() || made.column.generated.is_some() {
        composite::check_not_stored(before.row_type(), &before.name, "table", "its row type", work)?;
    }
    let place = before.columns.len() as u16;
    let mut table = before.clone();
    // What is to be a key must have a value before rows are stored under it.
    let key = made.constraints.iter().any(|part| matches!(part.kind, TableConstraintKind::PrimaryKey { .. }));
    let (ty, not_null) = (made.column.ty, made.column.not_null || key);
    table.columns.push(made.column);
    let filling = fill(&before, &mut table, made.sequence.as_ref(), work)?;
    let is_null = matches!(filling, Filling::Constant(OwnedCell::Null));
    let target = validation::own_rows(&table, work);
    if not_null && is_null && table.is_stored() {
        work.validate(format!("SELECT 1 FROM {target} LIMIT 1"), validation::null_values(name, &table));
    }
    let mut deferred = Deferred::default();
    for constraint in &made.constraints {
        constraint::add(&mut table, constraint, &mut deferred, work)?;
    }
    deferred.resolve(&mut table, work)?;
    partition_keys::check_keys(&table)?;
    work.rewritten.push((table.oid, name.clone()));
    validate_new_column(&before, &table, is_null, work);
    if table.primary_key.is_some() && before.primary_key.is_none() {
        distribution::choose_default(&mut table, work)?;
    }
    check_constraints(&table, before.indexes.len())?;
    distribution::place_indexes(&mut table, work);
    let referenced: Vec<Oid> =
        table.foreign_keys[before.foreign_keys.len()..].iter().map(|key| key.references).collect();
    let table = work.put_table(table);
    let def = table_def(&table);
    let mut visible = column_source::all_kept(&before);
    let (constant, computed) = match filling {
        Filling::Constant(constant) => (constant, None),
        Filling::Computed { value, once } => (OwnedCell::Null, Some((value, once))),
    };
    visible.push(ColumnSource::Constant(constant));
    let columns = column_source::sources(&before, &table, visible);
    if let Some((value, once)) = computed {
        let not_null = not_null.then(|| validation::null_values(name, &table));
        work.compute(Computed { column: usize::from(place), ty, not_null, once, value });
    }
    work.operation(DdlOp::AlterTable { def, columns });
    for oid in referenced.into_iter().filter(|&oid| oid != table.oid) {
        touch(oid, work);
    }
    Ok(())
}

/// What rows that are there have in a new column.
enum Filling {
    Constant(OwnedCell),
    /// A value for each row, or one for all of them (`once`).
    Computed {
        value: ComputedValue,
        once: bool,
    },
}

/// What the rows of a table, which gets a new last column, have in that: the sequence that the column
/// asks for is made along.
fn fill(
    before: &Table,
    table: &mut Table,
    sequence: Option<&SequenceRequest>,
    work: &mut Work<'_>,
) -> Result<Filling> {
    let at = before.columns.len();
    let ty = table.columns[at].ty;
    let each = |value: ComputedValue| Filling::Computed { value, once: false };
    if let Some(text) = table.columns[at].generated.clone() {
        check::check_generated(table, &[])?;
        let about = About::Row(before.clone().into());
        let settled = stored_expression::settled_text(&text, &about, Clause::Generated, Some(ty), work)?;
        let value = ComputedValue::of_definition(&work.catalog, before, &settled, ty);
        table.columns[at].generated = Some(settled);
        return Ok(each(value));
    }
    if let Some(request) = sequence {
        let owned = table::make_owned_sequence(table, at as u16, request, work)?;
        return Ok(each(ComputedValue::Sequence(sequence::definition(&owned))));
    }
    if let Some(domain) = table.columns[at].domain {
        let default = domain_default(table.columns[at].default.as_deref(), domain, work)?;
        return Ok(each(ComputedValue::of_row(&work.catalog, before, &default, Type::of(domain))));
    }
    let Some(text) = &table.columns[at].default else { return Ok(Filling::Constant(OwnedCell::Null)) };
    if let Some(constant) = check::constant(text, ty, work)? {
        return Ok(Filling::Constant(constant));
    }
    let once = !check::is_volatile_default(text, ty, work)?;
    Ok(Filling::Computed { value: ComputedValue::of_row(&work.catalog, before, text, ty), once })
}

/// What a column of a domain is filled with: its own default, the domain's, or NULL.
fn domain_default(own: Option<&str>, domain: Oid, work: &Work<'_>) -> Result<String> {
    if let Some(default) = own {
        return Ok(default.to_owned());
    }
    Ok(work.catalog.domain_default(domain).unwrap_or_else(|| "NULL".to_owned()))
}

/// The constraints that came with a column must hold for the rows that are there. `is_null` says that
/// they have NULL in it.
fn validate_new_column(before: &Table, table: &Table, is_null: bool, work: &mut Work<'_>) {
    for check in &table.checks[before.checks.len()..] {
        validation::check(table, check, work);
    }
    for key in &table.foreign_keys[before.foreign_keys.len()..] {
        // A value that references itself is there.
        let itself = |other: &u16| key.references == table.oid && usize::from(*other) == before.columns.len();
        if !is_null && !key.referenced_columns.iter().all(itself) {
            validation::foreign_key(table, key, work);
        }
    }
}

/// A table's name as messages have it that describe it: with its schema, unless it is found without.
fn shown_name(table: &TableRef, work: &Work<'_>) -> String {
    match work.catalog.is_visible(&Relation::Table(table.clone()), work.search_path()) {
        true => quote_identifier(&table.name),
        false => quote_qualified(&table.schema, &table.name),
    }
}

/// Types that store alike, where the new one holds every value of the old, change in place; for
/// others the rows are written anew.
pub(super) fn set_type(
    mut table: Table,
    column: &str,
    (ty, collation): (&TypeName, Option<&QualifiedName>),
    using: Option<&Expression>,
    work: &mut Work<'_>,
) -> Result<()> {
    let place = column_place(&table, column)?;
    let at = usize::from(place);
    let old = table.columns[at].ty;
    table::check_collation(collation)?;
    let (new, domain) = table::named_type(column, ty, work)?;
    if let Some(collation) = collation {
        collation::check_collatable(new, work).map_err(|error| error.at(collation.at()))?;
    }
    // They begin anew with the type.
    let before = table.columns[at].clone();
    table.columns[at].collation = table::column_collation(collation, domain, work);
    table.columns[at].storage = ColumnStorage { statistics: before.storage.statistics, ..Default::default() };
    let old_domain = std::mem::replace(&mut table.columns[at].domain, domain);
    // A value that keeps its type meets the conditions of a new domain all the same.
    let guarded = domain.is_some_and(|domain| old_domain != Some(domain));
    // Who uses the column is asked even where its type remains.
    let unchanged = old == new && using.is_none() && domain == old_domain;
    if !unchanged {
        composite::check_column(&Column { ty: new, ..table.columns[at].clone() }, &table, work)?;
        composite::check_not_stored(table.row_type(), &table.name, "table", "its row type", work)?;
    }
    check_users(&table, place, work)?;
    if unchanged {
        if table.columns[at] != before {
            finish(table, work);
        }
        return Ok(());
    }
    if (widens(old, new) || old == new) && using.is_none() && !guarded && Codec::of(old) == Codec::of(new) {
        table.columns[at].ty = new;
        finish(table, work);
        return Ok(());
    }
    if let Some(using) = using {
        // What it says is about the row as it was before the statement.
        let original = work.env.catalog.table_by_oid(table.oid);
        let original = original.as_deref().filter(|original| original.column_index(column).is_some());
        check::check_transform(using, original.unwrap_or(&table), work)?;
    }
    check_users_of_type(&table, place, new, work)?;
    let expression = using.map_or_else(|| quote_identifier(column), |using| using.text.clone());
    // What USING says is about the row as it was before the statement.
    let original = work.env.catalog.table_by_oid(table.oid).filter(|_| table.is_stored());
    let original = original.filter(|original| original.column_index(column).is_some());
    let known = original.as_ref().map_or(&work.catalog, |_| work.env.catalog);
    check_conversion((&table, known), column, &expression, using.is_some(), new, work)?;
    check_default(&table.columns[at], new, work)?;
    if table.columns[at].identity.is_some() {
        follow_type(&table, place, new, work)?;
    }
    work.rewritten.push((table.oid, column.to_owned()));
    let over = original.as_deref().unwrap_or(&table);
    let mut value = ComputedValue::of_row(&work.catalog, over, &expression, domain.map_or(new, Type::of));
    if let ComputedValue::Query { of_original, .. } = &mut value {
        *of_original = original.is_some();
    }
    let not_null = table.columns[at].not_null.then(|| validation::null_values(column, &table));
    table.columns[at].ty = new;
    // Which moment, or which label, a default means stays what it was; the session that inserts casts it.
    let element = element_of(old.oid).unwrap_or(old.oid);
    let means_more = is_date_or_time(old.oid) || old.oid.innermost_kind().is_some() || element.names_object();
    if let (true, Some(default)) = (means_more && old.oid != new.oid, &table.columns[at].default)
        && let Some(typed) = check::typed_default(default, old, work)?
    {
        table.columns[at].default = Some(typed);
    }
    let stored = table.clone();
    let taken = index_rebuild::take_off(&mut table, place, work)?;
    place_anew(&mut table, place, work)?;
    let table = work.put_table(table);
    let mut visible = column_source::all_kept(&table);
    visible[at] = ColumnSource::Constant(OwnedCell::Null);
    let columns = column_source::sources(&stored, &table, visible);
    work.compute(Computed { column: at, ty: new, not_null, once: false, value });
    work.operation(DdlOp::AlterTable { def: table_def(&table), columns });
    index_rebuild::put_back(table, taken, work)
}

/// Refuses another type for a column that views, triggers or generated columns use.
fn check_users(table: &Table, place: u16, work: &Work<'_>) -> Result<()> {
    let column = &table.columns[usize::from(place)].name;
    if let Some(user) = view_query::users_of_column(table, place, work).first() {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot alter type of a column used by a view or rule",
        )
        .with_detail(format!(
            "rule _RETURN on view {} depends on column \"{column}\"",
            shown_name(user, work)
        )));
    }
    if let Some(user) = table.triggers.iter().find(|trigger| trigger.uses_column(column)) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot alter type of a column used in a trigger definition",
        )
        .with_detail(format!(
            "trigger {} on table {} depends on column \"{column}\"",
            user.name, table.name
        )));
    }
    if let Some(user) = view_query::policies_using_column(table, place, work).first() {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot alter type of a column used in a policy definition",
        )
        .with_detail(format!("{} depends on column \"{column}\"", user.describe(work))));
    }
    if let Some(&user) = check::generated_from(table, place)?.first() {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot alter type of a column used by a generated column",
        )
        .with_detail(format!(
            "Column \"{column}\" is used by generated column \"{}\".",
            table.columns[usize::from(user)].name
        )));
    }
    Ok(())
}

/// Whether a type of text holds all that another one does.
fn widens(old: Type, new: Type) -> bool {
    let text = |ty: Type| matches!(ty.oid, Oid::TEXT | Oid::VARCHAR);
    text(old) && text(new) && (new.typmod == -1 || (old.typmod != -1 && old.typmod <= new.typmod))
}

/// Places the rows of a table, and the entries of its indexes, one of whose columns has another type.
fn place_anew(table: &mut Table, place: u16, work: &mut Work<'_>) -> Result<()> {
    let key_columns: Vec<u16> = table
        .primary_key
        .iter()
        .flat_map(|key| key.columns.iter().copied())
        .chain(table.indexes.iter().flat_map(|index| index.columns.iter().map(|part| part.column)))
        .filter(|column| *column == place)
        .take(1)
        .collect();
    constraint::check_key_types(table, &key_columns, work)?;
    // Boundaries are keys of the old type.
    if matches!(table.distribution, Distribution::Column { column, .. } if column == place) {
        distribution::choose_default(table, work)?;
    }
    for index in
        table.indexes.iter_mut().filter(|index| index.columns.iter().any(|part| part.column == place))
    {
        index.global_group = None;
    }
    distribution::place_indexes(table, work);
    Ok(())
}

/// The sequence of an identity column gives values of the column's type.
fn follow_type(table: &Table, place: u16, new: Type, work: &mut Work<'_>) -> Result<()> {
    let owned = work.catalog.owned_sequences(table.oid);
    let owned = owned.into_iter().find(|owned| owned.owned_by == Some((table.oid, place)));
    let (Some(owned), Some(info)) = (owned, type_info(new.oid)) else { return Ok(()) };
    sequence::change(&owned, &[SequenceOption::As(TypeName::bare(info.name))], work)
}

/// Foreign keys must stay comparable, identities integers.
fn check_users_of_type(table: &Table, place: u16, new: Type, work: &Work<'_>) -> Result<()> {
    let column = &table.columns[usize::from(place)];
    if column.identity.is_some() && !matches!(new.oid, Oid::INT2 | Oid::INT4 | Oid::INT8) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "identity column type must be smallint, integer, or bigint",
        ));
    }
    let tables: Vec<_> = work.catalog.tables().cloned().collect();
    for other in tables {
        for key in &other.foreign_keys {
            for (&own, &referenced) in key.columns.iter().zip(&key.referenced_columns) {
                let child = other.oid == table.oid && own == place;
                let parent = key.references == table.oid && referenced == place;
                if !child && !parent {
                    continue;
                }
                let Some(target) = work.catalog.table_by_oid(key.references) else { continue };
                let child_type = if child { new } else { other.columns[usize::from(own)].ty };
                let parent_type = if parent { new } else { target.columns[usize::from(referenced)].ty };
                if !constraint::comparable(child_type, parent_type) {
                    return Err(SqlError::new(
                        SqlState::DATATYPE_MISMATCH,
                        format!("foreign key constraint \"{}\" cannot be implemented", key.name),
                    )
                    .with_detail(format!(
                        "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
                        other.columns[usize::from(own)].name,
                        target.columns[usize::from(referenced)].name,
                        work.type_name(child_type.oid),
                        work.type_name(parent_type.oid)
                    )));
                }
            }
        }
    }
    Ok(())
}

/// The new value must be assignable to the new type.
fn check_conversion(
    (table, catalog): (&Table, &Catalog),
    column: &str,
    expression: &str,
    using: bool,
    new: Type,
    work: &Work<'_>,
) -> Result<()> {
    let text = format!(
        "SELECT {expression} FROM {} AS {}",
        quote_qualified(&table.schema, &table.name),
        quote_identifier(&table.name)
    );
    let Statement::Query(query) = archipel_sql::parser::parse_stored_statement(&text)? else {
        return Err(SqlError::internal("a SELECT that is no query"));
    };
    let mut env = BindEnv::new(catalog, work.search_path(), work.env.context);
    env.params_fixed = true;
    let BoundStatement::Query(bound) = bind_statement(&Statement::Query(query), &mut env)? else {
        return Err(SqlError::internal("a SELECT that answers nothing"));
    };
    let from = bound.columns.first().map_or(new, |output| output.ty);
    let castable =
        from.oid == new.oid || archipel_sql::cast::find(from.oid, new.oid, CastContext::Assignment).is_some();
    if castable {
        return Ok(());
    }
    let shown = work.type_name(new.oid);
    Err(if using {
        SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "result of USING clause for column \"{column}\" cannot be cast automatically to type {shown}"
            ),
        )
        .with_hint("You might need to add an explicit cast.")
    } else {
        SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("column \"{column}\" cannot be cast automatically to type {shown}"),
        )
        .with_hint(format!(
            "You might need to specify \"USING {}::{}\".",
            quote_identifier(column),
            work.format_type(new)
        ))
    })
}

/// The default must be assignable to the new type, too.
fn check_default(column: &Column, new: Type, work: &Work<'_>) -> Result<()> {
    let said = column.default.as_ref().filter(|text| !text.eq_ignore_ascii_case("null"));
    let Some(text) = said.filter(|_| column.identity.is_none()) else { return Ok(()) };
    let expression = archipel_sql::parser::parse_expression_text(text)?;
    let mut env = BindEnv::new(&work.catalog, work.search_path(), work.env.context);
    env.params_fixed = true;
    // A literal is one of the type that the column had.
    let from = match &expression.expr {
        sqlparser::ast::Expr::Value(_) => column.ty,
        other => match bind_expression(other, &mut env, None)?.ty {
            ty if ty.oid == Oid::UNKNOWN => column.ty,
            ty => ty,
        },
    };
    if from.oid == new.oid || archipel_sql::cast::find(from.oid, new.oid, CastContext::Assignment).is_some() {
        return Ok(());
    }
    let shown = work.type_name(new.oid);
    let message =
        format!("default for column \"{}\" cannot be cast automatically to type {shown}", column.name);
    Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
}

/// ALTER COLUMN … ADD GENERATED, SET GENERATED, RESTART, DROP IDENTITY.
pub(super) fn change_identity(
    mut table: Table,
    column: &str,
    change: &IdentityChange,
    work: &mut Work<'_>,
) -> Result<()> {
    let place = column_place(&table, column)?;
    let at = usize::from(place);
    let wrong = |message: String| SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
    let (relation, known) = (table.name.clone(), table.columns[at].identity.is_some());
    match change {
        IdentityChange::Add { always, options } => {
            if known {
                return Err(wrong(format!(
                    "column \"{column}\" of relation \"{relation}\" is already an identity column"
                )));
            }
            let ty = table.columns[at].ty;
            if !matches!(ty.oid, Oid::INT2 | Oid::INT4 | Oid::INT8) {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    "identity column type must be smallint, integer, or bigint",
                ));
            }
            if !table.columns[at].not_null {
                return Err(wrong(format!(
                    "column \"{column}\" of relation \"{relation}\" must be declared NOT NULL before identity can be added"
                )));
            }
            if table.columns[at].default.is_some() {
                return Err(wrong(format!(
                    "column \"{column}\" of relation \"{relation}\" already has a default value"
                )));
            }
            let request = sequence::SequenceRequest { options: options.clone(), ty };
            table::make_owned_sequence(&mut table, place, &request, work)?;
            table.columns[at].identity = Some(if *always { Identity::Always } else { Identity::ByDefault });
        }
        IdentityChange::Drop { if_exists } => {
            if !known {
                let message =
                    format!("column \"{column}\" of relation \"{relation}\" is not an identity column");
                if *if_exists {
                    work.notice(format!("{message}, skipping"));
                    return Ok(());
                }
                return Err(wrong(message));
            }
            table.columns[at].identity = None;
            table.columns[at].default = None;
            for owned in work.catalog.owned_sequences(table.oid) {
                if owned.owned_by == Some((table.oid, place)) {
                    work.operation(DdlOp::DropSequence(sequence::id(&owned)));
                    work.drop(ObjectKind::Sequence, owned.oid);
                }
            }
        }
        IdentityChange::Set { always, options } => {
            if !known {
                return Err(wrong(format!(
                    "column \"{column}\" of relation \"{relation}\" is not an identity column"
                )));
            }
            if let Some(always) = always {
                table.columns[at].identity =
                    Some(if *always { Identity::Always } else { Identity::ByDefault });
            }
            let owned = work.catalog.owned_sequences(table.oid);
            let owned = owned.into_iter().find(|owned| owned.owned_by == Some((table.oid, place)));
            if let Some(owned) = owned.filter(|_| !options.is_empty()) {
                let options: Vec<SequenceOption> = options.clone();
                sequence::change(&owned, &options, work)?;
            }
        }
    }
    finish(table, work);
    Ok(())
}

/// SET NOT NULL and DROP NOT NULL.
pub(super) fn set_not_null(
    mut table: Table,
    column: &str,
    not_null: bool,
    work: &mut Work<'_>,
) -> Result<()> {
    let place = usize::from(column_place(&table, column)?);
    if table.columns[place].not_null == not_null {
        return Ok(());
    }
    if not_null {
        validate_not_null(&table, place, work);
    } else {
        if table.primary_key.as_ref().is_some_and(|key| key.columns.contains(&(place as u16))) {
            return Err(SqlError::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!("column \"{column}\" is in a primary key"),
            ));
        }
        if table.columns[place].identity.is_some() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("column \"{column}\" of relation \"{}\" is an identity column", table.name),
            ));
        }
        if matches!(table.distribution, Distribution::Column { column, .. } if usize::from(column) == place) {
            if table.distributed_by == DistributedBy::Request {
                return Err(SqlError::unsupported(format_args!(
                    "DROP NOT NULL of the distribution column \"{column}\""
                )));
            }
            // Nobody asked for it.
            table.columns[place].not_null = false;
            distribution::choose_default(&mut table, work)?;
        }
    }
    table.columns[place].not_null = not_null;
    // Entries lie with their rows by a column that is never NULL.
    distribution::place_indexes(&mut table, work);
    finish(table, work);
    Ok(())
}
