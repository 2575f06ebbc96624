//! The full outputs of commands that have ended: the newest are kept, as many as there is room for.
//!
//! A result names the file of its full output, so whoever asks for one that had to go is told so: nothing is
//! forgotten in silence.

use sandgate_process::SpillReport;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) files: usize,
    pub(crate) bytes: u64,
}

impl Room {
    /// Four of the largest, or a hundred of those that memory just does not hold.
    pub(crate) const DEFAULT: Self = Self { files: 100, bytes: 1 << 30 };
}

/// How many names are remembered of what had to go.
const MOST_REMEMBERED: usize = 10_000;

/// What is kept, and what was.
#[derive(Debug)]
pub(crate) struct Spills {
    room: Room,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The oldest first.
    kept: VecDeque<Kept>,
    /// The names of those that had to go.
    gone: VecDeque<String>,
}

#[derive(Debug)]
struct Kept {
    id: String,
    path: PathBuf,
    bytes: u64,
}

impl Spills {
    pub(crate) fn new(room: Room) -> Self {
        Self { room, state: Mutex::default() }
    }

    /// Keeps one more, and removes the oldest if there is no room for all. The newest stays in any case.
    pub(crate) async fn keep(&self, report: &SpillReport) {
        let (Some(id), Some(path)) = (&report.id, &report.path) else { return };
        let kept = Kept { id: id.clone(), path: path.clone(), bytes: report.written_bytes };
        let too_many = self.add(kept);
        if !too_many.is_empty() {
            // To give back much room can take a while.
            let remove = move || {
                for kept in too_many {
                    let _ = std::fs::remove_file(kept.path);
                }
            };
            let _ = tokio::task::spawn_blocking(remove).await;
        }
    }

    /// Says of a full output that it had to go, if that was so.
    pub(crate) fn why_gone(&self, id: &str) -> Option<String> {
        self.state().gone.iter().any(|gone| gone == id).then(|| {
            let Room { files, bytes } = self.room;
            let mib = bytes >> 20;
            format!(
                "the full output {id} was removed to make room: the last {files} of at most {mib} MiB are kept. Run \
                 the command again, and have it write to a file or print less"
            )
        })
    }

    /// Those that have to go for this one.
    fn add(&self, kept: Kept) -> Vec<Kept> {
        let mut state = self.state();
        state.kept.push_back(kept);
        let mut bytes: u64 = state.kept.iter().map(|kept| kept.bytes).sum();
        let mut too_many = Vec::new();
        while state.kept.len() > 1
            && (state.kept.len() > self.room.files || bytes > self.room.bytes)
        {
            let Some(oldest) = state.kept.pop_front() else { break };
            bytes -= oldest.bytes;
            if state.gone.len() == MOST_REMEMBERED {
                state.gone.pop_front();
            }
            state.gone.push_back(oldest.id.clone());
            too_many.push(oldest);
        }
        too_many
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::request::new_call_id;
    use crate::runtime::Runtime;
    use crate::session::{Session, SessionConfig};
    use sandgate_protocol::{AskForApproval, SandboxPolicy, ToolCall, ToolOutput, ToolPayload};
    use serde_json::{Value, json};
    use std::path::Path;
    use std::sync::Arc;

    async fn keep(spills: &Spills, directory: &Path, name: &str, bytes: u64) {
        let path = directory.join(name);
        std::fs::write(&path, "").unwrap();
        let report = SpillReport {
            id: Some(name.to_owned()),
            path: Some(path),
            written_bytes: bytes,
            dropped_bytes: 0,
            error: None,
        };
        spills.keep(&report).await;
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// spec OUTPUT.36: Of the full outputs of commands that have ended a program keeps the last 100, and no more than
    /// 1 GiB of them, but always the last; who asks for one that had to go is told so.
    #[tokio::test]
    async fn the_oldest_go_first_and_the_last_stays() {
        let directory = tempfile::tempdir().unwrap();
        let spills = Spills::new(Room { files: 3, bytes: 100 });
        for (name, bytes, left) in [
            ("a", 10, &["a"] as &[&str]),
            ("b", 10, &["a", "b"]),
            ("c", 10, &["a", "b", "c"]),
            ("d", 10, &["b", "c", "d"]),
            ("e", 85, &["d", "e"]),
            ("f", 500, &["f"]),
            ("g", 10, &["g"]),
        ] {
            keep(&spills, directory.path(), name, bytes).await;
            assert_eq!(names(directory.path()), left);
        }
        assert!(spills.why_gone("a").unwrap().contains("the full output a was removed"));
        assert!(spills.why_gone("f").is_some());
        assert_eq!((spills.why_gone("g"), spills.why_gone("never")), (None, None));
    }
    /// spec OUTPUT.36: Of the full outputs of commands that have ended a program keeps the last 100, and no more than
    /// 1 GiB of them, but always the last; who asks for one that had to go is told so.
    #[tokio::test]
    async fn who_asks_for_one_that_had_to_go_is_told_so() {
        let mut runtime = Runtime::start().unwrap();
        assert_eq!((runtime.spills.room.files, runtime.spills.room.bytes), (100, 1 << 30));
        runtime.spills = Spills::new(Room { files: 2, ..Room::DEFAULT });
        let workspace = tempfile::tempdir().unwrap();
        let mut config = SessionConfig::new(workspace.path().to_owned());
        config.approval_policy = AskForApproval::Never;
        config.sandbox_policy = SandboxPolicy::DangerFullAccess;
        config.own_env = [("PATH".into(), std::env::var_os("PATH").unwrap())].into();
        let session = Session::start(Arc::new(runtime), config).unwrap();
        let requester = session.requester();
        let call = async |name: &str, arguments: Value| {
            let payload = ToolPayload::Function { arguments: arguments.to_string() };
            let call = ToolCall { call_id: new_call_id(), name: name.to_owned(), payload };
            let turn = requester.begin_turn();
            match requester.call(vec![call], &turn).await.remove(0).output {
                ToolOutput::Function { content, .. } => content,
                other @ ToolOutput::Mcp { .. } => panic!("{other:?}"),
            }
        };
        let run = async || {
            let much = ["bash", "-c", "head -c 1100000 /dev/zero | tr '\\0' x"];
            let said = call("shell", json!({ "command": much })).await;
            let (_, rest) = said.split_once("full output: ").unwrap();
            rest.split_whitespace().next().unwrap().to_owned()
        };
        let read = async |id: &str| {
            call("read_output", json!({ "id": id, "offset": 0, "bytes": 3 })).await
        };
        let (first, second) = (run().await, run().await);
        assert_eq!(read(&first).await, "[bytes 0 to 3 of 1100000]\nxxx");
        run().await;
        let gone = read(&first).await;
        assert!(gone.contains("was removed to make room"), "{gone}");
        assert_eq!(read(&second).await, "[bytes 0 to 3 of 1100000]\nxxx");
    }
}
