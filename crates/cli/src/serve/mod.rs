//! `sandgate serve`: the gate over HTTP, for programs and for the console.

mod arguments;
mod door;
mod token_file;

pub(crate) use arguments::{CliServe, ServeArguments, understand};

use crate::open::CliOpener;
use crate::say::{self, say};
use crate::settings::{SettingsError, config_home};
use crate::signals::Signals;
use crate::telemetry::{self, Figures};
use crate::{exit, notes};
use door::{Door, Listen};
use sandgate_protocol::{ShownQuestion, visible_line};
use sandgate_runtime::{Desk, OpenQuestion, Runtime, Stop};
use sandgate_server::http::{Limits, Reached, Server, ServerOptions, Tokens, serve as serve_http};
use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use token_file::TokenFile;
use tokio_util::sync::CancellationToken;

/// How much of a command a line has that tells of a question, in characters.
const MOST_SHOWN: usize = 120;

/// Serves until somebody ends it.
pub(crate) fn serve(arguments: ServeArguments) -> ExitCode {
    // Here, a person who sits there can be asked whether they trust the directory.
    let prepared = match arguments.session.prepare() {
        Ok(prepared) => prepared,
        Err(error) => return ExitCode::from(error.tell()),
    };
    let set = prepared.settings.settings().server.as_ref().and_then(|set| set.listen.as_deref());
    let listen = match arguments.listen(set) {
        Ok(listen) => listen,
        Err(why) => {
            let why = format!("server.listen of your settings: {why}");
            return ExitCode::from(SettingsError::usage(why).tell());
        }
    };
    let code = start(prepared.collector.as_deref(), &listen, arguments).unwrap_or_else(|error| {
        say(&notes::error(&visible_line(&error.to_string()), None));
        exit::FAILED
    });
    say::finish();
    ExitCode::from(code)
}

/// Makes the two runtimes, ours first: it forks, and that must come before threads.
fn start(collector: Option<&str>, listen: &Listen, arguments: ServeArguments) -> io::Result<u8> {
    let runtime = Arc::new(Runtime::start().map_err(io::Error::other)?);
    say::beside()?;
    let figures = Figures::default();
    let _telemetry = telemetry::start_counting(collector, Some(figures.clone()));
    let asynchronous = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = asynchronous.block_on(work(runtime, figures, listen, arguments));
    // What somebody may still be reading from a disk cannot be called off.
    asynchronous.shutdown_background();
    code
}

async fn work(
    runtime: Arc<Runtime>,
    figures: Figures,
    listen: &Listen,
    arguments: ServeArguments,
) -> io::Result<u8> {
    let stop = Stop::default();
    let _signals = Signals::listen(&stop)?;
    let home = config_home().ok_or_else(|| io::Error::other("there is no home directory"))?;
    let directory = home.join("serve");
    sandgate_runtime::make_private(&directory)?;
    let ServeArguments { hosts, also, exposure, session, model, .. } = arguments;
    let door = Door::open(listen, exposure.tls.as_ref(), &hosts).await?;
    let tokens = Arc::new(Tokens::random()?);
    let workspace = session.cd.clone().unwrap_or_else(|| PathBuf::from("."));
    let workspace = workspace.canonicalize().map_err(|error| {
        io::Error::new(error.kind(), format!("cannot use {}: {error}", workspace.display()))
    })?;
    let desk = Arc::new(Desk::default());
    let (signs_in, address) = (Arc::clone(&tokens), door.address().to_owned());
    let console = move || signs_in.code().ok().map(|code| format!("{address}/#code={code}"));
    desk.set_console(console.clone());
    let _on_socket = lay_open(&desk, &home);
    let server = Server::new(ServerOptions {
        opener: Arc::new(CliOpener { runtime, session, model }),
        desk: Arc::clone(&desk),
        settings: Some(home),
        scratch: directory.clone(),
        workspaces: std::iter::once(workspace).chain(also).collect(),
        person: Some(crate::mcp::client_person()),
        tokens: Arc::clone(&tokens),
        reached: Reached {
            hosts: hosts.into_iter().chain(door.hosts()).collect(),
            tls: door.is_tls(),
        },
        enforcement: sandgate_runtime::enforcement(),
        figures: Box::new(move || figures.text()),
        notes: Box::new(|line| {
            say(&notes::warning(&visible_line(line)));
        }),
        limits: Limits::default(),
    });
    let file = TokenFile::write(&directory, door.name(), door.address(), tokens.requester())?;
    tell(&door, &file, console);
    let telling = tokio::spawn(tell_questions(Arc::clone(&desk)));
    let (listener, _socket) = door.split();
    let end = CancellationToken::new();
    let ending = async {
        tokio::select! {
            () = stop.interrupt.cancelled() => {}
            () = stop.cancel.cancelled() => {}
        }
        end.cancel();
    };
    tokio::join!(serve_http(listener, server, end.clone()), ending);
    telling.abort();
    Ok(0)
}

/// Lets `sandgate approvals` answer, and `sandgate console` find the console.
#[cfg(unix)]
fn lay_open(desk: &Arc<Desk>, home: &Path) -> Option<sandgate_runtime::DeskSocket> {
    let listening = desk.listen(home);
    let told = listening.map_err(|error| {
        let why = format!("sandgate approvals and sandgate console do not work: {error}");
        say(&notes::warning(&visible_line(&why)));
    });
    told.ok()
}

/// There is no such socket here.
#[cfg(not(unix))]
fn lay_open(_: &Arc<Desk>, _: &Path) {}

/// Says where it serves. The console's address is shown to a person only, at a terminal: what goes to a file
/// a caged command could read.
fn tell(door: &Door, file: &TokenFile, console: impl Fn() -> Option<String>) {
    let mut text = notes::hint(&format!("serving on {}", door.place()));
    let place = file.path().display();
    text.extend(notes::hint(&format!("an agent finds its token in {place}")));
    let socket = "no browser opens a socket: approve with sandgate approvals, or forward a port to it and \
        open what sandgate console prints with http://localhost:PORT for its beginning";
    text.extend(match console().filter(|_| io::stderr().is_terminal()) {
        _ if !door.is_for_browsers() => notes::hint(socket),
        Some(console) => notes::hint(&format!("approve in the console: {console}")),
        None => notes::hint("sandgate console prints the address where you approve"),
    });
    say(&text);
}

/// Tells the person of each question that comes, in a line: they may look at nothing but this terminal.
async fn tell_questions(desk: Arc<Desk>) {
    let mut changes = desk.changes();
    let mut known = BTreeSet::new();
    loop {
        let open = desk.open();
        if let Some(line) = news(&open, &known) {
            say(&notes::hint(&line));
        }
        known = open.into_iter().map(|question| question.id).collect();
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// What to say of the questions that were not known before, if there are any.
fn news(open: &[OpenQuestion], known: &BTreeSet<String>) -> Option<String> {
    let how = "answer in the console or with sandgate approvals";
    let mut new = open.iter().filter(|question| !known.contains(&question.id));
    let (first, others) = (new.next()?, new.count());
    let what =
        ShownQuestion::of(&first.question).map(|question| question.summary).unwrap_or_default();
    let mut shown: String = what.chars().take(MOST_SHOWN).collect();
    if shown.len() < what.len() {
        shown.push('…');
    }
    let more = match others {
        0 => String::new(),
        others => format!(", and {others} more"),
    };
    Some(format!("a question waits: {shown}{more}; {how}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn question(id: &str, command: &str) -> OpenQuestion {
        serde_json::from_value(json!({
            "id": id, "front_end": "serve", "workspace": "/w", "asked": "2026-01-01T00:00:00Z",
            "question": {
                "type": "ExecApprovalRequest", "approval_id": id, "call_id": "c", "command": [command],
                "command_text": command, "cwd": "/w", "reason": "because", "without_sandbox": false,
            },
        }))
        .unwrap()
    }

    /// spec HTTP.35: Each question that comes is told in a line where the server was started.
    #[test]
    fn a_question_is_told_once_and_in_one_line() {
        let first = question("a-1", "touch\none");
        let line = news(std::slice::from_ref(&first), &BTreeSet::new()).unwrap();
        assert!(line.contains("touch") && !line.contains('\n'), "{line}");
        let known = BTreeSet::from(["a-1".to_owned()]);
        assert_eq!(news(std::slice::from_ref(&first), &known), None);
        assert_eq!(news(&[], &known), None);
        let long = question("a-2", &"x".repeat(5000));
        let line = news(&[first, long], &known).unwrap();
        assert!(line.len() < 400 && line.contains('…'), "{line}");
        let line = news(&[question("a-3", "one"), question("a-4", "two")], &known).unwrap();
        assert!(line.contains("one, and 1 more"), "{line}");
    }
}
