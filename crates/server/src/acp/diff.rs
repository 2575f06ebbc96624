//! Changes of files, as editors show them: what stood there and what will.

use super::content::text;
use agent_client_protocol::v1::schema::{Diff, ToolCallContent, ToolCallLocation};
use sandgate_protocol::{PatchChange, PatchChangeKind, visible_code};
use std::path::PathBuf;

/// The most that is shown of one change, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// Each place that the changes touch, and how much of them is not shown, if there is so much.
pub(super) fn diffs(changes: &[PatchChange]) -> Vec<ToolCallContent> {
    let mut shown: Vec<ToolCallContent> =
        changes.iter().flat_map(of_change).map(ToolCallContent::Diff).collect();
    let hidden: usize = changes.iter().map(|change| hidden_lines(&change.diff)).sum();
    if hidden > 0 {
        shown.push(text(format!("{hidden} more lines of the changes are not shown here.")));
    }
    shown
}

/// How many lines of a diff are too much to be shown.
fn hidden_lines(diff: &str) -> usize {
    let total = diff.lines().count();
    total - shown_lines(diff).count()
}

fn shown_lines(diff: &str) -> impl Iterator<Item = &str> {
    let mut bytes = 0;
    diff.lines().take_while(move |line| {
        bytes += line.len();
        bytes <= MOST_BYTES
    })
}

/// The files, and the first line of each that changes.
pub(super) fn locations(changes: &[PatchChange]) -> Vec<ToolCallLocation> {
    let location = |change: &PatchChange| {
        let line = change.diff.lines().find_map(first_line);
        ToolCallLocation::new(target(change)).line(line)
    };
    changes.iter().map(location).collect()
}

fn target(change: &PatchChange) -> PathBuf {
    change.moved_to.clone().unwrap_or_else(|| change.path.clone())
}

/// The line at which a hunk begins.
fn first_line(line: &str) -> Option<u32> {
    let new = line.strip_prefix("@@ ")?.split_whitespace().nth(1)?.strip_prefix('+')?;
    new.split(',').next()?.parse().ok()
}

/// What stood in a place, and what will.
type Hunk = (String, String);

/// One diff for each hunk: the lines around a change and those of it.
fn of_change(change: &PatchChange) -> Vec<Diff> {
    let (mut hunks, mut current): (Vec<Hunk>, Option<Hunk>) = (Vec::new(), None);
    for line in shown_lines(&change.diff) {
        if line.starts_with("@@") {
            hunks.extend(current.replace(Default::default()));
            continue;
        }
        // What stands before the first hunk are the names of the files.
        let Some((old, new)) = &mut current else { continue };
        let Some((mark, text)) = line.split_at_checked(1) else { continue };
        if mark != "+" && mark != "\\" {
            old.extend([text, "\n"]);
        }
        if mark != "-" && mark != "\\" {
            new.extend([text, "\n"]);
        }
    }
    hunks.extend(current);
    if hunks.is_empty() {
        hunks.push(Default::default());
    }
    let diff = |(old, new): Hunk| {
        // Editors show it as it is, and obey what turns the order of letters.
        let old = (change.kind != PatchChangeKind::Add).then(|| visible_code(&old));
        Diff::new(target(change), visible_code(&new)).old_text(old)
    };
    hunks.into_iter().map(diff).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec ACP.9: A change is shown as what stood there and what will, hunk by hunk.
    #[test]
    fn each_hunk_is_what_stood_there_and_what_will() {
        let change = PatchChange {
            path: "/ws/a".into(),
            kind: PatchChangeKind::Update,
            moved_to: None,
            diff: "--- a\n+++ a\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n@@ -9 +9,2 @@\n x\n+++ y\n\
                   \\ No newline at end of file\n"
                .to_owned(),
        };
        let shown = of_change(&change);
        assert_eq!(shown.len(), 2);
        assert_eq!(shown[0].old_text.as_deref(), Some("same\nold\n"));
        assert_eq!(shown[0].new_text, "same\nnew\n");
        assert_eq!(shown[1].new_text, "x\n++ y\n");
        assert_eq!(locations(std::slice::from_ref(&change))[0].line, Some(1));
        let new = PatchChange {
            kind: PatchChangeKind::Add,
            diff: "--- /dev/null\n+++ a\n@@ -0,0 +1 @@\n+x\n".to_owned(),
            ..change
        };
        assert_eq!(of_change(&new)[0].old_text, None);
        assert_eq!(of_change(&new)[0].new_text, "x\n");
    }

    /// spec ACP.20: Nothing in what an editor is sent to show hides or turns the order of letters, in messages, calls,
    /// changes and questions; of changes that are too long it is said how many lines are missing.
    #[test]
    fn a_change_hides_nothing_and_says_what_is_missing() {
        let change = |diff: String| PatchChange {
            path: "/ws/a".into(),
            kind: PatchChangeKind::Update,
            moved_to: None,
            diff,
        };
        let turned = change("@@ -1 +1 @@\n-a\tb\n+if x \u{202e}{ evil\u{200b}\n".to_owned());
        let [shown] = of_change(&turned).try_into().unwrap();
        assert_eq!(shown.old_text.as_deref(), Some("a\tb\n"));
        assert_eq!(shown.new_text, "if x \\u{202e}{ evil\\u{200b}\n");
        assert_eq!(diffs(&[turned]).len(), 1);
        let line = format!("+{}\n", "x".repeat(MOST_BYTES / 4));
        let long = change(format!("@@ -0,0 +1,9 @@\n{}", line.repeat(9)));
        let shown = serde_json::to_string(&diffs(&[long])).unwrap();
        assert!(
            shown.contains("6 more lines of the changes are not shown here."),
            "{}",
            shown.len()
        );
    }
}
