"""Does with the official Python SDK what a client does with our server, and prints what came of it.

    mcp_client.py MODE DIRECTORY SLEEP PROGRAM [ARGUMENT...]

MODE is how the SDK connects: legacy (the handshake of 2025-11-25) or auto (2026-07-28 where the server has it).
SLEEP is a number of seconds by which the test finds the command that is cancelled.
"""

import asyncio
import json
import os
import sys

import mcp_types as types
from mcp import Client, StdioServerParameters

mode, directory, sleep, program, *arguments = sys.argv[1:]
forms = []
progress = []


def tell(name, value):
    print(json.dumps({name: value}), flush=True)


async def answer(context, params):
    forms.append(params.message)
    return types.ElicitResult(action="accept", content={"decision": "approve"})


async def heard(done, total, message):
    progress.append(message)


def sleeping():
    count = 0
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as line:
                words = line.read().split(b"\0")
        except OSError:
            continue
        count += words[:2] == [b"sleep", sleep.encode()]
    return count


async def until(is_so):
    for _ in range(6000):
        if is_so():
            return True
        await asyncio.sleep(0.01)
    return False


def shown(result):
    return {
        "error": result.is_error,
        "text": "".join(block.text for block in result.content if block.type == "text"),
        "facts": result.structured_content,
    }


async def main():
    environment = {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR") if name in os.environ}
    server = StdioServerParameters(command=program, args=arguments, cwd=directory, env=environment)
    async with Client(server, mode=mode, elicitation_callback=answer) as client:
        tell("version", client.protocol_version)
        tools = await client.list_tools()
        tell("tools", [tool.name for tool in tools.tools])

        streamed = asyncio.create_task(
            client.call_tool(
                "shell",
                {"command": ["sh", "-c", "echo early; while [ ! -e go ]; do sleep 0.02; done; echo late"],
                 "timeout_ms": 60000},
                progress_callback=heard,
            )
        )
        tell("early", await until(lambda: "early" in "".join(progress)))
        open(os.path.join(directory, "go"), "w").close()
        tell("streamed", shown(await streamed))

        escape = {"command": ["sh", "-c", "echo x > asked"], "sandbox_permissions": "require_escalated",
                  "justification": "because the test wants it"}
        tell("asked", shown(await client.call_tool("shell", escape)))
        tell("forms", forms)

        cancelled = asyncio.create_task(
            client.call_tool("shell", {"command": ["sh", "-c", f"setsid sleep {sleep} & sleep {sleep}; :"],
                                       "timeout_ms": 60000})
        )
        tell("slept", await until(lambda: sleeping() >= 2))
        cancelled.cancel()
        tell("ended", await until(lambda: sleeping() == 0))

        started = await client.call_tool("exec_command", {"command": ["cat"], "tty": False, "yield_time_ms": 250})
        process = started.structured_content["process_id"]
        said = await client.call_tool(
            "write_stdin", {"process_id": process, "input": "hello\n", "wait_for": "hello", "yield_time_ms": 20000}
        )
        tell("said", shown(said))
        resources = await client.list_resources()
        tell("resources", [resource.uri for resource in resources.resources])
        read = await client.read_resource(f"sandgate://process/{process}/output")
        tell("read", read.contents[0].text)

        patch = "*** Begin Patch\n*** Add File: patched\n+hello\n*** End Patch\n"
        tell("patched", shown(await client.call_tool("apply_patch", {"input": patch})))


asyncio.run(main())
