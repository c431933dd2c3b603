//! Which variables statements assign to.

use crate::compile::compiler::Compiler;
use crate::plpgsql::ast::{Fragment, Statement, StatementKind, Target, VariableId};
use crate::plpgsql::lexer;
use crate::plpgsql::lexer::TokenKind;

/// Visits statements, nested ones included.
pub(in crate::compile) fn walk(statements: &[Statement], visit: &mut dyn FnMut(&Statement)) {
    for statement in statements {
        visit(statement);
        match &statement.kind {
            StatementKind::Block(block) => {
                walk(&block.body, visit);
                for handler in block.exceptions.iter().flat_map(|e| &e.handlers) {
                    walk(&handler.body, visit);
                }
            }
            StatementKind::If { arms, otherwise } => {
                arms.iter().for_each(|(_, body)| walk(body, visit));
                walk(otherwise, visit);
            }
            StatementKind::Case { arms, otherwise, .. } => {
                arms.iter().for_each(|(_, body)| walk(body, visit));
                walk(otherwise.as_deref().unwrap_or_default(), visit);
            }
            StatementKind::Loop { body, .. }
            | StatementKind::While { body, .. }
            | StatementKind::ForInteger { body, .. }
            | StatementKind::ForQuery { body, .. }
            | StatementKind::ForDynamic { body, .. }
            | StatementKind::ForCursor { body, .. }
            | StatementKind::ForEach { body, .. } => walk(body, visit),
            _ => {}
        }
    }
}

/// Variables that statements may assign.
pub(in crate::compile) fn assigned_in(compiler: &Compiler<'_>, statements: &[Statement]) -> Vec<VariableId> {
    assigned_where(compiler, statements, |_| true)
}

/// Variables that statements may assign by such targets, or otherwise than by a target.
pub(in crate::compile) fn assigned_where(
    compiler: &Compiler<'_>,
    statements: &[Statement],
    counts: impl Fn(&Target) -> bool,
) -> Vec<VariableId> {
    let variable = |target: &Target| counts(target).then_some(target.variable);
    let mut assigned = vec![compiler.body.found];
    walk(statements, &mut |statement| match &statement.kind {
        StatementKind::Assign { target, .. } => assigned.extend(variable(target)),
        StatementKind::Block(block) => {
            assigned.extend(&block.declared);
            if let Some(exceptions) = &block.exceptions {
                assigned.extend([exceptions.sqlstate, exceptions.sqlerrm]);
            }
        }
        StatementKind::ForInteger { variable, .. } => assigned.push(*variable),
        StatementKind::ForQuery { targets, .. }
        | StatementKind::ForDynamic { targets, .. }
        | StatementKind::ForEach { targets, .. } => {
            assigned.extend(targets.iter().filter_map(variable));
        }
        StatementKind::ForCursor { record, cursor, .. } => {
            assigned.push(*record);
            let cursor = &compiler.body.variables[*cursor as usize].cursor;
            assigned.extend(cursor.iter().flat_map(|c| &c.args));
        }
        StatementKind::Open { cursor, .. } => {
            assigned.push(*cursor);
            let cursor = &compiler.body.variables[*cursor as usize].cursor;
            assigned.extend(cursor.iter().flat_map(|c| &c.args));
        }
        StatementKind::Fetch { into, .. } => {
            assigned.extend(into.iter().flat_map(|i| &i.targets).filter_map(variable));
        }
        StatementKind::Sql { text, into } => {
            assigned.extend(into.iter().flat_map(|i| &i.targets).filter_map(variable));
            assigned.extend(call_variables(compiler, text));
        }
        StatementKind::Dynamic { into, .. } => {
            assigned.extend(into.iter().flat_map(|i| &i.targets).filter_map(variable));
        }
        StatementKind::GetDiagnostics { items, .. } => {
            assigned.extend(items.iter().filter_map(|(target, _)| variable(target)));
        }
        _ => {}
    });
    assigned.sort_unstable();
    assigned.dedup();
    assigned
}

/// Variables named in a CALL: any of them may be an OUT argument.
fn call_variables(compiler: &Compiler<'_>, text: &Fragment) -> Vec<VariableId> {
    let is_call = text.text.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("call"));
    let Some(tokens) = is_call.then(|| lexer::scan(&text.text).ok()).flatten() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for token in &tokens {
        let name = match &token.kind {
            TokenKind::Word { text, .. } => text.clone(),
            TokenKind::Parameter(number) => format!("${number}"),
            _ => continue,
        };
        if let Some((id, _)) = compiler.body.names.find(text.names, &[&name], &|_| true) {
            found.push(id);
        }
    }
    found
}
