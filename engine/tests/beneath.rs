//! What a statement sees while the routines that it calls write, against a model: random writes
//! with savepoints taken back, in one-shots and in transactions that stay open, on rows and on an index.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use archipel_engine::{Direction, Inserted, Stop, Txn};
use common::*;

const KEYS: i64 = 24;
const SEEDS: u64 = 60;
const STEPS: u32 = 40;

type Model = BTreeMap<i64, (String, i64)>;

/// The same sequence for the same seed (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// One write, in the database and in the model.
fn write(txn: &mut Txn<'_>, model: &mut Model, random: &mut Random) -> Result<i64, Stop> {
    let id = random.below(KEYS as u64) as i64;
    let amount = random.below(1000) as i64;
    match (model.get_mut(&id), random.below(3)) {
        (None, _) => {
            // Owners are unique, and change hands when a row is deleted and comes again.
            let owner = format!("owner {}", id + KEYS * random.below(2) as i64);
            assert_eq!(insert_account(txn, id, &owner, amount)?, Inserted::Ok);
            model.insert(id, (owner, amount));
        }
        (Some(_), 0) => {
            let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
            assert!(txn.delete(&table, &account_key(id))?);
            model.remove(&id);
        }
        (Some(row), _) => {
            assert_eq!(set_balance(txn, id, amount)?, Inserted::Ok);
            row.1 = amount;
        }
    }
    Ok(id)
}

fn assert_sees(txn: &mut Txn<'_>, model: &Model) -> Result<(), Stop> {
    let rows: Vec<(i64, String, i64)> =
        model.iter().map(|(id, (owner, balance))| (*id, owner.clone(), *balance)).collect();
    assert_eq!(all_accounts(txn, Direction::Ascending)?, rows);
    let backwards: Vec<_> = rows.iter().rev().cloned().collect();
    assert_eq!(all_accounts(txn, Direction::Descending)?, backwards);
    for id in 0..KEYS {
        assert_eq!(balance(txn, id)?, model.get(&id).map(|(_, balance)| *balance), "account {id}");
        for owner in [format!("owner {id}"), format!("owner {}", id + KEYS)] {
            let has = model.get(&id).filter(|(known, _)| *known == owner);
            assert_eq!(account_of(txn, &owner)?, has.map(|_| account_key(id).to_vec()), "{owner}");
        }
    }
    Ok(())
}

/// Statements, one in the other, whose routines write.
fn statement(txn: &mut Txn<'_>, model: &mut Model, random: &mut Random, depth: u32) -> Result<(), Stop> {
    let seen = model.clone();
    let begun = txn.savepoint();
    let before = txn.begin_beneath();
    let mut written = BTreeSet::new();
    for _ in 0..random.below(u64::from(STEPS >> depth)) {
        let outer = txn.read_beneath(false);
        match random.below(8) {
            0 if depth < 2 => {
                let known = model.clone();
                statement(txn, model, random, depth + 1)?;
                written.extend(known.keys().chain(model.keys()).filter(|id| known.get(id) != model.get(id)));
            }
            1 => {
                let (savepoint, known) = (txn.savepoint(), model.clone());
                for _ in 0..random.below(5) {
                    write(txn, model, random)?;
                }
                txn.read_beneath(outer);
                assert_sees(txn, &seen)?;
                txn.read_beneath(false);
                txn.rollback_to(savepoint);
                *model = known;
            }
            _ => drop(written.insert(write(txn, model, random)?)),
        }
        assert_sees(txn, model)?;
        txn.read_beneath(outer);
        assert_sees(txn, &seen)?;
        let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
        for id in 0..KEYS {
            // What was taken back is no write; the statement reads beneath what is one.
            let is_written = txn.has_written_since(begun, &table, &account_key(id));
            assert_eq!(txn.is_written_over(&table, &account_key(id)), is_written, "account {id}");
        }
        for id in &written {
            assert!(txn.has_written_since(begun, &table, &account_key(*id)), "account {id}");
        }
        for id in (0..KEYS).filter(|id| seen.get(id) != model.get(id)) {
            assert!(txn.has_written_since(begun, &table, &account_key(id)), "account {id}");
        }
    }
    txn.end_beneath(before);
    Ok(())
}

#[test]
fn a_one_shot_sees_what_there_was_when_it_began() {
    for seed in 0..SEEDS {
        let (engine, _store) = stepped();
        open_bank(&engine, 8);
        let (result, _) = unpredicted(&engine, move |txn| {
            let mut model: Model = (0..8).map(|id| (id, (format!("owner {id}"), 100))).collect();
            let mut random = Random(seed);
            for _ in 0..4 {
                write(txn, &mut model, &mut random)?;
                statement(txn, &mut model, &mut random, 0)?;
                assert_sees(txn, &model)?;
            }
            Ok(())
        });
        assert_eq!(result, Ok(()), "seed {seed}");
    }
}

#[test]
fn so_does_a_statement_of_a_transaction_that_stays_open() {
    for seed in 0..SEEDS {
        let (engine, _store) = stepped();
        open_bank(&engine, 8);
        let transaction = engine.begin();
        let mut model: Model = (0..8).map(|id| (id, (format!("owner {id}"), 100))).collect();
        let mut random = Random(seed);
        for _ in 0..4 {
            let (first, drawn) = (model.clone(), random.below(u64::MAX));
            let run = within(&engine, &transaction, move |txn| {
                // It may begin anew where it finds out what it touches.
                let (mut known, mut drawn) = (first.clone(), Random(drawn));
                write(txn, &mut known, &mut drawn)?;
                statement(txn, &mut known, &mut drawn, 0)?;
                assert_sees(txn, &known)?;
                Ok(known)
            });
            model = run.unwrap_or_else(|stop| panic!("seed {seed}: {stop:?}"));
        }
        engine.commit(&transaction).wait().outcome.result.expect("committed");
        let (result, _) = unpredicted(&engine, move |txn| assert_sees(txn, &model));
        assert_eq!(result, Ok(()), "seed {seed}");
    }
}
