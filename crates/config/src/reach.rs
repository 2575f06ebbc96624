//! Which files commands could have written, so that what stands in them need not be the person's.

use crate::config::Config;
use std::path::{Path, PathBuf};

/// Where the commands of a session may write.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// What is read-only to every command.
    kept: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

impl Reach {
    /// That of a session in a project, if it may write in it at all: what it may do today says little about
    /// yesterday.
    pub(crate) fn new(config: &Config, config_home: Option<&Path>, project: &Path) -> Self {
        let kept = config_home.map(Path::to_owned).into_iter().chain([project.join(".codex")]);
        let own = config.settings().sandbox_workspace_write.as_ref();
        let named = own.and_then(|own| own.writable_roots.as_deref()).unwrap_or_default();
        let temporary = [PathBuf::from("/tmp"), std::env::temp_dir()];
        let writable = named.iter().cloned().chain(temporary).chain([project.to_owned()]);
        Self { kept: kept.map(real).collect(), writable: writable.map(real).collect() }
    }

    /// Whether a file lies there, by whatever links it is named.
    pub(crate) fn holds(&self, file: &Path) -> bool {
        let file = real(file.to_owned());
        let lies_in = |place: &PathBuf| file.starts_with(place);
        !self.kept.iter().any(lies_in) && self.writable.iter().any(lies_in)
    }
}

/// Where one of the person's own files really is, if a link takes it out of the directory of their settings.
pub fn leads_out(file: &Path, config_home: &Path) -> Option<PathBuf> {
    // Mostly it is no link, and nobody need follow the rest of its path.
    file.symlink_metadata().ok().filter(std::fs::Metadata::is_symlink)?;
    let target = file.canonicalize().ok()?;
    (!target.starts_with(config_home.canonicalize().ok()?)).then_some(target)
}

fn real(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}
