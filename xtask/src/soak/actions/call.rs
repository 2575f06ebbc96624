//! `sandgate call -`: calls as JSON lines, questions and answers among them.

use crate::soak::errands;
use crate::soak::gate::{Answer, Call, Gate};
use crate::soak::lane::Lane;
use crate::soak::program::Talking;
use crate::soak::work::Work;
use crate::soak::world::Namespaces;
use anyhow::Context as _;
use rustix::process::Signal;
use serde_json::{Value, json};

const WORDS: [&str; 4] = ["call", "--decide", "stdin", "-"];

/// A session that is talked with.
pub(super) struct Lines(Talking);

impl Lines {
    pub(super) fn start(lane: &Lane<'_>, namespaces: Namespaces) -> anyhow::Result<Self> {
        Ok(Self(Talking::start(&mut lane.world.command(namespaces, &WORDS))?))
    }

    /// Kills it.
    pub(super) fn kill(self) -> anyhow::Result<()> {
        self.0.signal(Signal::KILL)?;
        self.0.end().map(drop)
    }

    /// Lets it end by itself.
    pub(super) fn end(self) -> anyhow::Result<()> {
        let ended = self.0.end()?;
        anyhow::ensure!(ended.code == Some(0), "the session ended badly: {ended:?}");
        Ok(())
    }
}

fn line(tool: &str, id: &str, arguments: &Value) -> Value {
    json!({ "type": "function_call", "name": tool, "call_id": id, "arguments": arguments.to_string() })
}

impl Gate for Lines {
    fn call(&mut self, call: &Call<'_>) -> anyhow::Result<Answer> {
        self.0.say(&line(call.tool, call.mark, &call.arguments));
        let mut asked = 0;
        loop {
            let said = self.0.hear()?.context("it has ended instead of an answer")?;
            if said["type"] == "function_call_output" {
                anyhow::ensure!(said["call_id"] == call.mark, "an answer to another call: {said}");
                return Ok(Answer {
                    success: said["success"] == true,
                    output: said["output"].as_str().unwrap_or_default().to_owned(),
                    exit_code: said["exit_code"].as_i64(),
                    timed_out: said["timed_out"] == true,
                    error: said["error"].as_str().map(str::to_owned),
                    asked,
                });
            }
            let decision = call.decision.with_context(|| format!("nobody expected {said}"))?;
            let mut answer = decision.in_json();
            answer["type"] = "approval_response".into();
            answer["approval_id"] = said["approval_id"].clone();
            self.0.say(&answer);
            asked += 1;
        }
    }
}

fn some_errands(lane: &mut Lane<'_>, namespaces: Namespaces) -> anyhow::Result<()> {
    let mut lines = Lines::start(lane, namespaces)?;
    for _ in 0..lane.random.between(1, 8) {
        errands::any(lane, &mut lines)?;
    }
    lines.end()
}

pub(super) fn session(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    some_errands(lane, Namespaces::Possible)
}

pub(super) fn without_namespaces(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    some_errands(lane, Namespaces::Refused)
}

/// Many calls are said at once, and it is killed amid them. The next session finds all in order.
pub(super) fn killed(lane: &mut Lane<'_>) -> anyhow::Result<()> {
    let mut lines = Lines::start(lane, Namespaces::Possible)?;
    for _ in 0..lane.random.between(0, 2) {
        errands::any(lane, &mut lines)?;
    }
    for _ in 0..lane.random.between(1, 3) {
        let work = match lane.random.percent(20) {
            true => Work::endless(lane.mark()),
            false => lane.work(),
        };
        let id = work.mark.clone();
        lines.0.say(&line(
            "apply_patch",
            &format!("{id}p"),
            &json!({ "input": errands::next_patch(lane)? }),
        ));
        lines.0.say(&line("shell", &id, &json!({ "command": work.argv })));
    }
    lane.linger();
    let signal = *lane.random.pick(&[Signal::KILL, Signal::KILL, Signal::KILL, Signal::TERM]);
    lines.0.signal(signal)?;
    lines.0.end()?;
    let mut next = Lines::start(lane, Namespaces::Possible)?;
    let work = lane.work();
    errands::check_work(lane, &mut next, &work)?;
    errands::version(lane).context("after the next session had begun")?;
    next.end()
}
