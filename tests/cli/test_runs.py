"""`farhand runs`: look at runs of a server, decide, answer, call off, watch."""

import asyncio
import subprocess
from collections.abc import Generator
from typing import Any

import pytest
from msgspec import json

from farhand import Client
from farhand.protocols.native import Cancelled, Receipt, RunList, RunView
from tests.cli.command import COMMAND, HOUSE, SECONDS, Served, bad, environment, farhand, good, serving, told
from tests.cli.typing_person import at_terminal


@pytest.fixture(scope="module")
def server() -> Generator[Served]:
    with serving("serve", HOUSE, "--store", "memory:") as served:
        yield served


def waiting(server: Served, what: str, thread: str) -> str:
    """The id of a run that waits for somebody, after this was said."""

    async def begin() -> str:
        async with Client(server.url) as client:
            handle = await client.thread(thread).start(what)
            await client.thread(thread).resume(handle.run_id, run_tools=False)
            return handle.run_id

    return asyncio.run(begin())


def run_of(server: Served, run: str) -> dict[str, Any]:
    return told("runs", "show", server.url, run)


# Looking


def test_runs_are_listed_newest_first_for_people_and_as_the_protocol_has_them(server: Served) -> None:
    one, two = waiting(server, "pay", "one"), waiting(server, "pick", "two")
    head, *rows = good("runs", "list", server.url).splitlines()
    assert head.split() == ["run", "thread", "agent", "state", "changed"]
    assert [row.split()[:4] for row in rows[:2]] == [[two, "two", "house", "waiting"], [one, "one", "house", "waiting"]]
    listed = json.decode(good("runs", "list", server.url, "--json"), type=RunList)
    assert [run.id for run in listed.runs[:2]] == [two, one]
    assert [run["id"] for run in told("runs", "list", server.url, "--limit", "1")["runs"]] == [two]
    assert told("runs", "list", server.url, "--state", "failed") == {"runs": []}


def test_a_run_is_shown_with_its_calls_and_what_they_wait_for(server: Served) -> None:
    run = waiting(server, "add pay", "shown")
    shown = good("runs", "show", server.url, run)
    assert shown.startswith(f"run {run} of house in thread shown: waiting\n")
    assert 'add at the server {"a":1}: ok: 3\n' in shown
    assert 'pay at the server {"amount":5}: waits for a person: approve or deny it\n' in shown
    view = json.decode(good("runs", "show", server.url, run, "--json"), type=RunView)
    assert [call.tool for call in view.calls] == ["add", "pay"]


def test_a_run_that_is_not_ones_own_is_not_there(server: Served) -> None:
    assert bad(1, "runs", "show", server.url, "nothing").startswith("there is no such run")
    assert json.decode(farhand("runs", "show", server.url, "nothing", "--json").stderr)["code"] == "unknown_call"


# Deciding


@pytest.mark.parametrize("by", ["call", "run"])
def test_a_call_is_approved_by_its_id_or_by_that_of_its_run(server: Served, by: str) -> None:
    run = waiting(server, "pay", f"approved by {by}")
    call = run_of(server, run)["calls"][0]["id"]
    said = good("runs", "approve", server.url, run if by == "run" else call)
    assert said == f"approved: call {call}\n"
    assert "so: paid 5" in good("runs", "watch", server.url, run)
    again = json.decode(good("runs", "approve", server.url, call, "--json"), type=Receipt)
    assert again == Receipt(call_id=call, repeated=True)


def test_arguments_are_edited_and_checked(server: Served) -> None:
    run = waiting(server, "pay", "edited")
    said = bad(1, "runs", "approve", server.url, run, "--arguments", '{"amount": "much"}')
    assert "amount" in said
    assert "no JSON" in bad(2, "runs", "approve", server.url, run, "--arguments", "{oops")
    good("runs", "approve", server.url, run, "--arguments", "-", typed='{"amount": 7}')
    assert '✓ pay: "paid 7"' in good("runs", "watch", server.url, run)


def test_a_denial_tells_the_model_its_reason(server: Served) -> None:
    run = waiting(server, "pay", "denied")
    assert good("runs", "deny", server.url, run, "--reason", "not today").startswith("denied: call ")
    assert "The user denied this call. Reason: not today" in good("runs", "watch", server.url, run)


def test_a_decision_for_good_is_remembered() -> None:
    with serving("serve", HOUSE, "--store", "memory:") as server:
        good("runs", "approve", server.url, waiting(server, "pay", "once"), "--always", "tool")
        assert "so: paid 5" in good("chat", server.url, "pay")


def test_the_result_of_a_clients_call_is_given_or_why_there_is_none(server: Served) -> None:
    run = waiting(server, "pick", "answered")
    assert "integer" in bad(1, "runs", "answer", server.url, run, '"many"')
    assert good("runs", "answer", server.url, run, "-7").startswith("answered: call ")
    assert "so: -7" in good("runs", "watch", server.url, run)
    run = waiting(server, "pick", "refused")
    good("runs", "answer", server.url, run, "--error", "there are none")
    assert "there are none" in good("runs", "watch", server.url, run)


def test_what_does_not_wait_for_such_a_word_is_told(server: Served) -> None:
    run = waiting(server, "pay", "odd")
    said = bad(1, "runs", "answer", server.url, run, "1")
    assert said.startswith(f"no call of run {run} waits for this; `farhand runs show`")
    assert "give either a result as JSON" in bad(2, "runs", "answer", server.url, run)
    assert "give either a result as JSON" in bad(2, "runs", "answer", server.url, run, "1", "--error", "no")
    several = waiting(server, "pay pay", "several")
    said = bad(1, "runs", "approve", server.url, several)
    assert said.startswith(f"several calls of run {several} wait for this; name one of them: ")
    assert said.count("(pay)") == 2


# Calling off


def test_a_run_is_called_off_once(server: Served) -> None:
    run = waiting(server, "pay", "off")
    assert good("runs", "cancel", server.url, run, "--reason", "never mind") == "called off\n"
    assert run_of(server, run)["state"] == "cancelled"
    ran = farhand("runs", "cancel", server.url, run)
    assert (ran.returncode, ran.stdout) == (1, "it had ended before\n")
    ran = farhand("runs", "cancel", server.url, run, "--json")
    assert json.decode(ran.stdout, type=Cancelled) == Cancelled(repeated=True)


# Watching


def test_a_run_is_watched_from_its_beginning_until_somebody_else_has_ended_it(server: Served) -> None:
    waiting(server, "hello", "watched")
    run = waiting(server, "pay", "watched")
    watching = subprocess.Popen(
        [str(COMMAND), "runs", "watch", server.url, run, "--json"],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env=environment(),
    )
    assert watching.stdout is not None
    updates = [json.decode(watching.stdout.readline())]
    while updates[-1]["type"] != "run-waiting":
        updates.append(json.decode(watching.stdout.readline()))
    good("runs", "approve", server.url, run)
    rest, _ = watching.communicate(timeout=SECONDS)
    updates += [json.decode(line) for line in rest.splitlines()]
    assert watching.returncode == 0
    assert (updates[0]["type"], updates[0]["run_id"]) == ("run-started", run)
    assert (updates[-1]["type"], updates[-1]["output"]) == ("run-ended", "so: paid 5")


def test_watching_at_a_terminal_can_be_left_and_leaves_it_as_it_was(server: Served) -> None:
    run = waiting(server, "pay", "looked at")
    with at_terminal("runs", "watch", server.url, run) as person:
        person.see('pay {"amount":5} waits for a person')
        person.press("c")
        assert person.end() == 130
        assert person.raw.rindex("\x1b[?25h") > person.raw.rindex("\x1b[?25l")


def test_watching_a_run_that_did_not_end_well_ends_with_1(server: Served) -> None:
    run = waiting(server, "pay", "unwell")
    good("runs", "cancel", server.url, run)
    ran = farhand("runs", "watch", server.url, run)
    assert ran.returncode == 1
    assert ran.stdout.splitlines()[-1] == "cancelled: The run was cancelled."


# Reaching the server


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["show", "x"],
        ["watch", "x"],
        ["cancel", "x"],
        ["approve", "x"],
        ["deny", "x"],
        ["answer", "x", "1"],
    ],
)
def test_a_server_that_is_not_there_and_one_that_knows_nobody_have_codes_of_their_own(
    server: Served, words: list[str]
) -> None:
    verb, *rest = words
    assert "is a server running there?" in bad(3, "runs", verb, "http://127.0.0.1:1", *rest)
    assert "give a token" in bad(4, "runs", verb, server.bare, *rest)
