//! Where hunks belong in a file, and what they make of it.

mod support;

use support::updated;

#[track_caller]
fn check(contents: &str, lines: &str, expected: &str) {
    let found = updated(contents, lines).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(String::from_utf8(found).unwrap(), expected);
}

/// spec PATCH.21: A line after `@@` is looked for first, and the hunk's lines from there on; several
/// such lines are looked for one after the other.
#[test]
fn context_leads_to_the_place() {
    let file = "class A:\n  def f():\n    x\nclass B:\n  def f():\n    x\n  def g():\n    x\n";
    check(file, "@@ class B:\n-    x\n+    y", &replaced(file, 2));
    check(file, "@@ class B:\n@@   def g():\n-    x\n+    y", &replaced(file, 3));
    check(file, "@@ def g():\n-    x\n+    y", &replaced(file, 3));
    check(file, "@@ class B:\n class B:\n   def f():\n-    x\n+    y", &replaced(file, 2));
}

/// The file with its `x` of that number made a `y`.
fn replaced(file: &str, number: usize) -> String {
    let (place, _) = file.match_indices('x').nth(number - 1).unwrap();
    format!("{}y{}", &file[..place], &file[place + 1..])
}

/// spec PATCH.22: Hunks are looked for in the order of the file, and each is taken to be at the first
/// place after the one before it.
#[test]
fn equal_places_are_taken_in_order() {
    check("x\nx\nx\n", "@@\n-x\n+1\n@@\n-x\n+2", "1\n2\nx\n");
    check("a\nb\nc\n", "@@\n-a\n@@\n b\n-c\n+d", "b\nd\n");
    let error = updated("a\nb\nc\n", "@@\n-c\n@@\n-a").unwrap_err();
    assert!(error.contains("they are at line 1 of the file, before"), "{error}");
}

/// spec PATCH.23: A hunk with `*** End of File` is looked for at the end of the file and nowhere else.
#[test]
fn the_end_of_the_file_is_an_anchor() {
    check("x\na\nx\n", "@@\n-x\n+y\n*** End of File", "x\na\ny\n");
    check("x\na\nx", "@@\n x\n+y\n*** End of File", "x\na\nx\ny");
    let error = updated("x\na\n", "@@\n-x\n*** End of File").unwrap_err();
    assert!(error.contains("they are at line 1 of the file, which is not its end"), "{error}");
}

/// spec PATCH.24: Lines that stay are left as the file has them, also where a hunk has them with other
/// white space or punctuation.
#[test]
fn lines_that_stay_are_the_files_own() {
    check("\tif x:  \n\t\ty \u{2014} z\n", "@@\n if x:\n-y - z\n+\t\tz", "\tif x:  \n\t\tz\n");
    check("a  \nb\t\n", "@@\n a\n+new\n b", "a  \nnew\nb\t\n");
}

/// spec PATCH.25: A hunk of new lines only goes behind the line that its `@@` names, and without one to
/// the end of the file.
#[test]
fn new_lines_alone_go_behind_their_context_or_to_the_end() {
    check("a\nb\nc\n", "@@ a\n+x", "a\nx\nb\nc\n");
    check("a\nb\nc\n", "@@\n+x", "a\nb\nc\nx\n");
    check("a\nb\nc\n", "@@ a\n+x\n*** End of File", "a\nb\nc\nx\n");
    check("", "@@\n+x\n+y", "x\ny\n");
}

/// spec PATCH.26: A new line ends as the line before it does, in CR LF or in LF.
#[test]
fn line_ends_are_kept() {
    check("a\r\nb\r\nc\r\n", "@@\n a\n-b\n+x\n+y\n c", "a\r\nx\r\ny\r\nc\r\n");
    check("a\r\nb\r\n", "@@\n+x\n a", "x\r\na\r\nb\r\n");
    check("a\r\nb\nc\n", "@@\n a\n+x\n b\n+y", "a\r\nx\r\nb\ny\nc\n");
    check("a\r\nb", "@@\n b\n+c", "a\r\nb\r\nc");
}

/// spec PATCH.27: A file without a final newline stays one, and a file with one does too.
#[test]
fn the_last_line_ends_as_before() {
    check("a\nb", "@@\n-b\n+c", "a\nc");
    check("a\nb", "@@\n-b", "a");
    check("a\nb", "@@\n b\n+c", "a\nb\nc");
    check("a\nb\n", "@@\n-b", "a\n");
    check("a\nb\n", "@@\n b\n+c", "a\nb\nc\n");
    check("a", "@@\n-a", "");
    check("a\nb\n", "@@\n a\n-b\n+c\n \n*** End of File", "a\nc\n");
}

/// spec PATCH.28: A file that is not UTF-8 is patched as bytes, and every byte that no hunk removes is
/// kept.
#[test]
fn bytes_that_are_no_text_are_kept() {
    let file = b"caf\xe9\nb\n\xff\xfe\x00\n";
    let found = updated(file, "@@\n-b\n+c").unwrap();
    assert_eq!(found, b"caf\xe9\nc\n\xff\xfe\x00\n");
}

/// spec PATCH.29: A hunk that does not fit is shown with the lines that it expects, the place that is
/// most like them, and the first line there that differs.
#[test]
fn what_does_not_fit_is_shown_with_the_nearest_place() {
    let file = "fn main() {\n    let a = 1;\n    let b = 2;\n    let c = 3;\n}\n";
    let error = updated(file, "@@\n     let a = 1;\n-    let b = 5;\n     let c = 3;").unwrap_err();
    assert_eq!(
        error,
        "cannot update f (line 2 of the patch): the hunk at line 3 of the patch expects these \
         lines:\n        let a = 1;\n        let b = 5;\n        let c = 3;\n2 of them are at line 2 \
         of the file; the first that differs is line 3: expected `    let b = 5;`, found `    let b \
         = 2;`"
    );
    let past_the_end = updated(file, "@@\n }\n-more").unwrap_err();
    let expected = "1 of them is at line 5 of the file; the first that differs is line 6: expected \
                    `more`, the file ends before";
    assert!(past_the_end.ends_with(expected), "{past_the_end}");
    let nowhere = updated(file, "@@\n-nothing like it").unwrap_err();
    assert!(nowhere.ends_with("none of them is in the file; read it again"), "{nowhere}");
    let context = updated(file, "@@ fn other()\n+x").unwrap_err();
    assert!(context.ends_with("no line of the file is `fn other()`"), "{context}");
    let numbers = updated(file, "@@ -1,3 +1,4 @@\n+x").unwrap_err();
    assert!(numbers.ends_with("`@@` and a line of the file, not line numbers"), "{numbers}");
    let earlier = updated(file, "@@\n-}\n@@ fn main() {\n+x").unwrap_err();
    assert!(earlier.contains("is at line 1 of the file, before the change above it"), "{earlier}");
}

#[test]
fn long_lines_and_many_lines_are_cut_in_errors() {
    let hunk: String = (0..100).map(|i| format!("-{i}{}\n", "x".repeat(10_000))).collect();
    let error = updated("a\n", &format!("@@\n{hunk}")).unwrap_err();
    assert!(error.len() < 10_000, "{}", error.len());
    assert!(error.contains("\n    …\n"), "{error}");
}
