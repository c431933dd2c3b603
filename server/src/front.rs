//! The front door: accepts connections and reads their opening packets on a thread of its own,
//! so that a cancel request gets through while every executor is busy, and so that an executor
//! only ever sees clients that have said who they are.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use archipel_sql::error::SqlError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedSender;

use crate::sessions::Sessions;
use crate::wire::frame::SMALL_MESSAGE_BYTES_MAX;
use crate::wire::output::{Output, Severity};
use crate::wire::startup::{Opening, opening};

/// Longest time a client may take to say who it is, as PostgreSQL's `authentication_timeout`.
const OPENING_DEADLINE: Duration = Duration::from_secs(60);

/// A client that asked to start a session.
pub struct Arrival {
    pub socket: std::net::TcpStream,
    pub client: SocketAddr,
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
    /// Accepts until the task is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, client)) => {
                    let front = self.clone();
                    tokio::spawn(async move {
                        // A client that is too slow or gone needs no answer.
                        let _ = tokio::time::timeout(OPENING_DEADLINE, front.admit(stream, client)).await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn admit(&self, mut stream: TcpStream, client: SocketAddr) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut pending: Vec<u8> = Vec::with_capacity(1024);
        loop {
            match opening(&pending) {
                Ok(None) if pending.len() > SMALL_MESSAGE_BYTES_MAX => return Ok(()),
                Ok(None) => {
                    if stream.read_buf(&mut pending).await? == 0 {
                        return Ok(());
                    }
                }
                Ok(Some((Opening::SslRequest | Opening::GssEncryptionRequest, length))) => {
                    if pending.len() > length {
                        // Bytes sent before the answer could have been put there by somebody else.
                        let error = SqlError::new(
                            archipel_sql::error::SqlState::PROTOCOL_VIOLATION,
                            "received unencrypted data after SSL request",
                        );
                        return refuse(&mut stream, &error).await;
                    }
                    pending.clear();
                    stream.write_all(b"N").await?;
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
                        return refuse(&mut stream, &error).await;
                    }
                    let rest = pending.split_off(length);
                    let socket = stream.into_std()?;
                    self.hand_over(Arrival { socket, client, minor_version, parameters, rest });
                    return Ok(());
                }
                Err(error) => return refuse(&mut stream, &error).await,
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

async fn refuse(stream: &mut TcpStream, error: &SqlError) -> std::io::Result<()> {
    let mut output = Output::new();
    output.report(Severity::Fatal, error);
    stream.write_all(output.as_slice()).await?;
    stream.shutdown().await
}
