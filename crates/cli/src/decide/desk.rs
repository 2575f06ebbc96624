//! Questions that can be answered from another terminal too.

use super::{Decide, Decider};
use crate::settings::config_home;
use sandgate_runtime::{Asker, Attendance, Desk, Session};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// As long as it is there, a session's questions can be answered by `sandgate approvals`.
pub(crate) struct OnDesk {
    _attendance: Attendance,
    listening: tokio::task::JoinHandle<()>,
}

impl Drop for OnDesk {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Has the questions of a session be answered elsewhere too, if a person answers them at all.
///
/// # Errors
/// When they can be answered nowhere else, and there is no place for that.
pub(crate) async fn lay_on_desk(
    session: &Session,
    decide: &Decide,
    decider: &Decider,
    conversation: Option<&str>,
) -> io::Result<Option<OnDesk>> {
    if *decide != Decide::Elsewhere && !decider.is_person() {
        return Ok(None);
    }
    lay(session, decide, conversation).await
}

/// The same for a session whose person sits at the terminal interface.
pub(crate) async fn lay_beside_terminal(
    session: &Session,
    conversation: Option<&str>,
) -> Option<OnDesk> {
    lay(session, &Decide::AtTerminal, conversation).await.ok().flatten()
}

async fn lay(
    session: &Session,
    decide: &Decide,
    conversation: Option<&str>,
) -> io::Result<Option<OnDesk>> {
    let Some(settings) = settings() else {
        let why = "there is no directory for settings, and so no place for questions; set HOME";
        return needed(decide, io::Error::other(why));
    };
    let desk = Arc::new(Desk::default());
    let listening = match listen(&desk, settings, decide) {
        Ok(listening) => listening,
        Err(error) => return needed(decide, error),
    };
    let asker = Asker {
        front_end: session.front_end().to_owned(),
        workspace: session.requester().workspace().to_string_lossy().into_owned(),
        conversation: conversation.map(str::to_owned),
    };
    Ok(Some(OnDesk { _attendance: desk.attend(session, asker).await, listening }))
}

fn settings() -> Option<PathBuf> {
    std::path::absolute(config_home()?).ok()
}

/// Where a person is at this terminal they can do without the other.
fn needed(decide: &Decide, error: io::Error) -> io::Result<Option<OnDesk>> {
    match decide {
        Decide::Elsewhere => Err(error),
        _ => Ok(None),
    }
}

/// Listens from the first question on: most commands have none, and need no socket. Where the answer can
/// come from nowhere else it must be there from the start.
#[cfg(unix)]
fn listen(
    desk: &Arc<Desk>,
    settings: PathBuf,
    decide: &Decide,
) -> io::Result<tokio::task::JoinHandle<()>> {
    let socket = match decide {
        Decide::Elsewhere => Some(desk.listen(&settings).map_err(io::Error::other)?),
        _ => None,
    };
    let (mut changes, desk) = (desk.changes(), Arc::clone(desk));
    Ok(tokio::spawn(async move {
        let _socket = match socket {
            Some(socket) => Some(socket),
            None if changes.changed().await.is_ok() => desk.listen(&settings).ok(),
            None => None,
        };
        std::future::pending::<()>().await;
    }))
}

#[cfg(not(unix))]
fn listen(_: &Arc<Desk>, _: PathBuf, _: &Decide) -> io::Result<tokio::task::JoinHandle<()>> {
    Err(io::Error::other("questions can be answered only where they are asked on this system"))
}
