"""The floor: a hand-written loop over dicts and `json`. It validates nothing, stores nothing and tells nobody."""

import json
from collections.abc import AsyncIterator
from typing import Any

from bench import story

MISSING = {"duplicates": "a bare loop has no notion of a delivery"}


async def model(messages: list[dict[str, Any]], script: Any) -> dict[str, Any]:
    reply = script([message["content"] for message in messages if message["role"] == "tool"])
    if isinstance(reply, str):
        return {"role": "assistant", "content": reply}
    return {"role": "assistant", "calls": [{"id": reply.id, "name": reply.name, "arguments": reply.json}]}


async def loop(messages: list[dict[str, Any]], script: Any) -> str | None:
    """Run until the model stops, or until a call has nobody here to run it."""
    while True:
        message = await model(messages, script)
        messages.append(message)
        if "calls" not in message:
            return message["content"]
        for call in message["calls"]:
            if call["name"] != "add":
                return None
            result = await story.add(**json.loads(call["arguments"]))
            messages.append({"role": "tool", "id": call["id"], "content": json.dumps(result)})


async def turn() -> None:
    assert await loop([{"role": "user", "content": story.PROMPT}], story.turn) == story.TURN_ANSWER


async def pause() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": story.PROMPT}]
    assert await loop(messages, story.pause) is None
    data = json.dumps(messages).encode()
    messages = json.loads(data)
    call = messages[-1]["calls"][0]
    messages.append({"role": "tool", "id": call["id"], "content": json.dumps(story.CLIENT_RESULT)})
    answer = await loop(messages, story.pause)
    assert answer is not None
    assert story.PAUSE_ANSWER in answer


async def deltas() -> AsyncIterator[str]:
    for delta in story.DELTAS:
        yield delta


async def stream() -> None:
    assert "".join([delta async for delta in deltas()]) == story.STREAM_TEXT
