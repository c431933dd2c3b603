//! What authentication shares between all clients: the rules in force, the server's secret, and bounds on what
//! clients that are not known make the server do.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use archipel_sql::error::SqlError;
use archipel_sql::password::{ScramVerifier, Verifier};
use archipel_sql::strong_random::random_bytes;
use tokio::sync::Semaphore;

use super::exchange::Failure;
use super::hba::HbaLine;
use super::peer;
use super::rules::{Applicant, Offhand, Rules};
use crate::catalog::CatalogState;
use crate::settings::table::find;
use crate::settings::value::Value;

/// The file in the data directory with what mock exchanges are drawn from.
const SECRET_FILE: &str = "mock_authentication_nonce";

/// How long a client that could not say who it is waits for the answer.
const FAILURE_DELAY: Duration = Duration::from_millis(300);
/// So many wait at once; others are told at once, so that nobody holds descriptors by failing.
const DELAYED_MAX: usize = 200;
/// So many passwords are hashed at once: each takes a core for some milliseconds.
const HASHED_MAX: usize = 2;
/// For so many clients at once name servers are asked, each of which may take its time.
const LOOKED_UP_MAX: usize = 32;
/// So many users of this machine are looked up at once.
const USERS_MAX: usize = 8;

/// See the module's head.
pub struct Authentication {
    rules: ArcSwap<Rules>,
    secret: [u8; 32],
    delayed: Semaphore,
    hashed: Arc<Semaphore>,
    looked_up: Arc<Semaphore>,
    users: Arc<Semaphore>,
}

/// What authentication has to know of the server.
pub trait Host: Send + Sync {
    /// Roles and who belongs to whom; `None` while there is no database.
    fn catalog(&self) -> Option<Arc<CatalogState>>;
    /// The values of all settings as of the last reload.
    fn settings(&self) -> Arc<Vec<Value>>;
    /// The rules, and what else all clients share.
    fn authentication(&self) -> &Authentication;
}

/// A setting that is on or off.
pub fn is_on(host: &dyn Host, name: &str) -> bool {
    find(name).is_some_and(|id| host.settings()[id.0] == Value::Bool(true))
}

/// A setting that is a text; empty if there is no such setting.
pub fn text_of(host: &dyn Host, name: &str) -> String {
    match find(name).map(|id| host.settings()[id.0].clone()) {
        Some(Value::Text(text)) => text,
        _ => String::new(),
    }
}

/// How long a client may take to say who it is.
pub fn time_limit(host: &dyn Host) -> Duration {
    match find("authentication_timeout").map(|id| host.settings()[id.0].clone()) {
        Some(Value::Integer(seconds)) => Duration::from_secs(seconds.unsigned_abs()),
        _ => Duration::from_secs(60),
    }
}

impl Authentication {
    /// With these rules, and the secret of this data directory.
    pub fn new(rules: Rules, data_directory: &Path) -> Authentication {
        Authentication {
            rules: ArcSwap::from_pointee(rules),
            secret: secret(&data_directory.join(SECRET_FILE)),
            delayed: Semaphore::new(DELAYED_MAX),
            hashed: Arc::new(Semaphore::new(HASHED_MAX)),
            looked_up: Arc::new(Semaphore::new(LOOKED_UP_MAX)),
            users: Arc::new(Semaphore::new(USERS_MAX)),
        }
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    /// Takes up other rules: for clients from now on.
    pub fn set_rules(&self, rules: Rules) {
        self.rules.store(Arc::new(rules));
    }

    /// The first of these rules' lines that is about a client.
    pub async fn find(
        &self,
        rules: &Arc<Rules>,
        applicant: &Arc<Applicant>,
    ) -> std::io::Result<Option<Arc<HbaLine>>> {
        if let Offhand::Known(found) = rules.find_offhand(applicant) {
            return Ok(found.cloned());
        }
        let (rules, applicant) = (rules.clone(), applicant.clone());
        beside(&self.looked_up, move || rules.find(&applicant).cloned()).await
    }

    /// The name of a user of this machine; says why there is none.
    pub async fn user_name(&self, id: u32) -> std::io::Result<Result<String, String>> {
        beside(&self.users, move || peer::user_name(id)).await
    }

    /// A verifier for somebody who has none.
    pub fn mock(&self, name: &str) -> ScramVerifier {
        ScramVerifier::mock(name, &self.secret)
    }

    /// Lets a client that has failed wait.
    pub async fn delay(&self) {
        if let Ok(_place) = self.delayed.try_acquire() {
            tokio::time::sleep(FAILURE_DELAY).await;
        }
    }

    /// Whether a password fits a verifier: hashed on a thread of its own, for it takes its time.
    pub async fn fits(&self, verifier: Verifier, password: Vec<u8>, user: String) -> Result<bool, Failure> {
        let mock = Verifier::Scram(self.mock(&user));
        Ok(beside(&self.hashed, move || compare(&verifier, &mock, &password, &user)).await??)
    }
}

/// Whether a password fits a verifier: an MD5 hash takes as long as what SCRAM keeps, and as nothing at all.
fn compare(verifier: &Verifier, mock: &Verifier, password: &[u8], user: &str) -> Result<bool, SqlError> {
    if verifier.is_md5() {
        mock.matches(password, user)?;
    }
    verifier.matches(password, user)
}

/// Does what takes its time on a thread of its own, when it is its turn. A client that goes meanwhile leaves
/// its place when the work is done, and no sooner: never is more done at once than there are places.
async fn beside<T: Send + 'static>(
    places: &Arc<Semaphore>,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<T> {
    let place = places.clone().acquire_owned().await.map_err(std::io::Error::other)?;
    let done = tokio::task::spawn_blocking(move || {
        let _place = place;
        work()
    });
    done.await.map_err(std::io::Error::other)
}

/// The secret in a file; a new one if there is none. One that cannot be kept is good until the server stops.
fn secret(path: &Path) -> [u8; 32] {
    if let Some(kept) = std::fs::read(path).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok()) {
        return kept;
    }
    // Without randomness salts could be foretold, but no password.
    let drawn = random_bytes().unwrap_or_else(|error| {
        tracing::warn!(%error, "no secret could be drawn for mock authentication");
        [0; 32]
    });
    let written = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    if let Err(error) = written.and_then(|mut file| file.write_all(&drawn)) {
        tracing::warn!(%error, "could not write file \"{}\"", path.display());
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_a_comparison_takes_does_not_tell_what_is_kept() {
        use archipel_sql::password::{Encryption, verifier};
        let kept = |encryption| Verifier::parse(&verifier("secret", "ann", encryption).unwrap()).unwrap();
        let mock = Verifier::Scram(ScramVerifier::mock("ann", b"nonce"));
        let least = |verifier: &Verifier| {
            let once = |_| {
                let begun = std::time::Instant::now();
                assert!(!compare(verifier, &mock, b"other", "ann").unwrap());
                begun.elapsed()
            };
            (0..9).map(once).min().unwrap()
        };
        let (md5, scram) =
            (least(&kept(Encryption::Md5)), least(&kept(Encryption::ScramSha256 { salt: [7; 16] })));
        // One alone takes a thousandth of the other.
        assert!(md5 * 8 > scram && scram * 8 > md5, "{md5:?} {scram:?}");
        assert!(compare(&kept(Encryption::Md5), &mock, b"secret", "ann").unwrap());
    }

    #[tokio::test]
    async fn who_goes_leaves_its_place_when_its_work_is_done() {
        let places = Arc::new(Semaphore::new(1));
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let first = beside(&places, move || wait.recv());
        // Its client has gone.
        assert!(tokio::time::timeout(Duration::from_millis(50), first).await.is_err());
        let second = beside(&places, || ());
        assert!(tokio::time::timeout(Duration::from_millis(50), second).await.is_err(), "both work at once");
        go.send(()).unwrap();
        beside(&places, || ()).await.unwrap();
    }

    #[test]
    fn the_secret_stays_and_is_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SECRET_FILE);
        let drawn = secret(&path);
        assert_eq!(secret(&path), drawn);
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(&path, "damaged").unwrap();
        assert_ne!(secret(&path), drawn);
    }
}
