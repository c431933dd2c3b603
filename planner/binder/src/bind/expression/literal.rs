//! Constants and parameters.

use std::hash::{Hash, Hasher};

use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::{CastContext, FunctionContext, ResolvedFunction, ScalarFunction, Volatility};
use archipel_sql::io;
use archipel_sql::system::Defined;
use archipel_sql::type_table::{TypeNames, element_of, type_info};
use archipel_sql::types::{Oid, Type};
use rustc_hash::FxHasher;
use sqlparser::ast::{DateTimeField, Expr, Interval, Value};

use super::constant::depends_on_settings;
use crate::bind::binder::Binder;
use crate::bind::clause::Clause;
use crate::bind::name::ident_name;
use crate::bound::{BoundExpr, ExprKind};

/// The text of a literal of a type of time, in a form that all settings read alike, as it was read when the
/// session came first to the literal of this number.
static READ_ONCE: ScalarFunction = ScalarFunction {
    oid: Oid(0),
    name: "literal_read_once",
    args: &[Oid::TEXT, Oid::OID, Oid::INT8],
    arg_names: &[],
    defaults: &[],
    variadic: false,
    result: Oid::TEXT,
    columns: &[],
    strict: true,
    volatility: Volatility::Stable,
    intrinsic: None,
    eval: |ctx, args| {
        let [Datum::Text(text), Datum::Oid(oid), Datum::Int8(number)] = args else { return Ok(Datum::Null) };
        if let Some(known) = ctx.session.literal(*number) {
            return Ok(Datum::text(&known));
        }
        let ty = Type::of(*oid);
        let value = io::text_in(text, ty, ctx)?;
        let read = io::to_text(&value, ty, &FunctionContext::detached());
        ctx.session.keep_literal(*number, &read);
        Ok(Datum::text(&read))
    },
};

impl Binder<'_, '_> {
    /// A literal that depends on the session's settings as PostgreSQL's kept plans have it: as they were
    /// when the session came to it first. `None` for what is read each time.
    pub(super) fn read_once(&self, text: &str, ty: Type) -> Option<BoundExpr> {
        let piece = self.env.literals_of?;
        let of_interval = element_of(ty.oid).unwrap_or(ty.oid) == Oid::INTERVAL;
        if of_interval || !depends_on_settings(ty.oid, text) {
            return None;
        }
        // What cannot be read is told by whoever reads it.
        io::text_in(text, ty, self.env.context).ok()?;
        let mut hasher = FxHasher::default();
        (piece, text, ty.oid).hash(&mut hasher);
        let args = vec![
            BoundExpr::constant(Datum::text(text), Type::TEXT),
            BoundExpr::constant(Datum::Oid(ty.oid), Type::OID),
            BoundExpr::constant(Datum::Int8(hasher.finish() as i64), Type::INT8),
        ];
        let function = ResolvedFunction { function: &READ_ONCE, result: Type::TEXT };
        let read = BoundExpr::new(ExprKind::Call { function, args }, Type::TEXT);
        Some(BoundExpr::new(ExprKind::ConvertIo(Box::new(read)), ty))
    }

    pub(crate) fn value(&mut self, value: &Value) -> Result<BoundExpr> {
        let unknown = |text: &str| BoundExpr::constant(Datum::text(text), Type::UNKNOWN);
        Ok(match value {
            Value::Number(digits, false) => self.number(digits)?,
            Value::Number(_, true) => return Err(SqlError::unsupported("a number with the suffix L")),
            Value::SingleQuotedString(text)
            | Value::EscapedStringLiteral(text)
            | Value::UnicodeStringLiteral(text) => unknown(text),
            Value::DollarQuotedString(quoted) => unknown(&quoted.value),
            Value::NationalStringLiteral(text) => BoundExpr::constant(Datum::bpchar(text), Type::BPCHAR),
            Value::Boolean(value) => BoundExpr::constant(Datum::Bool(*value), Type::BOOL),
            Value::Null => BoundExpr::constant(Datum::Null, Type::UNKNOWN),
            Value::Placeholder(name) => self.parameter(name)?,
            Value::SingleQuotedByteStringLiteral(digits) => self.bit_literal('b', digits)?,
            Value::HexStringLiteral(digits) => self.bit_literal('x', digits)?,
            other => return Err(SqlError::unsupported(format_args!("the literal {other}"))),
        })
    }

    /// A bit string constant, `B'101'` or `X'1F'`, of the type `bit` and no length (make_const).
    fn bit_literal(&self, kind: char, digits: &str) -> Result<BoundExpr> {
        let text = format!("{kind}{digits}");
        let value = io::text_in(&text, Type::BIT, self.env.context);
        Ok(BoundExpr::constant(value.map_err(|error| error.at(self.literal_position(&text)))?, Type::BIT))
    }

    /// A name of an object in what was defined, as it is found on the definition's own path.
    pub(super) fn settled_name(&self, text: &str, ty: Type) -> Option<BoundExpr> {
        let session = Defined { catalog: self.env.catalog, search_path: self.env.search_path };
        let context = FunctionContext { now: self.env.context.now, session: &session };
        io::text_in(text, ty, &context).ok().map(|value| BoundExpr::constant(value, ty))
    }

    /// Integers take the narrowest of int4 and int8; everything else is numeric.
    pub(crate) fn number(&mut self, digits: &str) -> Result<BoundExpr> {
        if let Ok(value) = digits.parse::<i32>() {
            return Ok(BoundExpr::constant(Datum::Int4(value), Type::INT4));
        }
        if let Ok(value) = digits.parse::<i64>() {
            return Ok(BoundExpr::constant(Datum::Int8(value), Type::INT8));
        }
        self.literal(digits, Type::NUMERIC)
    }

    fn parameter(&mut self, name: &str) -> Result<BoundExpr> {
        let missing =
            || SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter {name}"));
        // The result of a polymorphic function in PL/pgSQL.
        if name == "$0"
            && let Some(result) = self.env.variables.and_then(|variables| variables.resolve(&[name]))
        {
            return Ok(result);
        }
        let number: u16 =
            name.strip_prefix('$').and_then(|digits| digits.parse().ok()).ok_or_else(missing)?;
        let number = number.checked_sub(1).ok_or_else(missing)?;
        if let Some(expr) = self.env.variables.and_then(|variables| variables.parameter(number)) {
            return Ok(expr);
        }
        let place = usize::from(number);
        if place >= self.env.param_types.len() {
            if self.env.params_fixed {
                return Err(missing());
            }
            self.env.param_types.resize(place + 1, None);
        }
        // As JDBC's driver passes what a procedure answers: it is one of its arguments.
        let is_answer = self.env.param_types[place] == Some(Type::VOID)
            && self.levels.last().is_some_and(|level| level.clause == Clause::CallArgument);
        if is_answer {
            self.env.param_types[place] = None;
        }
        let ty = self.env.param_types[place].unwrap_or(Type::UNKNOWN);
        if type_info(ty.oid).is_none() && self.env.type_names().format_type(ty) == "???" {
            let message = format!("type with OID {} does not exist", ty.oid);
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
        }
        self.typed_last = None;
        // What a client declared, or an earlier place asked for, may be a domain or an array of one.
        let domain = self.env.param_domains.iter().find(|(of, _)| *of == number).map(|(_, domain)| *domain);
        Ok(self.guarded_row(BoundExpr::new(ExprKind::Param(number), ty))?.of_domain(domain))
    }

    /// `INTERVAL '1' DAY`, `INTERVAL '1 day'`.
    pub(crate) fn interval(&mut self, interval: &Interval) -> Result<BoundExpr> {
        let Interval { value, leading_field, leading_precision, last_field, fractional_seconds_precision } =
            interval;
        let value = match value.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Placeholder(text) | Value::Number(text, _) => {
                    let message = format!("syntax error at or near \"{text}\"");
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
                }
                literal => self.value(literal)?,
            },
            _ => return Err(SqlError::new(SqlState::SYNTAX_ERROR, "an interval literal takes a string")),
        };
        let precision = match (leading_precision, fractional_seconds_precision) {
            (None, None) => FULL_PRECISION,
            (Some(precision), None) | (None, Some(precision)) => (*precision).min(6) as i32,
            (Some(_), Some(_)) => {
                return Err(SqlError::unsupported("an interval literal with two precisions"));
            }
        };
        let range = match (leading_field, last_field) {
            (None, None) => FULL_RANGE,
            (Some(field), None) => field_bit(field)?,
            (Some(first), Some(last)) => {
                // From one field to a finer one: all the bits between.
                let (first, last) = (field_place(first)?, field_place(last)?);
                FIELD_BITS
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| (first..=last).contains(i))
                    .map(|(_, bit)| bit)
                    .sum()
            }
            (None, Some(_)) => {
                return Err(SqlError::unsupported("an interval literal without a leading field"));
            }
        };
        let typmod =
            if range == FULL_RANGE && precision == FULL_PRECISION { -1 } else { (range << 16) | precision };
        self.coerce_or_fail(value, Type { oid: Oid::INTERVAL, typmod }, CastContext::Explicit)
    }
}

const FULL_RANGE: i32 = 0x7FFF;
const FULL_PRECISION: i32 = 0xFFFF;
/// PostgreSQL's INTERVAL_MASK bits: year, month, day, hour, minute, second.
const FIELD_BITS: [i32; 6] = [1 << 2, 1 << 1, 1 << 3, 1 << 10, 1 << 11, 1 << 12];

fn field_place(field: &DateTimeField) -> Result<usize> {
    Ok(match field {
        DateTimeField::Year | DateTimeField::Years => 0,
        DateTimeField::Month | DateTimeField::Months => 1,
        DateTimeField::Day | DateTimeField::Days => 2,
        DateTimeField::Hour | DateTimeField::Hours => 3,
        DateTimeField::Minute | DateTimeField::Minutes => 4,
        DateTimeField::Second | DateTimeField::Seconds => 5,
        other => {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("syntax error at or near \"{other}\""),
            ));
        }
    })
}

fn field_bit(field: &DateTimeField) -> Result<i32> {
    field_place(field).map(|place| FIELD_BITS[place])
}

/// The name of a date field, as `extract` takes it.
pub(crate) fn field_name(field: &DateTimeField) -> String {
    match field {
        DateTimeField::Custom(ident) => ident_name(ident),
        other => other.to_string().to_lowercase(),
    }
}
