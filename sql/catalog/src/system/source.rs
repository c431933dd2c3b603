//! What the views and functions see of the session that asks, and what it shows them.

use sqlparser::ast::Expr;

use crate::catalog::stored_name::with_names;
use crate::catalog::{Catalog, Routine, SessionRoles, Table, View};
use crate::datum::Datum;
use crate::function::FunctionContext;
use crate::parser::parse_expression;
use crate::style::Quoting;
use crate::types::{Oid, Type};

/// A kept expression that is to be shown.
#[derive(Clone, Copy, Debug)]
pub struct KeptExpression<'k> {
    pub text: &'k str,
    pub subject: Subject,
    /// What a default becomes.
    pub target: Option<Type>,
    /// Without the parentheses that can be done without.
    pub pretty: bool,
    /// It was shown to the session before: names stand in it, not ids.
    pub is_shown: bool,
}

/// What a kept expression speaks of.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    Nothing,
    /// A row of a table.
    Row(Oid),
    /// A row of a table before and after a change: `old` and `new`.
    Change(Oid),
    /// The VALUE of a domain over a type.
    Value(Type),
}

impl<'k> KeptExpression<'k> {
    /// One over a table's row.
    pub fn over(table: &'k Table, text: &'k str, pretty: bool) -> KeptExpression<'k> {
        KeptExpression { text, subject: Subject::Row(table.oid), target: None, pretty, is_shown: false }
    }
}

impl KeptExpression<'_> {
    /// The expression as it was written, with the names that its objects have now; `None` where nothing has
    /// to change.
    pub fn as_written(&self, catalog: &Catalog, search_path: &[String]) -> Option<String> {
        let named = with_names(self.text, catalog, search_path).ok().filter(|named| named != self.text)?;
        let is_call = matches!(parse_expression(&named), Ok(Expr::Function(_)));
        Some(if is_call { named } else { format!("({named})") })
    }
}

/// What can be changed through a relation without the help of triggers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changeable {
    pub insert: bool,
    pub update: bool,
    pub delete: bool,
    /// For each column, whether it can be given another value.
    pub columns: Vec<bool>,
}

impl Changeable {
    /// Whether a column is one that PostgreSQL calls updatable: rows can be deleted, too.
    pub fn is_updatable(&self, column: usize) -> bool {
        self.update && self.delete && self.columns.get(column) == Some(&true)
    }
}

/// What the views and functions see of the session that asks.
pub trait SystemSource {
    fn catalog(&self) -> &Catalog;
    fn search_path(&self) -> &[String];
    /// In whose name is asked.
    fn roles(&self) -> SessionRoles;
    /// What the database is called.
    fn database(&self) -> &str {
        self.catalog().database_name()
    }
    /// What functions behind relations may ask.
    fn context(&self) -> FunctionContext<'_> {
        FunctionContext::detached()
    }
    /// Which names are in quotes in what is made of definitions.
    fn quoting(&self) -> Quoting {
        self.context().style().quoting
    }
    /// An expression as PostgreSQL shows it; `None` for one that is shown as it was written.
    fn shown(&self, _expression: &KeptExpression<'_>) -> Option<String> {
        None
    }
    /// A view's query as PostgreSQL shows it; `None` for one that is shown as it was written.
    fn shown_view(&self, _view: &Table, _pretty: bool) -> Option<String> {
        None
    }
    /// The expression of a policy as PostgreSQL shows it; `None` for one that is shown as it was written.
    fn shown_policy(&self, _query: &View) -> Option<String> {
        None
    }
    /// What of its rows a view lets statements change by itself.
    fn changeable(&self, _view: &Table) -> Changeable {
        Changeable::default()
    }
    /// The body of a routine that is written without quotes, as PostgreSQL shows it; `None` for what
    /// has none.
    fn shown_body(&self, _routine: &Routine) -> Option<String> {
        None
    }
    /// The catalogs of the other databases: what they have to do with roles is everybody's to see.
    fn other_catalogs(&self) -> Vec<Catalog> {
        Vec::new()
    }
    /// Rows of pg_locks, in its columns' order.
    fn locks(&self) -> Vec<Vec<Datum>> {
        Vec::new()
    }
    /// Rows stored in a table, as far as they are counted (pg_class.reltuples).
    fn row_count(&self, _table: &Table) -> Option<f32> {
        None
    }
    /// What they take, in pages (pg_class.relpages).
    fn page_count(&self, _table: &Table) -> Option<i32> {
        None
    }
    /// What a sequence gave last, if it gave anything; `None` also where nobody may know.
    fn sequence_last_value(&self, _sequence: Oid) -> Option<i64> {
        None
    }
    /// The value that a sequence stands at, whether it gave that or is going to, whoever asks.
    fn sequence_position(&self, _sequence: Oid) -> Option<i64> {
        None
    }
}
