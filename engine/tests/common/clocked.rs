//! A bank whose monitor is stepped on a virtual clock.
#![allow(dead_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archipel_engine::clock::Clock;
use archipel_engine::id::{ExecutorId, GroupId, PartitionId};
use archipel_engine::log::MemoryStore;
use archipel_engine::random::RandomStream;
use archipel_engine::topology::Topology;
use archipel_engine::{Engine, EngineConfig, Repartition, RepartitionRefused, Seams};

use crate::common::*;

pub const GROUP: GroupId = GroupId(ACCOUNTS.0);
pub const ROWS: i64 = 2_000;
/// Actions between two samples of 250 ms.
pub const ACTIONS: u64 = 2_000;
pub const SAMPLES_A_SECOND: u64 = 4;

/// Moves when told to, and by a microsecond a look.
#[derive(Default)]
pub struct VirtualClock(pub AtomicU64);

impl Clock for VirtualClock {
    fn wall_micros(&self) -> i64 {
        self.monotonic_nanos() as i64 / 1_000
    }

    fn monotonic_nanos(&self) -> u64 {
        self.0.fetch_add(1_000, Ordering::Relaxed)
    }
}

pub struct World {
    pub engine: Engine,
    pub clock: Arc<VirtualClock>,
    pub random: RandomStream,
    pub store: MemoryStore,
}

pub fn open(store: &MemoryStore, clock: &Arc<VirtualClock>, topology: Option<Arc<dyn Topology>>) -> Engine {
    let mut config = EngineConfig { background: false, ..config(2) };
    if let Some(topology) = &topology {
        config.executors = topology.read().expect("it is there").executors();
    }
    let seams = Seams { clock: clock.clone(), topology, ..Seams::default() };
    Engine::open_with(config, Arc::new(store.clone()), seams, &|_| {}).expect("the engine opens")
}

/// Accounts in four partitions, two an executor.
pub fn world() -> World {
    world_on(None, 2)
}

/// Accounts in so many partitions for each of two executors, on a machine if it is read.
pub fn world_on(topology: Option<Arc<dyn Topology>>, each: i64) -> World {
    let (store, clock) = (MemoryStore::new(), Arc::<VirtualClock>::default());
    let engine = open(&store, &clock, topology);
    open_bank(&engine, ROWS);
    let cuts = (1..2 * each).map(|at| account_key(at * ROWS / (2 * each))).collect();
    engine.pre_split(GROUP, cuts).wait().outcome.result.expect("split");
    let world = World { engine, clock, random: RandomStream::new(4), store };
    for (at, (partition, _)) in world.homes().into_iter().enumerate() {
        world
            .change(Repartition::Move { partition, to: ExecutorId(at as u16 / each as u16) })
            .expect("moved");
    }
    world
}

impl World {
    pub fn homes(&self) -> Vec<(PartitionId, ExecutorId)> {
        let routing = self.engine.routing();
        routing.routes(GROUP).iter().map(|route| (route.partition(), route.home())).collect()
    }

    pub fn change(&self, change: Repartition) -> Result<(), RepartitionRefused> {
        let done = self.engine.repartition(change, "test").wait();
        done.outcome.result.expect("an action ends");
        done.program.result
    }

    /// So many seconds of reads of accounts that `draw` chooses.
    pub fn load(&mut self, seconds: u64, draw: impl FnMut(&mut RandomStream) -> i64) {
        self.load_samples(seconds * SAMPLES_A_SECOND, draw);
    }

    pub fn load_samples(&mut self, samples: u64, mut draw: impl FnMut(&mut RandomStream) -> i64) {
        for _ in 0..samples {
            for _ in 0..ACTIONS {
                let account = draw(&mut self.random);
                self.read(account, 0);
            }
            self.pass();
        }
    }

    /// Reads an account, which takes so much longer.
    pub fn read(&self, account: i64, nanos: u64) {
        let clock = self.clock.clone();
        let found = run(
            &self.engine,
            move |_, claims| claims.add_point(GROUP, &account_key(account)),
            move |txn| {
                clock.0.fetch_add(nanos, Ordering::Relaxed);
                balance(txn, account)
            },
        );
        assert_eq!(found.0, Ok(Some(100)));
    }

    /// The time between two samples passes.
    pub fn pass(&self) {
        self.clock.0.fetch_add(250_000_000, Ordering::Relaxed);
        // As its thread would: again at once while actions are to be done.
        for _ in 0..200 {
            let pause = self.engine.step_monitor();
            if pause > std::time::Duration::from_millis(2) {
                break;
            }
            self.clock.0.fetch_add(pause.as_nanos() as u64, Ordering::Relaxed);
        }
    }

    pub fn repartitions(&self) -> usize {
        self.engine.repartitions().iter().filter(|done| done.decision > 0).count()
    }

    /// The share of each executor in the load of the accounts, as last evaluated.
    pub fn shares(&self) -> Vec<f64> {
        let loads = self.engine.partition_loads();
        let of = |executor| loads.iter().filter(|load| load.home == executor).map(|load| load.share).sum();
        [ExecutorId(0), ExecutorId(1)].map(of).to_vec()
    }
}

pub fn even(random: &mut RandomStream) -> i64 {
    random.below(ROWS as u64) as i64
}
