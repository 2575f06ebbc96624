//! Does what a plan says, all of it or nothing.
//!
//! 1. Write down what will be done (the journal).
//! 2. Make the directories, write every new file beside its place, and write down that it is there.
//! 3. Change the names, one file after the other. What was replaced stays beside it.
//! 4. Write down that it is done. From here on it is never undone.
//! 5. Remove what was replaced, and the journal.
//!
//! A file is compared with the plan twice: before its new version is written, and once more when it
//! has just been put aside, where nobody else can reach it by its name any more.

use crate::journal::{Digest, Journal, Journals, OpenJournal, Task};
use crate::plan::{FileChange, Plan};
use crate::recover::{Recovered, may_forget, settle};
use crate::roots::{Outside, Roots};
use crate::tree::{Entry, Place};
use crate::undo::{LeftAlone, finish, undo};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// What came of applying a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// Patches that a crash had broken off, found and settled on the way.
    pub recovered: Vec<Recovered>,
}

/// Why a plan was not applied. But for [`ApplyError::NotUndone`] nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// It writes where it may not.
    #[error("the patch may not {}", listed(outside))]
    Outside {
        /// All such paths.
        outside: Vec<Outside>,
    },
    /// A file is not what it was when the plan was made.
    #[error("{} was changed since the patch was checked; read it again", path.display())]
    ChangedSince {
        /// Which.
        path: PathBuf,
    },
    /// A path cannot be written down.
    #[error("{} is not UTF-8, and a patch cannot be applied there safely", path.display())]
    NotUtf8 {
        /// Which.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was to be done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// It failed, and not everything could be put back.
    #[error("{cause}; and not everything could be put back: {}", listed(left_alone))]
    NotUndone {
        /// Why it failed.
        cause: Box<ApplyError>,
        /// What is not as it was.
        left_alone: Vec<LeftAlone>,
    },
}

/// What has just been done, for those who want to know: tests that end the program there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Journalled,
    DirectoryMade,
    Staged,
    PutAside,
    Changed,
    Committed,
    OldRemoved,
    Forgotten,
    PutBack,
}

/// How a new file takes the place of an old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Swap {
    /// At no moment is there neither; where the file system has that.
    InOneStep,
    /// Away with the one, here with the other.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "what file systems without it need is tested")
    )]
    ByTwoRenames,
}

/// Applies a plan, if it stays within the roots. `journals` is a directory of the caller's that no
/// command can write to; it is made if it is not there. Patches that share it take turns.
///
/// # Errors
/// Says why it was not applied.
pub fn apply(plan: &Plan, roots: &Roots, journals: &Path) -> Result<Applied, ApplyError> {
    apply_observed(plan, roots, journals, Swap::InOneStep, &mut |_| {})
}

pub(crate) fn apply_observed(
    plan: &Plan,
    roots: &Roots,
    journals: &Path,
    swap: Swap,
    observe: &mut dyn FnMut(Step),
) -> Result<Applied, ApplyError> {
    let works = works(plan, roots)?;
    let journals_failed = failing("use the journals in", journals);
    let held = Journals::lock(journals).map_err(&journals_failed)?;
    let recovered = settle(&held, swap, observe).map_err(&journals_failed)?;
    let applied = Applied { recovered };
    if works.is_empty() {
        return Ok(applied);
    }
    let journal =
        Journal::new(missing_directories(&works)?, works.iter().map(Work::task).collect());
    let mut open = held.begin(&journal).map_err(&journals_failed)?;
    observe(Step::Journalled);
    let done = prepare(&works, &journal, observe)
        .and_then(|()| open.ready().map_err(&journals_failed))
        .and_then(|()| carry_out(&works, &journal, swap, observe))
        .and_then(|()| open.commit().map_err(&journals_failed));
    if let Err(cause) = done {
        return Err(give_up(cause, &held, &mut open, &journal, swap));
    }
    observe(Step::Committed);
    // It is done, whatever becomes of this; what is left of it the next one clears away.
    if finish(&journal, observe).is_empty() && held.remove(open.path()).is_ok() {
        observe(Step::Forgotten);
    }
    Ok(applied)
}

/// One file that is made, changed or removed, with its contents.
struct Work<'a> {
    place: Place,
    old: Option<&'a [u8]>,
    new: Option<&'a [u8]>,
    /// The file that it takes after, if that is another one.
    like: Option<Place>,
}

impl Work<'_> {
    fn task(&self) -> Task {
        let place = self.place.clone();
        Task { place, before: self.old.map(Digest::of), after: self.new.map(Digest::of) }
    }
}

/// Files that go come last, so that one that is moved is never nowhere.
fn works<'a>(plan: &'a Plan, roots: &Roots) -> Result<Vec<Work<'a>>, ApplyError> {
    let outside = plan.check(roots);
    if !outside.is_empty() {
        return Err(ApplyError::Outside { outside });
    }
    let mut works = Vec::new();
    let mut removals = Vec::new();
    for change in &plan.changes {
        let place = place(change.path(), roots)?;
        match change {
            FileChange::Add { contents, .. } => {
                works.push(Work { place, old: None, new: Some(contents), like: None });
            }
            FileChange::Update { move_to: None, old, new, .. } => {
                works.push(Work { place, old: Some(old), new: Some(new), like: None });
            }
            FileChange::Update { move_to: Some(to), old, new, .. } => {
                let target = self::place(to, roots)?;
                let like = Some(place.clone());
                works.push(Work { place: target, old: None, new: Some(new), like });
                removals.push(Work { place, old: Some(old), new: None, like: None });
            }
            FileChange::Delete { old, .. } => {
                removals.push(Work { place, old: Some(old), new: None, like: None });
            }
        }
    }
    works.append(&mut removals);
    Ok(works)
}

fn place(path: &Path, roots: &Roots) -> Result<Place, ApplyError> {
    if path.to_str().is_none() {
        return Err(ApplyError::NotUtf8 { path: path.to_owned() });
    }
    let refused =
        |why| ApplyError::Outside { outside: vec![Outside { path: path.to_owned(), why }] };
    let root = roots.admit(path).map_err(refused)?;
    let inside = path.strip_prefix(root).unwrap_or(path).to_owned();
    Ok(Place { root: root.to_owned(), inside })
}

fn missing_directories(works: &[Work<'_>]) -> Result<Vec<Place>, ApplyError> {
    let mut missing = BTreeSet::new();
    for work in works.iter().filter(|work| work.old.is_none()) {
        let path = work.place.path();
        missing.extend(work.place.missing_directories().map_err(failing("open", &path))?);
    }
    // Ordered as paths are: the outer before the inner.
    Ok(missing.into_iter().collect())
}

fn prepare(
    works: &[Work<'_>],
    journal: &Journal,
    observe: &mut dyn FnMut(Step),
) -> Result<(), ApplyError> {
    for place in &journal.directories {
        let made = place.directory().and_then(|above| above.make_directory(place.name()?));
        made.map_err(failing("make", &place.path()))?;
        observe(Step::DirectoryMade);
    }
    for (index, work) in works.iter().enumerate() {
        work.stage(&journal.staged(index))?;
        observe(Step::Staged);
    }
    Ok(())
}

fn carry_out(
    works: &[Work<'_>],
    journal: &Journal,
    swap: Swap,
    observe: &mut dyn FnMut(Step),
) -> Result<(), ApplyError> {
    for (index, work) in works.iter().enumerate() {
        work.change(&journal.staged(index), &journal.aside(index), swap, observe)?;
        observe(Step::Changed);
    }
    journal
        .flush_directories()
        .map_err(|(path, source)| failing("flush the directory of", &path)(source))
}

impl Work<'_> {
    /// Writes the new file beside its place, if the old one is what it should be.
    fn stage(&self, staged: &OsStr) -> Result<(), ApplyError> {
        let path = self.place.path();
        let directory = self.place.directory().map_err(failing("open", &path))?;
        let name = self.place.name().map_err(failing("open", &path))?;
        let there = directory.read(name).map_err(failing("read", &path))?;
        let as_planned = match self.old {
            Some(old) => there.is(old),
            None => matches!(there, Entry::Absent),
        };
        if !as_planned {
            return Err(ApplyError::ChangedSince { path });
        }
        let Some(new) = self.new else { return Ok(()) };
        if self.old.is_some() {
            directory.ensure_writable(name).map_err(failing("write to", &path))?;
        }
        let model = match &self.like {
            Some(like) => like
                .directory()
                .and_then(|directory| directory.read(like.name()?))
                .map_err(failing("read", &like.path()))?,
            None => there,
        };
        let like = match &model {
            Entry::File { like, .. } => Some(like),
            _ => None,
        };
        directory.create(staged, new, like).map_err(failing("write", &path))
    }

    /// Changes the name, and makes sure that what it stood for was what it should have been.
    fn change(
        &self,
        staged: &OsStr,
        aside: &OsStr,
        swap: Swap,
        observe: &mut dyn FnMut(Step),
    ) -> Result<(), ApplyError> {
        let path = self.place.path();
        let directory = self.place.directory().map_err(failing("open", &path))?;
        let name = self.place.name().map_err(failing("open", &path))?;
        let failed = |source: io::Error| match source.kind() {
            ErrorKind::NotFound | ErrorKind::AlreadyExists => {
                ApplyError::ChangedSince { path: path.clone() }
            }
            _ => failing("change", &path)(source),
        };
        let ensure_old = |put: &OsStr, old: &[u8]| match directory.read(put) {
            Ok(entry) if entry.is(old) => Ok(()),
            Ok(_) => Err(ApplyError::ChangedSince { path: path.clone() }),
            Err(source) => Err(failed(source)),
        };
        let Some(old) = self.old else {
            return directory.rename_to_free(staged, name).map_err(failed);
        };
        if self.new.is_some() && swap == Swap::InOneStep {
            match directory.exchange(staged, name) {
                Ok(()) => return ensure_old(staged, old),
                Err(error) if error.kind() == ErrorKind::Unsupported => {}
                Err(error) => return Err(failed(error)),
            }
        }
        directory.rename_to_free(name, aside).map_err(failed)?;
        ensure_old(aside, old)?;
        if self.new.is_some() {
            observe(Step::PutAside);
            directory.rename_to_free(staged, name).map_err(failed)?;
        }
        Ok(())
    }
}

/// Undoes what was done. The journal stays if there is anything left to try again.
fn give_up(
    cause: ApplyError,
    journals: &Journals,
    open: &mut OpenJournal,
    journal: &Journal,
    swap: Swap,
) -> ApplyError {
    if open.take_back().is_err() {
        // Nobody can tell what the journal will say after a crash, so nothing may contradict it.
        return ApplyError::NotUndone { cause: Box::new(cause), left_alone: Vec::new() };
    }
    let left_alone = undo(journal, open.phase(), swap, &mut |_| {});
    if may_forget(&left_alone) {
        // A journal that stays is settled by the next one, which finds everything undone.
        let _ = journals.remove(open.path());
    }
    if left_alone.is_empty() {
        cause
    } else {
        ApplyError::NotUndone { cause: Box::new(cause), left_alone }
    }
}

fn failing(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> ApplyError {
    let path = path.to_owned();
    move |source| ApplyError::Io { doing, path: path.clone(), source }
}

fn listed(items: &[impl ToString]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
