//! Expressions to instructions.

use archipel_planner::native::scalar::{Arithmetic, Kind, Node, Orders, Scalar};

use super::{Label, Lowering};
use crate::run::instruction::{Cell, Instruction};
use crate::run::machine::reciprocal;

impl Lowering {
    /// Computes a number; answers where it is.
    pub(super) fn number(&mut self, scalar: &Scalar) -> Option<Cell> {
        match &scalar.node {
            Node::Variable(register) => self.variable(*register, scalar.kind, false),
            // Wider integers hold the narrower ones.
            Node::Convert(inner) if widens(inner.kind, scalar.kind) => self.number(inner),
            _ => {
                let to = self.cell()?;
                self.number_to(scalar, to)?;
                Some(to)
            }
        }
    }

    /// Computes a number into a cell, which changes last of all: the expression may read it.
    pub(super) fn number_to(&mut self, scalar: &Scalar, to: Cell) -> Option<()> {
        let lowest = self.lowest;
        self.compute(scalar, to)?;
        self.lowest = lowest;
        Some(())
    }

    fn compute(&mut self, scalar: &Scalar, to: Cell) -> Option<()> {
        match &scalar.node {
            Node::Const(Some(value)) => self.push(Instruction::Const { to, value: *value }),
            Node::Const(None) => self.push(Instruction::Null { to }),
            Node::Variable(_) => {
                let from = self.number(scalar)?;
                self.push(Instruction::Move { to, from });
            }
            Node::Code { run, reads } => {
                self.spill(reads);
                self.machine.codes.push(run.clone());
                let code = u16::try_from(self.machine.codes.len() - 1).ok()?;
                self.push(Instruction::Code { to, code, kind: scalar.kind });
            }
            Node::Negate(inner) if scalar.kind == Kind::Float8 => {
                let from = self.number(inner)?;
                self.push(Instruction::NegateFloat { to, from });
            }
            Node::Negate(inner) => {
                let from = self.number(inner)?;
                let middle = self.cell()?;
                self.push(Instruction::Negate { to: middle, from });
                self.push(Instruction::Fit { to, from: middle, kind: scalar.kind });
            }
            Node::Convert(inner) => {
                let from = self.number(inner)?;
                self.push(if scalar.kind == Kind::Float8 {
                    Instruction::ToFloat { to, from }
                } else if widens(inner.kind, scalar.kind) {
                    Instruction::Move { to, from }
                } else {
                    Instruction::Fit { to, from, kind: scalar.kind }
                });
            }
            Node::Arithmetic(operation, operands) => {
                let [left, right] = &**operands;
                self.arithmetic(*operation, scalar.kind, (left, right), to)?;
            }
            Node::Float(operation, operands) => {
                let [left, right] = &**operands;
                let (left, right) = (self.number(left)?, self.number(right)?);
                self.push(Instruction::Float { to, left, right, operation: *operation });
            }
            Node::Compare(orders, operands) => {
                let [left, right] = &**operands;
                let float = left.kind == Kind::Float8;
                let (left, right, orders) = (self.number(left)?, self.number(right)?, *orders);
                self.push(match float {
                    true => Instruction::CompareFloat { to, left, right, orders },
                    false => Instruction::Compare { to, left, right, orders },
                });
            }
            Node::Not(inner) => {
                let from = self.number(inner)?;
                self.push(Instruction::Not { to, from });
            }
            Node::And(parts) => self.junction(parts, false, to)?,
            Node::Or(parts) => self.junction(parts, true, to)?,
            Node::IsNull(inner, wanted) => {
                let from = self.number(inner)?;
                self.push(Instruction::IsNull { to, from, wanted: *wanted });
            }
            Node::Element { array, index } => {
                let index = self.number(index)?;
                self.push(Instruction::Element { to, index, kind: scalar.kind, array: *array });
            }
        }
        Some(())
    }

    /// AND (`decides` false) and OR (true).
    fn junction(&mut self, parts: &[Scalar], decides: bool, to: Cell) -> Option<()> {
        let result = self.cell()?;
        let end = self.label();
        self.push(Instruction::Const { to: result, value: i64::from(!decides) });
        for part in parts {
            let lowest = self.lowest;
            let from = self.number(part)?;
            self.lowest = lowest;
            self.push(Instruction::Junction { to: result, from, decides, end: end.0 });
        }
        self.place(end);
        self.push(Instruction::Move { to, from: result });
        Some(())
    }

    fn arithmetic(
        &mut self,
        operation: Arithmetic,
        kind: Kind,
        (left, right): (&Scalar, &Scalar),
        to: Cell,
    ) -> Option<()> {
        use Instruction::*;
        let commutes = matches!(operation, Arithmetic::Add | Arithmetic::Multiply);
        let (left, right) = match (number_of(left), number_of(right)) {
            (Some(_), None) if commutes => (right, left),
            _ => (left, right),
        };
        let small = kind != Kind::Int8;
        // A smallint's result is checked once more.
        let result = if kind == Kind::Int2 { self.cell()? } else { to };
        let first = self.number(left)?;
        let by = number_of(right).filter(|by| *by != i32::MIN);
        let instruction = match (operation, by, small) {
            (Arithmetic::Add, Some(right), true) => AddSmallBy { to: result, left: first, right },
            (Arithmetic::Add, Some(right), false) => AddBy { to: result, left: first, right },
            (Arithmetic::Subtract, Some(right), true) => {
                AddSmallBy { to: result, left: first, right: -right }
            }
            (Arithmetic::Subtract, Some(right), false) => AddBy { to: result, left: first, right: -right },
            (Arithmetic::Multiply, Some(right), true) => MultiplySmallBy { to: result, left: first, right },
            (Arithmetic::Divide, Some(by @ 2..), true) => {
                DivideSmallBy { to: result, left: first, reciprocal: reciprocal(by.unsigned_abs()) }
            }
            (Arithmetic::Remainder, Some(by @ 2..), true) => {
                let right = by.unsigned_abs();
                RemainderSmallBy { to: result, left: first, right, reciprocal: reciprocal(right) }
            }
            _ => {
                let second = self.number(right)?;
                match (operation, small) {
                    (Arithmetic::Add, true) => AddSmall { to: result, left: first, right: second },
                    (Arithmetic::Add, false) => Add { to: result, left: first, right: second },
                    (Arithmetic::Subtract, true) => SubtractSmall { to: result, left: first, right: second },
                    (Arithmetic::Subtract, false) => Subtract { to: result, left: first, right: second },
                    (Arithmetic::Multiply, true) => MultiplySmall { to: result, left: first, right: second },
                    (Arithmetic::Multiply, false) => Multiply { to: result, left: first, right: second },
                    (Arithmetic::Divide, true) => DivideSmall { to: result, left: first, right: second },
                    (Arithmetic::Divide, false) => Divide { to: result, left: first, right: second },
                    (Arithmetic::Remainder, _) => Remainder { to: result, left: first, right: second },
                }
            }
        };
        self.push(instruction);
        if kind == Kind::Int2 {
            self.push(Fit { to, from: result, kind });
        }
        Some(())
    }

    /// Goes to `past` unless a condition holds.
    pub(super) fn unless(&mut self, condition: &Scalar, past: Label) -> Option<()> {
        if let Node::Compare(orders, operands) = &condition.node
            && operands[0].kind != Kind::Float8
        {
            let [left, right] = &**operands;
            let (left, right, orders): (&Scalar, &Scalar, Orders) = match (number_of(left), number_of(right))
            {
                (Some(_), None) => (right, left, orders.flip()),
                _ => (left, right, *orders),
            };
            let first = self.number(left)?;
            let instruction = match number_of(right) {
                Some(right) => Instruction::JumpUnlessComparedBy { left: first, orders, right, to: past.0 },
                None => {
                    let right = self.number(right)?;
                    Instruction::JumpUnlessCompared { left: first, right, orders, to: past.0 }
                }
            };
            self.push(instruction);
            return Some(());
        }
        let condition = self.number(condition)?;
        self.push(Instruction::JumpUnless { condition, to: past.0 });
        Some(())
    }
}

/// Whether every number of one kind is one of another.
fn widens(from: Kind, to: Kind) -> bool {
    let width = |kind| match kind {
        Kind::Int2 => Some(2),
        Kind::Int4 => Some(4),
        Kind::Int8 => Some(8),
        _ => None,
    };
    width(from).zip(width(to)).is_some_and(|(from, to)| from <= to)
}

/// A constant that an instruction can hold.
fn number_of(scalar: &Scalar) -> Option<i32> {
    match &scalar.node {
        Node::Const(Some(value)) if scalar.kind != Kind::Float8 => i32::try_from(*value).ok(),
        Node::Convert(inner) if widens(inner.kind, scalar.kind) => number_of(inner),
        _ => None,
    }
}
