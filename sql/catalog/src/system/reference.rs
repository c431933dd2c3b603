//! Relations about what PostgreSQL is made with: extensions, time zones.

use super::SystemSource;
use super::role::roles::owner;
use super::shape::{Sheet, text};
use crate::catalog::routine::extension::{ARCHIPEL_EXTENSION, EXTENSIONS, Extension};
use crate::catalog::{ARCHIPEL, SUPERUSER};
use crate::datum::Datum;
use crate::function::lookup_set_functions;
use crate::types::Oid;

/// Fills the relation if it is one of this file's.
pub(super) fn fill(name: &str, source: &dyn SystemSource, sheet: &mut Sheet<'_>) -> bool {
    match name {
        "pg_extension" => extensions(source, sheet),
        "pg_available_extensions" => available(source, sheet),
        "pg_available_extension_versions" => versions(source, sheet),
        "pg_timezone_names" | "pg_timezone_abbrevs" => {
            let rows = lookup_set_functions(name).first().map(|set| (set.eval)(&source.context(), &[]));
            sheet.extend(rows.and_then(Result::ok).unwrap_or_default());
        }
        _ => return false,
    }
    true
}

fn schema_oid(source: &dyn SystemSource, schema: &str) -> Datum {
    Datum::Oid(source.catalog().schema(schema).map_or(Oid(0), |schema| schema.oid))
}

fn extensions(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let catalog = source.catalog();
    for extension in EXTENSIONS {
        let Some(schema) = catalog.extension_schema(extension) else { continue };
        let members = catalog.extension_members(extension.name);
        sheet.add(&[
            ("oid", Datum::Oid(extension.oid)),
            ("extname", text(extension.name)),
            ("extowner", members.first().map_or(Datum::Oid(SUPERUSER), |member| owner(source, member.oid))),
            ("extnamespace", schema_oid(source, &schema)),
            ("extrelocatable", Datum::Bool(!extension.is_built_in())),
            ("extversion", text(extension.version)),
        ]);
    }
    sheet.add(&[
        ("oid", Datum::Oid(ARCHIPEL_EXTENSION)),
        ("extname", text("archipel")),
        ("extowner", Datum::Oid(SUPERUSER)),
        ("extnamespace", Datum::Oid(ARCHIPEL)),
        ("extversion", text(env!("CARGO_PKG_VERSION"))),
    ]);
}

/// pg_available_extensions().
pub(super) fn available_extensions() -> Vec<Datum> {
    let row = |extension: &Extension| {
        Datum::Record([text(extension.name), text(extension.version), text(extension.comment)].into())
    };
    EXTENSIONS.iter().map(row).collect()
}

/// pg_available_extension_versions().
pub(super) fn extension_versions() -> Vec<Datum> {
    let row = |extension: &Extension| {
        let built_in = extension.is_built_in();
        Datum::Record(
            [
                text(extension.name),
                text(extension.version),
                Datum::Bool(true),
                Datum::Bool(true),
                Datum::Bool(!built_in),
                if built_in { text("pg_catalog") } else { Datum::Null },
                Datum::Null,
                text(extension.comment),
            ]
            .into(),
        )
    };
    EXTENSIONS.iter().map(row).collect()
}

fn available(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for extension in EXTENSIONS {
        let installed = source.catalog().extension_schema(extension).is_some();
        sheet.add(&[
            ("name", text(extension.name)),
            ("default_version", text(extension.version)),
            ("installed_version", if installed { text(extension.version) } else { Datum::Null }),
            ("comment", text(extension.comment)),
        ]);
    }
}

fn versions(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for extension in EXTENSIONS {
        let installed = source.catalog().extension_schema(extension).is_some();
        let built_in = extension.is_built_in();
        sheet.add(&[
            ("name", text(extension.name)),
            ("version", text(extension.version)),
            ("installed", Datum::Bool(installed)),
            ("superuser", Datum::Bool(true)),
            ("trusted", Datum::Bool(true)),
            ("relocatable", Datum::Bool(!built_in)),
            ("schema", if built_in { text("pg_catalog") } else { Datum::Null }),
            ("comment", text(extension.comment)),
        ]);
    }
}
