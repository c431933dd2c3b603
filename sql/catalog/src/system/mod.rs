//! The system catalogs: pg_catalog and information_schema as views over [`Catalog`], and the
//! catalog functions (`pg_get_indexdef`, `regclass` input, visibility, privileges).
//!
//! The relations have PostgreSQL 15's names, oids and columns (recorded in
//! `sql/data/relation.tsv`). Their rows are computed from the catalog when a query scans them;
//! a relation about something that cannot exist here (foreign tables) is
//! truly empty.
//!
//! - [`sought`]      which rows are wanted: those of one table are made without the others
//! - [`shape`]       the relations' columns, and rows built by column name
//! - [`source`]      what the session that asks can tell, and what it is shown
//! - `relation`      pg_class, pg_attribute, pg_index …; inheritance and partitions; pg_trigger
//! - `objects`       pg_type, pg_operator, pg_namespace …
//! - `routine`       pg_proc, pg_aggregate; built-in functions
//! - `operator_class` pg_opclass and its kin
//! - `role`          pg_authid, pg_auth_members …; who may do what
//! - `information_schema` the standard's views
//! - `definition`    objects as SQL text
//! - `depend`        pg_depend; `shared_depend` pg_shdepend
//! - `reg_types`     regclass and its kin, visibility
//! - `object_address` what an object is, by its numbers
//! - `reference`     extensions, time zones
//! - `functions`     catalog functions by name

mod definition;
mod depend;
mod functions;
mod information_schema;
mod object_address;
mod objects;
mod operator_class;
mod reference;
mod reg_types;
mod relation;
mod role;
mod routine;
mod shape;
mod shared_depend;
mod sought;
mod source;

use crate::catalog::Table;
use crate::datum::Datum;
use crate::error::Result;

pub use definition::names_defined::Defined;
pub use definition::{bare_type_along, key_expression, type_along, type_as_written};
pub use functions::call;
pub use objects::{default_operator_class, operator_class_named};
pub use routine::function_name::built_in_name;
pub use shape::tables;
pub use shared_depend::shared_dependency;
pub use sought::{Sought, is_selective};
pub use source::{Changeable, KeptExpression, Subject, SystemSource};

/// The rows of a system relation, all that are sought and perhaps others; `None` if it is not one of this
/// crate's.
pub fn rows(table: &Table, sought: &Sought, source: &dyn SystemSource) -> Option<Result<Vec<Vec<Datum>>>> {
    let shape = shape::shape(&table.schema, &table.name)?;
    let mut sheet = shape::Sheet::new(shape, sought, source);
    match table.schema.as_str() {
        "pg_catalog" => {
            let filled = relation::inheritance::fill(&table.name, source, &mut sheet)
                || relation::triggers::fill(&table.name, source, &mut sheet)
                || relation::policies::fill(&table.name, source, &mut sheet)
                || role::roles::fill(&table.name, source, &mut sheet)
                || shared_depend::fill(&table.name, source, &mut sheet)
                || reference::fill(&table.name, source, &mut sheet)
                || relation::relations::fill(&table.name, source, &mut sheet)
                || objects::fill(&table.name, source, &mut sheet);
            // The others describe what cannot be created here.
            let _ = filled;
        }
        _ => information_schema::views::fill(&table.name, source, &mut sheet),
    }
    Some(Ok(sheet.into_rows()))
}

/// Whether what is sought leads to rows of a relation without making all.
pub fn leads(table: &Table, sought: &Sought, source: &dyn SystemSource) -> bool {
    shape::shape(&table.schema, &table.name)
        .is_some_and(|shape| !shape::Sheet::new(shape, sought, source).wants_all())
}

/// Whether a relation has the same rows as long as a statement runs, whatever that does: the catalog's own
/// tables have, and so have the standard's views of them. Other views tell of what goes on.
pub fn is_settled(table: &Table) -> bool {
    match table.schema.as_str() {
        "pg_catalog" => shape::relation_kind(&table.schema, &table.name) == b'r',
        schema => schema == "information_schema",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{
        ArgMode, CatalogChange, Check, Column, Distribution, ForeignKey, Index, IndexColumn, KeyConstraint,
        Language, Object, Routine, RoutineArg, RoutineKind, TableKind,
    };
    use crate::catalog::{Catalog, SessionRoles};
    use crate::types::{Oid, Type};
    use std::sync::Arc;

    struct Source(Catalog, Vec<String>);

    impl SystemSource for Source {
        fn catalog(&self) -> &Catalog {
            &self.0
        }
        fn search_path(&self) -> &[String] {
            &self.1
        }
        fn roles(&self) -> SessionRoles {
            SessionRoles::default()
        }
    }

    fn source() -> Source {
        let table = Table {
            columns: vec![
                Column { not_null: true, ..Column::new("id", Type::INT4) },
                Column {
                    default: Some("0".into()),
                    ..Column::new("balance", Type { oid: Oid::NUMERIC, typmod: 786_438 })
                },
            ],
            primary_key: Some(KeyConstraint {
                oid: Oid(20_003),
                name: "account_pkey".into(),
                columns: vec![0],
                include: Vec::new(),
                parent: None,
                options: Vec::new(),
            }),
            indexes: vec![Index {
                oid: Oid(20_005),
                name: "account_balance".into(),
                columns: vec![IndexColumn {
                    column: 1,
                    descending: true,
                    nulls_first: true,
                    collation: None,
                }],
                unique: false,
                nulls_equal: false,
                constraint: false,
                tree: 17,
                global_group: None,
                include: Vec::new(),
                predicate: None,
                expressions: Vec::new(),
                parent: None,
                hash: false,
                classes: Vec::new(),
                options: Vec::new(),
            }],
            checks: vec![Check {
                oid: Oid(20_007),
                name: "positive".into(),
                condition: "balance >= 0".into(),
                not_valid: false,
                no_inherit: false,
                inherited: false,
            }],
            foreign_keys: vec![ForeignKey {
                oid: Oid(20_008),
                name: "self".into(),
                columns: vec![0],
                references: Oid(20_000),
                referenced_columns: vec![0],
                on_delete: Default::default(),
                on_update: Default::default(),
                deferrable: false,
                initially_deferred: false,
                not_valid: false,
                match_full: false,
                on_delete_columns: Vec::new(),
                parent: None,
            }],
            distribution: Distribution::Column { column: 0, group: 16 },
            tree: 16,
            version: 1,
            ..Table::new(Oid(20_000), "public", "account", TableKind::Table)
        };
        let routine = Routine {
            oid: Oid(20_010),
            schema: "public".into(),
            name: "pay".into(),
            kind: RoutineKind::Procedure,
            language: Language::PlPgSql,
            args: vec![
                RoutineArg {
                    name: Some("who".into()),
                    mode: ArgMode::In,
                    ty: Type::INT4,
                    default: None,
                    domain: None,
                },
                RoutineArg {
                    name: Some("rest".into()),
                    mode: ArgMode::InOut,
                    ty: Type::NUMERIC,
                    default: Some("0".into()),
                    domain: None,
                },
            ],
            result: Type::RECORD,
            result_domain: None,
            returns_set: false,
            strict: false,
            volatility: 'v',
            source: "BEGIN END".into(),
            distribution_arg: None,
            traits: Default::default(),
            aggregate: None,
            version: 1,
        };
        let catalog = Catalog::initial(tables()).apply(&[
            CatalogChange::Put(Object::Table(Arc::new(table))),
            CatalogChange::Put(Object::Routine(Arc::new(routine))),
        ]);
        Source(catalog, vec!["public".into()])
    }

    /// Every relation answers rows of its own width, whose cells name columns that exist
    /// (a debug assertion of `Sheet`).
    #[test]
    fn every_relation_answers() {
        let source = source();
        for table in tables() {
            let rows =
                rows(&table, &Sought::EVERYTHING, &source).expect("it is a relation of this crate").unwrap();
            assert!(rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.name);
        }
    }

    #[test]
    fn definitions_read_as_sql() {
        let source = source();
        let ask =
            |name: &str, args: &[Datum]| call(name, args, &source).expect("a catalog function").unwrap();
        let oid = |n: u32| Datum::Oid(Oid(n));
        assert_eq!(
            ask("pg_get_indexdef", &[oid(20_005)]),
            Datum::text("CREATE INDEX account_balance ON public.account USING btree (balance DESC)")
        );
        assert_eq!(ask("pg_get_constraintdef", &[oid(20_004)]), Datum::text("PRIMARY KEY (id)"));
        assert_eq!(
            ask("pg_get_constraintdef", &[oid(20_008)]),
            Datum::text("FOREIGN KEY (id) REFERENCES account(id)")
        );
        assert_eq!(
            ask("pg_get_function_arguments", &[oid(20_010)]),
            Datum::text("IN who integer, INOUT rest numeric DEFAULT 0")
        );
        assert_eq!(ask("regclassin", &[Datum::text("account")]), oid(20_000));
        assert_eq!(ask("to_regclass", &[Datum::text("nothing")]), Datum::Null);
        assert_eq!(
            ask("format_type", &[Datum::Oid(Oid::row_type_of(Oid(20_000))), Datum::Null]),
            Datum::text("account")
        );
        assert_eq!(ask("regprocedurein", &[Datum::text("pay(int4, numeric)")]), oid(20_010));
    }
}
