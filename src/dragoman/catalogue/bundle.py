"""A bundle: one model in one file, for machines without a network.

It is a tar archive of ``bundle.json``, which has a SHA-256 of every file, and the model's folder.
"""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

from dragoman.catalogue.download import hash_file
from dragoman.catalogue.offers import read_file_name, read_hash
from dragoman.errors import FolderError
from dragoman.exchange.archives import Header
from dragoman.files import list_own, read_small, written_beside

BUNDLE_FILE = "bundle.json"
FORMAT = 1
MOST_BYTES = 1 << 20


def write_bundle(folder: Path, name: str, path: Path) -> None:
    """Write a model folder as a bundle."""
    members = [each for each in list_own(folder) if each.is_file()]
    hashes = {each.name: hash_file(each) for each in members}
    plain = json.dumps({"format": FORMAT, "name": name, "files": hashes}, indent=1).encode()
    with written_beside(path) as beside, tarfile.open(beside, "w") as archive:
        archive.addfile(_describe(BUNDLE_FILE, len(plain)), io.BytesIO(plain))
        for each in members:
            with each.open("rb") as file:
                archive.addfile(_describe(f"{name}/{each.name}", each.stat().st_size), file)


def read_bundle(folder: Path) -> Path:
    """Check an unpacked bundle against its hashes, and give the model folder in it."""
    try:
        plain: Any = json.loads(read_small(folder / BUNDLE_FILE, MOST_BYTES))
        listed, name, found = plain["files"], read_file_name(plain["name"]), plain["format"]
        hashes = {str(each): read_hash(listed[each]) for each in listed}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FolderError(f"{BUNDLE_FILE}: is damaged; get the bundle again") from None
    if found != FORMAT or name is None:
        raise FolderError(
            f"{BUNDLE_FILE}: has format {str(found)[:20]}, but this version reads {FORMAT}; use "
            "the version of Dragoman that wrote it"
        )
    inner = folder / name
    there = {each.name: each for each in inner.iterdir()} if inner.is_dir() else {}
    for each in sorted(there.keys() | hashes.keys()):
        is_whole = each in there and there[each].is_file() and each in hashes
        if not is_whole or hash_file(there[each]) != hashes[each]:
            raise FolderError(f"{each[:100]}: is not as the bundle says (SHA-256); get it again")
    return inner


def name_in_bundle(path: Path) -> str | None:
    """Say how the model in a bundle is called; None: the file is no bundle."""
    try:
        with tarfile.open(path, "r:", tarinfo=Header) as archive:
            first = archive.next()
            file = archive.extractfile(first) if first and first.name == BUNDLE_FILE else None
            plain: Any = json.loads(file.read(MOST_BYTES)) if file else None
    except (OSError, EOFError, ValueError, RecursionError, tarfile.TarError):
        return None
    return read_file_name(plain.get("name")) if isinstance(plain, dict) else None


def _describe(name: str, size: int) -> tarfile.TarInfo:
    """Describe a member without times and owners, so that equal models give equal bundles."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    return member
