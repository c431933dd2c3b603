//! The queries behind psql's backslash commands, over the system catalogs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use archipel_engine::SubmitOptions;
use archipel_sql::catalog::{Catalog, Privileges, Requirement, SessionRoles, Table};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::{FunctionContext, SessionHost};
use archipel_sql::system::SystemSource;
use archipel_sql::types::Oid;
use archipel_sql::{io, system};

use super::tests::Database;
use crate::native::run::program::StatementProgram;
use crate::native::run::state::context::SystemRows;
use crate::native::run::state::error::stop_error;

/// A session that knows the catalog and nothing else.
struct Host {
    catalog: Catalog,
    path: Vec<String>,
    /// How many times rows of relations were made.
    made: AtomicUsize,
}

impl SystemSource for Host {
    fn catalog(&self) -> &Catalog {
        &self.catalog
    }
    fn search_path(&self) -> &[String] {
        &self.path
    }
    fn roles(&self) -> SessionRoles {
        SessionRoles::default()
    }
}

impl SessionHost for Host {
    // There are no roles: whoever tests may do everything.
    fn require(&self, _needed: &[Requirement]) -> Result<()> {
        Ok(())
    }

    fn require_sequence(&self, _sequence: Oid, _one_of: Privileges) -> Result<()> {
        Ok(())
    }

    fn row_type(&self, ty: Oid) -> Option<Arc<dyn archipel_sql::record::RowType>> {
        self.catalog.table_of_row_type(ty).map(|table| table as _)
    }

    fn call(&self, name: &str, args: &[Datum]) -> Result<Datum> {
        system::call(name, args, self)
            .unwrap_or_else(|| Err(SqlError::unsupported(format_args!("function {name}"))))
    }
}

impl SystemRows for Host {
    fn rows(&self, table: &Table) -> Result<Vec<Vec<Datum>>> {
        self.made.fetch_add(1, Ordering::Relaxed);
        system::rows(table, self).unwrap_or_else(|| Err(SqlError::unsupported(&table.name)))
    }
}

fn query(database: &Database, host: &Arc<Host>, sql: &str) -> Result<Vec<String>> {
    let statements = archipel_sql::parser::parse(sql)?;
    let compiled =
        database.compile_for(&statements[0].statement, &FunctionContext { now: 0, session: &**host })?;
    let types: Vec<_> = compiled.columns.iter().map(|column| column.ty).collect();
    let program = StatementProgram::new(compiled, Vec::new(), Arc::clone(host));
    let completed = database.engine.submit(program, SubmitOptions::default()).wait();
    let program = completed.program;
    if let Err(stop) = completed.outcome.result {
        return Err(program.error.unwrap_or_else(|| stop_error(stop)));
    }
    let context = FunctionContext { now: 0, session: &**host };
    Ok(program
        .result_rows()
        .map(|row| {
            row.iter()
                .zip(&types)
                .map(|(value, ty)| io::to_text(value, *ty, &context))
                .collect::<Vec<_>>()
                .join("|")
        })
        .collect())
}

fn database() -> (Database, Arc<Host>) {
    let mut database = Database::new();
    database.catalog = Catalog::initial(system::tables());
    let made = database.run(
        "create table account (id serial primary key, owner text not null default 'x',
             balance numeric(12,2) check (balance >= 0), ref int references account(id));
         create index account_owner on account (owner desc);
         comment on table account is 'money';
         create procedure pay(a int, inout b int) language plpgsql as $$ begin b := a; end $$;
         create function f(x int default 3) returns setof text language sql as $$ select 'a' $$;",
    );
    assert_eq!(made, "");
    let host = Arc::new(Host {
        catalog: database.catalog.clone(),
        path: vec!["public".to_owned()],
        made: AtomicUsize::new(0),
    });
    (database, host)
}

#[test]
fn psql_s_queries_run() {
    let (database, host) = database();
    let mut text = include_str!("psql_queries.sql").to_owned();
    for name in ["account", "account_pkey", "account_id_seq"] {
        let oid = database.catalog.relation(None, name, &host.path).expect("it was created").oid();
        text = text.replace(&format!("<{name}>"), &oid.to_string());
    }
    let pay = database.catalog.routines(None, "pay", &host.path)[0].oid;
    text = text.replace("<pay>", &pay.to_string());
    let (mut failures, mut rows) = (Vec::new(), Vec::new());
    for sql in text.split(";\n").map(str::trim).filter(|sql| !sql.is_empty()) {
        match query(&database, &host, sql) {
            Ok(answer) => rows.extend(answer),
            Err(error) => failures.push(format!("{:?} {}\n{sql}\n", error.state(), error.message())),
        }
    }
    assert!(failures.is_empty(), "{} queries failed:\n{}", failures.len(), failures.join("\n"));
    for expected in [
        // \dt, \d account, \df, \l, \dn, \ds, \du
        "public|account|table|archipel",
        "balance|numeric(12,2)||f|||",
        "account_owner|f|f|f|t|CREATE INDEX account_owner ON account USING btree (owner DESC)|||||f|0",
        "account_balance_check|CHECK (balance >= 0)",
        // psql asks for foreign keys only where there are triggers.
        "1|r|t|f|t|f|f|f|f||0||p|d|heap",
        "t|account_ref_fkey|FOREIGN KEY (ref) REFERENCES account(id)|account",
        "public|f|SETOF text|x integer DEFAULT 3|func",
        "public|pay||IN a integer, INOUT b integer|proc",
        "archipel|archipel|UTF8|C|C||libc|",
        "public|pg_database_owner",
        "public|account_id_seq|sequence|archipel",
        "archipel|t|t|t|t|t|-1||{}|t|t",
        "plpgsql|1.0|pg_catalog|PL/pgSQL procedural language",
    ] {
        assert!(rows.iter().any(|row| row == expected), "no row {expected}");
    }
}

/// The rows of a relation that is read for each of other rows are made once for all of them.
#[test]
fn rows_are_made_once_where_they_are_asked_for_again() {
    let (database, host) = database();
    let columns = "from pg_attribute a join pg_class k on k.oid = a.attrelid where a.attnum > 0";
    let cases = [
        (3, format!("select c.oid, (select count(*) {columns} and k.reltype = c.reltype) from pg_class c")),
        (3, format!("select c.oid, (select count(*) {columns} and a.attnum < c.relnatts) from pg_class c")),
        (
            2,
            "select * from pg_class c, lateral (select * from pg_index i where i.indrelid = c.oid) i"
                .to_owned(),
        ),
        (
            3,
            "select * from pg_class c left join lateral (select * from pg_attribute a left join pg_type t \
             on t.oid = a.atttypid where a.attrelid = c.oid) a on true"
                .to_owned(),
        ),
        (
            3,
            format!(
                "select v.n from (select c.oid, (select count(*) {columns} and k.oid = c.oid) as n \
                 from pg_class c) v, (values (1), (2)) o(x) where v.oid = o.x or v.oid = 1259"
            ),
        ),
        // Nobody reads what the query finds.
        (
            1,
            format!(
                "select count(*) from (select c.oid, (select count(*) {columns} and k.oid = c.oid) from pg_class c) v"
            ),
        ),
        // Who is there may change while a statement runs.
        (
            4,
            "select (select count(*) from pg_locks where a > 0) from (values (1), (2), (3), (4)) v(a)"
                .to_owned(),
        ),
    ];
    for (expected, sql) in cases {
        host.made.store(0, Ordering::Relaxed);
        query(&database, &host, &sql).unwrap_or_else(|error| panic!("{}: {sql}", error.message()));
        assert_eq!(host.made.load(Ordering::Relaxed), expected, "{sql}");
    }
}
