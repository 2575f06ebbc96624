//! One turn of a conversation: the calls that a model makes until it has nothing more to ask for.

use super::Services;
use crate::turn_diff::TurnDiffTracker;
use sandgate_process::Stop;
use sandgate_protocol::TurnDiff;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The turn that a subagent works for: its own end with it, and what they change is counted there.
#[derive(Debug)]
pub(super) struct TurnAbove {
    stop: Stop,
    changes: Arc<TurnDiffTracker>,
}

/// One turn.
#[derive(Debug)]
pub struct Turn {
    /// Where relative paths start.
    pub cwd: PathBuf,
    stop: Stop,
    /// What it changes.
    pub(crate) changes: Arc<TurnDiffTracker>,
}

impl Turn {
    pub(crate) fn new(services: &Arc<Services>) -> Self {
        let cwd = services.config.workspace.clone();
        let (stop, changes) = match services.turn_above() {
            Some(above) => (above.stop.child(), Arc::clone(&above.changes)),
            None => (Stop::default(), Arc::new(TurnDiffTracker::new(services))),
        };
        Self { cwd, stop, changes }
    }

    /// What a turn of a subagent hangs on that works for a call of this one.
    pub(super) fn as_above(&self) -> TurnAbove {
        TurnAbove { stop: self.stop.clone(), changes: Arc::clone(&self.changes) }
    }

    /// All that the turn changed in the workspace until now.
    pub async fn diff(&self) -> TurnDiff {
        self.changes.diff().await
    }

    /// The same turn on these levers, for a front end that has them already.
    pub fn stopped_by(self, stop: &Stop) -> Self {
        Self { stop: stop.clone(), ..self }
    }

    /// Ends everything that the turn does.
    pub fn cancel(&self) {
        self.stop.cancel.cancel();
    }

    /// Whether it was ended.
    pub fn is_cancelled(&self) -> bool {
        self.stop.cancel.is_cancelled()
    }

    /// Ends the turn when this does.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.stop.cancel
    }

    /// The levers on its commands.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }
}
