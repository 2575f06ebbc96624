//! Systems that do not show what another process waits for: silence is all there is to go by.

use super::Launched;
use crate::live::{Seen, Waiter};

/// Sees nothing.
pub(crate) struct Sight;

impl Sight {
    pub(crate) fn new(_launched: &Launched) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "other systems look through something")]
    pub(crate) fn look(&self) -> Seen {
        Seen::Hidden
    }

    #[expect(clippy::unused_self, reason = "other systems look through something")]
    pub(crate) fn look_at_root(&self) -> Option<Waiter> {
        None
    }

    #[expect(clippy::unused_self, reason = "other systems look through something")]
    pub(crate) fn current_dir(&self) -> Option<std::path::PathBuf> {
        None
    }

    #[expect(clippy::unused_self, reason = "other systems look through something")]
    pub(crate) fn signal_foreground(&self, _signal: i32) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "other systems look through something")]
    pub(crate) fn has_unread_input(&self) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "other systems look through something")]
    pub(crate) fn has_unread_output(&self) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "other systems look through something")]
    pub(crate) fn hides_input(&self) -> bool {
        false
    }
}
