"""Request plan: language, models and sentences of each text, and its answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from dragoman.serving.detection import Ranking, choose_source
from dragoman.serving.language_pairs import ServedModels
from dragoman.serving.languages import match_language, name_language
from dragoman.serving.markup.markup import ParsedMarkup, parse_markup
from dragoman.serving.options import ServeOptions
from dragoman.serving.sentence_translation import Candidate, SentenceTranslation
from dragoman.serving.service_types import (
    Answer,
    Formality,
    Request,
    ServedModel,
    ServiceError,
    Span,
)
from dragoman.serving.text_layout import TextLayout, split_layout
from dragoman.text.sentence_splitting import split_text

LONGEST_SHOWN = 80

_LanguagePath = tuple[str, float | None, tuple[ServedModel, ...]]
Detect = Callable[[Sequence[str]], Sequence[Ranking]]


@dataclass(frozen=True, kw_only=True)
class TextPlan:
    """How a text is translated: language, models, sentences.

    Parameters
    ----------
    text : str
        The text.
    source : str
        Its language.
    confidence : float | None
        How sure that is; None: the client said so.
    path : tuple[ServedModel, ...]
        The models that translate it, one after the other; nothing: it stays as it is.
    marked : ParsedMarkup | None
        Its tags; None: it has none.
    layouts : tuple[TextLayout, ...]
        The sentences of its segments; without tags there is one segment.
    """

    text: str
    source: str
    confidence: float | None
    path: tuple[ServedModel, ...]
    marked: ParsedMarkup | None
    layouts: tuple[TextLayout, ...]

    @property
    def sentences(self) -> list[str]:
        """List the sentences of all segments."""
        return [sentence for layout in self.layouts for sentence in layout.sentences]


def check_request(request: Request, options: ServeOptions) -> None:
    """Validate a request against the limits, or raise."""
    num_texts, length = len(request.texts), sum(map(len, request.texts))
    if num_texts > options.max_texts:
        raise ServiceError(
            "too_many_texts",
            f"the request has {num_texts:,} texts, but {options.max_texts:,} are the most",
            details={"limit": options.max_texts, "length": num_texts},
        )
    if length + len(request.prefix) > options.max_characters:
        raise ServiceError(
            "too_long",
            f"the request has {length:,} characters, but {options.max_characters:,} are the most",
            details={"limit": options.max_characters, "length": length},
        )
    widest = options.max_beam_size
    if not 0 <= request.num_alternatives < widest:
        raise _bad_request(
            f"{request.num_alternatives:,} alternatives: must be from 0 to {widest - 1}"
        )
    if request.beam_size is not None and not 1 <= request.beam_size <= widest:
        raise _bad_request(f"a beam of {request.beam_size:,}: must be from 1 to {widest}")
    if request.prefix and (num_texts != 1 or request.markup != "text"):
        raise _bad_request("a beginning can be given for a single text without tags only")
    strings = [*request.texts, request.prefix, *(side for term in request.terms for side in term)]
    if any(not _is_unicode(each) for each in strings):
        raise _bad_request(
            "the text has half a surrogate pair, which is no character; leave it out"
        )


def plan_texts(request: Request, models: ServedModels, detect: Detect) -> list[TextPlan]:
    """Find language and models of each text and split it into sentences."""
    marked = [_parse(text, request) for text in request.texts]
    segments: list[Sequence[str]] = [
        (text,) if each is None else each.segments
        for text, each in zip(request.texts, marked, strict=True)
    ]
    paths = _find_paths(["\n".join(each) for each in segments], request, models, detect)
    plans = []
    for text, each, parts, (source, confidence, path) in zip(
        request.texts, marked, segments, paths, strict=True
    ):
        choose_formality(request.formality, path)  # Refused before anything is translated.
        split = _make_split(path, source, request)
        plan = TextPlan(
            text=text,
            source=source,
            confidence=confidence,
            path=path,
            marked=each,
            layouts=tuple(split_layout(part, split) for part in parts),
        )
        plans.append(plan)
    return plans


def choose_formality(
    wanted: Formality | None, path: Sequence[ServedModel]
) -> Literal["more", "less"] | None:
    """Choose the formality of the model that writes the translation, or refuse what it has not.

    Parameters
    ----------
    wanted : Formality | None
        What the client says.
    path : Sequence[ServedModel]
        The models that translate one after the other; nothing: the text stays as it is.

    Returns
    -------
    Literal["more", "less"] | None
        None: as the model likes, also where the client only prefers what the model has not.
    """
    if wanted is None or not path:
        return None
    kind: Literal["more", "less"] = "more" if wanted.endswith("more") else "less"
    if kind in path[-1].formality:
        return kind
    if wanted == kind:
        raise ServiceError(
            "bad_request",
            f"Target language {path[-1].target.upper()} does not support formality.",
            details={"parameter": "formality"},
        )
    return None


def _parse(text: str, request: Request) -> ParsedMarkup | None:
    """Find the tags of a text; None: it can have none."""
    if request.markup == "text":
        return None
    return parse_markup(text, request.markup, request.ignore_tags)


def split_planned(text: str, request: Request, models: ServedModels, detect: Detect) -> list[str]:
    """Split a text into the sentences that would be translated.

    Returns
    -------
    list[str]
        The parts, which joined give back the text; a sentence that the model cannot read whole is
        one of them.
    """
    [(source, _, path)] = _find_paths([text], request, models, detect)
    return _make_split(path, source, request, cuts_long=False)(text)


def _make_split(
    path: Sequence[ServedModel], source: str, request: Request, *, cuts_long: bool = True
) -> Callable[[str], list[str]]:
    """Return the sentence splitter of the first model's translator."""
    translator = path[0].translator if path else None
    if translator is None:
        return partial(split_text, language=source)
    said = {} if request.splits_sentences else {"split_sentences": "off"}
    options = translator.options_with(said)
    return partial(translator.split, options=options, cuts_long=cuts_long)


def write_answer(
    plan: TextPlan, translations: Sequence[SentenceTranslation], request: Request
) -> Answer:
    """Join the translated sentences of a text into its answer."""
    if not plan.path:
        return Answer(
            text=plan.text,
            source=plan.source,
            confidence=plan.confidence,
            path=(plan.source,),
            num_characters=len(plan.text),
        )
    most = max((len(each.candidates) for each in translations), default=1)
    written = [_write(plan, translations, rank) for rank in range(most)]
    texts = list(dict.fromkeys(text for text, _ in written))
    languages = (plan.source, *(model.target for model in plan.path))
    notes = [note for each in translations for note in each.notes]
    if len(plan.path) > 1:
        notes.insert(0, f"translated through {name_language(languages[1])} ({languages[1]})")
        if request.terms:
            notes.insert(1, "translated without the glossary: it has no terms of that language")
    return Answer(
        text=texts[0],
        alternatives=tuple(texts[1 : request.num_alternatives + 1]),
        source=plan.source,
        confidence=plan.confidence,
        alignment=written[0][1] if request.wants_alignment and plan.marked is None else (),
        translation_confidence=_mean_confidence(translations),
        path=languages,
        notes=tuple(dict.fromkeys(notes)),
        num_characters=len(plan.text),
    )


def join_pivot_translations(
    first: SentenceTranslation, second: SentenceTranslation
) -> SentenceTranslation:
    """Compose the translations into and from the pivot language.

    Returns
    -------
    SentenceTranslation
        What the sentence became: characters are linked if both are to the same ones in between, and
        it is good if it was translated well twice.
    """
    into = first.candidates[0]
    candidates = tuple(
        Candidate(
            each.text, _compose(into.spans, each.spans), _multiply(into.confidence, each.confidence)
        )
        for each in second.candidates
    )
    notes = (*first.notes, *second.notes)
    return SentenceTranslation(candidates, notes, first.num_tokens + second.num_tokens)


def _multiply(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one * other


def _mean_confidence(translations: Sequence[SentenceTranslation]) -> float | None:
    """Compute the share of sentences that can be expected to be good, if that was asked for."""
    found = [each.candidates[0].confidence for each in translations]
    known = [each for each in found if each is not None]
    return sum(known) / len(known) if known and len(known) == len(found) else None


def _compose(first: Sequence[Span], second: Sequence[Span]) -> tuple[Span, ...]:
    """Compose two alignments through the pivot text."""
    return tuple(
        dict.fromkeys(
            (*one[:2], *other[2:])
            for other in second
            for one in first
            if one[2] < other[1] and other[0] < one[3]
        )
    )


def _write(
    plan: TextPlan, translations: Sequence[SentenceTranslation], rank: int
) -> tuple[str, tuple[Span, ...]]:
    """Join the candidates of a rank; sentences with fewer use their last."""
    chosen = [each.candidates[min(rank, len(each.candidates) - 1)] for each in translations]
    place = 0
    segments = []
    for layout in plan.layouts:
        some = chosen[place : place + len(layout.sentences)]
        place += len(some)
        texts = [each.text for each in some]
        segments.append((layout.join(texts), layout.place(texts, [each.spans for each in some])))
    return (plan.marked.rebuild(segments), ()) if plan.marked is not None else segments[0]


def _find_paths(
    texts: Sequence[str], request: Request, models: ServedModels, detect: Detect
) -> list[_LanguagePath]:
    """Find the source language and the path of models of each text."""
    target = _match_language(request.target, "target", models)
    source = None if request.source is None else _match_language(request.source, "source", models)
    if request.model is not None:
        candidates = models.named(request.model)
        if not candidates:
            names = ", ".join(dict.fromkeys(each.name for each in models.all))
            raise ServiceError(
                "not_found", f"no model is called “{request.model}”; there are {names}"
            )
        fitting_model = (each for each in candidates if each.target == target)
        model = next(fitting_model, candidates[0])
        if target != model.target or source not in (None, model.source):
            raise _bad_request(
                f"model {model.name} translates {model.source} to {model.target}, not "
                f"{source or model.source} to {target}"
            )
        return [(model.source, None, (model,))] * len(texts)
    if source is not None:
        path = models.find_path(source, target)
        if path is None:
            raise _unsupported_pair(source, target)
        return [(source, None, path)] * len(texts)
    return [_choose_path(found, target, models) for found in detect(texts)]


def _choose_path(found: Ranking, target: str, models: ServedModels) -> _LanguagePath:
    """Choose the likeliest language from which the target can be reached."""
    paths = {code: models.find_path(code, target) for code, _ in found}
    fitting = {code for code, path in paths.items() if path is not None}
    code, confidence = choose_source(found, fitting, target)
    return code, confidence, paths[code] or ()


def _match_language(code: str, parameter: str, models: ServedModels) -> str:
    """Match a client’s language code, or raise."""
    found = match_language(code, models.codes)
    if found is None:
        shown = code if len(code) <= LONGEST_SHOWN else f"{code[:LONGEST_SHOWN]}…"
        raise ServiceError(
            "unknown_language",
            f"{shown} is not supported",
            details={"language": shown, "parameter": parameter},
        )
    return found


def _unsupported_pair(source: str, target: str) -> ServiceError:
    return ServiceError(
        "unknown_language",
        f"no model translates {source} to {target}",
        details={"language": target, "parameter": "target"},
    )


def _bad_request(message: str) -> ServiceError:
    return ServiceError("bad_request", message)


def _is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
