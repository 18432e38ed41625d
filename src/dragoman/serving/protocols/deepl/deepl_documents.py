"""The protocol of DeepL, version 2: documents."""

import asyncio
import logging
from functools import partial
from pathlib import PurePosixPath

from starlette.requests import Request as WebRequest
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute

from dragoman.serving.documents.document_store import StoredDocument, find_store
from dragoman.serving.documents.documents import (
    check_name,
    choose_output,
    find_source,
    find_sources,
    translate_document,
)
from dragoman.serving.documents.text_documents import Document
from dragoman.serving.http.api_keys import ApiKeys
from dragoman.serving.languages import name_language
from dragoman.serving.protocols.deepl.deepl_common import (
    find_deepl_client,
    match_code,
    read_formality,
    read_glossaries,
    write_deepl_error,
)
from dragoman.serving.protocols.request_parameters import (
    make_route,
    read_parameters,
)
from dragoman.serving.service import Service
from dragoman.serving.service_types import Client, Request, ServiceError

_log = logging.getLogger("dragoman.serving")


def routes() -> list[BaseRoute]:
    """List the routes."""
    return [
        make_route("/v2/document", _upload, ["POST"], write_deepl_error),
        make_route("/v2/document/{document_id}", _status, ["GET", "POST"], write_deepl_error),
        make_route(
            "/v2/document/{document_id}/result", _result, ["GET", "POST"], write_deepl_error
        ),
    ]


async def _upload(request: WebRequest) -> Response:
    """Accept a document and start to translate it in the background."""
    parameters = await read_parameters(request)
    client = await find_deepl_client(request, parameters)
    if parameters.file is None:
        raise ServiceError("bad_request", "Parameter 'file' not specified.")
    service: Service = request.app.state.service
    target = match_code(service, parameters.text("target_lang"), "target")
    said_source = parameters.text("source_lang")
    source = match_code(service, said_source, "source") if said_source else None
    _check_pair(service, source, target)
    formality = read_formality(parameters, service)
    name = check_name(parameters.text("filename") or parameters.file.name)
    output = choose_output(name, parameters.text("output_format"))
    find_terms = await read_glossaries(request, parameters, client, (source, target))
    keys: ApiKeys = request.app.state.keys
    await keys.check(client)
    await keys.charge(client, 0)
    store = find_store(request.app)
    document = await store.read(name, parameters.file.content, service.options, target, output)
    source = source or _find_source(service, document, target)
    service.check_formality(source, target, formality)
    wanted = Request(texts=(), source=source, target=target, client=client, formality=formality)
    path = PurePosixPath(name)
    new_name = name if path.suffix.lower() == output else f"{path.stem}{output}"
    stored = store.create(client.name, new_name, document.media_type)
    stored.progress.num_characters = sum(map(len, document.texts))
    try:
        await keys.charge_characters(client, stored.progress.num_characters)
    except BaseException:  # also where the client has gone
        store.remove(stored)
        raise

    async def work() -> None:
        stored.status = "translating"
        content = await translate_document(
            service, document, wanted, progress=stored.progress, find_terms=find_terms
        )
        store.finish(stored, content)

    stored.task = asyncio.create_task(work())
    stored.task.add_done_callback(partial(_record_outcome, stored, keys, client))
    named = {"document_id": stored.document_id, "document_key": stored.key}
    return JSONResponse(named, headers=document.headers)


def _check_pair(service: Service, source: str | None, target: str) -> None:
    """Raise if no document can be translated between two languages."""
    if source == target:
        raise ServiceError("bad_request", "Source and target language are equal.")
    if source is not None and source not in find_sources(service, target):
        raise ServiceError(
            "unknown_language",
            f"no model translates {source} to {target}",
            details={"language": target, "parameter": "target"},
        )


def _find_source(service: Service, document: Document, target: str) -> str | None:
    """Detect the language of a document that has letters, which must not be the target."""
    if not any(each.isalpha() for text in document.texts for each in text):
        return None
    source = find_source(service, document.texts, target)
    if source == target:
        raise ServiceError(
            "bad_request",
            f"Source and target language are equal: the document seems to be "
            f"{name_language(source)} already; if not, give its 'source_lang'.",
        )
    return source


def _record_outcome(
    stored: StoredDocument, keys: ApiKeys, client: Client, task: "asyncio.Task[None]"
) -> None:
    """Record the error of a failed document and refund its charge."""
    if stored.status == "done":
        return
    keys.refund(client, stored.progress.num_characters)
    stored.status = "error"
    error = None if task.cancelled() else task.exception()
    if isinstance(error, ServiceError):
        stored.message = error.message
        return
    stored.message = "internal error"
    if error is not None:
        _log.error("a document failed: %s", type(error).__name__)


async def _status(request: WebRequest) -> Response:
    """Report the status of a document."""
    stored = await _find(request)
    written: dict[str, object] = {"document_id": stored.document_id, "status": stored.status}
    if stored.status == "translating":
        written["seconds_remaining"] = find_store(request.app).estimate_seconds(stored)
    elif stored.status == "done":
        written["billed_characters"] = stored.progress.num_characters
    elif stored.status == "error":
        written["error_message"] = stored.message
    return JSONResponse(written)


async def _result(request: WebRequest) -> Response:
    """Serve a translated document."""
    stored = await _find(request)
    if stored.status == "error":
        raise ServiceError("bad_request", f"The document could not be translated: {stored.message}")
    if stored.status != "done":
        raise ServiceError("not_ready", "Document translation is not done", retry_after=1.0)
    return FileResponse(stored.path, filename=stored.name, media_type=stored.media_type)


async def _find(request: WebRequest) -> StoredDocument:
    """Look up a document by id and key."""
    parameters = await read_parameters(request)
    client = await find_deepl_client(request, parameters)
    key = parameters.text("document_key")
    if not key:
        raise ServiceError("bad_request", "Parameter 'document_key' not specified.")
    store = find_store(request.app)
    return store.get_with_key(request.path_params["document_id"], key, client.name)
