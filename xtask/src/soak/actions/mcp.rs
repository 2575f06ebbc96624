//! `sandgate mcp`, the one that lives as long as the soak.

use crate::soak::errands;
use crate::soak::lane::Lane;
use crate::soak::mcp_client::answered;
use crate::soak::work::Work;
use anyhow::Context as _;
use serde_json::json;
use std::collections::BTreeMap;

pub(super) fn errand(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let mut mcp = lane.steady.mcp();
    errands::any(lane, &mut *mcp)
}

/// Many calls at once. Some are cancelled, and are answered or not; all the others are, and rightly.
pub(super) fn burst(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let mut mcp = lane.steady.mcp();
    let mut open: BTreeMap<u64, Work> = BTreeMap::new();
    let mut endless = Vec::new();
    for _ in 0..lane.random.between(2, 16) {
        if lane.random.percent(30) {
            let work = Work::endless(lane.mark());
            endless
                .push(mcp.begin("shell", &json!({ "command": work.argv, "timeout_ms": 600_000 })));
        } else {
            let work = lane.work();
            open.insert(mcp.begin("shell", &json!({ "command": work.argv })), work);
        }
    }
    let all = open.len();
    lane.linger();
    for id in &endless {
        mcp.tell("notifications/cancelled", &json!({ "requestId": id, "reason": "a soak" }));
    }
    while !open.is_empty() {
        let said = mcp.hear().with_context(|| {
            let waits: Vec<&Work> = open.values().collect();
            format!(
                "of {} that were cancelled and {} others these wait: {waits:?}",
                endless.len(),
                all
            )
        })?;
        anyhow::ensure!(said["method"] != "elicitation/create", "nobody expected {said}");
        let Some(work) = said["id"].as_u64().and_then(|id| open.remove(&id)) else { continue };
        let answer = answered(&said)?;
        lane.ledger.ran(&work.mark);
        work.check(&answer)?;
    }
    Ok(())
}
