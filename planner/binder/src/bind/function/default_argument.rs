//! What stands for the arguments that a call leaves out.

use archipel_sql::catalog::RoutineKind;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::{ScalarFunction, SetFunction};
use archipel_sql::types::{Oid, Type};

use super::argument_mode::is_input;
use super::overload::{Callee, Candidate, Slot};
use crate::bind::binder::Binder;
use crate::bind::clause::Clause;
use crate::bind::expression::coerce::is_polymorphic;
use crate::bind::stored_expression::About;
use crate::bound::BoundExpr;

/// The default of a polymorphic argument, of the type that it has by itself.
pub(super) struct PolymorphicDefault {
    pub place: usize,
    pub declared: Oid,
    pub value: BoundExpr,
}

impl Binder<'_, '_> {
    /// The defaults of polymorphic arguments that are left out.
    pub(super) fn polymorphic_defaults(&mut self, candidate: &Candidate) -> Result<Vec<PolymorphicDefault>> {
        let Callee::Routine(routine) = &candidate.callee else { return Ok(Vec::new()) };
        let procedure = routine.kind == RoutineKind::Procedure;
        let inputs = routine.args.iter().filter(|arg| is_input(arg.mode, procedure));
        let mut found = Vec::new();
        for (place, (arg, slot)) in inputs.zip(&candidate.slots).enumerate() {
            if !matches!(slot, Slot::Default) || !is_polymorphic(arg.ty.oid) {
                continue;
            }
            let Some(text) = arg.default.as_deref() else { continue };
            let value = self.kept(text, &About::Nothing, Clause::Default)?;
            found.push(PolymorphicDefault { place, declared: arg.ty.oid, value });
        }
        Ok(found)
    }

    pub(super) fn default_argument(&mut self, callee: &Callee, place: usize) -> Result<BoundExpr> {
        let missing = || SqlError::internal("a default that is not there");
        match callee {
            Callee::Scalar(ScalarFunction { args, defaults, .. })
            | Callee::Set(SetFunction { args, defaults, .. }) => {
                let first = args.len() - defaults.len();
                let value = defaults.get(place.wrapping_sub(first)).ok_or_else(missing)?;
                Ok(BoundExpr::constant(value.clone(), Type::of(args[place])))
            }
            Callee::Routine(routine) => {
                let inputs: Vec<_> = routine
                    .args
                    .iter()
                    .filter(|arg| is_input(arg.mode, routine.kind == RoutineKind::Procedure))
                    .collect();
                let arg = inputs.get(place).ok_or_else(missing)?;
                let text = arg.default.as_deref().ok_or_else(missing)?;
                let value = self.kept(text, &About::Nothing, Clause::Default)?;
                let name = arg.name.clone().unwrap_or_default();
                self.assign(value, arg.ty, &name)
            }
            Callee::Aggregate(_) | Callee::Ranking(_) => Err(missing()),
        }
    }
}
