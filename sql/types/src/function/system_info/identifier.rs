//! Names and numbers of the catalog as values: the bytes of a `name`, identifiers taken apart, types
//! spelled out, and the numbers that stand for versions of rows.

use md5::{Digest, Md5};

use crate::datum::Datum;
use crate::error::{Result, SqlError, SqlState};
use crate::function::args::*;
use crate::function::{Eval, FunctionContext};
use crate::io::{byte_value, natural_type, text_out, text_too_long};
use crate::type_table::{BuiltIn, TypeNames};
use crate::types::Oid;

/// How long a `name` is (NAMEDATALEN): what follows its last character is zeroes.
const NAME_BYTES: usize = 64;

/// The first number of a row's version that PostgreSQL gives no meaning of its own.
const FIRST_VERSION: u32 = 3;

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}')
}

/// The parts of a qualified identifier, folded where they are not quoted (parse_ident).
fn identifier_parts(whole: &str, strict: bool) -> Result<Vec<String>> {
    let wrong = |detail: &str| {
        let message = format!("string is not a valid identifier: \"{whole}\"");
        let error = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
        if detail.is_empty() { error } else { error.with_detail(detail) }
    };
    let mut parts = Vec::new();
    let mut rest = whole.trim_start_matches(is_blank);
    let mut after_dot = false;
    loop {
        let starts = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut part = String::new();
            let mut characters = quoted.char_indices().peekable();
            let end = loop {
                match characters.next() {
                    Some((_, '"')) if characters.next_if(|(_, next)| *next == '"').is_some() => {
                        part.push('"');
                    }
                    Some((at, '"')) => break at + 1,
                    Some((_, character)) => part.push(character),
                    None => return Err(wrong("String has unclosed double quotes.")),
                }
            };
            if part.is_empty() {
                return Err(wrong("Quoted identifier must not be empty."));
            }
            parts.push(part);
            rest = &quoted[end..];
        } else if rest.starts_with(starts) {
            let goes_on = |c: char| starts(c) || c.is_ascii_digit() || c == '$';
            let end = rest.find(|c: char| !goes_on(c)).unwrap_or(rest.len());
            parts.push(rest[..end].to_ascii_lowercase());
            rest = &rest[end..];
        } else if rest.starts_with('.') {
            return Err(wrong("No valid identifier before \".\"."));
        } else if after_dot {
            return Err(wrong("No valid identifier after \".\"."));
        } else {
            return Err(wrong(""));
        }
        rest = rest.trim_start_matches(is_blank);
        match rest.strip_prefix('.') {
            Some(more) => {
                after_dot = true;
                rest = more.trim_start_matches(is_blank);
            }
            None if rest.is_empty() || !strict => return Ok(parts),
            None => return Err(wrong("")),
        }
    }
}

/// A number that changes with the contents of a row: no two versions of a row that follow each other have
/// the same, but by chance, once in four thousand million.
fn row_version(values: &[Datum]) -> Result<Datum> {
    let context = FunctionContext::detached();
    let mut text = String::new();
    for value in values {
        text_out(value, natural_type(value), &context, &mut text).map_err(|_| text_too_long())?;
        // What no text of a value holds keeps them apart, and NULL from what is empty.
        text.push(if value.is_null() { '\u{1}' } else { '\u{0}' });
    }
    let digest = Md5::digest(text.as_bytes());
    let number = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    Ok(Datum::Oid(Oid(number.max(FIRST_VERSION))))
}

pub(in crate::function) const FUNCTIONS: &[(&str, Eval)] = &[
    ("archipel_name_byte", |_, v| {
        let name = text(v, 0)?.as_bytes();
        let place = usize::try_from(int4(v, 1)?).ok().filter(|place| *place < NAME_BYTES);
        Ok(place.map_or(Datum::Null, |place| byte_value(name.get(place).copied().unwrap_or(0))))
    }),
    ("archipel_row_version", |_, v| row_version(v)),
    ("parse_ident", |_, v| {
        let parts = identifier_parts(text(v, 0)?, boolean(v, 1)?)?;
        Ok(crate::function::array_of_values(Oid::TEXT, parts.iter().map(text_datum).collect()))
    }),
    ("oidvectortypes", |c, v| {
        let mut names = Vec::new();
        for value in &array(v, 0)?.values {
            let Datum::Oid(ty) = value else { continue };
            names.push(if crate::type_table::type_info(*ty).is_some() {
                text_datum(BuiltIn.type_name(*ty))
            } else {
                c.session
                    .call("format_type", &[Datum::Oid(*ty), Datum::Null])
                    .unwrap_or_else(|_| text_datum("???"))
            });
        }
        let names: Vec<&str> = names.iter().filter_map(Datum::json_text).collect();
        Ok(text_datum(names.join(", ")))
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_taken_apart() {
        let parts = |text: &str, strict| identifier_parts(text, strict);
        assert_eq!(parts(" Foo . \"Ba\"\"r\" ", true).unwrap(), ["foo", "Ba\"r"]);
        assert_eq!(parts("foo.bar[]", false).unwrap(), ["foo", "bar"]);
        for (text, detail) in [
            ("foo.", Some("No valid identifier after \".\".")),
            (".foo", Some("No valid identifier before \".\".")),
            ("\"foo", Some("String has unclosed double quotes.")),
            ("\"\"", Some("Quoted identifier must not be empty.")),
            ("foo bar", None),
            ("", None),
        ] {
            let error = parts(text, true).unwrap_err();
            assert_eq!(error.fields().detail.as_deref(), detail, "{text}");
        }
    }

    #[test]
    fn versions_of_rows_differ() {
        let version = |values: &[Datum]| row_version(values).unwrap();
        assert_ne!(version(&[Datum::Int4(1)]), version(&[Datum::Int4(2)]));
        assert_ne!(version(&[Datum::Null]), version(&[Datum::text("")]));
        assert_ne!(
            version(&[Datum::text("a"), Datum::text("")]),
            version(&[Datum::text(""), Datum::text("a")])
        );
    }
}
