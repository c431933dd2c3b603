//! Catalog relations about tables, indexes, constraints and sequences.

use super::index_view::{
    IndexView, PG_CLASS, PG_CONSTRAINT, PG_NAMESPACE, PG_PROC, PG_TYPE, attribute, default_oid, indexes,
    operator_class, schema_oid,
};
use super::inheritance::{bound_of, is_complete};
use crate::catalog::operator_class::access_method;
use crate::catalog::routine::extension;
use crate::catalog::routine::language_object::LANGUAGES;
use crate::catalog::{CheckOption, EXPRESSION, ReplicaIdentity, Table, TableKind};
use crate::datum::Datum;
use crate::system::SystemSource;
use crate::system::definition::expressions::{
    columns_named, condition_text, default_text, expression_text, generated_text, own_default,
};
use crate::system::definition::index_definition;
use crate::system::depend::{
    PG_EXTENSION, PG_POLICY, PG_TRIGGER, dependencies, initial_rights, referenced_index, rules,
};
use crate::system::operator_class::builtin_class::{class_named, method_oid};
use crate::system::role::roles::{acl_of, column_acl, owner, owner_name};
use crate::system::shape::{Sheet, array, letter, relation_kind, storage_options, text, vector};
use crate::system::shared_depend::PG_LANGUAGE;
use crate::type_table::type_info;
use crate::types::{Oid, Type};

const HEAP: Oid = Oid(2);
/// Collation "default".
pub(in crate::system) const DEFAULT_COLLATION: Oid = Oid(100);

/// Fills the relation if it is one of this file's.
pub(in crate::system) fn fill(name: &str, source: &dyn SystemSource, sheet: &mut Sheet<'_>) -> bool {
    match name {
        "pg_class" => classes(source, sheet),
        "pg_attribute" => attributes(source, sheet),
        "pg_attrdef" => defaults(source, sheet),
        "pg_index" => index_rows(source, sheet),
        "pg_constraint" => constraints(source, sheet),
        "pg_sequence" => sequences(source, sheet),
        "pg_sequences" => sequence_view(source, sheet),
        "pg_depend" => dependencies(source, sheet),
        "pg_rewrite" => rules(source, sheet),
        "pg_init_privs" => initial_rights(source, sheet),
        "pg_description" => descriptions(source, sheet),
        "pg_tables" => tables(source, sheet),
        "pg_indexes" => index_view(source, sheet),
        "pg_views" => views(source, sheet),
        "pg_locks" => sheet.extend(source.locks()),
        _ => return false,
    }
    true
}

/// pg_class.relkind.
pub(in crate::system) fn kind_of(table: &Table) -> u8 {
    match table.kind {
        TableKind::Table if table.is_partitioned() => b'p',
        TableKind::Table => b'r',
        TableKind::View => b'v',
        TableKind::System => relation_kind(&table.schema, &table.name),
        TableKind::Composite => b'c',
    }
}

/// pg_class.reloptions.
fn view_options(table: &Table) -> Datum {
    let Some(view) = &table.view else { return storage_options(&table.options) };
    let mut options: Vec<Datum> =
        view.options.iter().map(|(name, value)| text(format!("{name}={value}"))).collect();
    options.extend(view.check_option.map(|check| {
        text(match check {
            CheckOption::Local => "check_option=local",
            CheckOption::Cascaded => "check_option=cascaded",
        })
    }));
    if options.is_empty() { Datum::Null } else { array(Oid::TEXT, options) }
}

/// pg_class.relhastriggers: its own, and both ends of a foreign key. PostgreSQL enforces those with triggers
/// there, and psql looks for foreign keys only where it sees them.
fn has_triggers(source: &dyn SystemSource, table: &Table) -> bool {
    let catalog = source.catalog();
    // What points at a partitioned table points at its partitions.
    let parent = |table: &Table| catalog.table_in_place(table.partition_of()?);
    let trees = std::iter::successors(Some(table), |table| parent(table));
    !table.triggers.is_empty()
        || !table.foreign_keys.is_empty()
        || trees.into_iter().any(|table| catalog.is_referenced(table.oid))
}

fn classes(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for table in sheet.tables(source).chain(sheet.composites(source)) {
        let kind = kind_of(table);
        let composite = table.kind == TableKind::Composite;
        let owned = if composite { table.row_type() } else { table.oid };
        let namespace = schema_oid(source, &table.schema);
        let has_index = indexes(table).next().is_some();
        let has_heirs = source.catalog().has_heirs(table.oid);
        sheet.add(&[
            ("oid", Datum::Oid(table.oid)),
            ("relname", text(&table.name)),
            ("relnamespace", namespace.clone()),
            ("reltype", Datum::Oid(table.row_type())),
            ("relowner", owner(source, owned)),
            ("relacl", if composite { Datum::Null } else { acl_of(source, table.oid) }),
            ("relam", Datum::Oid(if kind == b'r' { HEAP } else { Oid(0) })),
            ("relfilenode", Datum::Oid(if kind == b'r' { table.oid } else { Oid(0) })),
            (
                "reltuples",
                Datum::Float4(if composite { 0.0 } else { source.row_count(table).unwrap_or(-1.0) }),
            ),
            ("relpages", Datum::Int4(source.page_count(table).unwrap_or(0))),
            ("reloptions", view_options(table)),
            ("relhasindex", Datum::Bool(has_index)),
            ("relpersistence", text(table.persistence.letter())),
            ("relkind", letter(kind)),
            ("relispartition", Datum::Bool(table.bound.is_some())),
            ("relpartbound", bound_of(source, table)),
            ("relhassubclass", Datum::Bool(source.catalog().has_heirs(table.oid))),
            ("relnatts", Datum::Int2(table.columns.len() as i16)),
            ("relchecks", Datum::Int2(table.checks.len() as i16)),
            ("relhasrules", Datum::Bool(kind == b'v')),
            ("relhastriggers", Datum::Bool(has_triggers(source, table))),
            ("relrowsecurity", Datum::Bool(table.row_security.enabled)),
            ("relforcerowsecurity", Datum::Bool(table.row_security.forced)),
            ("relispopulated", Datum::Bool(true)),
            (
                "relreplident",
                text(match table.kind {
                    TableKind::Table => table.nominal.replica_identity.letter(),
                    _ => "n",
                }),
            ),
        ]);
        for index in indexes(table) {
            sheet.add(&[
                ("oid", Datum::Oid(index.oid)),
                ("relname", text(index.name)),
                ("relnamespace", namespace.clone()),
                ("relowner", owner(source, table.oid)),
                ("relam", method_oid(index.method)),
                ("reloptions", storage_options(index.options)),
                ("relfilenode", Datum::Oid(if table.is_partitioned() { Oid(0) } else { index.oid })),
                ("reltuples", Datum::Float4(source.row_count(table).unwrap_or(-1.0))),
                ("relispartition", Datum::Bool(index.parent.is_some())),
                ("relhassubclass", Datum::Bool(table.is_partitioned() && has_heirs)),
                ("relpersistence", text(table.persistence.letter())),
                ("relkind", text(if table.is_partitioned() { "I" } else { "i" })),
                ("relnatts", Datum::Int2(index.all_columns().len() as i16)),
                ("relispopulated", Datum::Bool(true)),
                ("relreplident", text("n")),
            ]);
        }
    }
    for sequence in sheet.sequences(source) {
        sheet.add(&[
            ("oid", Datum::Oid(sequence.oid)),
            ("relname", text(&sequence.name)),
            ("relnamespace", schema_oid(source, &sequence.schema)),
            ("relowner", owner(source, sequence.oid)),
            ("relacl", acl_of(source, sequence.oid)),
            ("relfilenode", Datum::Oid(sequence.oid)),
            ("reltuples", Datum::Float4(1.0)),
            ("relpersistence", text(sequence.persistence.letter())),
            ("relkind", text("S")),
            ("relnatts", Datum::Int2(3)),
            ("relispopulated", Datum::Bool(true)),
            ("relreplident", text("n")),
        ]);
    }
}

/// How many of a table's parents have something.
fn parents_with(source: &dyn SystemSource, table: &Table, has: &dyn Fn(&Table) -> bool) -> i32 {
    let parents = table.inherits.iter().filter_map(|oid| source.catalog().table_in_place(*oid));
    parents.filter(|parent| has(parent)).count() as i32
}

fn attributes(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for table in sheet.tables(source).chain(sheet.composites(source)) {
        for (i, column) in table.columns.iter().enumerate() {
            let mut cells = attribute(table.oid, &column.name, column.ty, i + 1);
            if let Some(domain) = column.domain {
                cells.extend([("atttypid", Datum::Oid(domain)), ("atttypmod", Datum::Int4(-1))]);
            }
            cells.push(("attnotnull", Datum::Bool(column.not_null)));
            cells.push(("attislocal", Datum::Bool(!column.inherited)));
            cells.extend(column.collation.map(|own| ("attcollation", Datum::Oid(own))));
            let storage = column.storage;
            cells.extend(storage.statistics.map(|target| ("attstattarget", Datum::Int4(target))));
            cells.extend(storage.strategy.map(|strategy| ("attstorage", letter(strategy))));
            cells.extend(storage.compression.map(|method| ("attcompression", letter(method))));
            let has = |parent: &Table| parent.column_index(&column.name).is_some();
            cells.push(("attinhcount", Datum::Int4(parents_with(source, table, &has))));
            cells.push(("attacl", column_acl(source, table.oid, i + 1)));
            let has_default = own_default(column).is_some() && column.identity.is_none();
            cells.push(("atthasdef", Datum::Bool(has_default || column.generated.is_some())));
            if column.generated.is_some() {
                cells.push(("attgenerated", text("s")));
            }
            if let Some(identity) = column.identity {
                let mark = match identity {
                    crate::catalog::Identity::Always => "a",
                    crate::catalog::Identity::ByDefault => "d",
                };
                cells.push(("attidentity", text(mark)));
            }
            sheet.add(&cells);
        }
        for index in indexes(table) {
            for i in 0..index.all_columns().len() {
                let Some((name, ty)) = index.part(i) else { continue };
                let mut cells = attribute(index.oid, &name, ty, i + 1);
                if i < index.columns.len() {
                    cells.push(("attcollation", Datum::Oid(key_collation(&index, i))));
                }
                sheet.add(&cells);
            }
        }
    }
    for sequence in sheet.sequences(source) {
        for (i, (name, ty)) in
            [("last_value", Type::INT8), ("log_cnt", Type::INT8), ("is_called", Type::BOOL)]
                .into_iter()
                .enumerate()
        {
            let mut cells = attribute(sequence.oid, name, ty, i + 1);
            cells.push(("attnotnull", Datum::Bool(true)));
            sheet.add(&cells);
        }
    }
}

fn defaults(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for table in sheet.tables(source) {
        for (i, column) in table.columns.iter().enumerate().filter(|(_, c)| c.identity.is_none()) {
            if let Some(generated) = &column.generated {
                sheet.add(&[
                    ("oid", Datum::Oid(default_oid(table.oid, i + 1))),
                    ("adrelid", Datum::Oid(table.oid)),
                    ("adnum", Datum::Int2(i as i16 + 1)),
                    ("adbin", text(generated_text(source, table, generated))),
                ]);
            } else if let Some(default) = own_default(column) {
                sheet.add(&[
                    ("oid", Datum::Oid(default_oid(table.oid, i + 1))),
                    ("adrelid", Datum::Oid(table.oid)),
                    ("adnum", Datum::Int2(i as i16 + 1)),
                    ("adbin", text(default_text(source, column, default))),
                ]);
            }
        }
    }
}

fn attribute_number(column: u16) -> Datum {
    Datum::Int2(if column == EXPRESSION { 0 } else { column as i16 + 1 })
}

/// The collation of a part of an index's key; 0 where its type has none.
fn key_collation(index: &IndexView<'_>, place: usize) -> Oid {
    let Some((column, ..)) = index.columns.get(place) else { return Oid(0) };
    if let Some(named) = index.collations.get(place).copied().flatten() {
        return named;
    }
    let table = index.table;
    let of_type = |ty: Type| type_info(ty.oid).map_or(Oid(0), |info| info.collation);
    let own = match index.expression(place) {
        Some(expression) => {
            let read = columns_named(table, &expression.text).into_iter();
            let mut named = read.filter_map(|place| table.columns.get(usize::from(place))?.collation);
            (of_type(expression.ty), named.next())
        }
        None => match table.columns.get(usize::from(*column)) {
            Some(column) => (of_type(column.ty), column.collation),
            None => (Oid(0), None),
        },
    };
    match own {
        (Oid(0), _) => Oid(0),
        (plain, named) => named.unwrap_or(plain),
    }
}

/// The operator class of a part of an index's key: the one it names, or its type's own.
fn key_class(source: &dyn SystemSource, index: &IndexView<'_>, place: usize, ty: Oid) -> Oid {
    let Some(name) = index.classes.get(place).and_then(Option::as_deref) else { return operator_class(ty) };
    let method = access_method(index.method);
    let defined = || {
        let mut classes = source.catalog().operator_classes();
        classes.find(|class| class.name == name && access_method(&class.method) == method)
    };
    class_named(name).or_else(|| Some(defined()?.oid)).unwrap_or_else(|| operator_class(ty))
}

fn index_rows(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for table in sheet.tables(source) {
        for index in indexes(table) {
            let types: Vec<Oid> =
                (0..index.columns.len()).filter_map(|place| Some(index.part(place)?.1.oid)).collect();
            let expressions: Vec<String> = (0..index.columns.len())
                .filter_map(|place| Some(expression_text(source, table, &index.expression(place)?.text)))
                .collect();
            let numbers = index.all_columns().into_iter().map(attribute_number).collect();
            let class = |(place, ty): (usize, &Oid)| Datum::Oid(key_class(source, &index, place, *ty));
            let classes = types.iter().enumerate().map(class).collect();
            let collations = (0..types.len()).map(|place| Datum::Oid(key_collation(&index, place))).collect();
            let options = index
                .columns
                .iter()
                .map(|(_, descending, nulls_first)| {
                    Datum::Int2(i16::from(*descending) | i16::from(*nulls_first) << 1)
                })
                .collect();
            sheet.add(&[
                ("indexrelid", Datum::Oid(index.oid)),
                ("indrelid", Datum::Oid(table.oid)),
                ("indnatts", Datum::Int2(index.all_columns().len() as i16)),
                (
                    "indpred",
                    index.predicate.map_or(Datum::Null, |predicate| condition_text(source, table, predicate)),
                ),
                ("indexprs", if expressions.is_empty() { Datum::Null } else { text(expressions.join(", ")) }),
                ("indnkeyatts", Datum::Int2(index.columns.len() as i16)),
                ("indisunique", Datum::Bool(index.unique)),
                ("indnullsnotdistinct", Datum::Bool(index.nulls_equal)),
                ("indisprimary", Datum::Bool(index.primary)),
                ("indimmediate", Datum::Bool(true)),
                (
                    "indisreplident",
                    Datum::Bool(table.nominal.replica_identity == ReplicaIdentity::Index(index.oid)),
                ),
                ("indisvalid", Datum::Bool(is_complete(source.catalog(), table, index.oid))),
                ("indisready", Datum::Bool(true)),
                ("indislive", Datum::Bool(true)),
                ("indkey", vector(Oid::INT2, numbers)),
                ("indcollation", vector(Oid::OID, collations)),
                ("indclass", vector(Oid::OID, classes)),
                ("indoption", vector(Oid::INT2, options)),
            ]);
        }
    }
}

fn numbers(columns: &[u16]) -> Datum {
    array(Oid::INT2, columns.iter().map(|c| attribute_number(*c)).collect())
}

fn constraints(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    domain_constraints(source, sheet);
    let of_parent = |parent: Oid| {
        [
            ("conparentid", Datum::Oid(parent)),
            ("conislocal", Datum::Bool(false)),
            ("coninhcount", Datum::Int4(1)),
        ]
    };
    for table in sheet.tables(source) {
        // Of a partitioned table, or one of its partitions.
        let in_tree = table.is_partitioned() || table.bound.is_some();
        let common = |oid: Oid, name: &str, kind: &str| {
            vec![
                ("oid", Datum::Oid(oid)),
                ("conname", text(name)),
                ("connamespace", schema_oid(source, &table.schema)),
                ("contype", text(kind)),
                ("convalidated", Datum::Bool(true)),
                ("conrelid", Datum::Oid(table.oid)),
                ("conislocal", Datum::Bool(true)),
                ("connoinherit", Datum::Bool(kind != "c")),
                ("confupdtype", text(" ")),
                ("confdeltype", text(" ")),
                ("confmatchtype", text(" ")),
            ]
        };
        for index in indexes(table) {
            let Some(oid) = index.constraint else { continue };
            let mut cells = common(oid, index.name, if index.primary { "p" } else { "u" });
            let columns: Vec<u16> = index.columns.iter().map(|(c, ..)| *c).collect();
            cells.push(("conindid", Datum::Oid(index.oid)));
            cells.push(("conkey", numbers(&columns)));
            cells.push(("connoinherit", Datum::Bool(index.parent.is_none())));
            if let Some(parent) = index.parent {
                // The constraint of the index that it is part of.
                cells.extend(of_parent(Oid(parent.0 + 1)));
            }
            sheet.add(&cells);
        }
        for check in &table.checks {
            let mut cells = common(check.oid, &check.name, "c");
            cells.push(("conbin", condition_text(source, table, &check.condition)));
            let named = columns_named(table, &check.condition);
            cells.push(("conkey", if named.is_empty() { Datum::Null } else { numbers(&named) }));
            cells.push(("convalidated", Datum::Bool(!check.not_valid)));
            cells.push(("connoinherit", Datum::Bool(check.no_inherit)));
            cells.push(("conislocal", Datum::Bool(!check.inherited)));
            let has =
                |parent: &Table| parent.checks.iter().any(|own| own.name == check.name && !own.no_inherit);
            cells.push(("coninhcount", Datum::Int4(parents_with(source, table, &has))));
            sheet.add(&cells);
        }
        for key in &table.foreign_keys {
            let index = referenced_index(source, key);
            let mut cells = common(key.oid, &key.name, "f");
            cells.extend([
                ("conindid", Datum::Oid(index.unwrap_or(Oid(0)))),
                ("confrelid", Datum::Oid(key.references)),
                ("confupdtype", text(key.on_update.letter())),
                ("confdeltype", text(key.on_delete.letter())),
                ("convalidated", Datum::Bool(!key.not_valid)),
                ("condeferrable", Datum::Bool(key.deferrable)),
                ("condeferred", Datum::Bool(key.initially_deferred)),
                ("confmatchtype", text(if key.match_full { "f" } else { "s" })),
                ("conkey", numbers(&key.columns)),
                ("confkey", numbers(&key.referenced_columns)),
                ("connoinherit", Datum::Bool(!in_tree)),
            ]);
            cells.extend(key.parent.into_iter().flat_map(of_parent));
            sheet.add(&cells);
        }
        for trigger in &table.triggers {
            let Some(timing) = trigger.constraint else { continue };
            let mut cells = common(trigger.oid, &trigger.name, "t");
            cells.push(("condeferrable", Datum::Bool(timing.deferrable)));
            cells.push(("condeferred", Datum::Bool(timing.initially_deferred)));
            sheet.add(&cells);
        }
    }
}

fn domain_constraints(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for ty in sheet.user_types(source) {
        for check in ty.domain.iter().flat_map(|domain| &domain.checks) {
            sheet.add(&[
                ("oid", Datum::Oid(check.oid)),
                ("conname", text(&check.name)),
                ("connamespace", schema_oid(source, &ty.schema)),
                ("contype", text("c")),
                ("convalidated", Datum::Bool(!check.not_valid)),
                ("contypid", Datum::Oid(ty.oid)),
                ("conislocal", Datum::Bool(true)),
                ("confupdtype", text(" ")),
                ("confdeltype", text(" ")),
                ("confmatchtype", text(" ")),
                ("conbin", text(&check.condition)),
            ]);
        }
    }
}

fn sequences(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for sequence in sheet.sequences(source) {
        sheet.add(&[
            ("seqrelid", Datum::Oid(sequence.oid)),
            ("seqtypid", Datum::Oid(sequence.ty.oid)),
            ("seqstart", Datum::Int8(sequence.start)),
            ("seqincrement", Datum::Int8(sequence.increment)),
            ("seqmax", Datum::Int8(sequence.max_value)),
            ("seqmin", Datum::Int8(sequence.min_value)),
            ("seqcache", Datum::Int8(sequence.cache)),
            ("seqcycle", Datum::Bool(sequence.cycle)),
        ]);
    }
}

fn sequence_view(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for sequence in sheet.sequences(source) {
        sheet.add(&[
            ("schemaname", text(&sequence.schema)),
            ("sequencename", text(&sequence.name)),
            ("sequenceowner", owner_name(source, sequence.oid)),
            ("data_type", Datum::Oid(sequence.ty.oid)),
            ("start_value", Datum::Int8(sequence.start)),
            ("min_value", Datum::Int8(sequence.min_value)),
            ("max_value", Datum::Int8(sequence.max_value)),
            ("increment_by", Datum::Int8(sequence.increment)),
            ("cycle", Datum::Bool(sequence.cycle)),
            ("cache_size", Datum::Int8(sequence.cache)),
            ("last_value", source.sequence_last_value(sequence.oid).map_or(Datum::Null, Datum::Int8)),
        ]);
    }
}

/// The catalog an object's comment is filed under.
fn object_class(source: &dyn SystemSource, object: Oid) -> Oid {
    let catalog = source.catalog();
    let of_composite = catalog.table_of_row_type(Oid::row_type_of(object)).is_some();
    if of_composite || catalog.relation_by_oid(object).is_some() {
        PG_CLASS
    } else if catalog.routine_by_oid(object).is_some() {
        PG_PROC
    } else if catalog.schema_by_oid(object).is_some() {
        PG_NAMESPACE
    } else if catalog.user_type_by_oid(object).is_some() {
        PG_TYPE
    } else if extension::EXTENSIONS.iter().any(|known| known.oid == object) {
        PG_EXTENSION
    } else if catalog.trigger_by_oid(object).is_some() {
        PG_TRIGGER
    } else if catalog.policy_by_oid(object).is_some() {
        PG_POLICY
    } else {
        PG_CONSTRAINT
    }
}

/// The comments that languages and extensions come with: the class, the object, the text. An extension that
/// somebody has commented on has that one.
pub(in crate::system) fn given_comments(source: &dyn SystemSource) -> Vec<(Oid, Oid, &'static str)> {
    let catalog = source.catalog();
    let languages = LANGUAGES.iter().map(|language| (PG_LANGUAGE, language.oid, language.comment));
    let there = |known: &&extension::Extension| {
        catalog.extension_schema(known).is_some() && catalog.comments(known.oid).is_none()
    };
    let extensions = extension::EXTENSIONS.iter().filter(there);
    languages.chain(extensions.map(|known| (PG_EXTENSION, known.oid, known.comment))).collect()
}

fn descriptions(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for (class, object, comment) in given_comments(source) {
        sheet.add(&[
            ("objoid", Datum::Oid(object)),
            ("classoid", Datum::Oid(class)),
            ("objsubid", Datum::Int4(0)),
            ("description", text(comment)),
        ]);
    }
    for comments in sheet.comments(source) {
        let class = object_class(source, comments.object);
        for (column, comment) in &comments.texts {
            sheet.add(&[
                ("objoid", Datum::Oid(comments.object)),
                ("classoid", Datum::Oid(class)),
                ("objsubid", Datum::Int4(i32::from(*column))),
                ("description", text(comment)),
            ]);
        }
    }
}

fn tables(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for table in sheet.tables(source) {
        if !matches!(kind_of(table), b'r' | b'p') {
            continue;
        }
        sheet.add(&[
            ("schemaname", text(&table.schema)),
            ("tablename", text(&table.name)),
            ("tableowner", owner_name(source, table.oid)),
            ("hasindexes", Datum::Bool(indexes(table).next().is_some())),
            ("hasrules", Datum::Bool(false)),
            ("hastriggers", Datum::Bool(!table.foreign_keys.is_empty() || !table.triggers.is_empty())),
            ("rowsecurity", Datum::Bool(table.row_security.enabled)),
        ]);
    }
}

fn views(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for table in sheet.tables(source).filter(|table| kind_of(table) == b'v') {
        sheet.add(&[
            ("schemaname", text(&table.schema)),
            ("viewname", text(&table.name)),
            ("viewowner", owner_name(source, table.oid)),
            ("definition", view_definition(source, table, false)),
        ]);
    }
}

/// A view's query as pg_get_viewdef shows it; NULL for what is no view.
pub(in crate::system) fn view_definition(source: &dyn SystemSource, table: &Table, pretty: bool) -> Datum {
    if let Some(shown) = source.shown_view(table, pretty) {
        return text(shown);
    }
    let text_of = |view: &crate::catalog::View| view.query_text(source.catalog(), source.search_path());
    match table.view.as_ref().map(text_of) {
        Some(Ok(query)) => text(format!(" {query};")),
        _ => Datum::Null,
    }
}

fn index_view(source: &dyn SystemSource, sheet: &mut Sheet<'_>) {
    for table in sheet.tables(source) {
        for index in indexes(table) {
            sheet.add(&[
                ("schemaname", text(&table.schema)),
                ("tablename", text(&table.name)),
                ("indexname", text(index.name)),
                ("indexdef", text(index_definition(source, &index, false))),
            ]);
        }
    }
}
