"""Shared parts of DeepL's protocol: codes, keys, formality, glossaries, errors."""

from collections.abc import Sequence
from typing import cast, get_args

from starlette.requests import Request as WebRequest
from starlette.responses import JSONResponse, Response

from dragoman.serving.documents.documents import FindTerms
from dragoman.serving.languages import match_language
from dragoman.serving.protocols.request_parameters import (
    RequestParameters,
    find_client,
    read_bearer,
)
from dragoman.serving.service import Service
from dragoman.serving.service_types import Client, Formality, ServiceError
from dragoman.serving.state.server_state import ServerState

STATUS = {
    "bad_request": 400,
    "unknown_language": 400,
    "too_long": 413,
    "too_many_texts": 400,
    "missing_key": 403,
    "bad_key": 403,
    "forbidden": 403,
    "quota": 456,
    "not_found": 404,
    "too_many_requests": 429,
    "overloaded": 429,
    "not_ready": 503,
    "cancelled": 503,
    "failed": 500,
}
MOST_GLOSSARY_IDS = 5


def write_deepl_error(error: ServiceError) -> Response:
    """Write an error response."""
    message = error.message
    body = {}
    if error.kind == "unknown_language":
        parameter = error.details.get("parameter", "target")
        message = f"Value for '{parameter}_lang' not supported."
        body["detail"] = error.message
    elif error.kind == "too_long":
        message = f"Request Entity Too Large: {message}"
    return JSONResponse({"message": message, **body}, status_code=STATUS[error.kind])


async def find_deepl_client(request: WebRequest, parameters: RequestParameters) -> Client:
    """Authenticate the client of a request."""
    key = read_bearer(request, "DeepL-Auth-Key") or parameters.text("auth_key")
    return await find_client(request, key)


def match_code(service: Service, code: str | None, side: str) -> str:
    """Match a client’s language code, or raise."""
    if not code:
        raise ServiceError("bad_request", f"Parameter '{side}_lang' not specified.")
    found = match_language(code, [each.code for each in service.languages()])
    if found is None:
        raise ServiceError(
            "unknown_language",
            f"{code[:80]} is not supported",
            details={"language": code, "parameter": side},
        )
    return found


def write_code(code: str) -> str:
    """Format a language code as DeepL does."""
    return code.replace("_", "-").upper()


def read_formality(parameters: RequestParameters, service: Service) -> Formality | None:
    """Read the formality, and raise if it is demanded of a language that no model writes so.

    Parameters
    ----------
    parameters : RequestParameters
        What a client sends, with the target language as it names that.
    service : Service
        Has the models; whether the one that translates knows the formality shows later.
    """
    said = (parameters.text("formality") or "default").lower()
    if said == "default":
        return None
    if said not in get_args(Formality):
        raise ServiceError("bad_request", "Value for 'formality' not supported.")
    named = parameters.text("target_lang") or ""
    if said in ("more", "less") and said not in formality_of(
        service, match_code(service, named, "target")
    ):
        raise ServiceError(
            "bad_request", f"Target language {named[:80]} does not support formality."
        )
    return cast(Formality, said)


def formality_of(service: Service, target: str) -> frozenset[str]:
    """Tell which formalities some model that writes a language has."""
    models = [each for each in service.models() if each.target == target]
    return frozenset().union(*(each.formality for each in models))


async def read_glossaries(
    request: WebRequest,
    parameters: RequestParameters,
    client: Client,
    languages: tuple[str | None, str],
) -> FindTerms:
    """Look up the glossaries that a client names.

    Returns
    -------
    FindTerms
        Finds their terms in texts; of two glossaries with the same term the first counts.
    """
    one = parameters.text("glossary_id")
    many = [each for each in parameters.texts("glossary_ids") for each in each.split(",") if each]
    if one and many:
        raise ServiceError("bad_request", "Send either 'glossary_id' or 'glossary_ids'.")
    if len(many) > MOST_GLOSSARY_IDS:
        raise ServiceError(
            "bad_request", f"More than {MOST_GLOSSARY_IDS} values for 'glossary_ids'."
        )
    wanted = [one] if one else many
    if wanted and languages[0] is None:
        raise ServiceError("bad_request", "A glossary needs parameter 'source_lang'.")
    state = find_state(request)
    found = [
        await state.find_glossaries(state.glossaries.get, client.name, glossary_id.strip())
        for glossary_id in wanted
    ]
    source, target = languages
    dictionaries = [each.find(source, target) for each in found if source is not None]
    if None in dictionaries:
        raise ServiceError("bad_request", "The glossary is for another pair of languages.")

    def find_terms(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
        terms: dict[str, tuple[str, str]] = {}
        for dictionary in filter(None, dictionaries):
            for term in dictionary.find_terms(texts):
                terms.setdefault(term[0].casefold(), term)
        return tuple(terms.values())

    return find_terms


def find_state(request: WebRequest) -> ServerState:
    """Return the state in which the glossaries of all clients are."""
    state: ServerState = request.app.state.keys.state
    return state
