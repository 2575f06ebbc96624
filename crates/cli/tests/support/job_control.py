"""Starts an interactive bash, given as arguments, on a terminal of its own, and plays a person who
stops a job, sends it to the background, fetches it back and interrupts it."""

import os
import pty
import signal
import sys

# Nothing here takes this long unless it hangs.
signal.alarm(60)
pid, terminal = pty.fork()
if pid == 0:
    os.environ.update(PS1="ready> ", TERM="dumb", HISTFILE="")
    os.execvp(sys.argv[1], sys.argv[1:])

seen = b""


def until(text):
    global seen
    while text not in seen:
        try:
            seen += os.read(terminal, 4096)
        except OSError:
            sys.exit(f"waited for {text!r} and got {seen!r}")
    seen = seen[seen.index(text) + len(text) :]


def until_foreground(other_than):
    while os.tcgetpgrp(terminal) in (0, other_than):
        os.sched_yield()


def type_line(line):
    os.write(terminal, line.encode() + b"\n")


until(b"ready> ")
shell = os.tcgetpgrp(terminal)
type_line("cat")
until_foreground(shell)
# Only a cat that answers is known to obey what is typed; before that, bash's child may be halfway there.
type_line("first")
until(b"first\r\nfirst\r\n")
os.write(terminal, b"\x1a")
until(b"Stopped")
until(b"ready> ")
type_line("jobs; echo listed")
until(b"[1]+")
until(b"listed\r\n")
until(b"ready> ")
# The same holds for this one: it says when it is no longer bash's child that keeps what is typed to itself.
type_line("sh -c 'echo here; exec sleep 1000' &")
until(b"here\r\n")
type_line("echo ne''xt")
until(b"next\r\n")
until(b"ready> ")
type_line("fg %1")
until_foreground(shell)
type_line("second")
until(b"second\r\nsecond\r\n")
os.write(terminal, b"\x04")
until(b"ready> ")
type_line("fg")
until(b"sleep 1000")
until_foreground(shell)
os.write(terminal, b"\x03")
until(b"ready> ")
type_line("echo code $?; exit 7")
until(b"code 130")
_, status = os.waitpid(pid, 0)
print("job control works, exit code", os.waitstatus_to_exitcode(status))
