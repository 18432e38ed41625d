"""Turns lose nothing, keep the order within a request, and are fair in what they cost."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.serving.queue.fair_queue import Turns, Waiting

REQUESTS = st.lists(
    st.tuples(st.sampled_from("abc"), st.lists(st.integers(1, 40), min_size=1, max_size=8)),
    max_size=12,
)


def filled(requests, quantum=16):
    turns = Turns(quantum)
    for number, (owner, costs) in enumerate(requests):
        items = [Waiting((owner, number, index), cost) for index, cost in enumerate(costs)]
        turns.add(owner, number, items)
    return turns


def taken(turns):
    found = []
    while turns:
        next_one = turns.peek().item
        found.append(turns.take())
        assert found[-1] == next_one
    return found


@given(REQUESTS)
def test_takes_everything_once_and_each_request_in_order(requests):
    turns = filled(requests)
    assert turns.num_items == sum(len(costs) for _, costs in requests)
    assert turns.num_requests == len(requests)
    assert turns.cost == sum(sum(costs) for _, costs in requests)
    found = taken(turns)
    for number, (owner, costs) in enumerate(requests):
        mine = [item for item in found if item[1] == number]
        assert mine == [(owner, number, index) for index in range(len(costs))]
    assert (turns.num_items, turns.num_requests, turns.cost) == (0, 0, 0)
    assert all(turns.cost_of(owner) == 0 for owner in "abc")


@given(REQUESTS, st.data())
def test_withdrawing_removes_one_request_and_nothing_else(requests, data):
    turns = filled(requests)
    if not requests:
        assert turns.withdraw("a", 0) == 0
        return
    num_taken = data.draw(st.integers(0, turns.num_items - 1))
    first = [turns.take() for _ in range(num_taken)]
    number = data.draw(st.integers(0, len(requests) - 1))
    owner, costs = requests[number]
    gone = len(costs) - sum(item[1] == number for item in first)
    others = turns.cost_of(owner) - sum(costs[len(costs) - gone :])
    assert turns.withdraw(owner, number) == gone
    assert turns.cost_of(owner) == others
    assert turns.withdraw(owner, number) == 0
    rest = taken(turns)
    assert all(item[1] != number for item in rest)
    assert len(first) + gone + len(rest) == sum(len(costs) for _, costs in requests)


@given(
    st.lists(st.integers(1, 50), min_size=60, max_size=60),
    st.lists(st.integers(1, 50), min_size=60, max_size=60),
)
def test_owners_get_the_same_cost_served_while_both_wait(one, other):
    quantum = 20
    turns = filled([("a", one), ("b", other)], quantum)
    costs = {"a": one, "b": other}
    served = {"a": 0, "b": 0}
    while turns.cost_of("a") and turns.cost_of("b"):
        owner, _, index = turns.take()
        served[owner] += costs[owner][index]
        # A turn's worth, and what either may have taken too much.
        assert abs(served["a"] - served["b"]) <= quantum + 2 * 50


def test_a_late_short_request_does_not_wait_for_a_long_one_of_the_same_owner():
    turns = filled([("a", [10] * 100), ("a", [10])])
    found = taken(turns)
    assert found.index(("a", 1, 0)) <= 2


def test_many_requests_of_one_owner_are_one_turn():
    turns = filled([("hog", [10] * 5)] * 50 + [("other", [10] * 5)], quantum=10)
    places = [index for index, item in enumerate(taken(turns)) if item[0] == "other"]
    assert places[-1] <= 10


def test_adding_nothing_waits_for_nothing():
    turns = Turns(10)
    turns.add("a", 1, [])
    assert not turns
    assert turns.num_requests == 0
