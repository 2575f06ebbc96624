//! `sandgate run`: one command, from the command line to the exit code, in a session of its own.

mod allow;
mod arguments;
mod show;

pub(crate) use arguments::{CliRun, RunArguments, understand};

use crate::decide::{Decider, Feedback, lay_on_desk};
use crate::session::PreparedSession;
use crate::signals::Signals;
use crate::writer::Writer;
use crate::{exit, notes, telemetry};
use arguments::Format;
use sandgate_protocol::{
    AnsweredBy, CodexErr, Event, ExecApprovalRequest, ExecExpiration, ReviewDecision,
    SIGNAL_INTERRUPT, SessionEvent, visible, visible_line,
};
use sandgate_runtime::{
    Approver, AskedCommand, Attempted, CommandLine, CommandOutcome, Delivery, KeepOutput, Runtime,
    Session, SessionConfig, Stop, command_text, new_call_id,
};
use show::Show;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

/// What came of the command.
type Outcome = Result<Attempted<CommandOutcome>, CodexErr>;

/// How many refusals are listed.
const MOST_DENIALS: usize = 8;

/// Runs the command and says how this program is to end.
pub(crate) fn run(arguments: RunArguments) -> ExitCode {
    let prepared = match arguments.session.prepare() {
        Ok(prepared) => prepared,
        Err(error) => return ExitCode::from(error.tell()),
    };
    let code = start(arguments, prepared).unwrap_or_else(|error| {
        complain(&error.to_string(), None);
        exit::FAILED
    });
    ExitCode::from(code)
}

/// Makes the two runtimes, ours first: it forks, and that must come before threads.
fn start(arguments: RunArguments, prepared: PreparedSession) -> io::Result<u8> {
    let runtime = Arc::new(Runtime::start().map_err(io::Error::other)?);
    let _telemetry = telemetry::start(prepared.collector.as_deref());
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    asynchronous.block_on(run_command(runtime, arguments, prepared))
}

async fn run_command(
    runtime: Arc<Runtime>,
    arguments: RunArguments,
    prepared: PreparedSession,
) -> io::Result<u8> {
    let stop = Stop::default();
    let signals = Signals::listen(&stop)?;
    let writer = Writer::start(&stop)?;
    let format = arguments.format;
    let show = Arc::new(Show { writer: writer.clone(), format, stop: stop.clone() });
    let decide = arguments.session.decide();
    let decider = Decider::new(&decide, Feedback::Record)?;
    let PreparedSession { config, .. } = prepared;
    let expiration = arguments.expiration(config.command_timeout);
    let session = match Session::start(runtime, of_run(config, &show)) {
        Ok(session) => session,
        Err(error) => {
            complain(&error.to_string(), notes::advice(error.kind()));
            return Ok(exit::of_failure(error.kind()));
        }
    };
    let approver = decider.can_answer().then(|| session.approver(decide.answering()));
    let _on_desk = lay_on_desk(&session, &decide, &decider, None).await?;
    let text = text_of(&arguments.command);
    let mut watch = Watch {
        show,
        stop,
        decider,
        approver,
        unanswered: false,
        asked_again: false,
        declined: false,
        unheard: None,
    };
    let outcome = watch.run(&session, arguments, expiration).await;
    if let (Ok(attempted), Format::Passthrough) = (&outcome, format) {
        writer.note(notes::of_end(&attempted.output.output, expiration)).await;
        writer.note(watch.blocked(attempted, &session)).await;
    }
    writer.finish().await;
    Ok(watch.conclude(&outcome, &text, signals.received()))
}

fn of_run(mut config: SessionConfig, show: &Arc<Show>) -> SessionConfig {
    config.front_end = "run".to_owned();
    // All of it is shown as it comes, and a file of ours would be gone before anybody read it.
    config.keep = KeepOutput::HeadAndTail;
    config.tap = Some(Arc::clone(show) as Arc<_>);
    config
}

/// The command as a person is told of it.
fn text_of(command: &CommandLine) -> String {
    match command {
        CommandLine::Script { text, .. } => visible_line(text),
        CommandLine::Argv(words) => command_text(words),
    }
}

/// Watches the one command of a session, and answers its questions.
struct Watch {
    show: Arc<Show>,
    stop: Stop,
    decider: Decider,
    approver: Option<Approver>,
    /// A decision was needed, and nobody could give it.
    unanswered: bool,
    /// There was a question about another attempt.
    asked_again: bool,
    /// A person elsewhere said no to something.
    declined: bool,
    /// Why events could not be written, if that was so.
    unheard: Option<io::Error>,
}

impl Watch {
    async fn run(
        &mut self,
        session: &Session,
        arguments: RunArguments,
        expiration: ExecExpiration,
    ) -> Outcome {
        let RunArguments { command, input, format, .. } = arguments;
        let mut events = session
            .events(match format {
                Format::Passthrough => Delivery::WithoutOutput,
                Format::JsonLines => Delivery::Complete,
            })
            .await;
        let requester = session.requester();
        let turn = requester.begin_turn().stopped_by(&self.stop);
        let asked = AskedCommand { input, expiration, ..AskedCommand::new(command) };
        let call_id = new_call_id();
        let running = requester.run_command(&call_id, asked, &turn);
        tokio::pin!(running);
        let stop = self.stop.clone();
        let outcome = loop {
            let asking = self.decider.is_open() && !stop.cancel.is_cancelled();
            tokio::select! {
                biased;
                Some(event) = events.next() => self.hear(&event).await,
                // A signal is an answer too: it calls the command off.
                () = stop.interrupt.cancelled(), if asking => {
                    self.decider.on_terminal().call_off(self.approver.as_ref());
                    stop.cancel.cancel();
                }
                (question, decision) = self.decider.answer(self.approver.as_ref()) => {
                    self.unanswered |= !self.decider.unanswered().is_empty();
                    if let Some(decision) = decision {
                        self.answered(&question, &decision).await;
                    }
                }
                outcome = &mut running => break outcome,
            }
        };
        while let Some(event) = events.try_next() {
            self.hear(&event).await;
        }
        outcome
    }

    /// What happens in the session.
    async fn hear(&mut self, event: &SessionEvent) {
        if self.unheard.is_none() {
            self.unheard = self.show.event(event).await.err();
        }
        match &event.event {
            Event::ExecApprovalRequest(request) => {
                // What the command wrote stands above the question.
                self.show.writer.finish().await;
                self.asked_again |= !request.denials.is_empty();
            }
            Event::ApprovalResponse(response) => {
                self.unanswered |=
                    matches!(response.answered_by, AnsweredBy::Nobody | AnsweredBy::Timeout);
            }
            Event::Warning(notice) => {
                self.show.writer.note(notes::warning(&visible_line(&notice.message))).await;
            }
            _ => {}
        }
        let elsewhere = self.decider.hear(&event.event);
        if let (Some(question), Event::ApprovalResponse(response)) = (elsewhere, &event.event) {
            let is_person = matches!(response.answered_by, AnsweredBy::Person(_));
            self.declined |= is_person && !response.decision.approves();
            self.answered(&question, &response.decision).await;
        }
    }

    /// Says that the command runs again, if it does.
    async fn answered(&self, question: &Event, decision: &ReviewDecision) {
        if let Event::ExecApprovalRequest(request) = question
            && decision.approves()
            && !request.denials.is_empty()
        {
            self.show.writer.note(notes::again(&how_again(decision, request))).await;
        }
    }

    /// What the sandbox refused to a command that failed, and how it could be had. Whoever has just
    /// said no to it need not be told.
    fn blocked(&self, attempted: &Attempted<CommandOutcome>, session: &Session) -> Vec<u8> {
        let output = &attempted.output.output;
        let is_person = self.decider.is_person() || self.declined;
        let told = is_person && self.asked_again && attempted.attempt == 1;
        if output.exit_code == 0 || output.denials.is_empty() || output.cancelled || told {
            return Vec::new();
        }
        let mut said = notes::blocked(&output.denials, MOST_DENIALS);
        let home = sandgate_runtime::policy::home();
        for line in allow::how(&output.denials, session.sandbox_policy(), home.as_deref()) {
            said.extend(notes::hint(&line));
        }
        said
    }

    /// Tells what went wrong, if something did, and finds the exit code.
    fn conclude(&self, outcome: &Outcome, text: &str, received: Option<i32>) -> u8 {
        let tap = outcome.as_ref().ok().and_then(|attempted| attempted.output.unheard.as_ref());
        let unwritten = self.show.writer.failure().or(self.unheard.as_ref()).or(tap);
        match (unwritten, outcome, received) {
            // The reader was too slow for somebody who wanted us to end.
            (Some(error), _, Some(signal)) if error.kind() == io::ErrorKind::TimedOut => {
                exit::of_signal(signal)
            }
            // Like any other filter whose reader has seen enough: no word about it.
            (Some(error), _, _) if error.kind() == io::ErrorKind::BrokenPipe => exit::OUTPUT_CLOSED,
            (Some(error), _, _) => {
                complain(&format!("cannot write the command's output: {error}"), None);
                exit::FAILED
            }
            (None, Ok(_), _) if self.unanswered => {
                let what = format!("nobody could be asked whether this may run again: {text}");
                complain(&what, Some("Answer with --decide approve, deny or a file."));
                exit::NOBODY_DECIDED
            }
            (None, Ok(attempted), _) => exit::of_command(&attempted.output.output, received),
            (None, Err(error), _) => self.refused(error, text, received),
        }
    }

    /// Tells why the command was not run, and finds the exit code.
    fn refused(&self, error: &CodexErr, text: &str, received: Option<i32>) -> u8 {
        match error {
            CodexErr::NotStarted { kind, reason } => {
                complain(reason, notes::advice(*kind));
                exit::of_failure(*kind)
            }
            CodexErr::UserAborted => {
                let what = if self.asked_again { "not run again" } else { "not run" };
                complain(&format!("{what}: it was called off"), None);
                exit::of_signal(received.unwrap_or(SIGNAL_INTERRUPT))
            }
            CodexErr::NobodyToAsk { reason } => {
                let what = format!("nobody could be asked whether this may run: {text}");
                complain(&what, Some(&format!("Asked because {}.", visible_line(reason))));
                complain("answer with --decide approve, deny or a file", None);
                exit::NOBODY_DECIDED
            }
            CodexErr::ApprovalTimeout => {
                complain(&format!("nobody answered in time: May this run? {text}"), None);
                exit::NOBODY_DECIDED
            }
            CodexErr::ApprovalDenied { .. } if self.unanswered => {
                complain(&format!("there was no answer to: May this run? {text}"), None);
                exit::NOBODY_DECIDED
            }
            CodexErr::ApprovalDenied { feedback } => {
                let why = feedback.as_deref().map(|why| format!(": {}", visible_line(why)));
                complain(&format!("not run: the answer was no{}", why.unwrap_or_default()), None);
                exit::REFUSED
            }
            CodexErr::Forbidden { reason } => {
                complain(&format!("not run: {}", visible(reason)), None);
                exit::REFUSED
            }
            other => {
                complain(&visible(&other.to_string()), None);
                exit::FAILED
            }
        }
    }
}

/// What another attempt has that the first had not.
fn how_again(decision: &ReviewDecision, request: &ExecApprovalRequest) -> String {
    match (decision, &request.grant_offer) {
        (ReviewDecision::ApprovedWithGrant { .. }, Some(offer)) => {
            format!("and may {}", offer.summary)
        }
        _ => "without the sandbox".to_owned(),
    }
}

/// Says it on standard error, if anybody can hear it there.
fn complain(what: &str, advice: Option<&str>) {
    let _ = io::stderr().write_all(&notes::error(what, advice));
}
