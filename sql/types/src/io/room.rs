//! Whether there is room for the text of a value that is made of others, and why there was none.

use std::cell::RefCell;

use crate::datum::Datum;
use crate::error::SqlError;
use crate::function::length::{ALLOCATION_MAX, buffer_too_large};
use crate::{interrupt, memory, written_size};

thread_local! {
    /// Why a text was not written: who writes answers no more than that it failed.
    static WHY: RefCell<Option<SqlError>> = const { RefCell::new(None) };
}

/// Fails where there is no room for the text of a value that is made of others; [`text_too_long`] then
/// says why.
pub(super) fn room_for(value: &Datum) -> std::fmt::Result {
    written_size::check(value).map_err(|error| {
        WHY.set(Some(error));
        std::fmt::Error
    })
}

/// Fails where there is no room for a text of so many bytes; [`text_too_long`] then says why.
pub(super) fn room_for_text(bytes: usize) -> std::fmt::Result {
    memory::check_value(bytes).map_err(|error| {
        WHY.set(Some(error));
        std::fmt::Error
    })
}

/// Nobody will ask why.
pub(super) fn forget_why() {
    WHY.set(None);
}

/// Why the text of a value was not written: the statement shall end, there is no memory for it, or it is
/// too long (54000).
#[cold]
pub fn text_too_long() -> SqlError {
    let why = WHY.take();
    match interrupt::check() {
        Err(ended) => ended,
        Ok(()) => why.unwrap_or_else(|| buffer_too_large(ALLOCATION_MAX, 1)),
    }
}

/// Fails if a text is too long with its quotes doubled, if there is no memory for that, or if the statement
/// shall end. Each level doubles what the one below has quoted: a few dozen would fill any memory.
pub(super) fn check_doubled(text: &str) -> std::fmt::Result {
    /// Shorter ones are not asked about each.
    const LONG: usize = 64 << 10;
    let doubled = text.bytes().filter(|b| matches!(b, b'"' | b'\\')).count();
    if text.len() + doubled > ALLOCATION_MAX {
        return Err(std::fmt::Error);
    }
    if text.len() < LONG {
        return Ok(());
    }
    let room = interrupt::check().and_then(|()| memory::require(text.len() + doubled, "ExprContext"));
    room.map_err(|error| {
        WHY.set(Some(error));
        std::fmt::Error
    })
}
