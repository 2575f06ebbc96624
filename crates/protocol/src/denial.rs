//! What the sandbox refused, as facts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing that a command tried and its sandbox refused.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct DenialEvidence {
    /// What was tried.
    pub operation: DeniedOperation,
    /// On what: an absolute path, an address with its port, or what else the call was about. What of
    /// a path is not UTF-8 is replaced.
    pub target: String,
    /// The system call by which it was tried.
    pub syscall: String,
    /// Why it was refused.
    pub rule: DenialRule,
}

/// What a command tried.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum DeniedOperation {
    /// To write to something that is there.
    Write,
    /// To make a file, a directory, a link or a socket.
    Create,
    /// To remove something.
    Remove,
    /// To rename something, or to put it in another's place.
    Rename,
    /// To change a mode, an owner, times or attributes.
    Change,
    /// To connect to an address.
    Connect,
    /// To listen at an address.
    Bind,
    /// To send to an address.
    Send,
    /// To make a socket of a kind that nobody in the cage has a use for.
    Socket,
    /// To use a part of the kernel that the cage keeps closed.
    Use,
}

/// Why the sandbox refused something.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum DenialRule {
    /// It lies outside the writable roots.
    OutsideWritableRoots,
    /// It lies inside one, and is protected there.
    ProtectedName,
    /// The network is off.
    NetworkOff,
    /// A unix socket that does not lie in a writable root.
    SocketOutsideWritableRoots,
    /// Nothing in the cage may do this.
    NeverAllowed,
    /// It lies inside a writable root, on a mount that is read-only outside the sandbox as well.
    ReadOnlyMount,
}

/// All that was refused to one command.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Denials {
    /// Each thing once, in the order of the first attempts; no more than [`Denials::MOST`].
    #[serde(rename = "denials", skip_serializing_if = "Vec::is_empty", default)]
    pub evidence: Vec<DenialEvidence>,
    /// How many attempts are not listed, because there were more.
    #[serde(rename = "more_denials", skip_serializing_if = "is_zero", default)]
    pub more: u64,
}

impl Denials {
    /// How many are listed.
    pub const MOST: usize = 100;

    /// Adds what was refused later.
    pub fn append(&mut self, later: Self) {
        for denial in later.evidence {
            if self.evidence.len() < Self::MOST {
                self.evidence.push(denial);
            } else {
                self.more += 1;
            }
        }
        self.more += later.more;
    }

    /// Whether nothing was refused.
    pub fn is_empty(&self) -> bool {
        self.evidence.is_empty() && self.more == 0
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it like that")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl DeniedOperation {
    /// All there are, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Write,
        Self::Create,
        Self::Remove,
        Self::Rename,
        Self::Change,
        Self::Connect,
        Self::Bind,
        Self::Send,
        Self::Socket,
        Self::Use,
    ];

    /// Its name, on the wire and for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Create => "create",
            Self::Remove => "remove",
            Self::Rename => "rename",
            Self::Change => "change",
            Self::Connect => "connect",
            Self::Bind => "bind",
            Self::Send => "send",
            Self::Socket => "socket",
            Self::Use => "use",
        }
    }
}

impl DenialRule {
    /// All there are, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::OutsideWritableRoots,
        Self::ProtectedName,
        Self::NetworkOff,
        Self::SocketOutsideWritableRoots,
        Self::NeverAllowed,
        Self::ReadOnlyMount,
    ];

    /// The rule in a person's words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::OutsideWritableRoots => "outside the writable roots",
            Self::ProtectedName => "protected",
            Self::NetworkOff => "the network is off",
            Self::SocketOutsideWritableRoots => "a socket of a program outside the sandbox",
            Self::NeverAllowed => "never allowed in the sandbox",
            Self::ReadOnlyMount => "on a mount that is read-only outside the sandbox too",
        }
    }
}

impl std::fmt::Display for DenialEvidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ({})", self.operation.name(), self.target, self.rule.reason())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_stands_at_its_number() {
        for (number, operation) in DeniedOperation::ALL.into_iter().enumerate() {
            assert_eq!(operation as usize, number);
            let json = serde_json::to_value(operation).unwrap();
            assert_eq!(json, operation.name());
        }
        for (number, rule) in DenialRule::ALL.into_iter().enumerate() {
            assert_eq!(rule as usize, number);
        }
    }

    #[test]
    fn a_denial_reads_as_what_was_tried_and_why_not() {
        let denial = DenialEvidence {
            operation: DeniedOperation::Write,
            target: "/etc/hosts".to_owned(),
            syscall: "openat".to_owned(),
            rule: DenialRule::OutsideWritableRoots,
        };
        assert_eq!(denial.to_string(), "write /etc/hosts (outside the writable roots)");
        let json = serde_json::json!({
            "operation": "write",
            "target": "/etc/hosts",
            "syscall": "openat",
            "rule": "outside-writable-roots",
        });
        assert_eq!(serde_json::to_value(&denial).unwrap(), json);
    }
}
