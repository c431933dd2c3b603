//! What takes the rows of an aggregate call, compiled.

use archipel_sql::error::Result;

use crate::bound::{Accumulator, BoundExpr, DefinedAggregate};
use crate::native::plan::compiler::Compiler;
use crate::native::run::operator::transition::{DefinedTaker, Taker};

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
