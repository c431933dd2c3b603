//! Schemas that a definition looks into by name: whoever writes it must be allowed to. Those who use what
//! was defined are not asked again ([`crate::bind::BindEnv::is_settled`]).

use archipel_sql::catalog::names::{is_own_temporary_schema, parse_name_text};
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
    // A DROP has no tables that a word before a point could be the name of.
    let first = parts.first().map(|part| &part.kind);
    let all = matches!(first, Some(LexemeKind::Word { value, .. }) if value == "drop");
    let asked = Asked { rights, search_path: env.search_path, all };
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
                asked.require(schema, name)?;
            }
            (LexemeKind::String(text), _) if is_name(&parts, at) => {
                if let Ok(name) = parse_name_text(text)
                    && let Some(schema) = &name.schema
                {
                    asked.require(schema, &name.name)?;
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

/// Who looks into schemas, and for what.
struct Asked<'a> {
    rights: Authority<'a>,
    search_path: &'a [String],
    /// Also for what is not there.
    all: bool,
}

impl Asked<'_> {
    /// A word before a point may be the name of a table in the statement: it is a schema's if what comes
    /// behind is in that.
    fn require(&self, schema: &str, name: &str) -> Result<()> {
        let own = is_own_temporary_schema(schema, self.search_path);
        if own || !(self.all || is_there(self.rights.catalog, schema, name)) {
            return Ok(());
        }
        self.rights.require_schema(schema, Privileges::USAGE)
    }
}

fn is_there(catalog: &Catalog, schema: &str, name: &str) -> bool {
    catalog.schema_exists(schema)
        && (catalog.relation(Some(schema), name, &[]).is_some()
            || !catalog.routines(Some(schema), name, &[]).is_empty()
            || catalog.user_type(Some(schema), name, &[]).is_some())
}
