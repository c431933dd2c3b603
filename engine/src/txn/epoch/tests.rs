//! Epochs between real threads; every interleaving of a small case is in `crate::models`.

use std::sync::Arc;

use super::epoch::EpochClock;
use crate::id::Epoch;

#[test]
fn an_epoch_closes_only_when_nobody_is_inside() {
    let clock = Arc::new(EpochClock::new(Epoch(1)));
    let slot = clock.register();
    assert_eq!(clock.enter(&slot), Epoch(1));
    let advancing = {
        let clock = clock.clone();
        std::thread::spawn(move || clock.advance())
    };
    while clock.current() == Epoch(1) {
        std::hint::spin_loop();
    }
    assert!(!advancing.is_finished(), "the slot is still inside epoch 1");
    clock.leave(&slot);
    assert_eq!(advancing.join().expect("the advancing thread ends"), Epoch(1));
    assert_eq!(clock.enter(&slot), Epoch(2));
}
