//! Where something stands in a text, and the errors that say so.

use sqlparser::tokenizer::Location;

use crate::error::{SqlError, SqlState};

/// Every so many characters of a text, [`Positions`] remembers where they stand.
const MARK_EVERY: usize = 64;

/// Translates sqlparser's line and column into offsets of the text. Making one reads the text once;
/// asking it takes no longer for a long text than for a short one.
#[derive(Clone, Debug)]
pub struct Positions<'t> {
    text: &'t str,
    /// Byte offset and character number at which each line starts.
    lines: Vec<(usize, usize)>,
    /// Byte offsets of every [`MARK_EVERY`]th character; empty where each character is a byte.
    marks: Vec<usize>,
    characters: usize,
}

impl<'t> Positions<'t> {
    pub fn new(text: &'t str) -> Self {
        let mut lines = vec![(0, 0)];
        if text.is_ascii() {
            lines.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| (at + 1, at + 1)));
            return Positions { text, lines, marks: Vec::new(), characters: text.len() };
        }
        let mut marks = Vec::with_capacity(text.len() / MARK_EVERY + 1);
        for (number, (offset, character)) in text.char_indices().enumerate() {
            if number.is_multiple_of(MARK_EVERY) {
                marks.push(offset);
            }
            if character == '\n' {
                lines.push((offset + 1, number + 1));
            }
        }
        Positions { text, lines, marks, characters: text.chars().count() }
    }

    /// The place of a line in `lines`.
    fn line(at: Location) -> Option<usize> {
        usize::try_from(at.line).ok()?.checked_sub(1)
    }

    /// The byte offset of a location; the end of the text for one beyond it.
    pub fn byte(&self, at: Location) -> usize {
        let Some(&(line, number)) = Self::line(at).and_then(|line| self.lines.get(line)) else {
            return self.text.len();
        };
        let column = (at.column as usize).saturating_sub(1);
        if self.marks.is_empty() {
            return (line + column).min(self.text.len());
        }
        let number = number + column;
        let Some(&mark) = self.marks.get(number / MARK_EVERY) else { return self.text.len() };
        let behind = self.text[mark..].char_indices().nth(number % MARK_EVERY);
        behind.map_or(self.text.len(), |(offset, _)| mark + offset)
    }

    /// The one-based character position of a location, as the protocol reports it; that of the line's end
    /// for one beyond that.
    pub fn character(&self, at: Location) -> Option<u32> {
        let line = Self::line(at)?;
        let &(_, start) = self.lines.get(line)?;
        let end = self.lines.get(line + 1).map_or(self.characters, |&(_, next)| next - 1);
        u32::try_from(start + (at.column as usize).min(end - start + 1)).ok()
    }

    /// The one-based character position of a byte offset.
    pub fn character_of_byte(&self, byte: usize) -> u32 {
        let characters = match self.marks.partition_point(|&mark| mark < byte).checked_sub(1) {
            None if self.marks.is_empty() => byte,
            None => 0,
            Some(place) => {
                let mark = self.marks[place];
                let behind = self.text[mark..].char_indices();
                place * MARK_EVERY + behind.take_while(|&(offset, _)| mark + offset < byte).count()
            }
        };
        u32::try_from(characters + 1).unwrap_or(u32::MAX)
    }

    pub fn text(&self) -> &'t str {
        self.text
    }
}

/// The one-based character position of a sqlparser location in `text`: what an error of the
/// binder carries. `None` for sqlparser's empty location.
pub fn position(text: &str, at: Location) -> Option<u32> {
    if at.line == 0 { None } else { Positions::new(text).character(at) }
}

/// `syntax error at or near "…"`; at the end of the input when `near` is empty.
pub(in crate::parser) fn syntax_error(near: &str, position: u32) -> SqlError {
    let message = if near.is_empty() {
        "syntax error at end of input".to_string()
    } else {
        format!("syntax error at or near \"{near}\"")
    };
    SqlError::new(SqlState::SYNTAX_ERROR, message).at(Some(position))
}

/// 54001, for texts that nest deeper than the parser and what follows it would follow.
pub(in crate::parser) fn too_deep() -> SqlError {
    crate::stack::too_deep()
}
