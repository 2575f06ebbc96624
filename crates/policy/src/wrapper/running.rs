//! Options of programs that are no wrappers, by which they run another program all the same: in
//! groups, with attached values, and as short as the program takes them.

use super::without_version;
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

/// What has a compiler load or run something: wrappers, plugins, files of options, other linkers.
const COMPILING: &[&str] = &[
    "-wrapper",
    "--wrapper",
    "-fplugin",
    "-fpass-plugin",
    "-iplugindir",
    "-specs",
    "--specs",
    "-B",
    "@",
    "-fuse-ld",
    "--ld-path",
    "-Xlinker",
    "-Xclang",
    "-Wl,-plugin",
    "-Wl,--plugin",
];

const ARCHIVING: &[&str] = &[
    "checkpoint-action",
    "info-script",
    "new-volume-script",
    "rmt-command",
    "rsh-command",
    "to-command",
    "use-compress-program",
];

const DOWNLOADING: &[&str] = &[
    "config-locations",
    "downloader",
    "exec",
    "external-downloader",
    "ffmpeg-location",
    "netrc-cmd",
    "plugin-dirs",
];

const TYPESETTING: &[&str] =
    &["-shell-escape", "--shell-escape", "-enable-write18", "--enable-write18"];

/// Sorted by program.
#[rustfmt::skip]
const RUNNING: &[Running] = &[
    Running { starts: &["--on-"], ..of("aria2c") },
    Running { starts: &["--run_under"], ..of("bazel") },
    Running { letters: "FI", long: ARCHIVING, ..of("bsdtar") },
    Running { starts: COMPILING, ..of("c++") },
    Running { long: &["config"], ..of("cargo") },
    Running { holds: &["linker="], ..after("cargo", &["rustc"]) },
    Running { starts: COMPILING, ..of("cc") },
    Running { starts: COMPILING, ..of("clang") },
    Running { starts: COMPILING, ..of("clang++") },
    Running { starts: &["-E", "-P", "-DCMAKE_C_COMPILER", "-DCMAKE_CXX_COMPILER", "-DCMAKE_MAKE_PROGRAM", "-DCMAKE_TOOLCHAIN_FILE"], ..of("cmake") },
    Running { long: &["rsh-command"], ..of("cpio") },
    Running { letters: "S", long: &["build-and-test", "test-command"], ..of("ctest") },
    Running { letters: "K", long: &["config"], ..of("curl") },
    Running { letters: "xX", long: &["exec", "exec-batch"], ..of("fd") },
    Running { letters: "xX", long: &["exec", "exec-batch"], ..of("fdfind") },
    Running { starts: &["-exec", "-ok"], ..of("find") },
    Running { long: &["bind", "preview"], ..of("fzf") },
    Running { starts: COMPILING, ..of("g++") },
    Running { starts: COMPILING, ..of("gcc") },
    Running { starts: &["-exec", "-ok"], ..of("gfind") },
    Running { starts: COMPILING, ..of("gfortran") },
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
    Running { letters: "bd", long: &["browser", "httpd"], ..after("git", &["instaweb"]) },
    Running { long: &["ext-diff", "filters", "textconv"], ..after("git", &["cat-file", "diff", "diff-files", "diff-index", "diff-tree", "grep", "log", "show", "stash"]) },
    Running { holds: &["ext::"], ..of("git") },
    Running { starts: LINKING, ..of("go") },
    Running { starts: &["-I", "--init-script"], ..of("gradle") },
    Running { letters: "FI", long: ARCHIVING, ..of("gtar") },
    Running { long: &["post-renderer"], ..of("helm") },
    Running { letters: "e", long: &["config", "remotecmd", "ssh"], ..of("hg") },
    Running { letters: "f", long: &["justfile", "set", "shell", "shell-arg"], ..of("just") },
    Running { long: &["kubeconfig"], ..of("kubectl") },
    Running { starts: TYPESETTING, ..of("latex") },
    Running { long: &["plugin"], starts: &["-plugin", "@"], ..of("ld") },
    Running { starts: TYPESETTING, ..of("lualatex") },
    Running { letters: "PH", long: &["html", "pager"], ..of("man") },
    Running { long: &["python-executable"], ..of("mypy") },
    Running { long: &["git", "init-module", "node-options", "script-shell"], ..of("npm") },
    Running { starts: &["-engine", "-provider"], ..of("openssl") },
    Running { letters: "FL", long: &["filter", "lua-filter", "pdf-engine"], ..of("pandoc") },
    Running { starts: TYPESETTING, ..of("pdflatex") },
    Running { long: &["python"], ..of("pip") },
    Running { starts: &["-E", "-R", "-e", "-f", "-r", "--execute", "--libdir", "--rakefile", "--require"], ..of("rake") },
    Running { long: &["hostname-bin", "pre"], ..of("rg") },
    Running { letters: "e", long: &["rsh", "rsync-path"], ..of("rsync") },
    Running { holds: &["linker=", "plugin"], ..of("rustc") },
    Running { letters: "FS", holds: SSH, ..of("scp") },
    Running { letters: "FS", holds: SSH, ..of("sftp") },
    Running { long: &["compress-program"], ..of("sort") },
    Running { long: &["filter"], ..of("split") },
    Running { letters: "FI", holds: SSH, ..of("ssh") },
    Running { long: &["config-dir", "config-option", "diff-cmd", "diff3-cmd", "editor-cmd"], ..of("svn") },
    Running { letters: "FI", long: ARCHIVING, ..of("tar") },
    Running { letters: "z", long: &["postrotate-command"], ..of("tcpdump") },
    Running { starts: TYPESETTING, ..of("tex") },
    Running { letters: "p", long: &["python"], ..of("uv") },
    Running { letters: "e", long: &["config", "execute", "use-askpass"], ..of("wget") },
    Running { starts: TYPESETTING, ..of("xelatex") },
    Running { long: DOWNLOADING, ..of("youtube-dl") },
    Running { long: DOWNLOADING, ..of("yt-dlp") },
    Running { long: &["unzip-command"], starts: &["-TT"], ..of("zip") },
];

/// Parts of the names of options that say that something is run. Sorted.
const TELLING: &[&str] = &[
    "askpass",
    "cmd",
    "command",
    "compiler",
    "editor",
    "exec",
    "executable",
    "execute",
    "hook",
    "hooks",
    "interpreter",
    "launcher",
    "linker",
    "pager",
    "plugin",
    "plugins",
    "preload",
    "program",
    "rsh",
    "runner",
    "shell",
    "ssh",
    "wrapper",
];

/// Whether an option of a program that nobody may have looked at says by its name that it runs
/// something, and what: `--password-command=x`.
pub(crate) fn tells(word: &Word) -> bool {
    let Some(long) = word.text.strip_prefix("--") else { return false };
    let (name, value) =
        long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
    // `--no-pager` is the opposite.
    let is_off = name.starts_with("no-") || matches!(value, Some("false" | "no" | "never" | "0"));
    !is_off && name.split(['-', '_', '.']).any(|part| TELLING.contains(&part))
}

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
    let name = without_version(name);
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
        assert!(RUNNING.iter().all(|row| without_version(row.program) == row.program));
        assert!(TELLING.is_sorted());
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
            "gcc-12 a.c -wrapper x",
            "g++ a.cc -fplugin=x",
            "rustc a.rs -Clinker=x",
            "split a --filt=x",
            "pip3 install --python x a",
            "git fetch ext::x",
            "git log --ext-diff",
            "gtar xf a --to-command=x",
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
            "gcc -O2 -Wall -o a a.c",
            "make -j8 test V=1",
            "pip install -U a",
            "git diff --stat",
            "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }
}
