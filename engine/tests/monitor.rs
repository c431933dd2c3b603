//! The monitor on a virtual clock: what it does about skew, hot keys and lost executors, and that
//! it does nothing about a load that is steady.

#[path = "common/clocked.rs"]
mod clocked;
mod common;

use std::sync::atomic::Ordering;

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::id::{ExecutorId, GroupId, TreeId};
use archipel_engine::random::RandomStream;
use archipel_engine::schema::{Placement, TableDef};
use archipel_engine::{
    Advice, DdlOp, Decision, ExecutorHandle, Inserted, Mark, MonitorSettings, REFERENCE_GROUP, Reason,
    Repartition, RepartitionRefused, SliceBudget, Stop, Told,
};
use clocked::*;
use common::*;

/// Half of the load in a fifth of the keys.
fn skewed(random: &mut RandomStream) -> i64 {
    match random.below(2) {
        0 => random.below(ROWS as u64 / 5) as i64,
        _ => even(random),
    }
}

#[test]
fn a_steady_load_is_left_alone() {
    let mut world = world();
    world.load(120, even);
    let decisions = world.engine.monitor_decisions();
    assert_eq!(world.repartitions(), 0, "{decisions:?}");
    assert_eq!(decisions[0].reason, Reason::FirstTrace);
    assert!(decisions.len() <= 3, "{decisions:?}");
    let counts = world.engine.run_counts();
    assert!(counts.runs > 100_000, "{counts:?}");
}

/// Ten minutes as a machine shows them that others use, too: transactions take what they take, now
/// and then one is interrupted, either executor is slower for a while, and clients come more and
/// less often. Where the load lies does not change, and neither do the partitions.
#[test]
fn ten_steady_minutes_on_a_busy_machine_are_left_alone() {
    let mut world = world();
    let (mut slow, mut clients) = ([0; 2], ACTIONS);
    for sample in 0..600 * SAMPLES_A_SECOND {
        if sample % 3 == 0 {
            slow = [(); 2].map(|()| world.random.below(80));
        }
        if sample % 50 == 0 {
            clients = ACTIONS / 3 + world.random.below(ACTIONS);
        }
        let come = clients + world.random.below(clients / 4);
        for _ in 0..come {
            let account = even(&mut world.random);
            let takes = 2_000 + world.random.below(8_000);
            let interrupted = if world.random.below(2_000) == 0 { 2_000_000 } else { 0 };
            let slower = slow[usize::from(account >= ROWS / 2)];
            world.read(account, takes + takes * slower / 1_000 + interrupted);
        }
        world.pass();
    }
    let decisions = world.engine.monitor_decisions();
    assert_eq!(world.repartitions(), 0, "{decisions:?}");
    // They were looked at all the same.
    assert!(decisions.len() >= 5, "{decisions:?}");
    assert!(decisions.iter().any(|decision| decision.reason == Reason::Throughput), "{decisions:?}");
}

/// Fewer clients come, and for so many samples the second executor is slower. The world, and after how
/// many samples it was repartitioned.
fn slowed(slow_samples: u64) -> (World, Option<u64>) {
    const CLIENTS: u64 = 10_000;
    const LONGEST: u64 = 15 * SAMPLES_A_SECOND;
    let mut world = world();
    let sample = |world: &mut World, clients: u64, slower: u64| {
        for _ in 0..clients {
            let account = even(&mut world.random);
            world.read(account, if account < ROWS / 2 { 5_000 } else { 5_000 + slower });
        }
        world.pass();
    };
    for _ in 0..LONGEST {
        sample(&mut world, CLIENTS, 0);
    }
    assert_eq!(world.repartitions(), 0, "{:?}", world.engine.monitor_decisions());
    for number in 0..LONGEST {
        sample(&mut world, CLIENTS * 3 / 4, if number < slow_samples { 2_250 } else { 0 });
        if world.repartitions() > 0 {
            return (world, Some(number));
        }
    }
    (world, None)
}

#[test]
fn a_core_that_is_slower_for_a_moment_is_not_taken_for_load() {
    let (world, done) = slowed(u64::MAX);
    let decisions = world.engine.monitor_decisions();
    let decision = decisions.last().expect("there is one");
    assert_eq!(decision.reason, Reason::Throughput, "{decisions:?}");
    // Two windows of three samples, and two more: other changes are followed after the first two.
    assert!(decision.watched_nanos > 2_900_000_000, "{decision:?}");
    // The same again, but for the last six.
    let (world, again) = slowed(done.expect("what lasts is followed") - 6);
    assert_eq!(again, None, "{:?}", world.engine.monitor_decisions());
}

#[test]
fn a_change_while_a_repartitioning_is_measured_is_followed_and_not_held_against_it() {
    let mut world = world();
    world.load(10, even);
    let last = |random: &mut RandomStream| ROWS - 1 - skewed(random);
    while world.repartitions() == 0 {
        world.load_samples(1, skewed);
    }
    // Before anything of it was measured the load changes sides.
    world.load(5, last);
    let acted = |world: &World| -> Vec<Decision> {
        let decisions = world.engine.monitor_decisions().into_iter();
        decisions.filter(|decision| decision.verdict.name() == "repartitioned").collect()
    };
    let decisions = acted(&world);
    assert!(decisions.len() >= 2, "{:?}", world.engine.monitor_decisions());
    assert_eq!(decisions[0].measured_gain, None, "of the load it was made for nothing was left");
    for share in world.shares() {
        assert!((0.42..0.58).contains(&share), "{:?}", world.shares());
    }
    let told = world.engine.monitor_decisions();
    assert!(told.iter().all(|decision| decision.verdict != Told::HeldOff), "{told:?}");
}

#[test]
fn a_load_that_changes_while_it_is_watched_is_followed_by_its_next_two_windows() {
    let last = |random: &mut RandomStream| ROWS - 1 - skewed(random);
    // How long it was watched, if the load changes sides so many samples after it became skewed.
    let watched = |samples: u64| {
        let mut world = world();
        world.load(10, even);
        world.load_samples(samples, skewed);
        for _ in 0..10 * SAMPLES_A_SECOND {
            if world.repartitions() == 0 {
                world.load_samples(1, last);
            }
        }
        let decisions = world.engine.monitor_decisions();
        let decision = decisions.iter().rfind(|decision| decision.verdict.name() == "repartitioned");
        decision.expect("there is one").watched_nanos / 100_000_000
    };
    let watched: Vec<u64> = (2..6).map(watched).collect();
    // Two windows of three samples, or three of them where the first pair disagrees.
    assert!(watched.iter().all(|tenths| *tenths == 15 || *tenths == 22), "{watched:?}");
    assert!(watched.contains(&22), "{watched:?}");
}

#[test]
fn a_key_that_becomes_hot_while_a_load_is_watched_gets_a_partition_of_its_own() {
    const HOT: i64 = 1_234;
    for samples in 2..6 {
        let mut world = world();
        world.load(10, even);
        // Seen, and in the middle of its windows it goes to one key.
        world.load_samples(samples, skewed);
        world.load(8, |random| if random.below(2) == 0 { HOT } else { even(random) });
        let routing = world.engine.routing();
        let lows: Vec<_> = routing.routes(GROUP).iter().map(|route| route.low.clone()).collect();
        let told = world.engine.monitor_decisions();
        assert!(lows.contains(&account_key(HOT)), "{samples}: {told:?}");
    }
}

#[test]
fn reference_tables_that_are_written_all_the_time_are_told_of() {
    let mut world = world();
    ddl(&world.engine, DdlOp::CreateTable(items_table())).expect("the table is made");
    let write = |world: &World, price: i64| {
        let clock = world.clock.clone();
        let written = run(
            &world.engine,
            |_, claims| claims.add_group(REFERENCE_GROUP),
            move |txn| {
                clock.0.fetch_add(20_000, Ordering::Relaxed);
                let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
                let row = table.layout.encode_row(&[Cell::Int4(1), Cell::Int8(price)]);
                if txn.insert(&table, &item_key(1), &row)? == Inserted::Ok {
                    return Ok(());
                }
                let _ = txn.update(&table, &item_key(1), &[(1, Cell::Int8(price))])?;
                Ok(())
            },
        );
        written.0.expect("written");
    };
    for sample in 0..8 * SAMPLES_A_SECOND {
        for price in 0..ACTIONS / 2 {
            let account = even(&mut world.random);
            world.read(account, 10_000);
            write(&world, (sample * ACTIONS + price) as i64);
        }
        world.pass();
    }
    let decisions = world.engine.monitor_decisions();
    let told = decisions.iter().find_map(|decision| decision.advice.as_ref());
    let Some(Advice::HotReference { share }) = told else { panic!("{decisions:?}") };
    assert!((0.4..0.9).contains(share), "{share}");
}

#[test]
fn skew_is_spread_and_the_gain_is_as_forecast() {
    let mut world = world();
    world.load(10, even);
    let before = world.engine.monitor_decisions().len();
    world.load(5, skewed);
    let decisions = world.engine.monitor_decisions();
    let acted: Vec<_> =
        decisions[before..].iter().filter(|decision| decision.verdict.name() == "repartitioned").collect();
    assert_eq!(acted.len(), 1, "{decisions:?}");
    let decision = acted[0];
    assert!(matches!(decision.reason, Reason::Imbalance | Reason::Mix), "{decision:?}");
    assert!(decision.watched_nanos <= 2_000_000_000, "{decision:?}");
    assert!(decision.before.imbalance > 0.2 && decision.after.imbalance < 0.05, "{decision:?}");
    assert!(decision.splits + decision.moves > 0 && decision.refused == 0, "{decision:?}");
    let measured = decision.measured_gain.expect("measured afterwards");
    assert!((measured / decision.predicted_gain - 1.0).abs() < 0.25, "{decision:?}");
    for share in world.shares() {
        assert!((0.45..0.55).contains(&share), "{:?}", world.shares());
    }
    let routing = world.engine.routing();
    for done in world.engine.repartitions().iter().filter(|done| done.decision > 0) {
        assert_eq!(done.decision, decision.id);
    }
    // What is settled stays so.
    world.load(60, skewed);
    assert_eq!(world.engine.routing().version, routing.version, "{:?}", world.engine.monitor_decisions());
    // And when the skew goes, that is followed too.
    world.load(5, even);
    for share in world.shares() {
        assert!((0.42..0.58).contains(&share), "{:?}", world.shares());
    }
}

#[test]
fn a_hot_key_gets_a_partition_of_its_own() {
    let mut world = world();
    let hot = |random: &mut RandomStream| if random.below(5) < 3 { 1_234 } else { even(random) };
    world.load(20, hot);
    let routing = world.engine.routing();
    let routes = routing.routes(GROUP);
    let at = routes.iter().position(|route| route.low == account_key(1_234));
    let at = at.unwrap_or_else(|| panic!("{:?}", world.engine.monitor_decisions()));
    assert_eq!(routes[at + 1].low, account_key(1_235));
    let decisions = world.engine.monitor_decisions();
    let told = decisions.iter().find_map(|decision| decision.advice.as_ref());
    let Some(Advice::HotKey { group, key, share }) = told else { panic!("{decisions:?}") };
    assert_eq!((*group, &key[..]), (GROUP, &account_key(1_234)[..]));
    assert!((0.5..0.7).contains(share), "{share}");
    let changes = world.repartitions();
    world.load(60, hot);
    assert_eq!(world.repartitions(), changes, "{:?}", world.engine.monitor_decisions());
}

/// Ninety of a hundred come to two hundred neighbours: all in one sub-partition at first, so that no cut
/// that is known divides them.
#[test]
fn a_hot_range_within_one_sub_partition_is_spread() {
    let mut world = world();
    let first = ROWS / 4 + 17;
    let hot = |random: &mut RandomStream| match random.below(10) {
        0 => even(random),
        _ => first + random.below(200) as i64,
    };
    world.load(20, hot);
    for share in world.shares() {
        assert!((0.42..0.58).contains(&share), "{:?} {:?}", world.shares(), world.engine.monitor_decisions());
    }
    let changes = world.repartitions();
    world.load(60, hot);
    assert_eq!(world.repartitions(), changes, "{:?}", world.engine.monitor_decisions());
}

/// A table of numbered rows, `grow (id int8 primary key, v int8)`.
const GROW: TreeId = TreeId(90);

/// Adds a row that nobody has named beforehand: its number is drawn when the run gets there. The run takes so
/// much longer.
fn append(world: &World, id: i64, nanos: u64) {
    let clock = world.clock.clone();
    let added = run(
        &world.engine,
        |_, _| {},
        move |txn| {
            clock.0.fetch_add(nanos, Ordering::Relaxed);
            let table = txn.table(GROW).ok_or(Stop::Recompile)?;
            let row = table.layout.encode_row(&[Cell::Int8(id), Cell::Int8(1)]);
            txn.insert(&table, &account_key(id), &row)
        },
    );
    assert_eq!(added.0, Ok(Inserted::Ok));
}

#[test]
fn a_growing_end_is_told_of_and_not_split_in_vain() {
    let mut world = world();
    let grow = TableDef {
        id: GROW,
        name: "grow".to_owned(),
        columns: vec![ColumnKind::Int8, ColumnKind::Int8],
        key: vec![key_column(0)],
        placement: Placement::Distributed { group: GroupId(GROW.0) },
        indexes: Vec::new(),
    };
    ddl(&world.engine, DdlOp::CreateTable(grow)).expect("the table is made");
    let mut next = 0;
    for _ in 0..30 * SAMPLES_A_SECOND {
        for _ in 0..ACTIONS {
            append(&world, next, 10_000);
            next += 1;
            // Something else is asked for now and then.
            if next % 50 == 0 {
                let account = even(&mut world.random);
                world.read(account, 10_000);
            }
        }
        world.pass();
    }
    let decisions = world.engine.monitor_decisions();
    assert_eq!(world.repartitions(), 0, "{decisions:?}");
    let told = decisions.iter().find_map(|decision| decision.advice.as_ref());
    let Some(Advice::GrowingEnd { group, share }) = told else { panic!("{decisions:?}") };
    assert_eq!(*group, GroupId(GROW.0));
    assert!(*share > 0.8, "{share}");
}

/// A thousand transactions a second that take a millisecond each are a load, too.
#[test]
fn skew_of_few_long_transactions_is_seen() {
    let mut world = world();
    for _ in 0..20 * SAMPLES_A_SECOND {
        for _ in 0..250 {
            let account = skewed(&mut world.random);
            world.read(account, 1_000_000);
        }
        world.pass();
    }
    let decisions = world.engine.monitor_decisions();
    assert!(world.repartitions() > 0, "{decisions:?}");
    for share in world.shares() {
        assert!((0.40..0.60).contains(&share), "{:?} {decisions:?}", world.shares());
    }
}

#[test]
fn a_static_engine_only_tells() {
    let mut world = world();
    world.engine.set_monitor(MonitorSettings { adapts: false, ..MonitorSettings::default() });
    world.load(6, skewed);
    assert_eq!(world.repartitions(), 0);
    let decisions = world.engine.monitor_decisions();
    assert!(decisions.iter().any(|decision| decision.verdict == Told::Static), "{decisions:?}");

    // Once it may, it does, although the load is still the same.
    world.load(20, skewed);
    world.engine.set_monitor(MonitorSettings::default());
    world.load(5, skewed);
    assert!(world.repartitions() > 0, "{:?}", world.engine.monitor_decisions());

    world.engine.set_monitor(MonitorSettings { measures: false, ..MonitorSettings::default() });
    let before = world.engine.monitor_decisions().len();
    world.load(6, even);
    assert_eq!(world.engine.monitor_decisions().len(), before, "unmeasured, nothing is decided");
}

#[test]
fn marks_keep_everybody_away_and_survive_a_crash() {
    let mut world = world();
    let homes = world.homes();
    for &(partition, _) in &homes {
        for mark in [Mark::Pinned, Mark::Frozen] {
            world.change(Repartition::Mark { partition, mark, set: true }).expect("marked");
        }
    }
    let (first, second) = (homes[0].0, homes[1].0);
    let refused = |change| world.change(change).expect_err("marked");
    assert_eq!(
        refused(Repartition::Move { partition: first, to: ExecutorId(1) }),
        RepartitionRefused::Pinned(first)
    );
    assert_eq!(
        refused(Repartition::Split { group: GROUP, at: account_key(7) }),
        RepartitionRefused::Frozen(first)
    );
    assert_eq!(refused(Repartition::Merge(first, second)), RepartitionRefused::Frozen(first));
    world.load(8, skewed);
    assert_eq!(world.homes(), homes, "{:?}", world.engine.monitor_decisions());

    let World { engine, clock, store, .. } = world;
    engine.step_log().expect("written");
    drop(engine);
    let engine = open(&store, &clock, None);
    let world = World { engine, clock, random: RandomStream::new(1), store };
    let partition = world.homes()[0].0;
    let home = Repartition::Move { partition, to: ExecutorId(1) };
    assert_eq!(world.change(home.clone()), Err(RepartitionRefused::Pinned(partition)));
    world.change(Repartition::Mark { partition, mark: Mark::Pinned, set: false }).expect("unmarked");
    assert_eq!(world.change(home), Ok(()));
}

#[test]
fn partitions_of_a_lost_executor_find_another_home() {
    let world = world();
    let mut handles: Vec<ExecutorHandle> =
        (0..2).map(|id| world.engine.attach_executor(ExecutorId(id)).expect("nobody drives it")).collect();
    let step = || {
        world.clock.0.fetch_add(250_000_000, Ordering::Relaxed);
        for _ in 0..20 {
            world.engine.step_monitor();
            world.clock.0.fetch_add(1_000_000, Ordering::Relaxed);
        }
    };
    step();
    drop(handles.remove(0));
    for _ in 0..4 {
        step();
        handles[0].drain(SliceBudget::default());
        step();
    }
    let homes = world.homes();
    assert!(homes.iter().all(|(_, home)| *home == ExecutorId(1)), "{homes:?}");
    let decisions = world.engine.monitor_decisions();
    assert!(decisions.iter().any(|decision| decision.reason == Reason::Topology), "{decisions:?}");
}
