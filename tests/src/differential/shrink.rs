//! The least of a statement that still makes two servers differ.

use super::expression::{Expression, Kind, Part};
use super::statement::Statement;

/// Every statement that is a step smaller, boldest first.
pub fn smaller(statement: &Statement) -> Vec<Statement> {
    let mut steps = Vec::new();
    for (place, clause) in statement.clauses.iter().enumerate() {
        if clause.optional {
            let mut less = statement.clone();
            less.clauses.remove(place);
            steps.push(less);
        }
        if clause.fewer && clause.items.len() > 1 {
            for item in 0..clause.items.len() {
                let mut less = statement.clone();
                less.clauses[place].items.remove(item);
                steps.push(less);
            }
        }
    }
    for (place, clause) in statement.clauses.iter().enumerate() {
        for (item, expression) in clause.items.iter().enumerate() {
            for replacement in simpler(expression) {
                let mut less = statement.clone();
                less.clauses[place].items[item] = replacement;
                steps.push(less);
            }
        }
    }
    steps
}

/// Simpler expressions of the same kind: one of its own parts, a plain value, or itself with one
/// child simplified.
fn simpler(expression: &Expression) -> Vec<Expression> {
    let mut found = Vec::new();
    if expression.size() == 1 {
        return found;
    }
    let mut inner = Vec::new();
    collect(expression, expression.kind, &mut inner);
    inner.sort_by_key(Expression::size);
    found.extend(inner);
    let aggregate = expression.sql();
    let calls =
        ["count(", "sum(", "avg(", "min(", "max(", "bool_and(", "lag(", "first_value(", "last_value("];
    if !calls.iter().any(|call| aggregate.starts_with(call)) {
        found.push(Expression::leaf(expression.kind, plain(expression.kind)));
        found.push(Expression::leaf(expression.kind, format!("NULL::{}", expression.kind.name())));
    }
    for (place, part) in expression.parts.iter().enumerate() {
        let Part::Child(child) = part else { continue };
        for simple in simpler(child) {
            let mut less = expression.clone();
            less.parts[place] = Part::Child(simple);
            found.push(less);
        }
    }
    found.retain(|simple| simple.size() < expression.size());
    found
}

fn collect(expression: &Expression, kind: Kind, found: &mut Vec<Expression>) {
    for child in expression.children() {
        if child.kind == kind {
            found.push(child.clone());
        }
        collect(child, kind, found);
    }
}

fn plain(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "1",
        Kind::Big => "1::bigint",
        Kind::Numeric => "1.5",
        Kind::Float => "1.5::float8",
        Kind::Text => "'a'",
        Kind::Bool => "true",
        Kind::Date => "date '2024-02-29'",
        Kind::Timestamp => "timestamp '2024-03-01 12:30'",
        Kind::Interval => "interval '1 day'",
    }
}
