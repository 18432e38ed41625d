"""Constraints of a user on translations: terms, forbidden words, sampling."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from dragoman.decoding.constraints.forbidden import make_forbidden_table
from dragoman.decoding.constraints.glossary import ForbiddenPhrase, ForbiddenPhrases, Glossary, Term
from dragoman.decoding.constraints.term_automaton import (
    MOST_TERMS,
    Requirement,
    can_spell,
    count_subwords,
)
from dragoman.decoding.constraints.term_speller import TermSpeller
from dragoman.decoding.options import SamplingOptions
from dragoman.errors import OptionError
from dragoman.kernels.cpu_search.task import ForbiddenTable
from dragoman.shapes import Float
from dragoman.text.vocabulary import TextVocabulary

# Numbers below 1 that are never rounded up to it in a product.
_CHANCE_BITS = 23


class SegmentTerms(NamedTuple):
    """Terms that must appear in the translation of a segment, and notes on those dropped."""

    requirements: tuple[Requirement, ...]
    notes: tuple[str, ...]


NOTHING_WANTED = SegmentTerms((), ())


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """Constraints on translations, made ready for one target vocabulary by `prepare_constraints`.

    Parameters
    ----------
    glossary : Glossary | None
        Terms that must appear where their sources do; None: none.
    speller : TermSpeller | None
        How they may be written; there if there is a glossary.
    phrases : tuple[ForbiddenPhrase, ...]
        Words that must not appear.
    forbidden : ForbiddenTable | None
        How these may be spelt; there if there are any.
    sampling : SamplingOptions | None
        Draw translations at random; None: search for the best.
    is_scored : bool
        Whether anybody will look at scores; greedy search is faster without.
    is_aligned : bool
        Whether anybody will ask which word translates which: an engine that can tell what words
        attended to does so.
    """

    glossary: Glossary | None = None
    speller: TermSpeller | None = None
    phrases: tuple[ForbiddenPhrase, ...] = ()
    forbidden: ForbiddenTable | None = None
    sampling: SamplingOptions | None = None
    is_scored: bool = True
    is_aligned: bool = False

    def without_words(self) -> "Constraints":
        """Drop terms and forbidden words, keep the rest.

        Returns
        -------
        Constraints
            With everything else.
        """
        return replace(self, glossary=None, speller=None, phrases=(), forbidden=None)

    def want(self, text: str, limit: int) -> SegmentTerms:
        """Find the terms that must appear in a translation.

        Parameters
        ----------
        text : str
            The source.
        limit : int
            Subwords that the translation may have besides the end symbol and a forced prefix.

        Returns
        -------
        SegmentTerms
            The terms; where they do not fit, the longest are left out until the others do.
        """
        if self.glossary is None or self.speller is None:
            return NOTHING_WANTED
        terms = self.glossary.find(text)
        notes: list[str] = []
        while terms:
            requirements = self.speller.require([term.target for term in terms])
            needed, times = count_subwords(requirements), sum(each.times for each in requirements)
            if needed <= limit and times <= MOST_TERMS:
                return SegmentTerms(requirements, tuple(notes))
            dropped = max(terms, key=lambda term: len(self._shortest(term)))
            why = (
                f"its terms take {needed} subwords, but the translation may have {limit}"
                if needed > limit
                else f"it has {times} terms, but {MOST_TERMS} are the most"
            )
            notes.append(f"{why}; translated without “{dropped.target}” ({dropped.place})")
            terms.remove(dropped)
        return SegmentTerms((), tuple(notes))

    def check_prefix(self, prefix: str) -> None:
        """Refuse a prefix that has forbidden words.

        Parameters
        ----------
        prefix : str
            The words with which translations must begin.
        """
        phrase = ForbiddenPhrases(self.phrases).find(prefix) if prefix else None
        if phrase is not None:
            raise OptionError(
                f"prefix: “{prefix}” has “{phrase.text}”, which {phrase.place} forbids; leave "
                "out one of them"
            )

    def _shortest(self, term: Term) -> tuple[int, ...]:
        assert self.speller is not None
        return self.speller.spell(term.target)[0].tokens


@dataclass(frozen=True, kw_only=True)
class PreparedConstraints:
    """Constraints, and warnings about those that cannot be met.

    Parameters
    ----------
    constraints : Constraints
        What can be met.
    warnings : list[str]
        What cannot, one line each.
    """

    constraints: Constraints
    warnings: list[str] = field(default_factory=list)


def prepare_constraints(
    vocabulary: TextVocabulary,
    *,
    glossary: Glossary | None = None,
    phrases: tuple[ForbiddenPhrase, ...] = (),
    sampling: SamplingOptions | None = None,
    is_scored: bool = True,
) -> PreparedConstraints:
    """Compile constraints for a vocabulary.

    Parameters
    ----------
    vocabulary : TextVocabulary
        Of the target.
    glossary : Glossary | None
        Terms that must appear.
    phrases : tuple[ForbiddenPhrase, ...]
        Words that must not appear.
    sampling : SamplingOptions | None
        Draw translations at random.
    is_scored : bool
        Whether anybody will look at scores.

    Returns
    -------
    PreparedConstraints
        The constraints without the terms that the vocabulary cannot write or that are forbidden,
        and a warning for each of these.
    """
    if sampling is not None and glossary is not None:
        raise OptionError(
            "sample: words drawn at random cannot be made to use a glossary; leave out --sample "
            "or --terms"
        )
    warnings: list[str] = []
    speller = None
    if glossary is not None:
        speller = TermSpeller(vocabulary)
        prohibition = ForbiddenPhrases(phrases)
        is_written = can_spell([term.target for term in glossary.terms], vocabulary)
        dropped = []
        for term, is_possible in zip(glossary.terms, is_written, strict=True):
            phrase = prohibition.find(term.target)
            if phrase is not None:
                why = f"“{phrase.text}” is forbidden ({phrase.place})"
            elif not is_possible:
                why = "has characters or words that the model cannot write"
            else:
                continue
            warnings.append(f"{term.place}: “{term.target}”: {why}; translated without the term")
            dropped.append(term)
        glossary = glossary.without(dropped)
    table = None
    if phrases:
        table = make_forbidden_table([phrase.text for phrase in phrases], vocabulary)
    constraints = Constraints(
        glossary=glossary if glossary and glossary.terms else None,
        speller=speller,
        phrases=phrases,
        forbidden=table,
        sampling=sampling,
        is_scored=is_scored,
    )
    return PreparedConstraints(constraints=constraints, warnings=warnings)


def draw_chance(
    seed: int, ids: Sequence[int], num_samples: int, count: int
) -> Float[np.ndarray, "samples words"]:
    """Draw the uniform random numbers that decide the tokens of a sentence's samples.

    Parameters
    ----------
    seed : int
        The user's.
    ids : Sequence[int]
        The sentence.
    num_samples : int
        How many samples.
    count : int
        Words of each.

    Returns
    -------
    Float[np.ndarray, "samples words"]
        Numbers from 0 to 1, which is never reached; the first of fewer samples, or of fewer words,
        are the first of more.
    """
    found = np.empty((num_samples, count), np.float32)
    for sample, row in enumerate(found):
        told = f"{seed} {sample} {' '.join(map(str, ids))}".encode()
        key = int.from_bytes(hashlib.blake2b(told, digest_size=16).digest(), "little")
        generator = np.random.Generator(np.random.Philox(key=key))
        row[:] = generator.integers(0, 1 << _CHANCE_BITS, size=count) / (1 << _CHANCE_BITS)
    return found
