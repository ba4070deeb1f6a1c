"""The contract of a model: an object that replies, or a name that one answers to."""

from collections.abc import AsyncIterator

import pytest

from farhand import Agent, manual, scripted
from farhand.core.errors import UnknownModel, UsageError
from farhand.core.pieces import Done, Piece, TextDelta
from farhand.models import Model, Request, record, resolve


def test_a_model_is_itself() -> None:
    for model in (scripted([]), manual(), record(scripted([]))):
        assert resolve(model) is model
        assert isinstance(model.name, str)


@pytest.mark.parametrize("name", ["", "scripted", "nobody:at-home"])
def test_a_name_that_nothing_answers_to_is_refused(name: str) -> None:
    with pytest.raises(UnknownModel, match=f"no model answers to '{name}'"):
        resolve(name)
    assert issubclass(UnknownModel, UsageError)


async def test_a_class_of_ones_own_is_a_model_without_any_base() -> None:
    class Parrot:
        name = "parrot"

        async def stream(self, request: Request) -> AsyncIterator[Piece]:
            yield TextDelta(request.messages[-1].text)
            yield Done()

    model: Model = Parrot()
    assert (await Agent(model).run("polly")).output == "polly"
