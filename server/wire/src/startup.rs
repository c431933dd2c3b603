//! The packets that open a connection: they carry a length and a code, but no type byte.

use archipel_sql::encoding::utf8;
use archipel_sql::error::{SqlError, SqlState};

use super::frame::SMALL_MESSAGE_BYTES_MAX;

/// The newest minor version of protocol 3 that is spoken: 3.2 brought longer cancel keys.
pub const MINOR_VERSION_MAX: u16 = 2;

/// How long a cancel key may be.
const CANCEL_KEY_BYTES: std::ops::RangeInclusive<usize> = 4..=256;

/// An opening packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Opening {
    /// Answered with one byte; the client then goes on in plain text or gives up.
    SslRequest,
    GssEncryptionRequest,
    Cancel {
        process_id: i32,
        secret: Vec<u8>,
    },
    /// Minor protocol version and the startup parameters (`user`, `database`, settings).
    Startup {
        minor_version: u16,
        parameters: Vec<(String, String)>,
    },
}

fn violation(message: &str) -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, message)
}

/// The opening packet at the front of `pending` and its length, `None` until it is complete.
/// An error ends the connection.
pub fn opening(pending: &[u8]) -> Result<Option<(Opening, usize)>, SqlError> {
    let Some(length) = pending.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*length) as usize;
    if !(8..=SMALL_MESSAGE_BYTES_MAX).contains(&length) {
        return Err(violation("invalid length of startup packet"));
    }
    let Some(packet) = pending.get(4..length) else { return Ok(None) };
    // The range check above leaves at least the four bytes of the code.
    let (code, body) = packet.split_at(4);
    let (major, minor) = (u16::from_be_bytes([code[0], code[1]]), u16::from_be_bytes([code[2], code[3]]));
    let opening = match (major, minor) {
        (1234, 5679) => Opening::SslRequest,
        (1234, 5680) => Opening::GssEncryptionRequest,
        (1234, 5678) => {
            let Some((process_id, secret)) =
                body.split_first_chunk::<4>().filter(|(_, secret)| CANCEL_KEY_BYTES.contains(&secret.len()))
            else {
                return Err(violation("invalid length of cancel request packet"));
            };
            Opening::Cancel { process_id: i32::from_be_bytes(*process_id), secret: secret.to_vec() }
        }
        (3, minor_version) => Opening::Startup { minor_version, parameters: parameters(body)? },
        (major, minor) => {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{MINOR_VERSION_MAX}"
                ),
            ));
        }
    };
    Ok(Some((opening, length)))
}

fn parameters(mut body: &[u8]) -> Result<Vec<(String, String)>, SqlError> {
    let mut parameters = Vec::new();
    loop {
        match body {
            [0] => return Ok(parameters),
            [] | [0, ..] => {
                return Err(violation("invalid startup packet layout: expected terminator as last byte"));
            }
            _ => {
                let name = cstring(&mut body)?;
                let value = cstring(&mut body)?;
                parameters.push((name, value));
            }
        }
    }
}

fn cstring(body: &mut &[u8]) -> Result<String, SqlError> {
    let end = body
        .iter()
        .position(|byte| *byte == 0)
        .ok_or_else(|| violation("invalid startup packet layout: expected terminator as last byte"))?;
    let text = utf8(&body[..end])?.to_owned();
    *body = &body[end + 1..];
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(body: &[u8]) -> Vec<u8> {
        let mut bytes = (body.len() as u32 + 4).to_be_bytes().to_vec();
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn a_startup_packet_gives_its_parameters() {
        let bytes = packet(b"\0\x03\0\0user\0archipel\0database\0db\0\0");
        let (opening, length) = opening(&bytes).unwrap().unwrap();
        assert_eq!(length, bytes.len());
        let Opening::Startup { minor_version: 0, parameters } = opening else { panic!("{opening:?}") };
        assert_eq!(parameters, vec![("user".into(), "archipel".into()), ("database".into(), "db".into())]);
    }

    #[test]
    fn short_long_and_unterminated_packets_are_refused() {
        assert!(opening(&[0, 0, 0, 4]).is_err());
        assert!(opening(&[0x10, 0, 0, 0]).is_err());
        assert!(opening(&packet(b"\0\x03\0\0user\0archipel")).is_err());
        assert!(opening(&packet(b"\0\x03\0\0user\0archipel\0")).is_err());
        assert!(opening(&packet(b"\x04\xd2\x16\x2eabc")).is_err());
        assert!(opening(&[0, 0]).unwrap().is_none());
    }
}
