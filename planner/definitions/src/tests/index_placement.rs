//! Where the entries of indexes are, by what was said and by how the table is distributed.

use archipel_engine::schema::IndexDef;
use archipel_sql::catalog::EntryPlacement;

use super::*;
use crate::row::index_def;

/// Rows of tenants, keyed so that the distribution column comes first.
const ORDERS: &str =
    "create table orders (tenant int, id int, status text, email text not null, primary key (tenant, id));";

fn database(script: &str) -> Database {
    Database::new(&format!("{ORDERS}{script}"))
}

/// An index as the engine gets it.
#[track_caller]
fn index(database: &Database, table: &str, name: &str) -> IndexDef {
    let table = database.table(table);
    let index = table.indexes.iter().find(|index| index.name == name);
    index_def(&table, index.unwrap_or_else(|| panic!("no index {name}")))
}

/// The columns of its key, and whether it lies with its rows.
#[track_caller]
fn shape(database: &Database, table: &str, name: &str) -> (Vec<u16>, bool) {
    let index = index(database, table, name);
    let columns = index.key.iter().map(|part| part.column).collect();
    (columns, index.placement == IndexPlacement::Local)
}

/// The SQLSTATE, message and detail of a statement that fails.
#[track_caller]
fn refusal(database: &mut Database, script: &str) -> (String, String) {
    let error = database.try_run(script).map(drop).expect_err(script);
    let detail = error.fields().detail.clone().unwrap_or_default();
    (format!("{} {}", error.state().as_str(), error.message()), detail)
}

#[test]
fn the_distribution_column_leads_a_prefixed_index() {
    let database = database(
        "create index plain on orders (status);
         create index p on orders (status) with (placement = prefixed);
         create index later on orders (status, tenant, id desc) with (placement = 'PREFIXED');
         create index down on orders (tenant desc, status) with (placement = prefixed);
         create index own on orders (tenant, status) with (placement = prefixed);
         create index g on orders (tenant, status) with (placement = global);
         create unique index u on orders (email, tenant) with (placement = prefixed);
         create index e on orders (lower(email)) with (placement = prefixed);
         create unique index part on orders (tenant, email) with (placement = prefixed) where status = 'x';",
    );
    let shape = |name| shape(&database, "orders", name);
    assert_eq!(shape("plain"), (vec![2], false));
    assert_eq!(shape("p"), (vec![0, 2], true));
    assert_eq!(shape("later"), (vec![0, 2, 1], true));
    assert_eq!(shape("down"), (vec![0, 2], true));
    assert_eq!(shape("own"), (vec![0, 2], true));
    assert_eq!(shape("g"), (vec![0, 2], false));
    assert_eq!(shape("u"), (vec![0, 3], true));
    // What rows store for indexes comes after their columns.
    assert_eq!(shape("e"), (vec![0, 4], true));
    // The first part of a partial unique index is NULL for the rows that it says nothing of.
    assert_eq!(shape("part"), (vec![0, 5, 3], true));
    let lead = index(&database, "orders", "down").key[0];
    assert_eq!(lead, crate::row::table_def(&database.table("orders")).key[0], "as rows' keys begin");
    assert!(index(&database, "orders", "later").key[2].descending);
    // The definition is as it was written.
    let p = database.table("orders").indexes[1].clone();
    assert_eq!((p.columns.len(), p.columns[0].column), (1, 2));
    let later = database.table("orders").indexes[2].clone();
    assert_eq!(later.options, [("placement".to_owned(), "prefixed".to_owned())]);
}

#[test]
fn placements_that_cannot_be_are_refused() {
    let mut database = database("create table loose (a int, b int)");
    let cannot = |index: &str| format!("22023 index \"{index}\" cannot have placement \"prefixed\"");
    let mut check = |script: &str, message: &str, detail: &str| {
        assert_eq!(refusal(&mut database, script), (message.to_owned(), detail.to_owned()), "{script}");
    };
    check(
        "create unique index u on orders (email) with (placement = prefixed)",
        &cannot("u"),
        "It is unique and does not name distribution column \"tenant\".",
    );
    check(
        "alter table orders add constraint c unique (email) with (placement = prefixed)",
        &cannot("c"),
        "It is unique and does not name distribution column \"tenant\".",
    );
    check(
        "create table t (a int primary key, b int, constraint t_b unique (b) with (placement = prefixed))",
        &cannot("t_b"),
        "It is unique and does not name distribution column \"a\".",
    );
    check(
        "create index l on orders (status) with (placement = local)",
        "0A000 placement \"local\" is not supported",
        "",
    );
    check(
        "create index l on orders (status) with (placement = nowhere)",
        "22023 invalid value for enum option \"placement\": nowhere",
        "Valid values are \"prefixed\" and \"global\".",
    );
    check(
        "create index l on orders (status) with (placement)",
        "22023 invalid value for enum option \"placement\": true",
        "Valid values are \"prefixed\" and \"global\".",
    );
    check(
        "create index l on orders (status) with (placement = global, placement = prefixed)",
        "22023 parameter \"placement\" specified more than once",
        "",
    );
    check(
        "create index l on orders using brin (status) with (placement = prefixed)",
        "22023 unrecognized parameter \"placement\"",
        "",
    );
    check(
        "create table t (a int, primary key (a) with (placement = global))",
        "22023 a primary key has no placement of its own",
        "",
    );
    check(
        "alter index orders_pkey set (placement = global)",
        "22023 a primary key has no placement of its own",
        "",
    );
}

#[test]
fn a_column_that_may_be_null_leads_no_index_until_it_may_not() {
    let mut database = Database::new("create table t (a int, b int)");
    database.distribute("create_distributed_table", &["t", "a", "none"]).unwrap();
    let refused = refusal(&mut database, "create index i on t (b) with (placement = prefixed)");
    assert_eq!(refused.1, "Distribution column \"a\" may be NULL.");
    database.run("create index own on t (a, b); alter table t alter a set not null");
    assert_eq!(shape(&database, "t", "own"), (vec![0, 1], true));
    database.run("create index i on t (b) with (placement = prefixed)");
    assert_eq!(shape(&database, "t", "i"), (vec![0, 1], true));
}

/// What an ALTER INDEX asks of the engine.
#[track_caller]
fn operations(database: &mut Database, script: &str) -> Vec<DdlOp> {
    plan(database, script).operations
}

#[track_caller]
fn plan(database: &mut Database, script: &str) -> DdlPlan {
    let mut plans = database.run(script);
    assert_eq!(plans.len(), 1);
    plans.remove(0)
}

#[test]
fn alter_index_makes_the_entries_anew_where_they_belong_elsewhere() {
    let mut database = database("create index i on orders (status)");
    let before = database.table("orders").indexes[0].clone();
    let DdlPlan { operations: made, moved_indexes, .. } =
        plan(&mut database, "alter index i set (placement = prefixed)");
    let [(from, beside)] = moved_indexes[..] else { panic!("{moved_indexes:?}") };
    assert!(from.0 == before.tree && beside.0 > database.table("orders").tree, "{beside:?}");
    let [DdlOp::DropIndex { index: dropped, .. }, DdlOp::CreateIndex { index, .. }] = &made[..] else {
        panic!("{made:?}")
    };
    assert_eq!((dropped.0, index.placement), (before.tree, IndexPlacement::Local));
    assert_eq!(index.key.iter().map(|part| part.column).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(index.id.0, before.tree, "what a block has compiled finds it until COMMIT");
    let after = database.table("orders").indexes[0].clone();
    assert_eq!((after.oid, after.name.as_str(), after.global_group), (before.oid, "i", None));
    // Said once more, or in other words, nothing changes.
    assert!(
        operations(&mut database, "alter index i set (placement = prefixed, fillfactor = 70)").is_empty()
    );
    assert_eq!(operations(&mut database, "alter index i reset (placement)").len(), 2);
    assert!(operations(&mut database, "alter index i set (placement = global)").is_empty(), "as it was");
    assert_eq!(shape(&database, "orders", "i"), (vec![2], false));
    assert_eq!(database.table("orders").indexes[0].options.len(), 2);
    let mut unique = Database::new("create table t (a int primary key, b int unique)");
    let refused = refusal(&mut unique, "alter index t_b_key set (placement = prefixed)");
    assert_eq!(refused.0, "22023 index \"t_b_key\" cannot have placement \"prefixed\"");
}

#[test]
fn indexes_follow_another_distribution_as_far_as_they_can() {
    let mut database = database(
        "create index i on orders (status) with (placement = prefixed);
         create unique index u on orders (email, tenant) with (placement = prefixed);",
    );
    let plan = database.distribute("create_distributed_table", &["orders", "id", "none"]).unwrap();
    assert_eq!(shape(&database, "orders", "i"), (vec![1, 2], true));
    assert_eq!(shape(&database, "orders", "u"), (vec![3, 0], false), "ids do not keep tenants apart");
    let told: Vec<&str> = plan.notices.iter().map(|notice| notice.message()).collect();
    assert_eq!(told, ["entries of index \"u\" are placed by themselves"]);
    database.distribute("create_reference_table", &["orders"]).unwrap();
    assert_eq!(shape(&database, "orders", "i"), (vec![2], true), "there is nothing to be bound by");
    assert_eq!(shape(&database, "orders", "u"), (vec![3, 0], true));
    database.distribute("undistribute_table", &["orders"]).unwrap();
    assert_eq!(shape(&database, "orders", "i"), (vec![0, 2], true));
    assert_eq!(shape(&database, "orders", "u"), (vec![0, 3], true), "what was said stays");
    database.run("alter table orders drop constraint orders_pkey");
    assert_eq!(shape(&database, "orders", "i"), (vec![0, 2], true), "rows are still by tenant");
    database.run("alter table orders drop column tenant");
    assert_eq!(shape(&database, "orders", "i"), (vec![1], false), "by hidden numbers");
    assert_eq!(database.table("orders").indexes.len(), 1);
    database.run("alter table orders add primary key (email)");
    assert_eq!(shape(&database, "orders", "i"), (vec![2, 1], true));
}

#[test]
fn a_constraint_before_its_table_has_a_key_is_placed_when_it_has_one() {
    // As dumps make them: by name.
    let mut database = Database::new("create table t (a int not null, b int)");
    database.run("alter table t add constraint b_a unique (b, a) with (placement = prefixed)");
    assert_eq!(shape(&database, "t", "b_a"), (vec![1, 0], false));
    database.run("alter table t add constraint t_pkey primary key (a)");
    assert_eq!(shape(&database, "t", "b_a"), (vec![0, 1], true));
}

#[test]
fn the_index_of_a_partitioned_table_speaks_for_those_of_its_partitions() {
    let mut database = Database::new(
        "create table m (t int, at int, n int, primary key (t, at)) partition by range (at);
         create table m1 partition of m for values from (0) to (10);
         create index i on m (n) with (placement = prefixed);
         create table m2 partition of m for values from (10) to (20);
         create table m3 (t int not null, at int not null, n int, primary key (t, at));
         create index same on m3 (n) with (placement = prefixed); create index plain on m3 (n);
         alter table m attach partition m3 for values from (20) to (30);",
    );
    for (table, name) in [("m1", "m1_n_idx"), ("m2", "m2_n_idx"), ("m3", "same")] {
        assert_eq!(shape(&database, table, name), (vec![0, 2], true), "{table}");
    }
    assert_eq!(shape(&database, "m3", "plain"), (vec![2], false));
    assert_eq!(database.table("m3").indexes.len(), 2, "the one that is alike is taken");
    let refused = refusal(&mut database, "alter index m1_n_idx set (placement = global)");
    assert_eq!(refused.0, "22023 index \"m1_n_idx\" has the placement of index \"i\"");
    database.run("alter index m1_n_idx set (fillfactor = 70)");
    assert_eq!(fails(&mut database, "alter index i set (placement = global, fillfactor = 70)").0, "42809");
    let made = operations(&mut database, "alter index i set (placement = global)");
    assert_eq!(made.len(), 6, "{made:?}");
    for (table, name) in [("m1", "m1_n_idx"), ("m2", "m2_n_idx"), ("m3", "same")] {
        assert_eq!(shape(&database, table, name), (vec![2], false), "{table}");
    }
    let root = database.table("m").indexes[0].clone();
    assert_eq!(database.table("m").entry_placement(&root), EntryPlacement::Apart);
    database.run("create table k (t int, n int) partition by list (t); create table k1 partition of k for values in (1)");
    // The key, which brings the distribution column, may come later: tools that restore dumps take them in any order.
    database.run("create index k_n on k (n) with (placement = prefixed)");
    assert_eq!(shape(&database, "k1", "k1_n_idx"), (vec![1], false));
    database.run("alter table k1 add primary key (t)");
    assert_eq!(shape(&database, "k1", "k1_n_idx"), (vec![0, 1], true));
}

#[test]
fn like_copies_what_was_said() {
    let database = database(
        "create index i on orders (status) with (placement = prefixed);
         create table twin (like orders including all);",
    );
    assert_eq!(shape(&database, "twin", "twin_status_idx"), (vec![0, 2], true));
}

#[test]
fn other_columns_come_and_go_under_a_prefixed_index() {
    let mut database = Database::new(
        "create table t (x int, a int, b int, c text, primary key (a));
         create index i on t (b) with (placement = prefixed)",
    );
    assert_eq!(shape(&database, "t", "i"), (vec![1, 2], true));
    database.run(
        "alter table t drop column x; alter table t add column d int; alter table t alter a type bigint",
    );
    assert_eq!(shape(&database, "t", "i"), (vec![0, 1], true));
    database.run("alter table t alter b type bigint; alter index i rename to j; alter table t rename a to k");
    assert_eq!(shape(&database, "t", "j"), (vec![0, 1], true));
}
