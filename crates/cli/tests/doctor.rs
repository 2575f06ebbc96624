//! `sandgate doctor`.

#![cfg(target_os = "linux")]

mod support;

use sandgate_model_server::{ModelServer, Script};
use serde_json::Value;
use std::fs;
use support::{Outcome, Running, World};

fn report(outcome: &Outcome) -> Value {
    let report: Value = serde_json::from_str(outcome.stdout())
        .unwrap_or_else(|error| panic!("{error}: {outcome:?}"));
    // Wherever it was asked.
    for check in report["checks"].as_array().unwrap().iter().filter(|check| check["state"] != "ok")
    {
        let is_told = check["means"].is_string() && check["fix"][0].is_string();
        assert!(is_told, "it does not say what to do: {check}");
    }
    report
}

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name}: {report}"))
}

/// spec DOC.1: What works is told for the kernel's means, a command that is tried, shells, the model, settings,
/// rules and the record; it changes nothing, and the exit code is 0.
#[test]
fn a_machine_in_order_is_told_to_be() {
    let world = World::new();
    let outcome = world.sandgate(&["doctor", "--json", "--offline"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let report = report(&outcome);
    for name in ["machine", "Landlock", "seccomp", "a trial", "your own", "rules", "audit"] {
        assert_eq!(check(&report, name)["state"], "ok", "{report}");
    }
    assert_eq!(check(&report, "provider")["state"], "warning", "{report}");
    let words = world.sandgate(&["doctor", "--offline"]);
    assert!(words.stdout().contains("a command ran confined"), "{words:?}");
    assert!(!words.stdout().contains('\u{1b}'), "no colours where nobody sees them");
}

/// spec DOC.3: Where namespaces are refused that is a warning, with what it means and a command that may change
/// it, and what was tried is still held.
#[test]
fn a_machine_without_namespaces_is_told_why() {
    let world = World::new();
    let doctor = world.program(["doctor", "--json", "--offline"]);
    let mut alone = world.other("python3");
    alone.args(["-c", include_str!("support/without_namespaces.py")]);
    alone.arg(doctor.get_program()).args(doctor.get_args());
    let outcome = Running::start(&mut alone).wait();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let report = report(&outcome);
    let namespaces = check(&report, "namespaces");
    assert_eq!(namespaces["state"], "warning", "{report}");
    assert!(!namespaces["fix"].as_array().unwrap().is_empty(), "{report}");
    assert_eq!(check(&report, "a trial")["state"], "ok", "{report}");
}

/// spec DOC.6: Whatever is not in order is told with what that means and what to do about it.
///
/// spec DOC.4: What is not in order is told with what to do about it, and the exit code is 1: settings and rules
/// that cannot be read, a changed record, a provider without a key or one that is not there.
#[test]
fn what_is_wrong_is_told_with_what_to_do() {
    let world = World::new();
    world.set("approval_policy = \"sometimes\"\n");
    let outcome = world.sandgate(&["doctor", "--json", "--offline"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let settings = check(&report(&outcome), "config.toml").clone();
    assert_eq!(settings["fix"][0], "sandgate config validate", "{settings}");

    world.set("");
    let rules = world.path(".codex/rules");
    fs::create_dir_all(&rules).unwrap();
    fs::write(rules.join("mine.toml"), "[[rule]]\nprefix = 3\n").unwrap();
    let outcome = world.sandgate(&["doctor", "--json", "--offline"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let broken = check(&report(&outcome), "rules").clone();
    assert_eq!(broken["state"], "failed");
    assert_eq!(broken["fix"][0], "sandgate policy list", "{broken}");
    fs::remove_dir_all(rules).unwrap();

    assert_eq!(world.sandgate(&["run", "--", "echo", "recorded"]).code, Some(0));
    let log = fs::read_dir(world.path(".codex/audit")).unwrap().map(|entry| entry.unwrap().path());
    let mut log = log.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let log = log.next().expect("something was recorded");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replace("recorded", "rewritten")).unwrap();
    let outcome = world.sandgate(&["doctor", "--json", "--offline"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let audit = check(&report(&outcome), "audit").clone();
    assert_eq!(audit["fix"][0], "sandgate audit verify", "{audit}");
    fs::write(&log, text).unwrap();

    let mut program = world.program(["doctor", "--json", "--provider", "openai"]);
    program.env_remove("OPENAI_API_KEY");
    let outcome = Running::start(&mut program).wait();
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let provider = check(&report(&outcome), "provider")["found"].to_string();
    assert!(provider.contains("OPENAI_API_KEY"), "{provider}");
}

/// spec DOC.10: Where a link leads from the person's file out of their settings, it is told where to, and what of it
/// counts there.
#[cfg(unix)]
#[test]
fn where_the_settings_lead_is_told() {
    let world = World::new();
    let means = || {
        let outcome = world.sandgate(&["doctor", "--json", "--offline"]);
        check(&report(&outcome), "config.toml")["means"].to_string()
    };
    assert!(!means().contains("leads to"), "{}", means());
    fs::rename(world.path(".codex/config.toml"), world.path("config.toml")).unwrap();
    std::os::unix::fs::symlink("../config.toml", world.path(".codex/config.toml")).unwrap();
    let target = world.path("config.toml").canonicalize().unwrap();
    assert!(means().contains(&format!("it leads to {}: ", target.display())), "{}", means());
}

/// spec DOC.7: A file that is not in order is shown with the line that is wrong, once and as it stands there.
#[test]
fn a_line_that_is_wrong_is_shown_as_it_stands() {
    let world = World::new();
    world.set("approval_policy = \"sometimes\"\n");
    let words = world.sandgate(&["doctor", "--offline"]);
    let shown: Vec<&str> = words.stdout().lines().map(str::trim).collect();
    let line = |wanted: &&&str| **wanted == "1 | approval_policy = \"sometimes\"";
    assert_eq!(shown.iter().filter(line).count(), 1, "{words:?}");
    assert!(!words.stdout().contains("\\n"), "{words:?}");
}

/// spec DOC.8: A home that is not there, or that cannot be read or written to, is told with the lines that suffer
/// from it.
#[test]
fn a_home_that_cannot_be_used_is_told() {
    let world = World::new();
    fs::write(world.path("file"), "").unwrap();
    for home in ["file/home", "nowhere"] {
        let mut program = world.program(["doctor", "--json", "--offline"]);
        program.env("HOME", world.path(home)).env("CODEX_HOME", world.path("file/codex"));
        let outcome = Running::start(&mut program).wait();
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        let report = report(&outcome);
        let trial = check(&report, "a trial");
        assert!(trial["found"].as_str().unwrap().ends_with("is not there"), "{trial}");
        let audit = check(&report, "audit");
        assert!(audit["found"].as_str().unwrap().ends_with("file is no directory"), "{audit}");
        assert_eq!(check(&report, "config.toml")["state"], "failed", "{report}");
    }
}

/// spec DOC.5: A model's service is asked whether it is there with a request that asks a model nothing.
#[test]
fn a_service_is_asked_whether_it_is_there() {
    let server = ModelServer::start(Script::new());
    let world = World::new();
    let set = |url: &str| {
        world.set(&format!(
            "model_provider = \"test\"\nmodel = \"m\"\n[model_providers.test]\n\
             base_url = \"{url}/v1\"\nwire_api = \"responses\"\n"
        ));
    };
    set(&server.url());
    let outcome = world.sandgate(&["doctor", "--json"]);
    let found = report(&outcome);
    assert_eq!(check(&found, "provider")["state"], "ok", "{found}");
    drop(server);
    set("http://127.0.0.1:9");
    let outcome = world.sandgate(&["doctor", "--json"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let found = report(&outcome);
    assert!(
        check(&found, "provider")["found"].to_string().contains("cannot reach test"),
        "{found}"
    );
}
