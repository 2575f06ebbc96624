//! What a person, or a program, sees of a model at work.

use crate::writer::Writer;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Effects, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sandgate_protocol::{
    AgentEvent, Event, ExecCommandEnd, OutputStream, SessionEvent, SubAgentEvent, visible,
    visible_line,
};
use sandgate_runtime::command_text;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

const COMMAND: Style = Style::new().effects(Effects::BOLD);
const DIM: Style = Style::new().effects(Effects::DIMMED);
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// How many of the last lines of a failed command are shown.
const SHOWN_LINES: usize = 6;

/// Shows a turn: for people on standard error, for programs as JSON lines on standard output.
pub(crate) struct Show {
    /// Where events go, if a program reads them.
    json: Option<Writer>,
    /// It was waited for in vain while everything was called off.
    unread: bool,
    spinner: Option<ProgressBar>,
    colours: ColorChoice,
    /// What was said last. Shown when something follows it: otherwise it is the answer, which goes to
    /// standard output.
    said: Option<String>,
}

impl Show {
    /// For people, unless a program reads events from what is given here.
    pub(crate) fn new(json: Option<Writer>) -> Self {
        let stderr = io::stderr();
        let spinner = (json.is_none() && stderr.is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed:.dim}") {
                bar.set_style(style);
            }
            bar
        });
        Self { json, unread: false, spinner, colours: AutoStream::choice(&stderr), said: None }
    }

    pub(super) fn is_json(&self) -> bool {
        self.json.is_some()
    }

    /// Keeps still, because a person is asked something.
    pub(super) fn pause(&self) {
        if let Some(bar) = &self.spinner {
            bar.disable_steady_tick();
            bar.finish_and_clear();
        }
    }

    /// Moves again.
    pub(super) fn go_on(&self) {
        if let Some(bar) = &self.spinner {
            bar.reset();
            bar.enable_steady_tick(Duration::from_millis(120));
        }
    }

    /// There is nothing more to see. Waits until all has been written.
    pub(super) async fn end(&self) {
        self.pause();
        if let Some(writer) = &self.json {
            writer.finish().await;
        }
    }

    /// Shows an event. Waits while a program is slow to read, unless everything is called off: then what it
    /// does not read is lost.
    pub(super) async fn event(&mut self, event: &SessionEvent) -> io::Result<()> {
        let Some(writer) = &self.json else {
            self.tell(&event.event, None);
            return Ok(());
        };
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        if self.unread {
            return Ok(());
        }
        match writer.output(OutputStream::Stdout, &line).await {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                self.unread = true;
                Ok(())
            }
            written => written,
        }
    }

    /// Whether people see anything of an event. The pieces in which output and answers come are not shown.
    pub(super) fn shows(event: &Event) -> bool {
        match event {
            Event::SubAgent(below) => Self::shows(&below.event),
            Event::ExecCommandOutputDelta(_) => false,
            Event::Agent(event) => !matches!(
                event,
                AgentEvent::AgentMessageDelta { .. } | AgentEvent::AgentReasoningDelta { .. }
            ),
            _ => true,
        }
    }

    fn tell(&mut self, event: &Event, agent: Option<&str>) {
        match event {
            Event::SubAgent(SubAgentEvent { agent, event }) => self.tell(event, Some(agent)),
            Event::Agent(event) => self.tell_agent(event, agent),
            Event::ExecCommandBegin(begin) => {
                let text = command_text(&begin.command);
                // Each line shows whose it is: a command could hold lines that look like ours.
                for (number, line) in text.lines().enumerate() {
                    let mark = if number == 0 { "$" } else { "│" };
                    self.line(agent, &format!("{COMMAND}{mark} {line}{COMMAND:#}"));
                }
                self.doing(&visible_line(&text));
            }
            Event::ExecCommandEnd(end) => self.command_ended(end, agent),
            Event::PatchApplyEnd(end) => {
                let style = if end.success { GOOD } else { BAD };
                for line in visible(&end.message).lines() {
                    self.line(agent, &format!("  {style}{line}{style:#}"));
                }
            }
            Event::Warning(notice) => {
                let text = visible_line(&notice.message);
                self.line(agent, &format!("{DIM}warning: {text}{DIM:#}"));
            }
            Event::Error(notice) => {
                let text = visible_line(&notice.message);
                self.line(agent, &format!("  {BAD}{text}{BAD:#}"));
            }
            _ => {}
        }
    }

    fn tell_agent(&mut self, event: &AgentEvent, agent: Option<&str>) {
        match event {
            AgentEvent::TaskStarted { model, provider } if agent.is_none() => {
                let what = format!("{provider} · {model}");
                self.line(None, &format!("{DIM}{}{DIM:#}", visible_line(&what)));
                self.doing("thinking");
                self.go_on();
            }
            AgentEvent::AgentReasoning { text } => {
                for line in visible(text).lines() {
                    self.line(agent, &format!("{DIM}│ {line}{DIM:#}"));
                }
            }
            AgentEvent::ToolCallBegin { tool, input, .. } => {
                self.say();
                if is_command(tool) {
                    return;
                }
                let input: String = visible_line(input).chars().take(120).collect();
                self.line(
                    agent,
                    &format!("{COMMAND}{}{COMMAND:#} {DIM}{input}{DIM:#}", visible_line(tool)),
                );
            }
            AgentEvent::ToolCallEnd { .. } => self.doing("thinking"),
            AgentEvent::StreamError { message, attempt, retry_in_ms } => {
                let wait = Duration::from_millis(*retry_in_ms).as_secs_f32();
                let text = visible_line(message);
                self.line(agent, &format!("{BAD}{text}{BAD:#}; attempt {attempt} in {wait:.1} s"));
            }
            AgentEvent::ContextCompacted { tokens_before, tokens_after } => {
                let what =
                    format!("the history was summed up: {tokens_before} → {tokens_after} tokens");
                self.line(agent, &format!("{DIM}{what}{DIM:#}"));
            }
            AgentEvent::SubAgentBegin { agent: name, task } => {
                let (name, task) = (visible_line(name), visible_line(task));
                self.line(agent, &format!("{COMMAND}{name}{COMMAND:#} {DIM}{task}{DIM:#}"));
            }
            AgentEvent::TokenCount { total, .. } if total.total() > 0 => {
                self.doing(&format!("thinking · {} tokens", total.total()));
            }
            AgentEvent::AgentMessage { message } if agent.is_none() => {
                self.say();
                self.said = Some(message.clone());
            }
            AgentEvent::TurnAborted { .. } if agent.is_none() => self.say(),
            _ => {}
        }
    }

    /// Shows what was said on the way.
    fn say(&mut self) {
        let Some(message) = self.said.take() else { return };
        for line in visible(&message).lines() {
            self.line(None, &format!("{DIM}│{DIM:#} {line}"));
        }
    }

    fn command_ended(&self, end: &ExecCommandEnd, agent: Option<&str>) {
        let took = end.output.duration.as_secs_f32();
        let (style, word) = match (end.output.exit_code, end.output.timed_out) {
            (_, true) => (BAD, "its time was over".to_owned()),
            (0, _) => (GOOD, "ok".to_owned()),
            (code, _) => (BAD, format!("exit code {code}")),
        };
        if end.output.exit_code != 0 {
            // What a model is told beside it stands below, in fewer words.
            let text = visible(&end.output.aggregated_output.text);
            let lines: Vec<&str> = text.lines().collect();
            for line in &lines[lines.len().saturating_sub(SHOWN_LINES)..] {
                self.line(agent, &format!("  {DIM}│ {line}{DIM:#}"));
            }
        }
        self.line(agent, &format!("  {style}{word}{style:#} {DIM}in {took:.1} s{DIM:#}"));
        for denial in end.output.denials.evidence.iter().take(SHOWN_LINES) {
            let text = visible_line(&denial.to_string());
            self.line(agent, &format!("  {BAD}blocked:{BAD:#} {text}"));
        }
    }

    /// What is going on, where something moves.
    fn doing(&self, what: &str) {
        if let Some(bar) = &self.spinner {
            bar.set_message(what.chars().take(80).collect::<String>());
        }
    }

    fn line(&self, agent: Option<&str>, text: &str) {
        let mut painted = AutoStream::new(Vec::new(), self.colours);
        // Writing to memory does not fail.
        let _ = match agent {
            Some(agent) => writeln!(painted, "{DIM}[{}]{DIM:#} {text}", visible_line(agent)),
            None => writeln!(painted, "{text}"),
        };
        let bytes = painted.into_inner();
        let write = || {
            let _ = io::stderr().write_all(&bytes);
        };
        match &self.spinner {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

/// Whether its commands are shown when they begin.
fn is_command(tool: &str) -> bool {
    matches!(tool, "shell" | "shell_command" | "exec_command" | "container.exec" | "apply_patch")
}
