"""Who may do what: every request of the OpenAPI description, made by everybody who should not be able to.

The cells are generated: a new endpoint is in the matrix by being described.
"""

import asyncio
import re
from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from msgspec import json

from farhand.asgi.access.principal import EVERYTHING, Principal
from farhand.asgi.access.tokens import Tokens
from farhand.protocols.describe import openapi
from tests.asgi.story import ANN, BEN, Office, office

DOCUMENT = json.decode(openapi("1"))
LIMITED = {f"may-{scope}-and-nothing-else-at-all": scope for scope in sorted(EVERYTHING)}
PEOPLE: dict[str, Principal | str] = {ANN: Principal("ann", EVERYTHING), BEN: Principal("ben", EVERYTHING)}
PEOPLE |= {token: Principal("ann", frozenset({scope})) for token, scope in LIMITED.items()}
UNKNOWN = "0" * 32

BODIES: dict[str, Any] = {
    "start-run": {"input": "hello"},
    "answer-calls": {"results": {"{call}": 1}},
    "claim-call": {"client": "c"},
    "release-call": {"client": "c"},
    "tell-progress": {"value": 1},
    "answer-call": {"result": 1},
    "decide-call": {"approved": True},
    "provide-tools": {"client": "c", "offers": ["pick"]},
}
"""Where an empty object does not do."""


class Operation(NamedTuple):
    """One request of the description."""

    method: str
    path: str
    described: Any

    @property
    def name(self) -> str:
        return self.described["operationId"]

    def body(self, call: str) -> Any:
        if "requestBody" not in self.described:
            return None
        return json.decode(json.encode(BODIES.get(self.name, {})).replace(b"{call}", call.encode()))


def operations() -> Iterator[Operation]:
    for path, methods in DOCUMENT["paths"].items():
        for method, described in methods.items():
            yield Operation(method.upper(), path.removeprefix("/v1"), described)


OPERATIONS = [*operations()]
PRIVATE = [operation for operation in OPERATIONS if operation.described["security"]]
OF_SOMEBODY = [operation for operation in PRIVATE if re.search(r"\{(call|run)\}", operation.path)]
NAMES = {"ids": lambda operation: operation.name}


class Cells:
    """A server on which ann has a run that waits for a client and for a person."""

    def __init__(self, at: Office, ids: dict[str, str]) -> None:
        self.at = at
        self.ids = ids

    async def ask(self, operation: Operation, token: str, ids: dict[str, str] | None = None) -> tuple[int, bytes]:
        ids = ids or self.ids
        path = operation.path.format(**ids)
        headers = {} if not token else {"authorization": f"Bearer {token}"}
        if "200" in operation.described["responses"] and operation.name == "provide-tools":
            headers["accept"] = "text/event-stream"
        async with self.at.http.stream(
            operation.method, path, json=operation.body(ids["call"]), headers=headers, timeout=10
        ) as response:
            streamed = response.headers.get("content-type", "").startswith("text/event-stream")
            return response.status_code, b"" if streamed else await response.aread()

    async def standing(self) -> Any:
        """Everything that is ann's, as she sees it."""
        return [
            await self.at.got("GET", path)
            for path in ("/threads/t", "/calls", "/runs", f"/calls/{self.ids['call']}", "/threads/t/updates")
        ]


@asynccontextmanager
async def cells() -> Any:
    async with asyncio.timeout(20), office(authenticate=Tokens(PEOPLE)) as at:
        await at.got("POST", "/threads/t/runs", {"input": "pick pay", "wait": "turn"})
        async with at.stream("GET", "/threads/t/updates") as events:
            await events.next("run-waiting")
        calls = (await at.got("GET", "/calls"))["calls"]
        yield Cells(at, {"thread": "t", "call": calls[0]["id"], "run": calls[0]["run_id"]})


@pytest.mark.parametrize("token", ["", "a-token-that-was-given-to-nobody"], ids=["no token", "unknown token"])
@pytest.mark.parametrize("operation", PRIVATE, **NAMES)
async def test_nobody_does_anything_without_being_known(operation: Operation, token: str) -> None:
    async with cells() as matrix:
        before = await matrix.standing()
        status, body = await matrix.ask(operation, token)
        assert (status, json.decode(body)["code"]) == (401, "not_authenticated")
        assert await matrix.standing() == before


@pytest.mark.parametrize("operation", OF_SOMEBODY, **NAMES)
async def test_what_is_somebody_elses_looks_like_what_is_not_there(operation: Operation) -> None:
    async with cells() as matrix:
        before = await matrix.standing()
        foreign = await matrix.ask(operation, BEN)
        unknown = await matrix.ask(operation, BEN, {"thread": "t", "call": UNKNOWN, "run": UNKNOWN})
        assert foreign[0] == 404
        assert foreign == unknown
        assert await matrix.standing() == before


@pytest.mark.parametrize("operation", [each for each in PRIVATE if each not in OF_SOMEBODY], **NAMES)
async def test_what_somebody_else_does_in_a_place_of_the_same_name_touches_nothing(operation: Operation) -> None:
    async with cells() as matrix:
        before = await matrix.standing()
        status, body = await matrix.ask(operation, BEN)
        assert status < 500
        assert matrix.ids["call"].encode() not in body
        assert matrix.ids["run"].encode() not in body
        assert await matrix.standing() == before


@pytest.mark.parametrize("token", LIMITED)
@pytest.mark.parametrize("operation", PRIVATE, **NAMES)
async def test_a_scope_allows_what_it_is_for_and_nothing_else(operation: Operation, token: str) -> None:
    async with cells() as matrix:
        allowed = operation.described["x-scope"] == LIMITED[token]
        before = await matrix.standing()
        status, body = await matrix.ask(operation, token)
        assert status < 500
        if allowed:
            assert status not in (401, 403)
        else:
            assert (status, json.decode(body)["code"]) == (403, "not_allowed")
            assert await matrix.standing() == before


def test_the_matrix_has_every_endpoint() -> None:
    assert len(OPERATIONS) > 20
    assert {operation.described["x-scope"] for operation in PRIVATE} <= EVERYTHING
    assert {operation.name for operation in OPERATIONS} - {operation.name for operation in PRIVATE} == {
        "is-alive",
        "is-ready",
    }
