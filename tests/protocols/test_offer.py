"""Tools as the native protocol shows them, and back."""

from typing import Any

from farhand import tool
from farhand.protocols.offer import definition_of, tool_views


@tool(needs_approval=True, effect="idempotent", title="Pay", version="2", deprecated="use wire", tags=["money"])
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


pick = tool.define("pick", input={"type": "object"})


def test_a_tool_says_whose_it_is_where_it_runs_and_how_it_may_be_used() -> None:
    [shown, plain] = tool_views("shop", [pay.definition, pick.definition])
    assert (shown.name, shown.agent, shown.place, shown.approval, shown.effect) == (
        "pay",
        "shop",
        "server",
        "always",
        "idempotent",
    )
    assert (shown.title, shown.version, shown.deprecated, shown.tags) == ("Pay", "2", "use wire", ("money",))
    assert bytes(shown.parameters) == bytes(pay.definition.parameters)
    assert (plain.place, bytes(plain.output)) == ("client", b"null")


def test_what_was_shown_is_a_definition_again_with_the_pin_that_it_had() -> None:
    for made in (pay, pick):
        definition: Any = made.definition
        [shown] = tool_views("shop", [definition])
        back = definition_of(shown)
        assert back.pin == definition.pin
        assert (back.name, back.parameters, back.output, back.place) == (
            definition.name,
            definition.parameters,
            definition.output,
            definition.place,
        )
        assert (back.policy.approval, back.policy.effect) == (definition.policy.approval, definition.policy.effect)
