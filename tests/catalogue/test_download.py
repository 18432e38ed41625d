"""Downloads: whole, resumed, checked, bounded, and refused in one line."""

import hashlib
import os
import resource
import signal
import subprocess
import sys
import urllib.request

import pytest
from tests.catalogue.local_sources import sha256

from dragoman.catalogue import download as download_module
from dragoman.catalogue.download import Network, download, fetch, hash_file
from dragoman.catalogue.offers import RemoteFile
from dragoman.errors import DownloadError

CONTENTS = bytes(range(256)) * 1000


def take(url, into, network=None, *, origin=None, **facts):
    told = []
    found = download(
        RemoteFile(url=url, name="model.bin", **facts), into, network or Network(),
        origin=origin, advance=lambda have, total: told.append((have, total)),
    )  # fmt: skip
    return found, told


@pytest.fixture
def into(tmp_path):
    return tmp_path / "model.bin"


def test_a_file_comes_whole_and_is_told_of(site, into):
    site.files["m"] = CONTENTS
    found, told = take(site.url("m"), into, size=len(CONTENTS), sha256=sha256(CONTENTS))
    assert found == hashlib.sha256(CONTENTS).hexdigest()
    assert into.read_bytes() == CONTENTS
    assert told[-1] == (len(CONTENTS), len(CONTENTS))
    assert sorted(each.name for each in into.parent.iterdir()) == ["model.bin"]


def test_what_breaks_off_is_taken_up_where_it_broke(site, into):
    site.files["m"] = CONTENTS
    site.cut["m"] = [1000, 5000]
    take(site.url("m"), into)
    assert into.read_bytes() == CONTENTS
    assert [wanted for _, wanted in site.asked] == [None, "bytes=1000-", "bytes=6000-"]


def test_a_later_command_goes_on(site, into):
    site.files["m"] = CONTENTS
    site.cut["m"] = [1000, 0, 0, 0]
    with pytest.raises(DownloadError, match=r"breaks off after 1,000 bytes .*goes on from there"):
        take(site.url("m"), into)
    assert not into.exists()
    take(site.url("m"), into)
    assert site.asked[-1] == ("m", "bytes=1000-")
    assert into.read_bytes() == CONTENTS


def test_what_has_changed_meanwhile_is_begun_again(site, into):
    site.files["m"] = CONTENTS
    site.cut["m"] = [1000, 0, 0, 0]
    with pytest.raises(DownloadError):
        take(site.url("m"), into)
    site.files["m"] = CONTENTS[::-1]
    take(site.url("m"), into)
    assert into.read_bytes() == CONTENTS[::-1]


def test_without_versions_or_hashes_nothing_is_pieced_together(site, into):
    site.tagged = False
    site.files["m"] = CONTENTS
    site.cut["m"] = [1000]
    take(site.url("m"), into)
    assert [wanted for _, wanted in site.asked] == [None, None]
    into.unlink()
    site.cut["m"] = [1000]
    take(site.url("m"), into, sha256=sha256(CONTENTS))
    assert site.asked[-1] == ("m", "bytes=1000-")
    assert into.read_bytes() == CONTENTS


def test_a_beginning_that_is_too_long_is_begun_again(site, into):
    site.files["m"] = CONTENTS
    into.with_name("model.bin.part").write_bytes(CONTENTS * 2)
    take(site.url("m"), into, sha256=sha256(CONTENTS))
    assert into.read_bytes() == CONTENTS


def test_a_wrong_hash(site, into):
    site.files["m"] = CONTENTS
    with pytest.raises(DownloadError, match=f"SHA-256 {sha256(CONTENTS)[:16]}…, not 0000"):
        take(site.url("m"), into, sha256="0" * 64)
    assert list(into.parent.iterdir()) == []


def test_hashes_are_remembered_where_nobody_gives_them(site, into, tmp_path):
    network = Network(digests=tmp_path / "digests")
    site.files["m"] = CONTENTS
    take(site.url("m"), into, network)
    into.unlink()
    take(site.url("m"), into, network)
    into.unlink()
    site.files["m"] = CONTENTS[1:]
    with pytest.raises(
        DownloadError, match="as when it was first downloaded; --trust-new takes it"
    ):
        take(site.url("m"), into, network)
    assert not into.exists()
    take(site.url("m"), into, Network(digests=network.digests, trusts_new=True))
    into.unlink()
    take(site.url("m"), into, network)
    assert into.read_bytes() == CONTENTS[1:]


def test_a_wrong_size(site, into):
    site.files["m"] = CONTENTS
    with pytest.raises(DownloadError, match="has 256,000 bytes, not 10 as its source says"):
        take(site.url("m"), into, size=10)


def test_more_than_a_model_can_have(site, into, monkeypatch):
    monkeypatch.setattr(download_module, "MOST_BYTES", 1000)
    site.files["m"] = CONTENTS
    with pytest.raises(DownloadError, match="has over 1,000 bytes; refused"):
        take(site.url("m"), into)
    assert not into.exists()


def test_what_is_not_there(site, into):
    with pytest.raises(DownloadError, match="the server answers 404; it is not there"):
        take(site.url("none"), into)
    with pytest.raises(DownloadError, match="the server answers 404; it is not there"):
        fetch(site.url("none"), Network())


def test_redirections_are_followed(site, into):
    site.files["there"] = CONTENTS
    site.moved["here"] = "/there"
    take(site.url("here"), into)
    assert into.read_bytes() == CONTENTS


def test_redirections_lead_to_no_other_kind_of_place(site, into, tmp_path):
    (tmp_path / "secret").write_text("secret")
    for place in (f"file://{tmp_path}/secret", "ftp://127.0.0.1/secret", "/here"):
        site.moved["here"] = place
        with pytest.raises(DownloadError, match=r"no address of the form https|302; it redirects"):
            take(site.url("here"), into)
        assert not into.exists()


def test_a_server_that_says_nothing(site, into):
    site.silent.add("m")
    with pytest.raises(DownloadError, match=r"breaks off after 0 bytes \(timed out\)"):
        take(site.url("m"), into, Network(timeout=0.05))
    with pytest.raises(DownloadError, match=r"cannot be reached \(timed out\)"):
        fetch(site.url("m"), Network(timeout=0.05))


def test_nobody_there(into):
    with pytest.raises(DownloadError, match=r"cannot be reached \(.*\); check the network"):
        take("http://127.0.0.1:9/m", into)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://host/m", "https://", "m", "http://[x"]
)
def test_other_addresses(into, url):
    with pytest.raises(DownloadError, match="is no address of the form https"):
        take(url, into)


def test_only_a_person_can_ask_for_what_is_not_encrypted(site, into):
    site.files["m"] = CONTENTS
    with pytest.raises(DownloadError, match="is not encrypted, and nobody gave this address"):
        take(site.url("m"), into, origin="https://example.org/models.json")
    take(site.url("m"), into, origin=site.url("models.json"))


def test_proxies_of_the_system_are_used(site, into, monkeypatch):
    monkeypatch.setenv("http_proxy", site.address)
    monkeypatch.delenv("no_proxy", raising=False)
    site.files["models/m.bin"] = CONTENTS
    take("http://models.example/models/m.bin", into)
    assert into.read_bytes() == CONTENTS


def test_a_manifest_without_end(site, monkeypatch):
    monkeypatch.setattr(download_module, "MOST_MANIFEST_BYTES", 1000)
    site.files["m"] = CONTENTS
    with pytest.raises(DownloadError, match="has over 1,000 bytes; refused"):
        fetch(site.url("m"), Network())


def test_a_full_disk(site, into):
    site.files["m"] = CONTENTS
    program = (
        "import sys; from pathlib import Path; from dragoman.errors import DragomanError\n"
        "from dragoman.catalogue.download import Network, download\n"
        "from dragoman.catalogue.offers import RemoteFile\n"
        "file = RemoteFile(url=sys.argv[1], name='m')\n"
        "try:\n"
        "    download(file, Path(sys.argv[2]), Network(), origin=None, advance=lambda a, b: None)\n"
        "except DragomanError as error: print(error)\n"
    )

    def limit_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    answer = subprocess.run(
        [sys.executable, "-c", program, site.url("m"), into], capture_output=True, text=True,
        check=True, preexec_fn=limit_files, env=os.environ | {"PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert "cannot be saved (File too large); free some space" in answer.stdout
    take(site.url("m"), into)
    assert site.asked[-1] == ("m", "bytes=10000-")
    assert hash_file(into) == sha256(CONTENTS)


def test_an_encrypted_connection_stays_encrypted():
    request = urllib.request.Request("https://example.org/m")
    handler = download_module._Redirection()
    with pytest.raises(DownloadError, match=r"http://example\.org/m: is not encrypted"):
        handler.redirect_request(request, None, 302, "", {}, "http://example.org/m")
