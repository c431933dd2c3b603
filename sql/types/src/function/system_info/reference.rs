//! What PostgreSQL tells of itself in rows: its keywords, the time zones, options of foreign objects.

use crate::datetime::zone;
use crate::datum::{Datum, Interval};
use crate::error::Result;
use crate::function::FunctionContext;
use crate::function::SetEval;
use crate::function::args::*;
use crate::function::number::series::Rows;
use crate::keyword::{Category, KEYWORDS, Keyword, keyword};

/// The abbreviations that are those of daylight saving, of those that are a fixed offset.
#[rustfmt::skip]
const DAYLIGHT: [&str; 52] = [
    "acdt", "acsst", "adt", "aedt", "aesst", "akdt", "almst", "awsst", "azost", "bdst", "brst",
    "bst", "cadt", "cdt", "cest", "cetdst", "chadt", "clst", "clt", "easst", "east", "edt", "eest",
    "eetdst", "egst", "fjst", "fnst", "idt", "kdt", "kgst", "lhdt", "mdt", "mest", "mesz", "metdst",
    "msd", "must", "ndt", "nzdt", "pdt", "pkst", "pmdt", "pyst", "sadt", "ulast", "uyst", "uzst",
    "wadt", "wdt", "wetdst", "wgst", "yekst",
];

fn offset(seconds: i64) -> Datum {
    interval_datum(Interval { months: 0, days: 0, microseconds: seconds * 1_000_000 })
}

/// pg_timezone_names: what the zones say now.
fn zone_names(context: &FunctionContext<'_>) -> Rows {
    let mut rows = Rows::new();
    for name in zone::names() {
        let Some(known) = zone::full_name(&name) else { continue };
        let Some(now) = zone::said_at(&known, context.now) else { continue };
        rows.push(vec![
            text_datum(&name),
            text_datum(&now.abbreviation),
            offset(now.offset),
            Datum::Bool(now.is_daylight_saving),
        ]);
    }
    rows
}

/// pg_timezone_abbrevs.
fn zone_abbreviations(context: &FunctionContext<'_>) -> Rows {
    let mut names: Vec<&'static str> = zone::abbreviation_names().collect();
    names.sort_unstable();
    let mut rows = Rows::new();
    for name in names {
        let (seconds, daylight) = match zone::abbreviation(name) {
            Some(zone::Abbreviation::Fixed(seconds)) => (i64::from(seconds), DAYLIGHT.contains(&name)),
            Some(zone::Abbreviation::Moving(_, moving)) => {
                match zone::offset_of_abbreviation_at(name, &moving, context.now) {
                    Some(seconds) => (seconds, DAYLIGHT.contains(&name)),
                    None => continue,
                }
            }
            None => continue,
        };
        rows.push(vec![text_datum(name.to_ascii_uppercase()), offset(seconds), Datum::Bool(daylight)]);
    }
    rows
}

/// pg_get_keywords: PostgreSQL's, whatever of them is taken here.
fn keywords() -> Rows {
    let row = |keyword: &Keyword| {
        let category = match keyword.category {
            Category::Unreserved => "U",
            Category::ColumnName => "C",
            Category::TypeOrFunctionName => "T",
            Category::Reserved => "R",
        };
        let [described, bare_described] = keyword.described;
        vec![
            text_datum(keyword.word),
            text_datum(category),
            Datum::Bool(keyword.is_bare_label),
            text_datum(described),
            text_datum(bare_described),
        ]
    };
    KEYWORDS.iter().map(row).collect()
}

/// Whether a word without quotes cannot be the name of a type: the grammar has other uses for it.
pub fn is_no_type_name(word: &str) -> bool {
    // Types that the grammar has words for.
    const TYPES: [&str; 20] = [
        "bigint",
        "bit",
        "boolean",
        "char",
        "character",
        "dec",
        "decimal",
        "float",
        "int",
        "integer",
        "interval",
        "national",
        "nchar",
        "numeric",
        "real",
        "setof",
        "smallint",
        "time",
        "timestamp",
        "varchar",
    ];
    let word = word.to_ascii_lowercase();
    let category = keyword(&word).map(|keyword| keyword.category);
    matches!(category, Some(Category::ColumnName | Category::Reserved)) && !TYPES.contains(&&*word)
}

/// pg_options_to_table: `name=value` taken apart.
fn options(v: &[Datum]) -> Result<Rows> {
    let row = |option: &Datum| {
        let option = option.json_text().unwrap_or_default();
        match option.split_once('=') {
            Some((name, value)) => vec![text_datum(name), text_datum(value)],
            None => vec![text_datum(option), Datum::Null],
        }
    };
    Ok(array(v, 0)?.values.iter().map(row).collect())
}

pub(in crate::function) const SETS: &[(&str, SetEval)] = &[
    ("pg_get_keywords", |_, _| Ok(keywords())),
    ("pg_timezone_names", |c, _| Ok(zone_names(c))),
    ("pg_timezone_abbrevs", |c, _| Ok(zone_abbreviations(c))),
    ("pg_options_to_table", |_, v| options(v)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_have_their_categories() {
        let rows = keywords();
        let of = |word: &str| rows.iter().find(|row| row[0] == Datum::text(word)).map(|row| row[1].clone());
        assert_eq!(of("select"), Some(Datum::text("R")));
        assert_eq!(of("abort"), Some(Datum::text("U")));
        assert!(rows.iter().all(|row| row.len() == 5));
    }

    #[test]
    fn zones_say_what_they_are() {
        let rows = zone_names(&FunctionContext::detached());
        // Noon of the first of January.
        let berlin = rows.iter().find(|row| row[0] == Datum::text("Europe/Berlin"));
        assert_eq!(berlin.map(|row| row[1].clone()), Some(Datum::text("CET")));
        let rows = zone_abbreviations(&FunctionContext::detached());
        let cest = rows.iter().find(|row| row[0] == Datum::text("CEST")).map(|row| &row[1..]);
        assert_eq!(cest, Some(&[offset(7200), Datum::Bool(true)][..]));
    }
}
