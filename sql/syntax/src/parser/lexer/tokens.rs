//! From text to tokens: sqlparser's tokeniser, PostgreSQL's error messages, and a few
//! rewritings of the token stream, so that constructions sqlparser lacks reach its grammar in a
//! form it has.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

use crate::ast::RowLockStrength;
use crate::error::Result;
use crate::interrupt;

use super::lexeme::{is_word, keyword};
use super::position::{Positions, syntax_error, too_deep};
use super::scan::raw_tokens;
use crate::parser::rewrite::array_keyword::{constructs_nothing, rewrite_array_words};
use crate::parser::rewrite::conflict_target::rewrite_inference;
use crate::parser::rewrite::empty_target_list::rewrite_no_columns;
use crate::parser::rewrite::expand_star::rewrite_stars;
use crate::parser::rewrite::fetch_first::rewrite_fetch;
use crate::parser::rewrite::few_words::{
    rewrite_column_definitions, rewrite_like_any, rewrite_sort_operators, rewrite_table,
    rewrite_typed_escapes, rewrite_words,
};
use crate::parser::rewrite::merge::rewrite_merge_sources;
use crate::parser::rewrite::nested_join::{rewrite_joins, rewrite_using_aliases};
use crate::parser::rewrite::only::rewrite_only;
use crate::parser::rewrite::rows_from::rewrite_rows_from;
use crate::parser::rewrite::search_cycle::rewrite_recursion;
use crate::parser::rewrite::sql_syntax::tell_calls_apart;
use crate::parser::rewrite::subscripted_target::rewrite_elements;
use crate::parser::rewrite::window_frame::{rewrite_bounds, rewrite_exclusions};

/// An expression may hold so many operators in a row and nest so deep, together.
const MAX_DEPTH: usize = 2000;

/// Tokens of a text without blanks and comments, rewritten for sqlparser's grammar.
pub(in crate::parser) fn tokenize(positions: &Positions<'_>) -> Result<Vec<TokenWithSpan>> {
    let raw = raw_tokens(positions)?;
    let tokens = join_strings(raw);
    check_depth(&tokens)?;
    if let Some(token) = out_of_place(&tokens) {
        let at = token.span.start;
        let near = positions.text().get(positions.byte(at)..positions.byte(token.span.end));
        return Err(syntax_error(near.unwrap_or_default(), positions.character(at).unwrap_or(1)));
    }
    if tokens.len().checked_sub(1).is_some_and(|last| constructs_nothing(&tokens, last)) {
        return Err(syntax_error("", positions.character_of_byte(positions.text().len())));
    }
    interrupt::check()?;
    let tokens = rewrite_merge_sources(rewrite_array_words(tokens));
    let tokens = rewrite_recursion(rewrite_elements(tokens, positions), positions);
    let tokens = rewrite_inference(rewrite_table(tokens), positions);
    interrupt::check()?;
    let tokens =
        rewrite_joins(rewrite_using_aliases(rewrite_exclusions(rewrite_bounds(rewrite_column_definitions(
            rewrite_sort_operators(rewrite_like_any(rewrite_typed_escapes(rewrite_rows_from(tokens)))),
        )))));
    interrupt::check()?;
    let tokens = rewrite_locks(rewrite_words(rewrite_only(rewrite_fetch(rewrite_no_columns(tokens)))));
    Ok(tell_calls_apart(rewrite_stars(tokens)))
}

/// Drops blanks and comments; joins string literals separated by a line break (chapter 4.1.2.1).
fn join_strings(raw: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut tokens: Vec<TokenWithSpan> = Vec::with_capacity(raw.len());
    let mut line_break = false;
    let mut commented = false;
    for token in raw {
        match (&token.token, tokens.last_mut()) {
            (Token::Whitespace(Whitespace::Newline | Whitespace::SingleLineComment { .. }), _) => {
                line_break = true
            }
            // Such a comment is none of the blanks between the parts of a string.
            (Token::Whitespace(Whitespace::MultiLineComment(_)), _) => commented = true,
            (Token::Whitespace(_), _) => {}
            (Token::SingleQuotedString(next), Some(last)) if line_break && !commented => {
                line_break = false;
                if let Token::SingleQuotedString(text)
                | Token::EscapedStringLiteral(text)
                | Token::SingleQuotedByteStringLiteral(text)
                | Token::HexStringLiteral(text) = &mut last.token
                {
                    text.push_str(next);
                    last.span.end = token.span.end;
                } else {
                    tokens.push(token);
                }
            }
            _ => {
                (line_break, commented) = (false, false);
                tokens.push(token);
            }
        }
    }
    tokens
}

/// What no grammar may take and sqlparser's would: the second of two strings that stand side by side,
/// which it reads as an alias, INSERT OVERWRITE, which only the rewriting that follows may say, ARRAY
/// behind a type that is an array's already, what follows an ARRAY that makes none, a word that begins the
/// next clause in the place of a relation, and FROM behind DISTINCT. Only DO has a string behind another: its body behind its
/// language.
fn out_of_place(tokens: &[TokenWithSpan]) -> Option<&TokenWithSpan> {
    let is_string = |token: &TokenWithSpan| {
        matches!(
            token.token,
            Token::SingleQuotedString(_)
                | Token::EscapedStringLiteral(_)
                | Token::DollarQuotedString(_)
                | Token::SingleQuotedByteStringLiteral(_)
                | Token::HexStringLiteral(_)
        )
    };
    let names_language =
        |at: usize| at >= 2 && is_word(tokens.get(at - 2), "do") && is_word(tokens.get(at - 1), "language");
    let first = tokens.windows(2).enumerate().position(|(at, pair)| {
        (is_string(&pair[0]) && is_string(&pair[1]) && !names_language(at))
            || (is_word(Some(&pair[0]), "insert") && is_word(Some(&pair[1]), "overwrite"))
            || (pair[0].token == Token::RBracket && is_word(Some(&pair[1]), "array"))
            || constructs_nothing(tokens, at)
            || (is_clause(tokens, at + 1)
                && (is_word(Some(&pair[0]), "from") || is_word(Some(&pair[0]), "join")))
            || (at > 0
                && is_word(tokens.get(at - 1), "select")
                && is_word(Some(&pair[0]), "distinct")
                && is_word(Some(&pair[1]), "from"))
    })?;
    tokens.get(first + 1)
}

/// Whether a reserved word stands here that begins nothing that can follow FROM, be that an expression or a
/// relation.
fn is_clause(tokens: &[TokenWithSpan], at: usize) -> bool {
    const CLAUSES: [&str; 15] = [
        "where",
        "having",
        "order",
        "limit",
        "offset",
        "union",
        "intersect",
        "except",
        "window",
        "on",
        "using",
        "returning",
        "and",
        "or",
        "from",
    ];
    match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => {
            let is_grouping = word.value.eq_ignore_ascii_case("group") && is_word(tokens.get(at + 1), "by");
            is_grouping || CLAUSES.iter().any(|clause| word.value.eq_ignore_ascii_case(clause))
        }
        _ => false,
    }
}

/// What nests within an open parenthesis or CASE, as far as has been read.
#[derive(Default)]
struct Nesting {
    /// Set operators.
    sets: usize,
    /// Operators since the last comma or AND or OR, whose chains are kept as shallow trees, or the last
    /// arm of a CASE.
    operators: usize,
    /// CASE, rather than a parenthesis.
    of_case: bool,
}

impl Nesting {
    fn depth(&self) -> usize {
        self.sets + self.operators
    }
}

/// Bounds the depth of the trees before they are built: parsing, walking and dropping them all
/// recurse. Left-associative chains nest as deep as they are long, and of names with dots sqlparser reads the
/// rest again behind each.
fn check_depth(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut levels: Vec<Nesting> = vec![Nesting::default()];
    let mut outer = 0;
    let (mut dots, mut behind_dot) = (0, false);
    for token in tokens {
        match &token.token {
            Token::Period => dots += 1,
            Token::Word(_) if behind_dot => {}
            _ => dots = 0,
        }
        behind_dot = token.token == Token::Period;
        let level = levels.last_mut().expect("the bottom level stays");
        match &token.token {
            Token::LParen | Token::LBracket => {
                outer += level.depth() + 1;
                levels.push(Nesting::default());
            }
            Token::RParen | Token::RBracket => {
                // A CASE that has no END ends with what it stands in.
                while levels.len() > 1 {
                    let closed = levels.pop().expect("more than one");
                    outer -= levels.last().expect("the bottom level stays").depth() + 1;
                    if !closed.of_case {
                        break;
                    }
                }
                // Array types and subscripts nest as they are strung together.
                if token.token == Token::RBracket {
                    levels.last_mut().expect("the bottom level stays").operators += 1;
                }
            }
            Token::Word(word) if word.keyword == Keyword::CASE => {
                outer += level.depth() + 1;
                levels.push(Nesting { of_case: true, ..Nesting::default() });
            }
            Token::Word(word) if word.keyword == Keyword::END && level.of_case => {
                levels.pop();
                outer -= levels.last().expect("the bottom level stays").depth() + 1;
            }
            Token::Word(word)
                if level.of_case && matches!(word.keyword, Keyword::WHEN | Keyword::THEN | Keyword::ELSE) =>
            {
                level.operators = 0;
            }
            Token::Comma | Token::SemiColon => (level.sets, level.operators) = (0, 0),
            Token::Word(word) => match word.keyword {
                Keyword::AND | Keyword::OR => level.operators = 0,
                Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT => {
                    level.sets += 1;
                    level.operators = 0;
                }
                Keyword::NOT
                | Keyword::IS
                | Keyword::IN
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::SIMILAR
                | Keyword::BETWEEN
                | Keyword::COLLATE
                | Keyword::AT
                | Keyword::NOTNULL
                | Keyword::OVERLAPS
                | Keyword::OPERATOR
                | Keyword::EXPLAIN
                | Keyword::JOIN => level.operators += 1,
                _ if is_word(Some(token), "isnull") => level.operators += 1,
                _ => {}
            },
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::Placeholder(_)
            | Token::Period
            | Token::DollarQuotedString(_) => {}
            _ => level.operators += 1,
        }
        let depth = outer + levels.last().expect("the bottom level stays").depth();
        if depth > MAX_DEPTH || dots > MAX_DEPTH {
            return Err(too_deep());
        }
    }
    Ok(())
}

/// Length and strength of a locking clause's head at `index` (its FOR).
fn lock_head(tokens: &[TokenWithSpan], index: usize) -> Option<(usize, RowLockStrength)> {
    if keyword(tokens.get(index)) != Some(Keyword::FOR) {
        return None;
    }
    match (keyword(tokens.get(index + 1))?, keyword(tokens.get(index + 2)), keyword(tokens.get(index + 3))) {
        (Keyword::UPDATE, ..) => Some((2, RowLockStrength::Update)),
        (Keyword::SHARE, ..) => Some((2, RowLockStrength::Share)),
        (Keyword::KEY, Some(Keyword::SHARE), _) => Some((3, RowLockStrength::KeyShare)),
        (Keyword::NO, Some(Keyword::KEY), Some(Keyword::UPDATE)) => Some((4, RowLockStrength::NoKeyUpdate)),
        _ => None,
    }
}

/// Whether a token belongs to the head of a policy, whose FOR UPDATE is the command that it is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PolicyHead {
    Elsewhere,
    /// Before the first parenthesis: the conditions are queries' expressions.
    Inside,
}

impl PolicyHead {
    fn at(self, tokens: &[TokenWithSpan], index: usize) -> PolicyHead {
        let begins = |token: &TokenWithSpan| matches!(token.token, Token::SemiColon);
        match &tokens[index].token {
            Token::LParen | Token::SemiColon => PolicyHead::Elsewhere,
            Token::Word(_)
                if index.checked_sub(1).and_then(|before| tokens.get(before)).is_none_or(begins)
                    && keyword(tokens.get(index)) == Some(Keyword::CREATE)
                    && is_word(tokens.get(index + 1), "policy") =>
            {
                PolicyHead::Inside
            }
            _ => self,
        }
    }
}

/// Rewrites locking clauses as [`crate::ast::lock`] tells, and moves them behind a LIMIT, OFFSET
/// or FETCH that follows, where sqlparser expects them.
fn rewrite_locks(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !(0..tokens.len()).any(|index| lock_head(&tokens, index).is_some()) {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 8);
    let mut index = 0;
    let mut policy = PolicyHead::Elsewhere;
    while index < tokens.len() {
        policy = policy.at(&tokens, index);
        if lock_head(&tokens, index).is_none() || policy == PolicyHead::Inside {
            out.push(tokens[index].clone());
            index += 1;
            continue;
        }
        let mut clauses = Vec::new();
        while let Some((length, strength)) = lock_head(&tokens, index) {
            index = rewrite_lock(&tokens, index, length, strength, &mut clauses);
        }
        if matches!(keyword(tokens.get(index)), Some(Keyword::LIMIT | Keyword::OFFSET | Keyword::FETCH)) {
            let mut depth = 0_usize;
            while let Some(token) = tokens.get(index) {
                match token.token {
                    Token::LParen => depth += 1,
                    Token::RParen if depth == 0 => break,
                    Token::RParen => depth -= 1,
                    Token::SemiColon => break,
                    _ if depth == 0 && lock_head(&tokens, index).is_some() => break,
                    _ => {}
                }
                out.push(token.clone());
                index += 1;
            }
        }
        // What ends the statement ends where the last of these words stood.
        if let (Some(last), Some(end)) = (clauses.last_mut(), tokens.get(index.wrapping_sub(1))) {
            last.span.end = end.span.end;
        }
        out.append(&mut clauses);
    }
    out
}

fn rewrite_lock(
    tokens: &[TokenWithSpan],
    start: usize,
    length: usize,
    strength: RowLockStrength,
    out: &mut Vec<TokenWithSpan>,
) -> usize {
    let span = tokens[start].span;
    let like = |token: Token| TokenWithSpan { token, span };
    let mut index = start + length;
    // Each table of OF as its tokens; one empty entry stands for all tables.
    let mut tables: Vec<&[TokenWithSpan]> = Vec::new();
    if keyword(tokens.get(index)) == Some(Keyword::OF) {
        loop {
            index += 1;
            let from = index;
            while matches!(tokens.get(index).map(|t| &t.token), Some(Token::Word(_) | Token::Period))
                && !matches!(keyword(tokens.get(index)), Some(Keyword::NOWAIT | Keyword::SKIP | Keyword::FOR))
                && (index == from
                    || matches!(tokens[index - 1].token, Token::Period)
                    || matches!(tokens[index].token, Token::Period))
            {
                index += 1;
            }
            tables.push(&tokens[from..index]);
            if !matches!(tokens.get(index).map(|t| &t.token), Some(Token::Comma)) {
                break;
            }
        }
    } else {
        tables.push(&[]);
    }
    let wait = match keyword(tokens.get(index)) {
        Some(Keyword::NOWAIT) => &tokens[index..index + 1],
        Some(Keyword::SKIP) if keyword(tokens.get(index + 1)) == Some(Keyword::LOCKED) => {
            &tokens[index..index + 2]
        }
        _ => &[],
    };
    index += wait.len();
    let listed = tables.len() > 1 || keyword(tokens.get(start + length)) == Some(Keyword::OF);
    for table in tables {
        for word in ["FOR", "UPDATE", "OF"] {
            out.push(like(Token::make_keyword(word)));
        }
        out.push(like(Token::Word(Word {
            value: strength.marker().to_string(),
            quote_style: Some('"'),
            keyword: Keyword::NoKeyword,
        })));
        if listed {
            // An empty name leaves the period dangling: a syntax error, as it should be.
            out.push(like(Token::Period));
            out.extend_from_slice(table);
        }
        out.extend_from_slice(wait);
    }
    index
}
