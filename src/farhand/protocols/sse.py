"""Event streams as the HTML standard has them: frames out, and a reader that takes bytes as they come."""

from msgspec import Struct

HEARTBEAT = b":\n\n"
"""A comment: it keeps the connection alive and says nothing."""
MAX_EVENT = 16 << 20
"""Bytes of one event; a stream that sends more without an end is not read on."""


def frame(data: bytes, event_id: str = "") -> bytes:
    """One event. `data` is JSON as `msgspec` writes it, which has no line breaks."""
    return b"id: %b\ndata: %b\n\n" % (event_id.encode(), data) if event_id else b"data: %b\n\n" % data


class ServerEvent(Struct, frozen=True):
    """One event as it was sent; `id` is the last one that was named, as the standard wants it."""

    data: str
    id: str = ""
    name: str = ""


class EventTooLarge(ValueError):
    """A stream that does not come to the end of an event."""


class Reader:
    """Takes a stream in pieces of any size and gives the events that are whole."""

    __slots__ = ("_data", "_first", "_id", "_name", "_rest", "_size", "_was_return", "retry")

    def __init__(self) -> None:
        self.retry: int | None = None
        """Milliseconds that the server wants between two connections."""
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0
        self._id = ""
        self._name = ""
        self._first = True
        self._was_return = False

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The next bytes; raises `EventTooLarge`."""
        if self._was_return and chunk:
            self._was_return = False
            chunk = chunk.removeprefix(b"\n")
        if not chunk:
            return []
        if b"\r" in chunk:
            self._was_return = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = self._rest + lines[0]
            self._rest = rest
        else:
            self._rest += rest
        if len(self._rest) + self._size > MAX_EVENT:
            raise EventTooLarge(f"an event of more than {MAX_EVENT} bytes")
        out: list[ServerEvent] = []
        for line in lines:
            if line:
                self._field(line)
            elif self._data:
                data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                out.append(ServerEvent(data.decode("utf-8", "replace"), self._id, self._name))
                self._clear()
            else:
                self._clear()
        return out

    def _clear(self) -> None:
        self._data = []
        self._size = 0
        self._name = ""

    def _field(self, line: bytes) -> None:
        if self._first:
            self._first = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value)
            if self._size > MAX_EVENT:
                raise EventTooLarge(f"an event of more than {MAX_EVENT} bytes")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry = int(value)
