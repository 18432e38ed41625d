"""OpenAPI 3 description of all protocols."""

from typing import Any

from starlette.requests import Request as WebRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dragoman import __version__
from dragoman.serving.protocols import google
from dragoman.serving.protocols.openapi.openapi_deepl import deepl_paths
from dragoman.serving.protocols.openapi.openapi_glossaries import glossary_paths
from dragoman.serving.protocols.openapi.openapi_parts import (
    FILE,
    KEY,
    OUTPUT_FORMAT,
    Schema,
    answer,
    array,
    body,
    error_of,
    in_path,
    one_or_many,
    operation,
    properties,
    query,
    text,
)
from dragoman.serving.protocols.openapi.openapi_translate import (
    DETECTED,
    LIBRE,
    LIBRE_ERROR,
    describe_languages,
    translate_paths,
)
from dragoman.serving.service import Service

_GOOGLE = "Google"


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
            "description": "Translation, in the protocols of LibreTranslate, DeepL, Google "
            "Translate (version 2), Microsoft Translator (version 3), DeepLX, Immersive Translate "
            "and OPUS-MT. As a WebSocket, /translate and /translate/{source}/{target} are "
            "marian-server's protocol, which OpenAPI cannot describe. What is under /page is "
            "private to the server's own page, may change with any version, and is not described.",
        },
        "paths": {
            **_server_paths(),
            **translate_paths(codes, service.options.max_beam_size - 1),
            **_libretranslate_paths(codes),
            **deepl_paths(codes),
            **glossary_paths(codes),
            **_google_paths(codes),
        },
    }


def _server_paths() -> dict[str, Any]:
    status = properties({"status": text()}, ["status"])
    figures = {"200": {"description": "Figures for Prometheus", "content": {"text/plain": {}}}}
    whole = answer({"type": "object"})
    refused = error_of(properties({"error": text()}, ["error"]), ())
    return {
        path: {"get": operation("server", summary, refused, *answers)}
        for path, summary, *answers in (
            ("/health", "Whether the process answers", answer(status)),
            ("/ready", "Whether texts are accepted", answer(status), answer(status, 503)),
            ("/metrics", "Figures", figures),
            ("/spec", "This description", whole),
            ("/openapi.json", "This description", whole),
        )
    }


def _libretranslate_paths(codes: list[str]) -> dict[str, Any]:
    languages = describe_languages(codes)
    language = properties(
        {"code": text(), "name": text(), "targets": array(text())}, ["code", "name", "targets"]
    )
    file: Schema = {
        "file": {"type": "string", "format": "binary"},
        **languages,
        **OUTPUT_FORMAT,
    }
    url = properties({"translatedFileUrl": text()}, ["translatedFileUrl"])
    detect = properties({"q": text(min_length=1), "api_key": KEY}, ["q"])
    return {
        "/detect": {
            "post": _describe(
                "Find the language of a text", array(DETECTED), body(detect, form=True)
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
        "/download_file/{name}": {
            "get": operation(
                LIBRE, "Fetch a translated file", FILE, LIBRE_ERROR, queries=[in_path("name")]
            )
        },
        "/frontend/settings": {"get": _describe("Tell a page what there is", _settings())},
        "/suggest": {
            "post": operation(LIBRE, "Always refused: nobody reads suggestions", LIBRE_ERROR)
        },
    }


def _describe(summary: str, found: Schema, request: Schema | None = None) -> Schema:
    return operation(LIBRE, summary, answer(found), LIBRE_ERROR, request=request)


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
    texts = one_or_many(text())
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
    asked = [query("q", array(text()), is_required=True), query("key", KEY)]
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
                queries=[query("target", code), query("key", KEY)],
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
    body_schema = properties({"error": properties(inner, ["code", "message"])}, ["error"])
    return error_of(body_schema, [status for status, *_ in google.STATUS.values()])


def _data(name: str, item: Schema) -> Schema:
    return properties({"data": properties({name: array(item)}, [name])}, ["data"])
