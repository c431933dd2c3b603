//! A lean client: prepared calls, pipelined, one Sync each.
//!
//! Only what the driver needs is decoded: that a call ended, with which SQLSTATE, and the first
//! column of its first row. One write for the calls of a turn, one read for the answers that
//! have arrived: the driver shares the machine with what it measures.

use std::collections::VecDeque;
use std::io;
use std::time::Instant;

use archipel_wire::frame::Input;
use archipel_wire::socket::Socket;
use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::net::{TcpStream, UnixStream};

use crate::error::{Result, WorkloadError};

/// Parameter values of one call, in binary where PostgreSQL's binary form is simple.
#[derive(Default)]
pub struct Parameters {
    values: Vec<u8>,
    /// Per parameter: end of its bytes in `values`, or `None` for NULL, and its format code.
    ends: Vec<(Option<u32>, i16)>,
    /// What the workload wants to remember of the call until its answer.
    pub note: [i32; 2],
}

impl Parameters {
    pub fn clear(&mut self) {
        self.values.clear();
        self.ends.clear();
    }

    fn end(&mut self, format: i16) {
        self.ends.push((Some(self.values.len() as u32), format));
    }

    pub fn int4(&mut self, value: i32) {
        self.values.extend_from_slice(&value.to_be_bytes());
        self.end(1);
    }

    pub fn int8(&mut self, value: i64) {
        self.values.extend_from_slice(&value.to_be_bytes());
        self.end(1);
    }

    pub fn int2(&mut self, value: i16) {
        self.values.extend_from_slice(&value.to_be_bytes());
        self.end(1);
    }

    pub fn text(&mut self, value: &str) {
        self.values.extend_from_slice(value.as_bytes());
        self.end(0);
    }

    pub fn null(&mut self) {
        self.ends.push((None, 0));
    }

    /// `integer[]`, one dimension.
    pub fn int4_array(&mut self, items: &[i32]) {
        const INT4: u32 = 23;
        let header = [1, 0, INT4 as i32, items.len() as i32, 1];
        for word in header {
            self.values.extend_from_slice(&word.to_be_bytes());
        }
        for item in items {
            self.values.extend_from_slice(&4i32.to_be_bytes());
            self.values.extend_from_slice(&item.to_be_bytes());
        }
        self.end(1);
    }
}

/// A call in flight.
struct Pending {
    call: usize,
    started: Instant,
    parameters: Parameters,
    failed: Option<[u8; 5]>,
    result: Option<i32>,
}

/// A finished call.
pub struct Finished<'a> {
    pub call: usize,
    pub micros: u64,
    pub failed: Option<[u8; 5]>,
    pub parameters: &'a Parameters,
    pub result: Option<i32>,
}

/// A connection URL (or libpq's `key=value` words) as libpq reads it: a host that begins with a
/// slash, in `host=` too, is a directory of Unix sockets, and no host at all is the directory
/// where packaged servers have theirs.
pub fn configuration(url: &str) -> std::result::Result<tokio_postgres::Config, tokio_postgres::Error> {
    let mut config: tokio_postgres::Config = url.parse()?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        let packaged = std::path::Path::new("/var/run/postgresql");
        config.host_path(if packaged.is_dir() { packaged } else { std::path::Path::new("/tmp") });
    }
    Ok(config)
}

/// One connection with its prepared calls.
pub struct Client {
    socket: Socket,
    input: Input,
    output: BytesMut,
    pending: VecDeque<Pending>,
    spare: Vec<Parameters>,
}

impl Client {
    /// Connects with trust authentication, as `tokio_postgres` would parse the URL.
    pub async fn connect(url: &str) -> Result<Client> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| WorkloadError::Connect {
            url: url.to_owned(),
            source,
        };
        let config = configuration(url).map_err(|e| failed(Box::new(e)))?;
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let socket: socket2::Socket = match config.get_hosts().first() {
            Some(tokio_postgres::config::Host::Tcp(host)) => {
                let stream =
                    TcpStream::connect((host.as_str(), port)).await.map_err(|e| failed(Box::new(e)))?;
                stream.set_nodelay(true)?;
                stream.into_std()?.into()
            }
            Some(tokio_postgres::config::Host::Unix(directory)) => {
                let path = directory.join(format!(".s.PGSQL.{port}"));
                let stream = UnixStream::connect(path).await.map_err(|e| failed(Box::new(e)))?;
                stream.into_std()?.into()
            }
            None => return Err(failed("the URL names no host".into())),
        };
        let user = config.get_user().unwrap_or("archipel");
        let database = config.get_dbname().unwrap_or(user);
        let mut client = Client {
            socket: Socket::new(socket)?,
            input: Input::new(usize::MAX),
            output: BytesMut::with_capacity(64 << 10),
            pending: VecDeque::new(),
            spare: Vec::new(),
        };
        let parameters = [("user", user), ("database", database), ("application_name", "archipel workload")];
        frontend::startup_message(parameters, &mut client.output)?;
        client.flush().await?;
        client.until_ready().await?;
        Ok(client)
    }

    /// Runs a statement whose answer does not matter.
    pub async fn simple(&mut self, sql: &str) -> Result<()> {
        frontend::query(sql, &mut self.output)?;
        self.flush().await?;
        self.until_ready().await
    }

    /// Prepares `sql` as call number `call`.
    pub async fn prepare(&mut self, call: usize, sql: &str) -> Result<()> {
        frontend::parse(&format!("c{call}"), sql, [], &mut self.output)?;
        frontend::sync(&mut self.output);
        self.flush().await?;
        self.until_ready().await
    }

    /// Adds a call to the output; nothing is sent before [`Client::flush`]. Its latency counts
    /// from `started`.
    pub fn queue(&mut self, call: usize, started: Instant, fill: impl FnOnce(&mut Parameters)) -> Result<()> {
        let mut parameters = self.spare.pop().unwrap_or_default();
        parameters.clear();
        fill(&mut parameters);
        let mut start = 0usize;
        frontend::bind(
            "",
            &format!("c{call}"),
            parameters.ends.iter().map(|(_, format)| *format),
            parameters.ends.iter(),
            |(end, _), out| {
                Ok(match end {
                    None => postgres_protocol::IsNull::Yes,
                    Some(end) => {
                        out.extend_from_slice(&parameters.values[start..*end as usize]);
                        start = *end as usize;
                        postgres_protocol::IsNull::No
                    }
                })
            },
            [1i16],
            &mut self.output,
        )
        .map_err(|_| WorkloadError::Protocol("a call's parameters do not fit a message".into()))?;
        frontend::execute("", 0, &mut self.output)?;
        frontend::sync(&mut self.output);
        self.pending.push_back(Pending { call, started, parameters, failed: None, result: None });
        Ok(())
    }

    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    pub async fn flush(&mut self) -> Result<()> {
        self.socket.write_all(&self.output).await?;
        self.output.clear();
        Ok(())
    }

    /// Waits for at least one answer and hands every complete one to `finished`. Nothing is lost
    /// when the wait is given up.
    pub async fn receive(&mut self, mut finished: impl FnMut(Finished<'_>)) -> Result<()> {
        let mut any = false;
        loop {
            while let Some((tag, length)) = self.frame() {
                let body = &self.input.pending()[5..length];
                let Some(current) = self.pending.front_mut() else {
                    return Err(WorkloadError::Protocol("an answer nobody asked for".into()));
                };
                match tag {
                    b'E' => current.failed = Some(error_fields(body).0),
                    b'D' if current.result.is_none() => current.result = first_int4(body),
                    b'Z' => {
                        let ended = self.pending.pop_front().expect("the front was just there");
                        finished(Finished {
                            call: ended.call,
                            micros: ended.started.elapsed().as_micros() as u64,
                            failed: ended.failed,
                            parameters: &ended.parameters,
                            result: ended.result,
                        });
                        self.spare.push(ended.parameters);
                        any = true;
                    }
                    _ => {}
                }
                self.input.consume(length);
            }
            if any {
                return Ok(());
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> Result<()> {
        match self.socket.read(self.input.room()).await? {
            0 => Err(WorkloadError::Io(io::ErrorKind::UnexpectedEof.into())),
            count => {
                self.input.received(count);
                Ok(())
            }
        }
    }

    /// The next whole message: its tag, and its length with the tag.
    fn frame(&self) -> Option<(u8, usize)> {
        let header = self.input.pending().first_chunk::<5>()?;
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize + 1;
        (self.input.pending().len() >= length).then_some((header[0], length))
    }

    async fn until_ready(&mut self) -> Result<()> {
        let mut error = None;
        loop {
            while let Some((tag, length)) = self.frame() {
                let body = &self.input.pending()[5..length];
                let ready = tag == b'Z';
                match tag {
                    b'R' if body != [0, 0, 0, 0] => {
                        return Err(WorkloadError::Protocol("only trust authentication is spoken".into()));
                    }
                    b'E' => {
                        let (state, message) = error_fields(body);
                        let state = String::from_utf8_lossy(&state).into_owned();
                        error = Some(WorkloadError::Server { state, message });
                    }
                    _ => {}
                }
                self.input.consume(length);
                if ready {
                    return error.map_or(Ok(()), Err);
                }
            }
            if let Err(lost) = self.fill().await {
                return Err(error.unwrap_or(lost));
            }
        }
    }
}

/// SQLSTATE and message of an ErrorResponse.
fn error_fields(mut body: &[u8]) -> ([u8; 5], String) {
    let mut state = *b"XX000";
    let mut message = String::new();
    while let [field, rest @ ..] = body {
        let Some(end) = rest.iter().position(|&byte| byte == 0) else { break };
        match field {
            b'C' => {
                if let Some(code) = rest[..end].first_chunk::<5>() {
                    state = *code;
                }
            }
            b'M' => message = String::from_utf8_lossy(&rest[..end]).into_owned(),
            _ => {}
        }
        body = &rest[end + 1..];
    }
    (state, message)
}

/// The first column of a DataRow, if it is a binary int4.
fn first_int4(body: &[u8]) -> Option<i32> {
    let [_, _, length @ .., a, b, c, d] = body.first_chunk::<10>()?;
    (*length == 4i32.to_be_bytes()).then(|| i32::from_be_bytes([*a, *b, *c, *d]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_response_gives_state_and_message() {
        let (state, message) = error_fields(b"SERROR\0C23505\0Mduplicate key\0\0");
        assert_eq!((&state, message.as_str()), (b"23505", "duplicate key"));
    }

    #[test]
    fn unix_sockets_are_named_as_libpq_names_them() {
        use tokio_postgres::config::Host;
        for url in [
            "postgresql://archipel@/shop?host=/run/x&port=6000",
            "postgresql://archipel@%2Frun%2Fx:6000/shop",
            "host=/run/x port=6000 user=archipel dbname=shop",
        ] {
            let config = configuration(url).unwrap();
            assert_eq!(config.get_hosts(), [Host::Unix("/run/x".into())], "{url}");
            assert_eq!(config.get_ports(), [6000], "{url}");
            assert_eq!((config.get_user(), config.get_dbname()), (Some("archipel"), Some("shop")), "{url}");
        }
        let unsaid = configuration("postgresql://archipel@/shop").unwrap();
        assert!(matches!(unsaid.get_hosts(), [Host::Unix(_)]));
    }

    #[test]
    fn only_a_four_byte_first_column_is_an_int4() {
        assert_eq!(first_int4(&[0, 1, 0, 0, 0, 4, 0, 0, 1, 2]), Some(258));
        assert_eq!(first_int4(&[0, 1, 0, 0, 0, 3, b'a', b'b', b'c', 0]), None);
        assert_eq!(first_int4(&[0, 1, 255, 255, 255, 255]), None);
    }
}
