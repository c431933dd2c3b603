//! What is known of a connection that is encrypted: for authentication, channel binding and
//! `pg_stat_ssl`; and [`session`], its encryption.

pub mod session;

/// An encrypted connection's facts, fixed when its handshake has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFacts {
    /// As PostgreSQL names it: `TLSv1.2`, `TLSv1.3`.
    pub protocol: &'static str,
    /// As OpenSSL names it: `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// Bits of the cipher's key.
    pub bits: i32,
    /// The server certificate's hash, as channel binding takes it (`tls-server-end-point`, RFC 5929
    /// section 4). Empty where none is defined: of an Ed25519 certificate, for one.
    pub server_end_point: Vec<u8>,
    /// The client's certificate, if it has shown one that is trusted.
    pub client: Option<ClientCertificate>,
}

/// What a client's certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The subject's distinguished name as PostgreSQL shows it: `/C=DE/CN=ann`.
    pub subject: String,
    /// The same as RFC 2253 has it, the last part first and every part unmistakable: `CN=ann,C=DE`.
    pub distinguished_name: String,
    /// The subject's first common name, as PostgreSQL takes it. None if it has a zero byte.
    pub common_name: Option<String>,
    /// The serial number, in decimal.
    pub serial: String,
    /// The issuer's distinguished name.
    pub issuer: String,
}
