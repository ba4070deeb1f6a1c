"""A Farhand agent inside a FastAPI application of your own, with its users. Run it with `uvicorn fastapi_app:app`."""

from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, Header, HTTPException

from farhand.asgi.access import Connection, Principal
from farhand.demo import demo_agent

USERS = {"a-session-of-ann": "ann", "a-session-of-ben": "ben"}


def user_of(session: str | None) -> str | None:
    """Whatever your application knows its users by."""
    return USERS.get(session or "")


async def authenticate(connection: Connection) -> Principal | None:
    """The same users, as Farhand asks for them."""
    user = user_of(connection.headers.get("x-session"))
    return Principal(user) if user else None


agent = demo_agent().asgi(store="sqlite:agent.db", authenticate=authenticate)


@asynccontextmanager
async def lifespan(app: FastAPI):
    """The agent works as long as the application does. A mounted application is not told of that by itself."""
    async with agent.lifespan():
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/me")
async def me(x_session: Annotated[str | None, Header()] = None) -> str:
    """An endpoint of your own."""
    user = user_of(x_session)
    if user is None:
        raise HTTPException(401)
    return user


app.mount("/agent", agent)
