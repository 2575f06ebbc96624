//! `sandgate attach`: a live process in the person's own terminal.

use super::raw::{RawTerminal, Screen, takes_more};
use super::{Ended, failed};
use crate::{exit, notes};
use sandgate_runtime::daemon::{Base64, Client, DaemonError, Reply, Request};
use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Ctrl-], which leaves the process alone again.
const LEAVE: u8 = 0x1d;

/// How it ended.
enum End {
    /// The person left.
    Left,
    /// The process ended, with this code.
    Exited(i32),
    /// A signal ended us.
    Signal(i32),
}

/// Gives a person the process's terminal until it ends or they leave it.
pub(super) async fn attach(mut client: Client, id: &str) -> Ended {
    let terminal = RawTerminal::take();
    let terminal = terminal.map_err(|error| {
        DaemonError::Refused(format!("there is no terminal here to attach to: {error}"))
    })?;
    let asked = Request::Attach { process_id: id.to_owned(), size: terminal.size() };
    let attached = client.ask(&asked).await;
    let end = match attached {
        Ok(_) => {
            say_how_to_leave(id);
            converse(&mut client, &terminal).await
        }
        Err(error) => Err(error),
    };
    // What follows is for a terminal as it was.
    drop(terminal);
    let (said, code) = match end? {
        End::Left => (format!("{id} goes on"), 0),
        End::Exited(code) => (format!("{id} exited with {code}"), exit::of_code(code)),
        End::Signal(signal) => (format!("{id} goes on"), exit::of_signal(signal)),
    };
    if takes_more(&io::stderr()) {
        let _ = io::stderr().write_all(&notes::status(&said));
    }
    Ok(code)
}

/// Says how to leave, above what the process shows. A program that reads our standard error need not know.
fn say_how_to_leave(id: &str) {
    let stderr = io::stderr();
    if stderr.is_terminal() && takes_more(&stderr) {
        let mut said =
            notes::status(&format!("attached to {id}; Ctrl-] leaves it, and it goes on"));
        // The terminal is raw, and a new line begins where the one before ended.
        said.push(b'\r');
        let _ = (&stderr).write_all(&said);
    }
}

async fn converse(client: &mut Client, terminal: &RawTerminal) -> Result<End, DaemonError> {
    let screen = terminal.screen().map_err(failed)?;
    let end = pass_on(client, terminal, &screen).await;
    screen.finish().await;
    end
}

/// Passes on what is typed and what is printed, until there is an end.
async fn pass_on(
    client: &mut Client,
    terminal: &RawTerminal,
    screen: &Screen,
) -> Result<End, DaemonError> {
    let listen = |kind| signal(kind).map_err(failed);
    let mut resized = listen(SignalKind::window_change())?;
    let mut ends = [
        (SignalKind::terminate(), listen(SignalKind::terminate())?),
        (SignalKind::hangup(), listen(SignalKind::hangup())?),
        (SignalKind::interrupt(), listen(SignalKind::interrupt())?),
    ];
    let mut typed = type_ahead(terminal.keyboard().map_err(failed)?)?;
    loop {
        tokio::select! {
            // What there is no room for on the screen is not asked for.
            (room, reply) = async { (screen.pieces.reserve().await, client.hear().await) } => match reply? {
                Reply::Output { bytes } => match room {
                    Ok(room) => room.send(bytes.0),
                    // The terminal is gone.
                    Err(_) => return Ok(End::Left),
                },
                Reply::Missed { bytes } => {
                    let text = format!("\r\n[{bytes} bytes were not shown]\r\n");
                    if let Ok(room) = room {
                        room.send(text.into_bytes());
                    }
                }
                Reply::Ended { exit_code } => return Ok(End::Exited(exit_code)),
                Reply::Detached {} => return Ok(End::Left),
                _ => {}
            },
            bytes = typed.recv() => match bytes {
                Some(mut bytes) => {
                    let left = bytes.iter().position(|byte| *byte == LEAVE);
                    bytes.truncate(left.unwrap_or(bytes.len()));
                    if !bytes.is_empty() {
                        client.say(&Request::Input { bytes: Base64(bytes) }).await?;
                    }
                    if left.is_some() {
                        client.say(&Request::Detach {}).await?;
                    }
                }
                // The terminal is gone.
                None => return Ok(End::Left),
            },
            _ = resized.recv() => {
                client.say(&Request::Resize { size: terminal.size() }).await?;
            }
            signal = first(&mut ends) => return Ok(End::Signal(signal)),
        }
    }
}

/// The first of the signals by which people and systems end programs.
async fn first(ends: &mut [(SignalKind, Signal); 3]) -> i32 {
    let [(one, first), (two, second), (three, third)] = ends;
    tokio::select! {
        _ = first.recv() => one.as_raw_value(),
        _ = second.recv() => two.as_raw_value(),
        _ = third.recv() => three.as_raw_value(),
    }
}

/// What is typed. A thread of its own reads, because a read of a terminal cannot be called off.
fn type_ahead(mut keyboard: File) -> Result<mpsc::Receiver<Vec<u8>>, DaemonError> {
    let (sender, typed) = mpsc::channel(16);
    let reading = std::thread::Builder::new().name("keyboard".to_owned());
    let read = move || {
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = keyboard.read(&mut bytes) {
            if sender.blocking_send(bytes[..length].to_vec()).is_err() {
                return;
            }
        }
    };
    reading.spawn(read).map_err(failed)?;
    Ok(typed)
}
