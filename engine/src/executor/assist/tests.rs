//! Fan-outs between real threads; every interleaving of a small one is in `crate::models`.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::assist::FanOut;

#[test]
fn every_index_is_called_once_also_when_a_body_panics() {
    for helpers in [0, 1, 3] {
        let counts: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
        let body = |index: usize| {
            counts[index].fetch_add(1, Ordering::Relaxed);
            assert!(index != 42 || helpers != 3, "a bug in a body");
        };
        let mut threads = Vec::new();
        let fine = FanOut::run(counts.len(), &body, |shared| {
            for _ in 0..helpers {
                let shared = shared.clone();
                threads.push(std::thread::spawn(move || shared.help()));
            }
        });
        assert_eq!(fine, helpers != 3);
        for thread in threads {
            thread.join().expect("a helper ends");
        }
        assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    }
}
