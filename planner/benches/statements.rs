//! In-process cost of a prepared statement inside a transaction.
//!
//! `cargo bench -p archipel-planner` prints nanoseconds a statement for single statements of
//! the kinds TPC-C is made of, and microseconds for a new order's worth of them. Each figure is
//! the best of several runs of many statements in one transaction, so claims and commit points
//! (measured by the engine's own benchmark) do not count.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use archipel_engine::log::MemoryStore;
use archipel_engine::{
    ClaimSet, DdlOp, Engine, EngineConfig, Program, RoutingTable, Stop, SubmitOptions, Txn,
};
use archipel_planner::bind::{BindEnv, bind_statement};
use archipel_planner::ddl;
use archipel_planner::native::{
    CompileEnv, CompiledStatement, ExecContext, ExecError, NoRoutines, NoRows, NoSystemRows,
    compile_statement,
};
use archipel_sql::catalog::{Catalog, ObjectNumbers};
use archipel_sql::datum::Datum;
use archipel_sql::function::FunctionContext;

struct Define(Vec<DdlOp>);

impl Program for Define {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        claims.everything();
    }
    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        for operation in &self.0 {
            let _ = txn.ddl(operation.clone())?;
        }
        Ok(())
    }
}

struct Database {
    engine: Engine,
    catalog: Catalog,
}

/// Runs a closure over a context inside one transaction that claims everything.
struct Inside<F>(F);

impl<F: FnMut(&mut ExecContext<'_, '_>) -> Result<(), ExecError> + Send + 'static> Program for Inside<F> {
    fn predict(&mut self, _routing: &RoutingTable, claims: &mut ClaimSet) {
        claims.everything();
    }
    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        let mut ctx = ExecContext::new(txn, FunctionContext::detached(), &NoSystemRows);
        match (self.0)(&mut ctx) {
            Ok(()) => Ok(()),
            Err(ExecError::Stop(stop)) => Err(stop),
            Err(ExecError::Sql(error)) => {
                eprintln!("{error}");
                Err(Stop::Abort)
            }
        }
    }
}

impl Database {
    fn new() -> Database {
        let mut config = EngineConfig::with_executors(1);
        config.one_shot_budget_micros = 60_000_000;
        let engine = Engine::open(config, Arc::new(MemoryStore::new())).expect("memory opens");
        Database { engine, catalog: Catalog::initial(Vec::new()) }
    }

    fn define(&mut self, sql: &str) {
        let path = ["public".to_owned()];
        let context = FunctionContext::detached();
        for parsed in archipel_sql::parser::parse(sql).expect("parses") {
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
            let plan = ddl::plan(&parsed.statement, &env).expect("is planned");
            let done = self.engine.submit(Define(plan.operations.clone()), SubmitOptions::default()).wait();
            done.outcome.result.expect("is defined");
            self.catalog = self.catalog.apply(&plan.changes);
        }
    }

    fn prepare(&self, sql: &str) -> CompiledStatement {
        let path = ["public".to_owned()];
        let context = FunctionContext::detached();
        let parsed = archipel_sql::parser::parse(sql).expect("parses");
        let mut env = BindEnv::new(&self.catalog, &path, &context);
        let bound = bind_statement(&parsed[0].statement, &mut env).expect("binds");
        let env = CompileEnv {
            tables: &self.engine,
            catalog: &self.catalog,
            search_path: &[],
            routines: &NoRoutines,
        };
        compile_statement(&bound, &env).expect("compiles")
    }

    fn inside(&self, body: impl FnMut(&mut ExecContext<'_, '_>) -> Result<(), ExecError> + Send + 'static) {
        let done = self.engine.submit(Inside(body), SubmitOptions::default()).wait();
        done.outcome.result.expect("runs");
    }

    /// Nanoseconds a run of `sql` with parameters made from a counter.
    fn measure(&self, name: &str, sql: &str, params: fn(i64, &mut Vec<Datum>)) {
        const STATEMENTS: i64 = 5_000;
        // `cargo bench … -- word` runs only what mentions the word.
        if std::env::args().skip(1).any(|word| !word.starts_with('-') && !name.contains(&word)) {
            return;
        }
        let statement = Arc::new(self.prepare(sql));
        let mut best = f64::MAX;
        for run in 0..20 {
            let (send, receive) = std::sync::mpsc::channel();
            let statement = statement.clone();
            self.inside(move |ctx| {
                let start = Instant::now();
                for number in 0..STATEMENTS {
                    let mut values = std::mem::take(&mut ctx.params);
                    values.clear();
                    params(run * STATEMENTS + number, &mut values);
                    ctx.params = values;
                    black_box(statement.run(ctx, &mut NoRows)?);
                }
                let _ = send.send(start.elapsed());
                Ok(())
            });
            let elapsed = receive.iter().last().expect("a run sends its time");
            best = best.min(elapsed.as_nanos() as f64 / STATEMENTS as f64);
        }
        println!("{name:<34} {best:>8.0} ns");
    }
}

const SCHEMA: &str = "
    create table district (w int, d int, name varchar(10), street varchar(20), city varchar(20), state char(2),
        tax numeric(4,4), ytd numeric(12,2), next int, note text, primary key (w, d));
    create table stock (w int, i int, quantity int, dist_01 char(24), dist_02 char(24), ytd numeric(8,0), orders int,
        remote int, data varchar(50), primary key (w, i));
    create table line (w int, d int, o int, n int, i int, supply int, delivered timestamp, quantity int,
        amount numeric(6,2), dist char(24), primary key (w, d, o, n));
    create table orders (w int, d int, o int, c int, entered timestamp, carrier int, lines int, primary key (w, d, o));
    create index orders_customer on orders (w, d, c, o);
    create table fresh (w int, d int, o int, primary key (w, d, o))";

fn main() {
    let mut database = Database::new();
    database.define(SCHEMA);
    let fill = [
        "insert into district select 1, d, 'name', 'a street', 'a city', 'st', 0.1, 100.5, 1, 'note' from generate_series(1, 10) d",
        "insert into stock select 1, i, 50, 'abcdefghijklmnopqrstuvwx', 'abcdefghijklmnopqrstuvwx', 0, 0, 0, 'some data about the item' from generate_series(1, 10000) i",
        "insert into orders select 1, 1 + o % 10, o, o % 300, '2026-01-01', 1, 10 from generate_series(1, 3000) o",
        "insert into line select 1, 1, o, n, o % 100, 1, null, 5, 1.5, 'abcdefghijklmnopqrstuvwx' from generate_series(1, 300) o, generate_series(1, 10) n",
    ];
    for sql in fill {
        let statement = database.prepare(sql);
        database.inside(move |ctx| statement.run(ctx, &mut NoRows).map(drop));
    }
    database.measure(
        "point select, 3 columns",
        "select tax, next, name from district where w = $1 and d = $2",
        |n, p| {
            p.extend([Datum::Int4(1), Datum::Int4((n % 10 + 1) as i32)]);
        },
    );
    database.measure(
        "point update, int and returning",
        "update district set next = next + 1 where w = $1 and d = $2 returning next, tax",
        |n, p| {
            p.extend([Datum::Int4(1), Datum::Int4((n % 10 + 1) as i32)]);
        },
    );
    database.measure(
        "point update, numeric",
        "update district set ytd = ytd + $3 where w = $1 and d = $2",
        |n, p| {
            p.extend([
                Datum::Int4(1),
                Datum::Int4((n % 10 + 1) as i32),
                Datum::Numeric(archipel_sql::numeric::Numeric::from_scaled(250, 2)),
            ]);
        },
    );
    database.measure(
        "stock update, case and returning",
        "update stock set quantity = case when quantity >= $3 + 10 then quantity - $3 else quantity + 91 - $3 end, \
         ytd = ytd + $3, orders = orders + 1, remote = remote + $4 where w = $1 and i = $2 returning quantity, dist_01, data",
        |n, p| p.extend([Datum::Int4(1), Datum::Int4((n * 7919 % 10_000 + 1) as i32), Datum::Int4(5), Datum::Int4(0)]),
    );
    database.measure(
        "insert of ten columns",
        "insert into line (w, d, o, n, i, supply, delivered, quantity, amount, dist) values ($1, 2, $2, $3, 5, 1, null, 5, 25.50, 'abcdefghijklmnopqrstuvwx')",
        |n, p| p.extend([Datum::Int4(1), Datum::Int4((n / 10) as i32), Datum::Int4((n % 10) as i32)]),
    );
    database.measure("insert of three columns", "insert into fresh values ($1, $2, $3)", |n, p| {
        p.extend([Datum::Int4(1), Datum::Int4(1), Datum::Int4(n as i32)]);
    });
    database.measure("delete by key", "delete from fresh where w = $1 and d = $2 and o = $3", |n, p| {
        p.extend([Datum::Int4(1), Datum::Int4(1), Datum::Int4(n as i32)]);
    });
    database.measure(
        "last order by index",
        "select o, carrier from orders where w = $1 and d = $2 and c = $3 order by o desc limit 1",
        |n, p| {
            p.extend([Datum::Int4(1), Datum::Int4((n % 10 + 1) as i32), Datum::Int4((n % 300) as i32)]);
        },
    );
    database.measure(
        "sum over ten rows",
        "select sum(amount) from line where w = $1 and d = $2 and o = $3",
        |n, p| {
            p.extend([Datum::Int4(1), Datum::Int4(1), Datum::Int4((n % 300 + 1) as i32)]);
        },
    );
    database.measure(
        "stock level, 200 lines",
        "select count(distinct s.i) from line l, stock s where l.w = $1 and l.d = 1 and l.o >= $2 and l.o < $2 + 20 and s.w = $1 and s.i = l.i and s.quantity < 20",
        |n, p| p.extend([Datum::Int4(1), Datum::Int4((n % 200 + 1) as i32)]),
    );
    database.engine.close();
}
