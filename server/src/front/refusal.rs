//! Clients that are turned away before they have a session.

use archipel_sql::error::SqlError;

use crate::wire::output::{Output, Severity};
use crate::wire::socket::Socket;

/// Tells a client why it is turned away.
pub(super) async fn refuse(socket: &Socket, error: &SqlError) -> std::io::Result<()> {
    let mut output = Output::new();
    output.report(Severity::Fatal, error);
    socket.write_all(output.as_slice()).await?;
    socket.shutdown(std::net::Shutdown::Write)
}
