//! What git has of files that were as it had them: read by git itself, by the names of the objects, in a
//! sandbox that can only read.
//!
//! By its name an object comes out as it was stored: no filter, converter or attribute has a say.

use crate::environment::keep_to_reading;
use crate::git::{ELSEWHERE, ObjectName};
use crate::resolve::resolve_words;
use crate::session::Services;
use crate::turn_diff::baseline::LARGEST_FILE;
use sandgate_policy::rules::Rules;
use sandgate_policy::{Permission, SandboxAvailability, Surroundings, Terms, judge, requirement};
use sandgate_process::{OutputReceiver, Received, SpawnedProcess, Stdin};
use sandgate_protocol::{
    AskForApproval, ExecExpiration, OutputStream, SandboxPermissions, SandboxPolicy,
};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads objects whose lengths are known. One that is missing, or not that long, is left out: the file
/// was not stored as it was.
pub(super) async fn read(
    services: &Services,
    wanted: &[(ObjectName, u64)],
) -> HashMap<ObjectName, Arc<[u8]>> {
    let mut found = HashMap::new();
    let reading = async {
        let mut git = start(services).await?;
        let input = git.session.writer_sender()?;
        let mut output = Output { receiver: &mut git.output_rx, bytes: Vec::new() };
        for (name, size) in wanted.iter().filter(|(_, size)| *size <= LARGEST_FILE) {
            if found.contains_key(name) {
                continue;
            }
            input.send(format!("{name}\n").into()).await.ok()?;
            if let Some(contents) = output.object(*size).await? {
                found.insert(*name, contents);
            }
        }
        Some(())
    };
    // What was read until then counts.
    let _ = tokio::time::timeout(PATIENCE, reading).await;
    found
}

/// Starts git, if it can be confined. It is judged like any command, and nobody is asked about it.
async fn start(services: &Services) -> Option<SpawnedProcess> {
    let config = &services.config;
    let words = ["git", "cat-file", "--batch"].map(str::to_owned).to_vec();
    let mut env = services.environment.clone();
    for name in ELSEWHERE {
        env.remove(OsStr::new(name));
    }
    keep_to_reading(&mut env);
    let expiration = ExecExpiration::Timeout(PATIENCE);
    let params = resolve_words(words, &config.workspace, env, expiration).ok()?;
    let judgement = judge(&params.command, &Surroundings::default(), &Rules::default());
    let requirement = requirement(
        &judgement,
        &Terms {
            approval: AskForApproval::UnlessTrusted,
            sandbox: &SandboxPolicy::ReadOnly,
            permissions: SandboxPermissions::UseDefault,
            availability: SandboxAvailability::Available,
        },
        None,
    );
    let permission = Permission::without_asking(&requirement)?;
    let grant = permission.grant(params, SandboxPolicy::ReadOnly, config.workspace.clone());
    let env = services.runtime.sandbox.transform(grant).ok()?;
    services.runtime.spawner.spawn_pipe(&env, Stdin::Piped).await.ok()
}

/// What git answers. It is asked for one object at a time, so that what it says is never more than waits
/// for a listener.
struct Output<'a> {
    receiver: &'a mut OutputReceiver,
    bytes: Vec<u8>,
}

impl Output<'_> {
    /// The next object: `NAME blob SIZE`, a line end, the contents, a line end. None inside if it is not
    /// what it should be, none at all if nothing more can be understood.
    async fn object(&mut self, size: u64) -> Option<Option<Arc<[u8]>>> {
        let end = loop {
            match self.bytes.iter().position(|byte| *byte == b'\n') {
                Some(end) => break end,
                None => self.more().await?,
            }
        };
        let head: Vec<u8> = self.bytes.drain(..=end).collect();
        let head = String::from_utf8(head).ok()?;
        let length = match head.split_whitespace().collect::<Vec<_>>()[..] {
            [_, "missing"] => return Some(None),
            [_, "blob", length] => length.parse::<u64>().ok()?,
            _ => return None,
        };
        if length > LARGEST_FILE {
            return None;
        }
        let length_here = usize::try_from(length).ok()?;
        while self.bytes.len() <= length_here {
            self.more().await?;
        }
        let mut contents: Vec<u8> = self.bytes.drain(..=length_here).collect();
        contents.pop();
        Some((length == size).then(|| contents.into()))
    }

    async fn more(&mut self) -> Option<()> {
        loop {
            match self.receiver.recv().await? {
                Received::Chunk(chunk) if chunk.stream == OutputStream::Stdout => {
                    self.bytes.extend_from_slice(&chunk.bytes);
                    return Some(());
                }
                Received::Chunk(_) => {}
                Received::Missed { .. } => return None,
            }
        }
    }
}
