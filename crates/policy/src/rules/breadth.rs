//! How many words a rule must name before it is not too broad to be proposed.
//!
//! A person who is asked in the middle of their work says yes to what they see. What we offer them
//! must therefore be no more than it seems: `git` alone is a hundred programs, `bash -c` is all of
//! them. Whoever wants such a rule can write it into a file.

use super::matching::{has_directory, name_of};
use crate::wrapper;

/// What a rule for a program must name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Nothing is narrow enough: what it does, or runs, is all in its arguments.
    Never,
    /// The program is narrow enough by itself.
    Program,
    /// The program and so many plain words: no options.
    Words(usize),
    /// The file with the script that it runs.
    Script,
    /// After so many words another command begins, and that one decides.
    Runs(usize),
}

use Need::{Never, Program, Runs, Script, Words};

/// Programs. Sorted. Those that are not here need [`UNLISTED`].
const PROGRAMS: &[(&str, Need)] = &[
    (".", Never),
    ("ansible", Never),
    ("apt", Never),
    ("apt-get", Never),
    ("ash", Never),
    ("at", Never),
    ("awk", Never), // its program can run others
    ("aws", Words(2)),
    ("az", Words(2)),
    ("bash", Never),
    ("batch", Never),
    ("bazel", Words(1)),
    ("black", Program),
    ("brew", Words(1)),
    ("builtin", Never),
    ("bun", Words(1)),
    ("bundle", Words(1)),
    ("bunx", Runs(1)),
    ("busybox", Never),
    ("cargo", Words(1)),
    ("chgrp", Never),
    ("chmod", Never),
    ("chown", Never),
    ("chroot", Never),
    ("claude", Never),
    ("cmake", Words(1)),
    ("cmd", Never),
    ("codex", Never),
    ("command", Never),
    ("cp", Never), // what matters is where to
    ("crontab", Never),
    ("csh", Never),
    ("ctest", Program),
    ("curl", Never),
    ("dash", Never),
    ("dd", Never),
    ("deno", Words(1)),
    ("diskutil", Never),
    ("dnf", Never),
    ("doas", Never),
    ("docker", Never), // can mount all of the machine
    ("docker-compose", Never),
    ("dotnet", Words(1)),
    ("ed", Never),
    ("emacs", Never),
    ("entr", Never),
    ("env", Never),
    ("eslint", Program),
    ("eval", Never),
    ("ex", Never),
    ("exec", Never),
    ("expect", Never),
    ("fd", Never), // -x
    ("fdisk", Never),
    ("find", Never), // -exec, -delete
    ("firejail", Never),
    ("fish", Never),
    ("flake8", Program),
    ("flock", Never),
    ("ftp", Never),
    ("gawk", Never),
    ("gcloud", Words(2)),
    ("gdb", Never),
    ("gem", Words(1)),
    ("gh", Words(2)),
    ("git", Words(1)),
    ("glab", Words(2)),
    ("go", Words(1)),
    ("gofmt", Program),
    ("gradle", Words(1)),
    ("halt", Never),
    ("helm", Words(2)),
    ("init", Never),
    ("install", Never),
    ("ionice", Never),
    ("iptables", Never),
    ("irb", Never),
    ("isort", Program),
    ("java", Never),
    ("jest", Program),
    ("jshell", Never),
    ("just", Words(1)),
    ("kill", Never),
    ("killall", Never),
    ("ksh", Never),
    ("kubectl", Words(2)),
    ("launchctl", Never),
    ("less", Never), // ! runs a shell
    ("lldb", Never),
    ("ln", Never),
    ("ltrace", Never),
    ("lua", Script),
    ("make", Words(1)),
    ("man", Never),
    ("mawk", Never),
    ("meson", Words(1)),
    ("mkdir", Program),
    ("mkfs", Never),
    ("mksh", Never),
    ("more", Never),
    ("mount", Never),
    ("mv", Never),
    ("mvn", Words(1)),
    ("mypy", Program),
    ("mysql", Never),
    ("nano", Never),
    ("nc", Never),
    ("ncat", Never),
    ("nice", Never),
    ("ninja", Words(1)),
    ("nix", Never),
    ("nmap", Never),
    ("node", Script),
    ("nodejs", Script),
    ("nohup", Never),
    ("npm", Words(1)),
    ("npx", Runs(1)),
    ("nsenter", Never),
    ("open", Never),
    ("osascript", Never),
    ("pacman", Never),
    ("parallel", Never),
    ("parted", Never),
    ("passwd", Never),
    ("pdm", Words(1)),
    ("perl", Script),
    ("php", Script),
    ("phpunit", Program),
    ("pip", Words(1)),
    ("pipenv", Words(1)),
    ("pipx", Words(1)),
    ("pkexec", Never),
    ("pkill", Never),
    ("pnpm", Words(1)),
    ("pnpx", Runs(1)),
    ("podman", Never),
    ("poetry", Words(1)),
    ("poweroff", Never),
    ("powershell", Never),
    ("prettier", Program),
    ("psql", Never),
    ("pwsh", Never),
    ("pylint", Program),
    ("pypy", Script),
    ("pytest", Program),
    ("python", Script),
    ("r", Never),
    ("rake", Words(1)),
    ("reboot", Never),
    ("rm", Never),
    ("rmdir", Never),
    ("rscript", Script),
    ("rspec", Program),
    ("rsync", Never),
    ("rubocop", Program),
    ("ruby", Script),
    ("ruff", Words(1)),
    ("runas", Never),
    ("rustfmt", Program),
    ("rustup", Words(1)),
    ("sandgate", Never),
    ("scp", Never),
    ("screen", Never),
    ("script", Never),
    ("sed", Never), // w, e, -i
    ("service", Never),
    ("setsid", Never),
    ("sftp", Never),
    ("sh", Never),
    ("shellcheck", Program),
    ("shred", Never),
    ("shutdown", Never),
    ("snap", Never),
    ("socat", Never),
    ("source", Never),
    ("sqlite", Never), // .shell
    ("ssh", Never),
    ("start", Never),
    ("stdbuf", Never),
    ("strace", Never),
    ("su", Never),
    ("sudo", Never),
    ("swift", Words(1)),
    ("systemctl", Never),
    ("systemd-run", Never),
    ("tar", Never), // --to-command
    ("task", Words(1)),
    ("taskset", Never),
    ("tclsh", Script),
    ("tcsh", Never),
    ("tee", Never),
    ("telnet", Never),
    ("terraform", Words(1)),
    ("time", Never),
    ("timeout", Never),
    ("tmux", Never),
    ("touch", Program),
    ("tox", Program),
    ("trap", Never),
    ("truncate", Never),
    ("tsc", Program),
    ("tsx", Script),
    ("umount", Never),
    ("unshare", Never),
    ("unzip", Never),
    ("useradd", Never),
    ("usermod", Never),
    ("uv", Words(1)),
    ("uvx", Runs(1)),
    ("vi", Never),
    ("vim", Never),
    ("visudo", Never),
    ("vitest", Program),
    ("watch", Never),
    ("wget", Never),
    ("wsl", Never),
    ("xargs", Never),
    ("xdg-open", Never),
    ("yarn", Words(1)),
    ("yum", Never),
    ("zip", Never), // -TT
    ("zsh", Never),
];

/// What a program needs that nobody has thought about: one word that says what it does.
const UNLISTED: Need = Words(1);

/// Subcommands that need something else than their program. Sorted.
const SUBCOMMANDS: &[(&str, &str, Need)] = &[
    ("aws", "configure", Never),
    ("brew", "uninstall", Never),
    ("bun", "exec", Never),
    ("bun", "run", Words(2)),
    ("bun", "x", Runs(2)),
    ("bundle", "config", Never),
    ("bundle", "exec", Runs(2)),
    ("cargo", "install", Words(2)),
    ("cargo", "login", Never),
    ("cargo", "owner", Never),
    ("cargo", "publish", Never),
    ("cargo", "yank", Never),
    ("deno", "eval", Never),
    ("deno", "install", Never),
    ("deno", "repl", Never),
    ("deno", "run", Words(2)),
    ("deno", "task", Words(2)),
    ("dotnet", "nuget", Never),
    ("dotnet", "tool", Words(2)),
    ("gh", "alias", Never),
    ("gh", "api", Never),
    ("gh", "auth", Never),
    ("gh", "config", Never),
    ("gh", "extension", Never),
    ("gh", "secret", Never),
    ("gh", "ssh-key", Never),
    ("git", "bisect", Words(2)),
    ("git", "config", Never), // names programs that git runs
    ("git", "credential", Never),
    ("git", "daemon", Never),
    ("git", "difftool", Never),
    ("git", "filter-branch", Never),
    ("git", "mergetool", Never),
    ("git", "remote", Words(2)),
    ("git", "send-email", Never),
    ("git", "submodule", Words(2)),
    ("git", "worktree", Words(2)),
    ("go", "env", Never),
    ("go", "generate", Words(2)),
    ("go", "run", Words(2)),
    ("go", "tool", Words(2)),
    ("kubectl", "attach", Never),
    ("kubectl", "config", Never),
    ("kubectl", "cp", Never),
    ("kubectl", "debug", Never),
    ("kubectl", "delete", Never),
    ("kubectl", "exec", Never),
    ("kubectl", "port-forward", Never),
    ("kubectl", "proxy", Never),
    ("kubectl", "run", Never),
    ("npm", "adduser", Never),
    ("npm", "config", Never),
    ("npm", "exec", Never),
    ("npm", "explore", Never),
    ("npm", "login", Never),
    ("npm", "pkg", Never),
    ("npm", "publish", Never),
    ("npm", "run", Words(2)),
    ("npm", "run-script", Words(2)),
    ("npm", "set", Never),
    ("npm", "token", Never),
    ("npm", "x", Never),
    ("pdm", "run", Runs(2)),
    ("pip", "config", Never),
    ("pipenv", "run", Runs(2)),
    ("pipenv", "shell", Never),
    ("pipx", "run", Runs(2)),
    ("pnpm", "config", Never),
    ("pnpm", "dlx", Runs(2)),
    ("pnpm", "exec", Runs(2)),
    ("pnpm", "publish", Never),
    ("pnpm", "run", Words(2)),
    ("poetry", "config", Never),
    ("poetry", "publish", Never),
    ("poetry", "run", Runs(2)),
    ("poetry", "shell", Never),
    ("rustup", "run", Never),
    ("terraform", "apply", Never),
    ("terraform", "console", Never),
    ("terraform", "destroy", Never),
    ("terraform", "state", Words(2)),
    ("uv", "run", Runs(2)),
    ("uv", "tool", Words(2)),
    ("yarn", "config", Never),
    ("yarn", "dlx", Runs(2)),
    ("yarn", "exec", Runs(2)),
    ("yarn", "node", Never),
    ("yarn", "publish", Never),
    ("yarn", "run", Words(2)),
];

/// Three words that are a door to everything although two of them look harmless. Sorted.
const NEVER_THREE: &[(&str, &str, &str)] =
    &[("git", "bisect", "run"), ("git", "submodule", "foreach"), ("uv", "tool", "run")];

/// What `python -m` may run and be proposed: tests, checks and formatters.
const PYTHON_MODULES: &[&str] = &[
    "black",
    "build",
    "compileall",
    "flake8",
    "isort",
    "json.tool",
    "mypy",
    "pylint",
    "pytest",
    "ruff",
    "tox",
    "unittest",
];

/// How many of a command's words are the shortest prefix that is not too broad. None if even all of
/// them are.
pub(super) fn least(words: &[&str]) -> Option<usize> {
    least_within(words, 3)
}

/// What may be proposed to run without the sandbox: nothing that these do is decided by a file of the
/// working directory, so that nobody who can write there decides what runs outside. `git`, `make`,
/// `cargo`, `npm` and their like are not here: hooks, recipes and settings lie where they are called.
/// Program, subject, and what is done with it. Sorted.
const MAY_LEAVE: &[(&str, &str, &[&str])] = &[
    ("gh", "issue", &["comment", "create", "list", "status", "view"]),
    ("gh", "pr", &["checks", "comment", "diff", "list", "review", "view"]),
    ("gh", "release", &["list", "view"]),
    ("gh", "repo", &["list", "view"]),
    ("gh", "run", &["list", "view", "watch"]),
    ("gh", "workflow", &["list", "view"]),
    ("kubectl", "describe", &[]),
    ("kubectl", "get", &[]),
    ("kubectl", "logs", &[]),
    ("kubectl", "top", &[]),
];

/// Whether a rule for commands without the sandbox may be proposed with this prefix.
pub(super) fn may_leave(prefix: &[&str]) -> bool {
    let [program, subject, done, ..] = prefix else { return false };
    let listed = |row: &&(&str, &str, &[&str])| row.0 == *program && row.1 == *subject;
    MAY_LEAVE
        .iter()
        .find(listed)
        .is_some_and(|(.., verbs)| verbs.is_empty() || verbs.contains(done))
}

/// Whether what a program does is decided by files of the working directory, or wherever its words
/// say: a rule that lets it out of the sandbox lets out whatever somebody writes there.
pub(super) fn obeys_files(program: &str) -> bool {
    let name = name_of(program);
    let name = without_version(&name);
    obeys_recipes(name)
        || has_directory(program)
        || wrapper::runs_another(name, "")
        || matches!(program_need(program), Some(Script))
}

/// Whether a program of this name reads what it does from the directory that it is called in.
pub(crate) fn obeys_recipes(name: &str) -> bool {
    let name = name_of(name);
    OBEYS_FILES.contains(&without_version(&name))
}

/// Programs that read what they do from the directory that they are called in. Sorted.
#[rustfmt::skip]
const OBEYS_FILES: &[&str] = &[
    "ant", "bazel", "black", "brew", "bun", "bundle", "bunx", "cargo", "cmake", "composer",
    "ctest", "deno", "docker", "docker-compose", "dotnet", "eslint", "flake8", "git", "go",
    "gradle", "gradlew", "helm", "jest", "just", "make", "meson", "mix", "mvn", "mvnw", "mypy",
    "ninja", "nix", "nox", "npm", "npx", "pdm", "phpunit", "pip", "pipenv", "pipx", "pnpm",
    "pnpx", "podman", "poetry", "pre-commit", "prettier", "pulumi", "pylint", "pytest", "rake",
    "rspec", "rubocop", "ruff", "rustup", "sbt", "scons", "swift", "task", "terraform", "tofu",
    "tox", "tsc", "turbo", "uv", "uvx", "vitest", "yarn",
];

fn least_within(words: &[&str], depth: usize) -> Option<usize> {
    let program = *words.first()?;
    match need_of(words) {
        _ if program.is_empty() || depth == 0 => None,
        Never => None,
        Program => Some(1),
        Words(count) => {
            let needed = words.get(1..=count)?;
            needed.iter().all(|word| is_plain(word)).then_some(count + 1)
        }
        Script => script(words),
        Runs(before) => {
            let named = words.get(1..before)?.iter().all(|word| is_plain(word));
            let rest = words.get(before..)?;
            // An option here belongs to the runner, and can name another command.
            let runs_plainly = named && rest.first().is_some_and(|word| is_plain(word));
            Some(before + least_within(rest, depth - 1).filter(|_| runs_plainly)?)
        }
    }
}

fn need_of(words: &[&str]) -> Need {
    let program = words.first().copied().unwrap_or_default();
    let full = name_of(program);
    let name = without_version(&full);
    let third = |second| words.get(2).map(|third| (name, second, *third));
    if let Some(second) = words.get(1).copied() {
        if third(second).is_some_and(|three| NEVER_THREE.contains(&three)) {
            return Never;
        }
        let found = SUBCOMMANDS.binary_search_by(|(a, b, _)| (*a, *b).cmp(&(name, second)));
        if let Ok(place) = found {
            return SUBCOMMANDS[place].2;
        }
    }
    match program_need(program) {
        Some(need @ (Never | Runs(_))) => need,
        // What a wrapper is told to run is not known by the wrapper's name.
        _ if wrapper::runs_another(&full, words.get(1).copied().unwrap_or_default()) => Never,
        _ if wrapper::runs_another(name, words.get(1).copied().unwrap_or_default()) => Never,
        Some(need) => need,
        // A script of the person's or the project's own is one program with one purpose.
        None if has_directory(program) => Program,
        None => UNLISTED,
    }
}

fn program_need(program: &str) -> Option<Need> {
    let name = name_of(program);
    let find = |name: &str| PROGRAMS.binary_search_by(|(program, _)| (*program).cmp(name)).ok();
    let place = find(&name).or_else(|| find(without_version(&name)))?;
    Some(PROGRAMS[place].1)
}

/// `python3.12` is python, `mkfs.ext4` is mkfs.
fn without_version(name: &str) -> &str {
    if name.starts_with("mkfs.") { "mkfs" } else { wrapper::without_version(name) }
}

/// An interpreter with the file that it runs, or Python with a module that is known.
fn script(words: &[&str]) -> Option<usize> {
    match words.get(1..)? {
        ["-m", module, ..] if PYTHON_MODULES.contains(module) => Some(3),
        [file, ..] if is_plain(file) && file.contains(['.', '/']) => Some(2),
        _ => None,
    }
}

/// A word that says what is done: no option, no toolchain, no variable, nothing unprintable.
fn is_plain(word: &str) -> bool {
    !word.is_empty()
        && !word.starts_with(['-', '+', '@'])
        && !word.contains('=')
        && !word.chars().any(|character| character.is_control() || character.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted() {
        assert!(PROGRAMS.is_sorted_by(|a, b| a.0 < b.0));
        assert!(SUBCOMMANDS.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
        assert!(MAY_LEAVE.is_sorted() && OBEYS_FILES.is_sorted());
        assert!(NEVER_THREE.is_sorted() && PYTHON_MODULES.is_sorted());
        for (program, ..) in SUBCOMMANDS {
            assert!(program_need(program).is_some(), "{program}");
        }
    }

    #[test]
    fn every_wrapper_needs_the_command_inside() {
        for (name, verb, before) in crate::wrapper::names() {
            for inside in [&["sh", "-c", "x"][..], &["prog"], &["prog", "--x"], &["rm", "x"]] {
                let mut words = vec![name];
                words.extend((!verb.is_empty()).then_some(verb));
                words.extend(std::iter::repeat_n("1", before));
                words.extend(inside);
                assert_eq!(least(&words), None, "{words:?}");
            }
        }
    }

    #[test]
    fn the_shortest_prefix_names_what_is_done() {
        let cases = [
            ("git pull origin main", Some(2)),
            ("/usr/bin/git pull", Some(2)),
            ("git remote add x y", Some(3)),
            ("cargo test -p a", Some(2)),
            ("npm run build", Some(3)),
            ("npm run", None),
            ("npm install left-pad", Some(2)),
            ("pytest -q", Some(1)),
            ("python3 -m pytest -q", Some(3)),
            ("python3 tools/gen.py x", Some(2)),
            ("node build.mjs", Some(2)),
            ("npx eslint src", Some(2)),
            ("npx tool go", Some(3)),
            ("uv run pytest", Some(3)),
            ("uv run python3 -c x", None),
            ("poetry run python tool.py", Some(4)),
            ("./scripts/check.sh --all", Some(1)),
            ("mytool build", Some(2)),
            ("make test", Some(2)),
            ("kubectl get pods", Some(3)),
        ];
        for (text, expected) in cases {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(least(&words), expected, "{text}");
        }
    }

    #[test]
    fn what_can_run_anything_is_never_narrow_enough() {
        for text in [
            "git",
            "git -c core.pager=x log",
            "git config core.pager x",
            "git bisect run sh",
            "git submodule foreach rm",
            "bash",
            "bash -c x",
            "bash script.sh",
            "python3",
            "python3 -c x",
            "python3 -m pip install x",
            "python3 -",
            "python3.12 -c x",
            ".venv/bin/python -c x",
            "node -e x",
            "perl -e x",
            "env A=b x",
            "sudo ls",
            "xargs rm",
            "find . -delete",
            "ssh host",
            "docker run x",
            "npx",
            "npx -y tool",
            "npx bash -c x",
            "npx npx npx npx eslint",
            "cargo",
            "cargo +nightly test",
            "make",
            "make SHELL=/tmp/x",
            "rm -rf x",
            "mkfs.ext4 x",
            "mytool",
            "mytool --flag x",
            "SUDO ls",
            "./sudo ls",
            "",
        ] {
            let words: Vec<&str> = text.split(' ').collect();
            assert_eq!(least(&words), None, "{text}");
        }
    }
}
