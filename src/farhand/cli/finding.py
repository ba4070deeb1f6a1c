"""What `farhand doctor` finds: one thing that was looked at, how it is, and what to do."""

from enum import StrEnum

from msgspec import Struct


class Health(StrEnum):
    """How something is."""

    WELL = "well"
    NOTE = "note"
    BROKEN = "broken"


class Check(Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at."""

    name: str
    health: Health
    said: str
    fix: str = ""

    @property
    def sign(self) -> str:
        """For people."""
        return {Health.WELL: "✓", Health.NOTE: "!", Health.BROKEN: "✗"}[self.health]


SKEW = 5.0
"""Seconds by which two clocks may differ: the time of HTTP has whole seconds, and an answer takes a while."""


def clock(whose: str, ahead: float) -> Check:
    """Two clocks, by how far one is ahead of ours."""
    if abs(ahead) <= SKEW:
        return Check("clock", Health.WELL, f"the clock of {whose} agrees with this one")
    text = f"the clock of {whose} is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this one"
    return Check("clock", Health.NOTE, text, "have both set by NTP; JWTs are only good within 30 s")
