//! A client of `sandgate mcp` that can show forms.

use super::gate::{Answer, Call, Decision, Gate};
use super::program::Talking;
use super::world::{Namespaces, World};
use anyhow::Context as _;
use serde_json::{Value, json};

/// A server that was greeted.
pub(super) struct Mcp {
    pub(super) talking: Talking,
    last: u64,
}

impl Mcp {
    pub(super) fn start(world: &World) -> anyhow::Result<Self> {
        let talking = Talking::start(&mut world.command(Namespaces::Possible, &["mcp"]))?;
        let mut mcp = Self { talking, last: 0 };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "soak", "version": "1" } });
        let id = mcp.send("initialize", &hello);
        mcp.answer(id, "", None)?;
        mcp.tell("notifications/initialized", &json!({}));
        Ok(mcp)
    }

    pub(super) fn tell(&mut self, method: &str, params: &Value) {
        self.talking.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.talking
            .say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Begins a call.
    pub(super) fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.send("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// The next message, whatever it is.
    pub(super) fn hear(&mut self) -> anyhow::Result<Value> {
        self.talking.hear()?.context("the server has ended")
    }

    /// Waits for an answer, and fills in the forms that come before it, all of them about `mark`. How many there were.
    fn answer(
        &mut self,
        id: u64,
        mark: &str,
        decision: Option<Decision>,
    ) -> anyhow::Result<(Value, usize)> {
        let mut asked = 0;
        loop {
            let said = self.hear()?;
            let form = said["method"] == "elicitation/create";
            if form {
                let expected = decision.filter(|_| said.to_string().contains(mark));
                let decision = expected.with_context(|| format!("nobody expected {said}"))?;
                let result =
                    json!({ "action": "accept", "content": { "decision": decision.in_form() } });
                self.talking.say(&json!({ "jsonrpc": "2.0", "id": said["id"], "result": result }));
                asked += 1;
            } else if said["id"] == id && said.get("method").is_none() {
                return Ok((said, asked));
            }
        }
    }
}

impl Gate for Mcp {
    fn call(&mut self, call: &Call<'_>) -> anyhow::Result<Answer> {
        let id = self.begin(call.tool, &call.arguments);
        let (said, asked) = self.answer(id, call.mark, call.decision)?;
        Ok(Answer { asked, ..answered(&said)? })
    }
}

/// What a message says a call came to.
pub(super) fn answered(said: &Value) -> anyhow::Result<Answer> {
    let result = said.get("result").with_context(|| format!("no result: {said}"))?;
    let facts = &result["structuredContent"];
    Ok(Answer {
        success: result["isError"] != true,
        output: result["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
        exit_code: facts["exit_code"].as_i64(),
        timed_out: facts["timed_out"] == true,
        error: facts["error"]["code"].as_str().map(str::to_owned),
        asked: 0,
    })
}
