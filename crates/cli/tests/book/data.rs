//! Reads what pages show as data with what reads it in the program, and looks for programs that they show
//! among those that tests compile and run.

use crate::page::{Block, root};
use crate::support::World;
use sandgate_protocol::SessionEvent;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// TOML is a file of rules or one of settings, or a part of a manifest.
pub(crate) fn toml(block: &Block) {
    if block.text.contains("[dependencies]") {
        let manifest: Result<toml::Table, _> = toml::from_str(&block.text);
        assert!(manifest.is_ok(), "{}: {manifest:?}", block.place);
        return;
    }
    let world = World::untouched();
    let file = world.path("shown.toml");
    fs::write(&file, &block.text).unwrap();
    let file = file.to_str().unwrap();
    let read = match block.text.contains("[[rule]]") {
        true => world.sandgate(&["policy", "check", "--rules", file]),
        false => world.sandgate(&["config", "validate", file]),
    };
    assert_eq!((read.code, read.stderr.as_str()), (Some(0), ""), "{}", block.place);
}

/// JSON is one value, or one a line. What has a number in the session is an event, and what a model would
/// do is a script that it can be played from.
pub(crate) fn json(block: &Block) {
    let place = &block.place;
    let values: Vec<Value> = match serde_json::from_str(&block.text) {
        Ok(value) => vec![value],
        Err(_) => {
            let lines = block.text.lines().map(serde_json::from_str);
            let values: Result<_, serde_json::Error> = lines.collect();
            values.unwrap_or_else(|error| panic!("{place}: {error}"))
        }
    };
    for value in &values {
        if value.get("seq").is_some() {
            let event: Result<SessionEvent, _> = serde_json::from_value(value.clone());
            assert!(event.is_ok(), "{place}: it is no event: {event:?}");
        }
    }
    let turn = |value: &Value| value.as_array().unwrap_or(&vec![value.clone()])[0]["type"].clone();
    if ["message", "call"].contains(&turn(&values[0]).as_str().unwrap_or_default()) {
        let world = World::new();
        fs::write(world.path("script"), &block.text).unwrap();
        let played = world.sandgate(&["exec", "--provider", "script:script", "look around"]);
        assert_eq!(played.code, Some(0), "{place}: {}", played.stderr);
    }
}

/// A program is one that tests have: the whole block stands, line by line, in a file that they compile or run,
/// or the page is among those whose examples the compiler takes from it.
pub(crate) fn program(block: &Block) {
    let page = block.place.split(':').next().unwrap();
    let shown = lines(&block.text);
    let mut files = Vec::new();
    for directory in ["crates", "docs/examples"] {
        collect(&root().join(directory), &mut files);
    }
    let is_shown = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let doctest = format!("include_str!(\"../../../{page}\")");
        (file.ends_with("src/lib.rs") && text.contains(&doctest))
            || lines(&text).windows(shown.len()).any(|part| part == shown)
    };
    assert!(
        files.iter().any(is_shown),
        "{}: no test, example or documentation has these lines",
        block.place
    );
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs" || end == "py") {
            files.push(path);
        }
    }
}
