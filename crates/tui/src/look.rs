//! Looks at files and processes for the person.

use crate::processes::ProcessRow;
use sandgate_protocol::{ProcessInfo, ToolCall, ToolOutput, ToolPayload};
use sandgate_runtime::{Requester, new_call_id};
use std::path::Path;

/// How many files are offered.
const MOST_FILES: usize = 20_000;

/// The files of the workspace that git does not ignore, as they are named from there.
pub(crate) fn files(root: &Path) -> Vec<String> {
    let walk = ignore::WalkBuilder::new(root).require_git(false).follow_links(false).build();
    let named = walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let relative = named.filter_map(|entry| {
        let path = entry.path().strip_prefix(root).ok()?.to_str()?.to_owned();
        Some(path).filter(|path| !path.contains(char::is_control))
    });
    relative.take(MOST_FILES).collect()
}

/// Makes a call. Whether it did what it was asked to do, and its text.
pub(crate) async fn call(
    requester: &Requester,
    tool: &str,
    arguments: &serde_json::Value,
) -> (bool, String) {
    let payload = ToolPayload::Function { arguments: arguments.to_string() };
    let call = ToolCall { call_id: new_call_id(), name: tool.to_owned(), payload };
    let results = requester.call(vec![call], &requester.begin_turn()).await;
    match results.into_iter().next().map(|result| result.output) {
        Some(ToolOutput::Function { content, success, .. }) => (success.unwrap_or(true), content),
        _ => (false, "there was no answer".to_owned()),
    }
}

/// The processes that a list names, with their memory.
pub(crate) fn processes(list: &str) -> Vec<ProcessRow> {
    let infos: Vec<ProcessInfo> = serde_json::from_str(list).unwrap_or_default();
    let with_memory = |info: ProcessInfo| ProcessRow { memory: memory(info.pid), info };
    infos.into_iter().map(with_memory).collect()
}

/// How much memory a process holds.
#[cfg(target_os = "linux")]
fn memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(not(target_os = "linux"))]
fn memory(_: u32) -> Option<u64> {
    None
}
