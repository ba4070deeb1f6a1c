"""Fakes for your own tests: a clock that you move by hand. `scripted` and `manual` of `farhand` are the fake models."""

from farhand.testing.clock import VirtualClock

__all__ = ["VirtualClock"]
