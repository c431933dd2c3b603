//! The clients that are served at once. When there are too many, the oldest of those from the address
//! that has the most makes room: one address alone takes the places of no other.

use std::collections::VecDeque;
use std::net::IpAddr;

use tokio::task::JoinHandle;

/// See the module's head.
pub(super) struct Places {
    most: usize,
    /// In the order they came.
    served: VecDeque<(IpAddr, JoinHandle<()>)>,
}

impl Places {
    pub(super) fn new(most: usize) -> Places {
        Places { most, served: VecDeque::new() }
    }

    /// Takes in a client, whose task begins once there is room for it.
    pub(super) fn take(&mut self, from: IpAddr, begin: impl FnOnce() -> JoinHandle<()>) {
        self.served.retain(|(_, client)| !client.is_finished());
        if self.served.len() >= self.most
            && let Some(at) = self.next_to_go()
            && let Some((_, client)) = self.served.remove(at)
        {
            client.abort();
        }
        self.served.push_back((from, begin()));
    }

    /// Where the oldest client of the address with the most of them is.
    fn next_to_go(&self) -> Option<usize> {
        let count = |from: &IpAddr| self.served.iter().filter(|(other, _)| other == from).count();
        let counts: Vec<usize> = self.served.iter().map(|(from, _)| count(from)).collect();
        let most = counts.iter().max()?;
        counts.iter().position(|count| count == most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_has_the_most_places_gives_one() {
        let mut places = Places::new(4);
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let begin = || tokio::spawn(std::future::pending::<()>());
        for last in [1, 2, 2, 3, 2, 2, 4] {
            places.take(address(last), begin);
        }
        let mut left: Vec<IpAddr> = places.served.iter().map(|(from, _)| *from).collect();
        left.sort();
        assert_eq!(left, [1, 2, 3, 4].map(address));
    }
}
