//! Encrypted sockets as sessions use them, with a client of rustls's at the other end of a pair.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use archipel::wire::socket::Socket;
use archipel::wire::tls::TlsFacts;
use archipel::wire::tls::session::Session;
use common::certificates::Authority;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned, SupportedProtocolVersion,
};

type Client = StreamOwned<ClientConnection, UnixStream>;

const BYTES: usize = 3_000_000;

fn sent() -> Vec<u8> {
    (0..BYTES).map(|n| (n % 251) as u8).collect()
}

/// A socket whose handshake is over; and what the client at its other end does, in a thread of its own.
async fn connected<T: Send + 'static>(
    version: &'static SupportedProtocolVersion,
    client: impl FnOnce(Client) -> T + Send + 'static,
) -> (Socket, JoinHandle<T>) {
    let authority = Authority::new("a root");
    authority.issue("server", "/CN=localhost", 1);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificate = CertificateDer::from_pem_file(authority.path("server.crt")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(authority.path("server.key")).expect("a key");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority.root()).expect("a certificate")).expect("a root");
    let theirs = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[version])
        .expect("there are suites for it")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let ours = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("there are suites for it")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("they belong together");
    let (near, far) = UnixStream::pair().expect("a pair of sockets");
    let client = std::thread::spawn(move || {
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = ClientConnection::new(Arc::new(theirs), name).expect("a good configuration");
        let mut stream = StreamOwned::new(connection, far);
        stream.flush().expect("the handshake ends well");
        client(stream)
    });
    let socket = Socket::new(near.into()).expect("a socket");
    let mut session = Session::new(Arc::new(ours)).expect("a good configuration");
    let mut room = [0; 4096];
    while session.connection().is_handshaking() {
        let count = socket.read(&mut room).await.expect("the client talks");
        assert!(count > 0, "the client has left");
        let step = session.advance(&room[..count]);
        step.outcome.expect("the client speaks TLS");
        socket.write_all(&step.answer).await.expect("the client listens");
    }
    let facts = TlsFacts {
        protocol: "TLSv1.3",
        cipher: String::new(),
        bits: 0,
        server_end_point: Vec::new(),
        client: None,
    };
    (socket.encrypted(Arc::new(facts), session), client)
}

/// Reads to the end, which has to be said, when it is told to.
fn reader() -> (Sender<()>, impl FnOnce(Client) -> Vec<u8> + Send + 'static) {
    let (begin, begun) = channel();
    let read = move |mut client: Client| {
        begun.recv().expect("it is told to");
        let mut got = Vec::new();
        client.read_to_end(&mut got).expect("an end of its own");
        got
    };
    (begin, read)
}

#[tokio::test]
async fn what_a_full_socket_does_not_take_comes_again_and_arrives_once() {
    for version in rustls::ALL_VERSIONS {
        let (begin, read) = reader();
        let (socket, client) = connected(version, read).await;
        let bytes = sent();
        let mut left = bytes.as_slice();
        // As replies are written: what there is room for, until there is none.
        let full = loop {
            match socket.try_write(left) {
                Ok(count) => left = &left[count..],
                Err(error) => break error,
            }
            assert!(!left.is_empty(), "the socket holds everything");
        };
        assert_eq!(full.kind(), ErrorKind::WouldBlock);
        assert_eq!(socket.try_write(left).unwrap_err().kind(), ErrorKind::WouldBlock);
        begin.send(()).expect("it waits");
        socket.write_all(left).await.expect("the client reads");
        socket.end_encryption();
        drop(socket);
        assert!(client.join().expect("the client is content") == bytes, "{version:?}");
    }
}

#[tokio::test]
async fn what_arrives_is_read_in_pieces_of_any_size_up_to_its_end() {
    for version in rustls::ALL_VERSIONS {
        let write = |mut client: Client| {
            client.write_all(&sent()).expect("the server reads");
            client.conn.send_close_notify();
            client.flush().expect("the server reads");
            client
        };
        let (socket, client) = connected(version, write).await;
        let (mut got, mut room) = (Vec::new(), vec![0; 40_000]);
        for size in [1, 1000, 40_000, 7].into_iter().cycle() {
            match socket.read(&mut room[..size]).await.expect("the client writes") {
                0 => break,
                count => got.extend_from_slice(&room[..count]),
            }
        }
        client.join().expect("the client is content");
        assert!(got == sent(), "{version:?}: {} bytes", got.len());
    }
}

#[tokio::test]
async fn a_connection_that_moves_takes_what_has_arrived_along() {
    for version in rustls::ALL_VERSIONS {
        let talk = |mut client: Client| {
            client.write_all(b"question").expect("the server reads");
            let mut answer = [0; 6];
            client.read_exact(&mut answer).expect("the server answers");
            answer
        };
        let (here, client) = connected(version, talk).await;
        let mut room = [0; 100];
        assert_eq!(here.read(&mut room[..4]).await.expect("it has arrived"), 4);
        let there = Socket::register(here.second().expect("it goes")).expect("it arrives");
        assert_eq!(here.try_write(b"x").unwrap_err().kind(), ErrorKind::NotConnected);
        assert!(here.second().is_err() && here.tls().is_some() && there.tls() == here.tls());
        drop(here);
        assert_eq!(there.read(&mut room[4..]).await.expect("it has come along"), 4);
        assert_eq!(&room[..8], b"question");
        there.write_all(b"answer").await.expect("the client reads");
        assert_eq!(&client.join().expect("the client is content"), b"answer");
    }
}
