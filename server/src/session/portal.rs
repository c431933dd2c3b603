//! A portal: a bound statement, and how far its rows have been sent.

use std::sync::Arc;

use archipel_sql::datum::Datum;

use crate::encode::Formats;
use crate::statement::Prepared;
use crate::wire::output::Output;

/// See the module's head.
pub struct Portal {
    pub prepared: Arc<Prepared>,
    pub formats: Formats,
    pub state: PortalState,
}

/// How far a portal has come.
pub enum PortalState {
    /// Bound with these parameters, not yet run.
    Ready(Vec<Datum>),
    /// Run to its end, its rows waiting to be fetched in portions.
    Rows(PendingRows),
    /// Everything has been sent.
    Done,
}

/// Encoded DataRow messages, fetched from the front.
pub struct PendingRows {
    messages: Vec<u8>,
    at: usize,
    sent: u64,
    /// The command tag to end with.
    pub tag: &'static str,
    pub count_in_tag: bool,
    pub depends_on: archipel_engine::id::Epoch,
}

impl PendingRows {
    pub fn new(messages: Vec<u8>, tag: &'static str, depends_on: archipel_engine::id::Epoch) -> PendingRows {
        PendingRows { messages, at: 0, sent: 0, tag, count_in_tag: true, depends_on }
    }

    /// Moves up to `rows_max` rows (all, if zero) to `output`; answers how many, and whether
    /// more remain. As PostgreSQL, it does not look past the limit: reaching it exactly
    /// suspends.
    pub fn fetch(&mut self, rows_max: usize, output: &mut Output) -> (u64, bool) {
        let (start, mut rows) = (self.at, 0);
        let limit = if rows_max == 0 { u64::MAX } else { rows_max as u64 };
        while rows < limit {
            let Some(length) = self.messages.get(self.at + 1..self.at + 5) else { break };
            let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
            self.at += 1 + length;
            rows += 1;
        }
        output.append(&self.messages[start..self.at]);
        self.sent += rows;
        (rows, rows == limit)
    }

    /// Rows sent by the last fetch only are counted in the tag, as PostgreSQL does.
    pub fn complete(&self, rows: u64, output: &mut Output) {
        if self.count_in_tag {
            output.command_complete_count(self.tag, rows);
        } else {
            output.command_complete(self.tag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_fetched_in_portions() {
        let mut rows = Output::new();
        for value in [b"a", b"b", b"c"] {
            rows.data_row(1, |row| {
                row.value(|bytes| {
                    bytes.extend_from_slice(value);
                    Ok::<(), ()>(())
                })
            })
            .unwrap();
        }
        let mut pending = PendingRows::new(rows.take(), "SELECT", archipel_engine::id::Epoch(0));
        let mut output = Output::new();
        assert_eq!(pending.fetch(2, &mut output), (2, true));
        assert_eq!(output.len(), 2 * 12);
        assert_eq!(pending.fetch(2, &mut output), (1, false));
        assert_eq!(pending.fetch(0, &mut output), (0, false));
    }
}
