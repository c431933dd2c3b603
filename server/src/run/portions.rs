//! Rows of a run that leave while it goes on.
//!
//! A run that reads in pages ([`archipel_engine::SubmitOptions::paging`]) holds nothing when it has a row
//! to give, so it may wait for whoever takes the row. Encoded rows are handed to the session in portions,
//! through a queue that holds a few: memory is bounded by those and not by the result, and a client that
//! does not read stops the run, and nobody else.
//!
//! ```text
//!   page ─ rows ─► out ─ portion ─►│ queue │─► session ─ once their epoch is durable ─► socket
//!   thread of the run, holding nothing     │         the executor's thread, as the client reads
//! ```
//!
//! What has left cannot be taken back: a run that has handed rows over is not begun again, and what it
//! fails with afterwards is told behind them, as PostgreSQL does. Whoever takes no more, because it has
//! been cancelled or its client has gone, closes the queue, which ends the run.
//!
//! Sorts and aggregates gather what they must before they give the first row, within the memory of the
//! statement; only what comes out of them is streamed. A routine's notices, and tables that are locked
//! when it comes to them, do not go with rows that have left, and neither do waits for advisory locks and
//! sequences, after which a run begins anew: what calls these is answered in one piece.

use archipel_engine::Stop;
use archipel_engine::id::Epoch;
use archipel_planner::native::ExecResult;
use tokio::sync::mpsc;

/// Rows are handed over in portions of this size.
const PORTION_BYTES: usize = 64 << 10;
/// Portions underway between a run and its session.
const PORTIONS_UNDERWAY: usize = 4;

/// Messages for the client; it may have them when an epoch is durable.
pub struct Portion {
    pub epoch: Epoch,
    pub messages: Vec<u8>,
}

/// The run's end of the queue.
pub struct Portions {
    queue: mpsc::Sender<Portion>,
    /// As of when the run reads; `None`: it holds something, or its thread must not wait.
    epoch: Option<Epoch>,
    has_sent: bool,
}

impl Portions {
    /// Both ends of a queue.
    pub fn new() -> (Portions, mpsc::Receiver<Portion>) {
        let (queue, portions) = mpsc::channel(PORTIONS_UNDERWAY);
        (Portions { queue, epoch: None, has_sent: false }, portions)
    }

    /// Says as of when the run reads that begins now, if it is one that may wait.
    pub fn begin(&mut self, epoch: Option<Epoch>) {
        self.epoch = epoch;
    }

    /// Whether something has left.
    pub fn has_sent(&self) -> bool {
        self.has_sent
    }

    /// Hands over what is in `out`, if that is enough; waits until there is room for it.
    #[inline]
    pub fn hand_over(&mut self, out: &mut Vec<u8>) -> ExecResult<()> {
        match self.epoch {
            Some(epoch) if out.len() >= PORTION_BYTES => self.send(epoch, out),
            _ => Ok(()),
        }
    }

    #[cold]
    fn send(&mut self, epoch: Epoch, out: &mut Vec<u8>) -> ExecResult<()> {
        self.has_sent = true;
        let portion = Portion { epoch, messages: std::mem::take(out) };
        // Nobody takes rows any more: the statement has been cancelled.
        self.queue.blocking_send(portion).map_err(|_| Stop::Cancelled.into())
    }
}
