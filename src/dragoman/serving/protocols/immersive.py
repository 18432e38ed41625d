"""The custom interface of Immersive Translate: a list of texts of a web page."""

import html
import re

from starlette.requests import Request as WebRequest
from starlette.responses import JSONResponse, Response

from dragoman.serving.protocols.plain_errors import PLAIN_STATUS
from dragoman.serving.protocols.request_parameters import (
    RequestParameters,
    find_client,
    read_bearer,
    translate_and_charge,
)
from dragoman.serving.service_types import Request, ServiceError

# What stands for a page's tags, such as <b0>…</b0>; in the rest & is no entity.
_PLACEHOLDER = re.compile(r"(</?[A-Za-z]+[0-9]+ ?/?>)")


async def translate_immersive(request: WebRequest, parameters: RequestParameters) -> Response:
    """Translate texts whose tags are numbered placeholders."""
    texts, target = parameters.texts("text_list"), parameters.text("target_lang")
    if not target:
        raise ServiceError("bad_request", "Invalid request: missing target_lang parameter")
    source = parameters.text("source_lang") or "auto"
    has_tags = any(_PLACEHOLDER.search(text) for text in texts)
    key = read_bearer(request, "Bearer") or parameters.text("token")
    answers = await translate_and_charge(
        request,
        Request(
            texts=tuple(map(_escape, texts)) if has_tags else tuple(texts),
            source=None if source.lower() == "auto" else source,
            target=target,
            markup="html" if has_tags else "text",
            client=await find_client(request, key or parameters.text("api_key")),
        ),
    )
    translations = [
        {
            "detected_source_lang": answer.source,
            "text": _unescape(answer.text) if has_tags else answer.text,
        }
        for answer in answers
    ]
    return JSONResponse({"translations": translations})


def _escape(text: str) -> str:
    parts = _PLACEHOLDER.split(text)
    parts[::2] = [html.escape(part, quote=False) for part in parts[::2]]
    return "".join(parts)


def _unescape(text: str) -> str:
    parts = _PLACEHOLDER.split(text)
    parts[::2] = [html.unescape(part) for part in parts[::2]]
    return "".join(parts)


def write_immersive_error(error: ServiceError) -> Response:
    """Write an error response."""
    return JSONResponse({"error": error.message}, status_code=PLAIN_STATUS[error.kind])
