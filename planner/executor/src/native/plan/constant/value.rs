//! The value of an expression, as far as PostgreSQL knows it when it plans.

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::{FunctionContext, ResolvedFunction, is_written_in_sql};
use archipel_sql::types::Oid;
use archipel_sql::{cast, stack};

use super::{Column, Found, Known, Later, Planning, Scope, Stop};
use crate::bound::{BoundExpr, ExprKind, Subquery, SubqueryKind, Subscript};
use crate::construct::convert_io;
use crate::known;
use crate::known::is_steady;

/// Whether an error is of values, and comes of them wherever a function is called with them.
fn is_of_values(error: &SqlError) -> bool {
    matches!(&error.state().0, [b'2', b'2', ..] | [b'5', b'4', ..])
}

/// A value computed of constants. What fails otherwise than by them may not fail where it is reached.
fn told(computed: Result<Datum>, context: impl FnOnce() -> Option<String>) -> Found<Known> {
    match computed {
        Ok(value) => Ok(Known::Value(value)),
        Err(mut error) if is_of_values(&error) => {
            if let Some(context) = context() {
                error.fields_mut().context = Some(context);
            }
            Err(Stop::Fails(error))
        }
        Err(_) => Ok(Known::Perhaps),
    }
}

fn is_null(known: &Known) -> bool {
    matches!(known, Known::Value(Datum::Null))
}

/// What is known of what is made of several values, if it is not known itself.
fn of_all(known: &[Known]) -> Known {
    let may_be = |known: &Known| !matches!(known, Known::Varies);
    match known.iter().all(may_be) || known.iter().any(|known| matches!(known, Known::Perhaps)) {
        true => Known::Perhaps,
        false => Known::Varies,
    }
}

/// A truth computed of one that is known.
fn of_truth(known: Known, of: impl FnOnce(Option<bool>) -> Option<bool>) -> Known {
    let truth = match known {
        Known::Value(Datum::Bool(value)) => Some(value),
        Known::Value(Datum::Null) => None,
        Known::Value(_) => return Known::Perhaps,
        other => return other,
    };
    Known::Value(of(truth).map_or(Datum::Null, Datum::Bool))
}

/// IS [NOT] DISTINCT FROM of two values.
fn is_distinct(known: &[Known; 2], equality: &ResolvedFunction, negated: bool) -> Found<Known> {
    Ok(match known {
        [Known::Value(Datum::Null), Known::Value(Datum::Null)] => Known::Value(Datum::Bool(negated)),
        [Known::Value(Datum::Null), Known::Value(_)] | [Known::Value(_), Known::Value(Datum::Null)] => {
            Known::Value(Datum::Bool(!negated))
        }
        [Known::Value(_), Known::Value(_)] => {
            let equal = called(equality, known)?;
            of_truth(equal, |equal| Some((equal != Some(true)) != negated))
        }
        _ => of_all(known),
    })
}

/// NULLIF of two values.
fn null_if(mut known: [Known; 2], equality: &ResolvedFunction) -> Found<Known> {
    if known.iter().any(is_null) {
        return Ok(std::mem::replace(&mut known[0], Known::Perhaps));
    }
    if !known.iter().all(|known| matches!(known, Known::Value(_))) {
        return Ok(of_all(&known));
    }
    Ok(match called(equality, &known)? {
        Known::Value(Datum::Bool(true)) => Known::Value(Datum::Null),
        Known::Value(_) => std::mem::replace(&mut known[0], Known::Perhaps),
        other => other,
    })
}

impl<'b> Planning<'b> {
    /// Computes an expression over the rows of a scope.
    pub(super) fn value(&mut self, expr: &'b BoundExpr, scope: &Scope<'b>) -> Found<Known> {
        match &expr.kind {
            ExprKind::Const(value) => return Ok(Known::Value(value.clone())),
            ExprKind::Param(_) => return Ok(Known::Perhaps),
            ExprKind::Variable(_) => return Ok(self.variable.clone()),
            ExprKind::Column { depth, index } => {
                return match scope.column(*depth, *index) {
                    Some(column) if matches!(*column, Column::Varies) => Ok(Known::Varies),
                    Some(column) => self.read(&column),
                    None => Ok(Known::Perhaps),
                };
            }
            _ => {}
        }
        stack::check().map_err(|_| Stop::TooDeep)?;
        let start = self.later.len();
        let known = self.computed(expr, scope)?;
        if matches!(known, Known::Value(_)) {
            // A constant stands in its place: the queries in it are gone.
            self.later.truncate(start);
        }
        Ok(known)
    }

    /// Looks at an expression whose value is of no use: a constant, of which there may be as many as a text
    /// has room for, is not copied.
    pub(super) fn look_at(&mut self, expr: &'b BoundExpr, scope: &Scope<'b>) -> Found<()> {
        match expr.kind {
            ExprKind::Const(_) => Ok(()),
            _ => self.value(expr, scope).map(drop),
        }
    }

    fn values(&mut self, exprs: &'b [BoundExpr], scope: &Scope<'b>) -> Found<Vec<Known>> {
        exprs.iter().map(|expr| self.value(expr, scope)).collect()
    }

    fn computed(&mut self, expr: &'b BoundExpr, scope: &Scope<'b>) -> Found<Known> {
        match &expr.kind {
            ExprKind::Const(_) | ExprKind::Param(_) | ExprKind::Variable(_) | ExprKind::Column { .. } => {
                // Told before.
                Ok(Known::Perhaps)
            }
            ExprKind::Call { function, args } => {
                let known = self.values(args, scope)?;
                called(function, &known)
            }
            ExprKind::Routine { routine, args } => {
                let known = self.values(args, scope)?;
                let of_rows = routine.returns_set || routine.result.oid == Oid::RECORD;
                let is_known_null = routine.strict && !of_rows && known.iter().any(is_null);
                Ok(if is_known_null { Known::Value(Datum::Null) } else { Known::Perhaps })
            }
            ExprKind::And(args) => self.junction(args, false, scope),
            ExprKind::Or(args) => self.junction(args, true, scope),
            ExprKind::Not(inner) => {
                Ok(of_truth(self.value(inner, scope)?, |truth| truth.map(|truth| !truth)))
            }
            ExprKind::IsBool { expr, value, negated } => {
                let known = self.value(expr, scope)?;
                Ok(of_truth(known, |truth| Some((truth == Some(*value)) != *negated)))
            }
            ExprKind::IsNull(inner) => self.null_test(inner, true, scope),
            ExprKind::IsNotNull(inner) => self.null_test(inner, false, scope),
            ExprKind::IsDistinctFrom { left, right, equality, negated } => {
                let known = [self.value(left, scope)?, self.value(right, scope)?];
                is_distinct(&known, equality, *negated)
            }
            ExprKind::Case { arms, otherwise } => self.case(arms, otherwise.as_deref(), scope),
            ExprKind::Coalesce(args) => self.coalesce(args, scope),
            ExprKind::NullIf { left, right, equality } => {
                let known = [self.value(left, scope)?, self.value(right, scope)?];
                null_if(known, equality)
            }
            ExprKind::Extreme { args, .. } | ExprKind::Array { items: args, .. } => {
                Ok(of_all(&self.values(args, scope)?))
            }
            ExprKind::Row(args, _) => {
                // A field of it may be known.
                for arg in args {
                    self.look_at(arg, scope)?;
                }
                Ok(Known::Perhaps)
            }
            ExprKind::ArrayOp { left, array, .. } => {
                let known = [self.value(left, scope)?, self.value(array, scope)?];
                Ok(of_all(&known))
            }
            ExprKind::InList { left, list, .. } => self.in_list(left, list, scope),
            ExprKind::Subscript { array, subscripts } => self.subscript(array, subscripts, scope),
            ExprKind::Field { record: inner, .. }
            | ExprKind::ArrayConvert { array: inner, .. }
            | ExprKind::RowConvert { record: inner, .. }
            | ExprKind::Domain { expr: inner, .. } => {
                self.value(inner, scope)?;
                Ok(Known::Perhaps)
            }
            ExprKind::Relabel(inner) => Ok(match self.value(inner, scope)? {
                Known::Value(value) if cast::relabels(inner.ty.oid, expr.ty.oid) => {
                    Known::Value(cast::relabel(value, inner.ty.oid, expr.ty.oid))
                }
                known => known,
            }),
            ExprKind::ConvertIo(inner) => match self.value(inner, scope)? {
                Known::Value(value) if known::is_known_of_known(expr) => {
                    told(convert_io(&value, inner.ty, expr.ty, &FunctionContext::detached()), || None)
                }
                Known::Value(_) => Ok(Known::Perhaps),
                known => Ok(known),
            },
            ExprKind::Subquery(subquery) => self.subquery(subquery, scope),
        }
    }

    /// An element or a slice of an array.
    fn subscript(
        &mut self,
        array: &'b BoundExpr,
        subscripts: &'b [Subscript],
        scope: &Scope<'b>,
    ) -> Found<Known> {
        let mut known = vec![self.value(array, scope)?];
        for subscript in subscripts {
            match subscript {
                Subscript::Index(index) => known.push(self.value(index, scope)?),
                Subscript::Slice { lower, upper } => {
                    for bound in [lower, upper].into_iter().flatten() {
                        known.push(self.value(bound, scope)?);
                    }
                }
            }
        }
        Ok(of_all(&known))
    }

    /// AND, which false decides, or OR, which true does.
    fn junction(&mut self, args: &'b [BoundExpr], decisive: bool, scope: &Scope<'b>) -> Found<Known> {
        let (mut varies, mut null) = (false, false);
        for arg in args {
            match self.value(arg, scope)? {
                Known::Value(Datum::Bool(value)) if value == decisive => {
                    return Ok(Known::Value(Datum::Bool(decisive)));
                }
                Known::Value(Datum::Bool(_)) => {}
                Known::Value(_) => null = true,
                Known::Varies => varies = true,
                // It may decide.
                Known::Perhaps => return Ok(Known::Perhaps),
            }
        }
        Ok(match (varies, null) {
            (true, _) => Known::Varies,
            (false, true) => Known::Value(Datum::Null),
            (false, false) => Known::Value(Datum::Bool(!decisive)),
        })
    }

    fn null_test(&mut self, inner: &'b BoundExpr, wanted: bool, scope: &Scope<'b>) -> Found<Known> {
        let of_fields = inner.ty.oid.has_fields();
        Ok(match self.value(inner, scope)? {
            // That of a row asks for its fields.
            _ if of_fields => Known::Perhaps,
            Known::Value(value) => Known::Value(Datum::Bool(value.is_null() == wanted)),
            known => known,
        })
    }

    fn case(
        &mut self,
        arms: &'b [(BoundExpr, BoundExpr)],
        otherwise: Option<&'b BoundExpr>,
        scope: &Scope<'b>,
    ) -> Found<Known> {
        // Whether an arm before stays.
        let mut stays = false;
        let mut last = otherwise;
        for (condition, result) in arms {
            match self.value(condition, scope)? {
                Known::Value(Datum::Bool(true)) => {
                    last = Some(result);
                    break;
                }
                Known::Value(_) => {}
                Known::Varies => {
                    self.value(result, scope)?;
                    stays = true;
                }
                // It may be the last that is looked at, and its value one that is not.
                Known::Perhaps => return Ok(Known::Perhaps),
            }
        }
        let known = match last {
            Some(last) => self.value(last, scope)?,
            None => Known::Value(Datum::Null),
        };
        Ok(if stays { Known::Varies } else { known })
    }

    fn coalesce(&mut self, args: &'b [BoundExpr], scope: &Scope<'b>) -> Found<Known> {
        let mut stays = false;
        for arg in args {
            match self.value(arg, scope)? {
                Known::Value(Datum::Null) => {}
                Known::Value(_) if stays => return Ok(Known::Varies),
                Known::Value(value) => return Ok(Known::Value(value)),
                Known::Varies => stays = true,
                Known::Perhaps => return Ok(Known::Perhaps),
            }
        }
        Ok(if stays { Known::Varies } else { Known::Value(Datum::Null) })
    }

    /// A list is an array of what reads no row, and perhaps comparisons with the rest, one of which may
    /// decide.
    fn in_list(&mut self, left: &'b BoundExpr, list: &'b [BoundExpr], scope: &Scope<'b>) -> Found<Known> {
        let known = self.value(left, scope)?;
        let may_decide = !matches!(known, Known::Varies) && !list.iter().all(known::is_known);
        if may_decide {
            return Ok(Known::Perhaps);
        }
        for item in list {
            self.look_at(item, scope)?;
        }
        Ok(if matches!(known, Known::Varies) { Known::Varies } else { Known::Perhaps })
    }

    /// A query in an expression is planned once it is sure to stay there.
    fn subquery(&mut self, subquery: &'b Subquery, scope: &Scope<'b>) -> Found<Known> {
        if let SubqueryKind::Any { left, .. } | SubqueryKind::All { left, .. } = &subquery.kind {
            self.values(left, scope)?;
        }
        let columns_matter = !matches!(subquery.kind, SubqueryKind::Exists);
        self.later.push(Later::Query(&subquery.rel, scope.clone(), columns_matter));
        Ok(Known::Varies)
    }
}

/// A call of what is known (evaluate_function).
fn called(resolved: &ResolvedFunction, known: &[Known]) -> Found<Known> {
    let function = resolved.function;
    let of_record = resolved.result.oid == Oid::RECORD;
    if function.strict && !of_record && known.iter().any(is_null) {
        return Ok(Known::Value(Datum::Null));
    }
    let perhaps = known.iter().any(|known| matches!(known, Known::Perhaps));
    let otherwise = if perhaps || of_record { Known::Perhaps } else { Known::Varies };
    if of_record || !is_steady(function) {
        return Ok(otherwise);
    }
    let mut values = Vec::with_capacity(known.len());
    for known in known {
        match known {
            Known::Value(value) => values.push(value.clone()),
            // One in SQL becomes an expression, which may be known.
            _ if is_written_in_sql(function) => return Ok(Known::Perhaps),
            _ => return Ok(otherwise),
        }
    }
    let context =
        || is_written_in_sql(function).then(|| format!("SQL function \"{}\" statement 1", function.name));
    told((function.eval)(&FunctionContext::detached(), &values), context)
}
