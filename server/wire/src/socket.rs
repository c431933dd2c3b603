//! A client's connection, over TCP or a Unix socket alike, encrypted or not.
//!
//! One read and one write a request: a read that leaves room says that the socket is empty, so
//! that nobody asks again before the reactor has news; a write is tried before anybody waits.
//! The reactor is told of room to write only while somebody waits for it: a Unix socket would
//! otherwise report room, and wake the thread, each time its peer has read something.
//!
//! A [`Socket`] belongs to one thread's reactor; on its way to another thread the connection is a
//! [`Transport`], which takes the state of its encryption along.

use std::future::poll_fn;
use std::io::{self, Read};
use std::net::{IpAddr, Shutdown};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::tls::TlsFacts;
use super::tls::session::Session;

/// A socket in the reactor of the current runtime. At most one task reads and one
/// task writes at a time.
pub struct Socket {
    registered: AsyncFd<socket2::Socket>,
    tls: Option<Box<Tls>>,
}

/// The encryption of a socket in a reactor.
struct Tls {
    facts: Arc<TlsFacts>,
    /// `None`: the connection has gone on to another thread.
    session: Mutex<Option<Session>>,
}

impl Tls {
    fn with<T>(&self, work: impl FnOnce(&mut Session) -> io::Result<T>) -> io::Result<T> {
        match &mut *self.session.lock() {
            Some(session) => work(session),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

/// A connection out of any reactor, and its encryption.
pub struct Transport {
    socket: socket2::Socket,
    tls: Option<Box<(Arc<TlsFacts>, Session)>>,
}

impl From<socket2::Socket> for Transport {
    fn from(socket: socket2::Socket) -> Transport {
        Transport { socket, tls: None }
    }
}

impl Transport {
    /// Sends the last bytes, if there is room for them, and ends.
    pub fn end_with(self, bytes: &[u8]) {
        // Nobody waits for a client that has left no room for it.
        match self.tls {
            Some(mut tls) => {
                let _ = tls.1.send(&self.socket, bytes);
                tls.1.close(&self.socket);
            }
            None => {
                let _ = send(&self.socket, bytes);
            }
        }
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

/// Writes what the socket takes now.
fn send(socket: &socket2::Socket, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match socket.send_with_flags(bytes, libc::MSG_NOSIGNAL) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

impl Socket {
    /// Registers a socket with the current runtime's reactor.
    pub fn new(socket: socket2::Socket) -> io::Result<Socket> {
        socket.set_nonblocking(true)?;
        // SAFETY: the socket owns its descriptor, which stays open and the same until the socket
        // is dropped, and AsyncFd gives it back only after taking it out of the reactor.
        let registered = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }?;
        Ok(Socket { registered, tls: None })
    }

    /// Registers a connection with the current runtime's reactor, on its new thread.
    pub fn register(transport: Transport) -> io::Result<Socket> {
        let socket = Socket::new(transport.socket)?;
        Ok(match transport.tls {
            Some(tls) => socket.encrypted(tls.0, tls.1),
            None => socket,
        })
    }

    /// The same, encrypted by a session whose handshake is over.
    pub fn encrypted(mut self, facts: Arc<TlsFacts>, session: Session) -> Socket {
        self.tls = Some(Box::new(Tls { facts, session: Mutex::new(Some(session)) }));
        self
    }

    /// The address that the client has come to; `None` for a Unix socket.
    pub fn server_address(&self) -> Option<IpAddr> {
        let local = self.registered.get_ref().local_addr().ok()?;
        local.as_socket().map(|address| address.ip().to_canonical())
    }

    /// What is known of its encryption; `None`: it has none.
    pub fn tls(&self) -> Option<&TlsFacts> {
        self.tls.as_ref().map(|tls| &*tls.facts)
    }

    /// The same, for others to keep.
    pub fn shared_tls(&self) -> Option<Arc<TlsFacts>> {
        self.tls.as_ref().map(|tls| tls.facts.clone())
    }

    /// The connection, for another thread's reactor. Nothing may be underway; this end of it is dead
    /// from here on if it is encrypted.
    pub fn second(&self) -> io::Result<Transport> {
        let socket = self.registered.get_ref().try_clone()?;
        let session = self.tls.as_ref().and_then(|tls| {
            let session = tls.session.lock().take()?;
            Some(Box::new((tls.facts.clone(), session)))
        });
        if self.tls.is_some() && session.is_none() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        Ok(Transport { socket, tls: session })
    }

    /// A second descriptor of the socket, for the time somebody waits for room to write.
    fn writability(&self) -> io::Result<AsyncFd<socket2::Socket>> {
        let socket = self.registered.get_ref().try_clone()?;
        // SAFETY: as in `new`.
        Ok(unsafe { AsyncFd::register_with_interest(socket, Interest::WRITABLE) }?)
    }

    /// Waits for the next client of a listening socket.
    pub async fn accept(&self) -> io::Result<(socket2::Socket, socket2::SockAddr)> {
        self.registered.async_io(Interest::READABLE, |socket| socket.accept()).await
    }

    /// Takes the connection out of the reactor, to be served on another thread.
    pub fn into_inner(self) -> Transport {
        let tls = self.tls.and_then(|tls| {
            let Tls { facts, session } = *tls;
            Some(Box::new((facts, session.into_inner()?)))
        });
        Transport { socket: self.registered.into_inner(), tls }
    }

    /// Ends one direction, or both.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        if how != Shutdown::Read {
            self.end_encryption();
        }
        self.registered.get_ref().shutdown(how)
    }

    /// Tells the other side of an encrypted connection that nothing follows: without it, it could not
    /// tell the end from a connection that somebody has cut.
    pub fn end_encryption(&self) {
        if let Some(tls) = &self.tls {
            // Who has left, or is elsewhere, needs no such word.
            let _ = tls.with(|session| {
                session.close(self.registered.get_ref());
                Ok(())
            });
        }
    }

    /// Waits for bytes and reads them; 0 is the end.
    pub async fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        if let Some(tls) = &self.tls {
            return self.read_encrypted(tls, room).await;
        }
        loop {
            let mut ready = poll_fn(|context| self.registered.poll_read_ready(context)).await?;
            let mut socket: &socket2::Socket = ready.get_inner();
            match socket.read(room) {
                Ok(count) => {
                    if count < room.len() {
                        ready.clear_ready();
                    }
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn read_encrypted(&self, tls: &Tls, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match tls.with(|session| session.take(room)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            let mut ready = poll_fn(|context| self.registered.poll_read_ready(context)).await?;
            match tls.with(|session| session.receive(ready.get_inner())) {
                Ok(emptied) => {
                    if emptied {
                        ready.clear_ready();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                // Without a word of its end: PostgreSQL's clients leave so, too.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the other side has closed, as far as the reactor knows: no system call.
    pub fn is_closed(&self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        match std::pin::pin!(self.registered.readable()).poll(&mut context) {
            Poll::Ready(Ok(guard)) => guard.ready().is_read_closed(),
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        }
    }

    /// Writes what the socket takes now, without waiting. Bytes that it did not take come again,
    /// before others.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let socket = self.registered.get_ref();
        match &self.tls {
            Some(tls) => tls.with(|session| session.send(socket, bytes)),
            None => send(socket, bytes),
        }
    }

    /// Writes everything, waiting as often as the socket is full.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        let mut writability = None;
        while !bytes.is_empty() {
            match self.try_write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let registered = match &writability {
                        Some(registered) => registered,
                        None => writability.insert(self.writability()?),
                    };
                    // Ready until a write has found the socket full again.
                    let mut ready = registered.writable().await?;
                    if let Ok(written) = ready.try_io(|_| self.try_write(bytes)) {
                        bytes = &bytes[written?..];
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.registered.get_ref().as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Socket, Socket) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        (Socket::new(ours.into()).unwrap(), Socket::new(theirs.into()).unwrap())
    }

    #[tokio::test]
    async fn more_than_the_socket_holds_arrives_whole_and_in_order() {
        let (ours, theirs) = pair();
        let sent: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
        let expected = sent.clone();
        let writer = tokio::spawn(async move { ours.write_all(&sent).await });
        let mut got = Vec::new();
        let mut room = [0; 10_000];
        loop {
            match theirs.read(&mut room).await.unwrap() {
                0 => break,
                count => got.extend_from_slice(&room[..count]),
            }
        }
        writer.await.unwrap().unwrap();
        assert!(got == expected, "{} of {} bytes", got.len(), expected.len());
    }

    #[tokio::test]
    async fn the_end_is_seen_after_a_read_that_emptied_the_socket() {
        let (ours, theirs) = pair();
        ours.write_all(b"last words").await.unwrap();
        let mut room = [0; 100];
        assert_eq!(theirs.read(&mut room).await.unwrap(), 10);
        drop(ours);
        assert_eq!(theirs.read(&mut room).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_client_that_has_gone_is_seen_though_it_left_words() {
        let (ours, theirs) = pair();
        ours.write_all(b"last words").await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        assert!(!theirs.is_closed());
        drop(ours);
        let begun = std::time::Instant::now();
        while !theirs.is_closed() {
            assert!(begun.elapsed() < std::time::Duration::from_secs(60), "nobody notices");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert_eq!(theirs.read(&mut [0; 100]).await.unwrap(), 10);
    }

    #[tokio::test]
    async fn writing_to_a_client_that_has_gone_is_an_error() {
        let (ours, theirs) = pair();
        drop(theirs);
        assert_eq!(ours.try_write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
