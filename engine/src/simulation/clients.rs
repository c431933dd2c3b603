//! What clients do: transfers, reads, sessions, snapshots, definitions, repartitioning.

use super::common::*;
use super::programs::*;
use super::*;
use crate::client::Client;

impl Simulation {
    fn new_transfer(&self, amount_max: u64) -> Option<(i64, i64, i64, i64)> {
        let id = self.next_transfer.replace_with(|id| *id + 1);
        let (from, to, amount) = (self.account(), self.account(), 1 + self.below(amount_max) as i64);
        if from == to {
            return None;
        }
        self.history.borrow_mut().submitted(id, from, to, amount);
        Some((id, from, to, amount))
    }

    pub fn submit_transfer(&self) {
        let prediction = self.below(5);
        self.submit_transfer_of(self.next_client(), prediction);
    }

    /// Submits a transfer of a client, if it is of one, who counts as waiting.
    pub fn submit_transfer_of(&self, client: Option<(usize, Arc<Client>)>, prediction: u64) {
        let at = client.as_ref().map(|(at, _)| *at);
        let Some((id, from, to, amount)) = self.new_transfer(40) else {
            return self.transfer_ended(at, None);
        };
        self.note("transfer", id, from * 100 + to);
        let program = script(
            move |_, claims| match prediction {
                0 => {}
                1 => claims.add_point(GroupId(ACCOUNTS.0), &account_key(from)),
                2 => claims.add_point(GroupId(ACCOUNTS.0), &account_key((from + 7) % ACCOUNTS_COUNT)),
                _ => {
                    claims.add_point(GroupId(ACCOUNTS.0), &account_key(from));
                    claims.add_point(GroupId(ACCOUNTS.0), &account_key(to));
                }
            },
            move |txn| traced_transfer(txn, id, from, to, amount),
        );
        let options =
            SubmitOptions { client: client.as_ref().map(|(_, client)| client), ..SubmitOptions::default() };
        let start = self.now();
        let submission = self.engine().submit(program, options);
        self.transfers.borrow_mut().push((id, start, at, submission));
        self.collect();
    }

    pub fn submit_read(&self) {
        let prediction = self.below(3);
        let walk = [Walk::Up, Walk::Down, Walk::FanOut][self.below(3) as usize];
        let program = script(
            move |_, claims| match prediction {
                0 => claims.add_group(GroupId(ACCOUNTS.0)),
                1 => claims.add_range(GroupId(ACCOUNTS.0), &account_key(5), Some(&account_key(20))),
                _ => {}
            },
            move |txn| whole(txn, walk),
        );
        self.note("read", prediction as i64, walk as i64);
        let start = self.now();
        let submission = self.engine().submit(program, SubmitOptions::default());
        self.reads.borrow_mut().push((start, submission));
        self.collect();
    }

    /// Writes a reference row and its mirror (an account's owner), or compares the two.
    pub fn submit_price(&self) {
        let engine = self.engine();
        let submission = if self.below(2) == 0 {
            // No two are the same, so that a reader of one stands in one place.
            let price = self.now() as i64;
            self.note("price", price, 0);
            let program = script(
                |_, claims| claims.add_group(REFERENCE_GROUP),
                move |txn| {
                    let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
                    between(txn);
                    assert_eq!(txn.update(&table, &item_key(1), &[(1, Cell::Int8(price))])?, Inserted::Ok);
                    between(txn);
                    let accounts = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
                    let owner = price.to_string();
                    let changes = [(1, Cell::Bytes(owner.as_bytes()))];
                    let _ = txn.update(&accounts, &account_key(MIRROR), &changes)?;
                    Ok(())
                },
            );
            engine.submit(program, SubmitOptions::default())
        } else {
            let program = script(
                |_, _| {},
                |txn| {
                    let price = mirror_price(txn)?;
                    between(txn);
                    let mirror = mirrored(txn)?;
                    // A run that saw the past of one and the present of the other is thrown
                    // away at its commit point; what counts is what it commits.
                    COMPARED.with(|compared| *compared.borrow_mut() = Some((price, mirror)));
                    Ok(())
                },
            );
            COMPARED.with(|compared| *compared.borrow_mut() = None);
            let mut submission = engine.submit(program, SubmitOptions::default());
            if let Some(done) = submission.try_take() {
                let compared = COMPARED.with(|compared| compared.borrow_mut().take());
                if done.outcome.result.is_ok()
                    && let Some((price, mirror)) = compared
                    && *self.depth.borrow() == 0
                {
                    self.expect(match price == mirror {
                        true => Ok(()),
                        false => Err(format!("a reference row says {price:?}, its mirror {mirror:?}")),
                    });
                    self.count("compared");
                }
                self.count("transaction");
                return;
            }
            submission
        };
        self.others.borrow_mut().push(submission);
        self.collect();
    }

    /// One move of an interactive client.
    pub fn step_session(&self) {
        let engine = self.engine();
        let mut sessions = std::mem::take(&mut *self.sessions.borrow_mut());
        if sessions.len() < 3 && self.below(2) == 0 {
            sessions.push(Session {
                transaction: engine.begin(),
                statement: None,
                transfers: Vec::new(),
                lists: Vec::new(),
                start: self.now(),
            });
        }
        let at = if sessions.is_empty() { 0 } else { self.below(sessions.len() as u64) as usize };
        let session = (at < sessions.len()).then(|| sessions.remove(at));
        self.sessions.borrow_mut().append(&mut sessions);
        let Some(mut session) = session else { return };
        if let Some((id, mut statement)) = session.statement.take() {
            match statement.try_take() {
                None => {
                    if self.below(3) == 0
                        && let Some(canceller) = statement.canceller()
                        && canceller.break_deadlock().is_some()
                    {
                        self.count("cycle");
                    }
                    session.statement = Some((id, statement));
                }
                Some(done) => match done.outcome.result {
                    Ok(()) => {
                        let seen = done.program.value.expect("a finished script has a value");
                        self.expect_nothing_missing(id, &seen);
                        session.transfers.push(id);
                        session.lists.extend(seen.lists);
                    }
                    Err(Stop::Abort | Stop::Recompile) => self.history.borrow_mut().undone(id),
                    // A deadlock, or a log that takes nothing: the client rolls back.
                    Err(_) => {
                        self.count("statement refused");
                        self.history.borrow_mut().undone(id);
                        self.end_session(session, false);
                        return;
                    }
                },
            }
            self.sessions.borrow_mut().push(session);
            return;
        }
        match self.below(4) {
            0 | 1 => {
                if let Some((id, from, to, amount)) = self.new_transfer(20) {
                    self.note("statement", id, from * 100 + to);
                    let program = script(|_, _| {}, move |txn| traced_transfer(txn, id, from, to, amount));
                    let options =
                        SubmitOptions { transaction: Some(&session.transaction), ..SubmitOptions::default() };
                    session.statement = Some((id, engine.submit(program, options)));
                }
                self.sessions.borrow_mut().push(session);
            }
            2 => self.end_session(session, true),
            _ => self.end_session(session, false),
        }
    }

    pub fn end_session(&self, session: Session, commit: bool) {
        let engine = self.engine();
        if !commit {
            for id in &session.transfers {
                self.history.borrow_mut().undone(*id);
            }
            // Half of the clients say so, half of them vanish.
            if self.below(2) == 0 {
                self.note("rollback", 0, 0);
                drop(engine.rollback(&session.transaction));
            } else {
                self.note("vanish", 0, 0);
                self.count("client vanished");
            }
            self.count("transaction");
            return;
        }
        self.note("commit", session.transfers.first().copied().unwrap_or(0), session.transfers.len() as i64);
        let mut submission = engine.commit(&session.transaction);
        for round in 0.. {
            if let Some(done) = submission.try_take() {
                self.count("transaction");
                match done.outcome.result {
                    Ok(()) => {
                        let end = self.now();
                        let epoch = done.outcome.depends_on;
                        self.committed.borrow_mut().extend(session.transfers.iter().map(|id| (*id, epoch)));
                        let checked = self.history.borrow_mut().committed(
                            session.start,
                            end,
                            &session.transfers,
                            &session.lists,
                        );
                        self.expect(checked);
                        self.count("interactive");
                    }
                    // The transaction is still open, and goes with its client.
                    Err(Stop::DiskFull | Stop::LogFailed) => {
                        for id in &session.transfers {
                            self.history.borrow_mut().undone(*id);
                        }
                    }
                    other => self.expect(Err(format!("a commit without conflicts ended with {other:?}"))),
                }
                break;
            }
            if *self.depth.borrow() > 0 {
                // It may wait for a partition held further down the stack. Whether it commits
                // will be seen: the client does not wait for it.
                drop(submission);
                self.count("client vanished");
                break;
            }
            if round > ROUNDS_MAX {
                self.expect(Err("a commit is lost".into()));
                break;
            }
            self.drain_all();
        }
        drop(session);
    }

    /// A partition is split, merged with its neighbour or moved, whatever goes on in it.
    pub fn repartition(&self) {
        let engine = self.engine();
        let group = if self.below(8) == 0 { GroupId(BY_OWNER.0) } else { GroupId(ACCOUNTS.0) };
        let routes: Vec<_> = engine.routing().routes(group).iter().map(|route| route.partition()).collect();
        let at = self.below(routes.len() as u64) as usize;
        let (change, kind) = match self.below(3) {
            0 if group.0 == ACCOUNTS.0 => {
                (Repartition::Split { group, at: account_key(self.account()) }, "split")
            }
            0 => (Repartition::Split { group, at: owner_key(&format!("owner {}", self.account())) }, "split"),
            // There are always four.
            1 if at + 1 < routes.len() && routes.len() > 4 => {
                (Repartition::Merge(routes[at], routes[at + 1]), "merge")
            }
            1 => return,
            _ => {
                let to = ExecutorId(self.below(u64::from(EXECUTORS)) as u16);
                (Repartition::Move { partition: routes[at], to }, "move")
            }
        };
        self.note(kind, at as i64, group.0.into());
        let submission = engine.repartition(change, "simulated");
        self.changes.borrow_mut().push((kind, submission));
        self.collect();
    }

    /// The monitor's thread gets a slice: it samples, watches, decides, or repartitions, whatever
    /// goes on below on the stack.
    pub fn step_monitor(&self) {
        let engine = self.engine();
        let acted = || engine.repartitions().iter().filter(|done| done.decision > 0).count();
        let (decisions, actions) = (engine.monitor_decisions().len(), acted());
        for _ in 0..1 + self.below(4) {
            engine.step_monitor();
        }
        self.note("monitor", decisions as i64, actions as i64);
        for (what, grew) in [
            ("monitor decided", engine.monitor_decisions().len() > decisions),
            ("monitor acted", acted() > actions),
        ] {
            if grew {
                self.count(what);
            }
        }
    }

    /// The memory of partitions that are at home on another socket follows them, a leaf at a time.
    pub fn follow_memory(&self) {
        let engine = self.engine();
        let before = engine.memory_followed();
        for _ in 0..1 + self.below(4) {
            engine.step_memory();
        }
        let now = engine.memory_followed();
        self.note("memory", now.pieces as i64, now.partitions as i64);
        for (what, grew) in [
            ("memory piece", now.bytes > before.bytes),
            ("memory followed", now.partitions > before.partitions),
        ] {
            if grew {
                self.count(what);
            }
        }
    }

    /// All memory comes to be where its partition is at home.
    pub fn settle_memory(&self) {
        let engine = self.engine();
        let away = || {
            let partitions = engine.partitions();
            partitions.into_iter().find(|partition| partition.memory_followed < 1.0)
        };
        for _ in 0..ROUNDS_MAX {
            engine.step_memory();
            self.settle();
            if away().is_none() {
                return;
            }
        }
        self.expect(Err(format!("memory does not follow {:?}", away())));
    }

    /// Opens a snapshot, or reads one that is open: its pages, with others' writes in between.
    pub fn step_snapshot(&self) {
        if *self.depth.borrow() > 0 || self.snapshots.borrow().len() < 2 {
            self.note("snapshot", 0, 0);
            let snapshot = self.engine().snapshot();
            self.snapshots.borrow_mut().push(Rc::new(snapshot));
            if self.snapshots.borrow().len() > 3 {
                let oldest = self.snapshots.borrow_mut().remove(0);
                drop(oldest);
            }
            return;
        }
        let at = self.below(self.snapshots.borrow().len() as u64) as usize;
        let snapshot = self.snapshots.borrow()[at].clone();
        self.note("snapshot read", at as i64, snapshot.epoch().0 as i64);
        let table = self.engine().table(ACCOUNTS).expect("there");
        let (mut low, mut sum) = (Vec::new(), 0);
        loop {
            let mut page = snapshot.scan(&table, &low, None, 5);
            let mut done = page.try_take();
            for _ in 0..ROUNDS_MAX {
                if done.is_some() {
                    break;
                }
                self.drain_all();
                done = page.try_take();
            }
            let Some(done) = done else {
                self.expect(Err("a page of a snapshot is lost".into()));
                return;
            };
            if done.outcome.result == Err(Stop::Recompile) {
                // The table's layout is another one now: this snapshot cannot go on.
                self.snapshots.borrow_mut().retain(|other| !Rc::ptr_eq(other, &snapshot));
                return;
            }
            if let Err(stop) = done.outcome.result {
                self.expect(Err(format!("a page of a snapshot ended with {stop:?}")));
                return;
            }
            sum += done.program.rows.iter().map(|row| int8(&table, row, 2)).sum::<i64>();
            match done.program.next {
                Some(next) => low = next.to_vec(),
                None => break,
            }
            // Others write between the pages, and ranges move.
            *self.depth.borrow_mut() += 1;
            self.submit_transfer();
            if self.below(4) == 0 {
                self.repartition();
            }
            self.drain();
            *self.depth.borrow_mut() -= 1;
        }
        self.expect(if sum == TOTAL {
            Ok(())
        } else {
            Err(format!("a snapshot sees {sum} of {TOTAL}: not all or nothing of every transfer"))
        });
        self.count("snapshot");
        self.count("transaction");
        if self.below(2) == 0 {
            self.snapshots.borrow_mut().retain(|other| !Rc::ptr_eq(other, &snapshot));
        }
    }

    /// A client asks for the end of its statement, or is gone without a word.
    pub fn cancel_or_vanish(&self) {
        if self.below(2) == 0 {
            let canceller = {
                let transfers = self.transfers.borrow();
                transfers.last().and_then(|(.., submission)| submission.canceller())
            };
            if let Some(canceller) = canceller {
                self.note("cancel", 0, 0);
                canceller.cancel(Stop::Cancelled);
                self.count("cancel");
            }
            return;
        }
        let vanished = self.transfers.borrow_mut().pop();
        if let Some((id, _, client, _)) = vanished {
            self.client_vanished(client);
            self.note("vanish", id, 0);
            self.count("client vanished");
        }
    }
}

/// A monitor that decides as often as it can and on next to nothing, so that what it does meets
/// everything else.
pub fn eager_monitor() -> crate::MonitorSettings {
    crate::MonitorSettings {
        sample_interval_nanos: 20_000,
        interval_min_nanos: 80_000,
        interval_max_nanos: 320_000,
        samples_min: 1,
        confidence: 0.0,
        gain_min: 0.0,
        mix_shift: 0.01,
        imbalance: 0.01,
        hot_key_share: 0.1,
        partitions_per_executor_max: 2,
        action_delay_nanos: 1_000,
        core_interval_nanos: 100_000,
        // A leaf at a time.
        memory_follow_bytes: 1,
        memory_follow_delay_nanos: 1_000,
        ..crate::MonitorSettings::default()
    }
}
