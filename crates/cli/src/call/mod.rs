//! `sandgate call`: tool calls as JSON lines in, their results as JSON lines out, in one session.

mod lines;
mod wire;

use crate::arguments::usage_error;
use crate::decide::{Decide, Decider, Feedback, lay_on_desk};
use crate::session::{CliSession, PreparedSession};
use crate::{exit, notes, telemetry};
use clap::error::ErrorKind;
use lines::Lines;
use sandgate_protocol::{AnsweredBy, Event, ToolCall, visible_line};
use sandgate_runtime::{
    Approver, Delivery, Requester, Runtime, Session, SessionConfig, Turn, TurnDiffs,
};
use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use wire::{Line, Malformed};

const HELP: &str = "\
A line is one call, or an array of those that one response of a model makes:
  {\"type\":\"function_call\",\"name\":\"shell\",\"call_id\":\"c1\",\"arguments\":\"{\\\"command\\\":[\\\"ls\\\"]}\"}

Each call is answered by one line when it ends:
  {\"type\":\"function_call_output\",\"call_id\":\"c1\",\"output\":\"…\",\"success\":true,\"exit_code\":0,…}

With --decide stdin a question is written as a line too, and answered by one:
  {\"type\":\"approval_response\",\"approval_id\":\"approval_1\",\"decision\":\"approved\"}
The decision is approved, approved_for_session, approved_with_rule (if a rule is proposed),
approved_with_grant with a scope of call or session (if a grant is offered), denied with a feedback
if you like, or abort. After the sandbox blocked something, approved means without the sandbox, and
every yes means that the whole command runs again.

Exit codes: 0 when every line was a call; 1 when one was not; 77 when a decision was needed and
nobody could give it; 125 if sandgate itself failed; 2 if this command line makes no sense.";

/// What may follow `sandgate call`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliCall {
    /// The file with the calls, or - for standard input
    #[arg(value_name = "FILE", required_unless_present = "tools")]
    file: Option<PathBuf>,

    #[command(flatten)]
    session: CliSession,

    /// Print every event of the session too, one JSON object a line, to standard error
    #[arg(long)]
    events: bool,

    /// List the tools and what they take, as JSON, and call none
    #[arg(long)]
    tools: bool,
}

/// What `sandgate call` is to do.
#[derive(Debug)]
pub(crate) struct CallArguments {
    cli: CliCall,
}

/// Turns what was written into what is meant.
pub(crate) fn understand(cli: CliCall) -> Result<CallArguments, clap::Error> {
    match cli.session.check() {
        Ok(()) => Ok(CallArguments { cli }),
        Err(message) => Err(usage_error("call", ErrorKind::ArgumentConflict, message)),
    }
}

/// Makes the calls and says how this program is to end.
pub(crate) fn call(arguments: &CallArguments) -> ExitCode {
    let prepared = match arguments.cli.session.prepare() {
        Ok(prepared) => prepared,
        Err(error) => return ExitCode::from(error.tell()),
    };
    let code = start(&arguments.cli, prepared).unwrap_or_else(|error| {
        let _ = io::stderr().write_all(&notes::error(&error.to_string(), None));
        exit::FAILED
    });
    ExitCode::from(code)
}

/// Makes the two runtimes, ours first: it forks, and that must come before threads.
fn start(cli: &CliCall, prepared: PreparedSession) -> io::Result<u8> {
    let runtime = Arc::new(Runtime::start().map_err(io::Error::other)?);
    let lines = match &cli.file {
        Some(file) => Some(Lines::open(file)?),
        None => None,
    };
    let _telemetry = telemetry::start(prepared.collector.as_deref());
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = asynchronous.block_on(serve(runtime, cli, prepared.config, lines));
    // A question that nobody answered in time is still being read from the terminal, and that read
    // cannot be called off.
    asynchronous.shutdown_background();
    served
}

async fn serve(
    runtime: Arc<Runtime>,
    cli: &CliCall,
    mut config: SessionConfig,
    lines: Option<Lines>,
) -> io::Result<u8> {
    config.front_end = "call".to_owned();
    if !cli.events {
        // What a turn changed is an event, and nobody would see it.
        config.turn_diffs = TurnDiffs::Off;
    }
    let session = Session::start(runtime, config).map_err(io::Error::other)?;
    let requester = session.requester();
    let Some(lines) = lines.filter(|_| !cli.tools) else {
        let specs = requester.tools();
        let specs: Vec<_> = specs
            .iter()
            .map(|tool| {
                serde_json::json!({
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                })
            })
            .collect();
        print(&wire::as_line(&specs))?;
        return Ok(0);
    };
    let decide = cli.session.decide();
    let by_lines = decide == Decide::ByLines;
    let decider = match by_lines {
        true => None,
        false => Some(Decider::new(&decide, Feedback::Model)?),
    };
    let can_answer = decider.as_ref().is_none_or(Decider::can_answer);
    let approver = can_answer.then(|| session.approver(decide.answering()));
    let _on_desk = match &decider {
        Some(decider) => lay_on_desk(&session, &decide, decider, None).await?,
        None => None,
    };
    let mut serving = Serving {
        turn: requester.begin_turn(),
        requester,
        decider,
        approver,
        show_events: cli.events,
        waiting: VecDeque::new(),
        over: false,
        wrong_lines: false,
        refused: false,
    };
    serving.serve(&session, lines).await
}

/// What one line asks for.
struct Asked {
    calls: Vec<ToolCall>,
    /// What is no call, and how many calls stand before it.
    malformed: VecDeque<(usize, Malformed)>,
    /// The number of the line.
    line: u64,
}

impl Asked {
    fn new(line: u64, all: Vec<Result<ToolCall, Malformed>>) -> Self {
        let (mut calls, mut malformed) = (Vec::new(), VecDeque::new());
        for one in all {
            match one {
                Ok(call) => calls.push(call),
                Err(wrong) => malformed.push_back((calls.len(), wrong)),
            }
        }
        Self { calls, malformed, line }
    }
}

/// A session that is served by lines.
struct Serving {
    requester: Requester,
    turn: Turn,
    /// Who answers questions; none if lines do.
    decider: Option<Decider>,
    approver: Option<Approver>,
    show_events: bool,
    /// Calls that came while another was being made.
    waiting: VecDeque<Asked>,
    /// There are no more lines.
    over: bool,
    wrong_lines: bool,
    /// A decision was needed and nobody could give it.
    refused: bool,
}

impl Serving {
    async fn serve(&mut self, session: &Session, mut lines: Lines) -> io::Result<u8> {
        let mut events = session.events(Delivery::Complete).await;
        while let Some(event) = events.try_next() {
            self.hear(&event)?;
        }
        while let Some(mut asked) = self.next_calls(&mut lines).await? {
            let calls = std::mem::take(&mut asked.calls);
            let mut answered = 0;
            self.say_malformed(&mut asked, answered)?;
            let requester = self.requester.clone();
            let turn = std::mem::replace(&mut self.turn, requester.begin_turn());
            let (results, mut ended) = tokio::sync::mpsc::unbounded_channel();
            let calling = async {
                let told = |result| {
                    // The receiver lives as long as this call does.
                    let _ = results.send(result);
                };
                requester.call_each(calls, &turn, told).await;
                requester.end_turn(turn).await;
            };
            tokio::pin!(calling);
            loop {
                tokio::select! {
                    biased;
                    event = events.next() => if let Some(event) = event { self.hear(&event)? },
                    Some(result) = ended.recv() => {
                        self.ended(&result)?;
                        answered += 1;
                        self.say_malformed(&mut asked, answered)?;
                    }
                    line = lines.next(), if self.decider.is_none() && !self.over => {
                        self.take(line?)?;
                    }
                    _ = answer_next(&mut self.decider, self.approver.as_ref()) => {}
                    () = &mut calling => break,
                }
            }
            while let Some(event) = events.try_next() {
                self.hear(&event)?;
            }
            while let Ok(result) = ended.try_recv() {
                self.ended(&result)?;
                answered += 1;
                self.say_malformed(&mut asked, answered)?;
            }
        }
        Ok(self.exit_code())
    }

    /// Answers what is no call, where it stands among the calls.
    fn say_malformed(&mut self, asked: &mut Asked, answered: usize) -> io::Result<()> {
        while asked.malformed.front().is_some_and(|(before, _)| *before <= answered) {
            let Some((_, wrong)) = asked.malformed.pop_front() else { break };
            self.wrong_lines = true;
            print(&wire::write_malformed(asked.line, &wrong))?;
        }
        Ok(())
    }

    fn exit_code(&self) -> u8 {
        let unanswered = self.decider.as_ref().is_some_and(|one| !one.unanswered().is_empty());
        match (self.refused || unanswered, self.wrong_lines) {
            (true, _) => exit::NOBODY_DECIDED,
            (false, true) => 1,
            (false, false) => 0,
        }
    }

    fn hear(&mut self, event: &sandgate_protocol::SessionEvent) -> io::Result<()> {
        if self.show_events {
            io::stderr().write_all(&wire::as_line(event))?;
        } else if let Event::Warning(notice) = &event.event {
            let _ = io::stderr().write_all(&notes::warning(&visible_line(&notice.message)));
        }
        if let Event::ApprovalResponse(response) = &event.event
            && matches!(response.answered_by, AnsweredBy::Nobody | AnsweredBy::Timeout)
        {
            self.refused = true;
            let what = format!("nobody could decide about the call {}", response.call_id);
            let advice = "Answer with --decide approve, deny, a file, or stdin.";
            let _ = io::stderr().write_all(&notes::error(&visible_line(&what), Some(advice)));
        }
        match &mut self.decider {
            Some(decider) => {
                decider.hear(&event.event);
            }
            None => {
                if matches!(
                    event.event,
                    Event::ExecApprovalRequest(_) | Event::ApplyPatchApprovalRequest(_)
                ) {
                    print(&wire::as_line(event))?;
                }
            }
        }
        Ok(())
    }

    fn ended(&mut self, result: &sandgate_runtime::ToolResult) -> io::Result<()> {
        if let Some(error @ sandgate_protocol::CodexErr::NobodyToAsk { .. }) = &result.error {
            let _ = io::stderr().write_all(&notes::error(&visible_line(&error.to_string()), None));
        }
        print(&wire::write(result))
    }

    /// The next calls to make; none when there are no more.
    async fn next_calls(&mut self, lines: &mut Lines) -> io::Result<Option<Asked>> {
        loop {
            if let Some(asked) = self.waiting.pop_front() {
                return Ok(Some(asked));
            }
            if self.over {
                return Ok(None);
            }
            let line = lines.next().await?;
            self.take(line)?;
        }
    }

    /// Takes a line: calls wait for their turn, answers count at once.
    fn take(&mut self, line: Option<(u64, String)>) -> io::Result<()> {
        let Some((number, line)) = line else {
            self.over = true;
            if self.decider.is_none() {
                // Nobody can answer any more.
                self.approver = None;
            }
            return Ok(());
        };
        match wire::read(&line) {
            Ok(Line::Calls(calls)) => {
                self.waiting.push_back(Asked::new(number, calls));
                Ok(())
            }
            Ok(Line::Answer(id, decision)) => self.answer(number, &id, decision),
            Err(message) => self.wrong(number, &message),
        }
    }

    fn answer(
        &mut self,
        number: u64,
        id: &sandgate_protocol::ApprovalId,
        decision: sandgate_protocol::ReviewDecision,
    ) -> io::Result<()> {
        let answered = match &self.approver {
            Some(approver) => approver.answer(id, decision).map_err(|error| error.to_string()),
            None => Err("questions are not answered by lines here; see --decide".to_owned()),
        };
        match answered {
            Ok(()) => Ok(()),
            Err(message) => self.wrong(number, &message),
        }
    }

    fn wrong(&mut self, number: u64, message: &str) -> io::Result<()> {
        self.wrong_lines = true;
        print(&wire::write_error(number, message))
    }
}

/// Waits for an answer and gives it, unless lines answer.
async fn answer_next(decider: &mut Option<Decider>, approver: Option<&Approver>) {
    match decider {
        Some(decider) => {
            decider.answer(approver).await;
        }
        None => std::future::pending().await,
    }
}

/// Writes a line at once: whoever reads it waits for it.
fn print(line: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(line)?;
    stdout.flush()
}
