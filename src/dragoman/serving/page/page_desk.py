"""What the desk shows beside translations: doubts, the models that translated, terms that occur."""

import itertools
from collections.abc import Sequence
from typing import Any

from dragoman.decoding.output.doubts import Doubt, find_doubts
from dragoman.serving.glossaries import Dictionary
from dragoman.serving.page.page_request import JsonFields
from dragoman.serving.service import Service
from dragoman.serving.service_types import ServiceError

SHORTEST_DETECTED = 20
"""Letters from which on the language of a sentence is looked at."""
SURE = 0.8


def check_characters(service: Service, text: str) -> None:
    """Raise if a text is longer than requests may be."""
    most = service.options.max_characters
    if len(text) > most:
        raise ServiceError(
            "too_long",
            f"the text has {len(text):,} characters, but {most:,} are the most; translate it as a "
            "file, or in parts",
            details={"limit": most, "length": len(text)},
        )


def name_models(service: Service, path: Sequence[str], given: str) -> list[str]:
    """Name the models that translate along a path of languages."""
    if given:
        return [given]
    first = {(each.source, each.target): each.name for each in reversed(service.models())}
    return [first[pair] for pair in itertools.pairwise(path) if pair in first]


def read_terms(fields: JsonFields, text: str, source: str, target: str) -> tuple[Any, ...]:
    """Read those terms of a glossary that occur in a text."""
    entries = fields.terms("terms").get(source, ())
    return Dictionary(source=source, target=target, entries=entries).find_terms([text])


def write_doubts(
    service: Service,
    pairs: Sequence[tuple[str, str]],
    source: str,
    target: str,
    terms: Sequence[tuple[str, str]] = (),
) -> list[list[dict[str, Any]]]:
    """Find what is doubtful in translations, as JSON for the page.

    Parameters
    ----------
    service : Service
        Detects languages.
    pairs : Sequence[tuple[str, str]]
        Sentences and their translations.
    source : str
        The language of the sentences.
    target : str
        The language that the translations should be in.
    terms : Sequence[tuple[str, str]]
        Of the glossary with which they were made.

    Returns
    -------
    list[list[dict[str, Any]]]
        For each pair kind, side, begin, end and words of each doubt.
    """
    return [
        [
            {name: getattr(doubt, name) for name in ("kind", "side", "begin", "end", "words")}
            for doubt in (
                *find_doubts(one, other, source, target, terms),
                *_find_other_language(service, other, target),
            )
        ]
        for one, other in pairs
    ]


def _find_other_language(service: Service, text: str, target: str) -> list[Doubt]:
    """Find a translation that is surely in another of the served languages."""
    if sum(map(str.isalpha, text)) < SHORTEST_DETECTED:
        return []
    names = {each.code: each.name for each in service.languages()}
    code, share = service.detect(text)[0]
    if code == target or code not in names or share < SURE:
        return []
    words = f"seems to be {names[code]}, not {names[target]}"
    return [Doubt(kind="language", side="target", begin=0, end=len(text), words=words)]
