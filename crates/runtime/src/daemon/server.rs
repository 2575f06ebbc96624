//! The daemon itself: who may come in, and when it ends.

use super::connection::Connection;
use super::pool::{Farewell, Pool};
use super::{DaemonError, Place};
use crate::Runtime;
use crate::own_socket::Taken;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;
use tokio_util::sync::CancellationToken;

/// How many connections there may be.
const MAX_CONNECTIONS: usize = 128;

/// A daemon that has its place, and is not at work yet.
#[derive(Debug)]
pub struct Daemon {
    place: Place,
    taken: Taken,
}

impl Daemon {
    /// Becomes the daemon. None if there is one.
    ///
    /// # Errors
    /// When its place cannot be taken.
    pub fn take(place: &Place) -> Result<Option<Self>, DaemonError> {
        let taken = place.take()?;
        Ok(taken.map(|taken| Self { place: place.clone(), taken }))
    }

    /// Serves until it is told to stop, or no process has lived and nobody has come for `idle`, or no process lives and
    /// nobody can come any more. Then all
    /// its processes have ended and its files are gone, and the runtime is as far as it is only ours. What
    /// is given back is to be dropped last.
    pub async fn serve(
        self,
        runtime: Arc<Runtime>,
        idle: Duration,
        stop: CancellationToken,
    ) -> Farewell {
        let pool = Rc::new(Pool::new(runtime, self.place));
        let tasks = LocalSet::new();
        tasks.run_until(accept(&self.taken, &pool, idle, &stop)).await;
        tasks.run_until(pool.end_all()).await;
        drop(tasks);
        let farewell = pool.farewell.take();
        drop(pool);
        drop(self.taken);
        farewell
    }
}

async fn accept(taken: &Taken, pool: &Rc<Pool>, idle: Duration, stop: &CancellationToken) {
    let look = (idle / 4).clamp(Duration::from_millis(20), Duration::from_secs(5));
    let mut busy_until = Instant::now();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            stream = taken.accept() => {
                // Too many open files, most likely. Others will be closed.
                let Ok(stream) = stream else {
                    tokio::time::sleep(look).await;
                    continue;
                };
                let connection = Connection::new(stream, pool, stop.clone());
                let room = pool.connections.get() < MAX_CONNECTIONS;
                pool.connections.set(pool.connections.get() + 1);
                let pool = Rc::clone(pool);
                tokio::task::spawn_local(async move {
                    // A connection that fails is over. There is nobody to tell.
                    let _ = match room {
                        true => connection.serve().await,
                        false => connection.refuse("there are too many connections").await,
                    };
                    pool.connections.set(pool.connections.get() - 1);
                });
            }
            () = tokio::time::sleep(look) => {}
        }
        match pool.is_busy() {
            true => busy_until = Instant::now(),
            false if busy_until.elapsed() >= idle || !taken.is_in_place() => return,
            false => {}
        }
    }
}
