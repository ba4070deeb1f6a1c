"""Tools that give fixed results instead of running, for evaluations: the model sees the same definitions."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from farhand.core.definition import make_definition
from farhand.core.errors import ToolError
from farhand.places.functions import bind
from farhand.places.values import RawCodec
from farhand.plugins.plugin import AnyTool
from farhand.plugins.rules import read_tool
from farhand.tool import Tool

When: TypeAlias = Mapping[str, Any] | Callable[[dict[str, Any]], bool] | None


class Case(Struct, frozen=True):
    """One answer of a stub."""

    returns: Any = None
    """Any JSON value or parts; an exception is raised."""
    when: When = None
    """Arguments that have these values, or for which this function says so; None: any."""
    delay: float = 0.0
    """Seconds."""

    def fits(self, arguments: dict[str, Any]) -> bool:
        """Whether this is the answer to these arguments."""
        if self.when is None:
            return True
        if callable(self.when):
            return bool(self.when(arguments))
        return all(name in arguments and arguments[name] == value for name, value in self.when.items())


def stub(
    tool: AnyTool | str, *cases: Case, returns: Any = None, when: When = None, delay: float = 0.0
) -> Tool[Any, Any]:
    """The same tool at the same place, with a function that gives the first case that fits.

    For one case alone say `stub(tool, returns=…)`. A name alone stands for a tool that the server defines:
    `client.implement(stub("open_file", returns="opened"))`.
    """
    real = read_tool(make_definition(name=tool, description="")) if isinstance(tool, str) else read_tool(tool)
    several = cases or (Case(returns, when, delay),)

    async def answer(arguments: dict[str, Any]) -> Any:
        for case in several:
            if case.fits(arguments):
                await asyncio.sleep(case.delay)
                if isinstance(case.returns, BaseException):
                    raise case.returns
                return case.returns
        raise ToolError(f"the stub of {real.name!r} has no answer to these arguments", code="no_case", retryable=False)

    reads = RawCodec(bytes(real.definition.parameters))
    output = real.definition.output
    writes = None if output is None else RawCodec(bytes(output))
    return Tool(real.definition, reads=reads, writes=writes, function=bind(answer, reads, writes), judge=real.judge)
