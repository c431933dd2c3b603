//! Functions of binary strings (bytea).
//!
//! - `binary_string`  length, substring, encode and decode; `binary_match` LIKE, overlay, bits
//! - `crypto`         digests, random bytes, UUIDs; `hash` the hash functions of types
//! - `send`           values in their binary form; `character_set` text of other character sets

pub(super) mod binary_match;
pub(super) mod binary_string;
pub(super) mod character_set;
pub(super) mod crypto;
pub(super) mod hash;
pub(super) mod send;
