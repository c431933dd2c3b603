//! Definitions: tables, indexes, sequences, schemas, routines.

use super::constraint::{ColumnConstraint, Deferrable, IndexElement, References, SequenceOption};
use super::routine::{RenameAction, RoutineSignature};
use super::{
    BoundSpec, Execute, Expression, PartitionBy, PartitionOf, QualifiedName, RoleName, RoutineWord,
    Statement, TypeName,
};
use super::{CheckOption, OnCommit, Persistence, TriggerEvent};

/// CREATE TABLE with columns, and CREATE TABLE … PARTITION OF. OF type parses to
/// `Statement::Unsupported`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    pub name: QualifiedName,
    pub persistence: Persistence,
    pub on_commit: OnCommit,
    pub if_not_exists: bool,
    pub columns: Vec<ColumnDefinition>,
    pub likes: Vec<TableLike>,
    pub constraints: Vec<TableConstraint>,
    /// INHERITS (…), in order.
    pub inherits: Vec<QualifiedName>,
    pub partition_of: Option<PartitionOf>,
    pub partition_by: Option<PartitionBy>,
    /// USING.
    pub access_method: Option<String>,
    /// WITH (…) storage parameters.
    pub options: Vec<(String, Option<String>)>,
    pub tablespace: Option<String>,
}

/// LIKE source [{ INCLUDING | EXCLUDING } …] in a table's list of columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableLike {
    /// How many columns were defined before it.
    pub place: usize,
    pub source: Option<QualifiedName>,
    pub defaults: bool,
    pub constraints: bool,
    pub identity: bool,
    pub generated: bool,
    pub indexes: bool,
    pub comments: bool,
    pub storage: bool,
    pub compression: bool,
}

/// CREATE TABLE name [(columns)] AS { query | EXECUTE … } [WITH [NO] DATA], and SELECT … INTO name.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTableAs {
    pub name: QualifiedName,
    pub persistence: Persistence,
    pub on_commit: OnCommit,
    pub if_not_exists: bool,
    pub columns: Vec<String>,
    pub source: RowSource,
    pub with_data: bool,
    /// Whether it was written as SELECT … INTO.
    pub select_into: bool,
    /// USING.
    pub access_method: Option<String>,
    pub options: Vec<(String, Option<String>)>,
    pub tablespace: Option<String>,
}

/// Where the rows of a CREATE TABLE … AS come from.
#[derive(Clone, Debug, PartialEq)]
pub enum RowSource {
    /// The text of a query, and how many characters of the script stand before it.
    Query { text: String, before: i64 },
    /// A prepared statement with these arguments.
    Execute(Execute),
}

/// When a trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FiresWhen {
    Before,
    After,
    InsteadOf,
}

/// CREATE [OR REPLACE] TRIGGER.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTrigger {
    pub or_replace: bool,
    pub name: String,
    pub fires: FiresWhen,
    pub events: Vec<TriggerEvent>,
    /// UPDATE OF.
    pub columns: Vec<String>,
    pub table: QualifiedName,
    pub row: bool,
    /// REFERENCING OLD TABLE and NEW TABLE.
    pub old_table: Option<String>,
    pub new_table: Option<String>,
    /// CREATE CONSTRAINT TRIGGER.
    pub constraint: Option<ConstraintTiming>,
    pub condition: Option<Expression>,
    pub function: QualifiedName,
    pub arguments: Vec<String>,
}

/// When a constraint is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConstraintTiming {
    pub deferrable: bool,
    pub initially_deferred: bool,
}

/// DROP TRIGGER.
#[derive(Clone, Debug, PartialEq)]
pub struct DropTrigger {
    pub name: String,
    pub table: QualifiedName,
    pub if_exists: bool,
}

/// ALTER TRIGGER name ON table RENAME TO.
#[derive(Clone, Debug, PartialEq)]
pub struct RenameTrigger {
    pub name: String,
    pub table: QualifiedName,
    pub new_name: String,
}

/// CREATE [OR REPLACE] [TEMPORARY] VIEW name [(columns)] AS query.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    pub name: QualifiedName,
    pub or_replace: bool,
    pub temporary: bool,
    pub columns: Vec<String>,
    /// The text of the query.
    pub query: String,
    /// How many characters of the script stand before the query, less what the text has before its own.
    pub before: i64,
    /// WITH (name [= value], …).
    pub options: Vec<(String, Option<String>)>,
    /// WITH [LOCAL | CASCADED] CHECK OPTION.
    pub check_option: Option<CheckOption>,
}

/// CREATE TYPE name AS ….
#[derive(Clone, Debug, PartialEq)]
pub struct CreateType {
    pub name: QualifiedName,
    pub kind: CreatedType,
}

/// What a new type is.
#[derive(Clone, Debug, PartialEq)]
pub enum CreatedType {
    /// ENUM (labels).
    Enum(Vec<String>),
    /// (name type [COLLATE collation], …).
    Composite(Vec<ColumnDefinition>),
}

/// ALTER TYPE: one action on an enum or a composite type.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterType {
    pub name: QualifiedName,
    pub action: TypeAction,
}

/// What ALTER TYPE does.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeAction {
    AddValue {
        label: String,
        if_not_exists: bool,
        /// AFTER (else BEFORE) this label.
        place: Option<(bool, String)>,
    },
    RenameValue {
        from: String,
        to: String,
    },
    RenameTo(String),
    SetSchema(String),
    OwnerTo(RoleName),
    /// Of a composite type's attributes, in order.
    Attributes(Vec<AttributeAction>),
    RenameAttribute {
        from: String,
        to: String,
    },
}

/// What ALTER TYPE does with one attribute of a composite type.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeAction {
    Add(ColumnDefinition),
    Drop { name: String, if_exists: bool, cascade: bool },
    SetType(ColumnDefinition),
}

/// CREATE DOMAIN.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateDomain {
    pub name: QualifiedName,
    pub ty: TypeName,
    pub collation: Option<QualifiedName>,
    /// NULL, NOT NULL, DEFAULT and CHECK, as of a column.
    pub constraints: Vec<ColumnConstraint>,
}

/// ALTER DOMAIN: one action.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterDomain {
    pub name: QualifiedName,
    pub action: DomainAction,
}

/// What ALTER DOMAIN does.
#[derive(Clone, Debug, PartialEq)]
pub enum DomainAction {
    SetDefault(Option<Expression>),
    SetNotNull(bool),
    AddCheck { name: Option<String>, condition: Expression, not_valid: bool },
    DropConstraint { name: String, if_exists: bool },
    RenameConstraint { from: String, to: String },
    ValidateConstraint(String),
    RenameTo(String),
    SetSchema(String),
    OwnerTo(RoleName),
}

/// A column as CREATE TABLE, ADD COLUMN or a composite type writes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    pub name: String,
    pub position: u32,
    pub ty: TypeName,
    pub collation: Option<QualifiedName>,
    pub compression: Option<String>,
    pub constraints: Vec<ColumnConstraint>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TableConstraint {
    pub name: Option<String>,
    pub position: u32,
    pub kind: TableConstraintKind,
    pub deferrable: Deferrable,
    /// NOT VALID (ALTER TABLE only).
    pub not_valid: bool,
    /// NO INHERIT, of a CHECK.
    pub no_inherit: bool,
    /// WITH (…), of a key.
    pub options: Vec<(String, Option<String>)>,
    /// USING INDEX TABLESPACE, of a key.
    pub tablespace: Option<String>,
}

// Statements are parsed once and kept once: the size of a rare variant costs nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum TableConstraintKind {
    PrimaryKey {
        columns: Vec<String>,
        include: Vec<String>,
    },
    Unique {
        columns: Vec<String>,
        include: Vec<String>,
        nulls_not_distinct: bool,
    },
    /// PRIMARY KEY or UNIQUE USING INDEX name.
    UsingIndex {
        primary: bool,
        index: String,
    },
    Check(Expression),
    ForeignKey {
        columns: Vec<String>,
        references: References,
    },
    Exclude,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlteredObject {
    Table,
    Index,
    Sequence,
    View,
}

/// ALTER TABLE (and the forms of ALTER INDEX and ALTER SEQUENCE that rename).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    pub object: AlteredObject,
    pub name: QualifiedName,
    pub if_exists: bool,
    pub only: bool,
    pub actions: Vec<AlterTableAction>,
}

/// ALTER COLUMN … GENERATED … AS IDENTITY and relatives.
#[derive(Clone, Debug, PartialEq)]
pub enum IdentityChange {
    Add {
        always: bool,
        options: Vec<SequenceOption>,
    },
    /// SET GENERATED, and SET with options of the sequence.
    Set {
        always: Option<bool>,
        options: Vec<SequenceOption>,
    },
    Drop {
        if_exists: bool,
    },
}

/// What REPLICA IDENTITY says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrittenReplicaIdentity {
    Default,
    Nothing,
    Full,
    /// USING INDEX.
    Index(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum AlterTableAction {
    AddColumn {
        column: ColumnDefinition,
        if_not_exists: bool,
    },
    DropColumn {
        column: String,
        if_exists: bool,
        cascade: bool,
    },
    AddConstraint(TableConstraint),
    DropConstraint {
        name: String,
        if_exists: bool,
        cascade: bool,
    },
    SetDefault {
        column: String,
        default: Option<Expression>,
    },
    SetNotNull {
        column: String,
        not_null: bool,
    },
    SetType {
        column: String,
        ty: TypeName,
        collation: Option<QualifiedName>,
        using: Option<Expression>,
    },
    RenameTo(String),
    RenameColumn {
        from: String,
        to: String,
    },
    RenameConstraint {
        from: String,
        to: String,
    },
    SetSchema(String),
    OwnerTo(RoleName),
    /// SET (…), RESET (…): storage parameters.
    SetOptions(Vec<(String, Option<String>)>),
    ResetOptions(Vec<(String, Option<String>)>),
    ReplicaIdentity(WrittenReplicaIdentity),
    Identity {
        column: String,
        change: IdentityChange,
    },
    DropExpression {
        column: String,
        if_exists: bool,
    },
    ValidateConstraint(String),
    /// When a foreign key is checked.
    AlterConstraint {
        name: String,
        timing: Deferrable,
    },
    /// ENABLE and DISABLE TRIGGER.
    SetTrigger {
        which: WhichTriggers,
        firing: TriggerFiring,
    },
    /// ENABLE and DISABLE ROW LEVEL SECURITY.
    RowSecurity(bool),
    /// FORCE and NO FORCE ROW LEVEL SECURITY.
    ForceRowSecurity(bool),
    SetPersistence(Persistence),
    SetTablespace(String),
    SetAccessMethod(String),
    /// ATTACH PARTITION; without a bound, of an index.
    AttachPartition {
        partition: QualifiedName,
        bound: Option<BoundSpec>,
    },
    DetachPartition {
        partition: QualifiedName,
        concurrently: bool,
        finalize: bool,
    },
    Inherit(QualifiedName),
    NoInherit(QualifiedName),
    SetColumnOption {
        column: String,
        option: ColumnOption,
    },
    /// An action that is not supported, by its words.
    Unsupported(String),
}

/// The triggers of a table that are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhichTriggers {
    Named(String),
    /// USER: those that somebody has made.
    User,
    /// ALL: those of foreign keys, too.
    All,
}

impl WhichTriggers {
    /// Whether a trigger of this name is one of them.
    pub fn has(&self, name: &str) -> bool {
        match self {
            WhichTriggers::Named(named) => named == name,
            WhichTriggers::User | WhichTriggers::All => true,
        }
    }
}

/// In which sessions a trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerFiring {
    Never,
    /// In those that do not apply what another server has done.
    Origin,
    /// In the others.
    Replica,
    Always,
}

/// What is said of how a column is stored and sampled.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnOption {
    /// SET STATISTICS.
    Statistics(i64),
    /// SET STORAGE.
    Storage(String),
    /// SET COMPRESSION; `default` is a word for none.
    Compression(String),
    /// SET (…), RESET (…).
    Estimates,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    pub unique: bool,
    pub concurrently: bool,
    pub if_not_exists: bool,
    pub name: Option<String>,
    pub table: QualifiedName,
    /// ON ONLY: not of the table's partitions.
    pub only: bool,
    /// USING method.
    pub method: Option<String>,
    pub elements: Vec<IndexElement>,
    pub include: Vec<String>,
    pub nulls_not_distinct: bool,
    pub options: Vec<(String, Option<String>)>,
    pub tablespace: Option<String>,
    pub predicate: Option<Expression>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateSequence {
    pub name: QualifiedName,
    pub persistence: Persistence,
    pub if_not_exists: bool,
    pub options: Vec<SequenceOption>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterSequence {
    pub name: QualifiedName,
    pub if_exists: bool,
    pub options: Vec<SequenceOption>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateSchema {
    /// `None`: named after the role of AUTHORIZATION.
    pub name: Option<String>,
    pub if_not_exists: bool,
    pub authorization: Option<RoleName>,
    /// What is made in it by the same statement, as written: tables, views, indexes, sequences,
    /// triggers, GRANT.
    pub elements: Vec<Statement>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectWord {
    Table,
    Index,
    Sequence,
    View,
    Type,
    Domain,
    Schema,
}

impl ObjectWord {
    /// In lower case, as messages say it.
    pub fn as_str(self) -> &'static str {
        match self {
            ObjectWord::Table => "table",
            ObjectWord::Index => "index",
            ObjectWord::Sequence => "sequence",
            ObjectWord::View => "view",
            ObjectWord::Type => "type",
            ObjectWord::Domain => "domain",
            ObjectWord::Schema => "schema",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drop {
    pub kind: ObjectWord,
    pub names: Vec<QualifiedName>,
    pub if_exists: bool,
    pub cascade: bool,
    pub concurrently: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DropRoutine {
    pub kind: RoutineWord,
    pub if_exists: bool,
    pub routines: Vec<RoutineSignature>,
    pub cascade: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RenamedObject {
    Schema(String),
    Routine(RoutineWord, RoutineSignature),
}

/// ALTER SCHEMA | FUNCTION | PROCEDURE … RENAME TO, OWNER TO, SET SCHEMA.
#[derive(Clone, Debug, PartialEq)]
pub struct Rename {
    pub object: RenamedObject,
    pub action: RenameAction,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncate {
    pub tables: Vec<QualifiedName>,
    /// For each, whether its heirs keep their rows.
    pub only: Vec<bool>,
    pub restart_identity: bool,
    pub cascade: bool,
}

/// COMMENT ON.
#[derive(Clone, Debug, PartialEq)]
pub struct Comment {
    pub object: CommentObject,
    /// `None` removes the comment.
    pub text: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CommentObject {
    Table(QualifiedName),
    Index(QualifiedName),
    Sequence(QualifiedName),
    View(QualifiedName),
    Type(QualifiedName),
    Column(QualifiedName, String),
    Constraint { name: String, table: QualifiedName },
    DomainConstraint { name: String, domain: QualifiedName },
    Trigger { name: String, table: QualifiedName },
    Policy { name: String, table: QualifiedName },
    Schema(String),
    Database(String),
    Extension(String),
    Role(String),
    Routine(RoutineWord, RoutineSignature),
}
