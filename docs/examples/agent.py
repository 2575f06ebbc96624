"""Drives `sandgate call -` through a pipe: makes calls, answers questions, reads results."""
import json
import subprocess
import sys


class Gate:
    def __init__(self, *options):
        command = ["sandgate", "call", "--decide", "stdin", *options, "-"]
        self.program = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.calls = 0

    def say(self, line):
        self.program.stdin.write(json.dumps(line) + "\n")
        self.program.stdin.flush()

    def call(self, tool, **arguments):
        self.calls += 1
        call_id = f"call_{self.calls}"
        self.say({"type": "function_call", "name": tool, "call_id": call_id,
                  "arguments": json.dumps(arguments)})
        for line in self.program.stdout:
            message = json.loads(line)
            if message["type"] == "error":
                raise ValueError(message["message"])
            if message["type"] == "function_call_output":
                return message
            answer = {"type": "approval_response", "approval_id": message["approval_id"]}
            self.say(answer | self.decide(message))
        raise EOFError("sandgate has ended")

    def decide(self, question):
        """Grants exactly what was blocked, for one call, and nothing else."""
        if question.get("grant_offer"):
            return {"decision": "approved_with_grant", "scope": "call"}
        return {"decision": "denied", "feedback": "stay in the workspace"}

    def close(self):
        self.program.stdin.close()
        return self.program.wait()


gate = Gate("--cd", sys.argv[1])
for tool, arguments in json.load(sys.stdin):
    result = gate.call(tool, **arguments)
    print(result.get("exit_code"), result.get("granted", {}), result["output"].strip())
sys.exit(gate.close())
