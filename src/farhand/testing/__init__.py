"""Fakes for your own tests: a clock that you move by hand, tools with fixed results. `scripted` and `manual` of
`farhand` are the fake models."""

from farhand.testing.clock import VirtualClock
from farhand.testing.stub import Case, stub

__all__ = ["Case", "VirtualClock", "stub"]
