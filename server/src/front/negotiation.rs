//! What a client and the front door agree on before the startup packet: whether the connection is
//! encrypted.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use archipel_sql::error::{SqlError, SqlState};

use super::refusal::refuse;
use crate::authentication::lobby::Guest;
use crate::tls::{Encrypted, FIRST_BYTE, ServerTls, TlsContext};
use crate::wire::socket::Socket;
use crate::wire::startup::{MINOR_VERSION_MAX, Opening};

/// See the module's head.
pub(super) struct Negotiation<'f> {
    tls: &'f ServerTls,
    /// `None` for a Unix socket.
    client: Option<SocketAddr>,
    guest: &'f Guest,
    /// What the client has asked for already: each of the two encryptions may be asked for once, and none
    /// inside another.
    asked_tls: bool,
    asked_gss: bool,
}

impl<'f> Negotiation<'f> {
    pub(super) fn new(tls: &'f ServerTls, client: Option<SocketAddr>, guest: &'f Guest) -> Negotiation<'f> {
        Negotiation { tls, client, guest, asked_tls: false, asked_gss: false }
    }

    /// Notes an opening packet that asks for encryption; an error if it may not be asked for now.
    pub(super) fn note(&mut self, opening: &Opening, socket: &Socket) -> Result<(), SqlError> {
        let (asked, code) = match opening {
            Opening::SslRequest => (&mut self.asked_tls, "1234.5679"),
            Opening::GssEncryptionRequest => (&mut self.asked_gss, "1234.5680"),
            Opening::Cancel { .. } | Opening::Startup { .. } => return Ok(()),
        };
        if std::mem::replace(asked, true) || socket.tls().is_some() {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("unsupported frontend protocol {code}: server supports 3.0 to 3.{MINOR_VERSION_MAX}"),
            ));
        }
        Ok(())
    }

    /// Whether a client that has sent these bytes begins with TLS, and may.
    pub(super) fn begins_with_tls(&self, socket: &Socket, pending: &[u8]) -> bool {
        pending.first() == Some(&FIRST_BYTE)
            && socket.tls().is_none()
            && !self.asked_tls
            && self.context().is_some()
    }

    /// What the connection is encrypted with: through a Unix socket nothing goes that others could listen
    /// to, as in PostgreSQL.
    fn context(&self) -> Option<Arc<TlsContext>> {
        self.client?;
        self.tls.context().filter(|context| context.clients.is_some())
    }

    /// Answers who asks for encryption. `None`: the handshake has failed, and the connection is over.
    pub(super) async fn answer(&self, opening: &Opening, socket: Socket) -> io::Result<Option<Socket>> {
        match self.context().filter(|_| *opening == Opening::SslRequest) {
            Some(context) => {
                socket.write_all(b"S").await?;
                let encrypted = self.encrypt(&context, socket, Vec::new()).await;
                Ok(encrypted.map(|encrypted| encrypted.socket))
            }
            None => {
                socket.write_all(b"N").await?;
                Ok(Some(socket))
            }
        }
    }

    /// Meets a client that has begun with TLS. It must have said what it wants to speak: it may have been
    /// led here by somebody between, and want another protocol's server.
    pub(super) async fn begin_with_tls(
        &self,
        socket: Socket,
        arrived: Vec<u8>,
    ) -> io::Result<Option<Socket>> {
        // A reload may have switched it off just now.
        let Some(context) = self.context() else { return Ok(None) };
        match self.encrypt(&context, socket, arrived).await {
            Some(Encrypted { socket, names_protocol: false }) => {
                let message =
                    "received direct SSL connection request without ALPN protocol negotiation extension";
                refuse(&socket, &SqlError::new(SqlState::PROTOCOL_VIOLATION, message)).await?;
                Ok(None)
            }
            encrypted => Ok(encrypted.map(|encrypted| encrypted.socket)),
        }
    }

    /// The connection after its handshake; `None`: that has failed.
    async fn encrypt(&self, context: &TlsContext, socket: Socket, arrived: Vec<u8>) -> Option<Encrypted> {
        let config = context.clients.clone()?;
        match self.tls.accept(context, config, socket, arrived, self.guest).await {
            Ok(encrypted) => Some(encrypted),
            Err(error) => {
                let client = self.client.map(|client| client.to_string()).unwrap_or_default();
                tracing::info!(%client, "{error}");
                None
            }
        }
    }
}
