"""The server keeps what its OpenAPI description promises, whatever is sent: schemathesis makes it up.

No request ends in a fault of the server, and every answer is one that the description lists, of the shape it says.
"""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from farhand import Agent, scripted
from farhand.asgi import create_app
from farhand.asgi.access.quota import Quota
from farhand.asgi.access.tokens import Tokens
from farhand.protocols.describe import openapi
from farhand.testing.server import served
from tests.asgi.story import ANN, PEOPLE, TOOLS, bearer, by_word

BOUNDLESS = Quota(streams=None, runs=None, threads=None, calls=None, registrations=None, requests=None, bytes=None)
ENDLESS = "provide-tools"
"""Its answer is a stream without an end, which whoever makes up requests would wait for."""
SCHEMA = schemathesis.openapi.from_file(openapi("1").decode()).exclude(operation_id=ENDLESS)
# A schema says what is well formed; what is true of a call, or of definitions in it, is for the server to find out.
positive_data_acceptance = schemathesis.checks.CHECKS.get_one("positive_data_acceptance")
CASES = 60
"""For each endpoint."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server in a thread of its own: the cases are made by a program that knows no event loop."""
    ready: list[Any] = []
    up = threading.Event()

    async def serve() -> None:
        agent = Agent(scripted(by_word), tools=TOOLS)
        app = create_app(agent, store="memory:", authenticate=Tokens(PEOPLE), quota=BOUNDLESS)
        stop = asyncio.Event()
        async with served(app) as url:
            ready.extend([url, asyncio.get_running_loop(), stop])
            up.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert up.wait(20)
    yield ready[0]
    ready[1].call_soon_threadsafe(ready[2].set)
    thread.join(20)


@SCHEMA.auth()
class Known:
    """Sends the token, except where schemathesis tries what happens without one."""

    def get(self, case: Any, context: Any) -> str:
        return bearer(ANN)["authorization"]

    def set(self, case: Any, data: str, context: Any) -> None:
        case.headers["authorization"] = data


@SCHEMA.parametrize()
@settings(
    max_examples=CASES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
def test_every_answer_is_one_that_is_described(case: Any, server: str) -> None:
    case.call_and_validate(base_url=server, timeout=20, excluded_checks=[positive_data_acceptance])
