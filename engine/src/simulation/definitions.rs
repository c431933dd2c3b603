//! Definitions beside everything else: an index that comes and goes, a table that changes its group, and
//! a sequence that is altered, or restarted with its table emptied, while others draw from it.

use super::common::*;
use super::programs::*;
use super::*;
use crate::id::SequenceId;
use crate::table::SequenceDef;
use crate::txn::NextValue;

/// Rows under the numbers that were drawn: `numbers (number int8 primary key)`.
const NUMBERS: TreeId = TreeId(122);
const NUMBER: SequenceId = SequenceId(130);

fn numbers_table() -> TableDef {
    TableDef {
        id: NUMBERS,
        name: "numbers".to_owned(),
        columns: vec![ColumnKind::Int8],
        key: vec![key_column(0)],
        placement: Placement::Distributed { group: GroupId(NUMBERS.0) },
        indexes: Vec::new(),
    }
}

fn number_def(increment: i64) -> SequenceDef {
    SequenceDef { id: NUMBER, start: 1, increment, min: 1, max: i64::MAX, cycle: false }
}

/// The table and its sequence, as a new world has them.
pub fn make_numbers(engine: &Engine) {
    ddl(engine, DdlOp::CreateTable(numbers_table())).expect("made");
    ddl(engine, DdlOp::CreateSequence(number_def(1))).expect("made");
}

/// Several changes in one commit, which claims what they are about and nothing else.
fn definitions(ops: Vec<DdlOp>) -> Script<()> {
    script(
        |_, claims| claims.add_group(REFERENCE_GROUP),
        move |txn| {
            txn.claim_for(&ops, [])?;
            between(txn);
            for op in &ops {
                assert_eq!(txn.ddl(op.clone())?, Inserted::Ok);
                between(txn);
            }
            Ok(())
        },
    )
}

impl Simulation {
    /// Changes a definition beside running transfers.
    pub fn change_definitions(&self) {
        match self.below(4) {
            0 => self.regroup(),
            1 => self.change_sequence(),
            _ => self.change_index(),
        }
    }

    /// Adds an index, or drops it.
    fn change_index(&self) {
        self.note("ddl", 0, 0);
        let program = script(
            |_, claims| claims.add_group(REFERENCE_GROUP),
            |txn| {
                let there = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?.index(BY_BALANCE).is_some();
                let op = if there {
                    DdlOp::DropIndex { table: ACCOUNTS, index: BY_BALANCE }
                } else {
                    DdlOp::CreateIndex { table: ACCOUNTS, index: balance_index_def() }
                };
                between(txn);
                assert_eq!(txn.ddl(op)?, Inserted::Ok);
                between(txn);
                Ok(())
            },
        );
        self.submit_definition(program, "ddl");
    }

    /// The lists leave the accounts' group for one of their own, or come back.
    fn regroup(&self) {
        self.note("regroup", 0, 0);
        let program = script(
            |_, claims| claims.add_group(REFERENCE_GROUP),
            |txn| {
                let mut def = txn.table(LISTS).ok_or(Stop::Recompile)?.def.clone();
                let own = Placement::Distributed { group: GroupId(LISTS.0) };
                def.placement = if def.placement == own { lists_table().placement } else { own };
                let columns = (0..2).map(ColumnSource::Kept).collect();
                between(txn);
                assert_eq!(txn.ddl(DdlOp::AlterTable { def, columns })?, Inserted::Ok);
                between(txn);
                Ok(())
            },
        );
        self.submit_definition(program, "regroup");
    }

    /// The sequence goes on in other steps; or it begins anew, and its table is emptied with it.
    fn change_sequence(&self) {
        let (increment, restarts) = (1 + self.below(3) as i64, self.below(2) == 0);
        self.note("alter sequence", increment, restarts.into());
        let alter = |restart| DdlOp::AlterSequence { def: number_def(increment), restart, from: NUMBER };
        let ops = if restarts { vec![DdlOp::Truncate(NUMBERS), alter(Some(1))] } else { vec![alter(None)] };
        self.submit_definition(definitions(ops), "alter sequence");
    }

    fn submit_definition(&self, program: Script<()>, what: &'static str) {
        let submission = self.engine().submit(program, SubmitOptions::default());
        self.others.borrow_mut().push(submission);
        self.count(what);
    }

    /// Draws a number and puts a row under it, which is new, as every number is.
    pub fn submit_number(&self) {
        self.note("number", 0, 0);
        let program = script(
            |_, _| {},
            |txn| {
                between(txn);
                let NextValue::Value(number) = txn.next_value(NUMBER)? else { return Err(Stop::Abort) };
                between(txn);
                let table = txn.table(NUMBERS).ok_or(Stop::Recompile)?;
                let row = table.layout.encode_row(&[Cell::Int8(number)]);
                match txn.insert(&table, &account_key(number), &row)? {
                    Inserted::Ok => {}
                    // Refused, as by a statement; the client looks why.
                    _ => return Err(Stop::Abort),
                }
                between(txn);
                Ok(())
            },
        );
        let submission = self.engine().submit(program, SubmitOptions::default());
        self.others.borrow_mut().push(submission);
        self.count("number");
    }

    /// What a start finds of definitions is whole: of the numbers that it has, none comes again.
    pub fn check_definitions(&self, engine: &Engine) {
        let (result, _) = unpredicted(engine, |txn| {
            let NextValue::Value(number) = txn.next_value(NUMBER)? else { return Err(Stop::Abort) };
            let table = txn.table(NUMBERS).ok_or(Stop::Recompile)?;
            Ok(txn.get(&table, &account_key(number))?.is_some())
        });
        self.expect(match result {
            Ok(false) => Ok(()),
            other => Err(format!("a number comes again after a crash: {other:?}")),
        });
    }
}
