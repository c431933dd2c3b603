//! Everything that is neither a query nor a definition.

use super::setting::Set;
use super::{Expression, QualifiedName, StatementText, TypeName};
use crate::encoding::Encoding;

/// CALL name(arguments).
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub name: QualifiedName,
    pub args: Vec<CallArgument>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CallArgument {
    /// `name => value`.
    pub name: Option<String>,
    pub value: Expression,
    pub variadic: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Do {
    /// Folded; plpgsql when absent.
    pub language: String,
    pub body: String,
    /// Byte offset of the body in the script, as in `RoutineBody::Text`.
    pub offset: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    pub target: CopyTarget,
    pub direction: CopyDirection,
    /// As written: what they say is looked at when the statement runs (`CopyOptions::read`).
    pub options: Vec<CopyOption>,
    /// COPY FROM … WHERE.
    pub filter: Option<Expression>,
}

impl Copy {
    /// Whether the rows come from the client, or go to it.
    pub fn is_of_client(&self) -> bool {
        matches!(self.direction, CopyDirection::FromStdin | CopyDirection::ToStdout)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum CopyTarget {
    /// Columns: empty for all.
    Table { name: QualifiedName, columns: Vec<String> },
    /// COPY (query) TO; the statement may be a data change with RETURNING.
    Query(Box<StatementText>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyDirection {
    FromStdin,
    FromFile(String),
    FromProgram(String),
    ToStdout,
    ToFile(String),
    ToProgram(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyKind {
    #[default]
    Text,
    Csv,
    Binary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyHeader {
    Skip,
    /// HEADER MATCH: the names must be the columns'.
    Match,
}

/// One option of COPY, of either syntax, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOption {
    pub name: String,
    pub argument: CopyArgument,
    pub position: u32,
}

/// What an option is given (copy_generic_opt_arg).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyArgument {
    None,
    /// A word or a string.
    Text(String),
    Number(String),
    Star,
    List(Vec<String>),
}

/// The options as given; `sql::copy::CopyFormat` checks them and fills in defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyOptions {
    pub format: CopyKind,
    pub freeze: bool,
    pub delimiter: Option<String>,
    pub null: Option<String>,
    pub header: Option<CopyHeader>,
    pub quote: Option<String>,
    pub escape: Option<String>,
    pub force_quote: Option<CopyColumns>,
    pub force_not_null: Vec<String>,
    pub force_null: Vec<String>,
    pub encoding: Option<Encoding>,
    /// What PostgreSQL's file wrapper asks for: other columns than these stay NULL.
    pub convert_selectively: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyColumns {
    All,
    Some(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl IsolationLevel {
    /// As the setting `transaction_isolation` shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            IsolationLevel::ReadUncommitted => "read uncommitted",
            IsolationLevel::ReadCommitted => "read committed",
            IsolationLevel::RepeatableRead => "repeatable read",
            IsolationLevel::Serializable => "serializable",
        }
    }

    /// From the text of the setting.
    pub fn parse(text: &str) -> Option<IsolationLevel> {
        [
            IsolationLevel::ReadUncommitted,
            IsolationLevel::ReadCommitted,
            IsolationLevel::RepeatableRead,
            IsolationLevel::Serializable,
        ]
        .into_iter()
        .find(|level| level.as_str().eq_ignore_ascii_case(text))
    }
}

/// What BEGIN and SET TRANSACTION may say; `None` is unsaid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionModes {
    pub isolation: Option<IsolationLevel>,
    pub read_only: Option<bool>,
    pub deferrable: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionStatement {
    /// BEGIN, or START TRANSACTION (`start`).
    Begin {
        modes: TransactionModes,
        start: bool,
    },
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Savepoint(String),
    Release(String),
    RollbackTo(String),
    /// PREPARE TRANSACTION 'identifier'.
    Prepare(String),
    /// COMMIT PREPARED or ROLLBACK PREPARED 'identifier'.
    FinishPrepared {
        identifier: String,
        commit: bool,
    },
}

/// SET TRANSACTION, or SET SESSION CHARACTERISTICS AS TRANSACTION (`session`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetTransaction {
    pub session: bool,
    pub modes: TransactionModes,
    /// SET TRANSACTION SNAPSHOT 'id'.
    pub snapshot: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetConstraints {
    /// `None`: ALL.
    pub names: Option<Vec<QualifiedName>>,
    pub deferred: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reset {
    All,
    Name(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Show {
    All,
    Name(String),
}

/// ALTER SYSTEM SET | RESET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlterSystem {
    Set(Set),
    Reset(Reset),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Prepare {
    pub name: String,
    pub types: Vec<TypeName>,
    pub statement: Box<StatementText>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Execute {
    pub name: String,
    pub args: Vec<Expression>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Explain {
    pub options: ExplainOptions,
    pub statement: Box<StatementText>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExplainFormat {
    #[default]
    Text,
    Json,
    Xml,
    Yaml,
    /// A drawing for Graphviz, of a CALL.
    Dot,
}

/// `None`: not said; PostgreSQL's defaults depend on ANALYZE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExplainOptions {
    pub analyze: bool,
    pub verbose: bool,
    pub costs: Option<bool>,
    pub buffers: Option<bool>,
    pub timing: Option<bool>,
    pub summary: Option<bool>,
    pub settings: Option<bool>,
    pub wal: Option<bool>,
    pub format: ExplainFormat,
}

impl ExplainOptions {
    /// Whether what the nodes of a plan do is counted, and whether times are taken.
    pub fn watches(self) -> Option<bool> {
        self.analyze.then_some(self.timing != Some(false))
    }

    /// Whether more is told of a plan than the lines of a plain text.
    pub fn tells_columns(self) -> bool {
        self.verbose || self.analyze || self.format != ExplainFormat::Text
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct DeclareCursor {
    pub name: String,
    pub binary: bool,
    pub insensitive: bool,
    /// SCROLL, NO SCROLL, or unsaid.
    pub scroll: Option<bool>,
    pub hold: bool,
    pub query: Box<sqlparser::ast::Query>,
    /// Text of the query.
    pub text: String,
    /// How many characters of the script stand before it.
    pub before: i64,
}

/// UPDATE or DELETE … WHERE CURRENT OF.
#[derive(Clone, Debug, PartialEq)]
pub struct Positioned {
    /// The statement with TRUE for its condition.
    pub statement: super::Statement,
    /// Its text, likewise, and where the condition stands in it, in bytes.
    pub text: String,
    pub condition: std::ops::Range<usize>,
    pub cursor: String,
}

/// FETCH, or MOVE (`move_only`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    pub move_only: bool,
    pub direction: FetchDirection,
    pub cursor: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchDirection {
    /// `i64::MAX`: ALL.
    Forward(i64),
    Backward(i64),
    Absolute(i64),
    Relative(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardTarget {
    All,
    Plans,
    Sequences,
    Temporary,
}

/// The eight table lock modes, weakest first (chapter 13.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableLockMode {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockTable {
    pub tables: Vec<QualifiedName>,
    pub mode: TableLockMode,
    pub nowait: bool,
}

/// VACUUM and ANALYZE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vacuum {
    /// Whether it gathers statistics.
    pub analyzes: bool,
    /// Tables with the columns named for statistics.
    pub tables: Vec<(QualifiedName, Vec<String>)>,
}
