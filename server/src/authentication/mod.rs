//! Who comes in: `pg_hba.conf`, `pg_ident.conf`, and how clients say who they are (PostgreSQL 15, chapter 21).
//!
//! - [`rules`]     both files, or what holds without them; which line is about a client
//! - `tokens`      their lines and tokens; [`hba`] and [`ident`] what those mean
//! - `address`     which clients are meant, [`host_name`] by name
//! - [`lobby`]     where clients wait until they are known: so many, and so long
//! - [`admission`] one client: the line about it, and what it proves
//! - `exchange`    the messages in which it does, `scram` SCRAM-SHA-256, `peer` users of this machine
//! - [`names`]     who it says it is, and which database it wants
//! - [`state`]     what all clients share
//! - [`first_password`] the superuser's password at the first start, and when other machines may connect
//!
//! Invariant: it all happens before an executor sees a client. A client that is not known makes the server
//! neither wait nor compute for long, learns nothing of roles, and leaves no secret in the log.

mod address;
pub mod admission;
mod exchange;
pub mod first_password;
pub mod hba;
pub mod host_name;
pub mod ident;
pub mod lobby;
pub mod names;
mod peer;
pub mod rules;
mod scram;
pub mod state;
mod tokens;

pub use address::AddressMatch;
pub use tokens::{Line, Token};
