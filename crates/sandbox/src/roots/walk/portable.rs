//! The walk by what every system has.

use super::{Limits, Walked};
use crate::roots::protected::is_protected;
use std::collections::{BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Looks for protected names beneath a root, but not in those of `elsewhere` that lie in it.
pub(in crate::roots) fn walk(root: &Path, limits: Limits, elsewhere: &BTreeSet<PathBuf>) -> Walked {
    let mut walked = Walked { complete: true, ..Walked::default() };
    let mut directories = VecDeque::from([(root.to_owned(), 0)]);
    let (mut looked_into, mut looked_at) = (0, 0);
    while let Some((directory, level)) = directories.pop_front() {
        if level > 0 && elsewhere.contains(&directory) {
            continue;
        }
        if looked_into == limits.directories {
            return cut_off(walked, directory, directories);
        }
        looked_into += 1;
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            // It went away meanwhile.
            Err(e) if level > 0 && e.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                let is_gone = error.kind() == ErrorKind::NotFound;
                walked.complete = false;
                walked.unread.extend((!is_gone).then_some(directory));
                continue;
            }
        };
        for entry in entries {
            let Ok(entry) = entry else {
                walked.complete = false;
                walked.unread.push(directory.clone());
                break;
            };
            if looked_at == limits.entries {
                return cut_off(walked, directory, directories);
            }
            looked_at += 1;
            let Ok(kind) = entry.file_type() else { continue };
            if is_protected(&entry.file_name()) {
                walked.protected.push(entry.path());
            } else if kind.is_dir() && level < limits.depth {
                directories.push_back((entry.path(), level + 1));
            }
        }
    }
    walked
}

/// What was found when a limit was reached in a directory, with these left.
fn cut_off(mut walked: Walked, at: PathBuf, left: VecDeque<(PathBuf, usize)>) -> Walked {
    walked.complete = false;
    walked.unread.push(at);
    walked.unread.extend(left.into_iter().map(|(directory, _)| directory));
    walked
}
