"""A web server that imitates the sources of published models, with all that can go wrong."""

import gzip
import hashlib
import io
import json
import re
import tarfile
import threading
import zipfile
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MARIAN = Path(__file__).parent / "marian"
"""A model that the real Marian wrote; make.sh there says how."""

SOURCE_LINES = (MARIAN / "lines.fr").read_text(encoding="utf-8").splitlines()
TRANSLATIONS = (MARIAN / "lines.en").read_text(encoding="utf-8").splitlines()


def sha256(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()


class Site:
    """The server: what lies where, and what it does wrong."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.files: dict[str, bytes] = {}
        self.moved: dict[str, str] = {}
        self.cut: dict[str, list[int]] = {}
        """After how many bytes the connection breaks, answer by answer."""
        self.silent: set[str] = set()
        self.tagged = True
        self.asked: list[tuple[str, str | None]] = []
        """Paths and the ranges that were asked for."""
        self.finished = threading.Event()

    def url(self, path: str) -> str:
        return f"{self.address}/{path}"

    def count(self, path: str) -> int:
        return Counter(path for path, _ in self.asked)[path]


class _Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address) -> None:
        """Say nothing where a client hangs up, as it does when an answer is too long for it."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words) -> None:
        pass

    def do_GET(self) -> None:
        site: Site = self.server.site
        path = re.sub(r"^http://[^/]*", "", self.path).lstrip("/")
        site.asked.append((path, self.headers.get("Range")))
        if path in site.silent:
            site.finished.wait(60)
            self.close_connection = True
        elif path in site.moved:
            self.answer(302, b"", {"Location": site.moved[path]})
        elif path not in site.files:
            self.answer(404, b"no such file", {})
        else:
            self.send(path, site.files[path])

    def send(self, path: str, contents: bytes) -> None:
        site: Site = self.server.site
        tag = f'"{sha256(contents)[:16]}"'
        headers = {"ETag": tag} if site.tagged else {}
        status, start = 200, 0
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if wanted and self.headers.get("If-Range", tag) == tag:
            status, start = 206, int(wanted[1])
            headers["Content-Range"] = f"bytes {start}-{len(contents) - 1}/{len(contents)}"
            if start >= len(contents):
                self.answer(416, b"", {})
                return
        cuts = site.cut.get(path)
        self.answer(status, contents[start:], headers, cuts.pop(0) if cuts else None)

    def answer(self, status: int, body: bytes, headers, cut: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if cut is None else body[:cut])
        self.close_connection = cut is not None


@contextmanager
def serving():
    server = _Server(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.site = site = Site(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield site
    finally:
        site.finished.set()
        server.shutdown()
        thread.join()
        server.server_close()


def marian_files() -> dict[str, bytes]:
    return {name: (MARIAN / name).read_bytes() for name in ("model.npz", "vocab.spm")}


def pack_tar(files: dict[str, bytes], root: str = "model") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        for name, contents in files.items():
            member = tarfile.TarInfo(f"{root}/{name}")
            member.size = len(contents)
            packed.addfile(member, io.BytesIO(contents))
    return buffer.getvalue()


def pack_zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, contents in files.items():
            packed.writestr(name, contents)
    return buffer.getvalue()


FIREFOX = {"model": "model.bin", "lex": "lex.bin", "vocab": "vocab.spm"}
FIREFOX_NAMES = {
    "model": "model.fren.intgemm.alphas.bin",
    "lex": "lex.50.50.fren.s2t.bin",
    "vocab": "vocab.fren.spm",
}


def offer_mozilla(site: Site) -> str:
    """Publish the model as Firefox's Remote Settings does; give the address of the records."""
    records = []
    for kind, name in FIREFOX_NAMES.items():
        contents = (MARIAN / FIREFOX[kind]).read_bytes()
        location = f"main-workspace/translations-models/{kind}.bin"
        site.files[f"attachments/{location}"] = contents
        attachment = {"hash": sha256(contents), "size": len(contents), "filename": name,
                      "location": location, "mimetype": "application/octet-stream"}  # fmt: skip
        records.append({
            "name": name, "fromLang": "fr", "toLang": "en", "version": "1.0", "fileType": kind,
            "attachment": attachment, "filter_expression": "", "id": kind, "schema": 1,
        })  # fmt: skip
    about = {"capabilities": {"attachments": {"base_url": site.url("attachments/")}}}
    site.files["v1/"] = json.dumps(about).encode()
    path = "v1/buckets/main/collections/translations-models/records"
    site.files[path] = json.dumps({"data": records}).encode()
    return site.url(path)


def offer_registry(site: Site) -> str:
    """Publish the model as the registry of Firefox models does."""
    files = {}
    kinds = {"model": "model", "lex": "lexicalShortlist", "vocab": "vocab"}
    for kind, name in FIREFOX_NAMES.items():
        contents = (MARIAN / FIREFOX[kind]).read_bytes()
        path = f"models/fr-en/run/exported/{name}.gz"
        site.files[path] = gzip.compress(contents)
        files[kinds[kind]] = {"path": path}
        if kind == "model":
            files["model"] |= {
                "uncompressedSize": len(contents), "uncompressedHash": sha256(contents)
            }  # fmt: skip
    entry = {
        "architecture": "tiny", "releaseStatus": "Release", "sourceLanguage": "fr",
        "targetLanguage": "en", "files": files, "modelStatistics": {"parameters": 1},
        "metrics": {"flores200-plus": {"bleu": 12.34, "comet22": 0.5}},
    }  # fmt: skip
    registry = {"generated": "2026-09-30", "baseUrl": site.address, "models": {"fr-en": [entry]}}
    site.files["db/models.json"] = json.dumps(registry).encode()
    return site.url("db/models.json")


def offer_bergamot(site: Site, archive: bytes | None = None) -> str:
    """Publish the model as translateLocally does."""
    files = marian_files() | {
        "config.intgemm8bitalpha.yml": b"models:\n  - model.npz\nvocabs:\n  - vocab.spm\n",
        "model_info.json": b'{"shortName": "fr-en-tiny"}',
    }
    packed = archive or pack_tar(files, "fren.student.tiny11")
    site.files["fren.tar.gz"] = packed
    entry = {
        "name": "French-English tiny", "shortName": "fr-en-tiny", "modelName": "French-English",
        "src": "French", "trg": "English", "srcTags": {"fr": "French"}, "trgTag": "en",
        "type": "tiny", "version": 2, "API": 1, "url": site.url("fren.tar.gz"),
        "checksum": sha256(packed), "code": "fr-en-tiny", "repository": "test",
    }  # fmt: skip
    site.files["models.json"] = json.dumps({"models": [entry]}).encode()
    return site.url("models.json")


def offer_opus(site: Site) -> str:
    """Publish the model as OPUS-MT does."""
    files = {
        "opus.npz": (MARIAN / "model.npz").read_bytes(),
        "opus.vocab.spm": (MARIAN / "vocab.spm").read_bytes(),
        "README.md": b"# opus-2021-02-18.zip\n\n* dataset: opus\n* license: CC-BY 4.0\n",
        "LICENSE": b"Creative Commons Attribution 4.0",
        "preprocess.sh": b"#!/bin/sh\ntouch /tmp/dragoman-was-here\n",
    }
    site.files["fra-eng/opus-2021-02-18.zip"] = pack_zip(files)
    lines = [
        (site.url("fra-eng/opus-2021-02-18.zip"), "fra-eng", "fr-en", "0.677", "52.1", "French",
         "English"),
        (site.url("fra-eng/opus-2019-12-04.zip"), "fra-eng", "fr-en", "0.9", "99.0", "French",
         "English"),
    ]  # fmt: skip
    site.files["released-models.txt"] = "\n".join(map("\t".join, lines)).encode()
    return site.url("released-models.txt")
