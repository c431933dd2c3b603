//! Where clients wait until it is known who they are: so many, so long, and away from the places of sessions.
//!
//! Each listening socket has a lobby of its own, so that a flood through one leaves the others alone. When a
//! lobby is full, nobody else is accepted for the moment: the kernel holds them, and a storm of good clients is
//! served in its order. But whoever has been there for a while does not hold up others: the oldest goes. To
//! refuse new ones instead would let a few idle connections keep everybody out, and to send the oldest
//! away at once would lose good clients in a storm.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// So many wait in one lobby: each takes a descriptor, and up to some kilobytes.
const GUESTS_MAX: usize = 1_000;
/// Of the descriptors that the process may have, one of so many is a guest's, whichever lobby it is in.
const DESCRIPTORS_PER_GUEST: u64 = 2;
/// And so many in any case.
const GUESTS_MIN: usize = 32;
/// In a full lobby, who has been there longer than this goes.
const PATIENCE: Duration = Duration::from_secs(3);

/// See the module's head.
pub struct Lobby {
    guests: Mutex<Guests>,
    /// Somebody has left.
    left: Notify,
    guests_max: usize,
    patience: Duration,
}

#[derive(Default)]
struct Guests {
    here: BTreeMap<u64, Arc<Guest>>,
    next: u64,
}

struct Guest {
    since: Instant,
    asked_to_go: Notify,
}

/// A place in a lobby, given back when dropped.
pub struct Place {
    lobby: Arc<Lobby>,
    number: u64,
    guest: Arc<Guest>,
}

impl Lobby {
    /// An empty one of so many.
    pub fn one_of(lobbies: usize) -> Arc<Lobby> {
        Lobby::of(guests_max(descriptors_max(), lobbies), PATIENCE)
    }

    fn of(guests_max: usize, patience: Duration) -> Arc<Lobby> {
        Arc::new(Lobby { guests: Mutex::default(), left: Notify::new(), guests_max, patience })
    }

    /// Waits until there is room for one more. For the one task that lets guests in.
    pub async fn room(&self) {
        while let Some(wait) = self.wait() {
            // Whichever it was, the next look tells.
            let _ = tokio::time::timeout(wait, self.left.notified()).await;
        }
    }

    /// How long the oldest guest may stay, if it is in the way of others. It goes when that is over.
    fn wait(&self) -> Option<Duration> {
        let mut guests = self.guests.lock();
        if guests.here.len() < self.guests_max {
            return None;
        }
        let oldest = guests.here.first_entry()?;
        let waited = oldest.get().since.elapsed();
        if waited < self.patience {
            return Some(self.patience - waited);
        }
        oldest.remove().asked_to_go.notify_one();
        None
    }

    /// A place for somebody who has come.
    pub fn enter(self: &Arc<Lobby>) -> Place {
        let mut guests = self.guests.lock();
        let number = guests.next;
        guests.next += 1;
        let guest = Arc::new(Guest { since: Instant::now(), asked_to_go: Notify::new() });
        guests.here.insert(number, guest.clone());
        Place { lobby: self.clone(), number, guest }
    }
}

impl Place {
    /// Does what a guest has come for, unless it takes too long, or the place is needed.
    pub async fn occupied_by(self, limit: Duration, visit: impl Future<Output = std::io::Result<()>>) {
        tokio::select! {
            ended = tokio::time::timeout(limit, visit) => {
                // A client that is gone needs no answer.
                if ended.is_err() {
                    tracing::info!("canceling authentication due to timeout");
                }
            }
            () = self.guest.asked_to_go.notified() => {
                tracing::warn!("too many clients do not say who they are: the oldest was sent away");
            }
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
    async fn who_has_been_there_too_long_goes_for_others() {
        let lobby = Lobby::of(1, Duration::from_millis(50));
        let place = lobby.enter();
        let stays = place.occupied_by(Duration::from_secs(600), std::future::pending());
        let idle = tokio::spawn(stays);
        lobby.room().await;
        let _next = lobby.enter();
        idle.await.unwrap();
        assert_eq!(lobby.guests.lock().here.len(), 1, "the place that was taken is not given back twice");
    }

    #[tokio::test]
    async fn a_visit_ends_at_its_limit() {
        let lobby = Lobby::of(1, Duration::from_secs(600));
        lobby.enter().occupied_by(Duration::from_millis(10), std::future::pending()).await;
        assert!(lobby.guests.lock().here.is_empty());
    }
}
