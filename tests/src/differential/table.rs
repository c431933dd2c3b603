//! The tables of `schema.sql`, as the generator sees them.

use rand::RngExt;
use rand::rngs::StdRng;

use super::kind::Kind;

/// A table or view.
#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    /// What orders its rows totally.
    pub key: &'static str,
    pub columns: &'static [(&'static str, Kind)],
    /// The column that says something about a `part.id`.
    pub link: &'static str,
}

pub const PART: &Table = &Table {
    name: "part",
    key: "id",
    columns: &[
        ("id", Kind::Int),
        ("name", Kind::Text),
        ("size", Kind::Small),
        ("price", Kind::Numeric),
        ("made", Kind::Date),
        ("ok", Kind::Bool),
    ],
    link: "id",
};

pub const SALE: &Table = &Table {
    name: "sale",
    key: "id",
    columns: &[
        ("id", Kind::Int),
        ("part", Kind::Int),
        ("n", Kind::Big),
        ("at", Kind::Timestamp),
        ("rate", Kind::Float),
        ("note", Kind::Varchar),
    ],
    link: "part",
};

pub const THING: &Table = &Table {
    name: "thing",
    key: "id",
    columns: &[
        ("id", Kind::Int),
        ("code", Kind::Char),
        ("word", Kind::Varchar),
        ("ratio", Kind::Real),
        ("zoned", Kind::TimestampTz),
        ("clock", Kind::Time),
        ("zclock", Kind::TimeTz),
        ("span", Kind::Interval),
        ("ident", Kind::Uuid),
        ("doc", Kind::Json),
        ("docb", Kind::Jsonb),
        ("bytes", Kind::Bytea),
        ("ints", Kind::Ints),
        ("texts", Kind::Texts),
        ("mood", Kind::Mood),
        ("amount", Kind::Amount),
        ("pair", Kind::Pair),
    ],
    link: "id",
};

pub const NODE: &Table = &Table {
    name: "node",
    key: "id",
    columns: &[("id", Kind::Int), ("above", Kind::Int), ("label", Kind::Text)],
    link: "above",
};

pub const TALLY: &Table = &Table {
    name: "tally",
    key: "id",
    columns: &[("id", Kind::Int), ("k", Kind::Text), ("n", Kind::Int), ("at", Kind::Date)],
    link: "id",
};

pub const STOCK: &Table = &Table {
    name: "stock",
    key: "id",
    columns: &[("kind", Kind::Text), ("id", Kind::Int), ("n", Kind::Int), ("at", Kind::Date)],
    link: "id",
};

pub const LEDGER: &Table = &Table {
    name: "ledger",
    key: "id",
    columns: &[("id", Kind::Int), ("day", Kind::Date), ("v", Kind::Numeric)],
    link: "id",
};

pub const DEAR: &Table = &Table {
    name: "dear",
    key: "id",
    columns: &[("id", Kind::Int), ("name", Kind::Text), ("price", Kind::Numeric), ("made", Kind::Date)],
    link: "id",
};

/// A grouped view.
pub const BUSY: &Table = &Table {
    name: "busy",
    key: "part",
    columns: &[
        ("part", Kind::Int),
        ("sales", Kind::Big),
        ("total", Kind::Numeric),
        ("latest", Kind::Timestamp),
    ],
    link: "part",
};

/// All of them; those with more to find stand there more than once.
const TABLES: &[&Table] =
    &[PART, PART, SALE, SALE, THING, THING, THING, NODE, TALLY, STOCK, STOCK, LEDGER, DEAR, BUSY];

/// Any table or view.
pub fn any(random: &mut StdRng) -> &'static Table {
    TABLES[random.random_range(0..TABLES.len())]
}

/// A column in sight.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
}

impl Table {
    /// Its columns under an alias.
    pub fn columns(&self, alias: &str) -> Vec<Column> {
        let named = self.columns.iter();
        named.map(|(name, kind)| Column { name: format!("{alias}.{name}"), kind: *kind }).collect()
    }
}
