"""What is resolved before a run begins: options, vocabularies, the description of the model."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from dragoman.data.batches import Sequences
from dragoman.data.corpus import CorpusFiles
from dragoman.data.store.checked_files import VOCABULARY_FACTS, check_vocabulary
from dragoman.data.store.clean_text import CleanText
from dragoman.data.store.mapped import write_facts
from dragoman.data.store.store import PairStore, Store
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search.coverage_penalty import check_coverage
from dragoman.errors import OptionError
from dragoman.files import digest_of, written_beside
from dragoman.folder import Facts, ModelFolder
from dragoman.models.interface import TranslationModel, Vocabulary
from dragoman.options import Plain, merge, to_plain
from dragoman.presets import AUTO, TUNING
from dragoman.text.bpe_dropout import check_merges
from dragoman.text.characters import learn_characters
from dragoman.text.dictionary import Dictionary, learn_dictionary
from dragoman.text.options import TextOptions
from dragoman.text.sentence_splitting import share_of_several
from dragoman.text.subwords import Subwords, choose_vocabulary_size, train_subwords
from dragoman.text.vocabulary import TextVocabulary, Vocabularies
from dragoman.text.word_vocabulary import learn_words, split_words
from dragoman.training.configuration import (
    RunOptions,
    list_changes,
    resolve_options,
)
from dragoman.weights import vocabulary_of

SUBWORD_PAIRS = 1_000_000
"""Subwords are learnt from a sample of this many pairs if there are more."""
SENTENCE_PAIRS = 2000
LARGEST_SHARE = 1 / 8
"""Largest share of sampled pairs with several source sentences for which lines count as
single sentences. By `split_sentences` it is up to 0.2 % in Multi30k, 1 to 3 % in Tatoeba and news,
5 % in descriptions of packages, 8 % in Europarl (the German side, where a speaker's two sentences
are often one of another language); but 20 % in program help and 36 % in documentation, whose lines
are paragraphs."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """The arguments of “dragoman train”.

    Parameters
    ----------
    out : Path
        The run's folder, which becomes the model folder.
    files : CorpusFiles
        The training corpus.
    valid_files : CorpusFiles | None
        The validation corpus, if one is given.
    preset : str
        The recipe's name.
    config : dict[str, Any]
        What a TOML file says.
    flags : dict[str, Any]
        What the command line says.
    source_language : str | None
        Code of the language to translate from; None: guessed from the files' names.
    target_language : str | None
        Likewise of the language to translate to.
    start_from : Path | None
        A model folder whose weights and subwords to begin with.
    store : Path | None
        Folder of the prepared corpus; None: within the run's folder.
    general : tuple[Path, ...]
        Files of general text to mix into a fine-tuning.
    """

    out: Path
    files: CorpusFiles = field(default_factory=CorpusFiles)
    valid_files: CorpusFiles | None = None
    preset: str = "auto"
    config: Plain = field(default_factory=dict)
    flags: Plain = field(default_factory=dict)
    source_language: str | None = None
    target_language: str | None = None
    start_from: Path | None = None
    store: Path | None = None
    general: tuple[Path, ...] = ()

    @property
    def is_tuning(self) -> bool:
        """Whether the run fine-tunes a trained model by the recipe “tuning”."""
        said = merge(self.config, self.flags).get("training", {})
        is_plain = said.get("objective", "likelihood") == "likelihood"
        return self.start_from is not None and self.preset in (AUTO, TUNING) and is_plain


def complete_request(request: RunRequest, start: ModelFolder | None) -> RunRequest:
    """Refuse what goes with fine-tuning only, and name the languages of translation memories."""
    if request.start_from is None and request.preset == TUNING:
        raise OptionError("--preset tuning is for fine-tuning: give --from, a trained model")
    if request.general and not request.is_tuning:
        raise OptionError(
            "--general is for fine-tuning: give --from, a trained model, and no other --preset; "
            "or give all files by --tsv, and --mix"
        )
    source, target = name_languages(request, start.facts if start else Facts())
    if source is None or target is None:
        return request
    languages = (source, target)
    return replace(
        request,
        files=replace(request.files, languages=languages),
        valid_files=request.valid_files and replace(request.valid_files, languages=languages),
    )


def resolve_request(
    request: RunRequest, start: ModelFolder | None, num_pairs: int, plan: Plain | None = None
) -> tuple[str, RunOptions]:
    """Resolve the options of a run."""
    given, named = request.config, TUNING if request.is_tuning else request.preset
    if start:
        own, shape = start.config.get("text", {}), to_plain(start.options)
        said = merge(request.config, request.flags)
        changed = {name for name, *_ in list_changes(own, said.get("text", {}))}
        if changed - {"bpe_dropout"}:
            raise OptionError("--from brings its own subwords; leave the options of text out")
        for name, _, value in list_changes(shape, said.get("model", {})):
            if name != "dropout":
                flag = name.replace("_", "-")
                raise OptionError(
                    f"--{flag} is {value}, but --from {start.path} brings its own shape; leave "
                    "it out"
                )
        if named == TUNING:
            del shape["dropout"]
        shape = {"model": shape, "text": own}
        given = merge(shape, request.config)
    preset, options = resolve_options(named, given, request.flags, num_pairs, plan)
    if options.training.objective == "reward" and not start:
        raise OptionError("--objective reward is a second stage: give --from, a trained model")
    return preset, options


def check_search(model: TranslationModel, options: SearchOptions, vocabulary: Vocabulary) -> None:
    """Check the search options against the model by starting a search on an empty source.

    Notes
    -----
    Otherwise a coverage penalty with a model without coverage would be refused only at the first
    validation, and the training until then would be lost.
    """
    if not options.coverage_penalty:
        return
    with torch.device(model.output.words.device), torch.no_grad():
        nothing = Sequences(torch.tensor([[vocabulary.eos_id]]), torch.tensor([1]))
        model.eval()  # type: ignore[attr-defined]
        state = model.start(model.encode(nothing), 1)
        model.train()  # type: ignore[attr-defined]
    check_coverage(state, options.coverage_penalty)


def learn_subwords(
    text: CleanText, options: RunOptions, say: Callable[[str], None]
) -> Vocabularies:
    """Read the user's subword model, or learn vocabularies, or reuse those of the store."""
    chosen = options.text
    if chosen.subwords:
        joint = Subwords.from_file(chosen.subwords)
        return Vocabularies(joint, joint)
    size = chosen.vocabulary_size
    if chosen.units == "subwords":
        size = size or choose_vocabulary_size(text.num_pairs)
    name = f"{chosen.units}-{size or 'all'}-{'joint' if chosen.joint else 'separate'}"
    folder = text.folder / name
    if not folder.exists():
        say(f"learning {f'{size:,} ' if size else ''}{chosen.units}")
        learnt = _learn_vocabularies(text, chosen, size)
        if learnt.is_closed:
            say("learning a dictionary for unknown words")
            learnt = replace(learnt, dictionary=_learn_dictionary(text))
        with written_beside(folder) as beside:
            beside.mkdir()
            files = learnt.files()
            for name, contents in files.items():
                (beside / name).write_bytes(contents)
            digests = {name: digest_of(contents) for name, contents in files.items()}
            write_facts(beside / VOCABULARY_FACTS, digests)
    check_vocabulary(folder)
    return Vocabularies.read(folder)


def _learn_vocabularies(text: CleanText, options: TextOptions, size: int | None) -> Vocabularies:
    """Learn the vocabularies of both sides from the training text."""

    def learn(lines: Iterator[str]) -> TextVocabulary:
        if options.units == "words":
            return learn_words(lines, vocabulary_size=size)
        if options.units == "characters":
            return Subwords.from_bytes(learn_characters(lines, vocabulary_size=size))
        assert size is not None
        return Subwords.from_bytes(train_subwords(lines, vocabulary_size=size))

    sides = [("source", "target")] if options.joint else [("source",), ("target",)]
    max_pairs = SUBWORD_PAIRS if options.units == "subwords" else None
    learnt = [learn(text.lines(side, max_pairs)) for side in sides]
    return Vocabularies(learnt[0], learnt[-1])


def _learn_dictionary(text: CleanText) -> Dictionary:
    """Learn a dictionary of source words, which replaces unknown words in translations."""
    lines = text.lines()
    return learn_dictionary(
        ([token.removeprefix(" ") for token in split_words(source)], split_words(target))
        for source, target in zip(lines, lines, strict=True)
    )


def predict_vocabulary(
    text: CleanText, options: TextOptions, start: ModelFolder | None
) -> Vocabulary:
    """Predict the vocabulary sizes of a run without training subwords."""
    ready = start.vocabularies if start else None
    if options.subwords and ready is None:
        joint = Subwords.from_file(options.subwords)
        ready = Vocabularies(joint, joint)
    if ready is not None:
        if options.bpe_dropout:
            check_merges(ready)
        return vocabulary_of(ready)
    if options.units != "subwords":
        return vocabulary_of(_learn_vocabularies(text, options, options.vocabulary_size))
    size = options.vocabulary_size or choose_vocabulary_size(text.num_pairs)
    return Vocabulary(size, size, 2, 0)


def describe_model(
    request: RunRequest,
    options: RunOptions,
    vocabularies: Vocabularies,
    store: Store,
    start: ModelFolder | None,
) -> ModelFolder:
    """Make the model folder's description of a run."""
    before = start.facts if start else Facts()
    source_language, target_language = name_languages(request, before)
    is_single = _has_single_sentences(store.train, source_language)
    facts = Facts(
        source_language=source_language,
        target_language=target_language,
        longest_source=max(int(store.train.source_lengths.max()), before.longest_source),
        training_pairs=len(store.train),
        formality=before.formality | _find_formality(store.train, options.text),
        about=before.about,
        one_sentence_a_line=is_single and before.one_sentence_a_line is not False,
    )
    return ModelFolder(
        path=request.out,
        config=to_plain(options),
        options=options.model,
        vocabularies=vocabularies,
        facts=facts,
    )


def name_languages(request: RunRequest, before: Facts) -> tuple[str | None, str | None]:
    """Name the languages: as was said, as of the model before, or as the files are called."""
    files = request.files
    source = request.source_language or before.source_language or _language_in_name(files.source)
    target = request.target_language or before.target_language or _language_in_name(files.target)
    return source, target


def _find_formality(pairs: PairStore, options: TextOptions) -> dict[str, str]:
    """Name the marks of formality, checking that there are sources that begin with them."""
    said = {"more": options.formal_mark, "less": options.informal_mark}
    marks = {kind: mark for kind, mark in said.items() if mark is not None}
    for mark in marks.values():
        if not any(pairs.text(row)[0].split(" ", 1)[0] == mark for row in range(len(pairs))):
            raise OptionError(
                f"no source line begins with “{mark}” and a space; put the mark before those whose "
                "translation it describes, or leave it out"
            )
    return marks


def _has_single_sentences(pairs: PairStore, language: str | None) -> bool:
    """Tell from a sample whether nearly every source line is a single sentence."""
    rows = pairs.epoch_order(seed=1, epoch=0)[:SENTENCE_PAIRS]
    sources = (pairs.text(int(row))[0] for row in np.sort(rows))
    return share_of_several(sources, language) <= LARGEST_SHARE


def _language_in_name(paths: tuple[Path, ...]) -> str | None:
    """Guess a language from names such as ``train.de`` or ``train.de.xz``."""
    for path in paths:
        for suffix in reversed(path.suffixes):
            code = suffix[1:]
            if code not in ("gz", "xz", "txt", "tok", "bpe"):
                return code if code.isalpha() and code.islower() and len(code) in (2, 3) else None
    return None
