//! Arrays as text: `{1,2,NULL}`, `{{a,"b c"},{d,e}}`, `[2:3]={1,2}`.

use std::fmt::Write;
use std::sync::Arc;

use super::{text_in, text_out};
use crate::datum::{Array, Datum, Dimension};
use crate::error::{Result, SqlError, SqlState};
use crate::function::FunctionContext;
use crate::interrupt;
use crate::type_table::element_of;
use crate::types::{Oid, Type};

/// What reading or writing an element counts as, beside its bytes ([`interrupt::steps`]).
const STEPS_PER_VALUE: usize = 8;

/// Most dimensions an array may have (MAXDIM).
const DIMENSIONS_MAX: usize = 6;

fn malformed(text: &str, detail: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, format!("malformed array literal: \"{text}\""))
        .with_detail(detail)
}

struct Reader<'a, 'c> {
    text: &'a str,
    at: usize,
    element: Type,
    ctx: &'a FunctionContext<'c>,
    lengths: Vec<Option<usize>>,
    values: Vec<Datum>,
}

impl Reader<'_, '_> {
    fn skip_blanks(&mut self) {
        while self.text.as_bytes().get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Reads `{…}` at nesting `depth`; every sub-array of one depth has one length.
    fn braces(&mut self, depth: usize) -> Result<()> {
        if depth >= DIMENSIONS_MAX {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "number of array dimensions ({}) exceeds the maximum allowed ({DIMENSIONS_MAX})",
                    depth + 1
                ),
            ));
        }
        if self.lengths.len() <= depth {
            self.lengths.push(None);
        }
        self.at += 1;
        let mut count = 0;
        self.skip_blanks();
        if self.peek() == Some(b'}') {
            // Only a whole array may be empty.
            if depth > 0 {
                return Err(malformed(self.text, "Unexpected \"}\" character."));
            }
            self.at += 1;
            return self.close(depth, 0);
        }
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b'{') => {
                    if self.lengths.len() == depth + 1
                        && (count > 0 || !self.values.is_empty())
                        && !self.has_deeper(depth)
                    {
                        return Err(malformed(self.text, "Unexpected \"{\" character."));
                    }
                    self.braces(depth + 1)?;
                }
                // Behind a sub-array stands another one.
                Some(other) if count > 0 && self.has_deeper(depth) => {
                    return Err(match other {
                        b',' | b'}' | b'\\' => self.unexpected(other),
                        _ => malformed(self.text, "Unexpected array element."),
                    });
                }
                Some(_) => {
                    if self.has_deeper(depth) {
                        return Err(malformed(
                            self.text,
                            "Multidimensional arrays must have sub-arrays with matching dimensions.",
                        ));
                    }
                    self.item()?;
                }
                None => return Err(malformed(self.text, "Unexpected end of input.")),
            }
            count += 1;
            self.skip_blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return self.close(depth, count);
                }
                Some(other) => return Err(self.unexpected(other)),
                None => return Err(malformed(self.text, "Unexpected end of input.")),
            }
        }
    }

    fn unexpected(&self, character: u8) -> SqlError {
        malformed(self.text, &format!("Unexpected \"{}\" character.", character as char))
    }

    fn has_deeper(&self, depth: usize) -> bool {
        self.lengths.len() > depth + 1
    }

    fn close(&mut self, depth: usize, count: usize) -> Result<()> {
        match self.lengths[depth] {
            Some(length) if length != count => Err(malformed(
                self.text,
                "Multidimensional arrays must have sub-arrays with matching dimensions.",
            )),
            _ => {
                self.lengths[depth] = Some(count);
                Ok(())
            }
        }
    }

    fn item(&mut self) -> Result<()> {
        let mut raw = String::new();
        let mut quoted = false;
        // A string in quotes is a whole item.
        let mut closed = false;
        // Where unquoted trailing blanks begin to count.
        let mut keep = 0;
        loop {
            let Some(c) = self.text[self.at..].chars().next() else {
                return Err(malformed(self.text, "Unexpected end of input."));
            };
            match c {
                '"' if quoted || !raw.is_empty() => {
                    return Err(malformed(self.text, "Unexpected array element."));
                }
                '"' => {
                    (quoted, closed) = (true, true);
                    self.at += 1;
                    loop {
                        let Some(c) = self.text[self.at..].chars().next() else {
                            return Err(malformed(self.text, "Unexpected end of input."));
                        };
                        self.at += c.len_utf8();
                        match c {
                            '"' => break,
                            '\\' => self.escaped(&mut raw)?,
                            other => raw.push(other),
                        }
                    }
                    keep = raw.len();
                }
                '\\' if closed => return Err(self.unexpected(b'\\')),
                '\\' => {
                    self.at += 1;
                    self.escaped(&mut raw)?;
                    quoted = true;
                    keep = raw.len();
                }
                ',' | '}' => break,
                '{' => return Err(malformed(self.text, "Unexpected \"{\" character.")),
                other if closed && !other.is_ascii_whitespace() => {
                    return Err(malformed(self.text, "Unexpected array element."));
                }
                other => {
                    self.at += other.len_utf8();
                    raw.push(other);
                    if !other.is_ascii_whitespace() {
                        keep = raw.len();
                    }
                }
            }
        }
        interrupt::steps(STEPS_PER_VALUE + raw.len())?;
        raw.truncate(keep);
        if raw.is_empty() && !quoted {
            return Err(self.unexpected(self.peek().unwrap_or(b'}')));
        }
        let value = if !quoted && raw.eq_ignore_ascii_case("null") {
            Datum::Null
        } else {
            text_in(&raw, self.element, self.ctx)?
        };
        self.values.push(value);
        Ok(())
    }

    fn escaped(&mut self, raw: &mut String) -> Result<()> {
        let c = self.text[self.at..]
            .chars()
            .next()
            .ok_or_else(|| malformed(self.text, "Unexpected end of input."))?;
        self.at += c.len_utf8();
        raw.push(c);
        Ok(())
    }

    /// Explicit bounds: `[1:2][0:1]=`.
    fn bounds(&mut self) -> Result<Vec<(i32, i32)>> {
        let mut bounds = Vec::new();
        self.skip_blanks();
        while self.peek() == Some(b'[') {
            let end = self.text[self.at..]
                .find(']')
                .ok_or_else(|| malformed(self.text, "Missing array dimension value."))?
                + self.at;
            let inner = &self.text[self.at + 1..end];
            let (low, high) = inner.split_once(':').unwrap_or(("1", inner));
            match (low.trim().parse::<i32>(), high.trim().parse::<i32>()) {
                (Ok(low), Ok(high)) if low <= high => bounds.push((low, high)),
                (Ok(_), Ok(_)) => {
                    return Err(SqlError::new(
                        SqlState::ARRAY_SUBSCRIPT_ERROR,
                        "upper bound cannot be less than lower bound",
                    ));
                }
                _ => return Err(malformed(self.text, "Missing array dimension value.")),
            }
            self.at = end + 1;
            self.skip_blanks();
        }
        if !bounds.is_empty() {
            if self.peek() != Some(b'=') {
                return Err(malformed(self.text, "Missing \"=\" after array dimensions."));
            }
            self.at += 1;
            self.skip_blanks();
        }
        Ok(bounds)
    }
}

/// Reads an array literal of an array type.
pub fn array_in(text: &str, ty: Type, ctx: &FunctionContext<'_>) -> Result<Datum> {
    let element =
        element_of(ty.oid).ok_or_else(|| SqlError::internal("array_in of a type that is no array"))?;
    let mut reader = Reader {
        text,
        at: 0,
        element: Type { oid: element, typmod: ty.typmod },
        ctx,
        lengths: Vec::new(),
        values: Vec::new(),
    };
    let bounds = reader.bounds()?;
    if reader.peek() != Some(b'{') {
        return Err(malformed(text, "Array value must start with \"{\" or dimension information."));
    }
    reader.braces(0)?;
    reader.skip_blanks();
    if reader.at != text.len() {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    let mut dimensions: Vec<Dimension> = reader
        .lengths
        .iter()
        .map(|length| Dimension { length: length.unwrap_or(0), lower_bound: 1 })
        .collect();
    if reader.values.is_empty() {
        dimensions.clear();
    }
    if !bounds.is_empty() {
        let fits = bounds.len() == dimensions.len()
            && bounds
                .iter()
                .zip(&dimensions)
                .all(|((low, high), d)| i64::from(*high) - i64::from(*low) + 1 == d.length as i64);
        if !fits {
            return Err(malformed(text, "Specified array dimensions do not match array contents."));
        }
        for (dimension, (low, _)) in dimensions.iter_mut().zip(bounds) {
            dimension.lower_bound = low;
        }
    }
    Ok(Datum::Array(Arc::new(Array { element, dimensions, values: reader.values })))
}

/// `int2vector` and `oidvector`: numbers between blanks.
pub(super) fn vector_in(text: &str, ty: Oid, ctx: &FunctionContext<'_>) -> Result<Datum> {
    let element = if ty == Oid::INT2VECTOR { Oid::INT2 } else { Oid::OID };
    let values: Vec<Datum> =
        text.split_ascii_whitespace().map(|t| text_in(t, Type::of(element), ctx)).collect::<Result<_>>()?;
    let dimensions = vec![Dimension { length: values.len(), lower_bound: 0 }];
    Ok(Datum::Array(Arc::new(Array { element, dimensions, values })))
}

/// Whether an element's text must stand in quotes.
fn needs_quotes(text: &str) -> bool {
    text.is_empty()
        || text.eq_ignore_ascii_case("null")
        || text
            .bytes()
            .any(|b| matches!(b, b'"' | b'\\' | b'{' | b'}' | b',') || b.is_ascii_whitespace() || b == 0x0b)
}

/// Writes an array literal.
pub fn array_out(
    array: &Array,
    ty: Type,
    ctx: &FunctionContext<'_>,
    out: &mut dyn Write,
) -> std::fmt::Result {
    // What was made of values alone does not know whether they are of inet or of cidr.
    let declared = element_of(ty.oid).filter(|_| matches!(array.element, Oid::INET | Oid::CIDR));
    let element = Type { oid: declared.unwrap_or(array.element), typmod: ty.typmod };
    if matches!(ty.oid, Oid::INT2VECTOR | Oid::OIDVECTOR) {
        for (i, value) in array.values.iter().enumerate() {
            if i > 0 {
                out.write_str(" ")?;
            }
            text_out(value, element, ctx, out)?;
        }
        return Ok(());
    }
    if array.values.is_empty() {
        return out.write_str("{}");
    }
    if array.dimensions.iter().any(|d| d.lower_bound != 1) {
        for d in &array.dimensions {
            write!(out, "[{}:{}]", d.lower_bound, i64::from(d.lower_bound) + d.length as i64 - 1)?;
        }
        out.write_str("=")?;
    }
    let mut next = 0;
    let mut scratch = String::new();
    write_level(array, 0, &mut next, element, ctx, &mut scratch, out)
}

fn write_level(
    array: &Array,
    depth: usize,
    next: &mut usize,
    element: Type,
    ctx: &FunctionContext<'_>,
    scratch: &mut String,
    out: &mut dyn Write,
) -> std::fmt::Result {
    out.write_str("{")?;
    for i in 0..array.dimensions[depth].length {
        if i > 0 {
            out.write_str(",")?;
        }
        if depth + 1 < array.dimensions.len() {
            write_level(array, depth + 1, next, element, ctx, scratch, out)?;
            continue;
        }
        interrupt::steps(STEPS_PER_VALUE).map_err(|_| std::fmt::Error)?;
        let value = array.values.get(*next).unwrap_or(&Datum::Null);
        *next += 1;
        if value.is_null() {
            out.write_str("NULL")?;
            continue;
        }
        scratch.clear();
        text_out(value, element, ctx, scratch)?;
        if needs_quotes(scratch) {
            crate::io::room::check_doubled(scratch)?;
            out.write_str("\"")?;
            for c in scratch.chars() {
                if matches!(c, '"' | '\\') {
                    out.write_str("\\")?;
                }
                out.write_char(c)?;
            }
            out.write_str("\"")?;
        } else {
            out.write_str(scratch)?;
        }
    }
    out.write_str("}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::to_text;

    #[test]
    fn literals_read_back() {
        let ctx = FunctionContext::detached();
        let check = |text: &str, ty: Type, expected: &str| {
            let value = array_in(text, ty, &ctx).unwrap();
            assert_eq!(to_text(&value, ty, &ctx), expected);
        };
        check("{1,2,NULL}", Type::INT4_ARRAY, "{1,2,NULL}");
        check("{ { a , \"b c\" } , {d,\"\"} }", Type::TEXT_ARRAY, "{{a,\"b c\"},{d,\"\"}}");
        check("[2:3]={1,2}", Type::INT4_ARRAY, "[2:3]={1,2}");
        check("{}", Type::INT4_ARRAY, "{}");
        check("{\"NULL\",\"x\\\"y\"}", Type::TEXT_ARRAY, "{\"NULL\",\"x\\\"y\"}");
        for bad in ["", "1,2", "{1,2", "{1},2}", "{{1},{2,3}}", "{1,,2}"] {
            assert_eq!(
                array_in(bad, Type::INT4_ARRAY, &ctx).map_err(|e| e.state()),
                Err(SqlState::INVALID_TEXT_REPRESENTATION),
                "{bad}"
            );
        }
    }
}
