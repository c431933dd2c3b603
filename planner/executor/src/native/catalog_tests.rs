//! The queries behind psql's backslash commands, over the system catalogs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use archipel_engine::SubmitOptions;
use archipel_sql::catalog::{Catalog, Privileges, Requirement, SessionRoles, Table};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::{FunctionContext, SessionHost};
use archipel_sql::system::{Sought, SystemSource};
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
    /// How often some rows of one were.
    sought: AtomicUsize,
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
        self.rows_sought(table, &Sought::EVERYTHING)
    }
    fn rows_sought(&self, table: &Table, sought: &Sought) -> Result<Vec<Vec<Datum>>> {
        let counter = if sought.is_everything() { &self.made } else { &self.sought };
        counter.fetch_add(1, Ordering::Relaxed);
        system::rows(table, sought, self).unwrap_or_else(|| Err(SqlError::unsupported(&table.name)))
    }
    fn leads(&self, table: &Table, sought: &Sought) -> bool {
        system::leads(table, sought, self)
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
        sought: AtomicUsize::new(0),
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
        // Values are asked for one by one before all rows are made, and few of them.
        let (made, sought) = (host.made.load(Ordering::Relaxed), host.sought.swap(0, Ordering::Relaxed));
        assert!(made <= expected && sought <= 3 * 64, "{made} times, and {sought} times some: {sql}");
        assert!(sought > 0 || made == expected, "{made} times: {sql}");
    }
}

/// Questions about one object make no relation whole, nor part of one often.
#[test]
fn rows_of_one_object_are_made_without_the_others() {
    let (database, host) = database();
    for sql in [
        "select attname from pg_attribute where attrelid = 'account'::regclass",
        "select relname from pg_class where relname ~ '^(account)$'",
        "select relname from pg_class where relname like 'account'",
        "select relname from pg_class where relname in ('account', 'account_pkey')",
        "select conname from pg_constraint where conrelid = any (array['account'::regclass])",
        "select a.attname, d.adbin, t.typname from pg_class c join pg_attribute a on a.attrelid = c.oid \
         left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum \
         join pg_type t on t.oid = a.atttypid where c.relname = 'account'",
        "select (select count(*) from pg_attribute a where a.attrelid = c.oid) from pg_class c where c.relname = 'account'",
        "select i.relname, pg_get_indexdef(i.oid) from pg_index x, pg_class t, pg_class i \
         where t.relname = 'account' and x.indrelid = t.oid and i.oid = x.indexrelid",
        "select s.relname from pg_depend d join pg_class s on s.oid = d.objid \
         where d.refobjid = 'account'::regclass and d.classid = 'pg_class'::regclass and s.relkind = 'S'",
        "select column_name from information_schema.columns where table_name = 'account'",
        "select k.column_name from information_schema.table_constraints c \
         join information_schema.key_column_usage k on k.constraint_name = c.constraint_name \
         where c.table_name = 'account'",
        "select proname from pg_proc where proname = 'pay'",
        "select typname from pg_type where oid = 23",
    ] {
        host.made.store(0, Ordering::Relaxed);
        host.sought.store(0, Ordering::Relaxed);
        let rows = query(&database, &host, sql).unwrap_or_else(|error| panic!("{}: {sql}", error.message()));
        assert!(!rows.is_empty(), "{sql}");
        let (made, sought) = (host.made.load(Ordering::Relaxed), host.sought.load(Ordering::Relaxed));
        assert!(made == 0 && sought <= 20, "{made} times, and {sought} times some: {sql}");
    }
}

#[test]
fn rows_of_the_catalog_have_places_and_are_found_by_them() {
    let (database, host) = database();
    let ask = |sql: &str| query(&database, &host, sql).map_err(|error| error.message().to_owned());
    for relation in ["pg_class", "pg_attribute", "pg_type", "pg_proc", "pg_namespace", "pg_operator"] {
        let sql = format!("select count(*) > 0 and count(*) = count(distinct ctid) from {relation}");
        assert_eq!(ask(&sql), Ok(vec!["t".to_owned()]), "{relation}");
    }
    let found =
        "select relname from pg_class where ctid = (select ctid from pg_class where relname = 'account')";
    assert_eq!(ask(found), Ok(vec!["account".to_owned()]));
    let joined = "select a.attname from pg_attribute a, pg_attribute b where a.ctid = b.ctid and b.attname = 'balance'";
    assert_eq!(ask(joined), Ok(vec!["balance".to_owned()]));
    assert!(ask("select ctid from pg_settings").is_err());
    assert!(ask("select xmin from pg_views").is_err());
}
