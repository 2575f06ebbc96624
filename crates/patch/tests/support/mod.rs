//! Files in memory, and patches on them.

#![allow(dead_code, reason = "no test file uses all of it")]

use sandgate_patch::{FileChange, Files, Found, Look, LookError, Patch, Plan, PlanError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) const BASE: &str = "/work";

/// Files that are nowhere but here, by their paths from the base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InMemory(pub BTreeMap<PathBuf, Vec<u8>>);

impl InMemory {
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, contents)| (Path::new(BASE).join(path), contents.as_bytes().to_vec()));
        Self(files.collect())
    }

    /// Does what a plan says.
    pub(crate) fn apply(&mut self, plan: &Plan) {
        for change in &plan.changes {
            match change {
                FileChange::Add { path, contents } => {
                    assert!(self.0.insert(path.clone(), contents.clone()).is_none());
                }
                FileChange::Delete { path, old } => {
                    assert_eq!(self.0.remove(path).as_ref(), Some(old));
                }
                FileChange::Update { path, move_to, old, new } => {
                    assert_eq!(self.0.remove(path).as_ref(), Some(old));
                    let to = move_to.as_ref().unwrap_or(path);
                    assert!(self.0.insert(to.clone(), new.clone()).is_none());
                }
            }
        }
    }
}

impl Files for InMemory {
    fn look(&self, path: &Path) -> Result<Look, LookError> {
        let is_directory = self.0.keys().any(|file| file != path && file.starts_with(path));
        let found = match self.0.get(path) {
            Some(contents) => Found::File(contents.clone()),
            None if is_directory => Found::Directory,
            None => Found::Nothing,
        };
        Ok(Look { real: path.to_owned(), through_link: false, found })
    }
}

/// A patch with these lines in it.
pub(crate) fn patch(lines: &str) -> Patch {
    let text = format!("*** Begin Patch\n{lines}\n*** End Patch\n");
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub(crate) fn plan(lines: &str, files: &InMemory) -> Result<Plan, PlanError> {
    Plan::of(&patch(lines), Path::new(BASE), files)
}

/// What a file `f` with these contents becomes by an update with these lines.
pub(crate) fn updated(contents: impl AsRef<[u8]>, lines: &str) -> Result<Vec<u8>, String> {
    let path = Path::new(BASE).join("f");
    let mut files = InMemory([(path.clone(), contents.as_ref().to_vec())].into());
    let planned = plan(&format!("*** Update File: f\n{lines}"), &files);
    files.apply(&planned.map_err(|error| error.to_string())?);
    Ok(files.0.remove(&path).unwrap())
}
