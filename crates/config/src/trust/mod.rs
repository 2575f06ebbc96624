//! Trust in a directory: what the person has said about it, and what they had seen when they did.

mod files;
mod root;

pub use files::{ProjectFile, ProjectFiles};
pub use root::{Project, find_project};

use crate::loosen::Loosening;
use crate::settings::{ProjectSettings, TrustLevel};
use std::path::Path;
use toml::{Table, Value};

/// Whether a project is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustState {
    /// The person has not been asked yet. Counts as untrusted.
    Unknown,
    /// The person does not trust it.
    Untrusted,
    /// The person trusts it, and has seen whatever loosens something.
    Trusted,
    /// The person trusts it, but its files loosen something that the person has not seen. Until then
    /// that does not count.
    ChangedSince {
        /// What they loosen.
        loosenings: Vec<Loosening>,
    },
}

impl TrustState {
    /// Whether what the project's files make stricter counts, and the defaults for trusted
    /// directories hold.
    pub fn is_trusted(&self) -> bool {
        matches!(self, Self::Trusted | Self::ChangedSince { .. })
    }
}

/// What the person has said about a root. Only this very path counts: neither one above it nor a link
/// to it.
pub(crate) fn said_of<'a>(root: &Path, tables: impl Iterator<Item = &'a Table>) -> ProjectSettings {
    let mut said = ProjectSettings::default();
    for table in tables {
        let projects = table.get("projects").and_then(Value::as_table).into_iter().flatten();
        let here: Vec<ProjectSettings> = projects
            .filter(|(path, _)| Path::new(path) == root)
            .map(|(_, project)| project.clone().try_into().unwrap_or_default())
            .collect();
        // One path can be spelled in two ways. Of two words about it the stricter holds.
        let levels = || here.iter().filter_map(|project| project.trust_level);
        let stricter = levels().find(|level| *level == TrustLevel::Untrusted);
        said.trust_level = stricter.or_else(|| levels().next()).or(said.trust_level);
        if let Some(seen) = here.iter().find_map(|project| project.seen.clone()) {
            said.seen = Some(seen);
        }
    }
    said
}

impl ProjectSettings {
    /// Whether the person trusts it.
    pub fn is_trusted(&self) -> bool {
        self.trust_level == Some(TrustLevel::Trusted)
    }

    /// Whether the person has seen a file as it is, and was told of all that it loosens now. What their own
    /// settings allowed when they saw it they were not told of.
    pub fn has_seen_to_loosen(&self, file: &ProjectFile, loosenings: &[Loosening]) -> bool {
        let was_told = |loosening: &Loosening| {
            let noted = file.noted(loosening);
            self.seen.iter().flatten().any(|seen| *seen == noted)
        };
        self.has_seen(file) && loosenings.iter().all(was_told)
    }

    /// Whether the person has seen a file as it is.
    pub fn has_seen(&self, file: &ProjectFile) -> bool {
        let fingerprint = file.fingerprint();
        self.seen.iter().flatten().any(|seen| *seen == fingerprint)
    }
}
