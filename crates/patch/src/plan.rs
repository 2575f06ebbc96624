//! What a patch comes to, for the files as they are. Pure: whoever plans is handed the files.
//!
//! Sections are done in their order on a picture of the files, so that one may build on another; the
//! plan is the difference between the picture at the end and the files. Nothing of it has been done
//! yet, and doing it compares again.

use crate::patch::{Patch, Section};
use crate::paths::{BadPath, absolute};
use crate::rewrite::{Mismatch, rewrite};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// Where a plan looks at files.
pub trait Files {
    /// What is at an absolute path without `.` and `..`.
    ///
    /// # Errors
    /// When it cannot be told.
    fn look(&self, path: &Path) -> Result<Look, LookError>;
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The path without links, absolute; also of something that is not there.
    pub real: PathBuf,
    /// Whether the path itself is a link, so that `real` is the file it leads to.
    pub through_link: bool,
    /// What is there.
    pub found: Found,
}

/// The kinds of things there can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A file, with its contents.
    File(Vec<u8>),
    /// A directory.
    Directory,
    /// A socket, a device, a pipe.
    Special,
}

/// Why it could not be told what is at a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookError {
    /// A link that leads nowhere.
    #[error("{} is a link that leads nowhere; name the file itself", path.display())]
    DanglingLink {
        /// The link.
        path: PathBuf,
    },
    /// Something on the way is a file.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// What is in the way.
        path: PathBuf,
    },
    /// A file that is too large to be patched.
    #[error("it has {bytes} bytes, more than the {most} that can be patched")]
    TooLarge {
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        most: u64,
    },
    /// The system refused.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// What was to be read.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
}

/// What is to be done, each file once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The directory that the patch's paths start at, as it was given.
    pub base: PathBuf,
    /// In the order in which the patch first named the files. Empty if everything is already so.
    pub changes: Vec<FileChange>,
}

/// What is to be done to one file. Paths are absolute and without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// Make it.
    Add {
        /// Where; nothing is there.
        path: PathBuf,
        /// What it will hold.
        contents: Vec<u8>,
    },
    /// Remove it.
    Delete {
        /// Which.
        path: PathBuf,
        /// What it holds.
        old: Vec<u8>,
    },
    /// Change it, move it, or both.
    Update {
        /// Which.
        path: PathBuf,
        /// Where it goes, if it goes anywhere; nothing is there.
        move_to: Option<PathBuf>,
        /// What it holds.
        old: Vec<u8>,
        /// What it will hold.
        new: Vec<u8>,
    },
}

/// A section that cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {action} {path} (line {at} of the patch): {reason}")]
pub struct PlanError {
    /// What the section does: add, delete, update or move.
    pub action: &'static str,
    /// The file, as the patch names it.
    pub path: String,
    /// The line of the patch that the section begins at.
    pub at: usize,
    /// Why not.
    pub reason: Box<Reason>,
}

/// Why a section cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The path cannot be one.
    #[error("{0}")]
    BadPath(String),
    /// There is no such file.
    #[error("there is no such file; check the path, or add the file")]
    NotThere,
    /// An added file is there already, with other contents.
    #[error(
        "the file is there already with other contents; update it, or delete it first in the same \
         patch"
    )]
    AlreadyThere,
    /// A file is moved to where another is.
    #[error("there is something at {target} already; delete it first in the same patch")]
    MoveOnto {
        /// Where the file was to go, as the patch names it.
        target: String,
    },
    /// It is a directory.
    #[error("it is a directory")]
    Directory,
    /// It is a socket, a device or a pipe.
    #[error("it is neither a file nor a directory")]
    Special,
    /// A link is to be removed or moved.
    #[error("it is a link to {}; name that file instead", real.display())]
    Link {
        /// What it leads to.
        real: PathBuf,
    },
    /// It would have to be a directory and a file.
    #[error("{} is a file, and would have to be a directory", file.display())]
    FileInTheWay {
        /// What is or will be a file.
        file: PathBuf,
    },
    /// It could not be looked at.
    #[error(transparent)]
    Look(#[from] LookError),
    /// A hunk does not fit.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

impl From<BadPath> for Reason {
    fn from(bad: BadPath) -> Self {
        Self::BadPath(bad.to_string())
    }
}

impl Plan {
    /// Works out what a patch comes to. Its relative paths start at `base`, which is absolute and
    /// without links.
    ///
    /// # Errors
    /// Says which section cannot be done, and why; then nothing of the patch can be.
    pub fn of(patch: &Patch, base: &Path, files: &impl Files) -> Result<Self, PlanError> {
        let mut picture = Picture { base, files, slots: Vec::new(), index: BTreeMap::new() };
        for section in &patch.sections {
            let action = match section {
                Section::Add { .. } => "add",
                Section::Delete { .. } => "delete",
                Section::Update { move_to: Some(_), hunks, .. } if hunks.is_empty() => "move",
                Section::Update { .. } => "update",
            };
            picture.section(section).map_err(|reason| PlanError {
                action,
                path: section.path().to_owned(),
                at: section.at(),
                reason: Box::new(reason),
            })?;
        }
        Ok(Self { base: base.to_owned(), changes: picture.changes() })
    }
}

impl FileChange {
    /// The file that it is about, before it.
    pub fn path(&self) -> &Path {
        match self {
            Self::Add { path, .. } | Self::Delete { path, .. } | Self::Update { path, .. } => path,
        }
    }

    /// Every path that it writes to.
    pub fn written(&self) -> impl Iterator<Item = &Path> {
        let further = match self {
            Self::Update { move_to, .. } => move_to.as_deref(),
            _ => None,
        };
        std::iter::once(self.path()).chain(further)
    }
}

/// The files as the sections so far would have left them.
struct Picture<'a, F> {
    base: &'a Path,
    files: &'a F,
    slots: Vec<Slot>,
    /// By the path; what lies beneath a path follows it.
    index: BTreeMap<PathBuf, usize>,
}

/// One path of the picture.
struct Slot {
    real: PathBuf,
    /// What is really there.
    before: Option<Vec<u8>>,
    /// What would be there by now.
    now: Option<Vec<u8>>,
    /// The slot whose file came here.
    from: Option<usize>,
}

impl<F: Files> Picture<'_, F> {
    fn section(&mut self, section: &Section) -> Result<(), Reason> {
        match section {
            Section::Add { path, lines, .. } => {
                let slot = self.slot(path, Links::Followed)?;
                let contents = lines.iter().fold(Vec::new(), |mut contents, line| {
                    contents.extend_from_slice(line.as_bytes());
                    contents.push(b'\n');
                    contents
                });
                match &self.slots[slot].now {
                    Some(there) if *there == contents => Ok(()),
                    Some(_) => Err(Reason::AlreadyThere),
                    None => self.put(slot, contents),
                }
            }
            Section::Delete { path, .. } => {
                let slot = self.slot(path, Links::Refused)?;
                self.slots[slot].now.take().map(drop).ok_or(Reason::NotThere)
            }
            Section::Update { path, move_to, hunks, .. } => {
                let links = if move_to.is_some() { Links::Refused } else { Links::Followed };
                let slot = self.slot(path, links)?;
                let old = self.slots[slot].now.as_ref().ok_or(Reason::NotThere)?;
                let new = rewrite(old, hunks)?;
                match move_to {
                    Some(target) => self.move_file(slot, target, new),
                    None => {
                        self.slots[slot].now = Some(new);
                        Ok(())
                    }
                }
            }
        }
    }

    fn move_file(&mut self, slot: usize, target: &str, new: Vec<u8>) -> Result<(), Reason> {
        let to = match self.slot(target, Links::Refused) {
            Ok(to) => to,
            Err(Reason::Directory | Reason::Special | Reason::Link { .. }) => {
                return Err(Reason::MoveOnto { target: target.to_owned() });
            }
            Err(other) => return Err(other),
        };
        if to == slot {
            self.slots[slot].now = Some(new);
            return Ok(());
        }
        if self.slots[to].now.is_some() {
            return Err(Reason::MoveOnto { target: target.to_owned() });
        }
        self.slots[slot].now = None;
        self.put(to, new)?;
        // A file that comes by way of another place is moved from where it really is.
        let came_by = self.slots[slot].from.filter(|_| self.slots[slot].before.is_none());
        self.slots[to].from = came_by.or(Some(slot));
        Ok(())
    }

    /// Puts a file where there is none, if its parents can be directories.
    fn put(&mut self, slot: usize, contents: Vec<u8>) -> Result<(), Reason> {
        let real = &self.slots[slot].real;
        // A file that was only there before is in the way as well: nothing can be made beneath it
        // until it is gone, and it goes together with everything else.
        let is_file = |slot: &Slot| slot.before.is_some() || slot.now.is_some();
        let above = real.ancestors().skip(1).filter_map(|above| self.index.get(above));
        let mut files = above.map(|index| &self.slots[*index]).filter(|slot| is_file(slot));
        if let Some(file) = files.next() {
            return Err(Reason::FileInTheWay { file: file.real.clone() });
        }
        let behind =
            self.index.range::<Path, _>((Bound::Excluded(real.as_path()), Bound::Unbounded));
        let mut beneath = behind.take_while(|(path, _)| path.starts_with(real));
        if beneath.any(|(_, index)| self.slots[*index].now.is_some()) {
            return Err(Reason::FileInTheWay { file: real.clone() });
        }
        self.slots[slot].now = Some(contents);
        self.slots[slot].from = None;
        Ok(())
    }

    /// The slot of a path; looked up when it is first named.
    fn slot(&mut self, written: &str, links: Links) -> Result<usize, Reason> {
        let path = absolute(self.base, written)?;
        // A path that has been looked up by this very name needs no second look. Links do.
        if let Some(slot) = self.index.get(&path) {
            return Ok(*slot);
        }
        let Look { real, through_link, found } = self.files.look(&path)?;
        if through_link && links == Links::Refused {
            return Err(Reason::Link { real });
        }
        if let Some(slot) = self.index.get(&real) {
            return Ok(*slot);
        }
        let before = match found {
            Found::Nothing => None,
            Found::File(contents) => Some(contents),
            Found::Directory => return Err(Reason::Directory),
            Found::Special => return Err(Reason::Special),
        };
        self.index.insert(real.clone(), self.slots.len());
        self.slots.push(Slot { real, now: before.clone(), before, from: None });
        Ok(self.slots.len() - 1)
    }

    /// The difference between the picture and the files.
    fn changes(self) -> Vec<FileChange> {
        let mut slots: Vec<Option<Slot>> = self.slots.into_iter().map(Some).collect();
        let mut moved: HashMap<usize, usize> = HashMap::new();
        for (index, slot) in slots.iter().enumerate() {
            if let Some(Slot { from: Some(from), before: None, now: Some(_), .. }) = slot
                && let Some(Slot { before: Some(_), now: None, .. }) = &slots[*from]
            {
                moved.entry(*from).or_insert(index);
            }
        }
        let mut changes = Vec::new();
        for index in 0..slots.len() {
            let Some(slot) = slots[index].take() else { continue };
            let target = moved.get(&index).and_then(|target| slots[*target].take());
            let path = slot.real;
            changes.extend(match (slot.before, slot.now, target) {
                (Some(old), None, Some(Slot { real, now: Some(new), .. })) => {
                    Some(FileChange::Update { path, move_to: Some(real), old, new })
                }
                (Some(old), None, _) => Some(FileChange::Delete { path, old }),
                (Some(old), Some(new), _) if old != new => {
                    Some(FileChange::Update { path, move_to: None, old, new })
                }
                (None, Some(contents), _) => Some(FileChange::Add { path, contents }),
                _ => None,
            });
        }
        changes
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    Followed,
    Refused,
}
