//! What a session allows its commands to touch, as a person configured it.

use crate::{SandboxType, is_invisible};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Names that no confined command and no patch may write to, remove, replace or make in a writable
/// root unless a person said so: they tell other programs what to run.
pub const PROTECTED_NAMES: [&str; 3] = [".git", ".codex", ".agents"];

/// Whether some file system takes a name for one of [`PROTECTED_NAMES`]: in another case of letters, with
/// dots, blanks or a stream behind it, in the short form of names (`git~1`), or with characters in it that
/// do not count. Which file system a name will be looked up by is not known, so all of them count.
///
/// ```
/// use sandgate_protocol::may_be_protected;
/// use std::ffi::OsStr;
///
/// assert!(may_be_protected(OsStr::new(".GIT")) && may_be_protected(OsStr::new(".git.")));
/// assert!(!may_be_protected(OsStr::new(".gitignore")));
/// ```
pub fn may_be_protected(name: &OsStr) -> bool {
    protected_name(name).is_some()
}

/// Which of [`PROTECTED_NAMES`] some file system takes a name for. Allocates nothing, and is cheap for names that
/// are nothing of the kind.
pub fn protected_name(name: &OsStr) -> Option<&'static str> {
    let bytes = name.as_encoded_bytes();
    let begins_like_one = |byte: &u8| *byte == b'.' || !byte.is_ascii();
    if !bytes.first().is_some_and(begins_like_one) && !bytes.contains(&b'~') {
        return None;
    }
    let mut letters = [0_u8; LONGEST_SPELLING];
    let plain = spelled_out(bytes, &mut letters)?;
    let is_short_form = |own: &str| {
        let at = plain.iter().position(|byte| *byte == b'~');
        at.map(|at| (&plain[..at], &plain[at + 1..])).is_some_and(|(stem, number)| {
            let is_number = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
            is_number && stem == own.trim_start_matches('.').as_bytes()
        })
    };
    PROTECTED_NAMES.into_iter().find(|own| plain == own.as_bytes() || is_short_form(own))
}

/// More letters than this, but for dots and blanks at the end, no spelling of a protected name has.
const LONGEST_SPELLING: usize = 32;

/// The letters of a name that count, in lower case, up to a stream and without the dots and blanks before it. Nothing
/// if there are others than those of ASCII, or too many.
fn spelled_out<'a>(name: &[u8], letters: &'a mut [u8; LONGEST_SPELLING]) -> Option<&'a [u8]> {
    // What is no text is a letter that is in no protected name.
    let text = name.utf8_chunks().flat_map(|chunk| {
        let broken = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
        chunk.valid().chars().chain(broken)
    });
    let (mut taken, mut counted) = (0, 0);
    for letter in text.take_while(|letter| *letter != ':') {
        let letter = match letter {
            // HFS+ and folders of ext4 that fold cases pass over these.
            letter if is_invisible(letter) => continue,
            // The one letter outside ASCII that folds to one of these names.
            'ſ' => b's',
            letter => u8::try_from(letter).ok().filter(u8::is_ascii)?.to_ascii_lowercase(),
        };
        let trails = matches!(letter, b'.' | b' ');
        if taken == LONGEST_SPELLING {
            if trails {
                continue;
            }
            return None;
        }
        letters[taken] = letter;
        taken += 1;
        if !trails {
            counted = taken;
        }
    }
    Some(&letters[..counted])
}

/// The session's policy on files and network. On the wire its name is in `mode`.
///
/// ```
/// use sandgate_protocol::{NetworkAccess, SandboxPolicy};
///
/// let policy = SandboxPolicy::workspace_write();
/// assert_eq!(policy.network_access(), NetworkAccess::Restricted);
///
/// let policy: SandboxPolicy = serde_json::from_str(
///     r#"{ "mode": "workspace-write", "writable_roots": ["/home/me/.cache"], "network_access": true }"#,
/// )?;
/// assert_eq!(policy.network_access(), NetworkAccess::Enabled);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "kebab-case")]
pub enum SandboxPolicy {
    /// Read anywhere, write nowhere, no network.
    ReadOnly,
    /// Read anywhere; write in the workspace and in the roots that are named.
    WorkspaceWrite {
        /// Directories beside the workspace that may be written to.
        #[serde(default)]
        writable_roots: Vec<PathBuf>,
        /// Whether the network can be reached.
        #[serde(default)]
        network_access: NetworkAccess,
        /// Leaves out the directory that `TMPDIR` names, which is writable otherwise.
        #[serde(default)]
        exclude_tmpdir_env_var: bool,
        /// Leaves out `/tmp`, which is writable otherwise.
        #[serde(default)]
        exclude_slash_tmp: bool,
    },
    /// No sandbox at all.
    DangerFullAccess,
    /// Something else confines the command already; we add nothing.
    ExternalSandbox {
        /// Whether that something lets the network be reached.
        #[serde(default)]
        network_access: NetworkAccess,
    },
}

/// Whether a command can reach the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", from = "WrittenAccess")]
pub enum NetworkAccess {
    /// Nothing but its own loopback answers.
    #[default]
    Restricted,
    /// As the machine has it.
    Enabled,
}

/// The two ways in which people write it.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenAccess {
    YesOrNo(bool),
    Word(AccessWord),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AccessWord {
    Restricted,
    Enabled,
}

impl From<WrittenAccess> for NetworkAccess {
    fn from(written: WrittenAccess) -> Self {
        match written {
            WrittenAccess::YesOrNo(true) | WrittenAccess::Word(AccessWord::Enabled) => {
                Self::Enabled
            }
            WrittenAccess::YesOrNo(false) | WrittenAccess::Word(AccessWord::Restricted) => {
                Self::Restricted
            }
        }
    }
}

impl SandboxPolicy {
    /// The workspace and nothing else.
    pub fn workspace_write() -> Self {
        Self::WorkspaceWrite {
            writable_roots: Vec::new(),
            network_access: NetworkAccess::Restricted,
            exclude_tmpdir_env_var: false,
            exclude_slash_tmp: false,
        }
    }

    /// Its name, as settings and the wire have it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite { .. } => "workspace-write",
            Self::DangerFullAccess => "danger-full-access",
            Self::ExternalSandbox { .. } => "external-sandbox",
        }
    }

    /// Whether the network can be reached.
    pub fn network_access(&self) -> NetworkAccess {
        match self {
            Self::ReadOnly => NetworkAccess::Restricted,
            Self::WorkspaceWrite { network_access, .. }
            | Self::ExternalSandbox { network_access } => *network_access,
            Self::DangerFullAccess => NetworkAccess::Enabled,
        }
    }
}

/// A tool's own word on the sandbox that its commands run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxablePreference {
    /// The sandbox that the policy asks for.
    #[default]
    Auto,
    /// A sandbox that holds everything, or it does not run.
    Require,
    /// No sandbox: it cannot work in one.
    Forbid,
}

/// What a machine's sandbox can enforce.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Enforcement {
    /// What confines commands here.
    pub sandbox: SandboxType,
    /// Whether a command gets namespaces of its own, and so its own view of files, processes and
    /// network.
    pub namespaces: bool,
    /// The version of the kernel's Landlock rules on files; 0 where there are none.
    pub landlock_abi: u32,
    /// Whether system calls are filtered.
    pub seccomp: bool,
    /// Whether what is refused is recorded, so that denials are facts and need not be guessed.
    #[serde(default)]
    pub supervisor: bool,
    /// What cannot be enforced here, in a person's words.
    pub missing: Vec<String>,
}

impl Enforcement {
    /// Whether there is a sandbox, and nothing is missing from it.
    pub fn is_full(&self) -> bool {
        self.sandbox != SandboxType::None && self.missing.is_empty()
    }
}

/// A directory that may be written to, and what in it may not; or one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WritableRoot {
    /// The directory or the file, absolute and canonical.
    pub path: PathBuf,
    /// What in it stays read-only, absolute and canonical.
    pub read_only_subpaths: Vec<PathBuf>,
}

impl WritableRoot {
    /// Whether a path, absolute and canonical, may be written to. Compared by components: `/work2`
    /// is not in `/work`.
    pub fn is_path_writable(&self, path: &Path) -> bool {
        path.starts_with(&self.path)
            && !self.read_only_subpaths.iter().any(|protected| path.starts_with(protected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn network_access_is_a_word_or_yes_or_no() {
        for (written, access) in [
            (json!(true), NetworkAccess::Enabled),
            (json!("enabled"), NetworkAccess::Enabled),
            (json!(false), NetworkAccess::Restricted),
            (json!("restricted"), NetworkAccess::Restricted),
        ] {
            assert_eq!(serde_json::from_value::<NetworkAccess>(written).unwrap(), access);
            let word = serde_json::to_value(access).unwrap();
            assert_eq!(serde_json::from_value::<NetworkAccess>(word).unwrap(), access);
        }
        for wrong in [json!("yes"), json!(1), json!(null)] {
            assert!(serde_json::from_value::<NetworkAccess>(wrong).is_err());
        }
    }

    #[test]
    fn a_preference_is_one_word() {
        for (preference, word) in [
            (SandboxablePreference::Auto, "auto"),
            (SandboxablePreference::Require, "require"),
            (SandboxablePreference::Forbid, "forbid"),
        ] {
            assert_eq!(serde_json::to_value(preference).unwrap(), json!(word));
            let read: SandboxablePreference = serde_json::from_value(json!(word)).unwrap();
            assert_eq!(read, preference);
        }
    }

    #[test]
    fn an_enforcement_from_before_there_were_supervisors_has_none() {
        let old = json!({
            "sandbox": "linux_seccomp",
            "namespaces": true,
            "landlock_abi": 7,
            "seccomp": true,
            "missing": [],
        });
        let mut read: Enforcement = serde_json::from_value(old).unwrap();
        assert!(!read.supervisor && read.is_full());
        read.missing.push("something".to_owned());
        assert!(!read.is_full());
        read = Enforcement { sandbox: SandboxType::None, missing: Vec::new(), ..read };
        assert!(!read.is_full());
    }

    #[test]
    fn a_root_holds_what_is_beneath_it_and_not_what_is_protected() {
        let root =
            WritableRoot { path: "/work".into(), read_only_subpaths: vec!["/work/.git".into()] };
        for (path, writable) in [
            ("/work", true),
            ("/work/src/main.rs", true),
            ("/work/.gitignore", true),
            ("/work/.git", false),
            ("/work/.git/config", false),
            ("/work2/file", false),
            ("/", false),
        ] {
            assert_eq!(root.is_path_writable(Path::new(path)), writable, "{path}");
        }
    }
}
