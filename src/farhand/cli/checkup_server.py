"""What `farhand doctor` looks at in a server: is it there, what time is it there, who listens in, who one is to it."""

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from time import time
from typing import Final
from urllib.parse import urlsplit

from farhand import __version__
from farhand.cli.exits import said
from farhand.cli.extras import install, missing
from farhand.cli.finding import Check, Health, clock
from farhand.cli.options import Login
from farhand.cli.remote import TOKEN, Address, address, reached
from farhand.core.errors import FarhandError

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


async def server_checks(url: str, who: Login) -> list[Check]:
    lacking = missing("client")
    if lacking:
        return [Check("server", Health.BROKEN, "no server can be asked without the extra `client`", install("client"))]
    from farhand.client.wire import base_of  # which needs the extra

    try:
        there = address(url, who)
        base_of(there.url)
        found = [*await _reach(there), *_exposure(there)]
    except (FarhandError, OSError) as error:
        what = said(error)
        return [Check("server", Health.BROKEN, what.detail, what.fix)]
    return found if found[0].health is Health.BROKEN else [*found, *await _identity(url, who, there)]


async def _reach(there: Address) -> list[Check]:
    """Whether it answers and takes work, and what time it is there."""
    import httpx2

    local = urlsplit(there.url).hostname in LOOPBACK
    try:
        async with httpx2.AsyncClient(timeout=5, trust_env=not local) as http:
            began = time()
            answer = await http.get(f"{there.url.removesuffix('/v1')}/v1/readyz")
            took = time() - began
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        text = f"{there.url} cannot be reached: {error or type(error).__name__}"
        return [
            Check("server", Health.BROKEN, text, "is it running, and is this its address? `farhand serve …` begins one")
        ]
    status = _status(answer.content)
    if not status:
        text = f"what answers at {there.url} ({answer.status_code}) is no Farhand server"
        return [Check("server", Health.BROKEN, text, "compare the address with what the server printed")]
    if status != "ok":
        fix = "it is being stopped" if status == "draining" else "its store does not answer; see its log"
        found = [Check("server", Health.BROKEN, f"{there.url} takes no work: {status}", fix)]
    else:
        found = [Check("server", Health.WELL, f"{there.url} takes work, and answers in {took * 1000:.0f} ms")]
    date = answer.headers.get("date")
    if date:
        ahead = parsedate_to_datetime(date).timestamp() - (began + took / 2)
        found.append(clock("the server", ahead))
    return found


def _status(body: bytes) -> str:
    from msgspec import MsgspecError, json

    from farhand.protocols.native import Health as Told

    try:
        return json.decode(body, type=Told).status
    except (MsgspecError, UnicodeDecodeError):
        return ""


def _exposure(there: Address) -> Iterator[Check]:
    """Who else may listen in."""
    parts = urlsplit(there.url)
    if parts.hostname in LOOPBACK:
        yield Check("network", Health.WELL, "the server is reached on this machine only, by this address")
    elif parts.scheme == "http":
        text = "the token and all conversations go through the network as they are"
        yield Check("network", Health.BROKEN, text, "put a proxy with TLS before the server, and use https://")
    else:
        yield Check("network", Health.WELL, "what goes through the network is encrypted")


async def _identity(url: str, who: Login, there: Address) -> list[Check]:
    """Whether the token is one of the server's, and what it may do."""
    if not there.token:
        fix = f"${TOKEN}, --token-file, or the URL as the server printed it"
        return [Check("access", Health.NOTE, "no token was given: nothing else can be looked at", fix)]
    try:
        async with reached(url, who) as client:
            view = await client.server()
    except FarhandError as error:
        what = said(error)
        return [Check("access", Health.BROKEN, what.detail, what.fix)]
    found = [
        Check(
            "access", Health.WELL, f"you are {view.principal!r} there, and may {', '.join(view.scopes) or 'nothing'}"
        ),
        Check("agents", Health.WELL, ", ".join(view.agents)),
    ]
    if view.version != __version__:
        text = f"the server is farhand {view.version}, and this is {__version__}"
        found.append(Check("version", Health.NOTE, text, "that works; newer things may be missing on one side"))
    return found
