//! `sandgate patch`: what a person sees of a patch, and what becomes of the files.

#![cfg(target_os = "linux")]

mod support;
#[path = "support/terminal.rs"]
mod terminal;

use serde_json::Value;
use std::fs::{self, File};
use std::io::Write as _;
use std::process::Stdio;
use support::{Running, World};
use terminal::Terminal;

/// Two files that are changed and moved, and one that is made.
const PATCH: &str = "\
*** Begin Patch
*** Update File: a.txt
@@
 one
-two
+TWO
+more
*** Add File: src/new.txt
+hello
*** Update File: old.txt
*** Move to: moved.txt
*** End Patch
";

const LINES: &str = "M a.txt  +2 -1\nA src/new.txt  +1 -0\nR old.txt -> moved.txt  +0 -0\n";

/// A patch to a protected name.
const PROTECTED: &str = "\
*** Begin Patch
*** Add File: .git/config
+[core]
*** End Patch
";

/// A home with the files that the patches are for.
fn world() -> World {
    let world = World::new();
    fs::write(world.path("a.txt"), "one\ntwo\nthree\n").unwrap();
    fs::write(world.path("old.txt"), "old\n").unwrap();
    fs::create_dir(world.path(".git")).unwrap();
    fs::write(world.path("fix.patch"), PATCH).unwrap();
    fs::write(world.path("protected.patch"), PROTECTED).unwrap();
    world
}

/// Whether everything is as it was.
fn is_untouched(world: &World) -> bool {
    let text = |name: &str| fs::read_to_string(world.path(name)).unwrap_or_default();
    (text("a.txt"), text("old.txt")) == ("one\ntwo\nthree\n".to_owned(), "old\n".to_owned())
        && ["src", "moved.txt", ".git/config"].iter().all(|name| !world.path(name).exists())
}

/// spec PATCH.90: `sandgate patch apply` makes all changes of a patch or none, and prints a line for
/// each file with the numbers of lines that come and go.
#[test]
fn a_patch_is_applied_and_told_file_by_file() {
    let world = world();
    let outcome = world.sandgate(&["patch", "apply", "fix.patch"]);
    assert_eq!((outcome.stdout(), outcome.stderr.as_str()), (LINES, ""));
    assert_eq!(outcome.code, Some(0));
    assert_eq!(fs::read_to_string(world.path("a.txt")).unwrap(), "one\nTWO\nmore\nthree\n");
    assert_eq!(fs::read_to_string(world.path("src/new.txt")).unwrap(), "hello\n");
    assert_eq!(fs::read_to_string(world.path("moved.txt")).unwrap(), "old\n");
    assert!(!world.path("old.txt").exists());
}

#[test]
fn a_patch_comes_from_standard_input_too_and_goes_where_it_is_told() {
    let world = world();
    fs::create_dir(world.path("below")).unwrap();
    let mut command = world.program(["patch", "apply", "--cd", "below", "-"]);
    let mut running = Running::start(command.stdin(Stdio::piped()));
    let mut stdin = running.child.stdin.take().unwrap();
    stdin.write_all(b"*** Begin Patch\n*** Add File: here\n+x\n*** End Patch\n").unwrap();
    drop(stdin);
    let outcome = running.wait();
    assert_eq!((outcome.stdout(), outcome.code), ("A here  +1 -0\n", Some(0)));
    assert_eq!(fs::read_to_string(world.path("below/here")).unwrap(), "x\n");
}

/// spec PATCH.91: `sandgate patch check` prints the same lines and whether a person would be asked, and
/// changes nothing.
///
/// spec PATCH.96: `check` ends with the exit code that `apply` would end with if nobody could be asked.
#[test]
fn a_check_says_what_would_happen_and_does_nothing() {
    let world = world();
    let check = |words: &[&str]| world.sandgate(&[&["patch", "check"], words].concat());
    let apply = |words: &[&str]| world.sandgate(&[&["patch", "apply"], words].concat()).code;

    let outcome = check(&["fix.patch"]);
    let free = "\nNothing was changed. It would be applied without a question.\n";
    assert_eq!((outcome.stdout(), outcome.code), ([LINES, free].concat().as_str(), Some(0)));

    let outcome = check(&["protected.patch"]);
    let path = world.home().canonicalize().unwrap().join(".git/config");
    let asked = format!(
        "A .git/config  +1 -0\n\nNothing was changed. You would be asked first: it would write {} \
         (protected).\n",
        path.display()
    );
    assert_eq!((outcome.stdout(), outcome.code), (asked.as_str(), Some(77)));
    assert_eq!(apply(&["protected.patch"]), Some(77));

    let never = ["--ask-for-approval", "never", "protected.patch"];
    let outcome = check(&never);
    assert!(outcome.stdout().contains("Nothing was changed. It would be refused."));
    assert_eq!((outcome.code, apply(&never)), (Some(78), Some(78)));

    assert!(is_untouched(&world));
    assert_eq!(apply(&["fix.patch"]), Some(0));
    assert_eq!(check(&["fix.patch"]).code, Some(1), "it does not fit twice");
}

/// spec PATCH.92: What is no patch, or does not fit the files, is told with the name of its source and
/// the line, changes nothing, and ends in exit code 1.
#[test]
fn what_is_wrong_is_told_with_its_line() {
    let world = world();
    let misfit = PATCH.replace("-two", "-zwei");
    let torn = PATCH.replace("*** Add File: src/new.txt", "*** Bdd File: src/new.txt");
    for (text, said) in [
        (misfit.as_bytes(), "wrong.patch: cannot update a.txt (line 2 of the patch)"),
        (torn.as_bytes(), "wrong.patch: line 8: "),
        (b"", "wrong.patch: line 1: "),
        (b"*** Begin Patch\n\xff\n", "wrong.patch: line 2: it is not UTF-8"),
    ] {
        fs::write(world.path("wrong.patch"), text).unwrap();
        for verb in ["apply", "check"] {
            let outcome = world.sandgate(&["patch", verb, "wrong.patch"]);
            assert_eq!((outcome.stdout(), outcome.code), ("", Some(1)), "{said}");
            let expected = format!("sandgate: {said}");
            assert!(outcome.stderr.starts_with(&expected), "{}", outcome.stderr);
        }
    }
    let outcome = world.sandgate(&["patch", "apply", "missing.patch"]);
    assert!(outcome.stderr.starts_with("sandgate: missing.patch: "), "{}", outcome.stderr);
    assert_eq!(outcome.code, Some(125));
    assert!(is_untouched(&world));
}

/// spec PATCH.93: Where a patch would write outside the workspace or to a protected name a person is
/// asked at the terminal, who sees the diff.
///
/// spec PATCH.99: What was applied, and who approved it, is in the audit log under the name `patch`.
#[test]
fn a_person_sees_the_diff_and_decides() {
    let world = world();
    let mut terminal = Terminal::start(&world, &["patch", "apply", "protected.patch"]);
    let shown = terminal.answer("y");
    for expected in ["May these files be changed?", "+[core]", "because: it would write", "[y]"] {
        assert!(shown.contains(expected), "{shown}");
    }
    let (shown, code) = terminal.end();
    assert!(shown.contains("A .git/config  +1 -0"), "{shown}");
    assert_eq!(code, Some(0));
    assert_eq!(fs::read_to_string(world.path(".git/config")).unwrap(), "[core]\n");
    let recorded = world.sandgate(&["audit", "show", "--json"]).stdout().to_owned();
    for expected in [r#""front_end":"patch""#, r#""front_end":"terminal""#, ".git/config"] {
        assert!(recorded.contains(expected), "{recorded}");
    }
    assert_eq!(world.sandgate(&["audit", "verify"]).code, Some(0));
}

/// spec PATCH.94: With no terminal such a patch is not applied, and the exit code is 77, unless
/// `--decide` answers.
#[test]
fn without_a_terminal_a_patch_waits_for_a_prepared_answer() {
    let world = world();
    let apply = |options: &[&str]| {
        world.sandgate(&[&["patch", "apply"], options, &["protected.patch"]].concat())
    };
    let outcome = apply(&[]);
    assert_eq!((outcome.stdout(), outcome.code), ("", Some(77)));
    let said = "sandgate: protected.patch: nobody could be asked: it would write ";
    assert!(outcome.stderr.starts_with(said), "{}", outcome.stderr);
    fs::write(world.path("none"), "").unwrap();
    assert_eq!(apply(&["--decide", "none"]).code, Some(77));
    assert_eq!(apply(&["--decide", "deny"]).code, Some(78));
    assert!(is_untouched(&world));
    assert_eq!(apply(&["--decide", "approve"]).code, Some(0));
    assert!(world.path(".git/config").exists());
}

/// spec PATCH.95: A no, and a policy that forbids the question, end in exit code 78; abort and Ctrl-C
/// at the question in 130.
#[test]
fn a_patch_can_be_refused_and_called_off() {
    let world = world();
    for (keys, said, code) in [
        ("n not that\n", "sandgate: not applied: the answer was no: not that", 78),
        ("a\n", "sandgate: not applied: it was called off", 130),
        ("\x03", "sandgate: not applied: it was called off", 130),
    ] {
        let mut terminal = Terminal::start(&world, &["patch", "apply", "protected.patch"]);
        terminal.until("\n> ");
        terminal.press(keys);
        let (shown, ended) = terminal.end();
        assert!(shown.contains(said), "{shown}");
        assert_eq!(ended, Some(code), "{keys:?}");
    }
    let record = world.sandgate(&["audit", "show", "--json"]);
    let person = r#""who":"person","front_end":"terminal""#;
    assert_eq!(record.stdout().matches(person).count(), 3, "{}", record.stdout());
    let never = ["patch", "apply", "--ask-for-approval", "never", "protected.patch"];
    assert_eq!(world.sandgate(&never).code, Some(78));
    assert!(is_untouched(&world));
}

/// spec PATCH.97: Of a text that is longer than 10 MiB no more is read, and nothing is changed.
#[test]
fn a_text_without_end_is_not_read_to_its_end() {
    let world = world();
    let mut command = world.program(["patch", "apply", "--json", "-"]);
    let endless = File::open("/dev/zero").unwrap();
    let outcome = Running::start(command.stdin(endless)).wait();
    assert_eq!(outcome.code, Some(1));
    let said = "sandgate: standard input: the patch is longer than 10485760 bytes; split it\n";
    assert_eq!(outcome.stderr, said);
    assert!(outcome.stdout().contains(r#""error":"invalid_arguments""#), "{}", outcome.stdout());
    assert!(is_untouched(&world));
}

/// spec PATCH.98: With `--json` standard output is one line: what became of each file, or why nothing
/// did.
#[test]
fn a_program_is_told_in_one_line() {
    let world = world();
    let home = world.home().canonicalize().unwrap().display().to_string();
    fs::write(world.path("wrong.patch"), "*** Begin Patch\n*** End Patch\n").unwrap();
    let reports: Vec<Value> = [
        &["check", "fix.patch"][..],
        &["check", "protected.patch"],
        &["check", "--ask-for-approval", "never", "protected.patch"],
        &["apply", "wrong.patch"],
        &["apply", "protected.patch"],
        &["apply", "fix.patch"],
        &["apply", "--decide", "deny", "protected.patch"],
    ]
    .iter()
    .map(|words| {
        let outcome = world.sandgate(&[&["patch"], *words, &["--json"]].concat());
        assert_eq!(outcome.stdout().lines().count(), 1, "{words:?}");
        serde_json::from_str(&outcome.stdout().replace(&home, "[home]")).unwrap()
    })
    .collect();
    insta::assert_json_snapshot!(reports);
}

#[test]
fn names_in_a_patch_cannot_move_a_cursor() {
    let world = world();
    let text = "*** Begin Patch\n*** Add File: a\x1b[2Jb\n+x\n*** End Patch\n";
    fs::write(world.path("odd.patch"), text).unwrap();
    let outcome = world.sandgate(&["patch", "apply", "odd.patch"]);
    assert_eq!((outcome.stdout(), outcome.code), ("A a\\u{1b}[2Jb  +1 -0\n", Some(0)));
}
