//! GROUP BY with its sets, DISTINCT ON, and locking clauses.

use archipel_sql::ast::{RowLockWait, row_lock};
use sqlparser::ast::{GroupByExpr, LockClause, TableFactor, TableWithJoins};

use super::query::{Page, Shown};
use super::*;
use crate::bind::query::grouping::nested_sets;

/// Whether an element of GROUP BY is a set of several.
fn is_set(expr: &Expr) -> bool {
    matches!(expr, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_))
}

impl Deparser<'_, '_> {
    pub(super) fn group_by(
        &mut self,
        clause: &GroupByExpr,
        targets: &[Shown],
        page: &mut Page,
    ) -> Option<()> {
        let GroupByExpr::Expressions(exprs, modifiers) = clause else { return None };
        if !modifiers.is_empty() {
            return None;
        }
        let mut parts = Vec::new();
        for expr in exprs {
            match expr {
                // The empty set adds nothing to others.
                Expr::Tuple(items) if items.is_empty() => {}
                expr if is_set(expr) => parts.push(self.grouping_set(expr, targets)?),
                // One after the other.
                Expr::Tuple(items) => {
                    for item in items {
                        parts.push(self.key(item, targets, Clause::GroupBy)?);
                    }
                }
                expr => parts.push(self.key(expr, targets, Clause::GroupBy)?),
            }
        }
        if parts.is_empty() && !exprs.is_empty() {
            parts.push("()".to_owned());
        }
        if !parts.is_empty() {
            page.clause(" GROUP BY ", 1);
            page.push(&parts.join(", "));
        }
        Some(())
    }

    fn grouping_set(&mut self, expr: &Expr, targets: &[Shown]) -> Option<String> {
        let (word, elements, bare) = match expr {
            Expr::Tuple(_) => return Some("()".to_owned()),
            Expr::Rollup(elements) => ("ROLLUP(", elements, true),
            Expr::Cube(elements) => ("CUBE(", elements, true),
            Expr::GroupingSets(elements) => ("GROUPING SETS (", elements, false),
            _ => return None,
        };
        let mut parts = Vec::with_capacity(elements.len());
        for element in elements {
            parts.push(self.grouping_element(element, targets, bare)?);
        }
        Some(format!("{word}{})", parts.join(", ")))
    }

    /// `bare`: one key alone stands without parentheses.
    fn grouping_element(&mut self, element: &[Expr], targets: &[Shown], bare: bool) -> Option<String> {
        if let Some(nested) = nested_sets(element) {
            return self.grouping_set(&nested, targets);
        }
        if let [nested @ (Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_))] = element {
            return self.grouping_set(nested, targets);
        }
        let mut keys = Vec::new();
        for expr in element {
            match expr {
                Expr::Tuple(items) => {
                    for item in items {
                        keys.push(self.key(item, targets, Clause::GroupBy)?);
                    }
                }
                expr => keys.push(self.key(expr, targets, Clause::GroupBy)?),
            }
        }
        match &keys[..] {
            [only] if bare => Some(only.clone()),
            keys => Some(format!("({})", keys.join(", "))),
        }
    }

    /// GROUPING(…).
    pub(super) fn grouping_call(&mut self, function: &Function) -> Option<Piece> {
        let mut texts = Vec::new();
        for expr in super::gathered::plain_arguments(function)? {
            let bound = self.bind(expr)?;
            let piece = self.piece(expr, &bound, true)?;
            texts.push(self.alone(piece));
        }
        Some(Piece::simple(format!("GROUPING({})", texts.join(", "))))
    }

    /// The keys of DISTINCT ON: first those that rows are sorted by (`sorted`), in that order.
    pub(super) fn distinct_keys(
        &mut self,
        exprs: &[Expr],
        sorted: &[String],
        targets: &[Shown],
    ) -> Option<Vec<String>> {
        let mut written = Vec::with_capacity(exprs.len());
        for expr in exprs {
            written.push(self.key(expr, targets, Clause::DistinctOn)?);
        }
        let mut keys: Vec<String> = Vec::with_capacity(written.len());
        for text in sorted {
            if !written.contains(text) {
                break;
            }
            if !keys.contains(text) {
                keys.push(text.clone());
            }
        }
        for text in written {
            if !keys.contains(&text) {
                keys.push(text);
            }
        }
        Some(keys)
    }

    /// Which rows are locked, a line for each table.
    pub(super) fn locks(
        &mut self,
        clauses: &[LockClause],
        from: &[TableWithJoins],
        page: &mut Page,
    ) -> Option<()> {
        let mut lines: Vec<(String, String)> = Vec::new();
        for clause in clauses {
            let lock = row_lock(clause).ok()?;
            let wait = match lock.wait {
                RowLockWait::Block => "",
                RowLockWait::NoWait => " NOWAIT",
                RowLockWait::SkipLocked => " SKIP LOCKED",
            };
            let names: Vec<String> = match &lock.of {
                Some(name) => vec![self.name_of(name)?],
                None => {
                    // What is locked within other queries is said there.
                    let mut factors = from.iter().flat_map(|item| {
                        std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation))
                    });
                    if !factors.all(|factor| matches!(factor, TableFactor::Table { .. })) {
                        return None;
                    }
                    self.names_now()?
                }
            };
            for name in names {
                // Two for one table become one, which is not shown here.
                if lines.iter().any(|(known, _)| *known == name) {
                    return None;
                }
                let text = format!(" FOR {} OF {}{wait}", lock.strength.as_str(), self.identifier(&name));
                lines.push((name, text));
            }
        }
        for (_, line) in lines {
            page.clause(&line, 0);
        }
        Some(())
    }
}
