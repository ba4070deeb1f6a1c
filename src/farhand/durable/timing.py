"""How often a runner looks, and how long it may be silent before others take its runs over."""

from msgspec import Struct

from farhand.core.errors import UsageError


class Timing(Struct, frozen=True, kw_only=True):
    """Seconds, unless it says otherwise."""

    lease: float = 10.0
    """Without a sign of life for so long, a worker is taken for dead and its runs are taken over."""
    beat: float = 2.0
    """Between two signs of life; a third of the lease at most."""
    tick: float = 0.25
    """Between two looks for runs that are ready or due. Timers fire not before their time, and by so much late."""
    check: float = 2.0
    """Between two comparisons of what is held here with what the store says."""
    drain: float = 10.0
    """How long a runner that is closed lets its runs come to rest, before it gives them to others."""
    batch: int = 500
    """So many runs are taken up at once; then answers have their turn."""
    room: int = 5000
    """So many runs may be worked on before no others are taken up. Answers and starts always are."""

    def __post_init__(self) -> None:
        for name in ("lease", "beat", "tick", "check", "drain"):
            if getattr(self, name) <= 0 and name != "drain":
                raise UsageError(f"Timing.{name} is {getattr(self, name)!r}; it must be above 0")
        if self.beat * 3 > self.lease:
            raise UsageError(f"Timing.beat is {self.beat!r}; it must be a third of the lease ({self.lease!r}) at most")
        if self.batch < 1 or self.room < 1:
            raise UsageError("Timing.batch and Timing.room must be 1 at least")
