//! Pattern matching: LIKE, SIMILAR TO and POSIX regular expressions (the manual's chapter 9.7).
//!
//! - [`exact_pattern`]    patterns that one text alone matches
//! - `pattern`            the operators and functions; `regexp` regexp_count, regexp_instr, regexp_substr
//! - `regex_translation`  PostgreSQL's advanced regular expressions as the `regex` crate reads them;
//!   `regex_bracket` their bracket expressions, `regex_escape` their escapes
//! - `regex_search`       a compiled expression, and searches that can be ended; `regex_matches` one match after
//!   the other, `regex_pace` how often a search asks whether to go on
//! - `regex_captures`     what the groups of an expression have matched; `regex_preference` by which rules

pub mod exact_pattern;
pub(super) mod pattern;
mod regex_bracket;
mod regex_captures;
mod regex_escape;
mod regex_matches;
mod regex_pace;
mod regex_preference;
pub(super) mod regex_search;
mod regex_translation;
pub(super) mod regexp;
