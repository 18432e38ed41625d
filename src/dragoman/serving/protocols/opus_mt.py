"""The protocol of the OPUS-MT server."""

from starlette.requests import Request as WebRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from dragoman.serving.protocols.plain_errors import PLAIN_STATUS
from dragoman.serving.protocols.request_parameters import (
    find_client,
    make_route,
    read_bearer,
    read_parameters,
    translate_and_charge,
)
from dragoman.serving.service import Service
from dragoman.serving.service_types import Request, ServiceError


def routes() -> list[BaseRoute]:
    """List the routes."""
    return [
        make_route("/api/translate", _translate, ["POST"], _write_error),
        make_route("/api/languages", _languages, ["GET"], _write_error),
        make_route("/api/ready", _ready, ["GET"], _write_error),
    ]


async def _translate(request: WebRequest) -> Response:
    """Translate a text."""
    parameters = await read_parameters(request)
    fields = {name: parameters.text(name) for name in ("from", "to", "source")}
    missing = next((name for name, value in fields.items() if value is None), None)
    if missing is not None:
        raise ServiceError("bad_request", f"Invalid request: missing {missing} parameter")
    (answer,) = await translate_and_charge(
        request,
        Request(
            texts=(fields["source"] or "",),
            source=fields["from"],
            target=fields["to"] or "",
            client=await find_client(request, read_bearer(request, "Bearer")),
        ),
    )
    return JSONResponse({"translation": answer.text})


async def _languages(request: WebRequest) -> Response:
    """List the targets of each language."""
    service: Service = request.app.state.service
    listed = {each.code: list(each.targets) for each in service.languages() if each.targets}
    return JSONResponse({"languages": listed})


async def _ready(request: WebRequest) -> Response:
    """Answer whether texts are accepted."""
    if not request.app.state.service.is_accepting or not await request.app.state.keys.state.check():
        raise ServiceError("not_ready", "the server is stopping or not ready", retry_after=1.0)
    return Response(status_code=204)


def _write_error(error: ServiceError) -> Response:
    """Write an error response."""
    return JSONResponse({"error": error.message}, status_code=PLAIN_STATUS[error.kind])
