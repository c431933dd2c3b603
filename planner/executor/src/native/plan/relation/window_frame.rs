//! Window frames, compiled.

use archipel_sql::error::Result;

use crate::bound::{Frame as BoundFrame, FrameBound, SortKey};
use crate::native::plan::compiler::Compiler;
use crate::native::run::window::frame::{Bound, Frame};

impl Compiler<'_> {
    pub(crate) fn frame(&mut self, frame: &BoundFrame, order: &[SortKey]) -> Result<Frame> {
        Ok(Frame {
            units: frame.units,
            start: self.frame_bound(&frame.start)?,
            end: self.frame_bound(&frame.end)?,
            exclusion: frame.exclusion,
            descending: order.first().is_some_and(|key| key.descending),
        })
    }

    fn frame_bound(&mut self, bound: &FrameBound) -> Result<Bound> {
        Ok(match bound {
            FrameBound::UnboundedPreceding => Bound::UnboundedPreceding,
            FrameBound::Preceding(expr) => Bound::Preceding(self.source(expr)?),
            FrameBound::CurrentRow => Bound::CurrentRow,
            FrameBound::Following(expr) => Bound::Following(self.source(expr)?),
            FrameBound::UnboundedFollowing => Bound::UnboundedFollowing,
        })
    }
}
