//! Expressions to instructions.

use archipel_planner::native::scalar::text::Text;
use archipel_planner::native::scalar::{Arithmetic, Kind, Node, Orders, Scalar};

use super::{Label, Lowering};
use crate::run::machine::instruction::{Cell, Instruction};
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
        let (lowest, strips) = (self.lowest, self.strips);
        self.compute(scalar, to)?;
        (self.lowest, self.strips) = (lowest, strips);
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
                let code = self.code(run, reads)?;
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
                let (index, offset) = self.index(index)?;
                let array = self.place_of(*array);
                self.push(Instruction::Element { to, index, offset, kind: scalar.kind, array });
            }
            Node::Extent { extent, array, dimension } => {
                let dimension = self.number(dimension)?;
                let array = self.place_of(*array);
                self.push(Instruction::Extent { to, dimension, extent: *extent, array });
            }
            Node::Measure(measure, text) => {
                let measure = *measure;
                let instruction = match **text {
                    Text::Variable(register) => Instruction::MeasureVariable { to, register, measure },
                    _ => Instruction::Measure { to, of: self.text(text)?, measure },
                };
                self.push(instruction);
            }
            Node::Position(texts) => {
                let [within, of] = &**texts;
                let (within, of) = (self.text(within)?, self.text(of)?);
                self.push(Instruction::Position { to, within, of });
            }
            Node::CompareText(orders, texts) => {
                let [left, right] = &**texts;
                let (left, right) = (self.text(left)?, self.text(right)?);
                self.push(Instruction::CompareText { to, left, right, orders: *orders });
            }
            Node::TextIsNull(text, wanted) => {
                let from = self.text(text)?;
                self.push(Instruction::TextIsNull { to, from, wanted: *wanted });
            }
        }
        Some(())
    }

    /// The index of an element: `i`, `i + 1`, `1 + i % 100`.
    pub(super) fn index(&mut self, index: &Scalar) -> Option<(Cell, i32)> {
        if let (Kind::Int4, Node::Arithmetic(operation, operands)) = (index.kind, &index.node) {
            let [left, right] = &**operands;
            let parts = match (operation, number_of(left), number_of(right)) {
                (Arithmetic::Add, _, Some(by)) => Some((left, by)),
                (Arithmetic::Add, Some(by), None) => Some((right, by)),
                (Arithmetic::Subtract, _, Some(by)) if by != i32::MIN => Some((left, -by)),
                _ => None,
            };
            if let Some((varying, by)) = parts {
                return Some((self.number(varying)?, by));
            }
        }
        Some((self.number(index)?, 0))
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
        if let Node::CompareText(orders, texts) = &condition.node {
            let [left, right] = &**texts;
            let strips = self.strips;
            let left = self.text(left)?;
            let (orders, to) = (*orders, past.0);
            let instruction = match right {
                Text::Const(value) => {
                    Instruction::JumpUnlessTextIs { left, orders, right: self.constant(value)?, to }
                }
                right => Instruction::JumpUnlessText { left, right: self.text(right)?, orders, to },
            };
            self.push(instruction);
            self.strips = strips;
            return Some(());
        }
        let condition = self.number(condition)?;
        self.push(Instruction::JumpUnless { condition, to: past.0 });
        Some(())
    }
}

/// Whether every number of one kind is one of another.
fn widens(from: Kind, to: Kind) -> bool {
    from.width().zip(to.width()).is_some_and(|(from, to)| from <= to)
}

/// A constant that an instruction can hold.
pub(super) fn number_of(scalar: &Scalar) -> Option<i32> {
    match &scalar.node {
        Node::Const(Some(value)) if scalar.kind != Kind::Float8 => i32::try_from(*value).ok(),
        Node::Convert(inner) if widens(inner.kind, scalar.kind) => number_of(inner),
        _ => None,
    }
}
