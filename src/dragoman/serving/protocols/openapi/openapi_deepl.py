"""OpenAPI description of DeepL's protocol."""

from typing import Any

from dragoman.serving.protocols.deepl.deepl_common import write_code
from dragoman.serving.protocols.openapi.openapi_parts import (
    Schema,
    answer,
    array,
    body,
    error_of,
    operation,
    properties,
    query,
    text,
)

_TAG = "DeepL"
_ERROR = error_of(properties({"message": text(), "detail": text()}, ["message"]))
_KEY: Schema = {
    "name": "Authorization",
    "in": "header",
    "required": False,
    "schema": text("“DeepL-Auth-Key”, a space and the key, where the server wants one"),
}
_FILE = {"200": {"description": "The file", "content": {"application/octet-stream": {}}}}
_NUMBER: Schema = {"type": "integer", "minimum": 0}
_FLAG: Schema = {"type": "boolean"}


def deepl_paths(codes: list[str]) -> dict[str, Any]:
    """List the paths of DeepL's protocol."""
    upper = [write_code(code) for code in codes]
    pair = {"target_lang": text(enum=upper), "source_lang": text(enum=upper)}
    return {
        **_text_paths(pair),
        **_document_paths(pair),
        **_glossary_paths({name: text(enum=codes) for name in pair}),
    }


def _describe(summary: str, answers: Schema, *more: Schema, sent: Schema | None = None) -> Schema:
    return operation(_TAG, summary, answers, _ERROR, request=sent, queries=[*more, _KEY])


def _text_paths(pair: Schema) -> dict[str, Any]:
    translation = properties(
        {
            "detected_source_language": text(),
            "text": text(),
            "billed_characters": _NUMBER,
            "model_type_used": text(),
        },
        ["detected_source_language", "text"],
    )
    language = properties(
        {"language": text(), "name": text(), "supports_formality": _FLAG}, ["language", "name"]
    )
    found = properties({"translations": array(translation)}, ["translations"])
    usage = {"character_count": _NUMBER, "character_limit": _NUMBER}
    sent = body(properties(_sent(pair), ["text", "target_lang"]), form=True)
    return {
        "/v2/translate": {"post": _describe("Translate texts", answer(found), sent=sent)},
        "/v2/languages": {
            "get": _describe(
                "List languages",
                answer(array(language)),
                query("type", text(enum=["source", "target"])),
            )
        },
        "/v2/usage": {
            "get": _describe("What has been translated", answer(properties(usage, list(usage))))
        },
    }


def _sent(pair: Schema) -> Schema:
    tags = array(text(min_length=1))
    models = ["latency_optimized", "quality_optimized", "prefer_quality_optimized"]
    return {
        "text": array(text(), min_items=1),
        **pair,
        "context": text(),
        "split_sentences": text(enum=["0", "1", "nonewlines"]),
        "preserve_formatting": _FLAG,
        "formality": text(enum=["default", "prefer_more", "prefer_less"]),
        "show_billed_characters": _FLAG,
        "model_type": text(enum=models),
        "glossary_id": text(),
        "glossary_ids": array(text()),
        "tag_handling": text(enum=["xml", "html"]),
        "tag_handling_version": text(enum=["v1", "v2"]),
        "outline_detection": _FLAG,
        "splitting_tags": tags,
        "non_splitting_tags": tags,
        "ignore_tags": tags,
    }


def _document_paths(pair: Schema) -> dict[str, Any]:
    sent = {"file": {"type": "string", "format": "binary"}, **pair, "filename": text()}
    handle = {"document_id": text(), "document_key": text()}
    status = properties(
        {
            "document_id": text(),
            "status": text(enum=["queued", "translating", "done", "error"]),
            "seconds_remaining": _NUMBER,
            "billed_characters": _NUMBER,
            "error_message": text(),
        },
        ["document_id", "status"],
    )
    place = {**query("document_id", text(), is_required=True), "in": "path"}
    key = body(properties({"document_key": text(min_length=1)}, ["document_key"]), form=True)
    return {
        "/v2/document": {
            "post": _describe(
                "Send a document",
                answer(properties(handle, list(handle))),
                sent=body(None, multipart=properties(sent, ["file", "target_lang"])),
            )
        },
        "/v2/document/{document_id}": {
            "post": _describe("How far a document is", answer(status), place, sent=key)
        },
        "/v2/document/{document_id}/result": {
            "post": _describe("Fetch a translated document", _FILE, place, sent=key)
        },
    }


def _glossary_paths(pair: Schema) -> dict[str, Any]:
    glossary = properties(
        {
            "glossary_id": text(),
            "name": text(),
            "ready": {"type": "boolean"},
            **{name: text() for name in pair},
            "creation_time": {"type": "string", "format": "date-time"},
            "entry_count": _NUMBER,
        },
        ["glossary_id", "name", "ready", *pair, "creation_time", "entry_count"],
    )
    sent = {
        "name": text(min_length=1),
        **pair,
        "entries": text("On each line a term, a tab or comma, and its translation", min_length=1),
        "entries_format": text(enum=["tsv", "csv"]),
    }
    place = {**query("glossary_id", text(), is_required=True), "in": "path"}
    pairs = properties({"supported_languages": array(properties(pair, list(pair)))}, [])
    lines = {"200": {"description": "Terms", "content": {"text/tab-separated-values": {}}}}
    listed = properties({"glossaries": array(glossary)}, ["glossaries"])
    return {
        "/v2/glossary-language-pairs": {"get": _describe("Pairs of languages", answer(pairs))},
        "/v2/glossaries": {
            "post": _describe(
                "Keep a glossary",
                answer(glossary, 201),
                sent=body(properties(sent, list(sent)), form=True),
            ),
            "get": _describe("List glossaries", answer(listed)),
        },
        "/v2/glossaries/{glossary_id}": {
            "get": _describe("Describe a glossary", answer(glossary), place),
            "delete": _describe(
                "Forget a glossary", {"204": {"description": "It is forgotten"}}, place
            ),
        },
        "/v2/glossaries/{glossary_id}/entries": {
            "get": _describe("The terms of a glossary", lines, place)
        },
    }
