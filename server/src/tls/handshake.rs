//! From a plain socket to an encrypted one.
//!
//! What a client sends is gathered here until a record is whole, and handed over to a thread that may
//! compute. A client that is slow, or sends nothing, so costs nobody anything but its own place; when its
//! time is over its caller drops the whole of it.

use std::io;
use std::sync::Arc;

use archipel_wire::socket::Socket;
use archipel_wire::tls::session::Session;
use rustls::ServerConfig;

use super::context::{ALPN, TlsContext};
use super::server_tls::ServerTls;
use crate::authentication::lobby::Guest;

/// Everything a client may send before its handshake is over: chains of certificates fit.
const HANDSHAKE_BYTES_MAX: usize = 128 * 1024;

/// The longest record, its head included (RFC 8446, section 5.2; 2,048 bytes more in TLS 1.2).
const RECORD_BYTES_MAX: usize = 5 + 16 * 1024 + 2048;

/// The kinds of records, in their first byte.
const RECORD_KINDS: std::ops::RangeInclusive<u8> = 20..=23;

/// The first byte of a connection that begins with TLS: a record of a handshake.
pub const FIRST_BYTE: u8 = 22;

/// Why there is no encrypted connection.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    #[error("could not accept SSL connection: {0}")]
    Io(#[from] io::Error),
    #[error("could not accept SSL connection: {}", reason(.0))]
    Protocol(#[from] rustls::Error),
    #[error("could not accept SSL connection: {0}")]
    Other(String),
}

/// What is wrong, in words that say what to do where rustls's do not.
fn reason(error: &rustls::Error) -> String {
    let told = error.to_string();
    if told.contains("UnsupportedCertVersion") || format!("{error:?}").contains("UnsupportedCertVersion") {
        return format!("{told}: the client's certificate must be of X.509 version 3");
    }
    told
}

/// A connection after its handshake.
pub struct Encrypted {
    pub socket: Socket,
    /// Whether the client has said that it wants to speak PostgreSQL's protocol.
    pub names_protocol: bool,
}

impl ServerTls {
    /// Meets the handshake of a client that has sent these bytes already, by one of the configurations of
    /// `context`. The error is told to the client as TLS has it, as far as it can be.
    pub async fn accept(
        &self,
        context: &TlsContext,
        config: Arc<ServerConfig>,
        socket: Socket,
        mut arrived: Vec<u8>,
        guest: &Guest,
    ) -> Result<Encrypted, HandshakeError> {
        let mut session = Session::new(config)?;
        let mut bytes = arrived.len();
        let mut room = [0; 4096];
        while session.connection().is_handshaking() {
            let whole = whole_records(&arrived);
            if whole == 0 {
                let Some(said) = guest.says(socket.read(&mut room)).await else {
                    return Err(HandshakeError::Other("the client was too slow".to_owned()));
                };
                let count = said?;
                if count == 0 {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
                bytes += count;
                if bytes > HANDSHAKE_BYTES_MAX {
                    return Err(HandshakeError::Other("the handshake is too long".to_owned()));
                }
                arrived.extend_from_slice(&room[..count]);
                continue;
            }
            let rest = arrived.split_off(whole);
            session = self.advance(session, std::mem::replace(&mut arrived, rest), &socket).await?;
        }
        session.keep(arrived);
        let facts = context.facts(session.connection()).map_err(HandshakeError::Other)?;
        let names_protocol = session.connection().alpn_protocol() == Some(ALPN);
        Ok(Encrypted { socket: socket.encrypted(Arc::new(facts), session), names_protocol })
    }

    /// One step of a handshake, on a thread that may compute, and its answer.
    async fn advance(
        &self,
        mut session: Session,
        bytes: Vec<u8>,
        socket: &Socket,
    ) -> Result<Session, HandshakeError> {
        let computed = self.compute(move || {
            let step = session.advance(&bytes);
            (session, step)
        });
        let (session, step) = computed.await.map_err(HandshakeError::Other)?;
        let written = socket.write_all(&step.answer).await;
        // Why it was refused tells more than that nobody was there to hear it.
        step.outcome?;
        written?;
        Ok(session)
    }
}

/// How many of these bytes are whole records, or so wrong that no more are needed to say so.
fn whole_records(bytes: &[u8]) -> usize {
    let mut whole = 0;
    loop {
        let rest = &bytes[whole..];
        let Some(kind) = rest.first() else { return whole };
        let Some(length) = rest.get(3..5) else {
            return if RECORD_KINDS.contains(kind) { whole } else { bytes.len() };
        };
        let length = 5 + usize::from(u16::from_be_bytes([length[0], length[1]]));
        if !RECORD_KINDS.contains(kind) || length > RECORD_BYTES_MAX {
            return bytes.len();
        }
        if rest.len() < length {
            return whole;
        }
        whole += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_records_are_worth_a_thread() {
        let record = [22, 3, 1, 0, 2, 7, 7];
        assert_eq!(whole_records(&[]), 0);
        assert_eq!(whole_records(&record[..4]), 0);
        assert_eq!(whole_records(&record[..6]), 0);
        assert_eq!(whole_records(&record), 7);
        assert_eq!(whole_records(&[&record[..], &record[..3]].concat()), 7);
        assert_eq!(whole_records(&[record, record].concat()), 14);
        assert_eq!(whole_records(b"GET"), 3);
        assert_eq!(whole_records(&[22, 3, 1, 0xff, 0xff]), 5);
    }
}
