//! Messages to and from a client that is not known yet: each is checked for its type and its length before
//! it is read, and whatever else comes ends the connection with 08P01.

use std::io;

use archipel_sql::error::{SqlError, SqlState};

use super::lobby::{Guest, too_slow};
use crate::wire::output::Output;
use crate::wire::socket::Socket;

/// Bytes of a password (PG_MAX_AUTH_TOKEN_LENGTH).
pub const PASSWORD_BYTES_MAX: usize = 65_535;
/// Bytes of a message of SASL (PG_MAX_SASL_MESSAGE_LENGTH).
pub const SASL_BYTES_MAX: usize = 1_024;

/// Why a client does not come in.
#[derive(Debug)]
pub enum Failure {
    /// It has left, or cannot be reached: nobody is told.
    Gone(io::Error),
    /// It is told why.
    Refused(SqlError),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Gone(error)
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        Failure::Refused(error)
    }
}

/// An error about a message that is not what it should be.
pub fn violation(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, message)
}

/// The conversation.
pub struct Exchange<'s> {
    socket: &'s Socket,
    guest: &'s Guest,
    /// What has come and nobody has looked at.
    pending: Vec<u8>,
}

impl<'s> Exchange<'s> {
    /// `pending` is what came after the startup packet.
    pub fn new(socket: &'s Socket, guest: &'s Guest, pending: Vec<u8>) -> Exchange<'s> {
        Exchange { socket, guest, pending }
    }

    /// What came after the last message that was read.
    pub fn into_rest(self) -> Vec<u8> {
        self.pending
    }

    /// Sends messages.
    pub async fn send(&self, write: impl FnOnce(&mut Output)) -> Result<(), Failure> {
        let mut output = Output::default();
        write(&mut output);
        Ok(self.socket.write_all(output.as_slice()).await?)
    }

    /// The body of the client's answer. `expected` names it.
    pub async fn answer(&mut self, expected: &str, bytes_max: usize) -> Result<Vec<u8>, Failure> {
        let length = loop {
            if let Some(kind) = self.pending.first().filter(|kind| **kind != b'p') {
                let message = format!("expected {expected} response, got message type {kind}");
                return Err(violation(message).into());
            }
            if let Some([_, length @ ..]) = self.pending.first_chunk::<5>() {
                break u32::from_be_bytes(*length) as usize;
            }
            self.read().await?;
        };
        if !(4..=bytes_max + 4).contains(&length) {
            return Err(violation("invalid message length").into());
        }
        while self.pending.len() < 1 + length {
            self.read().await?;
        }
        let body = self.pending[5..=length].to_vec();
        self.pending.drain(..=length);
        Ok(body)
    }

    /// A password as the client sends it, or what stands for it.
    pub async fn password(&mut self) -> Result<Vec<u8>, Failure> {
        let mut body = self.answer("password", PASSWORD_BYTES_MAX).await?;
        if body.iter().position(|byte| *byte == 0) != body.len().checked_sub(1) || body.is_empty() {
            return Err(violation("invalid password packet size").into());
        }
        body.pop();
        if body.is_empty() {
            let message = "empty password returned by client";
            return Err(SqlError::new(SqlState::INVALID_PASSWORD, message).into());
        }
        Ok(body)
    }

    async fn read(&mut self) -> Result<(), Failure> {
        let mut room = [0; 1024];
        let said = self.guest.says(self.socket.read(&mut room)).await;
        match said.ok_or_else(too_slow)?? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            count => {
                self.pending.extend_from_slice(&room[..count]);
                Ok(())
            }
        }
    }
}

/// The mechanism that a SASLInitialResponse chooses, and what follows it.
pub fn mechanism(body: &[u8]) -> Result<(&[u8], &[u8]), SqlError> {
    let end = body.iter().position(|byte| *byte == 0);
    let end = end.ok_or_else(|| violation("invalid string in message"))?;
    Ok((&body[..end], &body[end + 1..]))
}

/// The data that follow; `None`: there are none yet.
pub fn initial_data(rest: &[u8]) -> Result<Option<&[u8]>, SqlError> {
    let (length, data) =
        rest.split_first_chunk::<4>().ok_or_else(|| violation("insufficient data left in message"))?;
    match i32::from_be_bytes(*length) {
        -1 if data.is_empty() => Ok(None),
        length if usize::try_from(length) == Ok(data.len()) => Ok(Some(data)),
        length if usize::try_from(length).is_ok_and(|length| length < data.len()) || length == -1 => {
            Err(violation("invalid message format"))
        }
        _ => Err(violation("insufficient data left in message")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_responses_are_checked() {
        fn read(body: &[u8]) -> Result<(&[u8], Option<&[u8]>), SqlError> {
            let (chosen, rest) = mechanism(body)?;
            Ok((chosen, initial_data(rest)?))
        }
        assert_eq!(read(b"M\0\0\0\0\x02ab").unwrap(), (&b"M"[..], Some(&b"ab"[..])));
        assert_eq!(read(b"M\0\xff\xff\xff\xff").unwrap(), (&b"M"[..], None));
        for (body, told) in [
            (&b"M"[..], "invalid string in message"),
            (b"M\0\0\0", "insufficient data left in message"),
            (b"M\0\0\0\0\x03ab", "insufficient data left in message"),
            (b"M\0\x80\0\0\0ab", "insufficient data left in message"),
            (b"M\0\0\0\0\x01ab", "invalid message format"),
            (b"M\0\xff\xff\xff\xffa", "invalid message format"),
        ] {
            assert_eq!(read(body).unwrap_err().message(), told, "{body:?}");
        }
    }

    async fn answered(sent: &[u8]) -> (Result<Vec<u8>, Failure>, Vec<u8>) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        std::io::Write::write_all(&mut &theirs, sent).unwrap();
        drop(theirs);
        let socket = Socket::new(ours.into()).unwrap();
        let guest = Guest::default();
        let mut exchange = Exchange::new(&socket, &guest, Vec::new());
        let answer = exchange.password().await;
        (answer, exchange.into_rest())
    }

    #[tokio::test]
    async fn passwords_are_checked_before_they_are_read() {
        let (answer, rest) = answered(b"p\0\0\0\x08abc\0Q").await;
        assert_eq!((answer.unwrap(), rest), (b"abc".to_vec(), b"Q".to_vec()));
        for (sent, state, told) in [
            (&b"Q"[..], "08P01", "expected password response, got message type 81"),
            (b"p\0\0\0\x03", "08P01", "invalid message length"),
            (b"p\x80\0\0\0", "08P01", "invalid message length"),
            (b"p\0\x01\0\x04", "08P01", "invalid message length"),
            (b"p\0\0\0\x04", "08P01", "invalid password packet size"),
            (b"p\0\0\0\x06ab", "08P01", "invalid password packet size"),
            (b"p\0\0\0\x07a\0b", "08P01", "invalid password packet size"),
            (b"p\0\0\0\x05\0", "28P01", "empty password returned by client"),
        ] {
            match answered(sent).await.0 {
                Err(Failure::Refused(error)) => {
                    assert_eq!((error.state().as_str(), error.message()), (state, told), "{sent:?}");
                }
                other => panic!("{other:?} for {sent:?}"),
            }
        }
        assert!(matches!(answered(b"p\0\0\0\x08ab").await.0, Err(Failure::Gone(_))));
    }
}
