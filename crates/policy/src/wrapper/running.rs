//! Options of programs that are no wrappers, by which they run another program all the same: in
//! groups, with attached values, and as short as the program takes them.

use crate::command::{Shape, Word};

/// The options of one program.
struct Running {
    program: &'static str,
    /// One of these must stand before the option; none of them where it always counts.
    verbs: &'static [&'static str],
    /// Letters, alone or in a group.
    letters: &'static str,
    /// Long names, in full or shortened.
    long: &'static [&'static str],
    /// How a word begins.
    starts: &'static [&'static str],
    /// What a word holds, whatever its case: keywords of a language of settings.
    holds: &'static [&'static str],
}

const fn of(program: &'static str) -> Running {
    Running { program, verbs: &[], letters: "", long: &[], starts: &[], holds: &[] }
}

const fn after(program: &'static str, verbs: &'static [&'static str]) -> Running {
    Running { verbs, ..of(program) }
}

/// What OpenSSH runs or loads.
const SSH: &[&str] = &[
    "proxycommand",
    "localcommand",
    "knownhostscommand",
    "authorizedkeyscommand",
    "pkcs11provider",
    "securitykeyprovider",
    "remotecommand",
    "include",
    "match",
];

const LINKING: &[&str] = &[
    "-exec",
    "--exec",
    "-toolexec",
    "--toolexec",
    "-vettool",
    "--vettool",
    "-ldflags",
    "--ldflags",
];

/// Sorted by program.
#[rustfmt::skip]
const RUNNING: &[Running] = &[
    Running { long: &["config"], ..of("cargo") },
    Running { starts: &["-wrapper", "-fplugin", "-specs", "--specs", "-B", "@"], ..of("cc") },
    Running { starts: &["-wrapper", "-fplugin", "-specs", "--specs", "-B", "@"], ..of("clang") },
    Running { letters: "K", long: &["config"], ..of("curl") },
    Running { letters: "xX", long: &["exec", "exec-batch"], ..of("fd") },
    Running { letters: "xX", long: &["exec", "exec-batch"], ..of("fdfind") },
    Running { starts: &["-exec", "-ok"], ..of("find") },
    Running { starts: &["-wrapper", "-fplugin", "-specs", "--specs", "-B", "@"], ..of("gcc") },
    Running { starts: &["-exec", "-ok"], ..of("gfind") },
    Running { long: &["exec-path", "config-env"], ..of("git") },
    Running { long: &["exec"], ..after("git", &["archive"]) },
    Running { starts: &["run"], ..after("git", &["bisect"]) },
    Running { letters: "uc", long: &["upload-pack", "config", "template"], ..after("git", &["clone"]) },
    Running { letters: "x", long: &["extcmd"], ..after("git", &["difftool"]) },
    Running { long: &["upload-pack", "exec"], ..after("git", &["fetch", "fetch-pack", "ls-remote", "pull", "submodule"]) },
    Running { long: &["commit-filter", "env-filter", "index-filter", "msg-filter", "parent-filter", "setup", "tag-name-filter", "tree-filter"], ..after("git", &["filter-branch"]) },
    Running { letters: "O", long: &["open-files-in-pager"], ..after("git", &["grep"]) },
    Running { long: &["template"], ..after("git", &["init"]) },
    Running { long: &["exec", "receive-pack"], ..after("git", &["push", "send-pack"]) },
    Running { letters: "x", long: &["exec"], ..after("git", &["rebase"]) },
    Running { long: &["cc-cmd", "header-cmd", "sendmail-cmd", "smtp-server", "to-cmd"], ..after("git", &["send-email"]) },
    Running { starts: &["foreach"], ..after("git", &["submodule"]) },
    Running { starts: LINKING, ..of("go") },
    Running { long: &["kubeconfig"], ..of("kubectl") },
    Running { letters: "PH", long: &["html", "pager"], ..of("man") },
    Running { long: &["git", "init-module", "node-options", "script-shell"], ..of("npm") },
    Running { starts: &["-engine", "-provider"], ..of("openssl") },
    Running { long: &["hostname-bin", "pre"], ..of("rg") },
    Running { letters: "e", long: &["rsh", "rsync-path"], ..of("rsync") },
    Running { letters: "FS", holds: SSH, ..of("scp") },
    Running { letters: "FS", holds: SSH, ..of("sftp") },
    Running { long: &["compress-program"], ..of("sort") },
    Running { letters: "FI", holds: SSH, ..of("ssh") },
    Running { letters: "FI", long: &["checkpoint-action", "info-script", "new-volume-script", "rmt-command", "rsh-command", "to-command", "use-compress-program"], ..of("tar") },
    Running { long: &["unzip-command"], starts: &["-TT"], ..of("zip") },
];

/// The programs that have such options.
pub(crate) fn is_known(name: &str) -> bool {
    rows(name).next().is_some()
}

/// The first word from `at` on by which the program would run another, or could: a file name pattern
/// that may become such a word.
pub(crate) fn word_from<'a>(words: &'a [Word], name: &str, at: usize) -> Option<&'a Word> {
    let of_git = |index: usize| name == "git" && setting(words, index).is_some();
    (at..words.len())
        .find(|index| of_git(*index) || by_row(words, name, *index).is_some())
        .map(|index| &words[index])
}

/// The scripts that a program is given in such options.
pub(super) fn scripts<'a>(words: &'a [Word], name: &str) -> Vec<&'a str> {
    // These have readers of their own, which know where the command ends.
    if matches!(name, "fd" | "fdfind" | "find" | "gfind") {
        return Vec::new();
    }
    let scripts = (1..words.len()).filter_map(|index| by_row(words, name, index)?);
    scripts.map(|script| script.strip_prefix("exec=").unwrap_or(script)).collect()
}

fn rows(name: &str) -> impl Iterator<Item = &'static Running> {
    let start = RUNNING.partition_point(|row| row.program < name);
    RUNNING[start..].iter().take_while(move |row| row.program == name)
}

/// Whether the word at an index is such an option: if it is, with the command that it names, where
/// one follows.
fn by_row<'a>(words: &'a [Word], name: &str, index: usize) -> Option<Option<&'a str>> {
    rows(name)
        .filter(|row| {
            let before = words.get(1..index).unwrap_or_default();
            row.verbs.is_empty()
                || before.iter().any(|word| row.verbs.contains(&word.text.as_str()))
        })
        .find_map(|row| named_by(row, words, index))
}

fn named_by<'a>(row: &Running, words: &'a [Word], index: usize) -> Option<Option<&'a str>> {
    let word = &words[index];
    let text = word.text.as_str();
    let next = || words.get(index + 1).map(|word| word.text.as_str());
    if word.shape == Shape::Pattern && text.starts_with(['*', '?', '[']) {
        return Some(None);
    }
    if let Some(start) = row.starts.iter().find(|start| text.starts_with(**start)) {
        let value = text[start.len()..].strip_prefix('=');
        // A verb's command is found by whoever knows the verb.
        return Some(value.or_else(next).filter(|_| start.starts_with('-')));
    }
    let folded = if row.holds.is_empty() { String::new() } else { text.to_ascii_lowercase() };
    if row.holds.iter().any(|keyword| folded.contains(keyword)) {
        return Some(text.split_once(['=', ' ']).map(|(_, value)| value));
    }
    if let Some(long) = text.strip_prefix("--") {
        let (given, value) = match long.split_once('=') {
            Some((given, value)) => (given, Some(value)),
            None => (long, None),
        };
        let is_it = |name: &&str| !given.is_empty() && name.starts_with(given);
        return row.long.iter().find(|name| is_it(name)).map(|_| value.or_else(next));
    }
    // The first word of tar's arguments is a group, with a dash or without.
    let bundle = row.program == "tar" && index == 1;
    let letters = text.strip_prefix('-').or(bundle.then_some(text))?;
    let at = letters.find(|letter| row.letters.contains(letter))?;
    let attached = letters[at..].char_indices().nth(1).map(|(end, _)| &letters[at + end..]);
    Some(attached.or_else(next))
}

/// The value of `-c` for git: a setting for this one call, many of which name programs.
fn setting(words: &[Word], index: usize) -> Option<&str> {
    let text = words[index].text.as_str();
    let value = match text.strip_prefix("-c")? {
        "" => words.get(index + 1)?.text.as_str(),
        attached => attached,
    };
    value.split_once('=').filter(|(key, _)| key.contains('.')).map(|_| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<String> {
        let words: Vec<Word> = line.split(' ').map(Word::literal).collect();
        word_from(&words, &words[0].text, 1).map(|word| word.text.clone())
    }

    #[test]
    fn the_table_is_sorted_so_that_it_can_be_searched() {
        assert!(RUNNING.is_sorted_by_key(|row| row.program));
    }

    #[test]
    fn an_option_is_found_in_every_spelling() {
        for line in [
            "git fetch --upload-pack=x .",
            "git fetch --upload-pack x .",
            "git fetch --upl=x .",
            "git -C d fetch --upload-pack=x",
            "git push --receive-pack=x",
            "git push --exec=x",
            "git rebase -x x HEAD~2",
            "git rebase -ix x HEAD~2",
            "git rebase --ex=x HEAD~2",
            "git clone -ux y",
            "git clone -c core.sshCommand=x y",
            "git -ccore.pager=x log",
            "git grep -Ox y",
            "git bisect run x",
            "go test -exec x ./...",
            "go test -exec=x ./...",
            "cargo test --config x",
            "tar xf a --to-command=x",
            "tar xIf x a",
            "tar -xIx -f a",
            "rsync -ae x a b",
            "rsync --rs=x a b",
            "ssh -oproxycommand=x host",
            "ssh -o ProxyCommand=x host",
            "find . -exec x ;",
            "find . -okdir x ;",
            "sort --compress-p=x",
        ] {
            assert!(found(line).is_some(), "{line}");
        }
        for line in [
            "git fetch --all -p origin main",
            "git switch -c new",
            "git commit -c HEAD",
            "git push -u origin main",
            "cargo test --color always",
            "go test -run X ./...",
            "find . -name x",
            "tar xf a",
            "rsync -av a b",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }
}
