mod index_placement;

use archipel_engine::schema::{IndexPlacement, Placement};
use archipel_engine::txn::DdlOp;
use archipel_sql::catalog::{Catalog, CatalogChange, Distribution, Numbers, ObjectNumbers, Table, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::SqlState;
use archipel_sql::function::FunctionContext;
use archipel_sql::parser::parse;
use archipel_sql::type_kind::NUMBERS_END;

use super::*;
use crate::work::plan::trees_of;

/// A catalog that DDL scripts change as the server would change it.
struct Database {
    catalog: Catalog,
    path: Vec<String>,
}

impl Database {
    fn new(script: &str) -> Database {
        let mut database =
            Database { catalog: Catalog::initial(Vec::new()), path: vec!["public".to_string()] };
        database.run(script);
        database
    }

    fn try_run(&mut self, script: &str) -> Result<Vec<DdlPlan>> {
        let mut plans = Vec::new();
        for statement in parse(script)? {
            let context = FunctionContext::detached();
            let env = DdlEnv {
                catalog: &self.catalog,
                search_path: &self.path,
                context: &context,
                system: false,
                temporary_schema: "pg_temp_1",
                copies: &Copies::default(),
                numbers: &ObjectNumbers::new(self.catalog.numbers()),
                roles: Default::default(),
                others: &[],
            };
            let plan = plan(&statement.statement, &env)?;
            self.catalog = self.catalog.apply(&plan.changes);
            plans.push(plan);
        }
        Ok(plans)
    }

    #[track_caller]
    fn run(&mut self, script: &str) -> Vec<DdlPlan> {
        match self.try_run(script) {
            Ok(plans) => plans,
            Err(error) => panic!("{script}: {error:?}"),
        }
    }

    fn distribute(&mut self, name: &str, args: &[&str]) -> Result<DdlPlan> {
        let mut args: Vec<Datum> = args.iter().map(|arg| Datum::text(arg)).collect();
        if args.len() == 3 {
            args.insert(2, Datum::text("range"));
        }
        let call = DistributionCall::from_function(name, &args).expect("a distribution function")?;
        let context = FunctionContext::detached();
        let env = DdlEnv {
            catalog: &self.catalog,
            search_path: &self.path,
            context: &context,
            system: false,
            temporary_schema: "pg_temp_1",
            copies: &Copies::default(),
            numbers: &ObjectNumbers::new(self.catalog.numbers()),
            roles: Default::default(),
            others: &[],
        };
        let plan = plan_distribution(&call, &env)?;
        self.catalog = self.catalog.apply(&plan.changes);
        Ok(plan)
    }

    #[track_caller]
    fn table(&self, name: &str) -> TableRef {
        self.catalog.table(None, name, &self.path).unwrap_or_else(|| panic!("no table {name}"))
    }
}

/// The SQLSTATE and message of a statement that fails.
#[track_caller]
fn fails(database: &mut Database, script: &str) -> (String, String) {
    match database.try_run(script) {
        Ok(_) => panic!("{script} was accepted"),
        Err(error) => (error.state().as_str().to_string(), error.message().to_string()),
    }
}

#[track_caller]
fn check_failure(setup: &str, script: &str, state: &str, message: &str) {
    let found = fails(&mut Database::new(setup), script);
    assert_eq!((found.0.as_str(), found.1.as_str()), (state, message), "{script}");
}

fn group(table: &Table) -> u32 {
    table.group().expect("a distributed table")
}

#[test]
fn constraints_are_named_as_postgresql_names_them() {
    let database = Database::new(
        "create table r (id int primary key);
         create table t (a int primary key, b int unique check (b > 0), c text,
             check (a < b), unique (b, c), foreign key (b) references r,
             constraint mine check (c <> ''));
         create index on t (c); create index on t (c); create index on t (c, b);",
    );
    let t = database.table("t");
    assert_eq!(t.primary_key.as_ref().unwrap().name, "t_pkey");
    let checks: Vec<_> = t.checks.iter().map(|c| (c.name.as_str(), c.condition.as_str())).collect();
    assert_eq!(checks, [("t_b_check", "b > 0"), ("t_check", "a < b"), ("mine", "c <> ''")]);
    let indexes: Vec<_> = t.indexes.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(indexes, ["t_b_key", "t_b_c_key", "t_c_idx", "t_c_idx1", "t_c_b_idx"]);
    assert_eq!(t.foreign_keys[0].name, "t_b_fkey");
}

#[test]
fn a_serial_column_owns_a_sequence_and_goes_with_it() {
    let mut database = Database::new(
        "create table t (id bigserial primary key, n serial, g int generated always as identity)",
    );
    let t = database.table("t");
    let own = database.catalog.sequence(None, "t_id_seq", &database.path).unwrap();
    assert_eq!(t.columns[0].default, Some(format!("nextval('\u{1}{}'::regclass)", own.oid.0)));
    assert!(t.columns[1].not_null && t.columns[2].identity.is_some());
    let n = database.catalog.sequence(None, "t_n_seq", &database.path).unwrap();
    assert_eq!((n.max_value, n.owned_by), (i64::from(i32::MAX), Some((t.oid, 1))));
    let plans = database.run("drop table t");
    assert_eq!(database.catalog.sequences().count(), 0);
    let sequences = plans[0].operations.iter().filter(|op| matches!(op, DdlOp::DropSequence(_))).count();
    assert_eq!(sequences, 3);
}

#[test]
fn tables_are_distributed_by_their_first_key_column_and_colocated_by_foreign_key() {
    let database = Database::new(
        "create table warehouse (w_id int primary key);
         create table district (d_w_id int references warehouse, d_id int, primary key (d_w_id, d_id));
         create table other (x int references warehouse, y int primary key);
         create table history (h_w_id int not null references warehouse, amount numeric(6,2));
         create table loose (a int);
         create table wide (w bigint primary key references warehouse);",
    );
    let warehouse = database.table("warehouse");
    assert_eq!(group(&warehouse), group(&database.table("district")));
    assert_ne!(group(&warehouse), group(&database.table("other")));
    assert_eq!(
        database.table("history").distribution,
        Distribution::Column { column: 0, group: group(&warehouse) }
    );
    assert!(matches!(database.table("loose").distribution, Distribution::HiddenId { .. }));
    // Another width is other bytes: no shared boundaries.
    assert_ne!(group(&warehouse), group(&database.table("wide")));
}

#[test]
fn an_index_is_local_if_it_begins_with_the_distribution_column() {
    let mut database = Database::new("create table t (a int, b int, c text unique, primary key (a, b))");
    database.run(
        "create index here on t (a, c); create index there on t (b); create unique index down on t (a desc)",
    );
    let t = database.table("t");
    let global: Vec<bool> = t.indexes.iter().map(|index| index.global_group.is_some()).collect();
    assert_eq!(global, [true, false, true, true]);
    let plan = database.distribute("create_reference_table", &["t"]).unwrap();
    assert!(database.table("t").indexes.iter().all(|index| index.global_group.is_none()));
    let [DdlOp::AlterTable { def, columns }] = &plan.operations[..] else { panic!("{:?}", plan.operations) };
    assert_eq!((def.placement, columns.len()), (Placement::Reference, 3));
    assert!(def.indexes.iter().all(|index| index.placement == IndexPlacement::Local));
}

#[test]
fn distribution_functions_move_tables_between_groups() {
    let mut database = Database::new(
        "create table a (x int primary key); create table b (y int, x int not null, primary key (y, x));
         create table c (n bigint primary key); create table r (i int primary key);",
    );
    assert!(database.distribute("create_distributed_table", &["a", "x"]).unwrap().operations.is_empty());
    let plan = database.distribute("create_distributed_table", &["b", "x", "a"]).unwrap();
    assert_eq!(database.table("b").storage_key(), [1, 0]);
    assert_eq!(group(&database.table("a")), group(&database.table("b")));
    assert_eq!(plan.operations.len(), 1);
    let error = database.distribute("create_distributed_table", &["c", "n", "a"]).unwrap_err();
    assert_eq!(error.message(), "cannot colocate tables \"a\" and \"c\"");
    database.distribute("undistribute_table", &["b"]).unwrap();
    assert_eq!(database.table("b").storage_key(), [0, 1]);
    let error = database.distribute("create_distributed_table", &["nothing", "n"]).unwrap_err();
    assert_eq!(error.state(), SqlState::UNDEFINED_TABLE);
    let error = database.distribute("create_distributed_table", &["a", "z"]).unwrap_err();
    assert_eq!(error.state(), SqlState::UNDEFINED_COLUMN);
}

#[test]
fn create_table_refuses_what_postgresql_refuses() {
    let check =
        |script, state, message| check_failure("create table t (a int primary key)", script, state, message);
    check("create table t (b int)", "42P07", "relation \"t\" already exists");
    check("create table s.t (b int)", "3F000", "schema \"s\" does not exist");
    check("create table u (a int, a text)", "42701", "column \"a\" specified more than once");
    check("create table u (a nonsense)", "42704", "type \"nonsense\" does not exist");
    check("create table u (ctid int)", "42701", "column name \"ctid\" conflicts with a system column name");
    check(
        "create table u (a int primary key, b int primary key)",
        "42P16",
        "multiple primary keys for table \"u\" are not allowed",
    );
    check("create table u (a int, primary key (b))", "42703", "column \"b\" named in key does not exist");
    check(
        "create table u (a int, unique (a, a))",
        "42701",
        "column \"a\" appears twice in unique constraint",
    );
    check("create table u (a int references nowhere)", "42P01", "relation \"nowhere\" does not exist");
    check(
        "create table u (a text references t)",
        "42804",
        "foreign key constraint \"u_a_fkey\" cannot be implemented",
    );
    check("create table u (a int, check (b > 0))", "42703", "column \"b\" does not exist");
    check(
        "create table u (a int check (a + 1))",
        "42804",
        "argument of CHECK must be type boolean, not type integer",
    );
    check("create table u (a int default b)", "0A000", "cannot use column reference in DEFAULT expression");
    check(
        "create table u (a int not null null)",
        "42601",
        "conflicting NULL/NOT NULL declarations for column \"a\" of table \"u\"",
    );
    check("create table u (a varchar(0))", "22023", "length for type varchar must be at least 1");
    check("create table u (a numeric(1001))", "22023", "NUMERIC precision 1001 must be between 1 and 1000");
    check(
        "create table u (a text generated always as identity)",
        "22023",
        "identity column type must be smallint, integer, or bigint",
    );
    check("create table u (a int) with (nonsense = 1)", "22023", "unrecognized parameter \"nonsense\"");
    check(
        "create table u (a int primary key deferrable)",
        "0A000",
        "a DEFERRABLE primary key is not supported",
    );
    check("create table pg_catalog.u (a int)", "42501", "permission denied to create \"pg_catalog.u\"");
    check("create schema pg_mine", "42939", "unacceptable schema name \"pg_mine\"");
    check("create rule r as on insert to t do nothing", "0A000", "CREATE RULE is not supported");
    check("create view v as select nosuch from t", "42703", "column \"nosuch\" does not exist");
}

#[test]
fn if_not_exists_and_if_exists_say_so() {
    let mut database = Database::new("create table t (a int)");
    let plans = database.run("create table if not exists t (b text); drop table if exists nothing, t");
    assert_eq!(plans[0].notices[0].message(), "relation \"t\" already exists, skipping");
    assert!(plans[0].is_empty());
    assert_eq!(plans[1].notices[0].message(), "table \"nothing\" does not exist, skipping");
    assert!(database.catalog.table(None, "t", &database.path).is_none());
}

#[test]
fn drop_respects_foreign_keys_unless_it_cascades() {
    let mut database =
        Database::new("create table t (a int primary key); create table u (a int references t)");
    assert_eq!(
        fails(&mut database, "drop table t"),
        ("2BP01".to_string(), "cannot drop table t because other objects depend on it".to_string())
    );
    let plans = database.run("drop table t cascade");
    assert_eq!(plans[0].notices[0].message(), "drop cascades to constraint u_a_fkey on table u");
    assert!(database.table("u").foreign_keys.is_empty());
    let mut together =
        Database::new("create table t (a int primary key); create table u (a int references t)");
    together.run("drop table t, u");
    assert_eq!(together.catalog.tables().count(), 0);
}

#[test]
fn truncate_takes_the_tables_that_point_here() {
    let mut database =
        Database::new("create table t (a int primary key); create table u (a int references t)");
    assert_eq!(fails(&mut database, "truncate t").0, "0A000");
    let plans = database.run("truncate t, u; truncate t cascade");
    assert_eq!(plans[0].operations.len(), 2);
    assert_eq!(plans[1].notices[0].message(), "truncate cascades to table \"u\"");
}

#[test]
fn a_primary_key_added_later_moves_the_rows() {
    let mut database = Database::new("create table t (a int, b text)");
    let plans = database.run("alter table t add primary key (a)");
    let t = database.table("t");
    assert!(matches!(t.distribution, Distribution::Column { column: 0, .. }) && t.columns[0].not_null);
    let [DdlOp::AlterTable { def, columns }] = &plans[0].operations[..] else { panic!() };
    assert_eq!((def.columns.len(), columns.len(), def.key.len()), (2, 2, 1));
    assert!(plans[0].validations[0].query.contains("IS NULL"));
    let plans = database.run("alter table t drop constraint t_pkey");
    let [DdlOp::AlterTable { def, columns }] = &plans[0].operations[..] else { panic!() };
    assert_eq!((def.columns.len(), columns.len()), (3, 3));
}

#[test]
fn columns_are_added_dropped_and_renamed() {
    let mut database = Database::new("create table t (a int primary key, b int check (b > 0), c text)");
    database.run("alter table t add column d numeric(5,2) default 1.5; alter table t rename b to bb; alter table t drop column c");
    let t = database.table("t");
    let names: Vec<_> = t.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["a", "bb", "d"]);
    assert_eq!(t.checks[0].condition, "bb > 0");
    assert_eq!(fails(&mut database, "alter table t add column d int").0, "42701");
    database.run("alter table t drop column a");
    let t = database.table("t");
    assert!(t.primary_key.is_none() && t.columns.len() == 2, "its key goes with a column");
    assert_eq!(fails(&mut database, "alter table nothing add column d int").0, "42P01");
}

#[test]
fn routines_overload_and_replace() {
    let mut database = Database::new(
        "create function f(a int, b text default 'x') returns int language sql as 'select a';
         create function f(a text) returns int language sql as 'select 1';
         create procedure p(in a int, inout b int) language plpgsql as $$ begin b := a; end $$;
         create function many(n int) returns table (x int, y text) language sql as 'select 1, ''a''';",
    );
    let p = database.catalog.routines(None, "p", &database.path).remove(0);
    assert_eq!(p.result, archipel_sql::types::Type::RECORD);
    let many = database.catalog.routines(None, "many", &database.path).remove(0);
    assert!(many.returns_set && many.output_args().count() == 2 && many.input_args().count() == 1);
    let again = "create function f(a int, b text) returns int language sql as 'select 2'";
    assert_eq!(
        fails(&mut database, again),
        ("42723".into(), "function \"f\" already exists with same argument types".into())
    );
    let removed = "create or replace function f(a int, b text) returns int language sql as 'select 2'";
    assert_eq!(fails(&mut database, removed).1, "cannot remove parameter defaults from existing function");
    let oid = database.catalog.routine_in("public", "f", &[archipel_sql::types::Oid::TEXT]).unwrap().oid;
    database.run("create or replace function f(a text) returns int language sql as 'select 3'");
    let f = database.catalog.routine_by_oid(oid).unwrap();
    assert_eq!((f.source.as_str(), f.version), ("select 3", 2));
    assert_eq!(
        fails(&mut database, "drop function f"),
        ("42725".into(), "function name \"f\" is not unique".into())
    );
    assert_eq!(
        fails(&mut database, "drop procedure f(text)"),
        ("42809".into(), "f(text) is not a procedure".into())
    );
    assert_eq!(
        fails(&mut database, "drop function g(int)"),
        ("42883".into(), "function g(integer) does not exist".into())
    );
    let plans = database.run("drop function f(int, text); drop function if exists g(int); drop procedure p");
    assert_eq!(plans[1].notices[0].message(), "function g(pg_catalog.int4) does not exist, skipping");
    assert_eq!(
        fails(&mut database, "create function h(a int) language sql as 'select 1'").1,
        "function result type must be specified"
    );
    assert_eq!(fails(&mut database, "create function h() returns int language ruby as ''").0, "42704");
}

#[test]
fn numbers_never_come_back() {
    let mut database = Database::new("create table t (a int primary key)");
    let before = database.table("t");
    database.run("drop table t; create table t (a int primary key)");
    let after = database.table("t");
    assert!(after.tree > before.tree && after.oid > before.oid && group(&after) > group(&before));
}

#[test]
fn catalog_rows_read_back_as_they_were_written() {
    let database = Database::new(
        "create schema s; create table s.t (a serial primary key, b int default 3 check (b > 1), unique (b));
         create function f() returns int language sql as 'select 1'; comment on table s.t is 'hello';
         comment on column s.t.b is 'column'",
    );
    let mut again = Catalog::initial(Vec::new());
    let mut objects: Vec<archipel_sql::catalog::Object> = Vec::new();
    use archipel_sql::catalog::Object;
    objects.extend(database.catalog.schemas().map(|s| Object::Schema((**s).clone())));
    objects.extend(database.catalog.tables().cloned().map(Object::Table));
    objects.extend(database.catalog.sequences().cloned().map(Object::Sequence));
    objects.extend(database.catalog.routines_all().cloned().map(Object::Routine));
    objects.extend(database.catalog.comments_all().map(|c| Object::Comments((**c).clone())));
    for object in objects {
        let payload = object.to_payload().unwrap();
        let read = Object::from_payload(object.kind(), &payload).unwrap();
        assert_eq!(read, object);
        again = again.apply(&[CatalogChange::Put(read)]);
    }
    let t = again.table(Some("s"), "t", &[]).unwrap();
    assert_eq!(again.comment(t.oid, 0).as_deref(), Some("hello"));
    assert_eq!(again.comment(t.oid, 2).as_deref(), Some("column"));
    assert!(again.relation(Some("s"), "t_b_key", &[]).is_some());
}

#[test]
fn a_migration_runs_as_the_system_and_says_so() {
    let catalog = Catalog::new(Vec::new());
    let context = FunctionContext::detached();
    let env = DdlEnv {
        catalog: &catalog,
        search_path: &[],
        context: &context,
        system: true,
        temporary_schema: "pg_temp_1",
        copies: &Copies::default(),
        numbers: &ObjectNumbers::new(catalog.numbers()),
        roles: Default::default(),
        others: &[],
    };
    let script = "create schema if not exists pg_catalog; create schema if not exists public;
                  comment on schema public is 'standard public schema'";
    let after = catalog.apply(&plan_migration(1, "schemas", script, &env).unwrap().changes);
    assert_eq!((catalog.migration(), after.migration()), (0, 1));
    let public = after.schema("public").unwrap();
    assert_eq!((public.oid, after.comment(public.oid, 0).is_some()), (archipel_sql::catalog::PUBLIC, true));
}

#[test]
fn partitions_lie_together_and_a_partitioned_table_has_no_tree() {
    let mut database = Database::new(
        "create table p (k int, b int, primary key (k, b)) partition by list (b);
         create table p1 partition of p for values in (1);
         create table p2 partition of p for values in (2) partition by range (b);
         create table p21 partition of p2 for values from (2) to (3);
         create table c (k int not null, b int not null, foreign key (k, b) references p);
         create table p3 (b int not null, k int not null);",
    );
    let plans = database.run("alter table p attach partition p3 for values in (3)");
    assert!(!plans[0].operations.is_empty());
    let p1 = database.table("p1");
    for name in ["p21", "p3", "c"] {
        assert_eq!(group(&database.table(name)), group(&p1), "{name}");
    }
    for name in ["p", "p2"] {
        let table = database.table(name);
        assert_eq!((table.tree, table.distribution), (0, Distribution::None), "{name}");
    }
    // Nothing is asked of the engine about a tree that is not there.
    let plans = database
        .run("create index on p (b); alter table p add x int; truncate p cascade; drop table p cascade");
    let trees = plans.iter().flat_map(|plan| &plan.operations).flat_map(trees_of);
    assert!(trees.into_iter().all(|tree| tree.0 != 0));
}

#[test]
fn what_a_parent_has_its_partitions_have() {
    let mut database = Database::new(
        "create table r (id int primary key);
         create table p (a int, b text default 'x', r int references r, check (p.a > 0)) partition by list (a);
         create table p1 partition of p (b default 'y') for values in (1);
         create index on p (b);
         alter table p add constraint positive check (r > 0);
         alter table p add column c int not null default 5;
         alter table p rename column b to bb;",
    );
    let p1 = database.table("p1");
    let names: Vec<&str> = p1.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["a", "bb", "r", "c"]);
    assert!(p1.columns.iter().all(|column| column.inherited) && p1.columns[3].not_null);
    assert_eq!(p1.columns[1].default.as_deref(), Some("'y'"));
    let checks: Vec<(&str, &str)> =
        p1.checks.iter().map(|check| (check.name.as_str(), check.condition.as_str())).collect();
    assert_eq!(checks, [("p_a_check", "p1.a > 0"), ("positive", "r > 0")]);
    assert_eq!(p1.indexes[0].name, "p1_b_idx");
    assert_eq!(p1.foreign_keys[0].parent, Some(database.table("p").foreign_keys[0].oid));
    database.run("alter table p detach partition p1; drop table p");
    let p1 = database.table("p1");
    assert!(p1.columns.iter().all(|column| !column.inherited) && p1.bound.is_none());
    assert_eq!(p1.foreign_keys[0].parent, None);
}

#[test]
fn no_numbers_are_drawn_that_types_have_no_room_for() {
    let mut database = Database::new("create table t (a int)");
    let numbers = Numbers { oid: NUMBERS_END - 3, ..database.catalog.numbers() };
    database.catalog = database.catalog.apply(&[CatalogChange::Put(Object::Numbers(numbers))]);
    database.run("create type pair as (a int)");
    let (state, _) = fails(&mut database, "create type mood as enum ('up', 'down')");
    assert_eq!(state, "54000");
    database.run("drop table t");
}
