//! The tables, and the programs that run over them.

use super::common::*;
use super::*;

thread_local! {
    pub static COMPARED: RefCell<Option<(Option<i64>, Option<i64>)>> = const { RefCell::new(None) };
}

/// A transfer has read no price.
pub const NO_PRICE: i64 = -1;

/// `history (account int8, transfer int8, price int8, primary key (account, transfer))`.
pub fn history_table() -> TableDef {
    TableDef {
        id: HISTORY,
        name: "history".to_owned(),
        columns: vec![ColumnKind::Int8, ColumnKind::Int8, ColumnKind::Int8],
        key: vec![key_column(0), key_column(1)],
        placement: Placement::Distributed { group: GroupId(ACCOUNTS.0) },
        indexes: Vec::new(),
    }
}

/// `lists (account int8 primary key, transfers bytea)`.
pub fn lists_table() -> TableDef {
    TableDef {
        id: LISTS,
        name: "lists".to_owned(),
        columns: vec![ColumnKind::Int8, ColumnKind::Bytes],
        key: vec![key_column(0)],
        placement: Placement::Distributed { group: GroupId(ACCOUNTS.0) },
        indexes: Vec::new(),
    }
}

pub fn history_key(account: i64, id: i64) -> KeyBuf {
    let mut key = account_key(account);
    encode_cell(&mut key, Cell::Int8(id), &key_column(1), ColumnKind::Int8);
    key
}

/// What a transfer saw: the lists before it, or rows that should have been there and were not.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub lists: Vec<(i64, Vec<i64>)>,
    /// The reference row, if it was looked at.
    pub price: Option<i64>,
    pub missing: Option<&'static str>,
}

/// The transfers in a row of `lists`.
pub fn list_of(table: &crate::TableMeta, row: &[u8]) -> Vec<i64> {
    match table.layout.get(row, 1) {
        Cell::Bytes(bytes) => bytes
            .chunks_exact(8)
            .map(|word| i64::from_le_bytes(word.try_into().expect("chunks of eight")))
            .collect(),
        _ => Vec::new(),
    }
}

/// Moves money, and appends the transfer's number to the lists of both accounts; now and then by
/// writing these anew. Some note the price of the moment, which they claim nothing for.
pub fn traced_transfer(txn: &mut Txn<'_>, id: i64, from: i64, to: i64, amount: i64) -> Result<Seen, Stop> {
    let mut seen = Seen::default();
    let mut overdrawn = false;
    // What a statement of a transaction has read may be otherwise at its commit.
    if id % 3 == 0 && txn.transaction_id().is_none() {
        seen.price = mirror_price(txn)?;
    }
    for (account, change) in [(from, -amount), (to, amount)] {
        between(txn);
        let Some(have) = balance(txn, account)? else {
            return Ok(Seen { missing: Some("an account"), ..seen });
        };
        between(txn);
        if set_balance(txn, account, have + change)? != Inserted::Ok {
            return Ok(Seen { missing: Some("an account to update"), ..seen });
        }
        overdrawn |= have + change < 0 && account == from;
        let table = txn.table(LISTS).ok_or(Stop::Recompile)?;
        let Some(list) = txn.get(&table, &account_key(account))?.map(|row| list_of(&table, row)) else {
            return Ok(Seen { missing: Some("a list"), ..seen });
        };
        between(txn);
        let bytes: Vec<u8> = list.iter().chain([&id]).flat_map(|id| id.to_le_bytes()).collect();
        let key = account_key(account);
        let written = if id % 4 == 0 {
            if !txn.delete(&table, &key)? {
                return Ok(Seen { missing: Some("a list to delete"), ..seen });
            }
            between(txn);
            let row = table.layout.encode_row(&[Cell::Int8(account), Cell::Bytes(&bytes)]);
            txn.insert(&table, &key, &row)?
        } else {
            txn.update(&table, &key, &[(1, Cell::Bytes(&bytes))])?
        };
        if written != Inserted::Ok {
            return Ok(Seen { missing: Some("a list to update"), ..seen });
        }
        seen.lists.push((account, list));
    }
    let table = txn.table(HISTORY).ok_or(Stop::Recompile)?;
    let price = seen.price.unwrap_or(NO_PRICE);
    let row = table.layout.encode_row(&[Cell::Int8(from), Cell::Int8(id), Cell::Int8(price)]);
    if txn.insert(&table, &history_key(from, id), &row)? != Inserted::Ok {
        return Ok(Seen { missing: Some("the absence of its own trace"), ..seen });
    }
    // Overdrafts abort after everything was written.
    if overdrawn { Err(Stop::Abort) } else { Ok(seen) }
}

/// Checks that nobody else holds what this program holds, and lets others run.
pub fn between(txn: &Txn<'_>) {
    let Some(simulation) = simulation() else { return };
    let mine: BTreeSet<PartitionId> = txn.held_partitions().into_iter().collect();
    if !planted::any() {
        for other in simulation.holders.borrow().iter() {
            simulation.expect(match other.is_disjoint(&mine) {
                true => Ok(()),
                false => Err(format!("two holders: {other:?} and {mine:?}")),
            });
        }
    }
    simulation.holders.borrow_mut().push(mine);
    simulation.come_between();
    simulation.holders.borrow_mut().pop();
}

/// How a reader of everything walks.
#[derive(Clone, Copy, Debug)]
pub enum Walk {
    Up,
    Down,
    /// One body a partition.
    FanOut,
}

/// All balances and lists.
pub fn whole(txn: &mut Txn<'_>, walk: Walk) -> Result<Whole, Stop> {
    let mut seen = Whole::default();
    let (accounts, lists) =
        (txn.table(ACCOUNTS).ok_or(Stop::Recompile)?, txn.table(LISTS).ok_or(Stop::Recompile)?);
    between(txn);
    let range = KeyRange::ALL;
    match walk {
        Walk::Up | Walk::Down => {
            let direction =
                if matches!(walk, Walk::Up) { Direction::Ascending } else { Direction::Descending };
            txn.scan(&accounts, range, direction, &mut |_, row| {
                seen.balances.insert(int8(&accounts, row, 0), int8(&accounts, row, 2));
                ControlFlow::Continue(())
            })?;
            between(txn);
            txn.scan(&lists, range, direction, &mut |_, row| {
                seen.lists.insert(int8(&lists, row, 0), list_of(&lists, row));
                ControlFlow::Continue(())
            })?;
        }
        Walk::FanOut => {
            let parts = txn.fan_out(&accounts, range, &|rows| {
                let mut part = Vec::new();
                rows.scan(&mut |_, row| {
                    part.push((int8(&accounts, row, 0), int8(&accounts, row, 2)));
                    ControlFlow::Continue(())
                });
                part
            })?;
            seen.balances.extend(parts.into_iter().flatten());
            between(txn);
            let parts = txn.fan_out(&lists, range, &|rows| {
                let mut part = Vec::new();
                rows.scan(&mut |_, row| {
                    part.push((int8(&lists, row, 0), list_of(&lists, row)));
                    ControlFlow::Continue(())
                });
                part
            })?;
            seen.lists.extend(parts.into_iter().flatten());
        }
    }
    // The mirror of the reference row is no account.
    seen.balances.remove(&MIRROR);
    between(txn);
    Ok(seen)
}

pub fn mirror_price(txn: &mut Txn<'_>) -> Result<Option<i64>, Stop> {
    let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
    let price = txn.get(&table, &item_key(1))?.map(|row| int8(&table, row, 1));
    Ok(price)
}

/// The mirror of the price: the owner of an account that is none.
pub fn mirrored(txn: &mut Txn<'_>) -> Result<Option<i64>, Stop> {
    let accounts = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
    Ok(txn.get(&accounts, &account_key(MIRROR))?.map(|row| match accounts.layout.get(row, 1) {
        Cell::Bytes(owner) => String::from_utf8_lossy(owner).parse().unwrap_or(-1),
        _ => -1,
    }))
}

/// The indexes have the entries of the rows and no others.
pub fn check_indexes(engine: &Engine) {
    let (result, _) = unpredicted(engine, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        for index in &table.indexes[..table.def.indexes.len()] {
            let mut keys = Vec::new();
            txn.scan_index(&table, &index.def, KeyRange::ALL, Direction::Ascending, &mut |_, key| {
                keys.push(key.to_vec());
                ControlFlow::Continue(())
            })?;
            let mut rows = Vec::new();
            for key in &keys {
                rows.push(txn.get(&table, key)?.map(|row| match table.layout.get(row, 1) {
                    Cell::Bytes(owner) if index.def.id == BY_OWNER => (0, owner.to_vec()),
                    _ => (int8(&table, row, 2), Vec::new()),
                }));
            }
            assert_eq!(keys.len(), ACCOUNTS_COUNT as usize + 1, "entries of {}", index.def.name);
            assert!(rows.iter().all(Option::is_some), "an entry of {} leads nowhere", index.def.name);
            assert!(rows.is_sorted(), "{} is out of order", index.def.name);
        }
        Ok(())
    });
    assert_eq!(result, Ok(()));
}

/// The numbers of the transfers that left their trace.
pub fn traces(engine: &Engine) -> BTreeSet<i64> {
    unpredicted(engine, |txn| {
        let table = txn.table(HISTORY).ok_or(Stop::Recompile)?;
        let mut ids = BTreeSet::new();
        txn.scan(&table, KeyRange::ALL, Direction::Ascending, &mut |_, row| {
            ids.insert(int8(&table, row, 1));
            ControlFlow::Continue(())
        })?;
        Ok(ids)
    })
    .0
    .expect("scanned")
}

pub fn fill(engine: &Engine) {
    open_bank(engine, ACCOUNTS_COUNT);
    for table in [history_table(), lists_table(), items_table()] {
        ddl(engine, DdlOp::CreateTable(table)).expect("made");
    }
    super::definitions::make_numbers(engine);
    run(
        engine,
        |_, claims| claims.everything(),
        |txn| {
            let table = txn.table(ITEMS).ok_or(Stop::Recompile)?;
            let row = table.layout.encode_row(&[Cell::Int4(1), Cell::Int8(0)]);
            assert_eq!(txn.insert(&table, &item_key(1), &row)?, Inserted::Ok);
            assert_eq!(insert_account(txn, MIRROR, "0", 0)?, Inserted::Ok);
            let table = txn.table(LISTS).ok_or(Stop::Recompile)?;
            for account in 0..ACCOUNTS_COUNT {
                let row = table.layout.encode_row(&[Cell::Int8(account), Cell::Bytes(&[])]);
                assert_eq!(txn.insert(&table, &account_key(account), &row)?, Inserted::Ok);
            }
            Ok(())
        },
    )
    .0
    .expect("filled");
    let keys = vec![account_key(4), account_key(8), account_key(16)];
    engine.pre_split(GroupId(ACCOUNTS.0), keys).wait().outcome.result.expect("split");
    engine.step_log().expect("written");
}
