//! Schemas that a definition looks into by name: whoever writes it must be allowed to. Those who use what
//! was defined are not asked again ([`crate::bind::BindEnv::is_settled`]).

use archipel_sql::catalog::names::{is_temporary_schema, parse_name_text};
use archipel_sql::catalog::{Authority, Catalog, Privileges};
use archipel_sql::error::Result;
use archipel_sql::parser::{Lexeme, LexemeKind, lexemes};

use crate::DdlEnv;

/// 42501 if a definition's text names what is in a schema that the role in force may not look into.
pub fn require_schemas(text: &str, env: &DdlEnv<'_>) -> Result<()> {
    let rights = Authority { catalog: env.catalog, role: env.roles.current };
    if env.system || rights.is_superuser() || !text.contains('.') {
        return Ok(());
    }
    // Whoever reads the statement tells what is wrong with it.
    let Ok(parts) = lexemes(text) else { return Ok(()) };
    let is_symbol = |at: usize, symbol: &str| {
        let part: Option<&Lexeme> = parts.get(at);
        part.is_some_and(|part| part.kind == LexemeKind::Symbol && &text[part.range.clone()] == symbol)
    };
    for (at, part) in parts.iter().enumerate() {
        let begins = at.checked_sub(1).is_none_or(|before| !is_symbol(before, "."));
        match (&part.kind, parts.get(at + 2).map(|part| &part.kind)) {
            (LexemeKind::Word { value: schema, .. }, Some(LexemeKind::Word { value: name, .. }))
                if begins && is_symbol(at + 1, ".") =>
            {
                require(schema, name, &rights)?;
            }
            (LexemeKind::String(text), _) if is_name(&parts, at) => {
                if let Ok(name) = parse_name_text(text)
                    && let Some(schema) = &name.schema
                {
                    require(schema, &name.name, &rights)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a literal is the name of a relation or a type: the argument of a function of sequences, or cast.
fn is_name(parts: &[Lexeme], at: usize) -> bool {
    let word = |at: Option<usize>| match at.and_then(|at| parts.get(at)).map(|part| &part.kind) {
        Some(LexemeKind::Word { value, .. }) => Some(value.as_str()),
        _ => None,
    };
    matches!(word(at.checked_sub(2)), Some("nextval" | "currval" | "setval"))
        || matches!(word(at.checked_add(2)), Some("regclass" | "regtype" | "regproc"))
}

/// A word before a point may be the name of a table in the statement: it is a schema's if what comes behind
/// is in that.
fn require(schema: &str, name: &str, rights: &Authority<'_>) -> Result<()> {
    if is_temporary_schema(schema) || !is_there(rights.catalog, schema, name) {
        return Ok(());
    }
    rights.require_schema(schema, Privileges::USAGE)
}

fn is_there(catalog: &Catalog, schema: &str, name: &str) -> bool {
    catalog.schema_exists(schema)
        && (catalog.relation(Some(schema), name, &[]).is_some()
            || !catalog.routines(Some(schema), name, &[]).is_empty()
            || catalog.user_type(Some(schema), name, &[]).is_some())
}
