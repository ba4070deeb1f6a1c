"""A small house to break into: one door that changes something, behind the gate and the check of origins."""

from collections.abc import Mapping, Sequence
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from farhand.asgi.access import Authenticate, Connection, Gate, Origins
from farhand.asgi.door import problem
from farhand.core.errors import FarhandError

HERE = ("127.0.0.1", 50000)


def connection(
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    *,
    client: tuple[str, int] | None = HERE,
    kind: str = "http",
    **scope: Any,
) -> Connection:
    """A connection as a server hands it over."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    raw = [(name.lower().encode("latin-1"), value.encode("utf-8")) for name, value in pairs]
    scheme = "http" if kind == "http" else "ws"
    return Connection({"type": kind, "scheme": scheme, "path": "/", "headers": raw, "client": client, **scope})


def bearer(token: str) -> Connection:
    """A connection with nothing but a token."""
    return connection({"Host": "localhost", "Authorization": f"Bearer {token}"})


class House:
    """Counts what was changed in it, and by whom."""

    def __init__(
        self, authenticate: Authenticate, *, hosts: Sequence[str] = (), origins: Sequence[str] = (), **settings: Any
    ) -> None:
        self.changed: list[str] = []
        self._gate = Gate(authenticate)
        routes = [Route("/{action}", self._change, methods=["GET", "POST", "OPTIONS"])]
        self.inside = Starlette(routes=routes)
        self.app: Any = Origins(self.inside, hosts=hosts, origins=origins, **settings)

    async def _change(self, request: Request) -> Response:
        try:
            principal = await self._gate.admit(request, request.path_params["action"])
        except FarhandError as error:
            reply = problem(error)
            headers = {name.decode(): value.decode() for name, value in reply.headers}
            return Response(reply.body, reply.status, headers)
        self.changed.append(principal.id if principal else "nobody")
        return Response("changed", headers={"Vary": "Accept"})

    async def ask(
        self,
        method: str = "GET",
        path: str = "/chat",
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        *,
        content: bytes | None = None,
        client: tuple[str, int] = HERE,
        checked: bool = True,
    ) -> httpx2.Response:
        """One request, without what a client would add to it by itself; unchecked, it is inside already."""
        transport = httpx2.ASGITransport(self.app if checked else self.inside, client=client)
        request = httpx2.Request(method, f"http://localhost:8000{path}", headers=headers, content=content)
        given = {name.lower() for name, _ in (headers.items() if isinstance(headers, Mapping) else headers)}
        for name in ("host", "content-type", "content-length"):
            if name not in given and (name != "content-length" or content is None):
                request.headers.pop(name, None)
        async with httpx2.AsyncClient(transport=transport) as asker:
            return await asker.send(request)
