//! Whether the sandbox is why a command failed.
//!
//! Where what is refused is recorded, the record decides and nobody reads the output. Elsewhere it is
//! a guess, by what programs print when they are refused something; the lists are below.

use sandgate_protocol::{Denials, ExecToolCallOutput, SIGNAL_KILL, SandboxType, StreamOutput};

/// Why we think that the sandbox made a command fail: what the person is told who decides whether it
/// is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// These things were refused.
    Evidence(Denials),
    /// Nothing was recorded; this phrase in its output looks like a refusal.
    Keyword(&'static str),
    /// Nothing was recorded; this exit code looks like a refusal.
    ExitCode(i32),
}

/// What programs print of any refusal, by a sandbox or not.
const ORDINARY: &[&str] = &["operation not permitted", "permission denied"];
/// The same on Windows.
const ORDINARY_ON_WINDOWS: &[&str] = &["access is denied"];
/// What is hardly printed without a sandbox.
const TELLING: &[&str] = &["read-only file system", "failed to write file", "sandbox-exec: denied"];
/// What confines, by its name. It counts among the errors and as a word of its own: a path that it
/// is a part of says nothing.
const NAMES: &[&str] = &["sandbox", "seccomp", "landlock"];

/// Exit codes that have a meaning of their own: used wrongly, cannot be executed, not found. What
/// is printed with any refusal does not count then.
const MEANT_OTHERWISE: [i32; 3] = [2, 126, 127];

/// Windows' own code for a refusal.
const ERROR_ACCESS_DENIED: i32 = 5;

/// How much of a stream is read at its beginning, and as much at its end.
const LOOKED_AT: usize = 32 * 1024;

/// Decides. `supervised` says that everything the sandbox refused is in `denials`.
///
/// A command that succeeded was not stopped by what was refused to it, and one without a sandbox was
/// not refused anything. One that was killed, with its guard or by the system, did not come to fail.
pub fn denied(
    sandbox: SandboxType,
    supervised: bool,
    output: &ExecToolCallOutput,
    denials: &Denials,
) -> Option<Denial> {
    if sandbox == SandboxType::None || output.exit_code == 0 || was_killed(output) {
        return None;
    }
    if !denials.is_empty() {
        return Some(Denial::Evidence(denials.clone()));
    }
    if supervised {
        return None;
    }
    by_words(sandbox, output).or_else(|| by_exit_code(sandbox, output.exit_code))
}

/// Whether it was ended as nobody ends of a refusal, and no sandbox of ours ends anybody.
fn was_killed(output: &ExecToolCallOutput) -> bool {
    output.signal == Some(SIGNAL_KILL)
}

fn by_exit_code(sandbox: SandboxType, code: i32) -> Option<Denial> {
    let is_refusal = sandbox == SandboxType::WindowsRestrictedToken && code == ERROR_ACCESS_DENIED;
    is_refusal.then_some(Denial::ExitCode(code))
}

fn by_words(sandbox: SandboxType, output: &ExecToolCallOutput) -> Option<Denial> {
    let mut phrases = TELLING.to_vec();
    if !MEANT_OTHERWISE.contains(&output.exit_code) {
        phrases.extend(ORDINARY);
        if sandbox == SandboxType::WindowsRestrictedToken {
            phrases.extend(ORDINARY_ON_WINDOWS);
        }
    }
    let phrase = |text: &str| phrases.iter().copied().find(|phrase| text.contains(phrase));
    let name = |text: &str| NAMES.iter().copied().find(|name| has_word(text, name));
    let errors = excerpts(&output.stderr);
    let rest = [&output.stdout, &output.aggregated_output].into_iter().flat_map(excerpts);
    let among_errors = errors.map(|text| phrase(&text).or_else(|| name(&text)));
    among_errors.chain(rest.map(|text| phrase(&text))).flatten().next().map(Denial::Keyword)
}

/// The beginning and the end of a stream, in lower case. What lies between is not looked at.
fn excerpts(stream: &StreamOutput) -> impl Iterator<Item = String> {
    let text = &stream.text;
    let head = text.floor_char_boundary(LOOKED_AT);
    let tail = text.ceil_char_boundary(text.len().saturating_sub(LOOKED_AT).max(head));
    [&text[..head], &text[tail..]].into_iter().filter(|part| !part.is_empty()).map(lower)
}

fn lower(text: &str) -> String {
    text.to_ascii_lowercase()
}

/// Whether a word stands in a text by itself, not as a part of a name or a path.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "-_./\\".contains(c);
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + word.len()..].chars();
        // A full stop ends a sentence, unless a name goes on behind it.
        let goes_on = match after.next() {
            Some('.') => after.next().is_some_and(is_part),
            next => next.is_some_and(is_part),
        };
        !before.is_some_and(is_part) && !goes_on
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use SandboxType::{LinuxSeccomp, MacosSeatbelt, WindowsRestrictedToken};
    use proptest::prelude::*;
    use sandgate_protocol::{DenialEvidence, DenialRule, DeniedOperation};

    fn stream(text: &str) -> StreamOutput {
        StreamOutput { text: text.to_owned(), ..StreamOutput::default() }
    }

    fn output(exit_code: i32, stdout: &str, stderr: &str) -> ExecToolCallOutput {
        let mut output = ExecToolCallOutput::not_started(exit_code, "");
        output.stdout = stream(stdout);
        output.stderr = stream(stderr);
        output.aggregated_output = stream(&format!("{stdout}{stderr}"));
        output
    }

    fn evidence() -> Denials {
        let evidence = DenialEvidence {
            operation: DeniedOperation::Write,
            target: "/etc/hosts".to_owned(),
            syscall: "openat".to_owned(),
            rule: DenialRule::OutsideWritableRoots,
        };
        Denials { evidence: vec![evidence], more: 0 }
    }

    fn guess(sandbox: SandboxType, exit_code: i32, stderr: &str) -> Option<Denial> {
        denied(sandbox, false, &output(exit_code, "", stderr), &Denials::default())
    }

    /// spec DECISIONS.67: A command that was killed was not denied, whatever had been refused to it: it did not
    /// come to fail, and nobody is asked about it.
    #[test]
    fn who_was_killed_has_not_failed_of_a_refusal() {
        let mut killed = output(137, "", "permission denied\n");
        assert!(denied(LinuxSeccomp, true, &killed, &evidence()).is_some(), "it said so itself");
        killed.signal = Some(SIGNAL_KILL);
        assert_eq!(denied(LinuxSeccomp, true, &killed, &evidence()), None);
        assert_eq!(denied(LinuxSeccomp, false, &killed, &Denials::default()), None);
        killed.signal = Some(15);
        assert!(denied(LinuxSeccomp, true, &killed, &evidence()).is_some());
    }

    /// spec DECISIONS.10: Where refusals are recorded, a command was denied when it failed and something
    /// was refused to it, whatever it printed.
    #[test]
    fn a_record_decides_whatever_was_printed() {
        let loud = output(1, "sandbox\n", "permission denied by the sandbox\n");
        assert_eq!(denied(LinuxSeccomp, true, &loud, &Denials::default()), None);
        let silent = output(1, "", "");
        let denial = denied(LinuxSeccomp, true, &silent, &evidence());
        assert_eq!(denial, Some(Denial::Evidence(evidence())));
        let more = Denials { evidence: Vec::new(), more: 3 };
        assert_eq!(
            denied(LinuxSeccomp, true, &silent, &more),
            Some(Denial::Evidence(more.clone()))
        );
    }

    /// spec DECISIONS.11: A command that succeeded, or had no sandbox, was not denied.
    #[test]
    fn success_is_no_denial_and_neither_is_a_failure_without_a_sandbox() {
        for supervised in [true, false] {
            for denials in [Denials::default(), evidence()] {
                let success = output(0, "permission denied", "read-only file system");
                assert_eq!(denied(LinuxSeccomp, supervised, &success, &denials), None);
                let failure = output(1, "permission denied", "read-only file system");
                assert_eq!(denied(SandboxType::None, supervised, &failure, &denials), None);
            }
        }
    }

    /// spec DECISIONS.12: Where nothing is recorded, what programs print when they are refused something
    /// is taken for a denial.
    #[test]
    fn without_a_record_words_decide() {
        for (sandbox, stderr, keyword) in [
            (
                LinuxSeccomp,
                "touch: cannot touch '/x': Read-only file system",
                "read-only file system",
            ),
            (LinuxSeccomp, "sh: 1: cannot create /x: Permission denied", "permission denied"),
            (LinuxSeccomp, "error: Landlock refused it", "landlock"),
            (LinuxSeccomp, "killed by seccomp.", "seccomp"),
            (LinuxSeccomp, "Failed to write file /x", "failed to write file"),
            (MacosSeatbelt, "touch: /x: Operation not permitted", "operation not permitted"),
            (MacosSeatbelt, "sandbox-exec: denied", "sandbox-exec: denied"),
            (MacosSeatbelt, "(sandbox) no", "sandbox"),
            (WindowsRestrictedToken, "Access is denied.\r\n", "access is denied"),
            (WindowsRestrictedToken, "PermissionError: Permission denied", "permission denied"),
        ] {
            assert_eq!(guess(sandbox, 1, stderr), Some(Denial::Keyword(keyword)), "{stderr}");
        }
        let printed = output(1, "Permission denied\n", "");
        let denial = denied(LinuxSeccomp, false, &printed, &Denials::default());
        assert_eq!(denial, Some(Denial::Keyword("permission denied")));
        for (sandbox, stderr) in [
            (LinuxSeccomp, "no such file"),
            (LinuxSeccomp, "Access is denied."),
            (LinuxSeccomp, ""),
        ] {
            assert_eq!(guess(sandbox, 1, stderr), None, "{stderr}");
        }
    }

    /// spec DECISIONS.13: A path or a name that contains the word sandbox is no denial, and neither is
    /// what a program printed to its standard output about one.
    #[test]
    fn the_word_in_a_path_is_no_denial() {
        for stderr in [
            "cat: /tmp/sandbox/x: No such file",
            "cat: sandbox.rs: No such file",
            "error in my_sandbox",
            "error: sandboxing failed",
            "no test in docs/landlock",
        ] {
            assert_eq!(guess(LinuxSeccomp, 1, stderr), None, "{stderr}");
        }
        let found = output(1, "the sandbox\n", "");
        assert_eq!(denied(LinuxSeccomp, false, &found, &Denials::default()), None);
    }

    /// spec DECISIONS.14: With the exit codes 2, 126 and 127 only words count that are hardly printed
    /// without a sandbox.
    #[test]
    fn exit_codes_with_a_meaning_of_their_own_need_more() {
        for code in MEANT_OTHERWISE {
            assert_eq!(guess(LinuxSeccomp, code, "sh: ./x: Permission denied"), None, "{code}");
            let make = guess(LinuxSeccomp, code, "make: x: Read-only file system");
            assert_eq!(make, Some(Denial::Keyword("read-only file system")), "{code}");
        }
    }

    /// spec DECISIONS.15: On Windows the exit code 5 is a denial by itself.
    #[test]
    fn windows_has_a_code_of_its_own() {
        assert_eq!(guess(WindowsRestrictedToken, 5, ""), Some(Denial::ExitCode(5)));
        assert_eq!(guess(LinuxSeccomp, 5, ""), None);
        assert_eq!(guess(MacosSeatbelt, 5, ""), None);
    }

    /// spec DECISIONS.16: Of a large output the beginning and the end are looked at, and no more.
    #[test]
    fn a_large_output_is_looked_at_where_it_begins_and_ends() {
        let filler = "ü".repeat(LOOKED_AT);
        for (text, found) in [
            (format!("permission denied{filler}"), true),
            (format!("{filler}permission denied"), true),
            (format!("{filler}permission denied{filler}"), false),
        ] {
            assert_eq!(guess(LinuxSeccomp, 1, &text).is_some(), found);
        }
    }

    proptest! {
        #[test]
        fn case_is_of_no_matter(upper in proptest::collection::vec(any::<bool>(), 30)) {
            for phrase in ORDINARY.iter().chain(TELLING).chain(NAMES) {
                let flip = |(c, up): (char, &bool)| {
                    if *up { c.to_ascii_uppercase() } else { c }
                };
                let text: String = phrase.chars().zip(upper.iter().cycle()).map(flip).collect();
                prop_assert_eq!(guess(LinuxSeccomp, 1, &text), Some(Denial::Keyword(phrase)));
            }
        }

        #[test]
        fn any_text_gets_an_answer(text in "\\PC{0,40}", times in 1_usize..4_000, code in any::<i32>()) {
            let huge = text.repeat(times);
            let read: usize = excerpts(&stream(&huge)).map(|part| part.len()).sum();
            prop_assert!(read <= 2 * LOOKED_AT);
            if code == 0 {
                prop_assert_eq!(guess(LinuxSeccomp, code, &huge), None);
            }
            prop_assert_eq!(denied(LinuxSeccomp, true, &output(code, &huge, &huge), &Denials::default()), None);
        }

        #[test]
        fn what_is_short_is_read_once_and_whole(text in "\\PC{0,200}") {
            let read: String = excerpts(&stream(&text)).collect();
            prop_assert_eq!(read, lower(&text));
        }
    }
}
