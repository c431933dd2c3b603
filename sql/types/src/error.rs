//! Errors as PostgreSQL reports them: SQLSTATE, message, detail, hint, position.

use std::fmt;

/// A five-character SQLSTATE (PostgreSQL 15, appendix A).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub [u8; 5]);

impl SqlState {
    /// The code as text, for the wire and for messages.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XX000")
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

macro_rules! states {
    ($($name:ident = $code:literal;)*) => {
        impl SqlState {
            $(#[doc = concat!("SQLSTATE ", $code)] pub const $name: SqlState = SqlState(*match $code.as_bytes().first_chunk::<5>() { Some(c) => c, None => panic!("five characters") });)*
            /// Condition names as PL/pgSQL's EXCEPTION clause spells them.
            pub const CONDITIONS: &'static [(&'static str, SqlState)] = &[$((stringify!($name), SqlState::$name),)*];
        }
    };
}

states! {
    SUCCESSFUL_COMPLETION = "00000";
    WARNING = "01000";
    NO_DATA = "02000";
    CONNECTION_EXCEPTION = "08000";
    PROTOCOL_VIOLATION = "08P01";
    FEATURE_NOT_SUPPORTED = "0A000";
    INVALID_TRANSACTION_INITIATION = "0B000";
    CASE_NOT_FOUND = "20000";
    CARDINALITY_VIOLATION = "21000";
    DATA_EXCEPTION = "22000";
    STRING_DATA_RIGHT_TRUNCATION = "22001";
    NUMERIC_VALUE_OUT_OF_RANGE = "22003";
    NULL_VALUE_NOT_ALLOWED = "22004";
    INVALID_DATETIME_FORMAT = "22007";
    DATETIME_FIELD_OVERFLOW = "22008";
    INVALID_TIME_ZONE_DISPLACEMENT_VALUE = "22009";
    SUBSTRING_ERROR = "22011";
    DIVISION_BY_ZERO = "22012";
    INTERVAL_FIELD_OVERFLOW = "22015";
    INVALID_ARGUMENT_FOR_LOGARITHM = "2201E";
    INVALID_ARGUMENT_FOR_POWER_FUNCTION = "2201F";
    INVALID_ROW_COUNT_IN_LIMIT_CLAUSE = "2201W";
    INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE = "2201X";
    CHARACTER_NOT_IN_REPERTOIRE = "22021";
    INVALID_PARAMETER_VALUE = "22023";
    INVALID_REGULAR_EXPRESSION = "2201B";
    INVALID_ESCAPE_SEQUENCE = "22025";
    STRING_DATA_LENGTH_MISMATCH = "22026";
    ARRAY_SUBSCRIPT_ERROR = "2202E";
    INVALID_TEXT_REPRESENTATION = "22P02";
    INVALID_BINARY_REPRESENTATION = "22P03";
    BAD_COPY_FILE_FORMAT = "22P04";
    UNTRANSLATABLE_CHARACTER = "22P05";
    NONSTANDARD_USE_OF_ESCAPE_CHARACTER = "22P06";
    INTEGRITY_CONSTRAINT_VIOLATION = "23000";
    RESTRICT_VIOLATION = "23001";
    NOT_NULL_VIOLATION = "23502";
    FOREIGN_KEY_VIOLATION = "23503";
    UNIQUE_VIOLATION = "23505";
    CHECK_VIOLATION = "23514";
    INVALID_CURSOR_STATE = "24000";
    INVALID_TRANSACTION_STATE = "25000";
    TRIGGERED_DATA_CHANGE_VIOLATION = "27000";
    ACTIVE_SQL_TRANSACTION = "25001";
    READ_ONLY_SQL_TRANSACTION = "25006";
    NO_ACTIVE_SQL_TRANSACTION = "25P01";
    IN_FAILED_SQL_TRANSACTION = "25P02";
    INVALID_SQL_STATEMENT_NAME = "26000";
    INVALID_AUTHORIZATION_SPECIFICATION = "28000";
    INVALID_PASSWORD = "28P01";
    DEPENDENT_OBJECTS_STILL_EXIST = "2BP01";
    INVALID_TRANSACTION_TERMINATION = "2D000";
    SQL_ROUTINE_EXCEPTION = "2F000";
    FUNCTION_EXECUTED_NO_RETURN_STATEMENT = "2F005";
    INVALID_CURSOR_NAME = "34000";
    INVALID_SAVEPOINT_SPECIFICATION = "3B001";
    INVALID_CATALOG_NAME = "3D000";
    INVALID_SCHEMA_NAME = "3F000";
    TRANSACTION_ROLLBACK = "40000";
    SERIALIZATION_FAILURE = "40001";
    DEADLOCK_DETECTED = "40P01";
    SYNTAX_ERROR = "42601";
    INSUFFICIENT_PRIVILEGE = "42501";
    CANNOT_COERCE = "42846";
    GROUPING_ERROR = "42803";
    WINDOWING_ERROR = "42P20";
    INVALID_RECURSION = "42P19";
    INVALID_FOREIGN_KEY = "42830";
    INVALID_NAME = "42602";
    NAME_TOO_LONG = "42622";
    RESERVED_NAME = "42939";
    DATATYPE_MISMATCH = "42804";
    INDETERMINATE_DATATYPE = "42P18";
    WRONG_OBJECT_TYPE = "42809";
    UNDEFINED_COLUMN = "42703";
    UNDEFINED_FUNCTION = "42883";
    UNDEFINED_TABLE = "42P01";
    UNDEFINED_PARAMETER = "42P02";
    UNDEFINED_OBJECT = "42704";
    DUPLICATE_COLUMN = "42701";
    DUPLICATE_CURSOR = "42P03";
    DUPLICATE_DATABASE = "42P04";
    DUPLICATE_FUNCTION = "42723";
    DUPLICATE_PREPARED_STATEMENT = "42P05";
    DUPLICATE_SCHEMA = "42P06";
    DUPLICATE_TABLE = "42P07";
    DUPLICATE_ALIAS = "42712";
    DUPLICATE_OBJECT = "42710";
    AMBIGUOUS_COLUMN = "42702";
    AMBIGUOUS_FUNCTION = "42725";
    AMBIGUOUS_PARAMETER = "42P08";
    AMBIGUOUS_ALIAS = "42P09";
    INVALID_COLUMN_REFERENCE = "42P10";
    INVALID_COLUMN_DEFINITION = "42611";
    INVALID_FUNCTION_DEFINITION = "42P13";
    INVALID_OBJECT_DEFINITION = "42P17";
    INVALID_TABLE_DEFINITION = "42P16";
    INVALID_SCHEMA_DEFINITION = "42P15";
    WITH_CHECK_OPTION_VIOLATION = "44000";
    INSUFFICIENT_RESOURCES = "53000";
    DISK_FULL = "53100";
    OUT_OF_MEMORY = "53200";
    TOO_MANY_CONNECTIONS = "53300";
    CONFIGURATION_LIMIT_EXCEEDED = "53400";
    PROGRAM_LIMIT_EXCEEDED = "54000";
    STATEMENT_TOO_COMPLEX = "54001";
    TOO_MANY_COLUMNS = "54011";
    TOO_MANY_ARGUMENTS = "54023";
    OBJECT_NOT_IN_PREREQUISITE_STATE = "55000";
    OBJECT_IN_USE = "55006";
    CANT_CHANGE_RUNTIME_PARAM = "55P02";
    LOCK_NOT_AVAILABLE = "55P03";
    UNSAFE_NEW_ENUM_VALUE_USAGE = "55P04";
    QUERY_CANCELED = "57014";
    ADMIN_SHUTDOWN = "57P01";
    CANNOT_CONNECT_NOW = "57P03";
    IO_ERROR = "58030";
    UNDEFINED_FILE = "58P01";
    SNAPSHOT_TOO_OLD = "72000";
    RAISE_EXCEPTION = "P0001";
    NO_DATA_FOUND = "P0002";
    TOO_MANY_ROWS = "P0003";
    ASSERT_FAILURE = "P0004";
    PLPGSQL_ERROR = "P0000";
    INTERNAL_ERROR = "XX000";
}

impl SqlState {
    /// No SQLSTATE, and of no condition: what has it goes on elsewhere ([`crate::interrupt::Budget`]). No
    /// client sees it, and nothing that SQL says names it.
    pub(crate) const OVER_BUDGET: SqlState = SqlState(*b"#OVER");
}

/// One error, ready for the wire. Boxed inside, so that `Result<Datum, SqlError>` stays small.
#[derive(Clone, Debug, PartialEq)]
pub struct SqlError(Box<ErrorFields>);

/// The fields of an ErrorResponse that a statement may set (PostgreSQL 15, chapter 55.8).
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorFields {
    pub state: SqlState,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// One-based character position in the query text.
    pub position: Option<u32>,
    /// PostgreSQL tells no position: whoever passes the error on adds none.
    pub placeless: bool,
    /// A query a routine ran, and the position in it: not the client's own.
    pub internal: Option<(u32, String)>,
    /// Call context, innermost line first (PL/pgSQL).
    pub context: Option<String>,
    pub schema: Option<String>,
    pub table: Option<String>,
    pub column: Option<String>,
    pub data_type: Option<String>,
    pub constraint: Option<String>,
    /// The routine of PostgreSQL's source that reports it, where drivers look for that.
    pub routine: Option<&'static str>,
}

impl SqlError {
    /// An error with a state and a primary message.
    pub fn new(state: SqlState, message: impl Into<String>) -> Self {
        SqlError(Box::new(ErrorFields {
            state,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            placeless: false,
            internal: None,
            context: None,
            schema: None,
            table: None,
            column: None,
            data_type: None,
            constraint: None,
            routine: None,
        }))
    }

    /// SQLSTATE 0A000, for what is parsed and not executed.
    pub fn unsupported(what: impl fmt::Display) -> Self {
        Self::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
    }

    /// SQLSTATE XX000, for states the code believes impossible.
    pub fn internal(what: impl Into<String>) -> Self {
        Self::new(SqlState::INTERNAL_ERROR, what)
    }

    pub fn state(&self) -> SqlState {
        self.0.state
    }

    /// Whether it is no error, but asks for its work to begin anew where nobody waits for the thread: no
    /// handler may take it.
    pub fn is_over_budget(&self) -> bool {
        self.0.state == SqlState::OVER_BUDGET
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn fields(&self) -> &ErrorFields {
        &self.0
    }

    pub fn fields_mut(&mut self) -> &mut ErrorFields {
        &mut self.0
    }

    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Names PostgreSQL's routine that reports it.
    #[must_use]
    pub fn of_routine(mut self, routine: &'static str) -> Self {
        self.0.routine = Some(routine);
        self
    }

    /// A prepared statement would answer other columns than its client was told.
    pub fn changed_result_type() -> Self {
        Self::new(SqlState::FEATURE_NOT_SUPPORTED, "cached plan must not change result type")
            .of_routine("RevalidateCachedQuery")
    }

    /// Sets the position unless one is set already: the innermost place knows best.
    #[must_use]
    pub fn at(mut self, position: Option<u32>) -> Self {
        if self.0.position.is_none() && !self.0.placeless {
            self.0.position = position;
        }
        self
    }

    /// Moves the position by so many characters: from a part of a text to all of it.
    #[must_use]
    pub fn moved(mut self, by: i64) -> Self {
        if let Some(position) = self.0.position {
            self.0.position = u32::try_from(i64::from(position) + by).ok().filter(|&position| position > 0);
        }
        self
    }

    /// Takes the position away, for good.
    #[must_use]
    pub fn placeless(mut self) -> Self {
        self.0.position = None;
        self.0.placeless = true;
        self
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for SqlError {}

/// The result of anything that may fail with a SQLSTATE.
pub type Result<T, E = SqlError> = std::result::Result<T, E>;
