//! The things that are done, at random: each is one line in [`ACTIONS`].
//!
//! An action checks by itself that it was answered rightly; what it says with an error is a violation.

mod call;
mod daemon;
mod doomed;
mod http;
mod library;
mod mcp;
mod program;

use super::lane::Lane;

/// One thing that can be done.
pub(super) struct Action {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// How often, beside the others.
    pub(super) weight: u64,
    pub(super) run: fn(&mut Lane<'_>) -> anyhow::Result<()>,
}

const fn action(
    name: &'static str,
    weight: u64,
    about: &'static str,
    run: fn(&mut Lane<'_>) -> anyhow::Result<()>,
) -> Action {
    Action { name, about, weight, run }
}

pub(super) const ACTIONS: &[Action] = &[
    action("run", 14, "a command through `sandgate run`", program::run),
    action(
        "run-landlock",
        5,
        "the same where namespaces are refused",
        program::run_without_namespaces,
    ),
    action("run-flood", 3, "megabytes through `sandgate run`", program::flood),
    action("run-timeout", 4, "a time limit that ends a tree", program::timeout),
    action("run-signal", 5, "SIGINT, SIGTERM or SIGHUP at any moment", program::signal),
    action("run-kill", 6, "kill -9 of `sandgate run` at any moment", program::kill),
    action("run-kill-guard", 4, "kill -9 of one of its guards", program::kill_guard),
    action("sandbox", 6, "a command through `sandgate sandbox`", program::sandbox),
    action("sandbox-kill", 3, "kill -9 of `sandgate sandbox`", program::sandbox_kill),
    action("call", 10, "a session of calls and questions through `sandgate call -`", call::session),
    action("call-landlock", 3, "the same where namespaces are refused", call::without_namespaces),
    action("call-kill", 6, "kill -9 of `sandgate call` amid calls and patches", call::killed),
    action("http", 16, "calls, questions and processes through `sandgate serve`", http::errand),
    action("http-gone", 6, "a client that goes before it is answered", http::gone),
    action("http-follow", 6, "followers of events that come, go, or do not read", http::follow),
    action("http-output", 4, "all that a process prints, as a stream", http::output),
    action(
        "http-conversation",
        3,
        "a conversation that is opened, used and closed",
        http::conversation,
    ),
    action("mcp", 12, "calls, forms and processes through `sandgate mcp`", mcp::errand),
    action("mcp-burst", 5, "many calls at once, some of them cancelled", mcp::burst),
    action("daemon", 6, "a process that stays: start, send, read, kill", daemon::process),
    action("daemon-keep", 3, "a process that outlives the session of its caller", daemon::keep),
    action(
        "daemon-kill-client",
        4,
        "kill -9 of `sandgate session` at any moment",
        daemon::kill_client,
    ),
    action("doomed-mcp", 4, "a server of its own that is ended amid its calls", doomed::mcp),
    action("doomed-serve", 3, "the same for `sandgate serve`", doomed::serve),
    action("doomed-guard", 4, "a server that loses a guard and must go on", doomed::guard),
    action("doomed-daemon", 2, "a daemon that is killed with its processes", doomed::daemon),
    action(
        "library",
        10,
        "commands of the library in this process, confined and not",
        library::run,
    ),
    action("library-drop", 5, "the same, let go of at any moment", library::dropped),
];
