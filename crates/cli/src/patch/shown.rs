//! What became of a patch, for people and for programs.

use sandgate_protocol::{CodexErr, visible, visible_line};
use sandgate_runtime::audit::{ChangeKind, PatchedFile};
use sandgate_runtime::{CheckedPatch, PatchApproval};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

const NOTHING: &str = "Nothing to do: the files are like that already.\n";

/// The files of a patch that was applied, a line each.
pub(super) fn applied(files: &[PatchedFile], cwd: &Path) -> String {
    if files.is_empty() { NOTHING.to_owned() } else { lines(files, cwd) }
}

/// The files that a patch would change, and what would have to happen first.
pub(super) fn checked(patch: &CheckedPatch, cwd: &Path) -> String {
    if patch.files.is_empty() {
        return NOTHING.to_owned();
    }
    let first = match &patch.approval {
        PatchApproval::NotNeeded => "It would be applied without a question.".to_owned(),
        PatchApproval::Needed { reason } => {
            format!("You would be asked first: {}.", visible_line(reason))
        }
        PatchApproval::Forbidden { reason } => {
            format!("It would be refused. {}", visible(reason))
        }
    };
    format!("{}\nNothing was changed. {first}\n", lines(&patch.files, cwd))
}

fn lines(files: &[PatchedFile], cwd: &Path) -> String {
    let mut text = String::new();
    for file in files {
        let letter = match (file.change, &file.moved_to) {
            (ChangeKind::Added, _) => 'A',
            (ChangeKind::Deleted, _) => 'D',
            (ChangeKind::Updated, None) => 'M',
            (ChangeKind::Updated, Some(_)) => 'R',
        };
        let moved = file.moved_to.as_deref().map(|to| format!(" -> {}", name(to, cwd)));
        let (path, moved) = (name(&file.path, cwd), moved.unwrap_or_default());
        // Writing to a string does not fail.
        let _ =
            writeln!(text, "{letter} {path}{moved}  +{} -{}", file.added_lines, file.removed_lines);
    }
    text
}

/// A path as a person in that directory would name it.
fn name(path: &str, cwd: &Path) -> String {
    let inside = Path::new(path).strip_prefix(cwd).ok().and_then(Path::to_str);
    visible_line(inside.unwrap_or(path))
}

#[derive(Serialize)]
struct Applied<'a> {
    applied: bool,
    files: &'a [PatchedFile],
}

#[derive(Serialize)]
struct Checked<'a> {
    applied: bool,
    approval: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    files: &'a [PatchedFile],
}

#[derive(Serialize)]
struct Refused {
    applied: bool,
    error: &'static str,
    message: String,
}

pub(super) fn applied_as_json(files: &[PatchedFile]) -> String {
    as_line(&Applied { applied: true, files })
}

pub(super) fn checked_as_json(patch: &CheckedPatch) -> String {
    let (approval, reason) = match &patch.approval {
        PatchApproval::NotNeeded => ("not_needed", None),
        PatchApproval::Needed { reason } => ("needed", Some(reason.as_str())),
        PatchApproval::Forbidden { reason } => ("forbidden", Some(reason.as_str())),
    };
    as_line(&Checked { applied: false, approval, reason, files: &patch.files })
}

pub(super) fn refused_as_json(error: &CodexErr) -> String {
    let message = match error {
        CodexErr::InvalidArguments { reason, .. } => reason.clone(),
        other => other.to_string(),
    };
    as_line(&Refused { applied: false, error: error.name(), message })
}

fn as_line(report: &impl Serialize) -> String {
    let json = serde_json::to_string(report).expect("words and numbers are valid JSON");
    json + "\n"
}
