//! Which expressions are the same, though a constant may not be equal to itself.

use super::BoundExpr;
use crate::bind::visit::may_hold_nan;

impl BoundExpr {
    /// Whether two expressions over one row are written alike. A NaN is written like another.
    pub fn is_same(&self, other: &BoundExpr) -> bool {
        self == other
            || (self.ty == other.ty && may_hold_nan(self) && format!("{self:?}") == format!("{other:?}"))
    }
}
