//! SQL/JSON paths (the manual's chapter 9.16.2). A value of `jsonpath` is its canonical text.
//!
//! - this file the tree, and its text
//! - [`lexer`] and [`parser`] from text to the tree
//! - [`value`] what a path is applied to
//! - [`run`]   application to a value
//! - [`datetime`] dates and times
//! - [`vars`]  variables

mod datetime;
mod lexer;
mod parser;
mod run;
mod value;
mod vars;

pub use datetime::Clock;
pub use run::Application;
pub use value::Value;
pub use vars::Vars;

use std::fmt::Write;

use super::write::string;
use crate::numeric::Numeric;

/// A whole path with its mode.
#[derive(Clone, Debug)]
pub struct JsonPath {
    /// What does not fit the path is passed over, and arrays are unwrapped and wrapped.
    pub lax: bool,
    pub path: Path,
}

/// Where a path begins, and its steps.
#[derive(Clone, Debug)]
pub struct Path {
    pub head: Head,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub enum Head {
    Root,
    Current,
    /// LAST, in a subscript.
    Last,
    Null,
    Bool(bool),
    Number(Numeric),
    String(String),
    Variable(String),
    Arithmetic(Operator, Box<Path>, Box<Path>),
    /// `+` or `-` before a path.
    Sign(Operator, Box<Path>),
    Predicate(Box<Predicate>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
}

impl Operator {
    pub fn symbol(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Modulo => "%",
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::Greater => ">",
            Operator::LessOrEqual => "<=",
            Operator::GreaterOrEqual => ">=",
        }
    }

    fn priority(self) -> u8 {
        match self {
            Operator::Add | Operator::Subtract => 3,
            Operator::Multiply | Operator::Divide | Operator::Modulo => 4,
            _ => 2,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Predicate {
    And(Box<Path>, Box<Path>),
    Or(Box<Path>, Box<Path>),
    Not(Box<Path>),
    IsUnknown(Box<Path>),
    Exists(Box<Path>),
    Compare(Operator, Box<Path>, Box<Path>),
    StartsWith(Box<Path>, Box<Path>),
    LikeRegex { value: Box<Path>, pattern: String, flags: Flags },
}

/// The flags of LIKE_REGEX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub ignore_case: bool,
    pub dot_matches_newline: bool,
    pub lines: bool,
    pub expanded: bool,
    pub quoted: bool,
}

#[derive(Clone, Debug)]
pub enum Step {
    Key(String),
    AnyKey,
    AnyElement,
    Elements(Vec<(Path, Option<Path>)>),
    /// `**`, between two levels; [`LEVEL_LAST`] is `last`.
    Any(u32, u32),
    Filter(Box<Path>),
    Method(Method),
    /// `.datetime()`, perhaps with a template.
    Datetime(Option<String>),
}

/// LAST among the levels of `**`.
pub const LEVEL_LAST: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Type,
    Size,
    Abs,
    Floor,
    Ceiling,
    Double,
    KeyValue,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Type => "type",
            Method::Size => "size",
            Method::Abs => "abs",
            Method::Floor => "floor",
            Method::Ceiling => "ceiling",
            Method::Double => "double",
            Method::KeyValue => "keyvalue",
        }
    }
}

impl From<Head> for Path {
    fn from(head: Head) -> Path {
        Path { head, steps: Vec::new() }
    }
}

impl From<Predicate> for Path {
    fn from(predicate: Predicate) -> Path {
        Head::Predicate(Box::new(predicate)).into()
    }
}

impl Path {
    /// Which operands need parentheses (operationPriority).
    fn priority(&self) -> u8 {
        match &self.head {
            Head::Arithmetic(operator, ..) => operator.priority(),
            Head::Sign(..) => 5,
            Head::Predicate(predicate) => match predicate.as_ref() {
                Predicate::Or(..) => 0,
                Predicate::And(..) => 1,
                Predicate::Compare(..) | Predicate::StartsWith(..) => 2,
                _ => 6,
            },
            _ => 6,
        }
    }

    fn write(&self, parentheses: bool, out: &mut String) {
        let priority = self.priority();
        // What a step would otherwise become a part of.
        let apart = !self.steps.is_empty()
            && match &self.head {
                Head::Number(_) => true,
                Head::Predicate(predicate) => matches!(predicate.as_ref(), Predicate::Not(_)),
                _ => false,
            };
        let parentheses = parentheses || !self.steps.is_empty();
        if apart {
            out.push('(');
        }
        match &self.head {
            Head::Root => out.push('$'),
            Head::Current => out.push('@'),
            Head::Last => out.push_str("last"),
            Head::Null => out.push_str("null"),
            Head::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Head::Number(number) => {
                // Writing to a string cannot fail.
                let _ = write!(out, "{number}");
            }
            Head::String(text) => string(text, out),
            Head::Variable(name) => {
                out.push('$');
                string(name, out);
            }
            Head::Arithmetic(operator, left, right) => {
                binary(left, operator.symbol(), right, priority, parentheses, out);
            }
            Head::Sign(operator, path) => {
                if parentheses {
                    out.push('(');
                }
                out.push_str(operator.symbol());
                path.write(path.priority() <= priority, out);
                if parentheses {
                    out.push(')');
                }
            }
            Head::Predicate(predicate) => predicate.write(priority, parentheses, out),
        }
        if apart {
            out.push(')');
        }
        for step in &self.steps {
            step.write(out);
        }
    }
}

fn binary(left: &Path, symbol: &str, right: &Path, priority: u8, parentheses: bool, out: &mut String) {
    if parentheses {
        out.push('(');
    }
    left.write(left.priority() <= priority, out);
    let _ = write!(out, " {symbol} ");
    right.write(right.priority() <= priority, out);
    if parentheses {
        out.push(')');
    }
}

impl Predicate {
    fn write(&self, priority: u8, parentheses: bool, out: &mut String) {
        match self {
            Predicate::And(left, right) => binary(left, "&&", right, priority, parentheses, out),
            Predicate::Or(left, right) => binary(left, "||", right, priority, parentheses, out),
            Predicate::Compare(operator, left, right) => {
                binary(left, operator.symbol(), right, priority, parentheses, out);
            }
            Predicate::StartsWith(left, right) => {
                binary(left, "starts with", right, priority, parentheses, out);
            }
            Predicate::Not(path) => {
                out.push_str("!(");
                path.write(false, out);
                out.push(')');
            }
            Predicate::IsUnknown(path) => {
                out.push('(');
                path.write(false, out);
                out.push_str(") is unknown");
            }
            Predicate::Exists(path) => {
                out.push_str("exists (");
                path.write(false, out);
                out.push(')');
            }
            Predicate::LikeRegex { value, pattern, flags } => {
                if parentheses {
                    out.push('(');
                }
                value.write(value.priority() <= priority, out);
                out.push_str(" like_regex ");
                string(pattern, out);
                if *flags != Flags::default() {
                    out.push_str(" flag \"");
                    let letters = [
                        (flags.ignore_case, 'i'),
                        (flags.dot_matches_newline, 's'),
                        (flags.lines, 'm'),
                        (flags.expanded, 'x'),
                        (flags.quoted, 'q'),
                    ];
                    out.extend(letters.iter().filter(|(set, _)| *set).map(|(_, letter)| *letter));
                    out.push('"');
                }
                if parentheses {
                    out.push(')');
                }
            }
        }
    }
}

impl Step {
    fn write(&self, out: &mut String) {
        match self {
            Step::Key(key) => {
                out.push('.');
                string(key, out);
            }
            Step::AnyKey => out.push_str(".*"),
            Step::AnyElement => out.push_str("[*]"),
            Step::Elements(ranges) => {
                out.push('[');
                for (place, (from, to)) in ranges.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    from.write(false, out);
                    if let Some(to) = to {
                        out.push_str(" to ");
                        to.write(false, out);
                    }
                }
                out.push(']');
            }
            Step::Any(first, last) => {
                let level = |level: u32| match level {
                    LEVEL_LAST => "last".to_owned(),
                    level => level.to_string(),
                };
                let _ = match (*first, *last) {
                    (0, LEVEL_LAST) => write!(out, ".**"),
                    (first, last) if first == last => write!(out, ".**{{{}}}", level(first)),
                    (first, last) => write!(out, ".**{{{} to {}}}", level(first), level(last)),
                };
            }
            Step::Filter(predicate) => {
                out.push_str("?(");
                predicate.write(false, out);
                out.push(')');
            }
            Step::Method(method) => {
                let _ = write!(out, ".{}()", method.name());
            }
            Step::Datetime(template) => {
                out.push_str(".datetime(");
                if let Some(template) = template {
                    string(template, out);
                }
                out.push(')');
            }
        }
    }
}
