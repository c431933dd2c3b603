//! A PL/pgSQL body after parsing: statements with lines, names of variables resolved to
//! their numbers, SQL kept as text with its place in the source.
//!
//! Name look-up follows PostgreSQL's compiler: a chain of names grows as blocks open and
//! declarations pass by, and every SQL fragment remembers the chain's head at its place.
//! The parser itself asks no catalog; whether a variable is a record is settled by the
//! compiler, which knows the types.

use archipel_sql::error::{SqlError, SqlState};

/// A variable of the routine: a parameter, a declaration, a loop variable, FOUND, or one of a
/// handler's SQLSTATE and SQLERRM.
pub type VariableId = u32;

/// A place in the chain of names ([`Names`]).
pub type NamesId = u32;

/// SQL cut from the body.
#[derive(Clone, Debug, PartialEq)]
pub struct Fragment {
    /// As written; an INTO clause that PL/pgSQL took out left blanks, so offsets agree.
    pub text: String,
    /// Byte offset of `text` in the body.
    pub start: usize,
    pub line: u32,
    /// What names mean here.
    pub names: NamesId,
}

/// One name in the chain.
#[derive(Clone, Debug, PartialEq)]
pub enum Name {
    /// A block or a loop opens; its label qualifies the names after it.
    Label {
        label: Option<String>,
        is_loop: bool,
    },
    Variable {
        name: String,
        id: VariableId,
    },
}

/// The chain of names, as an arena: each entry points to the one declared before it that is
/// still visible.
#[derive(Clone, Debug, Default)]
pub struct Names {
    entries: Vec<(Name, Option<NamesId>)>,
}

impl Names {
    /// Adds a name in front of `head`.
    pub fn push(&mut self, head: Option<NamesId>, name: Name) -> NamesId {
        self.entries.push((name, head));
        (self.entries.len() - 1) as NamesId
    }

    /// From the innermost name outwards.
    pub fn walk(&self, head: NamesId) -> impl Iterator<Item = &Name> {
        let mut at = Some(head);
        std::iter::from_fn(move || {
            let (name, next) = &self.entries[at? as usize];
            at = *next;
            Some(name)
        })
    }

    /// The variable a name means: `parts` is a name, or a label and a name, then fields.
    /// Answers how many parts were used. A name followed by a field is a variable's only if
    /// that is a record: otherwise it is a table's, and the search goes on outwards.
    pub fn find(
        &self,
        head: NamesId,
        parts: &[&str],
        is_record: &dyn Fn(VariableId) -> bool,
    ) -> Option<(VariableId, usize)> {
        // Names of the level being walked; a level's label comes after its names.
        let mut level: Vec<(&str, VariableId)> = Vec::new();
        let first = *parts.first()?;
        for name in self.walk(head) {
            match name {
                Name::Variable { name, id } => {
                    if first == name && (parts.len() == 1 || is_record(*id)) {
                        return Some((*id, 1));
                    }
                    level.push((name, *id));
                }
                Name::Label { label, .. } => {
                    if parts.len() > 1 && label.as_deref() == Some(first) {
                        let found = level.iter().find(|(n, _)| *n == parts[1]);
                        if let Some((_, id)) = found
                            && (parts.len() == 2 || is_record(*id))
                        {
                            return Some((*id, 2));
                        }
                    }
                    level.clear();
                }
            }
        }
        None
    }
}

/// What a declaration says of a type, unresolved.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeSpec {
    /// A type name with modifiers and array bounds, as written.
    Named(Fragment),
    /// `variable%TYPE`.
    OfVariable(VariableId),
    /// `table.column%TYPE`, `schema.table.column%TYPE`, or a field of a record variable.
    OfColumn(Vec<String>, Fragment),
    /// `table%ROWTYPE`.
    RowOf(Vec<String>),
    Record,
    /// Known without the source: parameters and the compiler's own variables.
    Known(archipel_sql::types::Type),
}

/// One variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    pub name: String,
    pub line: u32,
    pub ty: TypeSpec,
    pub constant: bool,
    pub not_null: bool,
    pub default: Option<Fragment>,
    /// `name CURSOR [(args)] FOR query`.
    pub cursor: Option<Cursor>,
    /// Where COLLATE stands.
    pub collate: Option<usize>,
}

impl Variable {
    /// Why a constant takes no value.
    pub fn declared_constant(&self) -> SqlError {
        let message = format!("variable \"{}\" is declared CONSTANT", self.name);
        SqlError::new(SqlState(*b"22005"), message)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cursor {
    pub args: Vec<VariableId>,
    /// SCROLL or NO SCROLL.
    pub scroll: Option<bool>,
    pub query: Fragment,
}

/// A whole body.
#[derive(Clone, Debug)]
pub struct Body {
    pub block: Block,
    pub variables: Vec<Variable>,
    pub names: Names,
    /// The registers of the parameters, in argument order.
    pub parameters: Vec<VariableId>,
    pub found: VariableId,
    /// What `#print_strict_params` asked for.
    pub print_strict: Option<bool>,
    /// What `#variable_conflict` asked for; else the session's setting says it.
    pub conflict: Option<Conflict>,
    /// What the check `shadowed_variables` finds.
    pub shadowed: Vec<SqlError>,
}

/// Who wins when a name is both a variable and a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Conflict {
    #[default]
    Error,
    UseVariable,
    UseColumn,
}

impl Conflict {
    /// The value of `plpgsql.variable_conflict`.
    pub fn of_setting(text: &str) -> Conflict {
        match text {
            "use_variable" => Conflict::UseVariable,
            "use_column" => Conflict::UseColumn,
            _ => Conflict::Error,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub line: u32,
    pub label: Option<String>,
    /// Variables initialised on entry, in order.
    pub declared: Vec<VariableId>,
    pub body: Vec<Statement>,
    pub exceptions: Option<Exceptions>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Exceptions {
    pub sqlstate: VariableId,
    pub sqlerrm: VariableId,
    pub handlers: Vec<Handler>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Handler {
    pub line: u32,
    pub conditions: Vec<Condition>,
    pub body: Vec<Statement>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Everything but query_canceled and assert_failure.
    Others,
    Code(SqlState),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub line: u32,
    pub kind: StatementKind,
}

/// What is assigned: a variable, then fields and subscripts.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    pub variable: VariableId,
    pub path: Vec<Step>,
    /// As written, for messages.
    pub text: String,
    /// Where that begins in the body.
    pub start: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Field(String),
    Index(Fragment),
    Slice(Option<Fragment>, Option<Fragment>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Into {
    pub strict: bool,
    pub targets: Vec<Target>,
}

/// `EXECUTE text [USING …]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Dynamic {
    pub text: Fragment,
    pub using: Vec<Fragment>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind {
    Block(Block),
    Assign {
        target: Target,
        value: Fragment,
    },
    If {
        arms: Vec<(Fragment, Vec<Statement>)>,
        otherwise: Vec<Statement>,
    },
    Case {
        operand: Option<Fragment>,
        arms: Vec<(Vec<Fragment>, Vec<Statement>)>,
        otherwise: Option<Vec<Statement>>,
    },
    Loop {
        label: Option<String>,
        body: Vec<Statement>,
    },
    While {
        label: Option<String>,
        condition: Fragment,
        body: Vec<Statement>,
    },
    ForInteger {
        label: Option<String>,
        variable: VariableId,
        lower: Fragment,
        upper: Fragment,
        step: Option<Fragment>,
        reverse: bool,
        body: Vec<Statement>,
    },
    ForQuery {
        label: Option<String>,
        targets: Vec<Target>,
        query: Fragment,
        body: Vec<Statement>,
    },
    ForDynamic {
        label: Option<String>,
        targets: Vec<Target>,
        query: Dynamic,
        body: Vec<Statement>,
    },
    /// Over a bound cursor: `record` is the loop's own.
    ForCursor {
        label: Option<String>,
        record: VariableId,
        cursor: VariableId,
        args: Vec<Fragment>,
        body: Vec<Statement>,
    },
    ForEach {
        label: Option<String>,
        targets: Vec<Target>,
        slice: u32,
        array: Fragment,
        body: Vec<Statement>,
    },
    /// EXIT (`exit`) or CONTINUE.
    Leave {
        exit: bool,
        label: Option<String>,
        when: Option<Fragment>,
    },
    Return {
        value: Option<Fragment>,
    },
    ReturnNext {
        value: Option<Fragment>,
    },
    ReturnQuery {
        query: Fragment,
    },
    ReturnQueryDynamic {
        query: Dynamic,
    },
    Raise(Raise),
    Assert {
        condition: Fragment,
        message: Option<Fragment>,
    },
    /// A SQL statement, CALL included.
    Sql {
        text: Fragment,
        into: Option<Into>,
    },
    Perform {
        query: Fragment,
    },
    Dynamic {
        query: Dynamic,
        into: Option<Into>,
    },
    GetDiagnostics {
        stacked: bool,
        items: Vec<(Target, Diagnostic)>,
    },
    Open {
        cursor: VariableId,
        scroll: Option<bool>,
        args: Vec<Fragment>,
        query: Option<Fragment>,
        dynamic: Option<Dynamic>,
    },
    Fetch {
        cursor: VariableId,
        direction: Direction,
        into: Option<Into>,
    },
    Close {
        cursor: VariableId,
    },
    /// COMMIT (`commit`) or ROLLBACK.
    EndTransaction {
        commit: bool,
        chain: bool,
    },
    Null,
}

/// FETCH and MOVE.
#[derive(Clone, Debug, PartialEq)]
pub enum Direction {
    Next,
    Prior,
    First,
    Last,
    Absolute(Fragment),
    Relative(Fragment),
    All { forward: bool },
    Count { forward: bool, count: Fragment },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Debug,
    Log,
    Info,
    Notice,
    Warning,
    Exception,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Raise {
    pub level: Level,
    /// A condition given by name or by SQLSTATE.
    pub condition: Option<(String, SqlState)>,
    /// The format, split at its `%`: one more part than parameters.
    pub format: Option<Vec<String>>,
    pub params: Vec<Fragment>,
    pub options: Vec<(RaiseOption, Fragment)>,
    /// `RAISE;` inside a handler.
    pub again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaiseOption {
    Errcode,
    Message,
    Detail,
    Hint,
    Column,
    Constraint,
    Datatype,
    Table,
    Schema,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagnostic {
    RowCount,
    Context,
    ErrorContext,
    ErrorDetail,
    ErrorHint,
    ReturnedSqlstate,
    ColumnName,
    ConstraintName,
    DatatypeName,
    MessageText,
    TableName,
    SchemaName,
}
