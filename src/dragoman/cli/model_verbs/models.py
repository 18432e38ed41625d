"""The verb “models”; nothing heavy is imported before it runs."""

import argparse
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from dragoman.cli.flags import add_verb
from dragoman.errors import DragomanError

_LICENCE = re.compile(r"\A---\n(?:[^\n]*\n)*?license: \"?([^\n\"]*)\"?\n")
MOST_CARD_BYTES = 1 << 20


def add_models(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “models”."""
    parser = add_verb(verbs, "models", "list installed models, or those to be had", _models)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--available", nargs="?", const="", metavar="LANGUAGE",
        help="list what “dragoman pull” can bring, as far as is known here: all, of a language "
        "such as de, or of a pair such as de-en",
    )  # fmt: skip
    what.add_argument("--remove", metavar="NAME", help="remove an installed model")


def _models(options: argparse.Namespace) -> None:
    from dragoman.model_home import list_installed, models_folder

    if options.remove is not None:
        from dragoman.catalogue.installation import remove
        from dragoman.cli.model_verbs.pull import say

        remove(options.remove, say)
    elif options.available is not None:
        _list_available(options.available or None)
    elif installed := list_installed():
        head = ("name", "languages", "MB", "source", "licence", "scores")
        _print_table([head, *map(_describe, installed)])
    else:
        print(f"no models in {models_folder()}; “dragoman pull de-en” would bring one")


def _list_available(language: str | None) -> None:
    """List what the catalogue knows, and what the sources said when they were last asked."""
    from dragoman.catalogue.sources import list_available, read_catalogue, recall_offers

    catalogue = read_catalogue()
    rows = []
    for each in list_available(catalogue, language):
        size = "" if each.num_bytes is None else f"{each.num_bytes / 1e6:.1f}"
        scores = "; ".join(f"{name} {score}" for name, score in each.scores.items())
        rows.append((each.pair, each.source, each.variant, size, each.licence, scores))
    head = ("languages", "source", "variant", "MB", "licence", "scores")
    _print_table([head, *sorted(rows, key=lambda row: row[0])])
    for name in catalogue.order:
        _, asked = recall_offers(name)
        if asked is None:
            print(f"{name}: never asked; its own list may have more (“dragoman pull” asks)")
        else:
            print(f"{name}: asked on {asked}")


def _describe(path: Path) -> tuple[str, ...]:
    """Describe an installed model: name, languages, size, source, licence, scores."""
    from dragoman.catalogue.installation import read_origin
    from dragoman.catalogue.offers import read_words
    from dragoman.files import read_small
    from dragoman.folder import CARD_FILE, read_folder

    size = sum(each.stat().st_size for each in path.rglob("*") if each.is_file()) / 1e6
    origin = read_origin(path)
    try:
        facts = read_folder(path).facts
        card = read_small(path / CARD_FILE, MOST_CARD_BYTES).decode("utf-8", "replace")
    except (DragomanError, OSError):
        check = f"damaged: see “dragoman check {path.name}”"
        return (path.name, "?", f"{size:.1f}", "", "", check)
    scores = origin.get("scores") or facts.scores
    said = scores.items() if isinstance(scores, dict) else ()
    licence = _LICENCE.search(card)
    return (
        path.name,
        f"{facts.source_language or '?'}-{facts.target_language or '?'}",
        f"{size:.1f}",
        read_words(f"{origin.get('source', '')} {origin.get('variant', '')}".strip()),
        read_words(licence[1] if licence else origin.get("licence")),
        "; ".join(f"{read_words(name)} {read_words(score)}" for name, score in said),
    )


def _print_table(rows: Sequence[Iterable[str]]) -> None:
    """Print rows in columns."""
    table = [tuple(map(str, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print(
            "  ".join(each.ljust(width) for each, width in zip(row, widths, strict=True)).rstrip()
        )
