"""The protocol of DeepLX: one text a request."""

import secrets
from typing import cast

from starlette.requests import Request as WebRequest
from starlette.responses import JSONResponse, Response

from dragoman.serving.protocols.plain_errors import PLAIN_STATUS
from dragoman.serving.protocols.request_parameters import (
    RequestParameters,
    find_client,
    read_bearer,
    translate_and_charge,
)
from dragoman.serving.service import Service
from dragoman.serving.service_types import Markup, Request, ServiceError

MOST_ALTERNATIVES = 3
_LARGEST_ID = 10_000_000_000


async def translate_deeplx(request: WebRequest, parameters: RequestParameters) -> Response:
    """Translate a text, with some alternatives."""
    text, target = parameters.text("text"), parameters.text("target_lang")
    if not text or not target:
        name = "target_lang" if text else "text"
        raise ServiceError("bad_request", f"Invalid request payload: {name} is missing")
    markup = parameters.text("tag_handling") or "text"
    if markup not in ("text", "html", "xml"):
        raise ServiceError(
            "bad_request", "Invalid tag_handling value. Allowed values are 'html' and 'xml'."
        )
    source = parameters.text("source_lang") or "auto"
    token = read_bearer(request, "Bearer") or read_bearer(request, "DeepL-Auth-Key")
    service: Service = request.app.state.service
    (answer,) = await translate_and_charge(
        request,
        Request(
            texts=(text,),
            source=None if source.lower() == "auto" else source,
            target=target,
            num_alternatives=min(MOST_ALTERNATIVES, service.options.max_beam_size - 1),
            markup=cast(Markup, markup),
            client=await find_client(request, token or parameters.text("token")),
        ),
    )
    return JSONResponse(
        {
            "code": 200,
            "id": secrets.randbelow(_LARGEST_ID),
            "data": answer.text,
            "alternatives": list(answer.alternatives),
            "source_lang": answer.source.upper(),
            "target_lang": target.upper(),
            "method": "Free",
        }
    )


def write_deeplx_error(error: ServiceError) -> Response:
    """Write an error response."""
    status = PLAIN_STATUS[error.kind]
    return JSONResponse({"code": status, "message": error.message}, status_code=status)
