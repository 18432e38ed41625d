"""OpenAPI description of DeepL's protocol."""

from typing import Any, get_args

from dragoman.serving.protocols.deepl.deepl_common import STATUS, write_code
from dragoman.serving.protocols.openapi.openapi_parts import (
    FILE,
    OUTPUT_FORMAT,
    Schema,
    answer,
    array,
    body,
    error_of,
    in_path,
    operation,
    properties,
    query,
    text,
)
from dragoman.serving.service_types import Formality

_TAG = "DeepL"
_ERROR = error_of(properties({"message": text(), "detail": text()}, ["message"]), STATUS.values())
_KEY: Schema = {
    "name": "Authorization",
    "in": "header",
    "required": False,
    "schema": text("“DeepL-Auth-Key”, a space and the key, where the server wants one"),
}
NUMBER: Schema = {"type": "integer", "minimum": 0}
_FLAG: Schema = {"type": "boolean"}


def deepl_paths(codes: list[str]) -> dict[str, Any]:
    """List the paths of DeepL's protocol."""
    upper = [write_code(code) for code in codes]
    pair = {"target_lang": text(enum=upper), "source_lang": text(enum=upper)}
    return {
        **_text_paths(pair),
        **_document_paths(pair),
    }


def describe_deepl(
    summary: str, answers: Schema, *more: Schema, sent: Schema | None = None
) -> Schema:
    """Describe an operation of DeepL's protocol."""
    return operation(_TAG, summary, answers, _ERROR, request=sent, queries=[*more, _KEY])


def _text_paths(pair: Schema) -> dict[str, Any]:
    translation = properties(
        {
            "detected_source_language": text(),
            "text": text(),
            "billed_characters": NUMBER,
            "model_type_used": text(),
        },
        ["detected_source_language", "text"],
    )
    language = properties(
        {"language": text(), "name": text(), "supports_formality": _FLAG}, ["language", "name"]
    )
    found = properties({"translations": array(translation)}, ["translations"])
    usage = {"character_count": NUMBER, "character_limit": NUMBER}
    sent = body(properties(_sent(pair), ["text", "target_lang"]), form=True)
    return {
        "/v2/translate": {
            "get": describe_deepl("Translate texts", answer(found), *_in_query(pair)),
            "post": describe_deepl("Translate texts", answer(found), sent=sent),
        },
        "/v2/languages": {
            "get": describe_deepl(
                "List languages",
                answer(array(language)),
                query("type", text(enum=["source", "target"])),
            )
        },
        "/v2/usage": {
            "get": describe_deepl(
                "What has been translated", answer(properties(usage, list(usage)))
            )
        },
    }


def _in_query(pair: Schema) -> list[Schema]:
    """Describe the parameters of a text in an address; all others may stand there too."""
    return [
        query("text", array(text(), min_items=1), is_required=True),
        *(query(name, pair[name], is_required=name == "target_lang") for name in pair),
    ]


def _sent(pair: Schema) -> Schema:
    tags = array(text(min_length=1))
    models = ["latency_optimized", "quality_optimized", "prefer_quality_optimized"]
    return {
        "text": array(text(), min_items=1),
        **pair,
        "context": text(),
        "split_sentences": text(enum=["0", "1", "nonewlines"]),
        "preserve_formatting": _FLAG,
        "formality": text(enum=["default", *get_args(Formality)]),
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
    sent = {
        "file": {"type": "string", "format": "binary"},
        **pair,
        "filename": text(),
        "formality": text(enum=["default", *get_args(Formality)]),
        **OUTPUT_FORMAT,
    }
    handle = {"document_id": text(), "document_key": text()}
    status = properties(
        {
            "document_id": text(),
            "status": text(enum=["queued", "translating", "done", "error"]),
            "seconds_remaining": NUMBER,
            "billed_characters": NUMBER,
            "error_message": text(),
        },
        ["document_id", "status"],
    )
    place = in_path("document_id")
    asked = query("document_key", text(min_length=1), is_required=True)
    key = body(properties({"document_key": text(min_length=1)}, ["document_key"]), form=True)
    far, fetch = "How far a document is", "Fetch a translated document"
    return {
        "/v2/document": {
            "post": describe_deepl(
                "Send a document",
                answer(properties(handle, list(handle))),
                sent=body(None, multipart=properties(sent, ["file", "target_lang"])),
            )
        },
        "/v2/document/{document_id}": {
            "get": describe_deepl(far, answer(status), place, asked),
            "post": describe_deepl(far, answer(status), place, sent=key),
        },
        "/v2/document/{document_id}/result": {
            "get": describe_deepl(fetch, FILE, place, asked),
            "post": describe_deepl(fetch, FILE, place, sent=key),
        },
    }
