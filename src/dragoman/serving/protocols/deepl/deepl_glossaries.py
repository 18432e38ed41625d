"""The protocol of DeepL, version 2: glossaries."""

import asyncio

from starlette.requests import Request as WebRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from dragoman.serving.glossaries import StoredGlossary, read_entries, write_entries
from dragoman.serving.protocols.deepl.deepl_common import (
    find_deepl_client,
    find_glossaries,
    match_code,
    write_deepl_error,
)
from dragoman.serving.protocols.request_parameters import (
    RequestParameters,
    make_route,
    read_parameters,
)
from dragoman.serving.service import Service
from dragoman.serving.service_types import ServiceError

LONGEST_NAME = 1024
TSV = "text/tab-separated-values"


def routes() -> list[BaseRoute]:
    """List the routes."""
    return [
        make_route("/v2/glossary-language-pairs", _pairs, ["GET"], write_deepl_error),
        make_route("/v2/glossaries", _create, ["POST"], write_deepl_error),
        make_route("/v2/glossaries", _list, ["GET"], write_deepl_error),
        make_route("/v2/glossaries/{glossary_id}", _get, ["GET"], write_deepl_error),
        make_route("/v2/glossaries/{glossary_id}", _delete, ["DELETE"], write_deepl_error),
        make_route("/v2/glossaries/{glossary_id}/entries", _entries, ["GET"], write_deepl_error),
    ]


async def _pairs(request: WebRequest) -> Response:
    """List the language pairs that support glossaries."""
    find_deepl_client(request, await read_parameters(request))
    pairs = sorted({(each.source, each.target) for each in request.app.state.service.models()})
    listed = [{"source_lang": source, "target_lang": target} for source, target in pairs]
    return JSONResponse({"supported_languages": listed})


async def _create(request: WebRequest) -> Response:
    """Create a glossary."""
    parameters = await read_parameters(request)
    client = find_deepl_client(request, parameters)
    name = _required(parameters, "name")
    if len(name) > LONGEST_NAME:
        raise ServiceError(
            "bad_request", f"Parameter 'name' has more than {LONGEST_NAME} characters."
        )
    service: Service = request.app.state.service
    source = match_code(service, parameters.text("source_lang"), "source")
    target = match_code(service, parameters.text("target_lang"), "target")
    if (source, target) not in {(each.source, each.target) for each in service.models()}:
        raise ServiceError("bad_request", "Unsupported glossary source and target language pair.")
    entries, form = _required(parameters, "entries"), _required(parameters, "entries_format")

    def _keep() -> StoredGlossary:
        return find_glossaries(request.app).create(
            client.name,
            name=name,
            source=source,
            target=target,
            entries=read_entries(entries, form.lower()),
        )

    glossary = await asyncio.to_thread(_keep)  # A million characters take a second.
    return JSONResponse(_write(glossary), status_code=201)


async def _list(request: WebRequest) -> Response:
    """List a client's glossaries."""
    client = find_deepl_client(request, await read_parameters(request))
    listed = find_glossaries(request.app).list(client.name)
    return JSONResponse({"glossaries": [_write(each) for each in listed]})


async def _get(request: WebRequest) -> Response:
    """Describe a glossary."""
    return JSONResponse(_write(await _find(request)))


async def _entries(request: WebRequest) -> Response:
    """Return the entries of a glossary."""
    return Response(write_entries((await _find(request)).entries), media_type=TSV)


async def _delete(request: WebRequest) -> Response:
    """Delete a glossary."""
    client = find_deepl_client(request, await read_parameters(request))
    find_glossaries(request.app).delete(client.name, request.path_params["glossary_id"])
    return Response(status_code=204)


async def _find(request: WebRequest) -> StoredGlossary:
    client = find_deepl_client(request, await read_parameters(request))
    return find_glossaries(request.app).get(client.name, request.path_params["glossary_id"])


def _required(parameters: RequestParameters, name: str) -> str:
    value = parameters.text(name)
    if not value:
        raise ServiceError("bad_request", f"Parameter '{name}' not specified.")
    return value


def _write(glossary: StoredGlossary) -> dict[str, object]:
    return {
        "glossary_id": glossary.glossary_id,
        "name": glossary.name,
        "ready": True,
        "source_lang": glossary.source,
        "target_lang": glossary.target,
        # DeepL's clients require fractional seconds.
        "creation_time": glossary.created.strftime("%Y-%m-%dT%H:%M:%S.%f+00:00"),
        "entry_count": len(glossary.entries),
    }
