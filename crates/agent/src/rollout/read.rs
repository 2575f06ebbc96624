//! Reads a conversation again.

use super::{Entry, LONGEST_LINE, Line, Rollout, RolloutError, SessionMeta};
use sandgate_protocol::{ResponseItem, TokenUsage};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// A conversation as it was written down.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// How it began.
    pub meta: SessionMeta,
    /// Its history, as a model is given it.
    pub items: Vec<ResponseItem>,
    /// All that was said and done, also before the history was made shorter.
    pub everything: Vec<ResponseItem>,
    /// What it used.
    pub used: TokenUsage,
    /// How many bytes of the file are whole lines.
    complete: u64,
    path: PathBuf,
}

impl Recorded {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Goes on to write it down.
    ///
    /// # Errors
    /// When another program does so.
    pub fn go_on(&self) -> Result<Rollout, RolloutError> {
        Rollout::append(&self.path, self.complete)
    }
}

/// Reads a conversation. A last line that was never finished does not count, and neither does a line of
/// a kind that only a later version knows.
///
/// # Errors
/// When the file cannot be read, or is no conversation.
pub fn read(path: &Path) -> Result<Recorded, RolloutError> {
    let file = sandgate_runtime::open_file(path).map_err(RolloutError::doing("open", path))?;
    let mut reader = BufReader::new(file);
    let mut recorded: Option<Recorded> = None;
    let (mut line, mut complete) = (Vec::new(), 0_u64);
    for number in 1_u64.. {
        line.clear();
        let mut limited = reader.by_ref().take(LONGEST_LINE);
        limited.read_until(b'\n', &mut line).map_err(RolloutError::doing("read", path))?;
        let wrong =
            |reason: &str| RolloutError::malformed(path, format!("line {number}: {reason}"));
        if line.last() != Some(&b'\n') {
            if line.len() as u64 >= LONGEST_LINE {
                return Err(wrong("it is too long"));
            }
            break;
        }
        complete += line.len() as u64;
        let entry = serde_json::from_slice::<Line>(&line).map_err(|e| wrong(&e.to_string()))?.entry;
        match (entry, &mut recorded) {
            (Entry::SessionMeta(meta), None) => {
                let (items, everything, used) = Default::default();
                let path = path.to_owned();
                recorded = Some(Recorded { meta, items, everything, used, complete, path });
            }
            (_, None) => return Err(wrong("the file does not begin like a conversation")),
            (Entry::Item { item }, Some(recorded)) => {
                recorded.items.push(item.clone());
                recorded.everything.push(item);
            }
            (Entry::Compacted { items }, Some(recorded)) => recorded.items = items,
            (Entry::Usage { usage }, Some(recorded)) => recorded.used.add(&usage),
            (Entry::SessionMeta(_) | Entry::Unknown, Some(_)) => {}
        }
    }
    let mut recorded =
        recorded.ok_or_else(|| RolloutError::malformed(path, "there is nothing in it"))?;
    recorded.complete = complete;
    Ok(recorded)
}
