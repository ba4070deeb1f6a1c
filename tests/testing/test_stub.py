"""Tools that give fixed results, for evaluations."""

from typing import Any

from farhand import Agent, ToolError, scripted, tool
from farhand.core.messages import ToolMessage
from farhand.models import Turn, Use
from farhand.testing import Case, stub
from tests.client.story import office, pick


@tool
async def price(item: str, count: int = 1) -> float:
    """What something costs."""
    raise AssertionError("the real thing was run")


def told(run: Any) -> list[str]:
    return [message.text for message in run.messages if isinstance(message, ToolMessage)]


async def test_a_stub_gives_its_result_and_looks_like_the_tool() -> None:
    fake = stub(price, returns=2.5)
    run = await Agent(scripted([Use("price", {"item": "tea"}), "ok"]), tools=[fake]).run("hi")
    assert (told(run), fake.definition) == (["2.5"], price.definition)


async def test_the_first_case_that_fits_answers() -> None:
    fake = stub(
        price,
        Case(1.0, when={"item": "tea"}),
        Case(ToolError("sold out"), when=lambda arguments: arguments["item"] == "milk"),
        Case(9.0, when={"item": "rice", "count": 2}, delay=0.001),
    )
    uses = [
        Use("price", given)
        for given in ({"item": "tea"}, {"item": "milk"}, {"item": "rice", "count": 2}, {"item": "x"})
    ]
    run = await Agent(scripted([Turn("", *uses), "ok"]), tools=[fake]).run("hi")
    assert told(run) == [
        "1.0",
        "Error: sold out",
        "9.0",
        "Error: the stub of 'price' has no answer to these arguments",
    ]


async def test_arguments_and_results_of_a_stub_are_checked_like_any() -> None:
    fake = stub(price, returns="free")
    run = await Agent(scripted([Turn("", Use("price", {}), Use("price", {"item": "x"})), "ok"]), tools=[fake]).run("hi")
    assert ["required" in told(run)[0], "not valid" in told(run)[1]] == [True, True]


async def test_a_client_stubs_tools_of_its_own_and_of_the_server() -> None:
    async with office(script=[Turn("", Use("pick"), Use("mine")), "ok"], tools=[pick]) as client:
        client.implement(stub("pick", returns={"x": 1}))
        client.register(stub({"name": "mine", "description": "Mine.", "parameters": {"type": "object"}}, returns=None))
        assert told(await client.thread().run("hi")) == ['{"x":1}', "null"]
