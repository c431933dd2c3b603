//! Joins nested in one another without parentheses: in `a JOIN b JOIN c ON x ON y` the second ON
//! belongs to the first JOIN. sqlparser reads them with parentheses. And the alias of a join's USING
//! columns, which it does not read.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::parser::lexer::lexeme::is_word;

/// A JOIN whose condition has not come yet.
struct Pending {
    /// Where its right side begins.
    right: usize,
    /// Whether that is a join itself.
    nested: bool,
}

/// What else a FROM item or a condition ends with.
const ENDS: [&str; 12] = [
    "select",
    "from",
    "where",
    "group",
    "order",
    "having",
    "union",
    "intersect",
    "except",
    "set",
    "returning",
    "when",
];

/// What the alias of a join's USING columns begins with: no identifier holds this character.
const ALIAS: &str = "\u{1}using alias ";

/// The alias that a name among USING columns stands for.
pub fn using_alias(name: &str) -> Option<&str> {
    name.strip_prefix(ALIAS)
}

/// `USING (a, b) AS x` becomes `USING (a, b, "…x")`.
pub(in crate::parser) fn rewrite_using_aliases(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut at = 0;
    while at + 1 < tokens.len() {
        if let Some(close) = using_alias_at(&tokens, at) {
            let Some(TokenWithSpan { token: Token::Word(alias), span }) = tokens.get(close + 2).cloned()
            else {
                return tokens;
            };
            let name = if alias.quote_style.is_some() { alias.value } else { alias.value.to_lowercase() };
            let value = format!("{ALIAS}{name}");
            let word = Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword };
            let mut end = tokens[close].clone();
            end.span.end = span.end;
            let put = [
                TokenWithSpan { token: Token::Comma, span },
                TokenWithSpan { token: Token::Word(word), span },
                end,
            ];
            tokens.splice(close..close + 3, put);
        }
        at += 1;
    }
    tokens
}

/// The closing parenthesis of `USING (a, b) AS x` at a place.
fn using_alias_at(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let opens = is_word(tokens.get(at), "using") && tokens[at + 1].token == Token::LParen;
    let first = tokens.get(at + 2);
    if !opens || ["select", "values", "table", "with"].iter().any(|word| is_word(first, word)) {
        return None;
    }
    let mut close = at + 2;
    while matches!(tokens.get(close)?.token, Token::Word(_) | Token::Comma) {
        close += 1;
    }
    let named = matches!(tokens.get(close + 2).map(|token| &token.token), Some(Token::Word(_)));
    (tokens[close].token == Token::RParen && is_word(tokens.get(close + 1), "as") && named).then_some(close)
}

/// Puts the right sides of joins that are joins into parentheses.
pub(in crate::parser) fn rewrite_joins(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let joins = (0..tokens.len()).filter(|at| is_word(tokens.get(*at), "join")).count();
    if joins < 2 {
        return tokens;
    }
    let mut around = Vec::new();
    let mut levels: Vec<Vec<Pending>> = vec![Vec::new()];
    for (at, token) in tokens.iter().enumerate() {
        let Some(pending) = levels.last_mut() else { return tokens };
        let word = |word| is_word(Some(token), word);
        match &token.token {
            Token::LParen => levels.push(Vec::new()),
            Token::RParen => drop(levels.pop()),
            Token::Comma | Token::SemiColon => pending.clear(),
            _ if word("join") => {
                if let Some(outer) = pending.last_mut() {
                    outer.nested = true;
                }
                let before = |back: usize, word: &str| at >= back && is_word(tokens.get(at - back), word);
                // NATURAL may have a kind behind it.
                let natural = (1..=3).any(|back| before(back, "natural"));
                if !before(1, "cross") && !natural {
                    pending.push(Pending { right: at + 1, nested: false });
                }
            }
            _ if word("on") || word("using") => {
                if let Some(join) = pending.pop().filter(|join| join.nested) {
                    around.push((join.right, at));
                }
            }
            _ if ENDS.iter().any(|end| word(end)) => pending.clear(),
            _ => {}
        }
    }
    if around.is_empty() {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 2 * around.len());
    let (mut starts, mut ends): (Vec<usize>, Vec<usize>) = around.into_iter().unzip();
    starts.sort_unstable();
    ends.sort_unstable();
    let count = |places: &[usize], at: usize| {
        places.partition_point(|place| *place <= at) - places.partition_point(|place| *place < at)
    };
    for (at, token) in tokens.into_iter().enumerate() {
        let span = token.span;
        let mut put = |kind: Token, count: usize| {
            out.extend(std::iter::repeat_n(TokenWithSpan { token: kind, span }, count));
        };
        put(Token::RParen, count(&ends, at));
        put(Token::LParen, count(&starts, at));
        out.push(token);
    }
    out
}
