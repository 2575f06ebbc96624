//! What happens in a session, as updates of the protocol.

use super::content::{called_with, chunk, fenced, text};
use super::diff::{diffs, locations};
use super::terminal;
use agent_client_protocol::v1::schema::{
    Meta, SessionUpdate, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use sandgate_protocol::{
    AgentEvent, Event, ExecCommandBegin, ExecCommandEnd, ExecCommandOutputDelta, ResponseItem,
    Role, visible, visible_line, visible_piece,
};
use sandgate_runtime::command_text;
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How much of a command's output is shown while it runs, in bytes: the end of it.
const MOST_OUTPUT: usize = 32 << 10;

/// How often that is sent: all of it is sent each time.
const PAUSE: Duration = Duration::from_millis(150);

/// The longest title, in letters.
const LONGEST_TITLE: usize = 400;

/// Turns events into updates.
pub(super) struct Updates {
    /// Whether the editor shows output that is sent along.
    terminals: bool,
    /// Pieces of the message, and of the thought, were sent already.
    said: bool,
    thought: bool,
    running: HashMap<String, Running>,
}

/// A command that runs.
struct Running {
    output: String,
    /// What of it is drawn.
    picture: terminal::Picture,
    sent: Instant,
}

impl Updates {
    pub(super) fn new(terminals: bool) -> Self {
        Self { terminals, said: false, thought: false, running: HashMap::new() }
    }

    /// What the editor is told of an event.
    pub(super) fn of(&mut self, event: &Event) -> Vec<SessionUpdate> {
        self.of_agent(None, event)
    }

    fn of_agent(&mut self, agent: Option<&str>, event: &Event) -> Vec<SessionUpdate> {
        match event {
            Event::SubAgent(below) => self.of_agent(Some(&below.agent), &below.event),
            Event::Agent(event) => self.said(agent, event),
            Event::ExecCommandBegin(begin) => vec![self.begins(agent, begin)],
            Event::ExecCommandOutputDelta(delta) => self.prints(agent, delta).into_iter().collect(),
            Event::ExecCommandEnd(end) => vec![self.ended(agent, end)],
            Event::PatchApplyBegin(begin) => {
                let fields = ToolCallUpdateFields::new()
                    .kind(ToolKind::Edit)
                    .status(ToolCallStatus::InProgress)
                    .locations(locations(&begin.changes))
                    .content(diffs(&begin.changes));
                vec![updated(call(agent, begin.call_id.as_str()), fields, None)]
            }
            // What stopped a call is in the result of the call.
            Event::Error(notice) if notice.call_id.is_some() => Vec::new(),
            Event::Warning(notice) | Event::Error(notice) => {
                let said = format!("{}\n", visible_line(&notice.message));
                vec![SessionUpdate::AgentThoughtChunk(chunk(said))]
            }
            _ => Vec::new(),
        }
    }

    fn said(&mut self, agent: Option<&str>, event: &AgentEvent) -> Vec<SessionUpdate> {
        match event {
            AgentEvent::ToolCallBegin { call_id, tool, input } => {
                let title = titled(agent, tool, input);
                let mut begun = ToolCall::new(call(agent, call_id.as_str()), title)
                    .kind(kind(tool))
                    .status(ToolCallStatus::Pending)
                    .locations(named(input));
                begun.raw_input = called_with(input);
                vec![SessionUpdate::ToolCall(begun)]
            }
            AgentEvent::ToolCallEnd { call_id, success, output } => {
                let id = call(agent, call_id.as_str());
                let status = match success {
                    true => ToolCallStatus::Completed,
                    false => ToolCallStatus::Failed,
                };
                let mut fields = ToolCallUpdateFields::new().status(status);
                // A command's output and a patch's diffs are there already.
                if self.running.remove(&id).is_none() && !output.is_empty() && !is_shown(output) {
                    fields = fields.content(vec![text(fenced(&end_of(&visible(output))))]);
                }
                vec![updated(id, fields, None)]
            }
            // What a subagent says is for the model that it works for.
            _ if agent.is_some() => Vec::new(),
            AgentEvent::AgentMessageDelta { delta } => {
                self.said = true;
                vec![SessionUpdate::AgentMessageChunk(chunk(delta))]
            }
            AgentEvent::AgentMessage { message } => match std::mem::take(&mut self.said) {
                true => Vec::new(),
                false => vec![SessionUpdate::AgentMessageChunk(chunk(message))],
            },
            AgentEvent::AgentReasoningDelta { delta } => {
                self.thought = true;
                vec![SessionUpdate::AgentThoughtChunk(chunk(delta))]
            }
            AgentEvent::AgentReasoning { text } => match std::mem::take(&mut self.thought) {
                true => Vec::new(),
                false => vec![SessionUpdate::AgentThoughtChunk(chunk(text))],
            },
            AgentEvent::StreamError { message, .. } => {
                let said = format!("{}; trying again\n", visible_line(message));
                vec![SessionUpdate::AgentThoughtChunk(chunk(said))]
            }
            _ => Vec::new(),
        }
    }

    fn begins(&mut self, agent: Option<&str>, begin: &ExecCommandBegin) -> SessionUpdate {
        let id = call(agent, begin.call_id.as_str());
        let fields = ToolCallUpdateFields::new()
            .kind(ToolKind::Execute)
            .status(ToolCallStatus::InProgress)
            .title(short(&labelled(agent, &command_text(&begin.command))));
        let running = Running {
            output: String::new(),
            picture: terminal::Picture::default(),
            sent: Instant::now(),
        };
        self.running.insert(id.clone(), running);
        match self.terminals {
            true => {
                let meta = terminal::info(&id, &begin.cwd);
                updated(id.clone(), fields.content(vec![terminal::content(&id)]), Some(meta))
            }
            false => updated(id, fields, None),
        }
    }

    fn prints(
        &mut self,
        agent: Option<&str>,
        delta: &ExecCommandOutputDelta,
    ) -> Option<SessionUpdate> {
        let id = call(agent, delta.call_id.as_str());
        let bytes = delta.bytes()?;
        let printed = String::from_utf8_lossy(&bytes);
        let running = self.running.get_mut(&id)?;
        if self.terminals {
            let meta = terminal::output(&id, &running.picture.of(&printed));
            return Some(updated(id, ToolCallUpdateFields::new(), Some(meta)));
        }
        let first = running.output.is_empty();
        running.output.push_str(&visible_piece(&printed.replace("\r\n", "\n")));
        running.output = end_of(&running.output);
        if !first && running.sent.elapsed() < PAUSE {
            return None;
        }
        running.sent = Instant::now();
        let fields = ToolCallUpdateFields::new().content(vec![text(fenced(&running.output))]);
        Some(updated(id, fields, None))
    }

    fn ended(&mut self, agent: Option<&str>, end: &ExecCommandEnd) -> SessionUpdate {
        let id = call(agent, end.call_id.as_str());
        let mut fields = ToolCallUpdateFields::new();
        if self.terminals {
            let meta = terminal::exit(&id, end.output.exit_code);
            return updated(id, fields, Some(meta));
        }
        let mut content: Vec<ToolCallContent> = Vec::new();
        if let Some(running) = self.running.get(&id).filter(|running| !running.output.is_empty()) {
            content.push(text(fenced(&running.output)));
        }
        if end.output.exit_code != 0 {
            content.push(text(format!("exit code {}", end.output.exit_code)));
        }
        for denial in &end.output.denials.evidence {
            content.push(text(format!("blocked: {}", visible_line(&denial.to_string()))));
        }
        fields = fields.content(content);
        updated(id, fields, None)
    }
}

/// A conversation that was written down, as if it happened again.
pub(super) fn replayed(items: &[ResponseItem]) -> Vec<SessionUpdate> {
    let replay = |item: &ResponseItem| match item {
        ResponseItem::Message { role, .. } => {
            let said = chunk(item.text().unwrap_or_default());
            match role {
                Role::User => Some(SessionUpdate::UserMessageChunk(said)),
                Role::Assistant => Some(SessionUpdate::AgentMessageChunk(said)),
                Role::Developer => None,
            }
        }
        ResponseItem::Reasoning { summary, .. } if !summary.is_empty() => {
            Some(SessionUpdate::AgentThoughtChunk(chunk(summary)))
        }
        ResponseItem::Reasoning { .. } => None,
        ResponseItem::ToolCall { call_id, name, input } => {
            let title = titled(None, name, input.as_str());
            let mut begun = ToolCall::new(call_id.as_str().to_owned(), title)
                .kind(kind(name))
                .status(ToolCallStatus::InProgress)
                .locations(named(input.as_str()));
            begun.raw_input = called_with(input.as_str());
            Some(SessionUpdate::ToolCall(begun))
        }
        ResponseItem::ToolCallOutput { call_id, output, success, .. } => {
            let status = match success {
                true => ToolCallStatus::Completed,
                false => ToolCallStatus::Failed,
            };
            let content = vec![text(fenced(&end_of(&visible(output))))];
            let fields = ToolCallUpdateFields::new().status(status).content(content);
            Some(updated(call_id.as_str().to_owned(), fields, None))
        }
    };
    items.iter().filter_map(replay).collect()
}

/// By what the editor knows a call: those of subagents may have the same names.
pub(super) fn call(agent: Option<&str>, call_id: &str) -> String {
    match agent {
        Some(agent) => format!("{agent}/{call_id}"),
        None => call_id.to_owned(),
    }
}

fn updated(id: String, fields: ToolCallUpdateFields, meta: Option<Meta>) -> SessionUpdate {
    let mut update = ToolCallUpdate::new(id, fields);
    update.meta = meta;
    SessionUpdate::ToolCallUpdate(update)
}

/// What a tool does, in the protocol's words.
fn kind(tool: &str) -> ToolKind {
    match tool {
        "shell" | "shell_command" | "container.exec" | "exec_command" | "write_stdin"
        | "kill_process" => ToolKind::Execute,
        "apply_patch" => ToolKind::Edit,
        "read_file" | "list_dir" | "read_output" | "list_processes" => ToolKind::Read,
        "grep_files" => ToolKind::Search,
        "spawn_agent" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

/// A line for a call, until more is known of it: the command, or the tool and what it is asked.
fn titled(agent: Option<&str>, tool: &str, input: &str) -> String {
    let input_value: Value = serde_json::from_str(input).unwrap_or_default();
    let words = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Option<Vec<String>> =
                words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
            words.map(|words| command_text(&words))
        }
        _ => None,
    };
    let command = ["command", "cmd"].iter().find_map(|name| words(input_value.get(name)?));
    let title = match (kind(tool), command) {
        (ToolKind::Execute, Some(command)) => command,
        (ToolKind::Edit, _) => "Change files".to_owned(),
        _ => format!("{tool} {input}"),
    };
    short(&labelled(agent, &title))
}

fn labelled(agent: Option<&str>, title: &str) -> String {
    match agent {
        Some(agent) => format!("[{}] {}", visible_line(agent), visible_line(title)),
        None => visible_line(title),
    }
}

/// A line that is not too long.
pub(super) fn short(title: &str) -> String {
    match title.chars().count() > LONGEST_TITLE {
        true => title.chars().take(LONGEST_TITLE).chain(['…']).collect(),
        false => title.to_owned(),
    }
}

/// The file that a tool is asked to read, if it names one by its whole path.
fn named(input: &str) -> Vec<ToolCallLocation> {
    let input: Value = serde_json::from_str(input).unwrap_or_default();
    let name = ["file_path", "dir_path", "path"].iter().find_map(|name| input.get(name)?.as_str());
    let path = name.map(PathBuf::from).filter(|path| path.is_absolute());
    path.map(ToolCallLocation::new).into_iter().collect()
}

/// The end of a text, from the beginning of a line.
fn end_of(text: &str) -> String {
    if text.len() <= MOST_OUTPUT {
        return text.to_owned();
    }
    let from = text.ceil_char_boundary(text.len() - MOST_OUTPUT);
    let from = text[from..].find('\n').map_or(from, |end| from + end + 1);
    format!("[…]\n{}", &text[from..])
}

/// Whether a patch says what it did, which its diffs show.
fn is_shown(output: &str) -> bool {
    output.starts_with("Success. Updated the following files")
}
