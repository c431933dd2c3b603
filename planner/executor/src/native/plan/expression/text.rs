//! Functions of text that read their operands where they are: `s || t`, `substr`, `left`, `right`.
//!
//! A text longer than a few words lies on the heap, so that an argument list would copy it. What
//! an inner call has made is nobody else's, and is changed in place.

use archipel_sql::datum::Datum;
use archipel_sql::error::SqlError;
use archipel_sql::function::{Intrinsic, ScalarFunction, text_chr, text_left, text_right, text_substring};

use crate::native::run::expression::code::CompiledExpr;
use crate::native::run::expression::source::Source;
use crate::native::run::state::context::ExecContext;
use crate::native::run::state::error::ExecResult;
use compact_str::CompactString;

/// A specialised closure for a call, or its arguments back.
pub(crate) fn specialise(
    function: &'static ScalarFunction,
    args: Vec<Source>,
) -> Result<CompiledExpr, Vec<Source>> {
    let Some(intrinsic) = function.intrinsic else { return Err(args) };
    match intrinsic {
        Intrinsic::Character => Ok(character(args)),
        Intrinsic::Concatenate => Ok(concatenation(args)),
        Intrinsic::Substring => {
            Ok(part(args, |text, [start, length]| text_substring(text, start, Some(length))))
        }
        Intrinsic::SubstringFrom => Ok(part(args, |text, [start, _]| text_substring(text, start, None))),
        Intrinsic::Left => Ok(part(args, |text, [count, _]| Ok(text_left(text, count)))),
        Intrinsic::Right => Ok(part(args, |text, [count, _]| Ok(text_right(text, count)))),
        _ => Err(args),
    }
}

/// The value of a source that has to be computed; `None` for one that lies somewhere.
fn computed(source: &Source, ctx: &mut ExecContext<'_, '_>) -> ExecResult<Option<Datum>> {
    match source {
        Source::Operand(_) => Ok(None),
        Source::Code(code) => code(ctx).map(Some),
    }
}

fn value<'c>(source: &'c Source, computed: &'c Option<Datum>, ctx: &'c ExecContext<'_, '_>) -> &'c Datum {
    match (source, computed) {
        (Source::Operand(operand), _) => operand.get(ctx),
        (_, Some(value)) => value,
        _ => &Datum::Null,
    }
}

fn concatenation(mut args: Vec<Source>) -> CompiledExpr {
    let (Some(right), Some(left)) = (args.pop(), args.pop()) else { return Box::new(|_| Ok(Datum::Null)) };
    Box::new(move |ctx| {
        let first = computed(&left, ctx)?;
        let second = computed(&right, ctx)?;
        let Datum::Text(tail) = value(&right, &second, ctx) else { return Ok(Datum::Null) };
        if let Some(first) = first {
            let Datum::Text(mut head) = first else { return Ok(Datum::Null) };
            head.push_str(tail);
            return Ok(Datum::Text(head));
        }
        let Datum::Text(head) = value(&left, &None, ctx) else { return Ok(Datum::Null) };
        let mut joined = CompactString::with_capacity(head.len() + tail.len());
        joined.push_str(head);
        joined.push_str(tail);
        Ok(Datum::Text(joined))
    })
}

/// `chr(code)`: one character needs no heap.
fn character(mut args: Vec<Source>) -> CompiledExpr {
    let Some(code) = args.pop() else { return Box::new(|_| Ok(Datum::Null)) };
    Box::new(move |ctx| {
        let Datum::Int4(code) = code.eval(ctx)? else { return Ok(Datum::Null) };
        let mut text = CompactString::default();
        text.push(text_chr(code)?);
        Ok(Datum::Text(text))
    })
}

/// A function that answers a part of its first argument, told by integers.
fn part(
    args: Vec<Source>,
    select: impl for<'t> Fn(&'t str, [i32; 2]) -> Result<&'t str, SqlError> + Send + Sync + 'static,
) -> CompiledExpr {
    let mut args = args.into_iter();
    let Some(text) = args.next() else { return Box::new(|_| Ok(Datum::Null)) };
    let numbers: Vec<Source> = args.collect();
    Box::new(move |ctx| {
        let made = computed(&text, ctx)?;
        let mut given = [0; 2];
        let mut known = true;
        for (source, place) in numbers.iter().zip(&mut given) {
            match source {
                Source::Operand(operand) => match operand.get(ctx) {
                    Datum::Int4(number) => *place = *number,
                    _ => known = false,
                },
                Source::Code(code) => match code(ctx)? {
                    Datum::Int4(number) => *place = number,
                    _ => known = false,
                },
            }
        }
        if !known {
            return Ok(Datum::Null);
        }
        let Some(made) = made else {
            let Datum::Text(text) = value(&text, &None, ctx) else { return Ok(Datum::Null) };
            return Ok(Datum::text(select(text, given)?));
        };
        let Datum::Text(mut text) = made else { return Ok(Datum::Null) };
        let selected = select(&text, given)?;
        let length = selected.len();
        let start = selected.as_ptr() as usize - text.as_ptr() as usize;
        if length == 0 {
            return Ok(Datum::text(""));
        }
        text.truncate(start + length);
        if start > 0 {
            text.replace_range(..start, "");
        }
        Ok(Datum::Text(text))
    })
}
