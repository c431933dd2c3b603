//! The server: PostgreSQL's protocol in front, the engine underneath.
//!
//! The life of a request, module by module:
//!
//! - [`cli`], [`config`], [`settings`]  how a server is told what to be
//! - [`server`]     start, recovery, shutdown; what all threads share
//! - [`listen`]     TCP addresses ([`listen_addresses`]) and Unix sockets; [`front`] the front door: accepts, reads opening packets, hands clients to executors; [`tls`] its handshakes; [`authentication`] who they are
//! - [`executor`]   one pinned thread: its sessions and its partitions, in turns; [`core_change`] what happens when cores come and go
//! - [`wire`]       bytes ⇄ messages; [`encode`] values in them
//! - [`session`]    one client: messages → statements → programs
//! - [`statement`]  prepared statements and their cache
//! - [`run`]        the programs handed to the engine
//! - [`notifications`] NOTIFY from session to session; [`transaction_ids`] ids of transactions that ask for one
//! - [`replies`]    replies held until what they depend on is durable; [`outbox`] those of a turn
//! - [`database`]   what each database has of its own; [`catalog`] its catalog snapshot in force
//! - [`functions`], [`system`] what SQL can ask
//! - [`design`]     where tables live, by the evidence of deployed routines
//! - [`threads`]    threads beside the executors
//! - [`memory`]     how much the server may take, and a watch over it
//! - [`http`]       health, metrics, the live page
//! - [`backup`], [`check`]  copies of the database; a look at a data directory nobody serves; [`clock`] what time it is; [`regular_file`] files that settings name
//!
//! Invariant: an executor thread never blocks; whatever would block runs elsewhere.

pub mod authentication;
pub mod backup;
pub mod catalog;
pub mod check;
pub mod cli;
mod clock;
pub mod config;
pub mod core_change;
pub mod database;
pub mod design;
pub mod encode;
pub mod executor;
pub mod front;
pub mod functions;
pub mod http;
pub mod listen;
pub mod listen_addresses;
pub mod memory;
pub mod notifications;
pub mod outbox;
mod regular_file;
pub mod replies;
pub mod run;
pub mod server;
pub mod session;
pub mod sessions;
pub mod settings;
pub mod statement;
pub mod system;
pub mod threads;
pub mod tls;
pub mod topology;
pub mod transaction_ids;

pub use archipel_wire as wire;
