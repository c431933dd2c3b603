//! What the settings `ssl_*` and their files come to: what handshakes go by.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use archipel_wire::tls::TlsFacts;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CipherSuite, ProtocolVersion, RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion,
    version,
};

use super::error::TlsError;
use super::{certificate, files, passphrase, suites};
use crate::config::Config;

/// The protocol that clients name where they begin with TLS, without asking first (RFC 7301).
pub(super) const ALPN: &[u8] = b"postgresql";

/// The one of the HTTP port.
const HTTP_ALPN: &[u8] = b"http/1.1";

/// What handshakes go by.
pub struct TlsContext {
    /// For PostgreSQL's clients; `None`: theirs are plain.
    pub clients: Option<Arc<ServerConfig>>,
    /// For those of the HTTP port; `None`: theirs are plain.
    pub http: Option<Arc<ServerConfig>>,
    server_end_point: Vec<u8>,
}

/// When files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Start,
    Reload,
}

/// What a configuration says; `None`: TLS is off. Reads files, and may run `ssl_passphrase_command`.
pub(super) fn read(config: &Config, moment: Moment) -> Result<Option<TlsContext>, TlsError> {
    let (for_clients, for_http) = (config.boolean("ssl"), config.boolean("archipel.http_tls"));
    if !for_clients && !for_http {
        return Ok(None);
    }
    let provider = Arc::new(provider(config)?);
    let versions = versions(config)?;
    let (key, server_end_point) = certified_key(config, &provider, moment)?;
    let resolver = Arc::new(SingleCertAndKey::from(key));
    let built = |verifier: Arc<dyn ClientCertVerifier>, protocol: &[u8]| {
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(|error| TlsError(format!("could not set SSL protocol version range: {error}")))?;
        let mut built = builder.with_client_cert_verifier(verifier).with_cert_resolver(resolver.clone());
        built.ignore_client_order = config.boolean("ssl_prefer_server_ciphers");
        built.alpn_protocols = vec![protocol.to_vec()];
        // As PostgreSQL's: every connection has a handshake of its own, and nothing is remembered of it.
        built.session_storage = Arc::new(NoServerSessionStorage {});
        built.send_tls13_tickets = 0;
        Ok::<_, TlsError>(Arc::new(built))
    };
    if !config.text("ssl_dh_params_file").is_empty() {
        tracing::warn!(
            "ssl_dh_params_file has no effect: keys are agreed on by elliptic curves (ssl_ecdh_curve)"
        );
    }
    let clients = for_clients.then(|| built(verifier(config, &provider)?, ALPN)).transpose()?;
    let http = for_http.then(|| built(WebPkiClientVerifier::no_client_auth(), HTTP_ALPN)).transpose()?;
    Ok(Some(TlsContext { clients, http, server_end_point }))
}

/// The file that a setting names, relative to the data directory; `None`: it names none.
fn file(config: &Config, setting: &str) -> Option<PathBuf> {
    let name = config.text(setting);
    (!name.is_empty()).then(|| config.data_directory.join(name))
}

/// The versions of the protocol that may be spoken.
pub(super) fn versions(config: &Config) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
    let (least, most) = (config.text("ssl_min_protocol_version"), config.text("ssl_max_protocol_version"));
    let mut versions = Vec::new();
    if least == "TLSv1.2" {
        versions.push(&version::TLS12);
    }
    if most != "TLSv1.2" {
        versions.push(&version::TLS13);
    }
    if versions.is_empty() {
        return Err(TlsError(
            "could not set SSL protocol version range: \"ssl_min_protocol_version\" cannot be higher than \
             \"ssl_max_protocol_version\""
                .to_owned(),
        ));
    }
    Ok(versions)
}

/// The cryptography, with the suites and curves that are allowed.
pub(super) fn provider(config: &Config) -> Result<CryptoProvider, TlsError> {
    let mut provider = rustls::crypto::ring::default_provider();
    let allowed = suites::allowed(config.text("ssl_ciphers"))?;
    let place = |suite: CipherSuite| allowed.iter().position(|allowed| *allowed == suite);
    // Those of TLS 1.3 are no part of the list, as in OpenSSL.
    provider.cipher_suites.retain(|suite| suite.tls13().is_some() || place(suite.suite()).is_some());
    provider
        .cipher_suites
        .sort_by_key(|suite| if suite.tls13().is_some() { None } else { place(suite.suite()) });
    provider.kx_groups = suites::curves(config.text("ssl_ecdh_curve"))?;
    Ok(provider)
}

/// The server's own certificate and key, which belong together, and the hash that channel binding takes.
fn certified_key(
    config: &Config,
    provider: &CryptoProvider,
    moment: Moment,
) -> Result<(CertifiedKey, Vec<u8>), TlsError> {
    let missing = |setting: &str| TlsError(format!("{setting} names no file, and TLS is on"));
    let chain_file = file(config, "ssl_cert_file").ok_or_else(|| missing("ssl_cert_file"))?;
    let key_file = file(config, "ssl_key_file").ok_or_else(|| missing("ssl_key_file"))?;
    let unusable = |reason: String| {
        TlsError(format!("could not load server certificate file \"{}\": {reason}", chain_file.display()))
    };
    let chain = files::certificates(&chain_file, "server certificate file")?;
    // There is one: a file without is an error.
    let own: &[u8] = chain.first().map(|own| &**own).unwrap_or_default();
    let parsed = certificate::parse(own).map_err(&unusable)?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    if certificate::has_expired(&parsed, now.as_secs() as i64) {
        return Err(unusable("certificate has expired".to_owned()));
    }
    let key = files::private_key(&key_file, || asked_passphrase(config, &key_file, moment))?;
    let key = provider.key_provider.load_private_key(key).map_err(|error| {
        TlsError(format!("could not load private key file \"{}\": {error}", key_file.display()))
    })?;
    // A public key ends its own description.
    let public = parsed.public_key_data();
    if key.public_key().is_some_and(|description| !description.ends_with(&public)) {
        return Err(TlsError(format!(
            "could not load private key file \"{}\": key values mismatch",
            key_file.display()
        )));
    }
    let server_end_point = certificate::server_end_point(own, &parsed);
    Ok((CertifiedKey::new(chain, key), server_end_point))
}

/// The passphrase of the key, where one may be asked for.
fn asked_passphrase(config: &Config, key_file: &Path, moment: Moment) -> Result<Vec<u8>, TlsError> {
    let command = config.text("ssl_passphrase_command");
    let refused = |what: &str| TlsError(format!("private key file \"{}\" {what}", key_file.display()));
    if command.is_empty() {
        let what = "cannot be loaded because it requires a passphrase: ssl_passphrase_command is to tell it";
        return Err(refused(what));
    }
    if moment == Moment::Reload && !config.boolean("ssl_passphrase_command_supports_reload") {
        return Err(refused("cannot be reloaded because it requires a passphrase"));
    }
    passphrase::told_by(command)
}

/// The lists of certificates that count no more; none where no setting names any.
fn revoked(config: &Config) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let mut lists = Vec::new();
    if let Some(path) = file(config, "ssl_crl_file") {
        lists.extend(files::revocations(&path)?);
    }
    if let Some(path) = file(config, "ssl_crl_dir") {
        lists.extend(files::revocations_in(&path)?);
    }
    Ok(lists)
}

/// Who looks at the certificates of clients: they are asked for one, and need not have one.
fn verifier(
    config: &Config,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let revoked = revoked(config)?;
    let Some(path) = file(config, "ssl_ca_file") else {
        return Ok(WebPkiClientVerifier::no_client_auth());
    };
    let unusable = |reason: String| {
        TlsError(format!("could not load root certificate file \"{}\": {reason}", path.display()))
    };
    let mut roots = RootCertStore::empty();
    for root in files::certificates(&path, "root certificate file")? {
        roots.add(root).map_err(|error| unusable(error.to_string()))?;
    }
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated();
    if !revoked.is_empty() {
        builder = builder.with_crls(revoked).enforce_revocation_expiration();
    }
    builder.build().map_err(|error| match &error {
        VerifierBuilderError::InvalidCrl(_) => {
            let named = [file(config, "ssl_crl_file"), file(config, "ssl_crl_dir")];
            let named: Vec<String> =
                named.into_iter().flatten().map(|path| format!("\"{}\"", path.display())).collect();
            let named = named.join(" or ");
            TlsError(format!("could not load SSL certificate revocation list file {named}: {error}"))
        }
        _ => unusable(error.to_string()),
    })
}

impl TlsContext {
    /// What a connection has agreed on. An error if the client's certificate is trusted and cannot be read.
    pub(super) fn facts(&self, connection: &ServerConnection) -> Result<TlsFacts, String> {
        let suite = connection.negotiated_cipher_suite().ok_or("no cipher suite was agreed on")?;
        let (cipher, bits) = suites::name(suite.suite());
        let own = |certificates: &[CertificateDer<'_>]| {
            certificates.first().map(|own| certificate::client(own)).transpose()
        };
        Ok(TlsFacts {
            protocol: match connection.protocol_version() {
                Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
                _ => "TLSv1.3",
            },
            cipher,
            bits,
            server_end_point: self.server_end_point.clone(),
            client: connection.peer_certificates().map(own).transpose()?.flatten(),
        })
    }
}
