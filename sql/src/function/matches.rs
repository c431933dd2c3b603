//! The matches of a regular expression in a text, one after the other.

use regex::Regex;

use crate::error::Result;
use crate::interrupt;

/// What a search counts as in a text of which so many bytes are left ([`interrupt::steps`]): how far
/// it has looked behind what it found, it does not tell.
pub(super) fn steps_of_search(left_bytes: usize) -> usize {
    64 + left_bytes / 16
}

/// Every match from a place on, as PostgreSQL looks for them: at the end of the last one, or a character
/// behind it if it was empty. (The regex crate's iterators leave out an empty match at the end of another.)
/// The last is an error where the statement shall end.
pub(super) fn every_match<'t>(
    regex: &Regex,
    source: &'t str,
    from: usize,
) -> impl Iterator<Item = Result<regex::Captures<'t>>> {
    let mut next = Some(from);
    std::iter::from_fn(move || {
        let begins = next?;
        let captures = regex.captures_at(source, begins)?;
        let whole = captures.get(0)?;
        if let Err(ended) = interrupt::steps(steps_of_search(source.len() - begins)) {
            next = None;
            return Some(Err(ended));
        }
        next = match whole.is_empty() {
            true => source[whole.end()..].chars().next().map(|passed| whole.end() + passed.len_utf8()),
            false => Some(whole.end()),
        };
        Some(Ok(captures))
    })
}

/// The `n`th of these matches.
pub(super) fn nth_match<'t>(
    regex: &Regex,
    source: &'t str,
    from: usize,
    n: i32,
) -> Result<Option<regex::Captures<'t>>> {
    for (number, captures) in (1..).zip(every_match(regex, source, from)) {
        let captures = captures?;
        if number == n {
            return Ok(Some(captures));
        }
    }
    Ok(None)
}
