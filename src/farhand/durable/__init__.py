"""Runs that are kept in a store: they survive restarts, any replica takes any answer, and waiting costs rows only."""

from farhand.durable.handle import StoredRun
from farhand.durable.position import Position
from farhand.durable.runner import Runner, Thread
from farhand.durable.timing import Timing

__all__ = ["Position", "Runner", "StoredRun", "Thread", "Timing"]
