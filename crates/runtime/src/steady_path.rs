//! The part of `PATH` whose programs are believed by their names.
//!
//! What is known to be safe is so by its name: `ls` is the system's. That holds only where no command of the session
//! can put another program of that name: not in the workspace, as a virtual environment's directory of programs is, nor
//! in any other directory that can be written to. What is not asked about, or leaves the sandbox by a rule, is
//! therefore looked up without those.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// `PATH` without the entries that are relative or lie where commands may write.
#[derive(Debug, Clone, Default)]
pub(crate) struct SteadyPath {
    /// The entries as they are written, and where they lead.
    entries: Vec<(PathBuf, PathBuf)>,
    /// Where commands may write, canonical.
    places: Vec<PathBuf>,
}

impl SteadyPath {
    /// Of a `PATH`, in a session whose commands may write to some places.
    pub(crate) fn new(path: &OsStr, places: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut known = Vec::new();
        for place in places {
            // As it is written and as it is: who has replaced a directory by a link changes what one of the two means.
            known.extend(dunce::canonicalize(&place));
            known.push(place);
        }
        let lead = |entry: PathBuf| {
            let place = dunce::canonicalize(&entry).ok()?;
            Some((entry, place))
        };
        let entries = std::env::split_paths(path)
            .filter(|entry| entry.is_absolute())
            .filter_map(lead)
            .filter(|(entry, place)| !is_in(entry, &known) && !is_in(place, &known))
            .collect();
        Self { entries, places: known }
    }

    /// The value for a command's environment, where some paths can be written to as well.
    pub(crate) fn without(&self, opened: &[PathBuf]) -> OsString {
        let steady =
            |(entry, place): &&(PathBuf, PathBuf)| !is_in(entry, opened) && !is_in(place, opened);
        let entries = self.entries.iter().filter(steady).map(|(entry, _)| entry);
        // Entries that came out of one `PATH` can be joined to another.
        std::env::join_paths(entries).unwrap_or_default()
    }

    /// Whether a file is one that no command of the session can have put there.
    pub(crate) fn has(&self, program: &Path, opened: &[PathBuf]) -> bool {
        let Ok(file) = dunce::canonicalize(program) else { return false };
        let movable = |path: &Path| is_in(path, &self.places) || is_in(path, opened);
        !movable(program) && !movable(&file)
    }
}

fn is_in(path: &Path, places: &[PathBuf]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// spec RUN.19: Entries of `PATH` that are relative, that lie where a session's commands may write or that lead
    /// there are left out for what is believed by its name.
    #[test]
    fn what_commands_can_write_to_is_left_out() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().canonicalize().unwrap().join(name);
        for name in ["ws/.venv/bin", "usr/bin", "opened/bin"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        symlink(at("ws/.venv"), at("linked")).unwrap();
        symlink(at("usr/bin"), at("ws/system")).unwrap();
        let entries = [
            at("ws/.venv/bin"),
            "".into(),
            ".".into(),
            at("linked/bin"),
            at("ws/system"),
            at("gone"),
            at("usr/bin"),
            at("opened/bin"),
        ];
        let path = std::env::join_paths(entries).unwrap();
        let steady = SteadyPath::new(&path, [at("ws")]);
        let both = std::env::join_paths([at("usr/bin"), at("opened/bin")]).unwrap();
        assert_eq!(steady.without(&[]), both);
        assert_eq!(steady.without(&[at("opened")]), at("usr/bin"));
    }

    #[test]
    fn a_file_that_leads_to_where_commands_may_write_is_not_had() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().canonicalize().unwrap().join(name);
        for name in ["ws", "bin"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("ws/tool"), "").unwrap();
        fs::write(at("bin/own"), "").unwrap();
        symlink(at("ws/tool"), at("bin/tool")).unwrap();
        let steady = SteadyPath::new(OsStr::new(""), [at("ws")]);
        assert!(steady.has(&at("bin/own"), &[]));
        assert!(!steady.has(&at("bin/own"), &[at("bin")]));
        for moved in ["ws/tool", "bin/tool", "bin/gone"] {
            assert!(!steady.has(&at(moved), &[]), "{moved}");
        }
    }
}
