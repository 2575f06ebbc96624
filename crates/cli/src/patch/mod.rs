//! `sandgate patch`: a patch from a file, applied or only looked at, the way that a model's goes.

mod shown;

use crate::arguments::usage_error;
use crate::decide::{Decide, Decider, Feedback, lay_on_desk};
use crate::sandbox::Mode;
use crate::session::{Asking, CliSession};
use crate::settings::CliSettings;
use crate::signals::Signals;
use crate::{exit, notes};
use clap::error::ErrorKind;
use sandgate_protocol::{CodexErr, Event, SIGNAL_INTERRUPT, visible, visible_line};
use sandgate_runtime::audit::PatchedFile;
use sandgate_runtime::{
    BrokenPatches, Delivery, LARGEST_PATCH, PatchApproval, Requester, Runtime, Session,
    SessionConfig, Stop, Turn, new_call_id,
};
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

const HELP: &str = "\
Examples:
  sandgate patch check fix.patch            what it would change, and whether you would be asked
  sandgate patch apply fix.patch            all of its files or none
  sandgate patch apply --cd ../other -      from standard input, for files there

The text is in the apply_patch language, from *** Begin Patch to *** End Patch.

Exit codes: 0 when it was applied, or would be without a question; 1 when it is no patch or does
not fit the files; 77 when a decision was needed and nobody could give it, or would be needed;
78 when it was refused, or would be; 130 if you called it off at the question; 125 if sandgate
itself failed; 2 if this command line makes no sense.";

/// What may follow `sandgate patch`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct CliPatch {
    #[command(subcommand)]
    verb: CliVerb,
}

#[derive(Debug, clap::Subcommand)]
enum CliVerb {
    /// Change the files as the patch says: all of them or none
    #[command(after_help = HELP)]
    Apply(CliText),
    /// Say what the patch would change, and change nothing
    #[command(after_help = HELP)]
    Check(CliText),
}

#[derive(Debug, clap::Args)]
struct CliText {
    /// The file with the patch, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Where the paths of the patch start, which is the workspace
    #[arg(long, value_name = "DIR")]
    cd: Option<PathBuf>,

    /// When a person is asked: untrusted, on-failure, on-request, never [default: as your settings
    /// say]
    #[arg(long, value_enum, value_name = "POLICY", hide_possible_values = true)]
    ask_for_approval: Option<Asking>,

    /// Where the patch may write: read-only, workspace-write, danger-full-access [default: as your
    /// settings say]
    #[arg(long, value_enum, value_name = "MODE", hide_possible_values = true)]
    sandbox: Option<Mode>,

    /// Let it change files in this directory too; with workspace-write
    #[arg(long, value_name = "DIR")]
    writable: Vec<PathBuf>,

    /// Answer the question without asking: approve, deny, or a file with an answer (approve, session,
    /// deny, abort)
    #[arg(long, value_name = "ANSWER")]
    decide: Option<String>,

    /// Report as one line of JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    settings: CliSettings,
}

/// What `sandgate patch` is to do.
#[derive(Debug)]
pub(crate) struct PatchArguments {
    verb: Verb,
    file: PathBuf,
    session: CliSession,
    format: Format,
}

/// What is done with the patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Apply,
    Check,
}

/// Who reads what is written to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// A person.
    Lines,
    /// A program.
    Json,
}

/// Turns what was written into what is meant.
pub(crate) fn understand(cli: CliPatch) -> Result<PatchArguments, clap::Error> {
    let (verb, name, text) = match cli.verb {
        CliVerb::Apply(text) => (Verb::Apply, "patch apply", text),
        CliVerb::Check(text) => (Verb::Check, "patch check", text),
    };
    let CliText { file, cd, ask_for_approval, sandbox, writable, decide, json, settings } = text;
    let approval_timeout = None;
    let session = CliSession {
        cd,
        ask_for_approval,
        sandbox,
        writable,
        network: false,
        decide,
        approval_timeout,
        full_auto: false,
        settings,
    };
    let conflict = |message| usage_error(name, ErrorKind::ArgumentConflict, message);
    session.check().map_err(conflict)?;
    if session.decide() == Decide::ByLines {
        let message = "--decide stdin is for sandgate call; write ./stdin for a file of that name";
        return Err(conflict(message.to_owned()));
    }
    let format = if json { Format::Json } else { Format::Lines };
    Ok(PatchArguments { verb, file, session, format })
}

/// Does it and says how this program is to end.
pub(crate) fn patch(arguments: &PatchArguments) -> ExitCode {
    let prepared = match arguments.session.prepare() {
        Ok(prepared) => prepared,
        Err(error) => return ExitCode::from(error.tell()),
    };
    let code = start(arguments, prepared.config).unwrap_or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => exit::OUTPUT_CLOSED,
        _ => {
            complain(&error.to_string(), None);
            exit::FAILED
        }
    });
    ExitCode::from(code)
}

/// Makes the two runtimes, ours first: it forks, and that must come before threads.
fn start(arguments: &PatchArguments, config: SessionConfig) -> io::Result<u8> {
    let runtime = Arc::new(Runtime::start().map_err(io::Error::other)?);
    let text = match read(&arguments.file)? {
        Ok(text) => text,
        Err(reason) => {
            let error = CodexErr::InvalidArguments { tool: "apply_patch".to_owned(), reason };
            return refused(arguments, &error, Unanswered::No, None);
        }
    };
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    asynchronous.block_on(work(runtime, arguments, config, &text))
}

/// The text of a patch, or why it cannot be one.
fn read(file: &Path) -> io::Result<Result<String, String>> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", name_of(file)));
    let source: Box<dyn Read> = match file.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(file).map_err(named)?),
    };
    let mut bytes = Vec::new();
    source.take(LARGEST_PATCH as u64 + 1).read_to_end(&mut bytes).map_err(named)?;
    if bytes.len() > LARGEST_PATCH {
        return Ok(Err(format!("the patch is longer than {LARGEST_PATCH} bytes; split it")));
    }
    Ok(String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line}: it is not UTF-8")
    }))
}

/// What a person calls the source of a patch.
fn name_of(file: &Path) -> String {
    match file.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => visible_line(&file.to_string_lossy()),
    }
}

async fn work(
    runtime: Arc<Runtime>,
    arguments: &PatchArguments,
    mut config: SessionConfig,
    text: &str,
) -> io::Result<u8> {
    let stop = Stop::default();
    let signals = Signals::listen(&stop)?;
    let decide = arguments.session.decide();
    let decider = Decider::new(&decide, Feedback::Record)?;
    config.front_end = "patch".to_owned();
    if arguments.verb == Verb::Check {
        // Nothing is changed, so there will be nothing to record.
        config.audit = None;
        config.broken_patches = BrokenPatches::Left;
    }
    let session = match Session::start(runtime, config) {
        Ok(session) => session,
        Err(error) => {
            complain(&error.to_string(), notes::advice(error.kind()));
            return Ok(exit::of_failure(error.kind()));
        }
    };
    let requester = session.requester();
    let turn = requester.begin_turn().stopped_by(&stop);
    match arguments.verb {
        Verb::Check => check(arguments, &requester, &turn, text),
        Verb::Apply => {
            let _on_desk = lay_on_desk(&session, &decide, &decider, None).await?;
            let (applied, unanswered) =
                apply(&session, &turn, text, decider, decide.answering()).await;
            match applied {
                Ok(files) => {
                    print(&match arguments.format {
                        Format::Lines => shown::applied(&files, &turn.cwd),
                        Format::Json => shown::applied_as_json(&files),
                    })?;
                    Ok(0)
                }
                Err(error) => refused(arguments, &error, unanswered, signals.received()),
            }
        }
    }
}

/// Whether a question was asked and nobody could answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unanswered {
    Yes,
    No,
}

/// Applies a patch while its question, if there is one, is answered. Says too whether nobody could.
async fn apply(
    session: &Session,
    turn: &Turn,
    text: &str,
    mut decider: Decider,
    answering: &str,
) -> (Result<Vec<PatchedFile>, CodexErr>, Unanswered) {
    let approver = decider.can_answer().then(|| session.approver(answering));
    let mut events = session.events(Delivery::WithoutOutput).await;
    let (requester, call_id) = (session.requester(), new_call_id());
    let applying = requester.apply_patch(&call_id, text, turn);
    tokio::pin!(applying);
    let stop = turn.stop();
    let applied = loop {
        let asking = decider.is_open() && !stop.cancel.is_cancelled();
        tokio::select! {
            biased;
            Some(event) = events.next() => {
                warn_of(&event.event);
                decider.hear(&event.event);
            }
            // A signal is an answer too: it calls the patch off.
            () = stop.interrupt.cancelled(), if asking => {
                decider.on_terminal().call_off(approver.as_ref());
                turn.cancel();
            }
            _ = decider.answer(approver.as_ref()) => {}
            applied = &mut applying => break applied,
        }
    };
    while let Some(event) = events.try_next() {
        warn_of(&event.event);
    }
    let unanswered = match decider.unanswered().is_empty() {
        true => Unanswered::No,
        false => Unanswered::Yes,
    };
    (applied, unanswered)
}

fn check(
    arguments: &PatchArguments,
    requester: &Requester,
    turn: &Turn,
    text: &str,
) -> io::Result<u8> {
    let checked = match requester.check_patch(text, turn) {
        Ok(checked) => checked,
        Err(error) => return refused(arguments, &error, Unanswered::No, None),
    };
    print(&match arguments.format {
        Format::Lines => shown::checked(&checked, &turn.cwd),
        Format::Json => shown::checked_as_json(&checked),
    })?;
    Ok(match checked.approval {
        PatchApproval::NotNeeded => 0,
        PatchApproval::Needed { .. } => exit::NOBODY_DECIDED,
        PatchApproval::Forbidden { .. } => exit::REFUSED,
    })
}

/// Tells why nothing was changed, and finds the exit code.
fn refused(
    arguments: &PatchArguments,
    error: &CodexErr,
    unanswered: Unanswered,
    received: Option<i32>,
) -> io::Result<u8> {
    let file = name_of(&arguments.file);
    let (what, advice, code) = match error {
        CodexErr::InvalidArguments { reason, .. } | CodexErr::ToolExecutionFailed(reason) => {
            (format!("{file}: {}", visible(reason)), None, exit::DOES_NOT_FIT)
        }
        CodexErr::NobodyToAsk { reason } => {
            let what = format!("{file}: nobody could be asked: {}", visible_line(reason));
            (what, Some(ANSWER), exit::NOBODY_DECIDED)
        }
        CodexErr::ApprovalTimeout => {
            let what = format!("{file}: nobody answered in time whether it may be applied");
            (what, Some(ANSWER), exit::NOBODY_DECIDED)
        }
        CodexErr::ApprovalDenied { .. } if unanswered == Unanswered::Yes => {
            let what = format!("{file}: there was no answer to whether it may be applied");
            (what, Some(ANSWER), exit::NOBODY_DECIDED)
        }
        CodexErr::ApprovalDenied { feedback } => {
            let why = feedback.as_deref().map(|why| format!(": {}", visible_line(why)));
            let what = format!("not applied: the answer was no{}", why.unwrap_or_default());
            (what, None, exit::REFUSED)
        }
        CodexErr::Forbidden { reason } => (visible(reason), None, exit::REFUSED),
        CodexErr::UserAborted => {
            let code = exit::of_signal(received.unwrap_or(SIGNAL_INTERRUPT));
            ("not applied: it was called off".to_owned(), None, code)
        }
        other => (visible(&other.to_string()), None, exit::FAILED),
    };
    complain(&what, advice);
    if arguments.format == Format::Json {
        print(&shown::refused_as_json(error))?;
    }
    Ok(code)
}

const ANSWER: &str = "Answer with --decide approve, deny or a file.";

/// Tells of what stops nothing.
fn warn_of(event: &Event) {
    if let Event::Warning(notice) = event {
        let _ = io::stderr().write_all(&notes::warning(&visible_line(&notice.message)));
    }
}

/// Says it on standard error, if anybody can hear it there.
fn complain(what: &str, advice: Option<&str>) {
    let _ = io::stderr().write_all(&notes::error(what, advice));
}

fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
