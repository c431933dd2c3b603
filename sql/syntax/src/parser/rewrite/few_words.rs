//! Rewritings of a few words each, so that constructions sqlparser lacks reach its grammar in a
//! form it has.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::parser::lexer::lexeme::{is_word, keyword};

/// `TABLE t` where a query may begin becomes `SELECT * FROM t`, which is what it means.
pub(in crate::parser) fn rewrite_table(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let begins = |index: usize| {
        keyword(tokens.get(index)) == Some(Keyword::TABLE)
            && matches!(tokens.get(index + 1).map(|token| &token.token), Some(Token::Word(_)))
            && match index.checked_sub(1).map(|before| &tokens[before].token) {
                None | Some(Token::SemiColon | Token::LParen) => true,
                // After the columns of an INSERT, or options; not in REINDEX (…) TABLE.
                Some(Token::RParen) => {
                    let start = tokens[..index].iter().rposition(|token| token.token == Token::SemiColon);
                    let first = tokens.get(start.map_or(0, |start| start + 1));
                    ["insert", "explain", "with"].iter().any(|word| is_word(first, word))
                }
                Some(Token::Word(word)) => {
                    matches!(
                        word.keyword,
                        Keyword::UNION
                            | Keyword::INTERSECT
                            | Keyword::EXCEPT
                            | Keyword::ALL
                            | Keyword::DISTINCT
                            | Keyword::AS
                            | Keyword::EXPLAIN
                            | Keyword::ANALYZE
                            | Keyword::VERBOSE
                    ) || follows_target(&tokens[..index])
                }
                Some(_) => false,
            }
    };
    if !(0..tokens.len()).any(begins) {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 4);
    for (index, token) in tokens.iter().enumerate() {
        if begins(index) {
            let words = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
            out.extend(words.map(|token_kind| TokenWithSpan { token: token_kind, span: token.span }));
        } else {
            out.push(token.clone());
        }
    }
    out
}

/// Whether the last of these tokens end `INSERT INTO name`.
fn follows_target(tokens: &[TokenWithSpan]) -> bool {
    let mut at = tokens.len();
    while at > 2 && tokens[at - 2].token == Token::Period {
        at -= 2;
    }
    at > 2 && is_word(tokens.get(at - 2), "into") && is_word(tokens.get(at - 3), "insert")
}

/// `ORDER BY x USING <` becomes ASC and `USING >` DESC: the operators of the ends of an index.
pub(in crate::parser) fn rewrite_sort_operators(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut at = 0;
    while at + 1 < tokens.len() {
        let order = match &tokens[at + 1].token {
            Token::Lt => Some("ASC"),
            Token::Gt => Some("DESC"),
            Token::CustomBinaryOperator(name) if name == "~<~" => Some("ASC"),
            Token::CustomBinaryOperator(name) if name == "~>~" => Some("DESC"),
            _ => None,
        };
        if let Some(order) = order.filter(|_| is_word(tokens.get(at), "using")) {
            tokens[at].token = Token::make_keyword(order);
            tokens[at].span.end = tokens[at + 1].span.end;
            tokens.remove(at + 1);
        }
        at += 1;
    }
    tokens
}

/// `x [NOT] LIKE ANY (…)` becomes the operator behind LIKE before ANY.
pub(in crate::parser) fn rewrite_like_any(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut at = 0;
    while at + 1 < tokens.len() {
        let (like, ilike) = (is_word(tokens.get(at), "like"), is_word(tokens.get(at), "ilike"));
        let any = ["any", "all", "some"].iter().any(|word| is_word(tokens.get(at + 1), word));
        let opens = tokens.get(at + 2).is_some_and(|token| token.token == Token::LParen);
        if (like || ilike) && any && opens {
            let negated = at > 0 && is_word(tokens.get(at - 1), "not");
            tokens[at].token = match (negated, ilike) {
                (false, false) => Token::DoubleTilde,
                (false, true) => Token::DoubleTildeAsterisk,
                (true, false) => Token::ExclamationMarkDoubleTilde,
                (true, true) => Token::ExclamationMarkDoubleTildeAsterisk,
            };
            if negated {
                at -= 1;
                tokens.remove(at);
            }
        }
        at += 1;
    }
    tokens
}

/// `LIKE … ESCAPE 'c'::bytea` loses its cast: the escape is of the pattern's type, and sqlparser reads
/// but the literal as the escape and would cast the whole.
pub(in crate::parser) fn rewrite_typed_escapes(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut at = 0;
    while at + 3 < tokens.len() {
        let typed = is_word(tokens.get(at), "escape")
            && matches!(tokens[at + 1].token, Token::SingleQuotedString(_))
            && tokens[at + 2].token == Token::DoubleColon
            && ["bytea", "text"].iter().any(|name| is_word(tokens.get(at + 3), name));
        if typed {
            tokens.drain(at + 2..at + 4);
        }
        at += 1;
    }
    tokens
}

/// `f(…) AS (a int, …)` names the rows as the function: `f(…) AS f (a int, …)`.
pub(in crate::parser) fn rewrite_column_definitions(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    const QUERIES: [&str; 8] = ["select", "with", "values", "table", "insert", "update", "delete", "merge"];
    let mut at = 0;
    while at + 4 < tokens.len() {
        let defines = tokens[at].token == Token::RParen
            && is_word(tokens.get(at + 1), "as")
            && tokens[at + 2].token == Token::LParen
            && matches!(tokens[at + 3].token, Token::Word(_))
            && matches!(tokens[at + 4].token, Token::Word(_))
            && !QUERIES.iter().any(|word| is_word(tokens.get(at + 3), word));
        if defines && let Some(name) = called(&tokens[..at]) {
            let name = TokenWithSpan { token: name, span: tokens[at + 2].span };
            tokens.insert(at + 2, name);
        }
        at += 1;
    }
    tokens
}

/// The name of the function whose arguments end here, before the parenthesis.
fn called(tokens: &[TokenWithSpan]) -> Option<Token> {
    let mut depth = 1;
    for at in (1..tokens.len()).rev() {
        match tokens[at].token {
            Token::RParen => depth += 1,
            Token::LParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let name = &tokens[at - 1].token;
            return matches!(name, Token::Word(_)).then(|| name.clone());
        }
    }
    None
}

/// Rewrites that are local to a few words:
///
/// - `TRIM(BOTH FROM x)` says which characters: the blank;
/// - `SUBSTRING(x SIMILAR y ESCAPE z)` is a call with three arguments;
/// - `f(VARIADIC x)` becomes a named argument, [`crate::ast::VARIADIC_ARGUMENT`]; one that has a name keeps
///   that behind it;
/// - `FETCH FIRST n ROWS ONLY` becomes LIMIT, where `n` is no number;
/// - `INSERT INTO t … OVERRIDING SYSTEM VALUE` becomes sqlparser's INSERT OVERWRITE, with USER
///   VALUE its INSERT OVERWRITE INTO TABLE; in MERGE it becomes a condition ([`Overriding`]);
/// - INSERT DEFAULT VALUES and DO NOTHING in MERGE become a row or an assignment of a marked name.
pub(in crate::parser) fn rewrite_words(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !tokens.iter().any(is_rewritten) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 4);
    // Our own productions read VARIADIC in declarations and in CALL.
    let mut declarations = Declarations::default();
    // Where in `out` the last INSERT stands.
    let mut insert = None;
    let mut skip = 0;
    let mut merging = false;
    // Whether the parentheses around are those of SUBSTRING.
    let mut substrings: Vec<bool> = Vec::new();
    // Where the row of a MERGE's INSERT ends, and what it overrides.
    let mut merged: Option<(usize, Overriding)> = None;
    for (index, token) in tokens.iter().enumerate() {
        let first = index == 0 || tokens[index - 1].token == Token::SemiColon;
        if first {
            declarations = Declarations::of(&tokens[index..], substrings.len());
            insert = None;
        }
        if skip > 0 {
            skip -= 1;
            continue;
        }
        let before = index.checked_sub(1).map(|before| &tokens[before].token);
        let opens = matches!(before, Some(Token::LParen | Token::Comma));
        let like = |token_kind: Token| TokenWithSpan { token: token_kind, span: token.span };
        if is_word(Some(token), "insert") {
            insert = Some(out.len());
        }
        match token.token {
            Token::LParen => {
                substrings.push(index > 0 && is_word(tokens.get(index - 1), "substring"));
            }
            Token::RParen => {
                substrings.pop();
                declarations.closes(substrings.len());
            }
            _ => {}
        }
        let similar = is_word(Some(token), "similar") && !is_word(tokens.get(index + 1), "to");
        if substrings.last() == Some(&true) && (similar || is_word(Some(token), "escape")) {
            out.push(like(Token::Comma));
            continue;
        }
        merging = !first && merging || is_word(Some(token), "merge");
        if merging && let Some((words, length)) = merge_action(&tokens, index) {
            out.extend(words.into_iter().map(like));
            // The statement ends where its own words do.
            if let (Some(last), Some(own)) = (out.last_mut(), tokens.get(index + length - 1)) {
                last.span.end = own.span.end;
            }
            skip = length - 1;
            continue;
        }
        if opens && is_word(Some(token), "variadic") && !declarations.hold_at(substrings.len()) {
            let name = argument_name(&tokens[index + 1..]);
            skip = if name.is_empty() { 0 } else { 2 };
            out.push(like(marked_name(format!("{}{name}", crate::ast::VARIADIC_ARGUMENT))));
            out.push(like(Token::RArrow));
            continue;
        }
        if let (Some(place), Some(overriding)) = (insert, overriding_at(&tokens, index)) {
            if !overwrite(&mut out, place, overriding) {
                merged = closing(&tokens, index + 4).map(|end| (end, overriding));
            }
            skip = 2;
            continue;
        }
        out.push(token.clone());
        if let Some((end, overriding)) = merged
            && end == index
        {
            merged = None;
            out.push(like(Token::make_keyword("WHERE")));
            out.push(like(marked_name(overriding.mark().to_owned())));
        }
        if opens
            && matches!(keyword(Some(token)), Some(Keyword::BOTH | Keyword::LEADING | Keyword::TRAILING))
            && keyword(tokens.get(index + 1)) == Some(Keyword::FROM)
        {
            out.push(like(Token::SingleQuotedString(" ".to_string())));
        }
    }
    out
}

/// Whether [`rewrite_words`] may have something to do at a token.
fn is_rewritten(token: &TokenWithSpan) -> bool {
    is_word(Some(token), "variadic")
        || is_word(Some(token), "similar")
        || is_word(Some(token), "overriding")
        || is_word(Some(token), "merge")
        || matches!(keyword(Some(token)), Some(Keyword::BOTH | Keyword::LEADING | Keyword::TRAILING))
}

/// A name in quotes: one that carries a mark.
fn marked_name(value: String) -> Token {
    Token::Word(Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword })
}

/// The name that an argument is given, `name => …` or `name := …`; empty if it has none.
fn argument_name(argument: &[TokenWithSpan]) -> String {
    let named = matches!(argument.get(1).map(|token| &token.token), Some(Token::RArrow | Token::Assignment));
    match argument.first().map(|token| &token.token) {
        Some(Token::Word(word)) if named && word.quote_style.is_some() => word.value.clone(),
        Some(Token::Word(word)) if named => word.value.to_lowercase(),
        _ => String::new(),
    }
}

/// What `OVERRIDING … VALUE` says, if it stands at a place.
fn overriding_at(tokens: &[TokenWithSpan], index: usize) -> Option<Overriding> {
    match is_word(tokens.get(index), "overriding") && is_word(tokens.get(index + 2), "value") {
        true if is_word(tokens.get(index + 1), "system") => Some(Overriding::System),
        true if is_word(tokens.get(index + 1), "user") => Some(Overriding::User),
        _ => None,
    }
}

/// Makes the `INSERT INTO` at a place sqlparser's INSERT OVERWRITE; false if it is that of a MERGE.
fn overwrite(out: &mut Vec<TokenWithSpan>, place: usize, overriding: Overriding) -> bool {
    let span = out[place].span;
    let into = is_word(out.get(place + 1), "into");
    if into {
        out.insert(place + 1, TokenWithSpan { token: Token::make_keyword("OVERWRITE"), span });
        if overriding == Overriding::User {
            out.insert(place + 3, TokenWithSpan { token: Token::make_keyword("TABLE"), span });
        }
    }
    into
}

/// Where a statement declares or names arguments: within the parentheses behind a routine's name, and not
/// deeper.
#[derive(Default)]
struct Declarations {
    /// How many parentheses are open there; zero where there are none.
    depth: usize,
    /// What follows the first parentheses are expressions.
    first_only: bool,
}

impl Declarations {
    /// Those of a statement, of which so many parentheses are around.
    fn of(statement: &[TokenWithSpan], around: usize) -> Declarations {
        let begins = |words: &[&str]| words.iter().any(|word| is_word(statement.first(), word));
        let ends = statement.iter().position(|token| matches!(token.token, Token::LParen | Token::SemiColon));
        let head = &statement[..ends.unwrap_or(statement.len())];
        let names_routine = || {
            let words = ["function", "procedure", "routine", "aggregate"];
            head.iter().any(|token| words.iter().any(|word| is_word(Some(token), word)))
        };
        let calls = begins(&["call"]);
        let creates = begins(&["create"]) && names_routine();
        let names = begins(&["alter", "drop", "comment", "grant", "revoke"]) && names_routine();
        let depth = if calls || creates || names { around + 1 } else { 0 };
        Declarations { depth, first_only: calls || creates }
    }

    /// A parenthesis closes, and so many are left.
    fn closes(&mut self, left: usize) {
        if self.first_only && left + 1 == self.depth {
            self.depth = 0;
        }
    }

    fn hold_at(&self, depth: usize) -> bool {
        self.depth != 0 && depth == self.depth
    }
}

/// The value of a row that stands for INSERT DEFAULT VALUES in MERGE.
pub const MERGE_DEFAULTS: &str = "\u{1}merge defaults";
/// The value of a row, or the column of an assignment, that stands for DO NOTHING in MERGE.
pub const MERGE_NOTHING: &str = "\u{1}merge nothing";

/// An action of MERGE that begins here in words that sqlparser has, and how many it takes the place
/// of.
fn merge_action(tokens: &[TokenWithSpan], at: usize) -> Option<(Vec<Token>, usize)> {
    let words = |words: &[&str]| {
        words.iter().enumerate().all(|(n, word)| is_word(tokens.get(at + n), word))
            && at > 0
            && is_word(tokens.get(at - 1), "then")
    };
    let marked = |value: &str| marked_name(value.to_owned());
    let row = |value: &str| {
        let word = Token::make_keyword;
        vec![word("INSERT"), word("VALUES"), Token::LParen, marked(value), Token::RParen]
    };
    let inserts = words(&["insert", "default", "values"]);
    if !inserts && !words(&["do", "nothing"]) {
        return None;
    }
    let matched = tokens[..at].iter().rposition(|token| is_word(Some(token), "matched"))?;
    let unmatched = matched > 0 && is_word(tokens.get(matched - 1), "not");
    if inserts {
        // What is matched is not inserted: a syntax error at the word as it is written.
        return unmatched.then(|| (row(MERGE_DEFAULTS), 3));
    }
    if unmatched {
        return Some((row(MERGE_NOTHING), 2));
    }
    let word = Token::make_keyword;
    Some((vec![word("UPDATE"), word("SET"), marked(MERGE_NOTHING), Token::Eq, word("NULL")], 2))
}

/// OVERRIDING: whose values identity columns take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overriding {
    /// Those of the statement.
    System,
    /// Those of their sequences.
    User,
}

impl Overriding {
    fn mark(self) -> &'static str {
        match self {
            Overriding::System => "\u{1}overriding system",
            Overriding::User => "\u{1}overriding user",
        }
    }

    /// What the condition of a MERGE's INSERT says.
    pub fn of_mark(name: &str) -> Option<Overriding> {
        [Overriding::System, Overriding::User].into_iter().find(|known| known.mark() == name)
    }
}

/// The end of the parentheses that open at a place.
fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (place, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth <= 1 => return (depth == 1).then_some(place),
            Token::RParen => depth -= 1,
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}
