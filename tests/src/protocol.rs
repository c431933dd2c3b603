//! Messages of the protocol as text, and a client that sends any bytes.
//!
//! The text is that of `tests/protocol`: a message by its name in PostgreSQL's manual (chapter 55.7), and its
//! fields. `"text"` ends with a zero, `'bytes'` do not, `v'bytes'` have their length before them, `null` is
//! the length of -1, `b5` has one byte, `h5` two, `i5` four; `"a"*3` is `"aaa"`. `Raw` sends bytes without a
//! type and a length.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::time::Duration;

/// Messages that begin with a byte.
const KINDS: [(&str, u8); 17] = [
    ("Query", b'Q'),
    ("Parse", b'P'),
    ("Bind", b'B'),
    ("Describe", b'D'),
    ("Execute", b'E'),
    ("Close", b'C'),
    ("Sync", b'S'),
    ("Flush", b'H'),
    ("Terminate", b'X'),
    ("CopyData", b'd'),
    ("CopyDone", b'c'),
    ("CopyFail", b'f'),
    ("FunctionCall", b'F'),
    ("PasswordMessage", b'p'),
    ("SASLInitialResponse", b'p'),
    ("SASLResponse", b'p'),
    ("GSSResponse", b'p'),
];

/// Packets that begin with their length, and a code.
const CODES: [(&str, u32); 4] = [
    ("Startup", 196_608),
    ("CancelRequest", 80_877_102),
    ("SSLRequest", 80_877_103),
    ("GSSENCRequest", 80_877_104),
];

/// How long to wait for what must come, on however slow a machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// What a client does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Send(Vec<u8>),
    /// Waits for a message of this kind.
    Await(u8),
    /// Waits for a byte without a frame: the answer to SSLRequest.
    AwaitByte,
}

/// The step that a line says.
///
/// # Panics
/// If it says none.
pub fn step(line: &str) -> Step {
    match line.strip_prefix("await ") {
        Some("byte") => Step::AwaitByte,
        Some(kind) => Step::Await(kind.bytes().next().expect("a kind is named")),
        None => Step::Send(message(line)),
    }
}

/// The bytes of the message that a line says.
///
/// # Panics
/// If it says none.
pub fn message(line: &str) -> Vec<u8> {
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    let body = fields(rest);
    let counted =
        |head: &[u8]| [&(body.len() as u32 + head.len() as u32 + 4).to_be_bytes()[..], head, &body].concat();
    if let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == name) {
        return [&[*kind][..], &counted(&[])].concat();
    }
    if let Some((_, code)) = CODES.iter().find(|(known, _)| *known == name) {
        return counted(&code.to_be_bytes());
    }
    match name {
        "Untyped" => counted(&[]),
        "Raw" => body,
        _ => panic!("there is no message {name:?}: {line}"),
    }
}

/// The bytes of fields.
fn fields(mut text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        text = text.trim_start();
        let Some(first) = text.chars().next() else { return bytes };
        let opens = text.strip_prefix('v').unwrap_or(text);
        if let Some(quote @ ('"' | '\'')) = opens.chars().next() {
            let (value, rest) = quoted(&opens[1..], quote);
            text = rest;
            if first == 'v' {
                bytes.extend((value.len() as u32).to_be_bytes());
            }
            bytes.extend(value);
            if first == '"' {
                bytes.push(0);
            }
            continue;
        }
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        text = rest;
        if word == "null" {
            bytes.extend((-1i32).to_be_bytes());
            continue;
        }
        let number: i64 = word[1..].parse().unwrap_or_else(|_| panic!("{word:?} is no field"));
        match first {
            'b' => bytes.push(number as u8),
            'h' => bytes.extend((number as u16).to_be_bytes()),
            'i' => bytes.extend((number as u32).to_be_bytes()),
            _ => panic!("{word:?} is no field"),
        }
    }
}

/// What stands before the closing quote, as often as is said behind it, and the rest.
fn quoted(text: &str, quote: char) -> (Vec<u8>, &str) {
    let mut value = Vec::new();
    let mut rest = text.chars();
    loop {
        let next = rest.next().unwrap_or_else(|| panic!("no end of {text:?}"));
        if next == quote {
            break;
        }
        if next != '\\' {
            value.extend(next.to_string().bytes());
            continue;
        }
        value.push(match rest.next().unwrap_or_else(|| panic!("no end of {text:?}")) {
            'n' => b'\n',
            't' => b'\t',
            'r' => b'\r',
            'x' => {
                let digits: String = rest.by_ref().take(2).collect();
                u8::from_str_radix(&digits, 16).unwrap_or_else(|_| panic!("{digits:?} in {text:?}"))
            }
            digit @ '0'..='9' => digit as u8 - b'0',
            other => u8::try_from(other).unwrap_or_else(|_| panic!("{other:?} in {text:?}")),
        });
    }
    let rest = rest.as_str();
    let Some(times) = rest.strip_prefix('*') else { return (value, rest) };
    let end = times.find(|c: char| !c.is_ascii_digit()).unwrap_or(times.len());
    let count: usize = times[..end].parse().unwrap_or_else(|_| panic!("{times:?} is no number"));
    (value.repeat(count), &times[end..])
}

/// The lines of a file that say something.
pub fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// What comes next on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    Message(u8, Vec<u8>),
    /// The server has closed the connection.
    End,
}

/// A connection that sends and sees bytes.
pub struct Wire {
    stream: TcpStream,
    pending: Vec<u8>,
}

impl Wire {
    /// Connects to a server on this machine.
    pub fn connect(port: u16) -> Wire {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        stream.set_nodelay(true).expect("a socket can be told so");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout can be set");
        Wire { stream, pending: Vec::new() }
    }

    /// A session of the superuser, greeted and ready.
    pub fn session(port: u16) -> Wire {
        let mut wire = Wire::connect(port);
        wire.send(&message("Startup \"user\" \"archipel\" \"database\" \"archipel\" b0"));
        wire.until(b'Z');
        wire
    }

    /// Sends bytes, unless the server has left.
    pub fn send(&mut self, bytes: &[u8]) {
        // What it said before it left is what counts.
        let _ = self.stream.write_all(bytes);
    }

    /// The socket, for who sends while this reads.
    pub fn stream(&self) -> TcpStream {
        self.stream.try_clone().expect("a socket can be shared")
    }

    /// Leaves without a word.
    pub fn leave(&self) {
        // The server may have left already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Says that nothing more will be sent.
    pub fn half_close(&mut self) {
        // It may have left already.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Whether more has come.
    fn fill(&mut self) -> bool {
        let mut room = [0; 16 * 1024];
        match self.stream.read(&mut room) {
            Ok(0) => false,
            Ok(count) => {
                self.pending.extend(&room[..count]);
                true
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("nothing came within {PATIENCE:?}, after {:?}", String::from_utf8_lossy(&self.pending))
            }
            // A server that leaves with something unread resets the connection.
            Err(_) => false,
        }
    }

    /// One byte that no frame is around.
    pub fn byte(&mut self) -> Option<u8> {
        while self.pending.is_empty() {
            if !self.fill() {
                return None;
            }
        }
        Some(self.pending.remove(0))
    }

    /// Puts back what [`byte`](Wire::byte) gave.
    pub fn put_back(&mut self, byte: u8) {
        self.pending.insert(0, byte);
    }

    /// The next message.
    pub fn receive(&mut self) -> Received {
        loop {
            if let Some(head) = self.pending.first_chunk::<5>() {
                let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
                assert!(length >= 4, "a message of the server has a length of {length}");
                if self.pending.len() > length {
                    let kind = head[0];
                    let body = self.pending[5..=length].to_vec();
                    self.pending.drain(..=length);
                    return Received::Message(kind, body);
                }
            }
            if !self.fill() {
                return Received::End;
            }
        }
    }

    /// Messages up to and including one of this kind, or all there are.
    pub fn until(&mut self, kind: u8) -> Vec<(u8, Vec<u8>)> {
        let mut messages = Vec::new();
        while let Received::Message(next, body) = self.receive() {
            messages.push((next, body));
            if next == kind {
                break;
            }
        }
        messages
    }

    /// Runs a simple query, and answers the messages up to ReadyForQuery.
    pub fn query(&mut self, text: &str) -> Vec<(u8, Vec<u8>)> {
        let body = [text.as_bytes(), b"\0"].concat();
        self.send(&[b"Q", &(body.len() as u32 + 4).to_be_bytes()[..], &body].concat());
        self.until(b'Z')
    }

    /// Takes a step.
    pub fn take(&mut self, step: &Step) {
        match step {
            Step::Send(bytes) => self.send(bytes),
            Step::Await(kind) => drop(self.until(*kind)),
            Step::AwaitByte => drop(self.byte()),
        }
    }
}

/// A field of an ErrorResponse or a NoticeResponse.
pub fn field(body: &[u8], code: u8) -> Option<String> {
    let found = body.split(|byte| *byte == 0).find_map(|field| field.strip_prefix(&[code]))?;
    Some(String::from_utf8_lossy(found).into_owned())
}

/// A message in short: its kind; of an error its SQLSTATE, and its severity if that is not ERROR; of
/// ReadyForQuery its status too, of an Authentication message its number.
pub fn told(kind: u8, body: &[u8]) -> String {
    match kind {
        b'E' | b'N' => {
            let code = field(body, b'C').unwrap_or_default();
            match field(body, b'V').as_deref() {
                Some("ERROR") => code,
                severity => format!("{} {code}", severity.unwrap_or("?")),
            }
        }
        b'Z' => format!("Z{}", String::from_utf8_lossy(body)),
        b'R' => format!("R{}", body.get(3).copied().unwrap_or_default()),
        _ => (kind as char).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_what_their_lines_say() {
        assert_eq!(message("Sync"), b"S\0\0\0\x04");
        assert_eq!(message("Query \"a\\x00b\""), b"Q\0\0\0\x08a\0b\0");
        assert_eq!(
            message("Bind \"\" 's'*2 h-1 v'ab' null"),
            b"B\0\0\0\x13\0ss\xff\xff\0\0\0\x02ab\xff\xff\xff\xff"
        );
        assert_eq!(message("CancelRequest i1"), b"\0\0\0\x0c\x04\xd2\x16\x2e\0\0\0\x01");
        assert_eq!(message("Raw 'z\\0'"), b"z\0");
        assert_eq!(step("await Z"), Step::Await(b'Z'));
        assert_eq!(step("await byte"), Step::AwaitByte);
    }

    #[test]
    fn messages_of_the_server_are_told_in_short() {
        assert_eq!(told(b'E', b"SERROR\0VERROR\0C08P01\0\0"), "08P01");
        assert_eq!(told(b'E', b"SFATAL\0VFATAL\0C08P01\0\0"), "FATAL 08P01");
        assert_eq!(told(b'Z', b"T"), "ZT");
        assert_eq!(told(b'R', &[0, 0, 0, 10]), "R10");
    }
}
