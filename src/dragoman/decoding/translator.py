"""Raw text in, raw text out."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.data.batches import flatten, pad_sequences
from dragoman.decoding.device import choose_device
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.penalties import length_penalty
from dragoman.decoding.search import Hypothesis, search
from dragoman.decoding.unknown_words import Draft, replace_unknown
from dragoman.errors import OptionError
from dragoman.folder import ModelFolder, load_model, read_folder, vocabulary_of
from dragoman.models.interface import TranslationModel
from dragoman.options import from_plain, to_plain
from dragoman.text.sentences import split_long

# Places in the decoder's cache: sentences × beams × longest translation.
BATCH_PLACES = {"cpu": 32_768, "mps": 65_536, "cuda": 524_288}


@dataclass(frozen=True, kw_only=True)
class Translation:
    """A translated text.

    Parameters
    ----------
    text : str
        The best translation.
    score : float
        Its log-probability over its length penalty, plus its coverage penalty if one is asked for:
        nearer to zero is better.
    alternatives : tuple[Translation, ...]
        The next best ones, best first.
    """

    text: str
    score: float
    alternatives: tuple["Translation", ...] = ()


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of a text, short enough for the model.

    Parameters
    ----------
    text_index : int
        Which text it is a part of.
    text : str
        The part as it is written.
    ids : tuple[int, ...]
        Its subwords, ended by the end symbol.
    space : str
        The white space after it.
    is_first : bool
        Whether the text begins with it.
    """

    text_index: int
    text: str
    ids: tuple[int, ...]
    space: str
    is_first: bool


class Part(NamedTuple):
    """A piece's translations, best first, and the white space after it."""

    space: str
    candidates: list[tuple[str, Hypothesis]]


class Translator:
    """A trained model that translates text.

    Parameters
    ----------
    folder : ModelFolder
        The model's options, subwords and facts.
    model : TranslationModel
        The model, on its device, not in training.
    device : torch.device
        That device.
    """

    def __init__(self, folder: ModelFolder, model: TranslationModel, device: torch.device) -> None:
        self.folder = folder
        self.model = model
        self.device = device
        place = f"{folder.path}: search"
        self.options = from_plain(SearchOptions, folder.config.get("search", {}), place=place)

    @staticmethod
    def load(path: str | Path, device: str = "auto") -> "Translator":
        """Load a model folder.

        Parameters
        ----------
        path : str | Path
            The folder.
        device : str
            ``auto``, ``cpu``, ``cuda`` or ``mps``.

        Returns
        -------
        Translator
            Ready to translate.
        """
        where = choose_device(device)
        folder = read_folder(Path(path))
        return Translator(folder, load_model(folder).to(where), where)

    def options_with(self, said: Mapping[str, Any]) -> SearchOptions:
        """Lay what a user says of the search over what the model folder says.

        Parameters
        ----------
        said : Mapping[str, Any]
            Options that differ.

        Returns
        -------
        SearchOptions
            For `translate`.
        """
        return from_plain(SearchOptions, to_plain(self.options) | dict(said), place="options")

    def translate(
        self,
        text: str,
        *,
        num_best: int = 1,
        prefix: str = "",
        options: SearchOptions | None = None,
    ) -> Translation:
        """Translate one text.

        Parameters
        ----------
        text : str
            Anything; what is longer than the model's training sentences is split at sentences.
        num_best : int
            The best translation and so many alternatives less one.
        prefix : str
            Words with which the translation must begin.
        options : SearchOptions | None
            How to search; None: as the model folder says.

        Returns
        -------
        Translation
            The best translation, with alternatives.
        """
        return self.translate_all([text], num_best=num_best, prefix=prefix, options=options)[0]

    def translate_all(
        self,
        texts: Sequence[str],
        *,
        num_best: int = 1,
        prefix: str = "",
        options: SearchOptions | None = None,
    ) -> list[Translation]:
        """Translate several texts, which is faster than one by one.

        Parameters
        ----------
        texts : Sequence[str]
            The texts.
        num_best : int
            The best translation and so many alternatives less one.
        prefix : str
            Words with which every translation must begin.
        options : SearchOptions | None
            How to search; None: as the model folder says.

        Returns
        -------
        list[Translation]
            In the order of the texts. A text without words gives an empty translation.
        """
        options = options or self.options
        if num_best < 1:
            raise OptionError(f"num_best is {num_best}: must be at least 1")
        if num_best > options.beam_size:
            options = replace(options, beam_size=num_best)
        pieces = self._pieces(texts)
        found = self._search(pieces, options, num_best, self._prefix_ids(prefix))
        written = self._decode(pieces, found, options)
        of_text: list[list[Part]] = [[] for _ in texts]
        for piece, candidates in zip(pieces, written, strict=True):
            of_text[piece.text_index].append(Part(piece.space, candidates))
        return [_join(parts, options) for parts in of_text]

    def translate_lines(
        self,
        blocks: Iterable[Sequence[str]],
        *,
        num_best: int = 1,
        prefix: str = "",
        options: SearchOptions | None = None,
    ) -> Iterator[Translation]:
        """Translate an endless stream of texts, a block at a time.

        Parameters
        ----------
        blocks : Iterable[Sequence[str]]
            Texts that are there together.
        num_best : int
            The best translation and so many alternatives less one.
        prefix : str
            Words with which every translation must begin.
        options : SearchOptions | None
            How to search; None: as the model folder says.

        Yields
        ------
        Translation
            One for each text, in order.
        """
        for block in blocks:
            yield from self.translate_all(block, num_best=num_best, prefix=prefix, options=options)

    def encode(self, text: str) -> tuple[int, ...]:
        """Turn a source text into the tokens that the model reads.

        Parameters
        ----------
        text : str
            The text.

        Returns
        -------
        tuple[int, ...]
            Subword ids and the end symbol.
        """
        subwords = self.folder.vocabularies.source
        return (*subwords.encode([text])[0], subwords.eos_id)

    def _pieces(self, texts: Sequence[str]) -> list[Piece]:
        """Cut texts into parts that the model can read; a text without words has none."""
        facts, subwords = self.folder.facts, self.folder.vocabularies.source
        longest = min(facts.longest_source or sys.maxsize, self._max_length or sys.maxsize)

        def fits(part: str) -> bool:
            return len(self.encode(part)) <= longest

        parts: list[tuple[int, str, list[int]]] = []
        for index, (text, ids) in enumerate(zip(texts, subwords.encode(texts), strict=True)):
            if len(ids) < longest:
                parts.append((index, text, ids))
                continue
            split = split_long(text, facts.source_language, fits)
            encoded = zip(split, subwords.encode(split), strict=True)
            parts += [(index, part, part_ids) for part, part_ids in encoded]
        pieces: list[Piece] = []
        for index, part, ids in parts:
            if ids:
                space = part[len(part.rstrip()) :]
                is_first = not pieces or pieces[-1].text_index != index
                pieces.append(
                    Piece(
                        text_index=index,
                        text=part,
                        ids=(*ids, subwords.eos_id),
                        space=space,
                        is_first=is_first,
                    )
                )
        return pieces

    def _decode(
        self, pieces: Sequence[Piece], found: list[list[Hypothesis]], options: SearchOptions
    ) -> list[list[tuple[str, Hypothesis]]]:
        """Turn hypotheses into text, all at once."""
        vocabularies = self.folder.vocabularies
        drafts = [
            Draft(piece.text, each.tokens)
            for piece, hypotheses in zip(pieces, found, strict=True)
            for each in hypotheses
        ]
        if vocabularies.is_closed and options.replace_unknown:
            texts = iter(replace_unknown(self.model, vocabularies, drafts, self.device))
        else:
            texts = iter(vocabularies.target.decode([draft.tokens for draft in drafts]))
        return [[(next(texts), each) for each in hypotheses] for hypotheses in found]

    def _prefix_ids(self, prefix: str) -> list[int]:
        """Turn the words with which translations must begin into subwords."""
        subwords = self.folder.vocabularies.target
        ids = subwords.encode([prefix])[0]
        if subwords.unk_id in ids:
            raise OptionError(
                f"prefix: “{prefix}” has characters or words that the model cannot write"
            )
        if self._max_length is not None and len(ids) >= self._max_length:
            raise OptionError(
                f"prefix: has {len(ids)} subwords, but the model can write only {self._max_length}"
            )
        return ids

    def _search(
        self,
        pieces: Sequence[Piece],
        options: SearchOptions,
        num_best: int,
        prefix_ids: list[int],
    ) -> list[list[Hypothesis]]:
        """Translate pieces in batches of similar length, giving results in their order."""
        results: list[list[Hypothesis]] = [[] for _ in pieces]
        vocabularies = self.folder.vocabularies
        vocabulary = vocabulary_of(vocabularies)
        banned = () if vocabularies.is_closed else (vocabularies.target.unk_id,)
        order = sorted(range(len(pieces)), key=lambda index: -len(pieces[index].ids))
        beams = options.beam_size
        places = [(len(piece.ids) + options.max_extra_tokens) * beams for piece in pieces]
        for chosen in _batches(order, places, BATCH_PLACES[self.device.type]):
            ids = flatten([pieces[index].ids for index in chosen])
            source = pad_sequences(ids, vocabulary.pad_id)
            prefixes = self._prefixes([pieces[index] for index in chosen], prefix_ids)
            found = search(
                self.model,
                source.to(self.device),
                options,
                vocabulary,
                num_best=num_best,
                prefixes=prefixes,
                banned_ids=banned,
                max_length=self._max_length,
            )
            for index, hypotheses in zip(chosen, found, strict=True):
                results[index] = hypotheses
        return results

    @property
    def _max_length(self) -> int | None:
        """The longest sequence that the model can read or write; None: any."""
        return self.folder.options.max_length

    def _prefixes(self, pieces: Sequence[Piece], ids: list[int]) -> Tensor | None:
        """Lay down how each piece must begin; only a text's first piece is not free."""
        if not ids:
            return None
        free = [-1] * len(ids)
        rows = [ids if piece.is_first else free for piece in pieces]
        return torch.tensor(rows, device=self.device)


def _join(parts: list[Part], options: SearchOptions) -> Translation:
    """Put the translations of a text's pieces together, the best of each first."""
    if not parts:
        return Translation(text="", score=0.0)
    ranked: dict[str, Translation] = {}
    for rank in range(max(len(part.candidates) for part in parts)):
        chosen = [part.candidates[min(rank, len(part.candidates) - 1)] for part in parts]
        spaces = [" " if part.space else "" for part in parts]
        joined = "".join(text + space for (text, _), space in zip(chosen, spaces, strict=True))
        length = sum(len(each.tokens) + 1 for _, each in chosen)
        penalty = float(length_penalty(length, options.length_penalty))
        score = sum(each.log_probability for _, each in chosen) / penalty
        if options.coverage_penalty:
            score += sum(_neglect(each, options) for _, each in chosen)
        text = joined.strip()
        if text not in ranked or ranked[text].score < score:
            ranked[text] = Translation(text=text, score=score)
    best, *others = sorted(ranked.values(), key=lambda each: -each.score)
    return replace(best, alternatives=tuple(others))


def _neglect(hypothesis: Hypothesis, options: SearchOptions) -> float:
    """Find the coverage penalty in a hypothesis's score."""
    penalty = length_penalty(len(hypothesis.tokens) + 1, options.length_penalty)
    return hypothesis.score - hypothesis.log_probability / float(penalty)


def _batches(order: list[int], places: list[int], max_places: int) -> Iterator[list[int]]:
    """Cut an order of falling lengths into batches of at most so many places."""
    batch: list[int] = []
    for index in order:
        if batch and (len(batch) + 1) * places[batch[0]] > max_places:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
