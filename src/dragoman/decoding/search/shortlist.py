"""Lexical short-lists: the few target tokens that a sentence's translation may need."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from dragoman.errors import DataError, FolderError, OptionError
from dragoman.files import written_beside
from dragoman.folder import ModelFolder
from dragoman.shapes import Int
from dragoman.tensor_files import TensorFile, write_tensors
from dragoman.text.lexicon import learn_lexicon
from dragoman.text.vocabulary import Vocabularies

SHORT_LIST_FILE = "short-list.safetensors"
NUM_LIKELY = 100
NUM_FREQUENT = 200
MOST_PAIRS = 100_000


class ShortList:
    """The likely target tokens of each source token, and tokens that are always allowed.

    Parameters
    ----------
    likely : Int[np.ndarray, "source_vocabulary likely"]
        The likeliest translations of each source subword; −1 where there are no more.
    always : Int[np.ndarray, "words"]
        Target subwords that any translation may need.
    """

    def __init__(
        self, likely: Int[np.ndarray, "source_vocabulary likely"], always: Int[np.ndarray, "words"]
    ) -> None:
        self._likely, self._always = likely, always

    def words_of(self, sentence: Sequence[int]) -> Int[np.ndarray, "words"]:
        """List the tokens that the translation of a sentence may use."""
        found = self._likely[np.unique(np.array(sentence, np.int64))].ravel()
        return np.unique(np.concatenate([found[found >= 0], self._always]))

    def write(self, folder: Path) -> None:
        """Write the short-list into a model folder."""
        arrays = {"likely": self._likely, "always": self._always}
        with written_beside(folder / SHORT_LIST_FILE) as beside:
            write_tensors(beside, {name: each.astype(np.int32) for name, each in arrays.items()})

    @staticmethod
    def read(folder: ModelFolder) -> "ShortList":
        """Read a short-list from a model folder, checking that it fits the model."""
        path = folder.path / SHORT_LIST_FILE
        remedy = "make one with “dragoman shortlist”"
        if not path.exists():
            raise FolderError(f"{folder.path}: has no short-list; {remedy}")
        sizes = [len(each) for each in folder.vocabularies]
        try:
            file = TensorFile(path)
            likely, always = (file.read(name).astype(np.int64) for name in ("likely", "always"))
            fits = likely.ndim == 2 and always.ndim == 1 and len(likely) == sizes[0]
            everything = np.concatenate([likely.ravel(), always])
            fits = fits and int(everything.min()) >= -1 and int(everything.max()) < sizes[1]
            fits = fits and bool((always >= 0).all())
            fits = fits and folder.vocabularies.eos_id in always.tolist()
        except (FolderError, ValueError):
            fits = False
        if not fits:
            raise FolderError(f"{path}: damaged, or of another model; {remedy}")
        return ShortList(likely, always)


def read_short_list(folder: ModelFolder, *, is_possible: bool) -> ShortList:
    """Read a model's short-list, refusing engines that cannot use one."""
    if not is_possible:
        raise OptionError(
            "--short-list: only Transformers with full attention search among some words alone, "
            "one model at a time, on the CPU; leave it out"
        )
    return ShortList.read(folder)


def learn_short_list(
    pairs: Iterable[tuple[str, str]],
    vocabularies: Vocabularies,
    *,
    num_likely: int = NUM_LIKELY,
    num_frequent: int = NUM_FREQUENT,
) -> ShortList:
    """Learn a short-list from sentence pairs.

    Returns
    -------
    ShortList
        Besides these, always the end symbol and the bytes with which anything can be written, and
        with joint subwords the source's own, for what is copied.

    Notes
    -----
    The most frequent of both languages take no part in learning: those of the target are always
    there, and those of the source say little. That leaves a fifth of the work.
    """
    taken = [pair for pair, _ in zip(pairs, range(MOST_PAIRS), strict=False)]
    if not taken:
        raise DataError("no sentence pairs to learn a short-list from")
    sources, targets = (
        [np.array(each, np.int64) for each in vocabulary.encode([pair[side] for pair in taken])]
        for side, vocabulary in enumerate(vocabularies)
    )
    num_sources, num_targets = (len(each) for each in vocabularies)
    frequent = _find_frequent(targets, num_targets, num_frequent)
    common = _find_frequent(sources, num_sources, num_frequent)
    lexicon = learn_lexicon(
        [each[~np.isin(each, common)] for each in sources],
        [each[~np.isin(each, frequent)] for each in targets],
        num_targets,
    )
    likely = lexicon.likeliest(num_sources, num_likely)
    if vocabularies.is_joint:
        likely = np.concatenate([likely, np.arange(num_sources)[:, None]], axis=1)
    target = vocabularies.target
    needed = np.array([target.eos_id, *getattr(target, "byte_ids", ())], np.int64)
    always = np.unique(np.concatenate([frequent, needed]))
    never = (vocabularies.pad_id, target.unk_id)
    likely[np.isin(likely, never)] = -1
    always = always[~np.isin(always, never)]
    return ShortList(likely, always)


def _find_frequent(sentences: Sequence[np.ndarray], size: int, count: int) -> np.ndarray:
    """Find the most frequent subwords."""
    counts = np.bincount(np.concatenate(sentences), minlength=size)
    return np.argsort(-counts, kind="stable")[:count]


def measure_coverage(
    short_list: ShortList, pairs: Sequence[tuple[str, str]], vocabularies: Vocabularies
) -> float:
    """Measure the share of reference tokens that a short-list allows."""
    sources, targets = (
        each.encode([pair[side] for pair in pairs]) for side, each in enumerate(vocabularies)
    )
    num_found = num_all = 0
    for source, target in zip(sources, targets, strict=True):
        words = short_list.words_of(source)
        num_found += int(np.isin(target, words).sum())
        num_all += len(target)
    return num_found / max(num_all, 1)
