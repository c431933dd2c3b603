//! Functions and operators of jsonpath.

use std::cell::RefCell;
use std::rc::Rc;

use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::SetEval;
use crate::function::args::*;
use crate::function::{Eval, FunctionContext};
use crate::json::Node;
use crate::json::path::{Application, Clock, JsonPath, Value, Vars};

/// The context of a function that is called `…_tz`.
type Zoned<'c> = Option<&'c FunctionContext<'c>>;

/// So many paths a thread remembers.
const PARSED_MAX: usize = 16;

thread_local! {
    static PARSED: RefCell<Vec<(String, Rc<JsonPath>)>> = const { RefCell::new(Vec::new()) };
}

fn path(text: &str) -> Result<Rc<JsonPath>> {
    let known = PARSED
        .with_borrow(|list| list.iter().find(|(known, _)| known == text).map(|(_, path)| Rc::clone(path)));
    if let Some(path) = known {
        return Ok(path);
    }
    let path = Rc::new(JsonPath::parse(text)?);
    PARSED.with_borrow_mut(|list| {
        if list.len() == PARSED_MAX {
            list.remove(0);
        }
        list.push((text.to_owned(), Rc::clone(&path)));
    });
    Ok(path)
}

/// `(target, path, vars, silent)`; the operators have two arguments and are silent. `ctx` is given
/// where the session's time zone may be used.
fn apply<T>(ctx: Zoned<'_>, v: &[Datum], run: impl FnOnce(Application<'_>, bool) -> Result<T>) -> Result<T> {
    let target = Value::of(&Node::parse(text(v, 0)?)?)?;
    let path = path(text(v, 1)?)?;
    let (vars, silent) = match v.len() {
        2 => (Vars::NONE, true),
        _ => (Vars::of(&Value::of(&Node::parse(text(v, 2)?)?)?)?, boolean(v, 3)?),
    };
    let clock = ctx.map(|ctx| Clock { zone: ctx.style().time_zone.clone(), now: ctx.now });
    run(Application::new(&path, &vars, clock, target), silent)
}

fn values(ctx: Zoned<'_>, v: &[Datum]) -> Result<Vec<Value>> {
    Ok(apply(ctx, v, |application, silent| application.values(silent))?.unwrap_or_default())
}

fn json(value: &Value) -> Datum {
    let mut out = String::new();
    value.write(&mut out);
    Datum::Jsonb(out.into())
}

fn exists(ctx: Zoned<'_>, v: &[Datum]) -> Result<Datum> {
    Ok(apply(ctx, v, |application, silent| application.exists(silent))?.map_or(Datum::Null, Datum::Bool))
}

fn matches(ctx: Zoned<'_>, v: &[Datum]) -> Result<Datum> {
    let silent = v.len() == 2 || boolean(v, 3)?;
    match &values(ctx, v)?[..] {
        [Value::Bool(value)] => Ok(Datum::Bool(*value)),
        [Value::Null] => Ok(Datum::Null),
        _ if silent => Ok(Datum::Null),
        _ => Err(SqlError::new(SqlState(*b"22038"), "single boolean result is expected")),
    }
}

fn first(ctx: Zoned<'_>, v: &[Datum]) -> Result<Datum> {
    Ok(values(ctx, v)?.first().map_or(Datum::Null, json))
}

fn all(ctx: Zoned<'_>, v: &[Datum]) -> Result<Datum> {
    Ok(json(&Value::Array(values(ctx, v)?.into())))
}

fn query(ctx: Zoned<'_>, v: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    Ok(values(ctx, v)?.iter().map(|value| vec![json(value)]).collect())
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("jsonb_path_exists", |_, v| exists(None, v)),
    ("jsonb_path_exists_tz", |ctx, v| exists(Some(ctx), v)),
    ("jsonb_path_exists_opr", |_, v| exists(None, v)),
    ("jsonb_path_match", |_, v| matches(None, v)),
    ("jsonb_path_match_tz", |ctx, v| matches(Some(ctx), v)),
    ("jsonb_path_match_opr", |_, v| matches(None, v)),
    ("jsonb_path_query_array", |_, v| all(None, v)),
    ("jsonb_path_query_array_tz", |ctx, v| all(Some(ctx), v)),
    ("jsonb_path_query_first", |_, v| first(None, v)),
    ("jsonb_path_query_first_tz", |ctx, v| first(Some(ctx), v)),
];

pub(in crate::function) const SETS: &[(&str, SetEval)] =
    &[("jsonb_path_query", |_, v| query(None, v)), ("jsonb_path_query_tz", |ctx, v| query(Some(ctx), v))];
