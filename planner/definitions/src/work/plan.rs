//! What a definition is planned in, and what it changes: the plan, its validations, the errors of keys.

use archipel_engine::id::{SequenceId, TreeId};
use archipel_engine::txn::DdlOp;
use archipel_sql::catalog::{
    Catalog, CatalogChange, DrawnOids, Object, ObjectNumbers, RoutineRef, SessionRoles, TableRef,
};
use archipel_sql::datum::Datum;
use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::function::FunctionContext;
use archipel_sql::types::{Oid, Type};

use super::rewrite::Computed;

/// What a definition is planned in.
pub struct DdlEnv<'a> {
    pub catalog: &'a Catalog,
    pub search_path: &'a [String],
    /// For reading the literals of defaults and conditions.
    pub context: &'a FunctionContext<'a>,
    /// Set for migrations: the system's schemas may be changed.
    pub system: bool,
    /// The schema of the session's temporary relations, whether or not there is one yet.
    pub temporary_schema: &'a str,
    pub copies: &'a Copies,
    /// Where what is new gets its numbers from.
    pub numbers: &'a ObjectNumbers,
    /// In whose name it is done.
    pub roles: SessionRoles,
    /// The catalogs of the other databases, for a statement that looks into them: DROP ROLE.
    pub others: &'a [Catalog],
}

/// What a transaction keeps to itself: what it does to these concerns nobody else before its COMMIT.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// Tables that get trees of their own, filled from these, before anything else happens to them.
    pub tables: Vec<TreeId>,
    /// Sequences that become others when they are restarted.
    pub sequences: Vec<SequenceId>,
}

/// Whether a change leaves what is said elsewhere to mean what it meant: texts name types, operators and
/// functions, and their own table's columns.
pub(crate) fn leaves_meanings(change: &CatalogChange) -> bool {
    let CatalogChange::Put(object) = change else { return false };
    matches!(
        object,
        Object::Table(_) | Object::Sequence(_) | Object::Comments(_) | Object::Access(_) | Object::Numbers(_)
    )
}

impl DdlPlan {
    /// Notes an index or a sequence that CREATE TABLE or ALTER TABLE makes. `owner`: its table, or the table
    /// and the column.
    pub(crate) fn imply(&mut self, what: Implied, name: &str, owner: &str) {
        let add = if self.tag == "ALTER TABLE" { "ADD " } else { "" };
        let message = match what {
            Implied::Sequence => {
                format!("{} will create implicit sequence \"{name}\" for serial column \"{owner}\"", self.tag)
            }
            Implied::PrimaryKey | Implied::Unique => {
                let key = if what == Implied::Unique { "UNIQUE" } else { "PRIMARY KEY" };
                let tag = self.tag;
                format!("{tag} / {add}{key} will create implicit index \"{name}\" for table \"{owner}\"")
            }
        };
        self.implied.push((what, message));
    }

    /// What is made without being named, in PostgreSQL's order and words.
    pub fn implied_in_order(&self) -> Vec<SqlError> {
        let mut implied: Vec<&(Implied, String)> = self.implied.iter().collect();
        implied.sort_by_key(|(what, _)| *what);
        let told = |(_, message): &(Implied, String)| {
            SqlError::new(SqlState::SUCCESSFUL_COMPLETION, message.clone())
        };
        implied.into_iter().map(told).collect()
    }
}

impl Copies {
    /// Of tables alone.
    pub fn of_tables(tables: &[TreeId]) -> Copies {
        Copies { tables: tables.to_vec(), sequences: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.sequences.is_empty()
    }
}

/// What a definition of a table makes beside it, in the order PostgreSQL makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Implied {
    Sequence,
    PrimaryKey,
    Unique,
}

/// What a definition changes.
#[derive(Debug, Default)]
pub struct DdlPlan {
    /// Rows of the system catalog.
    pub changes: Vec<CatalogChange>,
    /// For the engine, in this order, after the validations.
    pub operations: Vec<DdlOp>,
    /// Queries over the tables as they are before the operations, and over rows that these are to write,
    /// that must answer no row; the first that does fails the statement with its error.
    pub validations: Vec<Validation>,
    /// For each operation, the columns whose values are computed when it runs.
    pub computed: Vec<Vec<Computed>>,
    /// For the client, in order.
    pub notices: Vec<SqlError>,
    /// What is made without being named, for clients that want to hear it.
    pub implied: Vec<(Implied, String)>,
    /// The command tag.
    pub tag: &'static str,
    /// Routines created or replaced: the caller compiles them before it commits.
    pub routines: Vec<RoutineRef>,
    /// Triggers created, by their tables and names: the caller compiles their conditions before it
    /// commits.
    pub triggers: Vec<(Oid, String)>,
    /// Labels that enums got which were there before: of no use before COMMIT.
    pub added_labels: Vec<Oid>,
    /// Labels that got other numbers: those they had, and those they have.
    pub relabelled: Vec<(Oid, Oid)>,
    /// Queries that find a key which two rows have, for trees that operations fill with what is there.
    pub duplicates: Vec<(TreeId, Validation)>,
    /// The oids of what it makes, nobody else's until this is dropped: not before it is committed and published.
    pub drawn: DrawnOids,
    /// Indexes that are dropped and made again elsewhere, by their trees, with the numbers of trees that may
    /// take the entries while the others are in use.
    pub moved_indexes: Vec<(TreeId, TreeId)>,
    /// Names of the trees in `operations`, for [`DdlPlan::duplicate_keys`].
    pub(super) unique_names: Vec<(TreeId, String)>,
}

/// A condition on rows that are there already.
#[derive(Debug)]
pub struct Validation {
    /// A query that finds an offending row.
    pub query: String,
    pub error: SqlError,
    /// Where the row is a key, as texts: what is wrong with it.
    pub key: Option<FaultyKey>,
    /// Where its names are looked up, if not where the session looks.
    pub search_path: Option<&'static [String]>,
    /// The rows that are to be written which it names in FROM.
    pub written: Vec<Written>,
    /// Whether it is about each of those by itself.
    pub each: bool,
    /// Whether rows are looked at that whoever makes the definition sees, and no others.
    pub by_policies: bool,
    /// The query to use instead where what is referenced is yet to be written.
    pub(super) apart: Option<String>,
}

/// Some columns of rows that operations are to write, as a validation names them in FROM.
#[derive(Debug)]
pub struct Written {
    pub name: String,
    /// Their table, with no other columns.
    pub table: TableRef,
    pub types: Vec<Type>,
    pub parts: Vec<WrittenPart>,
}

/// Those of one table.
#[derive(Clone, Debug)]
pub struct WrittenPart {
    pub tree: TreeId,
    /// The places of the columns in the rows as the last operation leaves them.
    pub places: Vec<u16>,
}

impl Validation {
    pub(super) fn new(query: String, error: SqlError) -> Validation {
        Validation {
            query,
            error,
            key: None,
            search_path: None,
            written: Vec::new(),
            each: false,
            by_policies: false,
            apart: None,
        }
    }
}

/// A key, for the detail of an error about it.
#[derive(Clone, Debug)]
pub struct FaultyKey {
    pub columns: Vec<String>,
    pub fault: KeyFault,
    /// Whether nobody is told its values: policies may hide the rows that have them.
    pub hidden: bool,
}

/// What may be wrong with a key.
#[derive(Clone, Debug)]
pub enum KeyFault {
    /// It is not in this table.
    Missing(String),
    /// This table refers to it, and it goes.
    Referenced(String),
    /// Two rows have it.
    Duplicated,
}

impl FaultyKey {
    /// `Key (a, b)=(1, 2) is not present in table "t".`, `… is still referenced from table "t".`, or
    /// `… is duplicated.` Without values, where those are hidden.
    pub fn detail(&self, values: &[Datum]) -> String {
        let shown = |value: &Datum| match value {
            Datum::Text(text) => text.to_string(),
            _ => "null".to_owned(),
        };
        let values: Vec<String> = values.iter().map(shown).collect();
        let columns = self.columns.join(", ");
        let what = match &self.fault {
            KeyFault::Missing(table) => format!("not present in table \"{table}\""),
            KeyFault::Referenced(table) => format!("still referenced from table \"{table}\""),
            KeyFault::Duplicated if self.hidden => return "Duplicate keys exist.".to_owned(),
            KeyFault::Duplicated => "duplicated".to_owned(),
        };
        if self.hidden {
            return format!("Key is {what}.");
        }
        format!("Key ({columns})=({}) is {what}.", values.join(", "))
    }
}

impl DdlPlan {
    /// Whether running the plan would change nothing.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.operations.is_empty()
    }

    /// The errors of an operation that meets two rows of one key, by where: in a table's rows, the
    /// first, or in an index.
    pub fn duplicate_keys(&self, operation: &DdlOp) -> Vec<(TreeId, SqlError)> {
        trees_of(operation).into_iter().map(|tree| (tree, self.duplicate_key(tree))).collect()
    }

    /// The error of two rows of one key in a tree.
    pub fn duplicate_key(&self, tree: TreeId) -> SqlError {
        let name = self.unique_names.iter().find(|(id, _)| *id == tree).map_or("", |(_, name)| name);
        DdlPlan::could_not_create(name).with_detail("Two rows have the same key.")
    }

    pub(super) fn could_not_create(name: &str) -> SqlError {
        SqlError::new(SqlState::UNIQUE_VIOLATION, format!("could not create unique index \"{name}\""))
    }
}

/// The trees an operation fills whose keys may have to be unique, a table's own first.
pub(crate) fn trees_of(operation: &DdlOp) -> Vec<TreeId> {
    match operation {
        DdlOp::CreateIndex { index, .. } => vec![index.id],
        DdlOp::CreateTable(def) | DdlOp::AlterTable { def, .. } | DdlOp::CopyTable { def, .. } => {
            std::iter::once(def.id).chain(def.indexes.iter().map(|index| index.id)).collect()
        }
        // Caught up with a table whose keys are unique.
        DdlOp::CatchUp { .. }
        | DdlOp::BuildIndex { .. }
        | DdlOp::DropTable(_)
        | DdlOp::Truncate(_)
        | DdlOp::DropIndex { .. }
        | DdlOp::CreateSequence(_)
        | DdlOp::AlterSequence { .. }
        | DdlOp::DropSequence(_) => Vec::new(),
    }
}

/// The table that an operation fills, or the one of an index that it fills.
pub(super) fn table_of(operation: &DdlOp) -> Option<TreeId> {
    match operation {
        DdlOp::CreateIndex { table, .. } => Some(*table),
        DdlOp::CreateTable(def) | DdlOp::AlterTable { def, .. } | DdlOp::CopyTable { def, .. } => {
            Some(def.id)
        }
        _ => None,
    }
}

/// Some columns of a table's rows as the statement leaves them. A validation names them in FROM before
/// all of the statement is planned; [`Work::settle_validations`](super::Work::settle_validations) says what they are.
pub(crate) struct Gathered {
    pub(crate) name: String,
    pub(crate) table: Oid,
    pub(crate) columns: Vec<String>,
    /// Whether keys are looked for among them.
    pub(crate) parents: bool,
}
