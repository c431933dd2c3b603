//! What takes the rows of an aggregate call: a state of PostgreSQL's own aggregates, or the functions
//! of one that somebody defined.
//!
//! Those run as expressions over a row of their own (chapter 38.12; advance_transition_function).

use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::{AggregateFunction, AggregateState};
use archipel_sql::types::Type;

use crate::bound::{Accumulator, BoundExpr, DefinedAggregate};
use crate::native::plan::compiler::Compiler;
use crate::native::run::expression::source::Source;
use crate::native::run::state::context::{ExecContext, ExecResult};

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
    strict: bool,
    /// Where the functions find the state and the arguments.
    state: u32,
    args: Vec<u32>,
    initial: Option<Source>,
    first: Option<Source>,
    transition: Source,
    finish: Option<Source>,
}

impl Compiler<'_> {
    pub fn taker(&mut self, function: &Accumulator, args: &[BoundExpr]) -> Result<Taker> {
        match function {
            Accumulator::Builtin(function) => {
                Ok(Taker::Builtin { function, types: args.iter().map(|arg| arg.ty).collect() })
            }
            Accumulator::Defined(defined) => self.defined_taker(defined, args.len()),
        }
    }

    fn defined_taker(&mut self, defined: &DefinedAggregate, args: usize) -> Result<Taker> {
        let state = self.slot();
        let args: Vec<u32> = (0..args).map(|_| self.slot()).collect();
        let row: Vec<u32> = std::iter::once(state).chain(args.iter().copied()).collect();
        self.scoped(&row, |c| {
            let mut optional =
                |expr: &Option<BoundExpr>| expr.as_ref().map(|expr| c.source(expr)).transpose();
            let (initial, first, finish) =
                (optional(&defined.initial)?, optional(&defined.first)?, optional(&defined.finish)?);
            let transition = c.source(&defined.transition)?;
            let strict = defined.strict;
            Ok(Taker::Defined(Box::new(DefinedTaker {
                strict,
                state,
                args,
                initial,
                first,
                transition,
                finish,
            })))
        })
    }
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
    fn initial(&self, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Datum> {
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

    fn finish(&self, state: &mut Option<Datum>, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Datum> {
        let value = match state {
            Some(value) => value.clone(),
            None => self.initial(ctx)?,
        };
        let Some(finish) = &self.finish else { return Ok(value) };
        ctx.frame.slots[self.state as usize] = value;
        finish.eval(ctx)
    }
}
