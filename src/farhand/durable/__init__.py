"""Runs that are kept in a store: they survive restarts, any replica takes any answer, and waiting costs rows only."""

from farhand.durable.attachment import Attachment
from farhand.durable.handle import StoredRun
from farhand.durable.position import Position
from farhand.durable.runner import Runner, Thread
from farhand.durable.standing import Claimed, Standing
from farhand.durable.timing import Timing

__all__ = ["Attachment", "Claimed", "Position", "Runner", "Standing", "StoredRun", "Thread", "Timing"]
