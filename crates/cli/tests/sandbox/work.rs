//! Honest work.

#![expect(clippy::disallowed_methods, reason = "the tests prepare what honest work needs")]

use crate::cage::{Cage, has};
use std::fs;
use std::process::{Command, Stdio};

/// spec SANDBOX.50: A command can open terminals of its own and use them.
#[test]
fn terminals_work() {
    if !has("python3") {
        return;
    }
    let cage = Cage::new();
    let script =
        "python3 -c 'import pty; pty.spawn([\"sh\", \"-c\", \"test -t 1 && tty && stty size\"])'";
    let outcome = cage.run(script);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout().starts_with("/dev/pts/0\r\n"), "{outcome:?}");
}

/// spec SANDBOX.51: `git status`, `git log` and `git diff` work in a repository that is read-only.
#[test]
fn git_can_be_asked() {
    if !has("git") {
        return;
    }
    let cage = Cage::new();
    cage.files(&["file"]);
    let script = "git init -q . && git add file && git -c user.name=n -c user.email=e \
                  commit -q -m first && echo after > file";
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(cage.ws(""))
        .stdin(Stdio::null())
        .env("HOME", cage.base().join("home"))
        .status()
        .unwrap();
    assert!(made.success());
    let outcome =
        cage.run("git status --short && git log --format=%s && git diff --stat | tail -1");
    let lines: Vec<_> = outcome.stdout().lines().collect();
    assert_eq!(lines[..2], [" M file", "first"], "{outcome:?}");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let outcome = cage.run("git add file");
    assert_eq!(outcome.code, Some(128), "{outcome:?}");
}

/// spec SANDBOX.52: A program can be compiled and run in the workspace.
#[test]
fn programs_can_be_built() {
    if !has("make") || !has("cc") {
        return;
    }
    let cage = Cage::new();
    fs::write(cage.ws("hello.c"), "#include <stdio.h>\nint main(void) { puts(\"hello\"); }\n")
        .unwrap();
    let outcome = cage.run("make -s hello CC=cc && ./hello");
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), "hello\n"), "{outcome:?}");
}

/// spec SANDBOX.53: Pipelines, here-documents, temporary files and background jobs of a shell work.
#[test]
fn shells_work() {
    if !has("bash") {
        return;
    }
    let cage = Cage::new();
    let script = r#"bash -c '
set -e
cat <<END > doc
a
END
diff <(cat doc) <(echo a)
sleep 0 & wait $!
t=$(mktemp); echo b > "$t"; cat doc "$t" | sort -r; rm "$t"
'"#;
    let outcome = cage.run(script);
    assert_eq!((outcome.code, outcome.stdout()), (Some(0), "b\na\n"), "{outcome:?}");
}
