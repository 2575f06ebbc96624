//! The upstream conformance suite, in so far as it needs no tools of a test server.
//!
//! `scripts/mcp-clients` installs it. Where it is not, this test says so and proves nothing.

#![expect(clippy::disallowed_methods, reason = "the suite is a program of its own")]

use crate::http::Served;
use crate::support::World;
use std::path::PathBuf;
use std::process::Command;

/// The scenarios that any server can pass. The others call tools, prompts and resources that only the suite's
/// own test server has.
const SCENARIOS: [&str; 8] = [
    "server-initialize",
    "logging-set-level",
    "ping",
    "completion-complete",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
];

fn suite() -> Option<PathBuf> {
    let clients = match std::env::var_os("SANDGATE_MCP_CLIENTS") {
        Some(directory) => PathBuf::from(directory),
        None => PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent()?.join("mcp-clients"),
    };
    let suite = clients.join("node/node_modules/@modelcontextprotocol/conformance/dist/index.js");
    (suite.exists() && Command::new("node").arg("--version").output().is_ok()).then_some(suite)
}

/// spec MCPS.53: The scenarios of the conformance suite pass that need no tools of a test server.
#[tokio::test]
async fn the_conformance_suite_passes() {
    let Some(suite) = suite() else {
        eprintln!("SKIPPED: the conformance suite is not here; run scripts/mcp-clients");
        return;
    };
    let world = World::usual();
    let served = Served::for_anybody(&world).await;
    for scenario in SCENARIOS {
        let mut command = Command::new("node");
        // It wants a newer node than most have, for something that it does not do here.
        command
            .arg("--import")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/older_node.mjs"));
        command.arg(&suite).args(["server", "--scenario", scenario, "--url"]).arg(served.url());
        let results = tempfile::tempdir().unwrap();
        command.current_dir(results.path());
        let ended = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(
            ended.status.success(),
            "{scenario}: {said}{}",
            String::from_utf8_lossy(&ended.stderr)
        );
        assert!(said.contains("Passed: "), "{scenario}: {said}");
    }
}
