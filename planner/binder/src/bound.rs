//! The bound tree: a statement after names, types, overloads and casts are settled by
//! PostgreSQL's rules, as a positional algebra.
//!
//! Every operator produces rows of fixed width. An expression reads its operator's input row by
//! position: `Column { depth: 0, index }`. Depth `n` is the input row of the operator `n`
//! nestings further out; entering an [`ExprKind::Subquery`] or the right side of a lateral join
//! adds one nesting. What stands in an operator without an input (Values, Function, the counts
//! of a Limit) reads an empty row at depth 0, so that depths count nestings alone. No names are
//! left, and nothing below looks one up.

mod aggregate;
mod alias;
mod children;
mod domain;
mod equality;
mod inheritance;
mod ranking;
mod rows;

use std::sync::Arc;

use archipel_sql::ast::ExplainOptions;
use archipel_sql::catalog::{RoutineRef, TableRef};
use archipel_sql::datum::Datum;
use archipel_sql::function::{ResolvedFunction, SetFunction};
use archipel_sql::parser::FrameExclusion;
use archipel_sql::types::{Oid, Type};

pub use aggregate::{Accumulator, DefinedAggregate};
pub use alias::{Alias, RelationName};
pub use children::{BoundChild, BoundChildMut, ChildRow, ChildScope};
pub use domain::DomainConditions;
pub use inheritance::{Child, Family, Member, PartitionNode};
pub use ranking::Ranking;
pub use rows::row_descriptor;

/// A typed scalar expression.
#[derive(Clone, Debug)]
pub struct BoundExpr {
    pub kind: ExprKind,
    pub ty: Type,
    /// The domain over `ty`, or the array of one, that its type is for SQL: what `pg_typeof` answers and a
    /// view's column becomes. Values are alike, and so are expressions that differ in it alone.
    pub domain: Option<Oid>,
}

impl PartialEq for BoundExpr {
    fn eq(&self, other: &BoundExpr) -> bool {
        self.ty == other.ty && self.kind == other.kind
    }
}

/// Names of a row's fields; without any they are `f1` and so on.
pub type FieldNames = Option<Arc<[String]>>;

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    Const(Datum),
    /// `$n`, zero-based.
    Param(u16),
    /// A PL/pgSQL variable: a register of the routine's frame.
    Variable(u32),
    Column {
        depth: u16,
        index: u16,
    },
    /// A function, an operator or a cast that runs a function. Strictness is the function's.
    Call {
        function: ResolvedFunction,
        args: Vec<BoundExpr>,
    },
    /// A call of a deployed routine for its scalar (or record) result.
    Routine {
        routine: RoutineRef,
        args: Vec<BoundExpr>,
    },
    And(Vec<BoundExpr>),
    Or(Vec<BoundExpr>),
    Not(Box<BoundExpr>),
    IsNull(Box<BoundExpr>),
    IsNotNull(Box<BoundExpr>),
    /// IS [NOT] TRUE / FALSE: `value` is what is tested for; UNKNOWN is IsNull.
    IsBool {
        expr: Box<BoundExpr>,
        value: bool,
        negated: bool,
    },
    /// `equality` is the `=` of the common type.
    IsDistinctFrom {
        left: Box<BoundExpr>,
        right: Box<BoundExpr>,
        equality: ResolvedFunction,
        negated: bool,
    },
    /// Searched CASE; a simple CASE arrives with its comparisons spelled out.
    Case {
        arms: Vec<(BoundExpr, BoundExpr)>,
        otherwise: Option<Box<BoundExpr>>,
    },
    Coalesce(Vec<BoundExpr>),
    NullIf {
        left: Box<BoundExpr>,
        right: Box<BoundExpr>,
        equality: ResolvedFunction,
    },
    /// GREATEST (`greatest`) or LEAST; `less` is the `<` of the common type. NULLs are ignored.
    Extreme {
        greatest: bool,
        args: Vec<BoundExpr>,
        less: ResolvedFunction,
    },
    /// `left op ANY (array)` (`all`: `ALL`).
    ArrayOp {
        left: Box<BoundExpr>,
        array: Box<BoundExpr>,
        operator: ResolvedFunction,
        all: bool,
    },
    /// `left IN (list)` with a common type: ANY over expressions.
    InList {
        left: Box<BoundExpr>,
        list: Vec<BoundExpr>,
        equality: ResolvedFunction,
        negated: bool,
    },
    /// `ARRAY[…]`.
    Array {
        element: Oid,
        items: Vec<BoundExpr>,
    },
    /// A row, and what its fields are called: ROW(…) says nothing, the row of a relation or of a
    /// variable does.
    Row(Vec<BoundExpr>, FieldNames),
    /// `array[i][j]`; all subscripts int4. Slices carry both bounds.
    Subscript {
        array: Box<BoundExpr>,
        subscripts: Vec<Subscript>,
    },
    /// A field of a composite value.
    Field {
        record: Box<BoundExpr>,
        index: u16,
    },
    /// A change of type that keeps the value (varchar to text, date column of a domain).
    Relabel(Box<BoundExpr>),
    /// A conversion through the text form: the output of `expr.ty` read as the type of this
    /// expression (PostgreSQL's CoerceViaIO).
    ConvertIo(Box<BoundExpr>),
    /// A conversion of every element of an array. `element` reads the element as
    /// `Column { depth: 0, index: 0 }` of a one-column row pushed for it.
    ArrayConvert {
        array: Box<BoundExpr>,
        element: Box<BoundExpr>,
    },
    /// A conversion of every field of a record that is not NULL: what the fields become, reading the
    /// record as `Column { depth: 0, index: 0 }` of a one-column row pushed for it.
    RowConvert {
        record: Box<BoundExpr>,
        fields: Vec<BoundExpr>,
    },
    /// A value that a domain lets through (PostgreSQL's CoerceToDomain).
    Domain {
        expr: Box<BoundExpr>,
        conditions: Arc<DomainConditions>,
    },
    Subquery(Box<Subquery>),
}

/// What rows store for a part of an index's key, over the table's row.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundIndexExpression {
    pub stored: BoundExpr,
    /// What it is where the predicate holds.
    pub expr: BoundExpr,
    /// Of a partial unique index.
    pub predicate: Option<BoundExpr>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Subscript {
    Index(BoundExpr),
    Slice { lower: Option<BoundExpr>, upper: Option<BoundExpr> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Subquery {
    pub kind: SubqueryKind,
    pub rel: Rel,
    /// Whether it reads the row of an enclosing query (depth beyond its own).
    pub correlated: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SubqueryKind {
    /// One column, at most one row (21000 beyond).
    Scalar,
    Exists,
    /// `left op ANY (query)`; `IN` is `= ANY`.
    Any {
        left: Vec<BoundExpr>,
        operators: Vec<ResolvedFunction>,
    },
    All {
        left: Vec<BoundExpr>,
        operators: Vec<ResolvedFunction>,
    },
    /// `ARRAY(query)`.
    Array {
        element: Oid,
    },
}

/// A relational operator. Width and types of its rows: [`Rel::types`].
#[derive(Clone, Debug, PartialEq)]
pub enum Rel {
    /// One row without columns: SELECT without FROM.
    Unit,
    Values {
        rows: Vec<Vec<BoundExpr>>,
        types: Vec<Type>,
    },
    /// All visible columns of the table, in order.
    Scan {
        table: TableRef,
        lock: Option<RowLock>,
        alias: Alias,
    },
    /// The rows of all members of a family: the columns of its root, in order, then the oid of the
    /// table that each row is in.
    Family {
        family: Arc<Family>,
        lock: Option<RowLock>,
        alias: Alias,
    },
    /// A set-returning function in FROM. With ordinality, an int8 column follows.
    Function {
        call: SetCall,
        ordinality: bool,
        types: Vec<Type>,
        alias: Alias,
    },
    /// Runs a statement, whose rows nobody gets, and answers what EXPLAIN ANALYZE tells of it: a line
    /// of text a row.
    Explained {
        statement: Box<BoundStatement>,
        options: ExplainOptions,
    },
    Filter {
        input: Box<Rel>,
        predicate: BoundExpr,
    },
    Project {
        input: Box<Rel>,
        exprs: Vec<BoundExpr>,
    },
    /// Set-returning functions in a SELECT list, expanded in step (chapter 38.5.8).
    ProjectSet {
        input: Box<Rel>,
        items: Vec<SetItem>,
    },
    /// Left columns, then right columns. `on` reads the concatenated row at depth 0. When
    /// `lateral`, the right side reads the left row one depth out.
    Join {
        kind: JoinKind,
        left: Box<Rel>,
        right: Box<Rel>,
        on: Option<BoundExpr>,
        lateral: bool,
    },
    /// Group expressions, then aggregates, then one int4 column for each GROUPING(…) call.
    /// Several `sets` (indexes into `group_by`) are GROUPING SETS; the plain case is one set
    /// with all of them. An expression outside the current set is NULL. An empty set answers a
    /// row for empty input. A GROUPING call's value has one bit an argument (an index into
    /// `group_by`), the last one lowest: 1 if the current set does not contain it.
    Aggregate {
        input: Box<Rel>,
        group_by: Vec<BoundExpr>,
        sets: Vec<Vec<u16>>,
        aggregates: Vec<AggregateCall>,
        groupings: Vec<Vec<u16>>,
    },
    /// Input columns, then one column a call.
    Window {
        input: Box<Rel>,
        calls: Vec<WindowCall>,
    },
    Sort {
        input: Box<Rel>,
        keys: Vec<SortKey>,
    },
    /// Whole-row DISTINCT, or DISTINCT ON over sorted input: the first row of each group.
    Distinct {
        input: Box<Rel>,
        on: Option<Vec<BoundExpr>>,
    },
    /// Locks the rows that its input was made of, in the scans that ask for it: above the sort
    /// and below the limit of one SELECT … FOR, so that only what is answered is locked.
    Lock {
        input: Box<Rel>,
    },
    Limit {
        input: Box<Rel>,
        limit: Option<BoundExpr>,
        offset: Option<BoundExpr>,
        with_ties: bool,
    },
    SetOp {
        op: SetOp,
        all: bool,
        left: Box<Rel>,
        right: Box<Rel>,
    },
    With {
        ctes: Vec<Cte>,
        body: Box<Rel>,
    },
    /// Rows of a CTE of an enclosing `With`, by its id; inside the recursive term of that very
    /// CTE, the working table.
    CteScan {
        id: u32,
        types: Vec<Type>,
        alias: Alias,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cte {
    pub id: u32,
    pub name: String,
    pub body: CteBody,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CteBody {
    Query(Rel),
    Recursive {
        initial: Rel,
        recursive: Rel,
        all: bool,
    },
    /// INSERT, UPDATE or DELETE … RETURNING.
    Modify(Box<BoundStatement>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum SetCall {
    Builtin {
        function: &'static SetFunction,
        args: Vec<BoundExpr>,
    },
    /// A deployed function in FROM, set-returning or not.
    Routine {
        routine: RoutineRef,
        args: Vec<BoundExpr>,
    },
    /// A scalar expression in FROM: one row, one column.
    Scalar(Box<BoundExpr>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum SetItem {
    Scalar(BoundExpr),
    /// A set of one column of this type; several columns arrive as records.
    Set {
        call: SetCall,
        ty: Type,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp {
    Union,
    Intersect,
    Except,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AggregateCall {
    pub function: Accumulator,
    pub args: Vec<BoundExpr>,
    pub distinct: bool,
    pub filter: Option<BoundExpr>,
    pub order_by: Vec<SortKey>,
    pub result: Type,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    pub function: WindowFunction,
    pub args: Vec<BoundExpr>,
    pub partition_by: Vec<BoundExpr>,
    pub order_by: Vec<SortKey>,
    pub frame: Frame,
    pub filter: Option<BoundExpr>,
    pub result: Type,
}

#[derive(Clone, Debug, PartialEq)]
pub enum WindowFunction {
    Aggregate(Accumulator),
    /// row_number, rank, lag, first_value, …
    Ranking(Ranking),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub units: FrameUnits,
    pub start: FrameBound,
    pub end: FrameBound,
    pub exclusion: FrameExclusion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnits {
    Rows,
    Range,
    Groups,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(BoundExpr),
    CurrentRow,
    Following(BoundExpr),
    UnboundedFollowing,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    pub expr: BoundExpr,
    pub descending: bool,
    pub nulls_first: bool,
}

/// Row locks, weakest first (chapter 13.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockStrength {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    Block,
    NoWait,
    SkipLocked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLock {
    pub strength: LockStrength,
    pub wait: LockWait,
    /// Whether only some of the rows are answered: then a row that turns out to be changed is looked
    /// at again before the next one is locked.
    pub under_limit: bool,
}

/// A result column as the client sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputColumn {
    pub name: String,
    pub ty: Type,
    /// The table column it is, if it is just that: table and one-based attnum. Else the domain that it is
    /// of, if any, and [`OF_DOMAIN`](archipel_sql::catalog::OF_DOMAIN).
    pub source: Option<(Oid, u16)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BoundQuery {
    pub rel: Rel,
    pub columns: Vec<OutputColumn>,
}

/// RETURNING: expressions and their columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Returning {
    pub exprs: Vec<BoundExpr>,
    pub columns: Vec<OutputColumn>,
}

/// CHECK conditions over the new row, by constraint name.
pub type BoundChecks = Vec<BoundCheck>;

/// A condition that new rows must not fail, or of policies must meet.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundCheck {
    /// Of the constraint or the view; of policies the whole message.
    pub name: String,
    pub expr: BoundExpr,
    pub kind: CheckKind,
    /// Whether it is asked whatever an UPDATE changes.
    pub always: bool,
}

/// Whose condition it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// A CHECK constraint's.
    Constraint,
    /// A view's check option's.
    View,
    /// That of policies for rows that are inserted.
    PolicyOfInsert,
    /// That of policies for what rows become.
    PolicyOfUpdate,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BoundInsert {
    pub table: TableRef,
    pub alias: Alias,
    /// The partitions its rows go to. A row of the table then has the oid of its partition behind its
    /// columns, but for the source's.
    pub family: Option<Arc<Family>>,
    /// One column per table column, in order; defaults and assignment casts applied.
    pub source: Rel,
    /// The columns that it gives values, the others having their defaults.
    pub given: Vec<u16>,
    pub checks: BoundChecks,
    pub on_conflict: Option<OnConflict>,
    /// Over the row as inserted (or updated by ON CONFLICT).
    pub returning: Option<Returning>,
}

/// DO UPDATE: new values by column, and the condition.
pub type ConflictUpdate = (Vec<(u16, BoundExpr)>, Option<BoundExpr>);

#[derive(Clone, Debug, PartialEq)]
pub struct OnConflict {
    /// The key that decides; `None`: any conflict (DO NOTHING only).
    pub target: Option<ConflictArbiter>,
    /// `None` is DO NOTHING. Expressions read existing row ++ proposed row (EXCLUDED).
    pub update: Option<ConflictUpdate>,
    /// A statement before has met the rows that DO UPDATE is about, and locked them: one that is not
    /// locked came since.
    pub met_before: bool,
}

/// The unique key that ON CONFLICT is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictArbiter {
    Primary,
    /// The index of this oid.
    Index(Oid),
}

/// For each row of the target and each row of `from` that pass `filter`, once per target row.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundUpdate {
    pub table: TableRef,
    pub alias: Alias,
    /// The tables whose rows are meant. A target row then has the oid of its table behind its columns.
    pub family: Option<Arc<Family>>,
    /// The table as [`archipel_sql::catalog::Table::with_numbers`] has it: a target row then has its
    /// number behind its columns.
    pub numbered: Option<TableRef>,
    pub from: Option<Rel>,
    /// Reads target row ++ from row.
    pub filter: Option<BoundExpr>,
    /// New values, over target row ++ from row, assignment casts applied.
    pub set: Vec<(u16, BoundExpr)>,
    pub checks: BoundChecks,
    /// Over new target row ++ from row.
    pub returning: Option<Returning>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BoundDelete {
    pub table: TableRef,
    pub alias: Alias,
    /// As [`BoundUpdate::family`].
    pub family: Option<Arc<Family>>,
    /// As [`BoundUpdate::numbered`].
    pub numbered: Option<TableRef>,
    pub using: Option<Rel>,
    pub filter: Option<BoundExpr>,
    /// Over old target row ++ using row.
    pub returning: Option<Returning>,
    /// Whether all rows that reference one of its go along, as with TRUNCATE: none is looked for.
    pub alone: bool,
}

/// MERGE: each action with the rows it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundMerge {
    pub table: TableRef,
    pub alias: Alias,
    /// As [`BoundUpdate::family`].
    pub family: Option<Arc<Family>>,
    /// The source, which the actions scan.
    pub source: Cte,
    /// INSERT, UPDATE and DELETE without RETURNING, about different rows.
    pub actions: Vec<BoundStatement>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BoundCall {
    pub routine: RoutineRef,
    /// One per IN, INOUT or VARIADIC argument, defaults filled in, casts applied.
    pub args: Vec<BoundExpr>,
    /// OUT and INOUT columns.
    pub columns: Vec<OutputColumn>,
}

/// A statement that reads or writes rows. Everything else stays an AST and is a utility.
#[derive(Clone, Debug, PartialEq)]
pub enum BoundStatement {
    /// `WITH … INSERT | UPDATE | DELETE`: the statement scans the CTEs by their ids.
    With {
        ctes: Vec<Cte>,
        statement: Box<BoundStatement>,
    },
    Query(BoundQuery),
    Insert(BoundInsert),
    Update(BoundUpdate),
    Delete(BoundDelete),
    Merge(BoundMerge),
    Call(BoundCall),
}

impl BoundExpr {
    /// An expression of a kind and a type.
    pub fn new(kind: ExprKind, ty: Type) -> BoundExpr {
        BoundExpr { kind, ty, domain: None }
    }

    /// A column of the row the operator reads.
    pub fn column(index: usize, ty: Type) -> BoundExpr {
        BoundExpr::new(ExprKind::Column { depth: 0, index: index as u16 }, ty)
    }

    /// A constant.
    pub fn constant(value: Datum, ty: Type) -> BoundExpr {
        BoundExpr::new(ExprKind::Const(value), ty)
    }

    /// The same expression as one of a domain.
    pub fn of_domain(self, domain: Option<Oid>) -> BoundExpr {
        BoundExpr { domain, ..self }
    }

    /// The type that SQL says it is of: its domain, or the plain one.
    pub fn declared(&self) -> Type {
        self.domain.map_or(self.ty, Type::of)
    }

    /// The values of expressions that are all constants.
    pub fn constants(exprs: &[BoundExpr]) -> Option<Vec<Datum>> {
        let value = |expr: &BoundExpr| match &expr.kind {
            ExprKind::Const(value) => Some(value.clone()),
            _ => None,
        };
        exprs.iter().map(value).collect()
    }

    /// Whether it is a NULL that is known before a statement runs.
    pub fn is_null_constant(&self) -> bool {
        matches!(self.kind, ExprKind::Const(Datum::Null))
    }
}
