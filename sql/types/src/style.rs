//! Session settings that govern how values become text and back.

use std::sync::OnceLock;

use jiff::tz::TimeZone;

use crate::encoding::Encoding;
use crate::keyword::quote_identifier;

/// How dates and times are shown: the first word of DateStyle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateFormat {
    Iso,
    Sql,
    Postgres,
    German,
}

/// Order of day and month in input such as `01/02/2003`, and in some output styles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateOrder {
    Mdy,
    Dmy,
    Ymd,
}

/// `IntervalStyle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalStyle {
    Postgres,
    PostgresVerbose,
    SqlStandard,
    Iso8601,
}

/// Which names have quotes in SQL text that is made: `quote_all_identifiers`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quoting {
    #[default]
    WhereNeeded,
    All,
}

impl Quoting {
    /// An identifier as SQL text (quote_identifier).
    pub fn name(self, name: &str) -> String {
        match self {
            Quoting::WhereNeeded => quote_identifier(name),
            Quoting::All => format!("\"{}\"", name.replace('"', "\"\"")),
        }
    }

    /// One behind its schema's (quote_qualified_identifier).
    pub fn qualified(self, schema: &str, name: &str) -> String {
        format!("{}.{}", self.name(schema), self.name(name))
    }
}

/// The settings themselves. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Style {
    pub time_zone: TimeZone,
    pub date_format: DateFormat,
    pub date_order: DateOrder,
    pub interval: IntervalStyle,
    /// `bytea_output = escape` instead of `hex`.
    pub bytea_escape: bool,
    /// `extra_float_digits`: above zero, the shortest text that reads back exactly.
    pub extra_float_digits: i32,
    pub quoting: Quoting,
    /// `client_encoding`: what strings in the binary forms of values are in.
    pub encoding: Encoding,
}

impl Style {
    /// PostgreSQL's defaults, in UTC.
    pub fn standard() -> &'static Style {
        static STANDARD: OnceLock<Style> = OnceLock::new();
        STANDARD.get_or_init(Style::default)
    }
}

impl Default for Style {
    fn default() -> Self {
        Style {
            time_zone: TimeZone::UTC,
            date_format: DateFormat::Iso,
            date_order: DateOrder::Mdy,
            interval: IntervalStyle::Postgres,
            bytea_escape: false,
            extra_float_digits: 1,
            quoting: Quoting::WhereNeeded,
            encoding: Encoding::UTF8,
        }
    }
}
