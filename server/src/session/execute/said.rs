//! What a row statement has said: between its rows, as it came to them, but before all of those that
//! PostgreSQL collects before it tells any. And where it is much, a piece at a time.

use archipel_engine::id::Epoch;
use archipel_planner::native::Notice;

use crate::encode::RowsTo;
use crate::run::statement::StatementRun;
use crate::session::Session;

/// How much is said in one piece: some hundred microseconds of writing.
const SAID_AT_ONCE_BYTES: usize = 256 << 10;

/// About what a notice takes beside its message.
const NOTICE_BYTES: usize = 256;

/// Rows of a run as they were encoded, from its mark on, and how much of them has been told.
pub(super) struct Answered {
    mark: usize,
    rows: Vec<u8>,
    told: usize,
    /// Whether notices come before all of them.
    collected: bool,
}

impl Answered {
    /// Takes the rows out of a run.
    pub(super) fn of(run: &mut StatementRun) -> Answered {
        let rows = run.out.split_off(run.mark);
        // A COPY sends each row as it comes.
        let collected = run.plan.collects() && !matches!(run.rows_to, RowsTo::Copy(_));
        Answered { mark: run.mark, rows, told: 0, collected }
    }

    /// Rows that this notice comes behind, and that have not been told.
    fn before(&mut self, notice: &Notice) -> &[u8] {
        let end = match self.collected {
            true => 0,
            false => notice.behind.saturating_sub(self.mark).min(self.rows.len()),
        };
        let from = self.told;
        self.told = end.max(from);
        &self.rows[from..self.told]
    }

    /// Rows that have not been told.
    fn rest(&self) -> &[u8] {
        &self.rows[self.told..]
    }
}

impl Session {
    /// Says what a run has said, and its rows.
    pub(super) fn tell_answered(&mut self, run: &mut StatementRun) {
        let mut answered = Answered::of(run);
        self.output.restore(std::mem::take(&mut run.out));
        self.tell_between(std::mem::take(&mut run.notices), &mut answered);
        self.output.append(answered.rest());
    }

    fn tell_between(&mut self, notices: Vec<Notice>, answered: &mut Answered) {
        for notice in notices {
            self.output.append(answered.before(&notice));
            self.tell_notice(&notice);
        }
    }

    /// Says what a run has said, where that is much: a piece at a time, which leaves as the client reads,
    /// and between two of them the thread's other sessions have their turns. Otherwise it is left to whoever
    /// finishes the run.
    pub(super) async fn tell_at_length(&mut self, run: &mut StatementRun, depends_on: Epoch) {
        let mut bytes = 0;
        let is_little = run.notices.iter().all(|notice| {
            bytes += weight(notice);
            bytes <= SAID_AT_ONCE_BYTES
        });
        if is_little {
            return;
        }
        self.depend_on(depends_on);
        let mut answered = Answered::of(run);
        self.output.restore(std::mem::take(&mut run.out));
        let leaves = self.overheard.is_none() && !self.has_put_off();
        let mut notices = std::mem::take(&mut run.notices).into_iter();
        while !notices.as_slice().is_empty() {
            let mut bytes = 0;
            let mut piece = Vec::new();
            while bytes < SAID_AT_ONCE_BYTES
                && let Some(notice) = notices.next()
            {
                bytes += weight(&notice);
                piece.push(notice);
            }
            self.tell_between(piece, &mut answered);
            if leaves {
                // Who was asked to stop waits for no reader; what is left is told as it comes.
                let _ = self.flush_part().await;
            }
            tokio::task::yield_now().await;
        }
        run.out = self.output.take();
        run.mark = run.out.len();
        run.out.extend_from_slice(answered.rest());
    }
}

fn weight(notice: &Notice) -> usize {
    NOTICE_BYTES + notice.error.message().len()
}
