# Times `echo hi` to a live shell until the prompt is back: by hand, by pexpect as people use it and
# with its delay off, and by swe-rex. Prints one JSON object: name to list of seconds, or to null where it is missing.
import json
import os
import pty
import shutil
import sys
import tempfile
import time

rounds = int(sys.argv[1])
prompt = b"ready> "


def by_hand(*command):
    if not shutil.which(command[0]):
        return None
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(PS1=prompt.decode(), TERM="dumb", HOME=home)
        os.chdir(home)
        os.execvp(command[0], command)
    seen = b""
    while not seen.endswith(prompt):
        seen += os.read(fd, 4096)
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        os.write(fd, b"echo h''i\n")
        seen = b""
        # Some show their prompt again while they are typed to.
        while b"hi\r\n" not in seen or not seen.endswith(prompt):
            seen += os.read(fd, 4096)
        times.append(time.perf_counter() - began)
    os.write(fd, b"exit\n")
    os.waitpid(pid, 0)
    return times


def by_pexpect(delay):
    try:
        import pexpect
    except ImportError:
        return None
    environment = dict(os.environ, PS1=prompt.decode())
    bash = pexpect.spawn("bash", ["--norc", "-i"], env=environment)
    bash.delaybeforesend = delay
    bash.expect_exact(prompt)
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        bash.sendline("echo hi")
        bash.expect_exact(prompt)
        times.append(time.perf_counter() - began)
    bash.close(force=True)
    return times


def by_swe_rex():
    try:
        from swerex.runtime.abstract import BashAction, CreateBashSessionRequest
        from swerex.runtime.local import LocalRuntime
    except ImportError:
        return None
    import asyncio
    import logging

    logging.disable(logging.CRITICAL)

    async def rounds_of_it():
        runtime = LocalRuntime()
        await runtime.create_session(CreateBashSessionRequest())
        times = []
        for _ in range(min(rounds, 30)):
            began = time.perf_counter()
            said = await runtime.run_in_session(BashAction(command="echo hi"))
            times.append(time.perf_counter() - began)
            assert said.output.strip() == "hi", said
        await runtime.close()
        return times

    return asyncio.run(rounds_of_it())


own_prompt = "functions -c fish_prompt own; function fish_prompt; own; printf 'ready> '; end"
with tempfile.TemporaryDirectory() as home:
    os.makedirs(f"{home}/.local/share/fish/generated_completions")
    results = {
        "bash, by hand": by_hand("bash", "--norc", "-i"),
        "fish with its own prompt, by hand": by_hand("fish", "-i", "-C", own_prompt),
        "bash, pexpect": by_pexpect(0.05),
        "bash, pexpect, its delay off": by_pexpect(None),
        "bash, swe-rex": by_swe_rex(),
    }
print(json.dumps(results))
