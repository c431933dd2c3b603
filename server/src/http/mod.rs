//! Health, metrics and the live page, over plain HTTP/1.1: one request a connection, a bounded
//! head, a deadline, GET and HEAD only. It serves facts and changes nothing.
//!
//! Clients that are slow to ask keep nobody waiting: beyond [`CONNECTIONS_MAX`] the one that has been
//! there for longest makes room. And a page of elsewhere cannot have a browser on this machine read
//! what is here under a name of its own (DNS rebinding): requests name a host by its address, as
//! localhost, or by a name in `archipel.http_hosts`.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

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
}

const HEAD_BYTES_MAX: usize = 8 * 1024;
const CONNECTIONS_MAX: usize = 64;
const DEADLINE: Duration = Duration::from_secs(5);
const PAGE: &str = include_str!("page.html");

/// Serves until the task is dropped.
pub async fn serve(listener: TcpListener, facts: Arc<dyn Facts>) {
    // In the order they came.
    let mut served: VecDeque<JoinHandle<()>> = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let facts = facts.clone();
                served.retain(|client| !client.is_finished());
                if served.len() >= CONNECTIONS_MAX
                    && let Some(oldest) = served.pop_front()
                {
                    oldest.abort();
                }
                served.push_back(tokio::spawn(async move {
                    // Past the deadline, or when the client went away, there is nobody to tell.
                    let _ = tokio::time::timeout(DEADLINE, answer(stream, facts)).await;
                }));
            }
            // Out of file descriptors, most likely: others will close theirs.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn answer(mut stream: TcpStream, facts: Arc<dyn Facts>) -> std::io::Result<()> {
    let mut head = Vec::with_capacity(1024);
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        if head.len() >= HEAD_BYTES_MAX {
            return respond(&mut stream, false, "431 Request Header Fields Too Large", TEXT, "").await;
        }
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let head_only = method == "HEAD";
    if method != "GET" && !head_only {
        return respond(&mut stream, false, "405 Method Not Allowed", TEXT, "only GET and HEAD\n").await;
    }
    let head = String::from_utf8_lossy(&head);
    // Of two, whoever passed the request on may have looked at the other one; and from 1.1 on there is one.
    let (named, needed) = (hosts(&head).count(), usize::from(words.next() == Some("HTTP/1.1")));
    if named > 1 || named < needed {
        return respond(&mut stream, head_only, "400 Bad Request", TEXT, "one Host header is needed\n").await;
    }
    if !hosts(&head).all(|host| names_this_host(host, &*facts)) {
        let answer = "this server is not known under that name (archipel.http_hosts)\n";
        return respond(&mut stream, head_only, "421 Misdirected Request", TEXT, answer).await;
    }
    let path = target.split('?').next().unwrap_or_default();
    let (status, kind, body) = match path {
        "/" => ("200 OK", "text/html; charset=utf-8", PAGE.to_owned()),
        "/healthz" => ("200 OK", TEXT, "ok\n".to_owned()),
        "/readyz" if facts.ready() => ("200 OK", TEXT, "ready\n".to_owned()),
        "/readyz" => ("503 Service Unavailable", TEXT, "not ready\n".to_owned()),
        "/metrics" => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", facts.metrics()),
        "/stats" => ("200 OK", "application/json", facts.stats()),
        _ => ("404 Not Found", TEXT, "not found\n".to_owned()),
    };
    respond(&mut stream, head_only, status, kind, &body).await
}

/// What the Host headers of a request name.
fn hosts(head: &str) -> impl Iterator<Item = &str> {
    head.lines().skip(1).filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        // No name has blanks at its end, but whoever reads on behind them reads a name.
        name.trim().eq_ignore_ascii_case("host").then(|| value.trim())
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
    stream: &mut TcpStream,
    head_only: bool,
    status: &str,
    kind: &str,
    body: &str,
) -> std::io::Result<()> {
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if !head_only {
        answer.push_str(body);
    }
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
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
    }

    async fn request(text: &[u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve(listener, Arc::new(Fixed)));
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
    async fn clients_that_are_slow_to_ask_keep_nobody_waiting() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve(listener, Arc::new(Fixed)));
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
}
