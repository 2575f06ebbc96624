//! The attempts that lie beside this project, when they are there: a program of its own, told which wrapper to use.

use crate::peers::{Place, Sandbox, Tools, on_path};
use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = "run_escape.sh";

/// What it found in one sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) escaped: Vec<String>,
    pub(super) held: usize,
    pub(super) skipped: usize,
    /// Attempts without a verdict.
    pub(super) broken: usize,
    /// Ordinary things that must work, and those of them that did not.
    pub(super) controls: usize,
    pub(super) broken_controls: Vec<String>,
}

/// The file that it writes.
#[derive(Deserialize)]
struct Report {
    controls: Vec<Line>,
    results: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    name: String,
    verdict: String,
}

/// Where it is, whole.
///
/// # Errors
/// It is not there.
pub(super) fn at(directory: &Path) -> anyhow::Result<PathBuf> {
    let whole = directory.canonicalize().with_context(|| directory.display().to_string())?;
    let program = whole.join(PROGRAM);
    anyhow::ensure!(program.is_file(), "there is no {}", program.display());
    Ok(whole)
}

/// Makes all of its attempts in a sandbox.
///
/// # Errors
/// Why that cannot be.
#[expect(clippy::disallowed_methods, reason = "the attempts have a program of their own")]
pub(super) fn run(
    suite: &Path,
    sandbox: Sandbox,
    tools: &Tools,
    scratch: &Path,
) -> Result<Found, String> {
    // Its own program puts the real directory here.
    let place = Place { workspace: Path::new("{WORKSPACE}"), settings: scratch };
    let wrapper = sandbox.wrap(tools, place)?;
    let json = scratch.join("suite.json");
    drop(std::fs::remove_file(&json));
    // Attempts on the keys of a session need one that nobody else has; without the program they go without.
    let mut command = Command::new(on_path("bash").ok_or("there is no program called `bash`")?);
    command.arg(suite.join(PROGRAM)).args(["-q", "-j"]).arg(&json).args(&wrapper.words);
    command.envs(wrapper.environment.iter().map(|(name, value)| (name, value)));
    command.env("ESC_BASE", scratch).current_dir(scratch);
    // A file, since what outlives an attempt would keep a pipe open.
    let said = scratch.join("suite.stderr");
    let stderr = std::fs::File::create(&said).map_err(|error| error.to_string())?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    let status = command.status().map_err(|error| error.to_string())?;
    let text = std::fs::read_to_string(&json).map_err(|_| {
        let said = std::fs::read(&said).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        format!("it wrote no result, {status}: {}", said.lines().last().unwrap_or_default())
    })?;
    read(&text)
}

fn read(text: &str) -> Result<Found, String> {
    let report: Report = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let count =
        |verdict: &str| report.results.iter().filter(|line| line.verdict == verdict).count();
    let named = |lines: &[Line], is: &dyn Fn(&str) -> bool| {
        lines
            .iter()
            .filter(|line| is(&line.verdict))
            .map(|line| line.name.clone())
            .collect::<Vec<_>>()
    };
    Ok(Found {
        escaped: named(&report.results, &|verdict| verdict == "ESCAPED"),
        held: count("HELD"),
        skipped: count("SKIP"),
        broken: count("ERROR"),
        controls: report.controls.len(),
        broken_controls: named(&report.controls, &|verdict| verdict != "OK"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_counted_and_escapes_named() {
        let text = r#"{"label": "x", "uid": 0,
            "controls": [{"name": "c1", "verdict": "OK"}, {"name": "c3", "verdict": "BROKEN"}],
            "results": [{"name": "23-chmod", "cat": "meta", "verdict": "ESCAPED", "effects": {}},
                {"name": "47-unix-path", "verdict": "HELD"}, {"name": "59-tcp6", "verdict": "SKIP"},
                {"name": "98-kernel-surface", "verdict": "ERROR"}]}"#;
        let found = read(text).expect("good JSON");
        let expected = Found {
            escaped: vec!["23-chmod".to_owned()],
            held: 1,
            skipped: 1,
            broken: 1,
            controls: 2,
            broken_controls: vec!["c3".to_owned()],
        };
        assert_eq!(found, expected);
    }
}
