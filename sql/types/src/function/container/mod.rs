//! Functions of values that are made of others: arrays and records.
//!
//! - `array`   functions and operators of arrays; `array_assign` an element or slice replaced
//! - `record`  rows as arguments; `record_image` rows compared byte by byte
//! - `nested_assign` parts replaced on ways through fields, elements and keys

pub(super) mod array;
pub(super) mod array_assign;
pub(super) mod nested_assign;
pub(super) mod record;
pub(super) mod record_image;
