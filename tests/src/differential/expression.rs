//! Typed expressions.

use rand::RngExt;
use rand::rngs::StdRng;

use super::kind::Kind;
use super::table::{self, Column};
use super::template::templates;

/// An expression: text with expressions in it.
#[derive(Clone, Debug)]
pub struct Expression {
    pub kind: Kind,
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug)]
pub enum Part {
    Text(String),
    /// A value, which may be written as a parameter; `None` is NULL.
    Value(Kind, Option<&'static str>),
    Child(Expression),
}

/// A statement on its way into text: its literals may become parameters.
#[derive(Debug, Default)]
pub struct Writing {
    pub text: String,
    /// The parameters found, where literals become such.
    pub parameters: Option<Vec<(Kind, Option<&'static str>)>>,
    /// Whether parameters go over the wire, so that only types that all know can be declared.
    pub of_wire: bool,
}

impl Writing {
    fn value(&mut self, kind: Kind, value: Option<&'static str>) {
        match &mut self.parameters {
            Some(parameters) if !self.of_wire || kind.of_wire().is_some() => {
                parameters.push((kind, value));
                self.text += &format!("${}", parameters.len());
            }
            _ => self.text += &kind.literal(value),
        }
    }
}

impl Expression {
    pub fn leaf(kind: Kind, text: impl Into<String>) -> Expression {
        Expression { kind, parts: vec![Part::Text(text.into())] }
    }

    pub fn value(kind: Kind, value: Option<&'static str>) -> Expression {
        Expression { kind, parts: vec![Part::Value(kind, value)] }
    }

    /// An expression around another.
    pub fn around(
        kind: Kind,
        before: impl Into<String>,
        inner: Expression,
        after: impl Into<String>,
    ) -> Self {
        let parts = vec![Part::Text(before.into()), Part::Child(inner), Part::Text(after.into())];
        Expression { kind, parts }
    }

    pub fn write(&self, writing: &mut Writing) {
        for part in &self.parts {
            match part {
                Part::Text(text) => writing.text += text,
                Part::Value(kind, value) => writing.value(*kind, *value),
                Part::Child(child) => child.write(writing),
            }
        }
    }

    /// How many expressions it consists of.
    pub fn size(&self) -> usize {
        1 + self.children().map(Expression::size).sum::<usize>()
    }

    pub fn children(&self) -> impl Iterator<Item = &Expression> {
        self.parts.iter().filter_map(|part| match part {
            Part::Child(child) => Some(child),
            Part::Text(_) | Part::Value(..) => None,
        })
    }
}

/// A literal of a kind, or NULL.
fn literal(kind: Kind, random: &mut StdRng) -> Expression {
    let values = kind.values();
    // The further, the rarer: the last ones make most errors, and then there is NULL.
    let place = random.random_range(0..=values.len()).min(random.random_range(0..=values.len()));
    Expression::value(kind, values.get(place).copied())
}

/// An expression of a kind over the columns in sight.
pub fn generate(kind: Kind, columns: &[Column], depth: u32, random: &mut StdRng) -> Expression {
    let own: Vec<&Column> = columns.iter().filter(|column| column.kind == kind).collect();
    if depth == 0 || random.random_bool(0.25) {
        return match own.is_empty() || random.random_bool(0.25) {
            true => literal(kind, random),
            false => Expression::leaf(kind, own[random.random_range(0..own.len())].name.clone()),
        };
    }
    // Forms that exist for every kind.
    let word = kind.word();
    match random.random_range(0..16) {
        0 => {
            let form = format!("CASE WHEN {{bool}} THEN {{{word}}} ELSE {{{word}}} END");
            return fill(kind, &form, columns, depth, random);
        }
        1 => return fill(kind, &format!("coalesce({{{word}}}, {{{word}}})"), columns, depth, random),
        2 if kind.is_ordered() => {
            return fill(kind, &format!("nullif({{{word}}}, {{{word}}})"), columns, depth, random);
        }
        3 if kind.is_ordered() => {
            let call = if random.random_bool(0.5) { "greatest" } else { "least" };
            return fill(kind, &format!("{call}({{{word}}}, {{{word}}})"), columns, depth, random);
        }
        4 if depth > 1 && !columns.is_empty() => {
            if let Some(made) = subquery(kind, columns, depth, random) {
                return made;
            }
        }
        _ => {}
    }
    let templates = templates(kind);
    fill(kind, templates[random.random_range(0..templates.len())], columns, depth, random)
}

/// A template with its arguments.
fn fill(kind: Kind, template: &str, columns: &[Column], depth: u32, random: &mut StdRng) -> Expression {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut last = Kind::Int;
    let mut rest = template;
    while let Some(begin) = rest.find('{') {
        let end = rest[begin..].find('}').map_or(rest.len(), |length| begin + length);
        let wanted = match &rest[begin + 1..end] {
            "any" => Some(Kind::any(random)),
            "ordered" => Some(Kind::such(Kind::is_ordered, random)),
            "same" => Some(last),
            word => Kind::of_word(word),
        };
        let Some(wanted) = wanted else {
            text += &rest[..=begin];
            rest = &rest[begin + 1..];
            continue;
        };
        last = wanted;
        text += &rest[..begin];
        parts.push(Part::Text(std::mem::take(&mut text)));
        parts.push(Part::Child(generate(wanted, columns, depth - 1, random)));
        rest = &rest[end + 1..];
    }
    text += rest;
    parts.push(Part::Text(text));
    Expression { kind, parts }
}

/// A subquery over a table of its own that may see the columns around it; none where a kind has no
/// column there.
fn subquery(kind: Kind, columns: &[Column], depth: u32, random: &mut StdRng) -> Option<Expression> {
    let table = table::any(random);
    let alias = format!("q{depth}");
    let own = table.columns(&alias);
    let mut scope = own.clone();
    scope.extend_from_slice(columns);
    let filter = generate(Kind::Bool, &scope, depth - 2, random);
    let link = match random.random_bool(0.5) {
        true => {
            let outer: Vec<&Column> = columns.iter().filter(|column| column.kind == Kind::Int).collect();
            let outer = outer.get(random.random_range(0..outer.len().max(1)))?;
            format!("{alias}.{} = {} AND ", table.link, outer.name)
        }
        false => String::new(),
    };
    let from = format!(" FROM {} {alias} WHERE {link}", table.name);
    if kind == Kind::Bool {
        let negated = if random.random_bool(0.4) { "NOT " } else { "" };
        if random.random_bool(0.5) {
            return Some(Expression::around(kind, format!("{negated}EXISTS (SELECT 1{from}"), filter, ")"));
        }
        let column = &own[random.random_range(0..own.len())];
        // PostgreSQL takes the fields of a constructed row for several columns, cast or not.
        if !column.kind.is_ordered() || column.kind == Kind::Pair {
            return None;
        }
        let operator = match random.random_range(0..4) {
            0 | 1 => format!(" {negated}IN (SELECT "),
            2 => " >= ANY (SELECT ".to_owned(),
            _ => " < ALL (SELECT ".to_owned(),
        };
        let left = generate(column.kind, columns, depth - 1, random);
        let parts = vec![
            Part::Text("(".to_owned()),
            Part::Child(left),
            Part::Text(format!("{operator}{}{from}", column.name)),
            Part::Child(filter),
            Part::Text("))".to_owned()),
        ];
        return Some(Expression { kind, parts });
    }
    // One row at most: the last one by the table's key, or what is greatest.
    let inner: Vec<&Column> = own.iter().filter(|column| column.kind == kind).collect();
    let column = &inner.get(random.random_range(0..inner.len().max(1)))?.name;
    Some(match kind.has_extremes() && kind != Kind::Amount && random.random_bool(0.5) {
        true => Expression::around(kind, format!("(SELECT max({column}){from}"), filter, ")"),
        false => {
            let after = format!(" ORDER BY {alias}.{} DESC LIMIT 1)", table.key);
            Expression::around(kind, format!("(SELECT {column}{from}"), filter, after)
        }
    })
}
