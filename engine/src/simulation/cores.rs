//! Cores that come and go while everything else happens, and threads that end and begin.

use super::*;
use crate::topology::{Granularity, Invented, Topology};

/// Two sockets of two cores, of which some are there, in islands of a size that changes.
pub fn cores() -> Invented {
    Invented::of_sockets(2, usize::from(EXECUTORS) / 2, Granularity::Socket)
}

impl Simulation {
    /// Cores are taken away or come back, mostly one at a time, and the engine follows at once
    /// or some time later. Or the thread of an executor ends, or begins.
    pub fn change_cores(&self) {
        match self.below(8) {
            0 => return self.change_threads(),
            1 => return self.follow_cores(),
            2 => return self.resize_islands(),
            _ => {}
        }
        for _ in 0..=self.below(2) {
            let (there, gone) = (self.cores.those(true), self.cores.those(false));
            // One always stays.
            if there.len() > 1 && (gone.is_empty() || self.below(2) == 0) {
                let core = there[self.below(there.len() as u64) as usize];
                self.note("core taken", core as i64, 0);
                self.count("core taken");
                self.cores.set_there(there.into_iter().filter(|other| *other != core));
            } else {
                let core = gone[self.below(gone.len() as u64) as usize];
                self.note("core returned", core as i64, 0);
                self.count("core returned");
                self.cores.set_there(there.into_iter().chain([core]));
            }
        }
        if self.below(4) != 0 {
            self.follow_cores();
        }
    }

    /// As the monitor does, whose choices are rare.
    fn resize_islands(&self) {
        let sizes = [Granularity::Core, Granularity::Socket, Granularity::Machine];
        let size = self.below(3);
        self.note("islands", size as i64, 0);
        self.count("islands resized");
        self.cores.choose_islands(sizes[size as usize]);
        self.follow_cores();
    }

    /// What the engine's own thread does every second.
    fn follow_cores(&self) {
        // One thread does it: it is never between itself.
        if self.looking.replace(true) {
            return;
        }
        self.note("follow", 0, 0);
        match self.engine().look_at_topology() {
            Ok(None) => {}
            Ok(Some(change)) => {
                change.activated.iter().for_each(|id| self.begin_thread(*id));
                let counts = [
                    ("executor retired", change.retired.len()),
                    ("executor activated", change.activated.len()),
                    ("executor moved", change.replaced.len()),
                ];
                for (what, count) in counts {
                    (0..count).for_each(|_| self.count(what));
                }
            }
            Err(error) => self.expect(Err(format!("the topology cannot be read: {error}"))),
        }
        self.looking.replace(false);
    }

    /// Starts an executor's thread if it has none.
    fn begin_thread(&self, id: ExecutorId) {
        let at = usize::from(id.0);
        if self.handles.borrow()[at].is_some() {
            return;
        }
        // Its last slice may still be running, further down the stack.
        if let Some(handle) = self.engine().attach_executor(id) {
            self.note("thread began", at as i64, 0);
            self.handles.borrow_mut()[at] = Some(Rc::new(handle));
        }
    }

    fn change_threads(&self) {
        let engine = self.engine();
        let driven: Vec<usize> = {
            let handles = self.handles.borrow();
            (0..handles.len()).filter(|&at| handles[at].is_some()).collect()
        };
        if let Some(at) = (0..engine.executors().len()).find(|at| !driven.contains(at)) {
            return self.begin_thread(ExecutorId(at as u16));
        }
        // One always stays.
        if driven.len() < 2 {
            return;
        }
        let at = driven[self.below(driven.len() as u64) as usize];
        self.note("thread ended", at as i64, 0);
        self.count("thread ended");
        let gone = self.handles.borrow_mut()[at].take();
        drop(gone);
    }

    /// Every partition comes to be at home where a core is, whatever was in the way.
    pub fn settle_homes(&self) {
        for _ in 0..3 {
            self.follow_cores();
            self.settle();
        }
        let engine = self.engine();
        let executors = engine.executors();
        let active = executors.iter().filter(|executor| executor.active).count();
        self.expect(if active == self.cores.those(true).len() && active == engine.active_executors() {
            Ok(())
        } else {
            Err(format!("{active} executors for the cores {:?}", self.cores.those(true)))
        });
        for partition in engine.partitions() {
            let home = executors.get(usize::from(partition.home.0));
            self.expect(if home.is_some_and(|home| home.active) {
                Ok(())
            } else {
                Err(format!(
                    "partition {} is at home at executor {}, which has no core",
                    partition.id, partition.home
                ))
            });
        }
        for done in engine.repartitions() {
            match done.reason {
                "core lost" => self.count("handed over"),
                "core gained" => self.count("given a share"),
                _ => {}
            }
        }
    }
}
