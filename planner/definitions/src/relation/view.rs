//! CREATE VIEW, and what becomes of views when what they read changes.

use std::ops::{ControlFlow, Range};

use archipel_sql::ast::{AlterTableAction, ColumnOption, CreateView, Statement};
use archipel_sql::catalog::dependency::{Dependent, still_depended_on};
use archipel_sql::catalog::names::{is_temporary_schema, quote_qualified, undefined_column};
use archipel_sql::catalog::view::reference;
use archipel_sql::catalog::{
    Catalog, CatalogChange, CheckOption, Column, Object, ObjectKind, Persistence, Relation, Routine,
    RoutineRef, StoredBody, Table, TableKind, TableRef, View, ViewReference,
};
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::parser::{Positions, parse, parse_query};
use archipel_sql::type_table::{BuiltIn, TypeNames, is_pseudo_type};
use sqlparser::ast::{Cte, ObjectName, Query, SetExpr, Visit, Visitor};

use super::policy_users;
use super::storage_option::{check_reset, check_said_once};
use super::view_query::{bodies_using_column, bound, users_of_column};
use crate::access::owner;
use crate::bind::name::{ident_name, object_name_span, own_rows, schema_and_name};
use crate::bind::stored_expression::DEFINITION_PATH;
use crate::bind::target::check_updatable;
use crate::bind::{BindEnv, bind_statement};
use crate::bound::OutputColumn;
use crate::data_type::type_name;
use crate::drop::cascade;
use crate::expression::literal::StoredStatements;
use crate::expression::{check, literal};
use crate::namespace;
use crate::work::{Work, change};

/// Whether a query is SELECT INTO: of operands of UNION and the like, the first says so.
fn makes_a_table(query: &Query) -> bool {
    let mut body = &*query.body;
    loop {
        body = match body {
            SetExpr::Select(select) => return select.into.is_some(),
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Query(query) => &query.body,
            _ => return false,
        };
    }
}

pub(crate) fn create_view(create: &CreateView, work: &mut Work<'_>) -> Result<()> {
    make_view(create, work).map_err(|error| placed(error, create, work))
}

/// An error of a view's query with its place in the statement. What is bound is the query as it is kept,
/// where other texts stand in the place of names and literals: so the one as written is asked again.
fn placed(error: SqlError, create: &CreateView, work: &Work<'_>) -> SqlError {
    if error.fields().position.is_some() {
        return error;
    }
    let bind = || {
        let query = parse_query(&create.query)?;
        let mut env = BindEnv::new(&work.catalog, work.search_path(), work.env.context);
        env.text = &create.query;
        env.params_fixed = true;
        bind_statement(&Statement::Query(query), &mut env).map(|_| ())
    };
    match bind() {
        Err(told) if told.state() == error.state() && told.message() == error.message() => {
            let position = told.moved(create.before).fields().position;
            error.at(position)
        }
        _ => error,
    }
}

fn make_view(create: &CreateView, work: &mut Work<'_>) -> Result<()> {
    let query = parse_query(&create.query)?;
    if makes_a_table(&query) {
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "views must not contain SELECT INTO"));
    }
    let mut names = RelationNames::default();
    let _ = query.visit(&mut names);
    if names.changes_data {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "views must not contain data-modifying statements in WITH",
        ));
    }
    let mut view = stored_query(&create.query, &names, work);
    let stored =
        StoredStatements { references: &view.references, routine: None, search_path: DEFINITION_PATH };
    if literal::settle_statements(&mut view.query, stored, work)? {
        view.search_path.clear();
    }
    set_options(&mut view, &create.options)?;
    view.check_option = create.check_option.or(view.check_option);
    let temporary_inputs = view.references.iter().any(|reference| {
        work.catalog.table_by_oid(reference.relation).is_some_and(|table| is_temporary_schema(&table.schema))
    });
    if temporary_inputs && !create.temporary {
        work.notice(format!("view \"{}\" will be a temporary view", create.name.name));
    }
    let temporary = create.temporary || temporary_inputs || work.is_temporary_target(&create.name);
    let schema =
        if temporary { work.temporary_target(&create.name)? } else { work.target_schema(&create.name)? };
    let mut outputs = outputs(&view, &work.catalog, work)?;
    if create.columns.len() > outputs.len() {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "CREATE VIEW specifies more column names than columns",
        ));
    }
    for (output, name) in outputs.iter_mut().zip(&create.columns) {
        output.name = name.clone();
    }
    check_changes(&view, work)?;
    let columns: Vec<Column> = outputs
        .iter()
        .map(|output| Column {
            domain: work.catalog.domain_of(output.source),
            ..Column::new(output.name.clone(), output.ty)
        })
        .collect();
    for (place, column) in columns.iter().enumerate() {
        if columns[..place].iter().any(|other| other.name == column.name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{}\" specified more than once", column.name),
            ));
        }
        if is_pseudo_type(column.ty.oid) {
            let message =
                format!("column \"{}\" has pseudo-type {}", column.name, BuiltIn.format_type(column.ty));
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
    }
    match work.catalog.relation_in(&schema, &create.name.name) {
        None if work.catalog.is_relation(&schema, &create.name.name) => Err(match create.or_replace {
            true => not_a_view(&create.name.name),
            false => change::already_exists(&create.name.name),
        }),
        None => {
            type_name::check_row_type(&schema, &create.name.name, work)?;
            let persistence = if temporary { Persistence::Temporary } else { Persistence::Permanent };
            let table = Table {
                columns,
                persistence,
                view: Some(view),
                ..Table::new(work.oids(3), schema, &create.name.name, TableKind::View)
            };
            work.put_table(table);
            Ok(())
        }
        Some(Relation::Table(known)) if create.or_replace && known.kind == TableKind::View => {
            work.require_owner(known.oid)?;
            replace_view(&known, columns, view, work)
        }
        Some(other) if create.or_replace => Err(not_a_view(other.name())),
        Some(_) => Err(SqlError::new(
            SqlState::DUPLICATE_TABLE,
            format!("relation \"{}\" already exists", create.name.name),
        )),
    }
}

fn not_a_view(name: &str) -> SqlError {
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a view"))
}

/// A check option is for a view that rows can be written through.
fn check_changes(view: &View, work: &Work<'_>) -> Result<()> {
    if view.check_option.is_none() {
        return Ok(());
    }
    let env = BindEnv::new(&work.catalog, &view.search_path, work.env.context);
    check_updatable(view, &env)
}

/// WITH (…) of CREATE VIEW, and SET (…) of ALTER VIEW.
fn set_options(view: &mut View, options: &[(String, Option<String>)]) -> Result<()> {
    let invalid = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    for (name, value) in options {
        let value = value.as_deref().unwrap_or("true");
        match name.as_str() {
            "check_option" => {
                view.check_option = Some(match value.to_ascii_lowercase().as_str() {
                    "local" => CheckOption::Local,
                    "cascaded" => CheckOption::Cascaded,
                    _ => {
                        let message = format!("invalid value for enum option \"check_option\": {value}");
                        return Err(
                            invalid(message).with_detail("Valid values are \"local\" and \"cascaded\".")
                        );
                    }
                });
            }
            "security_invoker" | "security_barrier" => {
                if archipel_sql::io::parse_bool(value).is_none() {
                    return Err(invalid(format!("invalid value for boolean option \"{name}\": {value}")));
                }
                view.options.retain(|(known, _)| known != name);
                view.options.push((name.clone(), value.to_owned()));
            }
            unknown => return Err(invalid(format!("unrecognized parameter \"{unknown}\""))),
        }
    }
    check_said_once(options)
}

/// RESET (…) of ALTER VIEW.
fn reset_options(view: &mut View, options: &[(String, Option<String>)]) -> Result<()> {
    check_reset(options)?;
    for (name, _) in options {
        match name.as_str() {
            "check_option" => view.check_option = None,
            _ => view.options.retain(|(known, _)| known != name),
        }
    }
    Ok(())
}

/// The new query must show the old columns first, under their names and types.
fn replace_view(known: &TableRef, columns: Vec<Column>, view: View, work: &mut Work<'_>) -> Result<()> {
    let invalid = |message: String| SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message);
    if columns.len() < known.columns.len() {
        return Err(invalid("cannot drop columns from view".to_owned()));
    }
    for (old, new) in known.columns.iter().zip(&columns) {
        if old.name != new.name {
            return Err(invalid(format!(
                "cannot change name of view column \"{}\" to \"{}\"",
                old.name, new.name
            ))
            .with_hint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead."));
        }
        if old.ty != new.ty {
            return Err(invalid(format!(
                "cannot change data type of view column \"{}\" from {} to {}",
                old.name,
                work.format_type(old.ty),
                work.format_type(new.ty)
            )));
        }
    }
    let reads_itself = view.references.iter().any(|reference| {
        reference.relation == known.oid
            || work.catalog.views_over(known.oid).iter().any(|over| over.oid == reference.relation)
    });
    if reads_itself {
        return Err(SqlError::new(
            SqlState::INVALID_OBJECT_DEFINITION,
            format!("infinite recursion detected in rules for relation \"{}\"", known.name),
        ));
    }
    let mut changed = (**known).clone();
    let defaults: Vec<Option<String>> = changed.columns.iter().map(|column| column.default.clone()).collect();
    changed.columns = columns;
    for (column, default) in changed.columns.iter_mut().zip(defaults) {
        column.default = default;
    }
    changed.view = Some(view);
    work.put_table(changed);
    Ok(())
}

/// Relation names in a query, with where they stand.
#[derive(Default)]
struct RelationNames {
    names: Vec<ObjectName>,
    /// Names of WITH queries: a plain name that is one of them means that.
    ctes: Vec<String>,
    changes_data: bool,
}

impl Visitor for RelationNames {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for Cte { alias, .. } in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.ctes.push(ident_name(&alias.name));
        }
        self.changes_data |= matches!(
            *query.body,
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
        );
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        self.names.push(relation.clone());
        ControlFlow::Continue(())
    }
}

/// The query with its relations by number. Names that lead nowhere stay: binding reports them.
fn stored_query(text: &str, names: &RelationNames, work: &Work<'_>) -> View {
    let positions = Positions::new(text);
    let mut references: Vec<ViewReference> = Vec::new();
    let mut places: Vec<(Range<usize>, usize)> = Vec::new();
    for name in &names.names {
        let (name, _) = own_rows(name);
        let name = &*name;
        let Ok((schema, table_name)) = schema_and_name(name) else { continue };
        if schema.is_none() && names.ctes.contains(&table_name) {
            continue;
        }
        let Some(table) = work.catalog.table(schema.as_deref(), &table_name, work.search_path()) else {
            continue;
        };
        let (first, last) = (object_name_span(name).start, last_span_end(name));
        let range = positions.byte(first)..positions.byte(last);
        if table.kind == TableKind::System || range.is_empty() {
            continue;
        }
        let reference = ViewReference {
            relation: table.oid,
            name: table_name,
            columns: table.columns.iter().map(|column| column.name.clone()).collect(),
        };
        let number = references.iter().position(|known| *known == reference).unwrap_or(references.len());
        if number == references.len() {
            references.push(reference);
        }
        places.push((range, number));
    }
    places.sort_unstable_by_key(|(range, _)| range.start);
    let mut query = String::with_capacity(text.len());
    let mut copied = 0;
    for (range, number) in places {
        if range.start < copied {
            continue;
        }
        query.push_str(&text[copied..range.start]);
        query.push_str(&reference(number));
        copied = range.end;
    }
    query.push_str(&text[copied..]);
    let search_path = work.search_path().to_vec();
    View { query, references, search_path, check_option: None, options: Vec::new() }
}

/// An expression over a row of a table as it is understood now, as the query of which it is the only column.
pub(crate) fn stored_expression(text: &str, table: &Table, work: &Work<'_>) -> Result<View> {
    let text = format!("SELECT ({text}\n) FROM {}", quote_qualified(&table.schema, &table.name));
    let mut names = RelationNames::default();
    let _ = parse_query(&text)?.visit(&mut names);
    // The table itself is the first that is known.
    names.names.sort_by_key(|name| std::cmp::Reverse(object_name_span(name).start));
    let mut view = stored_query(&text, &names, work);
    let stored =
        StoredStatements { references: &view.references, routine: None, search_path: DEFINITION_PATH };
    if literal::settle_statements(&mut view.query, stored, work)? {
        view.search_path.clear();
    }
    Ok(view)
}

/// The statements of a routine as they are understood now.
pub(crate) fn stored_body(text: &str, routine: &Routine, work: &Work<'_>) -> Result<StoredBody> {
    let mut names = RelationNames::default();
    for statement in parse(text)? {
        let _: ControlFlow<()> = match &statement.statement {
            Statement::Query(query) => query.visit(&mut names),
            Statement::Insert(insert) => insert.visit(&mut names),
            Statement::Update(update) => update.visit(&mut names),
            Statement::Delete(delete) => delete.visit(&mut names),
            _ => continue,
        };
    }
    let View { query: mut text, references, search_path, .. } = stored_query(text, &names, work);
    let stored =
        StoredStatements { references: &references, routine: Some(routine), search_path: &search_path };
    literal::settle_statements(&mut text, stored, work)?;
    Ok(StoredBody { text, references, search_path, returns: false })
}

fn last_span_end(name: &ObjectName) -> sqlparser::tokenizer::Location {
    match name.0.last() {
        Some(sqlparser::ast::ObjectNamePart::Identifier(ident)) => ident.span.end,
        _ => object_name_span(name).end,
    }
}

/// The columns a view's query answers in a catalog.
fn outputs(view: &View, catalog: &Catalog, work: &Work<'_>) -> Result<Vec<OutputColumn>> {
    bound(view, catalog, work).map(|query| query.columns)
}

/// Makes room for a column to go: the views and policies that use it go too, or the column stays.
pub(crate) fn release_column(
    table: &mut Table,
    place: u16,
    cascade: bool,
    work: &mut Work<'_>,
) -> Result<()> {
    let users = users_of_column(table, place, work);
    let policies = policy_users::users_of_column(table, place, &users, work);
    let bodies = bodies_using_column(table, place, work);
    let mut dependents: Vec<Dependent> =
        users.iter().cloned().map(Dependent::View).chain(policies.iter().cloned()).collect();
    dependents.sort_by_key(|dependent| match dependent {
        Dependent::Policy(of, at) => of.row_security.policies[*at].oid,
        other => other.object().1,
    });
    dependents.extend(bodies.iter().cloned().map(Dependent::Routine));
    if !dependents.is_empty() {
        if !cascade {
            let column = &table.columns[usize::from(place)].name;
            let error =
                still_depended_on(&format!("column {column} of table {}", table.name), &dependents, work);
            return Err(error);
        }
        cascade::cascade_notice(&dependents, work);
        policy_users::release_column(table, place, &policies, work);
        for user in users {
            work.drop(ObjectKind::Table, user.oid);
        }
        let bodies: Vec<Dependent> = bodies.into_iter().map(Dependent::Routine).collect();
        work.drop_users(&bodies)?;
    } else {
        policy_users::release_column(table, place, &[], work);
    }
    let bodies: Vec<RoutineRef> =
        work.catalog.routines_all().filter(|routine| routine.names(table.oid)).cloned().collect();
    for routine in bodies {
        let mut changed = (*routine).clone();
        let stored = changed.traits.stored.take();
        changed.traits.stored =
            stored.map(|body| Box::new(body.without_column(table.oid, usize::from(place))));
        changed.version += 1;
        work.put(Object::Routine(changed.into()));
    }
    let readers: Vec<TableRef> = work
        .catalog
        .tables()
        .filter(|candidate| candidate.view.as_ref().is_some_and(|view| view.reads(table.oid)))
        .cloned()
        .collect();
    for reader in readers {
        let mut changed = (*reader).clone();
        changed.view = changed.view.map(|view| view.without_column(table.oid, usize::from(place)));
        work.put_table(changed);
    }
    Ok(())
}

/// Makes room for a primary key to go: the views in which columns stand beside a GROUP BY that has it go
/// too, or the key stays.
pub(crate) fn release_key(table: &Table, name: &str, cascade: bool, work: &mut Work<'_>) -> Result<()> {
    let without = Table { primary_key: None, ..table.clone() };
    let after = work.catalog.apply(&[CatalogChange::Put(Object::Table(TableRef::new(without)))]);
    let mut users: Vec<TableRef> = work
        .catalog
        .tables()
        .filter(|candidate| {
            candidate.view.as_ref().is_some_and(|view| {
                view.reads(table.oid)
                    && bound(view, &work.catalog, work).is_ok()
                    && bound(view, &after, work).is_err()
            })
        })
        .cloned()
        .collect();
    users.sort_by_key(|view| view.oid);
    if users.is_empty() {
        return Ok(());
    }
    let described = format!("constraint {name} on table {}", table.name);
    if !cascade {
        let dependents: Vec<Dependent> = users.into_iter().map(Dependent::View).collect();
        return Err(still_depended_on(&described, &dependents, work));
    }
    for direct in users.clone() {
        for over in work.catalog.views_over(direct.oid) {
            if !users.iter().any(|known| known.oid == over.oid) {
                users.push(over);
            }
        }
    }
    let dependents: Vec<Dependent> = users.iter().cloned().map(Dependent::View).collect();
    cascade::cascade_notice(&dependents, work);
    for user in users {
        work.drop(ObjectKind::Table, user.oid);
    }
    Ok(())
}

/// ALTER VIEW, and ALTER TABLE of a view.
pub(crate) fn alter_view(view: &TableRef, action: &AlterTableAction, work: &mut Work<'_>) -> Result<()> {
    let mut changed = (**view).clone();
    match action {
        AlterTableAction::RenameTo(name) => {
            if work.catalog.is_relation(&view.schema, name) {
                return Err(change::already_exists(name));
            }
            type_name::check_free(&view.schema, name, work)?;
            changed.name = name.clone();
        }
        AlterTableAction::RenameColumn { from, to } => {
            let place = view.column_index(from).ok_or_else(|| {
                SqlError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{from}\" does not exist"))
            })?;
            if view.column_index(to).is_some() {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{to}\" of relation \"{}\" already exists", view.name),
                ));
            }
            changed.columns[usize::from(place)].name = to.clone();
        }
        AlterTableAction::SetDefault { column, default } => {
            let place = view.column_index(column).ok_or_else(|| undefined_column(column, &view.name))?;
            if let Some(default) = default {
                check::check_default(default)?;
            }
            changed.columns[usize::from(place)].default =
                default.as_ref().map(|default| default.text.clone());
        }
        AlterTableAction::SetSchema(name) => {
            namespace::check_move(&view.schema, name, work)?;
            if work.catalog.is_relation(name, &view.name) {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_TABLE,
                    format!("relation \"{}\" already exists in schema \"{name}\"", view.name),
                ));
            }
            changed.schema = name.clone();
        }
        AlterTableAction::OwnerTo(role) => {
            return owner::change(view.oid, Some(&view.schema), role, work);
        }
        AlterTableAction::SetOptions(options) => {
            if let Some(stored) = &mut changed.view {
                set_options(stored, options)?;
                check_changes(stored, work)?;
            }
        }
        AlterTableAction::ResetOptions(options) => {
            if let Some(stored) = &mut changed.view {
                reset_options(stored, options)?;
            }
        }
        other => {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!(
                    "ALTER action {} cannot be performed on relation \"{}\"",
                    action_name(other),
                    view.name
                ),
            )
            .with_detail("This operation is not supported for views."));
        }
    }
    work.put_table(changed);
    Ok(())
}

fn action_name(action: &AlterTableAction) -> &'static str {
    match action {
        AlterTableAction::AddColumn { .. } => "ADD COLUMN",
        AlterTableAction::DropColumn { .. } => "DROP COLUMN",
        AlterTableAction::AddConstraint(_) => "ADD CONSTRAINT",
        AlterTableAction::DropConstraint { .. } => "DROP CONSTRAINT",
        AlterTableAction::SetNotNull { not_null: true, .. } => "ALTER COLUMN ... SET NOT NULL",
        AlterTableAction::SetNotNull { .. } => "ALTER COLUMN ... DROP NOT NULL",
        AlterTableAction::SetType { .. } => "ALTER COLUMN ... SET DATA TYPE",
        AlterTableAction::SetColumnOption { option, .. } => match option {
            ColumnOption::Statistics(_) => "ALTER COLUMN ... SET STATISTICS",
            ColumnOption::Storage(_) => "ALTER COLUMN ... SET STORAGE",
            ColumnOption::Compression(_) => "ALTER COLUMN ... SET COMPRESSION",
            ColumnOption::Estimates => "ALTER COLUMN ... SET",
        },
        AlterTableAction::SetTablespace(_) => "SET TABLESPACE",
        AlterTableAction::SetAccessMethod(_) => "SET ACCESS METHOD",
        AlterTableAction::RowSecurity(true) => "ENABLE ROW SECURITY",
        AlterTableAction::RowSecurity(false) => "DISABLE ROW SECURITY",
        AlterTableAction::ForceRowSecurity(true) => "FORCE ROW SECURITY",
        AlterTableAction::ForceRowSecurity(false) => "NO FORCE ROW SECURITY",
        _ => "of this kind",
    }
}
