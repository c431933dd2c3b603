//! The types expressions are made of, and values of them.

use rand::RngExt;
use rand::rngs::StdRng;
use tokio_postgres::types::Type;

macro_rules! kinds {
    ($($kind:ident $word:literal $name:literal [$($value:literal),+];)+) => {
        /// A type of an expression.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind { $($kind),+ }

        impl Kind {
            pub const ALL: &'static [Kind] = &[$(Kind::$kind),+];

            /// What stands for it in a template.
            pub fn word(self) -> &'static str {
                match self { $(Kind::$kind => $word),+ }
            }

            /// Its name in SQL.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$kind => $name),+ }
            }

            /// Values of it, as PostgreSQL reads them; the first is a plain one.
            pub fn values(self) -> &'static [&'static str] {
                match self { $(Kind::$kind => &[$($value),+]),+ }
            }
        }
    };
}

kinds! {
    Int "int" "int" ["1", "2", "7", "-3", "100", "0", "2147483647"];
    Small "small" "smallint" ["1", "-7", "40", "0", "32767"];
    Big "big" "bigint" ["5", "-9", "40", "0", "9223372036854775807"];
    Numeric "numeric" "numeric" ["1.5", "-2.25", "10.10", "0.001", "0.0", "12345678901234567890.123456789"];
    Float "float" "float8" ["1.5", "-0.25", "-1e-7", "0", "1e10"];
    Real "real" "real" ["0.5", "-2.25", "0.1", "0", "1e5"];
    Text "text" "text" ["a", "", "p1", "abc", " x ", "12", "é", "A-b_c%"];
    Varchar "varchar" "varchar(6)" ["ab", "", "p1 ", "sechs6"];
    Char "char" "char(4)" ["ab", "", "x  ", "abcd"];
    Bool "bool" "boolean" ["true", "false"];
    Date "date" "date" ["2024-02-29", "1999-12-31", "2024-03-31", "infinity"];
    Time "time" "time" ["12:30", "00:00", "23:59:59.999999", "04:05:06.7"];
    TimeTz "timetz" "timetz" ["12:30+00", "23:00-05", "00:15:30.25+02:30"];
    Timestamp "timestamp" "timestamp" ["2024-03-01 12:30", "2000-01-01", "1969-12-31 23:59:59.5", "-infinity"];
    TimestampTz "timestamptz" "timestamptz" ["2024-03-31 01:30+00", "2000-01-01 00:00-08", "1970-01-01 00:00+00"];
    Interval "interval" "interval" ["1 day", "-2 hours", "1 month 3 days", "00:00:01.5", "1 year -1 day 2:03"];
    Uuid "uuid" "uuid" ["00000000-0000-0000-0000-000000000001", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"];
    Json "json" "json" ["{\"a\": 1, \"c\": [1, null, \"x\"]}", "[1, {\"a\" : 2}, \"b\"]", "\"s\"", "null", "{}"];
    Jsonb "jsonb" "jsonb" ["{\"a\": 1, \"b\": \"x\", \"c\": [1, 2.50, null]}", "[3, \"a\", {\"a\": null}]", "\"a\"", "7", "{}"];
    Bytea "bytea" "bytea" ["\\x616200ff", "\\x", "\\x41"];
    Ints "ints" "int[]" ["{1,2,3}", "{}", "{7,NULL,-3}", "{1}"];
    Texts "texts" "text[]" ["{a,b}", "{}", "{p1,NULL,\"\",\"x y\"}"];
    Mood "mood" "mood" ["ok", "sad", "happy"];
    Amount "amount" "amount" ["3", "0", "-40"];
    Pair "pair" "pair" ["(1,a)", "(,)", "(2,\"x y\")"];
}

impl Kind {
    /// Whether `=` and `<` are there for it.
    pub fn is_ordered(self) -> bool {
        self != Kind::Json
    }

    /// Whether equal values of it look alike: of 0 and -0, 1.5 and 1.50, or a day and 24 hours, a group
    /// may show either.
    pub fn is_shown_alike(self) -> bool {
        self.is_ordered() && !matches!(self, Kind::Numeric | Kind::Float | Kind::Real | Kind::Interval)
    }

    /// Whether `min` and `max` are there for it.
    pub fn has_extremes(self) -> bool {
        !matches!(self, Kind::Bool | Kind::Uuid | Kind::Json | Kind::Jsonb | Kind::Bytea | Kind::Pair)
    }

    pub fn is_array(self) -> bool {
        matches!(self, Kind::Ints | Kind::Texts)
    }

    /// Any of them.
    pub fn any(random: &mut StdRng) -> Kind {
        Kind::ALL[random.random_range(0..Kind::ALL.len())]
    }

    /// Any of those that fulfil a condition.
    pub fn such(condition: impl Fn(Kind) -> bool, random: &mut StdRng) -> Kind {
        loop {
            let kind = Kind::any(random);
            if condition(kind) {
                return kind;
            }
        }
    }

    pub fn of_word(word: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.word() == word)
    }

    /// A value in SQL; `None` is NULL.
    pub fn literal(self, value: Option<&str>) -> String {
        let Some(value) = value else { return format!("NULL::{}", self.name()) };
        match self {
            Kind::Int | Kind::Numeric | Kind::Bool => value.to_owned(),
            Kind::Text => quoted(value),
            _ => format!("{}::{}", quoted(value), self.name()),
        }
    }

    /// The type of a parameter on the wire, for those that every server knows by the same number.
    pub fn of_wire(self) -> Option<Type> {
        Some(match self {
            Kind::Int => Type::INT4,
            Kind::Small => Type::INT2,
            Kind::Big => Type::INT8,
            Kind::Numeric => Type::NUMERIC,
            Kind::Float => Type::FLOAT8,
            Kind::Real => Type::FLOAT4,
            Kind::Text => Type::TEXT,
            Kind::Varchar => Type::VARCHAR,
            Kind::Char => Type::BPCHAR,
            Kind::Bool => Type::BOOL,
            Kind::Date => Type::DATE,
            Kind::Time => Type::TIME,
            Kind::TimeTz => Type::TIMETZ,
            Kind::Timestamp => Type::TIMESTAMP,
            Kind::TimestampTz => Type::TIMESTAMPTZ,
            Kind::Interval => Type::INTERVAL,
            Kind::Uuid => Type::UUID,
            Kind::Json => Type::JSON,
            Kind::Jsonb => Type::JSONB,
            Kind::Bytea => Type::BYTEA,
            Kind::Ints => Type::INT4_ARRAY,
            Kind::Texts => Type::TEXT_ARRAY,
            Kind::Mood | Kind::Amount | Kind::Pair => return None,
        })
    }
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}
