//! SQL end to end in process: parse, define or bind, compile, run on an engine in memory.

use std::fmt::Write as _;
use std::sync::Arc;

use archipel_engine::log::MemoryStore;
use archipel_engine::{
    ClaimSet, DdlOp, Engine, EngineConfig, Program, RoutingTable, Stop, SubmitOptions, Txn,
};
use archipel_sql::ast::Statement;
use archipel_sql::catalog::{Catalog, ObjectNumbers, Privileges, Requirement, Table};
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::function::{FunctionContext, SessionHost};
use archipel_sql::io;
use archipel_sql::types::Oid;

use crate::bind::{BindEnv, bind_statement};
use crate::native::plan::environment::{CompileEnv, NoRoutines};
use crate::native::plan::statement::compile_statement;
use crate::native::run::program::StatementProgram;
use crate::native::run::state::context::SystemRows;
use crate::native::run::state::error::stop_error;
use crate::native::run::statement::CompiledStatement;
use archipel_definitions as ddl;

/// A session without settings.
pub(super) struct Host;
impl SessionHost for Host {
    // There are no roles: whoever tests may do everything.
    fn require(&self, _needed: &[Requirement]) -> Result<(), SqlError> {
        Ok(())
    }

    fn require_sequence(&self, _sequence: Oid, _one_of: Privileges) -> Result<(), SqlError> {
        Ok(())
    }
}
impl SystemRows for Host {
    fn rows(&self, table: &Table) -> archipel_sql::error::Result<Vec<Vec<Datum>>> {
        Err(SqlError::unsupported(format_args!("{}", table.name)))
    }
}

struct Define {
    operations: Vec<DdlOp>,
}

impl Program for Define {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        claims.everything();
    }
    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        for operation in &self.operations {
            let _ = txn.ddl(operation.clone())?;
        }
        Ok(())
    }
}

/// A database in memory.
pub(crate) struct Database {
    pub engine: Engine,
    pub catalog: Catalog,
}

impl Database {
    pub fn new() -> Database {
        // What the statements answer is asked here, not how long they may take on a machine that others use.
        let config = EngineConfig { one_shot_budget_micros: 60_000_000, ..EngineConfig::with_executors(1) };
        let engine = Engine::open(config, Arc::new(MemoryStore::new())).unwrap();
        Database { engine, catalog: Catalog::initial(Vec::new()) }
    }

    pub fn compile(&self, statement: &Statement) -> Result<Arc<CompiledStatement>, SqlError> {
        self.compile_for(statement, &FunctionContext::detached())
    }

    /// Compiles with a session's functions at hand.
    pub fn compile_for(
        &self,
        statement: &Statement,
        context: &FunctionContext<'_>,
    ) -> Result<Arc<CompiledStatement>, SqlError> {
        let path = ["public".to_owned()];
        let mut env = BindEnv::new(&self.catalog, &path, context);
        let bound = bind_statement(statement, &mut env)?;
        let env = CompileEnv {
            tables: &self.engine,
            catalog: &self.catalog,
            search_path: &[],
            routines: &NoRoutines,
        };
        Ok(Arc::new(compile_statement(&bound, &env)?))
    }

    pub fn prepare(&self, sql: &str) -> Arc<CompiledStatement> {
        let statements = archipel_sql::parser::parse(sql).unwrap();
        self.compile(&statements[0].statement).unwrap()
    }

    fn define(&mut self, statement: &Statement) -> Result<(), SqlError> {
        let path = ["public".to_owned()];
        let context = FunctionContext::detached();
        let env = ddl::DdlEnv {
            catalog: &self.catalog,
            search_path: &path,
            context: &context,
            system: false,
            temporary_schema: "pg_temp_1",
            copies: &Default::default(),
            numbers: &ObjectNumbers::new(self.catalog.numbers()),
            roles: Default::default(),
            others: &[],
        };
        let plan = ddl::plan(statement, &env)?;
        let completed = self
            .engine
            .submit(Define { operations: plan.operations.clone() }, SubmitOptions::default())
            .wait();
        completed.outcome.result.map_err(stop_error)?;
        self.catalog = self.catalog.apply(&plan.changes);
        Ok(())
    }

    fn query(&self, statement: &Statement, out: &mut String) -> Result<(), SqlError> {
        let statement = self.compile(statement)?;
        let types: Vec<_> = statement.columns.iter().map(|column| column.ty).collect();
        let program = StatementProgram::new(statement, Vec::new(), Arc::new(Host));
        let completed = self.engine.submit(program, SubmitOptions::default()).wait();
        let program = completed.program;
        if let Err(stop) = completed.outcome.result {
            return Err(program.error.unwrap_or_else(|| stop_error(stop)));
        }
        for row in program.result_rows() {
            let cells: Vec<String> = row
                .iter()
                .zip(&types)
                .map(|(value, ty)| match value {
                    Datum::Null => "NULL".to_owned(),
                    value => io::to_text(value, *ty, &FunctionContext::detached()),
                })
                .collect();
            writeln!(out, "{}", cells.join("|")).unwrap();
        }
        if types.is_empty() {
            writeln!(out, "{} rows", program.count).unwrap();
        }
        Ok(())
    }

    /// Runs a script; answers rows, counts and errors, a line each.
    pub fn run(&mut self, script: &str) -> String {
        let mut out = String::new();
        for parsed in archipel_sql::parser::parse(script).unwrap() {
            let statement = &parsed.statement;
            let result = if ddl::is_definition(statement) {
                self.define(statement)
            } else {
                self.query(statement, &mut out)
            };
            if let Err(error) = result {
                write!(out, "{:?} {}", error.state(), error.message()).unwrap();
                if let Some(detail) = &error.fields().detail {
                    write!(out, " / {detail}").unwrap();
                }
                out.push('\n');
            }
        }
        out
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.engine.close();
    }
}

/// Runs a script in a fresh database and compares what it answers, line by line.
fn check(script: &str, expected: &str) {
    let answer = Database::new().run(script);
    let lines = |text: &str| {
        text.lines().map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&answer), lines(expected), "\n{script}");
}

const ITEMS: &str = "create table t (a int primary key, b int, c text);
    insert into t values (1, 10, 'x'), (2, 20, 'y'), (3, 10, null), (4, null, 'z');";

#[test]
fn point_range_and_full_reads() {
    check(
        &format!(
            "{ITEMS} select * from t where a = 2; select a from t where a between 2 and 3; select a from t where a > 3;
             select a from t where a in (4, 1, 4); select a from t where b = 10 order by a desc;
             select a from t order by a desc limit 2; select a from t order by a offset 3; select a from t where a = 5000000000;
             select a from t where a < 5000000000 and a > 3; select a from t where a = any(array[2,3]) order by 1"
        ),
        "4 rows
         2|20|y
         2
         3
         4
         1
         4
         3
         1
         4
         3
         4
         4
         2
         3",
    );
}

#[test]
fn three_valued_logic() {
    check(
        &format!(
            "{ITEMS} select a from t where b <> 10 order by a; select a from t where b is null; select a from t where not (b = 10) order by a;
             select a from t where b is distinct from 10 order by a; select a, b = 10 or c = 'z' from t order by a;
             select a from t where b not in (20, null); select a from t where b in (20, null)"
        ),
        "4 rows
         2
         4
         2
         2
         4
         1|t
         2|f
         3|t
         4|t
         2",
    );
}

#[test]
fn aggregates_and_grouping() {
    check(
        &format!(
            "{ITEMS} select count(*), count(b), sum(b), min(a), max(a) from t; select b, count(*) from t group by b order by b;
             select max(a) from t; select min(a) from t where a > 1; select min(b) from t; select max(a) from t where a > 9;
             select count(distinct b) from t; select b, count(*) from t group by b having count(*) > 1;
             select count(*) from t where a > 100; select b from t group by b order by b nulls first limit 1;
             select b, a, count(*) from t where a < 3 group by grouping sets ((b), (a), ()) order by 1, 2"
        ),
        "4 rows
         4|3|40|1|4
         10|2
         20|1
         NULL|1
         4
         2
         10
         NULL
         2
         10|2
         0
         NULL
         10|NULL|1
         20|NULL|1
         NULL|1|1
         NULL|2|1
         NULL|NULL|2",
    );
}

const TWO: &str = "create table o (id int primary key, who text); create table l (oid int, n int, item text, primary key (oid, n));
    insert into o values (1, 'ann'), (2, 'bob'), (3, 'cec');
    insert into l values (1, 1, 'p'), (1, 2, 'q'), (2, 1, 'r'), (9, 1, 's');";

#[test]
fn joins_of_every_kind() {
    check(
        &format!(
            "{TWO} select o.id, l.n, item from o join l on l.oid = o.id order by 1, 2;
             select o.id, item from o left join l on l.oid = o.id and l.n = 1 order by 1;
             select o.id, l.oid from o right join l on l.oid = o.id order by 2, 1;
             select o.id, l.oid from o full join l on l.oid = o.id order by 2, 1;
             select o.id, l.item from o, l where o.id = 1 and l.oid = o.id and l.n > 1;
             select count(*) from o, l; select o.who, x.item from o, lateral (select item from l where l.oid = o.id order by n desc limit 1) x order by 1;
             select who from o where exists (select 1 from l where l.oid = o.id) order by 1;
             select who from o where id not in (select oid from l); select who, (select count(*) from l where l.oid = o.id) from o order by 1;
             select o.id from o left join l on l.oid = o.id where l.oid is null;
             select a.id, b.id from o a join o b on b.id = a.id + 1 order by 1"
        ),
        "3 rows
         4 rows
         1|1|p
         1|2|q
         2|1|r
         1|p
         2|r
         3|NULL
         1|1
         1|1
         2|2
         NULL|9
         1|1
         1|1
         2|2
         NULL|9
         3|NULL
         1|q
         12
         ann|q
         bob|r
         ann
         bob
         cec
         ann|2
         bob|1
         cec|0
         3
         1|2
         2|3",
    );
}

#[test]
fn sets_distinct_and_with() {
    check(
        "create table t (a int primary key, b int); insert into t values (1,1),(2,1),(3,2);
         select distinct b from t order by b; select b from t union select 7 order by 1; select b from t union all select 1 order by 1;
         select b from t intersect select 1; select a from t except select b from t; select b from t except all select 1;
         select distinct on (b) b, a from t order by b, a desc;
         with x as (select a from t where b = 1) select sum(a) from x;
         with recursive n(i) as (select 1 union all select i + 1 from n where i < 5) select sum(i), count(*) from n;
         with gone as (delete from t where a = 1 returning a) select * from gone; select count(*) from t;
         values (1, 'a'), (2, 'b')",
        "3 rows
         1
         2
         1
         2
         7
         1
         1
         1
         2
         1
         3
         1
         2
         1|2
         2|3
         3
         15|5
         1
         2
         1|a
         2|b",
    );
}

#[test]
fn parts_of_a_statement_see_it_unmade() {
    check(
        "create table t (a int primary key, b int); insert into t values (1,1),(2,2),(3,3);
         with g as (delete from t where a < 3 returning a) select (select count(*) from t), (select sum(a) from g);
         with u as (update t set b = b + 10 returning b) select t.b, u.b from t, u; select * from t;
         with i as (insert into t values (7, 7) returning a) select count(*), (select a from i) from t; select count(*) from t;
         with m as (delete from t returning a, b) insert into t select a, b + 1 from m returning *",
        "3 rows
         3|3
         3|13
         3|13
         1|7
         2
         3|14
         7|8",
    );
}

#[test]
fn window_functions() {
    check(
        "create table t (a int primary key, g text, v int); insert into t values (1,'x',10),(2,'x',20),(3,'y',5),(4,'x',20);
         select a, row_number() over (partition by g order by v, a), rank() over (partition by g order by v), sum(v) over (partition by g order by v) from t order by a;
         select a, lag(v) over (order by a), lead(v, 1, 0) over (order by a), first_value(v) over (order by a), sum(v) over () from t order by a;
         select a, sum(v) over (order by a rows between 1 preceding and current row) from t order by a",
        "4 rows
         1|1|1|10
         2|2|2|50
         3|1|1|5
         4|3|2|50
         1|NULL|20|10|55
         2|10|5|10|55
         3|20|20|10|55
         4|5|0|10|55
         1|10
         2|30
         3|25
         4|25",
    );
}

#[test]
fn writes_and_returning() {
    check(
        "create table t (a int primary key, b numeric(12,2) default 1.5, c varchar(5));
         insert into t (a, c) values (1, 'one') returning *; insert into t values (2, 2.345, null);
         update t set b = b + 1 where a = 1 returning a, b; update t set b = b * 2; select * from t order by a;
         update t set a = a + 1; select a from t order by a; update t set c = 'toolong' where a = 2;
         delete from t where a = 2 returning c; delete from t; select count(*) from t;
         insert into t select g, g, 'r' from generate_series(1, 3) g; update t set c = x.w from (values (1, 'aa'), (3, 'cc')) x(k, w) where a = x.k;
         select a, c from t order by a; delete from t using (values (3)) x(k) where a = k; select count(*) from t",
        "1|1.50|one
         1 rows
         1|2.50
         2 rows
         1|5.00|one
         2|4.70|NULL
         2 rows
         2
         3
         22001 value too long for type character varying(5)
         one
         1 rows
         0
         3 rows
         2 rows
         1|aa
         2|r
         3|cc
         1 rows
         2",
    );
}

#[test]
fn insert_tells_the_places_of_rows_without_a_key() {
    let mut database = Database::new();
    database.run(
        "create table n (a int);
         create table w (a int, b int) partition by range (a);
         create table k partition of w (primary key (a)) for values from (0) to (10);
         create table l partition of w for values from (10) to (20);",
    );
    let told = database.run(
        "insert into n values (1), (2) returning ctid, a;
         insert into n select 3 returning ctid, a;
         with q as (insert into n values (4) returning ctid, a) select * from q;
         insert into n values (5) returning ctid, a + (select count(*) from n where a = -1);
         insert into w values (1, 1), (11, 1) returning ctid, a;",
    );
    assert_eq!(told.lines().count(), 7, "{told}");
    let there = "select ctid, a from n order by a; select ctid, a from k; select ctid, a from l";
    assert_eq!(told, database.run(there));
    // Of partitions of which one has a key of its own, too.
    let of_all = "select ctid, a from n order by a; select ctid, a from w order by a";
    assert_eq!(told, database.run(of_all));
    assert_eq!(database.run("select x.a from w x, k where x.ctid = k.ctid and x.a < 10"), "1\n");
    // Who has locked the row stands beside it still.
    assert!(database.run("insert into n values (6) returning xmax, ctid is null, a").ends_with("|f|6\n"));
}

#[test]
fn on_conflict() {
    check(
        "create table t (a int primary key, b int unique, n int default 0);
         insert into t (a, b) values (1, 1) on conflict do nothing; insert into t (a, b) values (1, 5) on conflict (a) do nothing;
         insert into t (a, b, n) values (1, 1, 7) on conflict (a) do update set n = t.n + excluded.n returning a, n;
         insert into t (a, b) values (2, 1) on conflict (b) do update set n = 100 where t.n < 5; select * from t;
         insert into t (a, b) values (2, 1); insert into t (a, b) values (2, 1) on conflict (a) do nothing;
         insert into t (a, b) values (3, 3), (3, 4) on conflict (a) do update set n = 1",
        "1 rows
         0 rows
         1|7
         0 rows
         1|1|7
         23505 duplicate key value violates unique constraint \"t_b_key\" / Key (b)=(1) already exists.
         23505 duplicate key value violates unique constraint \"t_b_key\" / Key (b)=(1) already exists.
         21000 ON CONFLICT DO UPDATE command cannot affect row a second time",
    );
}

#[test]
fn constraints() {
    check(
        "create table p (id int primary key, v int not null check (v > 0));
         create table c (id int primary key, p int references p (id));
         insert into p values (1, 1), (2, 2); insert into p values (1, 5); insert into p values (3, null); insert into p values (3, -1);
         update p set v = -v where id = 1; update p set v = null where id = 1;
         insert into c values (1, 1), (2, null); insert into c values (3, 9); update c set p = 8 where id = 1; update c set p = 2 where id = 1;
         delete from p where id = 2; update p set id = 7 where id = 2; update p set v = 3 where id = 2; delete from p where id = 1; select id from p",
        "2 rows
         23505 duplicate key value violates unique constraint \"p_pkey\" / Key (id)=(1) already exists.
         23502 null value in column \"v\" of relation \"p\" violates not-null constraint / Failing row contains (3, null).
         23514 new row for relation \"p\" violates check constraint \"p_v_check\" / Failing row contains (3, -1).
         23514 new row for relation \"p\" violates check constraint \"p_v_check\" / Failing row contains (1, -1).
         23502 null value in column \"v\" of relation \"p\" violates not-null constraint / Failing row contains (1, null).
         2 rows
         23503 insert or update on table \"c\" violates foreign key constraint \"c_p_fkey\" / Key (p)=(9) is not present in table \"p\".
         23503 insert or update on table \"c\" violates foreign key constraint \"c_p_fkey\" / Key (p)=(8) is not present in table \"p\".
         1 rows
         23503 update or delete on table \"p\" violates foreign key constraint \"c_p_fkey\" on table \"c\" / Key (id)=(2) is still referenced from table \"c\".
         23503 update or delete on table \"p\" violates foreign key constraint \"c_p_fkey\" on table \"c\" / Key (id)=(2) is still referenced from table \"c\".
         1 rows
         1 rows
         2",
    );
}

#[test]
fn indexes_local_and_global() {
    check(
        "create table s (w int, d int, name text, nr text, primary key (w, d)); create index s_name on s (w, name); create unique index s_nr on s (nr);
         insert into s values (1, 1, 'bo', 'a'), (1, 2, 'al', 'b'), (2, 1, 'bo', 'c'), (1, 3, 'bo', null);
         select d from s where w = 1 and name = 'bo' order by d; select w, d from s where nr = 'c'; select d from s where w = 1 order by name, d;
         update s set nr = 'z' where nr = 'c'; select w from s where nr = 'z'; select w from s where nr = 'c';
         insert into s values (9, 9, 'x', 'z'); update s set w = 5 where w = 2; select w from s where nr = 'z'; select w, d from s where nr is null",
        "4 rows
         1
         3
         2|1
         2
         1
         3
         1 rows
         2
         23505 duplicate key value violates unique constraint \"s_nr\" / Key (nr)=(z) already exists.
         1 rows
         5
         1|3",
    );
}

#[test]
fn subqueries() {
    check(
        "create table t (a int primary key, b int); insert into t values (1, 3), (2, 1), (3, null);
         select a from t where b = (select max(a) from t); select a, array(select x.a from t x where x.a <= t.a order by 1) from t order by a;
         select a from t where a > all (select b from t where b is not null) ; select a from t where b in (select a from t) order by 1;
         select (select a from t); select a from t where (a, b) in (select 1, 3); select (select b from t where a = 99) is null;
         select coalesce(b, 0), nullif(a, 2), greatest(a, b), case when a = 1 then 'one' else 'more' end from t order by a",
        "3 rows
         1
         1|{1}
         2|{1,2}
         3|{1,2,3}
         1
         2
         21000 more than one row returned by a subquery used as an expression
         1
         t
         3|1|3|one
         1|NULL|2|more
         0|3|3|more",
    );
}

#[test]
fn errors_undo_the_statement() {
    check(
        "create table t (a int primary key); insert into t values (1), (2), (1); select count(*) from t; select 1/0; insert into t values (5), (1/0); select count(*) from t",
        "23505 duplicate key value violates unique constraint \"t_pkey\" / Key (a)=(1) already exists.
         0
         22012 division by zero
         22012 division by zero
         0",
    );
}

/// The plan of a statement over two small tables, without its last line.
fn plan(sql: &str) -> (Vec<String>, String) {
    let mut database = Database::new();
    database.run(TWO);
    let mut lines = crate::explain::statement(&database.prepare(sql));
    let partitions = lines.pop().unwrap_or_default();
    (lines, partitions)
}

#[test]
fn plans_and_routes() {
    let (lines, partitions) = plan("select item from l where oid = $1 and n = 2");
    assert_eq!(lines, ["Index Scan using l_pkey on l", "  Index Cond: (oid = $1) AND (n = 2)"]);
    assert_eq!(partitions, "Partitions: single-partition, routed by oid = $1");
    let (lines, _) = plan("select item from l where oid = 1 order by n desc limit 1");
    assert_eq!(lines[0], "Limit");
    assert!(lines[1].contains("Index Scan Backward using l_pkey on l"), "{lines:?}");
    let (_, partitions) = plan("select item from l where oid in ($1, $2)");
    assert!(
        partitions.starts_with("Partitions: multi-partition, routed by oid = ANY ($1, $2)"),
        "{partitions}"
    );
    let (_, partitions) = plan("update l set item = 'x' where n = 1");
    assert!(partitions.starts_with("Partitions: all-partitions"), "{partitions}");
    let (_, partitions) = plan("insert into o values ($1, 'x')");
    assert_eq!(partitions, "Partitions: single-partition, routed by id = $1");
    // The inner side is reached by the outer row's key, which is known to be the parameter.
    let (lines, _) = plan("select * from o, l where o.id = $1 and l.oid = o.id");
    assert!(lines.iter().any(|line| line.contains("Index Scan using l_pkey on l")), "{lines:?}");
}

#[test]
fn a_join_begins_where_it_looks_at_few_rows() {
    let mut database = Database::new();
    database.run(
        "create table few (id int primary key, kind int);
         create table many (id int primary key, few_id int, w int);
         create index many_few on many (few_id);
         insert into few select n, n % 40 from generate_series(1, 400) n",
    );
    for from in (0..8000).step_by(1000) {
        let rows = format!("generate_series({from}, {from} + 999) n");
        database.run(&format!("insert into many select n, n % 400 + 1, n % 13 from {rows}"));
    }
    let order = |sql: &str| -> Vec<bool> {
        let lines = crate::explain::statement(&database.prepare(sql));
        lines.iter().filter(|line| line.contains("Scan")).map(|line| line.contains("on few")).collect()
    };
    assert_eq!(order("select sum(w) from many, few where few.id = few_id and kind = 3"), [true, false]);
    assert_eq!(order("select sum(w) from few, many where few.id = few_id and kind = 3"), [true, false]);
    // Where nothing is kept out, as it is written; and by a key in any case.
    assert_eq!(order("select sum(w) from many, few where few.id = few_id"), [false, true]);
    assert_eq!(order("select sum(w) from few, many where few.id = few_id and many.id = 7"), [false, true]);
}
