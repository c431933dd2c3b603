//! Row-wise evaluation of bound expressions without subqueries: the one meaning of an
//! expression, for everything DataFusion has no equal of.

use std::sync::Arc;

use archipel_planner::bound::{BoundExpr, ExprKind, Subscript, row_descriptor};
use archipel_planner::native::{array_of_items, convert_io, element, has_arrays, is_known, known_within};
use archipel_planner::row::{Codec, field};
use archipel_sql::datum::{Array, Datum};
use archipel_sql::error::{Result, SqlError};
use archipel_sql::function::{FunctionContext, Intrinsic, ResolvedFunction, SessionHost, Volatility};
use archipel_sql::interrupt::Watch;
use archipel_sql::record::Record;
use archipel_sql::stack;

use archipel_planner::bind::visit::visit_expr;

/// What expressions read beside their row: fixed for one execution.
pub struct Context {
    pub params: Vec<Datum>,
    pub session: Arc<dyn SessionHost + Send + Sync>,
    /// Transaction start, microseconds since 2000-01-01 UTC.
    pub now: i64,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Context")
    }
}

impl Context {
    /// For calls of scalar functions.
    pub fn functions(&self) -> FunctionContext<'_> {
        FunctionContext { now: self.now, session: &*self.session }
    }

    /// Lets the work of one call hear that nobody waits for it: it may run on any thread.
    pub(crate) fn watch(&self) -> Watch {
        Watch::of(self.session.clone())
    }
}

/// Whether a volatile function changes nothing and asks the session for nothing that may have changed.
fn is_beside(function: &ResolvedFunction) -> bool {
    matches!(function.intrinsic(), Some(Intrinsic::Fresh | Intrinsic::Sleep))
}

/// Whether [`evaluate`] understands all of an expression; the answer names what it does not.
pub fn refusal(expr: &BoundExpr) -> Option<&'static str> {
    let mut refused = None;
    visit_expr(expr, 0, &mut |part, nesting| {
        // The walk goes on beside a part that it does not go into.
        if refused.is_some() {
            return false;
        }
        match &part.kind {
            ExprKind::Subquery(_) => refused = Some("a subquery"),
            ExprKind::Routine { .. } => refused = Some("a routine call"),
            ExprKind::Variable(_) => refused = Some("a variable"),
            ExprKind::Domain { conditions, .. }
                if conditions.checks.iter().any(|(_, check)| refusal(check).is_some()) =>
            {
                refused = Some("a domain's condition");
            }
            // A walk does not go into what these make of their parts.
            ExprKind::ArrayConvert { element, .. } => refused = refusal(element),
            ExprKind::RowConvert { fields, .. } => refused = fields.iter().find_map(refusal),
            ExprKind::Column { depth, .. } if *depth > nesting => refused = Some("an outer row"),
            ExprKind::Subscript { subscripts, .. }
                if subscripts.iter().any(|subscript| matches!(subscript, Subscript::Slice { .. })) =>
            {
                refused = Some("an array slice");
            }
            // What changes or asks the session for more than its settings.
            ExprKind::Call { function, .. }
                if function.function.volatility == Volatility::Volatile && !is_beside(function) =>
            {
                refused = Some("a volatile function");
            }
            _ => {}
        }
        refused.is_none()
    });
    refused
}

/// Whether an expression may answer differently for equal rows.
pub fn is_volatile(expr: &BoundExpr) -> bool {
    let mut volatile = false;
    visit_expr(expr, 0, &mut |part, _| {
        if let ExprKind::Call { function, .. } = &part.kind {
            volatile |= function.function.volatility == Volatility::Volatile;
        }
        !volatile
    });
    volatile
}

fn call(function: &ResolvedFunction, args: &[Datum], context: &Context) -> Result<Datum> {
    if function.function.strict && args.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    (function.function.eval)(&context.functions(), args)
}

/// The truth of a condition: `None` is UNKNOWN.
fn truth(value: &Datum) -> Option<bool> {
    match value {
        Datum::Bool(value) => Some(*value),
        _ => None,
    }
}

fn boolean(value: Option<bool>) -> Datum {
    value.map_or(Datum::Null, Datum::Bool)
}

/// The value of an expression over a row.
pub fn evaluate(expr: &BoundExpr, row: &[Datum], context: &Context) -> Result<Datum> {
    let eval = |expr: &BoundExpr| evaluate(expr, row, context);
    Ok(match &expr.kind {
        ExprKind::Const(value) => value.clone(),
        ExprKind::Param(number) => context
            .params
            .get(usize::from(*number))
            .cloned()
            .ok_or_else(|| SqlError::internal("a parameter without a value"))?,
        ExprKind::Column { index, .. } => row
            .get(usize::from(*index))
            .cloned()
            .ok_or_else(|| SqlError::internal("a column beyond its row"))?,
        ExprKind::Call { function, args }
            if function.function.strict && args.iter().any(BoundExpr::is_null_constant) =>
        {
            // What PostgreSQL computes when it plans, it computes for its errors.
            known_within(args, usize::MAX).into_iter().try_for_each(|part| eval(part).map(drop))?;
            Datum::Null
        }
        ExprKind::Call { function, args } => match &args[..] {
            [one] => call(function, &[eval(one)?], context)?,
            [one, two] => call(function, &[eval(one)?, eval(two)?], context)?,
            many => {
                let values = many.iter().map(eval).collect::<Result<Vec<_>>>()?;
                call(function, &values, context)?
            }
        },
        ExprKind::And(list) => {
            let mut unknown = false;
            for item in list {
                match truth(&eval(item)?) {
                    Some(false) => return Ok(Datum::Bool(false)),
                    Some(true) => {}
                    None => unknown = true,
                }
            }
            boolean((!unknown).then_some(true))
        }
        ExprKind::Or(list) => {
            let mut unknown = false;
            for item in list {
                match truth(&eval(item)?) {
                    Some(true) => return Ok(Datum::Bool(true)),
                    Some(false) => {}
                    None => unknown = true,
                }
            }
            boolean((!unknown).then_some(false))
        }
        ExprKind::Not(inner) => boolean(truth(&eval(inner)?).map(|value| !value)),
        ExprKind::IsNull(inner) => Datum::Bool(all_null(&eval(inner)?, true)),
        ExprKind::IsNotNull(inner) => Datum::Bool(all_null(&eval(inner)?, false)),
        ExprKind::IsBool { expr, value, negated } => {
            Datum::Bool((truth(&eval(expr)?) == Some(*value)) != *negated)
        }
        ExprKind::IsDistinctFrom { left, right, equality, negated } => {
            let (left, right) = (eval(left)?, eval(right)?);
            let distinct = match (left.is_null(), right.is_null()) {
                (true, true) => false,
                (true, false) | (false, true) => true,
                (false, false) => truth(&call(equality, &[left, right], context)?) != Some(true),
            };
            Datum::Bool(distinct != *negated)
        }
        ExprKind::Case { arms, otherwise } => {
            for (condition, result) in arms {
                if truth(&eval(condition)?) == Some(true) {
                    return eval(result);
                }
            }
            match otherwise {
                Some(otherwise) => eval(otherwise)?,
                None => Datum::Null,
            }
        }
        ExprKind::Coalesce(list) => {
            for item in list {
                let value = eval(item)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            Datum::Null
        }
        ExprKind::NullIf { left, right, .. } if left.is_null_constant() && !is_known(right) => Datum::Null,
        ExprKind::NullIf { left, right, equality } => {
            let left = eval(left)?;
            let right = eval(right)?;
            if left.is_null() || right.is_null() {
                return Ok(left);
            }
            let equal = call(equality, &[left.clone(), right], context)?;
            if truth(&equal) == Some(true) { Datum::Null } else { left }
        }
        ExprKind::Extreme { greatest, args, less } => {
            let mut best = Datum::Null;
            for arg in args {
                let value = eval(arg)?;
                if value.is_null() {
                    continue;
                }
                if best.is_null() {
                    best = value;
                    continue;
                }
                let pair = if *greatest { [best, value] } else { [value, best] };
                let replace = truth(&call(less, &pair, context)?) == Some(true);
                let [first, second] = pair;
                best = if *greatest == replace { second } else { first };
            }
            best
        }
        ExprKind::ArrayOp { left, array, operator, all } => {
            let left = eval(left)?;
            let Datum::Array(array) = eval(array)? else { return Ok(Datum::Null) };
            let mut unknown = false;
            for value in &array.values {
                match truth(&call(operator, &[left.clone(), value.clone()], context)?) {
                    Some(value) if value != *all => return Ok(Datum::Bool(value)),
                    Some(_) => {}
                    None => unknown = true,
                }
            }
            boolean((!unknown).then_some(*all))
        }
        ExprKind::InList { left, list, equality, negated } => {
            let left = eval(left)?;
            // All items are computed, even those that come to nothing, as PostgreSQL's array is.
            let items = list.iter().map(eval).collect::<Result<Vec<_>>>()?;
            let mut unknown = false;
            for item in items {
                match truth(&call(equality, &[left.clone(), item], context)?) {
                    Some(true) => return Ok(Datum::Bool(!negated)),
                    Some(false) => {}
                    None => unknown = true,
                }
            }
            boolean((!unknown).then_some(*negated))
        }
        ExprKind::Array { element, items } => {
            let values = items.iter().map(eval).collect::<Result<_>>()?;
            array_of_items(*element, has_arrays(*element, items), values)?
        }
        ExprKind::Row(items, names) => {
            let fields = items.iter().map(eval).collect::<Result<Vec<_>>>()?;
            stack::check_fields(&fields)?;
            Datum::Record(Record::new(fields, row_descriptor(expr.ty, items, names)))
        }
        ExprKind::Subscript { array, subscripts } => {
            let Datum::Array(array) = eval(array)? else { return Ok(Datum::Null) };
            let mut indexes = Vec::with_capacity(subscripts.len());
            for subscript in subscripts {
                let Subscript::Index(index) = subscript else {
                    return Err(SqlError::internal("a slice reached the row evaluator"));
                };
                match eval(index)? {
                    Datum::Int4(index) => indexes.push(i64::from(index)),
                    _ => return Ok(Datum::Null),
                }
            }
            element(&array, &indexes).clone()
        }
        ExprKind::Field { record, index } => field(&eval(record)?, usize::from(*index), Codec::of(expr.ty)),
        ExprKind::Relabel(inner) => archipel_sql::cast::relabel(eval(inner)?, inner.ty.oid, expr.ty.oid),
        ExprKind::ConvertIo(inner) => convert_io(&eval(inner)?, inner.ty, expr.ty, &context.functions())?,
        ExprKind::ArrayConvert { array, element } => {
            let Datum::Array(array) = eval(array)? else { return Ok(Datum::Null) };
            let mut values = Vec::with_capacity(array.values.len());
            for value in &array.values {
                values.push(evaluate(element, std::slice::from_ref(value), context)?);
            }
            let dimensions = array.dimensions.clone();
            Datum::Array(Arc::new(Array { element: element.ty.oid, dimensions, values }))
        }
        ExprKind::RowConvert { record, fields } => {
            let record = eval(record)?;
            if record.is_null() {
                return Ok(Datum::Null);
            }
            let row = std::slice::from_ref(&record);
            let fields = fields.iter().map(|field| evaluate(field, row, context));
            Datum::Record(fields.collect::<Result<Vec<Datum>>>()?.into())
        }
        ExprKind::Domain { expr, conditions } => {
            let value = eval(expr)?;
            if conditions.not_null && value.is_null() {
                return Err(conditions.null_refused());
            }
            for (name, check) in &conditions.checks {
                if truth(&evaluate(check, std::slice::from_ref(&value), context)?) == Some(false) {
                    return Err(conditions.violated(name));
                }
            }
            value
        }
        ExprKind::Variable(_) | ExprKind::Routine { .. } | ExprKind::Subquery(_) => {
            return Err(SqlError::internal("an expression that the row evaluator does not know"));
        }
    })
}

/// `IS [NOT] NULL`: a row is NULL when all its fields are, NOT NULL when none of them is.
fn all_null(value: &Datum, wanted: bool) -> bool {
    match value {
        Datum::Record(fields) => fields.iter().all(|field| field.is_null() == wanted),
        value => value.is_null() == wanted,
    }
}
