//! The least of a statement that still makes two servers differ.

use super::expression::{Expression, Part};
use super::kind::Kind;
use super::statement::{Statement, Way};

/// Every statement that is a step smaller, boldest first. Some make no sense, which both servers
/// will find.
pub fn smaller(statement: &Statement) -> Vec<Statement> {
    let mut steps = Vec::new();
    if statement.way != Way::Text {
        steps.push(Statement { way: Way::Text, ..statement.clone() });
    }
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
    found.push(Expression::value(expression.kind, expression.kind.values().first().copied()));
    found.push(Expression::value(expression.kind, None));
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
