"""The protocol of Microsoft Translator since 2026: each text names its language and its targets."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request as WebRequest
from starlette.responses import JSONResponse, Response

from dragoman.serving.protocols.microsoft import find_microsoft_client, write_microsoft_error
from dragoman.serving.protocols.request_parameters import RequestParameters, translate_and_charge
from dragoman.serving.service_types import (
    Answer,
    Client,
    Formality,
    Markup,
    Request,
    ServiceError,
)

_MARKUP: dict[str, Markup] = {"plain": "text", "html": "html"}
_TONES: dict[str, Formality | None] = {"neutral": None, "formal": "more", "informal": "less"}
# What else a text or a target may ask for, and what of it asks for nothing.
_NO_WISHES = {
    "script": (),
    "profanityAction": ("noaction",),
    "gender": ("neutral",),
    "deploymentName": ("general",),
    "adaptiveDatasetId": (),
    "referenceTextPairs": (),
}


@dataclass(frozen=True)
class _Way:
    """How some of the texts are translated; those of one way are translated together."""

    source: str | None
    target: str
    markup: Markup
    formality: Formality | None


async def translate_microsoft_inputs(
    request: WebRequest, parameters: RequestParameters
) -> Response:
    """Translate each text into its targets."""
    client = await find_microsoft_client(request, parameters)
    inputs = parameters.objects("inputs")
    if not inputs:
        raise ServiceError("bad_request", "the body has no inputs")
    wanted = [(_read_text(each, number), _read_ways(each)) for number, each in enumerate(inputs)]
    _check_size(request, wanted)
    answers = await _translate(request, wanted, client)
    value = [
        _write([(way.target, answers[number, way]) for way in ways], is_detected=not ways[0].source)
        for number, (_, ways) in enumerate(wanted)
    ]
    return JSONResponse({"value": value})


async def _translate(
    request: WebRequest, wanted: Sequence[tuple[str, Sequence[_Way]]], client: Client
) -> dict[tuple[int, _Way], Answer]:
    """Translate the texts of each way together."""
    numbers: dict[_Way, list[int]] = {}
    for number, (_, ways) in enumerate(wanted):
        for way in dict.fromkeys(ways):
            numbers.setdefault(way, []).append(number)
    answers: dict[tuple[int, _Way], Answer] = {}
    for way, some in numbers.items():
        found = await translate_and_charge(
            request,
            Request(
                texts=tuple(wanted[number][0] for number in some),
                source=way.source,
                target=way.target,
                markup=way.markup,
                formality=way.formality,
                client=client,
            ),
        )
        answers.update({(number, way): each for number, each in zip(some, found, strict=True)})
    return answers


def _check_size(request: WebRequest, wanted: Sequence[tuple[str, Sequence[_Way]]]) -> None:
    """Raise if there is too much, where each text counts once for each target."""
    options = request.app.state.service.options
    if sum(len(ways) for _, ways in wanted) > options.max_texts:
        raise ServiceError("too_many_texts", "too many texts for so many languages; send fewer")
    if sum(len(text) * len(ways) for text, ways in wanted) > options.max_characters:
        raise ServiceError("too_long", "too long texts for so many languages; send fewer")


def _read_text(item: RequestParameters, number: int) -> str:
    text = item.text("text")
    if text is None:
        raise ServiceError("bad_request", f"item {number} of the inputs has no text")
    return text


def _read_ways(item: RequestParameters) -> list[_Way]:
    """Read how a text is to be translated, once for each of its targets."""
    _refuse_wishes(item)
    source = item.text("language") or None
    markup = _MARKUP.get((item.text("textType") or "plain").lower())
    if markup is None:
        raise ServiceError("bad_request", "textType must be plain or html")
    ways = []
    for target in item.objects("targets"):
        _refuse_wishes(target)
        tone = (target.text("tone") or "neutral").lower()
        if tone not in _TONES:
            raise ServiceError("bad_request", "tone must be formal, informal or neutral")
        language = target.text("language")
        if not language:
            raise _no_target()
        ways.append(_Way(source, language, markup, _TONES[tone]))
    if not ways:
        raise _no_target()
    return ways


def _refuse_wishes(item: RequestParameters) -> None:
    """Refuse what the server cannot do, rather than leave it undone."""
    for name, harmless in _NO_WISHES.items():
        values = item.values.get(name, [])
        if any(str(value).lower() not in harmless for value in values):
            raise ServiceError("bad_request", f"{name} is not supported by this server")


def _no_target() -> ServiceError:
    return ServiceError("unknown_language", "the target language is missing; say it in targets")


def _write(translated: Sequence[tuple[str, Answer]], *, is_detected: bool) -> dict[str, object]:
    """Write the translations of one text."""
    written: dict[str, object] = {
        "translations": [
            {"language": target, "sourceCharacters": answer.num_characters, "text": answer.text}
            for target, answer in translated
        ]
    }
    if is_detected:
        _, first = translated[0]
        share = round(first.confidence or 0.0, 2)
        written["detectedLanguage"] = {"language": first.source, "score": share}
    return written


def write_microsoft_inputs_error(error: ServiceError) -> Response:
    """Write an error response, whose code is text in this version."""
    return write_microsoft_error(error, is_code_text=True)
