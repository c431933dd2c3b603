//! Words that cannot name a column or table unquoted: PostgreSQL 15's reserved words, and those
//! reserved except as function or type names (appendix C).

/// Sorted, so that a look-up is a binary search.
const RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "binary",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "group",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "intersect",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "natural",
    "not",
    "notnull",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "outer",
    "overlaps",
    "placing",
    "primary",
    "references",
    "returning",
    "right",
    "select",
    "session_user",
    "similar",
    "some",
    "symmetric",
    "table",
    "tablesample",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
];

/// Reserved words that may name a function or a type. Sorted.
const ROUTINE_NAMES: &[&str] = &[
    "authorization",
    "binary",
    "collation",
    "concurrently",
    "cross",
    "current_schema",
    "freeze",
    "full",
    "ilike",
    "inner",
    "is",
    "isnull",
    "join",
    "left",
    "like",
    "natural",
    "notnull",
    "outer",
    "overlaps",
    "right",
    "similar",
    "tablesample",
    "verbose",
];

/// Whether a reserved word may be the name of a function.
pub(in crate::parser) fn may_name_routine(word: &str) -> bool {
    ROUTINE_NAMES.binary_search(&word).is_ok()
}

/// Whether the (lower-case) word cannot name a column or table unquoted.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.binary_search(&word).is_ok()
}

/// Words that name columns unquoted but that PostgreSQL quotes when it writes them: the column
/// name keywords.
const QUOTED_WHEN_WRITTEN: &[&str] = &[
    "between",
    "bigint",
    "bit",
    "boolean",
    "char",
    "character",
    "coalesce",
    "dec",
    "decimal",
    "exists",
    "extract",
    "float",
    "greatest",
    "grouping",
    "inout",
    "int",
    "integer",
    "interval",
    "least",
    "national",
    "nchar",
    "none",
    "normalize",
    "nullif",
    "numeric",
    "out",
    "overlay",
    "position",
    "precision",
    "real",
    "row",
    "setof",
    "smallint",
    "substring",
    "time",
    "timestamp",
    "treat",
    "trim",
    "values",
    "varchar",
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlnamespaces",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
];

/// Words that name a result column only after AS.
const LABELS_AFTER_AS: &[&str] = &[
    "array",
    "as",
    "char",
    "character",
    "create",
    "day",
    "except",
    "fetch",
    "filter",
    "for",
    "from",
    "grant",
    "group",
    "having",
    "hour",
    "intersect",
    "into",
    "isnull",
    "limit",
    "minute",
    "month",
    "notnull",
    "offset",
    "on",
    "order",
    "over",
    "overlaps",
    "precision",
    "returning",
    "second",
    "to",
    "union",
    "varying",
    "where",
    "window",
    "with",
    "within",
    "without",
    "year",
];

/// Whether the (lower-case) word names a result column only after AS.
pub(in crate::parser) fn needs_as(word: &str) -> bool {
    LABELS_AFTER_AS.binary_search(&word).is_ok()
}

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

/// Whether quote_ident would quote the (lower-case) word.
pub fn is_keyword_needing_quotes(word: &str) -> bool {
    is_reserved(word) || QUOTED_WHEN_WRITTEN.binary_search(&word).is_ok()
}

/// An identifier as SQL text, quoted where it must be.
pub fn quote_identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !is_keyword_needing_quotes(name);
    if plain { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
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
        assert!(RESERVED.is_sorted() && QUOTED_WHEN_WRITTEN.is_sorted());
        assert!(LABELS_AFTER_AS.is_sorted() && FOREIGN_KEYWORDS.is_sorted());
        assert!(is_reserved("select") && is_reserved("all") && is_reserved("with") && !is_reserved("name"));
    }
}
