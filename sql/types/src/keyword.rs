//! PostgreSQL 15's keywords (appendix C), by what they may name without quotes: `sql/data/keyword.tsv`, which
//! `pg_get_keywords` answers.

use std::sync::LazyLock;

/// What a keyword may name without quotes (kwlist.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Anything.
    Unreserved,
    /// Columns, but no functions and types.
    ColumnName,
    /// Functions and types, but no columns.
    TypeOrFunctionName,
    /// Nothing.
    Reserved,
}

/// A word of the grammar.
#[derive(Clone, Copy, Debug)]
pub struct Keyword {
    pub word: &'static str,
    pub category: Category,
    /// Whether it names a result column without AS.
    pub is_bare_label: bool,
    /// The category and the label in `pg_get_keywords`' words.
    pub described: [&'static str; 2],
}

/// All of them, in the order of their letters.
pub static KEYWORDS: LazyLock<Vec<Keyword>> = LazyLock::new(|| {
    let keyword = |line: &'static str| {
        let mut fields = line.split('\t');
        let mut next = || fields.next().unwrap_or_default();
        let (word, category, bare) = (next(), next(), next());
        let category = match category {
            "U" => Category::Unreserved,
            "C" => Category::ColumnName,
            "T" => Category::TypeOrFunctionName,
            _ => Category::Reserved,
        };
        Keyword { word, category, is_bare_label: bare == "t", described: [next(), next()] }
    };
    include_str!("../../data/keyword.tsv").lines().map(keyword).collect()
});

/// The keyword that a word in lower case is.
pub fn keyword(word: &str) -> Option<&'static Keyword> {
    let all = &*KEYWORDS;
    all.binary_search_by(|keyword| keyword.word.cmp(word)).ok().map(|at| &all[at])
}

fn is_of(word: &str, categories: &[Category]) -> bool {
    keyword(word).is_some_and(|keyword| categories.contains(&keyword.category))
}

/// Whether the (lower-case) word cannot name a column or table unquoted.
pub fn is_reserved(word: &str) -> bool {
    is_of(word, &[Category::Reserved, Category::TypeOrFunctionName])
}

/// Whether a reserved word may be the name of a function.
pub fn may_name_routine(word: &str) -> bool {
    is_of(word, &[Category::TypeOrFunctionName])
}

/// Whether the (lower-case) word names a result column only after AS.
pub fn needs_as(word: &str) -> bool {
    keyword(word).is_some_and(|keyword| !keyword.is_bare_label)
}

/// Whether quote_ident would quote the (lower-case) word.
pub fn needs_quotes(word: &str) -> bool {
    keyword(word).is_some_and(|keyword| keyword.category != Category::Unreserved)
}

/// An identifier as SQL text, quoted where it must be (quote_identifier).
pub fn quote_identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && !needs_quotes(name);
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_by_what_they_may_name() {
        assert!(KEYWORDS.is_sorted_by_key(|keyword| keyword.word));
        assert!(["select", "user", "all", "with", "left"].into_iter().all(is_reserved));
        assert!(!["name", "between", "abort", "no_word"].into_iter().any(is_reserved));
        assert!(may_name_routine("left") && !may_name_routine("select"));
        assert!(needs_as("day") && needs_as("array") && !needs_as("select"));
    }

    #[test]
    fn what_is_no_plain_name_is_quoted() {
        for name in ["group", "between", "left", "Group", "1a", "", "a b", "é"] {
            assert_eq!(quote_identifier(name), format!("\"{name}\""));
        }
        assert_eq!(quote_identifier("a\"b"), "\"a\"\"b\"");
        for name in ["abort", "_a1", "name"] {
            assert_eq!(quote_identifier(name), name);
        }
    }
}
