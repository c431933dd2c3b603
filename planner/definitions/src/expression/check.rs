//! Defaults and conditions: checked when they are declared, kept as text.

use std::ops::ControlFlow;

use archipel_engine::txn::OwnedCell;
use archipel_sql::ast::{ColumnConstraintKind, ColumnDefinition, Expression};
use archipel_sql::catalog::stored_name::stored_type;
use archipel_sql::catalog::{Column, SYSTEM_COLUMNS, Table, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::error::{Result, SqlError, SqlState};
use archipel_sql::function::Volatility;
use archipel_sql::parser::{LexemeKind, lexemes};
use archipel_sql::type_table::{BuiltIn, TypeNames};
use archipel_sql::types::{Oid, Type};
use sqlparser::ast::{AccessExpr, Expr, FunctionArguments, Value, Visit, Visitor};
use sqlparser::tokenizer::Span;

use crate::bind::coerce::is_polymorphic;
use crate::bind::stored_expression::About;
use crate::bind::visit::{is_volatile, visit_expr};
use crate::bind::{BindEnv, Clause, bind_expression, has_subquery, stored_expression};
use crate::bound::{BoundExpr, ExprKind};
use crate::evaluate::{RouteInputs, evaluate};
use crate::row::datum_to_cell;
use crate::work::Work;

/// The columns of the table an expression names, in column order; 42703 for a name that is none. The
/// whole row, which the table's own name means, is all of them.
pub(crate) fn columns_used(expression: &Expression, table: &str, columns: &[Column]) -> Result<Vec<u16>> {
    let names = names_used(&expression.expr);
    let mut used: Vec<u16> = Vec::new();
    for name in names {
        let column = match &name[..] {
            [_] if is_whole_row(&name, table, columns) => {
                used = (0..columns.len() as u16).collect();
                continue;
            }
            [column] => column,
            [relation, column] if relation == table => column,
            [.., _] => {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("missing FROM-clause entry for table \"{}\"", name[name.len().saturating_sub(2)]),
                )
                .at(position_of(&name, expression)));
            }
            [] => continue,
        };
        match columns.iter().position(|candidate| candidate.name == *column) {
            Some(place) if !used.contains(&(place as u16)) => used.push(place as u16),
            Some(_) => {}
            // The binder knows which of them may be named where.
            None if SYSTEM_COLUMNS.contains(&column.as_str()) && column != "tableoid" => {}
            None => {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{column}\" does not exist"),
                )
                .at(position_of(&name, expression)));
            }
        }
    }
    used.sort_unstable();
    Ok(used)
}

/// Whether a name in an expression about a row means the whole of it.
fn is_whole_row(name: &[String], table: &str, columns: &[Column]) -> bool {
    matches!(name, [only] if only == table && !columns.iter().any(|column| column.name == *only))
}

/// Where the expression begins in its statement.
fn position(expression: &Expression) -> Option<u32> {
    (expression.position > 0).then_some(expression.position)
}

/// Where a name in the expression stands in the statement.
fn position_of(name: &[String], expression: &Expression) -> Option<u32> {
    let start = position(expression)?;
    let parts = lexemes(&expression.text).unwrap_or_default();
    let is = |at: usize, name: &String| match parts.get(at).map(|part| &part.kind) {
        Some(LexemeKind::Word { value, .. }) => value == name,
        _ => false,
    };
    // A dot stands between its parts.
    let begins = |at: &usize| name.iter().enumerate().all(|(part, name)| is(at + 2 * part, name));
    let found = (0..parts.len()).find(begins).and_then(|at| parts.get(at));
    let before = found.and_then(|part| expression.text.get(..part.range.start));
    Some(start + before.map_or(0, |before| before.chars().count() as u32))
}

/// Where the first subquery of the expression stands: its parenthesis, or what is before it and says what
/// it is for.
fn position_of_subquery(expression: &Expression) -> Option<u32> {
    let start = position(expression)?;
    let parts = lexemes(&expression.text).unwrap_or_default();
    let text = |at: usize| parts.get(at).and_then(|part| expression.text.get(part.range.clone()));
    let is = |at: usize, words: &[&str]| {
        text(at).is_some_and(|found| words.iter().any(|word| found.eq_ignore_ascii_case(word)))
    };
    let query = (1..parts.len()).find(|&at| is(at, &["select", "values", "with"]) && is(at - 1, &["("]))?;
    let mut at = query - 1;
    // What a comparison with all of it begins with is its operator.
    while let Some(before) = at.checked_sub(1) {
        let leads = is(before, &["exists", "array", "in", "any", "some", "all"])
            || is(before, &["not"]) && is(at, &["in"])
            || is(at, &["any", "some", "all"]);
        if !leads {
            break;
        }
        at = before;
        if !is(at, &["in", "any", "some", "all"]) {
            break;
        }
    }
    let before = expression.text.get(..parts.get(at)?.range.start)?;
    Some(start + before.chars().count() as u32)
}

/// A CHECK condition: no subqueries, only columns of its table.
pub(crate) fn check_condition(expression: &Expression, table: &str, columns: &[Column]) -> Result<Vec<u16>> {
    if has_subquery(&expression.expr) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot use subquery in check constraint",
        )
        .at(position_of_subquery(expression)));
    }
    columns_used(expression, table, columns)
}

/// A domain's CHECK: no subqueries.
pub(crate) fn check_domain_condition(expression: &Expression) -> Result<()> {
    if has_subquery(&expression.expr) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot use subquery in check constraint",
        ));
    }
    Ok(())
}

/// Generation expressions: no subqueries, only columns of the table that are not generated
/// themselves. `written` are the columns as a statement makes them, where errors tell places in it.
pub(crate) fn check_generated(table: &Table, written: &[ColumnDefinition]) -> Result<()> {
    for column in &table.columns {
        let Some(text) = &column.generated else { continue };
        let mut expression = archipel_sql::parser::parse_expression_text(text)?;
        let constraints =
            written.iter().filter(|own| own.name == column.name).flat_map(|own| &own.constraints);
        let mut own = constraints.filter_map(|constraint| match &constraint.kind {
            ColumnConstraintKind::Generated(own) => Some(own.position),
            _ => None,
        });
        expression.position = own.next().unwrap_or(0);
        if has_subquery(&expression.expr) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot use subquery in column generation expression",
            )
            .at(position_of_subquery(&expression)));
        }
        let names = names_used(&expression.expr);
        if names.iter().any(|name| is_whole_row(name, &table.name, &table.columns)) {
            return Err(SqlError::new(
                SqlState::INVALID_OBJECT_DEFINITION,
                "cannot use whole-row variable in column generation expression",
            )
            .with_detail("This would cause the generated column to depend on its own value."));
        }
        for used in columns_used(&expression, &table.name, &table.columns)? {
            let used = &table.columns[usize::from(used)];
            if used.generated.is_some() {
                return Err(SqlError::new(
                    SqlState::INVALID_OBJECT_DEFINITION,
                    format!("cannot use generated column \"{}\" in column generation expression", used.name),
                )
                .with_detail("A generated column cannot reference another generated column.")
                .at(position_of(std::slice::from_ref(&used.name), &expression)));
            }
        }
    }
    Ok(())
}

/// The generated columns whose expressions read a column.
pub(crate) fn generated_from(table: &Table, place: u16) -> Result<Vec<u16>> {
    let mut found = Vec::new();
    for (other, column) in table.columns.iter().enumerate() {
        if let Some(text) = &column.generated
            && text_uses_column(text, table, place)?
        {
            found.push(other as u16);
        }
    }
    Ok(found)
}

/// A partial index's condition: no subqueries, only columns of its table.
pub(crate) fn check_index_condition(expression: &Expression, table: &Table) -> Result<()> {
    if has_subquery(&expression.expr) {
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot use subquery in index predicate")
            .at(position_of_subquery(expression)));
    }
    columns_used(expression, &table.name, &table.columns).map(drop)
}

/// What an index is over: no subqueries, only columns of its table.
pub(crate) fn check_index_expression(expression: &Expression, table: &Table) -> Result<()> {
    if has_subquery(&expression.expr) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot use subquery in index expression",
        )
        .at(position_of_subquery(expression)));
    }
    columns_used(expression, &table.name, &table.columns).map(drop)
}

/// A part of a partition key: no subqueries, only columns of its table, which it answers.
pub(crate) fn check_partition_expression(expression: &Expression, table: &Table) -> Result<Vec<u16>> {
    if has_subquery(&expression.expr) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot use subquery in partition key expression",
        ));
    }
    let names = names_used(&expression.expr);
    if names.iter().any(|name| is_whole_row(name, &table.name, &table.columns)) {
        let message = "partition key expressions cannot contain whole-row references";
        return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message));
    }
    columns_used(expression, &table.name, &table.columns)
}

/// A value of a partition's bound: no columns, no subqueries.
pub(crate) fn check_bound_expression(expression: &Expression) -> Result<()> {
    if !names_used(&expression.expr).is_empty() {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot use column reference in partition bound expression",
        )
        .at(position(expression)));
    }
    if has_subquery(&expression.expr) {
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cannot use subquery in partition bound")
            .at(position(expression)));
    }
    Ok(())
}

/// A DEFAULT: no subqueries, no columns.
pub(crate) fn check_default(expression: &Expression) -> Result<()> {
    if has_subquery(&expression.expr) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot use subquery in DEFAULT expression",
        )
        .at(position_of_subquery(expression)));
    }
    if let Some(name) = names_used(&expression.expr).first() {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot use column reference in DEFAULT expression",
        )
        .at(position_of(name, expression)));
    }
    Ok(())
}

/// Which of OLD and NEW a trigger's WHEN reads; 0A000 for a subquery, 42703 for a column they do
/// not have.
pub(crate) fn rows_of_condition(expression: &Expression, columns: &[Column]) -> Result<(bool, bool)> {
    let mut names = Names::default();
    let _ = expression.expr.visit(&mut names);
    if names.subquery {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot use subquery in trigger WHEN condition",
        )
        .at(position_of_subquery(expression)));
    }
    let mut read = (false, false);
    for name in &names.columns {
        match name.first().map(String::as_str) {
            Some("old") => read.0 = true,
            Some("new") => read.1 = true,
            // OLD and NEW have the same columns.
            Some(only) if name.len() == 1 => {
                let both = columns.iter().any(|column| column.name == *only);
                let (state, message) = match both || SYSTEM_COLUMNS.contains(&only) {
                    true => (SqlState::AMBIGUOUS_COLUMN, format!("column reference \"{only}\" is ambiguous")),
                    false => (SqlState::UNDEFINED_COLUMN, format!("column \"{only}\" does not exist")),
                };
                return Err(SqlError::new(state, message).at(position_of(name, expression)));
            }
            _ => continue,
        }
        if let [record, column] = &name[..]
            && !columns.iter().any(|known| known.name == *column)
        {
            return Err(SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column {record}.{column} does not exist"),
            )
            .at(position_of(name, expression)));
        }
    }
    Ok(read)
}

/// WHERE of COPY FROM, which no catalog keeps: no subqueries.
pub fn check_copied_condition(expression: &Expression) -> Result<()> {
    if has_subquery(&expression.expr) {
        let message = "cannot use subquery in COPY FROM WHERE condition";
        let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
        return Err(error.at(position_of_subquery(expression)));
    }
    Ok(())
}

/// The default of a routine's argument: like a column's, with its own words.
pub(crate) fn check_argument_default(expression: &Expression) -> Result<()> {
    if has_subquery(&expression.expr) {
        let message = "cannot use subquery in DEFAULT expression";
        let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
        return Err(error.at(position_of_subquery(expression)));
    }
    let names = names_used(&expression.expr);
    if let Some(name) = names.first()
        && let [column] = &name[..]
    {
        let message = format!("column \"{column}\" does not exist");
        return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message).at(position_of(name, expression)));
    }
    if !names.is_empty() {
        return Err(SqlError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            "cannot use table references in parameter default value",
        )
        .at(position(expression)));
    }
    Ok(())
}

/// Says of what does not fit in an expression over a table's row where it stands in the statement. All else
/// is found where the expression is kept.
pub(crate) fn check_written(
    table: &Table,
    expression: &Expression,
    clause: Clause,
    work: &Work<'_>,
) -> Result<()> {
    let about = About::Row(TableRef::new(table.clone()));
    check_written_about(&about, expression, clause, work)
}

/// The same of an expression over a trigger's rows.
pub(crate) fn check_condition_written(
    table: &TableRef,
    expression: &Expression,
    work: &Work<'_>,
) -> Result<()> {
    check_written_about(&About::OldAndNew(table.clone()), expression, Clause::TriggerWhen, work)
}

/// A policy's expression over a row of its table, which may have queries.
pub(crate) fn check_policy_written(table: &TableRef, expression: &Expression, work: &Work<'_>) -> Result<()> {
    let (path, context) = (work.search_path(), work.env.context);
    let (about, clause) = (About::Row(table.clone()), Clause::Policy);
    let text = &expression.text;
    let checked = stored_expression::check_written(&work.catalog, path, text, &about, clause, context);
    checked.map_err(|error| match position(expression) {
        Some(start) => in_statement(error, start),
        None => error,
    })
}

fn check_written_about(
    about: &About,
    expression: &Expression,
    clause: Clause,
    work: &Work<'_>,
) -> Result<()> {
    let Some(start) = position(expression) else { return Ok(()) };
    let (path, context) = (work.search_path(), work.env.context);
    let checked =
        stored_expression::check_written(&work.catalog, path, &expression.text, about, clause, context);
    match checked {
        Err(error) if is_of_expression(&error) => Err(in_statement(error, start)),
        _ => Ok(()),
    }
}

/// Whether an error is about what an expression is made of, and not about where it is kept.
fn is_of_expression(error: &SqlError) -> bool {
    let state = error.state();
    matches!(
        state,
        SqlState::UNDEFINED_FUNCTION
            | SqlState::DATATYPE_MISMATCH
            | SqlState::AMBIGUOUS_FUNCTION
            | SqlState::UNDEFINED_OBJECT
            | SqlState::INVALID_COLUMN_REFERENCE
            | SqlState::GROUPING_ERROR
            | SqlState::WINDOWING_ERROR
    ) || state.as_str().starts_with("22")
        || state == SqlState::FEATURE_NOT_SUPPORTED && error.message().starts_with("set-returning functions")
}

/// Moves a place in an expression to the statement, where the expression begins at `start`.
fn in_statement(mut error: SqlError, start: u32) -> SqlError {
    if let Some(inside) = &mut error.fields_mut().position {
        *inside += start - 1;
    }
    error
}

/// The same of a column's default.
pub(crate) fn check_default_written(expression: &Expression, ty: Type, work: &Work<'_>) -> Result<()> {
    default_written(expression, ty, work).map(drop)
}

/// The default of an argument of a routine. Whoever calls without the argument has no say in it, so all of it
/// has to fit now.
pub(crate) fn check_argument_default_written(
    expression: &Expression,
    ty: Type,
    work: &Work<'_>,
) -> Result<()> {
    let Some(given) = default_written(expression, ty, work)? else { return Ok(()) };
    // What it becomes is said by the other arguments of a call.
    if is_polymorphic(ty.oid) || ty == Type::RECORD {
        return Ok(());
    }
    let (wanted, given) = (work.type_name(ty.oid), work.type_name(given.oid));
    let message = format!("argument of DEFAULT must be type {wanted}, not type {given}");
    Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(position(expression)))
}

/// Reads a default as it is written; the type that it is of where it cannot be assigned.
fn default_written(expression: &Expression, ty: Type, work: &Work<'_>) -> Result<Option<Type>> {
    let Some(start) = position(expression) else { return Ok(None) };
    let (path, context) = (work.search_path(), work.env.context);
    match stored_expression::check_written_default(
        &work.catalog,
        path,
        &expression.text,
        Type::of(ty.oid),
        context,
    ) {
        Err(error) if is_of_expression(&error) => {
            // Where all of it is a literal, that is what cannot be read.
            let literal = matches!(&expression.expr, Expr::Value(_)).then_some(1);
            Err(in_statement(error.at(literal), start))
        }
        Err(_) => Ok(None),
        Ok(mismatch) => Ok(mismatch),
    }
}

/// USING of ALTER COLUMN … TYPE: over the row as it was, and nothing but that.
pub(crate) fn check_transform(expression: &Expression, table: &Table, work: &Work<'_>) -> Result<()> {
    if has_subquery(&expression.expr) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot use subquery in transform expression",
        )
        .at(position_of_subquery(expression)));
    }
    columns_used(expression, &table.name, &table.columns)?;
    check_written(table, expression, Clause::Transform, work)
}

/// What an expression mentions.
#[derive(Default)]
struct Names {
    columns: Vec<Vec<String>>,
    /// Where fields of rows are named, which are no columns.
    fields: Vec<Span>,
    subquery: bool,
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let fold = |ident: &sqlparser::ast::Ident| match ident.quote_style {
            Some(_) => ident.value.clone(),
            None => ident.value.to_lowercase(),
        };
        match expr {
            Expr::CompoundFieldAccess { access_chain, .. } => {
                self.fields.extend(access_chain.iter().filter_map(|access| match access {
                    AccessExpr::Dot(Expr::Identifier(field)) => Some(field.span),
                    _ => None,
                }));
            }
            Expr::Identifier(ident) if self.fields.contains(&ident.span) => {}
            Expr::Identifier(ident) => {
                let name = fold(ident);
                // Keyword-like values parse as names in some places.
                if !(ident.quote_style.is_none() && is_value_word(&name)) {
                    self.columns.push(vec![name]);
                }
            }
            Expr::CompoundIdentifier(parts) => self.columns.push(parts.iter().map(fold).collect()),
            Expr::QualifiedWildcard(name, _) => {
                self.columns.push(name.0.iter().filter_map(|part| part.as_ident()).map(fold).collect());
            }
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => self.subquery = true,
            Expr::Function(function) if matches!(function.args, FunctionArguments::Subquery(_)) => {
                self.subquery = true;
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Words that stand for values without being functions with parentheses.
fn is_value_word(name: &str) -> bool {
    matches!(
        name,
        "current_date"
            | "current_time"
            | "current_timestamp"
            | "localtime"
            | "localtimestamp"
            | "current_user"
            | "current_role"
            | "session_user"
            | "user"
            | "current_catalog"
            | "current_schema"
    )
}

fn names_used(expr: &Expr) -> Vec<Vec<String>> {
    let mut names = Names::default();
    let _ = expr.visit(&mut names);
    names.columns
}

/// An expression's text with a column renamed.
pub(crate) fn rename_in_text(text: &str, from: &str, to: &str) -> Result<String> {
    renamed(text, from, to, &|before, after, literal_after| {
        // A word before a parenthesis calls a function, whatever the columns are called; one behind
        // a cast or before a literal is a type.
        after != Some("(")
            && !literal_after
            && before.is_none_or(|before| before != "::" && !before.eq_ignore_ascii_case("as"))
    })
}

/// A trigger's condition with a column of OLD and NEW renamed.
pub(crate) fn rename_in_rows(text: &str, from: &str, to: &str) -> Result<String> {
    renamed(text, from, to, &|before, _, _| before == Some("."))
}

/// Whether a word is a column, by what stands before it and after it, and by whether the latter is
/// a string.
type IsColumn<'i> = dyn Fn(Option<&str>, Option<&str>, bool) -> bool + 'i;

/// A text with some words that are `from` become `to`.
fn renamed(text: &str, from: &str, to: &str, is_column: &IsColumn<'_>) -> Result<String> {
    let mut renamed = String::with_capacity(text.len());
    let mut copied = 0;
    let lexemes = lexemes(text)?;
    let symbol = |at: usize| lexemes.get(at).map(|lexeme| &text[lexeme.range.clone()]);
    for (place, lexeme) in lexemes.iter().enumerate() {
        let LexemeKind::Word { value, .. } = &lexeme.kind else {
            continue;
        };
        let literal_after =
            lexemes.get(place + 1).is_some_and(|next| matches!(next.kind, LexemeKind::String(_)));
        let before = place.checked_sub(1).and_then(symbol);
        if value == from && is_column(before, symbol(place + 1), literal_after) {
            renamed.push_str(&text[copied..lexeme.range.start]);
            renamed.push_str(&archipel_sql::catalog::names::quote_identifier(to));
            copied = lexeme.range.end;
        }
    }
    renamed.push_str(&text[copied..]);
    Ok(renamed)
}

/// Whether a table's condition text names the column.
pub(crate) fn text_uses_column(text: &str, table: &Table, column: u16) -> Result<bool> {
    let expression = archipel_sql::parser::parse_expression_text(text)?;
    Ok(columns_used(&expression, &table.name, &table.columns)?.contains(&column))
}

/// The collation of an expression over a table's row, if it is not the default: that of a column it reads.
pub(crate) fn collation(text: &str, table: &Table) -> Result<Option<Oid>> {
    let expression = archipel_sql::parser::parse_expression_text(text)?;
    let used = columns_used(&expression, &table.name, &table.columns)?;
    Ok(used.iter().find_map(|place| table.columns.get(usize::from(*place))?.collation))
}

/// The value of a default that is a constant, read and converted as the session has it: what rows take
/// that were there before their column. `None`: it is to be computed.
pub(crate) fn constant(text: &str, ty: Type, work: &Work<'_>) -> Result<Option<OwnedCell>> {
    let expression = archipel_sql::parser::parse_expression_text(text)?;
    let mut env = BindEnv::new(&work.catalog, work.search_path(), work.env.context);
    env.params_fixed = true;
    // The modifier comes last, but where it says what a literal means.
    let typmod = if ty.oid == Oid::INTERVAL { ty.typmod } else { -1 };
    let bound = match bind_expression(&expression.expr, &mut env, Some(Type { oid: ty.oid, typmod })) {
        Ok(bound) => bound,
        // A literal that cannot be read; its place is one in the text.
        Err(mut error) if error.state().as_str().starts_with("22") => {
            error.fields_mut().position = None;
            return Err(error);
        }
        // Whoever binds it in its place tells what is wrong with it.
        Err(_) => return Ok(None),
    };
    let Some(value) = unchanging_value(&bound, work) else { return Ok(None) };
    let value = archipel_sql::typmod::coerce_typmod(value, ty, false)?;
    let mut space = Vec::new();
    Ok(Some(OwnedCell::from(datum_to_cell(&value, ty, &mut space)?)))
}

/// Whether a default may answer differently for each row, or has effects.
pub(crate) fn is_volatile_default(text: &str, ty: Type, work: &Work<'_>) -> Result<bool> {
    let expression = archipel_sql::parser::parse_expression_text(text)?;
    let mut env = BindEnv::new(&work.catalog, work.search_path(), work.env.context);
    env.params_fixed = true;
    let bound = bind_expression(&expression.expr, &mut env, Some(Type::of(ty.oid)));
    // Whoever binds it in its place tells what is wrong with it.
    Ok(bound.map_or(true, |bound| is_volatile(&bound)))
}

/// The value of an expression that has the same one for ever, if it has one.
fn unchanging_value(bound: &BoundExpr, work: &Work<'_>) -> Option<Datum> {
    let mut unchanging = true;
    visit_expr(bound, 0, &mut |part, _| {
        unchanging &= match &part.kind {
            ExprKind::Const(_) | ExprKind::Relabel(_) => true,
            ExprKind::Call { function, .. } => function.function.volatility == Volatility::Immutable,
            _ => false,
        };
        unchanging
    });
    let inputs = RouteInputs { params: &[], variables: &[], functions: work.env.context };
    if unchanging { evaluate(bound, &inputs) } else { None }
}

/// A default that is a literal alone takes its meaning from its column's type, one of time or of names: when
/// that changes, the one it had is written behind it.
pub(crate) fn typed_default(text: &str, ty: Type, work: &Work<'_>) -> Result<Option<String>> {
    let expression = archipel_sql::parser::parse_expression_text(text)?;
    let alone = matches!(&expression.expr, Expr::Value(literal) if matches!(
        literal.value,
        Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_) | Value::DollarQuotedString(_)
    ));
    let name = match (work.catalog.user_type_of(ty.oid), work.catalog.table_of_row_type(ty.oid)) {
        (Some(user), _) => {
            let suffix = if ty.oid == user.array_type() { "[]" } else { "" };
            format!("{}{suffix}", stored_type(user.oid, &user.name))
        }
        (None, Some(table)) => stored_type(ty.oid, &table.name),
        (None, None) => BuiltIn.format_type(Type::of(ty.oid)),
    };
    Ok(alone.then(|| format!("{text}::{name}")))
}
