//! information_schema (SQL:2016 part 11), over the same catalog.

use super::cells::{size_cells, type_cells, yes_no};
use super::visibility::{Sight, rights, visible};
use crate::catalog::{
    ArgMode, CheckOption, RoutineKind, SequenceRef, Table, TableKind, TableRef, TriggerEvent,
};
use crate::datum::Datum;
use crate::system::definition::argument_default;
use crate::system::definition::expressions::columns_named;
use crate::system::relation::index_view::{indexes, is_identity};
use crate::system::role::roles::{owner_name, role_name};
use crate::system::shape::{Sheet, text};
use crate::system::{KeptExpression, SystemSource};
use crate::type_table::{BuiltIn, TypeNames};
use crate::types::Oid;

/// Fills the view.
pub(in crate::system) fn fill(name: &str, source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    match name {
        "tables" => tables(source, sheet),
        "columns" => columns(source, sheet),
        "schemata" => schemata(source, sheet),
        "table_constraints" => table_constraints(source, sheet),
        "key_column_usage" => key_column_usage(source, sheet),
        "constraint_column_usage" => constraint_usage(source, sheet, true),
        "constraint_table_usage" => constraint_usage(source, sheet, false),
        "referential_constraints" => referential_constraints(source, sheet),
        "check_constraints" => check_constraints(source, sheet),
        "routines" => routines(source, sheet),
        "parameters" => parameters(source, sheet),
        "sequences" => sequences(source, sheet),
        "views" => views(source, sheet),
        "enabled_roles" => {
            for role in source.catalog().roles().filter(|role| rights(source).acts_as(role.oid)) {
                sheet.add(&[("role_name", text(&role.name))]);
            }
        }
        "applicable_roles" => applicable_roles(source, sheet),
        "information_schema_catalog_name" => sheet.add(&[("catalog_name", text(source.database()))]),
        "character_sets" => sheet.add(&[
            ("character_set_name", text("UTF8")),
            ("character_repertoire", text("UCS")),
            ("form_of_use", text("UTF8")),
            ("default_collate_catalog", text(source.database())),
        ]),
        "collations" => {
            for name in ["default", "C", "POSIX"] {
                sheet.add(&[
                    ("collation_catalog", text(source.database())),
                    ("collation_schema", text("pg_catalog")),
                    ("collation_name", text(name)),
                    ("pad_attribute", text("NO PAD")),
                ]);
            }
        }
        "attributes" => super::types::attributes(source, sheet),
        "view_table_usage" => view_table_usage(source, sheet),
        "triggers" => crate::system::relation::triggers::information(source, sheet),
        "domains" => super::types::domains(source, sheet),
        "element_types" => super::types::element_types(source, sheet),
        "domain_constraints" => super::types::domain_constraints(source, sheet),
        "column_domain_usage" => super::types::column_domain_usage(source, sheet),
        "user_defined_types" => super::rights::user_defined_types(source, sheet),
        // What is neither here nor there describes what cannot exist.
        name => {
            let _ = super::rights::fill(name, source, sheet);
        }
    }
}

fn is_view(table: &Table) -> bool {
    crate::system::relation::relations::kind_of(table) == b'v'
}

fn table_type(table: &Table) -> &'static str {
    if table.persistence == crate::catalog::Persistence::Temporary {
        "LOCAL TEMPORARY"
    } else if is_view(table) {
        "VIEW"
    } else {
        "BASE TABLE"
    }
}

fn tables(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for table in visible(source, sheet) {
        sheet.add(&[
            ("table_catalog", text(source.database())),
            ("table_schema", text(&table.schema)),
            ("table_name", text(&table.name)),
            ("table_type", text(table_type(table))),
            (
                "is_insertable_into",
                yes_no(table.kind == TableKind::Table || is_view(table) && source.changeable(table).insert),
            ),
            ("is_typed", text("NO")),
        ]);
    }
}

fn columns(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    for table in visible(source, sheet) {
        let every = sight.every_column(table);
        let changeable = is_view(table).then(|| source.changeable(table));
        let is_updatable = |place: usize| match &changeable {
            Some(view) => view.is_updatable(place),
            None => table.kind == TableKind::Table,
        };
        for (i, column) in table.columns.iter().enumerate().filter(|(i, _)| every || sight.column(table, *i))
        {
            let own = |sequence: &&SequenceRef| sequence.owned_by == Some((table.oid, i as u16));
            let owned = |_| source.catalog().sequences_owned_by(table.oid).find(own);
            let sequence = column.identity.and_then(owned);
            let mut cells = vec![
                ("table_catalog", text(source.database())),
                ("table_schema", text(&table.schema)),
                ("table_name", text(&table.name)),
                ("column_name", text(&column.name)),
                ("ordinal_position", Datum::Int4(i as i32 + 1)),
                ("is_nullable", yes_no(!column.not_null)),
                ("dtd_identifier", text((i + 1).to_string())),
                ("is_self_referencing", text("NO")),
                ("is_identity", yes_no(column.identity.is_some())),
                ("identity_cycle", yes_no(sequence.is_some_and(|sequence| sequence.cycle))),
                ("is_generated", text(if column.generated.is_some() { "ALWAYS" } else { "NEVER" })),
                ("is_updatable", yes_no(is_updatable(i))),
            ];
            if let Some(generated) = &column.generated {
                cells.push((
                    "generation_expression",
                    text(crate::system::definition::expressions::generated_text(source, table, generated)),
                ));
            }
            if let Some(identity) = column.identity {
                let always = identity == crate::catalog::Identity::Always;
                cells.push(("identity_generation", text(if always { "ALWAYS" } else { "BY DEFAULT" })));
            } else if let Some(default) = crate::system::definition::expressions::own_default(column) {
                cells.push((
                    "column_default",
                    text(crate::system::definition::expressions::default_text(source, column, default)),
                ));
            }
            if let Some(sequence) = sequence {
                cells.extend([
                    ("identity_start", text(sequence.start.to_string())),
                    ("identity_increment", text(sequence.increment.to_string())),
                    ("identity_maximum", text(sequence.max_value.to_string())),
                    ("identity_minimum", text(sequence.min_value.to_string())),
                ]);
            }
            cells.extend(type_cells(source, column.ty));
            cells.extend(size_cells(column.ty));
            if let Some(ty) = column.domain.and_then(|oid| source.catalog().user_type_by_oid(oid)) {
                cells.extend([
                    ("domain_catalog", text(source.database())),
                    ("domain_schema", text(&ty.schema)),
                    ("domain_name", text(&ty.name)),
                ]);
            }
            sheet.add(&cells);
        }
    }
}

fn schemata(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    for schema in source.catalog().schemas().filter(|schema| sight.schema(schema.oid)) {
        sheet.add(&[
            ("catalog_name", text(source.database())),
            ("schema_name", text(&schema.name)),
            ("schema_owner", owner_name(source, schema.oid)),
        ]);
    }
}

/// Calls `f` with each constraint of a table: name, kind, columns.
fn each_constraint(table: &Table, f: &mut dyn FnMut(&str, &'static str, &[u16])) {
    for index in indexes(table).filter(|index| index.constraint.is_some()) {
        let columns: Vec<u16> = index.columns.iter().map(|(c, ..)| *c).collect();
        f(index.name, if index.primary { "PRIMARY KEY" } else { "UNIQUE" }, &columns);
    }
    for check in &table.checks {
        f(&check.name, "CHECK", &[]);
    }
    for key in &table.foreign_keys {
        f(&key.name, "FOREIGN KEY", &key.columns);
    }
}

/// PostgreSQL shows each NOT NULL column as a check constraint of this name.
fn not_null_name(source: &dyn SystemSource, table: &Table, column: usize) -> String {
    let schema = source.catalog().schema(&table.schema).map_or(0, |schema| schema.oid.0);
    format!("{schema}_{}_{}_not_null", table.oid, column + 1)
}

fn stored<'c>(
    source: &'c dyn SystemSource,
    sheet: &Sheet<'_>,
) -> impl Iterator<Item = &'c TableRef> + use<'c> {
    sheet.tables(source).filter(|table| table.kind == TableKind::Table)
}

fn applicable_roles(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let rights = rights(source);
    for member in source.catalog().roles().filter(|member| rights.acts_as(member.oid)) {
        for membership in &member.member_of {
            sheet.add(&[
                ("grantee", text(&member.name)),
                ("role_name", role_name(source, membership.role)),
                ("is_grantable", yes_no(membership.admin)),
            ]);
        }
    }
}

fn table_constraints(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    for table in stored(source, sheet).filter(|table| sight.beyond_reading(table)) {
        let distinct = |name: &str, kind: &str| {
            let key = table.indexes.iter().find(|index| kind == "UNIQUE" && index.name == name);
            key.map_or(Datum::Null, |key| yes_no(!key.nulls_equal))
        };
        let mut add = |name: &str, kind: &str, deferrable: bool, deferred: bool| {
            sheet.add(&[
                ("constraint_catalog", text(source.database())),
                ("constraint_schema", text(&table.schema)),
                ("constraint_name", text(name)),
                ("table_catalog", text(source.database())),
                ("table_schema", text(&table.schema)),
                ("table_name", text(&table.name)),
                ("constraint_type", text(kind)),
                ("is_deferrable", yes_no(deferrable)),
                ("initially_deferred", yes_no(deferred)),
                ("enforced", text("YES")),
                ("nulls_distinct", distinct(name, kind)),
            ]);
        };
        each_constraint(table, &mut |name, kind, _| {
            let key = table.foreign_keys.iter().find(|key| key.name == name);
            add(
                name,
                kind,
                key.is_some_and(|key| key.deferrable),
                key.is_some_and(|key| key.initially_deferred),
            );
        });
        for (i, _) in table.columns.iter().enumerate().filter(|(_, c)| c.not_null) {
            add(&not_null_name(source, table, i), "CHECK", false, false);
        }
    }
}

fn key_column_usage(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    for table in visible(source, sheet).filter(|table| table.kind == TableKind::Table) {
        each_constraint(table, &mut |name, kind, columns| {
            for (i, place) in columns.iter().enumerate() {
                let Some(column) = table.columns.get(usize::from(*place)) else { continue };
                if !sight.column(table, usize::from(*place)) {
                    continue;
                }
                let position = if kind == "FOREIGN KEY" { Datum::Int4(i as i32 + 1) } else { Datum::Null };
                sheet.add(&[
                    ("constraint_catalog", text(source.database())),
                    ("constraint_schema", text(&table.schema)),
                    ("constraint_name", text(name)),
                    ("table_catalog", text(source.database())),
                    ("table_schema", text(&table.schema)),
                    ("table_name", text(&table.name)),
                    ("column_name", text(&column.name)),
                    ("ordinal_position", Datum::Int4(i as i32 + 1)),
                    ("position_in_unique_constraint", position),
                ]);
            }
        });
    }
}

/// What a constraint uses: for foreign keys the table they point to.
fn constraint_usage(source: &dyn SystemSource, sheet: &mut Sheet<'_>, with_columns: bool) {
    let sight = Sight::of(source);
    let tables = stored(source, sheet);
    let mut add = |table: &Table, used: &Table, name: &str, columns: &[u16]| {
        // Of the owner of what is used.
        if !sight.owns(used.oid) {
            return;
        }
        let common = [
            ("table_catalog", text(source.database())),
            ("table_schema", text(&used.schema)),
            ("table_name", text(&used.name)),
            ("constraint_catalog", text(source.database())),
            ("constraint_schema", text(&table.schema)),
            ("constraint_name", text(name)),
        ];
        if !with_columns {
            sheet.add(&common);
            return;
        }
        for column in columns.iter().filter_map(|c| used.columns.get(usize::from(*c))) {
            let mut cells = common.to_vec();
            cells.push(("column_name", text(&column.name)));
            sheet.add(&cells);
        }
    };
    for table in tables {
        for index in indexes(table).filter(|index| index.constraint.is_some()) {
            let columns: Vec<u16> = index.columns.iter().map(|(c, ..)| *c).collect();
            add(table, table, index.name, &columns);
        }
        for check in table.checks.iter().filter(|_| with_columns) {
            add(table, table, &check.name, &columns_named(table, &check.condition));
        }
        for key in &table.foreign_keys {
            if let Some(target) = source.catalog().table_by_oid(key.references) {
                add(table, &target, &key.name, &key.referenced_columns);
            }
        }
    }
}

fn referential_constraints(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    for table in stored(source, sheet).filter(|table| sight.beyond_reading(table)) {
        for key in &table.foreign_keys {
            let Some(target) = source.catalog().table_by_oid(key.references) else { continue };
            let unique = indexes(&target)
                .find(|index| {
                    index.unique
                        && index.columns.iter().map(|(c, ..)| *c).eq(key.referenced_columns.iter().copied())
                })
                .map_or(Datum::Null, |index| text(index.name));
            sheet.add(&[
                ("constraint_catalog", text(source.database())),
                ("constraint_schema", text(&table.schema)),
                ("constraint_name", text(&key.name)),
                ("unique_constraint_catalog", text(source.database())),
                ("unique_constraint_schema", text(&target.schema)),
                ("unique_constraint_name", unique),
                ("match_option", text("NONE")),
                ("update_rule", text(key.on_update.as_str())),
                ("delete_rule", text(key.on_delete.as_str())),
            ]);
        }
    }
}

fn check_constraints(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    for table in stored(source, sheet).filter(|table| sight.owns(table.oid)) {
        let mut add = |name: String, clause: String| {
            sheet.add(&[
                ("constraint_catalog", text(source.database())),
                ("constraint_schema", text(&table.schema)),
                ("constraint_name", text(name)),
                ("check_clause", text(clause)),
            ]);
        };
        for check in &table.checks {
            let shown = source.shown(&KeptExpression::over(table, &check.condition, false));
            let clause = shown.unwrap_or_else(|| format!("({})", check.condition));
            add(check.name.clone(), format!("({clause})"));
        }
        for (i, column) in table.columns.iter().enumerate().filter(|(_, c)| c.not_null) {
            add(not_null_name(source, table, i), format!("{} IS NOT NULL", column.name));
        }
    }
    super::types::check_constraints(source, sheet);
}

/// The tables that views read, as far as they belong to a role in force.
fn view_table_usage(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let catalog = source.catalog();
    for table in sheet.tables(source) {
        let Some(view) = table.view.as_ref().filter(|_| is_view(table)) else { continue };
        let mut read: Vec<Oid> = view.references.iter().map(|reference| reference.relation).collect();
        read.sort_unstable();
        read.dedup();
        for used in read.into_iter().filter_map(|oid| catalog.table_by_oid(oid)) {
            if !rights(source).owns(used.oid) {
                continue;
            }
            sheet.add(&[
                ("view_catalog", text(source.database())),
                ("view_schema", text(&table.schema)),
                ("view_name", text(&table.name)),
                ("table_catalog", text(source.database())),
                ("table_schema", text(&used.schema)),
                ("table_name", text(&used.name)),
            ]);
        }
    }
}

fn routines(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    for routine in sheet.routines(source).filter(|routine| sight.routine(routine.oid)) {
        let specific = format!("{}_{}", routine.name, routine.oid);
        let mut cells = vec![
            ("specific_catalog", text(source.database())),
            ("specific_schema", text(&routine.schema)),
            ("specific_name", text(&specific)),
            ("routine_catalog", text(source.database())),
            ("routine_schema", text(&routine.schema)),
            ("routine_name", text(&routine.name)),
            (
                "routine_type",
                match routine.kind {
                    RoutineKind::Function => text("FUNCTION"),
                    RoutineKind::Procedure => text("PROCEDURE"),
                    RoutineKind::Aggregate => Datum::Null,
                },
            ),
            ("routine_body", text("EXTERNAL")),
            ("routine_definition", if sight.owns(routine.oid) { text(&routine.source) } else { Datum::Null }),
            (
                "external_language",
                text(match (routine.kind, routine.language) {
                    (RoutineKind::Aggregate, _) => "INTERNAL",
                    (_, crate::catalog::Language::PlPgSql) => "PLPGSQL",
                    (_, crate::catalog::Language::Sql) => "SQL",
                }),
            ),
            ("parameter_style", text("GENERAL")),
            ("is_deterministic", yes_no(routine.volatility == 'i')),
            ("sql_data_access", text("MODIFIES")),
            ("is_null_call", yes_no(routine.strict)),
            ("schema_level_routine", text("YES")),
            ("max_dynamic_result_sets", Datum::Int4(0)),
            ("security_type", text(if routine.traits.security_definer { "DEFINER" } else { "INVOKER" })),
            ("as_locator", text("NO")),
        ];
        if routine.kind != RoutineKind::Procedure {
            for (name, value) in type_cells(source, routine.result) {
                cells.push((
                    match name {
                        "data_type" => "data_type",
                        "udt_catalog" => "type_udt_catalog",
                        "udt_schema" => "type_udt_schema",
                        _ => "type_udt_name",
                    },
                    value,
                ));
            }
        }
        sheet.add(&cells);
    }
}

fn parameters(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    for routine in sheet.routines(source).filter(|routine| sight.routine(routine.oid)) {
        let owns = sight.owns(routine.oid);
        for (i, arg) in routine.args.iter().enumerate() {
            let mode = match arg.mode {
                ArgMode::In | ArgMode::Variadic => "IN",
                ArgMode::Out | ArgMode::Table => "OUT",
                ArgMode::InOut => "INOUT",
            };
            let mut cells = vec![
                ("specific_catalog", text(source.database())),
                ("specific_schema", text(&routine.schema)),
                ("specific_name", text(format!("{}_{}", routine.name, routine.oid))),
                ("ordinal_position", Datum::Int4(i as i32 + 1)),
                ("parameter_mode", text(mode)),
                ("is_result", text("NO")),
                ("as_locator", text("NO")),
                ("parameter_name", arg.name.as_deref().map_or(Datum::Null, text)),
                ("dtd_identifier", text((i + 1).to_string())),
                (
                    "parameter_default",
                    argument_default(source, arg).filter(|_| owns).map_or(Datum::Null, text),
                ),
            ];
            cells.extend(type_cells(source, arg.declared()));
            sheet.add(&cells);
        }
    }
}

fn sequences(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    // Sequences behind identity columns are the column's own affair.
    let sight = Sight::of(source);
    let seen = |sequence: &&SequenceRef| !is_identity(source, sequence) && sight.sequence(sequence.oid);
    for sequence in sheet.sequences(source).filter(seen) {
        let bits = match sequence.ty.oid {
            Oid::INT2 => 16,
            Oid::INT4 => 32,
            _ => 64,
        };
        sheet.add(&[
            ("sequence_catalog", text(source.database())),
            ("sequence_schema", text(&sequence.schema)),
            ("sequence_name", text(&sequence.name)),
            ("data_type", text(BuiltIn.format_type(sequence.ty))),
            ("numeric_precision", Datum::Int4(bits)),
            ("numeric_precision_radix", Datum::Int4(2)),
            ("numeric_scale", Datum::Int4(0)),
            ("start_value", text(sequence.start.to_string())),
            ("minimum_value", text(sequence.min_value.to_string())),
            ("maximum_value", text(sequence.max_value.to_string())),
            ("increment", text(sequence.increment.to_string())),
            ("cycle_option", yes_no(sequence.cycle)),
        ]);
    }
}

fn views(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    for table in visible(source, sheet).filter(|table| is_view(table)) {
        let changeable = source.changeable(table);
        let instead = |event| yes_no(table.has_instead_of(event));
        sheet.add(&[
            ("table_catalog", text(source.database())),
            ("table_schema", text(&table.schema)),
            ("table_name", text(&table.name)),
            (
                "view_definition",
                match sight.owns(table.oid) {
                    true => crate::system::relation::relations::view_definition(source, table, false),
                    false => Datum::Null,
                },
            ),
            (
                "check_option",
                text(match table.view.as_ref().and_then(|view| view.check_option) {
                    None => "NONE",
                    Some(CheckOption::Local) => "LOCAL",
                    Some(CheckOption::Cascaded) => "CASCADED",
                }),
            ),
            ("is_updatable", yes_no(changeable.update && changeable.delete)),
            ("is_insertable_into", yes_no(changeable.insert)),
            ("is_trigger_updatable", instead(TriggerEvent::Update)),
            ("is_trigger_deletable", instead(TriggerEvent::Delete)),
            ("is_trigger_insertable_into", instead(TriggerEvent::Insert)),
        ]);
    }
}
