//! Tells everybody when a process prints what a call waited for in vain.

use super::LiveEntry;
use crate::session::Services;
use regex::bytes::Regex;
use sandgate_process::Search;
use sandgate_protocol::{Event, ProcessWoke, ReturnReason};
use std::sync::{Arc, Weak};

/// Goes on looking for a pattern after the call has been answered, until it is found, the process has ended
/// or another call talks to it. Keeps neither the process nor the session.
///
/// It looks at what the next answer would tell, as the call itself did: so nothing is missed that came
/// right after the answer, and an echo of what was typed is no more of a match than it was for the call.
pub(crate) fn wake_when_printed(
    pattern: Regex,
    process_id: &str,
    entry: &Arc<LiveEntry>,
    services: Weak<Services>,
) {
    let (call, process_id) = (entry.begin_call(), process_id.to_owned());
    let (mut changes, mut search) = (entry.process.changes(), Search::default());
    let entry = Arc::downgrade(entry);
    tokio::spawn(async move {
        loop {
            let (Some(entry), Some(services)) = (entry.upgrade(), services.upgrade()) else {
                return;
            };
            // Before the look: what is printed after the end is nothing.
            let has_ended = entry.process.has_ended();
            if !entry.is_last_call(call) {
                return;
            }
            if search.finds(&pattern, &entry.process) {
                let (call_id, reason) = (entry.call_id.clone(), ReturnReason::Pattern);
                let woke = ProcessWoke { call_id, process_id, reason, exit_code: None };
                services.events.tell(&Event::ProcessWoke(woke)).await;
                return;
            }
            drop((entry, services));
            if has_ended || !changes.next().await {
                return;
            }
        }
    });
}
