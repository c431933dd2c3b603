//! What the machine of loops ([`super::machine`]) is made of.

use std::sync::Arc;

use archipel_planner::native::scalar::{Kind, Orders, SharedExpr};
use archipel_sql::function::FloatOperation;
use archipel_sql::types::Oid;

use super::Flow;
use super::operation::{Operation, Site};

/// How many cells there are.
pub(crate) const CELLS: usize = 128;

/// The number of a cell.
pub(crate) type Cell = u8;

/// Where an instruction stands.
pub(crate) type At = u32;

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
        name: &'static str,
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
    /// An element of the array in a register.
    Element {
        to: Cell,
        index: Cell,
        kind: Kind,
        array: u32,
    },
    /// Assigns to one: of [`Machine::arrays`].
    SetElement {
        index: Cell,
        value: Cell,
        kind: Kind,
        array: u16,
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

/// A loop, compiled.
pub struct Machine {
    pub(crate) instructions: Vec<Instruction>,
    /// Where each of them stands in the source.
    pub(crate) sites: Vec<Site>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) codes: Vec<SharedExpr>,
    pub(crate) statements: Vec<Arc<Operation>>,
    /// Registers of arrays that are assigned to, and the types of their elements.
    pub(crate) arrays: Vec<(u32, Oid)>,
    pub(crate) names: Vec<Box<str>>,
}
