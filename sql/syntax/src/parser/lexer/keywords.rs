//! Which words cannot be names where the grammar is sqlparser's, and names as SQL text.

pub use archipel_types::keyword::{is_reserved, needs_quotes as is_keyword_needing_quotes, quote_identifier};
pub(in crate::parser) use archipel_types::keyword::{may_name_routine, needs_as};

/// Keywords of other dialects, for which sqlparser has productions: names like any other here.
const FOREIGN_KEYWORDS: &[&str] = &[
    "anti",
    "asof",
    "connect",
    "directory",
    "distribute",
    "div",
    "format",
    "json_table",
    "match_condition",
    "match_recognize",
    "member",
    "minus",
    "open",
    "output",
    "pivot",
    "prewhere",
    "prior",
    "qualify",
    "regexp",
    "rlike",
    "sample",
    "semi",
    "settings",
    "sort",
    "top",
    "unpivot",
    "xor",
];

/// Whether sqlparser's keyword is none of PostgreSQL's and would be read as a clause or an operator.
pub(super) fn is_foreign_keyword(word: &str) -> bool {
    FOREIGN_KEYWORDS.binary_search(&word).is_ok()
}

/// A qualified identifier as SQL text.
pub fn quote_qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", quote_identifier(schema), quote_identifier(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(FOREIGN_KEYWORDS.is_sorted());
    }
}
