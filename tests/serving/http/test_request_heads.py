"""Heads are refused that name another server, or that others may read differently."""

import socket

import pytest

from dragoman.serving.http.request_heads import HeadCheck, is_forwarded, is_loopback


def refusal(host, *headers, listens="127.0.0.1", names=(), path="/translate", version="1.1"):
    heads = [*([] if host is None else [(b"host", host)]), *headers]
    scope = {"type": "http", "path": path, "headers": heads, "http_version": version}
    return HeadCheck(listens, names).find_refusal(scope)


LOCAL = [b"localhost", b"LOCALHOST:5000", b"127.0.0.1:1", b"127.9.9.9", b"[::1]", b"[::1]:5000"]


@pytest.mark.parametrize("listens", ["127.0.0.1", "localhost", "::1", "0.0.0.0", "::", "10.0.0.1"])
@pytest.mark.parametrize("host", [*LOCAL, None])
def test_this_machine_is_known_by_its_own_names(host, listens):
    assert refusal(host, listens=listens) is None


@pytest.mark.parametrize("listens", ["127.0.0.1", "0.0.0.0", "10.0.0.1", "::"])
@pytest.mark.parametrize("host", ["evil.example", "evil.example:5000", "127.0.0.1.evil.example"])
def test_other_names_are_refused_and_the_remedy_is_named(host, listens):
    name = host.removesuffix(":5000")
    assert refusal(host.encode(), listens=listens) == (
        421, f"this server is not known as {name}; start it with --allow-host {name}"
    )  # fmt: skip
    assert refusal(host.encode(), listens=listens, names=["a", name.upper()]) is None
    assert refusal(host.encode(), listens=listens, names=["*"]) is None
    assert refusal(host.encode(), listens=listens, path="/health") is None
    assert refusal(host.encode(), listens=listens, path="/metrics")[0] == 421


def test_addresses_are_other_machines_names_only_for_a_server_that_they_can_reach():
    for host in (b"192.168.0.7:5000", b"[2001:db8::1]"):
        assert refusal(host)[0] == 421
        assert refusal(host, listens="0.0.0.0") is None


def test_the_machine_s_own_name_is_known_where_others_can_reach_it(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "Box.lan")
    for host in (b"box.lan", b"box:5000", b"BOX.LAN."):
        assert refusal(host, listens="0.0.0.0") is None
        assert refusal(host)[0] == 421
    assert refusal(b"served.here", listens="served.here") is None


@pytest.mark.parametrize("host", [b"", b"a b", b"\xff", b"a/b", b"user@localhost", b"localhost:x"])
def test_what_is_no_host_is_refused(host):
    assert refusal(host, names=["*"]) == (
        400, "the Host header is no name and no address; send the server's"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ([(b"host", b"localhost")], "the request has Host twice; send it once"),
        (
            [(b"content-length", b"1"), (b"content-length", b"1")],
            "the request has Content-Length twice; send it once",
        ),
        (
            [(b"content-length", b"1"), (b"transfer-encoding", b"chunked")],
            "the request has Content-Length and Transfer-Encoding; send one of them",
        ),
        (
            [(b"transfer-encoding", b"gzip, chunked")],
            "the request has a Transfer-Encoding that is not chunked; send no other",
        ),
    ],
)
def test_ambiguous_heads_are_refused_even_of_probes(headers, message):
    for path in ("/translate", "/health"):
        assert refusal(b"localhost", *headers, path=path) == (400, message)


def test_other_versions_are_refused():
    assert refusal(b"localhost", version="1.0") is None
    for version in ("0.9", "2.0"):
        assert refusal(b"localhost", version=version)[0] == 400


def test_requests_that_a_proxy_passes_on_are_known():
    for name in (b"x-forwarded-for", b"forwarded", b"via", b"x-real-ip"):
        assert is_forwarded({"headers": [(name, b"1.2.3.4")]})
    assert not is_forwarded({"headers": [(b"host", b"localhost")]})


def test_loopback_is_told_from_other_addresses():
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.1.2.3", "::1", "LocalHost"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "127.example"))
