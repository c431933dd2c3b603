//! The front door: accepts connections and reads their opening packets on a thread of its own,
//! so that a cancel request gets through while every executor is busy, and so that an executor
//! only ever sees clients that have said who they are.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use archipel_sql::error::SqlError;
use tokio::sync::mpsc::UnboundedSender;

use crate::sessions::Sessions;
use crate::wire::frame::SMALL_MESSAGE_BYTES_MAX;
use crate::wire::output::{Output, Severity};
use crate::wire::socket::Socket;
use crate::wire::startup::{Opening, opening};

/// Longest time a client may take to say who it is, as PostgreSQL's `authentication_timeout`.
const OPENING_DEADLINE: Duration = Duration::from_secs(60);

/// A client that asked to start a session.
pub struct Arrival {
    pub socket: socket2::Socket,
    /// `None` for a Unix socket.
    pub client: Option<SocketAddr>,
    pub minor_version: u16,
    pub parameters: Vec<(String, String)>,
    /// Bytes it sent after the startup packet.
    pub rest: Vec<u8>,
}

/// One executor's door.
pub struct Door {
    pub arrivals: UnboundedSender<Arrival>,
    /// How many sessions the executor serves, arrivals underway included.
    pub sessions: Arc<AtomicUsize>,
}

/// The front door.
pub struct Front {
    pub doors: Vec<Door>,
    pub sessions: Arc<Sessions>,
    pub closing: Arc<AtomicBool>,
}

impl Front {
    /// Accepts clients of a listening socket, in the current runtime, until the task is dropped.
    pub async fn serve(self: Arc<Self>, listener: Socket) {
        loop {
            match listener.accept().await {
                Ok((socket, address)) => {
                    let front = self.clone();
                    tokio::spawn(async move {
                        let admitted = front.admit(socket, address.as_socket());
                        // A client that is too slow or gone needs no answer.
                        let _ = tokio::time::timeout(OPENING_DEADLINE, admitted).await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn admit(&self, socket: socket2::Socket, client: Option<SocketAddr>) -> std::io::Result<()> {
        if client.is_some() {
            socket.set_tcp_nodelay(true)?;
        }
        let socket = Socket::new(socket)?;
        let mut pending: Vec<u8> = Vec::with_capacity(1024);
        let mut room = [0; 1024];
        loop {
            match opening(&pending) {
                Ok(None) if pending.len() > SMALL_MESSAGE_BYTES_MAX => return Ok(()),
                Ok(None) => {
                    let count = socket.read(&mut room).await?;
                    if count == 0 {
                        return Ok(());
                    }
                    pending.extend_from_slice(&room[..count]);
                }
                Ok(Some((Opening::SslRequest | Opening::GssEncryptionRequest, length))) => {
                    if pending.len() > length {
                        // Bytes sent before the answer could have been put there by somebody else.
                        let error = SqlError::new(
                            archipel_sql::error::SqlState::PROTOCOL_VIOLATION,
                            "received unencrypted data after SSL request",
                        );
                        return refuse(&socket, &error).await;
                    }
                    pending.clear();
                    socket.write_all(b"N").await?;
                }
                Ok(Some((Opening::Cancel { process_id, secret }, _))) => {
                    self.sessions.cancel(process_id, secret);
                    return Ok(());
                }
                Ok(Some((Opening::Startup { minor_version, parameters }, length))) => {
                    if self.closing.load(Ordering::Acquire) {
                        let error = SqlError::new(
                            archipel_sql::error::SqlState::CANNOT_CONNECT_NOW,
                            "the database system is shutting down",
                        );
                        return refuse(&socket, &error).await;
                    }
                    let rest = pending.split_off(length);
                    let socket = socket.into_inner();
                    self.hand_over(Arrival { socket, client, minor_version, parameters, rest });
                    return Ok(());
                }
                Err(error) => return refuse(&socket, &error).await,
            }
        }
    }

    fn hand_over(&self, arrival: Arrival) {
        let quietest = self.doors.iter().min_by_key(|door| door.sessions.load(Ordering::Relaxed));
        if let Some(door) = quietest {
            door.sessions.fetch_add(1, Ordering::Relaxed);
            if door.arrivals.send(arrival).is_err() {
                door.sessions.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

async fn refuse(socket: &Socket, error: &SqlError) -> std::io::Result<()> {
    let mut output = Output::new();
    output.report(Severity::Fatal, error);
    socket.write_all(output.as_slice()).await?;
    socket.shutdown(std::net::Shutdown::Write)
}
