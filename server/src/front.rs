//! The front door: accepts connections and reads their opening packets on a thread of its own,
//! so that a cancel request gets through while every executor is busy, and so that an executor
//! only ever sees clients that have said who they are ([`crate::authentication`]). [`negotiation`]:
//! whether they are encrypted; [`refusal`]: who is turned away.

mod negotiation;
mod refusal;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use archipel_sql::error::{SqlError, SqlState};
use negotiation::Negotiation;
use refusal::refuse;
use tokio::sync::mpsc::UnboundedSender;

use crate::authentication::admission::Stranger;
use crate::authentication::lobby::{Guest, Lobby, too_slow};
use crate::authentication::state;
use crate::session::belongings::MovingSession;
use crate::sessions::Sessions;
use crate::tls::ServerTls;
use crate::wire::frame::SMALL_MESSAGE_BYTES_MAX;
use crate::wire::output::{Output, Severity};
use crate::wire::socket::{Socket, Transport};
use crate::wire::startup::{Opening, opening};

/// Somebody for an executor to serve.
pub enum Arrival {
    Client(NewClient),
    /// A session that another executor served until now.
    Session(Box<MovingSession>),
}

impl Arrival {
    /// Tells it that the server goes down: nobody will serve it any more.
    pub fn turn_away(self) {
        let (transport, error) = match self {
            Arrival::Client(client) => (client.transport, shutting_down()),
            Arrival::Session(session) => (
                session.into_transport(),
                SqlError::new(
                    SqlState::ADMIN_SHUTDOWN,
                    "terminating connection due to administrator command",
                ),
            ),
        };
        let mut output = Output::new();
        output.report(Severity::Fatal, &error);
        transport.end_with(output.as_slice());
    }
}

/// A client's address as PostgreSQL shows it, whose sockets are of one family each: one that comes by IPv4 to
/// a socket for both has its IPv4 address.
fn canonical(client: SocketAddr) -> SocketAddr {
    match client.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, client.port()),
        IpAddr::V6(_) => client,
    }
}

/// Bytes sent before the answer could have been put there by somebody else.
fn unencrypted_data_after(request: &Opening) -> SqlError {
    let what = match request {
        Opening::GssEncryptionRequest => "GSSAPI encryption request",
        _ => "SSL request",
    };
    let message = format!("received unencrypted data after {what}");
    SqlError::new(SqlState::PROTOCOL_VIOLATION, message).with_detail(
        "This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.",
    )
}

fn shutting_down() -> SqlError {
    SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the database system is shutting down")
}

/// A client that asked to start a session, and has shown who it is.
pub struct NewClient {
    pub transport: Transport,
    /// `None` for a Unix socket.
    pub client: Option<SocketAddr>,
    pub minor_version: u16,
    pub parameters: Vec<(String, String)>,
    /// Bytes it sent after the startup packet.
    pub rest: Vec<u8>,
}

/// One executor's door.
pub struct Door {
    arrivals: UnboundedSender<Arrival>,
    /// How many sessions the executor serves, arrivals underway included.
    pub sessions: Arc<AtomicUsize>,
    /// Whether the executor has a core.
    open: AtomicBool,
}

impl Door {
    pub fn new(arrivals: UnboundedSender<Arrival>) -> Door {
        Door { arrivals, sessions: Arc::default(), open: AtomicBool::new(false) }
    }

    fn let_in(&self, arrival: Arrival) {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        if let Err(refused) = self.arrivals.send(arrival) {
            self.sessions.fetch_sub(1, Ordering::Relaxed);
            refused.0.turn_away();
        }
    }
}

/// The doors of all executors there may ever be.
pub struct Doors(pub Vec<Door>);

impl Doors {
    /// Opens the door of an executor for new clients, or shuts it.
    pub fn set_open(&self, executor: u16, open: bool) {
        if let Some(door) = self.0.get(usize::from(executor)) {
            door.open.store(open, Ordering::Release);
        }
    }

    pub fn is_open(&self, executor: u16) -> bool {
        self.0.get(usize::from(executor)).is_some_and(|door| door.open.load(Ordering::Acquire))
    }

    /// Those whose doors are open.
    pub fn open(&self) -> Vec<u16> {
        (0..self.0.len() as u16).filter(|executor| self.is_open(*executor)).collect()
    }

    /// Shows a new client the door of the executor with the fewest sessions.
    pub fn welcome(&self, client: NewClient) {
        let open = self.0.iter().filter(|door| door.open.load(Ordering::Acquire));
        let quietest = open.min_by_key(|door| door.sessions.load(Ordering::Relaxed));
        if let Some(door) = quietest {
            door.let_in(Arrival::Client(client));
        }
    }

    /// Sends a session to the executor it goes to.
    pub fn forward(&self, session: MovingSession) {
        if let Some(door) = self.0.get(usize::from(session.destination())) {
            door.let_in(Arrival::Session(Box::new(session)));
        }
    }
}

/// The front door.
pub struct Front {
    pub doors: Arc<Doors>,
    pub sessions: Arc<Sessions>,
    pub tls: Arc<ServerTls>,
    pub closing: Arc<AtomicBool>,
    /// What authentication has to know.
    pub host: Arc<dyn state::Host>,
}

impl Front {
    /// Accepts clients of a listening socket, one of so many, in the current runtime, until the task is
    /// dropped.
    pub async fn serve(self: Arc<Self>, listener: Socket, listeners: usize) {
        let lobby = Lobby::one_of(listeners);
        loop {
            lobby.room().await;
            match listener.accept().await {
                Ok((socket, address)) => {
                    let (front, place) = (self.clone(), lobby.enter());
                    let client = address.as_socket().map(canonical);
                    let guest = place.guest();
                    tokio::spawn(async move {
                        let limit = state::time_limit(&*front.host);
                        place.occupied_by(limit, front.admit(socket, client, &guest)).await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn admit(
        &self,
        socket: socket2::Socket,
        client: Option<SocketAddr>,
        guest: &Guest,
    ) -> std::io::Result<()> {
        if client.is_some() {
            socket.set_tcp_nodelay(true)?;
        }
        let mut socket = Socket::new(socket)?;
        let mut pending: Vec<u8> = Vec::with_capacity(1024);
        let mut room = [0; 1024];
        let mut negotiation = Negotiation::new(&self.tls, client, guest);
        loop {
            if negotiation.begins_with_tls(&socket, &pending) {
                let arrived = std::mem::take(&mut pending);
                let Some(begun) = negotiation.begin_with_tls(socket, arrived).await? else { return Ok(()) };
                socket = begun;
            }
            match opening(&pending) {
                Ok(None) if pending.len() > SMALL_MESSAGE_BYTES_MAX => return Ok(()),
                Ok(None) => {
                    let Some(said) = guest.says(socket.read(&mut room)).await else {
                        return refuse(&socket, &too_slow()).await;
                    };
                    let count = said?;
                    if count == 0 {
                        return Ok(());
                    }
                    pending.extend_from_slice(&room[..count]);
                }
                Ok(Some((request @ (Opening::SslRequest | Opening::GssEncryptionRequest), length))) => {
                    if let Err(error) = negotiation.note(&request, &socket) {
                        return refuse(&socket, &error).await;
                    }
                    if pending.len() > length {
                        return refuse(&socket, &unencrypted_data_after(&request)).await;
                    }
                    pending.clear();
                    let Some(answered) = negotiation.answer(&request, socket).await? else { return Ok(()) };
                    socket = answered;
                }
                Ok(Some((Opening::Cancel { process_id, secret }, _))) => {
                    self.sessions.cancel(process_id, &secret);
                    socket.end_encryption();
                    return Ok(());
                }
                Ok(Some((Opening::Startup { minor_version, parameters }, length))) => {
                    if self.closing.load(Ordering::Acquire) {
                        return refuse(&socket, &shutting_down()).await;
                    }
                    let rest = pending.split_off(length);
                    let (host, said) = (&*self.host, &parameters);
                    let stranger =
                        Stranger { host, socket: &socket, guest, client, minor_version, parameters: said };
                    let rest = match stranger.authenticate(rest).await? {
                        Ok(rest) => rest,
                        Err(error) => return refuse(&socket, &error).await,
                    };
                    let transport = socket.into_inner();
                    self.doors.welcome(NewClient { transport, client, minor_version, parameters, rest });
                    return Ok(());
                }
                Err(error) => return refuse(&socket, &error).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn clients_have_the_addresses_they_come_from() {
        for (client, shown) in [
            ("[::ffff:127.0.0.1]:7", "127.0.0.1:7"),
            ("127.0.0.1:7", "127.0.0.1:7"),
            ("[::1]:7", "[::1]:7"),
            ("[2001:db8::1]:7", "[2001:db8::1]:7"),
        ] {
            assert_eq!(canonical(client.parse().unwrap()).to_string(), shown);
        }
    }

    #[test]
    fn a_client_at_a_door_that_has_closed_is_told() {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        let doors = Doors(vec![Door::new(sender)]);
        doors.set_open(0, true);
        drop(receiver);
        let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().expect("a pair of sockets");
        let transport = socket2::Socket::from(std::os::fd::OwnedFd::from(ours)).into();
        let (parameters, rest) = (Vec::new(), Vec::new());
        doors.welcome(NewClient { transport, client: None, minor_version: 0, parameters, rest });
        let mut told = Vec::new();
        theirs.read_to_end(&mut told).expect("it is told and left");
        let told = String::from_utf8_lossy(&told);
        assert!(told.starts_with('E') && told.contains("57P03"), "{told:?}");
        assert_eq!(doors.0[0].sessions.load(Ordering::Relaxed), 0);
    }
}
