"""OpenAPI 3 description of all protocols."""

from typing import Any

from starlette.requests import Request as WebRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dragoman import __version__
from dragoman.serving.protocols.openapi.openapi_deepl import deepl_paths
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
from dragoman.serving.service import Service

_KEY = text("API key, where the server wants one")
_LIBRE = "LibreTranslate"
_LIBRE_ERROR = error_of(properties({"error": text()}, ["error"]))
_GOOGLE = "Google"
_DETECTED = properties(
    {"confidence": {"type": "number", "minimum": 0, "maximum": 100}, "language": text()},
    ["confidence", "language"],
)


def routes() -> list[BaseRoute]:
    """List the routes."""
    return [Route("/spec", _answer), Route("/openapi.json", _answer)]


async def _answer(request: WebRequest) -> Response:
    return JSONResponse(describe(request.app.state.service))


def describe(service: Service) -> dict[str, Any]:
    """Build the OpenAPI document of a server."""
    codes = [each.code for each in service.languages()]
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "Dragoman",
            "version": __version__,
            "description": "Translation, in the protocols of LibreTranslate, DeepL (version 2) and "
            "Google Translate (version 2). What is under /api is private to the server's own page, "
            "may change with any version, and is not described.",
        },
        "paths": {
            **_server_paths(),
            **_libretranslate_paths(codes),
            **deepl_paths(codes),
            **_google_paths(codes),
        },
    }


def _server_paths() -> dict[str, Any]:
    status = properties({"status": text()}, ["status"])
    figures = {"description": "Figures for Prometheus", "content": {"text/plain": {}}}
    return {
        "/health": {"get": operation("server", "Whether the process answers", answer(status))},
        "/ready": {
            "get": operation(
                "server", "Whether texts are accepted", answer(status), answer(status, 503)
            )
        },
        "/metrics": {"get": operation("server", "Figures", {"200": figures})},
        "/spec": {"get": operation("server", "This description", answer({"type": "object"}))},
    }


def _libretranslate_paths(codes: list[str]) -> dict[str, Any]:
    languages = {
        "source": text("Code of a language, or “auto”", enum=["auto", *codes]),
        "target": text("Code of a language", enum=codes),
        "api_key": _KEY,
    }
    language = properties(
        {"code": text(), "name": text(), "targets": array(text())}, ["code", "name", "targets"]
    )
    file: Schema = {"file": {"type": "string", "format": "binary"}, **languages}
    url = properties({"translatedFileUrl": text()}, ["translatedFileUrl"])
    detect = properties({"q": text(min_length=1), "api_key": _KEY}, ["q"])
    return {
        "/translate": {"post": _describe_translate(languages)},
        "/detect": {
            "post": _describe(
                "Find the language of a text", array(_DETECTED), body(detect, form=True)
            )
        },
        "/languages": {"get": _describe("List languages", array(language))},
        "/translate_file": {
            "post": _describe(
                "Translate a file",
                url,
                body(None, multipart=properties(file, ["file", "source", "target"])),
            )
        },
        "/frontend/settings": {"get": _describe("Tell a page what there is", _settings())},
        "/suggest": {
            "post": operation(_LIBRE, "Always refused: nobody reads suggestions", _LIBRE_ERROR)
        },
    }


def _describe(summary: str, found: Schema, request: Schema | None = None) -> Schema:
    return operation(_LIBRE, summary, answer(found), _LIBRE_ERROR, request=request)


def _describe_translate(languages: Schema) -> Schema:
    options: Schema = {
        **languages,
        "format": text("Whether there are tags", enum=["text", "html"]),
        "alternatives": {"type": "integer", "minimum": 0, "maximum": 3},
    }
    required = ["q", "source", "target"]
    one = text(min_length=1)
    found = properties(
        {
            "translatedText": _one_or_many(text()),
            "detectedLanguage": _one_or_many(_DETECTED),
            "alternatives": array(_one_or_many(text())),
        },
        ["translatedText"],
    )
    sent = body(
        properties({"q": _one_or_many(one), **options}, required),
        form=properties({"q": one, **options}, required),
    )
    return _describe("Translate a text or several", found, sent)


def _settings() -> Schema:
    flag: Schema = {"type": "boolean"}
    number: Schema = {"type": "integer"}
    pair = properties({"code": text(), "name": text()}, ["code", "name"])
    return properties(
        {
            "charLimit": number,
            "frontendTimeout": number,
            "apiKeys": flag,
            "keyRequired": flag,
            "suggestions": flag,
            "filesTranslation": flag,
            "supportedFilesFormat": array(text()),
            "language": properties({"source": pair, "target": pair}, ["source", "target"]),
        },
        ["charLimit", "keyRequired", "language"],
    )


def _google_paths(codes: list[str]) -> dict[str, Any]:
    code = text("Code of a language", enum=codes)
    texts = _one_or_many(text())
    sent: Schema = {
        "q": texts,
        "target": code,
        "source": {**code, "nullable": True, "enum": [*codes, None]},
        "format": {**text(enum=["text", "html", None]), "nullable": True},
    }
    translation = properties(
        {"translatedText": text(), "detectedSourceLanguage": text(), "model": text()},
        ["translatedText"],
    )
    detection = properties(
        {"language": text(), "isReliable": {"type": "boolean"}, "confidence": {"type": "number"}},
        ["language", "confidence"],
    )
    language = properties({"language": text(), "name": text()}, ["language"])
    asked = [query("q", array(text()), is_required=True), query("key", _KEY)]
    pair = [query("target", code, is_required=True), query("source", code)]
    found, detected = _data("translations", translation), _data("detections", array(detection))
    path = "/language/translate/v2"
    return {
        path: _both("Translate texts", found, properties(sent, ["q", "target"]), [*asked, *pair]),
        f"{path}/detect": _both(
            "Find the languages of texts", detected, properties({"q": texts}, ["q"]), asked
        ),
        f"{path}/languages": {
            "get": operation(
                _GOOGLE,
                "List languages",
                answer(_data("languages", language)),
                _google_error(),
                queries=[query("target", code), query("key", _KEY)],
            )
        },
    }


def _both(summary: str, found: Schema, sent: Schema, asked: list[Schema]) -> Schema:
    """Describe parameters accepted as JSON or in the query string."""
    answers = answer(found), _google_error()
    return {
        "get": operation(_GOOGLE, summary, *answers, queries=asked),
        "post": operation(_GOOGLE, summary, *answers, request=body(sent)),
    }


def _google_error() -> Schema:
    detail = properties({"message": text(), "domain": text(), "reason": text()}, ["message"])
    number: Schema = {"type": "integer"}
    inner = {"code": number, "message": text(), "status": text(), "errors": array(detail)}
    return error_of(properties({"error": properties(inner, ["code", "message"])}, ["error"]))


def _data(name: str, item: Schema) -> Schema:
    return properties({"data": properties({name: array(item)}, [name])}, ["data"])


def _one_or_many(schema: Schema) -> Schema:
    return {"oneOf": [schema, array(schema, min_items=1)]}
