"""Groups of a client over HTTP: an editor that tells the model what it can do, and changes it with its results."""

import asyncio
from typing import Any

import pytest

from farhand import Agent, scripted, tool
from farhand.client import Client
from farhand.client.blocking import BlockingClient
from farhand.client.events import AugmentationRefused
from farhand.core.definition import InvalidToolDefinitions
from farhand.core.errors import DuplicateToolName
from farhand.core.messages import ToolMessage, UserMessage
from farhand.core.updates import SceneChanged
from farhand.groups import TRUSTING, Augmented, Document, Group, Reference, Showing, Skill
from farhand.models import Request, Turn, Use
from farhand.testing.server import served
from tests.client.story import ANN, BEN, app_of, client_of

OBJECT = {"type": "object"}


def told(result: Any) -> list[str]:
    """What the model was told by tools."""
    return [message.text for message in result.messages if isinstance(message, ToolMessage)]


class Seen:
    """What the model was shown; it does one turn of its script after another, from each input on."""

    def __init__(self, *turns: Any) -> None:
        self.turns = turns
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Any:
        self.requests.append(request)
        answered = 0
        for message in reversed(request.messages):
            if isinstance(message, UserMessage):
                break
            answered += not isinstance(message, ToolMessage)
        return self.turns[answered]

    @property
    def shown(self) -> list[set[str]]:
        """The tools of each request."""
        return [{each.name for each in request.tools} for request in self.requests]


class Editor:
    """A program with a group of tools, as it would be written."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.shown: list[str] = []
        self.group = Group(
            name="IDE",
            description="The editor of the user.",
            instructions="Open a file before you talk about it.",
            expansion_note="Paths are relative to the project.",
            tools=[
                tool.define("open_file", input={**OBJECT, "required": ["path"]}, description="Open a file.").client(
                    self.open_file
                ),
                tool.define("get_selection", input=OBJECT, description="What is selected.").client(lambda _: "x = 1"),
            ],
        )
        self.debugger = Group(
            name="Debugger",
            description="Step through the open file.",
            tools=[tool.define("step", input=OBJECT, description="One step.").client(lambda _: "at line 2")],
        )

    def open_file(self, given: dict[str, Any]) -> Any:
        """Opening a program brings the debugger in."""
        self.opened.append(given["path"])
        context = [{"description": "open file", "value": given["path"], "key": "file"}]
        return Augmented("opened", {"inject": ["Debugger"], "expand": ["Debugger"], "addContext": context})


async def test_an_editor_brings_a_group_and_changes_what_is_possible_with_a_result() -> None:
    seen = Seen(Use("IDE"), Use("open_file", {"path": "a.py"}), Use("step"), "You are at line 2.")
    editor = Editor()
    async with asyncio.timeout(20), served(app_of(script=seen, tools=())) as url, client_of(url) as client:
        client.register_group(editor.group)
        thread = client.thread("t")
        stream = thread.stream("Where am I?", declared=[editor.debugger], state={"tab": 1})
        updates = [update async for update in stream]
        result = await stream
        assert result.output == "You are at line 2."
        assert editor.opened == ["a.py"]
        assert "IDE expanded. Available functions: open_file, get_selection" in told(result)[0]
        assert "Paths are relative" in told(result)[0]
        assert seen.shown == [
            {"IDE"},
            {"open_file", "get_selection"},
            {"open_file", "get_selection", "step"},
            {"open_file", "get_selection", "step"},
        ]
        assert "a.py" in seen.requests[-1].told
        assert "Open a file before" in seen.requests[-1].told
        assert seen.requests[-1].instructions == ""
        changes = [update for update in updates if isinstance(update, SceneChanged)]
        assert changes[-1].groups == ("IDE", "Debugger")
        state = (await thread.state()).client_state
        assert state is not None
        assert ([group.name for group in state.groups], state.expanded) == (["IDE", "Debugger"], ("Debugger",))
        assert bytes(state.state) == b'{"tab":1}'


async def test_a_registered_group_is_sent_with_every_run_and_is_one_group_of_the_thread() -> None:
    seen = Seen("hello")
    async with served(app_of(script=seen, tools=())) as url, client_of(url) as client:
        client.register_group(Editor().group)
        for _ in range(3):
            await client.thread("t").run("hi", without=["get_selection"])
        assert seen.shown == [{"IDE"}] * 3
        await client.thread("t").run("hi", only=[], expanded=["IDE"])
        assert seen.shown[-1] == {"open_file"}


async def test_what_a_client_has_told_is_there_for_the_next_run_until_it_is_reset() -> None:
    seen = Seen("hello")
    async with served(app_of(script=seen, tools=())) as url, client_of(url) as client, client_of(url) as other:
        context = [{"description": "open file", "value": "a.py"}]
        await client.thread("t").run(
            "hi", groups=[Editor().group], hidden=["open_file"], expanded=["IDE"], context=context
        )
        await other.thread("t").run("hi")
        assert seen.shown == [{"get_selection"}, {"get_selection"}]
        assert "a.py" in seen.requests[1].told
        await other.thread("t").run("hi", reset_client_state=True)
        assert seen.shown[-1] == set()
        assert (await client.thread("t").state()).client_state is None


async def test_another_principal_gets_nothing_of_it() -> None:
    seen = Seen("hello")
    async with (
        served(app_of(script=seen, tools=())) as url,
        client_of(url) as ann,
        Client(url, token=BEN) as ben,
    ):
        await ann.thread("t").run("hi", groups=[Editor().group], state="mine")
        await ben.thread("t").run("hi")
        assert seen.shown == [{"IDE"}, set()]
        assert (await ben.thread("t").state()).client_state is None


async def test_a_skill_for_the_checkout_holds_while_it_is_active() -> None:
    seen = Seen(Use("Shop"), Use("Complete_Checkout"), Use("pay"), "Paid.")
    checkout = Skill(
        name="Complete Checkout",
        description="Pay for what is in the cart.",
        instructions="Tell the price before you pay.",
        tools=(Reference("pay"),),
        documents=(Document(id="terms", content="No returns."),),
    )
    pay = tool.define("pay", input=OBJECT, description="Pay.").client(lambda _: "done")
    shop = Group(name="Shop", description="The shop.", tools=[pay], skills=[checkout])
    async with served(app_of(script=seen, tools=())) as url, client_of(url) as client:
        result = await client.thread("t").run("buy", groups=[shop])
        assert result.output == "Paid."
        assert "Complete Checkout skill activated." in told(result)[1]
        assert "Tell the price" in seen.requests[2].told
        assert "Tell the price" not in seen.requests[0].told


async def test_what_is_wrong_with_groups_comes_back_with_every_path() -> None:
    async with served(app_of(script=Seen("hello"), tools=())) as url, client_of(url) as client:
        with pytest.raises(InvalidToolDefinitions) as raised:
            await client.thread("t").run("hi", groups=[Editor().group], expanded=["IDE", "Nope"], hidden=["no"])
        assert [problem.path for problem in raised.value.problems] == ["/expanded/1", "/hidden/0"]


async def test_a_tool_of_a_group_has_a_name_of_its_own() -> None:
    async with served(app_of(script=Seen("hello"), tools=())) as url, client_of(url) as client:
        client.register_group(Editor().group)
        with pytest.raises(DuplicateToolName):
            await client.thread("t").run("hi", groups=[Editor().group])


async def test_a_wish_that_is_refused_is_told_and_its_result_counts() -> None:
    heard: list[AugmentationRefused] = []
    look = tool.define("look", input=OBJECT, description="Look.").client(
        lambda _: Augmented("seen", {"inject": [Editor().group], "hide": ["nope"]})
    )
    async with served(app_of(script=Seen(Use("look"), "done"), tools=())) as url, client_of(url) as client:
        client.on("augmentation_refused", heard.append)
        result = await client.thread("t").run("hi", tools=[look])
        assert (result.output, told(result)) == ("done", ["seen"])
        [refused] = heard
        assert (refused.call.tool, "/inject" in refused.reason) == ("look", True)


async def test_an_answer_by_hand_takes_changes_along() -> None:
    agent = Agent(scripted([Use("look"), "done"]), showing=Showing(changes=TRUSTING))
    look = tool.define("look", input=OBJECT, description="Look.")
    async with served(app_of(agent)) as url, client_of(url) as client:
        thread = client.thread("t")
        result = await thread.run("hi", tools=[look], run_tools=False)
        [call] = result.pending
        wish = {"inject": [Editor().debugger], "updateState": {"n": 1}}
        assert (await client.answer(call.id, "seen", augmentation=wish)).refused == ""
        assert (await thread.resume()).output == "done"
        state = (await thread.state()).client_state
        assert state is not None
        assert ([group.name for group in state.groups], bytes(state.state)) == (["Debugger"], b'{"n":1}')


async def test_a_program_without_a_loop_does_the_same() -> None:
    seen = Seen(Use("IDE"), Use("open_file", {"path": "a.py"}), "It is open.")
    editor = Editor()

    def work(url: str) -> tuple[str, Any]:
        with BlockingClient(url, token=ANN) as client:
            client.register_group(editor.group)
            thread = client.thread("t")
            output = thread.run(
                "open it", declared=[editor.debugger], context=[{"description": "d", "value": 1}]
            ).output
            return output, thread.state().client_state

    async with served(app_of(script=seen, tools=())) as url:
        output, state = await asyncio.to_thread(work, url)
    assert (output, editor.opened) == ("It is open.", ["a.py"])
    assert [group.name for group in state.groups] == ["IDE", "Debugger"]
    assert {item.description for item in state.context} == {"d", "open file"}


async def test_in_one_process_functions_and_callbacks_wish_for_the_same() -> None:
    seen = Seen(Turn("", Use("open_file", {"path": "a.py"}), Use("look")), "done")
    editor = Editor()
    look = tool.define("look", input=OBJECT, description="Look.")
    agent = Agent(scripted(seen), tools=[look])
    run = await agent.run(
        "hi",
        groups=[editor.group],
        declared=[editor.debugger],
        on_call=lambda call: Augmented("seen", {"patchState": {call.tool: 1}}),
    )
    assert run.output == "done"
    assert [call.record.refused for call in run.calls] == ["", ""]
    assert seen.shown[-1] == {"look", "open_file", "get_selection", "step"}
    scene = run.state.scene
    assert scene is not None
    assert bytes(scene.state) == b'{"look":1}'


async def test_a_function_of_the_server_wishes_for_nothing() -> None:
    @tool
    async def look() -> Any:
        """Look."""
        return Augmented("seen", {"updateState": 1})

    run = await Agent(scripted([Use("look"), "done"]), tools=[look]).run("hi")
    assert run.state.scene is None
