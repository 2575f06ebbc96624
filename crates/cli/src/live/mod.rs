//! `sandgate session` and `sandgate attach`: processes that live on, in the daemon.

mod arguments;
mod attach;
mod list;
mod raw;
mod talk;

pub(crate) use arguments::{AttachArguments, CliSessions, SessionArguments, understand};

use crate::decide::{Decide, Decider, Feedback};
use crate::settings::config_home;
use crate::{exit, notes};
use arguments::{Asked, Form, Sent, Started, Verb, Victims};
use sandgate_protocol::{ProcessInfo, ProcessState};
use sandgate_runtime::daemon::{self, Client, DaemonError, Launcher, Place, Reply, Request};
use serde_json::{Value, json};
use std::io::{self, Write as _};
use std::process::ExitCode;
use talk::Talk;

/// What this comes to: an exit code, or why there is none.
type Ended = Result<u8, DaemonError>;

/// Does what `sandgate session` is to do, and says how this program is to end.
pub(crate) fn session(arguments: &SessionArguments) -> ExitCode {
    conclude(run(async {
        let place = place()?;
        match &arguments.verb {
            Verb::Start(started) => start(&place, started, arguments.form).await,
            Verb::Send(sent) => send(&place, sent, arguments.form).await,
            Verb::Read(asked) => read(&place, asked, arguments.form).await,
            Verb::List => list(&place, arguments.form).await,
            Verb::Kill(victims) => kill(&place, victims, arguments.form).await,
            Verb::Stop => stop(&place).await,
        }
    }))
}

/// Does what `sandgate attach` is to do.
pub(crate) fn attach(arguments: &AttachArguments) -> ExitCode {
    conclude(run(async {
        match Client::find(&place()?).await? {
            Some(client) => attach::attach(client, &arguments.id).await,
            None => Err(no_process(&arguments.id)),
        }
    }))
}

fn run(work: impl Future<Output = Ended>) -> Ended {
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let asynchronous = asynchronous.map_err(failed)?;
    let ended = asynchronous.block_on(work);
    // A thread may still wait for a line of the terminal, and nobody waits for that.
    asynchronous.shutdown_background();
    ended
}

fn conclude(ended: Ended) -> ExitCode {
    ExitCode::from(ended.unwrap_or_else(|error| {
        let _ = io::stderr().write_all(&notes::error(&error.to_string(), None));
        exit::FAILED
    }))
}

fn place() -> Result<Place, DaemonError> {
    let home = config_home().ok_or(DaemonError::NoSettings)?;
    let home = std::path::absolute(home).map_err(failed)?;
    Ok(Place::in_settings(&home))
}

/// What failed on this side.
#[expect(clippy::needless_pass_by_value, reason = "it is what errors are mapped with")]
fn failed(error: io::Error) -> DaemonError {
    DaemonError::Refused(error.to_string())
}

fn no_process(id: &str) -> DaemonError {
    let id: String = id.chars().take(40).collect();
    DaemonError::Refused(format!("there is no process {id:?}, and none is alive"))
}

async fn start(place: &Place, started: &Started, form: Form) -> Ended {
    // A person may be asked about the directory first.
    let terms = match started.session.terms() {
        Ok(terms) => terms,
        Err(error) => return Ok(error.tell()),
    };
    let program = std::env::current_exe().map_err(failed)?;
    let client = Client::find_or_start(place, &Launcher { program }).await?;
    let decider = decider(&started.session.decide())?;
    let mut talk = Talk { client, decider };
    talk.open(&Request::Open { terms }).await?;
    let result = talk.call("exec_command", &started.arguments).await?;
    talk.conclude(&result, form)
}

async fn send(place: &Place, sent: &Sent, form: Form) -> Ended {
    let mut talk = using(place, &sent.id, &Decide::of(sent.decide.as_deref())).await?;
    let result = talk.call("write_stdin", &sent.arguments).await?;
    talk.conclude(&result, form)
}

async fn read(place: &Place, asked: &Asked, form: Form) -> Ended {
    let mut talk = using(place, &asked.id, &Decide::Deny).await?;
    let result = talk.call("read_output", &asked.arguments).await?;
    talk.tell(&result, form)
}

async fn list(place: &Place, form: Form) -> Ended {
    let processes = match Client::find(place).await? {
        Some(mut client) => processes(&mut client).await?,
        None => Vec::new(),
    };
    let text = match form {
        Form::Json => format!("{}\n", json!(processes)),
        Form::Text => list::draw(&processes),
    };
    if processes.is_empty() && form == Form::Text {
        let none = notes::status("no process is alive; sandgate session start begins one");
        let _ = io::stderr().write_all(&none);
    }
    print(text.as_bytes())
}

async fn kill(place: &Place, victims: &Victims, form: Form) -> Ended {
    let ids = match victims {
        Victims::Named(ids) => ids.clone(),
        Victims::All => match Client::find(place).await? {
            Some(mut client) => {
                let all = processes(&mut client).await?;
                let lives = |process: &ProcessInfo| process.state != ProcessState::Exited;
                all.into_iter().filter(lives).map(|process| process.process_id).collect()
            }
            None => Vec::new(),
        },
    };
    let mut code = 0;
    for id in ids {
        let killed = async {
            let mut talk = using(place, &id, &Decide::Deny).await?;
            let result = talk.call("kill_process", &json!({ "process_id": id })).await?;
            talk.tell(&result, form)
        };
        match killed.await {
            Ok(0) => {}
            Ok(failed) => code = failed,
            Err(error) => {
                // The others are to end all the same.
                let _ = io::stderr().write_all(&notes::error(&error.to_string(), None));
                code = exit::FAILED;
            }
        }
    }
    Ok(code)
}

async fn stop(place: &Place) -> Ended {
    if !daemon::stop(place).await? {
        let _ = io::stderr().write_all(&notes::status("no daemon runs"));
    }
    Ok(0)
}

/// Talks in the session of a process.
async fn using(place: &Place, id: &str, decide: &Decide) -> Result<Talk, DaemonError> {
    let Some(client) = Client::find(place).await? else { return Err(no_process(id)) };
    let mut talk = Talk { client, decider: decider(decide)? };
    talk.open(&Request::Use { process_id: id.to_owned() }).await?;
    Ok(talk)
}

fn decider(decide: &Decide) -> Result<Decider, DaemonError> {
    Decider::new(decide, Feedback::Record).map_err(failed)
}

async fn processes(client: &mut Client) -> Result<Vec<ProcessInfo>, DaemonError> {
    match client.ask(&Request::List {}).await? {
        Reply::Processes { processes } => Ok(processes),
        _ => Err(DaemonError::Gone),
    }
}

/// Writes to standard output. A reader who has seen enough is no error.
fn print(bytes: &[u8]) -> Ended {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(0),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(exit::OUTPUT_CLOSED),
        Err(error) => Err(DaemonError::Refused(format!("cannot write the output: {error}"))),
    }
}

/// A map without what was not said.
fn said<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect())
}
