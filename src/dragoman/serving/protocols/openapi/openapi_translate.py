"""OpenAPI description of ``/translate`` in all its forms, and of OPUS-MT's protocol."""

from typing import Any

from dragoman.serving.protocols import libretranslate, microsoft
from dragoman.serving.protocols.openapi.openapi_parts import (
    KEY,
    Schema,
    answer,
    array,
    body,
    error_of,
    one_or_many,
    operation,
    properties,
    query,
    text,
)
from dragoman.serving.protocols.plain_errors import PLAIN_STATUS

LIBRE = "LibreTranslate"
_OPUS = "OPUS-MT"
_MESSAGE = properties({"error": text()}, ["error"])
LIBRE_ERROR = error_of(_MESSAGE, libretranslate.STATUS.values())
DETECTED = properties(
    {"confidence": {"type": "number", "minimum": 0, "maximum": 100}, "language": text()},
    ["confidence", "language"],
)
_NUMBER: Schema = {"type": "integer", "minimum": 0}
_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 100, "nullable": True}


def describe_languages(codes: list[str]) -> Schema:
    """Describe source, target and key of LibreTranslate's protocol."""
    return {
        "source": text("Code of a language, or “auto”", enum=["auto", *codes]),
        "target": text("Code of a language", enum=codes),
        "api_key": KEY,
    }


def translate_paths(codes: list[str], most_alternatives: int) -> dict[str, Any]:
    """List the path of all forms of requests, and those of OPUS-MT."""
    libre = {
        **describe_languages(codes),
        "format": text("Whether there are tags", enum=["text", "html"]),
        "alternatives": {"type": "integer", "minimum": 0, "maximum": most_alternatives},
        "confidence": {"type": "boolean", "description": "Say how sure the translation is"},
    }
    required = ["q", "source", "target"]
    one = text(min_length=1)
    forms = [properties({"q": one_or_many(one), **libre}, required), *_describe_forms(codes)]
    sent = body({"anyOf": forms}, form=properties({"q": one, **libre}, required))
    statuses = {
        *libretranslate.STATUS.values(),
        *PLAIN_STATUS.values(),
        *(status for status, _ in microsoft.STATUS.values()),
    }
    described = operation(
        LIBRE,
        "Translate a text or several; as DeepLX, Immersive Translate or Microsoft by the form",
        answer({"anyOf": _describe_answers()}),
        error_of({"anyOf": [_MESSAGE, *_describe_errors()]}, statuses),
        request=sent,
        queries=[
            query("from", text("Of a list of texts: code of its language", enum=codes)),
            query("to", array(text("Of a list of texts: codes of targets", enum=codes))),
            query("textType", text("Of a list of texts", enum=["plain", "html"])),
        ],
    )
    return {"/translate": {"post": described}, **_opus_paths(codes)}


def _describe_forms(codes: list[str]) -> list[Schema]:
    """Describe the requests of DeepLX, Immersive Translate and Microsoft."""
    pair = {
        "source_lang": text(enum=["auto", *codes]),
        "target_lang": text(enum=codes),
    }
    one = text(min_length=1)
    tags = {"tag_handling": text(enum=["html", "xml"])}
    target = properties(
        {"language": text(enum=codes), "tone": text(enum=["neutral", "formal", "informal"])},
        ["language"],
    )
    item = {
        "text": text(),
        "language": text(enum=codes),
        "textType": text(enum=["Plain", "Html"]),
        "targets": array(target, min_items=1),
    }
    inputs = array(properties(item, ["text", "targets"]), min_items=1)
    return [
        properties({"inputs": inputs}, ["inputs"]),
        properties({"text": one, **pair, **tags}, ["text", "target_lang"]),
        properties({"text_list": array(one, min_items=1), **pair}, ["text_list", "target_lang"]),
        array(properties({"Text": text()}, ["Text"]), min_items=1),
    ]


def _describe_answers() -> list[Schema]:
    libre = {
        "translatedText": one_or_many(text()),
        "detectedLanguage": one_or_many(DETECTED),
        "alternatives": array(one_or_many(text())),
        "confidence": one_or_many(_SHARE),
    }
    deeplx = {"code": _NUMBER, "id": _NUMBER, "data": text(), "alternatives": array(text())}
    codes = {"source_lang": text(), "target_lang": text(), "method": text()}
    immersive = properties(
        {"detected_source_lang": text(), "text": text()}, ["detected_source_lang", "text"]
    )
    translation = properties({"text": text(), "to": text()}, ["text", "to"])
    detected = properties({"language": text(), "score": {"type": "number"}}, ["language", "score"])
    one = {"language": text(), "sourceCharacters": _NUMBER, "text": text()}
    of_input = properties(
        {"translations": array(properties(one, list(one))), "detectedLanguage": detected},
        ["translations"],
    )
    return [
        properties(libre, ["translatedText"]),
        properties({**deeplx, **codes}, [*deeplx, *codes]),
        properties({"translations": array(immersive)}, ["translations"]),
        array(
            properties(
                {"translations": array(translation), "detectedLanguage": detected},
                ["translations"],
            )
        ),
        properties({"value": array(of_input)}, ["value"]),
    ]


def _describe_errors() -> list[Schema]:
    """Describe the errors of DeepLX and Microsoft."""
    plain = properties({"code": _NUMBER, "message": text()}, ["code", "message"])
    named = properties({"code": text(), "message": text()}, ["code", "message"])
    return [plain, *(properties({"error": each}, ["error"]) for each in (plain, named))]


def _opus_paths(codes: list[str]) -> dict[str, Any]:
    pair = {"from": text(enum=codes), "to": text(enum=codes)}
    sent = body(properties({**pair, "source": text()}, [*pair, "source"]))
    error = error_of(_MESSAGE, PLAIN_STATUS.values())
    translation = properties({"translation": text()}, ["translation"])
    targets: Schema = {"type": "object", "additionalProperties": array(text())}
    listed = properties({"languages": targets}, ["languages"])
    ready: Schema = {"204": {"description": "Texts are accepted"}}
    return {
        "/api/translate": {
            "post": operation(_OPUS, "Translate a text", answer(translation), error, request=sent)
        },
        "/api/languages": {"get": operation(_OPUS, "List languages", answer(listed), error)},
        "/api/ready": {"get": operation(_OPUS, "Whether texts are accepted", ready, error)},
    }
