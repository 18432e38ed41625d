"""LRU cache of translated sentences."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class TranslationCache(Generic[Value]):
    """LRU cache, bounded by size in characters.

    Parameters
    ----------
    capacity : int
        Of all that is remembered together, in characters; 0: nothing is.

    Notes
    -----
    To be used from one thread. What is larger than a tenth of the capacity is not remembered: it
    would drive out much and rarely come again.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self.size = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Value | None:
        """Look up a value and mark it as recently used."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: Hashable, value: Value, size: int) -> None:
        """Store a value; evict the least recently used."""
        if size * 10 > self._capacity:
            return
        old = self._entries.pop(key, None)
        self.size += size - (old[1] if old else 0)
        self._entries[key] = (value, size)
        while self.size > self._capacity:
            _, (_, dropped) = self._entries.popitem(last=False)
            self.size -= dropped
