//! Readers in pages: statements as of one snapshot, with everybody else between any two pages.
//!
//! A reader looks at all accounts and at all lists, and at parts of them in other ways: by ranges and
//! by keys, through indexes, at the transfers from one account, at the reference row; forwards and
//! backwards, in an order that is drawn. Now and then it is a transaction that reads the same twice.
//!
//! Checked, with S for the epoch of its snapshot:
//!
//! - every look finds what the looks at everything say, each row once and in order;
//! - that is one state: all or nothing of every transfer, balances to match, and the reference row as
//!   its mirror has it;
//! - it is the state of S: with everything that was committed up to S and nothing that was committed
//!   later, as far as clients have learned by the end of the life when theirs was committed;
//! - it has a place in the serial order ([`super::history`]).
//!
//! The reader's thread is no executor's. Where its turn has to be waited for, the others serve the
//! queues until it comes. A reader that began further up on somebody's stack may wait for what is
//! held below it, which nobody can give back meanwhile: it loses patience, and is cancelled.

use std::ops::{Bound, RangeBounds};

use super::common::*;
use super::programs::*;
use super::*;
use crate::client::Client;
use crate::executor::with_worker;
use crate::{ClaimSet, Isolation, Paging, Program, RoutingTable, TableMeta};

/// No reader begins deeper on the stack than this.
const DEPTH_OF_READERS_MAX: usize = 2;
/// A page's turn comes after fewer slices of every executor, or is lost.
const SLICES_OF_A_TURN_MAX: usize = 1_000;

/// A reader that is under way.
pub struct Reader {
    client: Arc<Client>,
    /// How many slices its page has waited for.
    waited: usize,
}

/// Numbers of accounts.
type Span = (Bound<i64>, Bound<i64>);

const EVERYTHING: Span = (Bound::Unbounded, Bound::Unbounded);

/// One way to look at rows.
#[derive(Clone, Debug)]
enum Look {
    Accounts(Span, Direction),
    Lists(Span, Direction),
    /// The transfers from one account, which others only add to.
    Traces(i64, Direction),
    /// Accounts and lists by their keys, whether they exist or not.
    Keys(Vec<i64>),
    /// The accounts that the entries of an index lead to.
    Entries(TreeId, Direction),
    /// The reference row.
    Price,
}

/// A row, as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    Account(i64, String, i64),
    List(i64, Vec<i64>),
    Trace(i64, i64),
    Entry(i64),
    Price(i64),
}

/// What one statement saw.
struct Sight {
    epoch: Epoch,
    found: Vec<(Look, Vec<Line>)>,
}

/// What the looks at everything saw.
#[derive(Debug, Default, PartialEq, Eq)]
struct State {
    accounts: BTreeMap<i64, (String, i64)>,
    lists: BTreeMap<i64, Vec<i64>>,
}

/// The tables as they were when the statement began.
struct Tables {
    accounts: Arc<TableMeta>,
    lists: Arc<TableMeta>,
    traces: Arc<TableMeta>,
    items: Arc<TableMeta>,
}

/// One statement of a reader.
struct Reading {
    looks: Vec<Look>,
    seen: Option<Sight>,
}

impl Program for Reading {
    fn predict(&mut self, _routing: &RoutingTable, _claims: &mut ClaimSet) {
        // It claims one page after the other.
    }

    fn tables(&self) -> Vec<TreeId> {
        vec![ACCOUNTS, LISTS, HISTORY, ITEMS]
    }

    fn run(&mut self, txn: &mut Txn<'_>) -> Result<(), Stop> {
        self.seen = None;
        let Some(epoch) = txn.pages_at() else { return Err(Stop::Interactive) };
        let tables = Tables {
            accounts: txn.table(ACCOUNTS).ok_or(Stop::Recompile)?,
            lists: txn.table(LISTS).ok_or(Stop::Recompile)?,
            traces: txn.table(HISTORY).ok_or(Stop::Recompile)?,
            items: txn.table(ITEMS).ok_or(Stop::Recompile)?,
        };
        let mut found = Vec::new();
        for look in &self.looks {
            if let Some(lines) = tables.look(txn, look)? {
                found.push((look.clone(), lines));
            }
        }
        self.seen = Some(Sight { epoch, found });
        Ok(())
    }
}

impl Tables {
    /// What there is to see; `None`: there is no such index just now.
    fn look(&self, txn: &mut Txn<'_>, look: &Look) -> Result<Option<Vec<Line>>, Stop> {
        let Self { accounts, lists, traces, items } = self;
        let mut lines = Vec::new();
        match look {
            Look::Accounts(span, direction) => scan(txn, accounts, span, *direction, &mut |row| {
                lines.push(account_line(accounts, row));
            })?,
            Look::Lists(span, direction) => scan(txn, lists, span, *direction, &mut |row| {
                lines.push(list_line(lists, row));
            })?,
            Look::Traces(from, direction) => {
                let span = (Bound::Included(*from), Bound::Excluded(*from + 1));
                scan(txn, traces, &span, *direction, &mut |row| {
                    lines.push(Line::Trace(int8(traces, row, 0), int8(traces, row, 1)));
                })?;
            }
            Look::Keys(ids) => {
                for id in ids {
                    let key = account_key(*id);
                    lines.extend(txn.get(accounts, &key)?.map(|row| account_line(accounts, row)));
                    lines.extend(txn.get(lists, &key)?.map(|row| list_line(lists, row)));
                }
            }
            Look::Entries(index, direction) => {
                let Some(index) = accounts.index(*index) else { return Ok(None) };
                txn.scan_index(accounts, &index.def, KeyRange::ALL, *direction, &mut |_, key| {
                    lines.push(Line::Entry(account_of_key(key)));
                    ControlFlow::Continue(())
                })?;
            }
            Look::Price => {
                lines.extend(txn.get(items, &item_key(1))?.map(|row| Line::Price(int8(items, row, 1))));
            }
        }
        Ok(Some(lines))
    }
}

/// Visits the rows whose keys begin with the numbers of these accounts.
fn scan(
    txn: &mut Txn<'_>,
    table: &TableMeta,
    span: &Span,
    direction: Direction,
    visit: &mut dyn FnMut(&[u8]),
) -> Result<(), Stop> {
    let (low, high) = (span.0.map(account_key), span.1.map(account_key));
    let low = low.as_ref().map(|key| &key[..]);
    let high = high.as_ref().map(|key| &key[..]);
    txn.scan(table, KeyRange { low, high }, direction, &mut |_, row| {
        visit(row);
        ControlFlow::Continue(())
    })
}

fn account_line(table: &TableMeta, row: &[u8]) -> Line {
    let owner = match table.layout.get(row, 1) {
        Cell::Bytes(owner) => String::from_utf8_lossy(owner).into_owned(),
        _ => String::new(),
    };
    Line::Account(int8(table, row, 0), owner, int8(table, row, 2))
}

fn list_line(table: &TableMeta, row: &[u8]) -> Line {
    Line::List(int8(table, row, 0), list_of(table, row))
}

/// The account of a storage key, or a number that none has.
fn account_of_key(key: &[u8]) -> i64 {
    (MIRROR..ACCOUNTS_COUNT).find(|id| account_key(*id)[..] == *key).unwrap_or(i64::MIN)
}

/// The key of an account's entry in an index.
fn entry_key(index: TreeId, owner: &str, balance: i64) -> Vec<u8> {
    if index == BY_OWNER {
        return owner_key(owner).to_vec();
    }
    let mut key = KeyBuf::new();
    encode_cell(&mut key, Cell::Int8(balance), &key_column(2), ColumnKind::Int8);
    key.to_vec()
}

impl State {
    fn of(found: &[(Look, Vec<Line>)]) -> Self {
        let mut state = Self::default();
        let is_whole = |look: &Look| match look {
            Look::Accounts(span, _) | Look::Lists(span, _) => *span == EVERYTHING,
            _ => false,
        };
        for (_, lines) in found.iter().filter(|(look, _)| is_whole(look)) {
            for line in lines {
                match line {
                    Line::Account(id, owner, balance) => {
                        state.accounts.insert(*id, (owner.clone(), *balance));
                    }
                    Line::List(id, list) => {
                        state.lists.insert(*id, list.clone());
                    }
                    _ => {}
                }
            }
        }
        state
    }

    fn account(&self, id: i64) -> Option<Line> {
        let (owner, balance) = self.accounts.get(&id)?;
        Some(Line::Account(id, owner.clone(), *balance))
    }

    fn list(&self, id: i64) -> Option<Line> {
        Some(Line::List(id, self.lists.get(&id)?.clone()))
    }

    /// What a look at this state finds.
    fn lines(&self, look: &Look, history: &History) -> Vec<Line> {
        let (mut lines, direction): (Vec<Line>, Direction) = match look {
            Look::Accounts(span, direction) => {
                let ids = self.accounts.keys().copied().filter(|id| span.contains(id));
                (ids.filter_map(|id| self.account(id)).collect(), *direction)
            }
            Look::Lists(span, direction) => {
                let ids = self.lists.keys().copied().filter(|id| span.contains(id));
                (ids.filter_map(|id| self.list(id)).collect(), *direction)
            }
            Look::Traces(from, direction) => {
                let list = self.lists.get(from).cloned().unwrap_or_default();
                let mut ids: Vec<i64> = list.into_iter().filter(|id| history.is_from(*id, *from)).collect();
                ids.sort_unstable();
                (ids.into_iter().map(|id| Line::Trace(*from, id)).collect(), *direction)
            }
            Look::Keys(ids) => {
                let lines = ids.iter().flat_map(|id| [self.account(*id), self.list(*id)]);
                (lines.flatten().collect(), Direction::Ascending)
            }
            Look::Entries(index, direction) => {
                let accounts = self.accounts.iter();
                let mut entries: Vec<(Vec<u8>, i64)> = accounts
                    .map(|(id, (owner, balance))| (entry_key(*index, owner, *balance), *id))
                    .collect();
                entries.sort_unstable();
                (entries.into_iter().map(|(_, id)| Line::Entry(id)).collect(), *direction)
            }
            Look::Price => {
                let price = self.accounts.get(&MIRROR).and_then(|(owner, _)| owner.parse::<i64>().ok());
                (price.map(Line::Price).into_iter().collect(), Direction::Ascending)
            }
        };
        if direction == Direction::Descending {
            lines.reverse();
        }
        lines
    }

    fn whole(&self) -> Whole {
        let accounts = self.accounts.iter().filter(|(id, _)| **id != MIRROR);
        Whole {
            balances: accounts.map(|(id, (_, balance))| (*id, *balance)).collect(),
            lists: self.lists.clone(),
        }
    }
}

impl Simulation {
    fn direction(&self) -> Direction {
        if self.below(2) == 0 { Direction::Ascending } else { Direction::Descending }
    }

    fn span(&self) -> Span {
        let (one, other) = (self.account(), self.account());
        let bound = |id: i64| match self.below(4) {
            0 => Bound::Unbounded,
            1 => Bound::Excluded(id),
            _ => Bound::Included(id),
        };
        (bound(one.min(other)), bound(one.max(other)))
    }

    fn looks(&self) -> Vec<Look> {
        let (accounts, lists) = (self.direction(), self.direction());
        let mut looks = vec![Look::Accounts(EVERYTHING, accounts), Look::Lists(EVERYTHING, lists)];
        for _ in 0..=self.below(3) {
            let look = match self.below(7) {
                0 => Look::Accounts(self.span(), self.direction()),
                1 => Look::Lists(self.span(), self.direction()),
                2 => Look::Traces(self.account(), self.direction()),
                3 => {
                    // The mirror and one that does not exist are among them.
                    let id = || self.below(ACCOUNTS_COUNT as u64 + 2) as i64 + MIRROR;
                    Look::Keys((0..4).map(|_| id()).collect())
                }
                4 => Look::Entries(BY_OWNER, self.direction()),
                5 => Look::Entries(BY_BALANCE, self.direction()),
                _ => Look::Price,
            };
            let at = self.below(looks.len() as u64 + 1) as usize;
            looks.insert(at, look);
        }
        looks
    }

    /// A client reads in pages, to the end; others come between.
    pub fn read_in_pages(&self) {
        if *self.depth.borrow() > DEPTH_OF_READERS_MAX {
            return;
        }
        let engine = self.engine();
        let client = engine.client(0);
        let twice = self.below(3) == 0;
        let isolation = if twice { Isolation::RepeatableRead } else { Isolation::ReadCommitted };
        let looks = self.looks();
        self.note("pages", looks.len() as i64, i64::from(twice));
        let start = self.now();
        self.readers.borrow_mut().push(Reader { client: client.clone(), waited: 0 });
        let transaction = engine.begin_for(&client, isolation, true);
        let read = self.read_statements(&client, &transaction, &looks, twice);
        self.readers.borrow_mut().pop();
        drop(transaction);
        if self.is_over() {
            return;
        }
        let end = self.now();
        match read {
            Ok(sights) => {
                let checked = self.check_sight(start, end, &sights);
                self.expect(checked);
                self.count("read in pages");
            }
            Err(Stop::Cancelled) if client.is_cancelled() => {
                self.count("pages given up");
                return;
            }
            // An index went, or was made anew, since.
            Err(Stop::Recompile) => self.count("recompile"),
            Err(Stop::ConcurrentUpdate) if twice => self.count("recompile"),
            Err(other) => self.expect(Err(format!("a read in pages ended with {other:?}"))),
        }
        self.count("transaction");
    }

    fn read_statements(
        &self,
        client: &Arc<Client>,
        transaction: &Interactive,
        looks: &[Look],
        twice: bool,
    ) -> Result<Vec<Sight>, Stop> {
        let mut sights = vec![self.read_statement(client, transaction, looks)?];
        if twice {
            self.come_between();
            sights.push(self.read_statement(client, transaction, looks)?);
        }
        Ok(sights)
    }

    fn read_statement(
        &self,
        client: &Arc<Client>,
        transaction: &Interactive,
        looks: &[Look],
    ) -> Result<Sight, Stop> {
        let engine = self.engine();
        // An executor's thread never stands still, so that it would refuse to.
        with_worker(&engine.shared, |_, worker| {
            worker.executor = None;
            worker.island = None;
        });
        let options = SubmitOptions {
            transaction: Some(transaction),
            client: Some(client),
            paging: Paging::Locking,
            ..SubmitOptions::default()
        };
        let reading = Reading { looks: looks.to_vec(), seen: None };
        // It claims nothing beforehand, so it runs here and now.
        let done = engine.submit(reading, options).try_take().ok_or(Stop::Wait)?;
        done.outcome.result?;
        let sight = done.program.seen.expect("a reader that has finished has seen something");
        self.expect(if done.outcome.depends_on <= sight.epoch {
            Ok(())
        } else {
            let depends_on = done.outcome.depends_on;
            Err(format!("what is read as of {} depends on {depends_on}", sight.epoch))
        });
        Ok(sight)
    }

    /// What a transaction has seen is the state of its snapshot.
    fn check_sight(&self, start: u64, end: u64, sights: &[Sight]) -> Result<(), String> {
        let mut states: Vec<(Epoch, State)> = Vec::new();
        for Sight { epoch, found } in sights {
            let state = State::of(found);
            for (look, lines) in found {
                let expected = state.lines(look, &self.history.borrow());
                if *lines != expected {
                    return Err(format!(
                        "{look:?} in pages, as of {epoch}, finds {lines:?}, and is to find {expected:?}"
                    ));
                }
            }
            states.push((*epoch, state));
        }
        if states.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(format!("one transaction reads different states: {states:?}"));
        }
        let Some((epoch, state)) = states.pop() else { return Ok(()) };
        self.history.borrow_mut().read(start, end, &state.whole())?;
        self.order.borrow_mut().saw(Sighting::of(epoch, &state.whole()));
        let there: BTreeSet<i64> = state.lists.values().flatten().copied().collect();
        self.check_epoch(epoch, &there)?;
        self.sights.borrow_mut().push((epoch, there));
        Ok(())
    }

    /// Of the transfers of which clients know when they were committed, a reader as of `epoch` saw those
    /// up to there and no other.
    fn check_epoch(&self, epoch: Epoch, there: &BTreeSet<i64>) -> Result<(), String> {
        let committed = self.committed.borrow();
        let wrong = committed.iter().find(|(id, of)| (**of <= epoch) != there.contains(*id));
        match wrong {
            None => Ok(()),
            Some((id, of)) if *of <= epoch => {
                Err(format!("a reader as of {epoch} does not see {id}, which was committed in {of}"))
            }
            Some((id, of)) => Err(format!("a reader as of {epoch} sees {id}, which was committed in {of}")),
        }
    }

    /// The same, when clients have learned of more commits, for all readers of this life.
    pub fn check_sights(&self) -> Result<(), String> {
        let sights = std::mem::take(&mut *self.sights.borrow_mut());
        sights.iter().try_for_each(|(epoch, there)| self.check_epoch(*epoch, there))
    }

    /// A reader holds nothing and is about to claim its next page: anything may happen now, and ranges
    /// move more often than elsewhere.
    pub fn between_pages(&self) {
        if let Some(reader) = self.readers.borrow_mut().last_mut() {
            reader.waited = 0;
        }
        self.come_between();
        let depth = *self.depth.borrow();
        if self.is_over() || depth >= DEPTH_MAX || self.below(6) != 0 {
            return;
        }
        *self.depth.borrow_mut() += 1;
        self.guarded(|| self.repartition());
        *self.depth.borrow_mut() = depth;
    }

    /// A reader stands still until its page's partition is brought: the executors go on.
    pub fn while_a_page_is_awaited(&self) {
        let depth = *self.depth.borrow();
        *self.depth.borrow_mut() = DEPTH_MAX.min(depth + 1);
        let mut served = 0;
        self.guarded(|| served = self.drain_all());
        *self.depth.borrow_mut() = depth;
        let is_over = self.is_over();
        let mut readers = self.readers.borrow_mut();
        if is_over && served == 0 {
            // A panic may have left partitions held, and readers that will never be heard of.
            readers.iter().for_each(|reader| reader.client.set_cancelled(true));
            return;
        }
        let Some(reader) = readers.last_mut() else { return };
        reader.waited += 1;
        let waited = reader.waited;
        let is_lost = waited >= SLICES_OF_A_TURN_MAX;
        // Nobody is served: what it waits for is held further down the stack.
        let is_hopeless = depth > 0 && served == 0;
        if is_lost || is_hopeless {
            reader.client.set_cancelled(true);
        }
        drop(readers);
        if waited == 1 {
            self.count("page awaited");
        }
        if is_lost && depth == 0 {
            self.expect(Err("the turn of a page never comes".into()));
        }
    }
}
