//! What can be done through whichever gate, with the world looked at afterwards.

use super::gate::{Call, Decision, Gate};
use super::lane::Lane;
use super::work::{Work, count, sh};
use serde_json::json;
use std::fs;
use std::path::PathBuf;

/// One way of using a gate.
type Errand = fn(&mut Lane<'_>, &mut dyn Gate) -> anyhow::Result<()>;

/// The ways of using a gate.
const ERRANDS: &[Errand] = &[
    command, command, command, command, patch, grant, escalate, dangerous, live, timeout, flood,
    read,
];

/// The files that a patch changes together.
const FILES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Any of them.
pub(super) fn any(lane: &mut Lane<'_>, gate: &mut dyn Gate) -> anyhow::Result<()> {
    let errand = *lane.random.pick(ERRANDS);
    errand(lane, gate)
}

fn command(lane: &mut Lane<'_>, gate: &mut dyn Gate) -> anyhow::Result<()> {
    let work = lane.work();
    check_work(lane, gate, &work)
}

/// Runs a command and holds its answer against what is known of it.
pub(super) fn check_work(lane: &Lane<'_>, gate: &mut dyn Gate, work: &Work) -> anyhow::Result<()> {
    let arguments = json!({ "command": work.argv });
    let answer = gate.call(&Call { tool: "shell", mark: &work.mark, arguments, decision: None })?;
    lane.ledger.ran(&work.mark);
    work.check(&answer)
}

/// Takes the files from one version to the next.
pub(super) fn next_patch(lane: &Lane<'_>) -> anyhow::Result<String> {
    let directory = lane.world.lane(lane.number)?;
    let name = format!("lane-{}", lane.number);
    let mut patch = "*** Begin Patch\n".to_owned();
    match version(lane)? {
        None => {
            for file in FILES {
                // What an interrupted patch made of some is there already.
                anyhow::ensure!(
                    !directory.join(file).exists(),
                    "{file} is there without the others"
                );
                patch += &format!("*** Add File: {name}/{file}\n+version 0\n");
            }
        }
        Some(version) => {
            let next = version + 1;
            for file in FILES {
                patch += &format!(
                    "*** Update File: {name}/{file}\n@@\n-version {version}\n+version {next}\n"
                );
            }
        }
    }
    Ok(patch + "*** End Patch\n")
}

/// The version of all files.
///
/// # Errors
/// When they are not all of the same: then a patch was done by half.
pub(super) fn version(lane: &Lane<'_>) -> anyhow::Result<Option<u64>> {
    let directory = lane.world.lane(lane.number)?;
    let versions: Vec<Option<String>> =
        FILES.iter().map(|file| fs::read_to_string(directory.join(file)).ok()).collect();
    anyhow::ensure!(
        versions.iter().all(|one| *one == versions[0]),
        "a patch was done by half: {versions:?}"
    );
    Ok(versions[0].as_ref().and_then(|text| text.trim().strip_prefix("version ")?.parse().ok()))
}

fn patch(lane: &mut Lane<'_>, gate: &mut dyn Gate) -> anyhow::Result<()> {
    let mark = lane.mark();
    let before = version(lane)?;
    let arguments = json!({ "input": next_patch(lane)? });
    let answer =
        gate.call(&Call { tool: "apply_patch", mark: &mark, arguments, decision: None })?;
    let after = version(lane)?;
    let right = answer.success && after == Some(before.map_or(0, |before| before + 1));
    anyhow::ensure!(right, "{before:?} became {after:?}: {answer:?}");
    Ok(())
}

/// A file that a grant or a yes lets a command make.
fn beyond(lane: &Lane<'_>, mark: &str) -> PathBuf {
    lane.world.path("granted").join(mark)
}

/// The sandbox blocks something, and only that is opened, or it is not.
fn grant(lane: &mut Lane<'_>, gate: &mut dyn Gate) -> anyhow::Result<()> {
    let decision = *lane.random.pick(&[Decision::Grant, Decision::Grant, Decision::No]);
    let mark = lane.mark();
    let file = beyond(lane, &mark);
    let script = format!("echo made > {} && echo done", file.display());
    let arguments = json!({ "command": sh(&mark, &script) });
    let call = Call { tool: "shell", mark: &mark, arguments, decision: Some(decision) };
    let answer = gate.call(&call)?;
    lane.ledger.ran(&mark);
    anyhow::ensure!(answer.asked == 1, "nobody was asked about what was blocked: {answer:?}");
    let made = fs::read_to_string(&file).ok();
    let right = match decision {
        Decision::Grant => answer.output == "done\n" && made.as_deref() == Some("made\n"),
        _ => answer.exit_code != Some(0) && made.is_none(),
    };
    let _ = fs::remove_file(&file);
    anyhow::ensure!(right, "{decision:?}, {made:?}: {answer:?}");
    Ok(())
}

/// A command asks to leave the sandbox.
fn escalate(lane: &mut Lane<'_>, gate: &mut dyn Gate) -> anyhow::Result<()> {
    let decision = *lane.random.pick(&[Decision::Yes, Decision::No]);
    let mark = lane.mark();
    let file = beyond(lane, &mark);
    let arguments = json!({
        "command": sh(&mark, &format!("echo made > {}; echo done", file.display())),
        "sandbox_permissions": "require_escalated", "justification": "a soak wants to",
    });
    let call = Call { tool: "shell", mark: &mark, arguments, decision: Some(decision) };
    let answer = gate.call(&call)?;
    let made = file.exists();
    let _ = fs::remove_file(&file);
    let right = match decision {
        Decision::Yes => answer.output == "done\n" && made,
        _ => answer.error.as_deref() == Some("approval_denied") && !made,
    };
    if decision == Decision::Yes {
        lane.ledger.ran(&mark);
    }
    anyhow::ensure!(right && answer.asked == 1, "{decision:?}, {made}: {answer:?}");
    Ok(())
}

/// What is asked about whatever the sandbox, and refused. Not tried otherwise: Landlock alone does not keep modes,
/// nor names that are not there yet, and says so.
fn dangerous(lane: &mut Lane<'_>, gate: &mut dyn Gate) -> anyhow::Result<()> {
    let mark = lane.mark();
    let file = lane.world.path("outside/a");
    let script = match lane.random.below(4) {
        0 => format!("chmod 777 {}", file.display()),
        1 => "cp /dev/null .codex".to_owned(),
        2 => "mkdir -p .git/hooks && echo x > .git/hooks/pre-commit".to_owned(),
        _ => "echo x > .agents".to_owned(),
    };
    let arguments = json!({ "command": sh(&mark, &script) });
    let decision = Some(Decision::No);
    let answer = gate.call(&Call { tool: "shell", mark: &mark, arguments, decision })?;
    let right = answer.error.as_deref() == Some("approval_denied") && answer.asked == 1;
    anyhow::ensure!(right, "{script:?} was answered {answer:?}");
    Ok(())
}

/// A shell that is talked with over several calls.
fn live(lane: &mut Lane<'_>, gate: &mut dyn Gate) -> anyhow::Result<()> {
    let mark = lane.mark();
    let mut call =
        |tool, arguments| gate.call(&Call { tool, mark: &mark, arguments, decision: None });
    let started =
        call("exec_command", json!({ "command": ["bash", "--norc"], "process_id": mark }))?;
    let reply = started.reply()?;
    anyhow::ensure!(reply["process_id"] == mark.as_str(), "it does not live: {started:?}");
    for _ in 0..lane.random.between(1, 6) {
        let (a, b) = (lane.random.below(1000), lane.random.below(1000));
        let line = match lane.random.below(4) {
            0 => format!("x={a}; sleep 0.0{}; echo $((x+{b}))\n", b % 10),
            1 => format!("(setsid sleep 1000 >/dev/null 2>&1 &); echo $(({a}+{b}))\n"),
            _ => format!("echo $(({a}+{b}))\n"),
        };
        let typed = call(
            "write_stdin",
            json!({ "process_id": mark, "input": line, "yield_time_ms": 30_000 }),
        )?;
        let said = typed.reply()?;
        anyhow::ensure!(said["output"] == format!("{}\n", a + b), "{line:?} was answered {said}");
    }
    match lane.random.below(3) {
        0 => {
            let ended = call("write_stdin", json!({ "process_id": mark, "input": "exit 7\n" }))?;
            anyhow::ensure!(ended.reply()?["exit_code"] == 7, "{ended:?}");
        }
        1 => {
            let ended = call(
                "write_stdin",
                json!({ "process_id": mark, "signal": "KILL", "yield_time_ms": 30_000 }),
            )?;
            anyhow::ensure!(ended.reply()?["exit_code"] == 137, "{ended:?}");
        }
        _ => {
            let ended = call("kill_process", json!({ "process_id": mark }))?;
            anyhow::ensure!(ended.success, "{ended:?}");
        }
    }
    Ok(())
}

fn timeout(lane: &mut Lane<'_>, gate: &mut dyn Gate) -> anyhow::Result<()> {
    let work = Work::endless(lane.mark());
    let limit = lane.random.between(50, 700);
    let arguments = json!({ "command": work.argv, "timeout_ms": limit });
    let answer = gate.call(&Call { tool: "shell", mark: &work.mark, arguments, decision: None })?;
    lane.ledger.ran(&work.mark);
    anyhow::ensure!(answer.exit_code == Some(124) && answer.timed_out, "no time-out: {answer:?}");
    Ok(())
}

/// More than a model is given: both ends are there, and the rest can be read afterwards.
fn flood(lane: &mut Lane<'_>, gate: &mut dyn Gate) -> anyhow::Result<()> {
    let lines = lane.random.between(250_000, 600_000);
    let work = Work::flood(lane.mark(), lines);
    let arguments = json!({ "command": work.argv });
    let answer = gate.call(&Call { tool: "shell", mark: &work.mark, arguments, decision: None })?;
    lane.ledger.ran(&work.mark);
    let ends =
        answer.output.contains("\n1\n2\n3\n") && answer.output.contains(&format!("\n{lines}"));
    let id =
        answer.output.split("full output: ").nth(1).and_then(|rest| rest.split([' ', ']']).next());
    let (true, Some(id)) = (ends, id) else {
        anyhow::bail!("an end is missing, or what the whole is called: {:.300}", answer.output)
    };
    let first = lane.random.between(1, lines - 50);
    let arguments = json!({ "id": id, "first_line": first, "lines": 50 });
    let page =
        gate.call(&Call { tool: "read_output", mark: &work.mark, arguments, decision: None })?;
    anyhow::ensure!(
        page.output.contains(count(first, first + 49).trim_end()),
        "line {first} of {lines} and the next are wrong: {page:?}"
    );
    Ok(())
}

fn read(lane: &mut Lane<'_>, gate: &mut dyn Gate) -> anyhow::Result<()> {
    let mark = lane.mark();
    let file = lane.world.lane(lane.number)?.join("to-read");
    fs::write(&file, format!("{mark}\n"))?;
    let arguments = json!({ "path": file });
    let answer = gate.call(&Call { tool: "read_file", mark: &mark, arguments, decision: None })?;
    anyhow::ensure!(answer.success && answer.output.contains(&mark), "{answer:?}");
    Ok(())
}
