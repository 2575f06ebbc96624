//! What may stand after a rule's prefix.
//!
//! A rule that allows `git fetch` was not meant for `git fetch --upload-pack=PROGRAM`, which runs that
//! program. So a rule that allows does not cover an option that makes the program run another, unless
//! it spells the option out. Without the sandbox it covers, of programs that are known here, plain
//! words and options that somebody has looked at.

use super::matching::name_of;
use super::{Decision, Rule, RuleSandbox};
use crate::command::{Shape, SimpleCommand, Word};
use crate::wrapper::running;

/// Options that change nothing about what is run, of programs that are often let out of the sandbox.
/// A name covers `NAME=value`, a letter its groups and a number behind it. Sorted.
#[rustfmt::skip]
const HARMLESS: &[(&str, &[&str])] = &[
    ("cargo", &[
        "--", "-F", "-j", "-p", "-q", "-r", "-v", "--all", "--all-features", "--all-targets", "--bin",
        "--bins", "--color", "--example", "--examples", "--features", "--frozen", "--jobs",
        "--keep-going", "--lib", "--locked", "--message-format", "--no-default-features",
        "--no-fail-fast", "--no-run", "--nocapture", "--offline", "--package", "--quiet", "--release",
        "--test", "--tests", "--verbose", "--workspace",
    ]),
    ("gh", &[
        "-A", "-B", "-L", "-R", "-S", "-a", "-b", "-c", "-l", "-q", "-s", "-t", "--all", "--assignee",
        "--author", "--base", "--body", "--branch", "--comments", "--exit-status", "--head", "--job",
        "--jq", "--json", "--label", "--limit", "--log", "--log-failed", "--milestone", "--name-only",
        "--patch", "--repo", "--search", "--state", "--template", "--title", "--verbose", "--workflow",
        "--approve", "--comment", "--request-changes", "--watch",
    ]),
    ("git", &[
        "-4", "-6", "-a", "-d", "-f", "-j", "-n", "-p", "-q", "-t", "-u", "-v", "--all", "--atomic",
        "--autostash", "--branch", "--delete", "--depth", "--dry-run", "--ff-only", "--follow-tags",
        "--force", "--force-with-lease", "--heads", "--ipv4", "--ipv6", "--jobs", "--no-edit", "--no-ff",
        "--no-rebase", "--no-recurse-submodules", "--no-stat", "--no-tags", "--porcelain", "--progress",
        "--prune", "--prune-tags", "--quiet", "--rebase", "--set-upstream", "--shallow-since",
        "--single-branch", "--stat", "--tags", "--unshallow", "--verbose",
    ]),
    ("go", &["-bench", "-count", "-cover", "-json", "-race", "-run", "-short", "-tags", "-timeout", "-v"]),
    ("kubectl", &[
        "-A", "-L", "-c", "-f", "-l", "-n", "-o", "-w", "--all-containers", "--all-namespaces",
        "--container", "--context", "--field-selector", "--follow", "--ignore-not-found", "--namespace",
        "--no-headers", "--output", "--previous", "--selector", "--show-labels", "--since", "--sort-by",
        "--tail", "--timestamps", "--watch", "--wide",
    ]),
    ("make", &[
        "-B", "-O", "-i", "-j", "-k", "-n", "-q", "-s", "--always-make", "--dry-run", "--jobs",
        "--keep-going", "--no-print-directory", "--output-sync", "--quiet", "--silent",
    ]),
    ("npm", &[
        "-D", "-E", "-g", "-s", "-w", "--global", "--if-present", "--legacy-peer-deps", "--no-audit",
        "--no-fund", "--omit", "--save", "--save-dev", "--save-exact", "--silent", "--workspace",
        "--workspaces",
    ]),
    ("pip", &["-U", "-q", "-v", "--no-input", "--quiet", "--upgrade", "--user", "--verbose"]),
    ("pytest", &["-q", "-s", "-v", "-x", "--lf", "--maxfail"]),
    ("rsync", &[
        "-P", "-a", "-h", "-n", "-r", "-t", "-u", "-v", "-z", "--archive", "--compress", "--delete",
        "--dry-run", "--exclude", "--include", "--progress", "--recursive", "--stats", "--verbose",
    ]),
];

/// The first word of a command after a rule's prefix that the rule does not cover.
pub(super) fn uncovered<'a>(rule: &Rule, command: &'a SimpleCommand) -> Option<&'a Word> {
    if rule.decision != Decision::Allow {
        return None;
    }
    let words = &command.words;
    let name = name_of(&words.first()?.text);
    let at = rule.pattern.len();
    let tells = || words.get(at..)?.iter().find(|word| running::tells(word));
    let runs = running::word_from(words, &name, at).or_else(tells);
    if rule.sandbox == RuleSandbox::Keep {
        return runs;
    }
    let harmless = HARMLESS.iter().find(|(program, _)| *program == name).map(|(_, known)| *known);
    if harmless.is_none() && !running::is_known(&name) {
        return runs;
    }
    let harmless = harmless.unwrap_or_default();
    let covered = |word: &&Word| is_plain(word) || is_harmless(&word.text, harmless);
    runs.or_else(|| words.get(at..)?.iter().find(|word| !covered(word)))
}

/// A word that can be no option, no setting of a variable and no toolchain.
fn is_plain(word: &Word) -> bool {
    let text = word.text.as_str();
    let could_be_option = word.shape == Shape::Pattern && text.starts_with(['*', '?', '[']);
    !could_be_option && !text.starts_with(['-', '+', '@']) && !text.contains('=')
}

fn is_harmless(text: &str, known: &[&str]) -> bool {
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    if known.contains(&name) {
        return true;
    }
    let Some(letters) = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
        return false;
    };
    let letters = letters.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let is_known = |letter: char| {
        known.iter().any(|own| own.strip_prefix('-') == Some(letter.encode_utf8(&mut [0; 4])))
    };
    !letters.is_empty() && letters.chars().all(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(HARMLESS.is_sorted_by_key(|(program, _)| program));
    }
}
