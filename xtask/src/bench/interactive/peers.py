# Times `echo hi` to a live bash until the prompt is back: by hand, and by pexpect as people use it and
# with its delay off. Prints one JSON object: name to list of seconds, or to null where it is missing.
import json
import os
import pty
import sys
import time

rounds = int(sys.argv[1])
prompt = b"ready> "


def by_hand():
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["PS1"] = prompt.decode()
        os.execvp("bash", ["bash", "--norc", "-i"])
    seen = b""
    while not seen.endswith(prompt):
        seen += os.read(fd, 4096)
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        os.write(fd, b"echo hi\n")
        seen = b""
        while not seen.endswith(prompt):
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


results = {
    "by hand": by_hand(),
    "pexpect": by_pexpect(0.05),
    "pexpect, its delay off": by_pexpect(None),
}
print(json.dumps(results))
