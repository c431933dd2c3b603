//! Health, metrics and the live page, over HTTP/1.1: one request a connection, a bounded head, a deadline,
//! GET and HEAD only. It serves facts and changes nothing. Encrypted with `archipel.http_tls`.
//!
//! Everybody may ask for the server's health; the rest is for clients on this machine, and for those that
//! show the token of `archipel.http_token_file`.
//!
//! Clients that are slow to ask keep nobody waiting: beyond [`CONNECTIONS_MAX`] somebody makes room
//! ([`places`]). What takes time to put together is put together elsewhere, a few at a time, so that health
//! is told meanwhile. And a page of elsewhere cannot have a browser on this machine read what is here under
//! a name of its own (DNS rebinding): requests name a host by its address, as localhost, or by a name in
//! `archipel.http_hosts`.

mod places;
pub mod token;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use archipel_engine::heap;
use tokio::sync::Semaphore;

use crate::authentication::lobby::Guest;
use crate::threads::Threads;
use crate::tls::ServerTls;
use crate::wire::socket::Socket;
use places::Places;

/// What the pages show.
pub trait Facts: Send + Sync + 'static {
    /// Whether the server takes statements (recovery is over, no shutdown has begun).
    fn ready(&self) -> bool;
    /// Prometheus' text format.
    fn metrics(&self) -> String;
    /// The document the live page polls.
    fn stats(&self) -> String;
    /// Whether clients may know this server under a name.
    fn is_host(&self, name: &str) -> bool;
    /// Whether somebody from elsewhere who shows this may be told more than the server's health.
    fn is_token(&self, shown: &str) -> bool;
}

const HEAD_BYTES_MAX: usize = 8 * 1024;
const CONNECTIONS_MAX: usize = 64;
const DEADLINE: Duration = Duration::from_secs(5);
const PAGE: &str = include_str!("page.html");
/// Pages that are put together at once.
const COMPUTED_MAX: usize = 2;

/// What all connections share.
struct Pages {
    facts: Arc<dyn Facts>,
    tls: Arc<ServerTls>,
    /// Room to put a page together.
    computing: Arc<Semaphore>,
    /// Where that is done.
    threads: Threads,
}

impl Pages {
    fn new(facts: Arc<dyn Facts>, tls: Arc<ServerTls>) -> Pages {
        let threads = Threads::new("pages", heap::settle_at_end);
        Pages { facts, tls, computing: Arc::new(Semaphore::new(COMPUTED_MAX)), threads }
    }
}

/// Serves until the task is dropped.
pub async fn serve(listener: Socket, facts: Arc<dyn Facts>, tls: Arc<ServerTls>) {
    let pages = Arc::new(Pages::new(facts, tls));
    let mut places = Places::new(CONNECTIONS_MAX);
    loop {
        match listener.accept().await {
            Ok((socket, address)) => {
                let from = address.as_socket().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |from| from.ip());
                let pages = pages.clone();
                places.take(from.to_canonical(), || {
                    tokio::spawn(async move {
                        // Past the deadline, or when the client went away, there is nobody to tell.
                        let _ =
                            tokio::time::timeout(DEADLINE, pages.answer(socket, from.to_canonical())).await;
                    })
                });
            }
            // Out of file descriptors, most likely: others will close theirs.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// An answer but for its body's length.
type Answer = (&'static str, &'static str, String);

impl Pages {
    async fn answer(&self, socket: socket2::Socket, from: IpAddr) -> std::io::Result<()> {
        socket.set_tcp_nodelay(true)?;
        let Some(socket) = self.encrypted(Socket::new(socket)?).await else { return Ok(()) };
        let Some(head) = read_head(&socket).await? else { return Ok(()) };
        let head_only = head.starts_with("HEAD ");
        let (status, kind, body) = match self.target(&head) {
            Ok(target) => self.page(target, self.is_trusted(&head, from)).await,
            Err((status, told)) => (status, TEXT, told.to_owned()),
        };
        respond(&socket, head_only, status, kind, &body).await
    }

    /// The connection, encrypted if it shall be; `None`: the handshake has failed.
    async fn encrypted(&self, socket: Socket) -> Option<Socket> {
        let Some(context) = self.tls.context() else { return Some(socket) };
        let Some(config) = context.http.clone() else { return Some(socket) };
        // Whoever does not speak TLS is told so by it.
        let encrypted =
            self.tls.accept(&context, config, socket, Vec::new(), &Guest::default()).await.ok()?;
        Some(encrypted.socket)
    }

    /// What a request asks for, or why it is refused.
    fn target<'h>(&self, head: &'h str) -> Result<&'h str, (&'static str, &'static str)> {
        if head.len() >= HEAD_BYTES_MAX {
            return Err(("431 Request Header Fields Too Large", ""));
        }
        let mut words = head.lines().next().unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if method != "GET" && method != "HEAD" {
            return Err(("405 Method Not Allowed", "only GET and HEAD\n"));
        }
        // Of two, whoever passed the request on may have looked at the other one; and from 1.1 on there is one.
        let (named, needed) = (hosts(head).count(), usize::from(words.next() == Some("HTTP/1.1")));
        if named > 1 || named < needed {
            return Err(("400 Bad Request", "one Host header is needed\n"));
        }
        if !hosts(head).all(|host| names_this_host(host, &*self.facts)) {
            let told = "this server is not known under that name (archipel.http_hosts)\n";
            return Err(("421 Misdirected Request", told));
        }
        Ok(target.split('?').next().unwrap_or_default())
    }

    /// Whether somebody may be told more than the server's health.
    fn is_trusted(&self, head: &str, from: IpAddr) -> bool {
        from.is_loopback() || headers(head, "authorization").any(|shown| self.shows_token(shown))
    }

    fn shows_token(&self, shown: &str) -> bool {
        let Some((scheme, token)) = shown.split_once(' ') else { return false };
        scheme.eq_ignore_ascii_case("bearer") && self.facts.is_token(token.trim())
    }

    async fn page(&self, path: &str, trusted: bool) -> Answer {
        match path {
            "/healthz" => ("200 OK", TEXT, "ok\n".to_owned()),
            "/readyz" if self.facts.ready() => ("200 OK", TEXT, "ready\n".to_owned()),
            "/readyz" => ("503 Service Unavailable", TEXT, "not ready\n".to_owned()),
            // Which pages there are is told to nobody else, either.
            _ if !trusted => {
                ("401 Unauthorized", TEXT, "a bearer token is needed (archipel.http_token_file)\n".to_owned())
            }
            "/" => ("200 OK", "text/html; charset=utf-8", PAGE.to_owned()),
            "/metrics" => {
                self.computed("text/plain; version=0.0.4; charset=utf-8", |facts| facts.metrics()).await
            }
            "/stats" => self.computed("application/json", |facts| facts.stats()).await,
            _ => ("404 Not Found", TEXT, "not found\n".to_owned()),
        }
    }

    /// A page that takes time to put together: on a thread where that keeps nobody waiting.
    async fn computed(&self, kind: &'static str, page: fn(&dyn Facts) -> String) -> Answer {
        let facts = self.facts.clone();
        let refused = |told: String| ("503 Service Unavailable", TEXT, told);
        let room = match self.computing.clone().acquire_owned().await {
            Ok(room) => room,
            Err(error) => return refused(format!("{error}\n")),
        };
        // A client that goes meanwhile gives its room back when the page is done, and no sooner.
        let put_together = move || {
            let _room = room;
            page(&*facts)
        };
        match self.threads.begin(put_together) {
            Ok(done) => match done.await {
                Ok(body) => ("200 OK", kind, body),
                Err(_) => refused("the page could not be put together\n".to_owned()),
            },
            Err(error) => refused(format!("{}\n", error.message())),
        }
    }
}

/// The head of a request, as far as it may go; `None`: the client has left.
async fn read_head(socket: &Socket) -> std::io::Result<Option<String>> {
    let mut head = Vec::with_capacity(1024);
    let mut room = [0; 1024];
    while head.len() < HEAD_BYTES_MAX && !head.windows(4).any(|window| window == b"\r\n\r\n") {
        match socket.read(&mut room).await? {
            0 => return Ok(None),
            count => head.extend_from_slice(&room[..count]),
        }
    }
    Ok(Some(String::from_utf8_lossy(&head).into_owned()))
}

/// What the Host headers of a request name.
fn hosts(head: &str) -> impl Iterator<Item = &str> {
    headers(head, "host")
}

/// The values of a request's headers of this name.
fn headers<'h>(head: &'h str, wanted: &'static str) -> impl Iterator<Item = &'h str> {
    head.lines().skip(1).filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        // No name has blanks at its end, but whoever reads on behind them reads a name.
        name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim())
    })
}

/// Whether a request is for this server by a name it has. Without the header (HTTP/1.0) no browser
/// asks.
fn names_this_host(host: &str, facts: &dyn Facts) -> bool {
    let name = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _port)| name),
    };
    name.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost") || facts.is_host(name)
}

const TEXT: &str = "text/plain; charset=utf-8";

async fn respond(
    socket: &Socket,
    head_only: bool,
    status: &str,
    kind: &str,
    body: &str,
) -> std::io::Result<()> {
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n{}\r\n",
        body.len(),
        if status.starts_with("401") { "WWW-Authenticate: Bearer realm=\"archipel\"\r\n" } else { "" }
    );
    if !head_only {
        answer.push_str(body);
    }
    socket.write_all(answer.as_bytes()).await?;
    socket.shutdown(std::net::Shutdown::Write)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    struct Fixed;
    impl Facts for Fixed {
        fn ready(&self) -> bool {
            false
        }
        fn metrics(&self) -> String {
            "archipel_up 1\n".into()
        }
        fn stats(&self) -> String {
            "{}".into()
        }
        fn is_host(&self, name: &str) -> bool {
            name == "archipel"
        }
        fn is_token(&self, shown: &str) -> bool {
            shown == "a long and secret token"
        }
    }

    /// Metrics come once nobody can say any more that they shall.
    struct Slow(parking_lot::Mutex<std::sync::mpsc::Receiver<()>>);
    impl Facts for Slow {
        fn ready(&self) -> bool {
            Fixed.ready()
        }
        fn metrics(&self) -> String {
            // Nobody says so: they leave.
            let _ = self.0.lock().recv();
            Fixed.metrics()
        }
        fn stats(&self) -> String {
            Fixed.stats()
        }
        fn is_host(&self, name: &str) -> bool {
            Fixed.is_host(name)
        }
        fn is_token(&self, shown: &str) -> bool {
            Fixed.is_token(shown)
        }
    }

    /// A server, and where it is.
    fn served_with(facts: Arc<dyn Facts>) -> (tokio::task::JoinHandle<()>, std::net::SocketAddr) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let listener = Socket::new(listener.into()).unwrap();
        (tokio::spawn(serve(listener, facts, Arc::default())), address)
    }

    fn served() -> (tokio::task::JoinHandle<()>, std::net::SocketAddr) {
        served_with(Arc::new(Fixed))
    }

    async fn request(text: &[u8]) -> String {
        let (server, address) = served();
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(text).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        server.abort();
        answer
    }

    #[tokio::test]
    async fn pages_answer_and_the_rest_is_refused() {
        assert!(request(b"GET /healthz HTTP/1.0\r\n\r\n").await.ends_with("ok\n"));
        assert!(request(b"GET /readyz HTTP/1.0\r\n\r\n").await.starts_with("HTTP/1.1 503"));
        assert!(request(b"GET /metrics HTTP/1.0\r\n\r\n").await.ends_with("archipel_up 1\n"));
        assert!(request(b"POST / HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 405"));
        assert!(request(b"GET /../etc HTTP/1.0\r\n\r\n").await.starts_with("HTTP/1.1 404"));
        let long = [b"GET / HTTP/1.1\r\nX: ".to_vec(), vec![b'a'; HEAD_BYTES_MAX]].concat();
        assert!(request(&long).await.starts_with("HTTP/1.1 431"));
    }

    #[tokio::test]
    async fn requests_name_one_host() {
        for (head, status) in [
            ("HTTP/1.1\r\n", "400"),
            ("HTTP/1.1\r\nX-Host: localhost\r\n", "400"),
            ("HTTP/1.1\r\nHost: localhost\r\nhost : localhost\r\n", "400"),
            ("HTTP/1.0\r\nHost: localhost\r\nHost: elsewhere\r\n", "400"),
            ("HTTP/1.1\r\nHost: localhost\r\n", "200"),
            ("HTTP/1.0\r\n", "200"),
        ] {
            let answer = request(format!("GET /healthz {head}\r\n").as_bytes()).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head}: {answer}");
        }
    }

    #[tokio::test]
    async fn only_names_of_this_server_are_answered() {
        for (host, status) in [
            ("127.0.0.1:8432", "200"),
            ("[::1]:8432", "200"),
            ("LocalHost", "200"),
            ("archipel:8432", "200"),
            ("elsewhere.example", "421"),
            ("127.0.0.1.elsewhere.example:8432", "421"),
        ] {
            let answer = request(format!("GET /stats HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {answer}");
        }
    }

    #[tokio::test]
    async fn what_is_more_than_health_is_for_this_machine_and_for_tokens() {
        let pages = Pages::new(Arc::new(Fixed), Arc::default());
        let (here, elsewhere) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([192, 0, 2, 1]));
        let shown = |value: &str| format!("GET / HTTP/1.1\r\nAuthorization: {value}\r\n\r\n");
        assert!(pages.is_trusted("GET / HTTP/1.0\r\n\r\n", here));
        assert!(!pages.is_trusted("GET / HTTP/1.0\r\n\r\n", elsewhere));
        assert!(pages.is_trusted(&shown("bearer a long and secret token"), elsewhere));
        for wrong in ["a long and secret token", "Basic a long and secret token", "Bearer", "Bearer another"]
        {
            assert!(!pages.is_trusted(&shown(wrong), elsewhere), "{wrong}");
        }
        for path in ["/", "/stats", "/metrics", "/elsewhere"] {
            assert!(pages.page(path, false).await.0.starts_with("401"), "{path}");
        }
        assert!(pages.page("/healthz", false).await.0.starts_with("200"));
        assert!(pages.page("/readyz", false).await.0.starts_with("503"));
        assert!(pages.page("/stats", true).await.0.starts_with("200"));
    }

    #[tokio::test]
    async fn clients_that_are_slow_to_ask_keep_nobody_waiting() {
        let (server, address) = served();
        let mut slow = Vec::new();
        for _ in 0..3 * CONNECTIONS_MAX {
            slow.push(TcpStream::connect(address).await.unwrap());
        }
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        let read = client.read_to_string(&mut answer);
        tokio::time::timeout(DEADLINE / 2, read)
            .await
            .expect("an answer before the slow ones are cut off")
            .unwrap();
        assert!(answer.ends_with("ok\n"), "{answer}");
        server.abort();
    }

    #[tokio::test]
    async fn health_is_told_while_pages_are_put_together() {
        let (go, wait) = std::sync::mpsc::channel();
        let (server, address) = served_with(Arc::new(Slow(parking_lot::Mutex::new(wait))));
        let ask = async |page: &str| {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(format!("GET {page} HTTP/1.0\r\n\r\n").as_bytes()).await.unwrap();
            client
        };
        let told = async |mut client: TcpStream| {
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let mut waiting = Vec::new();
        for _ in 0..4 * COMPUTED_MAX {
            waiting.push(ask("/metrics").await);
        }
        let healthy = tokio::time::timeout(DEADLINE / 2, told(ask("/healthz").await)).await;
        assert!(healthy.expect("an answer while the others wait").ends_with("ok\n"));
        drop(go);
        for client in waiting {
            assert!(told(client).await.ends_with("archipel_up 1\n"));
        }
        server.abort();
    }
}
