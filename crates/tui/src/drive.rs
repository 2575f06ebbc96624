//! Does what the state asks for, and tells it what comes of that.

use crate::app::{App, Change, Effect, Info, Message};
use crate::cell::{Cell, NoticeKind};
use crate::look;
use crate::processes::Sent;
use sandgate_agent::{Conversation, McpServers, UserInput};
use sandgate_config::McpServer;
use sandgate_protocol::{CallId, SandboxPermissions};
use sandgate_runtime::{
    AnswerError, Approver, AskedCommand, CommandLine, Delivery, Events, Login, Requester, Session,
    Stop, new_call_id,
};
use serde_json::json;
use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// The name under which the person here answers.
pub(crate) const FRONT_END: &str = "tui";
/// How long the end of the work is waited for when the person leaves.
const LAST_PATIENCE: Duration = Duration::from_secs(3);

/// A session with a model in it, whose servers have not been started yet.
pub struct Opened {
    /// The session.
    pub session: Session,
    /// The model in it.
    pub conversation: Conversation,
    /// The servers whose tools the model gets.
    pub mcp_servers: Vec<McpServer>,
    /// What of the person's environment those may be given.
    pub own_env: BTreeMap<OsString, OsString>,
    /// What the person should know, as sentences.
    pub notes: Vec<String>,
    /// What is shown of it.
    pub info: Info,
}

/// What a review comes to: markdown, or why there is none.
pub type Reviewed = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// What is kept as long as questions can be answered elsewhere.
pub type Attending<'a> = Pin<Box<dyn Future<Output = Option<Box<dyn Any>>> + 'a>>;

/// What only whoever put the program together can do: it knows the settings and the command line.
pub trait Backstage {
    /// Whether a session could be opened with this changed, with the reason if not.
    ///
    /// # Errors
    /// When it could not.
    fn check(&self, change: &Change) -> Result<(), String>;

    /// Opens a session anew with something changed, and goes on with a conversation in it. The old one has
    /// ended. The terminal is as it was, so that it may say something there.
    ///
    /// # Errors
    /// When there is none, with a sentence.
    fn reopen(&mut self, change: &Change, conversation: Option<&str>) -> Result<Opened, String>;

    /// Has the questions of a session be answered elsewhere too, where that can be done.
    fn attend<'a>(&'a self, session: &'a Session, conversation: Option<&'a str>) -> Attending<'a>;

    /// Why a command is judged as it is, in lines.
    fn explain(&self, command: &[String], cwd: &Path, permissions: SandboxPermissions) -> String;

    /// Has a model look at what is not committed.
    fn review(&self, requester: Requester, stop: Stop) -> Reviewed;

    /// What was recorded of this session: a moment and a line for each call.
    ///
    /// # Errors
    /// When it cannot be read, with a sentence.
    fn audit(&self) -> Result<Vec<(String, String)>, String>;

    /// Says whether the directory is trusted, after changing that if an answer is given. With whether
    /// anything changed.
    ///
    /// # Errors
    /// When it cannot be written down, with a sentence.
    fn trust(&self, answer: Option<bool>) -> Result<(String, bool), String>;
}

/// What came of something that was started.
pub(crate) enum Outcome {
    Turn(Box<Conversation>, Option<String>),
    Message(Message),
}

/// Everything with a hand on the world.
pub(crate) struct Driver<'a> {
    backstage: &'a mut dyn Backstage,
    /// It lets questions be answered elsewhere too.
    attendance: Option<Box<dyn Any>>,
    session: Option<Session>,
    requester: Requester,
    approver: Approver,
    pub(crate) events: Events,
    /// It is away while the model works.
    conversation: Option<Box<Conversation>>,
    conversation_id: Option<String>,
    turn: Stop,
    commands: Stop,
    outcomes: mpsc::UnboundedSender<Outcome>,
    pub(crate) began: Instant,
    /// The session is to be another one.
    pub(crate) change: Option<Change>,
    pub(crate) quit: bool,
    pub(crate) redraw: bool,
}

impl<'a> Driver<'a> {
    pub(crate) async fn new(
        opened: Opened,
        backstage: &'a mut dyn Backstage,
        outcomes: mpsc::UnboundedSender<Outcome>,
    ) -> (Self, App) {
        let (session, conversation, info, notes) = begin(opened).await;
        let mut app = App::new(info);
        app.welcome();
        tell_notes(&mut app, notes);
        let events = session.1;
        let session = session.0;
        let conversation_id = conversation.is_recorded().then(|| conversation.id().to_owned());
        let attendance = backstage.attend(&session, conversation_id.as_deref()).await;
        let driver = Self {
            backstage,
            attendance,
            requester: session.requester(),
            approver: session.approver(FRONT_END),
            session: Some(session),
            events,
            conversation: Some(Box::new(conversation)),
            conversation_id,
            turn: Stop::default(),
            commands: Stop::default(),
            outcomes,
            began: Instant::now(),
            change: None,
            quit: false,
            redraw: false,
        };
        (driver, app)
    }

    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Lets the conversation go. Its name, if it is written down and something was said in it.
    pub(crate) fn end_conversation(&mut self) -> Option<String> {
        let id = self.conversation_id.take();
        // A turn that does not end has it still, and so something was said.
        let Some(conversation) = self.conversation.take() else { return id };
        let is_empty = conversation.items().is_empty();
        conversation.end();
        id.filter(|_| !is_empty)
    }

    /// Tells the state, and does what it asks for.
    pub(crate) fn tell(&mut self, app: &mut App, message: Message, at: Duration) {
        for effect in app.update(message, at) {
            self.perform(app, effect);
        }
    }

    /// What came of something.
    pub(crate) fn came(&mut self, app: &mut App, outcome: Outcome) {
        // What happened before it was over comes first.
        while let Some(event) = self.events.try_next() {
            self.tell(app, Message::Session(event), self.now());
        }
        let message = match outcome {
            Outcome::Message(message) => message,
            Outcome::Turn(conversation, failure) => {
                self.conversation = Some(conversation);
                Message::WorkOver { failure }
            }
        };
        self.tell(app, message, self.now());
    }

    pub(crate) fn perform(&mut self, app: &mut App, effect: Effect) {
        match effect {
            Effect::Say(text) => self.say(text),
            Effect::Run(command) => {
                let id = new_call_id();
                app.wanted.insert(id.clone(), command.clone());
                self.run(id, command);
            }
            Effect::Answer(id, decision) => match self.approver.answer(&id, decision) {
                Ok(()) => {}
                Err(error @ AnswerError::NotOffered { .. }) => {
                    app.tell(NoticeKind::Error, error.to_string());
                }
                Err(_) => app.questions.retain(|question| *question.id() != id),
            },
            Effect::Explain { id, command, cwd, permissions } => {
                let text = self.backstage.explain(&command, &cwd, permissions);
                self.tell(app, Message::Explained { id, text }, self.now());
            }
            Effect::Interrupt => {
                self.turn.cancel.cancel();
                self.commands.interrupt.cancel();
                self.commands = Stop::default();
            }
            Effect::ListFiles => {
                let (root, outcomes) =
                    (self.requester.workspace().to_owned(), self.outcomes.clone());
                tokio::task::spawn_blocking(move || {
                    let files = Arc::new(look::files(&root));
                    let _ = outcomes.send(Outcome::Message(Message::Files(files)));
                });
            }
            Effect::ListProcesses => self.list_processes(),
            Effect::Look(id) => self.look(id),
            Effect::Send(id, sent) => self.send(&id, sent),
            Effect::Kill(id) => self.kill(&id),
            Effect::Compact => self.compact(),
            Effect::Review => self.review(),
            Effect::Audit => match self.backstage.audit() {
                Ok(rows) if rows.is_empty() => {
                    app.tell(NoticeKind::Told, "nothing was recorded yet");
                }
                Ok(rows) => {
                    let title = "Recorded in this session; sandgate audit show has all".to_owned();
                    app.push(Cell::Card { title, rows });
                }
                Err(error) => app.tell(NoticeKind::Error, error),
            },
            Effect::Trust(answer) => match self.backstage.trust(answer) {
                Ok((text, changed)) => {
                    app.tell(NoticeKind::Told, text);
                    if changed {
                        self.change = Some(Change::Settings);
                    }
                }
                Err(error) => app.tell(NoticeKind::Error, error),
            },
            Effect::Change(change) => match self.backstage.check(&change) {
                Ok(()) => self.change = Some(change),
                Err(error) => {
                    self.tell(app, Message::WorkOver { failure: Some(error) }, self.now());
                }
            },
            Effect::Redraw => self.redraw = true,
            Effect::Quit => self.quit = true,
        }
    }

    fn say(&mut self, text: String) {
        let Some(mut conversation) = self.conversation.take() else { return };
        self.turn = Stop::default();
        let (stop, outcomes) = (self.turn.clone(), self.outcomes.clone());
        tokio::spawn(async move {
            // How it ended is among the events.
            conversation.turn(UserInput { text, images: Vec::new() }, &stop).await;
            let _ = outcomes.send(Outcome::Turn(conversation, None));
        });
    }

    fn compact(&mut self) {
        let Some(mut conversation) = self.conversation.take() else { return };
        self.turn = Stop::default();
        let (stop, outcomes) = (self.turn.clone(), self.outcomes.clone());
        tokio::spawn(async move {
            let done = conversation.compact_now(&stop).await;
            let failure = (!done).then(|| "the conversation was not summed up".to_owned());
            let _ = outcomes.send(Outcome::Turn(conversation, failure));
        });
    }

    fn review(&mut self) {
        self.turn = Stop::default();
        let reviewing = self.backstage.review(self.requester.clone(), self.turn.clone());
        let outcomes = self.outcomes.clone();
        tokio::spawn(async move {
            let failure = match reviewing.await {
                Ok(text) => {
                    let _ = outcomes.send(Outcome::Message(Message::Tell(Cell::Report(text))));
                    None
                }
                Err(error) => Some(error),
            };
            let _ = outcomes.send(Outcome::Message(Message::WorkOver { failure }));
        });
    }

    fn run(&self, id: CallId, text: String) {
        let (requester, outcomes) = (self.requester.clone(), self.outcomes.clone());
        let stop = self.commands.child();
        tokio::spawn(async move {
            let turn = requester.begin_turn().stopped_by(&stop);
            let command = CommandLine::Script { text, shell: None, login: Login::No };
            let ran = requester.run_command(&id, AskedCommand::new(command), &turn).await;
            // What was refused is told by the session; what could not be started is not.
            let failure = match ran {
                Err(error @ sandgate_protocol::CodexErr::NotStarted { .. }) => {
                    Some(error.to_string())
                }
                _ => None,
            };
            let _ = outcomes.send(Outcome::Message(Message::CommandOver { failure }));
        });
    }

    /// Makes a call of the session's own tools, and passes its text on.
    fn call(
        &self,
        tool: &'static str,
        arguments: serde_json::Value,
        then: impl FnOnce(bool, String) -> Vec<Message> + Send + 'static,
    ) {
        let (requester, outcomes) = (self.requester.clone(), self.outcomes.clone());
        tokio::spawn(async move {
            let (success, text) = look::call(&requester, tool, &arguments).await;
            for message in then(success, text) {
                let _ = outcomes.send(Outcome::Message(message));
            }
        });
    }

    pub(crate) fn list_processes(&self) {
        self.call("list_processes", json!({}), |_, text| {
            vec![Message::Processes(look::processes(&text))]
        });
    }

    pub(crate) fn look(&self, id: String) {
        let arguments = json!({ "id": id, "first_line": -200, "raw": true });
        self.call("read_output", arguments, move |_, text| vec![Message::Printed { id, text }]);
    }

    fn send(&self, id: &str, sent: Sent) {
        let arguments = match sent {
            Sent::Line(line) => json!({ "process_id": id, "input": line, "yield_time_ms": 250 }),
            Sent::Key(key) => json!({ "process_id": id, "keys": [key], "yield_time_ms": 250 }),
        };
        self.call("write_stdin", arguments, |success, text| match success {
            true => Vec::new(),
            false => vec![Message::Tell(Cell::Notice { kind: NoticeKind::Error, text })],
        });
    }

    fn kill(&self, id: &str) {
        self.call("kill_process", json!({ "process_id": id }), |success, text| {
            let kind = if success { NoticeKind::Told } else { NoticeKind::Error };
            vec![Message::Tell(Cell::Notice { kind, text })]
        });
    }

    /// Ends the session and opens another, with something changed.
    ///
    /// # Errors
    /// When there is none any more.
    pub(crate) async fn reopen(&mut self, app: &mut App, change: &Change) -> Result<(), String> {
        // Nobody else may go on with it while we do.
        if let Some(conversation) = self.conversation.take() {
            conversation.end();
        }
        self.attendance = None;
        self.session = None;
        let id = self.conversation_id.clone();
        let mut note = match change {
            Change::Settings => "your settings were read anew".to_owned(),
            Change::Approval(policy) => format!("approvals: {policy}"),
            Change::Sandbox(mode) => format!("sandbox: {mode}"),
            Change::Model(name) => format!("model: {name}"),
        };
        let opened = match self.backstage.reopen(change, id.as_deref()) {
            Ok(opened) => opened,
            Err(error) => {
                note = error;
                self.backstage.reopen(&Change::Settings, id.as_deref())?
            }
        };
        let ((session, events), conversation, info, notes) = begin(opened).await;
        self.requester = session.requester();
        self.approver = session.approver(FRONT_END);
        self.conversation_id = conversation.is_recorded().then(|| conversation.id().to_owned());
        self.attendance = self.backstage.attend(&session, self.conversation_id.as_deref()).await;
        self.session = Some(session);
        self.events = events;
        self.conversation = Some(Box::new(conversation));
        self.tell(app, Message::Reopened { info, note }, self.now());
        self.tell(app, Message::WorkOver { failure: None }, self.now());
        tell_notes(app, notes);
        Ok(())
    }

    /// Waits a moment for the conversation to come to its end, so that the end is written down.
    pub(crate) async fn settle(
        &mut self,
        app: &mut App,
        outcomes: &mut mpsc::UnboundedReceiver<Outcome>,
    ) {
        let ended = async {
            while self.conversation.is_none() {
                let Some(outcome) = outcomes.recv().await else { return };
                app.queue.clear();
                self.came(app, outcome);
            }
        };
        let _ = tokio::time::timeout(LAST_PATIENCE, ended).await;
    }

    /// Ends all that is at work.
    pub(crate) fn end(&mut self) {
        self.turn.cancel.cancel();
        self.commands.cancel.cancel();
    }
}

fn tell_notes(app: &mut App, notes: Vec<String>) {
    for note in notes {
        app.tell(NoticeKind::Warning, note);
    }
}

/// Starts what belongs to a session, and listens to it first.
async fn begin(opened: Opened) -> ((Session, Events), Conversation, Info, Vec<String>) {
    let Opened { session, conversation, mcp_servers, own_env, notes, mut info } = opened;
    let events = session.events(Delivery::Lossy).await;
    let mcp = McpServers::start(&session.requester(), mcp_servers, &own_env);
    info.conversation = conversation.is_recorded().then(|| conversation.id().to_owned());
    ((session, events), conversation.with_mcp(mcp), info, notes)
}
