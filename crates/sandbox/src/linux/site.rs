//! What a cage is to be built from.

use super::{Cage, CageError};
use crate::Layout;
use crate::roots::Unsearched;
use sandgate_protocol::NetworkAccess;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The confinement of one policy. Its roots are searched only when somebody is about to enter it, so
/// that the namespaces can be made meanwhile.
#[derive(Debug)]
pub struct Site {
    roots: Unsearched,
    network: NetworkAccess,
    /// What the search for the newest cage found.
    newest: Mutex<Option<Layout>>,
}

impl Site {
    pub(super) fn new(roots: Unsearched, network: NetworkAccess) -> Self {
        Self { roots, network, newest: Mutex::default() }
    }

    /// Whether those in there reach the network, which is all that the way in depends on.
    pub fn network(&self) -> NetworkAccess {
        self.network
    }

    /// Builds a cage. The roots are searched each time: what was found for another cage may have been
    /// moved since.
    ///
    /// # Errors
    /// When the kernel's rules cannot be made.
    pub fn build(&self) -> Result<Cage, CageError> {
        let layout = self.roots.search();
        let cage = Cage::build(&layout, self.network)?;
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(layout);
        Ok(cage)
    }

    /// What somebody should know about the newest cage who expects something else of it.
    pub fn notes(&self) -> Vec<String> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.as_ref().map(|layout| layout.notes().to_vec()).unwrap_or_default()
    }

    /// Whether a file lies where the newest cage lets nobody write although it is in a root, by whatever mount its path
    /// leads there. Who has built none yet protects everything.
    pub fn protects(&self, file: &Path) -> bool {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.as_ref().is_none_or(|layout| layout.protects(file))
    }

    /// Whether what the newest cage protects is still what it was.
    pub(super) fn is_current(&self) -> bool {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.as_ref().is_none_or(Layout::is_current)
    }
}
