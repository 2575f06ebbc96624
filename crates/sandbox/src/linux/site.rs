//! What a cage is to be built from.

use super::{Cage, CageError, Entry};
use crate::Layout;
use crate::roots::Unsearched;
use sandgate_protocol::NetworkAccess;
use std::sync::OnceLock;

/// The confinement of one policy. Its roots are searched only when somebody is about to enter it, so
/// that the namespaces can be made meanwhile.
#[derive(Debug)]
pub struct Site {
    roots: Unsearched,
    network: NetworkAccess,
    entry: Entry,
    built: OnceLock<(Layout, Cage)>,
}

impl Site {
    pub(super) fn new(roots: Unsearched, network: NetworkAccess) -> Self {
        Self { roots, network, entry: Entry::new(network), built: OnceLock::new() }
    }

    /// The way in.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The cage, built when it is asked for first.
    ///
    /// # Errors
    /// When the kernel's rules cannot be made.
    pub fn cage(&self) -> Result<&Cage, CageError> {
        if let Some((_, cage)) = self.built.get() {
            return Ok(cage);
        }
        let layout = self.roots.search();
        let cage = Cage::build(&layout, self.network)?;
        Ok(&self.built.get_or_init(|| (layout, cage)).1)
    }

    /// Whether what it protects is still what it was.
    pub(super) fn is_current(&self) -> bool {
        self.built.get().is_none_or(|(layout, _)| layout.is_current())
    }
}
