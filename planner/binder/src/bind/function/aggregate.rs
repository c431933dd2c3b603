//! Aggregates that users defined: what a call of one does with its rows.
//!
//! A call keeps its functions as expressions over a row of their own: the state, then the arguments.
//! So whatever an expression can call, built in or deployed, an aggregate can be made of.

use archipel_sql::catalog::dependency::routine_signature;
use archipel_sql::catalog::{Aggregate, RoutineRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function;
use archipel_sql::function::CastContext;
use archipel_sql::types::{Oid, Type};

use super::support_function::is_binary_coercible;
use crate::bind::binder::Binder;
use crate::bind::expression::polymorphic::resolve_polymorphic;
use crate::bound::{Accumulator, BoundExpr, DefinedAggregate, ExprKind};

impl Binder<'_, '_> {
    /// What a call of a defined aggregate over these arguments does.
    pub(crate) fn defined_aggregate(
        &mut self,
        routine: &RoutineRef,
        aggregate: &Aggregate,
        args: &[BoundExpr],
    ) -> Result<DefinedAggregate> {
        let mut declared = routine.input_types();
        if declared.last() == Some(&Oid::ANY) {
            declared.resize(args.len(), Oid::ANY);
        }
        let actual: Vec<Type> = args.iter().map(|arg| arg.ty).collect();
        let way = &aggregate.plain;
        let state = Type::of(resolve_polymorphic(&declared, &actual, way.state.oid, self)?.1);
        let column = |place: usize, ty: Type| BoundExpr::column(place, ty);
        let row: Vec<BoundExpr> = std::iter::once(column(0, state))
            .chain(actual.iter().enumerate().map(|(place, ty)| column(place + 1, *ty)))
            .collect();
        // What its functions need, its owner must be allowed.
        let needed_before = std::mem::take(&mut self.env.required);
        let parts = self.aggregate_parts(aggregate, state, row);
        let mut needed = std::mem::replace(&mut self.env.required, needed_before);
        let owner = self.env.catalog.owner(routine.oid);
        needed.iter_mut().for_each(|requirement| requirement.acting = Some(owner));
        self.env.need_of(needed);
        let (transition, finish) = parts?;
        let strict = self.is_strict(way.transition);
        let initial = match &way.initial {
            Some(text) => Some(self.literal(text, state)?),
            None => None,
        };
        let first = match (strict && initial.is_none(), actual.first()) {
            (true, Some(ty)) if is_binary_coercible(ty.oid, state.oid) => {
                Some(self.coerce_or_fail(column(1, *ty), state, CastContext::Implicit)?)
            }
            (true, _) => {
                let message = format!(
                    "aggregate {} needs to have compatible input type and transition type",
                    routine.oid
                );
                return Err(SqlError::new(SqlState::INVALID_FUNCTION_DEFINITION, message));
            }
            (false, _) => None,
        };
        Ok(DefinedAggregate {
            routine: routine.clone(),
            state,
            initial,
            first,
            strict,
            transition,
            finish,
            finish_modify: way.finish_modify,
        })
    }

    /// A window asks a state for its value many times.
    pub(crate) fn check_window_use(&self, function: &Accumulator) -> Result<()> {
        let Accumulator::Defined(defined) = function else { return Ok(()) };
        if defined.finish_modify == 'r' {
            return Ok(());
        }
        let shown = routine_signature(&defined.routine, self);
        let message = format!("aggregate function {shown} does not support use as a window function");
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
    }

    fn aggregate_parts(
        &mut self,
        aggregate: &Aggregate,
        state: Type,
        row: Vec<BoundExpr>,
    ) -> Result<(BoundExpr, Option<BoundExpr>)> {
        let way = &aggregate.plain;
        let extra: Vec<BoundExpr> =
            row[1..].iter().map(|arg| BoundExpr::constant(Datum::Null, arg.ty)).collect();
        let only = row[0].clone();
        let transition = self.support_call(way.transition, row)?;
        let transition = match transition.ty.oid == state.oid {
            true => transition,
            false => BoundExpr::new(ExprKind::Relabel(Box::new(transition)), state),
        };
        let Some(finish) = way.finish else { return Ok((transition, None)) };
        let mut given = vec![only];
        if way.finish_extra {
            given.extend(extra);
        }
        Ok((transition, Some(self.support_call(finish, given)?)))
    }

    fn is_strict(&self, oid: Oid) -> bool {
        match function::function_by_oid(oid) {
            Some(function) => function.strict,
            None => self.env.catalog.routine_by_oid(oid).is_some_and(|routine| routine.strict),
        }
    }
}
