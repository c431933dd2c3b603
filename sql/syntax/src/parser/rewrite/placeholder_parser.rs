//! Parts of a statement that reached sqlparser's grammar as names ([`super::placeholder`]), read by productions of
//! our own: targets with subscripts, SEARCH and CYCLE, the inference of ON CONFLICT.

use sqlparser::ast::{Expr, Ident};

use super::search_cycle::CLAUSES;
use super::subscripted_target::ELEMENT;
use crate::error::Result;
use crate::parser::cursor::Cursor;

/// How far the positions in a part are from those in its statement, where lines and columns are alike.
#[derive(Clone, Copy)]
pub(in crate::parser) struct Shift(i64);

impl Shift {
    /// Where in the statement a position of the part is.
    pub fn of(self, position: u32) -> u32 {
        u32::try_from(i64::from(position) + self.0).unwrap_or(position)
    }
}

/// Reads the part that a name holds, behind its mark. Lines and columns count as in the statement, and
/// so do the places of errors; positions that the production keeps are to be shifted.
pub(in crate::parser) fn read<T>(
    held: &str,
    production: impl FnOnce(&mut Cursor<'_>, Shift) -> Result<T>,
) -> Result<T> {
    let mut parts = held.splitn(4, ' ');
    let mut number = || parts.next().and_then(|number| number.parse::<usize>().ok()).unwrap_or(0);
    let (line, column, before) = (number().saturating_sub(1), number().saturating_sub(1), number());
    let text = parts.next().unwrap_or_default();
    let shift = Shift(before as i64 - (line + column) as i64);
    let placed = "\n".repeat(line) + &" ".repeat(column) + text;
    crate::parser::production::whole(&placed, |cursor| production(cursor, shift)).map_err(|mut error| {
        if let Some(position) = &mut error.fields_mut().position {
            *position = shift.of(*position);
        }
        error
    })
}

/// The target that a name holds: a column and its subscripts, whose places are those in the
/// statement.
pub fn assigned_element(name: &str) -> Option<Result<Expr>> {
    let read = |held| read(held, |cursor, _| cursor.expression().map(|expression| expression.expr));
    name.strip_prefix(ELEMENT).map(read)
}

/// The keys and the condition of such a text.
pub fn parse_inference(text: &str) -> Result<(Vec<Expr>, Option<Expr>)> {
    crate::parser::production::whole(text, |cursor: &mut Cursor<'_>| {
        let elements = cursor.parenthesized(Cursor::index_element)?;
        let condition = if cursor.take("where") { Some(cursor.expression()?.expr) } else { None };
        let keys = elements
            .into_iter()
            .map(|element| match element.key {
                crate::ast::IndexKey::Column(name) => Expr::Identifier(Ident::with_quote('"', name)),
                crate::ast::IndexKey::Expression(expression) => expression.expr,
            })
            .collect();
        Ok((keys, condition))
    })
}

/// `SEARCH DEPTH FIRST BY columns SET sequence`.
#[derive(Clone, Debug)]
pub struct SearchClause {
    pub breadth: bool,
    pub columns: Vec<String>,
    /// The column that says the order.
    pub sequence: String,
    /// Where it stands in the statement.
    pub position: Option<u32>,
}

/// `CYCLE columns SET mark [TO value DEFAULT value] USING path`.
#[derive(Clone, Debug)]
pub struct CycleClause {
    pub columns: Vec<String>,
    pub mark: String,
    /// The mark of a row that closes a cycle, and that of others.
    pub values: Option<(Expr, Expr)>,
    pub path: String,
    /// Where it stands in the statement.
    pub position: Option<u32>,
}

/// The clauses after a recursive query.
#[derive(Clone, Debug, Default)]
pub struct RecursionClauses {
    pub search: Option<SearchClause>,
    pub cycle: Option<CycleClause>,
}

/// The clauses that a name holds.
pub fn recursion_clauses(name: &str) -> Option<Result<RecursionClauses>> {
    name.strip_prefix(CLAUSES).map(|held| read(held, |cursor, shift| cursor.recursion_clauses(shift)))
}

impl Cursor<'_> {
    fn recursion_clauses(&mut self, shift: Shift) -> Result<RecursionClauses> {
        let mut clauses = RecursionClauses::default();
        let position = shift.of(self.position());
        if self.take("search") {
            let breadth = self.take("breadth");
            if !breadth {
                self.expect("depth")?;
            }
            self.expect("first")?;
            self.expect("by")?;
            let columns = self.list(Cursor::identifier)?;
            self.expect("set")?;
            let sequence = self.identifier()?;
            clauses.search = Some(SearchClause { breadth, columns, sequence, position: Some(position) });
        }
        let position = shift.of(self.position());
        if self.take("cycle") {
            let columns = self.list(Cursor::identifier)?;
            self.expect("set")?;
            let mark = self.identifier()?;
            let values = if self.take("to") {
                let value = self.expression()?.expr;
                self.expect("default")?;
                Some((value, self.expression()?.expr))
            } else {
                None
            };
            self.expect("using")?;
            let path = self.identifier()?;
            clauses.cycle = Some(CycleClause { columns, mark, values, path, position: Some(position) });
        }
        Ok(clauses)
    }
}
