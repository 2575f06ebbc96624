// Drives `sandgate acp` by the official SDK for JavaScript. What it takes and writes is what acp_client.py does.

import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const sdk = process.env.ACP_SDK;
const entry = JSON.parse(readFileSync(join(sdk, "package.json"))).exports["."].import;
const acp = await import(pathToFileURL(join(sdk, entry)));

const todo = JSON.parse(process.argv[2]);
const [program, ...words] = process.argv.slice(3);
const agent = spawn(program, words, { cwd: todo.cwd, stdio: ["pipe", "pipe", "inherit"] });

let seen = { updates: [], asked: [] };
let option = null;
const take = () => {
  const taken = seen;
  seen = { updates: [], asked: [] };
  return taken;
};

const client = acp
  .client({ name: "test" })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    seen.asked.push({ call: params.toolCall, options: params.options });
    if (option === null) return new Promise(() => {});
    return { outcome: { outcome: "selected", optionId: option } };
  })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    seen.updates.push(params.update);
  });

const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const said = { steps: [] };
const call = acp.methods.agent;
await client.connectWith(stream, async (editor) => {
  said.hello = await editor.request(call.initialize, { protocolVersion: 1, clientCapabilities: {} });
  const where = { cwd: todo.cwd, mcpServers: todo.servers ?? [] };
  const begun = todo.load
    ? await editor.request(call.session.load, { ...where, sessionId: todo.load })
    : await editor.request(call.session.new, where);
  const sessionId = todo.load ?? begun.sessionId;
  said.session = sessionId;
  said.modes = begun.modes;
  said.loaded = take();
  for (const step of todo.steps) {
    option = step.option ?? null;
    if (step.mode) {
      let ended = {};
      try {
        await editor.request(call.session.setMode, { sessionId, modeId: step.mode });
      } catch (error) {
        ended = { error: error.code, message: error.message };
      }
      said.steps.push({ ...ended, ...take() });
      continue;
    }
    const prompt = [{ type: "text", text: step.prompt }];
    const prompting = editor.request(call.session.prompt, { sessionId, prompt });
    if (step.cancel_when) {
      const looking = setInterval(() => {
        if (!existsSync(step.cancel_when)) return;
        clearInterval(looking);
        editor.notify(call.session.cancel, { sessionId });
      }, 20);
    }
    let ended;
    try {
      ended = { stopReason: (await prompting).stopReason };
    } catch (error) {
      ended = { error: error.code, message: error.message };
    }
    said.steps.push({ ...ended, ...take() });
  }
});
console.log(JSON.stringify(said));
agent.stdin.end();
agent.on("exit", () => process.exit(0));
if (agent.exitCode !== null) process.exit(0);
