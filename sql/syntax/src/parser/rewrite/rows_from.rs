//! `ROWS FROM (f(…), g(…))`: functions whose rows stand side by side. sqlparser does not know it; it
//! reaches the grammar as a call of the function [`ROWS_FROM`], with the calls as arguments.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::parser::lexer::lexeme::is_word;

/// What stands for ROWS FROM, a name that no SQL can spell.
pub const ROWS_FROM: &str = "\u{1}rows from";

/// Rewrites ROWS FROM where none of its functions has a column definition list of its own.
pub(in crate::parser) fn rewrite_rows_from(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut at = 0;
    while at + 2 < tokens.len() {
        if is_word(tokens.get(at), "rows")
            && is_word(tokens.get(at + 1), "from")
            && tokens[at + 2].token == Token::LParen
            && is_plain(&tokens[at + 3..])
            && let Token::Word(word) = &mut tokens[at].token
        {
            word.value = ROWS_FROM.to_owned();
            word.quote_style = Some('"');
            word.keyword = Keyword::NoKeyword;
            tokens.remove(at + 1);
        }
        at += 1;
    }
    tokens
}

/// Whether no AS stands beside the functions, up to the end of their list.
fn is_plain(tokens: &[TokenWithSpan]) -> bool {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return true,
            Token::RParen => depth -= 1,
            _ if depth == 0 && is_word(tokens.get(at), "as") => return false,
            _ => {}
        }
    }
    false
}
