"""What every system is asked to do: the constants and the scripted model's replies. Standard library only."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

ADD_ARGS = {"a": 2, "b": 3}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "label": {"type": "string"}},
    "required": ["n"],
    "additionalProperties": False,
}
CLIENT_ARGS = {"n": 1, "label": "abc"}
CLIENT_RESULT = {"text": "the selected text", "line": 42}
RESULT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "line": {"type": "integer"}},
    "required": ["text", "line"],
    "additionalProperties": False,
}
CLIENT_RESULT_JSON = json.dumps(CLIENT_RESULT)

PROMPT = "hi"
TURN_ANSWER = "answer 5"
PAUSE_ANSWER = "the selected text"
DELTAS = [f"w{index} " for index in range(2000)]
STREAM_TEXT = "".join(DELTAS)

MODEL_DELAY = 0.02  # seconds; in `duplicates` only, so that two deliveries overlap


@dataclass(frozen=True)
class Call:
    """The scripted model asks for a tool."""

    id: str
    name: str
    args: dict[str, Any]

    @cached_property
    def json(self) -> str:
        return json.dumps(self.args)


ADD = Call("c1", "add", ADD_ARGS)
SEL = Call("c1", "sel", CLIENT_ARGS)
EFFECT = Call("c2", "effect", {})


def turn(results: list[str]) -> Call | str:
    """Call `add`, then say what it returned."""
    return f"answer {results[-1]}" if results else ADD


def pause(results: list[str]) -> Call | str:
    """Call the client tool `sel`, then say what the client answered."""
    return f"seen {results[-1]}" if results else SEL


def duplicates(results: list[str]) -> Call | str:
    """Call the client tool `sel`, then the server tool `effect`, then stop."""
    return (SEL, EFFECT, "done")[min(len(results), 2)]


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Count:
    """What `duplicates` counts: model calls and side effects after the pause (correct: 2 and 1)."""

    def __init__(self) -> None:
        self.model_calls = 0
        self.effects = 0

    def reset(self) -> None:
        self.model_calls = self.effects = 0

    def report(self, outcomes: list[Any]) -> dict[str, Any]:
        """The counts, and what each of the two deliveries ended with."""
        errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        ended = [type(outcome).__name__ if outcome in errors else "ok" for outcome in outcomes]
        texts = [str(error)[:300] for error in errors]
        return {"model_calls": self.model_calls, "effects": self.effects, "deliveries": ended, "texts": texts}
