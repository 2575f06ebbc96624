//! Programs that confine a command, ours among them, each told the same policy as well as it can be told: read
//! everywhere, write in the workspace and in /tmp, leave `.git`, `.codex` and `.agents` of the workspace alone, no network.

use super::{Peers, python};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs what follows where making namespaces is refused.
const WITHOUT_NAMESPACES: &str =
    include_str!("../../../crates/cli/tests/support/without_namespaces.py");

/// The names of a workspace that tell other programs what to run.
const PROTECTED: [&str; 3] = [".git", ".codex", ".agents"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sandbox {
    Plain,
    Sandgate,
    SandgateLandlock,
    Bubblewrap,
    Codex,
    Srt,
    Firejail,
    Landlock,
    Birdcage,
    Hakoniwa,
    Sandlock,
}

/// What is needed to start them.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    pub(crate) peers: Peers,
    pub(crate) sandgate: PathBuf,
}

/// Where a confined command works, and where the sandbox keeps what it is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) workspace: &'a Path,
    pub(crate) settings: &'a Path,
}

/// The words before a command that confine it, and what their environment needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wrapper {
    pub(crate) words: Vec<OsString>,
    pub(crate) environment: Vec<(&'static str, OsString)>,
}

impl Sandbox {
    /// Those that the attempts to get out are made in.
    pub(crate) const FOR_ATTEMPTS: [Self; 7] = [
        Self::Plain,
        Self::Sandgate,
        Self::SandgateLandlock,
        Self::Bubblewrap,
        Self::Codex,
        Self::Srt,
        Self::Firejail,
    ];

    /// Those whose cost is measured.
    pub(crate) const FOR_FIGURES: [Self; 10] = [
        Self::Plain,
        Self::Sandgate,
        Self::Landlock,
        Self::Birdcage,
        Self::Bubblewrap,
        Self::Sandlock,
        Self::Hakoniwa,
        Self::Codex,
        Self::Firejail,
        Self::Srt,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "no sandbox",
            Self::Sandgate => "sandgate sandbox",
            Self::SandgateLandlock => "sandgate, namespaces refused",
            Self::Bubblewrap => "bubblewrap",
            Self::Codex => "codex sandbox",
            Self::Srt => "srt",
            Self::Firejail => "firejail",
            Self::Landlock => "landlock's sandboxer",
            Self::Birdcage => "birdcage",
            Self::Hakoniwa => "hakoniwa",
            Self::Sandlock => "sandlock",
        }
    }

    /// The package that it comes from.
    pub(crate) fn package(self) -> Option<&'static str> {
        match self {
            Self::Plain | Self::Sandgate | Self::SandgateLandlock => None,
            Self::Bubblewrap => Some("bubblewrap"),
            Self::Codex => Some("codex"),
            Self::Srt => Some("srt"),
            Self::Firejail => Some("firejail"),
            Self::Landlock => Some("landlock"),
            Self::Birdcage => Some("birdcage"),
            Self::Hakoniwa => Some("hakoniwa"),
            Self::Sandlock => Some("sandlock"),
        }
    }

    /// The words to put before a command in this place.
    ///
    /// # Errors
    /// Why it cannot be had here.
    pub(crate) fn wrap(self, tools: &Tools, place: Place<'_>) -> Result<Wrapper, String> {
        let peer = match self.package() {
            Some(package) => Some(tools.peers.find(package)?),
            None => None,
        };
        let mut wrapper =
            Wrapper { words: Vec::new(), environment: vec![("PATH", tools.peers.path())] };
        let say = &mut wrapper.words;
        say.extend(peer.map(|peer| peer.program.into_os_string()));
        let mut words = |words: &[&str]| say.extend(words.iter().map(OsString::from));
        let workspace = place.workspace.display().to_string();
        match self {
            Self::Plain => wrapper.environment.clear(),
            Self::Sandgate => {
                words(&[&tools.sandgate.display().to_string(), "sandbox", "--full-auto", "--"]);
            }
            Self::SandgateLandlock => {
                let python = python().display().to_string();
                let sandgate = tools.sandgate.display().to_string();
                words(&[
                    &python,
                    "-c",
                    WITHOUT_NAMESPACES,
                    &sandgate,
                    "sandbox",
                    "--full-auto",
                    "--",
                ]);
            }
            Self::Bubblewrap => {
                words(&[
                    "--unshare-all",
                    "--die-with-parent",
                    "--new-session",
                    "--cap-drop",
                    "ALL",
                ]);
                words(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
                words(&["--bind", "/tmp", "/tmp", "--bind", &workspace, &workspace]);
                for name in PROTECTED {
                    let path = format!("{workspace}/{name}");
                    words(&["--ro-bind-try", &path, &path]);
                }
                words(&["--"]);
            }
            Self::Codex => {
                words(&["sandbox", "-c", "sandbox_mode=\"workspace-write\"", "--"]);
                wrapper.environment.push(("CODEX_HOME", place.settings.into()));
            }
            Self::Srt => {
                let settings = place.settings.join("srt.json");
                let text = serde_json::json!({
                    "network": { "allowedDomains": [], "deniedDomains": [] },
                    "filesystem":
                        { "denyRead": [], "allowWrite": [".", "/tmp"], "denyWrite": PROTECTED },
                });
                fs::write(&settings, text.to_string()).map_err(|error| error.to_string())?;
                words(&["--settings", &settings.display().to_string(), "--"]);
                // Its own default is a directory that whoever starts it has to make.
                wrapper.environment.push(("CLAUDE_CODE_TMPDIR", "/tmp".into()));
            }
            Self::Firejail => {
                words(&[
                    "--quiet",
                    "--noprofile",
                    "--net=none",
                    "--ipc-namespace",
                    "--keep-var-tmp",
                    "--private-dev",
                ]);
                words(&["--caps.drop=all", "--nonewprivs", "--seccomp", "--read-only=/"]);
                // It opens to an ordinary user only what is the user's own.
                let is_root = rustix::process::geteuid().is_root();
                let tmp = if is_root { "--read-write=/tmp" } else { "--private-tmp" };
                words(&[&format!("--read-write={workspace}"), tmp]);
                for name in PROTECTED {
                    words(&[&format!("--read-only={workspace}/{name}")]);
                }
                words(&["--"]);
            }
            Self::Landlock => {
                let roots = format!("{workspace}:/tmp:/dev");
                wrapper.environment.extend([("LL_FS_RO", "/".into()), ("LL_FS_RW", roots.into())]);
                wrapper
                    .environment
                    .extend([("LL_TCP_BIND", "".into()), ("LL_TCP_CONNECT", "".into())]);
                wrapper.environment.push(("LL_SCOPED", "a:s".into()));
            }
            Self::Birdcage => words(&["-e", "/", "-w", &workspace, "-w", "/tmp", "--"]),
            Self::Hakoniwa => {
                words(&["run", "--unshare-all", "-B", "/tmp:/tmp", "-w", &workspace, "--"]);
            }
            Self::Sandlock => {
                words(&["run", "-r", "/", "-w", &workspace, "-w", "/tmp", "--"]);
            }
        }
        Ok(wrapper)
    }
}

impl Wrapper {
    /// A command in its workspace, with no streams.
    #[expect(clippy::disallowed_methods, reason = "starts other programs than ours")]
    pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(
        &self,
        place: Place<'_>,
        command: &[S],
    ) -> Command {
        let mut words =
            self.words.iter().map(OsString::as_os_str).chain(command.iter().map(AsRef::as_ref));
        let mut all = Command::new(words.next().unwrap_or_default());
        all.args(words).envs(self.environment.iter().map(|(name, value)| (name, value)));
        all.current_dir(place.workspace).env_remove("TMPDIR");
        all.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        all
    }
}
