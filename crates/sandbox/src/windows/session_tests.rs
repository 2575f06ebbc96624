//! Sessions, with access lists that exist in memory only.

use super::*;
use sandgate_protocol::WritableRoot;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Every entry that is in force, and how many more may be made before the system refuses.
#[derive(Debug, Clone)]
struct Disk {
    entries: Rc<RefCell<Vec<(String, PathBuf, SessionSid)>>>,
    refuse_after: Rc<Cell<usize>>,
}

impl Disk {
    fn new() -> Self {
        Self { entries: Rc::default(), refuse_after: Rc::new(Cell::new(usize::MAX)) }
    }

    fn shown(&self) -> Vec<String> {
        let entries = self.entries.borrow();
        entries.iter().map(|(word, path, _)| format!("{word} {}", path.display())).collect()
    }
}

impl AccessLists for Disk {
    fn apply(&self, step: &Step, sid: SessionSid) -> io::Result<()> {
        let left = self.refuse_after.get().checked_sub(1).ok_or(io::ErrorKind::PermissionDenied)?;
        self.refuse_after.set(left);
        let entry = (step.action.word().to_owned(), step.path.clone(), sid);
        let mut entries = self.entries.borrow_mut();
        if !entries.contains(&entry) {
            entries.push(entry);
        }
        Ok(())
    }

    fn undo(&self, step: &Step, sid: SessionSid) -> io::Result<()> {
        let reserve = step.action == Action::Reserve;
        // A directory belongs to no session in particular.
        self.entries.borrow_mut().retain(|(word, path, of)| {
            *path != step.path || (word == "reserve") != reserve || (!reserve && *of != sid)
        });
        Ok(())
    }
}

fn layout(absent: bool) -> Layout {
    let read_only_subpaths = vec!["/ws/.git".into()];
    let roots = vec![WritableRoot { path: "/ws".into(), read_only_subpaths }];
    let absent = if absent { vec!["/ws/.git".into()] } else { vec![] };
    Layout::made_of(roots, vec![], absent)
}

fn files(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).filter(|name| name != "lock").collect()
}

/// spec PLATFORMS.43: What a session changed in access lists is taken back when it ends, and no
/// record of it is left.
#[test]
fn a_session_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::new();
    let session = Session::begin(directory.path(), &layout(true), disk.clone()).unwrap();
    let during = ["reserve /ws/.git", "protect /ws/.git", "pin /ws", "allow /ws"];
    assert_eq!(disk.shown(), during);
    drop(session);
    assert_eq!(disk.shown(), Vec::<String>::new());
    assert_eq!(files(directory.path()), Vec::<String>::new());
}

/// spec PLATFORMS.44: What a session left that crashed is taken back by the next one, and what a
/// living one has changed stays.
#[test]
fn a_crash_is_cleaned_up_by_the_next_session() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::new();
    let living = Session::begin(directory.path(), &layout(false), disk.clone()).unwrap();
    let mut crashed = Session::begin(directory.path(), &layout(false), disk.clone()).unwrap();
    let of = |sid| disk.entries.borrow().iter().filter(|(_, _, of)| *of == sid).count();
    let gone = crashed.sid();
    // The system closes the files of a process that dies; nothing else of it runs.
    drop(std::mem::replace(&mut crashed._alive, tempfile::tempfile().unwrap()));
    std::mem::forget(crashed);
    assert_eq!((of(living.sid()), of(gone)), (3, 3));
    let next = Session::begin(directory.path(), &layout(false), disk.clone()).unwrap();
    assert_eq!((of(living.sid()), of(gone), of(next.sid())), (3, 0, 3));
}

/// spec PLATFORMS.45: A name that is kept taken for several sessions is given back by the one that
/// ends last.
#[test]
fn a_reserved_name_goes_with_the_last_session() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::new();
    let first = Session::begin(directory.path(), &layout(true), disk.clone()).unwrap();
    // To the second session the name is there.
    let second = Session::begin(directory.path(), &layout(false), disk.clone()).unwrap();
    drop(first);
    assert!(disk.shown().contains(&"reserve /ws/.git".to_owned()));
    drop(second);
    assert_eq!(disk.shown(), Vec::<String>::new());
}

/// spec PLATFORMS.46: When an access list cannot be changed the session does not begin, and what was
/// changed before it is taken back.
#[test]
fn a_refusal_leaves_nothing() {
    for refuse_after in 0..4 {
        let directory = tempfile::tempdir().unwrap();
        let disk = Disk::new();
        disk.refuse_after.set(refuse_after);
        let error = Session::begin(directory.path(), &layout(true), disk.clone()).unwrap_err();
        assert!(matches!(error, WindowsError::Access { .. }), "{error}");
        assert_eq!(disk.shown(), Vec::<String>::new());
        assert_eq!(files(directory.path()), Vec::<String>::new());
    }
}

/// spec PLATFORMS.47: The records of sessions are refused a place that confined commands can write
/// to, and so are paths that cannot be written down.
#[test]
fn records_are_kept_where_no_command_can_write() {
    let disk = Disk::new();
    let inside = Session::begin(Path::new("/ws/state"), &layout(false), disk.clone()).unwrap_err();
    assert!(matches!(inside, WindowsError::StateIsWritable(_)), "{inside}");
    let directory = tempfile::tempdir().unwrap();
    let root = WritableRoot { path: "/a\nallow /".into(), read_only_subpaths: vec![] };
    let layout = Layout::made_of(vec![root], vec![], vec![]);
    let error = Session::begin(directory.path(), &layout, disk.clone()).unwrap_err();
    assert!(matches!(error, WindowsError::Path(_)), "{error}");
    assert_eq!(files(directory.path()), Vec::<String>::new());
    assert_eq!(disk.shown(), Vec::<String>::new());
}

#[test]
fn a_line_that_was_cut_short_is_no_step() {
    assert_eq!(step("allow /ws\n").unwrap().action, Action::Allow);
    for broken in ["allow /w", "allow\n", "grant /ws\n", "\n"] {
        assert_eq!(step(broken), None, "{broken:?}");
    }
}
