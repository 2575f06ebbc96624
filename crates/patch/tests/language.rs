//! The text of a patch: what is read, what is let pass, and what is said about the rest.

use sandgate_patch::{Hunk, HunkLine, LARGEST_TEXT, MOST_PARTS, Patch, Problem, Section};

fn parse(text: &str) -> Patch {
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn complaint(text: &str) -> String {
    text.parse::<Patch>().expect_err(text).to_string()
}

/// The patch without the numbers of its lines.
fn bare(text: &str) -> Patch {
    let mut patch = parse(text);
    for section in &mut patch.sections {
        match section {
            Section::Add { at, .. } | Section::Delete { at, .. } => *at = 0,
            Section::Update { at, hunks, .. } => {
                *at = 0;
                hunks.iter_mut().for_each(|hunk| hunk.at = 0);
            }
        }
    }
    patch
}

const WHOLE: &str = "\
*** Begin Patch
*** Add File: docs/new file.md
+# Title
+
+*** not a marker
*** Delete File: old.txt
*** Update File: src/a.rs
*** Move to: src/b.rs
@@ impl A {
@@     fn one() {
 keep
-remove
+add
@@
-last
*** End of File
*** Update File: /abs/c.rs
@@
 
+x
*** End Patch
";

/// spec PATCH.1: A patch adds, deletes, updates and moves any number of files; an update has hunks of
/// lines to keep, to remove and to add, each after any number of `@@` lines and perhaps at the end of
/// its file.
#[test]
fn a_patch_has_sections_for_files_and_hunks_for_changes() {
    let keep = |line: &str| HunkLine::Keep(line.to_owned());
    let remove = |line: &str| HunkLine::Remove(line.to_owned());
    let add = |line: &str| HunkLine::Add(line.to_owned());
    let patch = parse(WHOLE);
    let expected = [
        Section::Add {
            path: "docs/new file.md".into(),
            lines: vec!["# Title".into(), String::new(), "*** not a marker".into()],
            at: 2,
        },
        Section::Delete { path: "old.txt".into(), at: 6 },
        Section::Update {
            path: "src/a.rs".into(),
            move_to: Some("src/b.rs".into()),
            hunks: vec![
                Hunk {
                    contexts: vec!["impl A {".into(), "    fn one() {".into()],
                    lines: vec![keep("keep"), remove("remove"), add("add")],
                    end_of_file: false,
                    at: 9,
                },
                Hunk { contexts: vec![], lines: vec![remove("last")], end_of_file: true, at: 14 },
            ],
            at: 7,
        },
        Section::Update {
            path: "/abs/c.rs".into(),
            move_to: None,
            hunks: vec![Hunk {
                contexts: vec![],
                lines: vec![keep(""), add("x")],
                end_of_file: false,
                at: 18,
            }],
            at: 17,
        },
    ];
    assert_eq!(patch.sections, expected);
    assert_eq!(patch.to_string(), WHOLE);
}

/// spec PATCH.2: Blank lines around a patch and between its sections, white space behind a marker, line
/// ends of CR LF, a here-document around everything and a first hunk without its `@@` change nothing.
#[test]
fn what_models_write_all_the_time_is_let_pass() {
    let strict = bare(WHOLE);
    for written in [
        format!("\n  \n{WHOLE}\n\n"),
        WHOLE.replace('\n', "\r\n"),
        WHOLE.replace("\n*** Delete", "\n\n*** Delete").replace("\n*** End P", "\n\n\n*** End P"),
        WHOLE.replace("Begin Patch", "Begin Patch  ").replace("End Patch", "End Patch \t"),
        WHOLE.replace("End of File", "End of File "),
        WHOLE.replace("c.rs\n@@\n", "c.rs\n"),
        WHOLE.replace("File: old.txt", "File:old.txt  "),
        format!("<<'EOF'\n{WHOLE}EOF\n"),
        format!("<<\"PATCH\"\n{WHOLE}PATCH"),
        format!("\n<< EOF\n{WHOLE}\nEOF\n\n"),
        WHOLE.trim_end().to_owned(),
    ] {
        assert_eq!(bare(&written), strict, "{written}");
    }
}

/// spec PATCH.3: An empty line among the lines of a hunk stands for an empty line of the file; one
/// behind the last of them stands for nothing.
#[test]
fn an_empty_line_counts_only_within_a_hunk() {
    let inside = "*** Begin Patch\n*** Update File: a\n@@\n a\n\n+b\n\n\n*** End Patch";
    let marked = "*** Begin Patch\n*** Update File: a\n@@\n a\n \n+b\n*** End Patch";
    assert_eq!(bare(inside), bare(marked));
    let leading = "*** Begin Patch\n*** Update File: a\n@@ x\n\n+b\n*** End Patch";
    let marked = "*** Begin Patch\n*** Update File: a\n@@ x\n \n+b\n*** End Patch";
    assert_eq!(bare(leading), bare(marked));
}

/// spec PATCH.4: What is wrong with a text is said with the number of its line, what was expected there
/// and what was found.
#[test]
fn a_text_that_is_no_patch_is_told_where_and_why() {
    let update =
        |lines: &str| format!("*** Begin Patch\n*** Update File: a\n{lines}\n*** End Patch\n");
    let sections = |lines: &str| format!("*** Begin Patch\n{lines}\n*** End Patch\n");
    for (text, expected) in [
        (String::new(), "line 1: expected `*** Begin Patch`, found the end of the text"),
        ("hello".into(), "line 1: expected `*** Begin Patch`, found `hello`"),
        ("\n\n--- a\n+++ b".into(), "line 3: expected `*** Begin Patch`, found `--- a`"),
        (
            "*** Begin Patch\n*** Delete File: a\n".into(),
            "line 3: expected `*** End Patch` at the end, but the text ends here",
        ),
        (
            sections("*** Delete File: a") + "done",
            "line 4: expected nothing after `*** End Patch`, found `done`",
        ),
        (
            "*** Begin Patch\n*** End Patch".into(),
            "line 2: the patch changes no file; expected `*** Add File: PATH`, `*** Delete File: \
             PATH` or `*** Update File: PATH`",
        ),
        (
            sections("*** Rename File: a"),
            "line 2: expected `*** Add File: PATH`, `*** Delete File: PATH`, `*** Update File: \
             PATH` or `*** End Patch`, found `*** Rename File: a`",
        ),
        (sections("*** Add File: "), "line 2: a path must follow `*** Add File:` on the same line"),
        (
            sections("*** Add File: a\n+x\ny"),
            "line 4: every line of a new file begins with `+`, found `y`",
        ),
        (
            sections("*** Add File: a\n+x\n\n+y"),
            "line 4: every line of a new file begins with `+`, found an empty line",
        ),
        (
            sections("*** Delete File: a\n-x"),
            "line 3: `*** Delete File` takes no lines, found `-x`",
        ),
        (
            update(""),
            "line 2: `*** Update File` without a change; expected `@@` and lines, or `*** Move \
             to: PATH`",
        ),
        (
            update("@@"),
            "line 4: expected lines that begin with ` `, `+` or `-` after `@@`, found `*** End \
             Patch`",
        ),
        (
            update("@@\n a\nb\n"),
            "line 5: every line of a hunk begins with ` ` (keep), `+` (add) or `-` (remove), or is \
             `@@`, found `b`",
        ),
        (
            update("@@\n a\n*** End of File\n b"),
            "line 6: expected `@@` or the next section after `*** End of File`, found ` b`",
        ),
        (
            update("*** Move to:\n@@\n-a"),
            "line 3: a path must follow `*** Move to:` on the same line",
        ),
    ] {
        assert_eq!(complaint(&text), expected, "{text}");
    }
    let long = complaint(&update(&format!("@@\n a\n{}", "é".repeat(500))));
    assert!(long.ends_with(&format!("`{}…`", "é".repeat(80))), "{long}");
}

/// spec PATCH.5: A text of more than 10 MiB, or of more than 10,000 sections and hunks, is refused.
#[test]
fn there_are_limits() {
    let with = |letters: usize| {
        let filler = "x".repeat(letters);
        format!("*** Begin Patch\n*** Add File: a\n+{filler}\n*** End Patch\n")
    };
    let spare = LARGEST_TEXT - with(0).len();
    assert!(with(spare).parse::<Patch>().is_ok());
    let error = with(spare + 1).parse::<Patch>().unwrap_err();
    assert!(matches!(error.problem, Problem::TooLarge { bytes } if bytes > LARGEST_TEXT));

    let parts = |hunks: usize| {
        let hunks = "@@\n+x\n".repeat(hunks);
        format!("*** Begin Patch\n*** Update File: a\n{hunks}*** End Patch\n")
    };
    assert!(parts(MOST_PARTS - 1).parse::<Patch>().is_ok());
    let error = parts(MOST_PARTS).parse::<Patch>().unwrap_err();
    assert_eq!(error.problem, Problem::TooManyParts);
    assert_eq!(error.line, 2 * MOST_PARTS + 1);
}
