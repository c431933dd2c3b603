//! PostgreSQL's character sets (chapter 24.3). Text here is UTF8; clients and files may have others.
//!
//! - [`name`]       their names and numbers
//! - [`verify`]     which bytes are characters
//! - [`report`]     what is said of bytes that are none, and of characters that a set does not have
//! - [`conversion`] which characters are which of Unicode's
//! - [`pair`]       conversions without UTF8
//! - [`recode`]     text to and from UTF8

mod conversion;
mod name;
mod pair;
mod recode;
mod report;
mod verify;

pub use name::Encoding;
pub use recode::{Decoded, convert};
pub use report::{invalid_utf8, no_conversion, utf8};
