"""The translator: raw text in, raw text out."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.data.workers import count_cores
from dragoman.decoding.confidence import (
    CONFIDENCE_FILE,
    Calibration,
    read_calibration,
)
from dragoman.decoding.constraints.constraints import Constraints
from dragoman.decoding.device import choose_device, may_have_accelerator
from dragoman.decoding.engines.cpu.background_compile import (
    BackgroundCompilation,
    compile_in_background,
)
from dragoman.decoding.engines.cpu.cpu_engine import CpuEngine, ShortListEngine, count_threads
from dragoman.decoding.engines.select import Choice, choose_engine, load_engine
from dragoman.decoding.memory import frozen_garbage_collector
from dragoman.decoding.options import LARGEST_BEAM, Precision, SearchOptions
from dragoman.decoding.output.quality_checks import search_again
from dragoman.decoding.search.shortlist import ShortList
from dragoman.decoding.segment import Segment, SegmentResult
from dragoman.decoding.segment_search import SegmentSearch
from dragoman.decoding.splitting import Splitter
from dragoman.decoding.translation import Part, Translation, join_parts
from dragoman.errors import FolderError, OptionError
from dragoman.folder import CONFIG_FILE, ModelFolder, read_folder
from dragoman.model_home import find_model
from dragoman.options import from_plain, from_section, require, to_plain

if TYPE_CHECKING:  # PyTorch, which most translations on a CPU do not need
    import torch

    from dragoman.models.interface import SearchedModel, TranslationModel

LONGEST_PREFIX = 500
FEW_SEGMENTS = 16
"""So many are translated by PyTorch while functions are being compiled; more wait for these."""


class Translator:
    """A trained model that translates text.

    Parameters
    ----------
    folder : ModelFolder
        The model's options, subwords and facts.
    model : TranslationModel | None
        The model, on its device, not in training; None: loaded from the folder when somebody asks
        for it, which translating does not.
    device : torch.device | str
        That device, or its name.
    engine : SearchedModel | None
        What translates in the model's place; None: the model itself, or what is loaded in its
        place for requests that `cpu_engine` does not support.
    short_list : ShortList | None
        The words among which to search; None: all.
    cpu_engine : CpuEngine | None
        What translates on a CPU; None: the engine.
    choice : Choice | None
        Which engine was chosen and why, for `dragoman translate --explain-engine`.
    members : Sequence[ModelFolder]
        Of all models, where several translate together.
    compiling : BackgroundCompilation | None
        What compiles the compiled search's functions; it is loaded when that is done.

    Notes
    -----
    PyTorch is imported when it is needed: with a `cpu_engine`, only for what looks inside, and
    where functions are still being compiled, which a few texts do not wait for.
    """

    def __init__(
        self,
        folder: ModelFolder,
        model: "TranslationModel | None",
        device: "torch.device | str",
        engine: "SearchedModel | None" = None,
        short_list: ShortList | None = None,
        cpu_engine: CpuEngine | None = None,
        choice: Choice | None = None,
        members: Sequence[ModelFolder] = (),
        compiling: BackgroundCompilation | None = None,
    ) -> None:
        self.folder = folder
        self._device = device
        self._model = model
        self._engine = engine
        self.short_list = short_list
        self._cpu_engine, self._compiling = cpu_engine, compiling
        self.choice = choice
        self._members = members
        self._splitter = Splitter(folder)
        self.options = from_section(
            SearchOptions, folder.config, "search", folder.path / CONFIG_FILE
        )

    @property
    def device(self) -> "torch.device":
        """Where the model is."""
        import torch

        return torch.device(self._device)

    @property
    def device_type(self) -> str:
        """What kind of device that is: ``cpu``, ``cuda`` or ``mps``."""
        return self._device if isinstance(self._device, str) else self._device.type

    @property
    def model(self) -> "TranslationModel":
        """The model as it was trained, for inspection."""
        if self._model is None:
            import torch

            from dragoman.weights import load_model

            with torch.inference_mode(mode=False):  # somebody may want gradients of it
                if self._members:
                    from dragoman.decoding.search.ensemble import load_members

                    self._model = load_members(self._members, self.device)
                else:
                    self._model = load_model(self.folder).to(self.device)
        return self._model

    @property
    def cpu_engine(self) -> CpuEngine | None:
        """The compiled engine on a CPU, once it is compiled; None: another engine runs."""
        if self._compiling is not None:
            assert self.choice is not None
            assert self.choice.precision != "float16"
            self._compiling.wait()
            self._cpu_engine = CpuEngine.load(self.folder, self.choice.precision)
            self._compiling = None
        return self._cpu_engine

    @property
    def is_compiling(self) -> bool:
        """Whether few texts run on PyTorch because the CPU engine is being compiled."""
        return self._compiling is not None and not self._compiling.is_over

    @property
    def engine(self) -> "SearchedModel":
        """The model that the general search steps through: trained or rebuilt for speed."""
        if self._engine is None and self.cpu_engine is not None:
            from dragoman.decoding.engines.cpu.cpu_decoder import CpuDecoder

            self._engine = CpuDecoder(self.cpu_engine)
        return self.model if self._engine is None else self._engine

    @property
    def takes_short_list(self) -> bool:
        """Whether the engine supports short-lists."""
        return self._cpu_engine is not None or self._compiling is not None

    @cached_property
    def calibration(self) -> Calibration | None:
        """What turns scores into confidence; None: there is none, or several models translate.

        Notes
        -----
        One that is damaged or of other weights is none either: `read_calibration` says why.
        """
        if self._members or not (self.folder.path / CONFIDENCE_FILE).exists():
            return None
        try:
            return read_calibration(self.folder)
        except FolderError:
            return None

    @staticmethod
    def load(
        path: str | Path,
        device: str = "auto",
        others: Sequence[str | Path] = (),
        precision: Precision = "auto",
    ) -> "Translator":
        """Load a model folder.

        Parameters
        ----------
        path : str | Path
            The folder, or the name of an installed model.
        device : str
            ``auto``, ``cpu``, ``cuda`` or ``mps``.
        others : Sequence[str | Path]
            Likewise models with the same subwords that translate together with it.
        precision : Precision
            In which to compute.

        Returns
        -------
        Translator
            Ready to translate.
        """
        folder = read_folder(find_model(path))
        where: torch.device | str = "cpu"
        if device != "cpu" and (device != "auto" or may_have_accelerator()):
            where = choose_device(device)
        kind = where if isinstance(where, str) else where.type
        choice = choose_engine(folder, kind, precision)
        if others:
            from dragoman.decoding.search.ensemble import join_folders, load_together, read_member

            members = [folder, *(read_member(find_model(other), folder) for other in others)]
            together = load_together(members, where, precision)
            joined = join_folders(members)
            return Translator(joined, None, where, together, choice=choice, members=members)
        return Translator.of_folder(folder, where, choice)

    @staticmethod
    def of_folder(folder: ModelFolder, where: "torch.device | str", choice: Choice) -> "Translator":
        """Load the model of a folder that was read.

        Parameters
        ----------
        folder : ModelFolder
            The folder, perhaps with other weights than its own.
        where : torch.device | str
            The device.
        choice : Choice
            The engine, from `choose_engine`.

        Returns
        -------
        Translator
            Ready to translate.
        """
        if choice.engine == "cpu":
            assert choice.precision != "float16"
            compiling = compile_in_background(choice.precision)
            cpu_engine = None if compiling else CpuEngine.load(folder, choice.precision)
            return Translator(
                folder, None, where, cpu_engine=cpu_engine, choice=choice, compiling=compiling
            )
        engine: Any = load_engine(folder, where, choice)
        model = engine if choice.engine == "reference" else None
        return Translator(folder, model, where, engine, choice=choice)

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
        if not said:
            return self.options
        return from_plain(SearchOptions, to_plain(self.options) | dict(said), place="options")

    def translate(
        self,
        text: str,
        *,
        num_best: int = 1,
        prefix: str = "",
        options: SearchOptions | None = None,
        constraints: Constraints | None = None,
    ) -> Translation:
        """Translate one text.

        Parameters
        ----------
        text : str
            Anything; several sentences are split as `split` says.
        num_best : int
            The best translation and so many alternatives less one.
        prefix : str
            Words with which the translation must begin.
        options : SearchOptions | None
            How to search; None: as the model folder says.
        constraints : Constraints | None
            Terms, forbidden words or chance, from `prepare_constraints`; None: nothing special.

        Returns
        -------
        Translation
            The best translation, with alternatives.
        """
        return self.translate_all(
            [text], num_best=num_best, prefix=prefix, options=options, constraints=constraints
        )[0]

    def translate_all(
        self,
        texts: Sequence[str],
        *,
        num_best: int = 1,
        prefix: str = "",
        options: SearchOptions | None = None,
        constraints: Constraints | None = None,
        encoded: Mapping[str, Sequence[int]] | None = None,
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
        constraints : Constraints | None
            Terms, forbidden words or chance, from `prepare_constraints`; None: nothing special.
        encoded : Mapping[str, Sequence[int]] | None
            Source subword ids of sentences, without an end, where they are known already; the
            others are encoded here.

        Returns
        -------
        list[Translation]
            In the order of the texts. A text without words gives an empty translation.

        Notes
        -----
        What translates, serves, validates and scores all comes here: to `split` and `search_again`.
        """
        options = options or self.options
        is_possible = 1 <= num_best <= LARGEST_BEAM
        require(is_possible, "num_best", num_best, f"must be from 1 to {LARGEST_BEAM:,}")
        if num_best > options.beam_size:
            options = replace(options, beam_size=num_best)
        constraints = constraints or Constraints()
        constraints.check_prefix(prefix)
        wanted = (self._prefix_ids(prefix), constraints)

        def search(
            segments: Sequence[Segment], options: SearchOptions, *, is_unrepeated: bool
        ) -> list[Part]:
            most = num_best if constraints.sampling else options.beam_size
            job = self._make_search(
                len(segments), options, most, *wanted, is_unrepeated=is_unrepeated
            )
            return self._write(segments, job.find(segments), options)

        with frozen_garbage_collector(len(texts)):
            segments = self._splitter.segments(texts, options, self._num_threads, encoded)
            job = self._make_search(len(segments), options, num_best, *wanted)
            parts = self._write(segments, job.find(segments), options)
            if options.search_again:
                parts = search_again(parts, search, options)
            of_text: list[list[Part]] = [[] for _ in texts]
            for part in parts:
                of_text[part.segment.text_index].append(part)
            vocabularies, is_distinct = self.folder.vocabularies, constraints.sampling is None
            return [
                join_parts(each, options, vocabularies, is_distinct, self.calibration)
                for each in of_text
            ]

    def encode(self, text: str, options: SearchOptions | None = None) -> tuple[int, ...]:
        """Turn a source text into the tokens that the model reads.

        Parameters
        ----------
        text : str
            The text.
        options : SearchOptions | None
            With the target language of a model that has several; None: as the model folder says.

        Returns
        -------
        tuple[int, ...]
            Subword ids and the end symbol, after what tells the target language.
        """
        subwords = self.folder.vocabularies.source
        text, mark = self._splitter.take_mark(text, options or self.options)
        return (*mark, *subwords.encode([text])[0], subwords.eos_id)

    def split(
        self, text: str, options: SearchOptions | None = None, *, cuts_long: bool = True
    ) -> list[str]:
        """Split a text into the parts that are translated one by one.

        Parameters
        ----------
        text : str
            The text.
        options : SearchOptions | None
            For `split_sentences`; None: as the model folder says.
        cuts_long : bool
            Whether to cut what the model cannot read whole, as `cut_long` does.

        Returns
        -------
        list[str]
            Lines and, unless the model knows lines of several sentences, sentences. Each has the
            white space that follows it: joining them gives back the text.
        """
        return self._splitter.split(text, options or self.options, cuts_long=cuts_long)

    def _make_search(
        self,
        num_segments: int,
        options: SearchOptions,
        num_best: int,
        prefix_ids: Sequence[int],
        constraints: Constraints,
        *,
        is_unrepeated: bool = False,
    ) -> SegmentSearch:
        """Choose the engine for some segments and describe the search."""
        if self.is_compiling and num_segments <= FEW_SEGMENTS:
            model: Any = self.model
        elif self.cpu_engine is None:
            model = self.engine
        elif self.short_list is None:
            model = self.cpu_engine
        else:
            model = ShortListEngine(self.cpu_engine, self.short_list.words_of)
        return SegmentSearch(
            model=model,
            vocabularies=self.folder.vocabularies,
            device=self._device,
            max_length=self._max_length,
            options=options,
            num_best=num_best,
            prefix_ids=prefix_ids,
            constraints=constraints,
            is_unrepeated=is_unrepeated,
        )

    def _write(
        self, segments: Sequence[Segment], found: Sequence[SegmentResult], options: SearchOptions
    ) -> list[Part]:
        """Detokenise all hypotheses at once."""
        vocabularies = self.folder.vocabularies
        every = [
            (segment, each)
            for segment, all_found in zip(segments, found, strict=True)
            for each in all_found.hypotheses
        ]
        if vocabularies.is_closed and options.replace_unknown:
            from dragoman.decoding.output.unknown_words import Draft, replace_unknown

            drafts = [Draft(segment.text, each.tokens) for segment, each in every]
            texts = iter(replace_unknown(self.model, vocabularies, drafts, self.device))
        else:
            tokens = [each.tokens for _, each in every]
            texts = iter(vocabularies.target.decode(tokens, self._num_threads(len(tokens))))
        return [
            Part(segment, [(next(texts), each) for each in all_found.hypotheses], all_found.notes)
            for segment, all_found in zip(segments, found, strict=True)
        ]

    def _num_threads(self, num_texts: int) -> int:
        """Choose the number of tokeniser threads: on a CPU, as many as will translate."""
        most = count_cores() if self.device_type == "cuda" else count_threads()
        return min(most, 1 + num_texts // 64)

    def _prefix_ids(self, prefix: str) -> list[int]:
        """Tokenise the forced prefix of translations."""
        if not prefix:
            return []
        subwords = self.folder.vocabularies.target
        ids = subwords.encode([prefix])[0]
        if subwords.unk_id in ids:
            raise OptionError(
                f"prefix: “{prefix}” has characters or words that the model cannot write"
            )
        longest = min(LONGEST_PREFIX, (self._max_length or sys.maxsize) - 1)
        if len(ids) > longest:
            raise OptionError(
                f"prefix: has {len(ids):,} subwords, but {longest} are the most; give fewer words"
            )
        return ids

    @property
    def _max_length(self) -> int | None:
        """The longest sequence of the model; None: any."""
        return self.folder.options.max_length
