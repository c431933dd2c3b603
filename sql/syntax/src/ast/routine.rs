//! CREATE FUNCTION and CREATE PROCEDURE.

use super::{Expression, QualifiedName, RoleName, TypeName};

/// FUNCTION, PROCEDURE, ROUTINE or AGGREGATE, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutineWord {
    Function,
    Procedure,
    Routine,
    Aggregate,
}

impl RoutineWord {
    /// In lower case, as messages say it.
    pub fn as_str(self) -> &'static str {
        match self {
            RoutineWord::Function => "function",
            RoutineWord::Procedure => "procedure",
            RoutineWord::Routine => "routine",
            RoutineWord::Aggregate => "aggregate",
        }
    }
}

/// CREATE [OR REPLACE] FUNCTION | PROCEDURE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRoutine {
    pub kind: RoutineWord,
    pub or_replace: bool,
    pub name: QualifiedName,
    pub args: Vec<ArgumentDefinition>,
    /// Functions: RETURNS.
    pub returns: Option<Returns>,
    /// Folded; "sql" when absent and the body is not quoted.
    pub language: Option<String>,
    pub body: RoutineBody,
    /// How many characters of the script stand before a body without quotes, less what its text has before
    /// its own.
    pub before: i64,
    pub window: bool,
    pub clauses: RoutineClauses,
}

/// Clauses that CREATE and ALTER have in common; `None` where one is not written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoutineClauses {
    /// 'i', 's' or 'v'.
    pub volatility: Option<char>,
    pub strict: Option<bool>,
    pub security_definer: Option<bool>,
    pub leakproof: Option<bool>,
    /// 'u', 'r' or 's'.
    pub parallel: Option<char>,
    pub cost: Option<f64>,
    pub rows: Option<f64>,
    /// SET and RESET clauses, in order.
    pub settings: Vec<RoutineSetting>,
    /// Where the first clause stands that procedures do not have.
    pub of_functions_at: Option<u32>,
}

impl RoutineClauses {
    /// Whether one of those is there that procedures do not have.
    pub fn of_functions_only(&self) -> bool {
        self.volatility.is_some()
            || self.strict.is_some()
            || self.leakproof.is_some()
            || self.parallel.is_some()
            || self.cost.is_some()
            || self.rows.is_some()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum RoutineSetting {
    Set(super::Set),
    Reset(String),
    ResetAll,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ArgumentDefinition {
    pub name: Option<String>,
    pub mode: super::ArgMode,
    /// Whether the mode is written: it is `In` where none is.
    pub mode_written: bool,
    pub ty: TypeName,
    pub default: Option<Expression>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Returns {
    /// The type says itself whether it is SETOF.
    Type(TypeName),
    /// RETURNS TABLE: the columns also follow the arguments, in mode Table.
    Table,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RoutineBody {
    /// AS 'text'.
    Text {
        text: String,
        /// Byte offset of the first character of the body in the script, if the quoting kept
        /// the text unchanged (dollar quotes).
        offset: Option<usize>,
    },
    /// AS 'file', 'symbol'.
    Library(String, String),
    /// RETURN expression, as a SELECT of it.
    Return(String),
    /// What stands between BEGIN ATOMIC and END, as written.
    Atomic(String),
}

/// A routine by name, and by argument types if given.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutineSignature {
    pub name: QualifiedName,
    /// `None`: without parentheses, the only one of that name.
    pub args: Option<Vec<ArgumentDefinition>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RenameAction {
    /// Routines: volatility, STRICT, SET and the like.
    Clauses(Box<RoutineClauses>),
    RenameTo(String),
    SetSchema(String),
    OwnerTo(RoleName),
}
