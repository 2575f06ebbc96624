//! What the tests of this crate share: requests that are ready to be sent.

#![allow(dead_code, reason = "each test file uses its own part of this")]

pub(crate) mod scene;

use sandgate_protocol::ExecExpiration;
use sandgate_runtime::{CommandInput, CommandLine, CommandRequest, KeepOutput, Login, new_call_id};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A script for `sh`.
pub(crate) fn script(text: &str) -> CommandRequest {
    let shell = Some("sh".to_owned());
    request(CommandLine::Script { text: text.to_owned(), shell, login: Login::No })
}

/// A program and its arguments.
pub(crate) fn argv(words: &[&str]) -> CommandRequest {
    request(CommandLine::Argv(words.iter().map(|word| (*word).to_owned()).collect()))
}

/// A command with nothing special about it, and all the time it needs.
pub(crate) fn request(command: CommandLine) -> CommandRequest {
    CommandRequest {
        call_id: new_call_id(),
        command,
        cwd: PathBuf::from("/"),
        expiration: ExecExpiration::Cancellation,
        env: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
        input: CommandInput::Nothing,
        keep: KeepOutput::HeadAndTail,
    }
}
