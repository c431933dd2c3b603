//! The system catalogs: pg_catalog and information_schema as views over [`Catalog`], and the
//! catalog functions (`pg_get_indexdef`, `regclass` input, visibility, privileges).
//!
//! The relations have PostgreSQL 15's names, oids and columns (recorded in
//! `sql/data/relation.tsv`). Their rows are computed from the catalog when a query scans them;
//! a relation about something that cannot exist here (policies, foreign tables) is
//! truly empty.
//!
//! - [`shape`]       the relations' columns, and rows built by column name
//! - `relations`     pg_class, pg_attribute, pg_index, pg_constraint, pg_sequence …
//! - `objects`       pg_type, pg_operator, pg_namespace …; `type_functions` what pg_type names
//! - `routines`      pg_proc, pg_aggregate; `builtin` arguments and results of built-in functions
//! - `information`   information_schema; `information_types` about domains and composite types,
//!   `information_rights` who sees what, and who was granted what
//! - `definition`    objects as SQL text; `expressions` defaults and conditions; `qualified` the names in
//!   what is shown as it was written
//! - `heirs`       pg_inherits, pg_partitioned_table, pg_partition_tree …
//! - `triggers`    pg_trigger, information_schema.triggers, pg_get_triggerdef
//! - `names`         reg* types, visibility; `defined` the same for what definitions name
//! - `roles`         pg_authid, pg_auth_members …; `privileges` who may do what
//! - `reference`     extensions, time zones
//! - `functions`     catalog functions by name; `identity` what an object is, `properties` what indexes can

mod builtin;
mod defined;
mod definition;
mod depend;
mod expressions;
mod functions;
mod heirs;
mod identity;
mod information;
mod information_rights;
mod information_types;
mod names;
mod objects;
mod operator_classes;
mod privileges;
mod properties;
mod qualified;
mod reference;
mod relations;
mod roles;
mod routines;
mod shape;
mod triggers;
mod type_functions;

use crate::catalog::{Catalog, Routine, SessionRoles, Table};
use crate::datum::Datum;
use crate::error::Result;
use crate::function::FunctionContext;
use crate::types::{Oid, Type};

pub use defined::Defined;
pub use definition::{bare_type_along, key_expression, type_along, type_as_written};
pub use functions::call;
pub use names::built_in_name;
pub use objects::{default_operator_class, operator_class_named};
pub use qualified::{kept_as_written, qualified};
pub use shape::tables;

/// A kept expression that is to be shown.
#[derive(Clone, Copy, Debug)]
pub struct KeptExpression<'k> {
    pub text: &'k str,
    /// That of what it belongs to.
    pub schema: &'k str,
    pub subject: Subject,
    /// What a default becomes.
    pub target: Option<Type>,
    /// Without the parentheses that can be done without.
    pub pretty: bool,
}

/// What a kept expression speaks of.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    Nothing,
    /// A row of a table.
    Row(Oid),
    /// A row of a table before and after a change: `old` and `new`.
    Change(Oid),
    /// The VALUE of a domain over a type.
    Value(Type),
}

impl<'k> KeptExpression<'k> {
    /// One over a table's row.
    pub fn over(table: &'k Table, text: &'k str, pretty: bool) -> KeptExpression<'k> {
        let schema = &table.schema;
        KeptExpression { text, schema, subject: Subject::Row(table.oid), target: None, pretty }
    }
}

/// What can be changed through a relation without the help of triggers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changeable {
    pub insert: bool,
    pub update: bool,
    pub delete: bool,
    /// For each column, whether it can be given another value.
    pub columns: Vec<bool>,
}

impl Changeable {
    /// Whether a column is one that PostgreSQL calls updatable: rows can be deleted, too.
    pub fn is_updatable(&self, column: usize) -> bool {
        self.update && self.delete && self.columns.get(column) == Some(&true)
    }
}

/// What the views and functions see of the session that asks.
pub trait SystemSource {
    fn catalog(&self) -> &Catalog;
    fn search_path(&self) -> &[String];
    /// In whose name is asked.
    fn roles(&self) -> SessionRoles;
    fn database(&self) -> &str;
    /// What functions behind relations may ask.
    fn context(&self) -> FunctionContext<'_> {
        FunctionContext::detached()
    }
    /// An expression as PostgreSQL shows it; `None` for one that is shown as it was written.
    fn shown(&self, _expression: &KeptExpression<'_>) -> Option<String> {
        None
    }
    /// A view's query as PostgreSQL shows it; `None` for one that is shown as it was written.
    fn shown_view(&self, _view: &Table, _pretty: bool) -> Option<String> {
        None
    }
    /// What of its rows a view lets statements change by itself.
    fn changeable(&self, _view: &Table) -> Changeable {
        Changeable::default()
    }
    /// The body of a routine that is written without quotes, as PostgreSQL shows it; `None` for what
    /// has none.
    fn shown_body(&self, _routine: &Routine) -> Option<String> {
        None
    }
    /// Rows of pg_locks, in its columns' order.
    fn locks(&self) -> Vec<Vec<Datum>> {
        Vec::new()
    }
    /// Rows stored in a table, as far as they are counted (pg_class.reltuples).
    fn row_count(&self, _table: &Table) -> Option<f32> {
        None
    }
    /// What they take, in pages (pg_class.relpages).
    fn page_count(&self, _table: &Table) -> Option<i32> {
        None
    }
    /// What a sequence gave last, if it gave anything; `None` also where nobody may know.
    fn sequence_last_value(&self, _sequence: Oid) -> Option<i64> {
        None
    }
    /// The value that a sequence stands at, whether it gave that or is going to, whoever asks.
    fn sequence_position(&self, _sequence: Oid) -> Option<i64> {
        None
    }
}

/// The rows of a system relation; `None` if it is not one of this crate's.
pub fn rows(table: &Table, source: &dyn SystemSource) -> Option<Result<Vec<Vec<Datum>>>> {
    let shape = shape::shape(&table.schema, &table.name)?;
    let mut sheet = shape::Sheet::new(shape);
    match table.schema.as_str() {
        "pg_catalog" => {
            let filled = heirs::fill(&table.name, source, &mut sheet)
                || triggers::fill(&table.name, source, &mut sheet)
                || roles::fill(&table.name, source, &mut sheet)
                || reference::fill(&table.name, source, &mut sheet)
                || relations::fill(&table.name, source, &mut sheet)
                || objects::fill(&table.name, source, &mut sheet);
            // The others describe what cannot be created here.
            let _ = filled;
        }
        _ => information::fill(&table.name, source, &mut sheet),
    }
    Some(Ok(sheet.into_rows()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{
        ArgMode, CatalogChange, Check, Column, Distribution, ForeignKey, Index, IndexColumn, KeyConstraint,
        Language, Object, Routine, RoutineArg, RoutineKind, TableKind,
    };
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
        fn database(&self) -> &str {
            "archipel"
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
            }),
            indexes: vec![Index {
                oid: Oid(20_005),
                name: "account_balance".into(),
                columns: vec![IndexColumn { column: 1, descending: true, nulls_first: true }],
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
            let rows = rows(&table, &source).expect("it is a relation of this crate").unwrap();
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
