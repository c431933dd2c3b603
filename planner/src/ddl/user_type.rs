//! CREATE, ALTER and DROP TYPE.

use archipel_sql::ast::{AlterType, CreateType, Drop, ObjectWord, TypeAction};
use archipel_sql::catalog::names::{quote_identifier, undefined_schema};
use archipel_sql::catalog::user_type::{Domain, EnumLabel, LABEL_BYTES_MAX, UserType, enum_oid, label_oid};
use archipel_sql::catalog::{Object, ObjectKind, TableKind, UserTypeRef};
use archipel_sql::error::{Result, SqlError, SqlState};

use super::work::Work;
use super::{definition, drop, routine, schema, view};

pub(super) fn create_type(create: &CreateType, work: &mut Work<'_>) -> Result<()> {
    let schema = work.target_schema(&create.name)?;
    let name = &create.name.name;
    check_free(&schema, name, work)?;
    let mut labels: Vec<EnumLabel> = Vec::with_capacity(create.labels.len());
    for label in &create.labels {
        check_label(label)?;
        if labels.iter().any(|known| known.name == *label) {
            return Err(SqlError::new(
                SqlState::UNIQUE_VIOLATION,
                "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"",
            ));
        }
        labels.push(EnumLabel { oid: label_oid(work.oids(1)), name: label.clone() });
    }
    let oid = enum_oid(work.oids(1));
    work.put(Object::Type(UserTypeRef::new(UserType {
        oid,
        schema,
        name: name.clone(),
        labels,
        domain: None,
    })));
    Ok(())
}

pub(super) fn check_free(schema: &str, name: &str, work: &Work<'_>) -> Result<()> {
    let table = work.catalog.relation_in(schema, name);
    let row_type = matches!(table, Some(archipel_sql::catalog::Relation::Table(_)));
    if row_type || work.catalog.user_type_in(schema, name).is_some() {
        return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, format!("type \"{name}\" already exists")));
    }
    Ok(())
}

fn check_label(label: &str) -> Result<()> {
    if label.len() > LABEL_BYTES_MAX {
        return Err(SqlError::new(SqlState::INVALID_NAME, format!("invalid enum label \"{label}\""))
            .with_detail(format!("Labels must be {LABEL_BYTES_MAX} bytes or less.")));
    }
    Ok(())
}

/// Refuses to rename what a default, a condition or a view says: they are kept as text.
pub(super) fn check_unwritten(word: &str, what: &str, work: &Work<'_>) -> Result<()> {
    let says = |text: &str| text.contains(word);
    for table in work.catalog.tables() {
        let texts = table
            .columns
            .iter()
            .flat_map(|column| column.default.iter().chain(&column.generated))
            .chain(table.checks.iter().map(|check| &check.condition))
            .chain(table.indexes.iter().filter_map(|index| index.predicate.as_ref()))
            .chain(table.index_expressions().map(|(_, expression)| &expression.text))
            .chain(table.view.iter().map(|view| &view.query));
        if texts.into_iter().any(|text| says(text)) {
            return Err(SqlError::unsupported(format_args!(
                "renaming {what} in relation \"{}\"",
                table.name
            )));
        }
    }
    Ok(())
}

pub(super) fn alter_type(alter: &AlterType, work: &mut Work<'_>) -> Result<()> {
    let known = work.catalog.require_user_type(&alter.name, work.search_path())?;
    let mut changed = (*known).clone();
    if known.domain.is_some()
        && matches!(alter.action, TypeAction::AddValue { .. } | TypeAction::RenameValue { .. })
    {
        let message = format!("{} is not an enum", known.name);
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
    }
    match &alter.action {
        TypeAction::AddValue { label, if_not_exists, place } => {
            check_label(label)?;
            if known.label(label).is_some() {
                let message = format!("enum label \"{label}\" already exists");
                if *if_not_exists {
                    work.notice_as(SqlState::DUPLICATE_OBJECT, format!("{message}, skipping"));
                    return Ok(());
                }
                return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
            }
            if let Some((after, neighbour)) = place {
                let at = known.labels.iter().position(|other| other.name == *neighbour).ok_or_else(|| {
                    SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!("\"{neighbour}\" is not an existing enum label"),
                    )
                })?;
                // Labels sort by their numbers, and there is none left between two.
                if !*after || at + 1 < known.labels.len() {
                    return Err(SqlError::unsupported("ALTER TYPE … ADD VALUE other than at the end"));
                }
            }
            changed.labels.push(EnumLabel { oid: label_oid(work.oids(1)), name: label.clone() });
        }
        TypeAction::RenameValue { from, to } => {
            check_label(to)?;
            if known.label(to).is_some() {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_OBJECT,
                    format!("enum label \"{to}\" already exists"),
                ));
            }
            let label = changed.labels.iter_mut().find(|label| label.name == *from).ok_or_else(|| {
                SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("\"{from}\" is not an existing enum label"),
                )
            })?;
            label.name = to.clone();
            check_unwritten(&format!("'{}'", from.replace('\'', "''")), "a label that is written", work)?;
        }
        TypeAction::RenameTo(name) => {
            check_free(&known.schema, name, work)?;
            check_unwritten(&known.name, "a type that is named", work)?;
            changed.name = name.clone();
        }
        TypeAction::SetSchema(schema) => {
            schema::check_target(schema, work)?;
            if *schema != known.schema {
                check_free(schema, &known.name, work)?;
                check_unwritten(&known.name, "a type that is named", work)?;
            }
            changed.schema = schema.clone();
        }
        TypeAction::OwnerTo(role) => return schema::check_role(role, work),
    }
    work.put(Object::Type(UserTypeRef::new(changed)));
    Ok(())
}

pub(super) fn drop_types(statement: &Drop, work: &mut Work<'_>) -> Result<()> {
    for name in &statement.names {
        let Some(known) = work.catalog.user_type(name.schema.as_deref(), &name.name, work.search_path())
        else {
            if let Some(schema) = name.schema.as_deref().filter(|schema| !work.catalog.schema_exists(schema))
                && !statement.if_exists
            {
                return Err(undefined_schema(schema));
            }
            let message = format!("type \"{name}\" does not exist");
            if statement.if_exists {
                work.notice(format!("{message}, skipping"));
                continue;
            }
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
        };
        if statement.kind == ObjectWord::Domain && known.domain.is_none() {
            let message = format!("\"{}\" is not a domain", known.name);
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        drop_type(&known, statement.cascade, work)?;
    }
    Ok(())
}

/// Drops a type; with CASCADE the columns and routines that use it go along.
pub(super) fn drop_type(known: &UserTypeRef, cascade: bool, work: &mut Work<'_>) -> Result<()> {
    let uses = |oid| oid == known.oid || oid == known.array_type();
    let mut lines = Vec::new();
    let mut columns = Vec::new();
    for table in work.catalog.tables().filter(|table| table.kind != TableKind::System) {
        for column in table.columns.iter().filter(|column| uses(column.declared().oid)) {
            if table.kind == TableKind::View {
                lines.push(format!("view {}", table.name));
                break;
            }
            lines.push(format!("column {} of table {}", column.name, table.name));
            columns.push((table.oid, column.name.clone()));
        }
    }
    let routines: Vec<_> = work
        .catalog
        .routines_all()
        .filter(|routine| {
            uses(routine.declared_result().oid) || routine.args.iter().any(|arg| uses(arg.declared().oid))
        })
        .cloned()
        .collect();
    for routine in &routines {
        let dependent = archipel_sql::catalog::dependency::Dependent::Routine(routine.clone());
        lines.push(dependent.describe());
    }
    let domains: Vec<UserTypeRef> = work
        .catalog
        .user_types()
        .filter(|ty| {
            let based = |domain: &Domain| uses(domain.base.oid) || domain.parent.is_some_and(uses);
            ty.domain.as_ref().is_some_and(based)
        })
        .cloned()
        .collect();
    lines.extend(domains.iter().map(|domain| format!("type {}", domain.name)));
    // Definitions over the columns go with those.
    let mut definitions = definition::users(ObjectKind::Type, known.oid, work);
    definitions.retain(|user| !definition::is_over(user, &columns));
    lines.extend(definitions.iter().map(|user| user.describe()));
    if !lines.is_empty() {
        let name = quote_identifier(&known.name);
        if !cascade {
            let detail: Vec<String> =
                lines.iter().map(|line| format!("{line} depends on type {name}")).collect();
            return Err(SqlError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("cannot drop type {name} because other objects depend on it"),
            )
            .with_detail(detail.join("\n"))
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        match &lines[..] {
            [only] => work.notice(format!("drop cascades to {only}")),
            many => {
                let detail: Vec<String> =
                    many.iter().map(|line| format!("drop cascades to {line}")).collect();
                work.notice_with_detail(
                    format!("drop cascades to {} other objects", many.len()),
                    detail.join("\n"),
                );
            }
        }
    }
    for (table, column) in columns {
        let Some(table) = work.catalog.table_by_oid(table) else { continue };
        if let Some(place) = table.column_index(&column) {
            for user in view::users_of_column(&table, place, work) {
                work.drop(ObjectKind::Table, user.oid);
            }
        }
        super::alter::drop_column_of(&table, &column, work)?;
    }
    definition::drop_users(&definitions, work)?;
    let views: Vec<_> = work
        .catalog
        .tables()
        .filter(|table| table.kind == TableKind::View)
        .filter(|table| table.columns.iter().any(|column| uses(column.declared().oid)))
        .cloned()
        .collect();
    drop::drop_tables(&views, true, work)?;
    for routine in routines {
        routine::drop_one(&routine, work)?;
    }
    for domain in domains {
        if work.catalog.user_type_by_oid(domain.oid).is_some() {
            drop_type(&domain, true, work)?;
        }
    }
    work.drop(ObjectKind::Type, known.oid);
    Ok(())
}
