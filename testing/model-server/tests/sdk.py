"""Asks model servers by means of the official SDKs, and prints what they saw as a JSON array.

    sdk.py (WIRE MODE URL)...

WIRE is `responses`, `chat` or `messages`. MODE is `whole` (no stream), `events` (each event of the
stream, held against the SDK's own types) or `stream` (what the SDK makes of a stream), each of which
holds a conversation with calls until the model ends, or `fail`, which asks once without a retry and
prints the error, or `retry`, which asks once with retries.
"""

import functools
import json
import sys
import warnings

import anthropic
import openai
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

# Whatever an SDK complains about is an error here.
warnings.simplefilter("error")
# The SDK's own types serialize what it has parsed into others of its types, which pydantic dislikes.
warnings.filterwarnings("ignore", message="(?s).*Pydantic serializer warnings.*")

SCHEMA = {
    "type": "object",
    "properties": {"command": {"type": "string", "description": "What to run"}},
    "required": ["command"],
    "additionalProperties": False,
}
PATCH = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
LONGEST = 8  # turns


@functools.cache
def adapter(kind):
    return TypeAdapter(kind)


def valid(kind, value):
    """What the SDK read, if its own types allow it."""
    adapter(kind).validate_python(value.to_dict(mode="json", exclude_unset=True))
    return value


def result(call):
    """What the tools answer: something that a script can expect."""
    return "result of " + call


class Responses:
    def __init__(self, url, retries):
        self.client = openai.OpenAI(base_url=url + "/v1", api_key="key", max_retries=retries)
        self.items = [{"role": "user", "content": "hello"}]

    def parameters(self):
        return {
            "model": "model-1",
            "instructions": "You are a test.",
            "input": self.items,
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "low", "summary": "auto"},
            "tools": [
                {
                    "type": "function",
                    "name": "shell_command",
                    "description": "Runs a command",
                    "parameters": SCHEMA,
                    "strict": True,
                },
                {"type": "custom", "name": "apply_patch", "description": "Applies a patch"},
            ],
        }

    def ask(self, mode):
        if mode == "whole":
            return valid(Response, self.client.responses.create(**self.parameters()))
        if mode == "stream":
            with self.client.responses.stream(**self.parameters()) as stream:
                for event in stream:
                    pass
                # The SDK has a final response only of what came to its proper end.
                if event.type == "response.incomplete":
                    return event.response
                return stream.get_final_response()
        last = None
        deltas = ""
        with self.client.responses.create(stream=True, **self.parameters()) as stream:
            for number, event in enumerate(stream):
                valid(ResponseStreamEvent, event)
                assert event.sequence_number == number, event
                if event.type == "response.output_text.delta":
                    deltas += event.delta
                last = event
        assert last.type in ("response.completed", "response.incomplete"), last
        assert deltas == last.response.output_text, (deltas, last)
        return last.response

    def take(self, response):
        seen = {"text": response.output_text, "reasoning": "", "sealed": 0, "calls": []}
        for item in response.output:
            if item.type == "reasoning":
                seen["reasoning"] += "".join(part.text for part in item.summary)
                seen["sealed"] += 1 if item.encrypted_content else 0
            elif item.type == "function_call":
                seen["calls"].append([item.name, json.loads(item.arguments)])
            elif item.type == "custom_tool_call":
                seen["calls"].append([item.name, {"input": item.input}])
        details = response.incomplete_details
        seen["stop"] = details.reason if details else "done"
        usage = response.usage
        seen["usage"] = [
            usage.input_tokens,
            usage.input_tokens_details.cached_tokens,
            usage.output_tokens,
            usage.output_tokens_details.reasoning_tokens,
        ]
        for item in response.output:
            # What the SDK parsed for its user's convenience is not for the service.
            again = item.to_dict(mode="json", exclude_unset=True)
            again.pop("parsed_arguments", None)
            for part in again.get("content") or []:
                part.pop("parsed", None)
            self.items.append(again)
        for item in response.output:
            if item.type in ("function_call", "custom_tool_call"):
                output = {"call_id": item.call_id, "output": result(item.name)}
                self.items.append({"type": item.type + "_output", **output})
        return seen


class Chat:
    def __init__(self, url, retries):
        self.client = openai.OpenAI(base_url=url + "/v1", api_key="key", max_retries=retries)
        self.messages = [
            {"role": "system", "content": "You are a test."},
            {"role": "user", "content": "hello"},
        ]

    def parameters(self):
        def tool(name, schema):
            return {"type": "function", "function": {"name": name, "parameters": schema}}

        tools = [tool("shell_command", SCHEMA), tool("apply_patch", PATCH)]
        return {"model": "model-1", "messages": self.messages, "tools": tools}

    def ask(self, mode):
        create = self.client.chat.completions.create
        if mode == "whole":
            return valid(ChatCompletion, create(**self.parameters()))
        state = ChatCompletionStreamState()
        options = {"stream": True, "stream_options": {"include_usage": True}}
        with create(**options, **self.parameters()) as stream:
            for chunk in stream:
                state.handle_chunk(valid(ChatCompletionChunk, chunk) if mode == "events" else chunk)
        return state.current_completion_snapshot

    def take(self, completion):
        (choice,) = completion.choices
        message = choice.message
        calls = message.tool_calls or []
        usage = completion.usage
        thought = getattr(message, "reasoning_content", None) or ""
        self.messages.append(
            {
                "role": "assistant",
                "content": message.content,
                **({"reasoning_content": thought} if thought else {}),
                **({"tool_calls": [strip(call) for call in calls]} if calls else {}),
            }
        )
        for call in calls:
            output = {"tool_call_id": call.id, "content": result(call.function.name)}
            self.messages.append({"role": "tool", **output})
        return {
            "text": message.content or "",
            "reasoning": thought,
            "sealed": 0,
            "calls": [[call.function.name, json.loads(call.function.arguments)] for call in calls],
            "stop": "done" if choice.finish_reason in ("stop", "tool_calls") else choice.finish_reason,
            "usage": [
                usage.prompt_tokens,
                usage.prompt_tokens_details.cached_tokens,
                usage.completion_tokens,
                usage.completion_tokens_details.reasoning_tokens,
            ],
        }


def strip(call):
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": call.type, "function": function}


class Messages:
    def __init__(self, url, retries):
        self.client = anthropic.Anthropic(base_url=url, api_key="key", max_retries=retries)
        self.messages = [{"role": "user", "content": "hello"}]

    def parameters(self):
        return {
            "model": "model-1",
            "max_tokens": 4096,
            "system": "You are a test.",
            "messages": self.messages,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "tools": [
                {"name": "shell_command", "description": "Runs a command", "input_schema": SCHEMA},
                {"name": "apply_patch", "input_schema": PATCH},
            ],
        }

    def ask(self, mode):
        if mode == "whole":
            message = self.client.messages.create(**self.parameters())
            return valid(anthropic.types.Message, message)
        if mode == "stream":
            with self.client.messages.stream(**self.parameters()) as stream:
                for _ in stream:
                    pass
                return stream.get_final_message()
        with self.client.messages.create(stream=True, **self.parameters()) as stream:
            events = [valid(anthropic.types.RawMessageStreamEvent, event) for event in stream]
        assert [events[0].type, events[-1].type] == ["message_start", "message_stop"], events
        kinds = [event.type for event in events]
        assert kinds.count("content_block_start") == kinds.count("content_block_stop"), kinds
        return assemble(events)

    def take(self, message):
        seen = {"text": "", "reasoning": "", "sealed": 0, "calls": [], "stop": message.stop_reason}
        for block in message.content:
            if block.type == "text":
                seen["text"] += block.text
            elif block.type == "thinking":
                seen["reasoning"] += block.thinking
                seen["sealed"] += 1 if block.signature else 0
            elif block.type == "redacted_thinking":
                seen["sealed"] += 1 if block.data else 0
            elif block.type == "tool_use":
                seen["calls"].append([block.name, block.input])
        if seen["stop"] in ("end_turn", "tool_use"):
            seen["stop"] = "done"
        usage = message.usage
        cached = usage.cache_read_input_tokens
        seen["usage"] = [usage.input_tokens + cached, cached, usage.output_tokens, None]
        again = [block.to_dict(mode="json", exclude_none=True) for block in message.content]
        self.messages.append({"role": "assistant", "content": again})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": result(block.name)}
            for block in message.content
            if block.type == "tool_use"
        ]
        self.messages.append({"role": "user", "content": results or "and now?"})
        return seen


def assemble(events):
    """The message that events make, by hand: a second opinion on what the SDK makes of them."""
    message = events[0].message.to_dict(mode="json")
    for event in events:
        if event.type == "content_block_start":
            assert event.index == len(message["content"]), event
            message["content"].append(event.content_block.to_dict(mode="json"))
        elif event.type == "content_block_delta":
            block, delta = message["content"][event.index], event.delta
            if delta.type == "text_delta":
                block["text"] += delta.text
            elif delta.type == "thinking_delta":
                block["thinking"] += delta.thinking
            elif delta.type == "signature_delta":
                block["signature"] += delta.signature
            elif delta.type == "input_json_delta":
                block["json"] = block.get("json", "") + delta.partial_json
        elif event.type == "message_delta":
            message["stop_reason"] = event.delta.stop_reason
            message["usage"]["output_tokens"] = event.usage.output_tokens
    for block in message["content"]:
        if "json" in block:
            block["input"] = json.loads(block.pop("json"))
    return anthropic.types.Message.model_validate(message)


def fail(asker):
    """The error that comes, as far as the SDK tells."""
    try:
        asker.ask("events")
    except Exception as error:
        body = getattr(error, "body", None)
        inner = body.get("error", body) if isinstance(body, dict) else {}
        kind = inner.get("code") or inner.get("type") if isinstance(inner, dict) else None
        response = getattr(error, "response", None)
        return {
            "error": type(error).__name__,
            "status": getattr(error, "status_code", None),
            "code": kind,
            "message": str(error),
            "retry_after": response.headers.get("retry-after") if response is not None else None,
        }
    return {"error": None}


def converse(asker, mode):
    """What is seen of a conversation, turn by turn."""
    seen = []
    while len(seen) < LONGEST:
        seen.append(asker.take(asker.ask(mode)))
        if not seen[-1]["calls"]:
            break
    return seen


def job(wire, mode, url):
    kind = {"responses": Responses, "chat": Chat, "messages": Messages}[wire]
    asker = kind(url, 3 if mode == "retry" else 0)
    if mode == "fail":
        return fail(asker)
    return converse(asker, "events" if mode == "retry" else mode)


words = sys.argv[1:]
print(json.dumps([job(*words[at : at + 3]) for at in range(0, len(words), 3)]))
