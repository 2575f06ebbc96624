//! Adds an approved rule to the person's own file.
//!
//! Writers wait for each other at a lock beside the file. The new text is written to a second file,
//! which takes the place of the first once it is on the disk: who reads meanwhile, or after a crash,
//! finds the old rules or the new ones and never half of them.

use super::RulesFileError;
use super::directory::RulesDirectory;
use sandgate_policy::rules::{Origin, ProposedRule, Rule, Rules, append};
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;

/// Where approved rules go.
const FILE: &str = "default.toml";
/// What is written first. Whoever holds the lock owns it, so one that is there is a crash's.
const NEW: &str = ".default.toml.new";

/// How a new file begins.
const HEADER: &str =
    "# Rules that were approved while working. Change or remove them as you like.\n";

/// Adds a rule to `rules/default.toml` in the person's settings, and gives it back as it was written,
/// for the rules of the running session. One that is there already is not written again.
///
/// # Errors
/// If the file is broken, is a link, or cannot be written. It is then as it was.
pub fn append_rule(home: &Path, rule: &ProposedRule) -> Result<Rule, RulesFileError> {
    let directory = RulesDirectory::make(home, "rules")?;
    let path = directory.path().join(FILE);
    let label = path.display().to_string();
    let _held = directory.lock()?;
    directory.remove(OsStr::new(NEW))?;

    let old = directory.read(OsStr::new(FILE))?;
    let text = old.as_deref().unwrap_or(HEADER);
    let longer = append(text, &label, rule)?;
    if old.as_deref() != Some(longer.as_str()) {
        replace(&directory, &path, &longer)?;
    }
    let written = Rules::parse(&longer, &label)?;
    let same = |one: &Rule| *one == rule.as_rule(one.origin.clone());
    let origin = written.into_iter().rev().find(same).map(|rule| rule.origin);
    Ok(rule.as_rule(origin.unwrap_or(Origin { file: label, ..Origin::default() })))
}

fn replace(directory: &RulesDirectory, path: &Path, text: &str) -> Result<(), RulesFileError> {
    let mut new = directory.create(OsStr::new(NEW), OsStr::new(FILE))?;
    let written = new
        .write_all(text.as_bytes())
        .and_then(|()| new.sync_all())
        .map_err(RulesFileError::doing("write", path))
        .and_then(|()| directory.rename(OsStr::new(NEW), OsStr::new(FILE)));
    if written.is_err() {
        // The next writer would remove it too.
        let _ = directory.remove(OsStr::new(NEW));
    }
    written
}
