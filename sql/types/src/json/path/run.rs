//! Application of a path to a value (jsonpath_exec.c).

use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use super::datetime::{self, Clock};
use super::vars::Vars;
use super::{Flags, Head, JsonPath, LEVEL_LAST, Method, Operator, Path, Predicate, Step, Value};
use crate::datetime::standard_template::Template;
use crate::error::{Result, SqlError, SqlState};
use crate::function::{Pattern, regular_expression};
use crate::interrupt;
use crate::io::parse_f64;
use crate::json::STEPS_PER_VALUE;
use crate::numeric::Numeric;

// The states of SQL/JSON (chapter A): its class 22 has them only here.
const NOT_AN_ARRAY: SqlState = SqlState(*b"22039");
const NO_MEMBER: SqlState = SqlState(*b"2203A");
const NOT_AN_OBJECT: SqlState = SqlState(*b"2203C");
const NOT_A_NUMBER: SqlState = SqlState(*b"2203B");
const NON_NUMERIC_ITEM: SqlState = SqlState(*b"22036");
const INVALID_SUBSCRIPT: SqlState = SqlState(*b"22033");
const INVALID_DATETIME: SqlState = SqlState(*b"22031");
const SINGLETON_REQUIRED: SqlState = SqlState(*b"22038");

/// The regular expression of a LIKE_REGEX.
pub(super) fn compiled(pattern: &str, flags: Flags) -> Result<Arc<Pattern>> {
    if flags.expanded && !flags.quoted {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "XQuery \"x\" flag (expanded regular expressions) is not implemented",
        ));
    }
    let mut letters = String::new();
    if flags.quoted {
        letters.push('q');
    } else {
        letters.push(match (flags.dot_matches_newline, flags.lines) {
            (false, false) => 'p',
            (false, true) => 'n',
            (true, true) => 'w',
            (true, false) => 's',
        });
    }
    if flags.ignore_case {
        letters.push('i');
    }
    regular_expression(pattern, &letters)
}

/// A failure of SQL/JSON, which a predicate or `silent` turns into "unknown"; others go through.
enum Failure {
    Json(SqlError),
    Other(SqlError),
}

type Outcome<T> = std::result::Result<T, Failure>;

fn fail<T>(state: SqlState, message: impl Into<String>) -> Outcome<T> {
    Err(Failure::Json(SqlError::new(state, message)))
}

/// Three-valued truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    False,
    True,
    Unknown,
}

impl From<bool> for Truth {
    fn from(value: bool) -> Truth {
        if value { Truth::True } else { Truth::False }
    }
}

/// What becomes of the values found.
enum Sink<'s> {
    All(&'s mut Vec<Value>),
    /// Whether there is one at all.
    First(&'s mut bool),
}

impl Sink<'_> {
    fn put(&mut self, value: Value) {
        match self {
            Sink::All(values) => values.push(value),
            Sink::First(found) => **found = true,
        }
    }

    fn is_done(&self) -> bool {
        matches!(self, Sink::First(found) if **found)
    }
}

/// A path under way.
pub struct Application<'p> {
    path: &'p JsonPath,
    vars: &'p Vars,
    /// Given where the session's time zone may be used.
    clock: Option<Clock>,
    root: Value,
    current: Value,
    /// The length of the innermost array that is subscripted.
    array_length: Option<usize>,
    /// Structural errors are passed over inside `**`, too.
    forgiving: bool,
    /// Where `id` of `keyvalue()` counts from: the value, and which one it is.
    base: (Value, u64),
    made: u64,
}

impl<'p> Application<'p> {
    pub fn new(path: &'p JsonPath, vars: &'p Vars, clock: Option<Clock>, value: Value) -> Application<'p> {
        Application {
            path,
            vars,
            clock,
            root: value.clone(),
            current: value.clone(),
            array_length: None,
            forgiving: path.lax,
            base: (value, 0),
            made: 1,
        }
    }

    /// All values found; `None` for an error that is passed over.
    pub fn values(mut self, silent: bool) -> Result<Option<Vec<Value>>> {
        let mut values = Vec::new();
        let (path, root) = (self.path, self.root.clone());
        match self.path(&path.path, &root, &mut Sink::All(&mut values)) {
            Ok(()) => Ok(Some(values)),
            // What was found before counts.
            Err(Failure::Json(_)) if silent => Ok(Some(values)),
            Err(Failure::Json(error) | Failure::Other(error)) => Err(error),
        }
    }

    /// Whether there is a value; `None` for an error that is passed over.
    pub fn exists(mut self, silent: bool) -> Result<Option<bool>> {
        let (path, root) = (self.path, self.root.clone());
        let found = if path.lax {
            let mut found = false;
            self.path(&path.path, &root, &mut Sink::First(&mut found)).map(|()| found)
        } else {
            let mut values = Vec::new();
            self.path(&path.path, &root, &mut Sink::All(&mut values)).map(|()| !values.is_empty())
        };
        match found {
            Ok(found) => Ok(Some(found)),
            Err(Failure::Json(_)) if silent => Ok(None),
            Err(Failure::Json(error) | Failure::Other(error)) => Err(error),
        }
    }

    fn path(&mut self, path: &Path, on: &Value, sink: &mut Sink<'_>) -> Outcome<()> {
        let steps = &path.steps[..];
        match &path.head {
            Head::Root => {
                let root = self.root.clone();
                let before = std::mem::replace(&mut self.base, (root.clone(), 0));
                let result = self.steps(steps, &root, sink, true);
                self.base = before;
                result
            }
            Head::Current => {
                let current = self.current.clone();
                self.steps(steps, &current, sink, true)
            }
            Head::Last => {
                let Some(length) = self.array_length else {
                    return Err(Failure::Other(SqlError::internal(
                        "evaluating jsonpath LAST outside of array subscript",
                    )));
                };
                self.steps(steps, &Value::Number(Numeric::from(length as i64 - 1)), sink, true)
            }
            Head::Null => self.steps(steps, &Value::Null, sink, true),
            Head::Bool(value) => self.steps(steps, &Value::Bool(*value), sink, true),
            Head::Number(number) => self.steps(steps, &Value::Number(number.clone()), sink, true),
            Head::String(text) => self.steps(steps, &Value::String(Rc::from(text.as_str())), sink, true),
            Head::Variable(name) => {
                let value = self.vars.get(name).map_err(Failure::Other)?;
                let before = std::mem::replace(&mut self.base, (value.clone(), 1));
                let result = self.steps(steps, &value, sink, true);
                self.base = before;
                result
            }
            Head::Arithmetic(operator, left, right) => {
                let value = self.arithmetic(*operator, left, right, on)?;
                self.steps(steps, &Value::Number(value), sink, true)
            }
            Head::Sign(operator, operand) => {
                let only = matches!(sink, Sink::First(_)) && steps.is_empty();
                for value in self.unwrapped(operand, on)? {
                    let Value::Number(number) = value else {
                        if only {
                            continue;
                        }
                        return fail(
                            NOT_A_NUMBER,
                            format!(
                                "operand of unary jsonpath operator {} is not a numeric value",
                                operator.symbol()
                            ),
                        );
                    };
                    let number = if *operator == Operator::Subtract { number.neg() } else { number };
                    self.steps(steps, &Value::Number(number), sink, true)?;
                    if sink.is_done() {
                        break;
                    }
                }
                Ok(())
            }
            Head::Predicate(predicate) => {
                let value = match self.predicate(predicate, on)? {
                    Truth::True => Value::Bool(true),
                    Truth::False => Value::Bool(false),
                    Truth::Unknown => Value::Null,
                };
                self.steps(steps, &value, sink, true)
            }
        }
    }

    /// The values of a path, arrays among them replaced by their elements in lax mode.
    fn unwrapped(&mut self, path: &Path, on: &Value) -> Outcome<Vec<Value>> {
        let mut values = Vec::new();
        self.path(path, on, &mut Sink::All(&mut values))?;
        if !self.path.lax || !values.iter().any(|value| matches!(value, Value::Array(_))) {
            return Ok(values);
        }
        let mut flat = Vec::new();
        for value in values {
            match value {
                Value::Array(items) => flat.extend(items.iter().cloned()),
                other => flat.push(other),
            }
        }
        Ok(flat)
    }

    /// The steps after a value. `unwrap`: a step that wants no array takes its elements.
    fn steps(&mut self, steps: &[Step], on: &Value, sink: &mut Sink<'_>, unwrap: bool) -> Outcome<()> {
        interrupt::steps(STEPS_PER_VALUE).map_err(Failure::Other)?;
        let Some((step, rest)) = steps.split_first() else {
            sink.put(on.clone());
            return Ok(());
        };
        let unwrap = unwrap && self.path.lax;
        let array = matches!(on, Value::Array(_));
        match step {
            Step::Key(key) => match on {
                Value::Object(fields) => match fields.iter().find(|(name, _)| name.as_ref() == key) {
                    Some((_, value)) => {
                        let value = value.clone();
                        self.steps(rest, &value, sink, true)
                    }
                    None if self.forgiving => Ok(()),
                    None => fail(NO_MEMBER, format!("JSON object does not contain key \"{key}\"")),
                },
                Value::Array(_) if unwrap => self.elements(steps, on, sink),
                _ if self.forgiving => Ok(()),
                _ => fail(NO_MEMBER, "jsonpath member accessor can only be applied to an object"),
            },
            Step::AnyKey => match on {
                Value::Object(_) => self.level(rest, on, sink, (1, 1, 1), false),
                Value::Array(_) if unwrap => self.elements(steps, on, sink),
                _ if self.forgiving => Ok(()),
                _ => {
                    fail(NOT_AN_OBJECT, "jsonpath wildcard member accessor can only be applied to an object")
                }
            },
            Step::AnyElement => match on {
                Value::Array(_) => self.level(rest, on, sink, (1, 1, 1), false),
                // A value counts as an array of itself.
                _ if self.path.lax => self.steps(rest, on, sink, true),
                _ if self.forgiving => Ok(()),
                _ => fail(NOT_AN_ARRAY, "jsonpath wildcard array accessor can only be applied to an array"),
            },
            Step::Elements(ranges) => self.subscripts(ranges, rest, on, sink),
            Step::Any(first, last) => {
                if *first == 0 {
                    let before = std::mem::replace(&mut self.forgiving, true);
                    let result = self.steps(rest, on, sink, true);
                    self.forgiving = before;
                    result?;
                    if sink.is_done() {
                        return Ok(());
                    }
                }
                if !on.is_container() {
                    return Ok(());
                }
                self.level(rest, on, sink, (1, *first, *last), true)
            }
            Step::Filter(_)
            | Step::Method(Method::Abs | Method::Floor | Method::Ceiling | Method::Double)
                if unwrap && array =>
            {
                self.elements(steps, on, sink)
            }
            Step::Method(Method::KeyValue) | Step::Datetime(_) if unwrap && array => {
                self.elements(steps, on, sink)
            }
            Step::Filter(predicate) => {
                let before = std::mem::replace(&mut self.current, on.clone());
                let truth = match &predicate.head {
                    Head::Predicate(predicate) => self.predicate(predicate, on),
                    _ => Ok(Truth::Unknown),
                };
                self.current = before;
                if truth? == Truth::True { self.steps(rest, on, sink, true) } else { Ok(()) }
            }
            Step::Method(Method::KeyValue) => self.key_values(rest, on, sink),
            Step::Method(method) => {
                let value = self.method(*method, on)?;
                self.steps(rest, &value, sink, true)
            }
            Step::Datetime(template) => {
                let value = self.datetime(template.as_deref(), on)?;
                self.steps(rest, &value, sink, true)
            }
        }
    }

    /// The same steps for the elements of an array, which are not unwrapped again.
    fn elements(&mut self, steps: &[Step], array: &Value, sink: &mut Sink<'_>) -> Outcome<()> {
        for child in array.children() {
            self.steps(steps, &child, sink, false)?;
            if sink.is_done() {
                break;
            }
        }
        Ok(())
    }

    /// The values at some levels below one: the level its children have, the first and the last
    /// that are wanted.
    fn level(
        &mut self,
        rest: &[Step],
        on: &Value,
        sink: &mut Sink<'_>,
        (level, first, last): (u32, u32, u32),
        forgiving: bool,
    ) -> Outcome<()> {
        if level > last {
            return Ok(());
        }
        for child in on.children() {
            let leaf = first == LEVEL_LAST && last == LEVEL_LAST && !child.is_container();
            if level >= first || leaf {
                let before = self.forgiving;
                self.forgiving |= forgiving;
                let result = self.steps(rest, &child, sink, true);
                self.forgiving = before;
                result?;
                if sink.is_done() {
                    return Ok(());
                }
            }
            if level < last && child.is_container() {
                self.level(rest, &child, sink, (level + 1, first, last), forgiving)?;
                if sink.is_done() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn subscripts(
        &mut self,
        ranges: &[(Path, Option<Path>)],
        rest: &[Step],
        on: &Value,
        sink: &mut Sink<'_>,
    ) -> Outcome<()> {
        let items: Rc<[Value]> = match on {
            Value::Array(items) => items.clone(),
            other if self.path.lax => Rc::from([other.clone()]),
            _ if self.forgiving => return Ok(()),
            _ => return fail(NOT_AN_ARRAY, "jsonpath array accessor can only be applied to an array"),
        };
        let before = self.array_length.replace(items.len());
        let result = self.ranges(ranges, rest, on, &items, sink);
        self.array_length = before;
        result
    }

    fn ranges(
        &mut self,
        ranges: &[(Path, Option<Path>)],
        rest: &[Step],
        on: &Value,
        items: &[Value],
        sink: &mut Sink<'_>,
    ) -> Outcome<()> {
        let length = items.len() as i64;
        for (from, to) in ranges {
            let from = self.index(from, on)?;
            let to = match to {
                Some(to) => self.index(to, on)?,
                None => from,
            };
            if !self.forgiving && (from < 0 || from > to || to >= length) {
                return fail(INVALID_SUBSCRIPT, "jsonpath array subscript is out of bounds");
            }
            for place in from.max(0)..=to.min(length - 1) {
                // LAST in the steps that follow is another array's.
                self.steps(rest, &items[place as usize], sink, true)?;
                if sink.is_done() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn index(&mut self, path: &Path, on: &Value) -> Outcome<i64> {
        let mut values = Vec::new();
        self.path(path, on, &mut Sink::All(&mut values))?;
        let [Value::Number(number)] = &values[..] else {
            return fail(INVALID_SUBSCRIPT, "jsonpath array subscript is not a single numeric value");
        };
        match number.trunc(0).and_then(|number| number.to_i32()) {
            Ok(index) => Ok(i64::from(index)),
            Err(_) => fail(INVALID_SUBSCRIPT, "jsonpath array subscript is out of integer range"),
        }
    }

    fn arithmetic(&mut self, operator: Operator, left: &Path, right: &Path, on: &Value) -> Outcome<Numeric> {
        let mut operand = |path: &Path, side: &str| {
            let values = self.unwrapped(path, on)?;
            match &values[..] {
                [Value::Number(number)] => Ok(number.clone()),
                _ => fail(
                    SINGLETON_REQUIRED,
                    format!(
                        "{side} operand of jsonpath operator {} is not a single numeric value",
                        operator.symbol()
                    ),
                ),
            }
        };
        let (left, right) = (operand(left, "left")?, operand(right, "right")?);
        let result = match operator {
            Operator::Add => left.add(&right),
            Operator::Subtract => left.sub(&right),
            Operator::Multiply => left.mul(&right),
            Operator::Divide => left.div(&right),
            _ => left.rem(&right),
        };
        result.map_err(Failure::Json)
    }

    fn method(&mut self, method: Method, on: &Value) -> Outcome<Value> {
        let not_number = || {
            fail(
                NON_NUMERIC_ITEM,
                format!("jsonpath item method .{}() can only be applied to a numeric value", method.name()),
            )
        };
        Ok(match (method, on) {
            (Method::Type, value) => Value::String(Rc::from(value.type_name())),
            (Method::Size, Value::Array(items)) => Value::Number(Numeric::from(items.len() as i64)),
            (Method::Size, _) if self.path.lax || self.forgiving => Value::Number(Numeric::from(1_i64)),
            (Method::Size, _) => {
                return fail(NOT_AN_ARRAY, "jsonpath item method .size() can only be applied to an array");
            }
            (Method::Abs, Value::Number(number)) => Value::Number(number.abs()),
            (Method::Floor, Value::Number(number)) => Value::Number(number.floor().map_err(Failure::Other)?),
            (Method::Ceiling, Value::Number(number)) => Value::Number(number.ceil().map_err(Failure::Other)?),
            (Method::Double, Value::Number(number)) => match parse_f64(&number.to_string()) {
                Ok(value) if value.is_finite() => on.clone(),
                _ => {
                    return fail(
                        NON_NUMERIC_ITEM,
                        "numeric argument of jsonpath item method .double() is out of range for type double precision",
                    );
                }
            },
            (Method::Double, Value::String(text)) => match parse_f64(text) {
                Ok(value) if value.is_finite() => Value::Number(Numeric::from_f64(value)),
                _ => {
                    return fail(
                        NON_NUMERIC_ITEM,
                        "string argument of jsonpath item method .double() is not a valid representation of a double precision number",
                    );
                }
            },
            (Method::Double, _) => {
                return fail(
                    NON_NUMERIC_ITEM,
                    "jsonpath item method .double() can only be applied to a string or numeric value",
                );
            }
            _ => return not_number(),
        })
    }

    fn datetime(&self, template: Option<&str>, on: &Value) -> Outcome<Value> {
        let Value::String(text) = on else {
            return fail(
                INVALID_DATETIME,
                "jsonpath item method .datetime() can only be applied to a string",
            );
        };
        let moment = match template {
            None => datetime::recognize(text),
            Some(template) => Template::new(template).map_err(Failure::Other)?.read(text),
        };
        moment.map(Value::Datetime).map_err(Failure::Json)
    }

    fn key_values(&mut self, rest: &[Step], on: &Value, sink: &mut Sink<'_>) -> Outcome<()> {
        let Value::Object(fields) = on else {
            return fail(NOT_AN_OBJECT, "jsonpath item method .keyvalue() can only be applied to an object");
        };
        let offset = self.base.0.offset_of(on).unwrap_or(0) as u64;
        let id = self.base.1 * 10_000_000_000 + offset;
        for (key, value) in fields.iter() {
            let pair = Value::Object(Rc::from([
                (Rc::from("id"), Value::Number(Numeric::from(i128::from(id)))),
                (Rc::from("key"), Value::String(key.clone())),
                (Rc::from("value"), value.clone()),
            ]));
            self.made += 1;
            let before = std::mem::replace(&mut self.base, (pair.clone(), self.made));
            let result = self.steps(rest, &pair, sink, true);
            self.base = before;
            result?;
            if sink.is_done() {
                break;
            }
        }
        Ok(())
    }

    fn truth(&mut self, path: &Path, on: &Value) -> Outcome<Truth> {
        match &path.head {
            Head::Predicate(predicate) => self.predicate(predicate, on),
            _ => Ok(Truth::Unknown),
        }
    }

    fn predicate(&mut self, predicate: &Predicate, on: &Value) -> Outcome<Truth> {
        Ok(match predicate {
            Predicate::And(left, right) => match self.truth(left, on)? {
                Truth::False => Truth::False,
                left => match self.truth(right, on)? {
                    Truth::True => left,
                    right => right,
                },
            },
            Predicate::Or(left, right) => match self.truth(left, on)? {
                Truth::True => Truth::True,
                left => match self.truth(right, on)? {
                    Truth::False => left,
                    right => right,
                },
            },
            Predicate::Not(path) => match self.truth(path, on)? {
                Truth::Unknown => Truth::Unknown,
                truth => Truth::from(truth == Truth::False),
            },
            Predicate::IsUnknown(path) => Truth::from(self.truth(path, on)? == Truth::Unknown),
            Predicate::Exists(path) => {
                let found = if self.path.lax {
                    let mut found = false;
                    self.path(path, on, &mut Sink::First(&mut found)).map(|()| found)
                } else {
                    let mut values = Vec::new();
                    self.path(path, on, &mut Sink::All(&mut values)).map(|()| !values.is_empty())
                };
                match known(found)? {
                    Some(found) => Truth::from(found),
                    None => Truth::Unknown,
                }
            }
            Predicate::Compare(operator, left, right) => {
                let clock = self.clock.clone();
                self.pairs(left, Some((right.as_ref(), true)), on, &mut |left, right| match right {
                    Some(right) => compare(*operator, left, right, clock.as_ref()),
                    None => Ok(Truth::Unknown),
                })?
            }
            Predicate::StartsWith(left, initial) => {
                self.pairs(left, Some((initial.as_ref(), false)), on, &mut |value, initial| {
                    Ok(match (value, initial) {
                        (Value::String(value), Some(Value::String(initial))) => {
                            Truth::from(value.starts_with(initial.as_ref()))
                        }
                        _ => Truth::Unknown,
                    })
                })?
            }
            Predicate::LikeRegex { value, pattern, flags } => {
                let regex = compiled(pattern, *flags).map_err(Failure::Other)?;
                self.pairs(value, None, on, &mut |value, _| {
                    Ok(match value {
                        Value::String(text) => Truth::from(regex.is_match(text).map_err(Failure::Other)?),
                        _ => Truth::Unknown,
                    })
                })?
            }
        })
    }

    /// Whether a condition holds for a pair of values of two paths (executePredicate).
    fn pairs(
        &mut self,
        left: &Path,
        right: Option<(&Path, bool)>,
        on: &Value,
        holds: &mut dyn FnMut(&Value, Option<&Value>) -> Outcome<Truth>,
    ) -> Outcome<Truth> {
        let Some(left) = known(self.unwrapped(left, on))? else { return Ok(Truth::Unknown) };
        let right: Vec<Option<Value>> = match right {
            None => vec![None],
            Some((path, unwrap)) => {
                let mut values = Vec::new();
                let found = if unwrap {
                    self.unwrapped(path, on)
                } else {
                    self.path(path, on, &mut Sink::All(&mut values)).map(|()| values)
                };
                let Some(found) = known(found)? else { return Ok(Truth::Unknown) };
                found.into_iter().map(Some).collect()
            }
        };
        let (mut error, mut found) = (false, false);
        for left in &left {
            for right in &right {
                interrupt::steps(STEPS_PER_VALUE).map_err(Failure::Other)?;
                match holds(left, right.as_ref())? {
                    Truth::Unknown if !self.path.lax => return Ok(Truth::Unknown),
                    Truth::Unknown => error = true,
                    Truth::True if self.path.lax => return Ok(Truth::True),
                    Truth::True => found = true,
                    Truth::False => {}
                }
            }
        }
        Ok(match (found, error) {
            (true, _) => Truth::True,
            (false, true) => Truth::Unknown,
            (false, false) => Truth::False,
        })
    }
}

/// Failures of SQL/JSON make a predicate unknown.
fn known<T>(outcome: Outcome<T>) -> Outcome<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(Failure::Json(_)) => Ok(None),
        Err(other) => Err(other),
    }
}

fn compare(operator: Operator, left: &Value, right: &Value, clock: Option<&Clock>) -> Outcome<Truth> {
    let ordering = match (left, right) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Number(left), Value::Number(right)) => left.cmp(right),
        // In the order of UTF-16, as the standard has it.
        (Value::String(left), Value::String(right)) => left.encode_utf16().cmp(right.encode_utf16()),
        (Value::Datetime(left), Value::Datetime(right)) => {
            match datetime::compare(left, right, clock).map_err(Failure::Other)? {
                Some(ordering) => ordering,
                None => return Ok(Truth::Unknown),
            }
        }
        (Value::Array(_) | Value::Object(_), Value::Array(_) | Value::Object(_)) => {
            return Ok(Truth::Unknown);
        }
        (Value::Null, _) | (_, Value::Null) => return Ok(Truth::from(operator == Operator::NotEqual)),
        _ => return Ok(Truth::Unknown),
    };
    Ok(Truth::from(match operator {
        Operator::Equal => ordering.is_eq(),
        Operator::NotEqual => ordering.is_ne(),
        Operator::Less => ordering.is_lt(),
        Operator::Greater => ordering.is_gt(),
        Operator::LessOrEqual => ordering.is_le(),
        _ => ordering.is_ge(),
    }))
}
