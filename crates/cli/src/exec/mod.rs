//! `sandgate exec`: one prompt, all that a model does about it, and its last answer.

mod arguments;
mod show;

pub(crate) use arguments::{
    CliExec, CliResume, ExecArguments, Which, understand, understand_resume,
};
pub(crate) use show::Show;

use crate::agent::{Conversing, PreparedAgent, converse, start};
use crate::decide::{Decider, Feedback, lay_on_desk};
use crate::session::PreparedSession;
use crate::settings::{SettingsError, config_home};
use crate::signals::Signals;
use crate::writer::Writer;
use crate::{exit, notes};
use sandgate_agent::rollout::{self, Recorded, RolloutError};
use sandgate_agent::{Conversation, McpServers, TurnEnd};
use sandgate_protocol::{
    AnsweredBy, Event, SIGNAL_INTERRUPT, SessionEvent, SessionSource, visible_line,
};
use sandgate_runtime::{Approver, Delivery, Events, Runtime, Stop};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Lets the model work and says how this program is to end.
pub(crate) fn exec(mut arguments: ExecArguments) -> ExitCode {
    let prepared = prepare(&mut arguments);
    let (recorded, session, agent) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return ExitCode::from(error.tell()),
    };
    let (collector, keys) = (session.collector.clone(), Arc::clone(&agent.keys));
    let code = start(collector.as_deref(), &keys, |runtime| {
        work(runtime, arguments, recorded, session, agent)
    });
    let code = code.unwrap_or_else(|error| {
        complain(&error.to_string());
        exit::FAILED
    });
    ExitCode::from(code)
}

/// Reads what there is to read: the conversation that is gone on with, the settings, and what the model
/// is told.
fn prepare(
    arguments: &mut ExecArguments,
) -> Result<(Option<Recorded>, PreparedSession, PreparedAgent), SettingsError> {
    let recorded = recorded(&arguments.conversation)
        .map_err(|error| SettingsError::usage(error.to_string()))?;
    if let Some(recorded) = &recorded {
        let meta = &recorded.meta;
        arguments.session.cd.get_or_insert_with(|| meta.cwd.clone());
        arguments.model.goes_on(meta);
    }
    let session = arguments.session.prepare()?;
    let agent = arguments.model.prepare(&session, SessionSource::Exec)?;
    Ok((recorded, session, agent))
}

/// The conversation that is meant, if it is one that was.
pub(crate) fn recorded(which: &Which) -> Result<Option<Recorded>, RolloutError> {
    let home = config_home().unwrap_or_default();
    let path = match which {
        Which::New | Which::Ephemeral => return Ok(None),
        Which::Named(name) => rollout::find(&home, name)?,
        Which::Last => {
            let last = rollout::list(&home, 1, |meta| !meta.is_of_subagent())?.pop();
            last.ok_or(RolloutError::None)?.path
        }
    };
    rollout::read(&path).map(Some)
}

async fn work(
    runtime: Arc<Runtime>,
    arguments: ExecArguments,
    recorded: Option<Recorded>,
    mut prepared: PreparedSession,
    agent: PreparedAgent,
) -> io::Result<u8> {
    let stop = Stop::default();
    let signals = Signals::listen(&stop)?;
    // Before the model does anything: what it has run could put a link in the file's place.
    let answer = arguments.output_last_message.as_deref().map(AnswerFile::open).transpose()?;
    prepared.config.front_end = "exec".to_owned();
    prepared.config.source = Some(SessionSource::Exec);
    let recorded_in = config_home().filter(|_| arguments.conversation != Which::Ephemeral);
    for note in &agent.notes {
        let _ = io::stderr().write_all(&notes::warning(&visible_line(note)));
    }
    let mcp_servers = agent.mcp_servers.clone();
    let conversing = Conversing { recorded, recorded_in, output_schema: arguments.output_schema };
    let (session, conversation) = converse(runtime, prepared, agent, conversing)?;
    let decide = arguments.session.decide();
    let decider = Decider::new(&decide, Feedback::Model)?;
    let approver = decider.can_answer().then(|| session.approver(decide.answering()));
    let json = arguments.json.then(|| Writer::start(&stop)).transpose()?;
    let show = Show::new(json);
    let _on_desk = lay_on_desk(&session, &decide, &decider, Some(conversation.id())).await?;
    let mut watch = Watch::new(show, decider, approver, stop.clone());
    let input = arguments.input;
    // From here on somebody hears what they ask and why they fail.
    let events = session.events(Delivery::Complete).await;
    let mcp = McpServers::start(&session.requester(), mcp_servers, &std::env::vars_os().collect());
    let mut conversation = conversation.with_mcp(mcp);
    let turn = async move {
        let end = conversation.turn(input, &stop).await;
        (conversation, end)
    };
    let (conversation, end) = watch.until(events, turn).await?;
    let code = watch.conclude(&conversation, &end, signals.received())?;
    if let (Some(answer), TurnEnd::Complete { last_message }) = (answer, &end) {
        answer.write(last_message.as_deref().unwrap_or_default())?;
    }
    Ok(code)
}

/// The file that the last answer goes to, held from the start.
struct AnswerFile {
    file: std::fs::File,
    name: PathBuf,
}

impl AnswerFile {
    fn open(name: &Path) -> io::Result<Self> {
        let mut options = std::fs::File::options();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        {
            use rustix::fs::OFlags;
            let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
            std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
        }
        let opened = options.open(name).and_then(|file| match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::other("it is not a file")),
        });
        match opened {
            Ok(file) => Ok(Self { file, name: name.to_owned() }),
            Err(error) => Err(cannot_write(name, &error)),
        }
    }

    fn write(mut self, text: &str) -> io::Result<()> {
        let written = self.file.set_len(0).and_then(|()| self.file.write_all(text.as_bytes()));
        written.map_err(|error| cannot_write(&self.name, &error))
    }
}

fn cannot_write(file: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write {}: {error}", file.display()))
}

/// Watches work, and has its questions answered.
pub(crate) struct Watch {
    show: Show,
    decider: Decider,
    approver: Option<Arc<Approver>>,
    stop: Stop,
    /// What happened while a question was on the terminal, to be shown after it.
    held: Vec<Arc<SessionEvent>>,
    /// A decision was needed, and nobody could give it.
    nobody: bool,
}

impl Watch {
    pub(crate) fn new(
        show: Show,
        decider: Decider,
        approver: Option<Approver>,
        stop: Stop,
    ) -> Self {
        let approver = approver.map(Arc::new);
        Self { show, decider, approver, stop, held: Vec::new(), nobody: false }
    }

    /// Whether a decision was needed, and nobody could give it.
    pub(crate) fn is_nobody_there(&self) -> bool {
        self.nobody
    }

    /// Has the work done. It goes on while a question is open: a subagent may have no part in that.
    pub(crate) async fn until<T: Send + 'static>(
        &mut self,
        mut events: Events,
        work: impl Future<Output = T> + Send + 'static,
    ) -> io::Result<T> {
        let mut working = tokio::spawn(work);
        let stop = self.stop.clone();
        // To end one command and to let the model go on is not what Ctrl-C is pressed for. This does not
        // wait for whoever reads what is shown here.
        let (on_terminal, approver) = (self.decider.on_terminal(), self.approver.clone());
        let calling_off = tokio::spawn(async move {
            stop.interrupt.cancelled().await;
            on_terminal.call_off(approver.as_deref());
            stop.cancel.cancel();
        });
        let ended = loop {
            tokio::select! {
                biased;
                Some(event) = events.next() => self.hear(&event).await?,
                _ = self.decider.answer(self.approver.as_deref()) => self.answered().await?,
                ended = &mut working => break ended.map_err(io::Error::other)?,
            }
        };
        calling_off.abort();
        while let Some(event) = events.try_next() {
            self.hear(&event).await?;
        }
        self.show_held().await?;
        self.show.end().await;
        Ok(ended)
    }

    async fn hear(&mut self, event: &Arc<SessionEvent>) -> io::Result<()> {
        if let Event::ApprovalResponse(response) = &event.event {
            self.nobody |= matches!(response.answered_by, AnsweredBy::Nobody | AnsweredBy::Timeout);
        }
        // Nothing is written into a question.
        let was_asking = self.decider.is_asking();
        match was_asking && !self.show.is_json() {
            true if Show::shows(&event.event) => self.held.push(Arc::clone(event)),
            true => {}
            false => self.show.event(event).await?,
        }
        if matches!(
            event.event,
            Event::ExecApprovalRequest(_) | Event::ApplyPatchApprovalRequest(_)
        ) {
            self.show.pause();
        }
        if self.decider.hear(&event.event).is_some() {
            self.answered().await?;
        }
        Ok(())
    }

    /// A question was answered, here or elsewhere.
    async fn answered(&mut self) -> io::Result<()> {
        self.nobody |= !self.decider.unanswered().is_empty();
        if !self.decider.is_open() {
            self.show_held().await?;
            self.show.go_on();
        }
        Ok(())
    }

    async fn show_held(&mut self) -> io::Result<()> {
        for event in std::mem::take(&mut self.held) {
            self.show.event(&event).await?;
        }
        Ok(())
    }

    /// Prints the last answer, tells what went wrong, and finds the exit code.
    fn conclude(
        &self,
        conversation: &Conversation,
        end: &TurnEnd,
        received: Option<i32>,
    ) -> io::Result<u8> {
        match end {
            TurnEnd::Complete { last_message } => {
                if let Some(message) = last_message.as_deref().filter(|_| !self.show.is_json()) {
                    let mut stdout = io::stdout().lock();
                    stdout.write_all(sandgate_protocol::visible(message).as_bytes())?;
                    stdout.write_all(b"\n")?;
                    stdout.flush()?;
                }
                if !self.nobody {
                    return Ok(0);
                }
                complain("a decision was needed and nobody could give it; see --decide");
                Ok(exit::NOBODY_DECIDED)
            }
            TurnEnd::Aborted => {
                complain("called off");
                self.hint(conversation);
                Ok(exit::of_signal(received.unwrap_or(SIGNAL_INTERRUPT)))
            }
            TurnEnd::Limit(reason) => {
                complain(&visible_line(reason));
                self.hint(conversation);
                Ok(exit::TURN_FAILED)
            }
            TurnEnd::Failed(error) => {
                complain(&visible_line(&error.to_string()));
                Ok(exit::TURN_FAILED)
            }
        }
    }

    fn hint(&self, conversation: &Conversation) {
        if !self.show.is_json() && conversation.is_recorded() {
            let hint =
                format!("go on with: sandgate resume {} 'what comes next'", conversation.id());
            let _ = io::stderr().write_all(&notes::hint(&hint));
        }
    }
}

/// Says it on standard error, if anybody can hear it there.
fn complain(what: &str) {
    let _ = io::stderr().write_all(&notes::error(what, None));
}
