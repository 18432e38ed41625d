"""Keys tell clients apart, limit them, and are never shown."""

import hmac

import pytest
from tests.serving.asked import Asked

from dragoman.errors import DataError, OptionError
from dragoman.serving.http.api_keys import WRONG_KEYS_PER_MINUTE, ApiKeys, read_keys
from dragoman.serving.service_types import Client, ServiceError
from dragoman.serving.state.server_state import ServerState

FILE = """
[alice]
key = "alice-secret"
requests_per_minute = 6
characters_per_month = 100

[bob]
key = "bob-secret-ü"
"""


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.seconds = 1000.0
        self.month = (2026, 11)

    def keys(self, entries=None, **options):
        state = ServerState(now=lambda: self.seconds)
        return Asked(ApiKeys(entries, state=state, month=lambda: self.month, **options))


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def entries(tmp_path):
    path = tmp_path / "keys.toml"
    path.write_text(FILE, encoding="utf-8")
    return read_keys(path)


def kind_of(call):
    with pytest.raises(ServiceError) as caught:
        call()
    return caught.value


def test_the_owner_of_a_key_is_found_wherever_it_is(entries, clock):
    keys = clock.keys(entries)
    assert keys.is_required
    assert keys.authenticate("alice-secret", "1.2.3.4").name == "key alice"
    assert keys.authenticate("bob-secret-ü", "1.2.3.4") == Client(name="key bob", has_key=True)


@pytest.mark.parametrize("wrong", ["alice-secre", "alice-secret ", "ALICE-SECRET", "\ud800"])
def test_other_keys_are_refused_without_being_shown(entries, clock, wrong):
    error = kind_of(lambda: clock.keys(entries).authenticate(wrong, "1.2.3.4"))
    assert (error.kind, error.message) == ("bad_key", "Invalid API key")


@pytest.mark.parametrize("nothing", [None, ""])
def test_a_missing_key_is_asked_for(entries, clock, nothing):
    error = kind_of(lambda: clock.keys(entries).authenticate(nothing, "1.2.3.4"))
    assert error.kind == "missing_key"
    assert error.message == "this server wants an API key; send one"


def test_all_keys_are_compared_in_constant_time(entries, clock, monkeypatch):
    compared = []
    compare = hmac.compare_digest

    def spy(one, other):
        compared.append(len(one))
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", spy)
    keys = clock.keys(entries)
    keys.authenticate("alice-secret", "")
    assert compared == [32, 32]  # digests, and no stopping at the first that fits


def test_keys_are_not_kept(entries, clock):
    keys = clock.keys(entries)
    client = keys.authenticate("alice-secret", "")
    assert "alice-secret" not in repr((vars(keys.asked), entries, client))


def test_without_keys_clients_are_addresses(clock):
    keys = clock.keys()
    assert not keys.is_required
    assert keys.authenticate("anything", "1.2.3.4") == Client(name="1.2.3.4")
    one, other = (keys.authenticate(None, f"2001:db8:1:2::{end}") for end in ("1", "ffff"))
    assert one == other == Client(name="2001:db8:1:2::/64")
    assert keys.authenticate(None, "testclient").name == "address testclient"


def test_an_address_has_a_name_before_its_key_is_known(entries, clock):
    keys = clock.keys()
    assert keys.name_address("1.2.3.4") == keys.authenticate(None, "1.2.3.4").name
    assert clock.keys(entries).name_address("1.2.3.4") == ""


def test_requests_are_counted_by_the_minute(entries, clock):
    keys = clock.keys(entries)
    alice, bob = keys.authenticate("alice-secret", ""), keys.authenticate("bob-secret-ü", "")
    for _ in range(6):
        keys.charge(alice, 1)
    error = kind_of(lambda: keys.charge(alice, 1))
    assert (error.kind, error.message) == ("too_many_requests", "Slowdown: 6 per 1 minute")
    assert error.retry_after == pytest.approx(10)
    assert keys.usage(alice) == (6, 100)  # what was refused is not counted
    keys.charge(bob, 10**9)
    clock.seconds += error.retry_after
    keys.charge(alice, 1)
    assert kind_of(lambda: keys.charge(alice, 1)).kind == "too_many_requests"
    clock.seconds += 60
    for _ in range(6):
        keys.charge(alice, 1)


def test_addresses_are_limited(clock):
    keys = clock.keys(requests_per_minute=1)
    for number in range(10):
        keys.charge(keys.authenticate(None, f"address {number}"), 1)
    assert kind_of(lambda: keys.charge(keys.authenticate(None, "address 5"), 1)).retry_after == 60


def test_wrong_keys_are_limited_by_address_and_right_ones_are_not(entries, clock):
    keys = clock.keys(entries)
    kinds = [
        kind_of(lambda: keys.authenticate("wrong", "1.2.3.4")).kind
        for _ in range(WRONG_KEYS_PER_MINUTE + 2)
    ]
    assert kinds == ["bad_key"] * WRONG_KEYS_PER_MINUTE + ["too_many_requests"] * 2
    error = kind_of(lambda: keys.authenticate("wrong", "1.2.3.4"))
    assert error.message == "Invalid API key; wrong ones of an address: 20 per 1 minute"
    assert error.retry_after == pytest.approx(3)
    assert keys.authenticate("alice-secret", "1.2.3.4").name == "key alice"
    assert kind_of(lambda: keys.authenticate("wrong", "1.2.3.5")).kind == "bad_key"
    assert kind_of(lambda: keys.authenticate(None, "1.2.3.4")).kind == "missing_key"
    clock.seconds += error.retry_after
    assert kind_of(lambda: keys.authenticate("wrong", "1.2.3.4")).kind == "bad_key"


def test_one_person_with_many_ipv6_addresses_is_one(entries, clock):
    keys = clock.keys(entries)
    for number in range(WRONG_KEYS_PER_MINUTE):
        kind_of(lambda end=number: keys.authenticate("wrong", f"2001:db8::{end:x}"))
    assert kind_of(lambda: keys.authenticate("wrong", "2001:db8::ffff")).kind == "too_many_requests"


def test_characters_are_counted_by_the_month(entries, clock):
    keys = clock.keys(entries)
    alice = keys.authenticate("alice-secret", "")
    keys.charge(alice, 60)
    error = kind_of(lambda: keys.charge(alice, 41))
    assert error.kind == "quota"
    assert error.message == "the key's 100 characters a month are used up"
    assert error.details == {"limit": 100, "count": 60}
    keys.charge(alice, 40)
    assert keys.usage(alice) == (100, 100)
    keys.refund(alice, 30)
    assert keys.usage(alice) == (70, 100)
    keys.refund(alice, 300)
    assert keys.usage(alice) == (0, 100)
    keys.charge(alice, 100)
    clock.month = (2026, 12)
    assert keys.usage(alice) == (0, 100)


def test_who_has_nothing_left_is_known_without_counting(entries, clock):
    keys = clock.keys(entries)
    alice = keys.authenticate("alice-secret", "")
    keys.charge(alice, 100)
    for _ in range(9):
        assert kind_of(lambda: keys.check(alice)).kind == "quota"
    keys.refund(alice, 1)
    for _ in range(9):
        keys.check(alice)
    keys.charge_characters(alice, 1)
    assert keys.usage(alice) == (100, 100)
    for _ in range(5):
        keys.charge(alice, 0)
    assert kind_of(lambda: keys.check(alice)).kind == "too_many_requests"


def test_requests_that_are_refused_for_their_length_count_as_requests(entries, clock):
    keys = clock.keys(entries)
    alice = keys.authenticate("alice-secret", "")
    kinds = [kind_of(lambda: keys.charge(alice, 101)).kind for _ in range(7)]
    assert kinds == ["quota"] * 6 + ["too_many_requests"]
    assert keys.usage(alice) == (0, 100)


def test_who_has_no_key_is_not_counted(clock):
    keys = clock.keys()
    client = keys.authenticate(None, "1.2.3.4")
    keys.charge(client, 5)
    keys.refund(client, 5)
    assert keys.usage(client) == (0, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'has no keys; write [NAME] and key = "…" for each client'),
        ('key = "top-secret-1"', "“key” is outside of a table; write [NAME] above it"),
        ("[a]\n", "[a]: key must be a string of at least 8 characters"),
        ("[a]\nkey = 1234567890", "[a]: key must be a string of at least 8 characters"),
        ('[a]\nkey = "top"', "[a]: key must be a string of at least 8 characters"),
        (
            '[a]\nkey = "top-secret"\nrequest_per_minute = 3',
            "[a]: unknown field “request_per_minute”; did you mean “requests_per_minute”?",
        ),
        (
            '[a]\nkey = "top-secret"\nrequests_per_minute = 0',
            "[a]: requests_per_minute is 0; must be a whole number from 1",
        ),
        (
            '[a]\nkey = "top-secret"\ncharacters_per_month = true',
            "[a]: characters_per_month is True; must be a whole number from 1",
        ),
        (
            '[a]\nkey = "top-secret"\n[b]\nkey = "top-secret"',
            "[a] and [b] have the same key; give each its own",
        ),
    ],
)
def test_a_bad_file_is_explained_without_its_keys(tmp_path, text, message):
    path = tmp_path / "keys.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_keys(path)
    assert str(caught.value) == f"{path}: {message}"
    assert "top-secret" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(OptionError, match=r"nowhere\.toml"):
        read_keys(tmp_path / "nowhere.toml")


def test_the_name_of_a_key_s_owner_cannot_be_had_as_an_address(clock):
    keys = clock.keys()
    assert keys.authenticate(None, "key alice").name == "address key alice"
