//! Indexes whose entries lie with their rows, under the distribution column (`placement = prefixed`):
//! which paths they serve, what statements claim, and that answers are those of other indexes.

use std::sync::Arc;

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::id::{GroupId, TreeId};
use archipel_engine::index_uses::UseCounts;
use archipel_engine::log::MemoryStore;
use archipel_engine::schema::IndexPlacement;
use archipel_engine::storage::KeyBuf;
use archipel_engine::storage::key::encode_cell;
use archipel_engine::{Engine, EngineConfig, Outcome, SubmitOptions};
use archipel_sql::ast::ExplainOptions;
use archipel_sql::catalog::Catalog;
use archipel_sql::datum::Datum;
use archipel_sql::function::FunctionContext;

use super::tests::{Database, Host};
use crate::bind::{BindEnv, bind_statement};
use crate::explain;
use crate::native::plan::environment::{CompileEnv, NoRoutines};
use crate::native::plan::statement::compile_explained;
use crate::native::run::program::StatementProgram;

/// Tenants 1 to 40 with 30 orders each, in partitions of ten tenants.
const TENANTS: i32 = 40;
const ORDERS_OF_EACH: i32 = 30;

fn orders(indexes: &str) -> Database {
    // Nobody else changes partitions meanwhile.
    let config = EngineConfig {
        background: false,
        one_shot_budget_micros: 60_000_000,
        ..EngineConfig::with_executors(1)
    };
    let engine = Engine::open(config, Arc::new(MemoryStore::new())).unwrap();
    let mut database = Database { engine, catalog: Catalog::initial(Vec::new()) };
    let said = database.run(&format!(
        "create table orders (tenant int, id int, status text, at int not null, email text not null,
             primary key (tenant, id));
         {indexes}
         insert into orders select t, o, case o % 3 when 0 then 'open' when 1 then 'sent' end, (o * 7) % {ORDERS_OF_EACH},
             'mail' || o from generate_series(1, {TENANTS}) t, generate_series(1, {ORDERS_OF_EACH}) o;"
    ));
    assert_eq!(said, format!("{} rows\n", TENANTS * ORDERS_OF_EACH));
    split(&database);
    database
}

/// Cuts the groups of the table and of its indexes, so that statements can be told by what they claim.
fn split(database: &Database) {
    let table = database.catalog.table(None, "orders", &["public".to_owned()]).unwrap();
    let meta = database.engine.table(TreeId(table.tree)).unwrap();
    let rows = GroupId(table.group().unwrap());
    let apart = meta.def.indexes.iter().filter_map(|index| match index.placement {
        IndexPlacement::Global { group } => Some((group, index.key[0])),
        IndexPlacement::Local => None,
    });
    for (group, column) in std::iter::once((rows, meta.def.key[0])).chain(apart) {
        let kind = meta.def.columns[usize::from(column.column)];
        let keys = [11, 21, 31].map(|at| {
            let text = format!("mail{at}");
            let cell = match kind {
                ColumnKind::Int4 => Cell::Int4(at),
                _ => Cell::Bytes(text.as_bytes()),
            };
            let mut key = KeyBuf::new();
            encode_cell(&mut key, cell, &column, kind);
            key
        });
        let done = database.engine.pre_split(group, keys.to_vec()).wait();
        assert!(done.outcome.result.is_ok(), "{:?}", done.outcome.result);
    }
}

/// Runs a statement; its rows or its count, and how it went.
#[track_caller]
fn run(database: &Database, sql: &str, params: &[Datum]) -> (Vec<String>, Outcome) {
    let program = StatementProgram::new(database.prepare(sql), params.to_vec(), Arc::new(Host));
    let completed = database.engine.submit(program, SubmitOptions::default()).wait();
    let program = completed.program;
    if completed.outcome.result.is_err() {
        panic!("{sql}: {:?} {:?}", completed.outcome.result, program.error);
    }
    let mut rows: Vec<String> = program.result_rows().map(|row| format!("{row:?}")).collect();
    if rows.is_empty() {
        rows.push(format!("{} rows", program.count));
    }
    (rows, completed.outcome)
}

/// That a statement holds so many partitions, foreseen at once.
#[track_caller]
fn holds(database: &Database, partitions: u32, sql: &str, params: &[Datum]) -> Vec<String> {
    let (rows, outcome) = run(database, sql, params);
    assert_eq!((outcome.partitions, outcome.restarts), (partitions, 0), "{sql}");
    rows
}

/// EXPLAIN's lines without the last, and that.
fn plan(database: &Database, sql: &str) -> (Vec<String>, String) {
    let mut lines = explain::statement(&database.prepare(sql));
    let partitions = lines.pop().unwrap_or_default();
    (lines, partitions)
}

/// The lines of EXPLAIN VERBOSE.
fn verbose(database: &Database, sql: &str) -> Vec<String> {
    let statements = archipel_sql::parser::parse(sql).unwrap();
    let (path, context) = (["public".to_owned()], FunctionContext::detached());
    let mut env = BindEnv::new(&database.catalog, &path, &context);
    let bound = bind_statement(&statements[0].statement, &mut env).unwrap();
    let env = CompileEnv {
        tables: &database.engine,
        catalog: &database.catalog,
        search_path: &[],
        routines: &NoRoutines,
    };
    let options = ExplainOptions { verbose: true, ..ExplainOptions::default() };
    let compiled = compile_explained(&bound, options, &env).unwrap();
    explain::told(&compiled, &explain::Telling { options, ..Default::default() })
}

const ROUTED: &str = "Partitions: single-partition, routed by tenant = $1";

#[test]
fn a_bound_use_is_a_seek_in_one_partition() {
    let database = orders("create index o_s on orders (status) with (placement = prefixed);");
    let sql = "select id from orders where tenant = $1 and status = $2";
    let (lines, partitions) = plan(&database, sql);
    assert_eq!(lines, ["Index Scan using o_s on orders", "  Index Cond: (tenant = $1) AND (status = $2)"]);
    assert_eq!(partitions, ROUTED);
    let open = [Datum::Int4(17), Datum::text("open")];
    assert_eq!(holds(&database, 1, sql, &open).len(), 10);
    let null = "select id from orders where tenant = $1 and status is null";
    assert!(plan(&database, null).0[0].contains("o_s"));
    assert_eq!(holds(&database, 1, null, &open[..1]).len(), 10);
    let lines = verbose(&database, sql);
    assert!(lines.iter().any(|line| line == "  Placement: prefixed"), "{lines:?}");
    // Without the tenant there is nothing to seek, and nothing to walk either.
    let (lines, _) = plan(&database, "select id from orders where status = $1");
    assert_eq!(lines[0], "Seq Scan on orders");
    // The tenant alone is what the rows are kept by.
    assert!(plan(&database, "select id from orders where tenant = $1").0[0].contains("orders_pkey"));
    // By itself the index leads elsewhere first.
    let apart = orders("create index o_e on orders (email);");
    let by_email = "select id from orders where email = $1";
    assert!(verbose(&apart, by_email).iter().any(|line| line == "  Placement: global"));
    let (rows, outcome) = run(&apart, by_email, &[Datum::text("mail3")]);
    assert_eq!(rows.len(), TENANTS as usize);
    assert!(outcome.partitions > 1, "{outcome:?}");
}

#[test]
fn writes_hold_the_partition_of_their_row() {
    let database = orders("create index o_e on orders (email) with (placement = prefixed);");
    let apart = orders("create index o_e on orders (email);");
    let insert = "insert into orders values ($1, 500, 'open', 1, 'mail9')";
    let update = "update orders set email = 'mail25' where tenant = $1 and id = 500";
    let delete = "delete from orders where tenant = $1 and id = 500";
    let tenant = [Datum::Int4(35)];
    for sql in [insert, update, delete] {
        assert_eq!(plan(&database, sql).1, ROUTED, "{sql}");
        holds(&database, 1, sql, &tenant);
        assert!(run(&apart, sql, &tenant).1.partitions > 1, "{sql}");
    }
    // A row that goes to another tenant takes its entry along.
    holds(&database, 2, "update orders set tenant = 3, id = 900 where tenant = $1 and id = 1", &tenant);
    let found = "select id from orders where tenant = $1 and email = 'mail1' order by id";
    assert_eq!(run(&database, found, &[Datum::Int4(3)]).0, ["[Int4(1)]", "[Int4(900)]"]);
    assert_eq!(run(&database, found, &tenant).0, ["0 rows"]);
}

#[test]
fn it_gives_the_order_of_one_tenant() {
    let database = orders("create index o_a on orders (at, email) with (placement = prefixed);");
    let sorts = |sql: &str| plan(&database, sql).0.iter().any(|line| line.trim_start().starts_with("Sort"));
    let newest = "select id from orders where tenant = $1 order by at desc, email desc limit 3";
    assert!(plan(&database, newest).0[1].contains("Index Scan Backward using o_a on orders"));
    assert!(!sorts(newest));
    let rows = holds(&database, 1, newest, &[Datum::Int4(8)]);
    assert_eq!(rows, ["[Int4(17)]", "[Int4(4)]", "[Int4(21)]"]);
    let range = "select id from orders where tenant = $1 and at >= 5 and at < 8 order by at";
    assert!(!sorts(range) && plan(&database, range).0[0].contains("o_a"));
    assert_eq!(holds(&database, 1, range, &[Datum::Int4(8)]).len(), 3);
    assert!(!sorts("select id from orders where tenant = $1 and at = 4 order by at, tenant, email"));
    assert!(!sorts("select id from orders order by tenant, at, email"));
    // Neighbours' entries stand between those of several tenants.
    assert!(sorts("select id from orders order by at"));
    assert!(sorts("select id from orders where tenant in (1, 2) order by at"));
    assert!(sorts("select id from orders where tenant > 38 order by at"));
    assert!(sorts("select id from orders where tenant = $1 order by email"));
    let two = run(&database, "select at from orders where tenant in (1, 2) order by at limit 3", &[]).0;
    assert_eq!(two, ["[Int4(0)]", "[Int4(0)]", "[Int4(1)]"]);
}

#[test]
fn a_unique_one_decides_within_one_partition() {
    let database = orders("create unique index o_e on orders (email, tenant) with (placement = prefixed);");
    let one = "select id from orders where email = $2 and tenant = $1";
    assert_eq!(plan(&database, one).0[0], "Index Scan using o_e on orders");
    let mine = [Datum::Int4(12), Datum::text("mail7")];
    assert_eq!(holds(&database, 1, one, &mine), ["[Int4(7)]"]);
    for inferred in ["email, tenant", "tenant, email"] {
        let upsert = format!(
            "insert into orders values ($1, 700, 'open', 1, $2) on conflict ({inferred}) do update set status = 'twice' returning id"
        );
        assert_eq!(plan(&database, &upsert).1, ROUTED);
        assert_eq!(holds(&database, 1, &upsert, &mine), ["[Int4(7)]"]);
    }
    let mut database = database;
    assert_eq!(
        database.run(
            "insert into orders values (12, 700, 'open', 1, 'mail7');
             insert into orders values (13, 700, 'open', 1, 'new'), (14, 700, 'open', 1, 'new');
             update orders set email = 'mail8' where tenant = 12 and id = 7;
             update orders set tenant = 13, id = 901 where tenant = 12 and id = 7;
             insert into orders values (12, 7, '', 1, 'x'), (12, 800, '', 1, 'mail7'), (12, 801, '', 1, 'y')
                 on conflict do nothing returning id;
             insert into orders values (1, 1, '', 1, 'x') on conflict (email) do nothing",
        ),
        "23505 duplicate key value violates unique constraint \"o_e\" / Key (email, tenant)=(mail7, 12) already exists.
2 rows
23505 duplicate key value violates unique constraint \"o_e\" / Key (email, tenant)=(mail8, 12) already exists.
23505 duplicate key value violates unique constraint \"o_e\" / Key (email, tenant)=(mail7, 13) already exists.
801
42P10 there is no unique or exclusion constraint matching the ON CONFLICT specification
"
    );
}

#[test]
fn partial_and_computed_ones_are_led_too() {
    let database = orders(
        "create unique index o_p on orders (email, tenant) with (placement = prefixed) where status = 'open';
         create index o_l on orders (upper(email)) with (placement = prefixed);",
    );
    let computed = "select id from orders where tenant = $1 and upper(email) = $2";
    assert_eq!(plan(&database, computed).0[0], "Index Scan using o_l on orders");
    assert_eq!(holds(&database, 1, computed, &[Datum::Int4(5), Datum::text("MAIL30")]), ["[Int4(30)]"]);
    let partial = "select id from orders where tenant = $1 and email = $2 and status = 'open'";
    assert_eq!(plan(&database, partial).0[0], "Index Scan using o_p on orders");
    assert_eq!(holds(&database, 1, partial, &[Datum::Int4(5), Datum::text("mail30")]), ["[Int4(30)]"]);
    let insert = "insert into orders values ($1, $2, $3, 1, 'same')";
    let row = |id, status: &str| [Datum::Int4(5), Datum::Int4(id), Datum::text(status)];
    // Rows that it says nothing of may agree.
    holds(&database, 1, insert, &row(600, "sent"));
    holds(&database, 1, insert, &row(601, "sent"));
    holds(&database, 1, insert, &row(602, "open"));
    let mut database = database;
    let refused = database.run("update orders set status = 'open' where tenant = 5 and id = 600");
    assert!(refused.contains("Key (email, tenant)=(same, 5) already exists."), "{refused}");
    assert_eq!(
        database.run(
            "insert into orders values (5, 603, 'open', 2, 'same') on conflict (email, tenant) where status = 'open'
                 do update set at = 99 returning id, at"
        ),
        "602|99\n"
    );
}

#[test]
fn foreign_keys_find_their_parents_by_it() {
    let database = orders("create unique index o_e on orders (email, tenant) with (placement = prefixed);");
    let mut database = database;
    assert_eq!(
        database.run(
            "create table notes (tenant int, email text, n int, primary key (tenant, n),
                 foreign key (tenant, email) references orders (tenant, email));
             create index n_e on notes (email) with (placement = prefixed);
             insert into notes values (7, 'mail3', 1), (7, null, 2);
             delete from orders where tenant = 7 and id = 4",
        ),
        "2 rows\n1 rows\n"
    );
    let refused = database.run("insert into notes values (7, 'nobody', 3)");
    assert!(
        refused.contains("Key (tenant, email)=(7, nobody) is not present in table \"orders\"."),
        "{refused}"
    );
    let refused = database.run("delete from orders where tenant = 7 and id = 3");
    assert!(refused.contains("is still referenced from table \"notes\"."), "{refused}");
}

#[test]
fn alter_index_moves_entries_and_loses_none() {
    let mut database = orders("create index o_e on orders (email);");
    let sql = "select id from orders where tenant = $1 and email = $2 and id > 0";
    let params = [Datum::Int4(21), Datum::text("mail21")];
    for (change, partitions) in [
        ("set (placement = prefixed)", 1),
        ("set (placement = global)", 2),
        ("set (placement = prefixed, fillfactor = 70)", 1),
        ("reset (placement)", 2),
    ] {
        assert_eq!(database.run(&format!("alter index o_e {change}")), "");
        let by_index = "select id from orders where tenant = $1 and email = $2";
        // By itself it is worth its way for what names no tenant.
        let served = if partitions == 1 { by_index } else { "select id from orders where email = $1" };
        assert_eq!(plan(&database, served).0[0], "Index Scan using o_e on orders", "{change}");
        assert_eq!(
            run(&database, served, &params[partitions as usize - 1..]).0.len(),
            [1, 40][partitions as usize - 1]
        );
        assert_eq!(run(&database, by_index, &params).0, ["[Int4(21)]"], "{change}");
        let held = run(&database, "insert into orders values ($1, 999, '', 0, $2)", &params).1.partitions;
        assert_eq!(held, partitions, "{change}");
        run(&database, "delete from orders where tenant = $1 and id = 999 and email = $2", &params);
        assert_eq!(run(&database, sql, &params).0, ["[Int4(21)]"]);
    }
}

/// Numbers that look like chance (xorshift).
struct Chance(u32);

impl Chance {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 % bound
    }
}

#[test]
fn answers_are_those_of_the_same_table_without_indexes() {
    let indexes = "create index o_s on orders (status desc, tenant) with (placement = prefixed);
        create index o_a on orders (at) with (placement = prefixed);
        create unique index o_p on orders (email, tenant) with (placement = prefixed) where status = 'open';";
    let (mut with, mut without) = (orders(indexes), orders(""));
    let mut chance = Chance(2_463_534_242);
    for _ in 0..400 {
        let tenant = 1 + chance.below(4) * 10;
        let (id, at) = (1 + chance.below(40), chance.below(ORDERS_OF_EACH as u32));
        let status = ["'open'", "'sent'", "null"][chance.below(3) as usize];
        let mail = chance.below(1_000_000);
        let change = match chance.below(5) {
            0 => format!(
                "insert into orders values ({tenant}, {id}, {status}, {at}, 'new{mail}') on conflict do nothing"
            ),
            1 => format!("update orders set status = {status} where tenant = {tenant} and at = {at}"),
            2 => format!(
                "update orders set at = {at}, email = 'other{mail}' || id where tenant = {tenant} and id = {id}"
            ),
            3 => format!(
                "update orders set tenant = {} where tenant = {tenant} and id = {id} and not exists (select 1 from orders o where o.tenant = {} and o.id = {id})",
                tenant + 1,
                tenant + 1
            ),
            _ => format!(
                "delete from orders where tenant = {tenant} and status = {status} and at > {}",
                at + 20
            ),
        };
        assert_eq!(with.run(&change), without.run(&change), "{change}");
        let conditions = match chance.below(5) {
            0 => format!("tenant = {tenant} and status = {status}"),
            1 => format!("tenant = {tenant} and status is null and at < {at}"),
            2 => format!("tenant = {tenant} and at between {at} and {}", at + 4),
            3 => format!("tenant in ({tenant}, {}) and status in ('open', 'sent')", tenant + 1),
            _ => format!("status = 'open' and at > {at}"),
        };
        let query = format!("select * from orders where {conditions} order by at desc, tenant, id");
        assert_eq!(with.run(&query), without.run(&query), "{query}");
    }
}

/// Runs statements; what they add to the counts of an index.
fn counted(database: &Database, index: &str, statements: &[(&str, &[Datum])]) -> UseCounts {
    let table = database.catalog.table(None, "orders", &["public".to_owned()]).unwrap();
    let meta = database.engine.table(TreeId(table.tree)).unwrap();
    let uses = meta.indexes.iter().find(|known| known.def.name == index).unwrap().uses.clone();
    let before = uses.sum();
    for (sql, params) in statements {
        run(database, sql, params);
    }
    uses.sum().since(before)
}

#[test]
fn uses_are_counted_by_what_conditions_give() {
    let database = orders("create index o_s on orders (status) with (placement = prefixed);");
    let bound = "select id from orders where tenant = $1 and status = $2";
    let unbound = "select id from orders where status = $1";
    let open = [Datum::Int4(17), Datum::text("open")];
    let none = [Datum::text("none")];
    let count = |sql: &str, params: &[Datum]| counted(&database, "o_s", &[(sql, params)]);
    let seek = UseCounts { bound: 1, entries: 10, rows: 10, ..UseCounts::default() };
    assert_eq!(count(bound, &open), seek);
    assert_eq!(count("select count(*) from orders where tenant = $1 and status = $2", &open).entries, 10);
    let elsewhere = UseCounts { unbound: 1, missed: 1, ..UseCounts::default() };
    assert_eq!(count(unbound, &open[1..]), elsewhere, "rows are read for it, and no entries");
    // Of four partitions fewer rows than those.
    assert_eq!(count(unbound, &none), UseCounts { narrow: 1, ..elsewhere });
    // An index by itself would have had the order.
    assert_eq!(count("select id from orders order by status limit 4", &[]), elsewhere);
    let nothing = UseCounts::default();
    for sql in
        ["select at from orders where tenant = $1 and id = 3", "select id from orders where tenant = $1"]
    {
        assert_eq!(count(sql, &open[..1]), nothing, "{sql}");
    }
}

#[test]
fn an_index_by_itself_is_missed_where_one_under_the_tenant_would_lead_on() {
    let database = orders("create index o_e on orders (email); create index o_a on orders (tenant, at);");
    let params = [Datum::Int4(17), Datum::text("mail3")];
    let by_email = ("select id from orders where email = $1", &params[1..]);
    let unbound = UseCounts { unbound: 1, entries: 40, rows: 40, ..UseCounts::default() };
    assert_eq!(counted(&database, "o_e", &[by_email]), unbound);
    // The rows of the tenant are read instead.
    let both = ("select id from orders where tenant = $1 and email = $2", &params[..]);
    let missed = UseCounts { bound: 1, missed: 1, ..UseCounts::default() };
    assert_eq!(counted(&database, "o_e", &[both]), missed);
    let newest = ("select id from orders where tenant = $1 order by email limit 2", &params[..1]);
    assert_eq!(counted(&database, "o_e", &[newest]), missed);
    // One that begins with the tenant is where it is of use.
    let at = ("select id from orders where tenant = $1 and at = 5", &params[..1]);
    let seek = UseCounts { bound: 1, entries: 1, rows: 1, ..UseCounts::default() };
    assert_eq!(counted(&database, "o_a", &[at, by_email]), seek);
    // A join looks something up once for each row.
    let joined = (
        "select count(*) from (values (1), (2), (3)) v (t) join orders on tenant = t and at = 5",
        &params[..0],
    );
    assert_eq!(counted(&database, "o_a", &[joined]).bound, 3);
}

#[test]
fn entries_that_are_written_are_counted() {
    let database = orders("create index o_e on orders (email); create index o_s on orders (status);");
    let tenant = [Datum::Int4(17)];
    let of = |index: &str, sql: &str| counted(&database, index, &[(sql, &tenant)]).writes;
    assert_eq!(of("o_e", "insert into orders values ($1, 500, 'open', 1, 'mail9')"), 1);
    assert_eq!(of("o_e", "update orders set email = 'mail8' where tenant = $1 and id = 500"), 2);
    assert_eq!(of("o_e", "update orders set status = 'sent' where tenant = $1 and id = 500"), 0);
    assert_eq!(of("o_s", "update orders set status = 'open' where tenant = $1 and id = 500"), 2);
    assert_eq!(of("o_e", "delete from orders where tenant = $1 and id = 500"), 1);
    assert_eq!(of("o_e", "delete from orders where tenant = $1 and id = 500"), 0);
}
