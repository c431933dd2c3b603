//! Texts of the machine of loops ([`crate::run::machine`]).
//!
//! A text on its way through an expression is on a strip: a window on a variable or a constant as
//! long as it is a part of one, and a copy of its own from the moment on that something is added
//! to it. So `left(v, 1) = 'q'` copies nothing, and `v := substr(v || c, 2)` fills the strip's buffer
//! and then the variable's: a loop that goes on like this allocates nothing.
//!
//! Invariant: a strip is a window on a variable within one expression only; variables change after
//! their expressions have been computed.

use std::cmp::Ordering;

use archipel_planner::native::scalar::Orders;
use archipel_planner::native::scalar::text::{Case, Measure, Part};
use archipel_planner::native::{ExecError, ExecResult};
use archipel_sql::datum::Datum;
use archipel_sql::function::{text_chr, text_left, text_length, text_right, text_substring};
use compact_str::CompactString;

use super::instruction::{Constant, Strip};
use crate::run::append::{TEXT_LEN_MAX, too_long};

/// Where the text of a strip is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Origin {
    #[default]
    Null,
    Own,
    /// In a register.
    Variable(u32),
    Constant(Constant),
}

#[derive(Default)]
struct Window {
    origin: Origin,
    /// Bytes.
    from: usize,
    to: usize,
    own: String,
}

/// A text of more bytes than this is handed on with its buffer, and not copied into another one.
const COPIED_MAX: usize = 1024;

/// The strips of a run.
pub(super) struct Strips<'m> {
    windows: Vec<Window>,
    constants: &'m [Option<CompactString>],
}

impl<'m> Strips<'m> {
    pub fn new(count: usize, constants: &'m [Option<CompactString>]) -> Strips<'m> {
        let mut windows = Vec::new();
        windows.resize_with(count, Window::default);
        Strips { windows, constants }
    }

    /// The text on a strip; `None` is NULL.
    #[inline]
    pub fn text<'s>(&'s self, variables: &'s [Datum], strip: Strip) -> Option<&'s str> {
        let window = &self.windows[usize::from(strip)];
        let whole: &str = match window.origin {
            Origin::Null => return None,
            Origin::Own => &window.own,
            Origin::Variable(register) => match &variables[register as usize] {
                Datum::Text(text) => text,
                _ => return None,
            },
            Origin::Constant(at) => self.constants[usize::from(at)].as_deref()?,
        };
        Some(&whole[window.from..window.to])
    }

    fn lay(&mut self, strip: Strip, origin: Origin, length: Option<usize>) {
        let window = &mut self.windows[usize::from(strip)];
        window.from = 0;
        (window.origin, window.to) = match length {
            Some(length) => (origin, length),
            None => (Origin::Null, 0),
        };
    }

    pub fn lay_null(&mut self, strip: Strip) {
        self.lay(strip, Origin::Null, None);
    }

    pub fn lay_constant(&mut self, strip: Strip, constant: Constant) {
        let length = self.constants[usize::from(constant)].as_ref().map(|text| text.len());
        self.lay(strip, Origin::Constant(constant), length);
    }

    /// A whole variable; false if it holds what is no text.
    pub fn lay_variable(&mut self, variables: &[Datum], strip: Strip, register: u32) -> bool {
        let length = match &variables[register as usize] {
            Datum::Text(text) => Some(text.len()),
            Datum::Null => None,
            _ => return false,
        };
        self.lay(strip, Origin::Variable(register), length);
        true
    }

    /// A value of its own; false if that is no text.
    pub fn lay_value(&mut self, strip: Strip, value: Datum) -> bool {
        match value {
            Datum::Text(text) if text.len() > COPIED_MAX => {
                let length = text.len();
                self.windows[usize::from(strip)].own = text.into_string();
                self.lay(strip, Origin::Own, Some(length));
                true
            }
            value => self.lay_copy(strip, &value),
        }
    }

    /// The same for one that stays where it is.
    pub fn lay_copy(&mut self, strip: Strip, value: &Datum) -> bool {
        match value {
            Datum::Text(text) => {
                let own = &mut self.windows[usize::from(strip)].own;
                own.clear();
                own.push_str(text);
                self.lay(strip, Origin::Own, Some(text.len()));
            }
            Datum::Null => self.lay_null(strip),
            _ => return false,
        }
        true
    }

    pub fn lay_character(&mut self, strip: Strip, code: Option<i64>) -> ExecResult<()> {
        let Some(code) = code else {
            self.lay_null(strip);
            return Ok(());
        };
        let character = text_chr(code as i32)?;
        let own = &mut self.windows[usize::from(strip)].own;
        own.clear();
        own.push(character);
        self.lay(strip, Origin::Own, Some(character.len_utf8()));
        Ok(())
    }

    /// Adds the character with a code; answers how many bytes were moved.
    pub fn add_character(
        &mut self,
        variables: &[Datum],
        strip: Strip,
        code: Option<i64>,
    ) -> ExecResult<usize> {
        let character = match code {
            Some(code) => Some(text_chr(code as i32)?),
            None => None,
        };
        let (Some(character), Some(mut own)) = (character, self.lend(variables, strip)) else {
            self.lay_null(strip);
            return Ok(0);
        };
        let moved = own.len() + character.len_utf8();
        let fits = moved <= TEXT_LEN_MAX;
        if fits {
            own.push(character);
        }
        self.give_back(strip, own);
        if fits { Ok(moved) } else { Err(too_long(moved)) }
    }

    /// Makes what is on a strip its own, to be changed; answers the buffer, lent until it is given
    /// back. `None` for NULL.
    fn lend(&mut self, variables: &[Datum], strip: Strip) -> Option<String> {
        let window = &mut self.windows[usize::from(strip)];
        let mut own = std::mem::take(&mut window.own);
        if window.origin == Origin::Own {
            own.truncate(window.to);
            return Some(own);
        }
        own.clear();
        match self.text(variables, strip) {
            Some(text) => own.push_str(text),
            None => {
                self.windows[usize::from(strip)].own = own;
                return None;
            }
        }
        self.lay(strip, Origin::Own, Some(own.len()));
        Some(own)
    }

    fn give_back(&mut self, strip: Strip, own: String) {
        let window = &mut self.windows[usize::from(strip)];
        window.to = own.len();
        window.own = own;
    }

    /// Adds what is on another strip; answers how many bytes were moved.
    pub fn concatenate(&mut self, variables: &[Datum], strip: Strip, other: Strip) -> ExecResult<usize> {
        let Some(mut own) = self.lend(variables, strip) else { return Ok(0) };
        let (mut moved, mut null) = (0, true);
        if let Some(more) = self.text(variables, other) {
            (moved, null) = (own.len() + more.len(), false);
            if moved <= TEXT_LEN_MAX {
                own.push_str(more);
            }
        }
        self.give_back(strip, own);
        if null {
            self.lay_null(strip);
        }
        if moved <= TEXT_LEN_MAX { Ok(moved) } else { Err(too_long(moved)) }
    }

    /// Narrows a strip to a part of its text.
    pub fn part(
        &mut self,
        variables: &[Datum],
        strip: Strip,
        part: Part,
        (first, second): (Option<i64>, Option<Option<i64>>),
    ) -> ExecResult<()> {
        let (Some(text), Some(first)) = (self.text(variables, strip), first) else {
            self.lay_null(strip);
            return Ok(());
        };
        let first = first as i32;
        let selected = match (part, second) {
            (Part::Left, _) => text_left(text, first),
            (Part::Right, _) => text_right(text, first),
            (Part::Substring, None) => text_substring(text, first, None)?,
            (Part::Substring, Some(Some(length))) => text_substring(text, first, Some(length as i32))?,
            (Part::Substring, Some(None)) => {
                self.lay_null(strip);
                return Ok(());
            }
        };
        let length = selected.len();
        // Nothing may be selected from anywhere.
        let skipped = if length == 0 { 0 } else { selected.as_ptr() as usize - text.as_ptr() as usize };
        let window = &mut self.windows[usize::from(strip)];
        window.from += skipped;
        window.to = window.from + length;
        Ok(())
    }

    pub fn case(&mut self, variables: &[Datum], strip: Strip, case: Case) {
        let Some(mut own) = self.lend(variables, strip) else { return };
        // The C locale knows ASCII letters only.
        match case {
            Case::Upper => own.make_ascii_uppercase(),
            Case::Lower => own.make_ascii_lowercase(),
        }
        self.give_back(strip, own);
    }

    pub fn measure(&self, variables: &[Datum], strip: Strip, what: Measure) -> Option<i64> {
        self.text(variables, strip).map(|text| measure(text, what))
    }

    /// Whether two texts are in one of these orders; `None` if one of them is NULL.
    #[inline]
    pub fn compare(&self, variables: &[Datum], left: Strip, right: Strip, orders: Orders) -> Option<bool> {
        let (left, right) = (self.text(variables, left)?, self.text(variables, right)?);
        Some(in_order(left, right, orders))
    }

    /// The buffer of a long text that is all of what is in it.
    fn long(&mut self, strip: Strip) -> Option<CompactString> {
        let window = &mut self.windows[usize::from(strip)];
        if window.origin != Origin::Own || window.from > 0 || window.to <= COPIED_MAX {
            return None;
        }
        window.own.truncate(window.to);
        window.origin = Origin::Null;
        Some(std::mem::take(&mut window.own).into())
    }

    /// What is on a strip, as a value.
    pub fn datum(&mut self, variables: &[Datum], strip: Strip) -> Datum {
        match self.long(strip) {
            Some(text) => Datum::Text(text),
            None => self.text(variables, strip).map_or(Datum::Null, Datum::text),
        }
    }

    /// Assigns what is on a strip to a variable; answers how many bytes were moved.
    pub fn assign(&mut self, variables: &mut [Datum], register: u32, strip: Strip) -> usize {
        let window = &mut self.windows[usize::from(strip)];
        let variable = &mut variables[register as usize];
        let moved = window.to - window.from;
        match window.origin {
            Origin::Null => variable.set(Datum::Null),
            Origin::Variable(of) if of == register => {
                if let Datum::Text(text) = variable {
                    text.truncate(window.to);
                    if window.from > 0 {
                        text.replace_range(..window.from, "");
                    }
                }
            }
            _ => {
                if let Some(text) = self.long(strip) {
                    variable.set(Datum::Text(text));
                    return moved;
                }
                let mut text = match variable.take() {
                    Datum::Text(text) => text,
                    _ => CompactString::default(),
                };
                text.clear();
                text.push_str(self.text(variables, strip).unwrap_or_default());
                variables[register as usize].set(Datum::Text(text));
            }
        }
        moved
    }

    /// Adds what is on a strip to the end of a variable; answers how many bytes were moved.
    pub fn append(
        &mut self,
        variables: &mut [Datum],
        register: u32,
        strip: Strip,
    ) -> Result<usize, ExecError> {
        if self.windows[usize::from(strip)].origin == Origin::Variable(register)
            && let Some(own) = self.lend(variables, strip)
        {
            self.give_back(strip, own);
        }
        let Datum::Text(mut text) = variables[register as usize].take() else { return Ok(0) };
        let Some(more) = self.text(variables, strip) else { return Ok(0) };
        let moved = more.len();
        let length = text.len() + moved;
        let fits = length <= TEXT_LEN_MAX;
        if fits {
            text.push_str(more);
        }
        variables[register as usize].set(Datum::Text(text));
        if fits { Ok(moved) } else { Err(too_long(length)) }
    }
}

/// What an integer says of a text.
pub(super) fn measure(text: &str, what: Measure) -> i64 {
    match what {
        Measure::Length => text_length(text) as i64,
        Measure::Bytes => text.len() as i64,
        Measure::First => text.chars().next().map_or(0, |first| i64::from(u32::from(first))),
    }
}

/// Whether two texts are in one of these orders.
#[inline]
pub(super) fn in_order(left: &str, right: &str, orders: Orders) -> bool {
    // Of different lengths, two are not alike.
    if orders.is_equality() && left.len() != right.len() {
        return orders.take(Ordering::Less);
    }
    orders.take(left.as_bytes().cmp(right.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_variable_becomes_the_variable() {
        let mut variables = [Datum::text("größer"), Datum::Null];
        let mut strips = Strips::new(2, &[]);
        assert!(strips.lay_variable(&variables, 0, 0));
        strips.part(&variables, 0, Part::Substring, (Some(3), Some(Some(3)))).unwrap();
        assert_eq!(strips.text(&variables, 0), Some("öße"));
        strips.part(&variables, 0, Part::Right, (Some(2), None)).unwrap();
        assert_eq!(strips.assign(&mut variables, 0, 0), "ße".len());
        assert_eq!(variables[0], Datum::text("ße"));
        assert!(strips.lay_variable(&variables, 0, 0) && strips.lay_variable(&variables, 1, 1));
        strips.concatenate(&variables, 0, 1).unwrap();
        assert_eq!(strips.text(&variables, 0), None);
    }

    #[test]
    fn what_is_added_goes_behind_the_window() {
        let mut variables = [Datum::text("abcdef"), Datum::text("x")];
        let mut strips = Strips::new(2, &[]);
        assert!(strips.lay_variable(&variables, 0, 0) && strips.lay_variable(&variables, 1, 1));
        strips.concatenate(&variables, 0, 1).unwrap();
        strips.part(&variables, 0, Part::Substring, (Some(2), Some(Some(3)))).unwrap();
        strips.add_character(&variables, 0, Some(233)).unwrap();
        assert_eq!(strips.text(&variables, 0), Some("bcdé"));
        strips.append(&mut variables, 1, 0).unwrap();
        assert_eq!((&variables[0], &variables[1]), (&Datum::text("abcdef"), &Datum::text("xbcdé")));
        assert!(strips.lay_variable(&variables, 1, 1));
        strips.append(&mut variables, 1, 1).unwrap();
        assert_eq!(variables[1], Datum::text("xbcdéxbcdé"));
    }
}
