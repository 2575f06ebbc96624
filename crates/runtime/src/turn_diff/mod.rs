//! All that a turn changed in the workspace, as one unified diff: by patches, and by commands.
//!
//! Nothing is copied. Before the first command of a turn that may change something, every file that
//! git does not ignore is looked at (its size, times and inode), and what it held is remembered where
//! nothing else does: a file that is as git has it can be had from git. A patch says by itself what the
//! files held that it changes, so a turn of patches alone looks at nothing else. When the diff is asked
//! for, what looks different is read and compared. All of it is bounded, and what a bound left out is
//! said.

mod baseline;
mod compare;
mod objects;
mod patched;
mod show;
mod walk;

#[cfg(test)]
mod tests;

pub(crate) use baseline::KeptContents;

use crate::detached;
use crate::session::Services;
use baseline::Baseline;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use patched::Originals;
use sandgate_patch::Plan;
use sandgate_protocol::TurnDiff;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// How long the first command waits for the look at the workspace, and whoever asks for the diff for
/// another one. Both have bounds of their own, which hold unless something keeps a reader waiting.
const LOOKING: Duration = Duration::from_secs(5);
const COMPARING: Duration = Duration::from_secs(20);

/// Whether the diffs of turns are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TurnDiffs {
    /// What turns change is followed, and told when they end.
    #[default]
    Told,
    /// Nobody wants to know.
    Off,
}

/// The workspace as it was before the first command; none if looking at it failed.
type Looking = Shared<BoxFuture<'static, Option<Arc<Baseline>>>>;

/// Follows what one turn changes.
pub(crate) struct TurnDiffTracker {
    wanted: TurnDiffs,
    root: PathBuf,
    services: Weak<Services>,
    baseline: OnceLock<Looking>,
    originals: Mutex<Originals>,
}

impl std::fmt::Debug for TurnDiffTracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnDiffTracker").field("root", &self.root).finish_non_exhaustive()
    }
}

impl TurnDiffTracker {
    pub(crate) fn new(services: &Arc<Services>) -> Self {
        Self {
            wanted: services.config.turn_diffs,
            root: services.config.workspace.clone(),
            services: Arc::downgrade(services),
            baseline: OnceLock::new(),
            originals: Mutex::default(),
        }
    }

    /// Begins to look at the workspace, because a command is coming that may change it. The look goes on
    /// beside whatever the caller does next.
    pub(crate) fn look(&self) {
        if self.wanted == TurnDiffs::Told {
            self.looking();
        }
    }

    /// Waits until the workspace has been looked at: a command may change it from here on.
    pub(crate) async fn before_command(&self) {
        if self.wanted == TurnDiffs::Told {
            self.looking().clone().await;
        }
    }

    /// Remembers what the files hold that a patch is about to change.
    pub(crate) async fn before_patch(&self, plan: &Plan) {
        if self.wanted == TurnDiffs::Off {
            return;
        }
        let baseline = match self.baseline.get() {
            Some(looking) => looking.clone().await,
            None => None,
        };
        let mut originals = self.originals.lock().unwrap_or_else(PoisonError::into_inner);
        originals.remember(plan, &self.root, baseline.as_deref());
    }

    /// All that was changed until now. Nothing if nothing could have been.
    pub(crate) async fn diff(&self) -> TurnDiff {
        let nothing = || TurnDiff { unified_diff: String::new(), not_shown: Vec::new() };
        let Some(services) = self.services.upgrade() else { return nothing() };
        let originals = self.originals.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let baseline = match self.baseline.get() {
            Some(looking) => looking.clone().await,
            None if originals.is_empty() => return nothing(),
            None => None,
        };
        let root = self.root.clone();
        let found = detached::begin({
            let baseline = baseline.clone();
            move || compare::changes(&root, baseline.as_deref(), &originals)
        });
        let mut found = match tokio::time::timeout(COMPARING, found).await {
            Ok(Some(found)) => found,
            Ok(None) => return nothing(),
            Err(_) => {
                let said =
                    "the workspace could not be looked at: something in it keeps a reader waiting";
                return TurnDiff { not_shown: vec![said.to_owned()], ..nothing() };
            }
        };
        let wanted = found.objects();
        if !wanted.is_empty() {
            found.fill_in(&objects::read(&services, &wanted).await);
        }
        if self.baseline.get().is_some() && baseline.is_none() {
            found.note("the workspace could not be looked at before the first command".to_owned());
        }
        tokio::task::spawn_blocking(move || show::diff(found)).await.unwrap_or_else(|_| nothing())
    }

    fn looking(&self) -> &Looking {
        self.baseline.get_or_init(|| {
            let (root, services) = (self.root.clone(), self.services.clone());
            // The look may never end, and must not hold the session.
            let kept = services.upgrade().map(|services| Arc::clone(&services.kept));
            let look =
                detached::begin(move || Some(Arc::new(Baseline::take(&root, kept.as_deref()?))));
            let look = async move { tokio::time::timeout(LOOKING, look).await };
            async move { look.await.ok().flatten().flatten() }.boxed().shared()
        })
    }
}
