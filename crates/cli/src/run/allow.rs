//! How a person lets a command do what its sandbox refused, in the words of the command line.

use sandgate_protocol::{DenialRule, Denials, SandboxPolicy, visible_line};
use sandgate_runtime::policy::{ApprovalStore, Surroundings};
use std::collections::BTreeSet;
use std::path::Path;

/// What to write for the next attempt, a line each. `home` is the person's.
pub(super) fn how(denials: &Denials, policy: &SandboxPolicy, home: Option<&Path>) -> Vec<String> {
    if *policy == SandboxPolicy::ReadOnly {
        let line = "to let it write here: --sandbox workspace-write, and --writable DIR elsewhere";
        return vec![line.to_owned()];
    }
    let home = home.and_then(|home| home.canonicalize().ok());
    let kept = ApprovalStore::new(Surroundings { home, ..Surroundings::default() }, None);
    let mut options = BTreeSet::new();
    let mut only_by_answer = false;
    for denial in &denials.evidence {
        match denial.rule {
            DenialRule::OutsideWritableRoots => {
                match directory_of(Path::new(&denial.target), &kept) {
                    Some(directory) => {
                        options.insert(format!("--writable {directory}"));
                    }
                    None => only_by_answer = true,
                }
            }
            DenialRule::NetworkOff => {
                options.insert("--network".to_owned());
            }
            DenialRule::ProtectedName
            | DenialRule::SocketOutsideWritableRoots
            | DenialRule::NeverAllowed => only_by_answer = true,
            // Nothing that can be said here would.
            DenialRule::ReadOnlyMount => {}
        }
    }
    let mut lines = Vec::new();
    if !options.is_empty() {
        let options: Vec<String> = options.into_iter().collect();
        lines.push(format!("to let it: {}", options.join(" ")));
    }
    if only_by_answer {
        let besides = if lines.is_empty() { "to let it" } else { "the rest" };
        lines.push(format!(
            "{besides}: run it at a terminal and answer, or prepare an answer with --decide"
        ));
    }
    lines
}

/// The directory that would have to be writable, as a shell needs it to be written. None if that is a
/// home, one of the system, or everything.
fn directory_of(target: &Path, kept: &ApprovalStore) -> Option<String> {
    let directory = target.ancestors().skip(1).find(|directory| directory.is_dir())?;
    kept.check_root(&directory.canonicalize().ok()?).ok()?;
    let text = visible_line(directory.to_str()?);
    let plain = |c: char| c.is_alphanumeric() || "_-./:=@%+,".contains(c);
    Some(match text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandgate_protocol::{DenialEvidence, DeniedOperation};

    fn denied(rules: &[(&str, DenialRule)]) -> Denials {
        let evidence = rules.iter().map(|(target, rule)| DenialEvidence {
            operation: DeniedOperation::Write,
            target: (*target).to_owned(),
            syscall: "openat".to_owned(),
            rule: *rule,
        });
        Denials { evidence: evidence.collect(), more: 0 }
    }

    #[test]
    fn each_refusal_has_its_option() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        let denials = denied(&[
            (&at("no such directory/file"), DenialRule::OutsideWritableRoots),
            (&at("file"), DenialRule::OutsideWritableRoots),
            ("93.184.216.34:443", DenialRule::NetworkOff),
            ("/home/me/.git/index.lock", DenialRule::ProtectedName),
        ]);
        let lines = how(&denials, &SandboxPolicy::workspace_write(), None);
        let expected = [
            &format!("to let it: --network --writable {}", directory.path().display()),
            "the rest: run it at a terminal and answer, or prepare an answer with --decide",
        ];
        assert_eq!(lines, expected);
        let lines = how(&denials, &SandboxPolicy::ReadOnly, None);
        assert!(lines[0].contains("--sandbox workspace-write"), "{lines:?}");
    }

    #[test]
    fn nobody_is_told_to_open_everything() {
        let home = tempfile::tempdir().unwrap();
        let at_home = home.path().join("zz").display().to_string();
        for file in ["/file", "/etc/hosts", &at_home] {
            let denials = denied(&[(file, DenialRule::OutsideWritableRoots)]);
            let policy = SandboxPolicy::workspace_write();
            let lines = how(&denials, &policy, Some(home.path()));
            assert!(lines.len() == 1 && !lines[0].contains("--writable"), "{lines:?}");
        }
    }
}
