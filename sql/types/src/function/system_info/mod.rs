//! Functions that tell of the session, the server and the catalog.
//!
//! - `session`     settings, sequences, definitions, privileges: what [`super::SessionHost`] is asked for
//! - `identifier`  names and numbers of the catalog; `reference` keywords, time zones
//! - `lsn`, `tid`, `snapshot` places in the log, places of rows, transactions and snapshots
//! - `row_place` places of rows that have keys
//! - `policy_check` rows that policies must allow
//! - `extra_checks` the checks of PL/pgSQL that a setting asks for

pub(super) mod extra_checks;
pub(super) mod identifier;
pub(super) mod lsn;
pub(super) mod policy_check;
pub(super) mod reference;
pub(super) mod row_place;
pub(super) mod session;
pub(super) mod snapshot;
pub(super) mod tid;
