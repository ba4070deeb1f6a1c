"""Fakes for your own tests: a clock that you move by hand. `farhand.scripted` and `farhand.manual` are the fake models."""

from farhand.testing.clock import VirtualClock

__all__ = ["VirtualClock"]
