//! Definitions beside everything else: an index that comes and goes, at once or in slices, a table that
//! changes its group, and a sequence that is altered, or restarted with its table emptied, while others
//! draw from it.

use super::common::*;
use super::programs::*;
use super::*;
use crate::id::SequenceId;
use crate::program::Program;
use crate::schema::{IndexDef, IndexPlacement};
use crate::table::SequenceDef;
use crate::txn::{BuildStep, FillIndex, NextValue, SequenceRecord};

/// Rows under the numbers that were drawn: `numbers (number int8 primary key)`.
pub const NUMBERS: TreeId = TreeId(122);
pub const NUMBER: SequenceId = SequenceId(130);

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

/// So many numbers are drawn at once, most of them in vain: each bound is soon used up.
const DRAWN_AT_ONCE: i64 = 20;

/// The greatest number that may have been drawn, as a record of the sequence says.
pub fn bound_of(record: &[u8]) -> i64 {
    let record: SequenceRecord = serde_json::from_slice(record).expect("a record");
    let position = record.position(&number_def(1));
    if position.called { position.last } else { position.last - 1 }
}

/// The first id of indexes that are filled in slices; each has its own.
const BUILT: u32 = 1_000;

/// How far an index is that is filled in slices.
#[derive(Clone)]
enum Stage {
    Declare,
    Fill(KeyBuf),
    Complete,
    GiveUp,
}

/// An index that is filled in slices, and its program that is under way.
pub struct Build {
    id: TreeId,
    stage: Stage,
    under_way: Submission<Script<Option<KeyBuf>>>,
}

fn built_index(id: TreeId) -> IndexDef {
    let placement = IndexPlacement::Global { group: GroupId(id.0) };
    IndexDef { id, name: format!("accounts_balance_{id}"), placement, ..balance_index_def() }
}

fn build_step(step: BuildStep) -> DdlOp {
    DdlOp::BuildIndex { table: ACCOUNTS, step }
}

/// A change of definitions, or a slice, as a program of one kind.
fn stage_program(id: TreeId, stage: &Stage, rows_max: usize) -> Script<Option<KeyBuf>> {
    let definition = |op: DdlOp| {
        script(
            |_, claims| claims.add_group(REFERENCE_GROUP),
            move |txn| {
                txn.claim_for([&op], [])?;
                between(txn);
                assert_eq!(txn.ddl(op.clone())?, Inserted::Ok);
                between(txn);
                Ok(None)
            },
        )
    };
    match stage {
        Stage::Declare => script(
            |_, claims| claims.add_group(REFERENCE_GROUP),
            move |txn| {
                let op = build_step(BuildStep::Declare(built_index(id)));
                txn.claim_for([&op], [])?;
                if txn.table(ACCOUNTS).ok_or(Stop::Recompile)?.indexes.len() > 1 {
                    return Err(Stop::Abort);
                }
                between(txn);
                assert_eq!(txn.ddl(op)?, Inserted::Ok);
                between(txn);
                Ok(None)
            },
        ),
        Stage::Fill(from) => {
            let from = from.clone();
            script(
                |_, _| {},
                move |txn| {
                    let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
                    let index = table.declared().first().ok_or(Stop::Recompile)?;
                    let mut slice = FillIndex::new(&table, index, from.clone(), rows_max);
                    slice.run(txn)?;
                    between(txn);
                    Ok(slice.next)
                },
            )
        }
        Stage::Complete => definition(build_step(BuildStep::Complete(id))),
        Stage::GiveUp => definition(build_step(BuildStep::GiveUp(id))),
    }
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

/// Before and after a number is drawn.
fn others_draw(alters: bool) {
    if let Some(simulation) = simulation() {
        simulation.others_draw(alters);
    }
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
                txn.claim_for([&DdlOp::CreateIndex { table: ACCOUNTS, index: balance_index_def() }], [])?;
                let table = txn.table(ACCOUNTS).ok_or(Stop::Recompile)?;
                if !table.declared().is_empty() {
                    return Ok(());
                }
                let op = match table.def.indexes.iter().find(|index| index.id != BY_OWNER) {
                    Some(index) => DdlOp::DropIndex { table: ACCOUNTS, index: index.id },
                    None => DdlOp::CreateIndex { table: ACCOUNTS, index: balance_index_def() },
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

    /// An index that is filled in slices comes a step further.
    pub fn build_index(&self) {
        let Some(mut build) = self.build.borrow_mut().take() else {
            let id = TreeId(BUILT + self.completed.borrow().len() as u32);
            self.completed.borrow_mut().push(false);
            return self.submit_stage(id, Stage::Declare);
        };
        let Some(done) = build.under_way.try_take() else {
            *self.build.borrow_mut() = Some(build);
            return;
        };
        self.count("transaction");
        let next = match (build.stage, done.outcome.result) {
            (Stage::Declare, Ok(())) => Stage::Fill(KeyBuf::new()),
            (Stage::Declare, Err(Stop::Abort)) => return,
            (Stage::Fill(_), Ok(())) => match done.program.value.flatten() {
                Some(_) if self.below(200) == 0 => Stage::GiveUp,
                Some(next) => Stage::Fill(next),
                None => Stage::Complete,
            },
            (Stage::Fill(from), Err(Stop::LockNotAvailable)) => {
                self.count("slice refused");
                Stage::Fill(from)
            }
            (Stage::Complete, Ok(())) => return self.count("index filled"),
            (Stage::GiveUp, Ok(())) => return self.count("index given up"),
            (stage, Err(Stop::DiskFull | Stop::LogFailed | Stop::Recompile)) => stage,
            (_, other) => return self.expect(Err(format!("an index that is filled ended with {other:?}"))),
        };
        self.submit_stage(build.id, next);
    }

    fn submit_stage(&self, id: TreeId, stage: Stage) {
        self.note("build", id.0.into(), 0);
        if matches!(stage, Stage::Complete)
            && let Some(completed) = self.completed.borrow_mut().get_mut((id.0 - BUILT) as usize)
        {
            *completed = true;
        }
        let program = stage_program(id, &stage, 1 + self.below(5) as usize);
        let under_way = self.engine().submit(program, SubmitOptions::default());
        *self.build.borrow_mut() = Some(Build { id, stage, under_way });
    }

    /// Others are after the same numbers: they draw some, or alter the sequence first.
    fn others_draw(&self, alters: bool) {
        let depth = *self.depth.borrow();
        if depth > 1 || self.is_over() || self.below(4) != 0 {
            return;
        }
        *self.depth.borrow_mut() = depth + 1;
        self.guarded(|| {
            if alters {
                self.change_sequence();
                self.drain_all();
            }
            for _ in 0..=self.below(if alters { 5 } else { 2 }) {
                self.submit_number();
            }
        });
        *self.depth.borrow_mut() = depth;
    }

    /// Draws a number and puts a row under it, which is new, as every number is.
    pub fn submit_number(&self) {
        self.note("number", 0, 0);
        let program = script(
            |_, _| {},
            |txn| {
                between(txn);
                others_draw(true);
                let Some((number, _)) = txn.next_values(NUMBER, DRAWN_AT_ONCE)? else {
                    return Err(Stop::Abort);
                };
                between(txn);
                others_draw(false);
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

    /// What a start finds of definitions is whole: indexes that are complete; and of the numbers that it
    /// has, none comes again.
    pub fn check_definitions(&self, engine: &Engine) {
        let table = engine.table(ACCOUNTS).expect("there");
        let completed = self.completed.borrow();
        let is_whole = |id: TreeId| id.0 < BUILT || completed.get((id.0 - BUILT) as usize) == Some(&true);
        self.expect(match table.indexes.iter().find(|index| !is_whole(index.def.id)) {
            None => Ok(()),
            Some(index) => Err(format!("{} was never completed", index.def.name)),
        });
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
