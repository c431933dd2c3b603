//! The server: PostgreSQL's protocol in front, the engine underneath.
pub mod config;
pub mod front;
pub mod http;
pub mod replies;
pub mod sessions;
pub mod settings;
pub mod wire;
