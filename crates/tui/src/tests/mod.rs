//! Screens, keys and hostile text, without a terminal: what is drawn is read by an emulator.

mod guard;
mod hostile;
mod screens;

use crate::app::{App, Effect, Info, Message};
use crate::paint::{Painter, Room};
use crate::theme::Colours;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sandgate_protocol::{
    AgentEvent, ApplyPatchApprovalRequest, ApprovalId, AskForApproval, CallId, DenialEvidence,
    DenialRule, Denials, DeniedOperation, Event, ExecApprovalRequest, ExecCommandBegin,
    ExecCommandEnd, ExecCommandOutputDelta, ExecToolCallOutput, GrantOffer, OutputStream,
    PatchChange, PatchChangeKind, RiskAssessment, RiskLevel, SandboxType, SessionEvent,
    StreamOutput,
};
use std::sync::Arc;
use std::time::Duration;

/// An interface on a terminal that somebody looks at.
pub(super) struct Bench {
    pub(super) app: App,
    painter: Painter,
    terminal: avt::Terminal,
    size: (usize, usize),
    room: Room,
    pub(super) effects: Vec<Effect>,
    /// In milliseconds.
    pub(super) now: u64,
}

pub(super) fn info() -> Info {
    Info {
        provider: "anthropic".to_owned(),
        model: "claude-sonnet-5".to_owned(),
        offline: false,
        root: "/home/me/project".into(),
        workspace: "~/project".to_owned(),
        trusted: true,
        approval: AskForApproval::OnRequest,
        sandbox: "workspace-write, network off".to_owned(),
        missing: Vec::new(),
        conversation: Some("01a1e559".to_owned()),
    }
}

impl Bench {
    pub(super) fn new(size: (usize, usize)) -> Self {
        Self::of(info(), size)
    }

    pub(super) fn of(info: Info, size: (usize, usize)) -> Self {
        Self {
            app: App::new(info),
            painter: Painter::new(Colours::On, size.0),
            terminal: avt::Terminal::with_scrollback(size.0, size.1, Some(10_000)).unwrap(),
            size,
            room: Room::Lower,
            effects: Vec::new(),
            now: 0,
        }
    }

    pub(super) fn tell(&mut self, message: Message) {
        let at = Duration::from_millis(self.now);
        self.effects.extend(self.app.update(message, at));
    }

    pub(super) fn hear(&mut self, event: Event) {
        self.tell(Message::Session(Arc::new(SessionEvent { seq: 1, event })));
    }

    pub(super) fn agent(&mut self, event: AgentEvent) {
        self.hear(Event::Agent(event));
    }

    pub(super) fn key(&mut self, code: KeyCode) {
        self.tell(Message::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }

    pub(super) fn control(&mut self, c: char) {
        self.tell(Message::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)));
    }

    pub(super) fn write(&mut self, text: &str) {
        text.chars().for_each(|c| self.key(KeyCode::Char(c)));
    }

    /// Draws, and tells that it reached the terminal.
    pub(super) fn draw(&mut self) {
        let (width, height) = self.size;
        let room = self.app.room();
        let bytes = if room == Room::Lower && self.room == Room::Lower {
            let above = self.app.take_finished(width);
            self.painter.draw(&above, &self.app.view(width, height))
        } else {
            self.room = room;
            self.painter.draw_in(room, &self.app.view(width, height))
        };
        self.terminal.feed([String::from_utf8(bytes).unwrap().as_str()]);
        let shown = self.app.questions.front().map(|question| question.id().clone());
        self.tell(Message::Drawn(shown));
    }

    /// The rows of the terminal.
    pub(super) fn rows(&self) -> Vec<String> {
        let lines = self.terminal.screen().visible_lines();
        lines.map(|line| line.text().trim_end().to_owned()).collect()
    }

    /// What the terminal shows, down to the last row that is not empty.
    pub(super) fn shown(&mut self) -> String {
        self.draw();
        self.rows().join("\n").trim_end().to_owned()
    }

    /// All that it has shown.
    pub(super) fn scrollback(&self) -> Vec<String> {
        let lines = self.terminal.screen().all_lines();
        lines.map(|line| line.text().trim_end().to_owned()).collect()
    }

    pub(super) fn pass(&mut self, milliseconds: u64) {
        self.now += milliseconds;
        self.app.tick(Duration::from_millis(self.now));
    }
}

pub(super) fn begin(id: &str, command: &str) -> Event {
    Event::ExecCommandBegin(ExecCommandBegin {
        call_id: CallId::new(id),
        command: vec!["bash".to_owned(), "-lc".to_owned(), command.to_owned()],
        cwd: "/home/me/project".into(),
        sandbox: SandboxType::LinuxSeccomp,
        enforcement: None,
    })
}

pub(super) fn printed(id: &str, text: &str) -> Event {
    let stream = OutputStream::Stdout;
    Event::ExecCommandOutputDelta(ExecCommandOutputDelta::new(
        CallId::new(id),
        stream,
        text.as_bytes(),
    ))
}

pub(super) fn ended(id: &str, text: &str, exit_code: i32, evidence: Vec<DenialEvidence>) -> Event {
    let output = StreamOutput {
        text: text.to_owned(),
        total_bytes: text.len() as u64,
        ..StreamOutput::default()
    };
    Event::ExecCommandEnd(Box::new(ExecCommandEnd {
        call_id: CallId::new(id),
        output: ExecToolCallOutput {
            exit_code,
            aggregated_output: output,
            duration: Duration::from_millis(1200),
            denials: Denials { evidence, more: 0 },
            ..ExecToolCallOutput::not_started(exit_code, "")
        },
        formatted_output: text.to_owned(),
    }))
}

pub(super) fn denial() -> DenialEvidence {
    DenialEvidence {
        operation: DeniedOperation::Connect,
        target: "140.82.121.4:443".to_owned(),
        syscall: "connect".to_owned(),
        rule: DenialRule::NetworkOff,
    }
}

/// A first question about a command.
pub(super) fn question(id: &str, command: &str) -> ExecApprovalRequest {
    ExecApprovalRequest {
        approval_id: ApprovalId::new(id),
        call_id: CallId::new("call_1"),
        command: vec!["bash".to_owned(), "-lc".to_owned(), command.to_owned()],
        command_text: sandgate_protocol::visible(command),
        cwd: "/home/me/project".into(),
        reason: "git push is not known to be safe".to_owned(),
        justification: None,
        denials: Vec::new(),
        more_denials: 0,
        risk: None,
        proposed_rule: Some(vec!["git".to_owned(), "push".to_owned()]),
        grant_offer: None,
        without_sandbox: false,
        only_once: false,
        agent: None,
    }
}

/// One after the sandbox blocked something.
pub(super) fn blocked(id: &str) -> ExecApprovalRequest {
    ExecApprovalRequest {
        reason: "the sandbox blocked it".to_owned(),
        denials: vec![denial()],
        more_denials: 2,
        risk: Some(RiskAssessment {
            risk_level: RiskLevel::High,
            description:
                "Pushes code to a remote repository, which needs the network and may expose \
                          code or credentials."
                    .to_owned(),
        }),
        grant_offer: Some(GrantOffer {
            summary: "reach the network".to_owned(),
            writable: Vec::new(),
            sockets: Vec::new(),
            network: true,
        }),
        without_sandbox: true,
        only_once: false,
        agent: Some("review-1".to_owned()),
        ..question(id, "git push origin main")
    }
}

pub(super) fn patch(id: &str, diff: &str) -> ApplyPatchApprovalRequest {
    ApplyPatchApprovalRequest {
        approval_id: ApprovalId::new(id),
        call_id: CallId::new("call_2"),
        changes: vec![PatchChange {
            path: "/home/me/project/src/lib.rs".into(),
            kind: PatchChangeKind::Update,
            moved_to: None,
            diff: diff.to_owned(),
        }],
        reason: "your policy asks about every change".to_owned(),
        grant_root: None,
        only_once: false,
        agent: None,
    }
}
