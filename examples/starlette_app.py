"""A Farhand agent inside a Starlette application of your own. Run it with `uvicorn starlette_app:app`."""

from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from farhand.demo import demo_agent

agent = demo_agent().asgi(store="sqlite:agent.db")


async def home(request: Request) -> PlainTextResponse:
    """A page of your own."""
    return PlainTextResponse("The agent is at /agent/v1")


@asynccontextmanager
async def lifespan(app: Starlette):
    """The agent works as long as the application does. A mounted application is not told of that by itself."""
    async with agent.lifespan():
        yield


app = Starlette(routes=[Route("/", home), Mount("/agent", agent)], lifespan=lifespan)
