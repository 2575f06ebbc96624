//! What an approval is remembered by.

use sandgate_protocol::SandboxPermissions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What an approval is remembered by. Two requests with the same key are the same to a person:
/// nothing in it depends on the environment, and nothing is joined to a text that could be read in
/// two ways.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ApprovalKey {
    /// A command.
    Command {
        /// The tool that would run it.
        tool: String,
        /// Its words.
        argv: Vec<String>,
        /// Where it would run, absolute and canonical.
        cwd: PathBuf,
        /// Whether it asks to leave the sandbox: who approved it inside did not approve it outside.
        sandbox_permissions: SandboxPermissions,
        /// Whether it gets a terminal, through which more can be typed into it later.
        tty: bool,
        /// What the files held that it runs, where they are not the system's: who approved a script did
        /// not approve what becomes of it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        runs: Vec<Content>,
    },
    /// A change of one file.
    Patch {
        /// The file, absolute and canonical.
        file: PathBuf,
    },
}

/// A file, and what it held.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Content {
    /// The file, absolute and canonical.
    pub file: PathBuf,
    /// What its content is known by.
    pub is: String,
}

impl ApprovalKey {
    /// A change of one file, absolute and canonical. A patch has one such key for each.
    pub fn patch(file: impl Into<PathBuf>) -> Self {
        Self::Patch { file: file.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn command(argv: &[&str]) -> ApprovalKey {
        ApprovalKey::Command {
            tool: "shell".to_owned(),
            argv: argv.iter().map(ToString::to_string).collect(),
            cwd: "/ws".into(),
            sandbox_permissions: SandboxPermissions::UseDefault,
            tty: false,
            runs: Vec::new(),
        }
    }

    /// spec APPROVAL.42: A command's key is its tool, its words one by one, its directory, what it
    /// asks of the sandbox, whether it has a terminal and what the files hold that it runs; another of
    /// any of these is another key.
    #[test]
    fn another_command_is_another_key() {
        let mut keys = vec![command(&["a", "b c"]), command(&["a b", "c"]), command(&["a b c"])];
        let change = |change: fn(&mut ApprovalKey)| {
            let mut key = command(&["a", "b c"]);
            change(&mut key);
            key
        };
        keys.push(change(|key| {
            if let ApprovalKey::Command { tool, .. } = key {
                *tool = "exec_command".to_owned();
            }
        }));
        keys.push(change(|key| {
            if let ApprovalKey::Command { cwd, .. } = key {
                *cwd = "/ws2".into();
            }
        }));
        keys.push(change(|key| {
            if let ApprovalKey::Command { sandbox_permissions, .. } = key {
                *sandbox_permissions = SandboxPermissions::RequireEscalated;
            }
        }));
        keys.push(change(|key| {
            if let ApprovalKey::Command { tty, .. } = key {
                *tty = true;
            }
        }));
        for is in ["one", "another"] {
            let content = Content { file: "/ws/a".into(), is: is.to_owned() };
            let mut key = command(&["a", "b c"]);
            if let ApprovalKey::Command { runs, .. } = &mut key {
                runs.push(content);
            }
            keys.push(key);
        }
        let different: HashSet<&ApprovalKey> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
        assert_eq!(command(&["a", "b c"]), keys[0]);
    }

    #[test]
    fn a_key_can_be_written_down_and_read_again() {
        for key in [command(&["git", "push", "ü"]), ApprovalKey::patch("/ws/a b")] {
            let text = serde_json::to_string(&key).unwrap();
            assert_eq!(serde_json::from_str::<ApprovalKey>(&text).unwrap(), key);
        }
        let json = serde_json::to_value(command(&["ls"])).unwrap();
        let expected = serde_json::json!({
            "kind": "command",
            "tool": "shell",
            "argv": ["ls"],
            "cwd": "/ws",
            "sandbox_permissions": "use_default",
            "tty": false,
        });
        assert_eq!(json, expected);
    }
}
