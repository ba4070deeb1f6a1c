"""Secrets of a tool, from the type that its author writes to what each of those who look at a run sees of them."""

from typing import Annotated, Any

import pytest
from msgspec import json
from pydantic import BaseModel, Field, SecretStr

from farhand import Agent, Approve, Call, scripted, tool
from farhand.core.errors import UsageError
from farhand.core.marks import MASK
from farhand.core.updates import Update
from farhand.models import Request, Use
from farhand.tool import Secret


class Account(BaseModel):
    user: str
    key: Secret[str]


def schema_of(made: Any) -> Any:
    return json.decode(made.definition.parameters)


def test_a_parameter_or_field_of_type_secret_is_marked_in_the_schema() -> None:
    @tool
    def login(user: str, key: Secret[str], account: Account, pin: Annotated[Secret[int], Field(ge=0)] = 0) -> None:
        """Log in."""

    schema = schema_of(login)
    assert schema["properties"]["key"] == {"type": "string", "secret": True}
    assert schema["properties"]["pin"] == {"type": "integer", "minimum": 0, "default": 0, "secret": True}
    assert schema["$defs"]["Account"]["properties"]["key"] == {"type": "string", "secret": True}
    assert "secret" not in schema["properties"]["user"]


def test_other_ways_to_say_so_are_taken_too() -> None:
    @tool
    def login(one: Annotated[str, Field(json_schema_extra={"secret": True})], two: SecretStr) -> None:
        """Log in."""

    assert schema_of(login)["properties"]["one"]["secret"] is True
    assert schema_of(login)["properties"]["two"]["format"] == "password"


def test_a_whole_model_may_be_secret() -> None:
    @tool
    def login(account: Secret[Account]) -> None:
        """Log in."""

    assert schema_of(login)["properties"]["account"]["secret"] is True


async def test_a_tool_gets_its_secrets_the_model_reads_the_result_and_watchers_see_masks() -> None:
    got: list[Any] = []
    asked: list[Request] = []
    told: list[Update] = []
    shown: list[Any] = []

    @tool(needs_approval=True, output=Account)
    async def login(user: str, key: Secret[str], safe: SecretStr) -> Account:
        """Log in."""
        got.append((user, key, safe.get_secret_value()))
        return Account(user=user, key="t0ken")

    def reply(request: Request) -> Any:
        asked.append(request)
        return Use("login", {"user": "ann", "key": "hunter2", "safe": "hunter3"}) if len(asked) == 1 else "done"

    async def ask(call: Call[Any, Any]) -> Approve:
        shown.append(call.preview)
        return Approve(arguments={**call.preview, "user": "bob"})

    run = await Agent(scripted(reply), tools=[login]).run("hi", on_approval=ask, on_update=told.append)
    assert run.output == "done"
    assert got == [("bob", "hunter2", "hunter3")]
    assert shown == [{"user": "ann", "key": MASK, "safe": MASK}]
    assert "t0ken" in asked[1].messages[-1].text
    watched = json.encode(told).decode()
    assert "bob" in watched
    for secret in ("hunter2", "hunter3", "t0ken"):
        assert secret not in watched


async def test_a_preview_of_a_call_without_secrets_is_its_arguments() -> None:
    pick = tool.define("pick")
    run = await Agent(scripted([Use("pick", {"n": 1}), "ok"]), tools=[pick]).run("hi")
    [call] = run.pending
    assert call.preview == call.arguments == {"n": 1}


def test_an_agent_has_no_secret_output() -> None:
    with pytest.raises(UsageError, match="no secret fields"):
        Agent(scripted(["x"]), output=Account)
