//! What a workload is: tables and routines, rows to load, calls to make, conditions that must hold.

use crate::client::Parameters;

/// One kind of call a workload makes.
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
    /// Share of the mix, in hundredths.
    pub(crate) weight: u32,
    /// Widths in bytes of a usual answer's columns, for canned answers.
    pub(crate) answer: &'static [u16],
}

/// Writes one row of a COPY stream.
pub(crate) type RowWriter = Box<dyn FnMut(u64, &mut Vec<u8>) + Send>;

/// A stream of rows for one COPY, produced lazily.
pub(crate) struct CopyJob {
    pub(crate) sql: &'static str,
    pub(crate) rows: u64,
    /// Appends the text form of row `n` (0-based), newline included.
    pub(crate) write: RowWriter,
}

/// A condition that must hold: a query that counts its violations.
pub(crate) struct Condition {
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
}

/// What the generic loader, driver and checker need to know of a workload.
pub(crate) trait Workload: Send + Sync {
    fn tables(&self) -> &'static [&'static str];
    /// Views over the tables.
    fn views(&self) -> &'static [&'static str] {
        &[]
    }
    fn schema(&self) -> &'static str;
    fn distribution(&self) -> &'static str;
    fn procedures(&self) -> &'static str;
    /// Independent COPY streams; those of one group must end before the next group begins.
    fn copy_jobs(&self) -> Vec<Vec<CopyJob>>;
    fn calls(&self) -> &'static [Call];
    /// A source of transactions for one connection of `connections`.
    fn terminal(&self, connection: u32, connections: u32, seed: u64) -> Box<dyn Terminal>;
    fn conditions(&self) -> &'static [Condition];
    /// Checks one line of an acknowledged-orders file: the query, answering its count.
    fn acknowledged_query(&self) -> Option<&'static str> {
        None
    }
}

/// Draws one connection's transactions.
pub(crate) trait Terminal: Send {
    /// Fills the parameters of the next call of `calls()[call]`.
    fn fill(&mut self, call: usize, parameters: &mut Parameters);
    /// A number below `bound`, for choosing the call.
    fn pick(&mut self, bound: u32) -> u32;
    /// Whether this call's failure with `state` is part of the specification.
    fn expected(&self, call: usize, state: &[u8]) -> bool;
    /// The line to note for an acknowledged call, given its first result column (binary int4).
    fn acknowledged(&self, _call: usize, _key: &Parameters, _result: i32) -> Option<String> {
        None
    }
}
