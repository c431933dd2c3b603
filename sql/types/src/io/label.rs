//! Labels of enums: their names, which the session's catalog has.

use std::fmt::Write;

use crate::datum::Datum;
use crate::error::Result;
use crate::function::FunctionContext;
use crate::types::{Oid, Type};

/// Reads the name of a label. The wire's binary form of one is its name, too.
pub(super) fn label_in(text: &str, ty: Type, ctx: &FunctionContext<'_>) -> Result<Datum> {
    ctx.session.call("enum_in", &[Datum::Oid(ty.oid), Datum::text(text)])
}

/// Writes a label's name, or its number where it is not known.
pub(super) fn label_out(label: Oid, ctx: &FunctionContext<'_>, out: &mut dyn Write) -> std::fmt::Result {
    match ctx.session.call("enum_out", &[Datum::Oid(label)]) {
        Ok(Datum::Text(name)) => out.write_str(&name),
        _ => write!(out, "{}", label.0),
    }
}
