//! Conditional expressions: CASE, which is the value of the first arm whose condition holds, COALESCE,
//! NULLIF, GREATEST and LEAST.
//!
//! Arms that all ask whether one variable, parameter or column equals an integer (`CASE d WHEN 1
//! THEN … WHEN 2 THEN …`) are told apart by looking the integer up among theirs, without running a
//! condition.

use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::ResolvedFunction;
use archipel_sql::types::Oid;

use crate::bind::{case_operand, visit};
use crate::bound::{BoundExpr, ExprKind};
use crate::comparison::{Comparison, comparison};
use crate::construct;
use crate::native::plan::compiler::Compiler;
use crate::native::plan::constant::fold;
use crate::native::run::expression::code::CompiledExpr;
use crate::native::run::expression::operand::Operand;
use crate::native::run::expression::source::Source;
use crate::row::integer;

impl Compiler<'_> {
    /// Compiles CASE over its arms: conditions and values.
    pub fn case(
        &mut self,
        arms: &[(BoundExpr, BoundExpr)],
        otherwise: Option<&BoundExpr>,
    ) -> Result<CompiledExpr> {
        if let Some((asked, numbers)) = integers_asked_for(arms)
            && let Source::Operand(asked) = self.source(asked)?
        {
            return self.case_of_integer(asked, numbers, arms, otherwise);
        }
        if let [(first, _), _, ..] = arms
            && let Some(operand) = case_operand::marked(first)
        {
            return self.case_of_one(&operand, arms, otherwise);
        }
        let arms = arms
            .iter()
            .map(|(condition, value)| Ok((self.predicate(condition)?, self.arm(value)?)))
            .collect::<Result<Vec<_>>>()?;
        let otherwise = otherwise.map(|value| self.arm(value)).transpose()?;
        Ok(Box::new(move |ctx| {
            let reached = arms.iter().find_map(|(condition, arm)| match condition(ctx) {
                Ok(Some(true)) => Some(Ok(arm)),
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            });
            match reached.transpose()?.or(otherwise.as_ref()) {
                Some((columns, value)) => {
                    ctx.frame.read_kept(columns.get());
                    value.eval(ctx)
                }
                None => Ok(Datum::Null),
            }
        }))
    }

    /// Compiles COALESCE: the first argument that is not NULL.
    pub fn coalesce(&mut self, args: &[BoundExpr]) -> Result<CompiledExpr> {
        let args = self.exprs(args)?;
        Ok(Box::new(move |ctx| {
            for arg in &args {
                let value = arg.eval(ctx)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            Ok(Datum::Null)
        }))
    }

    /// Compiles NULLIF: the left side, or NULL where the right one equals it.
    pub fn null_if(
        &mut self,
        left: &BoundExpr,
        right: &BoundExpr,
        equality: ResolvedFunction,
    ) -> Result<Source> {
        let sides = [self.source(left)?, self.source(right)?];
        let [left, right] = match fold::null_if([left, right], sides, equality.function) {
            Ok(value) => return Ok(value),
            Err(sides) => sides,
        };
        let equality = equality.function;
        Ok(Source::Code(Box::new(move |ctx| {
            let pair = [left.eval(ctx)?, right.eval(ctx)?];
            Ok(construct::null_if(pair, equality, &ctx.functions)?)
        })))
    }

    /// Compiles GREATEST or LEAST.
    pub fn extreme(
        &mut self,
        greatest: bool,
        args: &[BoundExpr],
        less: ResolvedFunction,
    ) -> Result<CompiledExpr> {
        let args = self.exprs(args)?;
        let less = less.function;
        Ok(Box::new(move |ctx| {
            let mut best = Datum::Null;
            for arg in &args {
                best = construct::better(greatest, best, arg.eval(ctx)?, less, &ctx.functions)?;
            }
            Ok(best)
        }))
    }

    /// CASE whose conditions are about one value, which is evaluated once.
    fn case_of_one(
        &mut self,
        operand: &BoundExpr,
        arms: &[(BoundExpr, BoundExpr)],
        otherwise: Option<&BoundExpr>,
    ) -> Result<CompiledExpr> {
        let evaluated = self.source(operand)?;
        let slot = self.slot();
        self.mark(slot);
        // The conditions read it as a row of its own.
        let mut within = operand.clone();
        visit::raise_depth(&mut within, 1);
        let value = BoundExpr::column(0, operand.ty);
        let mut compiled = Vec::with_capacity(arms.len());
        for (condition, arm) in arms {
            let mut condition = condition.clone();
            visit::raise_depth(&mut condition, 1);
            case_operand::replace(&mut condition, &within, &value);
            let condition = self.scoped(&[slot], |c| c.forgetting(|c| c.predicate(&condition)))?;
            compiled.push((condition, self.arm(arm)?));
        }
        let otherwise = otherwise.map(|value| self.arm(value)).transpose()?;
        Ok(Box::new(move |ctx| {
            ctx.frame.slots[slot as usize] = evaluated.eval(ctx)?;
            for (condition, (columns, value)) in &compiled {
                if condition(ctx)? == Some(true) {
                    ctx.frame.read_kept(columns.get());
                    return value.eval(ctx);
                }
            }
            match &otherwise {
                Some((columns, value)) => {
                    ctx.frame.read_kept(columns.get());
                    value.eval(ctx)
                }
                None => Ok(Datum::Null),
            }
        }))
    }

    fn case_of_integer(
        &mut self,
        asked: Operand,
        numbers: Vec<i64>,
        arms: &[(BoundExpr, BoundExpr)],
        otherwise: Option<&BoundExpr>,
    ) -> Result<CompiledExpr> {
        let values = arms.iter().map(|(_, value)| self.arm(value)).collect::<Result<Vec<_>>>()?;
        let otherwise = otherwise.map(|value| self.arm(value)).transpose()?;
        Ok(Box::new(move |ctx| {
            // NULL equals nothing.
            let place =
                integer(asked.get(ctx)).and_then(|asked| numbers.iter().position(|one| *one == asked));
            match place.and_then(|place| values.get(place)).or(otherwise.as_ref()) {
                Some((columns, value)) => {
                    ctx.frame.read_kept(columns.get());
                    value.eval(ctx)
                }
                None => Ok(Datum::Null),
            }
        }))
    }
}

/// What all conditions compare, and the integers they compare it with; `None` where there is
/// another condition.
fn integers_asked_for(arms: &[(BoundExpr, BoundExpr)]) -> Option<(&BoundExpr, Vec<i64>)> {
    let mut asked: Option<&BoundExpr> = None;
    let mut numbers = Vec::with_capacity(arms.len());
    for (condition, _) in arms {
        let ExprKind::Call { function, args } = &condition.kind else { return None };
        let [left, BoundExpr { kind: ExprKind::Const(number), .. }] = &args[..] else { return None };
        if comparison(function.function) != Some(Comparison::Eq) || *asked.get_or_insert(left) != left {
            return None;
        }
        numbers.push(match number {
            Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) => integer(number)?,
            _ => return None,
        });
    }
    let asked = asked?;
    let is_integer = matches!(asked.ty.oid, Oid::INT2 | Oid::INT4 | Oid::INT8);
    let is_there = matches!(asked.kind, ExprKind::Column { .. } | ExprKind::Param(_) | ExprKind::Variable(_));
    (is_integer && is_there).then_some((asked, numbers))
}
