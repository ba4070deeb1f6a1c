"""A run as JSON, for whoever keeps a paused run himself. The format has a number; what it does not know is refused."""

from msgspec import DecodeError, Struct, ValidationError, json

from farhand.core.errors import InvalidInput, UsageError
from farhand.core.run import Run

FORMAT = 1


class Snapshot(Struct, frozen=True, kw_only=True):
    """A run between two events, and the number of its last update."""

    farhand: int = FORMAT
    seq: int
    run: Run
    unsent: tuple[str, ...] = ()
    """Calls that were to be dispatched when this was written, and were not."""


_DECODER = json.Decoder(Snapshot)


def read_snapshot(data: bytes | str) -> Snapshot:
    """What `LiveRun.to_json` wrote."""
    try:
        snapshot = _DECODER.decode(data)
    except (ValidationError, DecodeError, UnicodeDecodeError, RecursionError, UsageError) as error:
        raise InvalidInput(f"this is not a run written by to_json: {error}") from error
    if snapshot.farhand != FORMAT:
        raise InvalidInput(f"this run has format {snapshot.farhand}; this version reads format {FORMAT}")
    return snapshot
