//! String functions. Lengths and positions count characters, not bytes.

use std::iter::Peekable;
use std::str::Chars;

use super::letter::{in_case, initcap, reverse};
use super::trim_side::TrimAt;
use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::args::*;
use crate::function::length::{VALUE_MAX, check_buffer, check_value, push, written};
use crate::function::{Eval, FunctionContext};
use crate::interrupt;
use crate::io::{natural_type, text_in, text_of, text_out};
use crate::memory;
use crate::types::Type;

fn too_long() -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large")
}

/// How many bits so many bytes have.
pub(in crate::function) fn bit_length(bytes: usize) -> Result<Datum> {
    let bits = i32::try_from(bytes).ok().and_then(|bytes| bytes.checked_mul(8));
    bits.map(Datum::Int4).ok_or_else(|| out_of_range("integer"))
}

/// Byte offset of the `n`th character (clamped to the end).
fn offset(text: &str, n: usize) -> usize {
    // What comes after does not matter.
    let head = text.as_bytes().get(..n).unwrap_or(text.as_bytes());
    if head.is_ascii() { head.len() } else { text.char_indices().nth(n).map_or(text.len(), |(at, _)| at) }
}

/// How many characters a text has.
pub fn char_count(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// `substring(text from start for length)`: positions before 1 count against the length.
pub fn substring(text: &str, start: i32, length: Option<i32>) -> Result<&str> {
    let start = i64::from(start);
    let end = match length {
        None => i64::MAX,
        Some(length) if length < 0 => {
            // A window that ends before it begins is an error only when it could hold anything.
            return Err(SqlError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed"));
        }
        Some(length) => start + i64::from(length),
    };
    let first = start.max(1) - 1;
    if end <= 1 || end - 1 <= first {
        return Ok("");
    }
    let from = offset(text, first as usize);
    let count = (end - 1 - first).min(text.len() as i64) as usize;
    let rest = &text[from..];
    Ok(&rest[..offset(rest, count)])
}

/// One-based character position of `needle`, zero if absent.
pub fn position(haystack: &str, needle: &str) -> i32 {
    haystack.find(needle).map_or(0, |at| char_count(&haystack[..at]) as i32 + 1)
}

fn overlay(text: &str, with: &str, start: i32, length: i32) -> Result<String> {
    if start <= 0 {
        return Err(SqlError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    let after = start.checked_add(length).ok_or_else(|| out_of_range("integer"))?;
    let head = substring(text, 1, Some(start - 1))?;
    let tail = substring(text, after, None)?;
    check_value(head.len() + with.len() + tail.len())?;
    Ok(format!("{head}{with}{tail}"))
}

/// `left` and `right`: negative counts leave out that many characters at the far end.
/// The first `n` characters; all but the last `-n` of them for a negative one.
pub fn left(text: &str, n: i32) -> &str {
    let keep = if n >= 0 { n as usize } else { char_count(text).saturating_sub(n.unsigned_abs() as usize) };
    &text[..offset(text, keep)]
}

/// The last `n` characters; all but the first `-n` of them for a negative one.
pub fn right(text: &str, n: i32) -> &str {
    let total = char_count(text);
    let skip = if n >= 0 { total.saturating_sub(n as usize) } else { (n.unsigned_abs() as usize).min(total) };
    &text[offset(text, skip)..]
}

fn pad(text: &str, length: i32, fill: &str, at_left: bool) -> Result<String> {
    let length = length.max(0) as usize;
    let have = char_count(text);
    if have >= length {
        return Ok(text[..offset(text, length)].to_owned());
    }
    if length * 4 > VALUE_MAX {
        return Err(too_long());
    }
    if fill.is_empty() {
        return Ok(text.to_owned());
    }
    memory::check(length)?;
    let mut padding = String::new();
    for c in fill.chars().cycle().take(length - have) {
        interrupt::step()?;
        padding.push(c);
    }
    Ok(if at_left { padding + text } else { format!("{text}{padding}") })
}

fn trim<'a>(text: &'a str, set: &str, at: TrimAt) -> Result<&'a str> {
    let mut wanted = Ok(());
    let mut in_set = |c: char| {
        if wanted.is_ok() {
            wanted = interrupt::steps(1 + set.len());
        }
        wanted.is_ok() && set.contains(c)
    };
    let mut trimmed = text;
    while at != TrimAt::End
        && let Some(c) = trimmed.chars().next().filter(|c| in_set(*c))
    {
        trimmed = &trimmed[c.len_utf8()..];
    }
    while at != TrimAt::Start
        && let Some(c) = trimmed.chars().next_back().filter(|c| in_set(*c))
    {
        trimmed = &trimmed[..trimmed.len() - c.len_utf8()];
    }
    wanted.map(|()| trimmed)
}

/// `split_part(text, delimiter, n)`; negative fields count from the end.
fn split_part<'a>(text: &'a str, delimiter: &str, n: i32) -> Result<&'a str> {
    if n == 0 {
        return Err(invalid_parameter("field position must not be zero"));
    }
    if delimiter.is_empty() {
        return Ok(if n == 1 || n == -1 { text } else { "" });
    }
    let field = if n > 0 {
        nth_field(text.split(delimiter), n.unsigned_abs())
    } else {
        nth_field(text.rsplit(delimiter), n.unsigned_abs())
    };
    Ok(field?.unwrap_or(""))
}

fn nth_field<'a>(fields: impl Iterator<Item = &'a str>, n: u32) -> Result<Option<&'a str>> {
    for (field, number) in fields.zip(1_u32..) {
        interrupt::steps(8 + field.len())?;
        if number == n {
            return Ok(Some(field));
        }
    }
    Ok(None)
}

fn translate(text: &str, from: &str, to: &str) -> Result<String> {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    let mut out = String::new();
    for c in text.chars() {
        interrupt::steps(1 + from.len())?;
        match from.iter().position(|f| *f == c) {
            Some(at) => out.extend(to.get(at)),
            None => out.push(c),
        }
    }
    Ok(out)
}

/// A string literal: quotes doubled, the E form where there are backslashes.
pub fn quote_literal(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", doubled.replace('\\', "\\\\")) } else { format!("'{doubled}'") }
}

/// The same for a text of any length.
fn quoted(text: &str) -> Result<String> {
    if text.len() <= interrupt::PIECE {
        return Ok(quote_literal(text));
    }
    let has_escapes = text.contains('\\');
    let mut out = String::from(if has_escapes { "E'" } else { "'" });
    interrupt::in_text_pieces(text, |piece| {
        let doubled = piece.replace('\'', "''");
        out.push_str(&if has_escapes { doubled.replace('\\', "\\\\") } else { doubled });
    })?;
    out.push('\'');
    Ok(out)
}

/// A value's text as `format` and `concat` show it.
fn shown(ctx: &FunctionContext<'_>, value: &Datum) -> Result<String> {
    text_of(value, natural_type(value), ctx)
}

fn concat(ctx: &FunctionContext<'_>, values: &[Datum], separator: &str) -> Result<String> {
    let mut out = String::new();
    let mut first = true;
    for value in values.iter().filter(|v| !v.is_null()) {
        if !first {
            push(&mut out, separator)?;
        }
        first = false;
        written(&mut out, |out| text_out(value, natural_type(value), ctx, out))?;
    }
    Ok(out)
}

/// `replace(text, text, text)`.
fn replace(text: &str, from: &str, to: &str) -> Result<String> {
    if from.is_empty() {
        return Ok(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = 0;
    for (at, _) in text.match_indices(from) {
        push(&mut out, &text[rest..at])?;
        push(&mut out, to)?;
        rest = at + from.len();
    }
    push(&mut out, &text[rest..])?;
    Ok(out)
}

fn format_error(message: &str, hint: Option<&str>) -> SqlError {
    let error = invalid_parameter(message);
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

fn unterminated() -> SqlError {
    format_error("unterminated format() type specifier", Some("For a single \"%\" use \"%%\"."))
}

fn number_out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range")
}

/// The number that stands next, if one does; something has to follow it (text_format_parse_digits).
fn next_number(chars: &mut Peekable<Chars<'_>>) -> Result<Option<i32>> {
    let mut number: Option<i32> = None;
    while let Some(digit) = chars.next_if(char::is_ascii_digit) {
        let digit = digit as i32 - '0' as i32;
        let more = number.unwrap_or(0).checked_mul(10).and_then(|tens| tens.checked_add(digit));
        number = Some(more.ok_or_else(number_out_of_range)?);
    }
    if number.is_some() && chars.peek().is_none() {
        return Err(unterminated());
    }
    Ok(number)
}

/// The place of the argument of a number.
fn argument_place(number: i32) -> Result<usize> {
    usize::try_from(number - 1)
        .map_err(|_| invalid_parameter("format specifies argument 0, but arguments are numbered from 1"))
}

/// What stands between `%` and the letter of a conversion.
struct Specifier {
    /// Which argument it shows, if not the next one.
    place: Option<usize>,
    width: Width,
    left_aligned: bool,
}

enum Width {
    Is(i32),
    /// That of an argument: the one at a place, or the next one.
    Of(Option<usize>),
}

impl Specifier {
    /// As text_format_parse_format.
    fn read(chars: &mut Peekable<Chars<'_>>) -> Result<Specifier> {
        let mut found = Specifier { place: None, width: Width::Is(0), left_aligned: false };
        if let Some(number) = next_number(chars)? {
            if chars.next_if_eq(&'$').is_none() {
                found.width = Width::Is(number);
                return Ok(found);
            }
            found.place = Some(argument_place(number)?);
        }
        while chars.next_if_eq(&'-').is_some() {
            found.left_aligned = true;
        }
        if chars.next_if_eq(&'*').is_none() {
            found.width = Width::Is(next_number(chars)?.unwrap_or(0));
            return Ok(found);
        }
        let place = match next_number(chars)? {
            None => None,
            Some(_) if chars.next_if_eq(&'$').is_none() => {
                return Err(invalid_parameter("width argument position must be ended by \"$\""));
            }
            Some(number) => Some(argument_place(number)?),
        };
        found.width = Width::Of(place);
        Ok(found)
    }
}

/// A width that is an argument.
fn width_of(ctx: &FunctionContext<'_>, argument: &Datum) -> Result<i32> {
    match argument {
        Datum::Null => Ok(0),
        Datum::Int2(width) => Ok(i32::from(*width)),
        Datum::Int4(width) => Ok(*width),
        other => match text_in(&shown(ctx, other)?, Type::INT4, ctx)? {
            Datum::Int4(width) => Ok(width),
            _ => Err(number_out_of_range()),
        },
    }
}

/// A value as a conversion of `format` shows it: `s`, `I` or `L`.
fn converted(ctx: &FunctionContext<'_>, conversion: char, value: &Datum) -> Result<String> {
    match (conversion, value) {
        ('s', Datum::Null) => Ok(String::new()),
        ('L', Datum::Null) => Ok("NULL".to_owned()),
        ('I', Datum::Null) => Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "null values cannot be formatted as an SQL identifier",
        )),
        ('s', value) => shown(ctx, value),
        ('I', value) => Ok(ctx.style().quoting.name(&shown(ctx, value)?)),
        (_, value) => quoted(&shown(ctx, value)?),
    }
}

/// `format(template, …)` with %s, %I, %L, positions, widths and the minus flag.
fn format(ctx: &FunctionContext<'_>, template: &str, args: &[Datum]) -> Result<String> {
    let mut out = String::new();
    let mut next = 0usize;
    let mut chars = template.chars().peekable();
    let argument =
        |index: usize| args.get(index).ok_or_else(|| invalid_parameter("too few arguments for format()"));
    while let Some(c) = chars.next() {
        interrupt::step()?;
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.peek() == Some(&'%') {
            chars.next();
            out.push('%');
            continue;
        }
        let Specifier { place, width, left_aligned } = Specifier::read(&mut chars)?;
        let conversion = chars.next().ok_or_else(unterminated)?;
        if !matches!(conversion, 's' | 'I' | 'L') {
            return Err(format_error(
                &format!("unrecognized format() type specifier \"{conversion}\""),
                Some("For a single \"%\" use \"%%\"."),
            ));
        }
        let width = match width {
            Width::Is(width) => width,
            Width::Of(place) => {
                let index = place.unwrap_or(next);
                next = index + 1;
                width_of(ctx, argument(index)?)?
            }
        };
        let index = place.unwrap_or(next);
        next = index + 1;
        let value = argument(index)?;
        let piece = converted(ctx, conversion, value)?;
        if width == i32::MIN {
            return Err(number_out_of_range());
        }
        let missing = (width.unsigned_abs() as usize).saturating_sub(char_count(&piece));
        check_buffer(out.len(), piece.len() + missing)?;
        interrupt::steps(piece.len() + missing)?;
        if left_aligned || width < 0 {
            out.push_str(&piece);
            out.extend(std::iter::repeat_n(' ', missing));
        } else {
            out.extend(std::iter::repeat_n(' ', missing));
            out.push_str(&piece);
        }
    }
    Ok(out)
}

fn repeat(text: &str, count: i32) -> Result<String> {
    let count = count.max(0) as usize;
    if text.len().checked_mul(count).is_none_or(|n| n > VALUE_MAX) {
        return Err(too_long());
    }
    if text.len() * count <= interrupt::PIECE {
        return Ok(text.repeat(count));
    }
    memory::check(text.len() * count)?;
    let mut out = String::with_capacity(text.len() * count);
    let at_once = (interrupt::PIECE / text.len()).clamp(1, count);
    let piece = text.repeat(at_once);
    for _ in 0..count / at_once {
        interrupt::steps(piece.len())?;
        out.push_str(&piece);
    }
    out.push_str(&text.repeat(count % at_once));
    Ok(out)
}

/// The character with a code.
pub fn chr(code: i32) -> Result<char> {
    if code == 0 {
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "null character not permitted"));
    }
    if code < 0 {
        return Err(invalid_parameter("character number must be positive"));
    }
    u32::try_from(code).ok().and_then(char::from_u32).ok_or_else(|| {
        let why = if code > char::MAX as i32 { "too large" } else { "not valid" };
        SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("requested character {why} for encoding: {code}"),
        )
    })
}

/// A value cast to text, which is its output but for booleans, the blanks of `bpchar` and the length of a host.
fn as_text(context: &FunctionContext<'_>, value: &Datum) -> Result<String> {
    match value {
        Datum::Bool(value) => Ok(value.to_string()),
        Datum::Bpchar(value) => Ok(crate::typmod::without_blanks(value).to_owned()),
        Datum::Inet(_) => text_of(value, Type::CIDR, context),
        value => shown(context, value),
    }
}

/// `||` of a text and a value of another type.
fn joined(context: &FunctionContext<'_>, v: &[Datum]) -> Result<Datum> {
    let (a, b) = (as_text(context, any(v, 0)?)?, as_text(context, any(v, 1)?)?);
    check_value(a.len() + b.len())?;
    Ok(made_text(a + &b))
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("textcat", |_, v| {
        let (a, b) = (text(v, 0)?, text(v, 1)?);
        check_value(a.len() + b.len())?;
        let mut joined = compact_str::CompactString::with_capacity(a.len() + b.len());
        joined.push_str(a);
        joined.push_str(b);
        Ok(Datum::Text(joined))
    }),
    ("sql_2003", joined),
    ("sql_2004", joined),
    ("textlen", |_, v| Ok(Datum::Int4(char_count(text(v, 0)?) as i32))),
    ("bpcharlen", |_, v| Ok(Datum::Int4(char_count(text(v, 0)?.trim_end_matches(' ')) as i32))),
    ("textoctetlen", |_, v| Ok(Datum::Int4(text(v, 0)?.len() as i32))),
    ("bpcharoctetlen", |_, v| Ok(Datum::Int4(text(v, 0)?.len() as i32))),
    ("sql_1811", |_, v| bit_length(text(v, 0)?.len())),
    ("lower", |_, v| Ok(made_text(in_case(text(v, 0)?, str::to_ascii_lowercase)?))),
    ("upper", |_, v| Ok(made_text(in_case(text(v, 0)?, str::to_ascii_uppercase)?))),
    ("initcap", |_, v| Ok(made_text(initcap(text(v, 0)?)?))),
    ("text_substr", |_, v| Ok(text_datum(substring(text(v, 0)?, int4(v, 1)?, Some(int4(v, 2)?))?))),
    ("text_substr_no_len", |_, v| Ok(text_datum(substring(text(v, 0)?, int4(v, 1)?, None)?))),
    ("textpos", |_, v| Ok(Datum::Int4(position(text(v, 0)?, text(v, 1)?)))),
    ("textoverlay", |_, v| Ok(made_text(overlay(text(v, 0)?, text(v, 1)?, int4(v, 2)?, int4(v, 3)?)?))),
    ("textoverlay_no_len", |_, v| {
        let with = text(v, 1)?;
        Ok(made_text(overlay(text(v, 0)?, with, int4(v, 2)?, char_count(with) as i32)?))
    }),
    ("text_left", |_, v| Ok(text_datum(left(text(v, 0)?, int4(v, 1)?)))),
    ("text_right", |_, v| Ok(text_datum(right(text(v, 0)?, int4(v, 1)?)))),
    ("text_reverse", |_, v| Ok(made_text(reverse(text(v, 0)?)?))),
    ("lpad", |_, v| Ok(made_text(pad(text(v, 0)?, int4(v, 1)?, text(v, 2)?, true)?))),
    ("rpad", |_, v| Ok(made_text(pad(text(v, 0)?, int4(v, 1)?, text(v, 2)?, false)?))),
    ("sql_879", |_, v| Ok(made_text(pad(text(v, 0)?, int4(v, 1)?, " ", true)?))),
    ("sql_880", |_, v| Ok(made_text(pad(text(v, 0)?, int4(v, 1)?, " ", false)?))),
    ("btrim", |_, v| Ok(text_datum(trim(text(v, 0)?, text(v, 1)?, TrimAt::Both)?))),
    ("ltrim", |_, v| Ok(text_datum(trim(text(v, 0)?, text(v, 1)?, TrimAt::Start)?))),
    ("rtrim", |_, v| Ok(text_datum(trim(text(v, 0)?, text(v, 1)?, TrimAt::End)?))),
    ("btrim1", |_, v| Ok(text_datum(trim(text(v, 0)?, " ", TrimAt::Both)?))),
    ("ltrim1", |_, v| Ok(text_datum(trim(text(v, 0)?, " ", TrimAt::Start)?))),
    ("replace_text", |_, v| Ok(made_text(replace(text(v, 0)?, text(v, 1)?, text(v, 2)?)?))),
    ("translate", |_, v| Ok(made_text(translate(text(v, 0)?, text(v, 1)?, text(v, 2)?)?))),
    ("split_part", |_, v| Ok(text_datum(split_part(text(v, 0)?, text(v, 1)?, int4(v, 2)?)?))),
    ("repeat", |_, v| Ok(made_text(repeat(text(v, 0)?, int4(v, 1)?)?))),
    ("ascii", |_, v| Ok(Datum::Int4(text(v, 0)?.chars().next().map_or(0, |c| c as i32)))),
    ("chr", |_, v| Ok(text_datum(chr(int4(v, 0)?)?.to_string()))),
    ("text_starts_with", |_, v| Ok(Datum::Bool(text(v, 0)?.starts_with(text(v, 1)?)))),
    ("text_concat", |c, v| Ok(made_text(concat(c, v, "")?))),
    ("text_concat_ws", |c, v| match any(v, 0)? {
        Datum::Null => Ok(Datum::Null),
        _ => Ok(made_text(concat(c, &v[1..], text(v, 0)?)?)),
    }),
    ("text_format", |c, v| match any(v, 0)? {
        Datum::Null => Ok(Datum::Null),
        _ => Ok(made_text(format(c, text(v, 0)?, &v[1..])?)),
    }),
    ("text_format_nv", |c, v| match any(v, 0)? {
        Datum::Null => Ok(Datum::Null),
        _ => Ok(made_text(format(c, text(v, 0)?, &[])?)),
    }),
    ("quote_ident", |c, v| {
        let name = text(v, 0)?;
        // It is doubled, and then put between quotes.
        memory::check(name.len().saturating_mul(4))?;
        interrupt::steps(name.len())?;
        Ok(text_datum(c.style().quoting.name(name)))
    }),
    ("quote_literal", |_, v| Ok(made_text(quoted(text(v, 0)?)?))),
    ("sql_1285", |c, v| Ok(made_text(quoted(&as_text(c, any(v, 0)?)?)?))),
    ("quote_nullable", |_, v| match any(v, 0)? {
        Datum::Null => Ok(text_datum("NULL")),
        _ => Ok(made_text(quoted(text(v, 0)?)?)),
    }),
    ("sql_1290", |c, v| match any(v, 0)? {
        Datum::Null => Ok(text_datum("NULL")),
        value => Ok(made_text(quoted(&as_text(c, value)?)?)),
    }),
    ("nameconcatoid", |_, v| {
        Ok(text_datum(crate::io::truncate_name(&format!("{}_{}", text(v, 0)?, oid(v, 1)?))))
    }),
    ("gen_random_uuid", |_, _| {
        let mut bytes = crate::strong_random::random_bytes::<16>()?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Ok(Datum::Uuid(Box::new(bytes)))
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substrings_as_sql_defines_them() {
        assert_eq!(substring("hello", 2, Some(3)), Ok("ell"));
        assert_eq!(substring("hello", -1, Some(3)), Ok("h"));
        assert_eq!(substring("hello", 0, None), Ok("hello"));
        assert_eq!(substring("hällo", 2, Some(2)), Ok("äl"));
        assert_eq!(substring("hällo", 1, Some(1)), Ok("h"));
        assert_eq!(substring("hällö", 3, Some(9)), Ok("llö"));
        assert_eq!(substring("hä", 1, Some(3)), Ok("hä"));
        assert_eq!(left("ä", 1), "ä");
        assert_eq!(substring("hello", 9, Some(2)), Ok(""));
        assert_eq!(left("abc", -1), "ab");
        assert_eq!(right("abc", -1), "bc");
        assert_eq!(pad("hi", 5, "xy", true), Ok("xyxhi".to_owned()));
        assert_eq!(split_part("a,b,c", ",", -1), Ok("c"));
    }
}
