//! Texts, and loops over arrays, to instructions.

use archipel_planner::native::scalar::text::{Part, Text};
use archipel_planner::native::scalar::{Kind, Scalar, SharedExpr};
use compact_str::CompactString;

use super::number::number_of;
use super::{Lowering, Open};
use crate::run::machine::instruction::{Constant, Instruction, Strip};
use crate::run::operation::expression::Expression;
use crate::run::operation::{Looping, Targets};

/// How many strips there may be.
const STRIPS_MAX: u8 = 64;

impl Lowering {
    /// A strip for a text in between; they are given back together.
    fn strip(&mut self) -> Option<Strip> {
        if self.strips >= STRIPS_MAX {
            return None;
        }
        self.strips += 1;
        self.machine.strips = self.machine.strips.max(usize::from(self.strips));
        Some(self.strips - 1)
    }

    /// Makes a text; answers the strip it is on.
    pub(super) fn text(&mut self, text: &Text) -> Option<Strip> {
        match text {
            Text::Const(value) => {
                let to = self.strip()?;
                let text = self.constant(value)?;
                self.push(Instruction::Text { to, text });
                Some(to)
            }
            Text::Variable(register) => {
                let to = self.strip()?;
                self.push(Instruction::TextVariable { to, register: *register });
                Some(to)
            }
            Text::Code { run, reads } => {
                let to = self.strip()?;
                let code = self.code(run, reads)?;
                self.push(Instruction::TextCode { to, code });
                Some(to)
            }
            Text::Element { array, index } => {
                let to = self.strip()?;
                let index = self.number(index)?;
                let array = self.place_of(*array);
                self.push(Instruction::TextElement { to, index, array });
                Some(to)
            }
            Text::Concatenation(pair) => {
                let [left, right] = &**pair;
                let to = self.text(left)?;
                if let Text::Character(code) = right {
                    let code = self.number(code)?;
                    self.push(Instruction::AddCharacter { to, code });
                    return Some(to);
                }
                let other = self.text(right)?;
                self.push(Instruction::Concatenate { to, other });
                self.strips = to + 1;
                Some(to)
            }
            Text::Character(code) => {
                let to = self.strip()?;
                let code = self.number(code)?;
                self.push(Instruction::Character { to, code });
                Some(to)
            }
            Text::Part(part, text, numbers) => {
                let of = self.text(text)?;
                self.part(of, *part, numbers)?;
                self.strips = of + 1;
                Some(of)
            }
            Text::Case(case, text) => {
                let of = self.text(text)?;
                self.push(Instruction::Case { of, case: *case });
                Some(of)
            }
        }
    }

    fn part(&mut self, of: Strip, part: Part, numbers: &[Scalar]) -> Option<()> {
        let first = numbers.first()?;
        let second = numbers.get(1);
        let instruction = match (number_of(first), second, second.and_then(number_of)) {
            (Some(first), None, _) => Instruction::PartBy { of, part, first, second: None },
            (Some(first), Some(_), Some(second)) => {
                Instruction::PartBy { of, part, first, second: Some(second) }
            }
            (None, Some(_), Some(second)) => {
                let first = self.number(first)?;
                Instruction::PartTo { of, part, first, second }
            }
            (_, None, _) => Instruction::Part { of, part, first: self.number(first)?, second: None },
            (_, Some(second), _) => {
                let first = self.number(first)?;
                Instruction::Part { of, part, first, second: Some(self.number(second)?) }
            }
        };
        self.push(instruction);
        Some(())
    }

    /// A text that is known, among those of the machine.
    pub(super) fn constant(&mut self, value: &Option<CompactString>) -> Option<Constant> {
        self.machine.texts.push(value.clone());
        Constant::try_from(self.machine.texts.len() - 1).ok()
    }

    pub(super) fn set_text(&mut self, register: u32, text: &Text) -> Option<()> {
        let from = self.text(text)?;
        self.push(Instruction::SetText { register, from });
        Some(())
    }

    /// All parts are made before the variable changes: they may read it.
    pub(super) fn append_text(&mut self, register: u32, parts: &[Expression]) -> Option<()> {
        let (first, rest) = parts.split_first()?;
        let from = self.text(first.text.as_ref()?)?;
        for part in rest {
            let other = self.text(part.text.as_ref()?)?;
            self.push(Instruction::Concatenate { to: from, other });
            self.strips = from + 1;
        }
        self.push(Instruction::AppendText { register, from });
        Some(())
    }

    /// A closure, and what it reads in its registers.
    pub(super) fn code(&mut self, run: &SharedExpr, reads: &[u32]) -> Option<u16> {
        self.spill(reads);
        self.machine.codes.push(run.clone());
        u16::try_from(self.machine.codes.len() - 1).ok()
    }

    /// `array[i] := value`.
    pub(super) fn set_element(&mut self, array: u8, index: &Scalar, value: &Expression) -> Option<()> {
        match (&value.scalar, &value.text) {
            (Some(scalar), _) => {
                let value = self.number(scalar)?;
                let (index, offset) = self.index(index)?;
                self.push(Instruction::SetElement { index, offset, value, kind: scalar.kind, array });
            }
            (None, Some(text)) => {
                let value = self.text(text)?;
                let index = self.number(index)?;
                self.push(Instruction::SetTextElement { index, value, array });
            }
            _ => return None,
        }
        Some(())
    }

    /// `array := array || value`.
    pub(super) fn push_element(&mut self, array: u8, value: &Expression) -> Option<()> {
        match (&value.scalar, &value.text) {
            (Some(scalar), _) => {
                let value = self.number(scalar)?;
                self.push(Instruction::Push { value, kind: scalar.kind, array });
            }
            (None, Some(text)) => {
                let value = self.text(text)?;
                self.push(Instruction::PushText { value, array });
            }
            _ => return None,
        }
        Some(())
    }

    /// FOREACH.
    pub(super) fn over_array(
        &mut self,
        looping: &Looping,
        (array, reads): (&SharedExpr, &[u32]),
        targets: &Targets,
        kind: Option<Kind>,
        open: Open,
    ) -> Option<()> {
        let (Some(again), leave, end) = (open.again, open.leave, self.label()) else { return None };
        let each = u8::try_from(self.machine.eaches).ok()?;
        self.machine.eaches += 1;
        let register = *targets.registers.first()?;
        let code = self.code(array, reads)?;
        self.push(Instruction::Each { each, code });
        let variable = kind.map(|kind| Some((kind, self.variable(register, kind, true)?)));
        self.place(again);
        match variable {
            Some(variable) => {
                let (kind, variable) = variable?;
                self.push(Instruction::NextElement { each, variable, kind, to: end.0 });
            }
            None => {
                self.spill(&[register]);
                self.push(Instruction::NextDatum { each, register, to: end.0 });
            }
        }
        self.inside(open, &looping.body)?;
        self.push(Instruction::Jump { to: again.0 });
        self.place(leave);
        self.place(end);
        self.push(Instruction::EachFound { each });
        self.reload(self.found);
        Some(())
    }
}
