//! Statements in parts, and how they are given to a server.

use super::expression::{Expression, Writing};
use super::kind::Kind;

/// How a statement is given to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As text.
    Text,
    /// Prepared and executed in SQL, its literals being parameters.
    Prepared,
    /// Prepared and executed by messages, its literals being parameters, its results binary.
    Binary,
}

/// A statement in parts.
#[derive(Clone, Debug)]
pub struct Statement {
    pub clauses: Vec<Clause>,
    /// The tables it changes.
    pub changed: Vec<&'static str>,
    pub way: Way,
}

/// A clause: its text before, its expressions, what stands between and after them.
#[derive(Clone, Debug)]
pub struct Clause {
    pub before: String,
    pub items: Vec<Expression>,
    pub between: &'static str,
    pub after: String,
    /// Whether the statement makes sense without it, and without all but one of its items.
    pub optional: bool,
    pub fewer: bool,
    /// Whether it puts the rows of the whole statement into a total order.
    pub orders: bool,
}

impl Clause {
    pub fn text(text: impl Into<String>) -> Clause {
        Clause {
            before: text.into(),
            items: Vec::new(),
            between: "",
            after: String::new(),
            optional: false,
            fewer: false,
            orders: false,
        }
    }

    /// ORDER BY: an expression, and `after` it what makes the order total.
    pub fn order(item: Expression, after: impl Into<String>) -> Clause {
        Clause { orders: true, ..Clause::optional(" ORDER BY ", item).then(after) }
    }

    /// Text without which the statement makes sense.
    pub fn option(text: impl Into<String>) -> Clause {
        Clause { optional: true, ..Clause::text(text) }
    }

    pub fn single(text: impl Into<String>, item: Expression) -> Clause {
        Clause { items: vec![item], ..Clause::text(text) }
    }

    pub fn optional(text: impl Into<String>, item: Expression) -> Clause {
        Clause { optional: true, ..Clause::single(text, item) }
    }

    pub fn list(text: impl Into<String>, items: Vec<Expression>) -> Clause {
        Clause { items, between: ", ", fewer: true, ..Clause::text(text) }
    }

    /// A list all of whose items are needed.
    pub fn fixed(text: impl Into<String>, items: Vec<Expression>) -> Clause {
        Clause { fewer: false, ..Clause::list(text, items) }
    }

    /// What stands after its items.
    pub fn then(mut self, after: impl Into<String>) -> Clause {
        self.after = after.into();
        self
    }

    fn write(&self, writing: &mut Writing) {
        writing.text += &self.before;
        for (place, item) in self.items.iter().enumerate() {
            if place > 0 {
                writing.text += self.between;
            }
            item.write(writing);
        }
        writing.text += &self.after;
    }
}

/// A statement as text, with its parameters if it has such.
#[derive(Clone, Debug)]
pub struct Written {
    pub text: String,
    pub parameters: Vec<(Kind, Option<&'static str>)>,
    /// Whether the order of its rows is part of its answer.
    pub ordered: bool,
    pub changed: Vec<&'static str>,
    pub way: Way,
}

impl Statement {
    pub fn query(clauses: Vec<Clause>) -> Statement {
        Statement { clauses, changed: Vec::new(), way: Way::Text }
    }

    pub fn change(table: &'static str, clauses: Vec<Clause>) -> Statement {
        Statement { clauses, changed: vec![table], way: Way::Text }
    }

    pub fn written(&self) -> Written {
        let mut writing = Writing {
            parameters: (self.way != Way::Text).then(Vec::new),
            of_wire: self.way == Way::Binary,
            ..Writing::default()
        };
        for clause in &self.clauses {
            clause.write(&mut writing);
        }
        Written {
            text: writing.text,
            parameters: writing.parameters.unwrap_or_default(),
            ordered: self.clauses.iter().any(|clause| clause.orders),
            changed: self.changed.clone(),
            way: self.way,
        }
    }
}

impl Written {
    /// A text as it stands.
    pub fn plain(text: &str) -> Written {
        let (text, parameters, changed) = (text.to_owned(), Vec::new(), Vec::new());
        Written { text, parameters, ordered: false, changed, way: Way::Text }
    }

    /// Whether it changes tables, so that it has to be undone.
    pub fn changes(&self) -> bool {
        !self.changed.is_empty() || !self.text.starts_with("SELECT") && !self.text.starts_with("WITH")
    }

    /// What prepares it in SQL, and what executes it then.
    pub fn preparation(&self) -> (String, String) {
        let types: Vec<&str> = self.parameters.iter().map(|(kind, _)| kind.name()).collect();
        let values: Vec<String> = self.parameters.iter().map(|(kind, value)| kind.literal(*value)).collect();
        let listed = |texts: String| if texts.is_empty() { texts } else { format!("({texts})") };
        (
            format!("PREPARE made{} AS {}", listed(types.join(", ")), self.text),
            format!("EXECUTE made{}", listed(values.join(", "))),
        )
    }
}

impl std::fmt::Display for Written {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.way {
            Way::Text => write!(f, "{}", self.text),
            Way::Prepared => {
                let (prepare, execute) = self.preparation();
                write!(f, "{prepare};\n{execute}")
            }
            Way::Binary => write!(f, "{} \\bind {:?} (binary)", self.text, self.parameters),
        }
    }
}
