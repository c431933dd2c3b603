//! Both executors on the same data: whatever runs here answers what the native one answers.

use std::sync::Arc;

use archipel_engine::log::MemoryStore;
use archipel_engine::{
    ClaimSet, DdlOp, Engine, EngineConfig, Program, RoutingTable, Stop, SubmitOptions, Txn,
};
use archipel_planner::bind::{BindEnv, bind_statement};
use archipel_planner::bound::BoundStatement;
use archipel_planner::ddl;
use archipel_planner::native::{
    CompileEnv, NoRoutines, StatementProgram, SystemRows, compile_statement, stop_error,
};
use archipel_sql::ast::Statement;
use archipel_sql::catalog::{Catalog, ObjectNumbers, Privileges, Requirement, Table};
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::function::{FunctionContext, NoSession, SessionHost};
use archipel_sql::io;
use archipel_sql::types::{Oid, Type};

use archipel_analytics::{Analytics, AnalyticsError, Environment};

struct Host;
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

/// A database in memory and an analytical executor over it.
struct Database {
    engine: Engine,
    catalog: Catalog,
    analytics: Analytics,
    runtime: tokio::runtime::Runtime,
}

impl Database {
    fn new(script: &str) -> Database {
        // Nobody waits here for a query that takes long.
        let config = EngineConfig { one_shot_budget_micros: 60_000_000, ..EngineConfig::with_executors(1) };
        let engine = Engine::open(config, Arc::new(MemoryStore::new())).unwrap();
        let mut database = Database {
            engine,
            catalog: Catalog::initial(Vec::new()),
            analytics: Analytics::new(64 << 20).unwrap(),
            runtime: tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap(),
        };
        for parsed in archipel_sql::parser::parse(script).unwrap() {
            if ddl::is_definition(&parsed.statement) {
                database.define(&parsed.statement);
            } else {
                database.native(&parsed.statement).unwrap();
            }
        }
        database
    }

    fn define(&mut self, statement: &Statement) {
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
        let plan = ddl::plan(statement, &env).unwrap();
        let program = Define { operations: plan.operations.clone() };
        self.engine
            .submit(program, SubmitOptions::default())
            .wait()
            .outcome
            .result
            .map_err(stop_error)
            .unwrap();
        self.catalog = self.catalog.apply(&plan.changes);
    }

    fn bind(&self, statement: &Statement) -> Result<BoundStatement, SqlError> {
        let path = ["public".to_owned()];
        let context = FunctionContext::detached();
        bind_statement(statement, &mut BindEnv::new(&self.catalog, &path, &context))
    }

    fn native(&self, statement: &Statement) -> Result<Vec<String>, SqlError> {
        let bound = self.bind(statement)?;
        let env = CompileEnv {
            tables: &self.engine,
            catalog: &self.catalog,
            search_path: &[],
            routines: &NoRoutines,
        };
        let compiled = Arc::new(compile_statement(&bound, &env)?);
        let types: Vec<Type> = compiled.columns.iter().map(|column| column.ty).collect();
        let program = StatementProgram::new(compiled, Vec::new(), Arc::new(Host));
        let completed = self.engine.submit(program, SubmitOptions::default()).wait();
        let program = completed.program;
        if let Err(stop) = completed.outcome.result {
            return Err(program.error.unwrap_or_else(|| stop_error(stop)));
        }
        Ok(program.result_rows().map(|row| text(row, &types)).collect())
    }

    fn analytic(&self, statement: &Statement) -> Result<Vec<String>, AnalyticsError> {
        let BoundStatement::Query(query) = self.bind(statement)? else {
            return Err(AnalyticsError::Unsupported("a change".to_owned()));
        };
        let environment = Environment {
            engine: self.engine.clone(),
            snapshot: Arc::new(self.engine.snapshot()),
            session: Arc::new(NoSession),
            now: 0,
            params: Vec::new(),
            tables_read: None,
        };
        let types: Vec<Type> = query.columns.iter().map(|column| column.ty).collect();
        self.runtime.block_on(async {
            let mut rows = self.analytics.execute(&query, &environment).await?;
            let mut out = Vec::new();
            while let Some(batch) = rows.next().await? {
                out.extend(batch.iter().map(|row| text(row, &types)));
            }
            Ok(out)
        })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.engine.close();
    }
}

fn text(row: &[Datum], types: &[Type]) -> String {
    let cells: Vec<String> = row
        .iter()
        .zip(types)
        .map(|(value, ty)| match value {
            Datum::Null => "NULL".to_owned(),
            value => io::to_text(value, *ty, &FunctionContext::detached()),
        })
        .collect();
    cells.join("|")
}

fn statement(sql: &str) -> Statement {
    archipel_sql::parser::parse(sql).unwrap().swap_remove(0).statement
}

const SCHEMA: &str = "
    create table item (id int primary key, name text, price numeric(8,2), kind varchar(10), made date, at timestamp,
                       weight float8, tags int[], code char(4), big bigint, ok bool, free numeric);
    create table sale (item_id int, line int, quantity int, amount numeric(12,2), note text, primary key (item_id, line));
    insert into item select g, 'item ' || (g % 7), (g * 1.25)::numeric(8,2), case g % 3 when 0 then 'a' when 1 then 'b' end,
                       date '2020-01-01' + g, timestamp '2020-01-01' + g * interval '1 hour', g / 4.0, array[g, g + 1],
                       'c' || (g % 5), g::bigint * 1000000000, g % 2 = 0, g / 3.0 from generate_series(1, 200) g;
    insert into sale select g % 50, g, g % 9, (g * 0.37)::numeric(12,2), case when g % 4 = 0 then null else 'n' || g % 11 end
                       from generate_series(1, 1000) g;";

/// Queries that must run here, with ordered answers unless they sort themselves.
const QUERIES: &[&str] = &[
    "select count(*), count(note), sum(quantity), min(amount), max(amount), sum(amount), avg(amount) from sale",
    "select * from item",
    "select id, price * 2, price + id, name || '!', id % 7, -id, id + big from item where id > 150",
    "select kind, count(*), sum(price), avg(id), min(name), max(made), sum(big), bool_or(ok) from item group by kind",
    "select s.item_id, i.name, sum(s.amount) from sale s join item i on i.id = s.item_id group by s.item_id, i.name",
    "select i.id, s.line from item i left join sale s on s.item_id = i.id and s.quantity > 7 where i.id < 60",
    "select i.id, s.line from sale s full join item i on s.item_id = i.id where s.line is null or s.line < 20",
    "select a.id, b.id from item a, item b where a.id + 1 = b.id and a.price < 20",
    "select id from item where made between '2020-02-01' and '2020-03-01' and kind = 'a'",
    "select id from item where price > 100 and price <= 120.5 and at < '2020-01-05'",
    "select id from item where name like 'item 3' or kind is null order by id desc limit 5 offset 2",
    "select distinct kind, ok from item",
    "select distinct price from item where id <= 10",
    "select quantity, count(distinct note), string_agg(note, ',' order by line) from sale where line < 40 group by quantity",
    "select count(*) filter (where quantity > 3), sum(amount) filter (where note is null) from sale",
    "select case when price > 50 then 'high' when price is null then 'none' else 'low' end, count(*) from item group by 1",
    "select coalesce(kind, 'none'), nullif(id, 3), greatest(id, 100), least(price, 10) from item where id < 10",
    "select id in (1, 2, 3), kind in ('a', 'b'), id = any (array[1, 5]), tags[1], made + 1, extract(year from at) from item where id < 12",
    "select id from item where id in (select item_id from sale where quantity = 8)",
    "select id from item where price > (select avg(price) from item) and exists (select 1 from sale)",
    "select id from item where id not in (select item_id from sale where item_id is not null)",
    "with big as (select item_id, sum(amount) as total from sale group by item_id) select count(*), max(total) from big where total > 1000",
    "select id from item where id < 5 union all select item_id from sale where line < 5",
    "select id from item where id < 50 union select item_id from sale",
    "select * from (values (1, 'x'), (2, null)) v(a, b) join item on item.id = v.a",
    "select g, count(s.line) from generate_series(1, 5) g left join sale s on s.quantity = g group by g",
    "select max(id), min(id) from item where id > 1000",
    "select sum(weight), avg(weight), max(weight), min(weight) from item",
    "select code, count(*) from item group by code having count(*) > 10 order by code",
    "select free, free * 3 from item where id < 20",
    "select array_agg(id order by id desc) from item where id < 6",
    "select id, upper(name), length(name), substr(name, 1, 2) from item where upper(name) = 'ITEM 2'",
    "select count(*) from item where not ok or ok is null",
    "select item_id, sum(quantity) from sale where item_id >= 10 and item_id < 13 group by item_id",
    "select 1 from item where id = 7",
    "select count(*) from item, sale where item.id = sale.item_id and item.ok and sale.amount > item.price",
    "select id from item order by kind nulls first, price desc limit 7",
    "select id from item where exists (select 1 from sale where sale.item_id = item.id)",
    "select id from item where not exists (select from sale where item_id = id and quantity > 7 and amount < price)",
    "select id from item where price < 40 and not exists (select * from sale where sale.item_id < item.id and note = name)",
    "select i.id from item i where exists (select 1 from sale s, item j where s.item_id = i.id and j.id = s.quantity and j.kind <> i.kind)",
    "select id from item where id in (select line from sale where sale.item_id = item.id and note is not null)",
    "select id from item o where exists (select 1 from sale s where s.item_id = o.id and exists (select 1 from item j where j.id = s.line))",
    "select id from item where exists (select 1 from sale where item_id = id and amount > (select avg(amount) from sale)) and kind = 'a'",
    "select kind, count(*) from item where not exists (select 1 from sale where item_id = id) and id in (select id from item where ok) group by kind",
    "select a.id from item a join item b on a.free = b.free and b.id < 20",
    "select sum(price * (1 - 0.05) * (2 + price)), avg(price * 3), sum(case when ok then price * 2 else 0 end), avg(1 - price) from item",
    "select kind, sum(price * id), avg(price * (1 - price)), sum(price - 1), sum(price + 0.001) from item group by kind",
    "select sum(case when id > 1000 then price else 0 end), avg(case when kind = 'a' then price end), sum(case when id > 1000 then price end) from item",
    "select item_id, sum(case when note is null then amount * 1.000 else 1 end), sum(amount * quantity), avg(quantity * 2.5) from sale group by item_id",
    "select ok, sum(price * 99999999999999.99 * (price * 99999999999999.99)), avg(price * 99999999999999.99 * price * 99999999999999.99) from item group by ok",
    "select sum(price * null), avg(price * null::numeric), sum(amount * (1 - price / 100)) from item join sale on item_id = id",
    "with total as (select item_id, sum(amount * 2) as amount from sale group by item_id) select item_id from total where amount = (select max(amount) from total)",
    "with few as (select id, price from item where id < 9), fewer as (select * from few where price > 3) select a.id, b.price from few a, fewer b, fewer c where a.id = b.id and c.id = a.id",
    "with shared as (select id, kind from item) select kind, count(*) from shared where id in (select id + 1 from shared) and exists (select 1 from shared s where s.kind = shared.kind and s.id <> shared.id) group by kind",
    "select free, count(*) from item group by free",
    "select free, kind, sum(price) from item where id < 40 group by kind, free order by free desc nulls first, kind",
    "select extract(year from made), round(avg(price), 2) as mean, sum(amount * (1 - price / 100)) from item join sale on item_id = id group by 1 order by mean desc, 1",
    "select distinct free from item where id < 30",
    "select distinct x from (values (1.0, 1), (1.00, 2), (2.5, 3)) v(x, y)",
    "select x, sum(y) from (values (1.10, 1), (1.1, 2), (null, 3), (null, 4), ('NaN', 5), (-2, 6), (-2.00, 7)) v(x, y) group by x order by x",
    "select y from (values (1.10, 2), (1.1, 1), (-1, 3), (-1.5, 4), ('infinity', 5), ('NaN', 6), ('-infinity', 7), (0.0, 9), (0, 8)) v(x, y) order by x, y",
    "select a.id, s.line from item a join sale s on a.free * 3 = s.quantity where s.line < 30",
    "select a.id, s.line from item a join sale s on a.price = s.line where not exists (select from item b where b.free = s.line)",
    "select count(*) from item a, sale s where a.price = s.amount or a.free = s.amount",
    "select id from item where made < timestamp '2020-02-01 00:00' + interval '12 hours' and made >= date '2020-01-10' - interval '1 day'",
    "select id from item where timestamp '2020-02-01' = made or made <> '2020-03-01 01:00'::timestamp and id < 5",
    "select id from item where at >= to_timestamp('2020-01-05', 'YYYY-MM-DD') and at < to_timestamp('2020-01-05', 'YYYY-MM-DD') + interval '2 days'",
    "select i.id, i.big from item i join sale s on i.big = s.line::bigint * 1000000000 where s.line < 10",
    "with c as materialized (select * from item where id > (select min(id) from item)) select count(*) from c",
    "with c as (select id, kind from item where id > (select min(id) from item)), d as (select id from c where id < (select max(id) from c)) select count(*), max(a.id) from d a, d b, c where a.id = b.id and c.id = a.id",
    "select count(*) from (with c as (select id from item) select a.id from c a, c b where a.id = b.id) s",
    "select sum(case when id <> 7 then case when 10 / (id - 7) > 1 then price * 2 else price end else 1 end) from item",
    "select avg(case when id = 7 then price else case when 10 / (id - 7) > 1 then price else price * 2 end * 3 end) from item",
    "select id from item where exists (select 1 / (line - line) from sale where item_id = id order by amount limit 1)",
    "select id from item where not exists (select distinct note from sale where item_id = id and quantity > 7 limit 5)",
    "select a.id, b.line from item a left join sale b on b.line = a.id + 1 and b.quantity > 3 where a.id < 30",
    "select a.id, b.line from item a join sale b on a.free * 3 = b.quantity and b.line = a.id * 5 - 4",
    "select a.id, b.id from item a join item b on a.big = b.id + 999999999 or lower(a.name) = b.name and a.id < 3",
    "select a.id, b.id from item a join item b on upper(a.name) = upper(b.name) and a.id <> b.id where a.id < 9",
    "select a.id, b.id, c.line from item a join item b on a.price + 1.25 = b.price full join sale c on c.line = b.id + 190 where c.line > 195 or b.id < 7",
    "select a.id, b.id from item a join item b on a.made = b.made + 1 and coalesce(a.kind, 'none') = coalesce(b.kind, 'none')",
    "select id from item where exists (select 1 from sale where line = id + 1 and amount < price)",
    "select id from item where not exists (select 1 from sale where line - 1 = id * 4 and quantity > 3) and id + 1 in (select quantity from sale where item_id = id - 1)",
    "select id from item where exists (select 1 from sale where item_id = id and amount > price + 100)",
    "select id from item where not exists (select 1 from item j where j.kind = item.kind and j.free > item.free * 1.50 and item.big - 1 < j.id + j.big)",
    "select id, free from item where free in (select j.free from item j where j.id % 3 = 1 and item.price - 0.5 <> j.price + 0.5 and -j.id < item.id) and exists (select 1 from sale where item_id = id and line * 1.0 >= free)",
    "select to_date(name, 'YYYY'), to_date('no date', 'YYYY') from item where id > 1000",
    "select id from item where price > (select avg(amount) from sale where sale.item_id = item.id)",
    "select id, (select count(*) from sale where item_id = id), (select count(note) + 1 from sale where id = item_id and quantity > 7) from item",
    "select id, (select coalesce(sum(quantity), -1) from sale where item_id = id - 0.00), (select 0.5 * max(amount) + price from sale where item_id = id) from item",
    "select id, (select count(distinct note) filter (where quantity > 3) from sale where item_id = id) * 2 from item where id < 60 and kind is not null",
    "select kind, count(*) from item where price < 2 * (select min(amount) from sale where item_id = id and quantity = 4) group by kind",
    "select kind, max(free) from item o group by kind having count(*) > (select count(*) / 2 from item i where i.kind = o.kind) order by 1",
    "select kind, sum((select count(*) from sale where item_id = id)) from item group by kind",
    "select id from item order by (select sum(amount) from sale where item_id = id) desc nulls last, id limit 9",
    "select id, (select count(*) from item j where j.kind = item.kind and j.code = item.code) from item",
    "select id, (select max(id) from item j where j.free * 3 = item.price) from item",
    "select id, (select count(*) from item j where j.free * 1.50 = item.free * 3 and j.ok = not item.ok) from item",
    "select id, (select sum(big) from item j where j.id = item.id::bigint and j.big = item.big) from item",
    "select id, (select count(*) from sale s where s.item_id = o.id and s.amount > (select avg(amount) from sale t where t.quantity = s.quantity)) from item o",
    "select id from item where id in (select item_id from sale s where amount > (select avg(amount) from sale t where t.item_id = s.item_id))",
    "select id from item where exists (select 1 from sale s where s.item_id = id and amount > (select avg(amount) from sale t where t.item_id = s.item_id))",
    "select id from item where (select count(*) from sale where item_id = id) in (select quantity * 20 from sale) or (select max(line) from sale where item_id = id) = 1000",
    "select case when id > 100 then 1 / (id - 100) when (select bool_or(note is null) from sale where item_id = id) then 0 end from item",
    "with few as (select item_id, amount from sale where quantity > 4) select id, (select sum(amount) from few where item_id = id) from item",
    "select a.id, b.line from item a left join (select line, (select count(*) from item where id = quantity) as many from sale) b on b.many = a.id and b.line < 40 where a.id < 5",
    "select id, (select count(*) from sale, item j where item_id = item.id and j.id = quantity and j.kind = 'a') from item",
    "select distinct (select max(made) from item j where j.kind = item.kind) from item",
    "select id, (select sum(x) from (values (1, 2.50), (1, 3), (null, 4)) v(k, x) where k = id) from item where id < 3 union all select 0, (select max(line) from sale where item_id = quantity) from sale where line < 3",
];

#[test]
fn both_executors_agree() {
    let database = Database::new(SCHEMA);
    for sql in QUERIES {
        let parsed = statement(sql);
        let mut native = database.native(&parsed).unwrap_or_else(|error| panic!("{sql}: natively {error}"));
        let mut analytic = database.analytic(&parsed).unwrap_or_else(|error| panic!("{sql}: here {error}"));
        if !sql.contains("order by") {
            native.sort();
            analytic.sort();
        }
        assert_eq!(native, analytic, "{sql}");
    }
}

#[test]
fn errors_pass_through_unchanged() {
    let database = Database::new(SCHEMA);
    for sql in [
        "select 100 / (id - 7) from item",
        "select id * 100000000 from item",
        "select count(*) from item where (name || 'x')::int = 1",
        "select sum(case when 10 / (id - 7) > 1 then price * 2 end) from item",
        "select count(*) from item a join item b on a.id = b.id + 2147483600",
        "select sum(big * big) from item",
        "select id from item limit -1",
    ] {
        let parsed = statement(sql);
        let native = database.native(&parsed).expect_err(sql);
        match database.analytic(&parsed) {
            Err(AnalyticsError::Sql(error)) => {
                assert_eq!((error.state(), error.message()), (native.state(), native.message()), "{sql}");
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
}

#[test]
fn what_cannot_be_lowered_is_left_to_the_native_executor() {
    let database = Database::new(SCHEMA);
    for sql in [
        "select id, exists (select 1 from sale where sale.item_id = item.id) from item",
        "select id from item where id not in (select line from sale where sale.item_id = item.id)",
        "select id from item where price > (select amount from sale where sale.item_id = item.id and line = 7)",
        "select id from item where price > (select avg(amount) from sale where sale.item_id < item.id)",
        "select id, (select sum(quantity * line) from sale where item_id = id) from item",
        "select id, (select max(amount) from sale where item_id = id and 10 / quantity > 1) from item",
        "select id, (select max(amount) from sale where item_id = id having count(*) > 3) from item",
        "select id, (select count(*) from sale where item_id = id and random() < 0.5) from item",
        "select id, (select sum(amount * price) from sale where item_id = id) from item",
        "select id, (select count(*) from item j where j.weight = item.weight) from item",
        "select id, (select sum(big) from item j where j.big = item.id * 1000000000::bigint) from item",
        "select id, (select count(*) from sale s where s.item_id = o.id and s.amount > (select o.price + avg(amount) from sale t where t.quantity = s.quantity)) from item o where id < 20",
        "select weight, count(*) from item group by weight",
        "select row_number() over (order by id) from item",
        "select id, generate_series(1, 2) from item",
        "select id from item for update",
        "select * from item, lateral (select sum(amount) from sale where item_id = id) s",
        "select id from item intersect select item_id from sale",
        "select distinct on (kind) kind, id from item order by kind, id",
        "select array_agg(id) from (select id, price from item order by price desc) s",
        "select id from item where id = (select item_id from sale)",
        "select id from item where id = 1000 and price = (select 1 / (line - line) from sale limit 1)",
        "with c as (select 1 / (id - 7) as x from item) select id from item where id = 1000 and exists (select 1 from c) and id in (select x from c)",
        "select count(*) from (with c as (select random() as r from item) select a.r from c a, c b where a.r = b.r) s",
        "select count(*) from (with c as (select random() as r from item), d as (select r from c) select a.r from d a where exists (select 1 from d b where b.r = a.r)) s",
        "select id from item where exists (select 1 from sale where item_id = id and random() < 0.5)",
        "select id from item where exists (select 1 from sale where item_id < id)",
        "select id from item where not exists (select 1 from sale where id > 7)",
        "select (random() * 3)::numeric, count(*) from item group by 1",
    ] {
        match database.analytic(&statement(sql)) {
            Err(AnalyticsError::Unsupported(_)) => {}
            other => panic!("{sql}: {other:?}"),
        }
    }
}

#[test]
fn many_conditions_are_left_to_the_native_executor() {
    let database = Database::new(SCHEMA);
    let query = |count: u32| {
        let conditions: Vec<String> = (0..count).map(|number| format!("price <> -{number}")).collect();
        format!("select count(*) from item where {}", conditions.join(" and "))
    };
    let few = database.analytic(&statement(&query(100))).unwrap();
    assert!(matches!(database.analytic(&statement(&query(2000))), Err(AnalyticsError::Unsupported(_))));
    assert_eq!(database.native(&statement(&query(2000))).unwrap(), few);
}
