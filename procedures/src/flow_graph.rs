//! The flow graph of a routine: its actions, and which depend on which ([`crate::flow`]).

use archipel_planner::route::Access;

/// An access of one statement.
#[derive(Clone, Debug)]
pub struct Action {
    pub line: u32,
    pub access: Access,
    /// The lines of the loops around it, outermost first.
    pub loops: Vec<u32>,
    /// Places of the actions it waits for.
    pub depends: Vec<usize>,
    /// How many synchronization points lie before it.
    pub point: usize,
}

/// The actions in the order of the body.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub actions: Vec<Action>,
}
