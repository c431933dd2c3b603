//! Aggregates that users define (chapter 38.12): what a routine of that kind is made of.
//!
//! An aggregate is a routine: it shares names, arguments, owners and rights with functions. It has no
//! body; the functions named here, built in or deployed, are what runs.

use serde::{Deserialize, Serialize};

use crate::types::{Oid, Type};

/// What an aggregate's states are and what is done with them (pg_aggregate).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aggregate {
    /// How rows are taken, and what they make.
    pub plain: AggregateWay,
    /// Merges two states.
    pub combine: Option<Oid>,
    /// How windows whose frames move take rows. It is kept, and not used: `plain` says the same.
    pub moving: Option<MovingWay>,
    /// The operator that finds the same value at an end of its order.
    pub sort_operator: Option<Oid>,
}

/// A transition function, its states, and what they are at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AggregateWay {
    pub transition: Oid,
    pub finish: Option<Oid>,
    /// `finish` is also given a NULL for each argument.
    pub finish_extra: bool,
    /// What `finish` does to the state: 'r' nothing, 's' nothing that another one minds, 'w' anything.
    pub finish_modify: char,
    /// The type of the states, as declared: it may be polymorphic.
    pub state: Type,
    /// An estimate of their size in bytes.
    pub state_space: i32,
    /// The text of the first one; `None` is NULL.
    pub initial: Option<String>,
}

/// As [`AggregateWay`], of windows that rows also leave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovingWay {
    pub way: AggregateWay,
    /// Takes a row away.
    pub inverse: Oid,
}

impl Aggregate {
    /// Every function it is made of.
    pub fn functions(&self) -> impl Iterator<Item = Oid> + '_ {
        let moving = self.moving.iter().flat_map(|moving| {
            [Some(moving.way.transition), moving.way.finish, Some(moving.inverse)].into_iter().flatten()
        });
        [Some(self.plain.transition), self.plain.finish, self.combine].into_iter().flatten().chain(moving)
    }

    /// The types of its states.
    pub fn states(&self) -> impl Iterator<Item = Type> + '_ {
        std::iter::once(self.plain.state).chain(self.moving.iter().map(|moving| moving.way.state))
    }
}
