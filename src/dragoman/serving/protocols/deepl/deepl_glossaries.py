"""The protocol of DeepL: glossaries of one pair of languages (v2) or of several (v3)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from starlette.requests import Request as WebRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from dragoman.serving.glossaries import (
    Dictionary,
    StoredGlossary,
    read_entries,
    write_entries,
)
from dragoman.serving.protocols.deepl.deepl_common import (
    find_deepl_client,
    find_state,
    match_code,
    write_deepl_error,
)
from dragoman.serving.protocols.request_parameters import (
    RequestParameters,
    make_route,
    read_parameters,
)
from dragoman.serving.service import Service
from dragoman.serving.service_types import Client, ServiceError

LONGEST_NAME = 1024
TSV = "text/tab-separated-values"


def routes() -> list[BaseRoute]:
    """List the routes."""
    several, one = "/v3/glossaries", "/v3/glossaries/{glossary_id}"
    return [
        make_route("/v2/glossary-language-pairs", _pairs, ["GET"], write_deepl_error),
        make_route("/v2/glossaries", _create, ["POST"], write_deepl_error),
        make_route("/v2/glossaries", _list, ["GET"], write_deepl_error),
        make_route("/v2/glossaries/{glossary_id}", _get, ["GET"], write_deepl_error),
        make_route("/v2/glossaries/{glossary_id}", _delete, ["DELETE"], write_deepl_error),
        make_route("/v2/glossaries/{glossary_id}/entries", _entries, ["GET"], write_deepl_error),
        make_route(several, _create_several, ["POST"], write_deepl_error),
        make_route(several, _list_all, ["GET"], write_deepl_error),
        make_route(one, _get_any, ["GET"], write_deepl_error),
        make_route(one, _edit, ["PATCH"], write_deepl_error),
        make_route(one, _delete, ["DELETE"], write_deepl_error),
        make_route(f"{one}/entries", _entries_of_pair, ["GET"], write_deepl_error),
        make_route(f"{one}/dictionaries", _put_dictionary, ["PUT"], write_deepl_error),
        make_route(f"{one}/dictionaries", _delete_dictionary, ["DELETE"], write_deepl_error),
    ]


async def _pairs(request: WebRequest) -> Response:
    """List the language pairs that support glossaries."""
    await find_deepl_client(request, await read_parameters(request))
    pairs = sorted({(each.source, each.target) for each in request.app.state.service.models()})
    listed = [{"source_lang": source, "target_lang": target} for source, target in pairs]
    return JSONResponse({"supported_languages": listed})


async def _create(request: WebRequest) -> Response:
    """Create a glossary of one pair of languages."""
    parameters = await read_parameters(request)
    client = await find_deepl_client(request, parameters)
    glossary = await _keep(request, client, _read_name(parameters), [parameters])
    return JSONResponse(_write(glossary), status_code=201)


async def _create_several(request: WebRequest) -> Response:
    """Create a glossary of several pairs of languages."""
    parameters = await read_parameters(request)
    client = await find_deepl_client(request, parameters)
    name, sent = _read_name(parameters), parameters.objects("dictionaries")
    if not sent:
        raise ServiceError("bad_request", "Parameter 'dictionaries' not specified.")
    return JSONResponse(_write_any(await _keep(request, client, name, sent)), status_code=201)


async def _keep(
    request: WebRequest, client: Client, name: str, sent: Sequence[RequestParameters]
) -> StoredGlossary:
    """Store a glossary, on a thread: a million characters take a second."""
    state, pairs = find_state(request), _read_pairs(request, sent)
    return await state.change_glossaries(
        lambda: state.glossaries.create(
            client.name, name=name, dictionaries=_read_dictionaries(sent, pairs)
        )
    )


async def _edit(request: WebRequest) -> Response:
    """Rename a glossary, add dictionaries to it, or entries to those that it has."""
    parameters = await read_parameters(request)
    client = await find_deepl_client(request, parameters)
    sent = parameters.objects("dictionaries")
    name = _read_name(parameters) if not sent or "name" in parameters.values else None
    pairs = _read_pairs(request, sent)

    def _change(glossary: StoredGlossary) -> StoredGlossary:
        kept = {each.pair: each for each in glossary.dictionaries}
        for each in _read_dictionaries(sent, pairs):
            old = kept.get(each.pair)
            kept[each.pair] = each if old is None else old.merge(each)
        return replace(glossary, name=name or glossary.name, dictionaries=tuple(kept.values()))

    changed = await _update(request, client, _change)
    return JSONResponse(_write_any(changed))


async def _put_dictionary(request: WebRequest) -> Response:
    """Replace the dictionary of a pair of languages, or add it."""
    parameters = await read_parameters(request)
    client = await find_deepl_client(request, parameters)
    pairs = _read_pairs(request, [parameters])

    def _change(glossary: StoredGlossary) -> StoredGlossary:
        return _put(glossary, pairs[0], _read_dictionaries([parameters], pairs))

    changed = await _update(request, client, _change)
    found = changed.find(*pairs[0])
    assert found is not None
    return JSONResponse(_write_dictionary(found))


async def _delete_dictionary(request: WebRequest) -> Response:
    """Delete the dictionary of a pair of languages."""
    parameters = await read_parameters(request)
    client = await find_deepl_client(request, parameters)
    pair = _read_pair(request, parameters)

    def _change(glossary: StoredGlossary) -> StoredGlossary:
        _find_dictionary(glossary, pair)
        return _put(glossary, pair, ())

    await _update(request, client, _change)
    return Response(status_code=204)


async def _update(
    request: WebRequest, client: Client, change: Callable[[StoredGlossary], StoredGlossary]
) -> StoredGlossary:
    """Change the glossary that a request names."""
    state, glossary_id = find_state(request), request.path_params["glossary_id"]
    return await state.change_glossaries(state.glossaries.update, client.name, glossary_id, change)


def _put(
    glossary: StoredGlossary, pair: tuple[str, str], new: tuple[Dictionary, ...]
) -> StoredGlossary:
    """Replace the dictionary of a pair by others."""
    others = (each for each in glossary.dictionaries if each.pair != pair)
    return replace(glossary, dictionaries=(*others, *new))


async def _list(request: WebRequest) -> Response:
    """List a client's glossaries of one pair of languages."""
    client = await find_deepl_client(request, await read_parameters(request))
    state = find_state(request)
    listed = await state.find_glossaries(state.glossaries.list, client.name)
    return JSONResponse(
        {"glossaries": [_write(each) for each in listed if len(each.dictionaries) == 1]}
    )


async def _list_all(request: WebRequest) -> Response:
    """List a client's glossaries."""
    client = await find_deepl_client(request, await read_parameters(request))
    state = find_state(request)
    listed = await state.find_glossaries(state.glossaries.list, client.name)
    return JSONResponse({"glossaries": [_write_any(each) for each in listed]})


async def _get(request: WebRequest) -> Response:
    """Describe a glossary of one pair of languages."""
    return JSONResponse(_write(await _find(request)))


async def _get_any(request: WebRequest) -> Response:
    """Describe a glossary."""
    return JSONResponse(_write_any(await _find(request)))


async def _entries(request: WebRequest) -> Response:
    """Return the entries of a glossary of one pair of languages."""
    entries = _single(await _find(request)).entries
    return Response(write_entries(entries), media_type=TSV)


async def _entries_of_pair(request: WebRequest) -> Response:
    """Return the entries of a glossary for a pair of languages."""
    glossary = await _find(request)
    found = _find_dictionary(glossary, _read_pair(request, await read_parameters(request)))
    entries = {"entries": write_entries(found.entries), "entries_format": "tsv"}
    written = {"source_lang": found.source, "target_lang": found.target, **entries}
    return JSONResponse({"dictionaries": [written]})


async def _delete(request: WebRequest) -> Response:
    """Delete a glossary."""
    client = await find_deepl_client(request, await read_parameters(request))
    state = find_state(request)
    glossary_id = request.path_params["glossary_id"]
    await state.change_glossaries(state.glossaries.delete, client.name, glossary_id)
    return Response(status_code=204)


async def _find(request: WebRequest) -> StoredGlossary:
    client = await find_deepl_client(request, await read_parameters(request))
    state, glossary_id = find_state(request), request.path_params["glossary_id"]
    return await state.find_glossaries(state.glossaries.get, client.name, glossary_id)


def _find_dictionary(glossary: StoredGlossary, pair: tuple[str, str]) -> Dictionary:
    found = glossary.find(*pair)
    if found is None:
        raise ServiceError("not_found", f"the glossary has no dictionary {' to '.join(pair)}")
    return found


def _single(glossary: StoredGlossary) -> Dictionary:
    """Return the only dictionary, or raise: version 2 knows no others."""
    if len(glossary.dictionaries) != 1:
        raise ServiceError(
            "not_found", "the glossary has several dictionaries, or none; ask /v3/glossaries"
        )
    return glossary.dictionaries[0]


def _read_name(parameters: RequestParameters) -> str:
    name = _required(parameters, "name")
    if len(name) > LONGEST_NAME:
        raise ServiceError(
            "bad_request", f"Parameter 'name' has more than {LONGEST_NAME} characters."
        )
    return name


def _read_pair(request: WebRequest, parameters: RequestParameters) -> tuple[str, str]:
    """Read a pair of languages that a model translates."""
    service: Service = request.app.state.service
    source = match_code(service, parameters.text("source_lang"), "source")
    target = match_code(service, parameters.text("target_lang"), "target")
    if (source, target) not in {(each.source, each.target) for each in service.models()}:
        raise ServiceError("bad_request", "Unsupported glossary source and target language pair.")
    return source, target


def _read_pairs(request: WebRequest, sent: Sequence[RequestParameters]) -> list[tuple[str, str]]:
    """Read the pairs of languages of dictionaries, and check that their entries are there."""
    pairs = [_read_pair(request, each) for each in sent]
    twice = next((pair for pair in pairs if pairs.count(pair) > 1), None)
    if twice is not None:
        raise ServiceError("bad_request", f"two dictionaries are {' to '.join(twice)}; join them")
    for each in sent:
        _required(each, "entries")
        _required(each, "entries_format")
    return pairs


def _read_dictionaries(
    sent: Sequence[RequestParameters], pairs: Sequence[tuple[str, str]]
) -> tuple[Dictionary, ...]:
    """Read the entries of dictionaries."""
    return tuple(
        Dictionary(
            source=source,
            target=target,
            entries=read_entries(
                _required(each, "entries"), _required(each, "entries_format").lower()
            ),
        )
        for each, (source, target) in zip(sent, pairs, strict=True)
    )


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
        **_write_dictionary(_single(glossary)),
        "creation_time": _write_time(glossary),
    }


def _write_any(glossary: StoredGlossary) -> dict[str, object]:
    return {
        "glossary_id": glossary.glossary_id,
        "name": glossary.name,
        "dictionaries": [_write_dictionary(each) for each in glossary.dictionaries],
        "creation_time": _write_time(glossary),
    }


def _write_dictionary(dictionary: Dictionary) -> dict[str, object]:
    return {
        "source_lang": dictionary.source,
        "target_lang": dictionary.target,
        "entry_count": len(dictionary.entries),
    }


def _write_time(glossary: StoredGlossary) -> str:
    # DeepL's clients require fractional seconds.
    return glossary.created.strftime("%Y-%m-%dT%H:%M:%S.%f+00:00")
