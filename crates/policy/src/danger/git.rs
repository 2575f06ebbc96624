//! git: history that others have, work that is nowhere else, and settings that make git run things.
//!
//! What git can bring back is no danger: commits, merges, rebases, amends, single files restored,
//! branches deleted that were merged. What it cannot is one: changes that were never committed, all
//! at once; stashes; branches deleted by force; the log of where branches were. A plain push is for
//! the sandbox and the network to hold; one that rewrites or deletes is asked about.

use super::deletes::{Reach, deleting};
use super::scene::Scene;
use crate::command::Word;
use crate::wrapper::arguments::{Argument, arguments};

/// Long options before the verb that take a value in the next word.
const GLOBAL: &[&str] = &["git-dir", "work-tree", "namespace", "exec-path", "config-env"];

/// Verbs that lose history or work whatever follows, with what they do.
#[rustfmt::skip]
const ALWAYS: &[(&str, &str)] = &[
    ("filter-branch", "rewrites the project's whole history"),
    ("filter-repo", "rewrites the project's whole history"),
    ("prune", "deletes what git still keeps of lost work"),
];

/// Verbs with the word that makes them lose something: the verb, the word, what it does.
#[rustfmt::skip]
const WITH: &[(&str, &str, &str)] = &[
    ("branch", "-D", "deletes a branch, with commits that may be nowhere else"),
    ("credential", "fill", "prints the person's password for a server"),
    ("gc", "--prune=all", "deletes what git still keeps of lost work"),
    ("gc", "--prune=now", "deletes what git still keeps of lost work"),
    ("reflog", "delete", "deletes the log by which lost work is found"),
    ("reflog", "expire", "deletes the log by which lost work is found"),
    ("reset", "--hard", "throws away every change that is not committed"),
    ("reset", "--merge", "throws away changes that are not committed"),
    ("stash", "clear", "throws away all stashed changes"),
    ("stash", "drop", "throws away stashed changes"),
    ("switch", "--discard-changes", "throws away every change that is not committed"),
    ("switch", "-f", "throws away every change that is not committed"),
    ("switch", "--force", "throws away every change that is not committed"),
    ("update-ref", "-d", "deletes a branch, with commits that may be nowhere else"),
    ("update-ref", "--stdin", "moves or deletes branches"),
    ("worktree", "--force", "deletes a working tree with its changes"),
    ("worktree", "-f", "deletes a working tree with its changes"),
];

/// Settings that make git run a program, by how they begin or end.
const RUNNING: &[&str] = &[
    "core.hookspath",
    "core.fsmonitor",
    "core.sshcommand",
    "core.pager",
    "core.editor",
    "core.askpass",
    "core.gitproxy",
    "diff.external",
    "sequence.editor",
    "credential.helper",
    "gpg.program",
    "alias.",
    "filter.",
    "include.path",
    "includeif.",
    "pager.",
    "init.templatedir",
    "uploadpack.packobjectshook",
    "protocol.ext.allow",
    "url.",
];

pub(super) fn check(scene: &Scene<'_>) -> Option<String> {
    let words = &scene.command.words;
    let mut verb = None;
    for (index, argument) in arguments(words, "Cc", GLOBAL) {
        if let Argument::Operand(word) = argument {
            verb = Some((index, word.text.as_str()));
            break;
        }
    }
    let (at, verb) = verb?;
    let rest = &words[at..];
    if let Some((_, does)) = ALWAYS.iter().find(|(name, _)| *name == verb) {
        let asks = rest.iter().any(|word| matches!(word.text.as_str(), "-n" | "--dry-run"));
        return (!asks).then(|| format!("{does}: {}", scene.line()));
    }
    let with = WITH.iter().find(|(name, word, _)| *name == verb && has(rest, word));
    if let Some((_, _, does)) = with {
        return Some(format!("{does}: {}", scene.line()));
    }
    match verb {
        "push" | "send-pack" => push(rest),
        "clean" => clean(scene, rest),
        "checkout" | "restore" => put_back(scene, verb, rest),
        "config" => config(scene, rest),
        "rm" => {
            let forced =
                rest.iter().any(|word| is_letter(&word.text, 'f') || word.text == "--force");
            let targets = rest[1..].iter().filter(|word| !word.text.starts_with('-'));
            let mut targets = targets.filter(|_| forced);
            targets.find_map(|word| deleting(scene, word, Reach::Trees))
        }
        "branch" => {
            let force = has(rest, "-f") || has(rest, "--force");
            let deletes = has(rest, "-d") || has(rest, "--delete");
            (force && deletes).then(|| {
                format!("deletes a branch, with commits that may be nowhere else: {}", scene.line())
            })
        }
        _ => None,
    }
}

fn is_letter(text: &str, letter: char) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.contains(letter)
}

fn has(words: &[Word], wanted: &str) -> bool {
    let letter = wanted.strip_prefix('-').filter(|rest| rest.len() == 1);
    words[1..].iter().any(|word| match letter.and_then(|rest| rest.chars().next()) {
        Some(letter) => is_letter(&word.text, letter),
        None if wanted.starts_with("--") && !wanted.contains('=') => {
            // git takes long options shortened, as long as they are not ambiguous.
            word.text.len() > 4 && wanted.starts_with(word.text.as_str())
        }
        None => word.text == wanted,
    })
}

fn push(words: &[Word]) -> Option<String> {
    let (mut force, mut deletes, mut mirrors) = (false, false, false);
    let mut operands: Vec<&str> = Vec::new();
    for (_, argument) in arguments(words, "o", &["push-option", "repo", "receive-pack", "exec"]) {
        match argument {
            Argument::Operand(word) => operands.push(&word.text),
            Argument::Letter('f', _) => force = true,
            Argument::Letter('d', _) => deletes = true,
            Argument::Letter(..) => {}
            Argument::Long(name, _) => {
                force |= name.starts_with("force") || (name.len() > 1 && "force".starts_with(name));
                deletes |= name.len() > 2 && "delete".starts_with(name);
                mirrors |= matches!(name, "mirror" | "mirr" | "mirro" | "prune");
            }
        }
    }
    let remote = operands.first().copied().unwrap_or("the remote");
    if mirrors {
        return Some(format!("deletes or rewrites in {remote} whatever differs from here"));
    }
    let refs = operands.get(1..).unwrap_or_default();
    let named = |of: &str| {
        let target = of.trim_start_matches('+').rsplit(':').next().unwrap_or(of);
        format!("{remote}/{}", target.trim_start_matches("refs/heads/"))
    };
    let removed = refs.iter().find(|name| name.starts_with(':') && name.len() > 1);
    if let Some(name) = removed.or_else(|| refs.first().filter(|_| deletes)) {
        return Some(format!("deletes {}, which others may have", named(name)));
    }
    if deletes {
        return Some(format!("deletes in {remote} what others may have"));
    }
    let forced = refs.iter().find(|name| name.starts_with('+') && name.len() > 1);
    match forced.or_else(|| refs.first().filter(|_| force)) {
        Some(name) => Some(format!("rewrites the history that others have of {}", named(name))),
        None => force.then(|| format!("rewrites the history that others have in {remote}")),
    }
}

fn clean(scene: &Scene<'_>, words: &[Word]) -> Option<String> {
    let mut forced = false;
    for (_, argument) in arguments(words, "e", &["exclude"]) {
        if argument.is('n', "dry-run") {
            return None;
        }
        forced |= argument.is('f', "force");
    }
    forced.then(|| format!("deletes everything that git does not track: {}", scene.line()))
}

/// Everything put back at once; a file or two is an everyday thing.
fn put_back(scene: &Scene<'_>, verb: &str, words: &[Word]) -> Option<String> {
    let mut operands = Vec::new();
    let (mut staged, mut worktree, mut force) = (false, false, false);
    let values = if verb == "restore" { "s" } else { "bB" };
    for (_, argument) in arguments(words, values, &["source", "conflict", "orphan"]) {
        match argument {
            Argument::Operand(word) => operands.push(word),
            Argument::Letter('S', _) => staged = true,
            Argument::Letter('W', _) => worktree = true,
            Argument::Letter('f', _) if verb == "checkout" => force = true,
            Argument::Long(name, _) => {
                staged |= name == "staged";
                worktree |= name == "worktree";
                force |= name == "force" && verb == "checkout";
            }
            Argument::Letter(..) => {}
        }
    }
    if staged && !worktree {
        return None;
    }
    let all = operands.iter().any(|word| {
        let text = word.text.as_str();
        matches!(text, ":/" | "*" | ":" | ":(top)")
            || scene.place(word).without_everything().is_a_root(scene.around)
                && text.starts_with(['.', '*', '/'])
    });
    (all || force)
        .then(|| format!("throws away every change that is not committed: {}", scene.line()))
}

fn config(scene: &Scene<'_>, words: &[Word]) -> Option<String> {
    const READS: &[&str] = &[
        "--get",
        "--get-all",
        "--get-regexp",
        "--get-urlmatch",
        "--list",
        "-l",
        "list",
        "get",
        "--name-only",
        "--show-origin",
        "--get-color",
        "--show-scope",
    ];
    if words.iter().any(|word| READS.contains(&word.text.as_str())) {
        return None;
    }
    let operands: Vec<&str> = arguments(words, "ft", &["file", "type", "blob", "default"])
        .filter_map(|(_, argument)| match argument {
            Argument::Operand(word) => Some(word.text.as_str()),
            _ => None,
        })
        .filter(|text| !matches!(*text, "set" | "unset"))
        .collect();
    let key = operands.first()?.to_ascii_lowercase();
    let changes = operands.len() > 1
        || words.iter().any(|word| word.text.starts_with("--unset") || word.text == "--edit");
    if !changes {
        return None;
    }
    if RUNNING.iter().any(|start| key.starts_with(start)) || key.ends_with(".helper") {
        let value = operands.get(1).copied().unwrap_or_default();
        return Some(format!("has git run or obey {value} from now on, by setting {key}"));
    }
    let personal = words.iter().any(|word| matches!(word.text.as_str(), "--global" | "--system"));
    personal.then(|| format!("changes the person's own settings of git: {}", scene.line()))
}
