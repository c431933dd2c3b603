//! What takes the rows of an aggregate call: a state of PostgreSQL's own aggregates, or the functions
//! of one that somebody defined.
//!
//! Those run as expressions over a row of their own (chapter 38.12; advance_transition_function).

use archipel_sql::datum::Datum;
use archipel_sql::function::{AggregateFunction, AggregateState};
use archipel_sql::types::Type;

use crate::native::run::expression::source::Source;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;

/// An aggregate, compiled.
pub(crate) enum Taker {
    Builtin { function: &'static AggregateFunction, types: Vec<Type> },
    Defined(Box<DefinedTaker>),
}

/// The state of one call over one group.
pub(crate) enum Taking {
    Builtin(Box<dyn AggregateState>),
    /// `None`: nothing was taken yet.
    Defined(Option<Datum>),
}

pub(crate) struct DefinedTaker {
    pub(crate) strict: bool,
    /// Where the functions find the state and the arguments.
    pub(crate) state: u32,
    pub(crate) args: Vec<u32>,
    pub(crate) initial: Option<Source>,
    pub(crate) first: Option<Source>,
    pub(crate) transition: Source,
    pub(crate) finish: Option<Source>,
}

impl Taker {
    /// Whether rows with a NULL argument are skipped.
    pub fn strict(&self) -> bool {
        match self {
            Taker::Builtin { function, .. } => function.strict,
            Taker::Defined(defined) => defined.strict,
        }
    }

    pub fn is_builtin(&self) -> bool {
        matches!(self, Taker::Builtin { .. })
    }

    pub fn start(&self) -> Taking {
        match self {
            Taker::Builtin { function, types } => Taking::Builtin((function.state)(types)),
            Taker::Defined(_) => Taking::Defined(None),
        }
    }

    /// Takes a row's arguments, which are not NULL where that counts.
    pub fn take(&self, taking: &mut Taking, args: &[Datum], ctx: &mut ExecContext<'_, '_>) -> ExecResult<()> {
        match (self, taking) {
            (_, Taking::Builtin(state)) => Ok(state.update(&ctx.functions, args)?),
            (Taker::Defined(defined), Taking::Defined(state)) => defined.take(state, args, ctx),
            (Taker::Builtin { .. }, Taking::Defined(_)) => Ok(()),
        }
    }

    /// What was taken amounts to. It may be asked again.
    pub fn finish(&self, taking: &mut Taking, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Datum> {
        match (self, taking) {
            (_, Taking::Builtin(state)) => Ok(state.finish(&ctx.functions)?),
            (Taker::Defined(defined), Taking::Defined(state)) => defined.finish(state, ctx),
            (Taker::Builtin { .. }, Taking::Defined(_)) => Ok(Datum::Null),
        }
    }
}

impl DefinedTaker {
    pub(crate) fn initial(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Datum> {
        self.initial.as_ref().map_or(Ok(Datum::Null), |initial| initial.eval(ctx))
    }

    fn take(
        &self,
        state: &mut Option<Datum>,
        args: &[Datum],
        ctx: &mut ExecContext<'_, '_>,
    ) -> ExecResult<()> {
        for (slot, arg) in self.args.iter().zip(args) {
            ctx.frame.slots[*slot as usize] = arg.clone();
        }
        let current = match (state.take(), &self.first) {
            (Some(current), _) => current,
            (None, Some(first)) => {
                *state = Some(first.eval(ctx)?);
                return Ok(());
            }
            (None, None) => self.initial(ctx)?,
        };
        if self.strict && current.is_null() {
            *state = Some(current);
            return Ok(());
        }
        ctx.frame.slots[self.state as usize] = current;
        *state = Some(self.transition.eval(ctx)?);
        // It is nobody else's: what grows can grow in place.
        ctx.frame.slots[self.state as usize] = Datum::Null;
        Ok(())
    }

    pub(crate) fn finish(
        &self,
        state: &mut Option<Datum>,
        ctx: &mut ExecContext<'_, '_>,
    ) -> ExecResult<Datum> {
        let value = match state {
            Some(value) => value.clone(),
            None => self.initial(ctx)?,
        };
        let Some(finish) = &self.finish else { return Ok(value) };
        ctx.frame.slots[self.state as usize] = value;
        finish.eval(ctx)
    }
}
