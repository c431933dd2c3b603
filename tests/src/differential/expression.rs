//! Typed expressions.

use rand::RngExt;
use rand::rngs::StdRng;

/// The types expressions are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Int,
    Big,
    Numeric,
    Float,
    Text,
    Bool,
    Date,
    Timestamp,
    Interval,
}

pub const KINDS: [Kind; 9] = [
    Kind::Int,
    Kind::Big,
    Kind::Numeric,
    Kind::Float,
    Kind::Text,
    Kind::Bool,
    Kind::Date,
    Kind::Timestamp,
    Kind::Interval,
];

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Int => "int",
            Kind::Big => "bigint",
            Kind::Numeric => "numeric",
            Kind::Float => "float8",
            Kind::Text => "text",
            Kind::Bool => "boolean",
            Kind::Date => "date",
            Kind::Timestamp => "timestamp",
            Kind::Interval => "interval",
        }
    }
}

/// An expression: text with expressions in it.
#[derive(Clone, Debug)]
pub struct Expression {
    pub kind: Kind,
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug)]
pub enum Part {
    Text(String),
    Child(Expression),
}

impl Expression {
    pub fn leaf(kind: Kind, text: impl Into<String>) -> Expression {
        Expression { kind, parts: vec![Part::Text(text.into())] }
    }

    pub fn sql(&self) -> String {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.clone(),
                Part::Child(child) => child.sql(),
            })
            .collect()
    }

    /// How many expressions it consists of.
    pub fn size(&self) -> usize {
        1 + self.children().map(Expression::size).sum::<usize>()
    }

    pub fn children(&self) -> impl Iterator<Item = &Expression> {
        self.parts.iter().filter_map(|part| match part {
            Part::Child(child) => Some(child),
            Part::Text(_) => None,
        })
    }
}

/// A column in sight.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
}

/// Templates by result: `$` and a letter stands for an argument of a kind.
const TEMPLATES: &[(Kind, &str)] = &[
    (Kind::Int, "($i + $i)"),
    (Kind::Int, "($i - $i)"),
    (Kind::Int, "($i * $i)"),
    (Kind::Int, "($i / $i)"),
    (Kind::Int, "($i % $i)"),
    (Kind::Int, "(- $i)"),
    (Kind::Int, "abs($i)"),
    (Kind::Int, "length($t)"),
    (Kind::Int, "position($t in $t)"),
    (Kind::Int, "($d - $d)"),
    (Kind::Int, "CAST($n AS int)"),
    (Kind::Int, "CAST($f AS int)"),
    (Kind::Int, "CAST($b AS int)"),
    (Kind::Int, "CAST($o AS int)"),
    (Kind::Int, "($i & $i)"),
    (Kind::Int, "($i # 5)"),
    (Kind::Int, "ascii($t)"),
    (Kind::Int, "extract(day from $d)::int"),
    (Kind::Int, "CAST(CAST($i AS text) AS int)"),
    (Kind::Big, "($b + $i)"),
    (Kind::Big, "($b * $b)"),
    (Kind::Big, "($b / $b)"),
    (Kind::Big, "CAST($i AS bigint)"),
    (Kind::Big, "mod($b, $b)"),
    (Kind::Big, "CAST($n AS bigint)"),
    (Kind::Numeric, "($n + $n)"),
    (Kind::Numeric, "($n - $i)"),
    (Kind::Numeric, "($n * $n)"),
    (Kind::Numeric, "($n / $n)"),
    (Kind::Numeric, "round($n, 1)"),
    (Kind::Numeric, "trunc($n)"),
    (Kind::Numeric, "ceil($n)"),
    (Kind::Numeric, "abs($n)"),
    (Kind::Numeric, "mod($n, $n)"),
    (Kind::Numeric, "CAST($i AS numeric(9,2))"),
    (Kind::Numeric, "CAST($n AS numeric(6,1))"),
    (Kind::Numeric, "CAST($b AS numeric)"),
    (Kind::Numeric, "extract(epoch from $s)"),
    (Kind::Numeric, "sign($n)"),
    (Kind::Float, "($f + $f)"),
    (Kind::Float, "($f * $f)"),
    (Kind::Float, "($f / $f)"),
    (Kind::Float, "CAST($n AS float8)"),
    (Kind::Float, "floor($f)"),
    (Kind::Float, "CAST($i AS float8)"),
    (Kind::Text, "($t || $t)"),
    (Kind::Text, "($t || $i)"),
    (Kind::Text, "upper($t)"),
    (Kind::Text, "substr($t, $i, 2)"),
    (Kind::Text, "left($t, $i)"),
    (Kind::Text, "replace($t, 'p', $t)"),
    (Kind::Text, "trim($t)"),
    (Kind::Text, "lpad($t, 4, '*')"),
    (Kind::Text, "concat($t, $i, $o)"),
    (Kind::Text, "CAST($n AS text)"),
    (Kind::Text, "CAST($d AS text)"),
    (Kind::Text, "CAST($o AS text)"),
    (Kind::Text, "CAST($t AS varchar(2))"),
    (Kind::Text, "split_part($t, 'a', 1)"),
    (Kind::Text, "to_char($s, 'YYYY-MM-DD HH24:MI')"),
    (Kind::Text, "to_char($i, '999')"),
    (Kind::Text, "CAST($v AS text)"),
    (Kind::Bool, "($i < $i)"),
    (Kind::Bool, "($i = $b)"),
    (Kind::Bool, "($n >= $i)"),
    (Kind::Bool, "($f <> $n)"),
    (Kind::Bool, "($t < $t)"),
    (Kind::Bool, "($t LIKE 'p%')"),
    (Kind::Bool, "($t ~ '[0-3]$$')"),
    (Kind::Bool, "($d <= $d)"),
    (Kind::Bool, "($s > $d)"),
    (Kind::Bool, "($o AND $o)"),
    (Kind::Bool, "($o OR $o)"),
    (Kind::Bool, "(NOT $o)"),
    (Kind::Bool, "($i IS NULL)"),
    (Kind::Bool, "($o IS NOT TRUE)"),
    (Kind::Bool, "($t IS DISTINCT FROM $t)"),
    (Kind::Bool, "($i IN ($i, $i, 3))"),
    (Kind::Bool, "($i NOT IN ($i, 2))"),
    (Kind::Bool, "($i BETWEEN $i AND $i)"),
    (Kind::Bool, "($i = ANY (ARRAY[$i, $i]))"),
    (Kind::Bool, "(($i, $t) < ($i, $t))"),
    (Kind::Bool, "($v < $v)"),
    (Kind::Date, "($d + $i)"),
    (Kind::Date, "($d - $i)"),
    (Kind::Date, "CAST($s AS date)"),
    (Kind::Date, "CAST(date_trunc('month', $s) AS date)"),
    (Kind::Timestamp, "($s + $v)"),
    (Kind::Timestamp, "($s - $v)"),
    (Kind::Timestamp, "CAST($d AS timestamp)"),
    (Kind::Timestamp, "date_trunc('day', $s)"),
    (Kind::Interval, "($s - $s)"),
    (Kind::Interval, "($v * 2)"),
    (Kind::Interval, "(- $v)"),
    (Kind::Interval, "make_interval(days => $i)"),
];

fn argument(letter: u8) -> Option<Kind> {
    Some(match letter {
        b'i' => Kind::Int,
        b'b' => Kind::Big,
        b'n' => Kind::Numeric,
        b'f' => Kind::Float,
        b't' => Kind::Text,
        b'o' => Kind::Bool,
        b'd' => Kind::Date,
        b's' => Kind::Timestamp,
        b'v' => Kind::Interval,
        _ => return None,
    })
}

/// A literal of a kind.
pub fn literal(kind: Kind, random: &mut StdRng) -> Expression {
    let pick = |random: &mut StdRng, texts: &[&str]| texts[random.random_range(0..texts.len())].to_owned();
    let text = match kind {
        Kind::Int => pick(random, &["0", "1", "2", "-3", "7", "100", "NULL::int", "2147483647"]),
        Kind::Big => {
            pick(random, &["0::bigint", "5::bigint", "-9::bigint", "NULL::bigint", "9223372036854775807"])
        }
        Kind::Numeric => pick(random, &["0.0", "1.5", "-2.25", "10.10", "NULL::numeric", "0.001"]),
        Kind::Float => {
            pick(random, &["0::float8", "1.5::float8", "-0.25::float8", "NULL::float8", "1e10::float8"])
        }
        Kind::Text => pick(random, &["''", "'p1'", "'abc'", "' x '", "NULL::text", "'12'", "'é'"]),
        Kind::Bool => pick(random, &["true", "false", "NULL::boolean"]),
        Kind::Date => pick(random, &["date '2024-02-29'", "date '1999-12-31'", "NULL::date"]),
        Kind::Timestamp => {
            pick(random, &["timestamp '2024-03-01 12:30'", "timestamp '2000-01-01'", "NULL::timestamp"])
        }
        Kind::Interval => pick(
            random,
            &["interval '1 day'", "interval '-2 hours'", "interval '1 month 3 days'", "NULL::interval"],
        ),
    };
    Expression::leaf(kind, text)
}

/// An expression of a kind over the columns in sight.
pub fn generate(kind: Kind, columns: &[Column], depth: u32, random: &mut StdRng) -> Expression {
    let own: Vec<&Column> = columns.iter().filter(|column| column.kind == kind).collect();
    if depth == 0 || random.random_bool(0.25) {
        return match own.is_empty() || random.random_bool(0.3) {
            true => literal(kind, random),
            false => Expression::leaf(kind, own[random.random_range(0..own.len())].name.clone()),
        };
    }
    // Forms that exist for every kind.
    match random.random_range(0..12) {
        0 => {
            let parts = [("CASE WHEN ", Kind::Bool), (" THEN ", kind), (" ELSE ", kind)];
            let mut made = compose(kind, &parts, columns, depth, random);
            made.parts.push(Part::Text(" END".to_owned()));
            return made;
        }
        1 => {
            let mut made = compose(kind, &[("coalesce(", kind), (", ", kind)], columns, depth, random);
            made.parts.push(Part::Text(")".to_owned()));
            return made;
        }
        2 => {
            let mut made = compose(kind, &[("nullif(", kind), (", ", kind)], columns, depth, random);
            made.parts.push(Part::Text(")".to_owned()));
            return made;
        }
        3 if kind != Kind::Bool => {
            let mut made = compose(kind, &[("greatest(", kind), (", ", kind)], columns, depth, random);
            made.parts.push(Part::Text(")".to_owned()));
            return made;
        }
        _ => {}
    }
    let templates: Vec<&str> =
        TEMPLATES.iter().filter(|(result, _)| *result == kind).map(|(_, template)| *template).collect();
    let template = templates[random.random_range(0..templates.len())];
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut bytes = template.char_indices().peekable();
    while let Some((_, character)) = bytes.next() {
        let next = bytes.peek().map(|(_, next)| *next);
        match (character, next.and_then(|next| argument(next as u8))) {
            ('$', Some(wanted)) => {
                bytes.next();
                parts.push(Part::Text(std::mem::take(&mut text)));
                parts.push(Part::Child(generate(wanted, columns, depth - 1, random)));
            }
            // `$$` is a dollar.
            ('$', None) => {
                bytes.next();
                text.push('$');
            }
            (other, _) => text.push(other),
        }
    }
    parts.push(Part::Text(text));
    Expression { kind, parts }
}

fn compose(
    kind: Kind,
    parts: &[(&str, Kind)],
    columns: &[Column],
    depth: u32,
    random: &mut StdRng,
) -> Expression {
    let mut made = Vec::new();
    for (text, wanted) in parts {
        made.push(Part::Text((*text).to_owned()));
        made.push(Part::Child(generate(*wanted, columns, depth - 1, random)));
    }
    Expression { kind, parts: made }
}
