"""Turns lose nothing, keep the order within a request, and are fair in what they cost."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.serving.queue.fair_queue import FairQueue, QueuedItem

REQUESTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.lists(st.integers(1, 40), min_size=1, max_size=8)),
    max_size=12,
)


def filled(requests, quantum=16):
    fair_queue = FairQueue(quantum)
    for number, (owner, costs) in enumerate(requests):
        items = [QueuedItem((owner, number, index), cost) for index, cost in enumerate(costs)]
        fair_queue.add(owner, number, items)
    return fair_queue


def taken(fair_queue):
    found = []
    while fair_queue:
        next_one = fair_queue.peek().item
        found.append(fair_queue.take())
        assert found[-1] == next_one
    return found


@given(REQUESTS)
def test_takes_everything_once_and_each_request_in_order(requests):
    fair_queue = filled(requests)
    assert fair_queue.num_items == sum(len(costs) for _, costs in requests)
    assert fair_queue.num_requests == len(requests)
    assert fair_queue.cost == sum(sum(costs) for _, costs in requests)
    found = taken(fair_queue)
    for number, (owner, costs) in enumerate(requests):
        mine = [item for item in found if item[1] == number]
        assert mine == [(owner, number, index) for index in range(len(costs))]
    assert (fair_queue.num_items, fair_queue.num_requests, fair_queue.cost) == (0, 0, 0)
    assert all(fair_queue.cost_of(owner) == 0 for owner in "abc")


@given(REQUESTS, st.data())
def test_withdrawing_removes_one_request_and_nothing_else(requests, data):
    fair_queue = filled(requests)
    if not requests:
        assert fair_queue.withdraw("a", 0) == 0
        return
    num_taken = data.draw(st.integers(0, fair_queue.num_items - 1))
    first = [fair_queue.take() for _ in range(num_taken)]
    number = data.draw(st.integers(0, len(requests) - 1))
    owner, costs = requests[number]
    gone = len(costs) - sum(item[1] == number for item in first)
    others = fair_queue.cost_of(owner) - sum(costs[len(costs) - gone :])
    assert fair_queue.withdraw(owner, number) == gone
    assert fair_queue.cost_of(owner) == others
    assert fair_queue.withdraw(owner, number) == 0
    rest = taken(fair_queue)
    assert all(item[1] != number for item in rest)
    assert len(first) + gone + len(rest) == sum(len(costs) for _, costs in requests)


@given(
    st.lists(st.integers(1, 50), min_size=60, max_size=60),
    st.lists(st.integers(1, 50), min_size=60, max_size=60),
)
def test_owners_get_the_same_cost_served_while_both_wait(one, other):
    quantum = 20
    fair_queue = filled([("a", one), ("b", other)], quantum)
    costs = {"a": one, "b": other}
    served = {"a": 0, "b": 0}
    while fair_queue.cost_of("a") and fair_queue.cost_of("b"):
        owner, _, index = fair_queue.take()
        served[owner] += costs[owner][index]
        # A turn's worth, and what either may have taken too much.
        assert abs(served["a"] - served["b"]) <= quantum + 2 * 50


def test_a_late_short_request_does_not_wait_for_a_long_one_of_the_same_owner():
    fair_queue = filled([("a", [10] * 100), ("a", [10])])
    found = taken(fair_queue)
    assert found.index(("a", 1, 0)) <= 2


def test_many_requests_of_one_owner_are_one_turn():
    fair_queue = filled([("hog", [10] * 5)] * 50 + [("other", [10] * 5)], quantum=10)
    places = [index for index, item in enumerate(taken(fair_queue)) if item[0] == "other"]
    assert places[-1] <= 10


def test_adding_nothing_waits_for_nothing():
    fair_queue = FairQueue(10)
    fair_queue.add("a", 1, [])
    assert not fair_queue
    assert fair_queue.num_requests == 0
