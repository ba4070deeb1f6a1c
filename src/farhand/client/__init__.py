"""Clients of a Farhand server, for programs with an event loop (`Client`) and without (`BlockingClient`).

`places/` has what runs a client's functions in one process; this runs them at the other end of a connection.
"""

from farhand.client.blocking import BlockingClient
from farhand.client.calls import ClientCall
from farhand.client.client import Client
from farhand.client.patience import Patience
from farhand.client.result import RunResult
from farhand.client.stream import Stream
from farhand.client.thread import Thread
from farhand.places.running import Accepted
from farhand.plugins import NotMine, Plugin

__all__ = [
    "Accepted",
    "BlockingClient",
    "Client",
    "ClientCall",
    "NotMine",
    "Patience",
    "Plugin",
    "RunResult",
    "Stream",
    "Thread",
]
