//! Transaction blocks with definitions of their own, which the server does not define beside.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Transaction blocks with definitions of their own: they commit only onto the catalog they began
/// with, so the server defines nothing of its own accord while there is one.
#[derive(Default)]
pub struct OpenBlocks {
    pub(super) count: Arc<AtomicUsize>,
    /// Held while the server defines.
    pub(super) latch: tokio::sync::Mutex<()>,
}

/// One of them; it ends when this is dropped.
pub struct OpenBlock(Arc<AtomicUsize>);

impl OpenBlocks {
    /// A block is about to read the catalog it begins with.
    pub async fn enter(&self) -> OpenBlock {
        let _latch = self.latch.lock().await;
        self.count.fetch_add(1, Ordering::SeqCst);
        OpenBlock(self.count.clone())
    }
}

impl Drop for OpenBlock {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
