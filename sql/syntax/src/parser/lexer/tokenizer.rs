//! The tokeniser of the library, ended on its way.
//!
//! It reads a text in one piece, 256 MB of which may be as many tokens, each a hundred bytes. But it
//! hands every token to whom it is told before it keeps it: there the statement is asked whether it shall
//! end, and for the memory of more. What ends it there unwinds through the library, which holds nothing.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use sqlparser::tokenizer::{TokenWithSpan, Tokenizer, TokenizerError};

use crate::error::Result;
use crate::parser::dialect::ArchipelDialect;
use crate::{interrupt, memory};

/// Tokens between two looks whether to go on.
const TOKENS_PER_LOOK: usize = 1 << 12;

/// Adds the tokens of a text to those there are; the inner error is the tokeniser's own.
pub(in crate::parser) fn read(
    text: &str,
    tokens: &mut Vec<TokenWithSpan>,
) -> Result<std::result::Result<(), TokenizerError>> {
    let mut ended = None;
    let (mut count, mut room) = (tokens.len(), tokens.capacity());
    let read = catch_unwind(AssertUnwindSafe(|| {
        let mut tokenizer = Tokenizer::new(&ArchipelDialect, text);
        tokenizer.tokenize_with_location_into_buf_with_mapper(tokens, |token| {
            if let Err(error) = go_on(count, &mut room) {
                ended = Some(error);
                // No panic that anybody would be told of.
                resume_unwind(Box::new(()));
            }
            count += 1;
            token
        })
    }));
    match (read, ended) {
        (_, Some(error)) => Err(error),
        (Ok(read), None) => Ok(read),
        (Err(panic), None) => resume_unwind(panic),
    }
}

/// Whether one more token may come behind `count`, of which so many have room.
fn go_on(count: usize, room: &mut usize) -> Result<()> {
    if count == *room {
        // The list is copied to one twice as long.
        *room = room.saturating_mul(2);
        memory::check(room.saturating_mul(size_of::<TokenWithSpan>()))?;
    }
    if count > 0 && count.is_multiple_of(TOKENS_PER_LOOK) {
        interrupt::check()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::SqlState;

    #[test]
    fn tokens_come_as_from_the_library() {
        let text = "SELECT a, 'b' FROM c -- d";
        let (mut ours, mut theirs) = (Vec::with_capacity(4), Vec::new());
        assert_eq!(read(text, &mut ours), Ok(Ok(())));
        Tokenizer::new(&ArchipelDialect, text).tokenize_with_location_into_buf(&mut theirs).unwrap();
        assert_eq!(ours, theirs);
        assert!(matches!(read("SELECT 'a", &mut ours), Ok(Err(_))), "not ended");
    }

    /// A session that has been cancelled.
    struct Cancelled;

    impl archipel_types::function::SessionHost for Cancelled {
        fn interrupted(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_long_text_is_not_read_to_its_end() {
        let _watch = interrupt::Watch::of(std::sync::Arc::new(Cancelled));
        let mut tokens = Vec::with_capacity(4);
        let read = read(&"1,".repeat(1_000_000), &mut tokens);
        assert_eq!(read.map_err(|error| error.state()), Err(SqlState::QUERY_CANCELED));
        assert!(tokens.len() <= TOKENS_PER_LOOK, "{}", tokens.len());
    }
}
