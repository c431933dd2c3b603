//! The order of the log: all that was ever synced, transaction by transaction.
//!
//! (epoch, number, thread) is an order of all transactions ([`crate::log::transaction`]). After each crash
//! those of the life that has ended are gone through in it, and each of them must meet the state that it says
//! it has read: its lists, the reference row, and a bound of the sequence that allows its number. After each
//! of them the state is whole. Somewhere between two of them stands each reader: behind all that it has seen,
//! and before all that it has not. What a client does in turn stands in this order. In the end there is what
//! the next start has recovered.
//!
//! So the state of *each prefix* is checked, not only of those at which an epoch ends.

use super::common::*;
use super::definitions::{NUMBER, NUMBERS, bound_of};
use super::programs::*;
use super::*;
use crate::client::Client;
use crate::log::batch::{self, AnySegment, BatchNumber};
use crate::log::redo::{self, META_TREE, Operation, Record};
use crate::log::transaction::{Records, WithParts};
use crate::log::{Located, LogStore, parts};
use crate::{TableMeta, txn};

/// So many clients submit one program after the other, and wait for no sync in between.
const CLIENTS: usize = 3;

/// A client whose programs come one after the other.
pub struct Pipeline {
    pub client: Arc<Client>,
    /// One of them is under way.
    is_busy: bool,
    /// What its next one comes behind: its last transfer, and those that it has seen since.
    before: Vec<i64>,
}

/// What a reader saw: of some accounts their lists, and maybe the reference row.
pub struct Sighting {
    /// The epoch that its answer depends on.
    pub depends_on: Epoch,
    pub lists: Vec<(i64, Vec<i64>)>,
    pub price: Option<i64>,
}

impl Sighting {
    /// Of somebody who saw all lists.
    pub fn of(depends_on: Epoch, whole: &Whole) -> Self {
        let lists = whole.lists.iter().map(|(account, list)| (*account, list.clone()));
        Self { depends_on, lists: lists.collect(), price: None }
    }
}

/// The tables whose rows are looked at.
struct Tables {
    accounts: Arc<TableMeta>,
    lists: Arc<TableMeta>,
    traces: Arc<TableMeta>,
    items: Arc<TableMeta>,
    numbers: Arc<TableMeta>,
}

/// What has to stand in the log, and what has been found there up to the last crash.
#[derive(Default)]
pub struct LogOrder {
    /// Batches of this life, by number: those that were synced, and those that may yet be.
    synced: BTreeMap<u64, Vec<u8>>,
    appended: BTreeMap<u64, Vec<u8>>,
    /// Parts of this life's transactions, whatever has become of them.
    parts: BTreeMap<(TxnId, u32), Vec<u8>>,
    /// The first batch that was not gone through.
    next_batch: u64,
    sightings: Vec<Sighting>,
    /// Transfers, and what they come behind.
    behind: Vec<(Vec<i64>, i64)>,
    /// Lists that transfers have read before they wrote, as far as their clients have learned that.
    lists: BTreeMap<i64, Vec<(i64, Vec<i64>)>>,
    state: State,
}

/// The state that transactions lead to, and how it came about.
#[derive(Default)]
struct State {
    /// Everything up to here has been gone through.
    epoch: Option<Epoch>,
    /// How many transactions that were.
    at: usize,
    rows: BTreeMap<(TreeId, Vec<u8>), Vec<u8>>,
    /// The greatest number that the sequence may have given.
    bound: i64,
    /// Where each transfer stands.
    places: BTreeMap<i64, usize>,
    /// Where the list of an account became longer, each time.
    longer: BTreeMap<i64, Vec<usize>>,
    /// The prices of the reference row, and where they began.
    prices: Vec<(usize, i64)>,
}

type Checked = Result<(), String>;

impl LogOrder {
    /// A batch is in the store, and not yet safe there.
    pub fn append(&mut self, number: BatchNumber, batch: &[u8]) {
        self.appended.insert(number.0, batch.to_vec());
    }

    /// So is a part.
    pub fn append_part(&mut self, id: TxnId, part: u32, value: &[u8]) {
        self.parts.insert((id, part), value.to_vec());
    }

    /// All that was appended is safe.
    pub fn sync(&mut self) {
        self.synced.append(&mut self.appended);
    }

    pub fn saw(&mut self, sighting: Sighting) {
        self.sightings.push(sighting);
    }

    /// A transfer has committed, having read these lists.
    pub fn committed(&mut self, id: i64, lists: &[(i64, Vec<i64>)]) {
        self.lists.insert(id, lists.to_vec());
    }

    /// Goes through the life that has ended, of which this is left.
    fn go_through(&mut self, left: &MemoryStore, tables: &Tables) -> Checked {
        let mut batches = std::mem::take(&mut self.synced);
        self.appended.clear();
        let parts = std::mem::take(&mut self.parts);
        let mut take = |number: BatchNumber, bytes: &[u8]| {
            if batch::check(bytes).is_some() {
                batches.insert(number.0, bytes.to_vec());
            }
            ControlFlow::Continue(())
        };
        left.read_log(BatchNumber(0), &mut take).map_err(|error| error.to_string())?;
        let batches = batches.split_off(&self.next_batch);
        let mut order: BTreeMap<(Epoch, u64, u64), Vec<Record<'_>>> = BTreeMap::new();
        let mut last = self.state.epoch;
        for (number, bytes) in &batches {
            self.next_batch = number + 1;
            last = last.max(batch::check(bytes).map(|header| header.last));
            for segment in batch::segments(bytes) {
                let Ok(AnySegment::Transactions(of)) = segment else {
                    return Err(format!("batch {number} is malformed"));
                };
                let segment = AnySegment::Transactions(of);
                let mut named = segment.records();
                named.by_ref().for_each(drop);
                for of_parts in named.with_parts(of.epoch) {
                    let records = order.entry((of.epoch, of_parts.number, of.thread)).or_default();
                    take_parts(&parts, &of_parts, records)?;
                }
                for located in segment.records() {
                    let Located { transaction, record, .. } =
                        located.map_err(|error| format!("{error:?}"))?;
                    order.entry((of.epoch, transaction, of.thread)).or_default().push(record);
                }
            }
        }
        for (place, records) in &order {
            let met = self.state.meet(records, tables, &self.lists);
            met.map_err(|violation| format!("in the order of the log, at {place:?}: {violation}"))?;
        }
        self.state.epoch = last;
        self.lists.clear();
        let sightings = std::mem::take(&mut self.sightings);
        sightings.iter().try_for_each(|sighting| self.state.explain(sighting))?;
        let behind = std::mem::take(&mut self.behind);
        behind.iter().try_for_each(|(before, id)| self.state.check_turns(before, *id))
    }

    /// Whether what was recovered is what all that leads to.
    fn check_recovered(&self, found: &Whole, tables: &Tables) -> Checked {
        let (balances, lists) = (self.state.balances(tables), self.state.lists(tables));
        if balances == found.balances && lists == found.lists {
            Ok(())
        } else {
            Err(format!("the order of the log leads to {lists:?}, and {found:?} was recovered"))
        }
    }
}

/// The records of a transaction that come before those in its batch.
fn take_parts<'p>(
    all: &'p BTreeMap<(TxnId, u32), Vec<u8>>,
    of: &WithParts,
    records: &mut Vec<Record<'p>>,
) -> Checked {
    for part in 0..of.parts.count {
        let value = all.get(&(of.parts.id, part)).and_then(|value| parts::unframe(value));
        let (_, bytes) = value.ok_or_else(|| format!("part {part} of {} was never written", of.parts.id))?;
        for located in Records::of_transaction(bytes, of.number) {
            records.push(located.map_err(|error| format!("{error:?}"))?.record);
        }
    }
    Ok(())
}

impl State {
    fn row(&self, tree: TreeId, key: &[u8]) -> Option<&Vec<u8>> {
        self.rows.get(&(tree, key.to_vec()))
    }

    fn rows_of(&self, tree: TreeId) -> impl Iterator<Item = &Vec<u8>> {
        self.rows.range((tree, Vec::new())..).take_while(move |((of, _), _)| *of == tree).map(|(_, row)| row)
    }

    fn balances(&self, Tables { accounts, .. }: &Tables) -> BTreeMap<i64, i64> {
        let balances = self.rows_of(ACCOUNTS).map(|row| (int8(accounts, row, 0), int8(accounts, row, 2)));
        balances.filter(|(id, _)| *id != MIRROR).collect()
    }

    fn lists(&self, Tables { lists, .. }: &Tables) -> BTreeMap<i64, Vec<i64>> {
        self.rows_of(LISTS).map(|row| (int8(lists, row, 0), list_of(lists, row))).collect()
    }

    fn price(&self, Tables { items, .. }: &Tables) -> Option<i64> {
        Some(int8(items, self.row(ITEMS, &item_key(1))?, 1))
    }

    fn mirror(&self, Tables { accounts, .. }: &Tables) -> Option<i64> {
        match accounts.layout.get(self.row(ACCOUNTS, &account_key(MIRROR))?, 1) {
            Cell::Bytes(owner) => String::from_utf8_lossy(owner).parse().ok(),
            _ => None,
        }
    }

    /// The next transaction: it meets what it says it has read, and leaves a whole state.
    fn meet(
        &mut self,
        records: &[Record<'_>],
        tables: &Tables,
        read: &BTreeMap<i64, Vec<(i64, Vec<i64>)>>,
    ) -> Checked {
        let mut transfers = Vec::new();
        for record in records {
            let Operation::Put(row) = record.operation else { continue };
            match record.tree {
                HISTORY => {
                    transfers.push(int8(&tables.traces, row, 1));
                    let (says, price) = (int8(&tables.traces, row, 2), self.price(tables));
                    if says != NO_PRICE && Some(says) != price {
                        return Err(format!("{transfers:?} has read the price {says}, which is {price:?}"));
                    }
                }
                NUMBERS => {
                    let number = int8(&tables.numbers, row, 0);
                    if number > self.bound {
                        return Err(format!("{number} was drawn, and the bound is {}", self.bound));
                    }
                }
                _ => {}
            }
        }
        if let [one] = transfers[..]
            && let Some(read) = read.get(&one)
        {
            let before = self.lists(tables);
            if let Some((account, list)) =
                read.iter().find(|(account, list)| before.get(account) != Some(list))
            {
                return Err(format!(
                    "{one} has read {list:?} of {account}, which is {:?}",
                    before.get(account)
                ));
            }
        }
        self.at += 1;
        for record in records {
            self.apply(record)?;
        }
        for id in transfers {
            self.places.insert(id, self.at);
        }
        if records.iter().any(|record| record.tree == LISTS) {
            for (account, list) in self.lists(tables) {
                self.longer.entry(account).or_default().resize(list.len(), self.at);
            }
        }
        let price = self.price(tables);
        if let Some(price) = price.filter(|price| self.prices.last().is_none_or(|(_, last)| last != price)) {
            self.prices.push((self.at, price));
        }
        self.check_whole(tables)
    }

    fn apply(&mut self, record: &Record<'_>) -> Checked {
        if record.tree == META_TREE {
            if let Operation::Put(value) = record.operation
                && *record.key == *txn::sequence_key(NUMBER).as_bytes()
            {
                self.bound = bound_of(value);
            }
            return Ok(());
        }
        let place = (record.tree, record.key.to_vec());
        match record.operation {
            Operation::Put(row) => drop(self.rows.insert(place, row.to_vec())),
            Operation::Patch(patch) => {
                let row = self.rows.get_mut(&place).ok_or("bytes of a row that is not there have changed")?;
                redo::apply_patch(row, patch).map_err(|error| format!("{error:?}"))?;
            }
            Operation::Delete => {
                self.rows.remove(&place).ok_or("a row that is not there was deleted")?;
            }
            Operation::DropTree => self.rows.retain(|(tree, _), _| *tree != record.tree),
        }
        Ok(())
    }

    /// No transaction leaves half of what it does.
    fn check_whole(&self, tables: &Tables) -> Checked {
        let (price, mirror) = (self.price(tables), self.mirror(tables));
        if price.is_some() && price != mirror {
            return Err(format!("the price is {price:?}, and its mirror {mirror:?}"));
        }
        let balances = self.balances(tables);
        let sum: i64 = balances.values().sum();
        if balances.len() == ACCOUNTS_COUNT as usize && sum != TOTAL {
            return Err(format!("the balances are {sum} of {TOTAL}"));
        }
        Ok(())
    }

    /// There is a place in the order for a reader.
    fn explain(&self, sighting: &Sighting) -> Checked {
        if Some(sighting.depends_on) > self.epoch {
            // Nobody was told.
            return Ok(());
        }
        let (mut from, mut until) = (0, usize::MAX);
        for (account, list) in &sighting.lists {
            if let Some(last) = list.last() {
                let place = self.places.get(last);
                from = from.max(*place.ok_or(format!("a reader has seen {last}, which is in no log"))?);
            }
            let next = self.longer.get(account).and_then(|longer| longer.get(list.len()));
            until = until.min(next.copied().unwrap_or(usize::MAX));
        }
        if let Some(price) = sighting.price {
            let at = self.prices.iter().position(|(_, of)| *of == price);
            let at = at.ok_or(format!("a reader has seen the price {price}, which is in no log"))?;
            from = from.max(self.prices[at].0);
            until = until.min(self.prices.get(at + 1).map_or(usize::MAX, |(place, _)| *place));
        }
        let Sighting { lists, price, .. } = sighting;
        if from < until {
            Ok(())
        } else {
            Err(format!("a reader who saw {lists:?} and {price:?} is behind {from} and before {until}"))
        }
    }

    /// A transfer comes behind what its client has done and seen before.
    fn check_turns(&self, before: &[i64], id: i64) -> Checked {
        let Some(place) = self.places.get(&id) else { return Ok(()) };
        match before.iter().find(|before| self.places.get(before).is_none_or(|before| before >= place)) {
            None => Ok(()),
            Some(before) => Err(format!("{id} is before {before} in the log, and its client knew of that")),
        }
    }
}

impl Simulation {
    /// A client that is not waiting for anything, if the one that is drawn is so: it counts as waiting then.
    pub fn next_client(&self) -> Option<(usize, Arc<Client>)> {
        let mut pipelines = self.pipelines.borrow_mut();
        while pipelines.len() < CLIENTS {
            pipelines.push(Pipeline { client: self.engine().client(0), is_busy: false, before: Vec::new() });
        }
        let at = self.below(2 * CLIENTS as u64) as usize;
        let pipeline = pipelines.get_mut(at).filter(|pipeline| !pipeline.is_busy)?;
        pipeline.is_busy = true;
        Some((at, pipeline.client.clone()))
    }

    /// A client whose program has ended may submit the next one at once, before other threads do anything else.
    pub fn go_on(&self, at: usize) {
        if *self.depth.borrow() == 0 || self.is_over() || self.below(2) == 0 {
            return;
        }
        let client =
            self.pipelines.borrow_mut().get_mut(at).filter(|pipeline| !pipeline.is_busy).map(|pipeline| {
                pipeline.is_busy = true;
                pipeline.client.clone()
            });
        if let Some(client) = client {
            self.submit_transfer_of(Some((at, client)), 0);
        }
    }

    /// A transfer has ended, and its client with it, or goes on.
    pub fn transfer_ended(&self, at: Option<usize>, committed: Option<i64>) {
        let mut pipelines = self.pipelines.borrow_mut();
        let Some(pipeline) = at.and_then(|at| pipelines.get_mut(at)) else { return };
        pipeline.is_busy = false;
        if let Some(id) = committed {
            let before = std::mem::replace(&mut pipeline.before, vec![id]);
            self.order.borrow_mut().behind.push((before, id));
        }
    }

    /// Nobody will hear of what a client has submitted: it is gone.
    pub fn client_vanished(&self, at: Option<usize>) {
        let mut pipelines = self.pipelines.borrow_mut();
        if let Some(pipeline) = at.and_then(|at| pipelines.get_mut(at)) {
            *pipeline = Pipeline { client: self.engine().client(0), is_busy: false, before: Vec::new() };
        }
    }

    /// Looks at the lists of two accounts, and at the reference row or not, claiming no more than that.
    pub fn submit_look(&self) {
        let (one, other, prices) = (self.account(), self.account(), self.below(2) == 0);
        self.note("look", one * 100 + other, prices.into());
        let program = script(
            |_, _| {},
            move |txn| {
                let mut seen = Seen::default();
                for account in [one, other] {
                    let table = txn.table(LISTS).ok_or(Stop::Recompile)?;
                    let list = txn.get(&table, &account_key(account))?.map(|row| list_of(&table, row));
                    seen.lists.push((account, list.ok_or(Stop::Recompile)?));
                    between(txn);
                }
                seen.price = if prices { mirror_price(txn)? } else { None };
                between(txn);
                Ok(seen)
            },
        );
        let client = self.next_client();
        let options =
            SubmitOptions { client: client.as_ref().map(|(_, client)| client), ..SubmitOptions::default() };
        let start = self.now();
        let submission = self.engine().submit(program, options);
        self.looks.borrow_mut().push((client.map(|(at, _)| at), start, submission));
        self.collect();
    }

    /// Takes in the looks that have ended.
    pub fn collect_looks(&self) {
        let looks = std::mem::take(&mut *self.looks.borrow_mut());
        for (client, start, mut submission) in looks {
            let Some(done) = submission.try_take() else {
                self.looks.borrow_mut().push((client, start, submission));
                continue;
            };
            self.count("transaction");
            self.transfer_ended(client, None);
            let result = done.outcome.result;
            let (Ok(()), Some(seen)) = (result, done.program.value) else {
                self.expect(match result {
                    Err(Stop::Recompile) => Ok(()),
                    other => Err(format!("a look ended with {other:?}")),
                });
                continue;
            };
            let end = self.now();
            let checked = self.history.borrow_mut().committed(start, end, &[], &seen.lists);
            self.expect(checked);
            let mut pipelines = self.pipelines.borrow_mut();
            if let Some(pipeline) = client.and_then(|at| pipelines.get_mut(at)) {
                pipeline.before.extend(seen.lists.iter().filter_map(|(_, list)| list.last()));
            }
            drop(pipelines);
            let Seen { lists, price, .. } = seen;
            self.order.borrow_mut().saw(Sighting { depends_on: done.outcome.depends_on, lists, price });
            self.count("look");
        }
    }

    /// A write has reached the store, or a sync has ended; not if the process has died before.
    pub fn note_log(&self, body: impl FnOnce(&mut LogOrder)) {
        if self.doomed.borrow().is_none() {
            body(&mut self.order.borrow_mut());
        }
    }

    fn tables(&self) -> Tables {
        let table = |id: TreeId| self.engine().table(id).expect("there");
        let (accounts, lists, traces) = (table(ACCOUNTS), table(LISTS), table(HISTORY));
        Tables { accounts, lists, traces, items: table(ITEMS), numbers: table(NUMBERS) }
    }

    /// Goes through the log of the life that has ended; `left` is what the next start will find.
    pub fn check_log(&self, left: &MemoryStore) {
        self.pipelines.borrow_mut().clear();
        let checked = self.order.borrow_mut().go_through(left, &self.tables());
        self.expect(checked);
    }

    /// Whether that is what the start has recovered.
    pub fn check_log_recovered(&self, found: &Whole) {
        let checked = self.order.borrow().check_recovered(found, &self.tables());
        self.expect(checked);
    }
}
