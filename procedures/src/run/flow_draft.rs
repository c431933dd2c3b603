//! The actions of a routine on the way to its flow graph ([`crate::flow`]).

use std::collections::BTreeSet;
use std::sync::OnceLock;

use archipel_planner::route::Access;

use crate::flow::Graph;
use crate::plpgsql::ast::VariableId;

pub(crate) type Sources = BTreeSet<Source>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// An action's place.
    Action(usize),
    /// What a loop's last round left in a variable.
    Carried(usize, VariableId),
}

/// An action on the way to [`Action`].
pub(crate) struct Draft {
    pub(crate) access: Access,
    pub(crate) line: u32,
    pub(crate) loops: Vec<u32>,
    pub(crate) sources: Sources,
}

/// The actions of a routine, and the graph of them.
pub(crate) struct Drafts {
    pub(crate) drafts: Vec<Draft>,
    pub(crate) graph: OnceLock<Graph>,
}
