//! Where and how often a regular expression matches: `regexp_count`, `regexp_instr`, `regexp_substr`.

use super::pattern::{compile, single_flags};
use super::regex_matches::{every_match, nth_match};
use crate::datum::Datum;
use crate::error::Result;
use crate::function::Eval;
use crate::function::args::*;

fn regexp_substr(v: &[Datum]) -> Result<Datum> {
    let source = text(v, 0)?;
    let start = if v.len() > 2 { int4(v, 2)? } else { 1 };
    let n = if v.len() > 3 { int4(v, 3)? } else { 1 };
    let flags = single_flags(v, 4, "regexp_substr")?;
    let group = if v.len() > 5 { int4(v, 5)? } else { 0 };
    let wrong = [("start", start, start <= 0), ("n", n, n <= 0), ("subexpr", group, group < 0)];
    if let Some((name, value, _)) = wrong.iter().find(|(.., wrong)| *wrong) {
        return Err(invalid_parameter(format!("invalid value for parameter \"{name}\": {value}")));
    }
    let regex = compile(text(v, 1)?, flags)?;
    let Some(from) = character(source, start) else { return Ok(Datum::Null) };
    let found = nth_match(&regex, source, from, n)?;
    Ok(found.and_then(|c| c.get(group as usize).map(|m| Datum::text(m.as_str()))).unwrap_or(Datum::Null))
}

fn regexp_instr(v: &[Datum]) -> Result<Datum> {
    let source = text(v, 0)?;
    let optional = |place: usize, default: i32| if v.len() > place { int4(v, place) } else { Ok(default) };
    let (start, n, end, group) = (optional(2, 1)?, optional(3, 1)?, optional(4, 0)?, optional(6, 0)?);
    let wrong = |name: &str, value: i32| {
        Err(invalid_parameter(format!("invalid value for parameter \"{name}\": {value}")))
    };
    match () {
        () if start <= 0 => return wrong("start", start),
        () if n <= 0 => return wrong("n", n),
        () if end != 0 && end != 1 => return wrong("endoption", end),
        () if group < 0 => return wrong("subexpr", group),
        () => {}
    }
    let regex = compile(text(v, 1)?, single_flags(v, 5, "regexp_instr")?)?;
    let Some(from) = character(source, start) else { return Ok(Datum::Int4(0)) };
    let found = nth_match(&regex, source, from, n)?;
    let place = found.and_then(|captures| captures.get(group as usize)).map_or(0, |found| {
        let at = if end == 1 { found.end() } else { found.start() };
        source[..at].chars().count() as i32 + 1
    });
    Ok(Datum::Int4(place))
}

/// Where the `n`th character begins; the place after the last one counts.
fn character(source: &str, n: i32) -> Option<usize> {
    source.char_indices().map(|(at, _)| at).chain([source.len()]).nth(n as usize - 1)
}

fn regexp_count(v: &[Datum]) -> Result<Datum> {
    let source = text(v, 0)?;
    let start = if v.len() > 2 { int4(v, 2)? } else { 1 };
    if start <= 0 {
        return Err(invalid_parameter(format!("invalid value for parameter \"start\": {start}")));
    }
    let flags = single_flags(v, 3, "regexp_count")?;
    let regex = compile(text(v, 1)?, flags)?;
    let Some(from) = character(source, start) else { return Ok(Datum::Int4(0)) };
    let count = every_match(&regex, source, from).try_fold(0, |count, found| found.map(|_| count + 1))?;
    Ok(Datum::Int4(count))
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("regexp_count", |_, v| regexp_count(v)),
    ("regexp_count_no_start", |_, v| regexp_count(v)),
    ("regexp_count_no_flags", |_, v| regexp_count(v)),
    ("regexp_instr", |_, v| regexp_instr(v)),
    ("regexp_instr_no_start", |_, v| regexp_instr(v)),
    ("regexp_instr_no_n", |_, v| regexp_instr(v)),
    ("regexp_instr_no_endoption", |_, v| regexp_instr(v)),
    ("regexp_instr_no_flags", |_, v| regexp_instr(v)),
    ("regexp_instr_no_subexpr", |_, v| regexp_instr(v)),
    ("regexp_substr", |_, v| regexp_substr(v)),
    ("regexp_substr_no_start", |_, v| regexp_substr(v)),
    ("regexp_substr_no_n", |_, v| regexp_substr(v)),
    ("regexp_substr_no_flags", |_, v| regexp_substr(v)),
    ("regexp_substr_no_subexpr", |_, v| regexp_substr(v)),
];
