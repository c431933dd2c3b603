//! Functions of text.
//!
//! - `string`    length, substring, replace, split …; `quoting` which identifiers need quotes
//! - `letter`    upper, lower and the order of texts; `normalize` the normal forms of Unicode

mod letter;
pub(super) mod normalize;
pub(crate) mod quoting;
pub(super) mod string;
