"""The protocol of DeepL, version 2: texts, languages and usage."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from starlette.requests import Request as WebRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from dragoman.serving.documents.documents import find_source, translate_document
from dragoman.serving.documents.text_documents import Document, Translated
from dragoman.serving.markup.markup import parse_markup
from dragoman.serving.protocols.deepl import deepl_documents, deepl_glossaries
from dragoman.serving.protocols.deepl.deepl_common import (
    find_deepl_client,
    formality_of,
    match_code,
    read_formality,
    read_glossaries,
    write_code,
    write_deepl_error,
)
from dragoman.serving.protocols.request_parameters import (
    RequestParameters,
    make_route,
    read_parameters,
    translate_and_charge,
)
from dragoman.serving.service import Service
from dragoman.serving.service_types import Answer, Client, Markup, Request, ServiceError

NO_LIMIT = 1_000_000_000_000
"""What DeepL says where there is no limit."""

# DeepL’s clients require a regional variant of English and Portuguese as target.
_VARIANTS = {
    "en": (("EN-GB", "English (British)"), ("EN-US", "English (American)")),
    "pt": (("PT-BR", "Portuguese (Brazilian)"), ("PT-PT", "Portuguese (European)")),
}
_UNSUPPORTED = ("style_id", "translation_memory_id", "custom_instructions")
_MODEL_TYPES = {
    "latency_optimized": "latency_optimized",
    "quality_optimized": "quality_optimized",
    "prefer_quality_optimized": "quality_optimized",
}


def routes() -> list[BaseRoute]:
    """List the routes."""
    return [
        make_route("/v2/translate", _translate, ["GET", "POST"], write_deepl_error),
        make_route("/v2/languages", _languages, ["GET"], write_deepl_error),
        make_route("/v2/usage", _usage, ["GET"], write_deepl_error),
        *deepl_documents.routes(),
        *deepl_glossaries.routes(),
    ]


@dataclass(frozen=True, kw_only=True)
class _Tags:
    """Options of a client for the tags in its texts."""

    markup: Markup
    ignore_tags: frozenset[str]
    splitting_tags: frozenset[str]
    inline_tags: frozenset[str]
    finds_outline: bool

    @property
    def is_special(self) -> bool:
        """Whether options go beyond those of the service."""
        said = self.splitting_tags or self.inline_tags or not self.finds_outline
        return self.markup != "text" and bool(said)


async def _translate(request: WebRequest) -> Response:
    """Translate texts."""
    parameters = await read_parameters(request)
    client = await find_deepl_client(request, parameters)
    _refuse_unsupported(parameters)
    service: Service = request.app.state.service
    texts = parameters.texts("text")
    if not texts:
        raise _bad_request("Parameter 'text' not specified.")
    _check_size(service, texts, sum(map(len, texts)))  # Before anything is looked for in them.
    target = match_code(service, parameters.text("target_lang"), "target")
    said_source = parameters.text("source_lang")
    source = match_code(service, said_source, "source") if said_source else None
    formality = read_formality(parameters, service)
    tags = _read_tags(parameters)
    texts, splits_sentences = _prepare_texts(parameters, texts, tags)
    model_type = _read_choice(parameters, "model_type", (*_MODEL_TYPES, ""))
    names_glossary = parameters.values.get("glossary_id") or parameters.values.get("glossary_ids")
    find_terms = await read_glossaries(request, parameters, client, (source, target))
    wanted = Request(
        texts=tuple(texts),
        source=source,
        target=target,
        client=client,
        markup=tags.markup,
        formality=formality,
        ignore_tags=tags.ignore_tags,
        splits_sentences=splits_sentences,
        beam_size=1 if model_type == "latency_optimized" else None,
        terms=find_terms(_visible(texts, tags)) if names_glossary else (),
    )
    if tags.is_special:
        answers = await _translate_special(request, wanted, tags)
    else:
        answers = await translate_and_charge(request, wanted)
    has_bill = parameters.flag("show_billed_characters", False)
    translations = [_write(each, model_type, has_bill) for each in answers]
    return JSONResponse({"translations": translations})


def _write(answer: Answer, model_type: str, has_bill: bool) -> dict[str, object]:
    written: dict[str, object] = {
        "detected_source_language": write_code(answer.source),
        "text": answer.text,
    }
    if has_bill:
        written["billed_characters"] = answer.num_characters
    if model_type:
        written["model_type_used"] = _MODEL_TYPES[model_type]
    return written


def _refuse_unsupported(parameters: RequestParameters) -> None:
    for name in _UNSUPPORTED:
        if parameters.values.get(name):
            raise _bad_request(f"Parameter '{name}' is not supported by this server; leave it out.")


def _read_tags(parameters: RequestParameters) -> _Tags:
    markup = _read_choice(parameters, "tag_handling", ("xml", "html", ""))
    _read_choice(parameters, "tag_handling_version", ("v1", "v2", ""))
    return _Tags(
        markup=cast(Markup, markup or "text"),
        ignore_tags=parameters.words("ignore_tags"),
        splitting_tags=parameters.words("splitting_tags"),
        inline_tags=parameters.words("non_splitting_tags"),
        finds_outline=parameters.flag("outline_detection", True),
    )


def _read_choice(parameters: RequestParameters, name: str, known: Sequence[str]) -> str:
    value = parameters.text(name) or ""
    if value not in known:
        raise _bad_request(f"Value for '{name}' not supported.")
    return value


def _prepare_texts(
    parameters: RequestParameters, texts: list[str], tags: _Tags
) -> tuple[list[str], bool]:
    """Set sentence splitting; replace line breaks by spaces where they do not split."""
    values = parameters.values.get("split_sentences", [])
    said = str(values[0]).lower() if len(values) == 1 else "1"
    said = {"true": "1", "false": "0"}.get(said, said)
    if len(values) > 1 or said not in ("0", "1", "nonewlines"):
        raise _bad_request("Value for 'split_sentences' not supported.")
    if said == "nonewlines" and tags.markup != "html":
        texts = [_join_lines(text) for text in texts]
    return texts, said != "0"


def _join_lines(text: str) -> str:
    stripped = (line.strip() for line in text.split("\n"))
    return " ".join(line for line in stripped if line)


def _visible(texts: Sequence[str], tags: _Tags) -> Sequence[str]:
    """Return the visible text, in which glossary terms are searched."""
    if tags.markup == "text":
        return texts
    markup = tags.markup
    return [
        segment
        for text in texts
        for segment in parse_markup(text, markup, tags.ignore_tags).segments
    ]


async def _translate_special(
    web_request: WebRequest, request: Request, tags: _Tags
) -> list[Answer]:
    """Translate texts with the client’s own splitting tags."""
    service: Service = web_request.app.state.service
    keys = web_request.app.state.keys
    num_characters = sum(map(len, request.texts))
    await keys.charge(request.client, num_characters)
    answers: list[Answer] = []
    try:
        for text in request.texts:
            answers.append(await _translate_marked(service, text, request, tags))
    finally:
        if len(answers) < len(request.texts):
            keys.refund(request.client, num_characters)
    return answers


def _check_size(service: Service, texts: Sequence[str], num_characters: int) -> None:
    """Raise if texts exceed the limits, where the service sees only parts of them."""
    for kind, things, length, limit in (
        ("too_many_texts", "texts", len(texts), service.options.max_texts),
        ("too_long", "characters", num_characters, service.options.max_characters),
    ):
        if length > limit:
            raise ServiceError(
                cast(Literal["too_long", "too_many_texts"], kind),
                f"the request has {length:,} {things}, but {limit:,} are the most",
                details={"length": length, "limit": limit},
            )


async def _translate_marked(service: Service, text: str, request: Request, tags: _Tags) -> Answer:
    marked = parse_markup(
        text,
        cast(Literal["html", "xml"], tags.markup),
        tags.ignore_tags,
        splitting_tags=tags.splitting_tags,
        inline_tags=tags.inline_tags,
        finds_outline=tags.finds_outline,
    )

    def _rebuild(translations: Sequence[Translated]) -> bytes:
        return marked.rebuild(translations).encode()

    segments = marked.segments
    source = request.source or find_source(service, segments, request.target)
    plain = replace(request, markup="text", ignore_tags=frozenset(), source=source)
    written = await translate_document(service, Document(texts=segments, write=_rebuild), plain)
    return Answer(text=written.decode(), source=source, path=(source,), num_characters=len(text))


async def _languages(request: WebRequest) -> Response:
    """List the languages."""
    parameters = await read_parameters(request)
    await find_deepl_client(request, parameters)
    kind = _read_choice(parameters, "type", ("source", "target", "")) or "source"
    service: Service = request.app.state.service
    languages = service.languages()
    if kind == "source":
        listed = [
            {"language": write_code(each.code), "name": each.name}
            for each in languages
            if each.targets
        ]
        return JSONResponse(listed)
    codes = {code for each in languages for code in each.targets}
    pairs = [
        (pair, bool(formality_of(service, each.code)))
        for each in languages
        if each.code in codes
        for pair in _VARIANTS.get(each.code, ((write_code(each.code), each.name),))
    ]
    return JSONResponse(
        [
            {"language": code, "name": name, "supports_formality": has_formality}
            for (code, name), has_formality in pairs
        ]
    )


async def _usage(request: WebRequest) -> Response:
    """Report the characters used and the quota."""
    client: Client = await find_deepl_client(request, await read_parameters(request))
    count, limit = await request.app.state.keys.usage(client)
    return JSONResponse(
        {"character_count": count, "character_limit": NO_LIMIT if limit is None else limit}
    )


def _bad_request(message: str) -> ServiceError:
    return ServiceError("bad_request", message)
