"""Values cached by the content they were made of, least recently used out first, bounded by bytes and not by count."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class ContentCache(Generic[V]):
    """It holds shapes only, nothing about who sent them, and may therefore serve everybody."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._kept: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        """The value kept under `key`, which counts as a use, or None."""
        try:
            self._kept.move_to_end(key)
            return self._kept[key][0]
        except KeyError:  # never there, or another thread has just dropped it
            return None

    def put(self, key: Hashable, value: V, size: int) -> None:
        """Keep `value`, which holds about `size` bytes; the oldest make room for it, unless it is larger than all."""
        self._drop(key)
        if size > self.max_bytes:
            return
        self._kept[key] = (value, size)
        self.bytes += size
        while self.bytes > self.max_bytes and self._kept:
            _, (_, dropped) = self._kept.popitem(last=False)
            self.bytes = self.bytes - dropped if self._kept else 0  # threads may have counted one entry twice

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def _drop(self, key: Hashable) -> None:
        _, size = self._kept.pop(key, (None, 0))
        self.bytes -= size
