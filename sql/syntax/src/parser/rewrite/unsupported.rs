//! Constructions of queries and data changes that PostgreSQL has and sqlparser's grammar has
//! not. After sqlparser's syntax error they are looked for among the statement's tokens, so that
//! the answer is 0A000 with a name and not a syntax error.

use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A pattern: words in lower case, or symbols, in a row.
const PATTERNS: &[(&[&str], &str)] = &[
    (&["where", "current", "of"], "WHERE CURRENT OF"),
    (&["overriding"], "OVERRIDING"),
    (&["rows", "from", "("], "ROWS FROM"),
    (&["collation", "for"], "COLLATION FOR"),
    (&["xmlelement"], "XML"),
    (&["xmlparse"], "XML"),
    (&["xmlpi"], "XML"),
    (&["xmlroot"], "XML"),
    (&["xmlserialize"], "XML"),
    (&["xmlexists"], "XML"),
    (&["xmltable"], "XML"),
    (&["xmlforest"], "XML"),
    (&["xmlagg"], "XML"),
    (&["is", "document"], "XML"),
    (&["is", "not", "document"], "XML"),
    (&["tablesample"], "TABLESAMPLE"),
    (&["similar"], "SUBSTRING(… SIMILAR …)"),
    (&["grouping", "sets"], "GROUPING SETS inside GROUPING SETS"),
    (&["operator", "("], "OPERATOR(…) here"),
    (&["between", "asymmetric"], "BETWEEN ASYMMETRIC"),
    (&["group", "by", "all"], "GROUP BY ALL"),
    (&["group", "by", "distinct"], "GROUP BY DISTINCT"),
];

/// The name of a construction among a statement's tokens that the grammar lacks; `failed` is the
/// place of the token that the parser could not take.
pub(in crate::parser) fn missing_construction(
    tokens: &[TokenWithSpan],
    failed: usize,
) -> Option<&'static str> {
    for place in 0..tokens.len() {
        for &(pattern, name) in PATTERNS {
            if pattern
                .iter()
                .enumerate()
                .all(|(n, part)| tokens.get(place + n).is_some_and(|t| is(&t.token, part)))
            {
                return Some(name);
            }
        }
    }
    let word = |place: usize, text: &str| tokens.get(place).is_some_and(|token| is(&token.token, text));
    let before = |text: &str| failed > 0 && word(failed - 1, text);
    if word(0, "merge") {
        return word(failed, "[").then_some("this form of MERGE");
    }
    // Behind a list of targets nobody takes a subscript.
    if (word(0, "update") || word(0, "insert")) && word(failed, "[") && !before(")") {
        return Some("assignment to an element of an array column");
    }
    if word(failed, "using") && tokens[..failed].iter().any(|token| is(&token.token, "order")) {
        return Some("ORDER BY … USING");
    }
    if failed >= tokens.len() && before("select") {
        return Some("SELECT without columns");
    }
    let compares = matches!(
        tokens.get(failed).map(|token| &token.token),
        Some(Token::Lt | Token::LtEq | Token::Gt | Token::GtEq | Token::Eq | Token::Neq)
    );
    if compares && before("*") {
        return Some("comparison of record images");
    }
    if word(failed, "(") && before("as") {
        return Some("a column definition list");
    }
    let named = failed > 1 && matches!(tokens.get(failed - 1).map(|t| &t.token), Some(Token::Word(_)));
    if word(failed, "*") && named && ["from", "join", ","].iter().any(|text| word(failed - 2, text)) {
        return Some("table *");
    }
    if word(failed, "as") && before(")") && tokens[..failed].iter().any(|token| is(&token.token, "using")) {
        return Some("an alias of JOIN … USING");
    }
    let joins = tokens[..failed.min(tokens.len())].iter().filter(|token| is(&token.token, "join")).count();
    if joins > 1 && (word(failed, "on") || word(failed, "using")) {
        return Some("a join nested in another without parentheses");
    }
    if (word(failed, "any") || word(failed, "all") || word(failed, "some")) || word(failed + 1, "any") {
        return Some("ANY or ALL with this operator");
    }
    if (word(failed, "union") || word(failed, "intersect") || word(failed, "except")) && before("select") {
        return Some("SELECT without columns");
    }
    None
}

fn is(token: &Token, text: &str) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text),
        Token::LParen => text == "(",
        Token::RParen => text == ")",
        Token::LBracket => text == "[",
        Token::Period => text == ".",
        Token::Mul => text == "*",
        Token::Comma => text == ",",
        Token::DoubleColon => text == "::",
        Token::Ampersand => text == "&",
        _ => false,
    }
}
