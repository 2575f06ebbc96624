"""Tries, from inside a cage, to approve what it may not: with what it can read, and with what it can reach."""

import glob
import http.client
import json
import os
import re
import socket
import sys

home, serving = sys.argv[1], sys.argv[2]
told = json.load(open(glob.glob(home + "/serve/*.json")[0]))
address = told["url"].split("//")[1]


def ask(token, method, path, body=None):
    connection = http.client.HTTPConnection(address, timeout=20)
    headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


status, listed = ask(told["requester_token"], "GET", "/approvals")
assert status == 200, (status, listed)
question = json.loads(listed)["approvals"][0]["id"]


def approve(token):
    return ask(token, "POST", "/approvals/" + question, '{"decision":"approved"}')[0]


print("with the token of the file:", approve(told["requester_token"]))

# Whatever in the person's files looks like a token.
found = set()
for directory, _, names in os.walk(home):
    for name in names:
        try:
            text = open(os.path.join(directory, name), "rb").read(4 << 20)
        except OSError:
            continue
        found.update(re.findall(rb"(?<![\w-])[\w-]{43}(?![\w-])", text))
# Whatever in the server's own words, variables and memory does.
for name in ["cmdline", "environ", "mem", "fd/2"]:
    try:
        text = open(f"/proc/{serving}/{name}", "rb").read(1 << 20)
    except OSError:
        continue
    found.update(re.findall(rb"[\w-]{43}", text))
print("others that were found:", sorted({approve(token.decode()) for token in found}))

# The sockets by which a person's own programs answer.
reached = 0
for path in glob.glob(home + "/desk/*.sock"):
    try:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(5)
        connection.connect(path)
        connection.sendall(b'{"type":"link"}\n')
        reached += b"token" in connection.recv(65536) + connection.recv(65536)
    except OSError:
        pass
print("sockets that told:", reached)
