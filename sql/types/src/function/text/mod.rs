//! Functions of text.
//!
//! - `string`    length, substring, replace, split …; `trim_side` at which ends something is trimmed
//! - `letter`    upper, lower and the order of texts; `normalize` the normal forms of Unicode

mod letter;
pub(super) mod normalize;
pub(super) mod string;
pub(super) mod trim_side;
