//! The upstream conformance suite, in both generations of the protocol.
//!
//! `scripts/mcp-clients` installs it. Where it is not, this test says so and proves nothing.

#![expect(clippy::disallowed_methods, reason = "the suite is a program of its own")]

use crate::http::Served;
use crate::suite::NOT_ALLOWED;
use crate::support::World;
use sandgate_server::mcp::Workspace;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What becomes of a scenario.
#[derive(Clone, Copy)]
enum Fate {
    /// It passes.
    Passes,
    /// It passes where the client says where to work.
    PassesByRoots,
    /// All of it passes but these checks, for these reasons.
    PassesBut(&'static [(&'static str, &'static str)]),
    /// It is not run, for this reason.
    IsNotRun(&'static str),
}

use Fate::{IsNotRun, Passes, PassesBut, PassesByRoots};

/// What every server of the newer generation must do, but for what ours has nothing to do with.
const STATELESS: Fate = PassesBut(&[
    ("sep-2575-server-declares-prompts-in-discover", NO_PROMPTS_LISTED),
    ("sep-2575-server-rejects-undeclared-capability", "no tool needs the client's model"),
    ("sep-2575-missing-capability-http-400", "no tool needs the client's model"),
]);
const NO_PROMPTS_LISTED: &str =
    "who asks for prompts without looking whether there are any is told that there are none";

const NO_PROMPTS: Fate = IsNotRun("there are no prompts");
const TEXT_ONLY: Fate = IsNotRun("no tool answers with anything but text and facts");
const NO_SAMPLING: Fate = IsNotRun("the client's model is never asked");
const OTHER_FIELDS: Fate = IsNotRun("it looks for fields of a form of its own");
const NO_TASKS: Fate = IsNotRun("the extension for tasks is not offered");
const NO_SKILLS: Fate = IsNotRun("the extension for skills is not offered");

/// Every scenario for servers that the suite has had, and what becomes of it. docs/mcp-server.md says the same.
const SCENARIOS: [(&str, Fate); 65] = [
    ("server-initialize", Passes),
    ("server-session-lifecycle", Passes),
    ("server-stateless", STATELESS),
    ("logging-set-level", Passes),
    ("ping", Passes),
    ("completion-complete", Passes),
    ("tools-list", Passes),
    ("tools-call-simple-text", Passes),
    ("tools-call-image", TEXT_ONLY),
    ("tools-call-audio", TEXT_ONLY),
    ("tools-call-embedded-resource", TEXT_ONLY),
    ("tools-call-mixed-content", TEXT_ONLY),
    (
        "tools-call-with-logging",
        IsNotRun("no call logs by itself, but for what the person should know"),
    ),
    ("tools-call-error", Passes),
    ("tools-call-with-progress", Passes),
    ("tools-call-sampling", NO_SAMPLING),
    ("tools-call-elicitation", Passes),
    ("json-schema-2020-12", IsNotRun("it looks for a tool with a schema of its own")),
    ("elicitation-sep1034-defaults", OTHER_FIELDS),
    ("server-sse-polling", Passes),
    ("server-sse-multiple-streams", Passes),
    ("elicitation-sep1330-enums", OTHER_FIELDS),
    ("resources-list", Passes),
    ("resources-read-text", Passes),
    ("resources-read-binary", IsNotRun("what processes print is text")),
    ("resources-templates-read", Passes),
    ("resources-subscribe", Passes),
    ("resources-unsubscribe", Passes),
    ("sep-2164-resource-not-found", Passes),
    ("sep-2640-skills-directory", NO_SKILLS),
    ("sep-2640-skills-enumeration", NO_SKILLS),
    ("sep-2640-skills-manifest", NO_SKILLS),
    ("prompts-list", Passes),
    ("prompts-get-simple", NO_PROMPTS),
    ("prompts-get-with-args", NO_PROMPTS),
    ("prompts-get-embedded-resource", NO_PROMPTS),
    ("prompts-get-with-image", NO_PROMPTS),
    ("dns-rebinding-protection", Passes),
    ("caching", Passes),
    ("http-header-validation", Passes),
    (
        "http-custom-header-server-validation",
        IsNotRun("no argument of a tool is wanted in a header"),
    ),
    ("tasks-lifecycle", NO_TASKS),
    ("tasks-capability-negotiation", NO_TASKS),
    ("tasks-wire-fields", NO_TASKS),
    ("tasks-request-state-removal", NO_TASKS),
    ("tasks-mrtr-input", NO_TASKS),
    ("tasks-request-headers", NO_TASKS),
    ("tasks-dispatch-and-envelope", NO_TASKS),
    ("tasks-status-notifications", NO_TASKS),
    ("tasks-required-task-error", NO_TASKS),
    ("tasks-mrtr-composition", NO_TASKS),
    (
        "input-required-result-basic-elicitation",
        IsNotRun("it wants a question by a name of its own"),
    ),
    ("input-required-result-basic-sampling", NO_SAMPLING),
    ("input-required-result-basic-list-roots", PassesByRoots),
    ("input-required-result-request-state", Passes),
    ("input-required-result-multiple-input-requests", IsNotRun("one thing is asked at a time")),
    (
        "input-required-result-multi-round",
        IsNotRun("its answers are a no, after which nothing is asked"),
    ),
    ("input-required-result-missing-input-response", Passes),
    ("input-required-result-non-tool-request", NO_PROMPTS),
    ("input-required-result-result-type", Passes),
    ("input-required-result-unsupported-methods", Passes),
    ("input-required-result-tampered-state", Passes),
    ("input-required-result-capability-check", NO_SAMPLING),
    (
        "input-required-result-ignore-extra-params",
        IsNotRun("an answer without its signed state is none"),
    ),
    ("input-required-result-validate-input", Passes),
];

/// The versions of the protocol that scenarios are run in: the last of each generation.
const VERSIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Where this package is for whoever runs the tests.
fn package() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("the tests are run by cargo").into()
}

fn suite() -> Option<PathBuf> {
    let clients = match std::env::var_os("SANDGATE_MCP_CLIENTS") {
        Some(directory) => PathBuf::from(directory),
        None => PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent()?.join("mcp-clients"),
    };
    let suite = clients.join("node/node_modules/@modelcontextprotocol/conformance/dist/index.js");
    (suite.exists() && Command::new("node").arg("--version").output().is_ok()).then_some(suite)
}

async fn run(suite: &Path, arguments: Vec<String>) -> Output {
    let mut command = Command::new("node");
    // It wants a newer node than most have, for something that it does not do here.
    command.arg("--import").arg(package().join("tests/mcp/older_node.mjs"));
    command.arg(suite).args(arguments);
    tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap()
}

/// The scenarios for servers that the suite has, each with the versions that it is for.
async fn listed(suite: &Path) -> BTreeMap<String, Vec<&'static str>> {
    let ended = run(suite, vec!["list".to_owned()]).await;
    let said = String::from_utf8(ended.stdout).unwrap();
    let servers = said.lines().skip_while(|line| !line.starts_with("Server scenarios")).skip(1);
    let scenario = |line: &str| {
        let (name, versions) = line.trim().strip_prefix("- ")?.split_once(' ')?;
        let ours = VERSIONS.into_iter().filter(|version| versions.contains(version)).collect();
        Some((name.to_owned(), ours))
    };
    servers.map_while(scenario).collect()
}

/// A check of a scenario that did not go as it should.
struct Fault {
    check: String,
    what: String,
}

/// Runs a scenario, and gives what of it did not go as it should.
async fn faults(suite: &Path, scenario: &str, version: &str, world: &World) -> Vec<Fault> {
    let served = Served::for_suite(world).await;
    let (results, url) = (tempfile::tempdir().unwrap(), served.url());
    let results_path = results.path().to_str().unwrap();
    let arguments = ["server", "--url", &url, "--scenario", scenario, "--spec-version", version];
    let arguments = arguments.into_iter().chain(["--output-dir", results_path]);
    let ended = run(suite, arguments.map(str::to_owned).collect()).await;
    let said = [ended.stdout, ended.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let found = std::fs::read_dir(results.path()).unwrap().flatten().map(|entry| entry.path());
    let checks = found.map(|path| path.join("checks.json")).find(|path| path.exists());
    let checks = std::fs::read(checks.unwrap_or_else(|| panic!("{scenario}: {said}"))).unwrap();
    let checks: Vec<Value> = serde_json::from_slice(&checks).unwrap();
    assert!(checks.iter().any(|check| check["status"] == "SUCCESS"), "{scenario}: {said}");
    let is_bad = |check: &&Value| check["status"] == "FAILURE" || check["status"] == "WARNING";
    let fault = |check: &Value| Fault {
        check: check["id"].as_str().unwrap_or_default().to_owned(),
        what: format!("{scenario} in {version}: {} {}", check["id"], check["errorMessage"]),
    };
    checks.iter().filter(is_bad).map(fault).collect()
}

/// spec MCPS.53: Every scenario of the conformance suite that is about what the server has passes, in both
/// generations of the protocol, and the others are named with the reason.
#[tokio::test]
async fn the_conformance_suite_passes() {
    let Some(suite) = suite() else {
        eprintln!("SKIPPED: the conformance suite is not here; run scripts/mcp-clients");
        return;
    };
    let fates = BTreeMap::from(SCENARIOS);
    let scenarios = listed(&suite).await;
    assert!(scenarios.len() >= 32, "{scenarios:?}");
    let is_new = |name: &&String| !fates.contains_key(name.as_str());
    let new: Vec<_> = scenarios.keys().filter(is_new).collect();
    assert!(new.is_empty(), "nobody has said what becomes of {new:?}");
    let world = World::usual();
    let mut by_roots = World::usual();
    by_roots.options.workspace = Workspace::ByRoots;
    let mut wrong = Vec::new();
    for (scenario, versions) in &scenarios {
        let (world, excused) = match fates[scenario.as_str()] {
            Passes => (&world, Default::default()),
            PassesByRoots => (&by_roots, Default::default()),
            PassesBut(checks) => (&world, checks),
            IsNotRun(_) => continue,
        };
        for version in versions {
            let mut excused: BTreeSet<&str> = excused.iter().map(|(check, _)| *check).collect();
            let faults = faults(&suite, scenario, version, world).await;
            let faults = faults.into_iter().filter(|fault| !excused.remove(fault.check.as_str()));
            wrong.extend(faults.map(|fault| fault.what).collect::<Vec<_>>());
            wrong.extend(excused.iter().map(|check| format!("{scenario}: {check} passes by now")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!world.path(NOT_ALLOWED).exists());
}

/// spec MCPS.53: Every scenario of the conformance suite that is about what the server has passes, in both
/// generations of the protocol, and the others are named with the reason.
#[test]
fn the_page_names_what_is_not_run_with_the_reason() {
    let page = std::fs::read_to_string(package().join("../../docs/mcp-server.md")).unwrap();
    let says = |reason: &str, name: &str| {
        let is_row = |line: &str| line.starts_with(&format!("| {reason} |"));
        page.lines().any(|line| is_row(line) && line.contains(&format!("`{name}`")))
    };
    for (scenario, fate) in SCENARIOS {
        match fate {
            Passes | PassesByRoots => {}
            PassesBut(checks) => {
                for (check, reason) in checks {
                    assert!(says(reason, check), "{check}: {reason}");
                }
            }
            IsNotRun(reason) => assert!(says(reason, scenario), "{scenario}: {reason}"),
        }
    }
}
