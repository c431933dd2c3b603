//! What goes wrong: disks, crashes and clocks; and what must be there afterwards.

use std::time::Duration;

use super::common::*;
use super::programs::*;
use super::*;
use crate::log::Located;
use crate::log::batch::{self, AnySegment, BatchNumber};
use crate::log::store::{
    BatchVisitor, CheckpointChange, CheckpointKey, LogStore, Losses, PartVisitor, RowVisitor, StoreError,
};
use crate::log::watermark::Watermark;

/// A checkpoint has many writes, and so have commits with parts; most must come to their end.
const RARELY: u64 = 400;

/// The memory store with the simulator between any two of its operations.
pub struct FaultyStore(pub MemoryStore);

impl FaultyStore {
    /// Before an operation: the process may die here.
    fn between(&self) {
        if let Some(simulation) = simulation() {
            simulation.between_log_operations();
        }
    }

    /// One write, which may find the disk full, once in so many times.
    fn write(&self, once_in: u64, body: impl FnOnce() -> Result<(), StoreError>) -> Result<(), StoreError> {
        self.between();
        let full = simulation().is_some_and(|simulation| simulation.strikes(once_in, "disk full"));
        if full {
            self.0.set_faults(Faults { full, ..Faults::default() });
        }
        let result = body();
        self.0.set_faults(Faults::default());
        if full {
            // As a store on a disk, which is opened again when space returns.
            self.0.lose_checkpoint_rows();
        }
        result
    }
}

impl LogStore for FaultyStore {
    fn append(&self, number: BatchNumber, batch: &[u8], sync: bool) -> Result<(), StoreError> {
        self.write(12, || self.0.append(number, batch, false))?;
        if let Some(simulation) = simulation() {
            simulation.note_log(|order| order.append(number, batch));
        }
        if sync { self.sync() } else { Ok(()) }
    }

    fn append_part(&self, id: TxnId, part: u32, value: &[u8]) -> Result<(), StoreError> {
        happened("part written");
        self.write(RARELY, || self.0.append_part(id, part, value))?;
        if let Some(simulation) = simulation() {
            simulation.note_log(|order| order.append_part(id, part, value));
        }
        Ok(())
    }

    fn read_parts(&self, id: TxnId, from: u32, visit: &mut PartVisitor<'_>) -> Result<(), StoreError> {
        happened("parts read");
        self.0.read_parts(id, from, visit)
    }

    fn part_ids(&self) -> Result<Vec<TxnId>, StoreError> {
        self.0.part_ids()
    }

    fn drop_parts(&self, ids: &[TxnId]) -> Result<(), StoreError> {
        for id in ids {
            self.between();
            let of_checkpoint = simulation().is_some_and(|simulation| *simulation.checkpointing.borrow());
            happened(if of_checkpoint { "parts of a checkpoint dropped" } else { "parts undecided dropped" });
            self.0.drop_parts(&[*id])?;
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.between();
        let Some(simulation) = simulation() else { return self.0.sync() };
        if simulation.strikes(8, "slow sync") {
            simulation.clock.jump(50_000_000, 0);
            simulation.while_syncing();
        }
        if simulation.strikes(400, "sync error") {
            simulation.failed.replace(true);
            self.0.set_faults(Faults { sync_fails: true, ..Faults::default() });
        }
        let result = self.0.sync();
        self.0.set_faults(Faults::default());
        if result.is_ok() {
            simulation.note_log(LogOrder::sync);
        }
        self.between();
        result
    }

    fn read_log(&self, from: BatchNumber, visit: &mut BatchVisitor<'_>) -> Result<(), StoreError> {
        self.0.read_log(from, visit)
    }

    fn last_batch(&self) -> Result<Option<BatchNumber>, StoreError> {
        self.0.last_batch()
    }

    fn truncate(&self, below: BatchNumber) -> Result<(), StoreError> {
        self.write(RARELY, || self.0.truncate(below))
    }

    fn truncate_tail(&self, from: BatchNumber) -> Result<(), StoreError> {
        self.write(RARELY, || self.0.truncate_tail(from))
    }

    fn checkpoint_losses(&self) -> Losses {
        self.0.checkpoint_losses()
    }

    fn checkpoint_write(&self, since: Losses, changes: &[CheckpointChange]) -> Result<(), StoreError> {
        self.write(RARELY, || self.0.checkpoint_write(since, changes))
    }

    fn checkpoint_flush(&self, since: Losses) -> Result<(), StoreError> {
        self.between();
        self.0.checkpoint_flush(since)
    }

    fn checkpoint_get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.checkpoint_get(tree, key)
    }

    fn checkpoint_scan(
        &self,
        low: Option<&CheckpointKey>,
        high: Option<&CheckpointKey>,
        visit: &mut RowVisitor<'_>,
    ) -> Result<(), StoreError> {
        self.0.checkpoint_scan(low, high, visit)
    }

    fn checkpoint_drop(&self, tree: TreeId) -> Result<(), StoreError> {
        self.write(RARELY, || self.0.checkpoint_drop(tree))
    }

    fn checkpoint_cuts(&self) -> Result<Vec<CheckpointKey>, StoreError> {
        self.0.checkpoint_cuts()
    }

    fn meta_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.meta_get(key)
    }

    fn meta_put(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.between();
        self.0.meta_put(key, value)
    }

    fn watermark(&self) -> Result<Option<Watermark>, StoreError> {
        self.0.watermark()
    }

    fn put_watermark(&self, watermark: Watermark, sync: bool) -> Result<(), StoreError> {
        self.between();
        self.0.put_watermark(watermark, sync)
    }
}

impl Simulation {
    /// Whether a fault strikes now, once in so many chances. Never beside another one that has
    /// ended this life already.
    fn strikes(&self, once_in: u64, what: &'static str) -> bool {
        if self.is_over() || *self.failed.borrow() || *self.sheltered.borrow() {
            return false;
        }
        let strikes = self.below(once_in) == 0;
        if strikes {
            self.note(what, 0, 0);
            self.count(what);
        }
        strikes
    }

    /// Between two operations of the log: what if the process died just here? Mostly that is
    /// only looked at, on a copy; sometimes this life ends, and what it does until it notices
    /// reaches no disk and no client.
    fn between_log_operations(&self) {
        if self.is_over() || *self.sheltered.borrow() {
            return;
        }
        *self.in_log.borrow_mut() += 1;
        match self.below(600) {
            0..8 => self.guarded(|| self.look_at_a_crash()),
            8 => {
                self.acknowledge();
                self.note("crash between operations", 0, 0);
                self.count("crash between operations");
                let image = self.crashed_store();
                *self.doomed.borrow_mut() = Some(image);
            }
            _ => {}
        }
        *self.in_log.borrow_mut() -= 1;
    }

    /// The sync takes its time: others go on.
    fn while_syncing(&self) {
        if *self.depth.borrow() >= DEPTH_MAX {
            return;
        }
        *self.depth.borrow_mut() += 1;
        *self.in_log.borrow_mut() += 1;
        self.guarded(|| {
            for _ in 0..=self.below(4) {
                self.step();
            }
        });
        *self.in_log.borrow_mut() -= 1;
        *self.depth.borrow_mut() -= 1;
    }

    pub fn step_log(&self) {
        if *self.in_log.borrow() > 0 {
            return;
        }
        match self.engine().step_log() {
            Ok(_) => {}
            Err(StoreError::Full(_)) => {}
            Err(error) if *self.failed.borrow() => self.note("log failed", error.to_string().len() as i64, 0),
            Err(error) => self.expect(Err(format!("the log is not written: {error}"))),
        }
        self.acknowledge();
    }

    /// Tells clients whose commits are durable. What they were told must never be lost.
    pub fn acknowledge(&self) {
        if self.is_over() {
            return;
        }
        self.collect();
        let engine = self.engine();
        let committed = self.committed.borrow();
        let mut acknowledged = self.acknowledged.borrow_mut();
        for (id, epoch) in committed.iter() {
            if !acknowledged.contains(id) && engine.is_durable(*epoch) {
                acknowledged.insert(*id);
            }
        }
    }

    pub fn checkpoint(&self) {
        // Waits for its slices, so only where nothing is held further down the stack, and with
        // every commit durable.
        if *self.depth.borrow() > 0 || *self.in_log.borrow() > 0 || *self.failed.borrow() {
            return;
        }
        // For a slice that is forgotten, or stands behind one that never runs, it would wait forever.
        if planted::has(planted::Bug::DropForwarded) || planted::has(planted::Bug::LateDivision) {
            return;
        }
        // It waits on this thread, which nobody else could help.
        self.settle();
        self.step_log();
        self.note("checkpoint", 0, 0);
        self.checkpointing.replace(true);
        let mut done = false;
        self.alone(|engine| done = engine.checkpoint().is_ok());
        self.checkpointing.replace(false);
        self.settle();
        if done {
            self.count("checkpoint");
        }
    }

    /// Between two slices of a checkpoint, somebody changes rows and ranges, and the log goes
    /// on.
    pub fn beside_checkpoint(&self) {
        if self.is_over() {
            return;
        }
        self.checkpointing.replace(false);
        self.guarded(|| match self.below(8) {
            0 => self.submit_transfer(),
            1 => self.repartition(),
            2 => self.step_log(),
            _ => {}
        });
        self.checkpointing.replace(true);
    }

    /// Time leaps: the wall clock either way, the other one forwards.
    pub fn jump_clock(&self) {
        let forward = self.below(600_000_000_000);
        let wall = self.below(172_800_000_000) as i64 - 86_400_000_000;
        self.note("clock jump", forward as i64, wall);
        self.count("clock jump");
        self.clock.jump(forward, wall);
    }

    /// What a crash at this very point would leave.
    pub fn look_at_a_crash(&self) {
        if self.is_over() {
            return;
        }
        self.acknowledge();
        let store = self.crashed_store();
        let quiet = Quiet::new();
        let engine = reopen_stepped(&store);
        self.check_recovered(&engine);
        drop(engine);
        drop(quiet);
        self.count("looked");
    }

    fn crashed_store(&self) -> MemoryStore {
        let store = self.store.borrow();
        let unsynced = store.unsynced_writes();
        let survivors = match self.below(4) {
            0 => Survivors::Synced,
            1 => Survivors::All,
            2 => Survivors::First(self.below(unsynced as u64 + 1) as usize),
            _ => Survivors::Torn(self.below(unsynced as u64 + 1) as usize, self.below(256) as u8),
        };
        if unsynced > 0 {
            match survivors {
                Survivors::Synced | Survivors::First(_) => self.count("lost write"),
                Survivors::Torn(..) => self.count("torn write"),
                Survivors::All => {}
            }
        }
        self.note("survivors", unsynced as i64, 0);
        store.crash(survivors)
    }

    /// Invariant 5: the state is that of a prefix of the commits, with every acknowledged one.
    pub fn check_recovered(&self, engine: &Engine) -> Whole {
        let found = unpredicted(engine, |txn| whole(txn, Walk::Up)).0.expect("scanned");
        self.expect(self.history.borrow().check_recovered(&found));
        let there: BTreeSet<i64> = found.lists.values().flatten().copied().collect();
        assert_eq!(there, traces(engine), "traces and lists of the same transfers");
        let lost: Vec<_> = self.acknowledged.borrow().difference(&there).copied().collect();
        self.expect(if lost.is_empty() {
            Ok(())
        } else {
            Err(format!("acknowledged transfers are lost: {lost:?}"))
        });
        // A prefix: nothing of a later epoch without everything of an earlier one.
        let committed = self.committed.borrow();
        let newest = committed.iter().filter(|(id, _)| there.contains(id)).map(|(_, epoch)| *epoch).max();
        let missing = committed.iter().find(|(id, epoch)| !there.contains(id) && Some(**epoch) <= newest);
        self.expect(match missing {
            None => Ok(()),
            Some((id, epoch)) => Err(format!("{id} of epoch {epoch} is missing below {newest:?}")),
        });
        let (price, mirror) =
            unpredicted(engine, |txn| Ok((mirror_price(txn)?, mirrored(txn)?))).0.expect("read");
        assert_eq!(price, mirror, "a reference row and its mirror");
        check_indexes(engine);
        self.check_definitions(engine);
        found
    }

    /// Dies, and starts again from what the disk has.
    pub fn crash(&self, seed: u64) {
        self.acknowledge();
        self.expect(self.history.borrow().check_order());
        self.expect(self.check_sights());
        let doomed = self.doomed.borrow_mut().take();
        let store = doomed.unwrap_or_else(|| self.crashed_store());
        if !planted::any() {
            self.expect(check_numbers(&store));
        }
        self.check_log(&store);
        self.forget();
        *self.store.borrow_mut() = store;
        *self.failed.borrow_mut() = false;
        *self.depth.borrow_mut() = DEPTH_MAX;
        self.open(seed);
        self.alone(|engine| {
            let found = self.check_recovered(engine);
            self.check_log_recovered(&found);
            // What was not durable and is gone may be gone; what survived counts from now on.
            let there = found.lists.values().flatten();
            *self.committed.borrow_mut() = there.map(|id| (*id, Epoch(0))).collect();
            self.history.borrow_mut().restart(&found);
        });
        *self.depth.borrow_mut() = 0;
        self.note("crash", 0, 0);
        self.count("crash");
    }
}

/// What replay goes by: the numbers of a thread grow along the log, from one life to the next, and of the
/// transactions of one epoch that write a key no two have the same.
fn check_numbers(store: &MemoryStore) -> Result<(), String> {
    let mut last_of: BTreeMap<u64, u64> = BTreeMap::new();
    let mut wrong = None;
    let mut visit = |batch: BatchNumber, bytes: &[u8]| {
        let mut writers: BTreeMap<(Epoch, TreeId, Vec<u8>, u64), u64> = BTreeMap::new();
        let segments = batch::check(bytes).map(|_| batch::segments(bytes)).into_iter().flatten();
        for segment in segments {
            let Ok(AnySegment::Transactions(of)) = segment else {
                wrong = Some(format!("batch {} is malformed", batch.0));
                break;
            };
            for located in AnySegment::Transactions(of).records() {
                let Ok(Located { transaction, record, .. }) = located else {
                    wrong = Some(format!("batch {} is malformed", batch.0));
                    break;
                };
                let before = last_of.insert(of.thread, transaction);
                if before.is_some_and(|before| before > transaction) {
                    wrong = Some(format!("thread {} gave {before:?} before {transaction}", of.thread));
                }
                let key = (of.epoch, record.tree, record.key.to_vec(), record.number);
                if writers.insert(key, of.thread).is_some_and(|other| other != of.thread) {
                    wrong =
                        Some(format!("two transactions of {} that write a key are {transaction}", of.epoch));
                }
            }
        }
        ControlFlow::Continue(())
    };
    store.read_log(BatchNumber(0), &mut visit).map_err(|error| error.to_string())?;
    wrong.map_or(Ok(()), Err)
}

/// While this lives nothing comes between, as far as this thread's engines are concerned.
pub struct Quiet(Option<Rc<Simulation>>);

impl Quiet {
    pub fn new() -> Self {
        Self(SIMULATION.with(|simulation| simulation.borrow_mut().take()))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let before = self.0.take();
        SIMULATION.with(|simulation| *simulation.borrow_mut() = before);
    }
}

/// A clock that moves by one microsecond a look, and leaps when told to.
#[derive(Default)]
pub struct LeapingClock(Mutex<(u64, i64)>);

impl LeapingClock {
    pub fn jump(&self, nanos: u64, wall_micros: i64) {
        let mut clock = self.0.lock().expect("one thread");
        clock.0 += nanos;
        clock.1 += wall_micros;
    }
}

impl Clock for LeapingClock {
    fn wall_micros(&self) -> i64 {
        let nanos = self.monotonic_nanos();
        let wall = self.0.lock().expect("one thread").1;
        Duration::from_nanos(nanos).as_micros() as i64 + wall
    }

    fn monotonic_nanos(&self) -> u64 {
        let mut clock = self.0.lock().expect("one thread");
        clock.0 += 1_000;
        clock.0
    }
}
