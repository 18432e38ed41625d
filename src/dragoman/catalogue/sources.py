"""The catalogue: which sources there are, which comes first, and what is known of their models."""

import json
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from dragoman.catalogue.manifests import (
    parse_json,
    read_argos,
    read_bergamot,
    read_hub,
    read_opus,
    read_registry,
    read_remote_settings,
)
from dragoman.catalogue.offers import (
    BOX,
    Offer,
    RemoteFile,
    read_language,
    read_size,
    read_words,
)
from dragoman.errors import DownloadError, FolderError, OptionError
from dragoman.files import read_small, write_file
from dragoman.model_home import home_folder

HUB = "huggingface"
CATALOGUE_FILE = "catalogue.toml"
MOST_LIST_BYTES = 64 << 20
LONGEST_REPOSITORY = 200

Get = Callable[[str, str | None], bytes]
"""Downloads a manifest, given its address and what led to it."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Somebody who publishes models.

    Parameters
    ----------
    name : str
        What ``--source`` calls it.
    manifest : str
        The address of its list of models; of Hugging Face, that of the hub.
    licence : str
        Of its models, where the list does not say.
    attribution : str
        Who is to be named.
    """

    name: str
    manifest: str
    licence: str
    attribution: str


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """What this version knows of published models before it asks anybody.

    Parameters
    ----------
    order : tuple[str, ...]
        The sources in the order in which a pair is looked for.
    sources : Mapping[str, Source]
        All sources by name.
    offers : tuple[Offer, ...]
        Models that are known; those with files are pinned to them.
    """

    order: tuple[str, ...]
    sources: Mapping[str, Source]
    offers: tuple[Offer, ...]


def read_catalogue(contents: bytes | None = None) -> Catalogue:
    """Read the catalogue of this package, or another of its form."""
    if contents is None:
        contents = (files(__package__) / CATALOGUE_FILE).read_bytes()
    plain = tomllib.loads(contents.decode())
    sources = {name: Source(name=name, **each) for name, each in plain["sources"].items()}
    offers = []
    for each in plain["offers"]:
        listed = tuple(RemoteFile(**file) for file in each.pop("files", ()))
        said = sources[each["source"]]
        rest = {"licence": said.licence, "attribution": said.attribution} | each
        offers.append(Offer(files=listed, **rest))
    return Catalogue(order=tuple(plain["order"]), sources=sources, offers=tuple(offers))


def find_offers(
    catalogue: Catalogue, source: Source, pair: str, get: Get, *, manifest: str | None = None
) -> tuple[list[Offer], str | None]:
    """Find the models that a source has for a pair of languages.

    Parameters
    ----------
    catalogue : Catalogue
        What is known.
    source : Source
        The source.
    pair : str
        The languages as ``de-en``; of Hugging Face, a repository may be named too.
    get : Get
        Downloads a manifest. It is not called where the catalogue pins the files.
    manifest : str | None
        Where the list of models lies, if elsewhere than the catalogue says.

    Returns
    -------
    tuple[list[Offer], str | None]
        The best first, and the address that led to them; None: it is the catalogue.
    """
    known = [each for each in catalogue.offers if (each.source, each.pair) == (source.name, pair)]
    pinned = [each for each in known if each.files]
    if manifest is None and pinned:
        return pinned, None
    address = manifest or source.manifest
    if source.name == HUB:
        return _find_in_hub(source, pair, address, get, known), address
    offers = read_manifest(source, address, get)
    remember_offers(source.name, offers)
    return [_with_scores(each, known) for each in offers if each.pair == pair], address


def read_manifest(source: Source, address: str, get: Get) -> list[Offer]:
    """Download and read a source's list of models."""
    offers = _read_manifest(source, address, get)
    return [
        replace(each, licence=source.licence, attribution=source.attribution) for each in offers
    ]


def _read_manifest(source: Source, address: str, get: Get) -> list[Offer]:
    match source.name:
        case "mozilla":
            root = address.split("/v1/", 1)[0] + "/v1/"
            base = _attachments_of(parse_json(get(root, address), root), root)
            return read_remote_settings(get(address, None), base, address)
        case "registry":
            return read_registry(get(address, None), address)
        case "bergamot":
            return read_bergamot(get(address, None), address)
        case "opus":
            return read_opus(get(address, None), address)
        case "argos":
            return read_argos(get(address, None), address)
    raise OptionError(f"--source {source.name}: has no list of models; name one of them")


def remember_offers(source: str, offers: list[Offer]) -> None:
    """Keep what a source offers, so that it can be listed without the network."""
    plain = [
        {
            "source_language": each.source_language, "target_language": each.target_language,
            "variant": each.variant, "licence": each.licence, "scores": dict(each.scores),
            "size": each.num_bytes,
        }
        for each in offers
    ]  # fmt: skip
    contents = json.dumps({"asked": time.strftime("%Y-%m-%d"), "offers": plain})
    write_file(_list_of(source), contents)


def recall_offers(source: str) -> tuple[list[Offer], str | None]:
    """Give what a source offered when it was last asked, and the date; None: it never was."""
    try:
        plain = json.loads(read_small(_list_of(source), MOST_LIST_BYTES))
    except (OSError, ValueError, RecursionError, FolderError):
        return [], None
    entries = plain.get("offers") if isinstance(plain, dict) else None
    if not isinstance(entries, list):
        return [], None
    found = [_recall(source, each) for each in entries if isinstance(each, dict)]
    return found, read_words(plain.get("asked"))


def list_available(catalogue: Catalogue, language: str | None) -> Iterator[Offer]:
    """List what could be pulled, as far as the catalogue and the lists that are here say."""
    for source in (*catalogue.order, BOX):
        known = [each for each in catalogue.offers if each.source == source]
        recalled, _ = recall_offers(source)
        for each in (*known, *recalled):
            if language in (None, each.source_language, each.target_language, each.pair):
                yield each


def _recall(source: str, plain: Mapping[str, Any]) -> Offer:
    scores = plain.get("scores")
    return Offer(
        source=source,
        source_language=read_language(plain.get("source_language")),
        target_language=read_language(plain.get("target_language")),
        variant=read_words(plain.get("variant")),
        licence=read_words(plain.get("licence")),
        scores={read_words(name): read_words(each) for name, each in scores.items()}
        if isinstance(scores, dict)
        else {},
        size=read_size(plain.get("size")),
    )


def _list_of(source: str) -> Path:
    return home_folder() / "lists" / f"{source}.json"


def _with_scores(offer: Offer, known: list[Offer]) -> Offer:
    """Add published scores that the catalogue knows of the same variant, or of its only one."""
    if offer.scores:
        return offer
    fitting = [each for each in known if not each.variant or each.variant in offer.variant.split()]
    return replace(offer, scores=fitting[0].scores) if fitting else offer


def _attachments_of(plain: object, place: str) -> str:
    """Find where a server of Remote Settings keeps files, from what it says of itself."""
    said: Any = plain
    for name in ("capabilities", "attachments", "base_url"):
        said = said.get(name) if isinstance(said, dict) else None
    if not isinstance(said, str) or not urlsplit(said).hostname:
        raise DownloadError(f"{place}: does not say where its files are; check the address")
    return said if said.endswith("/") else f"{said}/"


def _find_in_hub(
    source: Source, wanted: str, address: str, get: Get, known: list[Offer]
) -> list[Offer]:
    """Look into a repository of Hugging Face."""
    repository, _, revision = wanted.partition("@")
    pair = wanted.split("-")
    if "/" not in repository:
        repository = f"Helsinki-NLP/opus-mt-{repository}"
    is_plain = all(each.isalnum() or each in "-_./" for each in repository + revision)
    if not is_plain or ".." in wanted or len(wanted) > LONGEST_REPOSITORY:
        raise OptionError(f"{wanted}: is no repository; give one as OWNER/NAME or …@REVISION")
    root, revision = address.rstrip("/"), quote(revision or "main", safe="")
    about = f"{root}/api/models/{repository}"
    listed, licence = read_hub(
        get(f"{about}/tree/{revision}", address), get(about, address),
        f"{root}/{repository}/resolve/{revision}", repository,
    )  # fmt: skip
    is_pair = "/" not in wanted and len(pair) == 2
    offer = Offer(
        source=source.name,
        source_language=read_language(pair[0]) if is_pair else None,
        target_language=read_language(pair[1]) if is_pair else None,
        variant=f"{repository}@{revision}",
        licence=licence or source.licence,
        attribution=f"{repository}, {source.attribution}",
        files=tuple(listed),
    )
    return [_with_scores(offer, known)]
