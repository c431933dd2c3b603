//! Free ports: no test depends on a fixed one.

use std::net::TcpListener;

/// A loopback port that was free a moment ago. Whoever binds it next may still lose a race, so
/// callers that start servers try again with another.
pub fn free() -> u16 {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .expect("loopback has a free port")
        .port()
}
