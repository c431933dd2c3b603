//! What one transaction may write: refused at the write that is too much, and nothing is left of it.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;

use archipel_engine::cell::{Cell, ColumnKind};
use archipel_engine::id::{GroupId, TreeId};
use archipel_engine::log::MemoryStore;
use archipel_engine::log::memory::Survivors;
use archipel_engine::schema::{IndexDef, IndexPlacement, Placement, TableDef};
use archipel_engine::{
    ColumnSource, DdlOp, Direction, Engine, EngineConfig, Inserted, KeyRange, OwnedCell, Stop,
    TransactionLimits, Txn,
};
use common::*;

const NOTES: TreeId = TreeId(200);
const ROWS: i64 = 30;
/// Of each text: a row has a few bytes more.
const LENGTH: usize = 10_000;

/// Nine rows can be changed, and ten not; some twenty inserted.
const LIMITS: TransactionLimits = TransactionLimits {
    row_bytes_max: 50_000,
    key_bytes_max: 1_000,
    undo_bytes_max: 100_000,
    redo_bytes_max: 200_000,
};

/// `notes (id int8 primary key, note text)`.
fn notes_table() -> TableDef {
    TableDef {
        id: NOTES,
        name: "notes".to_owned(),
        columns: vec![ColumnKind::Int8, ColumnKind::Bytes],
        key: vec![key_column(0)],
        placement: Placement::Distributed { group: GroupId(NOTES.0) },
        indexes: Vec::new(),
    }
}

fn insert(txn: &mut Txn<'_>, id: i64, letter: u8, length: usize) -> Result<Inserted, Stop> {
    let table = txn.table(NOTES).ok_or(Stop::Recompile)?;
    let row = table.layout.encode_row(&[Cell::Int8(id), Cell::Bytes(&vec![letter; length])]);
    txn.insert(&table, &account_key(id), &row)
}

fn add(txn: &mut Txn<'_>, id: i64) -> Result<(), Stop> {
    insert(txn, id, b'n', LENGTH).map(drop)
}

fn set(txn: &mut Txn<'_>, id: i64, letter: u8) -> Result<(), Stop> {
    set_text(txn, id, &[letter; LENGTH])
}

fn set_text(txn: &mut Txn<'_>, id: i64, text: &[u8]) -> Result<(), Stop> {
    let table = txn.table(NOTES).ok_or(Stop::Recompile)?;
    assert_eq!(txn.update(&table, &account_key(id), &[(1, Cell::Bytes(text))])?, Inserted::Ok);
    Ok(())
}

fn delete(txn: &mut Txn<'_>, id: i64) -> Result<(), Stop> {
    let table = txn.table(NOTES).ok_or(Stop::Recompile)?;
    assert!(txn.delete(&table, &account_key(id))?);
    Ok(())
}

/// An engine with these limits and notes that all say `a`.
fn notes(transaction: TransactionLimits) -> (Engine, MemoryStore) {
    let store = MemoryStore::new();
    let config = EngineConfig { background: false, transaction, ..config(2) };
    let engine = Engine::open(config, Arc::new(store.clone())).expect("the engine opens");
    ddl(&engine, DdlOp::CreateTable(notes_table())).expect("the table is made");
    for id in 0..ROWS {
        unpredicted(&engine, move |txn| insert(txn, id, b'a', LENGTH)).0.map(drop).expect("inserted");
    }
    (engine, store)
}

/// The first letter of each note, in the order of their numbers.
fn letters(engine: &Engine) -> String {
    let read = unpredicted(engine, |txn| {
        let table = txn.table(NOTES).ok_or(Stop::Recompile)?;
        let mut letters = String::new();
        txn.scan(&table, KeyRange::ALL, Direction::Ascending, &mut |_, row| {
            let Cell::Bytes(text) = table.layout.get(row, 1) else { panic!("a note") };
            assert!(text.len() == LENGTH && text.iter().all(|letter| *letter == text[0]));
            letters.push(char::from(text[0]));
            ControlFlow::Continue(())
        })?;
        Ok(letters)
    });
    read.0.expect("scanned")
}

/// All notes say `a`, but for the first ones.
fn beginning(letters: &str) -> String {
    format!("{letters:a<30}")
}

/// What the engine shows is what a start finds, with and without a checkpoint.
fn survives(engine: &Engine, store: &MemoryStore) {
    let expected = letters(engine);
    engine.step_log().expect("written");
    assert_eq!(letters(&reopen_stepped(&store.crash(Survivors::Synced))), expected);
    engine.checkpoint().expect("taken");
    assert_eq!(letters(&reopen_stepped(&store.crash(Survivors::Synced))), expected);
}

/// Does something for one number after the other until it is too much; how often it was not.
fn until_too_large(
    txn: &mut Txn<'_>,
    from: i64,
    mut write: impl FnMut(&mut Txn<'_>, i64) -> Result<(), Stop>,
) -> Result<i64, Stop> {
    for id in from..from + 1_000 {
        match write(txn, id) {
            Ok(()) => {}
            Err(Stop::TransactionTooLarge) => return Ok(id - from),
            Err(stop) => return Err(stop),
        }
    }
    panic!("nothing was refused");
}

#[test]
fn undo_beyond_the_limit_is_refused_at_the_write_and_taken_back_to_a_savepoint() {
    let (engine, store) = notes(LIMITS);
    let (counted, _) = run(
        &engine,
        |_, claims| claims.add_group(GroupId(NOTES.0)),
        |txn| {
            for id in 0..5 {
                set(txn, id, b'b')?;
            }
            // An EXCEPTION block each, one after the other.
            let mut counted = Vec::new();
            for _ in 0..3 {
                let savepoint = txn.savepoint();
                counted.push(until_too_large(txn, 5, |txn, id| set(txn, id, b'c'))?);
                txn.rollback_to(savepoint);
                counted.push(until_too_large(txn, 5, delete)?);
                txn.rollback_to(savepoint);
            }
            set(txn, 7, b'd')?;
            Ok(counted)
        },
    );
    assert_eq!(counted, Ok(vec![4; 6]));
    assert_eq!(letters(&engine), beginning("bbbbbaad"));
    survives(&engine, &store);
}

#[test]
fn a_program_that_writes_too_much_is_undone_and_the_next_one_runs() {
    let (engine, store) = notes(LIMITS);
    let (updated, _) = unpredicted(&engine, |txn| (0..ROWS).try_for_each(|id| set(txn, id, b'b')));
    assert_eq!(updated, Err(Stop::TransactionTooLarge));
    let (deleted, _) = unpredicted(&engine, |txn| (0..ROWS).try_for_each(|id| delete(txn, id)));
    assert_eq!(deleted, Err(Stop::TransactionTooLarge));
    let (added, _) = unpredicted(&engine, |txn| (100..200).try_for_each(|id| add(txn, id)));
    assert_eq!(added, Err(Stop::TransactionTooLarge));
    assert_eq!(letters(&engine), beginning(""));
    unpredicted(&engine, |txn| (0..9).try_for_each(|id| set(txn, id, b'e'))).0.expect("nine fit");
    assert_eq!(letters(&engine), beginning("eeeeeeeee"));
    survives(&engine, &store);
}

#[test]
fn redo_beyond_the_limit_is_refused() {
    let (engine, store) = notes(LIMITS);
    let (counted, _) = unpredicted(&engine, |txn| {
        let savepoint = txn.savepoint();
        let counted = until_too_large(txn, 100, add)?;
        txn.rollback_to(savepoint);
        assert_eq!(until_too_large(txn, 100, add)?, counted);
        txn.rollback_to(savepoint);
        set(txn, 0, b'f')?;
        Ok(counted)
    });
    // The write that passes the limit is the last.
    assert_eq!(counted, Ok(20));
    assert_eq!(letters(&engine), beginning("f"));
    survives(&engine, &store);
}

#[test]
fn images_of_an_interactive_transaction_are_refused_at_their_write() {
    let (engine, store) = notes(LIMITS);
    let transaction = engine.begin();
    for id in 0..5 {
        within(&engine, &transaction, move |txn| set(txn, id, b'b')).expect("set");
    }
    let savepoint = transaction.savepoint();
    within(&engine, &transaction, |txn| (5..9).try_for_each(|id| set(txn, id, b'c'))).expect("nine fit");
    for _ in 0..3 {
        let tenth = within(&engine, &transaction, |txn| set(txn, 9, b'd'));
        assert_eq!(tenth, Err(Stop::TransactionTooLarge));
        let tenth = within(&engine, &transaction, |txn| delete(txn, 9));
        assert_eq!(tenth, Err(Stop::TransactionTooLarge));
    }
    // The statement was undone with its lock.
    unpredicted(&engine, |txn| set(txn, 9, b'z')).0.expect("nobody holds it");
    // A row that was written already costs nothing more.
    for _ in 0..20 {
        within(&engine, &transaction, |txn| set(txn, 8, b'e')).expect("set again");
    }
    // Nor does what a savepoint, or a handler inside a statement, takes back.
    engine.rollback_to(&transaction, savepoint).wait().outcome.result.expect("taken back");
    let counted = within(&engine, &transaction, |txn| {
        let savepoint = txn.savepoint();
        let counted = until_too_large(txn, 10, |txn, id| set(txn, id, b'f'))?;
        txn.rollback_to(savepoint);
        assert_eq!(until_too_large(txn, 10, delete)?, counted);
        txn.rollback_to(savepoint);
        (10..14).try_for_each(|id| set(txn, id, b'g'))?;
        Ok(counted)
    });
    assert_eq!(counted, Ok(4));
    engine.commit(&transaction).wait().outcome.result.expect("what was accepted is committed");
    assert_eq!(letters(&engine), beginning("bbbbbaaaazgggg"));
    survives(&engine, &store);
}

#[test]
fn rows_put_in_by_an_interactive_transaction_count_as_redo() {
    let (engine, store) = notes(LIMITS);
    let transaction = engine.begin();
    let mut fitted = 0;
    let refused = loop {
        let id = ROWS + fitted;
        match within(&engine, &transaction, move |txn| insert(txn, id, b'n', LENGTH)) {
            Ok(_) => fitted += 1,
            Err(stop) => break stop,
        }
    };
    assert_eq!((refused, fitted), (Stop::TransactionTooLarge, 19));
    // Taken out again, a row leaves little.
    within(&engine, &transaction, |txn| delete(txn, ROWS)).expect("there is room for that");
    within(&engine, &transaction, |txn| insert(txn, 1_000, b'o', LENGTH)).map(drop).expect("and for another");
    engine.commit(&transaction).wait().outcome.result.expect("what was accepted is committed");
    assert_eq!(letters(&engine), format!("{}{}o", beginning(""), "n".repeat(18)));
    survives(&engine, &store);
}

#[test]
fn a_row_or_a_key_that_is_too_large_is_refused() {
    fn long(txn: &mut Txn<'_>) -> Result<(), Stop> {
        set_text(txn, 0, &vec![b'x'; 60_000])
    }
    fn new(txn: &mut Txn<'_>) -> Result<(), Stop> {
        insert(txn, 500, b'x', 60_000).map(drop)
    }
    fn named(txn: &mut Txn<'_>) -> Result<(), Stop> {
        insert_account(txn, 500, &"x".repeat(2_000), 1).map(drop)
    }
    let (engine, store) = notes(LIMITS);
    open_bank(&engine, 3);
    assert_eq!(unpredicted(&engine, long).0, Err(Stop::RowTooLarge));
    assert_eq!(unpredicted(&engine, new).0, Err(Stop::RowTooLarge));
    assert_eq!(unpredicted(&engine, named).0, Err(Stop::KeyTooLarge));
    let transaction = engine.begin();
    within(&engine, &transaction, |txn| set(txn, 1, b'b')).expect("set");
    assert_eq!(within(&engine, &transaction, long), Err(Stop::RowTooLarge));
    assert_eq!(within(&engine, &transaction, new), Err(Stop::RowTooLarge));
    assert_eq!(within(&engine, &transaction, named), Err(Stop::KeyTooLarge));
    engine.commit(&transaction).wait().outcome.result.expect("committed");
    assert_eq!(unpredicted(&engine, |txn| balance(txn, 500)).0, Ok(None));
    assert_eq!(letters(&engine), beginning("ab"));
    survives(&engine, &store);
}

#[test]
fn definitions_that_write_too_much_leave_everything_as_it_was() {
    let (engine, store) = notes(LIMITS);
    let mut def = notes_table();
    def.columns.push(ColumnKind::Int8);
    let columns =
        vec![ColumnSource::Kept(0), ColumnSource::Kept(1), ColumnSource::Constant(OwnedCell::Int8(1))];
    assert_eq!(ddl(&engine, DdlOp::AlterTable { def, columns }), Err(Stop::TransactionTooLarge));
    let index = IndexDef {
        id: TreeId(201),
        name: "notes_note".to_owned(),
        key: vec![key_column(1)],
        unique: false,
        nulls_equal: false,
        placement: IndexPlacement::Global { group: GroupId(201) },
    };
    assert_eq!(ddl(&engine, DdlOp::CreateIndex { table: NOTES, index }), Err(Stop::KeyTooLarge));
    assert_eq!(letters(&engine), beginning(""));
    unpredicted(&engine, |txn| set(txn, 2, b'h')).0.expect("as before");
    survives(&engine, &store);
}

/// A row that came and went leaves nothing in the log: not with what the thread commits next either, behind
/// somebody's row.
#[test]
fn a_row_that_came_and_went_within_a_transaction_takes_nobodys_row_away() {
    let (engine, store) = stepped();
    open_bank(&engine, 20);
    let read = |engine: &Engine| {
        let both = unpredicted(engine, |txn| Ok((balance(txn, 1)?, balance(txn, 5_000)?)));
        both.0.expect("read")
    };
    let transaction = engine.begin();
    within(&engine, &transaction, |txn| insert_account(txn, 5_000, "mine", 1)).map(drop).expect("inserted");
    let deleted = within(&engine, &transaction, |txn| {
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        txn.delete(&table, &account_key(5_000))
    });
    assert_eq!(deleted, Ok(true));
    engine.commit(&transaction).wait().outcome.result.expect("committed");
    std::thread::scope(|scope| {
        let other = || unpredicted(&engine, |txn| insert_account(txn, 5_000, "theirs", 7)).0;
        assert_eq!(scope.spawn(other).join().expect("it ends"), Ok(Inserted::Ok));
    });
    engine.step_log().expect("written");
    unpredicted(&engine, |txn| set_balance(txn, 1, 33)).0.map(drop).expect("set");
    engine.step_log().expect("written");
    assert_eq!(read(&engine), (Some(33), Some(7)));
    let after = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!(read(&after), (Some(33), Some(7)));
    engine.checkpoint().expect("taken");
    let after = reopen_stepped(&store.crash(Survivors::Synced));
    assert_eq!(read(&after), (Some(33), Some(7)));
}
