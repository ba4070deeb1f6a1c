"""Runs that are kept in a store: they survive restarts, any replica takes any answer, and waiting costs rows only."""

from farhand.durable.handle import StoredRun
from farhand.durable.runner import Runner, Thread
from farhand.durable.timing import Timing

__all__ = ["Runner", "StoredRun", "Thread", "Timing"]
