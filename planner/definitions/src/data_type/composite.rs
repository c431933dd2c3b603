//! Composite types: CREATE TYPE … AS (…), and ALTER TYPE of their attributes.
//!
//! A stored value keeps its fields by place. A field that a type gets at its end reads as NULL in
//! values of before; where one goes, stored values are written anew without it
//! ([`drop_stored_field`]). Another type for a field is refused while some column holds such values
//! ([`check_not_stored`]), as PostgreSQL does.

use archipel_engine::ColumnSource;
use archipel_engine::txn::{DdlOp, OwnedCell};
use archipel_sql::ast::{AttributeAction, ColumnDefinition};
use archipel_sql::catalog::dependency::{Dependent, still_depended_on};
use archipel_sql::catalog::user_type::Domain;
use archipel_sql::catalog::{
    Catalog, Column, Comments, Object, ObjectKind, Table, TableKind, UserType, UserTypeRef,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::type_table::{array_of, element_of};
use archipel_sql::types::{Oid, Type};

use crate::bind::BindEnv;
use crate::bind::domain::check_domain_condition;
use crate::relation::{collation, table};
use crate::row::table_def;
use crate::work::rewrite::{Computed, ComputedValue, FieldWay};
use crate::work::{Work, change, column_source};

/// The attributes of a new type.
pub(super) fn attributes(definitions: &[ColumnDefinition], work: &Work<'_>) -> Result<Vec<Column>> {
    let mut columns: Vec<Column> = Vec::with_capacity(definitions.len());
    for definition in definitions {
        if columns.iter().any(|known| known.name == definition.name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{}\" specified more than once", definition.name),
            ));
        }
        columns.push(attribute(definition, work)?);
    }
    Ok(columns)
}

fn attribute(definition: &ColumnDefinition, work: &Work<'_>) -> Result<Column> {
    // PostgreSQL does not say where here.
    let placeless = |mut error: SqlError| {
        error.fields_mut().position = None;
        error
    };
    table::check_collation(definition.collation.as_ref()).map_err(placeless)?;
    let (ty, domain) = table::named_type(&definition.name, &definition.ty, work).map_err(placeless)?;
    if definition.collation.is_some() {
        collation::check_collatable(ty, work)?;
    }
    let collation = table::column_collation(definition.collation.as_ref(), domain, work);
    Ok(Column { domain, collation, ..Column::new(definition.name.clone(), ty) })
}

/// ALTER TYPE … ADD, DROP, ALTER ATTRIBUTE.
pub(super) fn alter(known: &UserType, actions: &[AttributeAction], work: &mut Work<'_>) -> Result<UserType> {
    let mut changed = known.clone();
    let Some(columns) = &mut changed.attributes else { return Err(not_composite(known)) };
    for action in actions {
        match action {
            AttributeAction::Add(definition) => {
                if columns.iter().any(|column| column.name == definition.name) {
                    return Err(already_there(&definition.name, known));
                }
                let column = attribute(definition, work)?;
                check_not_within(&column, known, work)?;
                columns.push(column);
            }
            AttributeAction::Drop { name, if_exists, .. } => {
                let Some(place) = columns.iter().position(|column| column.name == *name) else {
                    let message = format!("column \"{name}\" of relation \"{}\" does not exist", known.name);
                    if *if_exists {
                        work.notice(format!("{message}, skipping"));
                        continue;
                    }
                    return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
                };
                drop_stored_field(known.oid, place, work)?;
                columns.remove(place);
                renumber_comments(known, place, work);
            }
            AttributeAction::SetType(definition) => {
                let place = place_of(&definition.name, columns, known)?;
                let column = attribute(definition, work)?;
                check_not_within(&column, known, work)?;
                check_not_stored(known.oid, &known.name, "type", "it", work)?;
                columns[place] = column;
            }
        }
    }
    Ok(changed)
}

/// Fails where a condition of a domain does not go with the attributes any more that the type has now.
pub(super) fn check_conditions(known: &UserType, actions: &[AttributeAction], work: &Work<'_>) -> Result<()> {
    let uses = |oid: Oid| oid == known.oid || oid == known.array_type();
    let mut broken = Vec::new();
    let mut problem = None;
    for ty in work.catalog.user_types() {
        let over = |domain: &&Domain| holds(&work.catalog, domain.base.oid, &uses);
        let Some(domain) = ty.domain.as_ref().filter(over) else { continue };
        for (place, check) in domain.checks.iter().enumerate() {
            let mut env = BindEnv::new(&work.catalog, work.search_path(), work.env.context);
            if let Err(error) = check_domain_condition(&check.condition, domain.base, &mut env) {
                broken.push(Dependent::DomainCheck(ty.clone(), place));
                problem.get_or_insert(error);
            }
        }
    }
    let Some(problem) = problem else { return Ok(()) };
    let dropped = actions.iter().find_map(|action| match action {
        AttributeAction::Drop { name, cascade, .. } => Some((name, *cascade)),
        _ => None,
    });
    if let Some((name, cascade)) = dropped {
        if cascade {
            return Err(SqlError::unsupported("DROP ATTRIBUTE … CASCADE of what a domain's condition reads"));
        }
        return Err(still_depended_on(
            &format!("column {name} of composite type {}", known.name),
            &broken,
            work,
        ));
    }
    // Its place is one in the condition.
    Err(problem.placeless())
}

/// ALTER TYPE … RENAME ATTRIBUTE.
pub(super) fn rename(known: &UserType, from: &str, to: &str) -> Result<UserType> {
    let mut changed = known.clone();
    let Some(columns) = &mut changed.attributes else { return Err(not_composite(known)) };
    let Some(place) = columns.iter().position(|column| column.name == from) else {
        let message = format!("column \"{from}\" does not exist");
        return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
    };
    if columns.iter().any(|column| column.name == to) {
        return Err(already_there(to, known));
    }
    columns[place].name = to.to_owned();
    Ok(changed)
}

fn place_of(name: &str, columns: &[Column], of: &UserType) -> Result<usize> {
    columns.iter().position(|column| column.name == name).ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{name}\" of relation \"{}\" does not exist", of.name),
        )
    })
}

fn already_there(name: &str, of: &UserType) -> SqlError {
    SqlError::new(
        SqlState::DUPLICATE_COLUMN,
        format!("column \"{name}\" of relation \"{}\" already exists", of.name),
    )
}

fn not_composite(ty: &UserType) -> SqlError {
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not a composite type", ty.name))
}

/// A type cannot hold itself, in a field or in a field's field.
fn check_not_within(column: &Column, of: &UserType, work: &Work<'_>) -> Result<()> {
    let own = Some(of.oid);
    if holds(&work.catalog, column.ty.oid, &|oid| Some(oid) == own || Some(oid) == array_of(of.oid)) {
        return Err(member_of_itself(&of.name));
    }
    Ok(())
}

/// 42P16 for a column of a table that would hold the table's own rows.
pub(crate) fn check_column(column: &Column, table: &Table, work: &Work<'_>) -> Result<()> {
    let (row, array) = (table.row_type(), table.row_array_type());
    if holds(&work.catalog, column.ty.oid, &|oid| oid == row || oid == array) {
        return Err(member_of_itself(&table.name));
    }
    Ok(())
}

fn member_of_itself(name: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TABLE_DEFINITION,
        format!("composite type {name} cannot be made a member of itself"),
    )
}

/// Whether a type is what is asked for, or has it in a field at any depth.
pub(super) fn holds(catalog: &Catalog, ty: Oid, wanted: &dyn Fn(Oid) -> bool) -> bool {
    if wanted(ty) {
        return true;
    }
    let row = element_of(ty).unwrap_or(ty);
    // No type is in a field of its own, so that this comes to an end.
    catalog
        .table_of_row_type(row)
        .is_some_and(|relation| relation.columns.iter().any(|column| holds(catalog, column.ty.oid, wanted)))
}

/// Whether a type has a domain, or an array of one, in a field at any depth.
pub(super) fn holds_domain(catalog: &Catalog, ty: Oid, wanted: &dyn Fn(Oid) -> bool) -> bool {
    let row = element_of(ty).unwrap_or(ty);
    catalog.table_of_row_type(row).is_some_and(|relation| {
        let mut columns = relation.columns.iter();
        columns
            .any(|column| column.domain.is_some_and(wanted) || holds_domain(catalog, column.ty.oid, wanted))
    })
}

/// 0A000 while a column holds values of a composite type, in whatever depth.
pub(crate) fn check_not_stored(row: Oid, name: &str, what: &str, uses: &str, work: &Work<'_>) -> Result<()> {
    let array = array_of(row);
    let said: Vec<Oid> = array.into_iter().chain([row]).collect();
    if !work.catalog.is_said(&said) {
        // Neither a column nor a field is of it.
        return Ok(());
    }
    for table in work.catalog.tables().filter(|table| table.kind == TableKind::Table) {
        for column in &table.columns {
            if holds(&work.catalog, column.ty.oid, &|oid| oid == row || Some(oid) == array) {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!(
                        "cannot alter {what} \"{name}\" because column \"{}.{}\" uses {uses}",
                        table.name, column.name
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// Comments name attributes by number, and those behind one that goes move up.
fn renumber_comments(known: &UserType, gone: usize, work: &mut Work<'_>) {
    let Some(relation) = known.oid.relation_of_row_type() else { return };
    let Some(comments) = work.catalog.comments(relation) else { return };
    let mut comments = Comments::clone(&comments);
    // Numbers begin with one.
    comments.texts.retain(|(number, _)| usize::from(*number) != gone + 1);
    for (number, _) in comments.texts.iter_mut().filter(|(number, _)| usize::from(*number) > gone + 1) {
        *number -= 1;
    }
    if comments.texts.is_empty() {
        work.drop(ObjectKind::Comments, relation);
    } else {
        work.put(Object::Comments(comments));
    }
}

/// Writes the stored values of a composite type, in whatever depth, without one of their fields.
///
/// Errors: 0A000 where they stand in a key, whose entries nobody would write anew.
pub(crate) fn drop_stored_field(row: Oid, place: usize, work: &mut Work<'_>) -> Result<()> {
    let tables = work.catalog.tables().filter(|table| table.is_stored());
    let mut found: Vec<(Table, Vec<(usize, FieldWay)>)> = Vec::new();
    for table in tables {
        let columns = table.columns.iter().enumerate();
        let ways =
            columns.filter_map(|(at, column)| Some((at, way_to(&work.catalog, column.ty.oid, row, place)?)));
        let ways: Vec<_> = ways.collect();
        if ways.is_empty() {
            continue;
        }
        if let Some((at, _)) = ways.iter().find(|(at, _)| is_in_key(table, *at)) {
            let column = &table.columns[*at].name;
            return Err(SqlError::unsupported(format_args!(
                "dropping a field of the values of key column \"{}.{column}\"",
                table.name
            )));
        }
        found.push((Table::clone(table), ways));
    }
    for (table, ways) in found {
        let types: Vec<Type> = table.columns.iter().map(|column| column.ty).collect();
        let table = work.put_table(table);
        let mut visible = column_source::all_kept(&table);
        for (at, way) in ways {
            visible[at] = ColumnSource::Constant(OwnedCell::Null);
            let value = ComputedValue::WithoutField { types: types.clone(), column: at, way };
            work.compute(Computed { column: at, ty: types[at], not_null: None, once: false, value });
        }
        let columns = column_source::sources(&table, &table, visible);
        work.operation(DdlOp::AlterTable { def: table_def(&table), columns });
    }
    Ok(())
}

/// Whether a column is part of the primary key or of an index.
fn is_in_key(table: &Table, column: usize) -> bool {
    let primary = table.primary_key.iter().flat_map(|key| &key.columns);
    let indexes = table.indexes.iter().flat_map(|index| index.columns.iter().map(|part| &part.column));
    primary.chain(indexes).any(|place| usize::from(*place) == column)
}

/// The way to a field of the rows of a type that values of another hold; `None` if they hold none.
fn way_to(catalog: &Catalog, ty: Oid, row: Oid, place: usize) -> Option<FieldWay> {
    if ty == row {
        return Some(FieldWay::Here(place));
    }
    if let Some(element) = element_of(ty) {
        return way_to(catalog, element, row, place).map(|way| FieldWay::Elements(Box::new(way)));
    }
    let relation = catalog.table_of_row_type(ty)?;
    let fields = relation.columns.iter().enumerate();
    let ways = fields.filter_map(|(at, column)| Some((at, way_to(catalog, column.ty.oid, row, place)?)));
    let ways: Vec<_> = ways.collect();
    (!ways.is_empty()).then_some(FieldWay::Fields(ways))
}

/// The attributes of other composite types that are of some types.
pub(super) fn attributes_of_type(types: &[Oid], itself: Oid, work: &Work<'_>) -> Vec<Dependent> {
    let others = work.catalog.types_saying(types).filter(|ty| ty.oid != itself);
    let places = others.flat_map(|ty| {
        let columns = ty.attributes.iter().flatten().enumerate();
        columns
            .filter(|(_, column)| types.contains(&column.declared().oid))
            .map(move |(place, _)| (ty, place))
    });
    places.map(|(ty, place)| Dependent::Attribute(ty.clone(), place as u16)).collect()
}

/// Drops an attribute whose type goes.
pub(crate) fn drop_attribute(ty: &UserTypeRef, place: u16, work: &mut Work<'_>) -> Result<()> {
    let Some(name) = ty.attributes.iter().flatten().nth(usize::from(place)).map(|column| &column.name) else {
        return Ok(());
    };
    let Some(known) = work.catalog.user_type_by_oid(ty.oid) else { return Ok(()) };
    let drop = AttributeAction::Drop { name: name.clone(), if_exists: true, cascade: true };
    let changed = alter(&known, &[drop], work)?;
    finish(changed, work);
    Ok(())
}

/// Puts a changed type, and gives everything whose plans hold its fields a new version.
pub(super) fn finish(changed: UserType, work: &mut Work<'_>) {
    let (row, array) = (changed.oid, changed.array_type());
    work.put(Object::Type(UserTypeRef::new(changed)));
    let uses = |catalog: &Catalog, ty: Oid| holds(catalog, ty, &|oid| oid == row || oid == array);
    change::compile_users_anew(
        work,
        |catalog, column| uses(catalog, column.ty.oid),
        |catalog, routine| {
            let mut types = routine.args.iter().map(|arg| arg.ty.oid).chain([routine.result.oid]);
            types.any(|ty| uses(catalog, ty))
        },
    );
}
