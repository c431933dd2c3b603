//! Catalog objects: immutable descriptions, shared by `Arc`, replaced as a whole by DDL.
//!
//! - this file     the objects themselves
//! - [`object`]    any object as a row of the system catalog: (kind, oid, payload)
//! - [`snapshot`]  [`Catalog`]: all objects at one moment, with look-ups by name and oid
//! - `state`       what it is made of; `shared_map` its maps
//! - [`parameters`] what is said of configuration parameters
//! - [`shared_state`] what all databases have in common; [`database`] they themselves; [`first_databases`]
//!   those of a new data directory; [`copy`] what a new one has of its template
//! - [`earlier_form`] rows as earlier versions wrote them
//! - [`numbers`]   where new objects get their numbers from; [`oids_in_use`] those that a catalog names
//! - [`names`]     search path rules, and PostgreSQL's errors for names that lead nowhere
//! - [`stored_name`] what stands for names in the texts that the catalog keeps
//! - [`selection`] objects by what somebody asks of them, without a look at all
//! - [`dependency`] who would break if an object went; `mentions` who says which others
//! - [`large_object`] where the rows of large objects lie
//! - [`invalidation`] what a plan has asked of a catalog, and whether another one answers the same
//! - [`relation`]  indexes, sequences, views, system columns
//! - [`partition`] tables that have their rows in others
//! - [`routine`]   aggregates, triggers, extensions, what routines say of themselves
//! - [`operator_class`] operator classes and families
//! - [`user_type`] enums, domains and composite types
//! - [`access`]    owners, access control lists, roles and what they may do
//!
//! Numbers. Objects of all databases draw oids from one counter, which begins anew at its end. A table's row
//! type and the array of that are numbered after the table, in a range of their own ([`Table::row_type`]). A
//! primary key and an index take two: the index relation's, and the constraint's
//! ([`KeyConstraint::constraint_oid`]).

pub mod access;
pub mod copy;
pub mod database;
pub mod dependency;
pub mod earlier_form;
pub mod first_databases;
pub mod invalidation;
pub mod large_object;
mod mentions;
pub mod names;
pub mod numbers;
pub mod object;
pub mod oids_in_use;
pub mod operator_class;
pub mod parameters;
pub mod partition;
pub mod relation;
pub mod routine;
pub mod selection;
pub mod shared_map;
pub mod shared_state;
pub mod snapshot;
mod state;
pub mod stored_name;
pub mod user_type;

// Modules by the names that they are known by outside.
pub use access::{authority, role};
pub use partition::partition_condition;
pub use relation::{nominal, view};
pub use routine::extension;

pub use access::authority::{Authority, Required, Requirement, SessionRoles};
pub use access::default_access::DefaultAccess;
pub use access::role::{Membership, Role};
pub use access::{Access, AclItem, ObjectClass, Privileges};
pub use copy::DatabaseCopy;
pub use database::{Database, DatabaseSettings};
pub use invalidation::dependents::Dependents;
pub use invalidation::lookup_recorder::{LookupRecorder, Lookups};
pub use invalidation::validity::Validity;
pub use large_object::LargeObject;
pub use numbers::{DrawnOids, Numbered, ObjectNumbers};
pub use object::{CatalogChange, Comments, Migration, Numbers, Object, ObjectKind, Schema};
pub use parameters::{ParameterAccess, Parameters};
pub use partition::{
    PartitionBound, PartitionKey, PartitionKeyPart, PartitionStrategy, RangeDatum, RangeEnd, compare_ends,
};
pub use relation::Relation;
pub use relation::index::{EntryPlacement, Index, IndexColumn, IndexExpression, PLACEMENT, PlacementOption};
pub use relation::nominal::{Nominal, NominalIndex, ReplicaIdentity};
pub use relation::policy_definition::{Policy, RowSecurity};
pub use relation::sequence::Sequence;
pub use relation::system_column::{ROW_PLACE, SYSTEM_COLUMNS};
pub use relation::view_definition::View;
pub use relation::view_reference::{HIDDEN_COLUMN, ViewReference};
pub use routine::aggregate::{Aggregate, AggregateWay, MovingWay};
pub use routine::routine_traits::{RoutineTraits, StoredBody};
pub use routine::trigger_definition::{FiresIn, Trigger, TriggerRole, TriggerTiming};
pub use shared_state::SharedCatalog;
pub use snapshot::{Catalog, CatalogMark};
pub(crate) use user_type::row_type::QuotedTypes;
pub use user_type::row_type::TypesAlong;
pub use user_type::{OF_DOMAIN, UserType, UserTypeRef};

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ast::ReferentialAction;
pub use crate::ast::{ArgMode, CheckOption, OnCommit, Persistence, PolicyCommand, TriggerEvent};
use crate::types::{Oid, Type};

/// A table, or a view over the server's own state, as statements see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    pub kind: TableKind,
    /// Visible columns, attnum order.
    pub columns: Vec<Column>,
    pub primary_key: Option<KeyConstraint>,
    /// Secondary indexes, those behind UNIQUE constraints included, the primary key's not.
    pub indexes: Vec<Index>,
    pub checks: Vec<Check>,
    pub foreign_keys: Vec<ForeignKey>,
    /// In the order they fire in: by name.
    #[serde(default)]
    pub triggers: Vec<Trigger>,
    /// Foreign keys, its own and those that reference it, that DISABLE TRIGGER ALL has silenced on its side.
    #[serde(default)]
    pub silenced_keys: Vec<Oid>,
    #[serde(default)]
    pub row_security: RowSecurity,
    pub distribution: Distribution,
    #[serde(default)]
    pub distributed_by: DistributedBy,
    #[serde(default)]
    pub persistence: Persistence,
    #[serde(default)]
    pub on_commit: OnCommit,
    /// Views: what they show.
    #[serde(default)]
    pub view: Option<View>,
    /// The tables whose columns it has, in the order of INHERITS; the one it is a partition of.
    #[serde(default)]
    pub inherits: Vec<Oid>,
    /// Which of its partitions a row lies in.
    #[serde(default)]
    pub partitioned_by: Option<PartitionKey>,
    /// Partitions: which rows of the table it is part of are its.
    #[serde(default)]
    pub bound: Option<PartitionBound>,
    #[serde(default)]
    pub nominal: Nominal,
    /// Storage parameters, as written: they say nothing here, but to who reads the definition.
    #[serde(default)]
    pub options: Vec<(String, String)>,
    /// The engine's number for the table's rows; 0 where there are none.
    pub tree: u32,
    /// Grows with every change of the definition; plans compare it after claiming.
    pub version: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TableKind {
    Table,
    /// A query by name.
    View,
    /// Rows computed from server or catalog state: pg_catalog, information_schema, archipel.
    System,
    /// No relation that statements name: what the fields of a composite type are looked up in.
    Composite,
}

/// The schema that stands before the number of a [`ViewReference`]: no schema bears such a name,
/// and nothing but a view's query is bound with references.
pub const REFERENCE_SCHEMA: &str = "\u{1}relation";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    pub name: String,
    pub ty: Type,
    pub not_null: bool,
    /// SQL text of the default expression.
    pub default: Option<String>,
    /// GENERATED … AS IDENTITY; the default calls its sequence.
    #[serde(default)]
    pub identity: Option<Identity>,
    /// GENERATED ALWAYS AS (…) STORED: SQL text of the expression, over the row's other columns.
    #[serde(default)]
    pub generated: Option<String>,
    /// The domain, or the array of one, that `ty` is the plain form of.
    #[serde(default)]
    pub domain: Option<Oid>,
    /// Whether it is there for the tables it inherits from alone (not pg_attribute.attislocal).
    #[serde(default)]
    pub inherited: bool,
    /// The collation that was named, where it is not the type's own. All of them compare bytes.
    #[serde(default)]
    pub collation: Option<Oid>,
    #[serde(default)]
    pub storage: ColumnStorage,
}

/// How PostgreSQL is to keep a column's values and to sample them, where something was said of that. Nothing
/// here hangs on it: it is for whoever reads the definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnStorage {
    /// SET STATISTICS (pg_attribute.attstattarget).
    pub statistics: Option<i32>,
    /// SET STORAGE: the letter of attstorage.
    pub strategy: Option<u8>,
    /// SET COMPRESSION: that of attcompression.
    pub compression: Option<u8>,
}

impl ColumnStorage {
    /// What a table has of it that inherits the column.
    #[must_use]
    pub fn inherited(self) -> ColumnStorage {
        ColumnStorage { statistics: None, ..self }
    }
}

impl Column {
    /// A column without default that may be NULL.
    pub fn new(name: impl Into<String>, ty: Type) -> Column {
        Column {
            name: name.into(),
            ty,
            not_null: false,
            default: None,
            identity: None,
            generated: None,
            domain: None,
            inherited: false,
            collation: None,
            storage: ColumnStorage::default(),
        }
    }

    /// The type as it was declared (pg_attribute.atttypid).
    pub fn declared(&self) -> Type {
        self.domain.map_or(self.ty, Type::of)
    }
}

/// How an identity column takes values of its own (pg_attribute.attidentity).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    /// Explicit values need OVERRIDING SYSTEM VALUE (428C9 otherwise).
    Always,
    ByDefault,
}

impl Table {
    /// A relation without columns, rows and anything else yet.
    pub fn new(oid: Oid, schema: impl Into<String>, name: impl Into<String>, kind: TableKind) -> Table {
        Table {
            oid,
            schema: schema.into(),
            name: name.into(),
            kind,
            columns: Vec::new(),
            primary_key: None,
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            triggers: Vec::new(),
            silenced_keys: Vec::new(),
            row_security: RowSecurity::default(),
            distribution: Distribution::None,
            distributed_by: Default::default(),
            persistence: Default::default(),
            on_commit: Default::default(),
            view: None,
            inherits: Vec::new(),
            partitioned_by: None,
            bound: None,
            nominal: Nominal::default(),
            options: Vec::new(),
            tree: 0,
            version: 0,
        }
    }

    /// The composite type of the table's rows.
    pub fn row_type(&self) -> Oid {
        Oid::row_type_of(self.oid)
    }

    /// The array type of [`Table::row_type`].
    pub fn row_array_type(&self) -> Oid {
        Oid(self.row_type().0 + 1)
    }

    /// Position of a column by its folded name.
    pub fn column_index(&self, name: &str) -> Option<u16> {
        self.columns.iter().position(|column| column.name == name).map(|index| index as u16)
    }

    /// Columns of the storage key in order: the distribution column, then the rest of the primary
    /// key. Without a primary key, [`Table::has_hidden_id`], the hidden row number follows as
    /// column `columns.len()`.
    pub fn storage_key(&self) -> Vec<u16> {
        let mut key = Vec::new();
        if let Distribution::Column { column, .. } = self.distribution {
            key.push(column);
        }
        match &self.primary_key {
            Some(primary) => {
                for &column in &primary.columns {
                    if !key.contains(&column) {
                        key.push(column);
                    }
                }
            }
            None => key.push(self.columns.len() as u16),
        }
        key
    }

    /// Whether rows carry a hidden number after their columns: a stored table without a primary
    /// key.
    pub fn has_hidden_id(&self) -> bool {
        self.is_stored() && self.primary_key.is_none()
    }

    /// Whether it has rows of its own, in a tree of its own.
    pub fn is_stored(&self) -> bool {
        self.kind == TableKind::Table && !self.is_partitioned()
    }

    /// What rows store for indexes alone, in the order they store it.
    pub fn index_expressions(&self) -> impl Iterator<Item = (&Index, &IndexExpression)> {
        self.indexes.iter().flat_map(|index| index.expressions.iter().map(move |part| (index, part)))
    }

    /// How many columns of a stored row come before those of [`Table::index_expressions`].
    pub fn plain_width(&self) -> u16 {
        self.columns.len() as u16 + u16::from(self.has_hidden_id())
    }

    /// The place in a stored row of an index's expression.
    pub fn stored_place(&self, index: Oid, place: u16) -> Option<u16> {
        let at = self.index_expressions().position(|(of, part)| of.oid == index && part.place == place)?;
        Some(self.plain_width() + at as u16)
    }

    /// Where the entries of one of its indexes belong: in the partitions of their rows if the key begins
    /// with the distribution column, by itself or because it was asked to (`placement = prefixed`), and
    /// always beside the rows of a reference table.
    ///
    /// Partitions are bounded by plain keys of the distribution column, so it has to stand in the entries
    /// as it does in the rows' keys: ascending, without NULLs, and as what it is (the first part of a
    /// partial unique index is kept otherwise). An index that tells rows apart does so within a partition
    /// only, so it has to name the column itself.
    pub fn entry_placement(&self, index: &Index) -> EntryPlacement {
        self.placement_if(index, index.placement())
    }

    /// The same, where this was asked for.
    fn placement_if(&self, index: &Index, asked: Option<PlacementOption>) -> EntryPlacement {
        let column = match self.distribution {
            Distribution::Reference => return EntryPlacement::WithRows,
            Distribution::Column { column, .. } => column,
            Distribution::HiddenId { .. } | Distribution::None => return EntryPlacement::Apart,
        };
        if asked == Some(PlacementOption::Global) || !self.columns[usize::from(column)].not_null {
            return EntryPlacement::Apart;
        }
        let begins = index.columns.first().is_some_and(|first| first.column == column && !first.descending);
        if begins && index.expression(0).is_none() {
            return EntryPlacement::WithRows;
        }
        let keeps_apart = index.unique && !index.has_column(column);
        match asked == Some(PlacementOption::Prefixed) && !keeps_apart {
            true => EntryPlacement::LedBy(column),
            false => EntryPlacement::Apart,
        }
    }

    /// Where an index's entries could be instead, by `placement`, so that it is of use for something else:
    /// in the partitions of the rows what is by itself now, and by itself what the distribution column leads
    /// though the definition does not say so. `None` where no other placement could be of use.
    pub fn other_placement(&self, index: &Index) -> Option<PlacementOption> {
        let asked = |placement| self.placement_if(index, Some(placement));
        match (index.global_group, self.entry_placement(index)) {
            (None, EntryPlacement::LedBy(_)) => Some(PlacementOption::Global),
            (Some(_), _) if asked(PlacementOption::Prefixed) != EntryPlacement::Apart => {
                Some(PlacementOption::Prefixed)
            }
            _ => None,
        }
    }

    /// The group of the table's partitions; `None` for reference tables and system views.
    pub fn group(&self) -> Option<u32> {
        match self.distribution {
            Distribution::Column { group, .. } | Distribution::HiddenId { group } => Some(group),
            Distribution::Reference | Distribution::None => None,
        }
    }
}

impl KeyConstraint {
    /// The oid of the constraint; `oid` is its index's.
    pub fn constraint_oid(&self) -> Oid {
        Oid(self.oid.0 + 1)
    }
}

impl Routine {
    /// The result as it was declared.
    pub fn declared_result(&self) -> Type {
        self.result_domain.map_or(self.result, Type::of)
    }

    /// Types of the arguments a call passes: IN, INOUT and VARIADIC, in order. They and the name
    /// identify the routine.
    pub fn input_types(&self) -> Vec<Oid> {
        self.input_args().map(|arg| arg.ty.oid).collect()
    }

    /// The arguments a call passes.
    pub fn input_args(&self) -> impl Iterator<Item = &RoutineArg> {
        self.args.iter().filter(|arg| matches!(arg.mode, ArgMode::In | ArgMode::InOut | ArgMode::Variadic))
    }

    /// OUT, INOUT and TABLE columns.
    pub fn output_args(&self) -> impl Iterator<Item = &RoutineArg> {
        self.args.iter().filter(|arg| matches!(arg.mode, ArgMode::Out | ArgMode::InOut | ArgMode::Table))
    }
}

/// A primary key or unique constraint's columns, as indexes into [`Table::columns`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyConstraint {
    /// Of the index relation.
    pub oid: Oid,
    pub name: String,
    pub columns: Vec<u16>,
    /// Columns of INCLUDE.
    #[serde(default)]
    pub include: Vec<u16>,
    /// Partitions: the index of the table it is part of.
    #[serde(default)]
    pub parent: Option<Oid>,
    /// Storage parameters of the index, as written.
    #[serde(default)]
    pub options: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub oid: Oid,
    pub name: String,
    /// SQL text of the condition.
    pub condition: String,
    /// Rows that were there before it were not checked.
    #[serde(default)]
    pub not_valid: bool,
    /// Of this table's rows alone, not of its heirs'.
    #[serde(default)]
    pub no_inherit: bool,
    /// Whether it is there for the tables it inherits from alone (not pg_constraint.conislocal).
    #[serde(default)]
    pub inherited: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    pub oid: Oid,
    pub name: String,
    pub columns: Vec<u16>,
    pub references: Oid,
    pub referenced_columns: Vec<u16>,
    #[serde(default)]
    pub on_delete: ReferentialAction,
    #[serde(default)]
    pub on_update: ReferentialAction,
    #[serde(default)]
    pub deferrable: bool,
    #[serde(default)]
    pub initially_deferred: bool,
    #[serde(default)]
    pub not_valid: bool,
    /// MATCH FULL: all of the columns are NULL, or none.
    #[serde(default)]
    pub match_full: bool,
    /// What ON DELETE SET NULL and SET DEFAULT change, if not all columns.
    #[serde(default)]
    pub on_delete_columns: Vec<u16>,
    /// Partitions: the foreign key of the table it is part of.
    #[serde(default)]
    pub parent: Option<Oid>,
}

/// Where a table's rows live, in the words of the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Distribution {
    /// By this column, in this co-location group. The storage key begins with it.
    Column {
        column: u16,
        group: u32,
    },
    /// A table without a primary key: by a hidden row number, in a group of its own.
    HiddenId {
        group: u32,
    },
    Reference,
    /// System views and partitioned tables have no rows of their own.
    None,
}

/// Who chose a table's distribution. What somebody asked for is not changed by anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DistributedBy {
    /// Somebody, by a distribution function; whoever it was, in catalogs of before that was kept.
    #[default]
    Request,
    /// Its keys, when it was made.
    Keys,
    /// What deployed routines do.
    Evidence,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoutineArg {
    pub name: Option<String>,
    pub mode: ArgMode,
    pub ty: Type,
    /// SQL text of the default expression.
    pub default: Option<String>,
    /// As [`Column::domain`].
    #[serde(default)]
    pub domain: Option<Oid>,
}

impl RoutineArg {
    /// The type as it was declared.
    pub fn declared(&self) -> Type {
        self.domain.map_or(self.ty, Type::of)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RoutineKind {
    Function,
    Procedure,
    Aggregate,
}

impl RoutineKind {
    /// As messages name what a routine is.
    pub fn as_str(self) -> &'static str {
        match self {
            RoutineKind::Function => "function",
            RoutineKind::Procedure => "procedure",
            RoutineKind::Aggregate => "aggregate",
        }
    }

    /// pg_proc.prokind.
    pub fn letter(self) -> &'static str {
        match self {
            RoutineKind::Function => "f",
            RoutineKind::Procedure => "p",
            RoutineKind::Aggregate => "a",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Language {
    PlPgSql,
    Sql,
}

impl Language {
    /// The object that rights on the language are on.
    pub fn object(self) -> Oid {
        match self {
            Language::PlPgSql => routine::language_object::PLPGSQL,
            Language::Sql => routine::language_object::SQL,
        }
    }
}

/// A deployed routine: its declaration and source; the compiled form lives in `procedures`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Routine {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    pub kind: RoutineKind,
    pub language: Language,
    pub args: Vec<RoutineArg>,
    /// Functions: the declared result (RECORD where OUT or TABLE columns give several).
    pub result: Type,
    /// As [`Column::domain`], of the result.
    #[serde(default)]
    pub result_domain: Option<Oid>,
    pub returns_set: bool,
    pub strict: bool,
    /// 'i', 's' or 'v'.
    pub volatility: char,
    /// The body, as written between the quotes.
    pub source: String,
    /// Set by `create_distributed_function`: the argument that routes calls.
    pub distribution_arg: Option<u16>,
    #[serde(default)]
    pub traits: RoutineTraits,
    /// Aggregates: what they are made of.
    #[serde(default)]
    pub aggregate: Option<Box<Aggregate>>,
    pub version: u64,
}

/// The column of a key's part that is no column.
pub const EXPRESSION: u16 = u16::MAX;

/// Fixed oids of the schemas every database has.
pub const PG_CATALOG: Oid = Oid(11);
pub const PUBLIC: Oid = Oid(2200);
pub const INFORMATION_SCHEMA: Oid = Oid(13_000);
pub const ARCHIPEL: Oid = Oid(13_001);
/// The database that a new data directory has.
pub const DATABASE: Oid = Oid(5);
/// What that is called.
pub const DATABASE_NAME: &str = "archipel";
/// The superuser's role.
pub const SUPERUSER: Oid = Oid(10);
/// The superuser's name.
pub const SUPERUSER_NAME: &str = "archipel";
/// Oids of users' objects begin here.
pub const FIRST_OID: u32 = 16_384;
/// Tree numbers of users' tables and indexes begin here; the ones below are reserved.
pub const FIRST_TREE: u32 = 16;
/// Group numbers of users' tables begin here.
pub const FIRST_GROUP: u32 = 16;
/// The engine's numbers of users' sequences begin here.
pub const FIRST_SEQUENCE: u32 = 16;

/// Shared handles, as the binder and the plans keep them.
pub type TableRef = Arc<Table>;
pub type RoutineRef = Arc<Routine>;
pub type SequenceRef = Arc<Sequence>;

/// Its only member is the owner of the database.
pub const DATABASE_OWNER: Oid = Oid(6171);

impl Table {
    /// All indexes but the primary key's, those without entries among them, for changes of names.
    pub fn all_indexes_mut(&mut self) -> impl Iterator<Item = &mut Index> {
        let nominal = self.nominal.indexes.iter_mut().map(|nominal| &mut nominal.index);
        self.indexes.iter_mut().chain(nominal)
    }
}
