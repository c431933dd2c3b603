//! The log, its faults, checkpoints, splits, crashes and what must be there afterwards.

use super::common::*;
use super::programs::*;
use super::*;

impl Simulation {
    pub fn step_log(&self) {
        if self.below(8) == 0 {
            self.store.borrow().set_faults(Faults { full: true, ..Faults::default() });
            let _ = self.engine().step_log();
            self.store.borrow().set_faults(Faults::default());
            self.count("full disk");
            return;
        }
        self.engine().step_log().expect("the log is written");
        self.acknowledge();
    }

    pub fn acknowledge(&self) {
        self.collect();
        let engine = self.engine();
        let committed = self.committed.borrow();
        let mut acknowledged = self.acknowledged.borrow_mut();
        for (id, epoch) in committed.iter() {
            if engine.is_durable(*epoch) {
                acknowledged.insert(*id);
            }
        }
    }

    pub fn split(&self) {
        let at = account_key(self.account());
        let submission = self.engine().pre_split(GroupId(ACCOUNTS.0), vec![at]);
        drop(submission);
        self.count("split");
    }

    pub fn checkpoint(&self) {
        // Waits for its slices, so only where nothing is held further down the stack, and with
        // every commit durable.
        if *self.depth.borrow() == 0 {
            // It waits on this thread, which nobody else could help.
            self.settle();
            self.engine().step_log().expect("the log is written");
            self.alone(|engine| drop(engine.checkpoint()));
        }
        if *self.depth.borrow() == 0 {
            self.count("checkpoint");
        }
    }

    /// What a crash at this very point would leave.
    pub fn look_at_a_crash(&self) {
        self.acknowledge();
        let store = self.crashed_store();
        let quiet = SIMULATION.with(|simulation| simulation.borrow_mut().take());
        let engine = reopen_stepped(&store);
        self.check_recovered(&engine);
        drop(engine);
        SIMULATION.with(|simulation| *simulation.borrow_mut() = quiet);
        self.count("looked");
    }

    pub fn crashed_store(&self) -> MemoryStore {
        let store = self.store.borrow();
        let unsynced = store.unsynced_writes();
        let survivors = match self.below(4) {
            0 => Survivors::Synced,
            1 => Survivors::All,
            2 => Survivors::First(self.below(unsynced as u64 + 1) as usize),
            _ => Survivors::Torn(self.below(unsynced as u64 + 1) as usize, self.below(256) as u8),
        };
        store.crash(survivors)
    }

    pub fn check_recovered(&self, engine: &Engine) {
        let accounts = unpredicted(engine, |txn| all_accounts(txn, Direction::Ascending)).0.expect("scanned");
        assert_eq!(accounts.iter().map(|row| row.2).sum::<i64>(), TOTAL, "money is conserved by a crash");
        let there = history(engine);
        let lost: Vec<_> = self.acknowledged.borrow().difference(&there).copied().collect();
        assert!(lost.is_empty(), "acknowledged transfers are lost: {lost:?}");
        // A prefix: nothing of a later epoch without everything of an earlier one.
        let committed = self.committed.borrow();
        let newest = committed.iter().filter(|(id, _)| there.contains(id)).map(|(_, epoch)| *epoch).max();
        for (id, epoch) in committed.iter() {
            assert!(
                there.contains(id) || Some(*epoch) > newest,
                "{id} of epoch {epoch} is missing below {newest:?}"
            );
        }
        let (price, mirror) = unpredicted(engine, |txn| {
            let price = mirror_price(txn)?;
            let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
            let mirror = txn.get(&table, &account_key(-1))?.map(|row| match table.layout.get(row, 1) {
                Cell::Bytes(owner) => String::from_utf8_lossy(owner).parse().unwrap_or(-1),
                _ => -1,
            });
            Ok((price, mirror))
        })
        .0
        .expect("read");
        assert_eq!(price, mirror);
    }

    /// Dies, and starts again from what the disk has.
    pub fn crash(&self, seed: u64) {
        self.acknowledge();
        let store = self.crashed_store();
        self.forget();
        *self.store.borrow_mut() = store;
        *self.depth.borrow_mut() = DEPTH_MAX;
        self.open(seed);
        let mut there = BTreeSet::new();
        self.alone(|engine| {
            self.check_recovered(engine);
            there = history(engine);
        });
        *self.depth.borrow_mut() = 0;
        // What was not durable and is gone may be gone; what survived counts from now on.
        *self.committed.borrow_mut() = there.into_iter().map(|id| (id, Epoch(0))).collect();
        self.count("crash");
    }
}
