//! PostgreSQL's advanced regular expressions, written as the `regex` crate reads them.
//!
//! The two agree about most of the syntax. What they do not: the escapes behind a backslash (`\b` is a
//! backspace, `\y` the word boundary), options in front of an expression, comments, what quantifiers may follow
//! and count, brackets ([`super::regex_bracket`]), and what a complement is where newlines end lines. What is written
//! needs no options of the crate's for case and blanks: blanks and comments of an expanded expression are left out,
//! and where case shall not matter each letter is written in both (those of ASCII alone have two, as under the C
//! locale).

use std::iter::Peekable;
use std::str::Chars;

use super::regex_bracket;
use super::regex_escape::{Escaped, Flags, WORD_END, WORD_START, escape, invalid, literal};
use crate::error::{Result, SqlError};
use crate::function::args::invalid_parameter;

/// The flags that the last argument of a function says.
pub(super) fn parse_flags(letters: &str) -> Result<Flags> {
    let mut flags = Flags::default();
    for letter in letters.chars() {
        if letter == 'g' {
            flags.global = true;
        } else if !flags.set(letter) {
            return Err(invalid_parameter(format!("invalid regular expression option: \"{letter}\"")));
        }
    }
    Ok(flags)
}

/// What a quantifier would be about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing that may be repeated: the begin of a branch, or a constraint.
    Nothing,
    Atom,
    Quantified,
}

/// A parenthesis that has not been closed yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    /// A group of this number.
    Capturing(u32),
    Plain,
    /// A constraint.
    Looking,
}

/// An expression in the crate's syntax, and the flags with those that it says itself.
pub(in crate::function) fn translate(pattern: &str, mut flags: Flags) -> Result<(String, Flags)> {
    if flags.literal && (flags.expanded || flags.newline_stops || flags.newline_anchors) {
        return Err(invalid("invalid argument to regex function"));
    }
    let mut body = pattern;
    if !flags.literal {
        if let Some(literal) = pattern.strip_prefix("***=") {
            flags.literal = true;
            body = literal;
        } else {
            body = options(pattern.strip_prefix("***:").unwrap_or(pattern), &mut flags)?;
        }
    }
    let mut out = String::with_capacity(body.len() + 8);
    if flags.literal {
        for c in body.chars() {
            character(c, flags.ignore_case, &mut out);
        }
        return Ok((out, flags));
    }
    let chars = body.chars().peekable();
    let mut reader = Reader { chars, flags, out, before: Before::Nothing, groups: 0, open: Vec::new() };
    reader.read()?;
    Ok((reader.out, flags))
}

/// Reads an expression behind its options, and writes it as the crate reads it.
struct Reader<'p> {
    chars: Peekable<Chars<'p>>,
    flags: Flags,
    out: String,
    before: Before,
    /// How many groups have begun.
    groups: u32,
    open: Vec<Open>,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<()> {
        while let Some(c) = self.chars.next() {
            match c {
                '\\' => self.escape()?,
                '[' => self.brackets()?,
                '(' if self.chars.peek() == Some(&'?') => self.special_group()?,
                '(' => {
                    self.groups += 1;
                    let group = Open::Capturing(self.groups);
                    self.begin_group(group);
                }
                ')' => {
                    self.before = match self.open.pop() {
                        Some(Open::Looking) => Before::Nothing,
                        _ => Before::Atom,
                    };
                    self.out.push(c);
                }
                '|' | '^' | '$' => {
                    self.before = Before::Nothing;
                    self.out.push(c);
                }
                '*' | '+' | '?' => {
                    self.quantify()?;
                    self.out.push(c);
                    self.prefer_less();
                }
                '{' => self.brace()?,
                '#' if self.flags.expanded => self.pass_comment(),
                blank if self.flags.expanded && is_blank(blank) => {}
                '.' => {
                    self.before = Before::Atom;
                    self.out.push(c);
                }
                other => self.atom(other),
            }
        }
        Ok(())
    }

    /// A character that stands for itself.
    fn atom(&mut self, c: char) {
        self.before = Before::Atom;
        character(c, self.flags.ignore_case, &mut self.out);
    }

    /// What begins with a backslash, which has been read.
    fn escape(&mut self) -> Result<()> {
        match escape(&mut self.chars, self.groups)? {
            Escaped::Character(c) => self.atom(c),
            Escaped::Class(class) => {
                self.before = Before::Atom;
                self.out.push_str(class);
            }
            Escaped::Constraint(constraint) => {
                self.before = Before::Nothing;
                self.out.push_str(constraint);
            }
            Escaped::Reference(number)
                if number > self.groups || self.open.contains(&Open::Capturing(number)) =>
            {
                return Err(invalid("invalid backreference number"));
            }
            Escaped::Reference(number) => {
                return Err(SqlError::unsupported(format_args!(
                    "back-reference \\{number} in a regular expression"
                )));
            }
        }
        Ok(())
    }

    /// What begins with a bracket, which has been read.
    fn brackets(&mut self) -> Result<()> {
        let rest: String = self.chars.clone().take(6).collect();
        if rest == "[:<:]]" || rest == "[:>:]]" {
            self.out.push_str(if rest == "[:<:]]" { WORD_START } else { WORD_END });
            self.chars.nth(5);
            self.before = Before::Nothing;
            return Ok(());
        }
        self.before = Before::Atom;
        regex_bracket::translate(&mut self.chars, self.flags, self.groups, &mut self.out)
    }

    /// What begins with `(?`, of which the parenthesis has been read. A comment leaves what is before it.
    fn special_group(&mut self) -> Result<()> {
        let behind: String = self.chars.clone().take(3).collect();
        let (length, open) = match behind.as_bytes() {
            [b'?', b'#', ..] => {
                let _ = self.chars.find(|c| *c == ')');
                return Ok(());
            }
            [b'?', b':', ..] => (2, Open::Plain),
            [b'?', b'=' | b'!', ..] => (2, Open::Looking),
            [b'?', b'<', b'=' | b'!'] => (3, Open::Looking),
            _ => return Err(invalid("quantifier operand invalid")),
        };
        self.begin_group(open);
        self.out.extend(self.chars.by_ref().take(length));
        Ok(())
    }

    fn begin_group(&mut self, open: Open) {
        self.open.push(open);
        self.out.push('(');
        self.before = Before::Nothing;
    }

    /// Takes note of a quantifier, which repeats what stands before it.
    fn quantify(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.before, Before::Quantified) {
            Before::Atom => Ok(()),
            Before::Nothing | Before::Quantified => Err(invalid("quantifier operand invalid")),
        }
    }

    /// What makes a quantifier match little.
    fn prefer_less(&mut self) {
        self.out.extend(self.chars.next_if_eq(&'?'));
    }

    /// A brace, which has been read: a quantifier, if a number follows.
    fn brace(&mut self) -> Result<()> {
        self.pass_blanks();
        if !self.chars.peek().is_some_and(char::is_ascii_digit) {
            self.atom('{');
            return Ok(());
        }
        self.quantify()?;
        let least = self.count()?;
        let mut counts = least.to_string();
        if self.next_in_braces()? == ',' {
            self.chars.next();
            counts.push(',');
            if self.next_in_braces()?.is_ascii_digit() {
                let most = self.count()?;
                if most < least {
                    return Err(wrong_count());
                }
                counts.push_str(&most.to_string());
            }
        }
        if self.chars.next() != Some('}') {
            return Err(wrong_count());
        }
        self.out.push_str(&format!("{{{counts}}}"));
        self.prefer_less();
        Ok(())
    }

    /// A number in braces.
    fn count(&mut self) -> Result<u32> {
        const MOST: u32 = 255;
        let mut value = 0;
        while value < MOST
            && let Some(digit) = self.next_in_braces()?.to_digit(10)
        {
            value = value * 10 + digit;
            self.chars.next();
        }
        let goes_on = self.next_in_braces()?.is_ascii_digit();
        if goes_on || value > MOST { Err(wrong_count()) } else { Ok(value) }
    }

    /// What comes next in braces: something must.
    fn next_in_braces(&mut self) -> Result<char> {
        self.pass_blanks();
        self.chars.peek().copied().ok_or_else(|| invalid("braces {} not balanced"))
    }

    /// Passes by blanks and comments, if the expression is expanded.
    fn pass_blanks(&mut self) {
        while self.flags.expanded
            && let Some(c) = self.chars.next_if(|c| is_blank(*c) || *c == '#')
        {
            if c == '#' {
                self.pass_comment();
            }
        }
    }

    /// Passes by the rest of a line.
    fn pass_comment(&mut self) {
        let _ = self.chars.find(|c| *c == '\n');
    }
}

fn wrong_count() -> SqlError {
    invalid("invalid repetition count(s)")
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

/// What stands behind the options in front of an expression.
fn options<'p>(body: &'p str, flags: &mut Flags) -> Result<&'p str> {
    let Some(rest) =
        body.strip_prefix("(?").filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    else {
        return Ok(body);
    };
    let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    if !rest[..letters].chars().all(|letter| flags.set(letter)) {
        return Err(invalid("invalid embedded option"));
    }
    rest[letters..].strip_prefix(')').ok_or_else(|| invalid("invalid embedded option"))
}

/// A character that stands for itself, outside of brackets.
fn character(c: char, ignore_case: bool, out: &mut String) {
    if ignore_case && c.is_ascii_alphabetic() {
        out.extend(['[', c.to_ascii_lowercase(), c.to_ascii_uppercase(), ']']);
    } else {
        literal(c, out);
    }
}
