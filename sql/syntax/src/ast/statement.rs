//! Any statement.

use std::ops::Range;

use super::aggregate::CreateAggregate;
use super::database::{AlterDatabase, AlterRoleSetting, CreateDatabase, DropDatabase};
use super::ddl::{
    AlterDomain, AlterSequence, AlterTable, AlterTableAction, AlterType, AlteredObject, Comment,
    CreateDomain, CreateIndex, CreateSchema, CreateSequence, CreateTable, CreateTableAs, CreateTrigger,
    CreateType, CreateView, Drop, DropRoutine, DropTrigger, ObjectWord, Rename, RenameTrigger, RenamedObject,
    Truncate,
};
use super::extension::{AlterExtension, CreateExtension, DropExtension};
use super::large_object::LargeObjectStatement;
use super::name::QualifiedName;
use super::operator_class::{
    AlterOperatorClass, AlterOperatorFamily, CreateOperatorClass, CreateOperatorFamily, DropOperatorClass,
};
use super::policy::{AlterPolicy, CreatePolicy, DropPolicy, RenamePolicy};
use super::role::{AlterDefaultPrivileges, AlterRole, CreateRole, DropRole, Grant, GrantRole, OwnedObjects};
use super::routine::{CreateRoutine, RoutineWord};
use super::setting::Set;
use super::utility::{
    AlterSystem, Call, Copy, DeclareCursor, DiscardTarget, Do, Execute, Explain, Fetch, LockTable,
    Positioned, Prepare, Reset, SetConstraints, SetTransaction, Show, TransactionStatement, Vacuum,
};

/// One statement of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementText {
    pub statement: Statement,
    /// Bytes of the script: from the first to the last token, without the semicolon.
    pub range: Range<usize>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// SELECT, VALUES, TABLE, and WITH before anything: the body may be
    /// `SetExpr::{Insert, Update, Delete, Merge}`.
    Query(Box<sqlparser::ast::Query>),
    Insert(Box<sqlparser::ast::Insert>),
    Update(Box<sqlparser::ast::Update>),
    Delete(Box<sqlparser::ast::Delete>),
    /// One of these two with WHERE CURRENT OF.
    Positioned(Box<Positioned>),
    Merge(Box<sqlparser::ast::Merge>),
    CreateTable(Box<CreateTable>),
    /// CREATE TABLE … AS query or EXECUTE, SELECT … INTO.
    CreateTableAs(Box<CreateTableAs>),
    CreateView(Box<CreateView>),
    CreateTrigger(Box<CreateTrigger>),
    DropTrigger(DropTrigger),
    RenameTrigger(RenameTrigger),
    CreatePolicy(Box<CreatePolicy>),
    AlterPolicy(Box<AlterPolicy>),
    RenamePolicy(RenamePolicy),
    DropPolicy(DropPolicy),
    CreateType(CreateType),
    AlterType(AlterType),
    CreateDomain(Box<CreateDomain>),
    AlterDomain(Box<AlterDomain>),
    AlterTable(Box<AlterTable>),
    CreateIndex(Box<CreateIndex>),
    CreateSequence(CreateSequence),
    AlterSequence(AlterSequence),
    CreateSchema(CreateSchema),
    CreateRoutine(Box<CreateRoutine>),
    CreateAggregate(Box<CreateAggregate>),
    CreateOperatorClass(Box<CreateOperatorClass>),
    AlterOperatorClass(AlterOperatorClass),
    DropOperatorClass(DropOperatorClass),
    CreateOperatorFamily(CreateOperatorFamily),
    AlterOperatorFamily(Box<AlterOperatorFamily>),
    DropOperatorFamily(DropOperatorClass),
    /// DROP TABLE, INDEX, SEQUENCE, VIEW, TYPE, SCHEMA.
    Drop(Drop),
    DropRoutine(DropRoutine),
    /// ALTER … RENAME TO and SET SCHEMA of routines, schemas, indexes; other forms refuse.
    Rename(Rename),
    Truncate(Truncate),
    Comment(Comment),
    Grant(Grant),
    GrantRole(GrantRole),
    CreateRole(CreateRole),
    AlterRole(AlterRole),
    DropRole(DropRole),
    AlterRoleSetting(AlterRoleSetting),
    CreateDatabase(CreateDatabase),
    AlterDatabase(AlterDatabase),
    DropDatabase(DropDatabase),
    AlterDefaultPrivileges(AlterDefaultPrivileges),
    OwnedObjects(OwnedObjects),
    LargeObject(LargeObjectStatement),
    CreateExtension(CreateExtension),
    AlterExtension(AlterExtension),
    DropExtension(DropExtension),
    Call(Call),
    Do(Do),
    Copy(Box<Copy>),
    Transaction(TransactionStatement),
    Set(Set),
    SetTransaction(SetTransaction),
    SetConstraints(SetConstraints),
    Reset(Reset),
    Show(Show),
    AlterSystem(AlterSystem),
    Prepare(Prepare),
    Execute(Execute),
    /// `None`: ALL.
    Deallocate(Option<String>),
    Explain(Explain),
    DeclareCursor(DeclareCursor),
    Fetch(Fetch),
    /// `None`: ALL.
    CloseCursor(Option<String>),
    Discard(DiscardTarget),
    Listen(String),
    Notify {
        channel: String,
        payload: Option<String>,
    },
    /// `None`: `*`.
    Unlisten(Option<String>),
    Lock(LockTable),
    Vacuum(Vacuum),
    Analyze(Vacuum),
    Reindex {
        what: String,
        name: Option<QualifiedName>,
        concurrently: bool,
    },
    /// Of a table by one of its indexes.
    Cluster {
        table: Option<QualifiedName>,
        index: Option<String>,
    },
    /// The command of PostgreSQL's replication protocol.
    BaseBackup,
    Checkpoint,
    /// A statement of PostgreSQL that Archipel does not have, by its name ("CREATE RULE").
    /// Running it answers [`Statement::refusal`].
    Unsupported {
        what: String,
    },
}

impl Statement {
    /// The command, if it is one that must not be part of a transaction block
    /// (PreventInTransactionBlock): by the name that errors give it.
    pub fn refused_in_blocks(&self) -> Option<&'static str> {
        match self {
            Statement::Transaction(TransactionStatement::FinishPrepared { .. }) => Some(self.tag()),
            Statement::Vacuum(_) => Some("VACUUM"),
            Statement::CreateDatabase(_) => Some("CREATE DATABASE"),
            Statement::AlterDatabase(alter) if alter.moves() => Some("ALTER DATABASE SET TABLESPACE"),
            Statement::DropDatabase(_) => Some("DROP DATABASE"),
            Statement::CreateIndex(create) if create.concurrently => Some("CREATE INDEX CONCURRENTLY"),
            Statement::Drop(drop) if drop.concurrently => Some("DROP INDEX CONCURRENTLY"),
            Statement::Reindex { concurrently: true, .. } => Some("REINDEX CONCURRENTLY"),
            Statement::Reindex { what, .. } => match what.as_str() {
                "schema" => Some("REINDEX SCHEMA"),
                "database" => Some("REINDEX DATABASE"),
                "system" => Some("REINDEX SYSTEM"),
                _ => None,
            },
            Statement::Cluster { table: None, .. } => Some("CLUSTER"),
            Statement::AlterTable(alter) => {
                let concurrent = |action: &AlterTableAction| {
                    matches!(action, AlterTableAction::DetachPartition { concurrently: true, .. })
                };
                alter.actions.iter().any(concurrent).then_some("ALTER TABLE ... DETACH CONCURRENTLY")
            }
            _ => None,
        }
    }

    /// The error of running an [`Statement::Unsupported`].
    pub fn refusal(what: &str) -> crate::error::SqlError {
        crate::error::SqlError::unsupported(what)
    }

    /// The command tag without counts, as CommandComplete spells it: "CREATE TABLE". SELECT,
    /// INSERT, UPDATE, DELETE, MERGE, FETCH, MOVE and COPY take their row counts after it.
    pub fn tag(&self) -> &'static str {
        match self {
            Statement::Query(query) => match query.body.as_ref() {
                sqlparser::ast::SetExpr::Insert(_) => "INSERT",
                sqlparser::ast::SetExpr::Update(_) => "UPDATE",
                sqlparser::ast::SetExpr::Delete(_) => "DELETE",
                sqlparser::ast::SetExpr::Merge(_) => "MERGE",
                _ => "SELECT",
            },
            Statement::Insert(_) => "INSERT",
            Statement::Update(_) => "UPDATE",
            Statement::Delete(_) => "DELETE",
            Statement::Positioned(positioned) => positioned.statement.tag(),
            Statement::Merge(_) => "MERGE",
            Statement::CreateTable(_) => "CREATE TABLE",
            Statement::CreateTableAs(create) if create.with_data => "SELECT",
            Statement::CreateTableAs(_) => "CREATE TABLE AS",
            Statement::CreateView(_) => "CREATE VIEW",
            Statement::CreateTrigger(_) => "CREATE TRIGGER",
            Statement::DropTrigger(_) => "DROP TRIGGER",
            Statement::RenameTrigger(_) => "ALTER TRIGGER",
            Statement::CreatePolicy(_) => "CREATE POLICY",
            Statement::AlterPolicy(_) | Statement::RenamePolicy(_) => "ALTER POLICY",
            Statement::DropPolicy(_) => "DROP POLICY",
            Statement::CreateType(_) => "CREATE TYPE",
            Statement::AlterType(_) => "ALTER TYPE",
            Statement::CreateDomain(_) => "CREATE DOMAIN",
            Statement::AlterDomain(_) => "ALTER DOMAIN",
            Statement::AlterTable(alter) => match alter.object {
                AlteredObject::Table => "ALTER TABLE",
                AlteredObject::Index => "ALTER INDEX",
                AlteredObject::Sequence => "ALTER SEQUENCE",
                AlteredObject::View => "ALTER VIEW",
            },
            Statement::CreateIndex(_) => "CREATE INDEX",
            Statement::CreateSequence(_) => "CREATE SEQUENCE",
            Statement::AlterSequence(_) => "ALTER SEQUENCE",
            Statement::CreateSchema(_) => "CREATE SCHEMA",
            Statement::CreateRoutine(routine) => match routine.kind {
                RoutineWord::Procedure => "CREATE PROCEDURE",
                _ => "CREATE FUNCTION",
            },
            Statement::CreateAggregate(_) => "CREATE AGGREGATE",
            Statement::CreateOperatorClass(_) => "CREATE OPERATOR CLASS",
            Statement::AlterOperatorClass(_) => "ALTER OPERATOR CLASS",
            Statement::DropOperatorClass(_) => "DROP OPERATOR CLASS",
            Statement::CreateOperatorFamily(_) => "CREATE OPERATOR FAMILY",
            Statement::AlterOperatorFamily(_) => "ALTER OPERATOR FAMILY",
            Statement::DropOperatorFamily(_) => "DROP OPERATOR FAMILY",
            Statement::Drop(drop) => match drop.kind {
                ObjectWord::Table => "DROP TABLE",
                ObjectWord::Index => "DROP INDEX",
                ObjectWord::Sequence => "DROP SEQUENCE",
                ObjectWord::View => "DROP VIEW",
                ObjectWord::Type => "DROP TYPE",
                ObjectWord::Domain => "DROP DOMAIN",
                ObjectWord::Schema => "DROP SCHEMA",
            },
            Statement::DropRoutine(drop) => match drop.kind {
                RoutineWord::Function => "DROP FUNCTION",
                RoutineWord::Procedure => "DROP PROCEDURE",
                RoutineWord::Routine => "DROP ROUTINE",
                RoutineWord::Aggregate => "DROP AGGREGATE",
            },
            Statement::Rename(rename) => match rename.object {
                RenamedObject::Schema(_) => "ALTER SCHEMA",
                RenamedObject::Routine(RoutineWord::Function, _) => "ALTER FUNCTION",
                RenamedObject::Routine(RoutineWord::Procedure, _) => "ALTER PROCEDURE",
                RenamedObject::Routine(RoutineWord::Routine, _) => "ALTER ROUTINE",
                RenamedObject::Routine(RoutineWord::Aggregate, _) => "ALTER AGGREGATE",
            },
            Statement::Truncate(_) => "TRUNCATE TABLE",
            Statement::Comment(_) => "COMMENT",
            Statement::Grant(grant) if grant.revoke => "REVOKE",
            Statement::Grant(_) => "GRANT",
            Statement::GrantRole(grant) if grant.revoke => "REVOKE ROLE",
            Statement::GrantRole(_) => "GRANT ROLE",
            Statement::CreateRole(_) => "CREATE ROLE",
            Statement::AlterRole(_) | Statement::AlterRoleSetting(_) => "ALTER ROLE",
            Statement::DropRole(_) => "DROP ROLE",
            Statement::CreateDatabase(_) => "CREATE DATABASE",
            Statement::AlterDatabase(_) => "ALTER DATABASE",
            Statement::DropDatabase(_) => "DROP DATABASE",
            Statement::AlterDefaultPrivileges(_) => "ALTER DEFAULT PRIVILEGES",
            Statement::CreateExtension(_) => "CREATE EXTENSION",
            Statement::AlterExtension(_) => "ALTER EXTENSION",
            Statement::DropExtension(_) => "DROP EXTENSION",
            Statement::OwnedObjects(owned) if owned.to.is_some() => "REASSIGN OWNED",
            Statement::OwnedObjects(_) => "DROP OWNED",
            Statement::LargeObject(statement) => statement.tag(),
            Statement::Call(_) => "CALL",
            Statement::Do(_) => "DO",
            Statement::Copy(_) => "COPY",
            Statement::Transaction(transaction) => match transaction {
                TransactionStatement::Begin { start: true, .. } => "START TRANSACTION",
                TransactionStatement::Begin { .. } => "BEGIN",
                TransactionStatement::Commit { .. } => "COMMIT",
                TransactionStatement::Rollback { .. } | TransactionStatement::RollbackTo(_) => "ROLLBACK",
                TransactionStatement::Savepoint(_) => "SAVEPOINT",
                TransactionStatement::Release(_) => "RELEASE",
                TransactionStatement::Prepare(_) => "PREPARE TRANSACTION",
                TransactionStatement::FinishPrepared { commit: true, .. } => "COMMIT PREPARED",
                TransactionStatement::FinishPrepared { commit: false, .. } => "ROLLBACK PREPARED",
            },
            Statement::Set(_) | Statement::SetTransaction(_) => "SET",
            Statement::SetConstraints(_) => "SET CONSTRAINTS",
            Statement::Reset(_) => "RESET",
            Statement::Show(_) => "SHOW",
            Statement::AlterSystem(_) => "ALTER SYSTEM",
            Statement::Prepare(_) => "PREPARE",
            Statement::Execute(_) => "EXECUTE",
            Statement::Deallocate(None) => "DEALLOCATE ALL",
            Statement::Deallocate(Some(_)) => "DEALLOCATE",
            Statement::Explain(_) => "EXPLAIN",
            Statement::DeclareCursor(_) => "DECLARE CURSOR",
            Statement::Fetch(fetch) if fetch.move_only => "MOVE",
            Statement::Fetch(_) => "FETCH",
            Statement::CloseCursor(None) => "CLOSE CURSOR ALL",
            Statement::CloseCursor(Some(_)) => "CLOSE CURSOR",
            Statement::Discard(DiscardTarget::All) => "DISCARD ALL",
            Statement::Discard(DiscardTarget::Plans) => "DISCARD PLANS",
            Statement::Discard(DiscardTarget::Sequences) => "DISCARD SEQUENCES",
            Statement::Discard(DiscardTarget::Temporary) => "DISCARD TEMP",
            Statement::Listen(_) => "LISTEN",
            Statement::Notify { .. } => "NOTIFY",
            Statement::Unlisten(_) => "UNLISTEN",
            Statement::Lock(_) => "LOCK TABLE",
            Statement::Vacuum(_) => "VACUUM",
            Statement::Analyze(_) => "ANALYZE",
            Statement::Reindex { .. } => "REINDEX",
            Statement::Cluster { .. } => "CLUSTER",
            Statement::BaseBackup => "BASE_BACKUP",
            Statement::Checkpoint => "CHECKPOINT",
            Statement::Unsupported { .. } => "???",
        }
    }
}
