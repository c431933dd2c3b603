//! Literals of dates and times in texts that the catalog keeps: which moment `'2020-01-02 10:00'` is
//! depends on the session's time zone, which day `'03/04/2020'` on its DateStyle, and `'today'` on the
//! day. They go on meaning what they meant to the session that wrote them: there they are read, and
//! kept in a form that every session reads alike. So it is with the queries of views and the bodies of
//! routines that are understood when they are written.

use std::cell::RefCell;
use std::ops::Range;

use archipel_sql::ast::Statement;
use archipel_sql::catalog::{Catalog, Routine, ViewReference};
use archipel_sql::datetime::zone::for_setting;
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::{FunctionContext, SessionHost};
use archipel_sql::io;
use archipel_sql::parser::{LexemeKind, lexemes, parse_stored};
use archipel_sql::style::{DateOrder, Style};
use archipel_sql::type_table::{element_of, is_date_or_time};
use archipel_sql::types::{Oid, Type};

use crate::bind::deparse::Arguments;
use crate::bind::display::statement_text;
use crate::bind::meaning::{Meaning, with_ids};
use crate::bind::stored_expression::{About, DEFINITION_PATH, bind_text_in, mean_the_same};
use crate::bind::{BindEnv, Clause, VariableScope, bind_statement, visit};
use crate::bound::{BoundExpr, BoundStatement, ExprKind};
use crate::work::Work;

/// Rewrites the literals of a new text, in which ids stand for names; true if there were any. `target` is
/// what a text that is a literal alone is taken as.
pub(super) fn settle(
    text: &mut String,
    (about, clause): (&About, Clause),
    target: Option<Type>,
    work: &Work<'_>,
) -> Result<bool> {
    if !text.contains('\'') {
        return Ok(false);
    }
    let catalog: &Catalog = &work.catalog;
    let bind = |text: &str, context: &FunctionContext<'_>| {
        bind_text_in(catalog, DEFINITION_PATH, text, about, clause, context)
    };
    let detached = FunctionContext::detached();
    let nobody = Elsewhere::new();
    let elsewhere = FunctionContext { now: Elsewhere::NOW, session: &nobody };
    let others = [&detached, &elsewhere];
    // Whoever binds it in its place tells what is wrong with it.
    let Ok(here) = bind(text, work.env.context) else { return Ok(false) };
    let alone = matches!(here.kind, ExprKind::Const(_)) && here.ty.oid == Oid::UNKNOWN;
    let means_the_same = |text: &str| {
        others.into_iter().all(|there| bind(text, there).is_ok_and(|there| mean_the_same(&here, &there)))
    };
    if !alone && means_the_same(text) {
        return Ok(false);
    }
    let types = if alone { target.into_iter().collect() } else { types_of(&here) };
    let settled = rewritten(text, &types, work.env.context, others)?;
    let changes = settled != *text && (alone || means_the_same(&settled));
    if changes {
        *text = settled;
    }
    Ok(changes)
}

/// A session whose settings are nobody's: what it reads as one with the usual settings does, at another
/// time, everybody reads alike.
struct Elsewhere {
    style: Style,
}

impl Elsewhere {
    /// Some day that is not that of [`FunctionContext::detached`].
    const NOW: i64 = 800_000_000_000_000;

    fn new() -> Elsewhere {
        let usual = Style::standard();
        let time_zone = for_setting("Asia/Kathmandu").unwrap_or_else(|| usual.time_zone.clone());
        Elsewhere { style: Style { time_zone, date_order: DateOrder::Dmy, ..usual.clone() } }
    }
}

impl SessionHost for Elsewhere {
    // The session at hand has bound the same text before.
    fn check_label(&self, _label: Oid) -> Result<()> {
        Ok(())
    }

    fn style(&self) -> &Style {
        &self.style
    }
}

/// A type of time, or an array of one.
fn is_of_time(oid: Oid) -> bool {
    is_date_or_time(element_of(oid).unwrap_or(oid))
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

/// The text with those literals that one context reads otherwise than the others as the first reads
/// them, written for the first of these.
fn rewritten(
    text: &str,
    types: &[Type],
    here: &FunctionContext<'_>,
    others: [&FunctionContext<'_>; 2],
) -> Result<String> {
    let (mut result, mut copied) = (String::with_capacity(text.len() + 16), 0);
    for part in lexemes(text)? {
        let LexemeKind::String(literal) = &part.kind else { continue };
        let meant = types.iter().filter(|ty| is_of_time(ty.oid)).find_map(|ty| {
            let read = |context: &FunctionContext<'_>| io::text_in(literal, Type::of(ty.oid), context).ok();
            let value: Datum = read(here)?;
            let differs = others.into_iter().any(|there| read(there).as_ref() != Some(&value));
            differs.then(|| io::to_text(&value, Type::of(ty.oid), others[0]))
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

/// Statements that the catalog keeps: a view's query, or the body of a routine.
#[derive(Clone, Copy)]
pub(crate) struct StoredStatements<'s> {
    pub references: &'s [ViewReference],
    pub routine: Option<&'s Routine>,
    /// Where their names are looked up that have no ids.
    pub search_path: &'s [String],
}

/// Rewrites the literals of statements, and puts ids into them for what the session means by their names;
/// whether that was done.
pub(crate) fn settle_statements(
    text: &mut String,
    stored: StoredStatements<'_>,
    work: &Work<'_>,
) -> Result<bool> {
    settle_literals(text, stored, work)?;
    settle_names(text, stored, work.search_path(), work)
}

/// Puts ids into statements for what their names mean on a search path; whether that was done.
pub(super) fn settle_names(
    text: &mut String,
    stored: StoredStatements<'_>,
    path: &[String],
    work: &Work<'_>,
) -> Result<bool> {
    let written = StoredStatements { search_path: path, ..stored };
    let Some(here) = meaning_of(text, written, &work.catalog, work) else { return Ok(false) };
    let with_ids = with_ids(text, &here.names, &work.catalog)?;
    let is_same =
        meaning_of(&with_ids, stored, &work.catalog, work).is_some_and(|there| there.bound == here.bound);
    if is_same {
        *text = with_ids;
    }
    Ok(is_same)
}

fn settle_literals(text: &mut String, stored: StoredStatements<'_>, work: &Work<'_>) -> Result<()> {
    if !text.contains(['\'', '$']) {
        return Ok(());
    }
    let stored = StoredStatements { search_path: work.search_path(), ..stored };
    let read = |text: &str| meaning_of(text, stored, &work.catalog, work);
    // Whoever binds it in its place tells what is wrong with it.
    let Some(Meant { bound: meaning, moments, .. }) = read(text) else { return Ok(()) };
    let usual = FunctionContext::detached();
    let mut forms: Vec<(Range<usize>, Vec<String>)> = Vec::new();
    for part in lexemes(text)? {
        let LexemeKind::String(literal) = &part.kind else { continue };
        let mut written: Vec<String> = Vec::new();
        for (_, ty) in moments.iter().filter(|(known, ty)| known == literal && is_of_time(*ty)) {
            let ty = Type::of(*ty);
            let Ok(value) = io::text_in(literal, ty, work.env.context) else { continue };
            let form = format!("'{}'", io::to_text(&value, ty, &usual));
            if !written.contains(&form) {
                written.push(form);
            }
        }
        if !written.is_empty() {
            forms.push((part.range.clone(), written));
        }
    }
    if forms.is_empty() {
        return Ok(());
    }
    let mut chosen: Vec<Option<&str>> = vec![None; forms.len()];
    choose(0..forms.len(), &forms, &mut chosen, &mut |chosen| {
        read(&with_forms(text, &forms, chosen)).is_some_and(|changed| changed.bound == meaning)
    });
    let settled = with_forms(text, &forms, &chosen);
    *text = settled;
    Ok(())
}

/// Chooses forms for a part of the literals, all at once if that means the same. Where some are texts, or of
/// several types, the halves are looked at by themselves: a text is read as often as there are such, times
/// the logarithm of all.
fn choose<'f>(
    part: Range<usize>,
    forms: &'f [(Range<usize>, Vec<String>)],
    chosen: &mut [Option<&'f str>],
    means_the_same: &mut dyn FnMut(&[Option<&str>]) -> bool,
) {
    for (place, (_, written)) in chosen[part.clone()].iter_mut().zip(&forms[part.clone()]) {
        *place = written.first().map(String::as_str);
    }
    if means_the_same(chosen) {
        return;
    }
    chosen[part.clone()].fill(None);
    if part.len() > 1 {
        let middle = part.start + part.len() / 2;
        choose(part.start..middle, forms, chosen, means_the_same);
        choose(middle..part.end, forms, chosen, means_the_same);
        return;
    }
    for form in forms[part.start].1.iter().skip(1) {
        chosen[part.start] = Some(form.as_str());
        if means_the_same(chosen) {
            return;
        }
    }
    chosen[part.start] = None;
}

/// A text with these forms in place of its literals; those without one stay.
fn with_forms(text: &str, forms: &[(Range<usize>, Vec<String>)], chosen: &[Option<&str>]) -> String {
    let (mut result, mut copied) = (String::with_capacity(text.len() + 16), 0);
    for ((range, _), form) in forms.iter().zip(chosen) {
        if let Some(form) = form {
            result.push_str(&text[copied..range.start]);
            result.push_str(form);
            copied = range.end;
        }
    }
    result.push_str(&text[copied..]);
    result
}

/// What statements mean to this session.
struct Meant {
    bound: Vec<BoundStatement>,
    /// Which of their literals are moments.
    moments: Vec<(String, Oid)>,
    /// What their names are.
    names: Vec<Meaning>,
}

/// Whether a routine's body means something else with other references, or nothing.
pub(crate) fn body_differs(routine: &Routine, references: &[ViewReference], work: &Work<'_>) -> bool {
    let Some(body) = &routine.traits.stored else { return false };
    let meant = |references: &[ViewReference]| {
        let stored = StoredStatements { references, routine: Some(routine), search_path: &body.search_path };
        meaning_of(&body.text, stored, &work.catalog, work).map(|meant| meant.bound)
    };
    let now = meant(&body.references);
    now.is_some() && meant(references) != now
}

/// What statements do in a catalog, whatever the columns that they answer are called.
pub(super) fn shape_of(
    text: &str,
    stored: StoredStatements<'_>,
    catalog: &Catalog,
    work: &Work<'_>,
) -> Option<String> {
    let bound = meaning_of(text, stored, catalog, work)?.bound;
    Some(bound.into_iter().map(shape).collect::<Vec<_>>().join("\n"))
}

/// What a statement does, whatever the columns that it answers are called.
pub(super) fn shape(mut statement: BoundStatement) -> String {
    if let BoundStatement::Query(query) = &mut statement {
        query.columns.iter_mut().for_each(|column| column.name.clear());
    }
    statement_text(&statement)
}

fn meaning_of(text: &str, stored: StoredStatements<'_>, catalog: &Catalog, work: &Work<'_>) -> Option<Meant> {
    let arguments = stored.routine.map(Arguments::of);
    let mut meant = Meant { bound: Vec::new(), moments: Vec::new(), names: Vec::new() };
    for statement in parse_stored(text).ok()? {
        let statement = &statement.statement;
        let over_rows = matches!(
            statement,
            Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)
        );
        if !over_rows {
            return None;
        }
        let mut env = BindEnv::new(catalog, stored.search_path, work.env.context);
        env.text = text;
        env.references = stored.references;
        (env.params_fixed, env.is_settled) = (true, true);
        env.moments = Some(Vec::new());
        env.meanings = Some(RefCell::default());
        env.shown_to = Some(work.search_path());
        env.variables = arguments.as_ref().map(|arguments| arguments as &dyn VariableScope);
        meant.bound.push(bind_statement(statement, &mut env).ok()?);
        meant.moments.append(&mut env.moments.take().unwrap_or_default());
        meant.names.append(&mut env.meanings.take().map(RefCell::into_inner).unwrap_or_default());
    }
    Some(meant)
}
