"""Runs a program at a terminal of its own where nobody types, and prints what it shows and its exit code."""
import os
import pty
import sys

pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
shown = b""
while True:
    try:
        some = os.read(terminal, 4096)
    except OSError:
        some = b""
    if not some:
        break
    shown += some
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(shown)
print(f"exit code {os.waitstatus_to_exitcode(status)}")
