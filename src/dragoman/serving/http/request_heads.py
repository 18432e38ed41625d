"""Request heads: refuse ambiguous ones and Host names of other servers."""

import ipaddress
import re
import socket
from collections.abc import Sequence

from starlette.types import Scope

# Load balancers probe these with any Host; the answers reveal nothing but liveness.
PROBES = frozenset({"/health", "/ready"})
# Headers that proxies add to forwarded requests.
_FORWARDED = frozenset({b"forwarded", b"via", b"x-forwarded-for", b"x-real-ip"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]{1,255})(?::[0-9]{1,5})?", re.IGNORECASE)
_BLANK_LINE = re.compile(rb"\n\r?\n")
_ODD_LINE = re.compile(rb"(?<!\r)\n|\n[ \t]")
_ONCE = (b"content-length", b"host", b"transfer-encoding")

Refusal = tuple[int, str]


class HeadCheck:
    """Checks the Host header and the framing of requests.

    Parameters
    ----------
    host : str
        The address, or the name, where the server listens.
    other_names : Sequence[str]
        Names by which clients and proxies know it; “*” for any.

    Notes
    -----
    A web page can have its own name resolved to this machine's address (DNS rebinding); a browser
    then takes the server for a part of that page's site. What gives such a request away is the
    name in its Host header, so only names that are this server's are answered. An address in place
    of a name cannot be rebound.
    """

    def __init__(self, host: str, other_names: Sequence[str] = ()) -> None:
        self._is_local = is_loopback(host)
        self._names = {"localhost", *(name.lower().rstrip(".") for name in other_names)}
        if not self._is_local:
            own = socket.gethostname().lower()
            self._names |= {host.lower(), own, own.partition(".")[0]}

    def find_refusal(self, scope: Scope) -> Refusal | None:
        """Return status and message if a request is refused, else None."""
        names = [name for name, _ in scope["headers"]]
        headers = dict(scope["headers"])
        repeated = next((name for name in _ONCE if names.count(name) > 1), None)
        if repeated is not None:
            return 400, f"the request has {repeated.decode().title()} twice; send it once"
        if scope.get("http_version", "1.1") not in ("1.0", "1.1"):
            return 400, "the request is of another version of HTTP; speak HTTP/1.1"
        coding = headers.get(b"transfer-encoding")
        if coding is not None and b"content-length" in headers:
            return 400, "the request has Content-Length and Transfer-Encoding; send one of them"
        if coding is not None and coding.strip().lower() != b"chunked":
            return 400, "the request has a Transfer-Encoding that is not chunked; send no other"
        # Browsers always send a Host, so a request without one is no DNS rebinding.
        host = headers.get(b"host")
        return None if host is None or scope["path"] in PROBES else self._check_host(host)

    def _check_host(self, raw: bytes) -> Refusal | None:
        match = _HOST.fullmatch(raw.decode("latin-1"))
        if match is None:
            return 400, "the Host header is no name and no address; send the server's"
        name = match[1].lower().rstrip(".")
        address = parse_address(name)
        is_safe = address is not None and (address.is_loopback or not self._is_local)
        if is_safe or name in self._names or "*" in self._names:
            return None
        return 421, f"this server is not known as {name}; start it with --allow-host {name}"


def is_ambiguous(data: bytes) -> bool:
    """Return whether a head has folded lines or bare line feeds.

    Parameters
    ----------
    data : bytes
        What came, from the beginning of the head; perhaps not to its end, or beyond that.
    """
    end = _BLANK_LINE.search(data)
    return _ODD_LINE.search(data, 0, end.end() if end else len(data)) is not None


def parse_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an IP address; None: it is a name."""
    try:
        return ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Return whether a host is reachable from this machine only.

    Returns
    -------
    bool
        Whether it is this machine's own; of names, only “localhost” is known to be.
    """
    address = parse_address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def is_forwarded(scope: Scope) -> bool:
    """Return whether a request was forwarded by a proxy.

    Returns
    -------
    bool
        Whether its head says so. A proxy may hide it: that one is there, its user has to say by
        ``--proxy``.
    """
    return any(name in _FORWARDED for name, _ in scope["headers"])
