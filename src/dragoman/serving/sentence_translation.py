"""Translate sentences on a model's thread, with constraints and alignment."""

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dragoman.decoding.constraints.constraints import (
    Constraints,
    PreparedConstraints,
    prepare_constraints,
)
from dragoman.decoding.constraints.glossary import Glossary, Term
from dragoman.decoding.constraints.spelling import fold_case
from dragoman.decoding.output.alignments import Aligner
from dragoman.decoding.translation import Translation
from dragoman.decoding.translator import Translator
from dragoman.errors import DragomanError, OptionError
from dragoman.serving.service_types import ServiceError, Span
from dragoman.text.normalise import normalise

MOST_GLOSSARIES = 16
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, kw_only=True)
class TranslationSettings:
    """Settings of a sentence; sentences with equal settings share a batch.

    Parameters
    ----------
    num_best : int
        The best translation and so many alternatives less one.
    beam_size : int | None
        How many hypotheses the search keeps; None: as the model says.
    prefix : str
        How the translation must begin.
    terms : tuple[tuple[str, str], ...]
        A glossary.
    wants_alignment : bool
        Whether to align the words.
    wants_confidence : bool
        Whether to say how probable it is that the translation is good.
    into : str | None
        The target language of a model that has several; None: it has one.
    formality : str | None
        “more” or “less”, of a model that knows the difference; None: as the model likes.
    splits_sentences : bool
        Whether it may be split after all, as the model's way is; what lies between two models may
        have become several sentences.
    """

    num_best: int = 1
    beam_size: int | None = None
    prefix: str = ""
    terms: tuple[tuple[str, str], ...] = ()
    wants_alignment: bool = False
    wants_confidence: bool = False
    into: str | None = None
    formality: str | None = None
    splits_sentences: bool = True


class SentenceTask(NamedTuple):
    """A sentence with its settings and, if it is encoded already, its subword ids."""

    text: str
    settings: TranslationSettings
    ids: list[int] | None = None


class Candidate(NamedTuple):
    """One translation, its character alignment, and the confidence in it if it was asked for."""

    text: str
    spans: tuple[Span, ...] = ()
    confidence: float | None = None


class SentenceTranslation(NamedTuple):
    """Candidate translations of a sentence, best first, with notes."""

    candidates: tuple[Candidate, ...]
    notes: tuple[str, ...] = ()
    num_tokens: int = 0

    @property
    def size(self) -> int:
        """Approximate size in characters, for the cache."""
        spans = sum(len(each.spans) for each in self.candidates)
        return sum(len(each.text) for each in self.candidates) + 40 * spans


class SentenceTranslator:
    """Translates sentences as “dragoman translate” does.

    Parameters
    ----------
    translator : Translator
        The model; used on one thread only.
    """

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self._aligner: Aligner | OptionError | None = None
        self._prepared: OrderedDict[tuple[tuple[str, str], ...], PreparedConstraints] = (
            OrderedDict()
        )

    def __call__(self, tasks: Sequence[SentenceTask]) -> list[SentenceTranslation]:
        """Translate sentences."""
        texts = list(dict.fromkeys(task.text for task in tasks))
        try:
            encoded = {task.text: task.ids for task in tasks if task.ids is not None}
            translations = self._translate_texts(texts, tasks[0].settings, encoded)
        except DragomanError as error:
            raise ServiceError("bad_request", str(error)) from None
        by_text = dict(zip(texts, translations, strict=True))
        return [by_text[task.text] for task in tasks]

    def _translate_texts(
        self, texts: list[str], settings: TranslationSettings, encoded: dict[str, list[int]]
    ) -> list[SentenceTranslation]:
        prepared = self._prepare(settings)
        said: dict[str, Any] = {} if settings.splits_sentences else {"split_sentences": "off"}
        if settings.beam_size is not None:
            said["beam_size"] = settings.beam_size
        if settings.into is not None:
            said["into"] = settings.into
        if settings.formality is not None:
            said["formality"] = settings.formality
        found = self._translator.translate_all(
            texts,
            num_best=settings.num_best,
            prefix=settings.prefix,
            options=self._translator.options_with(said),
            encoded=encoded,
            constraints=replace(prepared.constraints, is_aligned=settings.wants_alignment),
        )
        notes: list[list[str]] = [list(prepared.warnings) for _ in texts]
        every = [(each, *each.alternatives)[: settings.num_best] for each in found]
        if settings.wants_alignment:
            candidates = self._align(texts, every, notes)
        else:
            candidates = [tuple(Candidate(each.text) for each in many) for many in every]
        if settings.wants_confidence:
            candidates = [
                tuple(
                    one._replace(confidence=other.confidence)
                    for one, other in zip(some, many, strict=True)
                )
                for some, many in zip(candidates, every, strict=True)
            ]
        return [
            SentenceTranslation(each, (*said_of, *best.notes), len(best.tokens))
            for each, best, said_of in zip(candidates, found, notes, strict=True)
        ]

    def _prepare(self, settings: TranslationSettings) -> PreparedConstraints:
        """Prepare the constraints of a glossary, with an LRU cache."""
        if not settings.terms:
            is_scored = settings.num_best > 1 or settings.wants_confidence
            return PreparedConstraints(constraints=Constraints(is_scored=is_scored))
        prepared = self._prepared.get(settings.terms)
        if prepared is None:
            prepared = prepare_constraints(
                self._translator.folder.vocabularies.target,
                glossary=_read_terms(settings.terms),
            )
            self._prepared[settings.terms] = prepared
            if len(self._prepared) > MOST_GLOSSARIES:
                self._prepared.popitem(last=False)
        self._prepared.move_to_end(settings.terms)
        return prepared

    def _align(
        self, texts: list[str], every: list[tuple[Translation, ...]], notes: list[list[str]]
    ) -> list[tuple[Candidate, ...]]:
        """Align sentences with their translations if the model has attention."""
        if self._aligner is None:
            try:
                self._aligner = Aligner.of(self._translator)
            except OptionError as error:
                self._aligner = error
        if isinstance(self._aligner, OptionError):
            for each in notes:
                each.append("this model has no attention by which to align words")
            return [tuple(Candidate(each.text) for each in many) for many in every]
        pairs = [(text, each) for text, many in zip(texts, every, strict=True) for each in many]
        links = iter(
            self._aligner.align_translations(
                [text for text, _ in pairs], [each for _, each in pairs]
            )
        )
        return [
            tuple(Candidate(each.text, find_spans(text, each.text, next(links))) for each in many)
            for text, many in zip(texts, every, strict=True)
        ]


def find_spans(source: str, target: str, links: frozenset[tuple[int, int]]) -> tuple[Span, ...]:
    """Convert word alignments to character spans.

    Returns
    -------
    tuple[Span, ...]
        For each link where the two words begin and end, in the order of the target.
    """
    sides = [[match.span() for match in _WORD.finditer(text)] for text in (source, target)]
    pairs = sorted(links, key=lambda link: (link[1], link[0]))
    return tuple((*sides[0][one], *sides[1][other]) for one, other in pairs)


def _read_terms(terms: tuple[tuple[str, str], ...]) -> Glossary:
    """Build a glossary from a client’s terms."""
    found: dict[str, Term] = {}
    for source, target in terms:
        term = Term(normalise(source), normalise(target), "glossary")
        if not term.source or not term.target:
            raise OptionError("glossary: a term is empty; leave it out")
        other = found.setdefault(fold_case(term.source), term)
        if other.target != term.target:
            raise OptionError(
                f"glossary: “{term.source}” is “{term.target}” and “{other.target}”; keep one"
            )
    return Glossary(list(found.values()))
