"""The protocol of Google Translate, version 2 (“basic”)."""

from typing import cast

from starlette.requests import Request as WebRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from dragoman.serving.languages import NAMES, match_language
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

_PATH = "/language/translate/v2"
# HTTP status, status name, and the reason of the older error format.
STATUS = {
    "bad_request": (400, "INVALID_ARGUMENT", "badRequest"),
    "unknown_language": (400, "INVALID_ARGUMENT", "invalid"),
    "too_long": (400, "INVALID_ARGUMENT", "invalid"),
    "too_many_texts": (400, "INVALID_ARGUMENT", "invalid"),
    "missing_key": (403, "PERMISSION_DENIED", "forbidden"),
    "bad_key": (400, "INVALID_ARGUMENT", "keyInvalid"),
    "forbidden": (403, "PERMISSION_DENIED", "forbidden"),
    "quota": (403, "RESOURCE_EXHAUSTED", "dailyLimitExceeded"),
    "not_found": (404, "NOT_FOUND", "notFound"),
    "too_many_requests": (429, "RESOURCE_EXHAUSTED", "rateLimitExceeded"),
    "overloaded": (429, "RESOURCE_EXHAUSTED", "rateLimitExceeded"),
    "not_ready": (503, "UNAVAILABLE", "backendError"),
    "cancelled": (503, "UNAVAILABLE", "backendError"),
    "failed": (500, "INTERNAL", "backendError"),
}


def routes() -> list[BaseRoute]:
    """List the routes."""
    methods = ["GET", "POST"]
    return [
        make_route(_PATH, _translate, methods, _write_error),
        make_route(f"{_PATH}/languages", _languages, ["GET"], _write_error),
        make_route(f"{_PATH}/detect", _detect, methods, _write_error),
    ]


async def _translate(request: WebRequest) -> Response:
    """Translate texts, by default HTML."""
    parameters = await read_parameters(request)
    client = await _find_client(request, parameters)
    texts = _read_texts(parameters)
    target = parameters.text("target")
    if not target:
        raise _required("target")
    markup = parameters.text("format") or "html"
    if markup not in ("text", "html"):
        raise ServiceError("bad_request", "Invalid Value: format must be text or html")
    source = parameters.text("source") or None
    answers = await translate_and_charge(
        request,
        Request(
            texts=tuple(texts),
            source=source,
            target=target,
            markup=cast(Markup, markup),
            client=client,
        ),
    )
    model = parameters.text("model")
    translations = []
    for answer in answers:
        written = {"translatedText": answer.text}
        if source is None:
            written["detectedSourceLanguage"] = answer.source
        if model:
            written["model"] = model
        translations.append(written)
    return JSONResponse({"data": {"translations": translations}})


async def _languages(request: WebRequest) -> Response:
    """List the languages, with their English names if a language for these is given."""
    parameters = await read_parameters(request)
    await _find_client(request, parameters)
    service: Service = request.app.state.service
    languages = service.languages()
    target = parameters.text("target")
    if target and match_language(target, [*NAMES, *(each.code for each in languages)]) is None:
        raise ServiceError("unknown_language", f"{target[:80]} is not supported")
    listed = [
        {"language": each.code, "name": each.name} if target else {"language": each.code}
        for each in languages
    ]
    return JSONResponse({"data": {"languages": listed}})


async def _detect(request: WebRequest) -> Response:
    """Detect the language of each text."""
    parameters = await read_parameters(request)
    client = await _find_client(request, parameters)
    texts = _read_texts(parameters)
    service: Service = request.app.state.service
    await request.app.state.keys.charge(client, 0)
    length, limit = sum(map(len, texts)), service.options.max_characters
    if length > limit:
        raise ServiceError("too_long", f"{length:,} characters, but {limit:,} are the most")
    detections = []
    for text in texts:
        code, confidence = service.detect(text)[0]
        found = {"language": code, "isReliable": False, "confidence": round(confidence, 4)}
        detections.append([found])
    return JSONResponse({"data": {"detections": detections}})


def _read_texts(parameters: RequestParameters) -> list[str]:
    texts = parameters.texts("q")
    if not texts:
        raise _required("q")
    return texts


def _required(name: str) -> ServiceError:
    return ServiceError("bad_request", f"Required parameter: {name}")


async def _find_client(request: WebRequest, parameters: RequestParameters) -> Client:
    """Authenticate by key or, as Google's client does, by bearer token."""
    key = parameters.text("key") or request.headers.get("x-goog-api-key")
    token = read_bearer(request, "Bearer")
    try:
        return await find_client(request, key or token)
    except ServiceError as error:
        if error.kind == "bad_key" and not key:
            # On 401, Google's client would try to refresh its token.
            raise ServiceError(
                "forbidden", "API key not valid. Please pass a valid API key."
            ) from None
        raise


def _write_error(error: ServiceError) -> Response:
    """Write an error response."""
    code, status, reason = STATUS[error.kind]
    message = error.message
    if error.kind == "bad_key":
        message = "API key not valid. Please pass a valid API key."
    elif error.kind == "missing_key":
        message = "The request is missing a valid API key."
    elif error.kind == "unknown_language":
        message = f"Invalid Value: {message}"
    elif error.kind == "too_long":
        message = f"Text too long: {message}"
    elif error.kind == "quota":
        message = f"Daily Limit Exceeded: {message}"
    elif error.kind == "too_many_texts":
        message = f"Too many text segments: {message}"
    detail = {"message": message, "domain": "global", "reason": reason}
    body = {"error": {"code": code, "message": message, "status": status, "errors": [detail]}}
    return JSONResponse(body, status_code=code)
