"""Read the lists of models that sources publish, each in its own form, as offers.

An entry that is not as expected is left out: the lists are long, and others wrote them.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.catalogue.offers import (
    Offer,
    RemoteFile,
    read_file_name,
    read_hash,
    read_language,
    read_size,
    read_words,
)
from dragoman.errors import DownloadError

_STABLE = re.compile(r"\d{1,4}(\.\d{1,4}){0,3}")
_PACKED = (".gz", ".zst")
_REGISTRY_FILES = ("model", "lexicalShortlist", "vocab", "srcVocab", "trgVocab")
_OPUS_COLUMNS = 7
_LARGEST_SCORE = 1e6
_SPOILED_OPUS = "/opus-2019-"
"""In the addresses of releases whose subwords are BPE, and not SentencePiece."""


def parse_json(contents: bytes, place: str) -> Any:  # noqa: ANN401
    """Parse a manifest, or say that it is none."""
    try:
        return json.loads(contents)
    except (ValueError, RecursionError):
        raise DownloadError(f"{place}: is no list of models; check the address") from None


def read_remote_settings(contents: bytes, base: str, place: str) -> list[Offer]:
    """Read the records of a collection of Firefox's Remote Settings.

    Parameters
    ----------
    contents : bytes
        What the collection's ``records`` answer.
    base : str
        The address below which attachments lie.
    place : str
        Where they come from.

    Returns
    -------
    list[Offer]
        Stable versions first, the newest before the others.
    """
    groups: dict[tuple[str, str, str, str], dict[str, RemoteFile]] = defaultdict(dict)
    for record in _listed(parse_json(contents, place), "data"):
        languages = [
            read_language(record.get(ours) or record.get(theirs))
            for ours, theirs in (("fromLang", "sourceLanguage"), ("toLang", "targetLanguage"))
        ]
        is_for_phones = "== 'Android'" in str(record.get("filter_expression"))
        file = _attachment_of(record, base)
        if None in languages or file is None or is_for_phones:
            continue
        kind = read_words(record.get("variant") or record.get("architecture"))
        key = (str(languages[0]), str(languages[1]), kind, read_words(record.get("version")))
        groups[key][read_words(record.get("fileType"))] = file
    offers = []
    for (source, target, kind, version), files in sorted(groups.items(), key=_by_version):
        wanted = [files[each] for each in ("model", "lex", "vocab", "srcvocab", "trgvocab")
                  if each in files]  # fmt: skip
        if "model" in files and ("vocab" in files or {"srcvocab", "trgvocab"} <= files.keys()):
            offers.append(
                Offer(
                    source="mozilla", source_language=source, target_language=target,
                    variant=f"{kind} {version}".strip(), files=tuple(wanted),
                )
            )  # fmt: skip
    return offers


def read_registry(contents: bytes, place: str) -> list[Offer]:
    """Read the ``models.json`` of the registry of Firefox models.

    Returns
    -------
    list[Offer]
        Those that are released first.
    """
    plain = parse_json(contents, place)
    base = plain.get("baseUrl") if isinstance(plain, dict) else None
    models = plain.get("models") if isinstance(plain, dict) else None
    if not isinstance(base, str) or not isinstance(models, dict):
        raise DownloadError(f"{place}: is no list of models; check the address")
    found: list[tuple[bool, Offer]] = []
    for pair, entries in models.items():
        for entry in entries if isinstance(entries, list) else []:
            offer = _registry_offer(entry, pair, base) if isinstance(entry, dict) else None
            if offer is not None:
                is_released = str(entry.get("releaseStatus")).startswith("Release")
                found.append((not is_released, offer))
    return [offer for _, offer in sorted(found, key=lambda each: each[0])]


def read_bergamot(contents: bytes, place: str) -> list[Offer]:
    """Read the ``models.json`` of translateLocally.

    Returns
    -------
    list[Offer]
        The tiny ones first.
    """
    offers = []
    for entry in _listed(parse_json(contents, place), "models"):
        name = read_file_name(entry.get("url"))
        parts = str(entry.get("code") or entry.get("shortName")).split("-")
        tags = entry.get("srcTags")
        sources = list(tags) if isinstance(tags, dict) and tags else parts[:1]
        target = read_language(entry.get("trgTag") or (parts[1] if len(parts) > 1 else None))
        for source in map(read_language, sources):
            if name is None or source is None or target is None:
                continue
            file = RemoteFile(
                url=str(entry["url"]), name=name, sha256=read_hash(entry.get("checksum"))
            )
            version, kind = read_words(entry.get("version")), read_words(entry.get("type"))
            offers.append(
                Offer(
                    source="bergamot", source_language=source, target_language=target,
                    variant=f"{kind} {version}".strip(), files=(file,),
                )
            )  # fmt: skip
    return sorted(offers, key=lambda each: not each.variant.startswith("tiny"))


def read_opus(contents: bytes, place: str) -> list[Offer]:
    """Read the ``released-models.txt`` of OPUS-MT: address, languages twice, chrF, BLEU, names.

    Returns
    -------
    list[Offer]
        Those with the highest BLEU first. Releases of 2019, whose subwords are BPE, are left out.
    """
    found: list[tuple[float, Offer]] = []
    for line in contents.decode("utf-8", "replace").splitlines():
        columns = line.split("\t")
        name = read_file_name(columns[0])
        if len(columns) != _OPUS_COLUMNS or name is None or _SPOILED_OPUS in columns[0]:
            continue
        languages = [read_language(each) for each in columns[2].split("-")]
        try:
            chrf, bleu = float(columns[3]), float(columns[4])
        except ValueError:
            continue
        if len(languages) == 2 and None not in languages and name.endswith(".zip"):
            scores = {"Tatoeba": f"BLEU {bleu:.1f}, chrF {chrf:.3f}"}
            offer = Offer(
                source="opus", source_language=languages[0], target_language=languages[1],
                variant=name.removesuffix(".zip"), scores=scores,
                files=(RemoteFile(url=columns[0], name=name),),
            )  # fmt: skip
            found.append((-bleu, offer))
    if not found:
        raise DownloadError(f"{place}: is no list of models; check the address")
    return [offer for _, offer in sorted(found, key=lambda each: each[0])]


def read_argos(contents: bytes, place: str) -> list[Offer]:
    """Read the ``index.json`` of Argos Translate.

    Returns
    -------
    list[Offer]
        The newest versions first.
    """
    found: list[tuple[tuple[int, ...], Offer]] = []
    for entry in _listed({"": parse_json(contents, place)}, ""):
        said = entry.get("links")
        links = said if isinstance(said, list) else []
        links = [each for each in links if str(each).startswith("http")]
        name = read_file_name(links[0]) if links else None
        source, target = (read_language(entry.get(f"{each}_code")) for each in ("from", "to"))
        if None in (name, source, target) or entry.get("type", "translate") != "translate":
            continue
        version = read_words(entry.get("package_version"))
        offer = Offer(
            source="argos", source_language=source, target_language=target, variant=version,
            files=(RemoteFile(url=links[0], name=str(name)),),
        )  # fmt: skip
        found.append((_numbers(version), offer))
    return [offer for _, offer in sorted(found, key=lambda each: each[0], reverse=True)]


def read_hub(listing: bytes, about: bytes, base: str, place: str) -> tuple[list[RemoteFile], str]:
    """Read what a repository of Hugging Face holds, refusing pickles.

    Parameters
    ----------
    listing : bytes
        What ``/api/models/NAME/tree/REVISION`` answers.
    about : bytes
        What ``/api/models/NAME`` answers.
    base : str
        The address below which files lie.
    place : str
        The repository.

    Returns
    -------
    tuple[list[RemoteFile], str]
        The files of a MarianMT folder, and the licence.
    """
    files = {}
    for entry in _listed({"": parse_json(listing, place)}, ""):
        path = entry.get("path")
        name = read_file_name(path)
        if name is not None and name == path and entry.get("type") == "file":
            lfs = entry.get("lfs")
            files[name] = RemoteFile(
                url=f"{base}/{name}", name=name, size=read_size(entry.get("size")),
                sha256=read_hash(lfs.get("oid")) if isinstance(lfs, dict) else None,
            )  # fmt: skip
    if "model.safetensors" not in files:
        held = "its weights only as a pickle, which can run code" if any(
            each.endswith((".bin", ".pt", ".pth", ".ckpt")) for each in files
        ) else "no model.safetensors"  # fmt: skip
        raise DownloadError(
            f"{place}: has {held}; name a revision that has safetensors, as NAME@refs/pr/N"
        )
    wanted = (".json", ".spm", "README.md", "model.safetensors")
    plain = parse_json(about, place)
    card = plain.get("cardData") if isinstance(plain, dict) else None
    licence = read_words(card.get("license")) if isinstance(card, dict) else ""
    return [each for name, each in sorted(files.items()) if name.endswith(wanted)], licence


def _listed(plain: object, name: str) -> Iterator[Mapping[str, Any]]:
    """Give the objects of a list within an object."""
    entries = plain.get(name) if isinstance(plain, dict) else None
    yield from (
        (each for each in entries or () if isinstance(each, dict))
        if isinstance(entries, list)
        else ()
    )


def _attachment_of(record: Mapping[str, Any], base: str) -> RemoteFile | None:
    """Read the file of a record of Remote Settings."""
    attachment, name = record.get("attachment"), read_file_name(record.get("name"))
    location = attachment.get("location") if isinstance(attachment, dict) else None
    if not isinstance(location, str) or not isinstance(attachment, dict) or name is None:
        return None
    last = read_file_name(attachment.get("filename"))
    is_packed = last is not None and last.endswith(_PACKED)
    return RemoteFile(
        url=base + location,
        name=name,
        size=read_size(attachment.get("size")),
        sha256=read_hash(attachment.get("hash")),
        unpacked_sha256=read_hash(record.get("decompressedHash")) if is_packed else None,
    )


def _registry_offer(entry: Mapping[str, Any], pair: str, base: str) -> Offer | None:
    """Read one model of the registry; where it does not say its languages, its pair does."""
    first, _, second = pair.partition("-")
    source = read_language(entry.get("sourceLanguage") or first)
    target = read_language(entry.get("targetLanguage") or second)
    said = entry.get("files")
    listed = said if isinstance(said, dict) else {}
    files: dict[str, RemoteFile] = {}
    for kind in _REGISTRY_FILES:
        file = listed.get(kind)
        name = read_file_name(file.get("path")) if isinstance(file, dict) else None
        if isinstance(file, dict) and name is not None:
            files[kind] = RemoteFile(
                url=f"{base}/{file['path']}",
                name=name.removesuffix(".gz").removesuffix(".zst"),
                unpacked_sha256=read_hash(file.get("uncompressedHash")),
            )
    has = files.keys()
    if "model" not in has or not ("vocab" in has or {"srcVocab", "trgVocab"} <= has):
        return None
    if source is None or target is None:
        return None
    metrics = entry.get("metrics")
    scores = {}
    for name, each in metrics.items() if isinstance(metrics, dict) else ():
        if isinstance(each, dict):
            numbers = [
                f"{read_words(key)} {float(value):.4g}"
                for key, value in each.items()
                if isinstance(value, int | float) and abs(value) < _LARGEST_SCORE
            ]
            scores[read_words(name)] = ", ".join(numbers[:4])
    status = read_words(entry.get("releaseStatus")) or "not released"
    return Offer(
        source="registry", source_language=source, target_language=target,
        variant=f"{read_words(entry.get('architecture'))} ({status})", scores=scores,
        files=tuple(files.values()),
    )  # fmt: skip


def _by_version(item: tuple[tuple[str, str, str, str], object]) -> tuple[Any, ...]:
    """Order groups of records: stable before others, new before old."""
    (source, target, kind, version), _ = item
    is_stable = _STABLE.fullmatch(version) is not None
    return (not is_stable, [-each for each in _numbers(version)], source, target, kind)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d{1,6}", version)[:6])
