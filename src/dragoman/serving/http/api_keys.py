"""API keys: authentication, rate limits and monthly quotas."""

import hashlib
import hmac
import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from dragoman.errors import DataError
from dragoman.options import read_toml, suggest
from dragoman.serving.service_types import Client, ServiceError
from dragoman.serving.state.client_names import KEY_PREFIX
from dragoman.serving.state.memory_counts import Bucket
from dragoman.serving.state.server_state import ServerState

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
    state : ServerState | None
        Where requests and characters are counted; None: in memory, anew with each server.
    month : Callable[[], tuple[int, int]]
        Tells the year and month.

    Notes
    -----
    All keys are compared with what a client sends, each in a time that does not depend on where
    they differ. Wrong keys are counted by address, and a right one is accepted whatever came from
    there before, so that nobody can lock others out. Of clients that have been quiet for a minute
    nothing need be remembered but how many characters the owners of keys have had translated in
    this month.
    """

    def __init__(
        self,
        entries: Sequence[ApiKey] | None = None,
        *,
        requests_per_minute: int | None = None,
        state: ServerState | None = None,
        month: Callable[[], tuple[int, int]] = lambda: _month(datetime.now(UTC)),
    ) -> None:
        self._entries = None if entries is None else tuple(entries)
        self._requests_per_minute = requests_per_minute
        self._month = month
        self.state = ServerState() if state is None else state
        self._counts = self.state.counts

    @property
    def is_required(self) -> bool:
        """Whether a client needs a key."""
        return self._entries is not None

    def replace(self, entries: Sequence[ApiKey]) -> None:
        """Replace all keys, such as after the file was read again."""
        self._entries = tuple(entries)

    async def authenticate(self, raw_key: str | None, address: str) -> Client:
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
            await self.state.ask_counts(
                self._count,
                "wrong keys",
                _network(address),
                WRONG_KEYS_PER_MINUTE,
                "Invalid API key; wrong ones of an address",
            )
            raise ServiceError("bad_key", "Invalid API key")
        return found[0].client

    def name_address(self, address: str) -> str:
        """Name the client at an address before its key is known."""
        return _network(address) if self._entries is None else ""

    async def charge(self, client: Client, num_characters: int) -> None:
        """Count a request against rate limit and quota, or raise."""
        if client.requests_per_minute is not None or client.has_key:
            undo = partial(self.refund, client, num_characters)
            await self.state.ask_counts(self._charge, client, num_characters, undo=undo)

    async def charge_characters(self, client: Client, num_characters: int) -> None:
        """Count characters against the quota, or raise."""
        if client.has_key:
            undo = partial(self.refund, client, num_characters)
            await self.state.ask_counts(self._charge_characters, client, num_characters, undo=undo)

    async def check(self, client: Client) -> None:
        """Raise if the rate limit or the quota is exhausted; count nothing."""
        if client.requests_per_minute is not None or client.characters_per_month is not None:
            await self.state.ask_counts(self._check, client)

    def refund(self, client: Client, num_characters: int) -> None:
        """Return the characters of a request that was not answered, perhaps a moment later."""
        if client.has_key and num_characters:
            self.state.call_soon(
                partial(self._counts.refund, client.name, self._name_month(), num_characters)
            )

    async def usage(self, client: Client) -> tuple[int, int | None]:
        """Return the characters that a client has used this month, and its quota.

        Returns
        -------
        tuple[int, int | None]
            Characters of this month, and how many they may be; None: any number.
        """
        limit = client.characters_per_month
        if not client.has_key:
            return 0, limit
        return await self.state.ask_counts(
            self._counts.used, client.name, self._name_month()
        ), limit

    def _charge(self, client: Client, num_characters: int) -> None:
        if client.requests_per_minute is not None:
            self._count("requests", client.name, client.requests_per_minute)
        if client.has_key:
            self._charge_characters(client, num_characters)

    def _charge_characters(self, client: Client, num_characters: int) -> None:
        limit = client.characters_per_month
        used = self._counts.charge(client.name, self._name_month(), num_characters, limit)
        if used is not None:
            raise _used_up(used, limit)

    def _check(self, client: Client) -> None:
        rate, limit = client.requests_per_minute, client.characters_per_month
        if rate is not None:
            wait = self._counts.wait("requests", client.name, rate)
            if wait is not None:
                raise _slow_down("Slowdown", rate, wait)
        if limit is not None:
            used = self._counts.used(client.name, self._name_month())
            if used >= limit:
                raise _used_up(used, limit)

    def _count(self, bucket: Bucket, name: str, rate: int, refusal: str = "Slowdown") -> None:
        wait = self._counts.count(bucket, name, rate)
        if wait is not None:
            raise _slow_down(refusal, rate, wait)

    def _name_month(self) -> str:
        year, month = self._month()
        return f"{year:04}-{month:02}"


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
    client = Client(name=f"{KEY_PREFIX}{name}", has_key=True, **limits)
    return ApiKey(digest=_digest(key), client=client)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def _month(moment: datetime) -> tuple[int, int]:
    return moment.year, moment.month


def _network(address: str) -> str:
    """Reduce an address to the unit of rate limiting: IPv6 to its /64 network."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        # Whatever a proxy says: it is remembered, and must not be the name of a key's owner.
        return f"address {address[:64]}"
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return address


def _slow_down(refusal: str, rate: int, wait: float) -> ServiceError:
    return ServiceError(
        "too_many_requests",
        f"{refusal}: {rate:,} per 1 minute",
        retry_after=wait,
        details={"limit": rate},
    )


def _used_up(used: int, limit: int | None) -> ServiceError:
    return ServiceError(
        "quota",
        f"the key's {limit:,} characters a month are used up",
        details={"limit": limit, "count": used},
    )
