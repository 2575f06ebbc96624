//! What patches come to, and how that is shown.

mod support;

use sandgate_patch::{Counts, FileChange, Reason};
use std::path::Path;
use support::{BASE, InMemory, plan};

fn refusal(lines: &str, files: &InMemory) -> Reason {
    *plan(lines, files).expect_err(lines).reason
}

/// spec PATCH.30: Adding a file that is there is refused, unless it holds just what was to be added;
/// then nothing is done.
#[test]
fn an_added_file_is_not_there() {
    let files = InMemory::of(&[("a", "x\n")]);
    assert_eq!(refusal("*** Add File: a\n+y", &files), Reason::AlreadyThere);
    assert!(plan("*** Add File: a\n+x", &files).unwrap().changes.is_empty());
    let added = plan("*** Add File: b/c\n+x\n*** Add File: empty", &files).unwrap();
    let add = |path: &str, contents: &str| FileChange::Add {
        path: Path::new(BASE).join(path),
        contents: contents.into(),
    };
    assert_eq!(added.changes, [add("b/c", "x\n"), add("empty", "")]);
}

/// spec PATCH.31: Sections are done in their order, each on what those before it leave, and come to one
/// change for each file.
#[test]
fn sections_build_on_each_other() {
    let before = [("a", "1\n2\n"), ("b", "b\n")];
    for (lines, after, summary) in [
        (
            "*** Update File: a\n@@\n-1\n+x\n*** Update File: a\n@@\n-x\n+y\n 2",
            [("a", "y\n2\n"), ("b", "b\n")].as_slice(),
            "M a\n",
        ),
        ("*** Delete File: a\n*** Add File: a\n+new", &[("a", "new\n"), ("b", "b\n")], "M a\n"),
        ("*** Add File: c\n+1\n*** Delete File: c", &before, ""),
        (
            "*** Add File: c\n+1\n*** Update File: c\n@@\n-1\n+2",
            &[("a", "1\n2\n"), ("b", "b\n"), ("c", "2\n")],
            "A c\n",
        ),
        (
            "*** Update File: a\n*** Move to: c\n*** Update File: b\n*** Move to: a",
            &[("a", "b\n"), ("c", "1\n2\n")],
            "M a\nD b\nA c\n",
        ),
        (
            "*** Update File: a\n*** Move to: x\n*** Update File: x\n*** Move to: y",
            &[("b", "b\n"), ("y", "1\n2\n")],
            "R a -> y\n",
        ),
        (
            "*** Delete File: b\n*** Update File: a\n*** Move to: b",
            &[("b", "1\n2\n")],
            "M b\nD a\n",
        ),
        ("*** Update File: a\n@@\n-1\n+x\n*** Update File: ./d/../a\n@@\n-x\n+1", &before, ""),
    ] {
        let mut files = InMemory::of(&before);
        let planned = plan(lines, &files).unwrap_or_else(|error| panic!("{error}"));
        files.apply(&planned);
        assert_eq!(files, InMemory::of(after), "{lines}");
        let mut found: Vec<_> = planned.summary().lines().map(str::to_owned).collect();
        let mut expected: Vec<_> = summary.lines().map(str::to_owned).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{lines}");
    }
}

/// spec PATCH.32: Updating or deleting what is not there, a directory in the place of a file, and
/// moving a file onto another are refused.
#[test]
fn a_section_needs_its_file_and_its_place() {
    let files = InMemory::of(&[("a", "x\n"), ("d/e", "y\n")]);
    assert_eq!(refusal("*** Update File: no\n@@\n-x", &files), Reason::NotThere);
    assert_eq!(refusal("*** Delete File: no", &files), Reason::NotThere);
    assert_eq!(refusal("*** Delete File: d", &files), Reason::Directory);
    assert_eq!(refusal("*** Add File: d\n+x", &files), Reason::Directory);
    assert_eq!(refusal("*** Update File: d\n@@\n-x", &files), Reason::Directory);
    for target in ["d/e", "d"] {
        let lines = format!("*** Update File: a\n*** Move to: {target}");
        assert_eq!(refusal(&lines, &files), Reason::MoveOnto { target: target.to_owned() });
    }
    let twice = "*** Delete File: a\n*** Delete File: a";
    assert_eq!(refusal(twice, &files), Reason::NotThere);
    for lines in [
        "*** Add File: n\n+x\n*** Add File: n/m\n+x",
        "*** Add File: n/m\n+x\n*** Add File: n\n+x",
        "*** Delete File: a\n*** Add File: a/b\n+x",
        "*** Update File: a\n*** Move to: a/b",
    ] {
        assert!(matches!(refusal(lines, &files), Reason::FileInTheWay { .. }), "{lines}");
    }
    let error = plan("*** Update File: no\n@@\n-x", &files).unwrap_err().to_string();
    let expected = "cannot update no (line 2 of the patch): there is no such file; check the path, \
                    or add the file";
    assert_eq!(error, expected);
}

/// spec PATCH.33: A path with a NUL byte, one that is a directory's and one that leads above the root
/// of the file system are refused; every other becomes an absolute path, which the roots then judge.
#[test]
fn paths_are_never_bent_silently() {
    let files = InMemory::default();
    for path in ["a\0b", "a/", "..", ".", "/", "../../x"] {
        let reason = refusal(&format!("*** Add File: {path}\n+x"), &files);
        assert!(matches!(reason, Reason::BadPath(_)), "{path:?}: {reason}");
    }
    for (path, absolute) in
        [("../x", "/x"), ("/etc/x", "/etc/x"), ("a/../../etc/x", "/etc/x"), ("./a//b", "/work/a/b")]
    {
        let planned = plan(&format!("*** Add File: {path}\n+x"), &files).unwrap();
        assert_eq!(planned.changes[0].path(), Path::new(absolute), "{path}");
    }
}

/// spec PATCH.34: A plan is shown as unified diffs, as one line for each file, and as the numbers of
/// lines that come and go.
#[test]
fn a_plan_is_shown() {
    let files = InMemory::of(&[
        ("src/a.rs", "one\r\ntwo\nthree"),
        ("b", "b\n"),
        ("c", "c\n"),
        ("bin", "\0\n"),
    ]);
    let planned = plan(
        "*** Add File: new\n+x\n+y\n*** Delete File: b\n*** Update File: src/a.rs\n@@\n-two\n+2\n \
         three\n+four\n*** Update File: c\n*** Move to: d/c\n*** Update File: bin\n@@\n+x",
        &files,
    )
    .unwrap();
    assert_eq!(planned.summary(), "A new\nD b\nM src/a.rs\nR c -> d/c\nM bin\n");
    assert_eq!(planned.counts(), Counts { added: 6, removed: 3 });
    assert_eq!(
        planned.diff(),
        "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n\
         +x\n+y\n\
         diff --git a/b b/b\ndeleted file mode 100644\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n\
         diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,3 +1,4 @@\n \
         one\r\n-two\n-three\n\\ No newline at end of file\n+2\n+three\n+four\n\\ No newline at end \
         of file\n\
         diff --git a/c b/d/c\nrename from c\nrename to d/c\n\
         diff --git a/bin b/bin\nBinary files a/bin and b/bin differ\n"
    );
}
