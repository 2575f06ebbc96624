//! Ours beside others that do the same work, in one run. `--peers` has them installed first; a row whose peer could not
//! be had says why.

mod agent;
mod live;
mod memory;
mod servers;
mod start;
mod work;

use super::session::Session;
use crate::peers::Sandbox;

/// The names of the measurements, by which the page finds their rows.
pub(super) const TRUE: &str = "peers-true";
pub(super) const SHELL: &str = "peers-shell";
pub(super) const MEMORY: &str = "peers-memory";
pub(super) const WORK: &str = "peers-work";
pub(super) const LIVE: &str = "peers-live";
pub(super) const SERVERS: &str = "peers-mcp";
pub(super) const AGENT: &str = "peers-agent";

/// What the row of our library is called: a command of a session that has begun.
pub(super) const LIBRARY: &str = "sandgate, a call of a session";

pub(super) fn start(session: &mut Session) {
    session.take("/bin/true in every sandbox", start::nothing);
}

pub(super) fn shell(session: &mut Session) {
    session.take("bash -lc 'echo hi' in every sandbox", start::shell);
}

pub(super) fn memory(session: &mut Session) {
    for sandbox in Sandbox::FOR_FIGURES.into_iter().filter(|sandbox| *sandbox != Sandbox::Plain) {
        session.take(sandbox.name(), |session, _| memory::while_it_sleeps(sandbox, session));
    }
}

pub(super) fn work(session: &mut Session) {
    for sandbox in Sandbox::FOR_ATTEMPTS {
        session.take(sandbox.name(), |session, progress| work::done_in(sandbox, session, progress));
    }
}

pub(super) fn live(session: &mut Session) {
    session.take("sandgate, in the cage", live::ours);
    session.take("by hand, pexpect and swe-rex", live::python);
    session.take("codex exec, write_stdin", live::codex);
}

pub(super) fn servers(session: &mut Session) {
    for (name, measure) in servers::ALL {
        session.take(name, measure);
    }
}

pub(super) fn agent(session: &mut Session) {
    session.take("a call, to the next request", agent::calls);
    session.take("from the start to the first request", agent::start);
    session.take("memory while a command sleeps", agent::memory);
    session.take("what is installed", agent::size);
}
