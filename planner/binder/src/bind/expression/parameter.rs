//! Parameters whose types nothing has said yet (parse_param.c): the first place that asks for one gives
//! it, and until then they have none, in rows and as arguments of type `any`, too.

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::is_cast;
use archipel_sql::type_table::TypeNames;
use archipel_sql::types::{Oid, Type};
use sqlparser::tokenizer::Span;

use crate::bind::binder::Binder;
use crate::bind::visit::{visit_expr_mut, visit_statement};
use crate::bound::{BoundExpr, BoundStatement, ExprKind};

impl Binder<'_, '_> {
    /// Gives an inferred type to a parameter (variable_coerce_param_hook).
    pub(crate) fn set_parameter_type(&mut self, number: u16, ty: Type) -> Result<()> {
        let names = self.env.type_names();
        match self.env.param_types.get_mut(usize::from(number)) {
            Some(Some(known)) if known.oid != ty.oid => {
                let message = format!("inconsistent types deduced for parameter ${}", number + 1);
                Err(SqlError::new(SqlState::AMBIGUOUS_PARAMETER, message).with_detail(format!(
                    "{} versus {}",
                    names.format_type(*known),
                    names.format_type(ty)
                )))
            }
            Some(slot) => {
                if slot.is_none() {
                    self.typed_last = Some(number);
                }
                *slot = Some(ty);
                Ok(())
            }
            None => Err(SqlError::internal("a parameter without a slot")),
        }
    }

    /// A value becomes one of a domain: if it is a parameter that has just been given its type, that type
    /// is the domain. What clients pass is then refused if it is too long, and not cut as by a cast.
    pub(super) fn remember_domain(&mut self, value: &mut BoundExpr, domain: Oid) {
        let Some(number) = self.typed_last.take() else { return };
        let mut within = &*value;
        loop {
            within = match &within.kind {
                ExprKind::Param(found) if *found == number => break,
                ExprKind::Relabel(inner) => inner,
                // Its elements are brought to a length.
                ExprKind::ArrayConvert { array, .. } if array.ty.oid == within.ty.oid => array,
                // Brought to the type, or to a length.
                ExprKind::Call { function, args }
                    if is_cast(function.function) && function.function.result == within.ty.oid =>
                {
                    match args.first() {
                        Some(first) => first,
                        None => return,
                    }
                }
                _ => return,
            };
        }
        self.env.param_domains.push((number, domain));
        visit_expr_mut(value, 0, &mut |part, _| {
            if let ExprKind::Call { args, .. } = &mut part.kind
                && let [_, _, explicit] = &mut args[..]
                && matches!(explicit.kind, ExprKind::Const(Datum::Bool(true)))
            {
                explicit.kind = ExprKind::Const(Datum::Bool(false));
            }
            true
        });
    }

    /// Whether it is a parameter that has no type yet, and may go without for now.
    pub(crate) fn is_open_parameter(&self, expr: &BoundExpr) -> bool {
        expr.ty.oid == Oid::UNKNOWN
            && matches!(expr.kind, ExprKind::Param(_))
            && !self.env.params_are_literals
    }

    /// Notes where a parameter was met that has no type yet.
    pub(super) fn remember_parameter(&mut self, bound: &BoundExpr, span: Span) {
        if let (ExprKind::Param(number), Oid::UNKNOWN) = (&bound.kind, bound.ty.oid) {
            self.open_parameters.push((*number, span));
        }
    }

    /// An expression bound before, with the types that its parameters have been given since.
    pub(crate) fn with_known_parameters(&self, mut expr: BoundExpr) -> BoundExpr {
        visit_expr_mut(&mut expr, 0, &mut |part, _| {
            if let (ExprKind::Param(number), Oid::UNKNOWN) = (&part.kind, part.ty.oid)
                && let Some(Some(known)) = self.env.param_types.get(usize::from(*number))
            {
                part.ty = *known;
            }
            true
        });
        expr
    }

    /// 42P08 for a parameter that had no type where it stands and got one elsewhere
    /// (check_variable_parameters). One that has got none at all is
    /// [`BindEnv::parameter_types`](crate::bind::binder::BindEnv::parameter_types)' to refuse.
    pub(crate) fn check_parameters(&self, statement: &BoundStatement) -> Result<()> {
        if !self.stays_open {
            return Ok(());
        }
        let mut left = None;
        visit_statement(statement, 0, &mut |part, _| {
            if let (ExprKind::Param(number), Oid::UNKNOWN) = (&part.kind, part.ty.oid)
                && let Some(Some(_)) = self.env.param_types.get(usize::from(*number))
            {
                left = left.or(Some(*number));
            }
            left.is_none()
        });
        let Some(number) = left else { return Ok(()) };
        let met = self.open_parameters.iter().find(|(known, _)| *known == number);
        let position = met.and_then(|(_, span)| self.position(*span));
        let message = format!("could not determine data type of parameter ${}", number + 1);
        Err(SqlError::new(SqlState::AMBIGUOUS_PARAMETER, message).at(position))
    }
}
