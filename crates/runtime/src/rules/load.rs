//! Finds and reads all rules of a session.

use super::RulesFileError;
use super::directory::{RulesDirectory, read_text};
use sandgate_policy::rules::{Rule, Rules, RulesError};
use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;

/// The most files that are read from one directory.
const MAX_FILES: usize = 100;

/// Where the rules of the project come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectRules<'a> {
    /// The person trusts this directory: what is in its `.codex/rules` counts.
    Trusted(&'a Path),
    /// There is none, or it is not trusted: nothing of it is looked at.
    None,
}

/// The rules of a session, and the files that could not be used.
#[derive(Debug)]
#[must_use = "a broken file may hold rules that forbid: the person has to be told"]
pub struct Loaded {
    /// The rules of all files that could be read: the person's, then the project's, each in the
    /// order of the files' names.
    pub rules: Rules,
    /// What could not be used. Rules that forbid may be missing because of it, so whoever loads
    /// rules must show this to the person.
    pub broken: Vec<RulesFileError>,
}

/// Reads the rules in the person's settings (`CODEX_HOME`, or `~/.codex`) and in a trusted project.
/// A file that cannot be used takes none of the others with it.
pub fn load(home: &Path, project: ProjectRules<'_>) -> Loaded {
    let mut loaded = Loaded { rules: Rules::default(), broken: Vec::new() };
    let own = found(RulesDirectory::open(home, &["rules"]), &mut loaded);
    if let Some(own) = &own {
        loaded.read_all(own, Rules::parse);
    }
    if let ProjectRules::Trusted(project) = project {
        let theirs = found(RulesDirectory::open(project, &[".codex", "rules"]), &mut loaded);
        // Who works in their home directory has the one in the place of the other.
        let another = |theirs: &RulesDirectory| own.as_ref().is_none_or(|own| !theirs.is_same(own));
        if let Some(theirs) = theirs.filter(another) {
            loaded.read_all(&theirs, Rules::parse_of_project);
        }
    }
    loaded
}

/// Reads one file that a person names, wherever it is and whatever it is: a link, or a pipe.
///
/// # Errors
/// If it cannot be read, or something in it is wrong.
pub fn load_file(path: &Path) -> Result<Rules, RulesFileError> {
    let file = File::open(path).map_err(RulesFileError::doing("open", path))?;
    let text = read_text(file, path)?;
    Ok(Rules::parse(&text, &path.display().to_string())?.into_iter().collect())
}

fn found(
    opened: Result<Option<RulesDirectory>, RulesFileError>,
    loaded: &mut Loaded,
) -> Option<RulesDirectory> {
    opened.unwrap_or_else(|error| {
        loaded.broken.push(error);
        None
    })
}

impl Loaded {
    fn read_all(
        &mut self,
        directory: &RulesDirectory,
        parse: fn(&str, &str) -> Result<Vec<Rule>, RulesError>,
    ) {
        let mut names = match directory.names() {
            Ok(names) => names,
            Err(error) => return self.broken.push(error),
        };
        names.retain(|name| is_rules_file(name));
        names.sort();
        if names.len() > MAX_FILES {
            let path = directory.path().to_owned();
            self.broken.push(RulesFileError::TooManyFiles { path, max: MAX_FILES });
        }
        for name in names.iter().take(MAX_FILES) {
            match directory.read(name) {
                Ok(Some(text)) => {
                    let label = directory.path().join(name).display().to_string();
                    match parse(&text, &label) {
                        Ok(rules) => self.rules.extend(rules),
                        Err(error) => self.broken.push(error.into()),
                    }
                }
                // It was removed after it had been listed.
                Ok(None) => {}
                Err(error) => self.broken.push(error),
            }
        }
    }
}

/// `NAME.toml`; names with a dot before them are our own, or an editor's.
fn is_rules_file(name: &OsStr) -> bool {
    let hidden = name.as_encoded_bytes().starts_with(b".");
    !hidden && Path::new(name).extension().is_some_and(|extension| extension == "toml")
}
