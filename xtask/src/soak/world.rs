//! The place that everything happens in: a home, a workspace, and what nobody may touch beside it.

#![expect(clippy::disallowed_methods, reason = "starts the program that is tested")]

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What makes namespaces fail with EPERM for the program that it starts.
const WITHOUT_NAMESPACES: &str =
    include_str!("../../../crates/cli/tests/support/without_namespaces.py");

/// A person who trusts the workspace. `/tmp` is left out because others work there too.
const SETTINGS: &str = "sandbox_mode = \"workspace-write\"\napproval_policy = \"on-request\"\n\
    [sandbox_workspace_write]\nexclude_slash_tmp = true\n";

/// Everything is below one directory, which goes with it.
pub(super) struct World {
    root: tempfile::TempDir,
    program: PathBuf,
    untouched: String,
}

/// How a program is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Namespaces {
    /// As it is.
    Possible,
    /// Where making one is refused, so that Landlock stands alone.
    Refused,
}

impl World {
    pub(super) fn new(scratch: &Path, program: &Path) -> anyhow::Result<Self> {
        let root = tempfile::Builder::new().prefix("soak-").tempdir_in(scratch)?;
        for name in ["home/.codex", "ws", "tmp", "anchor", "outside/deep", "granted"] {
            fs::create_dir_all(root.path().join(name))?;
        }
        let settings = root.path().join("home/.codex/config.toml");
        fs::write(&settings, SETTINGS)?;
        fs::set_permissions(&settings, fs::Permissions::from_mode(0o600))?;
        for (name, text) in [("outside/a", "a\n"), ("outside/deep/b", "b\n"), ("home/.profile", "")]
        {
            fs::write(root.path().join(name), text)?;
        }
        let mut world = Self { root, program: program.to_owned(), untouched: String::new() };
        world.untouched = world.outside_now()?;
        Ok(world)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The directory of one lane in the workspace, which is there.
    pub(super) fn lane(&self, lane: usize) -> anyhow::Result<PathBuf> {
        let directory = self.path("ws").join(format!("lane-{lane}"));
        fs::create_dir_all(&directory)?;
        Ok(directory)
    }

    /// The program, working in the workspace, not started yet. It is in a process group of its own: Ctrl-C
    /// is for the soak, which then ends everything.
    pub(super) fn command(&self, namespaces: Namespaces, words: &[&str]) -> Command {
        let mut command = match namespaces {
            Namespaces::Possible => Command::new(&self.program),
            Namespaces::Refused => {
                let mut python = Command::new("python3");
                python.args(["-c", WITHOUT_NAMESPACES]).arg(&self.program);
                python
            }
        };
        command.args(words).current_dir(self.path("ws")).process_group(0);
        command.env("HOME", self.path("home")).env("TMPDIR", self.path("tmp"));
        for name in ["CODEX_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "NO_COLOR", "SANDGATE_LOG"]
        {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What has changed of what nobody may change, if anything has.
    pub(super) fn changed_outside(&self) -> anyhow::Result<Option<String>> {
        let now = self.outside_now()?;
        let change = now.lines().find(|line| !self.untouched.lines().any(|old| old == *line));
        let gone = self.untouched.lines().find(|line| !now.lines().any(|new| new == *line));
        Ok(change.or(gone).map(str::to_owned))
    }

    fn outside_now(&self) -> anyhow::Result<String> {
        let mut lines = String::new();
        for name in ["outside", "home/.codex/config.toml", "home/.profile"] {
            fingerprint(&self.path(name), &mut lines)?;
        }
        Ok(lines)
    }
}

/// Everything below a path, a line each: its name, kind, mode, owner and content.
fn fingerprint(path: &Path, lines: &mut String) -> anyhow::Result<()> {
    use std::fmt::Write as _;
    let about =
        fs::symlink_metadata(path).with_context(|| format!("{} is gone", path.display()))?;
    let content = if about.is_file() { hash(&fs::read(path)?) } else { String::new() };
    writeln!(lines, "{} {:o} {} {content}", path.display(), about.mode(), about.uid())?;
    if about.is_dir() {
        let entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
        let mut entries: Vec<PathBuf> = entries.collect::<std::io::Result<_>>()?;
        entries.sort();
        for entry in entries {
            fingerprint(&entry, lines)?;
        }
    }
    Ok(())
}

/// What bytes are known by.
pub(super) fn hash(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_changes_outside_is_noticed() {
        let scratch = tempfile::tempdir().expect("a directory");
        let changes: [fn(&World) -> std::io::Result<()>; 4] = [
            |world| fs::write(world.path("outside/new"), ""),
            |world| fs::write(world.path("outside/a"), "b\n"),
            |world| fs::remove_file(world.path("outside/deep/b")),
            |world| fs::set_permissions(world.path("outside"), fs::Permissions::from_mode(0o700)),
        ];
        for change in changes {
            let world = World::new(scratch.path(), Path::new("sandgate")).expect("a world");
            fs::write(world.path("ws/new"), "").expect("a file");
            assert_eq!(world.changed_outside().expect("all is there"), None);
            fs::set_permissions(world.path("outside"), fs::Permissions::from_mode(0o755))
                .expect("a mode");
            change(&world).expect("a change");
            assert!(world.changed_outside().expect("all is there").is_some());
        }
    }
}
