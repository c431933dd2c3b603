//! LIKE, SIMILAR TO and POSIX regular expressions.
//!
//! PostgreSQL's advanced regular expressions are translated ([`super::regex_translation`]) to the `regex` crate, which
//! matches in linear time and has no back-references or look-around: those are refused by
//! name (0A000). The crate says whether and where something matches; how far the match goes, and its groups,
//! are PostgreSQL's ([`super::regex_search`]).

use std::cell::RefCell;
use std::sync::Arc;

use regex::RegexBuilder;
use regex_automata::util::syntax;

use super::regex_escape::Flags;
use super::regex_matches::{every_match, steps_of_search};
use super::regex_search::{Found, Pattern};
use super::regex_translation::{parse_flags, translate};
use crate::datum::{Array, Datum, Dimension};
use crate::error::{Result, SqlError, SqlState};
use crate::function::args::*;
use crate::function::length::{check_buffer, push};
use crate::function::number::series::STEPS_PER_ROW;
use crate::function::{Eval, FunctionContext};
use crate::interrupt::{self, gather};
use crate::memory;
use crate::types::Oid;

/// Whether `text` matches the LIKE pattern.
pub fn like(text: &str, pattern: &str, fold_case: bool) -> Result<bool> {
    let same = |a: u8, b: u8| a == b || (fold_case && a.eq_ignore_ascii_case(&b));
    // Behind the first byte of a character come those that continue it.
    let after = |at: usize| {
        let rest = &text.as_bytes()[at + 1..];
        at + 1 + rest.iter().take_while(|byte| **byte & 0xc0 == 0x80).count()
    };
    matches_like(text.as_bytes(), pattern.as_bytes(), same, after)
}

/// How many bytes LIKE compares between two looks whether it shall end.
const ROUNDS_PER_LOOK: usize = 1 << 16;

/// Whether bytes match a LIKE pattern; `after` tells where the next character begins. Iterative, with
/// one point to return to: a later `%` makes every earlier one's alternatives unnecessary. A pattern that
/// ends with the escape character is refused where PostgreSQL's MatchText comes to it: not behind the
/// end of the text, but at once behind a `%`.
pub(in crate::function) fn matches_like(
    value: &[u8],
    pattern: &[u8],
    same: impl Fn(u8, u8) -> bool,
    after: impl Fn(usize) -> usize,
) -> Result<bool> {
    let unfinished = || {
        SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "LIKE pattern must not end with escape character")
    };
    let (mut at, mut place) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    let mut rounds = 0_usize;
    loop {
        rounds += 1;
        if rounds.is_multiple_of(ROUNDS_PER_LOOK) {
            interrupt::check()?;
        }
        if at == value.len() {
            return Ok(pattern[place..].iter().all(|byte| *byte == b'%'));
        }
        match pattern.get(place) {
            Some(b'%') => {
                loop {
                    match pattern.get(place) {
                        Some(b'%') => {}
                        Some(b'_') if at == value.len() => return Ok(false),
                        Some(b'_') => at = after(at),
                        Some(b'\\') if place + 1 == pattern.len() => return Err(unfinished()),
                        Some(_) => break,
                        None => return Ok(true),
                    }
                    place += 1;
                }
                back = Some((place, at));
                continue;
            }
            Some(b'_') => {
                (at, place) = (after(at), place + 1);
                continue;
            }
            Some(b'\\') => {
                let literal = *pattern.get(place + 1).ok_or_else(unfinished)?;
                if same(value[at], literal) {
                    (at, place) = (at + 1, place + 2);
                    continue;
                }
            }
            Some(byte) if same(value[at], *byte) => {
                (at, place) = (at + 1, place + 1);
                continue;
            }
            _ => {}
        }
        // Mismatch: let the last % take one more character.
        let Some((behind, start)) = &mut back else { return Ok(false) };
        *start = after(*start);
        (place, at) = (*behind, *start);
    }
}

/// LIKE … ESCAPE: rewrites the pattern to the backslash as escape character.
fn like_escape(pattern: &str, escape: &str) -> Result<String> {
    let mut escapes = escape.chars();
    let (escape, more) = (escapes.next(), escapes.next());
    if more.is_some() {
        return Err(SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    if escape == Some('\\') {
        return Ok(pattern.to_owned());
    }
    let mut out = String::with_capacity(pattern.len() + 4);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            out.push('\\');
            out.extend(chars.next());
        } else if c == '\\' {
            out.push_str("\\\\");
        } else {
            out.push(c);
        }
    }
    Ok(out)
}

/// SIMILAR TO's pattern as a POSIX regular expression, anchored at both ends. Two escaped double
/// quotes mark the part in the middle, which becomes the first group; what is before it takes as
/// little as it can.
fn similar_to_regex(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut out = String::with_capacity(pattern.len() + 32);
    out.push_str("^(?:");
    let (mut in_class, mut quotes) = (false, 0);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if Some(c) == escape {
            match chars.next() {
                Some('"') if !in_class => {
                    out.push_str(match quotes {
                        0 => "){1,1}?(",
                        1 => "){1,1}(?:",
                        _ => {
                            return Err(SqlError::new(
                                SqlState(*b"2200C"),
                                "SQL regular expression may not contain more than two escape-double-quote separators",
                            ));
                        }
                    });
                    quotes += 1;
                }
                Some(next) => out.extend(['\\', next]),
                None => {}
            }
            continue;
        }
        if in_class {
            in_class = c != ']';
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
            continue;
        }
        match c {
            '[' => {
                in_class = true;
                out.push('[');
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '.' | '^' | '$' | '\\' => out.extend(['\\', c]),
            other => out.push(other),
        }
    }
    out.push_str(")$");
    Ok(out)
}

fn similar_escape(v: &[Datum]) -> Result<Datum> {
    let pattern = match any(v, 0)? {
        Datum::Null => return Ok(Datum::Null),
        _ => text(v, 0)?,
    };
    let escape = match v.get(1) {
        None | Some(Datum::Null) => Some('\\'),
        Some(_) => {
            let escape = text(v, 1)?;
            if escape.chars().count() > 1 {
                return Err(SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
                    .with_hint("Escape string must be empty or one character."));
            }
            escape.chars().next()
        }
    };
    similar_to_regex(pattern, escape).map(text_datum)
}

thread_local! {
    /// The last patterns this thread compiled: a query uses the same one for every row.
    static COMPILED: RefCell<Vec<(String, Flags, Arc<Pattern>)>> = const { RefCell::new(Vec::new()) };
}
const COMPILED_MAX: usize = 32;

/// Groups may nest this deep: compiling them recurses.
const GROUPS_DEPTH_MAX: u32 = 1_000;

/// What is wrong with a pattern, in PostgreSQL's words where it has some.
fn regex_error(reason: &str) -> &str {
    let known = [
        ("unclosed group", "parentheses () not balanced"),
        ("unopened group", "parentheses () not balanced"),
        ("unclosed character class", "brackets [] not balanced"),
        ("invalid repetition count range", "invalid repetition count(s)"),
        ("repetition operator missing expression", "quantifier operand invalid"),
        ("invalid character class range", "invalid character range"),
        ("unclosed counted repetition", "braces {} not balanced"),
        ("incomplete escape sequence", "invalid escape \\ sequence"),
        ("unrecognized escape sequence", "invalid escape \\ sequence"),
        ("exceed", "regular expression is too complex"),
        ("Compiled regex exceeds", "regular expression is too complex"),
    ];
    known.iter().find(|(ours, _)| reason.starts_with(ours)).map_or(reason, |(_, theirs)| *theirs)
}

/// A regular expression with flags as the functions' `flags` arguments have them.
pub fn regular_expression(pattern: &str, flags: &str) -> Result<Arc<Pattern>> {
    compile(pattern, parse_flags(flags)?)
}

/// What making an expression counts as beside its length ([`interrupt::steps`]).
const STEPS_PER_EXPRESSION: usize = 1 << 12;

pub(super) fn compile(pattern: &str, flags: Flags) -> Result<Arc<Pattern>> {
    let flags = Flags { global: false, ..flags };
    let cached = COMPILED.with_borrow_mut(|list| {
        let at = list.iter().position(|(p, f, _)| *f == flags && p == pattern)?;
        let entry = list.remove(at);
        let regex = Arc::clone(&entry.2);
        list.push(entry);
        Some(regex)
    });
    if let Some(regex) = cached {
        return Ok(regex);
    }
    interrupt::steps(STEPS_PER_EXPRESSION + 16 * pattern.len())?;
    let asked = flags;
    let (translated, flags) = translate(pattern, flags)?;
    let regex = RegexBuilder::new(&translated)
        .dot_matches_new_line(!flags.newline_stops)
        .multi_line(flags.newline_anchors)
        .nest_limit(GROUPS_DEPTH_MAX)
        .build()
        .map_err(|error| {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or("").trim().trim_start_matches("error: ").to_owned();
            if reason.contains("look-around") {
                SqlError::unsupported("look-around in a regular expression")
            } else {
                SqlError::new(
                    SqlState::INVALID_REGULAR_EXPRESSION,
                    format!("invalid regular expression: {}", regex_error(&reason)),
                )
            }
        })?;
    let syntax = syntax::Config::new()
        .dot_matches_new_line(!flags.newline_stops)
        .multi_line(flags.newline_anchors)
        .nest_limit(GROUPS_DEPTH_MAX);
    let regex = Arc::new(Pattern::new(regex, translated, syntax));
    COMPILED.with_borrow_mut(|list| {
        if list.len() == COMPILED_MAX {
            list.remove(0);
        }
        list.push((pattern.to_owned(), asked, Arc::clone(&regex)));
    });
    Ok(regex)
}

fn matches(v: &[Datum], ignore_case: bool) -> Result<bool> {
    let flags = Flags { ignore_case, ..Flags::default() };
    compile(text(v, 1)?, flags)?.is_match(text(v, 0)?)
}

fn text_array(values: Vec<Datum>) -> Datum {
    let dimensions =
        if values.is_empty() { Vec::new() } else { vec![Dimension { length: values.len(), lower_bound: 1 }] };
    Datum::Array(Arc::new(Array { element: Oid::TEXT, dimensions, values }))
}

/// The parenthesised groups of a match, or the whole match if there are none.
fn groups(found: &Found<'_>) -> Datum {
    let piece = |number: usize| found.get(number).map_or(Datum::Null, |group| Datum::text(group.as_str()));
    let values = match found.count() {
        1 => vec![piece(0)],
        count => (1..count).map(piece).collect(),
    };
    text_array(values)
}

/// Flags of a function that has no use for "global".
pub(super) fn single_flags(v: &[Datum], index: usize, function: &str) -> Result<Flags> {
    let flags = optional_flags(v, index)?;
    if flags.global {
        return Err(invalid_parameter(format!("{function}() does not support the \"global\" option")));
    }
    Ok(flags)
}

fn optional_flags(v: &[Datum], index: usize) -> Result<Flags> {
    if v.len() > index { parse_flags(text(v, index)?) } else { Ok(Flags::default()) }
}

fn regexp_match(v: &[Datum]) -> Result<Datum> {
    let flags = optional_flags(v, 2)?;
    if flags.global {
        return Err(invalid_parameter("regexp_match() does not support the \"global\" option")
            .with_hint("Use the regexp_matches function instead."));
    }
    let found = compile(text(v, 1)?, flags)?.captures_at(text(v, 0)?, 0)?;
    Ok(found.map_or(Datum::Null, |found| groups(&found)))
}

fn regexp_matches(_: &FunctionContext<'_>, v: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let flags = optional_flags(v, 2)?;
    let regex = compile(text(v, 1)?, flags)?;
    let limit = if flags.global { usize::MAX } else { 1 };
    let mut rows = Vec::new();
    for captures in every_match(&regex, text(v, 0)?, 0).take(limit) {
        memory::push(&mut rows, vec![groups(&captures?)])?;
    }
    Ok(rows)
}

/// PostgreSQL's replacement escapes: `\1` … `\9`, `\&`, `\\`.
fn expand(replacement: &str, captures: &Found<'_>, out: &mut String) -> Result<()> {
    let mut chars = replacement.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some(digit @ '1'..='9') => {
                let group = digit as usize - '0' as usize;
                push(out, captures.get(group).map_or("", |m| m.as_str()))?;
            }
            Some('&') => push(out, captures.get(0).map_or("", |m| m.as_str()))?,
            Some('\\') => out.push('\\'),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
            None => out.push('\\'),
        }
    }
    Ok(())
}

/// Replaces the `n`th match from character `start` on (zero: all of them).
fn replace(source: &str, regex: &Pattern, replacement: &str, start: i32, n: i32) -> Result<String> {
    if start <= 0 {
        return Err(invalid_parameter(format!("invalid value for parameter \"start\": {start}")));
    }
    if n < 0 {
        return Err(invalid_parameter(format!("invalid value for parameter \"n\": {n}")));
    }
    let from = source.char_indices().nth(start as usize - 1).map_or(source.len(), |(at, _)| at);
    let mut out = source[..from].to_owned();
    let mut last = from;
    for (i, captures) in every_match(regex, source, from).enumerate() {
        let captures = captures?;
        let Some(whole) = captures.get(0) else { continue };
        if n == 0 || i + 1 == n as usize {
            push(&mut out, &source[last..whole.start()])?;
            let before = out.len();
            expand(replacement, &captures, &mut out)?;
            check_buffer(before, out.len() - before)?;
            last = whole.end();
        }
        if n != 0 && i + 1 == n as usize {
            break;
        }
    }
    push(&mut out, &source[last..])?;
    Ok(out)
}

fn split(v: &[Datum], function: &str) -> Result<Vec<Datum>> {
    let flags = single_flags(v, 2, function)?;
    let source = text(v, 0)?;
    let regex = compile(text(v, 1)?, flags)?;
    let mut pieces = Vec::new();
    let mut last = 0;
    let mut next = Some(0);
    while let Some(from) = next {
        interrupt::steps(steps_of_search(source.len() - from))?;
        let Some(found) = regex.find_at(source, from)? else { break };
        next = found.next_from();
        // An empty match at either end, or right after the last one, splits nothing.
        if found.is_empty()
            && (found.start() == 0 || found.end() == source.len() || found.start() == last && last != 0)
        {
            continue;
        }
        memory::push(&mut pieces, Datum::text(&source[last..found.start()]))?;
        last = found.end();
    }
    pieces.push(Datum::text(&source[last..]));
    Ok(pieces)
}

/// `substring(text from pattern)`: the first group, or the match.
fn regex_substring(v: &[Datum]) -> Result<Datum> {
    let regex = compile(text(v, 1)?, Flags::default())?;
    let group = usize::from(regex.groups_len() > 1);
    let found = regex.captures_at(text(v, 0)?, 0)?;
    Ok(found.and_then(|found| found.get(group)).map_or(Datum::Null, |group| Datum::text(group.as_str())))
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("textlike", |_, v| Ok(Datum::Bool(like(text(v, 0)?, text(v, 1)?, false)?))),
    ("textnlike", |_, v| Ok(Datum::Bool(!like(text(v, 0)?, text(v, 1)?, false)?))),
    ("texticlike", |_, v| Ok(Datum::Bool(like(text(v, 0)?, text(v, 1)?, true)?))),
    ("texticnlike", |_, v| Ok(Datum::Bool(!like(text(v, 0)?, text(v, 1)?, true)?))),
    ("namelike", |_, v| Ok(Datum::Bool(like(text(v, 0)?, text(v, 1)?, false)?))),
    ("namenlike", |_, v| Ok(Datum::Bool(!like(text(v, 0)?, text(v, 1)?, false)?))),
    ("nameiclike", |_, v| Ok(Datum::Bool(like(text(v, 0)?, text(v, 1)?, true)?))),
    ("nameicnlike", |_, v| Ok(Datum::Bool(!like(text(v, 0)?, text(v, 1)?, true)?))),
    ("like_escape", |_, v| Ok(made_text(like_escape(text(v, 0)?, text(v, 1)?)?))),
    ("similar_escape", |_, v| similar_escape(v)),
    ("similar_to_escape_1", |_, v| similar_escape(v)),
    ("similar_to_escape_2", |_, v| similar_escape(v)),
    ("textregexeq", |_, v| Ok(Datum::Bool(matches(v, false)?))),
    ("textregexne", |_, v| Ok(Datum::Bool(!matches(v, false)?))),
    ("texticregexeq", |_, v| Ok(Datum::Bool(matches(v, true)?))),
    ("texticregexne", |_, v| Ok(Datum::Bool(!matches(v, true)?))),
    ("nameregexeq", |_, v| Ok(Datum::Bool(matches(v, false)?))),
    ("nameregexne", |_, v| Ok(Datum::Bool(!matches(v, false)?))),
    ("nameicregexeq", |_, v| Ok(Datum::Bool(matches(v, true)?))),
    ("nameicregexne", |_, v| Ok(Datum::Bool(!matches(v, true)?))),
    ("regexp_match", |_, v| regexp_match(v)),
    ("regexp_match_no_flags", |_, v| regexp_match(v)),
    ("regexp_like", |_, v| {
        let pattern = compile(text(v, 1)?, single_flags(v, 2, "regexp_like")?)?;
        Ok(Datum::Bool(pattern.is_match(text(v, 0)?)?))
    }),
    ("regexp_like_no_flags", |_, v| Ok(Datum::Bool(matches(v, false)?))),
    ("textregexsubstr", |_, v| regex_substring(v)),
    ("sql_2074", |_, v| {
        let pattern = similar_escape(&v[1..])?;
        regex_substring(&[v[0].clone(), pattern])
    }),
    ("textregexreplace_noopt", |_, v| {
        Ok(made_text(replace(text(v, 0)?, &*compile(text(v, 1)?, Flags::default())?, text(v, 2)?, 1, 1)?))
    }),
    ("textregexreplace", |_, v| {
        let letters = text(v, 3)?;
        // A literal is text before it is a start.
        let flags = parse_flags(letters).map_err(|error| match letters.as_bytes().first() {
            Some(b'0'..=b'9') => error.with_hint(
                "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.",
            ),
            _ => error,
        })?;
        let n = i32::from(!flags.global);
        Ok(made_text(replace(text(v, 0)?, &*compile(text(v, 1)?, flags)?, text(v, 2)?, 1, n)?))
    }),
    ("textregexreplace_extended", |_, v| {
        Ok(made_text(replace(
            text(v, 0)?,
            &*compile(text(v, 1)?, optional_flags(v, 5)?)?,
            text(v, 2)?,
            int4(v, 3)?,
            int4(v, 4)?,
        )?))
    }),
    ("textregexreplace_extended_no_flags", |_, v| {
        Ok(made_text(replace(
            text(v, 0)?,
            &*compile(text(v, 1)?, Flags::default())?,
            text(v, 2)?,
            int4(v, 3)?,
            int4(v, 4)?,
        )?))
    }),
    ("textregexreplace_extended_no_n", |_, v| {
        Ok(made_text(replace(
            text(v, 0)?,
            &*compile(text(v, 1)?, Flags::default())?,
            text(v, 2)?,
            int4(v, 3)?,
            1,
        )?))
    }),
    ("regexp_split_to_array", |_, v| Ok(text_array(split(v, "regexp_split_to_array")?))),
    ("regexp_split_to_array_no_flags", |_, v| Ok(text_array(split(v, "regexp_split_to_array")?))),
];

pub(in crate::function) const SETS: &[(&str, crate::function::SetEval)] = &[
    ("regexp_matches", regexp_matches),
    ("regexp_matches_no_flags", regexp_matches),
    ("regexp_split_to_table", |_, v| {
        gather(split(v, "regexp_split_to_table")?.into_iter().map(|piece| vec![piece]), STEPS_PER_ROW)
    }),
    ("regexp_split_to_table_no_flags", |_, v| {
        gather(split(v, "regexp_split_to_table")?.into_iter().map(|piece| vec![piece]), STEPS_PER_ROW)
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_patterns() {
        let check = |text: &str, pattern: &str, expected: bool| {
            assert_eq!(like(text, pattern, false), Ok(expected), "{text} {pattern}")
        };
        check("abc", "abc", true);
        check("abc", "a%", true);
        check("abc", "%b%", true);
        check("abc", "_b_", true);
        check("äöü", "_ö_", true);
        check("abc", "c", false);
        check("a%c", "a\\%c", true);
        check("abc", "a\\%c", false);
        check("", "%", true);
        check("", "_", false);
        check("aXbXc", "a%b%c", true);
        check("mississippi", "%iss%ip%", true);
        assert_eq!(like("ABC", "a%", true), Ok(true));
    }

    #[test]
    fn replacements_use_backslashes() {
        let regex = compile("(b.)(.)", Flags::default()).unwrap();
        assert_eq!(replace("foobarbaz", &regex, "X\\2\\1Y", 1, 1).as_deref(), Ok("fooXrbaYbaz"));
        assert_eq!(replace("foobarbaz", &regex, "[\\&]", 1, 0).as_deref(), Ok("foo[bar][baz]"));
    }
}
