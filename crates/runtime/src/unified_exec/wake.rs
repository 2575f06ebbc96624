//! Tells everybody when a process prints what a call waited for in vain.

use super::LiveEntry;
use crate::session::Services;
use regex::bytes::Regex;
use sandgate_protocol::{Event, ProcessWoke, ReturnReason};
use std::sync::{Arc, Weak};

/// How much of what was there before is looked at again: a match may come in pieces.
const OVERLAP: u64 = 4096;

/// Goes on looking for a pattern after the call has been answered, until it is found, the process has ended
/// or another call talks to it. Keeps neither the process nor the session.
pub(crate) fn wake_when_printed(
    pattern: Regex,
    process_id: &str,
    entry: &Arc<LiveEntry>,
    services: Weak<Services>,
) {
    let (call, process_id) = (entry.begin_call(), process_id.to_owned());
    let (mut changes, mut seen) = (entry.process.changes(), entry.process.kept().end);
    let entry = Arc::downgrade(entry);
    tokio::spawn(async move {
        while changes.next().await {
            let (Some(entry), Some(services)) = (entry.upgrade(), services.upgrade()) else {
                return;
            };
            if !entry.is_last_call(call) {
                return;
            }
            let range = seen.saturating_sub(OVERLAP)..entry.process.kept().end;
            seen = range.end;
            let call_id = entry.call_id.clone();
            let ended = entry.process.end().is_some();
            let read = tokio::task::spawn_blocking(move || entry.process.read(range)).await;
            if read.is_ok_and(|read| read.is_ok_and(|(_, bytes)| pattern.is_match(&bytes))) {
                let (reason, exit_code) = (ReturnReason::Pattern, None);
                let woke = ProcessWoke { call_id, process_id, reason, exit_code };
                services.events.tell(&Event::ProcessWoke(woke)).await;
                return;
            }
            if ended {
                return;
            }
        }
    });
}
