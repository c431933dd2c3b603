//! What takes the rows of aggregate calls.

use archipel_sql::catalog::RoutineRef;
use archipel_sql::function::{Aggregate, AggregateFunction};
use archipel_sql::types::Type;

use super::BoundExpr;

/// What takes the rows of an aggregate call.
#[derive(Clone, Debug, PartialEq)]
pub enum Accumulator {
    Builtin(&'static AggregateFunction),
    Defined(Box<DefinedAggregate>),
}

impl Accumulator {
    pub fn name(&self) -> &str {
        match self {
            Accumulator::Builtin(function) => function.name,
            Accumulator::Defined(defined) => &defined.routine.name,
        }
    }

    /// Which of PostgreSQL's own aggregates it is.
    pub fn builtin(&self) -> Option<Aggregate> {
        match self {
            Accumulator::Builtin(function) => Some(function.aggregate),
            Accumulator::Defined(_) => None,
        }
    }
}

/// An aggregate that somebody defined, over arguments of certain types. Its expressions read a row of
/// their own: the state, then the arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct DefinedAggregate {
    pub routine: RoutineRef,
    /// The type of the states.
    pub state: Type,
    /// The first one; `None` is NULL.
    pub initial: Option<BoundExpr>,
    /// Where a strict transition function has no initial state: what the first row whose arguments
    /// are not NULL makes one.
    pub first: Option<BoundExpr>,
    /// Rows with a NULL argument are skipped, and a state that is NULL stays so.
    pub strict: bool,
    pub transition: BoundExpr,
    /// What a state amounts to; `None`: itself.
    pub finish: Option<BoundExpr>,
    /// As pg_aggregate.aggfinalmodify.
    pub finish_modify: char,
}

impl DefinedAggregate {
    /// Its expressions, all over its own row.
    pub fn expressions(&self) -> impl Iterator<Item = &BoundExpr> {
        [self.initial.as_ref(), self.first.as_ref(), Some(&self.transition), self.finish.as_ref()]
            .into_iter()
            .flatten()
    }

    /// As [`DefinedAggregate::expressions`], to change them.
    pub fn expressions_mut(&mut self) -> impl Iterator<Item = &mut BoundExpr> {
        [self.initial.as_mut(), self.first.as_mut(), Some(&mut self.transition), self.finish.as_mut()]
            .into_iter()
            .flatten()
    }

    /// Whether the states over the same rows are those of another.
    pub fn shares_states(&self, other: &DefinedAggregate) -> bool {
        let same = |a: &Option<BoundExpr>, b: &Option<BoundExpr>| match (a, b) {
            (Some(a), Some(b)) => a.is_same(b),
            (a, b) => a.is_none() && b.is_none(),
        };
        self.finish_modify != 'w'
            && other.finish_modify != 'w'
            && self.state == other.state
            && self.transition.is_same(&other.transition)
            && same(&self.initial, &other.initial)
    }
}
