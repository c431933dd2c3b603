//! Waits of functions.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Waits on the caller's thread: statements that wait have left the executors. A thread of a pool has
/// others do its work meanwhile.
pub(super) fn waiting<T>(wait: impl FnOnce() -> T) -> T {
    let of_pool =
        Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if of_pool { tokio::task::block_in_place(wait) } else { wait() }
}
