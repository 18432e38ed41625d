"""OpenAPI description of the glossaries of DeepL's protocol."""

from typing import Any

from dragoman.serving.protocols.openapi.openapi_deepl import NUMBER, describe_deepl
from dragoman.serving.protocols.openapi.openapi_parts import (
    Schema,
    answer,
    array,
    body,
    in_path,
    properties,
    query,
    text,
)

_FORGOTTEN: Schema = {"204": {"description": "It is forgotten"}}
_ENTRIES: Schema = {
    "entries": text("On each line a term, a tab or comma, and its translation", min_length=1),
    "entries_format": text(enum=["tsv", "csv"]),
}


def glossary_paths(codes: list[str]) -> dict[str, Any]:
    """List the paths of glossaries."""
    pair = {name: text(enum=codes) for name in ("source_lang", "target_lang")}
    pairs = properties({"supported_languages": array(properties(pair, list(pair)))}, [])
    return {
        "/v2/glossary-language-pairs": {"get": describe_deepl("Pairs of languages", answer(pairs))},
        **_single_paths(pair),
        **_glossary_paths(pair),
        **_dictionary_paths(pair),
    }


def _single_paths(pair: Schema) -> dict[str, Any]:
    """List the paths of glossaries of one pair of languages."""
    glossary = _describe_glossary({**_counted(pair), "ready": {"type": "boolean"}})
    sent = {"name": text(min_length=1), **pair, **_ENTRIES}
    place = in_path("glossary_id")
    lines = {"200": {"description": "Terms", "content": {"text/tab-separated-values": {}}}}
    listed = properties({"glossaries": array(glossary)}, ["glossaries"])
    return {
        "/v2/glossaries": {
            "post": describe_deepl(
                "Keep a glossary of one pair of languages",
                answer(glossary, 201),
                sent=body(properties(sent, list(sent)), form=True),
            ),
            "get": describe_deepl("List glossaries of one pair of languages", answer(listed)),
        },
        "/v2/glossaries/{glossary_id}": {
            "get": describe_deepl("Describe a glossary", answer(glossary), place),
            "delete": describe_deepl("Forget a glossary", _FORGOTTEN, place),
        },
        "/v2/glossaries/{glossary_id}/entries": {
            "get": describe_deepl("The terms of a glossary", lines, place)
        },
    }


def _glossary_paths(pair: Schema) -> dict[str, Any]:
    """List the paths of glossaries of several pairs of languages."""
    counted = _counted(pair)
    glossary = _describe_glossary({"dictionaries": array(properties(counted, list(counted)))})
    sent = array(properties({**pair, **_ENTRIES}, [*pair, *_ENTRIES]), min_items=1)
    fields = {"name": text(min_length=1), "dictionaries": sent}
    first = {f"dictionaries[0].{name}": kind for name, kind in {**pair, **_ENTRIES}.items()}
    form = {"name": fields["name"], **first}
    place = in_path("glossary_id")
    listed = properties({"glossaries": array(glossary)}, ["glossaries"])
    return {
        "/v3/glossaries": {
            "post": describe_deepl(
                "Keep a glossary",
                answer(glossary, 201),
                sent=body(properties(fields, list(fields)), form=properties(form, list(form))),
            ),
            "get": describe_deepl("List glossaries", answer(listed)),
        },
        "/v3/glossaries/{glossary_id}": {
            "get": describe_deepl("Describe a glossary", answer(glossary), place),
            "patch": describe_deepl(
                "Rename a glossary, or add to it",
                answer(glossary),
                place,
                sent=body(properties(fields, []), form=properties(form, [])),
            ),
            "delete": describe_deepl("Forget a glossary", _FORGOTTEN, place),
        },
    }


def _dictionary_paths(pair: Schema) -> dict[str, Any]:
    """List the paths of the dictionaries of a glossary."""
    counted = _counted(pair)
    asked = [query(name, pair[name], is_required=True) for name in pair]
    place = in_path("glossary_id")
    sent = properties({**pair, **_ENTRIES}, [*pair, *_ENTRIES])
    listed = properties({"dictionaries": array(sent)}, ["dictionaries"])
    return {
        "/v3/glossaries/{glossary_id}/entries": {
            "get": describe_deepl("The terms of a pair of languages", answer(listed), place, *asked)
        },
        "/v3/glossaries/{glossary_id}/dictionaries": {
            "put": describe_deepl(
                "Replace the terms of a pair of languages",
                answer(properties(counted, list(counted))),
                place,
                sent=body(sent, form=True),
            ),
            "delete": describe_deepl(
                "Forget the terms of a pair of languages", _FORGOTTEN, place, *asked
            ),
        },
    }


def _counted(pair: Schema) -> Schema:
    return {**{name: text() for name in pair}, "entry_count": NUMBER}


def _describe_glossary(fields: Schema) -> Schema:
    created = {"type": "string", "format": "date-time"}
    described = {"glossary_id": text(), "name": text(), **fields, "creation_time": created}
    return properties(described, list(described))
