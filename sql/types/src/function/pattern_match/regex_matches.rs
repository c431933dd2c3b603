//! The matches of a regular expression in a text, one after the other.

use super::regex_search::{Found, Pattern};
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
    pattern: &Pattern,
    source: &'t str,
    from: usize,
) -> impl Iterator<Item = Result<Found<'t>>> {
    let mut next = Some(from);
    std::iter::from_fn(move || {
        let begins = next.take()?;
        let steps = interrupt::steps(steps_of_search(source.len() - begins));
        let found = match steps.and_then(|()| pattern.captures_at(source, begins)) {
            Ok(found) => found?,
            Err(ended) => return Some(Err(ended)),
        };
        next = found.get(0)?.next_from();
        Some(Ok(found))
    })
}

/// The `n`th of these matches.
pub(super) fn nth_match<'t>(
    pattern: &Pattern,
    source: &'t str,
    from: usize,
    n: i32,
) -> Result<Option<Found<'t>>> {
    for (number, found) in (1..).zip(every_match(pattern, source, from)) {
        let found = found?;
        if number == n {
            return Ok(Some(found));
        }
    }
    Ok(None)
}
