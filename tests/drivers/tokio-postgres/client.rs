//! How a program connects with tokio-postgres, over rustls, and what all its checks use.

use std::sync::{Arc, Mutex};

use checks::{Outcome, equal, failure, refusal, url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::DbError;
use tokio_postgres::types::{FromSqlOwned, ToSql};
use tokio_postgres::{AsyncMessage, Client, Config, Error, GenericClient, NoTls, Notification};
use tokio_postgres_rustls::MakeRustlsConnect;

pub type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// What tokio-postgres understands of the URL: certificates are the business of rustls.
pub fn config() -> Outcome<Config> {
    let url = url();
    let (place, options) = url.split_once('?').unwrap_or((&url, ""));
    let mut config: Config = place.parse()?;
    config.ssl_mode(if options.contains("sslmode=verify-full") {
        SslMode::Require
    } else {
        SslMode::Disable
    });
    Ok(config)
}

/// TLS that knows the server by this root.
pub fn encryption(root: Option<&str>) -> Outcome<MakeRustlsConnect> {
    let mut roots = rustls::RootCertStore::empty();
    if let Some(root) = root {
        for certificate in CertificateDer::pem_file_iter(root)? {
            roots.add(certificate?)?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// The root that the URL names.
pub fn root() -> Option<String> {
    url().split_once("sslrootcert=").map(|(_, path)| path.to_owned())
}

pub fn tls() -> Outcome<MakeRustlsConnect> {
    encryption(root().as_deref())
}

/// What the server said without being asked.
#[derive(Default, Clone)]
pub struct Told {
    pub notices: Arc<Mutex<Vec<DbError>>>,
    pub notifications: Arc<Mutex<Vec<Notification>>>,
}

/// Connects and hears what the server says; an error of the connection ends it in silence, and the
/// client's calls fail.
pub async fn connect_as(config: &Config) -> Outcome<(Client, Told)> {
    let told = Told::default();
    let client = if config.get_ssl_mode() == SslMode::Disable {
        let (client, connection) = config.connect(NoTls).await?;
        hear(connection, told.clone());
        client
    } else {
        let (client, connection) = config.connect(tls()?).await?;
        hear(connection, told.clone());
        client
    };
    Ok((client, told))
}

fn hear<S, T>(mut connection: tokio_postgres::Connection<S, T>, told: Told)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + 'static,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + 'static,
    tokio_postgres::Connection<S, T>: Send,
{
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
            match message {
                AsyncMessage::Notice(notice) => told.notices.lock().expect("nobody panics").push(notice),
                AsyncMessage::Notification(one) => {
                    told.notifications.lock().expect("nobody panics").push(one)
                }
                _ => {}
            }
        }
    });
}

pub async fn connect() -> Outcome<Client> {
    Ok(connect_as(&config()?).await?.0)
}

/// Fails unless the server refused with this SQLSTATE; all that it said.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(sqlstate: &str, outcome: Result<T, Error>) -> DbError {
    let error = failure(outcome);
    refusal(sqlstate, error.code().map(|code| code.code()), &error);
    error.as_db_error().expect("it has a SQLSTATE").clone()
}

/// The first column of all rows.
pub async fn all<T: FromSqlOwned>(
    on: &impl GenericClient,
    text: &str,
    parameters: Parameters<'_>,
) -> Outcome<Vec<T>> {
    let rows = on.query(text, parameters).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// The only value of the only row.
pub async fn one<T: FromSqlOwned>(
    on: &impl GenericClient,
    text: &str,
    parameters: Parameters<'_>,
) -> Outcome<T> {
    Ok(on.query_one(text, parameters).await?.try_get(0)?)
}

pub async fn usable(on: &impl GenericClient) -> Outcome {
    equal(one::<i32>(on, "SELECT 40 + $1::int", &[&2]).await?, 42);
    Ok(())
}
