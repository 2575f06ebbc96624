//! What changed, as a unified diff that git can apply.

use super::baseline::Held;
use super::compare::{Change, Found, Mode, Side};
use sandgate_patch::unified;
use sandgate_protocol::{TurnDiff, visible_line};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// The most text that a diff has.
const MOST_TEXT: usize = 1 << 20;

/// The most lines about what is not in it.
const MOST_NOTES: usize = 100;

/// How long two versions of a file are compared for the shortest way from one to the other. After that a
/// longer one will do.
const COMPARING: Duration = Duration::from_millis(250);

/// So many bytes of a file are looked at to tell whether it is text.
const TELLING_BYTES: usize = 8 << 10;

const NOWHERE: &str = "/dev/null";

/// Writes all changes, in order.
pub(super) fn diff(found: Found) -> TurnDiff {
    let mut unified_diff = String::new();
    let mut not_shown = found.notes;
    for change in &found.changes {
        let name = || visible_line(&change.path.to_string_lossy());
        match section(change) {
            Section::Same => {}
            Section::Unknown(why) => not_shown.push(format!("{}: {why}", name())),
            Section::Text(text) if unified_diff.len() + text.len() > MOST_TEXT => {
                not_shown.push(format!("{}: its diff of {} bytes is left out", name(), text.len()));
            }
            Section::Text(text) => unified_diff.push_str(&text),
            Section::Lossy(text) => {
                not_shown.push(format!("{}: not all of it is UTF-8", name()));
                if unified_diff.len() + text.len() <= MOST_TEXT {
                    unified_diff.push_str(&text);
                }
            }
        }
    }
    if not_shown.len() > MOST_NOTES {
        let more = not_shown.len() - MOST_NOTES;
        not_shown.truncate(MOST_NOTES);
        not_shown.push(format!("and {more} more"));
    }
    TurnDiff { unified_diff, not_shown }
}

/// What a diff says about one file.
enum Section {
    /// It is as it was.
    Same,
    Text(String),
    /// The text has replacements for what is not UTF-8.
    Lossy(String),
    /// It changed, and what it held is not known.
    Unknown(&'static str),
}

fn section(change: &Change) -> Section {
    let path = &change.path;
    let (old, new) = (&change.old, &change.new);
    if let (Some(before), Some(after)) = (old.mode(), new.mode())
        && (before == Mode::Link) != (after == Mode::Link)
    {
        // To git a file that becomes a link goes, and the link comes.
        let gone = section(&Change { path: path.clone(), old: old.clone(), new: Side::Absent });
        let come = section(&Change { path: path.clone(), old: Side::Absent, new: new.clone() });
        return gone.followed_by(come);
    }
    let (before, after) = match (old.contents(), new.contents()) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(()), Ok(_)) if *new == Side::Absent => {
            return Section::Unknown("deleted; its old content was not kept");
        }
        (Err(()), _) => return Section::Unknown("changed; its old content was not kept"),
        (_, Err(())) if *old == Side::Absent => {
            return Section::Unknown("new, and too large to show");
        }
        (_, Err(())) => return Section::Unknown("changed, and too large to show"),
    };
    if old.mode() == new.mode() && before == after {
        return Section::Same;
    }
    let (a, b) = (quoted("a/", path), quoted("b/", path));
    let mut text = format!("diff --git {a} {b}\n");
    let (mut from, mut to) = (a, b);
    match (old.mode(), new.mode()) {
        (None, Some(mode)) => {
            let _ = writeln!(text, "new file mode {}", mode.number());
            from = NOWHERE.to_owned();
        }
        (Some(mode), None) => {
            let _ = writeln!(text, "deleted file mode {}", mode.number());
            to = NOWHERE.to_owned();
        }
        (Some(one), Some(other)) if one != other => {
            let _ = write!(text, "old mode {}\nnew mode {}\n", one.number(), other.number());
        }
        _ => {}
    }
    if before == after {
        return Section::Text(text);
    }
    if is_binary(before) || is_binary(after) {
        let _ = writeln!(text, "Binary files {from} and {to} differ");
        return Section::Text(text);
    }
    text.push_str(&unified(&ended(from), &ended(to), before, after, Some(COMPARING)));
    match std::str::from_utf8(before).is_ok() && std::str::from_utf8(after).is_ok() {
        true => Section::Text(text),
        false => Section::Lossy(text),
    }
}

impl Section {
    fn followed_by(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown(why), _) | (_, Self::Unknown(why)) => Self::Unknown(why),
            (Self::Text(one), Self::Text(other)) => Self::Text(one + &other),
            (Self::Text(one) | Self::Lossy(one), Self::Text(other) | Self::Lossy(other)) => {
                Self::Lossy(one + &other)
            }
            (Self::Same, one) | (one, Self::Same) => one,
        }
    }
}

impl Side {
    fn mode(&self) -> Option<Mode> {
        match self {
            Self::Absent => None,
            Self::There { mode, .. } => Some(*mode),
        }
    }

    /// What it holds, if that is known.
    fn contents(&self) -> Result<&[u8], ()> {
        match self {
            Self::Absent => Ok(&[]),
            Self::There { held: Held::Contents(contents), .. } => Ok(contents),
            Self::There { .. } => Err(()),
        }
    }
}

impl Mode {
    /// As git writes it.
    fn number(self) -> &'static str {
        match self {
            Self::Regular => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
        }
    }
}

fn is_binary(contents: &[u8]) -> bool {
    contents[..contents.len().min(TELLING_BYTES)].contains(&0)
}

/// A name in a line of its own: behind a space in it, the end of the name is marked by a tab.
fn ended(name: String) -> String {
    if name.contains(' ') && !name.starts_with('"') { name + "\t" } else { name }
}

/// A path as git writes it: in quotation marks if it has a character that a line could not bear.
fn quoted(prefix: &str, path: &Path) -> String {
    let slashes = path.components().map(|part| part.as_os_str().as_encoded_bytes());
    let path = slashes.collect::<Vec<_>>().join(&b'/');
    let is_plain = |byte: &u8| !byte.is_ascii_control() && !matches!(byte, b'"' | b'\\');
    if let Ok(text) = std::str::from_utf8(&path)
        && path.iter().all(is_plain)
    {
        return format!("{prefix}{text}");
    }
    let mut quoted = format!("\"{prefix}");
    for byte in path {
        match byte {
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(byte));
            }
            b'\n' => quoted.push_str("\\n"),
            b'\t' => quoted.push_str("\\t"),
            byte if byte.is_ascii() && !byte.is_ascii_control() => quoted.push(char::from(byte)),
            byte => {
                let _ = write!(quoted, "\\{byte:03o}");
            }
        }
    }
    quoted.push('"');
    quoted
}
