"""Two ends of a pair, one in a child: what most programs talk with their helpers through."""

import os
import socket

ours, theirs = socket.socketpair()
ours.settimeout(10)
child = os.fork()
if child == 0:
    theirs.send(theirs.recv(64).upper())
    os._exit(0)
assert ours.send(b"question") == 8
assert ours.recv(64) == b"QUESTION"
os.waitpid(child, 0)
