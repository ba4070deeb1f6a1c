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
        entry = self._kept.get(key)
        if entry is None:
            return None
        self._kept.move_to_end(key)
        return entry[0]

    def put(self, key: Hashable, value: V, size: int) -> None:
        """Keep `value`, which holds about `size` bytes; the oldest make room for it, unless it is larger than all."""
        self._drop(key)
        if size > self.max_bytes:
            return
        self._kept[key] = (value, size)
        self.bytes += size
        while self.bytes > self.max_bytes:
            self._drop(next(iter(self._kept)))

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def _drop(self, key: Hashable) -> None:
        _, size = self._kept.pop(key, (None, 0))
        self.bytes -= size
