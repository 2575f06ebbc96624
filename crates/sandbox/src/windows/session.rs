//! A session's changes to access lists: made once, written down first, undone at the end or, after a
//! crash, by the next session that starts.
//!
//! For every session there are two files in one directory. `SID.steps` says what was changed; it is
//! there before the first change is made and goes after the last was undone. `SID.alive` is locked
//! for as long as the session lives. Whoever starts or ends takes the lock of the whole directory
//! first.

use super::{Action, SessionSid, Step, WindowsError, plan};
use crate::Layout;
use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// What can change access lists. Doing something twice, or undoing what was not done, is no error.
pub trait AccessLists {
    /// Carries a step out for a session.
    ///
    /// # Errors
    /// When the system refuses.
    fn apply(&self, step: &Step, sid: SessionSid) -> io::Result<()>;

    /// Takes it back.
    ///
    /// # Errors
    /// When the system refuses; not when there is nothing to take back.
    fn undo(&self, step: &Step, sid: SessionSid) -> io::Result<()>;
}

/// A session whose commands can write to its roots. Dropping it takes everything back.
#[derive(Debug)]
pub struct Session<L: AccessLists> {
    records: Records,
    sid: SessionSid,
    lists: L,
    _alive: File,
}

impl<L: AccessLists> Session<L> {
    /// Takes back what earlier sessions left, then opens the roots of a layout. The records are kept
    /// in `directory`, which no confined command may write to.
    ///
    /// # Errors
    /// When the lists cannot be changed or the records not written; nothing stays changed then.
    pub fn begin(directory: &Path, layout: &Layout, lists: L) -> Result<Self, WindowsError> {
        refuse_writable(directory, layout)?;
        let failed = |source| WindowsError::State { path: directory.to_owned(), source };
        std::fs::create_dir_all(directory).map_err(failed)?;
        let records = Records { directory: directory.canonicalize().map_err(failed)? };
        refuse_writable(&records.directory, layout)?;
        let _turn = records.turn().map_err(failed)?;
        records.recover(&lists).map_err(failed)?;
        let sid = SessionSid::new();
        let steps = plan(layout);
        let text = text(&steps)?;
        let alive = File::create(records.alive(sid)).map_err(failed)?;
        alive.lock().map_err(failed)?;
        records.write(sid, &text).map_err(failed)?;
        for step in &steps {
            if let Err(source) = lists.apply(step, sid) {
                // What cannot be taken back now is taken back by the next session.
                let _ = records.undo(sid, &lists);
                return Err(WindowsError::Access { path: step.path.clone(), source });
            }
        }
        Ok(Self { records, sid, lists, _alive: alive })
    }

    /// The identity that its access lists know.
    pub fn sid(&self) -> SessionSid {
        self.sid
    }
}

impl<L: AccessLists> Drop for Session<L> {
    fn drop(&mut self) {
        // What fails here stays written down, and the next session tries again.
        if let Ok(_turn) = self.records.turn() {
            let _ = self.records.undo(self.sid, &self.lists);
        }
    }
}

/// Commands that could write to the records could make us undo what they like.
fn refuse_writable(directory: &Path, layout: &Layout) -> Result<(), WindowsError> {
    if layout.writable_roots().iter().any(|root| root.is_path_writable(directory)) {
        return Err(WindowsError::StateIsWritable(directory.to_owned()));
    }
    Ok(())
}

/// The directory of records.
#[derive(Debug)]
struct Records {
    directory: PathBuf,
}

impl Records {
    /// Waits until nobody else starts or ends a session.
    fn turn(&self) -> io::Result<File> {
        let lock = File::create(self.directory.join("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    fn steps(&self, sid: SessionSid) -> PathBuf {
        self.directory.join(format!("{sid}.steps"))
    }

    fn alive(&self, sid: SessionSid) -> PathBuf {
        self.directory.join(format!("{sid}.alive"))
    }

    fn write(&self, sid: SessionSid, text: &str) -> io::Result<()> {
        let mut file = File::create(self.steps(sid))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }

    fn read(&self, sid: SessionSid) -> io::Result<Vec<Step>> {
        let text = std::fs::read_to_string(self.steps(sid))?;
        // A last line that a crash cut short was never carried out.
        Ok(text.split_inclusive('\n').filter_map(step).collect())
    }

    /// The sessions that have records.
    fn sessions(&self) -> io::Result<Vec<SessionSid>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let name = entry?.file_name();
            let sid = name.to_str().and_then(|name| name.strip_suffix(".steps"));
            found.extend(sid.and_then(|sid| sid.parse::<SessionSid>().ok()));
        }
        Ok(found)
    }

    /// Takes back what sessions left that are no more.
    fn recover(&self, lists: &impl AccessLists) -> io::Result<()> {
        for sid in self.sessions()? {
            let alive =
                File::options().write(true).create(true).truncate(false).open(self.alive(sid))?;
            match alive.try_lock() {
                // One that cannot be taken back, on a disk that is not there, is tried again later
                // and keeps nobody from starting.
                Ok(()) => drop(self.undo(sid, lists)),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(e)) => return Err(e),
            }
        }
        Ok(())
    }

    /// Takes back what a session did, the last first, and then forgets the session.
    fn undo(&self, sid: SessionSid, lists: &impl AccessLists) -> io::Result<()> {
        for step in self.read(sid)?.iter().rev() {
            if step.action == Action::Reserve && self.hand_over(sid, step)? {
                continue;
            }
            lists.undo(step, sid)?;
        }
        std::fs::remove_file(self.steps(sid))?;
        let _ = std::fs::remove_file(self.alive(sid));
        Ok(())
    }

    /// A directory that keeps a name taken goes with the last session that needs it.
    fn hand_over(&self, from: SessionSid, reserved: &Step) -> io::Result<bool> {
        for other in self.sessions()?.into_iter().filter(|other| *other != from) {
            let steps = self.read(other)?;
            if steps.iter().any(|step| step.path == reserved.path) {
                if !steps.contains(reserved) {
                    let mut file = File::options().append(true).open(self.steps(other))?;
                    file.write_all(line(reserved).unwrap_or_default().as_bytes())?;
                    file.sync_all()?;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Steps as they are written down.
fn text(steps: &[Step]) -> Result<String, WindowsError> {
    steps
        .iter()
        .map(|step| line(step).ok_or_else(|| WindowsError::Path(step.path.clone())))
        .collect()
}

/// A step as a line; nothing for a path that would be more than one, or that is no text.
fn line(step: &Step) -> Option<String> {
    let path = step.path.to_str().filter(|path| !path.contains(['\n', '\r']))?;
    Some(format!("{} {path}\n", step.action.word()))
}

fn step(line: &str) -> Option<Step> {
    let (word, path) = line.strip_suffix('\n')?.split_once(' ')?;
    Some(Step { path: path.into(), action: Action::from_word(word)? })
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
