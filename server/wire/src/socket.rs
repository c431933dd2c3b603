//! A client's connection, over TCP or a Unix socket alike.
//!
//! One read and one write a request: a read that leaves room says that the socket is empty, so
//! that nobody asks again before the reactor has news; a write is tried before anybody waits.
//! The reactor is told of room to write only while somebody waits for it: a Unix socket would
//! otherwise report room, and wake the thread, each time its peer has read something.

use std::future::poll_fn;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, Waker};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::tls::TlsFacts;

/// A socket in the reactor of the current runtime. At most one task reads and one
/// task writes at a time.
pub struct Socket(AsyncFd<socket2::Socket>);

impl Socket {
    /// Registers a socket with the current runtime's reactor.
    pub fn new(socket: socket2::Socket) -> io::Result<Socket> {
        socket.set_nonblocking(true)?;
        // SAFETY: the socket owns its descriptor, which stays open and the same until the socket
        // is dropped, and AsyncFd gives it back only after taking it out of the reactor.
        let registered = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }?;
        Ok(Socket(registered))
    }

    /// What is known of its encryption; `None`: it has none.
    pub fn tls(&self) -> Option<&TlsFacts> {
        None
    }

    /// A second descriptor of the socket, for another thread's reactor.
    pub fn second(&self) -> io::Result<socket2::Socket> {
        self.0.get_ref().try_clone()
    }

    /// A second descriptor of the socket, for the time somebody waits for room to write.
    fn writability(&self) -> io::Result<AsyncFd<socket2::Socket>> {
        let socket = self.second()?;
        // SAFETY: as in `new`.
        Ok(unsafe { AsyncFd::register_with_interest(socket, Interest::WRITABLE) }?)
    }

    /// Waits for the next client of a listening socket.
    pub async fn accept(&self) -> io::Result<(socket2::Socket, socket2::SockAddr)> {
        self.0.async_io(Interest::READABLE, |socket| socket.accept()).await
    }

    /// Takes the socket out of the reactor, to be served on another thread.
    pub fn into_inner(self) -> socket2::Socket {
        self.0.into_inner()
    }

    /// Ends one direction, or both.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.get_ref().shutdown(how)
    }

    /// Waits for bytes and reads them; 0 is the end.
    pub async fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = poll_fn(|context| self.0.poll_read_ready(context)).await?;
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

    /// Whether the other side has closed, as far as the reactor knows: no system call.
    pub fn is_closed(&self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        match std::pin::pin!(self.0.readable()).poll(&mut context) {
            Poll::Ready(Ok(guard)) => guard.ready().is_read_closed(),
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        }
    }

    /// Writes what the socket takes now, without waiting.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.get_ref().send_with_flags(bytes, libc::MSG_NOSIGNAL) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
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
        self.0.get_ref().as_fd()
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
