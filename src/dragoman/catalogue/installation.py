"""Bring a published model into the model home: download, check, import, say where it is from."""

import json
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.catalogue.bundle import BUNDLE_FILE, name_in_bundle, read_bundle, write_bundle
from dragoman.catalogue.download import Advance, Network, download, fetch, hash_file
from dragoman.catalogue.offers import BOX, FILE, Offer, RemoteFile, read_file_name
from dragoman.catalogue.sources import HUB, Catalogue, find_offers
from dragoman.errors import DownloadError, FolderError, OptionError
from dragoman.exchange.archives import decompress, is_archive, unpack
from dragoman.exchange.foreign_model import import_model, is_wanted
from dragoman.exchange.unsupported import check_new
from dragoman.files import digest_of, locked, read_small, sweep, write_file, written_beside
from dragoman.folder import FACTS_FILE, RUN_FILE, read_folder
from dragoman.model_home import (
    find_box,
    home_folder,
    is_name,
    models_folder,
)

ORIGIN_FILE = "origin.json"
"""In an installed model: source, licence, hashes and scores, as they were when it was pulled."""

MOST_ORIGIN_BYTES = 1 << 20
SUFFIXES = (".tar.xz", ".tar.gz", ".tar.zst", ".tgz", ".tar", ".zip", ".argosmodel")
_WEB = ("https://", "http://")
_DEEPEST = 5

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class PullRequest:
    """What is to be pulled, and how.

    Parameters
    ----------
    model : str
        Languages as ``de-en``, an address, a file, or a repository of Hugging Face.
    source : str | None
        Where to look for languages; None: everywhere, in the order of the catalogue.
    variant : str | None
        Which of several models of a source; None: its first.
    name : str | None
        What the model is to be called; None: by its languages or its file.
    manifest : str | None
        Where the source's list of models lies, if elsewhere than the catalogue says.
    save : Path | None
        A bundle to write instead of installing the model.
    """

    model: str
    source: str | None = None
    variant: str | None = None
    name: str | None = None
    manifest: str | None = None
    save: Path | None = None


def find_offer(
    request: PullRequest, catalogue: Catalogue, network: Network
) -> tuple[Offer, str | None]:
    """Find the model that is meant.

    Returns
    -------
    tuple[Offer, str | None]
        The model, and the address that led to its files; None: a person gave it, or nobody did.
    """
    model = request.model
    is_file = Path(model).is_file()
    if is_file or model.startswith(_WEB):
        name = read_file_name(Path(model).name if is_file else model)
        if request.source or request.manifest:
            raise OptionError(f"{model}: is what is pulled; leave --source and --manifest out")
        if name is None:
            raise OptionError(f"{model}: does not end in the name of a file; check it")
        source = FILE if is_file else "address"
        return Offer(source=source, files=(RemoteFile(url=model, name=name),)), None
    if request.source == BOX:
        return _find_in_box(request, catalogue), None
    is_repository = "/" in model
    if not is_repository and not is_name(model):
        raise OptionError(f"{model}: is neither languages, as de-en, nor an address or file")
    names = (request.source,) if request.source else (HUB,) if is_repository else catalogue.order
    if request.manifest and not request.source:
        raise OptionError("--manifest: say by --source whose list of models it is")

    def get(url: str, origin: str | None) -> bytes:
        return fetch(url, network, origin=origin)

    for place in [catalogue.sources[each] for each in names]:
        try:
            offers, origin = find_offers(catalogue, place, model, get, manifest=request.manifest)
        except DownloadError as error:
            raise DownloadError(f"{error}{_hint_at_box(model)}") from None
        if offers:
            return _choose(offers, request), origin or place.manifest
    raise DownloadError(
        f"{model}: {' and '.join(names)} {'have' if len(names) > 1 else 'has'} no such model; "
        f"“dragoman models --available” lists what there is{_hint_at_box(model)}"
    )


def choose_name(request: PullRequest) -> str:
    """Say what a model will be called, and refuse a name that is taken or leads elsewhere."""
    name = request.name
    if name is None:
        last = read_file_name(request.model.split("@")[0]) or request.model
        suffix = next((each for each in SUFFIXES if last.endswith(each)), "")
        name = name_in_bundle(Path(request.model)) or last.removesuffix(suffix)
    if not is_name(name):
        raise OptionError(f"--name {name}: give letters, digits, points and dashes")
    _check_free(models_folder() / name, request.save)
    return name


def install(
    offer: Offer,
    name: str,
    network: Network,
    *,
    origin: str | None,
    save: Path | None,
    say: Say,
    advance: Advance,
) -> Path:
    """Download a model's files, import it, and put it into the model home or a bundle.

    Parameters
    ----------
    offer : Offer
        The model.
    name : str
        What it will be called.
    network : Network
        How to download.
    origin : str | None
        The address that led to its files; None: a person gave it.
    save : Path | None
        A bundle to write instead of installing the model.
    say : Say
        Is told what is waited for.
    advance : Advance
        Is told how far the download is.

    Returns
    -------
    Path
        The model's folder, or the bundle.

    Notes
    -----
    Downloads stay until the model is installed, so that the same command goes on after whatever
    stopped it. The model itself is moved into place when it is complete.
    """
    out = models_folder() / name
    _check_free(out, save)
    downloads = home_folder() / "downloads" / name
    with _prepared(downloads, say):
        _check_free(out, save)  # somebody else may have been waited for
        gathered = [
            (file, *_take_local(file))
            if offer.is_local
            else (file, *_bring(file, downloads, network, origin, advance))
            for file in offer.files
        ]
        with tempfile.TemporaryDirectory(prefix=".", dir=downloads) as scratch:
            try:
                found = _lay_out([(file, path) for file, path, _ in gathered], Path(scratch) / "in")
                made = Path(scratch) / "out" / name
                _make_model(found, made, offer, [each[2] for each in gathered])
                if save is None:
                    with written_beside(out) as beside:
                        shutil.move(made, beside)
                else:
                    write_bundle(made, name, save)
            except FolderError as error:
                places = rf"{re.escape(scratch)}/(in|out)/|{re.escape(str(downloads))}/[0-9a-f]+-"
                raise FolderError(re.sub(places, "", str(error))) from None
        for each in downloads.iterdir():
            if each.is_file():
                each.unlink()
    return save or out


def remove(name: str, say: Say) -> None:
    """Remove an installed model, and what of its download is left."""
    folder, downloads = models_folder() / name, home_folder() / "downloads" / name
    if not is_name(name) or not (folder.is_dir() or downloads.is_dir()):
        raise FolderError(f"{name}: is not installed; “dragoman models” lists what is")
    with _prepared(downloads, say):
        if folder.is_dir():
            # Renamed first, so that whatever stops this, there is never half a model of that name.
            leaving = folder.with_name(f".{name}.{time.time_ns()}.new")
            folder.replace(leaving)
            shutil.rmtree(leaving)
        for each in downloads.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()


def read_origin(folder: Path) -> Mapping[str, Any]:
    """Read the source, licence and files of an installed model; empty if not recorded."""
    try:
        plain = json.loads(read_small(folder / ORIGIN_FILE, MOST_ORIGIN_BYTES))
    except (OSError, ValueError, RecursionError, FolderError):
        return {}
    return plain if isinstance(plain, dict) else {}


def _find_in_box(request: PullRequest, catalogue: Catalogue) -> Offer:
    """Find one of the small models that come along."""
    path = find_box(request.model)
    if path is None:
        raise DownloadError(
            f"{request.model}: --source box looks for models/{request.model}.tar.xz, here and in "
            "the checkout that is running, and it is not there; give the archive’s path or address"
        )
    for each in catalogue.offers:
        if (each.source, each.pair) == (BOX, request.model):
            files = tuple(replace(file, url=str(path)) for file in each.files)
            return replace(each, files=files)
    return Offer(source=BOX, files=(RemoteFile(url=str(path), name=path.name),))


def _choose(offers: list[Offer], request: PullRequest) -> Offer:
    """Choose among a source's models for the same languages."""
    wanted = request.variant
    fitting = [each for each in offers if wanted is None or wanted in each.variant]
    if not fitting:
        known = ", ".join(f"“{each.variant}”" for each in offers[:12])
        raise OptionError(f"--variant {wanted}: {offers[0].source} has {known}")
    return fitting[0]


def _hint_at_box(model: str) -> str:
    is_there = find_box(model) is not None
    return "; “--source box” brings the small one that comes along" if is_there else ""


def _check_free(out: Path, save: Path | None) -> None:
    """Refuse to overwrite anything."""
    if save is not None:
        check_new(save)
    elif out.exists():
        raise FolderError(
            f"{out.name}: is installed already, in {out}; take another --name, or remove it first "
            f"by “dragoman models --remove {out.name}”"
        )


@contextmanager
def _prepared(downloads: Path, say: Say) -> Iterator[None]:
    """Lock the folder of a model's downloads, and clear away what killed processes left."""
    with locked(downloads, wait=say):
        sweep(models_folder())
        for each in downloads.iterdir():
            if each.is_dir():
                shutil.rmtree(each)
        yield
    with suppress(OSError):
        downloads.rmdir()


def _take_local(file: RemoteFile) -> tuple[Path, str]:
    """Check a file that lies on this machine, and give it with its SHA-256."""
    found = hash_file(Path(file.url))
    if file.sha256 not in (None, found):
        raise DownloadError(
            f"{file.url}: has the SHA-256 {found[:16]}…, not {str(file.sha256)[:16]}… as the "
            "catalogue says; give its path to take it as it is"
        )
    return Path(file.url), found


def _bring(
    file: RemoteFile, downloads: Path, network: Network, origin: str | None, advance: Advance
) -> tuple[Path, str]:
    """Download one file, and give it with its SHA-256."""
    # What an earlier attempt left may be of the same name from elsewhere.
    into = downloads / f"{digest_of(file.url.encode())}-{file.name}"
    return into, download(file, into, network, origin=origin, advance=advance)


def _lay_out(files: list[tuple[RemoteFile, Path]], folder: Path) -> Path:
    """Unpack a model's files into a folder, and give the folder within that has the model."""
    folder.mkdir()
    first = files[0][1]
    if len(files) == 1 and is_archive(first):
        unpack(first, folder, is_wanted)
    else:
        for file, path in files:
            unpacked = folder / file.name.removesuffix(".gz").removesuffix(".zst")
            decompress(path, unpacked)
            if file.unpacked_sha256 not in (None, hash_file(unpacked)):
                path.unlink()
                raise DownloadError(
                    f"{file.url}: holds something else than its source says (SHA-256); try again "
                    "later, or another --source"
                )
    for _ in range(_DEEPEST):
        inner = list(folder.iterdir())
        if len(inner) != 1 or not inner[0].is_dir():
            break
        folder = inner[0]
    return folder


def _make_model(found: Path, out: Path, offer: Offer, hashes: list[str]) -> None:
    """Make a model folder of what was found, and write into it where it is from."""
    is_bundle = (found / BUNDLE_FILE).exists()
    if is_bundle:
        found = read_bundle(found)
    if (found / FACTS_FILE).exists():
        read_folder(found)
        untrue = (RUN_FILE,) if is_bundle else (RUN_FILE, ORIGIN_FILE)
        shutil.copytree(found, out, ignore=shutil.ignore_patterns(*untrue))
    else:
        import_model(
            found, out,
            source_language=offer.source_language, target_language=offer.target_language,
            about=_write_notice(offer),
        )  # fmt: skip
    read_folder(out)
    if not (out / ORIGIN_FILE).exists():
        _write_origin(out, offer, hashes)


def _write_origin(out: Path, offer: Offer, hashes: list[str]) -> None:
    """Write what `read_origin` reads."""
    files = [
        {"url": Path(file.url).name if offer.is_local else file.url, "sha256": each}
        for file, each in zip(offer.files, hashes, strict=True)
    ]
    plain = {
        "source": offer.source, "variant": offer.variant, "licence": offer.licence,
        "attribution": offer.attribution, "scores": dict(offer.scores),
        "pulled": time.strftime("%Y-%m-%d"), "files": files,
    }  # fmt: skip
    write_file(out / ORIGIN_FILE, json.dumps(plain, indent=1, ensure_ascii=False) + "\n")


def _write_notice(offer: Offer) -> str:
    """Write for the card who made a model, and its licence."""
    lines = [f"Source: {offer.source} {offer.variant}".rstrip(), f"Licence: {offer.licence}"]
    lines += [f"Made by: {offer.attribution}"] if offer.attribution else []
    lines += [f"Published: {name} {score}" for name, score in offer.scores.items()]
    lines += [file.url for file in offer.files if not offer.is_local]
    return "\n".join(f"- {line}" for line in lines)
