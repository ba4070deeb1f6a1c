"""An agent of this machine, served for one chat: on loopback, at a free port, to nobody else. As any other server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from farhand.asgi.access.loopback import Loopback
from farhand.asgi.app import create_app
from farhand.asgi.serve import make_server
from farhand.cli.objects import load_agent
from farhand.cli.serving import Listening, begun, look_at, store_of
from farhand.cli.session.person import Person
from farhand.cli.session.stage import PlayedByPerson

HOST = "127.0.0.1"


@asynccontextmanager
async def served(where: str, person: Person, *, store: str, manual: bool) -> AsyncGenerator[tuple[str, str]]:
    """The URL and the token."""
    agent = load_agent(where)
    if manual:
        agent.model = PlayedByPerson(person)
    await look_at(store)
    loopback = Loopback()  # whatever token is in the environment is for another server
    app = create_app(agent, store=store_of(store), authenticate=loopback)
    found = Listening(HOST, 0).open()
    port = found.getsockname()[1]
    server = make_server(app, host=HOST, port=port, signals=False)
    async with begun(server, found):
        yield f"http://{HOST}:{port}", loopback.token
