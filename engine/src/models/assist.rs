//! Fan-out: every part is worked on once, and whoever fanned out sees all of it done.

use loom::cell::UnsafeCell;
use loom::thread;

use super::{explore, sync};

#[path = "../executor/assist.rs"]
#[allow(clippy::duplicate_mod)]
mod code;

use code::FanOut;

/// What the bodies work on; the checker fails if two threads meet at one part, or if the end
/// of a body is not seen after the rendezvous.
struct Parts(Vec<UnsafeCell<u32>>);

// SAFETY: what the model is to show.
unsafe impl Sync for Parts {}
// SAFETY: as above.
unsafe impl Send for Parts {}

#[test]
fn whoever_fans_out_sees_every_part_done_once() {
    explore(3, || {
        let parts = sync::Arc::new(Parts((0..3).map(|_| UnsafeCell::new(0)).collect()));
        let work = parts.clone();
        // SAFETY: checked by loom.
        let body = move |index: usize| work.0[index].with_mut(|count| unsafe { *count += 1 });
        let mut helper = None;
        let fine = FanOut::run(3, &body, |shared| {
            let shared = shared.clone();
            helper = Some(thread::spawn(move || shared.help()));
        });
        assert!(fine);
        for part in &parts.0 {
            // SAFETY: checked by loom.
            assert_eq!(part.with_mut(|count| unsafe { *count }), 1);
        }
        helper.expect("it was offered").join().expect("it ends");
    });
}
