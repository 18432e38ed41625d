"""Pieces of text in, hypotheses out: in batches of similar length, with what a user demands."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dragoman.data.batches import flatten, pad_sequences
from dragoman.decoding.candidates import Chooser
from dragoman.decoding.constraints import RequiredTerms, count_beams
from dragoman.decoding.cpu_decoder import CpuDecoder
from dragoman.decoding.demands import Demands, Wanted
from dragoman.decoding.engine import Engine
from dragoman.decoding.forbidden import ForbiddenWords
from dragoman.decoding.interface import Hypothesis
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.piece import Found, Piece
from dragoman.decoding.plain_search import PlainSearch, banned_ids, is_plain, or_nothing
from dragoman.decoding.repetition import WithoutRepetition
from dragoman.decoding.sampling import SampledWords
from dragoman.decoding.search import search
from dragoman.decoding.side_by_side import halve_last, work_side_by_side
from dragoman.decoding.term_automaton import Requirement
from dragoman.models.interface import SearchedModel
from dragoman.text.vocabulary import Vocabularies
from dragoman.weights import vocabulary_of

# Places in the decoder's cache: sentences × beams × longest translation.
BATCH_PLACES = {"cpu": 32_768, "mps": 65_536, "cuda": 524_288}
# Sentences × beams: more do not make a CPU's products faster, and their keys and values take room.
# A model with few words is a small one, where there is room for more.
BATCH_ROWS = {"cpu": 128, "mps": 4096, "cuda": 16_384}
CACHED_SCORES = 1 << 20
LEAST_ROWS = 64
# Numbers that an engine remembers of all source words of a batch on a CPU: 64 MB, which are 2,700
# words of a base model.
BATCH_NUMBERS = 16 << 20


@dataclass(frozen=True, kw_only=True)
class PieceSearch:
    """Searches for translations of pieces of text.

    Parameters
    ----------
    model : SearchedModel
        The model, on its device, not in training.
    vocabularies : Vocabularies
        Its subwords.
    device : torch.device
        That device.
    max_length : int | None
        The longest sequence that the model can write; None: any.
    options : SearchOptions
        How to search.
    num_best : int
        Translations of a piece.
    prefix_ids : Sequence[int]
        Subwords with which the translation of a text's first piece must begin.
    demands : Demands
        What else must be.
    plain : PlainSearch | None
        What searches, with the same options, where nothing special is demanded; None: the search of
        all models.
    """

    model: SearchedModel
    vocabularies: Vocabularies
    device: torch.device
    max_length: int | None
    options: SearchOptions
    num_best: int
    prefix_ids: Sequence[int]
    demands: Demands
    plain: PlainSearch | None = None

    def find(self, pieces: Sequence[Piece]) -> list[Found]:
        """Translate pieces.

        Parameters
        ----------
        pieces : Sequence[Piece]
            In any order.

        Returns
        -------
        list[Found]
            In that order. A piece for which nothing meets all demands is translated without them;
            one for which nothing is found at all has an empty translation, and a note.

        Notes
        -----
        All pieces are first translated without their terms; only where a translation lacks one
        is it searched for again, with terms and a wider beam. So terms cost little where the
        model knows them anyway, and change nothing there.
        """
        wanted = [self.demands.want(piece.text, self._room(piece)) for piece in pieces]
        free = self._search_all(pieces, [()] * len(pieces))
        results = [
            Found(hypotheses=hypotheses, notes=each.notes)
            for hypotheses, each in zip(free, wanted, strict=True)
        ]
        lacking = [index for index, each in enumerate(wanted) if self._lacks(each, results[index])]
        again = self._search_all(
            [pieces[index] for index in lacking], [wanted[index].requirements for index in lacking]
        )
        for index, hypotheses in zip(lacking, again, strict=True):
            results[index] = replace(results[index], hypotheses=hypotheses)
        self._give_up(pieces, wanted, results)
        return list(map(or_nothing, results))

    def find_unrepeated(self, pieces: Sequence[Piece]) -> list[Found]:
        """Translate pieces without saying a phrase three times in a row.

        Parameters
        ----------
        pieces : Sequence[Piece]
            In any order.

        Returns
        -------
        list[Found]
            In that order, as of `find`, but found among all words, whatever the short list.
        """
        model = WithoutRepetition(self.model)
        begun = replace(self, model=model, plain=None)
        free = replace(begun, prefix_ids=())
        # The rule spares a forced beginning, so it must know which pieces have one.
        first = iter(begun.find([each for each in pieces if each.is_first]))
        others = iter(free.find([each for each in pieces if not each.is_first]))
        return [next(first if each.is_first else others) for each in pieces]

    def _lacks(self, wanted: Wanted, found: Found) -> bool:
        """Say whether a translation lacks a term."""
        if not wanted.requirements:
            return False
        assert self.demands.speller is not None
        return not found.hypotheses or not all(
            self.demands.speller.is_met(wanted.requirements, each.tokens)
            for each in found.hypotheses
        )

    def _give_up(
        self, pieces: Sequence[Piece], wanted: Sequence[Wanted], results: list[Found]
    ) -> None:
        """Translate without demands where nothing was found that meets them, and say so."""
        failed = [index for index, each in enumerate(results) if not each.hypotheses]
        if not failed or (self.demands.glossary is None and self.demands.forbidden is None):
            return
        free = replace(self, demands=Demands(sampling=self.demands.sampling))
        again = free.find([pieces[index] for index in failed])
        for index, found in zip(failed, again, strict=True):
            note = _say_what_failed(wanted[index], self.demands)
            results[index] = replace(found, notes=(*wanted[index].notes, note, *found.notes))

    def _search_all(
        self, pieces: Sequence[Piece], requirements: Sequence[tuple[Requirement, ...]]
    ) -> list[list[Hypothesis]]:
        """Search in batches of similar length and equally wide beams, or as the engine does."""
        if self.plain is not None and self._is_plain(requirements):
            return self.plain.find(pieces)

        def find(batch: list[int]) -> list[list[Hypothesis]]:
            return self._search(
                [pieces[index] for index in batch], [requirements[index] for index in batch]
            )

        results: list[list[Hypothesis]] = [[] for _ in pieces]
        batches = list(self._batches(pieces, [self._beams(each) for each in requirements]))
        if self.device.type == "cpu" and isinstance(self.model, CpuDecoder | Engine):
            batches = halve_last(batches, torch.get_num_threads())
            every = work_side_by_side(find, batches)
        else:
            every = list(map(find, batches))
        for batch, found in zip(batches, every, strict=True):
            for index, hypotheses in zip(batch, found, strict=True):
                results[index] = hypotheses
        return results

    def _is_plain(self, requirements: Sequence[tuple[Requirement, ...]]) -> bool:
        """Say whether nothing is demanded but the most probable words."""
        return not any(requirements) and is_plain(self.options, self.demands)

    def _room(self, piece: Piece) -> int:
        """Count the subwords that a translation may have, less the prefix and the end."""
        limit = len(piece.ids) + self.options.max_extra_tokens
        if self.max_length is not None:
            limit = min(limit, self.max_length - len(self.prefix_ids))
        return limit - 1

    def _beams(self, requirements: tuple[Requirement, ...]) -> int:
        """Count the hypotheses that a piece takes."""
        if self.demands.sampling is not None:
            return self.num_best
        return count_beams(self.options.beam_size, requirements)

    def _batches(self, pieces: Sequence[Piece], beams: Sequence[int]) -> Iterator[list[int]]:
        """Put pieces of similar length and equally wide beams together, within the room."""
        most, most_rows = BATCH_PLACES[self.device.type], BATCH_ROWS[self.device.type]
        most_rows = max(most_rows, CACHED_SCORES // len(self.vocabularies.target))
        if self.device.type == "cpu":  # enough batches for every core to have some until the end
            most_rows = min(most_rows, max(LEAST_ROWS, sum(beams) // (2 * torch.get_num_threads())))
        most_words = sys.maxsize
        if isinstance(self.model, CpuDecoder | Engine) and self.device.type == "cpu":
            most_words = BATCH_NUMBERS // self.model.numbers_per_word
        lengths = [len(piece.ids) for piece in pieces]
        batch: list[int] = []
        largest = 0
        for index in sorted(range(len(pieces)), key=lambda each: (-beams[each], -lengths[each])):
            places = (lengths[index] + self.options.max_extra_tokens) * beams[index]
            size = len(batch) + 1
            is_full = size * max(largest, places) > most or size * beams[index] > most_rows
            is_full |= bool(batch) and size * lengths[batch[0]] > most_words
            if batch and is_full:
                yield batch
                batch, largest = [], 0
            batch.append(index)
            largest = max(largest, places)
        if batch:
            yield batch

    def _search(
        self, pieces: Sequence[Piece], requirements: Sequence[tuple[Requirement, ...]]
    ) -> list[list[Hypothesis]]:
        """Search for the translations of one batch."""
        vocabulary = vocabulary_of(self.vocabularies)
        ids = [piece.ids for piece in pieces]
        table = self.demands.forbidden
        model = self.model
        if isinstance(model, WithoutRepetition):
            model = model.after_prefix(len(self.prefix_ids))
        return search(
            model,
            pad_sequences(flatten(ids), vocabulary.pad_id).to(self.device),
            self.options,
            vocabulary,
            num_best=self.num_best,
            prefixes=self._prefixes(pieces),
            banned_ids=banned_ids(self.vocabularies),
            max_length=self.max_length,
            chooser=self._chooser(ids, requirements, vocabulary.eos_id),
            forbidden=None if table is None else ForbiddenWords(table),
            is_scored=self.demands.is_scored,
        )

    def _chooser(
        self,
        ids: Sequence[Sequence[int]],
        requirements: Sequence[tuple[Requirement, ...]],
        eos_id: int,
    ) -> Chooser | None:
        """Make what decides how hypotheses go on; None: the most probable words."""
        if self.demands.sampling is not None:
            capacity = max(map(len, ids)) + self.options.max_extra_tokens + len(self.prefix_ids)
            return SampledWords(
                self.demands.sampling,
                ids,
                num_samples=self.num_best,
                capacity=capacity,
                eos_id=eos_id,
                device=self.device,
            )
        if not any(requirements) or self.demands.speller is None:
            return None
        return RequiredTerms(
            requirements, self.demands.speller, beam_size=self.options.beam_size, eos_id=eos_id
        )

    def _prefixes(self, pieces: Sequence[Piece]) -> Tensor | None:
        """Lay down how each piece must begin; only a text's first piece is not free."""
        if not self.prefix_ids:
            return None
        free = [-1] * len(self.prefix_ids)
        rows = [list(self.prefix_ids) if piece.is_first else free for piece in pieces]
        return torch.tensor(rows, device=self.device)


def _say_what_failed(wanted: Wanted, demands: Demands) -> str:
    """Say which demands had to be given up."""
    what = [f"“{each.text}”" for each in wanted.requirements]
    if demands.forbidden is not None:
        what.append("a way around the forbidden words")
    return f"found no translation with {', '.join(what)}; translated without that demand"
