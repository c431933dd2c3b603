//! Catalog relations about types, routines, operators, schemas, roles and the database.

use super::SystemSource;
use super::operator_class::builtin_class::{OperatorClass, operator_classes};
use super::relation::index_view::schema_oid;
use super::relation::relations::DEFAULT_COLLATION;
use super::role::roles::{acl, acl_of, owner};
use super::routine::type_functions;
use super::routine::type_functions::{read_as, read_as_array};
use super::shape::{Sheet, letter, text};
use crate::catalog::routine::language_object::{LANGUAGES, PLPGSQL, PLPGSQL_FUNCTIONS};
use crate::catalog::{Column, PG_CATALOG, SUPERUSER, TableKind};
use crate::datum::Datum;
use crate::function::{self, CastContext, CastMethod};
use crate::type_kind::Layout;
use crate::type_table::{TypeInfo, all_types, layout, type_info};
use crate::types::Oid;

const PG_DEFAULT: Oid = Oid(1663);
const PG_DATABASE: Oid = Oid(1262);
const PG_AUTHID: Oid = Oid(1260);
/// UTF8.
const ENCODING: i32 = 6;

/// Operator classes of both methods over types that are not known here, and of enums.
const OTHER_CLASSES: [&str; 8] = [
    "bit_ops",
    "enum_ops",
    "money_ops",
    "multirange_ops",
    "range_ops",
    "tsquery_ops",
    "tsvector_ops",
    "varbit_ops",
];
const OTHER_HASH_CLASSES: [&str; 3] = ["aclitem_ops", "cid_ops", "xid_ops"];
/// Ordered, and not hashed.
const BTREE_ALONE: [&str; 6] =
    ["bit_ops", "money_ops", "record_image_ops", "tsquery_ops", "tsvector_ops", "varbit_ops"];

/// The input type of PostgreSQL's operator class of this name for `btree` or `hash`, zero for a type
/// that is not known here; `None` if there is no such class.
pub fn operator_class_named(method: &str, name: &str) -> Option<Oid> {
    let hash = method == "hash";
    if hash && BTREE_ALONE.contains(&name) {
        return None;
    }
    if let Some(class) = operator_classes().find(|class| class.name == name) {
        return Some(class.input);
    }
    let other = OTHER_CLASSES.contains(&name) || hash && OTHER_HASH_CLASSES.contains(&name);
    other.then_some(if name == "enum_ops" { Oid::ANYENUM } else { Oid(0) })
}

/// The name of the class that is a type's own for `btree` or `hash`.
pub fn default_operator_class(method: &str, ty: Oid) -> Option<&'static str> {
    let hash = method == "hash";
    let fits = |class: &OperatorClass| class.default && class.input == ty;
    let name = operator_classes().find(fits).map(|class| class.name)?;
    (!hash || !BTREE_ALONE.contains(&name)).then_some(name)
}

/// Fills the relation if it is one of this file's.
pub(super) fn fill(name: &str, source: &dyn SystemSource, sheet: &mut Sheet<'_>) -> bool {
    match name {
        "pg_namespace" => namespaces(source, sheet),
        "pg_type" => types(source, sheet),
        "pg_proc" => super::routine::routines::procedures(source, sheet),
        "pg_aggregate" => super::routine::routines::aggregates(source, sheet),
        "pg_operator" => operators(sheet),
        "pg_cast" => casts(sheet),
        "pg_opclass" => {
            opclasses(sheet);
            super::operator_class::user_class::classes(source, sheet);
        }
        "pg_opfamily" => {
            opfamilies(sheet);
            super::operator_class::user_class::families(source, sheet);
        }
        "pg_amop" => {
            search_operators(sheet);
            super::operator_class::user_class::operators(source, sheet);
        }
        "pg_amproc" => super::operator_class::user_class::functions(source, sheet),
        "pg_am" => access_methods(sheet),
        "pg_language" => languages(source, sheet),
        "pg_enum" => enum_labels(source, sheet),
        "pg_collation" => collations(sheet),
        "pg_tablespace" => tablespaces(sheet),
        "pg_database" => databases(source, sheet),
        "pg_shdescription" => shared_comments(source, sheet),
        _ => return false,
    }
    true
}

fn namespaces(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for schema in source.catalog().schemas() {
        sheet.add(&[
            ("oid", Datum::Oid(schema.oid)),
            ("nspname", text(&schema.name)),
            ("nspowner", owner(source, schema.oid)),
            ("nspacl", acl_of(source, schema.oid)),
        ]);
    }
}

fn enum_labels(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for ty in sheet.user_types(source) {
        for (place, label) in ty.labels.iter().enumerate() {
            sheet.add(&[
                ("oid", Datum::Oid(label.oid)),
                ("enumtypid", Datum::Oid(ty.oid)),
                ("enumsortorder", Datum::Float4(ty.label_order(place))),
                ("enumlabel", text(&label.name)),
            ]);
        }
    }
}

fn layout_of(ty: Oid) -> Layout {
    layout(ty).unwrap_or(Layout::UNKNOWN)
}

/// The columns that say how the values of a type are kept, and what sort of type it is.
fn layout_cells(layout: Layout) -> [(&'static str, Datum); 6] {
    [
        ("typlen", Datum::Int2(layout.length)),
        ("typbyval", Datum::Bool(layout.by_value)),
        ("typtype", letter(layout.letter)),
        ("typcategory", letter(layout.category)),
        ("typalign", letter(layout.align)),
        ("typstorage", letter(layout.storage)),
    ]
}

fn enum_types(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for ty in sheet.user_types(source).filter(|ty| ty.domain.is_none() && ty.attributes.is_none()) {
        let namespace = schema_oid(source, &ty.schema);
        let mut add = |oid: Oid, name: String, more: Vec<(&'static str, Datum)>| {
            let mut row = vec![
                ("oid", Datum::Oid(oid)),
                ("typname", text(name)),
                ("typnamespace", namespace.clone()),
                ("typowner", owner(source, ty.oid)),
                ("typacl", acl_of(source, ty.oid)),
                ("typisdefined", Datum::Bool(true)),
                ("typdelim", text(",")),
                ("typtypmod", Datum::Int4(-1)),
            ];
            row.extend(layout_cells(layout_of(oid)));
            row.extend(more);
            sheet.add(&row);
        };
        let own = read_as(ty.oid).into_iter().chain([("typarray", Datum::Oid(ty.array_type()))]);
        add(ty.oid, ty.name.clone(), own.collect());
        let array = read_as_array().chain([("typelem", Datum::Oid(ty.oid))]);
        add(ty.array_type(), format!("_{}", ty.name), array.collect());
    }
}

fn domain_types(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for ty in sheet.user_types(source) {
        let Some(domain) = &ty.domain else { continue };
        let of_base = layout_of(domain.base.oid);
        let collation = type_info(domain.base.oid).map_or(Oid(0), |info| info.collation);
        let base = domain.parent.unwrap_or(domain.base.oid);
        let common = |oid: Oid, name: String| {
            vec![
                ("oid", Datum::Oid(oid)),
                ("typname", text(name)),
                ("typnamespace", schema_oid(source, &ty.schema)),
                ("typowner", owner(source, ty.oid)),
                ("typacl", acl_of(source, ty.oid)),
                ("typisdefined", Datum::Bool(true)),
                ("typdelim", text(",")),
            ]
        };
        let mut own = common(ty.oid, ty.name.clone());
        own.extend(layout_cells(Layout { letter: b'd', ..of_base }));
        own.extend(read_as(domain.base.oid));
        own.extend([
            ("typcollation", Datum::Oid(domain.collation.unwrap_or(collation))),
            ("typbasetype", Datum::Oid(base)),
            ("typtypmod", Datum::Int4(if domain.parent.is_some() { -1 } else { domain.base.typmod })),
            ("typnotnull", Datum::Bool(domain.not_null)),
            ("typarray", Datum::Oid(ty.array_type())),
            // Its conditions are looked at as it is read; it is written as what it is over.
            ("typinput", Datum::Oid(type_functions::named("domain_in"))),
            ("typreceive", Datum::Oid(type_functions::named("domain_recv"))),
        ]);
        if let Some(default) = &domain.default {
            let column = Column::new("value", domain.base);
            let shown = text(super::definition::expressions::default_text(source, &column, default));
            own.extend([("typdefaultbin", shown.clone()), ("typdefault", shown)]);
        }
        sheet.add(&own);
        let mut array = common(ty.array_type(), format!("_{}", ty.name));
        array.extend(layout_cells(of_base.of_array()));
        array.extend([("typtypmod", Datum::Int4(-1)), ("typelem", Datum::Oid(ty.oid))]);
        array.extend(read_as_array());
        sheet.add(&array);
    }
}

/// Whether the row of a built-in type may be wanted: most questions are about others, or about one.
fn wants_type(sheet: &Sheet<'_>, info: &TypeInfo) -> bool {
    sheet.wants_all()
        || sheet.wants("oid", &Datum::Oid(info.oid))
            && sheet.wants("typelem", &Datum::Oid(info.element))
            && sheet.wants("typarray", &Datum::Oid(info.array))
            && sheet.wants("typrelid", &Datum::Oid(Oid(0)))
            && sheet.wants("typname", &text(info.name))
}

fn types(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    enum_types(source, sheet);
    domain_types(source, sheet);
    let [analyze, array_parts, raw_parts, jsonb_parts] = [
        "array_typanalyze",
        "array_subscript_handler",
        "raw_array_subscript_handler",
        "jsonb_subscript_handler",
    ]
    .map(type_functions::named);
    for info in all_types() {
        if !wants_type(sheet, info) {
            continue;
        }
        let parts = match info.oid {
            Oid::JSONB => jsonb_parts,
            _ if info.is_array() => array_parts,
            _ if info.element != Oid(0) && info.length > 0 => raw_parts,
            _ => Oid(0),
        };
        let analyzes = info.is_array() && !matches!(info.oid, Oid::INT2VECTOR | Oid::OIDVECTOR);
        let mut row = vec![
            ("typanalyze", Datum::Oid(if analyzes { analyze } else { Oid(0) })),
            ("typsubscript", Datum::Oid(parts)),
            ("oid", Datum::Oid(info.oid)),
            ("typname", text(info.name)),
            ("typnamespace", Datum::Oid(PG_CATALOG)),
            ("typowner", Datum::Oid(SUPERUSER)),
            ("typacl", acl_of(source, info.oid)),
            ("typispreferred", Datum::Bool(info.preferred)),
            ("typisdefined", Datum::Bool(true)),
            ("typdelim", letter(info.delimiter)),
            ("typelem", Datum::Oid(info.element)),
            ("typarray", Datum::Oid(info.array)),
            ("typinput", Datum::Oid(info.input)),
            ("typoutput", Datum::Oid(info.output)),
            ("typreceive", Datum::Oid(info.receive)),
            ("typsend", Datum::Oid(info.send)),
            ("typmodin", Datum::Oid(info.typmod_in)),
            ("typmodout", Datum::Oid(info.typmod_out)),
            ("typtypmod", Datum::Int4(-1)),
            ("typcollation", Datum::Oid(info.collation)),
        ];
        row.extend(layout_cells(info.layout()));
        sheet.add(&row);
    }
    // What reads and writes any row reads and writes these.
    for table in sheet.tables(source).chain(sheet.composites(source)) {
        let namespace = schema_oid(source, &table.schema);
        // A type that was made by CREATE TYPE has an owner of its own, a row type its table's.
        let owned = if table.kind == TableKind::Composite { table.row_type() } else { table.oid };
        let common = |oid: Oid, name: String| {
            let mut row = vec![
                ("oid", Datum::Oid(oid)),
                ("typname", text(name)),
                ("typnamespace", namespace.clone()),
                ("typowner", owner(source, owned)),
                ("typisdefined", Datum::Bool(true)),
                ("typdelim", text(",")),
                ("typtypmod", Datum::Int4(-1)),
            ];
            row.extend(layout_cells(layout_of(oid)));
            row
        };
        let mut row = common(table.row_type(), table.name.clone());
        row.push(("typrelid", Datum::Oid(table.oid)));
        row.push(("typarray", Datum::Oid(table.row_array_type())));
        row.extend(read_as(table.row_type()));
        if table.kind == TableKind::Composite {
            row.push(("typacl", acl_of(source, owned)));
        }
        sheet.add(&row);
        let mut array = common(table.row_array_type(), format!("_{}", table.name));
        array.push(("typelem", Datum::Oid(table.row_type())));
        array.extend(read_as_array());
        sheet.add(&array);
    }
}

fn operators(sheet: &mut Sheet<'_>) {
    for op in function::all_operators() {
        sheet.add(&[
            ("oid", Datum::Oid(op.oid)),
            ("oprname", text(op.name)),
            ("oprnamespace", Datum::Oid(PG_CATALOG)),
            ("oprowner", Datum::Oid(SUPERUSER)),
            ("oprkind", text(if op.left.is_some() { "b" } else { "l" })),
            ("oprleft", Datum::Oid(op.left.unwrap_or(Oid(0)))),
            ("oprright", Datum::Oid(op.right)),
            ("oprresult", Datum::Oid(op.result)),
            ("oprcom", Datum::Oid(op.commutator)),
            ("oprnegate", Datum::Oid(op.negator)),
            ("oprcanmerge", Datum::Bool(op.merges)),
            ("oprcanhash", Datum::Bool(op.hashes)),
            ("oprcode", Datum::Oid(op.function.oid)),
            ("oprrest", Datum::Oid(op.restriction)),
            ("oprjoin", Datum::Oid(op.join)),
        ]);
    }
}

/// What PostgreSQL's own operator families search by.
fn search_operators(sheet: &mut Sheet<'_>) {
    for line in include_str!("../../../data/amop.tsv").lines() {
        let fields: Vec<Oid> = line.split('\t').map(|field| Oid(field.parse().unwrap_or(0))).collect();
        let [oid, family, left, right, strategy, operator, method] = fields[..] else { continue };
        if function::operator_by_oid(operator).is_none() {
            continue;
        }
        sheet.add(&[
            ("oid", Datum::Oid(oid)),
            ("amopfamily", Datum::Oid(family)),
            ("amoplefttype", Datum::Oid(left)),
            ("amoprighttype", Datum::Oid(right)),
            ("amopstrategy", Datum::Int2(strategy.0 as i16)),
            ("amoppurpose", text("s")),
            ("amopopr", Datum::Oid(operator)),
            ("amopmethod", Datum::Oid(method)),
            ("amopsortfamily", Datum::Oid(Oid(0))),
        ]);
    }
}

fn casts(sheet: &mut Sheet<'_>) {
    for (i, cast) in function::all_casts().iter().enumerate() {
        let (function, method) = match cast.method {
            CastMethod::Function(function) => (function.oid, "f"),
            CastMethod::Binary => (Oid(0), "b"),
            CastMethod::InOut => (Oid(0), "i"),
        };
        let context = match cast.context {
            CastContext::Implicit => "i",
            CastContext::Assignment => "a",
            CastContext::Explicit => "e",
        };
        sheet.add(&[
            ("oid", Datum::Oid(Oid(10_000 + i as u32))),
            ("castsource", Datum::Oid(cast.source)),
            ("casttarget", Datum::Oid(cast.target)),
            ("castfunc", Datum::Oid(function)),
            ("castcontext", text(context)),
            ("castmethod", text(method)),
        ]);
    }
}

fn opclasses(sheet: &mut Sheet<'_>) {
    for class in operator_classes() {
        sheet.add(&[
            ("oid", Datum::Oid(class.oid)),
            ("opcmethod", Datum::Oid(Oid(403))),
            ("opcname", text(class.name)),
            ("opcnamespace", Datum::Oid(PG_CATALOG)),
            ("opcowner", Datum::Oid(SUPERUSER)),
            ("opcfamily", Datum::Oid(class.family)),
            ("opcintype", Datum::Oid(class.input)),
            ("opcdefault", Datum::Bool(class.default)),
            ("opckeytype", Datum::Oid(class.key)),
        ]);
    }
}

fn opfamilies(sheet: &mut Sheet<'_>) {
    let mut seen = Vec::new();
    for class in operator_classes().filter(|class| class.default) {
        if !seen.contains(&class.family) {
            seen.push(class.family);
            sheet.add(&[
                ("oid", Datum::Oid(class.family)),
                ("opfmethod", Datum::Oid(Oid(403))),
                ("opfname", text(class.name)),
                ("opfnamespace", Datum::Oid(PG_CATALOG)),
                ("opfowner", Datum::Oid(SUPERUSER)),
            ]);
        }
    }
}

fn access_methods(sheet: &mut Sheet<'_>) {
    for (oid, name, kind) in [
        (2, "heap", "t"),
        (403, "btree", "i"),
        (405, "hash", "i"),
        (783, "gist", "i"),
        (2742, "gin", "i"),
        (3580, "brin", "i"),
        (4000, "spgist", "i"),
    ] {
        sheet.add(&[("oid", Datum::Oid(Oid(oid))), ("amname", text(name)), ("amtype", text(kind))]);
    }
}

fn languages(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for language in LANGUAGES {
        let is_plpgsql = language.oid == PLPGSQL;
        let of_plpgsql = |at: usize| Datum::Oid(if is_plpgsql { PLPGSQL_FUNCTIONS[at] } else { Oid(0) });
        sheet.add(&[
            ("oid", Datum::Oid(language.oid)),
            ("lanname", text(language.name)),
            ("lanowner", Datum::Oid(SUPERUSER)),
            ("lanispl", Datum::Bool(is_plpgsql)),
            ("lanpltrusted", Datum::Bool(language.trusted)),
            ("lanplcallfoid", of_plpgsql(0)),
            ("laninline", of_plpgsql(1)),
            ("lanvalidator", Datum::Oid(language.validator)),
            ("lanacl", acl_of(source, language.oid)),
        ]);
    }
}

fn collations(sheet: &mut Sheet<'_>) {
    for (oid, name, provider) in
        [(DEFAULT_COLLATION, "default", "d"), (Oid(950), "C", "c"), (Oid(951), "POSIX", "c")]
    {
        sheet.add(&[
            ("oid", Datum::Oid(oid)),
            ("collname", text(name)),
            ("collnamespace", Datum::Oid(PG_CATALOG)),
            ("collowner", Datum::Oid(SUPERUSER)),
            ("collprovider", text(provider)),
            ("collisdeterministic", Datum::Bool(true)),
            ("collencoding", Datum::Int4(-1)),
            ("collcollate", text(name)),
            ("collctype", text(name)),
        ]);
    }
}

fn tablespaces(sheet: &mut Sheet<'_>) {
    for (oid, name) in [(PG_DEFAULT, "pg_default"), (Oid(1664), "pg_global")] {
        sheet.add(&[("oid", Datum::Oid(oid)), ("spcname", text(name)), ("spcowner", Datum::Oid(SUPERUSER))]);
    }
}

fn databases(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    // As they lie after initdb: the templates are changed, and so written again, when the others are there.
    let place = |oid: Oid| match oid.0 {
        1 => 1,
        4 => 2,
        2..=16_383 => 0,
        _ => 3,
    };
    let mut databases: Vec<_> = source.catalog().databases().collect();
    databases.sort_by_key(|database| (place(database.oid), database.oid));
    for database in databases {
        sheet.add(&[
            ("oid", Datum::Oid(database.oid)),
            ("datname", text(&database.name)),
            ("datdba", Datum::Oid(database.owner)),
            ("datacl", database.acl.as_deref().map_or(Datum::Null, |items| acl(source, items))),
            ("encoding", Datum::Int4(ENCODING)),
            ("datlocprovider", text("c")),
            ("datistemplate", Datum::Bool(database.is_template)),
            ("datallowconn", Datum::Bool(database.allow_connections)),
            ("datconnlimit", Datum::Int4(database.connection_limit)),
            ("dattablespace", Datum::Oid(PG_DEFAULT)),
            ("datcollate", text("C")),
            ("datctype", text("C")),
        ]);
    }
}

/// Comments on what all databases share.
fn shared_comments(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    let catalog = source.catalog();
    for comments in catalog.shared_comments_all() {
        let class = if catalog.database(comments.object).is_some() { PG_DATABASE } else { PG_AUTHID };
        for (_, comment) in &comments.texts {
            sheet.add(&[
                ("objoid", Datum::Oid(comments.object)),
                ("classoid", Datum::Oid(class)),
                ("description", text(comment)),
            ]);
        }
    }
}
