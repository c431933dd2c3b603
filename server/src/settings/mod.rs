//! Settings (PostgreSQL's GUCs): what exists, what a server was started with, and what a
//! session or transaction has changed.
//!
//! - [`table`]   every setting: type, unit, bounds, default, who may change it
//! - [`foreign`] PostgreSQL's settings that have no effect here
//! - [`value`]   parsing with units, and the text SHOW answers
//! - [`live`]    what ALTER SYSTEM and pg_reload_conf() change while the server runs
//! - [`session`] one session's values, with SET LOCAL and undo at ROLLBACK
//! - [`identifiers`] lists of identifiers, as `search_path` is one
//!
//! Invariant: a setting that exists is honoured or accepts only the value that is true of this
//! server; an unknown one is refused (42704), except custom ones with a dot in their name.

pub mod foreign;
mod identifiers;
pub mod live;
pub mod session;
pub mod table;
pub mod value;

pub use session::{SessionSettings, cut_notice, require_setting};
pub use table::{Context, Setting, SettingId, find, setting_name};
pub use value::{Kind, RoleValue, Unit, Value};
