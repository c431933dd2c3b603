//! What names and literals of a text were found to mean while it was bound, for whoever keeps the text
//! ([`archipel_sql::catalog::stored_name`]).

use std::any::Any;
use std::sync::Arc;

use archipel_sql::catalog::stored_name::{
    has_ids, stored_literal, stored_routine, stored_sequence, stored_type, written_name,
};
use archipel_sql::catalog::{Catalog, Relation, TableKind};
use archipel_sql::datum::Datum;
use archipel_sql::error::Result;
use archipel_sql::function::{FunctionContext, SessionHost};
use archipel_sql::io;
use archipel_sql::parser::{LexemeKind, lexemes};
use archipel_sql::record::RowType;
use archipel_sql::type_table::{TypeNames, element_of};
use archipel_sql::types::{Oid, Type};
use rustc_hash::FxHashMap;

/// A name or a literal of the text that was bound, and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The byte that it begins at.
    pub at: usize,
    pub named: Named,
}

/// What has an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    Routine(Oid),
    /// A user's type, or that of a relation's rows: itself where an array of it is named.
    Type(Oid),
    /// In FROM.
    Sequence(Oid),
    /// A literal that is the name of an object, or a label of an enum.
    Literal(Oid),
    /// A literal with names in it, which is this with their ids: a row's, or an array of names or labels.
    Within(String),
    /// A literal that names nothing.
    Plain,
}

/// What the literal of a value names within it, to a session.
pub fn names_within(value: &Datum, ty: Type, catalog: &Catalog, context: &FunctionContext<'_>) -> Named {
    let session = WithIds { catalog, session: context.session };
    let written = io::to_text(value, ty, &FunctionContext { now: context.now, session: &session });
    if has_ids(&written) { Named::Within(written) } else { Named::Plain }
}

/// A session that writes ids for names.
struct WithIds<'a> {
    catalog: &'a Catalog,
    session: &'a dyn SessionHost,
}

impl SessionHost for WithIds<'_> {
    fn current_catalog(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.session.current_catalog()
    }

    fn type_names(&self) -> &dyn TypeNames {
        self.session.type_names()
    }

    fn row_type(&self, ty: Oid) -> Option<Arc<dyn RowType>> {
        self.session.row_type(ty)
    }

    fn call(&self, name: &str, args: &[Datum]) -> Result<Datum> {
        let writes = matches!(
            name,
            "enum_out" | "regclassout" | "regtypeout" | "regprocout" | "regprocedureout" | "regnamespaceout"
        );
        match args {
            [Datum::Oid(oid)] if writes && is_of_user(*oid, self.catalog) => {
                Ok(Datum::text(&stored_literal(*oid)))
            }
            _ => self.session.call(name, args),
        }
    }
}

/// A text with ids in the place of what it names, as binding it found.
pub fn with_ids(text: &str, meanings: &[Meaning], catalog: &Catalog) -> Result<String> {
    if meanings.iter().all(|meaning| meaning.named == Named::Plain) {
        return Ok(text.to_owned());
    }
    let named: FxHashMap<usize, &Named> =
        meanings.iter().map(|meaning| (meaning.at, &meaning.named)).collect();
    let parts = lexemes(text)?;
    let symbol = |at: usize| parts.get(at).map(|part| &text[part.range.clone()]);
    let (mut result, mut copied) = (String::with_capacity(text.len() + 32), 0);
    for (first, part) in parts.iter().enumerate() {
        if part.range.start < copied {
            continue;
        }
        let Some(named) = named.get(&part.range.start).copied() else { continue };
        let mut last = first;
        while matches!(part.kind, LexemeKind::Word { .. }) && symbol(last + 1) == Some(".") {
            last += 2;
        }
        // A literal may go on in the next line.
        let is_literal =
            |at: usize| matches!(parts.get(at).map(|part| &part.kind), Some(LexemeKind::String(_)));
        while is_literal(first) && is_literal(last + 1) {
            last += 1;
        }
        let written = match (parts.get(last).map(|part| &part.kind), named) {
            (Some(LexemeKind::Word { value, .. }), Named::Routine(oid)) => {
                Some(stored_routine(*oid, written_name(value)))
            }
            (Some(LexemeKind::Word { value, .. }), Named::Type(oid)) => {
                Some(stored_type(*oid, written_name(value)))
            }
            (Some(LexemeKind::Word { value, .. }), Named::Sequence(oid)) => {
                Some(stored_sequence(*oid, written_name(value)))
            }
            (Some(LexemeKind::String(_)), Named::Literal(oid)) if is_of_user(*oid, catalog) => {
                Some(format!("'{}'", stored_literal(*oid)))
            }
            (Some(LexemeKind::String(_)), Named::Within(with_ids)) => {
                Some(format!("'{}'", with_ids.replace('\'', "''")))
            }
            _ => None,
        };
        if let Some(written) = written {
            result.push_str(&text[copied..part.range.start]);
            result.push_str(&written);
            copied = parts[last].range.end;
        }
    }
    result.push_str(&text[copied..]);
    Ok(result)
}

/// Whether an object may get another name.
fn is_of_user(oid: Oid, catalog: &Catalog) -> bool {
    let relation = || match catalog.relation_by_oid(oid) {
        Some(Relation::Table(table)) => table.kind != TableKind::System,
        found => found.is_some(),
    };
    let ty = element_of(oid).unwrap_or(oid);
    let row_type = || catalog.table_of_row_type(ty).is_some_and(|table| table.kind != TableKind::System);
    catalog.enum_label(oid).is_some()
        || catalog.routine_by_oid(oid).is_some()
        || catalog.user_type_by_oid(ty).is_some()
        || catalog.schema_by_oid(oid).is_some()
        || relation()
        || row_type()
}
