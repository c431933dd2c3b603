//! information_schema about types: domains, what they demand, and the fields of composite types.

use super::cells::{size_cells, type_cells, yes_no};
use super::visibility::Sight;
use super::visibility::visible;
use crate::catalog::RoutineKind;
use crate::datum::Datum;
use crate::system::SystemSource;
use crate::system::definition::constraint_definition;
use crate::system::shape::{Sheet, text};
use crate::type_table::{element_of, is_vector};
use crate::types::{Oid, Type};

pub(super) fn domains(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    for ty in source.catalog().user_types().filter(|ty| sight.user_type(ty.oid)) {
        let Some(domain) = &ty.domain else { continue };
        let mut cells = vec![
            ("domain_catalog", text(source.database())),
            ("domain_schema", text(&ty.schema)),
            ("domain_name", text(&ty.name)),
            ("dtd_identifier", text("1")),
        ];
        if let Some(default) = &domain.default {
            let column = crate::catalog::Column::new("value", domain.base);
            cells.push((
                "domain_default",
                text(crate::system::definition::expressions::default_text(source, &column, default)),
            ));
        }
        cells.extend(type_cells(source, domain.base));
        cells.extend(size_cells(domain.base));
        sheet.add(&cells);
    }
}

pub(in crate::system) fn domain_constraints(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    for ty in source.catalog().user_types().filter(|ty| sight.user_type(ty.oid)) {
        let Some(domain) = &ty.domain else { continue };
        let schema = source.catalog().schema(&ty.schema).map_or(0, |schema| schema.oid.0);
        let not_null = domain.not_null.then(|| format!("{schema}_{}_not_null", ty.oid));
        for name in domain.checks.iter().map(|check| check.name.clone()).chain(not_null) {
            sheet.add(&[
                ("constraint_catalog", text(source.database())),
                ("constraint_schema", text(&ty.schema)),
                ("constraint_name", text(name)),
                ("domain_catalog", text(source.database())),
                ("domain_schema", text(&ty.schema)),
                ("domain_name", text(&ty.name)),
                ("is_deferrable", text("NO")),
                ("initially_deferred", text("NO")),
            ]);
        }
    }
}

pub(super) fn column_domain_usage(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    for table in source.catalog().tables() {
        for column in &table.columns {
            let ty = column.domain.and_then(|oid| source.catalog().user_type_by_oid(oid));
            let Some(ty) = ty.filter(|ty| sight.owns(ty.oid)) else { continue };
            sheet.add(&[
                ("domain_catalog", text(source.database())),
                ("domain_schema", text(&ty.schema)),
                ("domain_name", text(&ty.name)),
                ("table_catalog", text(source.database())),
                ("table_schema", text(&table.schema)),
                ("table_name", text(&table.name)),
                ("column_name", text(&column.name)),
            ]);
        }
    }
}

/// The checks of domains, among information_schema.check_constraints.
pub(super) fn check_constraints(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    for ty in source.catalog().user_types().filter(|ty| sight.owns(ty.oid)) {
        for check in ty.domain.iter().flat_map(|domain| &domain.checks) {
            let definition = constraint_definition(source, check.oid, false).unwrap_or_default();
            let clause = definition.strip_prefix("CHECK ").unwrap_or(&definition);
            sheet.add(&[
                ("constraint_catalog", text(source.database())),
                ("constraint_schema", text(&ty.schema)),
                ("constraint_name", text(&check.name)),
                ("check_clause", text(clause)),
            ]);
        }
    }
}

pub(in crate::system) fn attributes(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    for table in source.catalog().composites().filter(|table| sight.user_type(table.row_type())) {
        for (i, column) in table.columns.iter().enumerate() {
            let mut cells = vec![
                ("udt_catalog", text(source.database())),
                ("udt_schema", text(&table.schema)),
                ("udt_name", text(&table.name)),
                ("attribute_name", text(&column.name)),
                ("ordinal_position", Datum::Int4(i as i32 + 1)),
                ("is_nullable", yes_no(!column.not_null)),
                ("dtd_identifier", text((i + 1).to_string())),
                ("is_derived_reference_attribute", text("NO")),
            ];
            for (name, value) in type_cells(source, column.declared()) {
                cells.push(match name {
                    "udt_catalog" => ("attribute_udt_catalog", value),
                    "udt_schema" => ("attribute_udt_schema", value),
                    "udt_name" => ("attribute_udt_name", value),
                    name => (name, value),
                });
            }
            cells.extend(size_cells(column.declared()));
            sheet.add(&cells);
        }
    }
}

/// What arrays are made of, by whatever is of their types.
pub(super) fn element_types(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let sight = Sight::of(source);
    let catalog = source.catalog();
    let tables = visible(source, sheet);
    let mut add = |(schema, name): (&str, &str), kind: &str, number: usize, ty: Type| {
        let Some(element) = element_in(source, ty.oid) else { return };
        let mut cells = vec![
            ("object_catalog", text(source.database())),
            ("object_schema", text(schema)),
            ("object_name", text(name)),
            ("object_type", text(kind)),
            ("collection_type_identifier", text(number.to_string())),
            ("dtd_identifier", text(format!("a{number}"))),
        ];
        cells.extend(type_cells(source, Type::of(element)));
        sheet.add(&cells);
    };
    for table in tables {
        let every = sight.every_column(table);
        let shown = table.columns.iter().enumerate().filter(|(i, _)| every || sight.column(table, *i));
        for (i, column) in shown {
            add((&table.schema, &table.name), "TABLE", i + 1, column.declared());
        }
    }
    for table in catalog.composites().filter(|table| sight.user_type(table.row_type())) {
        for (i, column) in table.columns.iter().enumerate() {
            add((&table.schema, &table.name), "USER-DEFINED TYPE", i + 1, column.declared());
        }
    }
    for ty in catalog.user_types().filter(|ty| sight.user_type(ty.oid)) {
        if let Some(domain) = &ty.domain {
            let base = domain.parent.map_or(domain.base, Type::of);
            add((&ty.schema, &ty.name), "DOMAIN", 1, base);
        }
    }
    for routine in catalog.routines_all().filter(|routine| sight.routine(routine.oid)) {
        let specific = format!("{}_{}", routine.name, routine.oid);
        for (i, arg) in routine.args.iter().enumerate() {
            add((&routine.schema, &specific), "ROUTINE", i + 1, arg.declared());
        }
        if routine.kind != RoutineKind::Procedure {
            add((&routine.schema, &specific), "ROUTINE", 0, routine.declared_result());
        }
    }
}

/// The type of an array's elements, that of a domain's arrays too.
fn element_in(source: &dyn SystemSource, ty: Oid) -> Option<Oid> {
    if is_vector(ty) {
        return None;
    }
    let own = source.catalog().user_type_of(ty).filter(|own| own.array_type() == ty);
    own.map(|own| own.oid).or_else(|| element_of(ty))
}
