"""How much one principal may have at once and ask for in a minute, so that nobody's share is another one's loss.

Buckets are filled up as time goes by, and whatever is asked for is taken out. Pure: the time is passed in.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from farhand.core.errors import InvalidInput, TooMuch

MINUTE: Final = 60_000
WAIT: Final = 5.0
"""Seconds after which to look again whether something has ended."""
MANY: Final = 60
"""Requests that may always come at once."""
MUCH: Final = 8_388_608
"""The same of bytes."""
PRINCIPALS: Final = 10_000
REFUSALS: Final = 300
"""A minute, above which somebody does not take them."""
TINY: Final = 1e-6
"""What is lost in counting with fractions."""


class Quota(Struct, frozen=True, kw_only=True):
    """What one principal may have; None is no limit."""

    streams: int | None = 64
    """Streams and sockets that are open."""
    runs: int | None = 64
    """Runs that are open."""
    threads: int | None = 10_000
    """Threads that are kept."""
    calls: int | None = 256
    """Calls that wait for a client or a person."""
    registrations: int | None = 60
    """Requests a minute that bring tools."""
    requests: int | None = 3_000
    """Requests a minute; a sixth of them at once, or 60."""
    bytes: int | None = 67_108_864
    """Of bodies, a minute; a sixth of them at once, or 8 MiB."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise InvalidInput(
                    f"{name}={limit}: a limit is at least 1, or None; what nobody may is a matter of scopes"
                )


class _Bucket:
    """Filled up by so much a minute; what is asked for is taken out."""

    __slots__ = ("_at", "_level")

    def __init__(self, size: int, now: int) -> None:
        self._level = float(size)
        self._at = now

    def take(self, amount: int, size: int, rate: int, now: int) -> float:
        """Take it out, or give the seconds until there is enough. What is more than fits leaves a debt."""
        self._level = min(size, self._level + max(0, now - self._at) * rate / MINUTE)
        self._at = now
        missing = min(amount, size) - self._level
        if missing > TINY:
            return missing * MINUTE / rate / 1000
        self._level -= amount
        return 0.0


class Quotas:
    """Keeps count of what each principal has and asks for. Raises `TooMuch`.

    Of those who ask for nothing the oldest are forgotten, `principals` are kept. Whoever is forgotten within a minute
    begins with full buckets again.
    """

    def __init__(self, quota: Quota, now: Callable[[], int], *, principals: int = PRINCIPALS) -> None:
        self.quota = quota
        self._now = now
        self._principals = principals
        self._buckets: OrderedDict[str, dict[str, _Bucket]] = OrderedDict()
        self._streams: Counter[str] = Counter()

    def asked(self, principal: str) -> None:
        """It makes a request."""
        limit = self.quota.requests
        self._take(principal, "requests", limit, 1, "requests a minute", at_once(limit, MANY))

    def sent(self, principal: str, size: int) -> None:
        """It has sent a body."""
        limit = self.quota.bytes
        self._take(principal, "bytes", limit, size, "bytes of bodies a minute", at_once(limit, MUCH))

    def registered(self, principal: str) -> None:
        """It brings tools."""
        self._take(principal, "registrations", self.quota.registrations, 1, "registrations of tools a minute")

    def insists(self, principal: str) -> bool:
        """It is refused something; whether that was so too often lately."""
        try:
            self._take(principal, "refusals", REFUSALS, 1, "refused requests a minute")
        except TooMuch:
            return True
        return False

    @contextmanager
    def stream(self, principal: str) -> Generator[None]:
        """It reads a stream, as long as this is entered."""
        self._room(self._streams[principal], self.quota.streams, "streams at once")
        self._streams[principal] += 1
        try:
            yield
        finally:
            self._streams[principal] -= 1
            if not self._streams[principal]:
                del self._streams[principal]

    def threads(self, now: int) -> None:
        """It wants one more, and has so many now."""
        self._room(now, self.quota.threads, "threads")

    def runs(self, now: int) -> None:
        """It wants one more, and has so many now that are open."""
        self._room(now, self.quota.runs, "open runs")

    def calls(self, now: int) -> None:
        """It begins a run, and has so many calls now that wait for it."""
        self._room(now, self.quota.calls, "calls that wait")

    def _room(self, now: int, limit: int | None, what: str) -> None:
        if limit is not None and now >= limit:
            raise TooMuch(f"you may have {limit} {what}", retry_after=WAIT)

    def _take(
        self, principal: str, name: str, limit: int | None, amount: int, what: str, size: int | None = None
    ) -> None:
        if limit is None:
            return
        now = self._now()
        buckets = self._buckets.setdefault(principal, {})
        self._buckets.move_to_end(principal)
        if len(self._buckets) > self._principals:
            self._buckets.popitem(last=False)
        bucket = buckets.get(name)
        if bucket is None:
            bucket = buckets[name] = _Bucket(size or limit, now)
        wait = bucket.take(amount, size or limit, limit, now)
        if wait:
            raise TooMuch(f"you may send {limit} {what}", retry_after=wait)


def at_once(limit: int | None, least: int) -> int | None:
    """How much of a minute's worth may come in one go: all of it would keep everybody else waiting."""
    return None if limit is None else min(limit, max(least, limit // 6))
