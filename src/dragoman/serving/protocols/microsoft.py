"""The protocol of Microsoft Translator, version 3: translation of a list of texts."""

from collections.abc import Sequence
from typing import cast

from starlette.requests import Request as WebRequest
from starlette.responses import JSONResponse, Response

from dragoman.serving.protocols.request_parameters import (
    RequestParameters,
    find_client,
    from_json,
    read_bearer,
    translate_and_charge,
)
from dragoman.serving.service_types import Answer, Client, ErrorKind, Markup, Request, ServiceError

# HTTP status, and the digits that follow it in the code of the error.
STATUS: dict[ErrorKind, tuple[int, int]] = {
    "bad_request": (400, 0),
    "unknown_language": (400, 36),
    "too_long": (400, 50),
    "too_many_texts": (400, 72),
    "missing_key": (401, 0),
    "bad_key": (401, 0),
    "forbidden": (403, 0),
    "quota": (403, 1),
    "not_found": (404, 0),
    "too_many_requests": (429, 1),
    "overloaded": (429, 0),
    "not_ready": (503, 0),
    "cancelled": (503, 0),
    "failed": (500, 0),
}
_SOURCE_NOT_VALID = 35
_UNSUPPORTED = ("toScript", "fromScript", "profanityAction")
_UNSUPPORTED_FLAGS = ("includeAlignment", "includeSentenceLength")


async def translate_microsoft(request: WebRequest, parameters: RequestParameters) -> Response:
    """Translate a list of texts into each of the languages of ``to``."""
    _refuse_unsupported(parameters)
    texts = _read_texts(parameters.items or ())
    targets = parameters.texts("to")
    if not targets:
        raise ServiceError(
            "unknown_language", "the target language is missing; say it in the address (to)"
        )
    markup = {"plain": "text", "html": "html"}.get((parameters.text("textType") or "plain").lower())
    if markup is None:
        raise ServiceError("bad_request", "textType must be plain or html")
    source = parameters.text("from") or None
    client = await find_microsoft_client(request, parameters)
    if len(texts) * len(targets) > request.app.state.service.options.max_texts:
        raise ServiceError("too_many_texts", "too many texts for so many languages; send fewer")
    found: list[list[Answer]] = []
    for target in targets:
        wanted = Request(
            texts=tuple(texts),
            source=source,
            target=target,
            markup=cast(Markup, markup),
            client=client,
        )
        found.append(await translate_and_charge(request, wanted))
    return JSONResponse(
        [
            _write(answers, targets, is_detected=source is None)
            for answers in zip(*found, strict=True)
        ]
    )


async def find_microsoft_client(request: WebRequest, parameters: RequestParameters) -> Client:
    """Authenticate the client of a request."""
    key = request.headers.get("ocp-apim-subscription-key") or read_bearer(request, "Bearer")
    return await find_client(request, key or parameters.text("subscription-key"))


def _refuse_unsupported(parameters: RequestParameters) -> None:
    for name in _UNSUPPORTED:
        if (parameters.text(name) or "NoAction") != "NoAction":
            raise ServiceError("bad_request", f"{name} is not supported by this server")
    for name in _UNSUPPORTED_FLAGS:
        if parameters.flag(name, False):
            raise ServiceError("bad_request", f"{name} is not supported by this server")


def _read_texts(items: Sequence[object]) -> list[str]:
    """Read the texts, whose field is written with a large or a small letter."""
    texts = []
    for number, item in enumerate(items):
        fields = from_json(item) if isinstance(item, dict) else RequestParameters(values={})
        found = [*fields.texts("Text"), *fields.texts("text")]
        if len(found) != 1:
            raise ServiceError("bad_request", f'item {number} of the body is not {{"Text": "…"}}')
        texts += found
    if not texts:
        raise ServiceError("bad_request", "the body has no texts")
    return texts


def _write(
    answers: Sequence[Answer], targets: Sequence[str], *, is_detected: bool
) -> dict[str, object]:
    """Write the translations of one text."""
    written: dict[str, object] = {
        "translations": [
            {"text": answer.text, "to": target}
            for answer, target in zip(answers, targets, strict=True)
        ]
    }
    if is_detected:
        share = round(answers[0].confidence or 0.0, 2)
        written["detectedLanguage"] = {"language": answers[0].source, "score": share}
    return written


def write_microsoft_error(error: ServiceError, *, is_code_text: bool = False) -> Response:
    """Write an error response."""
    status, digits = STATUS[error.kind]
    if error.kind == "unknown_language" and error.details.get("parameter") == "source":
        digits = _SOURCE_NOT_VALID
    code = 1000 * status + digits
    body = {"error": {"code": str(code) if is_code_text else code, "message": error.message}}
    return JSONResponse(body, status_code=status)
