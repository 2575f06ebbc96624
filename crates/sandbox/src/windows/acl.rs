//! What a session has to change in access lists so that its commands can write where they may.
//!
//! The restricted token makes every write ask twice: whether the person may, and whether the
//! session's own identity may. No list on the disk knows that identity, so nothing can be written;
//! these entries are the exceptions, and the exceptions to the exceptions.

use crate::Layout;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// One change, in the order in which a plan is carried out and against which it is undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it is about.
    pub path: PathBuf,
    /// What is done to it.
    pub action: Action,
}

impl Step {
    fn to(action: Action) -> impl Fn(&PathBuf) -> Self {
        move |path| Self { path: path.clone(), action }
    }
}

/// What is done to a path for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// An empty directory takes a name that is not there and must not be made.
    Reserve,
    /// It stays as it is, with everything beneath it.
    Protect,
    /// It stays where it is; what lies in it does not matter.
    Pin,
    /// It can be written to, with everything beneath it.
    Allow,
}

impl Action {
    /// The word for it in a session's records.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Reserve => "reserve",
            Self::Protect => "protect",
            Self::Pin => "pin",
            Self::Allow => "allow",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        let all = [Self::Reserve, Self::Protect, Self::Pin, Self::Allow];
        all.into_iter().find(|action| action.word() == word)
    }

    /// The entry that it adds to the list of its path; a name is reserved by a directory.
    pub fn entry(self) -> Option<Entry> {
        match self {
            Self::Reserve => None,
            Self::Protect => {
                Some(Entry { kind: Kind::Deny, rights: CHANGE, reach: Reach::AllBeneath })
            }
            Self::Pin => Some(Entry { kind: Kind::Deny, rights: MOVE, reach: Reach::ItselfOnly }),
            Self::Allow => {
                Some(Entry { kind: Kind::Allow, rights: MODIFY, reach: Reach::AllBeneath })
            }
        }
    }
}

/// An entry of an access list, about the session's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Whether it allows or denies. What denies stands first.
    pub kind: Kind,
    /// Windows' bits for rights to files.
    pub rights: u32,
    /// What it is about.
    pub reach: Reach,
}

/// Whether an entry allows or denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It allows.
    Allow,
    /// It denies.
    Deny,
}

/// Whether an entry is inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The path and everything beneath it.
    AllBeneath,
    /// The path alone.
    ItselfOnly,
}

const WRITE_DATA: u32 = 0x2;
const APPEND_DATA: u32 = 0x4;
const WRITE_EXTENDED_ATTRIBUTES: u32 = 0x10;
const DELETE_CHILD: u32 = 0x40;
const WRITE_ATTRIBUTES: u32 = 0x100;
const DELETE: u32 = 0x1_0000;
const WRITE_LIST: u32 = 0x4_0000;
const WRITE_OWNER: u32 = 0x8_0000;
/// To read and to execute, as Windows' own names for both have it.
const READ_AND_EXECUTE: u32 = 0x12_00a9;

/// To write, and to remove: what Windows calls Modify. Without the right to remove whatever lies in a
/// directory, because that would do for what is protected in it too.
const MODIFY: u32 = READ_AND_EXECUTE
    | WRITE_DATA
    | APPEND_DATA
    | WRITE_EXTENDED_ATTRIBUTES
    | WRITE_ATTRIBUTES
    | DELETE;

/// To move or to remove something, or to change who may.
const MOVE: u32 = DELETE | WRITE_LIST | WRITE_OWNER;

/// To change something in any way.
const CHANGE: u32 =
    WRITE_DATA | APPEND_DATA | WRITE_EXTENDED_ATTRIBUTES | WRITE_ATTRIBUTES | DELETE_CHILD | MOVE;

/// The steps for a layout. What protects comes first, so that whoever stops in the middle has opened
/// nothing that should be closed.
pub fn plan(layout: &Layout) -> Vec<Step> {
    let roots = layout.writable_roots();
    // What lies in two roots is named by both.
    let protected: BTreeSet<&PathBuf> =
        roots.iter().flat_map(|root| &root.read_only_subpaths).collect();
    let root_paths = || roots.iter().map(|root| &root.path);
    let mut plan = Vec::new();
    plan.extend(layout.absent.iter().map(Step::to(Action::Reserve)));
    plan.extend(protected.into_iter().map(Step::to(Action::Protect)));
    plan.extend(layout.pinned.iter().chain(root_paths()).map(Step::to(Action::Pin)));
    plan.extend(root_paths().map(Step::to(Action::Allow)));
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sandgate_protocol::WritableRoot;
    use std::path::Path;

    /// Whether Windows lets the session do something to a path: its own entries come before those
    /// that it inherits, those from near before those from far, and among equals what denies first.
    fn allows(plan: &[Step], path: &Path, right: u32) -> bool {
        for level in path.ancestors() {
            let here = |step: &&Step| step.path == level;
            let entries = plan.iter().filter(here).filter_map(|step| step.action.entry());
            let reaches = |entry: &Entry| entry.reach == Reach::AllBeneath || level == path;
            let about: Vec<Entry> =
                entries.filter(|entry| reaches(entry) && entry.rights & right != 0).collect();
            if !about.is_empty() {
                return about.iter().all(|entry| entry.kind == Kind::Allow);
            }
        }
        false
    }

    fn layout(roots: &BTreeSet<PathBuf>, protected: &BTreeSet<PathBuf>) -> Layout {
        let beneath = |root: &PathBuf| {
            let inside = protected.iter().filter(|path| path.starts_with(root));
            inside.filter(|path| !roots.contains(*path)).cloned().collect()
        };
        let root =
            |path: &PathBuf| WritableRoot { path: path.clone(), read_only_subpaths: beneath(path) };
        Layout::made_of(roots.iter().map(root).collect(), vec![], vec![])
    }

    /// spec PLATFORMS.40: On Windows the access lists of a session protect what is protected before
    /// they open the roots, keep absent names taken, and keep roots and repositories in their places.
    #[test]
    fn a_plan_protects_before_it_opens() {
        let roots = BTreeSet::from(["C:/ws".into(), "C:/tmp".into()]);
        let protected = BTreeSet::from(["C:/ws/.git".into(), "C:/ws/.codex".into()]);
        let mut layout = layout(&roots, &protected);
        layout.absent = vec!["C:/ws/.codex".into()];
        layout.pinned = vec!["C:/ws/nested".into()];
        let shown = |step: &Step| {
            let entry = step
                .action
                .entry()
                .map(|e| format!("{:?} {:#08x} {:?}", e.kind, e.rights, e.reach));
            format!(
                "{:<8}{:<14}{}\n",
                step.action.word(),
                step.path.display(),
                entry.unwrap_or_default()
            )
        };
        let plan = plan(&layout);
        insta::assert_snapshot!("plan", plan.iter().map(shown).collect::<String>());
        assert!(!allows(&plan, Path::new("C:/ws/nested"), DELETE));
        assert!(!allows(&plan, Path::new("C:/ws"), DELETE));
        assert!(allows(&plan, Path::new("C:/ws/nested/file"), DELETE));
    }

    /// spec PLATFORMS.41: In no directory does a session get the right to remove whatever lies in it,
    /// nor to change an access list or an owner.
    #[test]
    fn nothing_that_is_allowed_opens_more() {
        assert_eq!(MODIFY & (DELETE_CHILD | WRITE_LIST | WRITE_OWNER), 0);
        assert_eq!(MODIFY, 0x13_01bf);
        assert_eq!(CHANGE, 0xd_0156);
    }

    fn any_path() -> impl Strategy<Value = PathBuf> {
        let part = prop::sample::select(vec!["w", "a", ".git"]);
        prop::collection::vec(part, 1..5)
            .prop_map(|parts| Path::new("/").join(PathBuf::from_iter(parts)))
    }

    proptest! {
        /// spec PLATFORMS.42: By its access lists a session can write to exactly those paths that are
        /// writable in one of its roots.
        #[test]
        fn a_plan_means_what_its_layout_says(
            roots in prop::collection::btree_set(any_path(), 0..3),
            protected in prop::collection::btree_set(any_path(), 0..4),
            paths in prop::collection::vec(any_path(), 20),
        ) {
            let layout = layout(&roots, &protected);
            let plan = plan(&layout);
            for path in paths {
                let writable = layout.roots.iter().any(|root| root.is_path_writable(&path));
                for right in [WRITE_DATA, APPEND_DATA, WRITE_ATTRIBUTES] {
                    prop_assert_eq!(allows(&plan, &path, right), writable, "{}", path.display());
                }
            }
        }
    }
}
