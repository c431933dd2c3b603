//! What the machine of loops ([`crate::run::machine`]) is made of.

use archipel_planner::native::scalar::text::{Case, Extent, Measure, Part};
use archipel_planner::native::scalar::{Kind, Orders};
use archipel_sql::function::FloatOperation;

use crate::run::ending::Flow;

/// How many cells there are: one for each number of a cell, which so needs no check.
pub(crate) const CELLS: usize = 1 << Cell::BITS;

/// The number of a cell.
pub(crate) type Cell = u8;

/// The number of a strip: where a text is on its way through an expression.
pub(crate) type Strip = u8;

/// One of [`Machine::texts`].
pub(crate) type Constant = u16;

/// Where an instruction stands.
pub(crate) type At = u32;

/// Where an array is: in a register, and out of it while the loop changes it (one of
/// [`Machine::arrays`]).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub register: u32,
    pub held: Option<u8>,
}

/// What of a FOR loop is not NULL.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    Lower,
    Upper,
    Step,
}

impl Bound {
    pub fn name(self) -> &'static str {
        match self {
            Bound::Lower => "lower bound",
            Bound::Upper => "upper bound",
            Bound::Step => "BY value",
        }
    }
}

const _: () = assert!(size_of::<Instruction>() <= 16, "instructions are read one by one: keep them small");

#[derive(Clone, Copy, Debug)]
pub(crate) enum Instruction {
    Const {
        to: Cell,
        value: i64,
    },
    Null {
        to: Cell,
    },
    Move {
        to: Cell,
        from: Cell,
    },
    /// `Small` ones fit `integer`, others `bigint`. The last operand of an instruction that ends
    /// in `By` is the number itself.
    AddSmall {
        to: Cell,
        left: Cell,
        right: Cell,
    },
    AddSmallBy {
        to: Cell,
        left: Cell,
        right: i32,
    },
    Add {
        to: Cell,
        left: Cell,
        right: Cell,
    },
    AddBy {
        to: Cell,
        left: Cell,
        right: i32,
    },
    SubtractSmall {
        to: Cell,
        left: Cell,
        right: Cell,
    },
    Subtract {
        to: Cell,
        left: Cell,
        right: Cell,
    },
    MultiplySmall {
        to: Cell,
        left: Cell,
        right: Cell,
    },
    MultiplySmallBy {
        to: Cell,
        left: Cell,
        right: i32,
    },
    Multiply {
        to: Cell,
        left: Cell,
        right: Cell,
    },
    DivideSmall {
        to: Cell,
        left: Cell,
        right: Cell,
    },
    Divide {
        to: Cell,
        left: Cell,
        right: Cell,
    },
    /// By a positive number whose reciprocal is known: [`quotient`].
    DivideSmallBy {
        to: Cell,
        left: Cell,
        reciprocal: u64,
    },
    Remainder {
        to: Cell,
        left: Cell,
        right: Cell,
    },
    RemainderSmallBy {
        to: Cell,
        left: Cell,
        right: u32,
        reciprocal: u64,
    },
    Negate {
        to: Cell,
        from: Cell,
    },
    /// Refuses what does not fit the kind.
    Fit {
        to: Cell,
        from: Cell,
        kind: Kind,
    },
    ToFloat {
        to: Cell,
        from: Cell,
    },
    Float {
        to: Cell,
        left: Cell,
        right: Cell,
        operation: FloatOperation,
    },
    NegateFloat {
        to: Cell,
        from: Cell,
    },
    Compare {
        to: Cell,
        left: Cell,
        right: Cell,
        orders: Orders,
    },
    CompareFloat {
        to: Cell,
        left: Cell,
        right: Cell,
        orders: Orders,
    },
    Not {
        to: Cell,
        from: Cell,
    },
    IsNull {
        to: Cell,
        from: Cell,
        wanted: bool,
    },
    /// One more operand of AND (`decides` false) or OR (true): if it decides, the result is known.
    Junction {
        to: Cell,
        from: Cell,
        decides: bool,
        end: At,
    },
    Jump {
        to: At,
    },
    JumpUnless {
        condition: Cell,
        to: At,
    },
    JumpUnlessCompared {
        left: Cell,
        right: Cell,
        orders: Orders,
        to: At,
    },
    JumpUnlessComparedBy {
        left: Cell,
        orders: Orders,
        right: i32,
        to: At,
    },
    /// Back to the head of a loop.
    Again {
        to: At,
    },
    /// A bound of a FOR loop: not NULL.
    Bound {
        cell: Cell,
        bound: Bound,
    },
    /// BY: greater than zero.
    Step {
        cell: Cell,
    },
    /// Past the loop unless its first round is in range.
    Enter {
        counter: Cell,
        last: Cell,
        reverse: bool,
        to: At,
    },
    Next {
        counter: Cell,
        last: Cell,
        step: Cell,
        variable: Cell,
        to: At,
    },
    NextDown {
        counter: Cell,
        last: Cell,
        step: Cell,
        variable: Cell,
        to: At,
    },
    /// FOUND, after a loop.
    Found {
        value: bool,
    },
    /// A closure: one of [`Machine::codes`].
    Code {
        to: Cell,
        code: u16,
        kind: Kind,
    },
    /// An element of an array: an `integer` and a constant are its index.
    Element {
        to: Cell,
        index: Cell,
        offset: i32,
        kind: Kind,
        array: Place,
    },
    /// Assigns to one: of [`Machine::arrays`].
    SetElement {
        index: Cell,
        offset: i32,
        value: Cell,
        kind: Kind,
        array: u8,
    },
    SetTextElement {
        index: Cell,
        value: Strip,
        array: u8,
    },
    /// Adds one at the end.
    Push {
        value: Cell,
        kind: Kind,
        array: u8,
    },
    PushText {
        value: Strip,
        array: u8,
    },
    Extent {
        to: Cell,
        dimension: Cell,
        extent: Extent,
        array: Place,
    },
    /// An array goes back to its register.
    GiveBack {
        array: u8,
    },
    GiveBackAll,
    /// FOREACH: begins, with the array of a closure.
    Each {
        each: u8,
        code: u16,
    },
    /// The next element, or to the end.
    NextElement {
        each: u8,
        variable: Cell,
        kind: Kind,
        to: At,
    },
    NextDatum {
        each: u8,
        register: u32,
        to: At,
    },
    /// FOUND, after it.
    EachFound {
        each: u8,
    },
    /// A text comes to a strip: from [`Machine::texts`], a register, an array, a closure, a code.
    Text {
        to: Strip,
        text: Constant,
    },
    TextVariable {
        to: Strip,
        register: u32,
    },
    TextElement {
        to: Strip,
        index: Cell,
        array: Place,
    },
    TextCode {
        to: Strip,
        code: u16,
    },
    Character {
        to: Strip,
        code: Cell,
    },
    Concatenate {
        to: Strip,
        other: Strip,
    },
    /// The same with the character of a code.
    AddCharacter {
        to: Strip,
        code: Cell,
    },
    /// A part of what is on a strip stays there.
    Part {
        of: Strip,
        part: Part,
        first: Cell,
        second: Option<Cell>,
    },
    /// The same, told by numbers that are known.
    PartBy {
        of: Strip,
        part: Part,
        first: i32,
        second: Option<i32>,
    },
    PartTo {
        of: Strip,
        part: Part,
        first: Cell,
        second: i32,
    },
    Case {
        of: Strip,
        case: Case,
    },
    Measure {
        to: Cell,
        of: Strip,
        measure: Measure,
    },
    /// Of a text in a register.
    MeasureVariable {
        to: Cell,
        register: u32,
        measure: Measure,
    },
    Position {
        to: Cell,
        within: Strip,
        of: Strip,
    },
    CompareText {
        to: Cell,
        left: Strip,
        right: Strip,
        orders: Orders,
    },
    JumpUnlessText {
        left: Strip,
        right: Strip,
        orders: Orders,
        to: At,
    },
    /// The same with one of [`Machine::texts`].
    JumpUnlessTextIs {
        left: Strip,
        orders: Orders,
        right: Constant,
        to: At,
    },
    TextIsNull {
        to: Cell,
        from: Strip,
        wanted: bool,
    },
    /// To a variable.
    SetText {
        register: u32,
        from: Strip,
    },
    /// To the end of one.
    AppendText {
        register: u32,
        from: Strip,
    },
    /// A variable refuses NULL: one of [`Machine::names`].
    NotNull {
        cell: Cell,
        name: u16,
    },
    /// From a cell to its register: one of [`Machine::variables`].
    Spill {
        variable: u16,
    },
    /// And back.
    Reload {
        variable: u16,
    },
    SpillAll,
    ReloadAll,
    /// What whoever runs the statement that follows must be allowed: one of [`Machine::rights`].
    Rights {
        rights: u16,
    },
    /// One of [`Machine::statements`].
    Statement {
        statement: u16,
    },
    Leave {
        flow: Flow,
    },
    End,
}

/// A variable that has a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variable {
    pub register: u32,
    pub cell: Cell,
    pub kind: Kind,
    /// Whether the loop assigns to it by itself.
    pub assigned: bool,
}
