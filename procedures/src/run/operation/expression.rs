//! Compiled expressions over the registers of a routine.

use archipel_planner::native::CompiledExpr;
use archipel_planner::native::scalar::Scalar;
use archipel_planner::native::scalar::text::Text;

/// A compiled expression over the routine's registers.
pub type Compiled = CompiledExpr;

/// A value that a statement of control or an assignment needs, in both of its forms: for the walk
/// over the tree, and for the machine of loops.
pub struct Expression {
    pub run: Compiled,
    /// The registers it reads.
    pub reads: Box<[u32]>,
    /// What the machine makes of it, where it is a number, or a text.
    pub scalar: Option<Scalar>,
    pub text: Option<Text>,
}
