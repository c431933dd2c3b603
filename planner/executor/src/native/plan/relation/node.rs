//! What planning a relation comes back with: its node, and whether its rows are in order.

use crate::bound::RowLock;
use crate::native::run::operator::node::Node;

/// A relation, planned.
pub(crate) struct Planned {
    pub node: Node,
    /// Whether rows come in the wanted order.
    pub ordered: bool,
}

impl From<Node> for Planned {
    fn from(node: Node) -> Self {
        Planned { node, ordered: false }
    }
}

/// How a scan is to be used beyond reading.
#[derive(Clone, Copy, Default)]
pub(crate) struct ScanUse {
    pub lock: Option<RowLock>,
    /// Keep the storage key of the current row there.
    pub key: Option<usize>,
    pub write: bool,
    /// A constraint's lookup: what it locks is not written, and EXPLAIN does not show it.
    pub reference: bool,
}

/// Tells the scan that drives a node how many rows will be asked of it.
pub(crate) fn expect_rows(node: &mut Node, rows: i64) {
    match node {
        Node::Scan(scan) if (1..scan.first_batch as i64).contains(&rows) => scan.first_batch = rows as usize,
        Node::Append(append) => append.parts.iter_mut().for_each(|part| expect_rows(&mut part.node, rows)),
        Node::Compute { input, .. } => expect_rows(input, rows),
        Node::Lock(locking) => expect_rows(&mut locking.input, rows),
        Node::Watched(watched) => expect_rows(&mut watched.input, rows),
        _ => {}
    }
}
