//! Who a client is: by the first line of the rules that is about it, and by what that line asks of it
//! (auth.c).
//!
//! Whatever goes wrong, a client is told the same for a role that there is and one that there is not: the log
//! alone has the reason. Whether a role may log in at all is asked afterwards, by the session.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use archipel_sql::error::{SqlError, SqlState};
use archipel_sql::password::{Md5Verifier, ScramVerifier, Verifier};
use archipel_sql::strong_random::random_bytes;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::exchange::{Exchange, Failure, SASL_BYTES_MAX, initial_data, mechanism, violation};
use super::hba::{ClientCertificateCheck, ClientName, HbaLine, Method};
use super::host_name::HostName;
use super::ident;
use super::lobby::Guest;
use super::names::names_of;
use super::peer;
use super::rules::{Applicant, Rules};
use super::scram::{PLAIN, PLUS, Scram};
use super::state::{Authentication, Host, is_on, text_of};
use crate::wire::socket::Socket;
use crate::wire::startup::MINOR_VERSION_MAX;

/// Somebody who has sent a startup packet.
pub struct Stranger<'s> {
    pub host: &'s dyn Host,
    pub socket: &'s Socket,
    pub guest: &'s Guest,
    /// `None`: it came through a Unix socket.
    pub client: Option<SocketAddr>,
    pub minor_version: u16,
    pub parameters: &'s [(String, String)],
}

/// What a client has proved: `Some`: nothing, and why not.
type Doubt = Option<String>;

/// A role's verifier, or why there is none that counts.
enum Kept {
    Scram(ScramVerifier),
    Md5(Md5Verifier),
    Nothing(String),
}

/// One client and what is known of it.
struct Case<'c> {
    stranger: &'c Stranger<'c>,
    applicant: Arc<Applicant>,
}

impl Stranger<'_> {
    /// Finds out who it is; answers what it has sent after that. `pending` is what came after the startup
    /// packet. An outer error needs no answer, an inner one is the answer.
    pub async fn authenticate(&self, pending: Vec<u8>) -> io::Result<Result<Vec<u8>, SqlError>> {
        let mut exchange = Exchange::new(self.socket, self.guest, pending);
        match self.prove(&mut exchange).await {
            Ok(()) => Ok(Ok(exchange.into_rest())),
            Err(Failure::Refused(error)) => Ok(Err(error)),
            Err(Failure::Gone(error)) => Err(error),
        }
    }

    async fn prove(&self, exchange: &mut Exchange<'_>) -> Result<(), Failure> {
        let (user, database) = names_of(self.parameters)?;
        self.negotiate_version(exchange).await?;
        let catalog = self.host.catalog().ok_or_else(|| {
            SqlError::new(SqlState::CANNOT_CONNECT_NOW, "the database system is not accepting connections")
        })?;
        let applicant = Applicant {
            address: self.client.map(|client| client.ip()),
            name: HostName::default(),
            encrypted: self.socket.tls().is_some(),
            user,
            database,
            catalog,
        };
        let case = Case { stranger: self, applicant: Arc::new(applicant) };
        case.prove(&self.host.authentication().rules(), exchange).await
    }

    /// Tells a client that asks for more than is spoken here what is.
    async fn negotiate_version(&self, exchange: &Exchange<'_>) -> Result<(), Failure> {
        let names = self.parameters.iter().map(|(name, _)| name.as_str());
        let unknown: Vec<&str> = names.filter(|name| name.starts_with("_pq_.")).collect();
        if self.minor_version <= MINOR_VERSION_MAX && unknown.is_empty() {
            return Ok(());
        }
        let minor = self.minor_version.min(MINOR_VERSION_MAX);
        exchange.send(|output| output.negotiate_protocol_version(minor, &unknown)).await
    }
}

impl Case<'_> {
    fn authentication(&self) -> &Authentication {
        self.stranger.host.authentication()
    }

    fn address(&self) -> String {
        self.stranger.client.map_or_else(|| "[local]".to_owned(), |client| client.ip().to_string())
    }

    async fn prove(&self, rules: &Arc<Rules>, exchange: &mut Exchange<'_>) -> Result<(), Failure> {
        let Some(line) = self.authentication().find(rules, &self.applicant).await? else {
            return Err(self.rejected("no pg_hba.conf entry for").into());
        };
        let line = &*line;
        if line.method == Method::Reject {
            return Err(self.rejected("pg_hba.conf rejects connection for").into());
        }
        self.check_certificate(line)?;
        let mut doubt = match line.method {
            Method::Password => self.password(exchange).await?,
            Method::Md5 | Method::ScramSha256 => self.challenge(line.method, exchange).await?,
            Method::Peer => self.peer(line, rules).await?,
            Method::Trust | Method::Cert | Method::Reject => None,
        };
        if doubt.is_none() && line.client_certificate == ClientCertificateCheck::VerifyFull {
            doubt = self.certified_name(line, rules);
        }
        match doubt {
            None => {
                self.log_connection(line);
                Ok(())
            }
            Some(reason) => {
                self.log_failure(line, &reason);
                self.authentication().delay().await;
                Err(self.failed(line.method).into())
            }
        }
    }

    /// The error of a client that no line lets in, or that one keeps out.
    fn rejected(&self, what: &str) -> SqlError {
        let encryption = match self.stranger.socket.tls() {
            Some(_) => "SSL encryption",
            None => "no encryption",
        };
        let message = format!(
            "{what} host \"{}\", user \"{}\", database \"{}\", {encryption}",
            self.address(),
            self.applicant.user,
            self.applicant.database
        );
        tracing::warn!("{message:?}");
        SqlError::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message)
    }

    /// The error of a client that has not proved to be whom it says (auth_failed).
    fn failed(&self, method: Method) -> SqlError {
        let (state, what) = match method {
            Method::Password | Method::Md5 | Method::ScramSha256 => {
                (SqlState::INVALID_PASSWORD, "password authentication")
            }
            Method::Peer => (SqlState::INVALID_AUTHORIZATION_SPECIFICATION, "Peer authentication"),
            Method::Cert => (SqlState::INVALID_AUTHORIZATION_SPECIFICATION, "certificate authentication"),
            Method::Trust => (SqlState::INVALID_AUTHORIZATION_SPECIFICATION, "\"trust\" authentication"),
            Method::Reject => (SqlState::INVALID_AUTHORIZATION_SPECIFICATION, "authentication"),
        };
        SqlError::new(state, format!("{what} failed for user \"{}\"", self.applicant.user))
    }

    /// Texts that a client has chosen are shown with their control characters escaped.
    fn log_failure(&self, line: &HbaLine, reason: &str) {
        tracing::warn!(
            user = ?self.applicant.user,
            database = ?self.applicant.database,
            host = self.address(),
            method = line.method.as_str(),
            reason = ?reason,
            "authentication failed; connection matched pg_hba.conf line {}: {:?}",
            line.number,
            line.text
        );
    }

    fn log_connection(&self, line: &HbaLine) {
        if is_on(self.stranger.host, "log_connections") {
            tracing::info!(
                user = ?self.applicant.user,
                database = ?self.applicant.database,
                host = self.address(),
                port = self.stranger.client.map(|client| client.port()),
                method = line.method.as_str(),
                encryption = self.stranger.socket.tls().map(|tls| tls.protocol),
                "connection authenticated: pg_hba.conf line {}",
                line.number
            );
        }
    }

    /// That a client has a certificate, where the line asks for one.
    fn check_certificate(&self, line: &HbaLine) -> Result<(), SqlError> {
        if line.client_certificate == ClientCertificateCheck::Off {
            return Ok(());
        }
        if text_of(self.stranger.host, "ssl_ca_file").is_empty() {
            let message = "client certificates can only be checked if a root certificate store is available";
            return Err(SqlError::new(SqlState(*b"F0000"), message));
        }
        let certificate = self.stranger.socket.tls().and_then(|tls| tls.client.as_ref());
        if certificate.is_none() {
            let message = "connection requires a valid client certificate";
            return Err(SqlError::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message));
        }
        Ok(())
    }

    /// That the name in its certificate may come in as the role (CheckCertAuth).
    fn certified_name(&self, line: &HbaLine, rules: &Rules) -> Doubt {
        let certificate = self.stranger.socket.tls().and_then(|tls| tls.client.as_ref());
        let name = certificate.and_then(|certificate| match line.client_name {
            ClientName::Common => certificate.common_name.as_deref(),
            ClientName::Distinguished => Some(certificate.distinguished_name.as_str()),
        });
        match name.filter(|name| !name.is_empty()) {
            Some(name) => ident::check(&rules.ident, line.map.as_deref(), name, &self.applicant.user).err(),
            None => Some("client certificate contains no user name".to_owned()),
        }
    }

    /// That the user at the other end of the Unix socket may come in as the role.
    async fn peer(&self, line: &HbaLine, rules: &Rules) -> io::Result<Doubt> {
        let id = match peer::user_id(self.stranger.socket) {
            Ok(id) => id,
            Err(error) => return Ok(Some(format!("could not get peer credentials: {error}"))),
        };
        Ok(match self.authentication().user_name(id).await? {
            Ok(name) => ident::check(&rules.ident, line.map.as_deref(), &name, &self.applicant.user).err(),
            Err(reason) => Some(reason),
        })
    }

    /// The role's verifier (get_role_password).
    fn kept(&self) -> Kept {
        let user = &self.applicant.user;
        let Some(role) = self.applicant.catalog.catalog.role(user) else {
            return Kept::Nothing(format!("Role \"{user}\" does not exist."));
        };
        let Some(password) = &role.password else {
            return Kept::Nothing(format!("User \"{user}\" has no password assigned."));
        };
        if role.valid_until.is_some_and(|until| until < crate::clock::now()) {
            return Kept::Nothing(format!("User \"{user}\" has an expired password."));
        }
        match Verifier::parse(password) {
            Some(Verifier::Md5(verifier)) => Kept::Md5(verifier),
            Some(Verifier::Scram(verifier)) => Kept::Scram(verifier),
            None => Kept::Nothing(format!("Password of user \"{user}\" is in unrecognized format.")),
        }
    }

    fn mismatch(&self) -> String {
        format!("Password does not match for user \"{}\".", self.applicant.user)
    }

    /// A password as it is (CheckPasswordAuth).
    async fn password(&self, exchange: &mut Exchange<'_>) -> Result<Doubt, Failure> {
        exchange.send(|output| output.authentication_cleartext_password()).await?;
        let password = exchange.password().await?;
        let (verifier, reason) = match self.kept() {
            Kept::Scram(verifier) => (Verifier::Scram(verifier), None),
            Kept::Md5(verifier) => (Verifier::Md5(verifier), None),
            // As long as with a role that has one.
            Kept::Nothing(reason) => {
                (Verifier::Scram(self.authentication().mock(&self.applicant.user)), Some(reason))
            }
        };
        let fits = self.authentication().fits(verifier, password, self.applicant.user.clone()).await?;
        Ok(reason.or_else(|| (!fits).then(|| self.mismatch())))
    }

    /// An exchange that does not show the password: which one, what is kept says (CheckPWChallengeAuth).
    async fn challenge(&self, method: Method, exchange: &mut Exchange<'_>) -> Result<Doubt, Failure> {
        let kept = self.kept();
        let is_md5 = match &kept {
            Kept::Md5(_) => true,
            Kept::Scram(_) => false,
            Kept::Nothing(_) => text_of(self.stranger.host, "password_encryption") == "md5",
        };
        if method == Method::Md5 && is_md5 {
            self.md5(kept, exchange).await
        } else {
            self.scram(kept, exchange).await
        }
    }

    async fn md5(&self, kept: Kept, exchange: &mut Exchange<'_>) -> Result<Doubt, Failure> {
        let salt: [u8; 4] = random_bytes()?;
        exchange.send(|output| output.authentication_md5_password(salt)).await?;
        let response = exchange.password().await?;
        Ok(match kept {
            Kept::Md5(verifier) if verifier.accepts(&response, salt) => None,
            Kept::Md5(_) => Some(self.mismatch()),
            Kept::Nothing(reason) => Some(reason),
            Kept::Scram(_) => Some(format!(
                "User \"{}\" has a password that cannot be used with MD5 authentication.",
                self.applicant.user
            )),
        })
    }

    async fn scram(&self, kept: Kept, exchange: &mut Exchange<'_>) -> Result<Doubt, Failure> {
        let mock = || self.authentication().mock(&self.applicant.user);
        let (verifier, doomed) = match kept {
            Kept::Scram(verifier) => (verifier, None),
            Kept::Md5(_) => (
                mock(),
                Some(format!("User \"{}\" does not have a valid SCRAM secret.", self.applicant.user)),
            ),
            Kept::Nothing(reason) => (mock(), Some(reason)),
        };
        // Some signatures have no hash that a channel could be bound by (RFC 5929, section 4.1).
        let end_point = self.stranger.socket.tls().map(|tls| tls.server_end_point.as_slice());
        let end_point = end_point.filter(|hash| !hash.is_empty());
        let mechanisms: &[&str] = if end_point.is_some() { &[PLUS, PLAIN] } else { &[PLAIN] };
        exchange.send(|output| output.authentication_sasl(mechanisms)).await?;
        let body = exchange.answer("SASL", SASL_BYTES_MAX).await?;
        let (mechanism, data) = mechanism(&body)?;
        if !mechanisms.iter().any(|known| known.as_bytes() == mechanism) {
            return Err(violation("client selected an invalid SASL authentication mechanism").into());
        }
        let scram = Scram { verifier, end_point, bound: mechanism == PLUS.as_bytes() };
        let first = match initial_data(data)? {
            Some(data) => data.to_vec(),
            // It waits to be asked for it.
            None => {
                exchange.send(|output| output.authentication_sasl_continue("")).await?;
                exchange.answer("SASL", SASL_BYTES_MAX).await?
            }
        };
        let nonce = STANDARD.encode(random_bytes::<18>()?);
        let challenge = scram.challenge(&first, &nonce)?;
        exchange.send(|output| output.authentication_sasl_continue(&challenge.server_first)).await?;
        let last = exchange.answer("SASL", SASL_BYTES_MAX).await?;
        // Looked at in any case, so that it takes as long for a role that there is not.
        match (scram.finish(&challenge, &last)?, doomed) {
            (_, Some(reason)) => Ok(Some(reason)),
            (None, None) => Ok(Some(self.mismatch())),
            (Some(signature), None) => {
                exchange.send(|output| output.authentication_sasl_final(&signature)).await?;
                Ok(None)
            }
        }
    }
}
