//! The rows an UPDATE or DELETE is about: found first, with everything computed from them.

use std::ops::ControlFlow;

use rustc_hash::FxHashSet;

use super::context::{ExecContext, ExecResult};
use super::expression::{Source, eval_all};
use super::node::Node;
use super::rows::RowBuffer;

/// How the targets are found, and what is kept of them.
pub(crate) struct Targets {
    pub node: Node,
    /// Where in the frame's keys the storage key of a target is.
    pub key: usize,
    /// Slots the writing half needs: changed values, moved rows, foreign keys.
    pub kept: Vec<u32>,
    pub returning: Option<Vec<Source>>,
}

/// Targets found before anything is written.
pub(crate) struct Found {
    pub keys: Keys,
    pub values: RowBuffer,
    pub returning: RowBuffer,
    /// Whether a target was met more than once.
    pub repeated: bool,
}

/// Keys, one after the other.
#[derive(Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    /// The end of each key.
    ends: Vec<usize>,
}

impl Keys {
    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}

impl Targets {
    /// Whether there is at most one target, of one table.
    pub fn is_single(&self) -> bool {
        matches!(&self.node, Node::Scan(scan) if scan.path.unique)
    }

    /// Finds the targets. `prepare` computes what is kept of one beside its own columns; a
    /// target that several FROM rows match is prepared once, for the first of them.
    pub fn find(
        &self,
        ctx: &mut ExecContext<'_, '_>,
        prepare: &dyn Fn(&mut ExecContext<'_, '_>, &[u8]) -> ExecResult<()>,
    ) -> ExecResult<Found> {
        let mut found = Found {
            keys: Keys::default(),
            values: RowBuffer::new(self.kept.len()),
            returning: RowBuffer::new(self.returning.as_ref().map_or(0, Vec::len)),
            repeated: false,
        };
        let mut seen: FxHashSet<Vec<u8>> = FxHashSet::default();
        // A scan alone visits no row twice.
        let joined = !matches!(self.node, Node::Scan(_));
        let _ = self.node.run(ctx, &mut |ctx| {
            let key = std::mem::take(&mut ctx.frame.keys[self.key]);
            if !joined || seen.insert(key.clone()) {
                prepare(ctx, &key)?;
                found.values.push_slots(&ctx.frame, &self.kept);
                if let Some(returning) = &self.returning {
                    let row = eval_all(returning, ctx)?;
                    found.returning.push(row);
                }
                found.keys.push(&key);
            } else {
                found.repeated = true;
            }
            ctx.frame.keys[self.key] = key;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }
}
