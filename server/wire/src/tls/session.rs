//! The encryption of one connection: rustls between plaintext and a socket that does not wait.
//!
//! What has arrived is decrypted when it is asked for, and what leaves is encrypted when the socket
//! has taken what was encrypted before: a connection holds one batch of records at most, and none
//! while it is idle.
//!
//! ```text
//! socket → (a buffer of the thread) → rustls → room of the reader
//! bytes of the writer → rustls, a batch at a time → socket
//! ```
//!
//! Invariant: bytes that were encrypted are never encrypted again. When the socket is full in the
//! middle of a batch, the batch counts as written only once all of it has left; until then the
//! writer comes back with the same bytes, as it would with a plain socket that took none.

use std::cell::RefCell;
use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};

/// So much is read from the socket at once: a record of the largest size fits.
const WIRE_BYTES: usize = 20 * 1024;

/// Plaintext that is decrypted before somebody takes it: rustls wants no more.
const PLAINTEXT_BYTES_MAX: usize = 16 * 1024;

/// Plaintext that is encrypted at once: three records of the largest size, which leave in one call of
/// the system. rustls holds 64 kB of records.
const BATCH_BYTES: usize = 48 * 1024;

thread_local! {
    /// Where bytes from sockets of this thread go first, so that no connection needs a buffer of its own.
    static WIRE: RefCell<Box<[u8]>> = RefCell::new(vec![0; WIRE_BYTES].into_boxed_slice());
}

/// See the module's head.
pub struct Session {
    connection: ServerConnection,
    /// What arrived and rustls has not taken.
    arrived: Vec<u8>,
    /// Bytes of plaintext that were encrypted, and that their writer still counts as its own.
    ahead: usize,
}

/// A socket that takes what it can.
struct Outlet<'s>(&'s socket2::Socket);

impl Write for Outlet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send_with_flags(bytes, libc::MSG_NOSIGNAL)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.send_vectored_with_flags(pieces, libc::MSG_NOSIGNAL)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What one step of a handshake came to.
pub struct Step {
    /// Records for the client: its end of the handshake, or why there is none.
    pub answer: Vec<u8>,
    pub outcome: Result<(), rustls::Error>,
}

impl Session {
    /// Before the handshake.
    pub fn new(config: Arc<ServerConfig>) -> Result<Session, rustls::Error> {
        let connection = ServerConnection::new(config)?;
        Ok(Session { connection, arrived: Vec::new(), ahead: 0 })
    }

    /// What was agreed on.
    pub fn connection(&self) -> &ServerConnection {
        &self.connection
    }

    /// Goes on with the handshake by what the client has sent. It computes, for as long as a signature
    /// takes.
    pub fn advance(&mut self, bytes: &[u8]) -> Step {
        let mut answer = Vec::new();
        let outcome = match self.received(bytes) {
            Ok(()) => Ok(()),
            Err(Broken::Protocol(error)) => Err(error),
            Err(Broken::Io(error)) => Err(rustls::Error::General(error.to_string())),
        };
        // A vector takes everything.
        while self.connection.wants_write() && self.connection.write_tls(&mut answer).is_ok() {}
        Step { answer, outcome }
    }

    /// Keeps what has arrived after the handshake, to be decrypted when it is asked for.
    pub fn keep(&mut self, bytes: Vec<u8>) {
        if self.arrived.is_empty() {
            self.arrived = bytes;
        } else {
            self.arrived.extend_from_slice(&bytes);
        }
    }

    /// Takes what has arrived; what rustls has no room for yet stays.
    fn received(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        if !self.arrived.is_empty() {
            self.arrived.extend_from_slice(bytes);
            return Ok(());
        }
        let taken = self.decrypt(bytes)?;
        self.arrived.extend_from_slice(&bytes[taken..]);
        Ok(())
    }

    /// Decrypts of `bytes` what there is room for; answers how many those were.
    fn decrypt(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.connection.read_tls(&mut rest).map_err(Broken::Io)? == 0 {
                // The client has said that it ends: what follows is nobody's.
                return Ok(bytes.len());
            }
            let state = self.connection.process_new_packets().map_err(Broken::Protocol)?;
            if state.plaintext_bytes_to_read() >= PLAINTEXT_BYTES_MAX {
                break;
            }
        }
        Ok(bytes.len() - rest.len())
    }

    /// Plaintext that has arrived, as much as there is room for; none is the end. `WouldBlock`: more
    /// has to be received first.
    pub fn take(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !self.arrived.is_empty() => {
                    let arrived = std::mem::take(&mut self.arrived);
                    let taken = self.decrypt(&arrived)?;
                    self.arrived.extend_from_slice(&arrived[taken..]);
                }
                other => return other,
            }
        }
    }

    /// Receives from the socket: whether that emptied it. `UnexpectedEof` is the end.
    pub fn receive(&mut self, mut socket: &socket2::Socket) -> io::Result<bool> {
        WIRE.with_borrow_mut(|wire| {
            let count = loop {
                match socket.read(wire) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    other => break other?,
                }
            };
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let received = self.received(&wire[..count]);
            // An alert, or the new key that the client has asked for. Where the socket is full it leaves
            // before what is written next.
            if self.connection.wants_write() {
                let _ = self.flush(socket);
            }
            received?;
            Ok(count < wire.len())
        })
    }

    /// Encrypts and sends of `bytes` what the socket takes now, as a plain socket would: what it does
    /// not take is to come again, unchanged.
    pub fn send(&mut self, socket: &socket2::Socket, bytes: &[u8]) -> io::Result<usize> {
        let mut sent = 0;
        loop {
            match self.flush(socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && sent > 0 => return Ok(sent),
                other => other?,
            }
            sent += std::mem::take(&mut self.ahead);
            let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) else {
                return Ok(bytes.len());
            };
            self.ahead = self.connection.writer().write(&rest[..rest.len().min(BATCH_BYTES)])?;
            if self.ahead == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
    }

    /// Sends what is encrypted.
    fn flush(&mut self, socket: &socket2::Socket) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Outlet(socket)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells the client that nothing follows, unless there is no room to say so.
    pub fn close(&mut self, socket: &socket2::Socket) {
        self.connection.send_close_notify();
        // Nobody waits for a client that has left no room for it.
        let _ = self.flush(socket);
    }
}

/// Why nothing can be received any more.
enum Broken {
    Io(io::Error),
    Protocol(rustls::Error),
}

impl From<Broken> for io::Error {
    fn from(broken: Broken) -> io::Error {
        match broken {
            Broken::Io(error) => error,
            Broken::Protocol(error) => io::Error::new(io::ErrorKind::InvalidData, error),
        }
    }
}
