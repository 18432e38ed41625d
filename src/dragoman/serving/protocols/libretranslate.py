"""The protocol of LibreTranslate."""

import re
import urllib.parse
from pathlib import PurePosixPath
from typing import cast

from starlette.requests import Request as WebRequest
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute

from dragoman.serving.documents.document_store import find_store
from dragoman.serving.documents.documents import (
    FORMATS,
    check_name,
    choose_output,
    translate_document,
)
from dragoman.serving.http.api_keys import ApiKeys
from dragoman.serving.languages import match_language
from dragoman.serving.protocols.request_parameters import (
    RequestParameters,
    find_client,
    make_route,
    read_bearer,
    read_parameters,
    translate_and_charge,
)
from dragoman.serving.service import Service
from dragoman.serving.service_types import Client, Markup, Request, ServiceError

STATUS = {
    "bad_request": 400,
    "unknown_language": 400,
    "too_long": 400,
    "too_many_texts": 400,
    "missing_key": 400,
    "bad_key": 403,
    "forbidden": 403,
    "quota": 403,
    "not_found": 404,
    "too_many_requests": 429,
    "overloaded": 429,
    "not_ready": 503,
    "cancelled": 503,
    "failed": 500,
}
_STORED_NAME = re.compile(
    "([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})[.]([^/]+)"
)


def routes() -> list[BaseRoute]:
    """List the routes."""
    return [
        make_route("/detect", _detect, ["POST"], write_libretranslate_error),
        make_route("/languages", _languages, ["GET"], write_libretranslate_error),
        make_route("/translate_file", _translate_file, ["POST"], write_libretranslate_error),
        make_route(
            "/download_file/{name:path}", _download_file, ["GET"], write_libretranslate_error
        ),
        make_route("/frontend/settings", _settings, ["GET"], write_libretranslate_error),
        make_route("/suggest", _suggest, ["POST"], write_libretranslate_error),
    ]


async def translate_libretranslate(request: WebRequest, parameters: RequestParameters) -> Response:
    """Translate a text or a list of texts."""
    texts = _read_texts(parameters)
    source, target = _required(parameters, "source"), _required(parameters, "target")
    markup = parameters.text("format") or "text"
    if markup not in ("text", "html"):
        raise ServiceError(
            "bad_request",
            f"Invalid request: format {markup[:80]} is not supported; text and html are",
        )
    num_alternatives = max(0, parameters.number("alternatives", 0))
    wants_confidence = parameters.flag("confidence", default=False)
    answers = await translate_and_charge(
        request,
        Request(
            texts=tuple(texts),
            source=None if source.lower() == "auto" else source,
            target=target,
            num_alternatives=num_alternatives,
            wants_confidence=wants_confidence,
            markup=cast(Markup, markup),
            client=await _find_client(request, parameters),
        ),
    )
    is_batch = "q" in parameters.lists
    body: dict[str, object] = {"translatedText": _one_or_all([a.text for a in answers], is_batch)}
    if source.lower() == "auto":
        found = [_write_language(each.source, each.confidence) for each in answers]
        body["detectedLanguage"] = _one_or_all(found, is_batch)
    if num_alternatives:
        body["alternatives"] = _one_or_all([list(a.alternatives) for a in answers], is_batch)
    if wants_confidence:
        found_shares = [_write_share(each.translation_confidence) for each in answers]
        body["confidence"] = _one_or_all(found_shares, is_batch)
    return JSONResponse(body)


def _read_texts(parameters: RequestParameters) -> list[str]:
    """Read the texts; normalise the line breaks that browsers send in forms."""
    texts = parameters.texts("q")
    if not texts or (texts == [""] and "q" not in parameters.lists):
        raise ServiceError("bad_request", "Invalid request: missing q parameter")
    if parameters.is_json:
        return texts
    if len(texts) > 1:
        raise ServiceError("bad_request", "Invalid request: a form has one q; send JSON for more")
    return [text.replace("\r\n", "\n").replace("\r", "\n") for text in texts]


def _one_or_all(values: list, is_batch: bool) -> object:
    return values if is_batch else values[0]


def _write_share(share: float | None) -> float | None:
    """Write a probability in per cent, as this protocol does; null where none is known."""
    return None if share is None else round(100 * share, 1)


def _write_language(code: str, confidence: float | None) -> dict[str, object]:
    return {"confidence": round(100 * (confidence or 0.0)), "language": code}


def _required(parameters: RequestParameters, name: str) -> str:
    value = parameters.text(name)
    if not value:
        raise ServiceError("bad_request", f"Invalid request: missing {name} parameter")
    return value


async def _find_client(request: WebRequest, parameters: RequestParameters) -> Client:
    return await find_client(request, parameters.text("api_key") or read_bearer(request, "Bearer"))


async def _detect(request: WebRequest) -> Response:
    """Detect the language of a text."""
    parameters = await read_parameters(request)
    text = "\n".join(_read_texts(parameters))
    client = await _find_client(request, parameters)
    await request.app.state.keys.charge(client, 0)
    service: Service = request.app.state.service
    _check_length(service, [text])
    found = service.detect(text)
    return JSONResponse([_write_language(*each) for each in found if each[1] > 0] or [])


def _check_length(service: Service, texts: list[str]) -> None:
    """Raise if texts that bypass the service exceed the length limit."""
    length, limit = sum(map(len, texts)), service.options.max_characters
    if length > limit:
        raise ServiceError(
            "too_long", f"{length:,} characters", details={"length": length, "limit": limit}
        )


async def _languages(request: WebRequest) -> Response:
    """List the languages with their targets, each including itself."""
    listed = [
        {
            "code": each.code,
            "name": each.name,
            "targets": sorted({*each.targets, each.code}),
        }
        for each in request.app.state.service.languages()
    ]
    return JSONResponse(listed)


async def _translate_file(request: WebRequest) -> Response:
    """Translate a document and return its download URL."""
    parameters = await read_parameters(request)
    if parameters.file is None:
        raise ServiceError("bad_request", "Invalid request: missing file parameter")
    source, target = _required(parameters, "source"), _required(parameters, "target")
    client = await _find_client(request, parameters)
    service: Service = request.app.state.service
    target = _match_language(service, target)
    # Some clients, such as those in PHP, send the file's path.
    name = check_name(re.split(r"[/\\]", parameters.file.name)[-1])
    output = choose_output(name, parameters.text("output_format"))
    keys: ApiKeys = request.app.state.keys
    await keys.check(client)
    await keys.charge(client, 0)
    store = find_store(request.app)
    document = await store.read(name, parameters.file.content, service.options, target, output)
    wanted = Request(
        texts=(),
        source=None if source.lower() == "auto" else _match_language(service, source),
        target=target,
        client=client,
    )
    num_characters = sum(map(len, document.texts))
    path = PurePosixPath(name)
    suffix = path.suffix if path.suffix.lower() == output else output
    stored = store.create(client.name, f"{path.stem}_{target}{suffix}", document.media_type)
    num_charged = 0
    try:
        await keys.charge_characters(client, num_characters)
        num_charged = num_characters
        store.finish(stored, await translate_document(service, document, wanted))
    finally:
        if stored.status != "done":
            store.remove(stored)
            keys.refund(client, num_charged)
    quoted = urllib.parse.quote(f"{stored.document_id}.{stored.name}", safe="")
    url = f"{request.base_url}download_file/{quoted}"
    return JSONResponse({"translatedFileUrl": url}, headers=document.headers)


def _match_language(service: Service, code: str) -> str:
    """Match a client’s language code, or raise."""
    found = match_language(code, [each.code for each in service.languages()])
    if found is None:
        raise ServiceError("unknown_language", f"{code[:80]} is not supported")
    return found


async def _download_file(request: WebRequest) -> Response:
    """Serve a translated document to any client that knows its URL."""
    match = _STORED_NAME.fullmatch(request.path_params["name"])
    if match is None:
        raise ServiceError("bad_request", "Invalid filename")
    stored = find_store(request.app).get(match.group(1))
    if stored.name != match.group(2) or stored.status != "done":
        raise ServiceError("not_found", "Document not found")
    return FileResponse(stored.path, filename=stored.name, media_type=stored.media_type)


async def _settings(request: WebRequest) -> Response:
    """Describe the server to LibreTranslate’s web page."""
    service: Service = request.app.state.service
    keys = request.app.state.keys
    languages = service.languages()
    names = {each.code: each.name for each in languages}
    source = next((each for each in languages if each.targets), languages[0])
    target = source.targets[0] if source.targets else source.code
    return JSONResponse(
        {
            "charLimit": service.options.max_characters,
            "frontendTimeout": 500,
            "apiKeys": keys.is_required,
            "keyRequired": keys.is_required,
            "suggestions": False,
            "filesTranslation": True,
            "supportedFilesFormat": list(FORMATS),
            "language": {
                "source": {"code": source.code, "name": source.name},
                "target": {"code": target, "name": names[target]},
            },
        }
    )


async def _suggest(request: WebRequest) -> Response:  # noqa: ARG001
    """Refuse suggestions, which are not supported."""
    raise ServiceError("forbidden", "Suggestions are disabled on this server.")


def write_libretranslate_error(error: ServiceError) -> Response:
    """Write an error response."""
    message = error.message
    if error.kind in ("too_long", "too_many_texts") and "length" in error.details:
        length, limit = error.details["length"], error.details["limit"]
        message = f"Invalid request: request ({length}) exceeds text limit ({limit})"
    elif error.kind == "missing_key":
        message = "Please contact the server operator to get an API key"
    elif error.kind == "bad_key":
        message = "Invalid API key"
    elif error.kind == "overloaded":
        message = f"Slowdown: {message.removeprefix('Slowdown: ')}"
    return JSONResponse({"error": message}, status_code=STATUS[error.kind])
