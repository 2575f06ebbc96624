//! Reads the audit log as it grows, and knows what became of each command.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// What every mark begins with.
const MARK: &str = "soak_";

/// How far each file was read, and which calls have which mark.
#[derive(Debug, Default)]
pub(super) struct AuditLog {
    read: BTreeMap<PathBuf, u64>,
    /// By session and call.
    calls: BTreeMap<(String, String), String>,
    began: BTreeSet<String>,
    ended: BTreeSet<String>,
    pub(super) lines: u64,
}

impl AuditLog {
    /// Reads what has been added, whole lines only.
    pub(super) fn read_on(&mut self, directory: &Path) -> anyhow::Result<()> {
        let mut files: Vec<PathBuf> = std::fs::read_dir(directory)?
            .map(|entry| Ok(entry?.path()))
            .collect::<std::io::Result<_>>()?;
        files.retain(|file| file.extension().is_some_and(|end| end == "jsonl"));
        files.sort();
        for path in files {
            let mut file = File::open(&path)?;
            let mut at = self.read.get(&path).copied().unwrap_or(0);
            file.seek(SeekFrom::Start(at))?;
            let mut reader = BufReader::new(file);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
                at += line.len() as u64;
                // A line that was torn by a kill is no JSON, and `audit verify` judges it.
                if let Ok(entry) = serde_json::from_slice(&line) {
                    self.take(&entry);
                }
                line.clear();
            }
            self.read.insert(path, at);
        }
        Ok(())
    }

    fn take(&mut self, entry: &Value) {
        self.lines += 1;
        let record = &entry["record"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let call = (text(&entry["session"]), text(&record["call_id"]));
        match record["type"].as_str() {
            Some("call_asked") => {
                let words =
                    record["argv"].as_array().into_iter().flatten().filter_map(Value::as_str);
                if let Some(mark) = words.filter_map(mark_in).next() {
                    self.calls.insert(call, mark.to_owned());
                }
            }
            Some("began") => self.began.extend(self.calls.get(&call).cloned()),
            Some("ended") => self.ended.extend(self.calls.get(&call).cloned()),
            _ => {}
        }
    }

    /// Which of these have no line that says they began, and one that says they ended. Those that have
    /// are forgotten.
    pub(super) fn missing(&mut self, ran: &BTreeSet<String>) -> Vec<String> {
        let missing =
            ran.iter().filter(|mark| !(self.began.contains(*mark) && self.ended.contains(*mark)));
        let missing = missing.cloned().collect();
        self.calls.clear();
        self.began.clear();
        self.ended.clear();
        missing
    }
}

/// The mark in a word, if there is one.
fn mark_in(word: &str) -> Option<&str> {
    let from = &word[word.find(MARK)?..];
    let length = MARK.len()
        + from[MARK.len()..]
            .find(|c: char| !c.is_ascii_digit() && c != '_')
            .unwrap_or(from.len() - MARK.len());
    Some(&from[..length])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn marks_are_found_in_words() {
        assert_eq!(mark_in("soak_1_2_3_"), Some("soak_1_2_3_"));
        assert_eq!(mark_in("echo soak_0_12_7_; exit 3"), Some("soak_0_12_7_"));
        assert_eq!(mark_in("echo nothing"), None);
    }

    #[test]
    fn a_command_needs_both_of_its_lines() {
        let mut log = AuditLog::default();
        let line = |session: &str, record: Value| json!({ "session": session, "record": record });
        for (session, mark) in [("s", "soak_1_"), ("t", "soak_2_")] {
            let asked =
                json!({ "type": "call_asked", "call_id": "c", "argv": ["sh", "-c", "x", mark] });
            log.take(&line(session, asked));
            log.take(&line(session, json!({ "type": "began", "call_id": "c" })));
        }
        log.take(&line("s", json!({ "type": "ended", "call_id": "c" })));
        let ran = ["soak_1_", "soak_2_", "soak_3_"].map(str::to_owned).into();
        assert_eq!(log.missing(&ran), ["soak_2_", "soak_3_"]);
    }
}
