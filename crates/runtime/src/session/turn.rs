//! One turn of a conversation: the calls that a model makes until it has nothing more to ask for.

use super::Services;
use crate::turn_diff::TurnDiffTracker;
use sandgate_process::Stop;
use sandgate_protocol::TurnDiff;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// One turn.
#[derive(Debug)]
pub struct Turn {
    /// Where relative paths start.
    pub cwd: PathBuf,
    stop: Stop,
    /// What it changes.
    pub(crate) changes: TurnDiffTracker,
}

impl Turn {
    pub(crate) fn new(services: &Arc<Services>) -> Self {
        let cwd = services.config.workspace.clone();
        Self { cwd, stop: Stop::default(), changes: TurnDiffTracker::new(services) }
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
