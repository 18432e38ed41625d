"""API keys: authentication, rate limits and monthly quotas."""

import hashlib
import hmac
import ipaddress
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dragoman.errors import DataError
from dragoman.options import read_toml, suggest
from dragoman.serving.service_types import Client, ServiceError

WRONG_KEYS_PER_MINUTE = 20
"""Of one address; then each is answered with status 429."""
_FIELDS = ("key", "requests_per_minute", "characters_per_month")


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    """A valid API key, stored as its digest.

    Parameters
    ----------
    digest : bytes
        SHA-256 of the key; the key itself is not kept.
    client : Client
        Owner of the key.
    """

    digest: bytes
    client: Client


class ApiKeys:
    """Authenticates clients and enforces their rate limits and quotas.

    Parameters
    ----------
    entries : Sequence[ApiKey] | None
        The keys, from `read_keys`; None: nobody needs one.
    requests_per_minute : int | None
        For each address, where nobody needs a key; None: any number.
    now : Callable[[], float]
        Tells the seconds since some moment.
    month : Callable[[], tuple[int, int]]
        Tells the year and month.

    Notes
    -----
    All keys are compared with what a client sends, each in a time that does not depend on where
    they differ. Wrong keys are counted by address, and a right one is accepted whatever came from
    there before, so that nobody can lock others out. Of clients that have been quiet for a minute
    nothing need be remembered but how many characters the owners of keys have had translated in
    this month. Counts begin anew with the server.
    """

    def __init__(
        self,
        entries: Sequence[ApiKey] | None = None,
        *,
        requests_per_minute: int | None = None,
        now: Callable[[], float] = time.monotonic,
        month: Callable[[], tuple[int, int]] = lambda: _month(datetime.now(UTC)),
    ) -> None:
        self._entries = None if entries is None else tuple(entries)
        self._requests_per_minute = requests_per_minute
        self._month = month
        self._requests = RateLimiter(now)
        self._wrong_keys = RateLimiter(now)
        self._characters: dict[str, int] = {}
        self._counted_month = month()

    @property
    def is_required(self) -> bool:
        """Whether a client needs a key."""
        return self._entries is not None

    def authenticate(self, raw_key: str | None, address: str) -> Client:
        """Identify the client of a request.

        Parameters
        ----------
        raw_key : str | None
            The key that came with it; None or nothing: none did. Where nobody needs a key, it does
            not matter.
        address : str
            Where it came from.
        """
        if self._entries is None:
            return Client(
                name=self.name_address(address),
                requests_per_minute=self._requests_per_minute,
                has_key=False,
            )
        if not raw_key:
            raise ServiceError("missing_key", "this server wants an API key; send one")
        digest = _digest(raw_key)
        found = [each for each in self._entries if hmac.compare_digest(each.digest, digest)]
        if not found:
            self._wrong_keys.count(
                _network(address),
                WRONG_KEYS_PER_MINUTE,
                "Invalid API key; wrong ones of an address",
            )
            raise ServiceError("bad_key", "Invalid API key")
        return found[0].client

    def name_address(self, address: str) -> str:
        """Name the client at an address before its key is known."""
        return _network(address) if self._entries is None else ""

    def charge(self, client: Client, num_characters: int) -> None:
        """Count a request against rate limit and quota, or raise."""
        self._requests.count(client.name, client.requests_per_minute)
        self.charge_characters(client, num_characters)

    def charge_characters(self, client: Client, num_characters: int) -> None:
        """Count characters against the quota, or raise."""
        used, limit = self.usage(client)
        if limit is not None and used + num_characters > limit:
            raise ServiceError(
                "quota",
                f"the key's {limit:,} characters a month are used up",
                details={"limit": limit, "count": used},
            )
        if client.has_key:
            self._characters[client.name] = used + num_characters

    def check(self, client: Client) -> None:
        """Raise if the rate limit or the quota is exhausted; count nothing."""
        self._requests.check(client.name, client.requests_per_minute)
        used, limit = self.usage(client)
        if limit is not None and used >= limit:
            self.charge_characters(client, 1)

    def refund(self, client: Client, num_characters: int) -> None:
        """Return the characters of a request that was not answered."""
        if client.has_key:
            self._characters[client.name] = max(0, self.usage(client)[0] - num_characters)

    def usage(self, client: Client) -> tuple[int, int | None]:
        """Return the characters that a client has used this month, and its quota.

        Returns
        -------
        tuple[int, int | None]
            Characters of this month since the server began, and how many they may be; None: any
            number.
        """
        month = self._month()
        if month != self._counted_month:
            self._counted_month = month
            self._characters.clear()
        return self._characters.get(client.name, 0), client.characters_per_month


def read_keys(path: Path) -> list[ApiKey]:
    """Read API keys from a TOML file.

    Parameters
    ----------
    path : Path
        A TOML file with a table for each client, which has its ``key`` and, where there are limits,
        ``requests_per_minute`` and ``characters_per_month``.
    """
    plain = read_toml(path)
    if not plain:
        raise DataError(f'{path}: has no keys; write [NAME] and key = "…" for each client')
    entries = {name: _entry(name, table, path) for name, table in plain.items()}
    names: dict[bytes, str] = {}
    for name, entry in entries.items():
        other = names.setdefault(entry.digest, name)
        if other != name:
            raise DataError(f"{path}: [{other}] and [{name}] have the same key; give each its own")
    return list(entries.values())


def _entry(name: str, table: Any, path: Path) -> ApiKey:  # noqa: ANN401
    """Validate one client's table; error messages never contain the key."""
    place = f"{path}: [{name}]"
    if not isinstance(table, dict):
        raise DataError(f"{path}: “{name}” is outside of a table; write [NAME] above it")
    for field in table:
        if field not in _FIELDS:
            raise DataError(f"{place}: unknown field “{field}”{suggest(field, _FIELDS)}")
    key = table.get("key")
    if not isinstance(key, str) or len(key) < 8:
        raise DataError(f"{place}: key must be a string of at least 8 characters")
    limits = {}
    for field in _FIELDS[1:]:
        value = table.get(field)
        if value is not None and (type(value) is not int or value < 1):
            raise DataError(f"{place}: {field} is {value!r}; must be a whole number from 1")
        limits[field] = value
    return ApiKey(digest=_digest(key), client=Client(name=f"key {name}", has_key=True, **limits))


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def _month(moment: datetime) -> tuple[int, int]:
    return moment.year, moment.month


def _network(address: str) -> str:
    """Reduce an address to the unit of rate limiting: IPv6 to its /64 network."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]  # whatever a proxy says: it is remembered
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return address


MAX_CLIENTS = 10_000


class RateLimiter:
    """Leaky buckets by client name, for at most `MAX_CLIENTS` names.

    Parameters
    ----------
    now : Callable[[], float]
        Tells the seconds since some moment.

    Notes
    -----
    A minute's worth may come at once, then one each 60/n seconds. When there are too many names,
    the one that was counted least recently is forgotten: whoever has so many addresses gains more
    by using them than by being forgotten.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._full_until: dict[str, float] = {}

    def count(self, name: str, rate: int | None, refusal: str = "Slowdown") -> None:
        """Count one request, or raise if the bucket is full."""
        full_until = self.check(name, rate, refusal)
        if full_until is None:
            return
        self._full_until.pop(name, None)  # the last is the one that was counted most recently
        self._full_until[name] = full_until
        if len(self._full_until) > MAX_CLIENTS:
            del self._full_until[next(iter(self._full_until))]

    def check(self, name: str, rate: int | None, refusal: str = "Slowdown") -> float | None:
        """Raise if the bucket is full; count nothing."""
        if rate is None:
            return None
        now = self._now()
        full_until = max(self._full_until.get(name, now), now) + 60 / rate
        wait = full_until - 60 - now
        if wait > 1e-9:
            raise ServiceError(
                "too_many_requests",
                f"{refusal}: {rate:,} per 1 minute",
                retry_after=wait,
                details={"limit": rate},
            )
        return full_until
