//! What happens in a session, as changes of the state.

use crate::app::App;
use crate::cell::{Cell, CommandCell, CommandEnd, NoticeKind, PatchCell, ToolCell};
use crate::drive::FRONT_END;
use crate::question::{Asked, Question};
use crate::tail::Tail;
use sandgate_protocol::{
    AgentEvent, AnsweredBy, ApprovalResponse, CallId, Event, ExecCommandBegin, SandboxType,
    SubAgentEvent,
};
use sandgate_runtime::command_text;
use std::time::Duration;

/// The longest input of a tool and the longest message that are kept, in characters.
const LONGEST_INPUT: usize = 4000;
const LONGEST_MESSAGE: usize = 256 * 1024;
/// How much of the turns' changes is kept, in bytes.
const MOST_DIFFS: usize = 1024 * 1024;

impl App {
    /// Takes in what happened. `agent` is the subagent that it happened to.
    pub(crate) fn hear(&mut self, event: &Event, agent: Option<&str>) {
        match event {
            Event::SubAgent(SubAgentEvent { agent, event }) => self.hear(event, Some(agent)),
            Event::Agent(event) => self.hear_agent(event, agent),
            Event::ExecCommandBegin(begin) => self.command_began(begin, agent),
            Event::ExecCommandOutputDelta(delta) => {
                if let Some(cell) = self.command(&delta.call_id) {
                    cell.output.push(&delta.bytes().unwrap_or_default());
                }
            }
            Event::ExecCommandOutputOmitted(omitted) => {
                if let Some(cell) = self.command(&omitted.call_id) {
                    cell.omitted = true;
                }
            }
            Event::ExecCommandEnd(end) => {
                if let Some(cell) = self.command(&end.call_id) {
                    cell.ended(end);
                }
                self.working("thinks");
            }
            Event::ExecApprovalRequest(request) => {
                self.questions.push_back(Question::new(Asked::Exec(request.clone())));
            }
            Event::ApplyPatchApprovalRequest(request) => {
                self.questions.push_back(Question::new(Asked::Patch(request.clone())));
            }
            Event::ApprovalResponse(response) => self.answered(response),
            Event::PatchApplyBegin(begin) => {
                self.push(Cell::Patch(PatchCell {
                    call_id: begin.call_id.clone(),
                    root: self.info.root.clone(),
                    changes: begin.changes.clone(),
                    agent: agent.map(str::to_owned),
                    end: None,
                }));
            }
            Event::PatchApplyEnd(end) => {
                let ended = Some((end.success, end.message.clone()));
                let open = self.cells.iter_mut().rev().find_map(|cell| match cell {
                    Cell::Patch(cell) if cell.call_id == end.call_id => Some(cell),
                    _ => None,
                });
                match open {
                    Some(cell) => cell.end = ended,
                    None if !end.success => self.tell(NoticeKind::Error, end.message.clone()),
                    None => {}
                }
            }
            Event::ProcessWoke(woke) => {
                let what = match woke.exit_code {
                    Some(code) => format!("the process {} ended with {code}", woke.process_id),
                    None => format!("the process {} printed what was waited for", woke.process_id),
                };
                self.tell(NoticeKind::Told, what);
            }
            Event::TurnDiff(diff) => {
                let kept: usize = self.diffs.iter().map(String::len).sum();
                if kept + diff.unified_diff.len() <= MOST_DIFFS {
                    self.diffs.push(diff.unified_diff.clone());
                } else {
                    self.diffs = vec![diff.unified_diff.clone()];
                }
                for left_out in &diff.not_shown {
                    self.tell(
                        NoticeKind::Told,
                        format!("changed, and not in the diff: {left_out}"),
                    );
                }
            }
            Event::SandboxStatus(status) => self.info.missing = status.missing.clone(),
            Event::Warning(notice) => self.tell(NoticeKind::Warning, notice.message.clone()),
            // Whoever has just said no knows that it was not done.
            Event::Error(_)
                if matches!(self.cells.back(), Some(Cell::Decision { approves: false, .. })) => {}
            Event::Error(notice) => {
                let wanted = notice.call_id.as_ref().and_then(|id| self.wanted.remove(id));
                let reason = notice.message.clone();
                match wanted {
                    Some(command) => {
                        let agent = agent.map(str::to_owned);
                        self.push(Cell::Refused { command, agent, reason });
                    }
                    None => self.tell(NoticeKind::Error, reason),
                }
            }
        }
    }

    fn hear_agent(&mut self, event: &AgentEvent, agent: Option<&str>) {
        match event {
            // What a subagent says is for the one it works for.
            AgentEvent::AgentMessageDelta { .. }
            | AgentEvent::AgentMessage { .. }
            | AgentEvent::AgentReasoningDelta { .. }
            | AgentEvent::AgentReasoning { .. }
            | AgentEvent::TokenCount { .. }
            | AgentEvent::TaskStarted { .. }
            | AgentEvent::TaskComplete { .. }
                if agent.is_some() => {}
            // The person wrote it here, and sees it.
            AgentEvent::UserMessage { .. } => {}
            AgentEvent::TaskStarted { .. } => self.working("thinks"),
            AgentEvent::AgentMessageDelta { delta } => self.says(delta),
            AgentEvent::AgentMessage { message } => self.said(message),
            AgentEvent::AgentReasoningDelta { delta } => self.thinks(delta),
            AgentEvent::AgentReasoning { text } => self.thought(text),
            AgentEvent::ToolCallBegin { call_id, tool, input } => {
                self.end_message();
                self.tool_began(call_id, tool, input, agent);
            }
            AgentEvent::ToolCallEnd { call_id, success, output } => {
                self.tool_ended(call_id, *success, output);
            }
            AgentEvent::TokenCount { last, total, context_window } => {
                let before = self.usage.map(|(last, _, _)| last).unwrap_or_default();
                // Not every provider counts each request.
                let last = if last.total() > 0 { *last } else { before };
                self.usage = Some((last, *total, *context_window));
            }
            AgentEvent::StreamError { message, attempt, retry_in_ms } => {
                // What it brought until now does not count.
                self.cells
                    .retain(|cell| !matches!(cell, Cell::Agent { over: false, shown: 0, .. }));
                let wait = Duration::from_millis(*retry_in_ms).as_secs_f32();
                let text = format!("{message}; attempt {attempt} in {wait:.1} s");
                self.tell(NoticeKind::Warning, text);
            }
            AgentEvent::ContextCompacted { tokens_before, tokens_after } => {
                let text =
                    format!("the history was summed up: {tokens_before} → {tokens_after} tokens");
                self.tell(NoticeKind::Told, text);
            }
            AgentEvent::SubAgentBegin { agent: name, task } => {
                self.tell(NoticeKind::Told, format!("{name} begins: {task}"));
            }
            AgentEvent::SubAgentEnd { agent: name, success } => {
                let word = if *success { "is done" } else { "did not get it done" };
                self.tell(NoticeKind::Told, format!("{name} {word}"));
            }
            AgentEvent::TaskComplete { .. } => self.end_message(),
            AgentEvent::TurnAborted { reason } => {
                if agent.is_none() {
                    self.end_open_cells();
                    self.tell(NoticeKind::Error, reason.clone());
                }
            }
        }
    }

    fn working(&mut self, at: &str) {
        if let Some((_, what)) = &mut self.busy
            && what != "stops"
        {
            at.clone_into(what);
        }
    }

    fn says(&mut self, delta: &str) {
        self.working("answers");
        self.end_thought();
        if let Some(Cell::Agent { text, over: false, .. }) = self.cells.back_mut() {
            if text.len() + delta.len() <= LONGEST_MESSAGE {
                text.push_str(delta);
            }
        } else {
            let text = delta.to_owned();
            self.push(Cell::Agent { text, over: false, shown: 0 });
        }
    }

    fn said(&mut self, message: &str) {
        self.end_thought();
        let open = self.cells.iter_mut().rev().find_map(|cell| match cell {
            Cell::Agent { text, over, shown } if !*over => Some((text, over, shown)),
            _ => None,
        });
        match open {
            Some((text, over, shown)) => {
                // What stands above cannot be taken back; the same words came in pieces.
                if message.starts_with(&text[..*shown]) {
                    message.clone_into(text);
                }
                *over = true;
            }
            None => {
                let text = message.to_owned();
                self.push(Cell::Agent { text, over: true, shown: 0 });
            }
        }
    }

    fn end_message(&mut self) {
        self.end_thought();
        for cell in &mut self.cells {
            if let Cell::Agent { over, .. } = cell {
                *over = true;
            }
        }
    }

    fn thinks(&mut self, delta: &str) {
        self.working("thinks");
        if let Some(Cell::Thought { text, over: false }) = self.cells.back_mut() {
            if text.len() + delta.len() <= LONGEST_MESSAGE {
                text.push_str(delta);
            }
        } else {
            self.push(Cell::Thought { text: delta.to_owned(), over: false });
        }
    }

    fn thought(&mut self, whole: &str) {
        match self.cells.back_mut() {
            Some(Cell::Thought { text, over }) if !*over => {
                whole.clone_into(text);
                *over = true;
            }
            _ => self.push(Cell::Thought { text: whole.to_owned(), over: true }),
        }
    }

    fn end_thought(&mut self) {
        if let Some(Cell::Thought { over, .. }) = self.cells.back_mut() {
            *over = true;
        }
    }

    /// Nothing that is open will be told the end of.
    pub(crate) fn end_open_cells(&mut self) {
        self.end_message();
        for cell in &mut self.cells {
            match cell {
                Cell::Tool(cell) => {
                    cell.end.get_or_insert((false, "it was called off".to_owned()));
                }
                Cell::Patch(cell) => {
                    cell.end.get_or_insert((false, "it was called off".to_owned()));
                }
                _ => {}
            }
        }
    }

    fn command_began(&mut self, begin: &ExecCommandBegin, agent: Option<&str>) {
        self.wanted.remove(&begin.call_id);
        // Nobody called it, and no person's own command or review runs: it is a program that serves the
        // session, and lives as long as that does.
        let serves = agent.is_none()
            && self.running == 0
            && !self.reviews
            && !self.calls.contains(&begin.call_id);
        if !serves {
            self.working("runs a command");
        }
        self.push(Cell::Command(CommandCell {
            call_id: begin.call_id.clone(),
            command: command_text(&begin.command),
            agent: agent.map(str::to_owned),
            unconfined: begin.sandbox == SandboxType::None,
            output: Tail::default(),
            omitted: false,
            began: self.now,
            end: serves.then_some(CommandEnd::Serves),
        }));
    }

    /// The cell of a command that has not ended.
    fn command(&mut self, id: &CallId) -> Option<&mut CommandCell> {
        self.cells.iter_mut().rev().find_map(|cell| match cell {
            Cell::Command(cell) if cell.call_id == *id && cell.end.is_none() => Some(cell),
            _ => None,
        })
    }

    fn tool_began(&mut self, call_id: &CallId, tool: &str, input: &str, agent: Option<&str>) {
        self.calls.insert(call_id.clone());
        // Their commands and changes are told of by themselves.
        if matches!(
            tool,
            "shell" | "shell_command" | "exec_command" | "container.exec" | "apply_patch"
        ) {
            if let Some(command) = asked_command(input) {
                self.wanted.insert(call_id.clone(), command);
            }
            return;
        }
        self.push(Cell::Tool(ToolCell {
            call_id: call_id.clone(),
            tool: tool.to_owned(),
            input: input.chars().take(LONGEST_INPUT).collect(),
            agent: agent.map(str::to_owned),
            end: None,
        }));
    }

    fn tool_ended(&mut self, call_id: &CallId, success: bool, output: &str) {
        self.calls.remove(call_id);
        self.wanted.remove(call_id);
        if let Some(cell) = self.command(call_id) {
            cell.end = Some(CommandEnd::LivesOn);
        }
        let open = self.cells.iter_mut().rev().find_map(|cell| match cell {
            Cell::Tool(cell) if cell.call_id == *call_id => Some(cell),
            _ => None,
        });
        if let Some(cell) = open {
            cell.end = Some((success, output.chars().take(LONGEST_INPUT).collect()));
        }
        self.working("thinks");
    }

    fn answered(&mut self, response: &ApprovalResponse) {
        let at = self.questions.iter().position(|one| *one.id() == response.approval_id);
        let question = at.and_then(|at| self.questions.remove(at));
        let about = question.map(|one| one.summary().to_owned()).unwrap_or_default();
        if let Some(next) = self.questions.front_mut() {
            // It has to be seen first, whatever was on the screen.
            next.hidden();
        }
        let said = match &response.answered_by {
            AnsweredBy::Person(name) if name == FRONT_END => {
                format!("you said {}", response.decision.in_words())
            }
            _ => response.said.clone(),
        };
        let text = format!("{said} · {about}");
        self.push(Cell::Decision { approves: response.decision.approves(), text });
    }
}

/// The command in a tool's input, if it has one.
fn asked_command(input: &str) -> Option<String> {
    let input: serde_json::Value = serde_json::from_str(input).ok()?;
    let text = match input.get("command").or_else(|| input.get("cmd"))? {
        serde_json::Value::String(text) => text.clone(),
        words => command_text(&serde_json::from_value::<Vec<String>>(words.clone()).ok()?),
    };
    Some(text.chars().take(LONGEST_INPUT).collect())
}
