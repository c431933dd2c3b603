//! Where clients wait until it is known who they are: so many, so long, and away from the places of sessions.
//!
//! Each listening socket has a lobby of its own, so that a flood through one leaves the others alone. When a
//! lobby is full, nobody else is accepted for the moment: the kernel holds them, and a storm of good clients is
//! served in its order. But whoever lets others wait for long goes, and is told why. To refuse new ones instead
//! would let a few idle connections keep everybody out, and to send somebody away at once would lose good clients
//! in a storm.
//!
//! What counts is only the time in which it was the client's turn to say something, in a full lobby: it is looked
//! who that is, so often a second at most, and not while this thread has no time to. So nobody goes for what the
//! server itself has not got round to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use archipel_sql::error::{SqlError, SqlState};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// So many wait in one lobby: each takes a descriptor, and up to some kilobytes.
const GUESTS_MAX: usize = 1_000;
/// Of the descriptors that the process may have, one of so many is a guest's, whichever lobby it is in.
const DESCRIPTORS_PER_GUEST: u64 = 2;
/// And so many in any case.
const GUESTS_MIN: usize = 32;
/// A full lobby is looked at once in this time.
const LOOK: Duration = Duration::from_millis(100);
/// Whoever was found silent by more looks than these has kept others waiting for too long: three seconds.
const LOOKS_MAX: u32 = 30;

/// See the module's head.
pub struct Lobby {
    guests: Mutex<Guests>,
    /// Somebody has left.
    left: Notify,
    guests_max: usize,
    look: Duration,
}

struct Guests {
    here: BTreeMap<u64, Arc<Guest>>,
    next: u64,
    looked: Instant,
}

/// Somebody in a lobby, or elsewhere, where nobody asks it to go (the default).
#[derive(Default)]
pub struct Guest {
    /// It is its turn to say something.
    is_awaited: AtomicBool,
    /// So many looks found it silent.
    silent: AtomicU32,
    asked_to_go: Notify,
}

/// A place in a lobby, given back when dropped.
pub struct Place {
    lobby: Arc<Lobby>,
    number: u64,
    guest: Arc<Guest>,
}

/// What a guest is told that was asked to go.
pub fn too_slow() -> SqlError {
    SqlError::new(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already")
        .with_detail("The client took too long to say who it is while others were waiting.")
}

impl Guest {
    /// Waits for something of the client's; `None`: it was asked to go meanwhile.
    pub async fn says<T>(&self, arrives: impl Future<Output = T>) -> Option<T> {
        self.is_awaited.store(true, Ordering::Relaxed);
        let said = tokio::select! {
            biased;
            () = self.asked_to_go.notified() => None,
            said = arrives => Some(said),
        };
        self.is_awaited.store(false, Ordering::Relaxed);
        said
    }
}

impl Lobby {
    /// An empty one of so many.
    pub fn one_of(lobbies: usize) -> Arc<Lobby> {
        Lobby::of(guests_max(descriptors_max(), lobbies), LOOK)
    }

    fn of(guests_max: usize, look: Duration) -> Arc<Lobby> {
        let guests = Guests { here: BTreeMap::new(), next: 0, looked: Instant::now() };
        Arc::new(Lobby { guests: Mutex::new(guests), left: Notify::new(), guests_max, look })
    }

    /// Waits until there is room for one more. For the one task that lets guests in.
    pub async fn room(&self) {
        while !self.has_room() {
            // Whichever it was, the next look tells.
            let _ = tokio::time::timeout(self.look, self.left.notified()).await;
        }
    }

    /// Whether there is room. In a full lobby the one goes that has been silent for the longest, if that was
    /// long.
    fn has_room(&self) -> bool {
        let mut guests = self.guests.lock();
        if guests.here.len() < self.guests_max {
            return true;
        }
        let is_time = guests.looked.elapsed() >= self.look;
        if is_time {
            guests.looked = Instant::now();
        }
        let mut slowest = (LOOKS_MAX, None);
        for (number, guest) in &guests.here {
            if !guest.is_awaited.load(Ordering::Relaxed) {
                continue;
            }
            let silent = guest.silent.fetch_add(u32::from(is_time), Ordering::Relaxed);
            if silent > slowest.0 {
                slowest = (silent, Some(*number));
            }
        }
        let Some(guest) = slowest.1.and_then(|number| guests.here.remove(&number)) else { return false };
        guest.asked_to_go.notify_one();
        tracing::warn!("too many clients do not say who they are: the slowest was sent away");
        true
    }

    /// A place for somebody who has come.
    pub fn enter(self: &Arc<Lobby>) -> Place {
        let mut guests = self.guests.lock();
        let number = guests.next;
        guests.next += 1;
        let guest = Arc::new(Guest::default());
        guests.here.insert(number, guest.clone());
        Place { lobby: self.clone(), number, guest }
    }
}

impl Place {
    /// Who has it.
    pub fn guest(&self) -> Arc<Guest> {
        self.guest.clone()
    }

    /// Does what a guest has come for, unless it takes too long. Whoever is asked to go ends it itself, and has
    /// lost its place by then.
    pub async fn occupied_by(self, limit: Duration, visit: impl Future<Output = std::io::Result<()>>) {
        // A client that is gone needs no answer.
        if tokio::time::timeout(limit, visit).await.is_err() {
            tracing::info!("canceling authentication due to timeout");
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.lobby.guests.lock().here.remove(&self.number);
        self.lobby.left.notify_one();
    }
}

/// How many guests one of so many lobbies has room for.
fn guests_max(descriptors: u64, lobbies: usize) -> usize {
    let all = usize::try_from(descriptors / DESCRIPTORS_PER_GUEST).unwrap_or(usize::MAX);
    (all / lobbies.max(1)).clamp(GUESTS_MIN, GUESTS_MAX)
}

/// How many descriptors this process may have.
fn descriptors_max() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes the two numbers it is given room for.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit.rlim_cur
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lobbies_share_the_descriptors() {
        assert_eq!(guests_max(1024, 2), 256);
        assert_eq!(guests_max(1024, 8), 64);
        assert_eq!((guests_max(64, 8), guests_max(1 << 20, 2)), (GUESTS_MIN, GUESTS_MAX));
        assert_eq!(guests_max(libc::RLIM_INFINITY, 0), GUESTS_MAX);
    }

    #[tokio::test]
    async fn a_full_lobby_waits_for_a_place() {
        let lobby = Lobby::of(2, Duration::from_secs(600));
        let (first, _second) = (lobby.enter(), lobby.enter());
        let waiting = lobby.clone();
        let third = tokio::spawn(async move { waiting.room().await });
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!third.is_finished());
        drop(first);
        third.await.unwrap();
        assert_eq!(lobby.guests.lock().here.len(), 1);
    }

    #[tokio::test]
    async fn who_is_silent_for_too_long_goes_for_others() {
        let lobby = Lobby::of(2, Duration::from_millis(2));
        let (silent, served) = (lobby.enter(), lobby.enter());
        let guest = silent.guest();
        let idle = tokio::spawn(silent.occupied_by(Duration::from_secs(600), async move {
            assert!(guest.says(std::future::pending::<()>()).await.is_none());
            Ok(())
        }));
        lobby.room().await;
        let next = lobby.enter();
        idle.await.unwrap();
        assert_eq!(lobby.guests.lock().here.len(), 2, "the place that was taken is not given back twice");
        // Neither those whom the server lets wait, nor those who have just spoken.
        assert_eq!(next.guest().says(async { 7 }).await, Some(7));
        let waited = tokio::time::timeout(Duration::from_millis(300), lobby.room()).await;
        assert!(waited.is_err(), "somebody was asked to go");
        drop((served, next));
        lobby.room().await;
    }

    #[tokio::test]
    async fn a_visit_ends_at_its_limit() {
        let lobby = Lobby::of(1, Duration::from_secs(600));
        lobby.enter().occupied_by(Duration::from_millis(10), std::future::pending()).await;
        assert!(lobby.guests.lock().here.is_empty());
    }
}
