"""The demo agent does what it tells people to try, without a key, a network or a wait."""

import re
from typing import Any

import pytest

from farhand import Agent, Call, LiveRun, demo, tool
from farhand.core.call import Outcome
from farhand.core.definition import Place
from farhand.core.messages import UserMessage
from farhand.core.updates import CallProgress, TextStreamed, Update
from farhand.demo import NOTES, TRY, demo_agent, what_time
from farhand.models import Turn, scripted


@pytest.fixture(autouse=True)
def notes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(demo.asyncio, "sleep", _at_once)
    NOTES.clear()
    return NOTES


async def _at_once(delay: float) -> None: ...


async def ask(text: str, **options: Any) -> LiveRun[str]:
    options = {"on_approval": lambda call: True, "on_call": lambda call: "shown"} | options
    return await demo_agent().run(text, **options)


async def test_it_knows_what_time_it_is_elsewhere() -> None:
    run = await ask(TRY[0])
    assert [call.arguments for call in run.calls] == [{"zone": "Asia/Tokyo"}, {"zone": "America/Lima"}]
    assert re.fullmatch(r"what_time: \d\d:\d\d; what_time: \d\d:\d\d\.", run.output)


async def test_it_rolls_dice_and_counts_with_progress() -> None:
    updates: list[Update] = []
    run = await ask(TRY[1], on_update=updates.append)
    dice, count = run.calls
    assert len(dice.output) == 3
    assert all(1 <= face <= 6 for face in dice.output)
    assert count.output == "counted to 4"
    assert [update.value["done"] for update in updates if isinstance(update, CallProgress)] == [1, 2, 3, 4]


@pytest.mark.parametrize("allowed", [True, False])
async def test_it_saves_a_note_when_a_person_agrees(notes: list[str], allowed: bool) -> None:
    run = await ask(TRY[2], on_approval=lambda call: allowed)
    assert notes == (["buy oat milk"] if allowed else [])
    assert run.calls[0].outcome is (Outcome.OK if allowed else Outcome.DENIED)
    assert run.status == "done"


async def test_it_shows_a_message_at_the_client() -> None:
    shown: list[Any] = []

    def show(call: Call[Any, Any]) -> str:
        shown.append(call.input)
        return "shown"

    run = await ask(TRY[3], on_call=show)
    assert run.calls[0].place is Place.CLIENT
    assert shown == [demo.Message(message="the kettle is on", severity="warning")]


@pytest.mark.parametrize("text", TRY)
async def test_everything_it_tells_people_to_try_ends_well_and_streams(text: str) -> None:
    updates: list[Update] = []
    run = await ask(text, on_update=updates.append)
    assert (run.status, {call.outcome for call in run.calls}) == ("done", {Outcome.OK})
    assert sum(isinstance(update, TextStreamed) for update in updates) > 4


async def test_it_says_what_to_try_when_it_does_not_understand() -> None:
    run = await ask("sing me a song")
    assert run.calls == ()
    assert all(text in run.output for text in TRY)


async def test_it_remembers_only_what_belongs_to_the_newest_question() -> None:
    first = await ask("roll 1 dice")
    again = await demo_agent().run("roll 2 dice", history=first.messages)
    assert len(again.calls[0].output) == 2


async def test_it_uses_tools_that_clients_bring_by_their_names() -> None:
    open_file = tool.define("open_file", input={"type": "object", "properties": {"path": {}}, "required": ["path"]})
    look = tool.define("look", input={"type": "object", "properties": {}})
    said = "use open_file main.py and look"
    run = await ask(said, tools=[open_file, look])
    assert [(call.tool, call.arguments) for call in run.calls] == [("open_file", {"path": "main.py"}), ("look", {})]
    run = await ask('open_file {"path": "a b"}, then look up', tools=[open_file, look])
    assert [call.arguments for call in run.calls] == [{"path": "a b"}, {}]
    run = await ask("open_file {oops} and look {oops", tools=[open_file, look])
    assert run.calls[1].arguments == {}


async def test_without_tools_it_makes_no_calls() -> None:
    model = scripted(demo.reply)
    assert (await Agent(model).run("roll 3 dice")).calls == ()
    assert isinstance(model.requests[0].messages[0], UserMessage)


async def test_a_time_zone_that_does_not_exist_is_told_to_the_model() -> None:
    run = await demo_agent(scripted([Turn("", demo.Use("what_time", {"zone": "Moon/Sea"})), "sorry"])).run("hi")
    assert run.calls_of(what_time)[0].failure is not None
    assert run.calls[0].failure is not None
    assert (run.calls[0].failure.code, run.calls[0].failure.path) == ("unknown_zone", "/zone")
