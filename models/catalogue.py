"""Write the catalogue of published models: src/dragoman/catalogue/catalogue.toml.

    python models/catalogue.py [--manifest SOURCE ADDRESS-OR-FILE …]

The small models of this folder are entered with their sizes, hashes and scores. For each source
whose manifest is given, the first stable model of every pair is pinned to its files; from the
others the catalogue takes only what PUBLISHED says, and their manifests are read when somebody
pulls.
"""

import argparse
import hashlib
import json
import re
import tarfile
from pathlib import Path

from dragoman.catalogue.download import Network, fetch
from dragoman.catalogue.offers import BOX, Offer, RemoteFile
from dragoman.catalogue.sources import Source, read_manifest

FOLDER = Path(__file__).parent
CATALOGUE = FOLDER.parent / "src" / "dragoman" / "catalogue" / "catalogue.toml"
ORDER = ["mozilla", "registry", "bergamot", "opus", "argos", "huggingface"]
SOURCES = {
    "mozilla": Source(
        name="mozilla",
        manifest="https://firefox.settings.services.mozilla.com/v1/buckets/main/collections/"
        "translations-models/records",
        licence="MPL-2.0",
        attribution="Mozilla, Firefox Translations, and the Bergamot project",
    ),
    "registry": Source(
        name="registry",
        manifest="https://storage.googleapis.com/moz-fx-translations-data--303e-prod-translations-"
        "data/db/models.json",
        licence="MPL-2.0",
        attribution="Mozilla, Firefox Translations, and the Bergamot project",
    ),
    "bergamot": Source(
        name="bergamot",
        manifest="https://translatelocally.com/models.json",
        licence="CC-BY-SA-4.0",
        attribution="the Bergamot project and translateLocally",
    ),
    "opus": Source(
        name="opus",
        manifest="https://raw.githubusercontent.com/Helsinki-NLP/Tatoeba-Challenge/master/models/"
        "released-models.txt",
        licence="CC-BY-4.0",
        attribution="OPUS-MT, Language Technology Research Group at the University of Helsinki",
    ),
    "argos": Source(
        name="argos",
        manifest="https://raw.githubusercontent.com/argosopentech/argospm-index/main/index.json",
        licence="see the README of the package",
        attribution="Argos Translate",
    ),
    "huggingface": Source(
        name="huggingface",
        manifest="https://huggingface.co",
        licence="see the card of the repository",
        attribution="by way of Hugging Face",
    ),
    BOX: Source(
        name=BOX,
        manifest="",
        licence="see its card",
        attribution="Dragoman; its card names the sources of the training text",
    ),
}
# What was published of models whose files only the manifests know: BLEU of the evaluation of
# firefox-translations-models, on FLORES.
PUBLISHED = [
    ("mozilla", "en-de", "tiny", 17_100_000, "BLEU 38.8, COMET 0.857"),
    ("mozilla", "en-de", "base-memory", 31_600_000, "BLEU 39.6, COMET 0.867"),
    ("mozilla", "de-en", "tiny", None, "BLEU 39.1"),
    ("mozilla", "de-en", "base-memory", None, "BLEU 40.9"),
    ("mozilla", "en-fr", "tiny", None, "BLEU 48.7"),
    ("mozilla", "en-fr", "base-memory", None, "BLEU 48.9"),
    ("mozilla", "en-es", "tiny", None, "BLEU 26.2"),
    ("mozilla", "en-es", "base-memory", None, "BLEU 27.4"),
    ("huggingface", "en-de", "", None, "BLEU 36.1"),
    ("huggingface", "de-en", "", None, "BLEU 40.6"),
    ("huggingface", "en-fr", "", None, "BLEU 47.8"),
    ("huggingface", "en-es", "", None, "BLEU 26.7"),
    ("argos", "en-de", "", None, "BLEU 31.8"),
    ("argos", "de-en", "", None, "BLEU 36.2"),
    ("argos", "en-fr", "", None, "BLEU 42.7"),
    ("argos", "en-es", "", None, "BLEU 23.3"),
]


def list_box() -> list[Offer]:
    """Describe the archives of this folder."""
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    offers = []
    for archive in sorted(FOLDER.glob("*.tar.xz")):
        pair = archive.name.removesuffix(".tar.xz")
        row = re.search(rf"^\| `{pair}` \|(.*)\|$", readme, re.MULTILINE)
        cells = row[1].split("|") if row else []
        tests = {"Tatoeba": cells[1], "newstest2013": cells[3]} if len(cells) > 3 else {}
        bleu = {name: cell.split("(")[0].strip() for name, cell in tests.items()}
        scores = {name: f"BLEU {each}" for name, each in bleu.items() if each != "–"}
        contents = archive.read_bytes()
        with tarfile.open(archive) as packed:
            member = next(each for each in packed if each.name == f"{pair}/README.md")
            card = packed.extractfile(member).read().decode()
        licence = re.search(r"^license: (.+)$", card, re.MULTILINE)
        source, target = pair.split("-")
        offers.append(
            Offer(
                source=BOX, source_language=source, target_language=target, scores=scores,
                licence=licence[1] if licence else SOURCES[BOX].licence,
                files=(RemoteFile(url=archive.name, name=archive.name, size=len(contents),
                                  sha256=hashlib.sha256(contents).hexdigest()),),
            )
        )  # fmt: skip
    return offers


def list_published(pinned: set[str]) -> list[Offer]:
    """Describe what is known of models that no manifest pins."""
    return [
        Offer(
            source=source, source_language=pair.split("-")[0],
            target_language=pair.split("-")[1], variant=variant, size=size, scores={"FLORES": bleu},
        )
        for source, pair, variant, size, bleu in PUBLISHED
        if source not in pinned
    ]  # fmt: skip


def list_pinned(name: str, place: str) -> list[Offer]:
    """Take the best model of every pair from a manifest."""

    def get(url: str, origin: str | None) -> bytes:
        if Path(place).is_file() and url == place:
            return Path(place).read_bytes()
        return fetch(url, Network(), origin=origin)

    first: dict[str, Offer] = {}
    for each in read_manifest(SOURCES[name], place, get):
        first.setdefault(each.pair, each)
    return list(first.values())


def to_toml(sources: dict[str, Source], offers: list[Offer]) -> str:
    """Write sources and offers as TOML, whose strings, numbers and lists are JSON's."""
    lines = ["# Written by models/catalogue.py.", f"order = {json.dumps(ORDER)}"]
    for name, source in sources.items():
        lines += ["", f"[sources.{name}]"]
        lines += [f"{each} = {_quote(getattr(source, each))}"
                  for each in ("manifest", "licence", "attribution")]  # fmt: skip
    for offer in offers:
        lines += ["", "[[offers]]"]
        for name in ("source", "source_language", "target_language", "variant", "size"):
            value = getattr(offer, name)
            lines += [f"{name} = {_quote(value)}"] if value else []
        lines += [f"licence = {_quote(offer.licence)}"] if offer.source == BOX else []
        lines += [f"scores = {_table(dict(offer.scores))}"] if offer.scores else []
        for file in offer.files:
            said = {name: value for name, value in vars(file).items() if value is not None}
            lines += ["[[offers.files]]", *(f"{name} = {_quote(said[name])}" for name in said)]
    return "\n".join(lines) + "\n"


def _quote(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _table(plain: dict[str, str]) -> str:
    return "{" + ", ".join(f"{_quote(name)} = {_quote(plain[name])}" for name in plain) + "}"


def main() -> None:
    """Write the catalogue."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--manifest", nargs=2, action="append", default=[])
    given = dict(parser.parse_args().manifest)
    pinned = [each for name, place in given.items() for each in list_pinned(name, place)]
    offers = [*pinned, *list_published(set(given)), *list_box()]
    CATALOGUE.write_text(to_toml(SOURCES, offers), encoding="utf-8")


if __name__ == "__main__":
    main()
