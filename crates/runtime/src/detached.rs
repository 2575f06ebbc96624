//! Work that blocks and may never end, on a thread of its own.
//!
//! Tokio's pool for such work is no place for it: a runtime that ends waits for all of it, and whoever
//! may write in a workspace can make a read wait for ever.

use tokio::sync::oneshot;

/// Begins work at once. What came of it; nothing if it panicked or there was no thread for it. Who does
/// not want to wait any longer drops this, and the thread is left to itself.
pub(crate) fn begin<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Option<T>> + Send + 'static {
    let (done, waiting) = oneshot::channel();
    let began = std::thread::Builder::new().spawn(move || {
        // Nobody may be waiting any more.
        let _ = done.send(work());
    });
    async move {
        began.ok()?;
        waiting.await.ok()
    }
}
