"""`farhand runs approve`, `deny` and `answer`: a person's and a client's word about one call."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter
from msgspec import UNSET, DecodeError, json

from farhand.cli.options import NOBODY, Json, JsonText, Login, Server, Who
from farhand.cli.output import write, write_json
from farhand.cli.remote import reached
from farhand.core.call import CallState
from farhand.core.definition import Place
from farhand.core.errors import InvalidInput, NotExpected, UnknownCall, UsageError
from farhand.protocols.native import CallView, Receipt

if TYPE_CHECKING:
    from farhand.client import Client

CallOrRun: TypeAlias = Annotated[str, Parameter(name="CALL", help="The call, or its run if just one call waits in it.")]


def approve(
    server: Server,
    call: CallOrRun,
    /,
    *,
    arguments: JsonText = "",
    always: Literal["", "tool", "arguments"] = "",
    who: Who = NOBODY,
    as_json: Json = False,
) -> None:
    """Say yes to a call that waits for a person.

    Parameters
    ----------
    arguments
        JSON that takes the place of the model's arguments; `-` reads it from the standard input.
    always
        From now on, too: for this tool as it is defined now, or for it with these arguments.
    """
    edited = _json(arguments, "the arguments") if arguments else UNSET

    async def say(client: "Client", found: CallView) -> Receipt:
        shown = found.arguments_hash or None
        return await client.approve(found.id, arguments=edited, remember=always or None, shown=shown)

    _tell(_settle(server, call, who, _is_question, say), "approved", as_json=as_json)


def deny(
    server: Server,
    call: CallOrRun,
    /,
    *,
    reason: str = "",
    always: Literal["", "tool", "arguments"] = "",
    who: Who = NOBODY,
    as_json: Json = False,
) -> None:
    """Say no to a call that waits for a person.

    Parameters
    ----------
    reason
        What the model is told.
    always
        From now on, too: for this tool as it is defined now, or for it with these arguments.
    """

    async def say(client: "Client", found: CallView) -> Receipt:
        return await client.deny(found.id, reason, remember=always or None)

    _tell(_settle(server, call, who, _is_question, say), "denied", as_json=as_json)


def answer(
    server: Server,
    call: CallOrRun,
    result: JsonText = "",
    /,
    *,
    error: str = "",
    who: Who = NOBODY,
    as_json: Json = False,
) -> None:
    """Give the result of a call that a client is to run.

    Parameters
    ----------
    result
        JSON; `-` reads it from the standard input.
    error
        Instead of a result: why there is none, for the model to read.
    """
    if bool(result) == bool(error):
        raise UsageError('give either a result as JSON, or --error "why there is none"')
    value = _json(result, "the result") if result else None

    async def say(client: "Client", found: CallView) -> Receipt:
        if error:
            return await client.fail(found.id, error, attempt=found.attempt)
        return await client.answer(found.id, value, attempt=found.attempt)

    _tell(_settle(server, call, who, _is_work, say), "answered", as_json=as_json)


def _settle(
    server: str,
    call: str,
    who: Login,
    waits: Callable[[CallView], bool],
    say: "Callable[[Client, CallView], Awaitable[Receipt]]",
) -> Receipt:
    async def settle() -> Receipt:
        async with reached(server, who) as client:
            return await say(client, await _meant(client, call, waits))

    return asyncio.run(settle())


async def _meant(client: "Client", name: str, waits: Callable[[CallView], bool]) -> CallView:
    """The call of this id, or the one of a run that waits for such a word."""
    try:
        return await client.get_call(name)
    except UnknownCall:
        run = await client.get_run(name)
    waiting = [call for call in run.calls if waits(call)]
    if len(waiting) == 1:
        return waiting[0]
    if not waiting:
        raise NotExpected(f"no call of run {name} waits for this; `farhand runs show` says where they stand")
    names = ", ".join(f"{call.id} ({call.tool})" for call in waiting)
    raise NotExpected(f"several calls of run {name} wait for this; name one of them: {names}")


def _is_question(call: CallView) -> bool:
    return call.state is CallState.APPROVAL_REQUESTED


def _is_work(call: CallView) -> bool:
    return call.state is CallState.EXECUTING and call.place is Place.CLIENT


def _json(text: str, what: str) -> Any:
    try:
        return json.decode(sys.stdin.read() if text == "-" else text)
    except DecodeError as error:
        raise InvalidInput(
            f"{what} are no JSON: {error}" if what.endswith("s") else f"{what} is no JSON: {error}"
        ) from None


def _tell(receipt: Receipt, word: str, *, as_json: bool) -> None:
    if as_json:
        write_json(receipt)
    else:
        write(f"{word}{' before' if receipt.repeated else ''}: call {receipt.call_id}")
