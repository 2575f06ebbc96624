"""Drives `sandgate acp` by the official SDK for Python.

Arguments: what is to be done as JSON, and the program with its own. Writes what happened as one line of JSON.
What is to be done: {"cwd", "load" (an id or null), "servers" (as the protocol has them, or null), "steps":
[{"mode", "prompt", "option", "cancel_when"}]}. A step chooses a mode or takes a turn, and ends with it; `option`
answers the questions of a turn, and it is called off as soon as the file `cancel_when` is there.
"""

import asyncio
import json
import os
import sys

import acp


class Editor:
    def __init__(self):
        self.updates, self.asked, self.option = [], [], None

    async def request_permission(self, session_id, tool_call, options, **_):
        plain = lambda one: one.model_dump(by_alias=True, mode="json", exclude_none=True)
        self.asked.append({"call": plain(tool_call), "options": [plain(one) for one in options]})
        if self.option is None:
            await asyncio.Event().wait()
        return {"outcome": {"outcome": "selected", "optionId": self.option}}

    async def session_update(self, session_id, update, **_):
        self.updates.append(update.model_dump(by_alias=True, mode="json", exclude_none=True))

    def take(self):
        taken = {"updates": self.updates, "asked": self.asked}
        self.updates, self.asked = [], []
        return taken


async def cancel_when(connection, session, path):
    while not os.path.exists(path):
        await asyncio.sleep(0.02)
    await connection.cancel(session_id=session)


def server_of(plain):
    kinds = {"http": acp.schema.HttpMcpServer, "sse": acp.schema.SseMcpServer}
    return kinds.get(plain.get("type"), acp.schema.McpServerStdio).model_validate(plain)


async def main():
    todo, program = json.loads(sys.argv[1]), sys.argv[2:]
    editor, said = Editor(), {"steps": []}
    env = dict(os.environ)
    async with acp.spawn_agent_process(editor, *program, env=env, cwd=todo["cwd"]) as (connection, _):
        hello = await connection.initialize(protocol_version=1)
        said["hello"] = hello.model_dump(by_alias=True, mode="json", exclude_none=True)
        servers = [server_of(one) for one in todo.get("servers") or []]
        if todo.get("load"):
            session = todo["load"]
            begun = await connection.load_session(
                cwd=todo["cwd"], session_id=session, mcp_servers=servers
            )
        else:
            begun = await connection.new_session(cwd=todo["cwd"], mcp_servers=servers)
            session = begun.session_id
        said["session"] = session
        said["modes"] = begun.modes.model_dump(by_alias=True, mode="json", exclude_none=True)
        said["loaded"] = editor.take()
        for step in todo["steps"]:
            editor.option = step.get("option")
            if step.get("mode"):
                try:
                    await connection.set_session_mode(session_id=session, mode_id=step["mode"])
                    ended = {}
                except acp.RequestError as error:
                    ended = {"error": error.code, "message": str(error)}
                said["steps"].append(ended | editor.take())
                continue
            prompting = connection.prompt(session_id=session, prompt=[acp.text_block(step["prompt"])])
            if step.get("cancel_when"):
                stopping = asyncio.create_task(
                    cancel_when(connection, session, step["cancel_when"])
                )
            try:
                ended = {"stopReason": (await prompting).stop_reason}
            except acp.RequestError as error:
                ended = {"error": error.code, "message": str(error)}
            said["steps"].append(ended | editor.take())
    print(json.dumps(said))


asyncio.run(asyncio.wait_for(main(), 50))
