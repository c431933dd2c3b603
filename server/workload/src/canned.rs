//! A server of canned answers: what the wire, the kernel and the driver allow when a call costs
//! nothing.
//!
//! It speaks enough of the protocol for the driver (and for nobody else): every statement
//! prepares, every Execute of call `cN` is answered with one fixed row of the widths the real
//! answer has. As many threads as cores, each with its own poller and its share of the
//! connections; one read and one write for whatever has arrived.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, Sender, channel};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use tokio_postgres::config::Host;

use crate::args::CannedArgs;
use crate::error::{Result, WorkloadError};
use crate::workload::Call;

const WAKE: Token = Token(usize::MAX);
const EVENTS_MAX: usize = 256;

/// `archipel workload canned`: serves until it is killed.
pub fn serve(args: &CannedArgs) -> Result<()> {
    let workload = args.target.name.workload(args.target.scale);
    let answers: Vec<Vec<u8>> = workload.calls().iter().map(answer).collect();
    let listener = listen(&args.target.url)?;
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut doors = Vec::new();
    for _ in 0..cores {
        let (sender, receiver) = channel();
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKE)?;
        let answers = answers.clone();
        std::thread::spawn(move || {
            // Only a broken poller ends a thread, and with it the measurement.
            if let Err(error) = run(poll, &receiver, &answers) {
                eprintln!("archipel workload canned: {error}");
                std::process::exit(1);
            }
        });
        doors.push((sender, waker));
    }
    accept(&listener, &doors)
}

fn accept(listener: &socket2::Socket, doors: &[(Sender<socket2::Socket>, Waker)]) -> Result<()> {
    for (sender, waker) in doors.iter().cycle() {
        let (socket, address) = listener.accept()?;
        if address.as_socket().is_some() {
            socket.set_tcp_nodelay(true)?;
        }
        socket.set_nonblocking(true)?;
        // A thread that has ended has ended the process.
        let _ = sender.send(socket);
        waker.wake()?;
    }
    Ok(())
}

/// Listens where a client with this URL would connect.
fn listen(url: &str) -> Result<socket2::Socket> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| WorkloadError::Connect {
        url: url.to_owned(),
        source,
    };
    let config = super::client::configuration(url).map_err(|error| failed(Box::new(error)))?;
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let socket = match config.get_hosts().first() {
        Some(Host::Unix(directory)) => {
            let address = socket2::SockAddr::unix(directory.join(format!(".s.PGSQL.{port}")))?;
            let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
            socket.bind(&address)?;
            socket.listen(1024)?;
            socket
        }
        Some(Host::Tcp(host)) => {
            let address: std::net::IpAddr = host.parse().map_err(|error| failed(Box::new(error)))?;
            std::net::TcpListener::bind((address, port)).map_err(|error| failed(Box::new(error)))?.into()
        }
        None => return Err(failed("the URL names no host".into())),
    };
    socket.set_nonblocking(false)?;
    Ok(socket)
}

/// BindComplete, one DataRow of the call's widths, CommandComplete.
fn answer(call: &Call) -> Vec<u8> {
    let mut out = b"2\0\0\0\x04".to_vec();
    if !call.answer.is_empty() {
        let body: usize = call.answer.iter().map(|width| 4 + usize::from(*width)).sum();
        out.push(b'D');
        out.extend_from_slice(&(body as u32 + 6).to_be_bytes());
        out.extend_from_slice(&(call.answer.len() as u16).to_be_bytes());
        for &width in call.answer {
            out.extend_from_slice(&u32::from(width).to_be_bytes());
            out.resize(out.len() + usize::from(width), 0);
        }
    }
    let tag: &[u8] = if call.sql.starts_with("CALL") { b"CALL\0" } else { b"SELECT 1\0" };
    out.push(b'C');
    out.extend_from_slice(&(tag.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(tag);
    out
}

const READY: &[u8] = b"Z\0\0\0\x05I";

struct Connection {
    socket: socket2::Socket,
    greeted: bool,
    input: Vec<u8>,
    /// Bytes of `input` that have arrived.
    filled: usize,
    output: Vec<u8>,
}

fn run(mut poll: Poll, arrivals: &Receiver<socket2::Socket>, answers: &[Vec<u8>]) -> io::Result<()> {
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut events = Events::with_capacity(EVENTS_MAX);
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        }
        for event in &events {
            if event.token() == WAKE {
                for socket in arrivals.try_iter() {
                    let token = Token(connections.len());
                    poll.registry().register(
                        &mut SourceFd(&socket.as_raw_fd()),
                        token,
                        Interest::READABLE,
                    )?;
                    connections.push(Some(Connection {
                        socket,
                        greeted: false,
                        input: vec![0; 64 << 10],
                        filled: 0,
                        output: Vec::new(),
                    }));
                }
                continue;
            }
            let Some(slot) = connections.get_mut(event.token().0) else { continue };
            let Some(connection) = slot else { continue };
            match connection.turn(answers) {
                Err(_) => *slot = None,
                // The driver reads slowly: from now on room to write counts, too.
                Ok(()) if !connection.output.is_empty() => poll.registry().reregister(
                    &mut SourceFd(&connection.socket.as_raw_fd()),
                    event.token(),
                    Interest::READABLE | Interest::WRITABLE,
                )?,
                Ok(()) => {}
            }
        }
    }
}

impl Connection {
    /// Answers what has arrived; an error ends the connection.
    fn turn(&mut self, answers: &[Vec<u8>]) -> io::Result<()> {
        loop {
            self.write()?;
            let room = self.input.len() - self.filled;
            match self.socket.read(&mut self.input[self.filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.filled += count;
                    self.answer(answers)?;
                    if count < room {
                        return self.write();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            match self.socket.write(&self.output) {
                Ok(count) if count == self.output.len() => self.output.clear(),
                Ok(count) => drop(self.output.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn answer(&mut self, answers: &[Vec<u8>]) -> io::Result<()> {
        let mut at = 0;
        loop {
            let rest = &self.input[at..self.filled];
            let header = usize::from(self.greeted);
            let Some(length) = rest.get(header..header + 4) else { break };
            let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize + header;
            let Some(message) = rest.get(..length) else { break };
            at += length;
            if !self.greeted {
                self.greeted = true;
                self.output.extend_from_slice(b"R\0\0\0\x08\0\0\0\0");
                self.output.extend_from_slice(READY);
                continue;
            }
            match message[0] {
                b'P' => self.output.extend_from_slice(b"1\0\0\0\x04"),
                // An unnamed portal, the statement's letter, and the number of the call.
                b'B' => {
                    let call = message.get(7).map_or(0, |digit| usize::from(digit.wrapping_sub(b'0')));
                    let answer = answers.get(call).ok_or(io::ErrorKind::InvalidData)?;
                    self.output.extend_from_slice(answer);
                }
                b'Q' => {
                    self.output.extend_from_slice(b"C\0\0\0\x08SET\0");
                    self.output.extend_from_slice(READY);
                }
                b'S' => self.output.extend_from_slice(READY),
                b'X' => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => {}
            }
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;

    #[tokio::test]
    async fn the_driver_understands_the_canned_answers() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("postgresql://archipel@/archipel?host={}&port=1", folder.path().display());
        let target = crate::args::Target { name: crate::args::Name::Tatp, url: url.clone(), scale: 1 };
        let calls = target.name.workload(1).calls();
        std::thread::spawn(move || serve(&CannedArgs { target }));
        let mut client = loop {
            match Client::connect(&url).await {
                Ok(client) => break client,
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            }
        };
        client.simple("SET synchronous_commit = 'off'").await.unwrap();
        for (number, call) in calls.iter().enumerate() {
            client.prepare(number, call.sql).await.unwrap();
        }
        for number in 0..calls.len() {
            client.queue(number, std::time::Instant::now(), |parameters| parameters.int4(1)).unwrap();
        }
        client.flush().await.unwrap();
        let mut ended = Vec::new();
        while client.in_flight() > 0 {
            client.receive(|finished| ended.push((finished.call, finished.failed))).await.unwrap();
        }
        assert_eq!(ended, (0..calls.len()).map(|call| (call, None)).collect::<Vec<_>>());
    }
}
