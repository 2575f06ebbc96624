"""A database in a test listens on a file."""

import os
import socket
import threading

server = socket.socket(socket.AF_UNIX)
server.bind("base.sock")
server.listen()


def serve():
    peer, _ = server.accept()
    peer.sendall(peer.recv(64).upper())


threading.Thread(target=serve, daemon=True).start()
client = socket.socket(socket.AF_UNIX)
client.settimeout(10)
client.connect("base.sock")
client.sendall(b"question")
assert client.recv(64) == b"QUESTION"
os.unlink("base.sock")
