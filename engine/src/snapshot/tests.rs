//! What commits and collections are told of snapshots.

use super::*;
use crate::random::RandomStream;

/// What commits are told, and what collections may not take, beside a list of those registered.
#[test]
fn commits_are_told_of_all_who_read_or_are_about_to() {
    let mut random = RandomStream::new(8);
    let snapshots = Snapshots::new(1 << 20);
    let mut coming: Vec<Epoch> = Vec::new();
    let mut known: Vec<Arc<SnapshotState>> = Vec::new();
    let mut open = 5;
    for _ in 0..5_000 {
        let some = |random: &mut RandomStream, count: usize| random.below(count as u64) as usize;
        match random.below(5) {
            0 => coming.push(snapshots.announce(Epoch(open), false)),
            1 if !coming.is_empty() => {
                let from = coming.swap_remove(some(&mut random, coming.len()));
                known.push(snapshots.admit(from, Epoch(open), (0, 0), false));
                open += 1;
            }
            2 if !known.is_empty() => {
                let state = &known[some(&mut random, known.len())];
                snapshots.narrow(state, Trees::of((0..3).map(|_| TreeId(random.below(64) as u32))));
            }
            3 if known.len() > 5 || random.below(3) == 0 && !known.is_empty() => {
                let state = known.swap_remove(some(&mut random, known.len()));
                let before = snapshots.oldest();
                let is_other = snapshots.unregister(&state);
                assert_eq!(is_other, snapshots.oldest() != before);
                assert!(!snapshots.unregister(&state), "it is gone");
            }
            _ => open += 1,
        }
        let epochs = || known.iter().map(|state| state.epoch);
        assert_eq!(snapshots.oldest(), epochs().chain(coming.iter().copied()).min());
        assert_eq!(snapshots.registered(), known.len() + coming.len());
        let (newest, wanted) = match coming.is_empty() {
            true => (
                epochs().max().unwrap_or(Epoch(0)),
                known.iter().fold(0, |all, state| all | state.trees.load(Ordering::SeqCst)),
            ),
            false => (Epoch(u64::MAX), u64::MAX),
        };
        assert_eq!((snapshots.newest(), snapshots.wanted().0), (newest, wanted));
    }
}
