//! The sessions of the daemon: one for each set of terms.

use super::wire::SessionTerms;
use super::{DaemonError, Place};
use crate::own_socket::{Lines, Writer};
use crate::rules::{self, ProjectRules};
use crate::tools::process_infos;
use crate::unified_exec::{LiveEntry, ProcessNames};
use crate::{
    Asker, Attendance, Desk, DeskSocket, Keeping, Runtime, Session, SessionConfig, TurnDiffs,
};
use sandgate_protocol::{CodexErr, ProcessInfo, SandboxPolicy};
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How many sessions there may be.
const MAX_SESSIONS: usize = 32;

/// How long the end of all processes is waited for.
const GONE: Duration = Duration::from_secs(5);

/// The sessions of the daemon.
pub(super) struct Pool {
    runtime: Arc<Runtime>,
    place: Place,
    /// No two processes have the same id, in whichever session they are.
    names: Arc<ProcessNames>,
    sessions: RefCell<Vec<Served>>,
    /// How many connections there are.
    pub(super) connections: Cell<usize>,
    pub(super) farewell: RefCell<Farewell>,
    /// Where the questions of all sessions lie, beside the terminal of whoever made the call.
    desk: Arc<Desk>,
    /// None where the settings have no room for it; then only that terminal is asked.
    _socket: Option<DeskSocket>,
}

/// The connections of those who wait for the daemon's end. They hear of it when this is dropped.
#[derive(Debug, Default)]
pub struct Farewell(pub(super) Vec<(Lines, Writer)>);

struct Served {
    terms: SessionTerms,
    session: Rc<Session>,
    attendance: RefCell<Option<Attendance>>,
}

impl Pool {
    pub(super) fn new(runtime: Arc<Runtime>, place: Place) -> Self {
        let desk = Arc::new(Desk::default());
        Self {
            _socket: desk.listen(place.settings()).ok(),
            desk,
            runtime,
            place,
            names: Arc::new(ProcessNames::beginning_with("d", 1)),
            sessions: RefCell::default(),
            connections: Cell::new(0),
            farewell: RefCell::default(),
        }
    }

    /// The session on these terms, and what a person should know about it.
    pub(super) fn open(
        &self,
        mut terms: SessionTerms,
    ) -> Result<(Rc<Session>, Vec<String>), DaemonError> {
        let refused = |error: &dyn std::fmt::Display| DaemonError::Refused(error.to_string());
        let workspace = crate::resolve::directory(&terms.workspace);
        terms.workspace = workspace.map_err(|error| refused(&error))?;
        self.check_roots(&terms)?;
        let loaded = rules::load(self.place.settings(), ProjectRules::None);
        let broken = loaded.broken.iter().map(ToString::to_string).collect();
        let mut sessions = self.sessions.borrow_mut();
        if let Some(served) = sessions.iter().find(|served| served.terms == terms) {
            served.session.services().replace_rules(loaded.rules);
            return Ok((Rc::clone(&served.session), broken));
        }
        if sessions.len() >= MAX_SESSIONS {
            let idle = sessions.iter().position(Served::is_idle);
            let idle = idle.ok_or_else(|| {
                refused(&format!(
                    "there are {MAX_SESSIONS} sessions with processes, which is the most"
                ))
            })?;
            sessions.remove(idle);
        }
        let mut config = SessionConfig::new(terms.workspace.clone());
        config.approval_policy = terms.approval_policy;
        config.sandbox_policy = terms.sandbox_policy.clone();
        config.own_env = (&terms.env).into();
        config.config_home = Some(self.place.settings().to_owned());
        config.audit = Some(crate::audit::AuditOptions::default());
        config.rules = loaded.rules;
        config.front_end = "session".to_owned();
        config.turn_diffs = TurnDiffs::Off;
        config.keeping = Keeping::Here;
        config.process_names = Arc::clone(&self.names);
        let session = Session::start(Arc::clone(&self.runtime), config);
        let session = Rc::new(session.map_err(|error| refused(&error))?);
        let attendance = RefCell::default();
        sessions.push(Served { terms, session: Rc::clone(&session), attendance });
        Ok((session, broken))
    }

    /// Has the questions of a session lie on the desk too.
    pub(super) async fn attend(&self, session: &Rc<Session>) {
        let is_it = |served: &&Served| {
            Rc::ptr_eq(&served.session, session) && served.attendance.borrow().is_none()
        };
        if !self.sessions.borrow().iter().any(|served| is_it(&served)) {
            return;
        }
        let asker = Asker {
            front_end: "session".to_owned(),
            workspace: session.requester().workspace().to_string_lossy().into_owned(),
            conversation: None,
        };
        let attendance = self.desk.attend(session, asker).await;
        // Another connection may have done the same meanwhile; then this one is dropped.
        if let Some(served) = self.sessions.borrow().iter().find(is_it) {
            served.attendance.replace(Some(attendance));
        }
    }

    /// A cage whose root lies in our own settings, or is them, could reach the socket.
    fn check_roots(&self, terms: &SessionTerms) -> Result<(), DaemonError> {
        let SandboxPolicy::WorkspaceWrite { writable_roots, .. } = &terms.sandbox_policy else {
            return Ok(());
        };
        let (Ok(settings), Ok(directory)) =
            (self.place.settings().canonicalize(), self.place.directory().canonicalize())
        else {
            return Err(DaemonError::Gone);
        };
        let reaches = |root: &Path| {
            let root = terms.workspace.join(root).canonicalize();
            root.is_ok_and(|root| {
                root.starts_with(&directory)
                    || (root.starts_with(&settings) && directory.starts_with(&root))
            })
        };
        let named = writable_roots.iter().map(std::path::PathBuf::as_path);
        match std::iter::once(terms.workspace.as_path()).chain(named).find(|root| reaches(root)) {
            None => Ok(()),
            Some(root) => Err(DaemonError::Refused(format!(
                "{} cannot be writable here: the daemon's own socket lies in it",
                root.display()
            ))),
        }
    }

    /// The session that a process was started in, and the process.
    pub(super) fn find(&self, id: &str) -> Result<(Rc<Session>, Arc<LiveEntry>), DaemonError> {
        let sessions = self.sessions.borrow();
        let found = sessions.iter().find_map(|served| {
            let entry = served.session.services().live.find(id)?;
            Some((Rc::clone(&served.session), entry))
        });
        found.ok_or_else(|| {
            let id: String = id.chars().take(40).collect();
            DaemonError::Refused(format!("there is no process {id:?}"))
        })
    }

    /// Lets a process of this id go that has ended, wherever it is, because the id is wanted again.
    pub(super) fn forget_ended(&self, id: &str) {
        for served in self.sessions.borrow().iter() {
            served.session.services().live.forget_ended(id);
        }
    }

    /// All processes.
    pub(super) async fn list(&self) -> Result<Vec<ProcessInfo>, CodexErr> {
        let mut all = self.entries();
        all.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.process.age()));
        process_infos(all).await
    }

    /// Whether a process lives, or somebody is connected.
    pub(super) fn is_busy(&self) -> bool {
        let lives = |(_, entry): &(String, Arc<LiveEntry>)| entry.process.end().is_none();
        self.connections.get() > 0 || self.entries().iter().any(lives)
    }

    /// Ends all processes, and waits for it.
    pub(super) async fn end_all(&self) {
        let all = self.entries();
        all.iter().for_each(|(_, entry)| entry.process.terminate());
        let ended = async {
            for (_, entry) in &all {
                entry.process.ended().await;
            }
        };
        // What the system does not let go of ends when it does.
        let _ = tokio::time::timeout(GONE, ended).await;
    }

    fn entries(&self) -> Vec<(String, Arc<LiveEntry>)> {
        let sessions = self.sessions.borrow();
        sessions.iter().flat_map(|served| served.session.services().live.all()).collect()
    }
}

impl Served {
    /// Whether nobody uses it, and no process of it lives.
    fn is_idle(&self) -> bool {
        let all = self.session.services().live.all();
        Rc::strong_count(&self.session) == 1
            && all.iter().all(|(_, entry)| entry.process.end().is_some())
    }
}
