//! Literals of dates and times in texts that the catalog keeps: which moment `'2020-01-02 10:00'` is
//! depends on the session's time zone, which day `'03/04/2020'` on its DateStyle, and `'today'` on the
//! day. They go on meaning what they meant to the session that wrote them: there they are read, and
//! kept in a form that every session reads alike.

use archipel_sql::catalog::Catalog;
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::FunctionContext;
use archipel_sql::io;
use archipel_sql::parser::{LexemeKind, lexemes};
use archipel_sql::types::{Oid, Type};

use super::work::Work;
use crate::bind::kept::{About, bind_text_in, definition_path, mean_the_same};
use crate::bind::{Clause, visit};
use crate::bound::{BoundExpr, ExprKind};

/// Rewrites the literals of a new text of something in a schema; true if there were any. `target` is
/// what a text that is a literal alone is taken as.
pub(super) fn settle(
    text: &mut String,
    schema: &str,
    (about, clause): (&About, Clause),
    target: Option<Type>,
    work: &Work<'_>,
) -> Result<bool> {
    if !text.contains('\'') {
        return Ok(false);
    }
    let (catalog, path): (&Catalog, _) = (&work.catalog, definition_path(schema));
    let bind = |text: &str, context: &FunctionContext<'_>| {
        bind_text_in(catalog, &path, text, about, clause, context)
    };
    let detached = FunctionContext::detached();
    // Whoever binds it in its place tells what is wrong with it.
    let Ok(here) = bind(text, work.env.context) else { return Ok(false) };
    let alone = matches!(here.kind, ExprKind::Const(_)) && here.ty.oid == Oid::UNKNOWN;
    if !alone && bind(text, &detached).is_ok_and(|there| mean_the_same(&here, &there)) {
        return Ok(false);
    }
    let types = if alone { target.into_iter().collect() } else { types_of(&here) };
    let settled = rewritten(text, &types, work.env.context, &detached)?;
    let same = || bind(&settled, &detached).is_ok_and(|settled| mean_the_same(&here, &settled));
    let changes = settled != *text && (alone || same());
    if changes {
        *text = settled;
    }
    Ok(changes)
}

fn is_of_time(oid: Oid) -> bool {
    matches!(oid, Oid::DATE | Oid::TIME | Oid::TIMETZ | Oid::TIMESTAMP | Oid::TIMESTAMPTZ)
}

/// The types of time among an expression's constants.
fn types_of(bound: &BoundExpr) -> Vec<Type> {
    let mut types: Vec<Type> = Vec::new();
    visit::visit_expr(bound, 0, &mut |part, _| {
        let known = |types: &[Type]| types.iter().any(|ty| ty.oid == part.ty.oid);
        if matches!(&part.kind, ExprKind::Const(value) if !value.is_null()) && !known(&types) {
            types.push(Type::of(part.ty.oid));
        }
        true
    });
    types.retain(|ty| is_of_time(ty.oid));
    types
}

/// The text with those literals that one context reads otherwise than the other as the first reads
/// them.
fn rewritten(
    text: &str,
    types: &[Type],
    here: &FunctionContext<'_>,
    there: &FunctionContext<'_>,
) -> Result<String> {
    let (mut result, mut copied) = (String::with_capacity(text.len() + 16), 0);
    for part in lexemes(text)? {
        let LexemeKind::String(literal) = &part.kind else { continue };
        let meant = types.iter().filter(|ty| is_of_time(ty.oid)).find_map(|ty| {
            let read = |context| io::text_in(literal, Type::of(ty.oid), context).ok();
            let value: Datum = read(here)?;
            (read(there).as_ref() != Some(&value)).then(|| io::to_text(&value, Type::of(ty.oid), there))
        });
        if let Some(meant) = meant {
            result.push_str(&text[copied..part.range.start]);
            result.push_str(&format!("'{meant}'"));
            copied = part.range.end;
        }
    }
    result.push_str(&text[copied..]);
    Ok(result)
}
