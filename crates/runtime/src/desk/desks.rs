//! The desks of all programs of one user, for whoever answers.

use super::socket::{DIRECTORY, place};
use super::wire::{LONGEST_REPLY, PROTOCOL, Reply, Request};
use super::{OpenQuestion, Outcome};
use crate::own_socket::{Line, Lines, OwnSocketError, Writer, split};
use futures_util::future::join_all;
use sandgate_protocol::ReviewDecision;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

/// How long a program may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often is looked for new programs.
const LOOK: Duration = Duration::from_secs(1);

/// How many programs are looked at.
const MOST_DESKS: usize = 256;

/// Why a question could not be seen or answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeskError {
    /// The sockets cannot be used.
    #[error(transparent)]
    Place(#[from] OwnSocketError),
    /// There is no such question.
    #[error("there is no open question {id:?}; sandgate approvals list has those that there are")]
    NoSuchQuestion {
        /// What was named.
        id: String,
    },
    /// Several programs could be meant.
    #[error("{count} programs have a name that begins like that of {id:?}; write more of it")]
    Ambiguous {
        /// What was named.
        id: String,
        /// How many there are.
        count: usize,
    },
    /// The program speaks another language.
    #[error(
        "the sandgate that runs as process {pid} is of version {version}, which is not understood here"
    )]
    OtherVersion {
        /// Its process id.
        pid: u32,
        /// Its version.
        version: String,
    },
    /// It said no.
    #[error("{0}")]
    Refused(String),
    /// It has ended.
    #[error("the program has ended")]
    Gone,
    /// The connection failed.
    #[error("the connection to the program failed: {0}")]
    Connection(#[from] io::Error),
}

/// The desks of all programs of a user.
#[derive(Debug, Clone)]
pub struct Desks {
    settings: PathBuf,
    /// The name of one that is not looked at.
    without: Option<String>,
}

/// A question of one of the programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingQuestion {
    /// The process id of the program.
    pub pid: u32,
    /// The question.
    #[serde(flatten)]
    pub question: OpenQuestion,
}

/// What is open.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// The questions, the oldest first.
    pub questions: Vec<PendingQuestion>,
    /// How many more there are that could not be shown with them.
    pub left_out: u64,
    /// Programs that could not be asked, and why, as sentences.
    pub notes: Vec<String>,
}

/// A console that a program serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Console {
    /// The process id of the program.
    pub pid: u32,
    /// Its address, with the token of whoever may answer.
    pub address: String,
}

impl Desks {
    /// Those in these settings.
    pub fn in_settings(settings: &Path) -> Self {
        Self { settings: settings.to_owned(), without: None }
    }

    /// The same without the desk of this name, for a program that knows its own.
    #[must_use]
    pub fn without(self, name: &str) -> Self {
        Self { without: Some(name.to_owned()), ..self }
    }

    /// What is open, in all programs.
    ///
    /// # Errors
    /// When the sockets cannot be used.
    pub async fn list(&self) -> Result<Listed, DeskError> {
        let (answers, notes) = self.ask_all(&Request::List {}).await?;
        let mut listed = Listed { notes, ..Listed::default() };
        for (client, reply) in answers {
            if let Reply::Questions { questions, left_out } = reply {
                listed.questions.extend(client.pending(questions));
                listed.left_out += left_out;
            }
        }
        sort(&mut listed.questions);
        Ok(listed)
    }

    /// The whole id of a question that somebody typed. What stands before the `-` may be shortened, as
    /// long as it is that of one program. The number never is: a question that has just lapsed would
    /// become another one.
    ///
    /// # Errors
    /// When there is no such program, or there are several.
    pub async fn whole_id(&self, typed: &str) -> Result<String, DeskError> {
        let none = || DeskError::NoSuchQuestion { id: short(typed) };
        let (beginning, number) = named(typed).ok_or_else(none)?;
        // Those that have ended are gone after this.
        self.ask_all(&Request::List {}).await?;
        let names = self.names()?;
        let begins: Vec<_> = names.iter().filter(|name| name.starts_with(beginning)).collect();
        match begins.as_slice() {
            [] => Err(none()),
            [name] => Ok(format!("{name}-{number}")),
            several => Err(DeskError::Ambiguous { id: short(typed), count: several.len() }),
        }
    }

    /// Answers the question of this id.
    ///
    /// # Errors
    /// When there is no such question, or the answer does not count.
    pub async fn answer(&self, id: &str, decision: ReviewDecision) -> Result<(), DeskError> {
        match self.ask_about(id, &Request::Answer { id: id.to_owned(), decision }).await? {
            Reply::Answered {} => Ok(()),
            _ => Err(DeskError::Gone),
        }
    }

    /// The whole of a question, of which a list may have less. None if it is not open.
    ///
    /// # Errors
    /// When its program cannot be asked.
    pub async fn question(&self, id: &str) -> Result<Option<OpenQuestion>, DeskError> {
        match self.ask_about(id, &Request::Question { id: id.to_owned() }).await? {
            Reply::Question { question } => Ok(question.map(|question| *question)),
            _ => Err(DeskError::Gone),
        }
    }

    /// What became of a question that is not open any more. None if that is not known.
    ///
    /// # Errors
    /// When its program cannot be asked.
    pub async fn outcome(&self, id: &str) -> Result<Option<Outcome>, DeskError> {
        match self.ask_about(id, &Request::Outcome { id: id.to_owned() }).await? {
            Reply::Outcome { outcome } => Ok(outcome),
            _ => Err(DeskError::Gone),
        }
    }

    /// Asks the program whose question this is.
    async fn ask_about(&self, id: &str, request: &Request) -> Result<Reply, DeskError> {
        let none = || DeskError::NoSuchQuestion { id: short(id) };
        let (name, _) = named(id).ok_or_else(none)?;
        let mut client = self.connect(name).await?.ok_or_else(none)?;
        client.ask(request).await
    }

    /// The consoles that are served.
    ///
    /// # Errors
    /// When the sockets cannot be used.
    pub async fn consoles(&self) -> Result<Vec<Console>, DeskError> {
        let (answers, _) = self.ask_all(&Request::Link {}).await?;
        let console = |(client, reply): (Client, Reply)| match reply {
            Reply::Link { address: Some(address) } => Some(Console { pid: client.pid, address }),
            _ => None,
        };
        Ok(answers.into_iter().filter_map(console).collect())
    }

    /// Watches what is open, in those programs that run and in those that will.
    pub fn watch(&self) -> DeskWatch {
        let (updates, heard) = mpsc::channel(16);
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        DeskWatch {
            desks: self.clone(),
            known: BTreeMap::new(),
            not_heard: None,
            changed: true,
            updates,
            heard,
            tasks: JoinSet::new(),
            look,
        }
    }

    /// Asks all programs the same. Those that do not answer are told of.
    async fn ask_all(
        &self,
        request: &Request,
    ) -> Result<(Vec<(Client, Reply)>, Vec<String>), DeskError> {
        let names = self.names()?;
        let asked = names.iter().map(async |name| {
            let Some(mut client) = self.connect(name).await? else { return Ok(None) };
            let reply = client.ask(request).await?;
            Ok::<_, DeskError>(Some((client, reply)))
        });
        let (mut answers, mut notes) = (Vec::new(), Vec::new());
        for answered in join_all(asked).await {
            match answered {
                Ok(answered) => answers.extend(answered),
                Err(DeskError::Gone) => {}
                Err(DeskError::Place(error @ OwnSocketError::Stranger { .. })) => {
                    return Err(error.into());
                }
                Err(error) => notes.push(error.to_string()),
            }
        }
        Ok((answers, notes))
    }

    /// Removes what programs left that were killed.
    pub(super) fn remove_left(&self) {
        for name in self.names().unwrap_or_default() {
            place(&self.settings, &name).remove_if_left();
        }
    }

    /// The names of the desks that there are, or were.
    fn names(&self) -> Result<Vec<String>, DeskError> {
        let directory = self.settings.join(DIRECTORY);
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => {
                return Err(OwnSocketError::Directory { path: directory, error }.into());
            }
        };
        let name = |entry: std::fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let name = name.strip_suffix(".lock")?;
            let is_wanted = self.without.as_deref() != Some(name);
            (is_name(name) && is_wanted).then(|| name.to_owned())
        };
        Ok(entries.flatten().filter_map(name).take(MOST_DESKS).collect())
    }

    /// Connects to a desk. None if its program has ended; what it left behind is removed.
    async fn connect(&self, name: &str) -> Result<Option<Client>, DeskError> {
        let place = place(&self.settings, name);
        let Some(stream) = place.connect().await? else {
            place.remove_if_left();
            return Ok(None);
        };
        let (lines, writer) = split(stream, LONGEST_REPLY);
        let mut client = Client { lines, writer, pid: 0 };
        match client.hear_soon().await? {
            Reply::Hello { protocol: PROTOCOL, pid, .. } => Ok(Some(Client { pid, ..client })),
            Reply::Hello { pid, version, .. } => Err(DeskError::OtherVersion { pid, version }),
            _ => Err(DeskError::Gone),
        }
    }
}

/// A connection to a desk.
struct Client {
    lines: Lines,
    writer: Writer,
    pid: u32,
}

impl Client {
    async fn ask(&mut self, request: &Request) -> Result<Reply, DeskError> {
        self.writer.write(request).await?;
        match self.hear_soon().await? {
            Reply::Error { message } => Err(DeskError::Refused(message)),
            reply => Ok(reply),
        }
    }

    async fn hear_soon(&mut self) -> Result<Reply, DeskError> {
        timeout(PATIENCE, self.hear()).await.unwrap_or_else(|_| {
            let silent = "a program does not answer on its desk";
            Err(DeskError::Refused(silent.to_owned()))
        })
    }

    async fn hear(&mut self) -> Result<Reply, DeskError> {
        match self.lines.next().await {
            Ok(Some(Line::Read(reply))) => Ok(reply),
            Ok(Some(Line::Wrong(reason))) => Err(DeskError::Connection(io::Error::other(reason))),
            Ok(None) => Err(DeskError::Gone),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Err(DeskError::Gone),
            Err(error) => Err(DeskError::Connection(error)),
        }
    }

    fn pending(
        &self,
        questions: Vec<OpenQuestion>,
    ) -> impl Iterator<Item = PendingQuestion> + use<> {
        let pid = self.pid;
        questions.into_iter().map(move |question| PendingQuestion { pid, question })
    }
}

/// What is open, as it changes.
#[derive(Debug)]
pub struct DeskWatch {
    desks: Desks,
    /// The programs, and what is open there.
    known: BTreeMap<String, Vec<PendingQuestion>>,
    /// Those of the first look that have not said anything; none before that look.
    not_heard: Option<BTreeSet<String>>,
    changed: bool,
    updates: mpsc::Sender<Update>,
    heard: mpsc::Receiver<Update>,
    tasks: JoinSet<()>,
    look: Interval,
}

/// What one program says.
#[derive(Debug)]
struct Update {
    name: String,
    /// What is open there; none if it has ended.
    open: Option<Vec<PendingQuestion>>,
}

impl DeskWatch {
    /// All that is open, the oldest first: the first time at once, and then whenever it has changed. Can
    /// be dropped and called again.
    ///
    /// # Errors
    /// When the sockets cannot be used.
    pub async fn next(&mut self) -> Result<Vec<PendingQuestion>, DeskError> {
        loop {
            if self.changed && self.not_heard.as_ref().is_some_and(BTreeSet::is_empty) {
                self.changed = false;
                let mut open: Vec<_> = self.known.values().flatten().cloned().collect();
                sort(&mut open);
                return Ok(open);
            }
            tokio::select! {
                Some(update) = self.heard.recv() => self.take(update),
                _ = self.look.tick() => self.look_for_more()?,
            }
        }
    }

    fn take(&mut self, update: Update) {
        let before = match update.open {
            Some(open) => {
                let same = self.known.get(&update.name) == Some(&open);
                self.known.insert(update.name.clone(), open);
                same
            }
            None => self.known.remove(&update.name).is_none_or(|open| open.is_empty()),
        };
        self.changed |= !before;
        if let Some(not_heard) = &mut self.not_heard {
            not_heard.remove(&update.name);
        }
    }

    fn look_for_more(&mut self) -> Result<(), DeskError> {
        while self.tasks.try_join_next().is_some() {}
        let names = self.desks.names()?;
        let new: Vec<_> = names.into_iter().filter(|name| !self.known.contains_key(name)).collect();
        for name in &new {
            self.known.insert(name.clone(), Vec::new());
            let (desks, name, updates) = (self.desks.clone(), name.clone(), self.updates.clone());
            self.tasks.spawn(async move {
                // What ended it is of no matter: it is looked at again if it is still there.
                let _ = follow(&desks, &name, &updates).await;
                let _ = updates.send(Update { name, open: None }).await;
            });
        }
        self.not_heard.get_or_insert_with(|| new.into_iter().collect());
        Ok(())
    }
}

/// Tells what is open on one desk, until its program ends.
async fn follow(
    desks: &Desks,
    name: &str,
    updates: &mpsc::Sender<Update>,
) -> Result<(), DeskError> {
    let Some(mut client) = desks.connect(name).await? else { return Ok(()) };
    let mut reply = client.ask(&Request::Watch {}).await?;
    while let Reply::Questions { questions, .. } = reply {
        let open = Some(client.pending(questions).collect());
        if updates.send(Update { name: name.to_owned(), open }).await.is_err() {
            return Ok(());
        }
        reply = client.hear().await?;
    }
    Ok(())
}

fn sort(questions: &mut [PendingQuestion]) {
    let key = |one: &PendingQuestion| (one.question.asked, one.question.id.clone());
    questions.sort_by_key(key);
}

/// The desk, or the beginning of it, and the number that an id stands for.
fn named(id: &str) -> Option<(&str, u64)> {
    let (name, number) = id.split_once('-')?;
    let number = number.parse().ok().filter(|read: &u64| read.to_string() == number)?;
    is_name(name).then_some((name, number))
}

/// Whether a desk can be called like this. It becomes part of a path.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What somebody wrote, short enough to be repeated.
fn short(id: &str) -> String {
    id.chars().take(40).collect()
}
