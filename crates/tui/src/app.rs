//! The whole state of the interface: a fold of what happens and what is pressed.
//!
//! Nothing here reads, writes, waits or looks at a clock: a message comes with its time, and what is to be
//! done about it goes out as effects. So every screen can be drawn, and every sequence of keys tried,
//! without a terminal.

use crate::cell::{Cell, NoticeKind};
use crate::composer::{Composer, Typed};
use crate::processes::{ProcessRow, Processes, Sent, Wanted};
use crate::question::{Pressed, Question};
use crate::slash;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use sandgate_protocol::{
    ApprovalId, AskForApproval, CallId, ExecApprovalRequest, ReviewDecision, SandboxPermissions,
    SessionEvent, TokenUsage,
};
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a first Ctrl-C is remembered.
const AGAIN: Duration = Duration::from_secs(2);
/// How many cells can be looked at again.
const MOST_CELLS: usize = 1000;
/// How many messages wait at most.
const MOST_QUEUED: usize = 20;

/// The mode that has to be asked for twice.
const NO_SANDBOX: &str = "danger-full-access";

/// What is to be known of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Who is asked.
    pub provider: String,
    /// Which model.
    pub model: String,
    /// Whether there is no model behind it.
    pub offline: bool,
    /// Where it works.
    pub root: PathBuf,
    /// The same as people are told it.
    pub workspace: String,
    /// Whether the person trusts that directory.
    pub trusted: bool,
    /// When the person is asked.
    pub approval: AskForApproval,
    /// What confines commands, in a few words.
    pub sandbox: String,
    /// What cannot be enforced on this machine.
    pub missing: Vec<String>,
    /// The conversation, if it is written down.
    pub conversation: Option<String>,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub(crate) enum Message {
    Key(KeyEvent),
    Paste(String),
    Session(Arc<SessionEvent>),
    /// What was drawn last has reached the terminal, with the question that was in it.
    Drawn(Option<ApprovalId>),
    Files(Arc<Vec<String>>),
    Processes(Vec<ProcessRow>),
    Printed {
        id: String,
        text: String,
    },
    Explained {
        id: ApprovalId,
        text: String,
    },
    /// The work of the model is over; why, if it was not done.
    WorkOver {
        failure: Option<String>,
    },
    /// A command of the person's own is over; why, if it did not run.
    CommandOver {
        failure: Option<String>,
    },
    /// The session is another one now.
    Reopened {
        info: Info,
        note: String,
    },
    /// Something for the person to see.
    Tell(Cell),
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    Say(String),
    Run(String),
    Answer(ApprovalId, ReviewDecision),
    Explain { id: ApprovalId, command: Vec<String>, cwd: PathBuf, permissions: SandboxPermissions },
    Interrupt,
    ListFiles,
    ListProcesses,
    Look(String),
    Send(String, Sent),
    Kill(String),
    Compact,
    Review,
    Audit,
    Trust(Option<bool>),
    Change(Change),
    Redraw,
    Quit,
}

/// What of a session the person changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// When they are asked.
    Approval(String),
    /// What commands may touch.
    Sandbox(String),
    /// Which model answers.
    Model(String),
    /// Nothing: the settings are read anew.
    Settings,
}

/// What the lower part of the screen is for.
#[derive(Debug)]
pub(crate) enum Screen {
    Composer,
    Processes(Processes),
    /// All that happened, unfolded; so many rows from its end.
    Transcript(usize),
}

/// The state.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) info: Info,
    pub(crate) cells: VecDeque<Cell>,
    /// How many of them are above.
    pub(crate) printed: usize,
    pub(crate) composer: Composer,
    pub(crate) questions: VecDeque<Question>,
    pub(crate) screen: Screen,
    /// Since when the model works, and at what.
    pub(crate) busy: Option<(Duration, String)>,
    /// How many commands of the person's own run.
    pub(crate) running: usize,
    pub(crate) queue: VecDeque<String>,
    pub(crate) unfolded: bool,
    pub(crate) usage: Option<(TokenUsage, TokenUsage, Option<u64>)>,
    pub(crate) diffs: Vec<String>,
    pub(crate) now: Duration,
    /// Said below the composer, until then.
    pub(crate) hint: Option<(Duration, String)>,
    interrupted: bool,
    /// The person was warned of what they do if they write the same again.
    warned: bool,
    /// The calls of models that have no result yet.
    pub(crate) calls: HashSet<CallId>,
    /// The commands that were asked for and have not begun.
    pub(crate) wanted: HashMap<CallId, String>,
    /// Whether changes are being looked at.
    pub(crate) reviews: bool,
}

impl App {
    pub(crate) fn new(info: Info) -> Self {
        Self {
            info,
            cells: VecDeque::new(),
            printed: 0,
            composer: Composer::default(),
            questions: VecDeque::new(),
            screen: Screen::Composer,
            busy: None,
            running: 0,
            queue: VecDeque::new(),
            unfolded: false,
            usage: None,
            diffs: Vec::new(),
            now: Duration::ZERO,
            hint: None,
            interrupted: false,
            warned: false,
            calls: HashSet::new(),
            wanted: HashMap::new(),
            reviews: false,
        }
    }

    /// Takes what happened at a moment, and says what is to be done.
    pub(crate) fn update(&mut self, message: Message, at: Duration) -> Vec<Effect> {
        self.now = self.now.max(at);
        match message {
            Message::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
            Message::Key(key) => self.key(key, at),
            Message::Paste(text) => {
                // Whatever is pasted answers nothing.
                if self.questions.is_empty() && matches!(self.screen, Screen::Composer) {
                    self.composer.paste(&text);
                }
                Vec::new()
            }
            Message::Session(event) => {
                self.hear(&event.event, None);
                Vec::new()
            }
            Message::Drawn(shown) => {
                if let Some(question) = self.questions.front_mut()
                    && shown.as_ref() == Some(question.id())
                {
                    question.drawn(at);
                }
                Vec::new()
            }
            Message::Files(files) => {
                self.composer.set_files(files);
                Vec::new()
            }
            Message::Processes(rows) => {
                if let Screen::Processes(pane) = &mut self.screen {
                    pane.listed(rows);
                }
                Vec::new()
            }
            Message::Printed { id, text } => {
                if let Screen::Processes(pane) = &mut self.screen {
                    pane.printed(&id, &text);
                }
                Vec::new()
            }
            Message::Explained { id, text } => {
                if let Some(question) = self.questions.iter_mut().find(|one| *one.id() == id) {
                    question.explained(&text);
                }
                Vec::new()
            }
            Message::WorkOver { failure } => self.work_over(failure),
            Message::CommandOver { failure } => {
                self.running = self.running.saturating_sub(1);
                if let Some(text) = failure {
                    self.tell(NoticeKind::Error, text);
                }
                Vec::new()
            }
            Message::Reopened { info, note } => {
                self.info = info;
                self.questions.clear();
                self.tell(NoticeKind::Told, note);
                Vec::new()
            }
            Message::Tell(cell) => {
                self.push(cell);
                Vec::new()
            }
        }
    }

    pub(crate) fn push(&mut self, cell: Cell) {
        self.cells.push_back(cell);
        while self.cells.len() > MOST_CELLS && self.printed > 0 {
            self.cells.pop_front();
            self.printed -= 1;
        }
    }

    pub(crate) fn tell(&mut self, kind: NoticeKind, text: impl Into<String>) {
        self.push(Cell::Notice { kind, text: text.into() });
    }

    /// Whether something moves by itself, so that it is to be drawn again soon.
    pub(crate) fn moves(&self) -> bool {
        self.busy.is_some() || self.running > 0 || self.hint.is_some()
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, at: Duration) {
        self.now = self.now.max(at);
        if self.hint.as_ref().is_some_and(|(until, _)| self.now >= *until) {
            self.hint = None;
        }
    }

    fn key(&mut self, key: KeyEvent, at: Duration) -> Vec<Effect> {
        if let Some(question) = self.questions.front_mut() {
            let id = question.id().clone();
            return match question.key(key, at) {
                Pressed::Nothing => Vec::new(),
                Pressed::Answer(decision) => vec![Effect::Answer(id, decision)],
                Pressed::Explain => match &question.asked {
                    crate::question::Asked::Exec(request) => vec![Effect::Explain {
                        id,
                        command: request.command.clone(),
                        cwd: request.cwd.clone(),
                        permissions: permissions(request),
                    }],
                    crate::question::Asked::Patch(request) => {
                        let text = explained_patch(&request.reason);
                        question.explained(&text);
                        Vec::new()
                    }
                },
            };
        }
        match &mut self.screen {
            Screen::Processes(pane) => match pane.key(key) {
                Wanted::Nothing => Vec::new(),
                Wanted::Close => {
                    self.screen = Screen::Composer;
                    Vec::new()
                }
                Wanted::Look(id) => vec![Effect::Look(id)],
                Wanted::Send(id, sent) => vec![Effect::Send(id, sent)],
                Wanted::Kill(id) => vec![Effect::Kill(id)],
            },
            Screen::Transcript(back) => {
                match key.code {
                    KeyCode::Up | KeyCode::Char('k') => *back = back.saturating_add(1),
                    KeyCode::Down | KeyCode::Char('j') => *back = back.saturating_sub(1),
                    KeyCode::PageUp => *back = back.saturating_add(15),
                    KeyCode::PageDown | KeyCode::Char(' ') => *back = back.saturating_sub(15),
                    KeyCode::Home | KeyCode::Char('g') => *back = usize::MAX,
                    KeyCode::End | KeyCode::Char('G') => *back = 0,
                    _ => self.screen = Screen::Composer,
                }
                Vec::new()
            }
            Screen::Composer => self.compose(key),
        }
    }

    fn compose(&mut self, key: KeyEvent) -> Vec<Effect> {
        match self.composer.key(key) {
            Typed::Taken => Vec::new(),
            Typed::WantsFiles => vec![Effect::ListFiles],
            Typed::Done(text) => {
                self.composer.forget_files();
                self.submit(text)
            }
            Typed::Left => {
                let control = key.modifiers.contains(KeyModifiers::CONTROL);
                match key.code {
                    KeyCode::Esc => self.interrupt(),
                    KeyCode::Char('c') if control => self.control_c(),
                    KeyCode::Char('d') if control && self.composer.is_empty() => vec![Effect::Quit],
                    KeyCode::Char('t') if control => {
                        self.screen = Screen::Transcript(0);
                        Vec::new()
                    }
                    KeyCode::Char('o') if control => {
                        self.unfolded = !self.unfolded;
                        Vec::new()
                    }
                    KeyCode::Char('l') if control => vec![Effect::Redraw],
                    _ => Vec::new(),
                }
            }
        }
    }

    fn control_c(&mut self) -> Vec<Effect> {
        if !self.composer.is_empty() {
            self.composer.clear();
            return Vec::new();
        }
        if self.busy.is_some() || self.running > 0 {
            return self.interrupt();
        }
        if self.hint.take().is_some_and(|(until, _)| self.now < until) {
            return vec![Effect::Quit];
        }
        self.hint = Some((self.now + AGAIN, "press ctrl-c again to end".to_owned()));
        Vec::new()
    }

    /// Calls off what is at work. What waited to be sent is the person's again.
    fn interrupt(&mut self) -> Vec<Effect> {
        if self.busy.is_none() && self.running == 0 {
            return Vec::new();
        }
        self.interrupted = true;
        if let Some((_, what)) = &mut self.busy {
            "stops".clone_into(what);
        }
        if !self.queue.is_empty() {
            let mut waiting: Vec<String> = self.queue.drain(..).collect();
            if !self.composer.is_empty() {
                waiting.push(self.composer.text());
            }
            self.composer.set(&waiting.join("\n"));
            self.composer.move_to_end();
        }
        vec![Effect::Interrupt]
    }

    /// What the person wrote is to be done.
    pub(crate) fn submit(&mut self, text: String) -> Vec<Effect> {
        let warned = std::mem::take(&mut self.warned);
        if let Some(command) = text.strip_prefix('!') {
            let command = command.trim();
            if command.is_empty() {
                self.tell(NoticeKind::Told, "write a command after the !, such as: ! git status");
                return Vec::new();
            }
            self.running += 1;
            return vec![Effect::Run(command.to_owned())];
        }
        if text.starts_with('/') && !text.contains('\n') {
            if let Some((command, rest)) = slash::find(&text) {
                if command.name == "sandbox" && rest.eq_ignore_ascii_case(NO_SANDBOX) && !warned {
                    self.warn_of_no_sandbox(&text);
                    return Vec::new();
                }
                return self.slash(command.name, rest);
            }
            let word = text.split_whitespace().next().unwrap_or_default();
            // A path is something to say, too.
            if !word[1..].contains('/') {
                self.tell(
                    NoticeKind::Error,
                    format!("there is no command {word}; /help lists them"),
                );
                return Vec::new();
            }
        }
        if self.busy.is_some() {
            if self.queue.len() < MOST_QUEUED {
                self.queue.push_back(text);
            } else {
                self.composer.set(&text);
            }
            return Vec::new();
        }
        self.say(text)
    }

    fn warn_of_no_sandbox(&mut self, text: &str) {
        self.warned = true;
        self.composer.set(text);
        self.composer.move_to_end();
        let words = "with danger-full-access commands run WITHOUT any sandbox: they can read and change \
                     all that you can, and reach the network; press enter once more (with --plain write \
                     it once more) if you want that";
        self.tell(NoticeKind::Warning, words);
    }

    fn say(&mut self, text: String) -> Vec<Effect> {
        self.push(Cell::User(text.clone()));
        self.begin("thinks");
        vec![Effect::Say(text)]
    }

    fn begin(&mut self, what: &str) {
        self.busy = Some((self.now, what.to_owned()));
        self.interrupted = false;
    }

    fn work_over(&mut self, failure: Option<String>) -> Vec<Effect> {
        self.busy = None;
        self.reviews = false;
        self.calls.clear();
        self.wanted.clear();
        self.end_open_cells();
        if let Some(text) = failure {
            self.tell(NoticeKind::Error, text);
        }
        match self.queue.pop_front() {
            Some(next) if !self.interrupted => self.say(next),
            Some(next) => {
                self.queue.push_front(next);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    fn slash(&mut self, name: &str, rest: &str) -> Vec<Effect> {
        let needs_quiet =
            matches!(name, "compact" | "review" | "model" | "approvals" | "sandbox" | "trust");
        let changes = !rest.is_empty() || matches!(name, "compact" | "review");
        if needs_quiet && changes && (self.busy.is_some() || self.running > 0) {
            self.tell(
                NoticeKind::Told,
                format!("/{name} has to wait until the work is over; esc ends it"),
            );
            return Vec::new();
        }
        match name {
            "status" => self.status(),
            "help" => self.help(),
            "quit" => return vec![Effect::Quit],
            "diff" => self.show_diff(),
            "audit" => return vec![Effect::Audit],
            "processes" => {
                self.screen = Screen::Processes(Processes::default());
                return vec![Effect::ListProcesses];
            }
            "compact" => {
                self.begin("sums up");
                return vec![Effect::Compact];
            }
            "review" if self.info.offline => {
                self.tell(NoticeKind::Error, "a review needs a model; /model says how to have one");
            }
            "review" => {
                self.begin("looks at the changes");
                self.reviews = true;
                return vec![Effect::Review];
            }
            "approvals" if rest.is_empty() => self.approvals(),
            "approvals" => return self.change(Change::Approval(rest.to_owned())),
            "sandbox" if rest.is_empty() => self.sandbox(),
            "sandbox" => return self.change(Change::Sandbox(rest.to_owned())),
            "model" if rest.is_empty() => self.model(),
            "model" => return self.change(Change::Model(rest.to_owned())),
            "trust" => match rest {
                "" => return vec![Effect::Trust(None)],
                "yes" => return vec![Effect::Trust(Some(true))],
                "no" => return vec![Effect::Trust(Some(false))],
                _ => self.tell(NoticeKind::Error, "write /trust, /trust yes or /trust no"),
            },
            _ => {}
        }
        Vec::new()
    }

    fn change(&mut self, change: Change) -> Vec<Effect> {
        self.begin("begins anew");
        vec![Effect::Change(change)]
    }
}

/// What a call asked for when it was judged. After a refusal of the sandbox it is a yes that leaves it.
fn permissions(request: &ExecApprovalRequest) -> SandboxPermissions {
    let leaves = request.without_sandbox && request.justification.is_some();
    match leaves && request.denials.is_empty() {
        true => SandboxPermissions::RequireEscalated,
        false => SandboxPermissions::UseDefault,
    }
}

fn explained_patch(reason: &str) -> String {
    format!(
        "Why you are asked: {reason}\n\nA patch is applied whole or not at all. Files inside of the \
         writable roots that are not protected need no question; this one changes others, or your policy \
         asks about every change.\n\nonce: this patch. session: these files, or the directory that is \
         named, until the session ends. no: the agent is told, and goes on."
    )
}
