//! TLS: the server's certificate and key, whom it trusts, and the handshakes of its clients.
//!
//! - [`server_tls`]  what is in force, from the start on and after reloads
//! - [`context`]     what the settings `ssl_*` and their files come to
//! - [`files`]       certificates, keys and revocation lists in PEM files, [`passphrase`] those of keys
//! - [`certificate`] what certificates say
//! - [`suites`]      cipher suites and curves by the names that OpenSSL, and so PostgreSQL, gives them
//! - [`handshake`]   from a plain socket to an encrypted one
//! - [`error`]       why TLS cannot be had
//!
//! What is wrong with the settings or their files stops a start; while the server runs, a reload that
//! finds it keeps what was in force.
//!
//! Invariant: a handshake computes on threads of its own, so many at once and no more: whoever knocks
//! without end keeps the front door and the executors from nothing.

mod certificate;
mod context;
mod error;
mod files;
mod handshake;
mod passphrase;
mod server_tls;
mod suites;

pub use context::TlsContext;
pub use error::TlsError;
pub use handshake::{Encrypted, FIRST_BYTE, HandshakeError};
pub use server_tls::{ServerTls, check_settings};
