//! Network addresses: `inet`, `cidr`, `macaddr` and `macaddr8` (network.c, mac.c, mac8.c).
//!
//! - [`inet`]      hosts and networks, and their arithmetic
//! - [`inet_text`] how they are written
//! - [`mac`]       addresses of devices, of six bytes and of eight

mod inet;
mod inet_text;
mod mac;

pub use inet::Inet;
pub use mac::{MacAddress, MacAddress8};
