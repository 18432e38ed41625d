"""Fair queueing (surplus round robin) over clients and their requests."""

from collections import OrderedDict, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QueuedItem(Generic[T]):
    """A queued item and its cost.

    Parameters
    ----------
    item : T
        The item.
    cost : int
        Charged to its owner's credit.
    """

    item: T
    cost: int


class FairQueue(Generic[T]):
    """Queue that is fair between owners, and between the requests of an owner.

    Parameters
    ----------
    quantum : int
        How much an owner may take in one turn.

    Notes
    -----
    Surplus round robin: whoever's turn it is gives things until their cost has used up its credit,
    goes to the end of the line, and gets new credit there; what it took too much counts against
    its next turns. So over time all that have something waiting get the same cost served, whatever
    the sizes of their things. No call's time depends on how much waits, only on how many owners
    do.
    """

    def __init__(self, quantum: int) -> None:
        self._quantum = quantum
        self._owners: _RoundRobin[_RoundRobin[deque[QueuedItem[T]]]] = _RoundRobin(quantum)
        self._costs: dict[Hashable, int] = {}
        self.cost = 0
        self.num_items = 0
        self.num_requests = 0

    def __bool__(self) -> bool:
        return bool(self.num_items)

    def cost_of(self, owner: Hashable) -> int:
        """Return the queued cost of an owner."""
        return self._costs.get(owner, 0)

    def add(self, owner: Hashable, request: Hashable, items: Sequence[QueuedItem[T]]) -> None:
        """Append the items of a request."""
        if not items:
            return
        requests = self._owners.children.get(owner)
        if requests is None:
            requests = _RoundRobin(self._quantum)
            self._owners.add(owner, requests)
        requests.add(request, deque(items))
        self.num_requests += 1
        self._count(owner, len(items), sum(each.cost for each in items))

    def peek(self) -> QueuedItem[T]:
        """Return the next item without removing it."""
        _, requests = self._owners.first()
        _, items = requests.first()
        return items[0]

    def take(self) -> T:
        """Remove and return the next item."""
        owner, requests = self._owners.first()
        request, items = requests.first()
        taken = items.popleft()
        requests.charge(request, taken.cost)
        self._owners.charge(owner, taken.cost)
        if not items:
            requests.remove(request)
            self.num_requests -= 1
        if not requests.children:
            self._owners.remove(owner)
        self._count(owner, -1, -taken.cost)
        return taken.item

    def withdraw(self, owner: Hashable, request: Hashable) -> int:
        """Remove the items of a request; return their number."""
        requests = self._owners.children.get(owner)
        items = None if requests is None else requests.remove(request)
        if requests is None or items is None:
            return 0
        self.num_requests -= 1
        if not requests.children:
            self._owners.remove(owner)
        self._count(owner, -len(items), -sum(each.cost for each in items))
        return len(items)

    def _count(self, owner: Hashable, num_items: int, cost: int) -> None:
        self.num_items += num_items
        self.cost += cost
        self._costs[owner] = self._costs.get(owner, 0) + cost
        if owner not in self._owners.children:
            del self._costs[owner]


class _RoundRobin(Generic[T]):
    """One level of the round robin: children in order with their remaining credit."""

    def __init__(self, quantum: int) -> None:
        self._quantum = quantum
        self._credits: dict[Hashable, int] = {}
        self.children: OrderedDict[Hashable, T] = OrderedDict()

    def add(self, key: Hashable, child: T) -> None:
        self.children[key] = child
        self._credits[key] = self._quantum

    def first(self) -> tuple[Hashable, T]:
        """Return the child whose turn it is; refill and rotate those without credit."""
        while True:
            key, child = next(iter(self.children.items()))
            if self._credits[key] > 0:
                return key, child
            self._credits[key] += self._quantum
            self.children.move_to_end(key)

    def charge(self, key: Hashable, cost: int) -> None:
        self._credits[key] -= cost

    def remove(self, key: Hashable) -> T | None:
        self._credits.pop(key, None)
        return self.children.pop(key, None)
