//! What clients do: transfers, reads, sessions, snapshots, definitions, cancels.

use super::common::*;
use super::programs::*;
use super::*;

impl Simulation {
    pub fn submit_transfer(&self) {
        let id = self.next_transfer.replace_with(|id| *id + 1);
        let (from, to, amount) = (self.account(), self.account(), 1 + self.below(60) as i64);
        if from == to {
            return;
        }
        let prediction = self.below(5);
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
        let submission = self.engine().submit(program, SubmitOptions::default());
        self.transfers.borrow_mut().push((id, submission));
        self.collect();
    }

    pub fn submit_read(&self) {
        let whole = self.below(2) == 0;
        let program = script(
            move |_, claims| {
                if whole {
                    claims.add_group(GroupId(ACCOUNTS.0));
                }
            },
            sum_of_accounts,
        );
        let submission = self.engine().submit(program, SubmitOptions::default());
        self.reads.borrow_mut().push(submission);
        self.collect();
    }

    /// Writes a reference row and its mirror (an account's owner), or compares the two.
    pub fn submit_price(&self) {
        let engine = self.engine();
        let submission = if self.below(2) == 0 {
            let price = self.below(1_000_000) as i64;
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
                    let _ = txn.update(&accounts, &account_key(-1), &changes)?;
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
                    let accounts = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
                    let mirror =
                        txn.get(&accounts, &account_key(-1))?.map(|row| match accounts.layout.get(row, 1) {
                            Cell::Bytes(owner) => String::from_utf8_lossy(owner).parse().unwrap_or(-1),
                            _ => -1,
                        });
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
                    assert_eq!(price, mirror, "a reference row and its mirror");
                    self.count("compared");
                }
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
            sessions.push(Session { transaction: engine.begin(), statement: None, transfers: Vec::new() });
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
                    Ok(()) => session.transfers.push(id),
                    Err(Stop::Abort | Stop::Recompile) => {}
                    // A deadlock: the client rolls back.
                    Err(_) => {
                        self.count("deadlock");
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
                let id = self.next_transfer.replace_with(|id| *id + 1);
                let (from, to, amount) = (self.account(), self.account(), 1 + self.below(30) as i64);
                if from != to {
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
            // Half of the clients say so, half of them disappear.
            if self.below(2) == 0 {
                drop(engine.rollback(&session.transaction));
            }
            self.count("rolled back");
            return;
        }
        let transfers = session.transfers.clone();
        let mut submission = engine.commit(&session.transaction);
        loop {
            if let Some(done) = submission.try_take() {
                if done.outcome.result == Err(Stop::DiskFull) {
                    // The transaction is still open, and goes with its client.
                    break;
                }
                done.outcome.result.expect("a commit without conflicts succeeds");
                for id in transfers {
                    self.committed.borrow_mut().insert(id, done.outcome.depends_on);
                }
                self.count("interactive");
                break;
            }
            if *self.depth.borrow() > 0 {
                // It may wait for a partition held further down the stack.
                self.transfers_of_commits(transfers, submission);
                break;
            }
            for handle in self.handles.borrow().clone() {
                handle.drain(SliceBudget::default());
            }
        }
        drop(session);
    }

    /// A commit that is still queued: its numbers count as unknown. If it survives a crash it
    /// must be whole, which the sum of money shows.
    pub fn transfers_of_commits(
        &self,
        _transfers: Vec<i64>,
        submission: Submission<archipel_engine::txn::Commit>,
    ) {
        drop(submission);
        self.count("commit queued");
    }

    /// Adds an index beside running transfers, or drops it.
    pub fn change_definitions(&self) {
        let program = script(
            |_, claims| claims.everything(),
            |txn| {
                between(txn);
                let there = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?.index(BY_BALANCE).is_some();
                let op = if there {
                    DdlOp::DropIndex { table: ACCOUNTS, index: BY_BALANCE }
                } else {
                    DdlOp::CreateIndex { table: ACCOUNTS, index: balance_index_def() }
                };
                assert_eq!(txn.ddl(op)?, Inserted::Ok);
                between(txn);
                Ok(())
            },
        );
        let submission = self.engine().submit(program, SubmitOptions::default());
        self.others.borrow_mut().push(submission);
        self.count("ddl");
    }

    pub fn step_snapshot(&self) {
        if *self.depth.borrow() > 0 || self.snapshots.borrow().len() < 2 {
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
        let table = self.engine().table(ACCOUNTS).expect("there");
        let (mut low, mut sum) = (Vec::new(), 0);
        loop {
            let mut page = snapshot.scan(&table, &low, None, 5);
            let done = loop {
                match page.try_take() {
                    Some(done) => break done,
                    None => {
                        for handle in self.handles.borrow().clone() {
                            handle.drain(SliceBudget::default());
                        }
                    }
                }
            };
            if done.outcome.result == Err(Stop::Recompile) {
                // The table's layout is another one now: this snapshot cannot go on.
                self.snapshots.borrow_mut().retain(|other| !Rc::ptr_eq(other, &snapshot));
                return;
            }
            done.outcome.result.expect("the page is read");
            sum += done.program.rows.iter().map(|(_, row)| int8(&table, row, 2)).sum::<i64>();
            match done.program.next {
                Some(next) => low = next.to_vec(),
                None => break,
            }
            // Others write between the pages.
            *self.depth.borrow_mut() += 1;
            self.submit_transfer();
            self.drain();
            *self.depth.borrow_mut() -= 1;
        }
        assert_eq!(sum, TOTAL, "a snapshot sees all or nothing of every transfer");
        self.count("snapshot");
        if self.below(2) == 0 {
            self.snapshots.borrow_mut().retain(|other| !Rc::ptr_eq(other, &snapshot));
        }
    }

    pub fn cancel(&self) {
        let canceller = {
            let transfers = self.transfers.borrow();
            transfers.last().and_then(|(_, submission)| submission.canceller())
        };
        if let Some(canceller) = canceller {
            canceller.cancel(Stop::Cancelled);
            self.count("cancel");
        }
    }
}
