"""Requests of the web page: parsing, validation and limits."""

import json
from typing import Any, NamedTuple

from starlette.requests import Request as WebRequest

from dragoman.decoding.translator import Translator
from dragoman.insight.ablation import Head
from dragoman.serving.glossaries import MOST_OF_A_TERM
from dragoman.serving.service import Service
from dragoman.serving.service_types import Client, ServedModel, ServiceError

LONGEST_LOOK = 160
"""Subwords of a sentence, or of its translation, that one can look into."""

MOST_MASKS = 4000
"""Of one explanation."""

MOST_WORK = 400_000
"""Subwords that the model reads for one explanation, in all its masks."""

MOST_HEADS_OFF = 256

MOST_TERMS_SENT = 2000
"""Terms of a glossary in a request, of all languages."""


class JsonFields:
    """Typed access to the fields of a JSON object.

    Parameters
    ----------
    plain : dict[str, Any]
        The object.
    """

    def __init__(self, plain: dict[str, Any]) -> None:
        self._plain = plain

    def text(self, name: str, default: str | None = None) -> str:
        """Read a string."""
        value = self._plain.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise ServiceError("bad_request", f"“{name}” must be a text")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ServiceError("bad_request", f"“{name}” has half a character in it") from None
        return value

    def number(self, name: str, lowest: int, highest: int, default: int) -> int:
        """Read an integer within bounds."""
        value = self._plain.get(name)
        if value is None:
            return default
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if not is_number or not lowest <= value <= highest:
            raise ServiceError("bad_request", f"“{name}” must be from {lowest} to {highest}")
        return int(value)

    def heads(self, name: str) -> tuple[Head, ...]:
        """Read a list of attention heads."""
        value = self._plain.get(name) or []
        is_list = isinstance(value, list) and len(value) <= MOST_HEADS_OFF
        if not is_list or not all(_is_head(each) for each in value):
            raise ServiceError("bad_request", f'“{name}” must be a list like [["cross", 1, 3]]')
        return tuple(dict.fromkeys(Head(*each) for each in value))

    def terms(self, name: str) -> dict[str, tuple[tuple[str, str], ...]]:
        """Read a glossary: pairs of terms for each source language."""
        value = self._plain.get(name) or {}
        is_known = isinstance(value, dict) and all(
            isinstance(each, list) for each in value.values()
        )
        pairs = [pair for each in value.values() for pair in each] if is_known else []
        if not is_known or not all(_is_term(each) for each in pairs):
            raise ServiceError(
                "bad_request",
                f'“{name}” must be like {{"en": [["dog", "chien"]]}}, with at most '
                f"{MOST_OF_A_TERM} characters a term",
            )
        if len(pairs) > MOST_TERMS_SENT:
            raise ServiceError(
                "bad_request",
                f"“{name}” has {len(pairs):,} terms; {MOST_TERMS_SENT:,} are the most",
            )
        return {code: tuple((one, other) for one, other in each) for code, each in value.items()}


class SentencePair(NamedTuple):
    """A sentence, its translation and the model to inspect."""

    model: str
    source: str
    translation: str


async def read_fields(request: WebRequest) -> JsonFields:
    """Read the JSON body."""
    # Other content types can be sent cross-site without a CORS preflight.
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise ServiceError("bad_request", "Content-Type must be application/json")
    try:
        plain = json.loads(await request.body())
    except (ValueError, RecursionError):
        plain = None
    if not isinstance(plain, dict):
        raise ServiceError("bad_request", "the request must be a JSON object")
    return JsonFields(plain)


def check_origin(request: WebRequest) -> None:
    """Refuse cross-site requests of browsers; other programs may ask.

    Notes
    -----
    Browsers say in Sec-Fetch-Site whose page asks, where a server is on this machine or has TLS,
    and otherwise in Origin, of all but plain questions to the page's own server.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        is_own = site in ("same-origin", "none")
    else:
        scheme, _, place = (origin or "").lower().partition("://")
        host = request.headers.get("host", "").lower()
        usual_port = {"http": ":80", "https": ":443"}.get(scheme, "")
        is_own = origin is None or (bool(place) and place == host.removesuffix(usual_port))
    if not is_own:
        raise ServiceError(
            "forbidden", "this is for the server's own page; use /translate, described in /spec"
        )


def service_of(request: WebRequest) -> Service:
    """Return the service; raise if no models are served."""
    service: Service | None = getattr(request.app.state, "service", None)
    if service is None or not service.models():
        raise ServiceError("not_found", "no models are served here, only training runs")
    return service


async def identify(request: WebRequest) -> Client:
    """Identify the client."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    address = request.client.host if request.client else ""
    raw_key = key.strip() if scheme.lower() == "bearer" else None
    client: Client = await request.app.state.keys.authenticate(raw_key, address)
    return client


async def charge(request: WebRequest, num_characters: int) -> Client:
    """Identify the client and charge its quota."""
    client = await identify(request)
    await request.app.state.keys.charge(client, num_characters)
    return client


def read_pair(fields: JsonFields) -> SentencePair:
    """Take a sentence pair and the name of a model."""
    return SentencePair(fields.text("model"), fields.text("source"), fields.text("translation", ""))


def find_model(service: Service, name: str) -> ServedModel:
    """Find a model by its name."""
    for each in service.models():
        if each.name == name:
            return each
    raise ServiceError("not_found", f"no model is called “{name}”")


def check_length(translator: Translator, pair: SentencePair, most: int = LONGEST_LOOK) -> int:
    """Raise if a pair is too long to inspect."""
    vocabularies = translator.folder.vocabularies
    longest = min(most, translator.folder.options.max_length or most)
    texts = (("sentence", vocabularies.source, pair.source),
             ("translation", vocabularies.target, pair.translation))  # fmt: skip
    total = 0
    for name, vocabulary, text in texts:
        # Bound the length before tokenising: subwords have at most a few dozen characters.
        length = len(vocabulary.encode([text[: 64 * longest]])[0]) + 1
        if length > longest:
            raise ServiceError(
                "too_long",
                f"the {name} is too long to look into: more than {longest - 1} subwords",
                details={"limit": longest - 1},
            )
        total += length
    return total


def check_work(num_masks: int, num_tokens: int) -> None:
    """Raise if an explanation would need too many forward passes."""
    if num_masks * num_tokens > MOST_WORK:
        most = MOST_WORK // num_tokens
        raise ServiceError(
            "bad_request", f"“masks” must be at most {most} for a sentence of this length"
        )


def _is_term(value: object) -> bool:
    """Whether a value is a term and its translation."""
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(
            isinstance(each, str) and each.strip() and len(each) <= MOST_OF_A_TERM for each in value
        )
    )


def _is_head(value: object) -> bool:
    """Whether a value names an attention head."""
    return (
        isinstance(value, list)
        and len(value) == 3
        and isinstance(value[0], str)
        and all(isinstance(each, int) and not isinstance(each, bool) for each in value[1:])
    )


async def read_question(request: WebRequest) -> tuple[SentencePair, JsonFields]:
    """Read sentence pair, model and client of a request."""
    service = service_of(request)
    fields = await read_fields(request)
    await charge(request, 0)
    pair = read_pair(fields)
    find_model(service, pair.model)
    return pair, fields
