//! What a row statement has said, where that is much.

use archipel_engine::id::Epoch;
use archipel_planner::native::Notice;

use crate::run::statement::StatementRun;
use crate::session::Session;

/// How much is said in one piece: some hundred microseconds of writing.
const SAID_AT_ONCE_BYTES: usize = 256 << 10;

/// About what a notice takes beside its message.
const NOTICE_BYTES: usize = 256;

impl Session {
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
        // Notices were raised while the statement ran: they come before its rows.
        let rows = run.out.split_off(run.mark);
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
            self.tell_notices(piece);
            if leaves {
                // Who was asked to stop waits for no reader; what is left is told as it comes.
                let _ = self.flush_part().await;
            }
            tokio::task::yield_now().await;
        }
        run.out = self.output.take();
        run.mark = run.out.len();
        run.out.extend_from_slice(&rows);
    }
}

fn weight(notice: &Notice) -> usize {
    NOTICE_BYTES + notice.error.message().len()
}
