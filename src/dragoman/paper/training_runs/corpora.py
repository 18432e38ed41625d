"""Corpora of experiments, prepared once for all runs.

Everything an experiment makes is in a work folder: corpora under ``data``, prepared corpora under
``stores``, runs under ``runs``.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import OptionError
from dragoman.options import option, require
from dragoman.paper.report.result import Say


@dataclass(frozen=True, kw_only=True)
class Texts:
    """The files of a corpus, plain or packed, one sentence a line.

    Parameters
    ----------
    source, target : Path
        To train on.
    valid_source, valid_target : Path
        To validate on.
    test_source, test_reference : Path
        To translate, and to compare with.
    """

    source: Path
    target: Path
    valid_source: Path
    valid_target: Path
    test_source: Path
    test_reference: Path


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """The sentence pairs: six files, or else the built-in French–English corpus."""

    source: str | None = option(None, "source sentences to train on")
    target: str | None = option(None, "their translations")
    valid_source: str | None = option(None, "source sentences to validate on")
    valid_target: str | None = option(None, "their translations")
    test_source: str | None = option(None, "source sentences to test on")
    test_reference: str | None = option(None, "their translations")
    sentences: int = option(20_000, "training pairs of the built-in corpus")
    held_out: int = option(500, "validation pairs of the built-in corpus, and as many to test")

    def __post_init__(self) -> None:
        given = self.given
        missing = [name for name in Texts.__annotations__ if name not in given]
        if given and missing:
            flag = missing[0].replace("_", "-")
            raise OptionError(f"--{flag} is missing: give all six files of the corpus, or none")
        require(self.sentences >= 1, "--sentences", self.sentences, "give ≥ 1")
        require(self.held_out >= 1, "--held-out", self.held_out, "give ≥ 1")

    @property
    def given(self) -> dict[str, str]:
        """The files given by the user."""
        return {name: path for name in Texts.__annotations__ if (path := getattr(self, name))}

    @property
    def title(self) -> str:
        """The label of the corpus."""
        return Path(self.source).name if self.source else "the built-in French–English corpus"

    def find(self, work: Path) -> Texts:
        """Return the corpus; generate the built-in one if it is missing."""
        if self.given:
            return Texts(**{name: Path(path) for name, path in self.given.items()})
        from dragoman.data.builtin import write_corpus

        folder = work / "data" / f"fr-en-{self.sentences}-{self.held_out}"
        if not (folder / "corpus.json").exists():
            write_corpus(
                folder, languages="fr-en", count=self.sentences, held_out=self.held_out, seed=1
            )
        return name_texts(folder)


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A prepared corpus.

    Parameters
    ----------
    texts : Texts
        Its files.
    store : Path
        Folder of the prepared corpus, shared by all runs.
    key : str
        What it was made from.
    vocabulary_size : int
        Subwords, shared by source and target, and by all runs.
    subwords : Path
        The SentencePiece model.
    num_pairs, num_tokens : int
        To train on.
    """

    texts: Texts
    store: Path
    key: str
    vocabulary_size: int
    subwords: Path
    num_pairs: int
    num_tokens: int


def name_texts(folder: Path) -> Texts:
    """List the files of a French–English corpus folder."""
    return Texts(
        source=folder / "train.fr", target=folder / "train.en",
        valid_source=folder / "valid.fr", valid_target=folder / "valid.en",
        test_source=folder / "test.fr", test_reference=folder / "test.en",
    )  # fmt: skip


def prepare_corpus(
    texts: Texts,
    work: Path,
    vocabulary_size: int | None,
    say: Say,
    *,
    subwords: Path | None = None,
) -> Corpus:
    """Clean a corpus and learn its subwords, once for all runs.

    Notes
    -----
    Runs that begin at the same moment must find the corpus prepared: nothing keeps two processes
    from preparing one folder at once.
    """
    from dragoman.data.corpus import CorpusFiles
    from dragoman.data.options import CorpusOptions
    from dragoman.data.store.clean_text import store_text
    from dragoman.data.store.store import store_ids
    from dragoman.files import write_file
    from dragoman.text.subwords import Subwords, choose_vocabulary_size, train_subwords
    from dragoman.text.vocabulary import Vocabularies

    files = CorpusFiles(source=(texts.source,), target=(texts.target,))
    valid_files = CorpusFiles(source=(texts.valid_source,), target=(texts.valid_target,))
    learnt = subwords.read_bytes() if subwords else None
    parts = (files.content_hash(), valid_files.content_hash(), vocabulary_size, learnt)
    folder = work / "stores" / make_digest(*parts)
    text = store_text(folder, files, valid_files, CorpusOptions())
    say(f"corpus: {text.report.in_words()}")
    path = folder / "subwords.model"
    if not path.exists():
        size = vocabulary_size or choose_vocabulary_size(text.num_pairs)
        write_file(path, learnt or train_subwords(text.lines(), vocabulary_size=size))
    joint = Subwords.from_file(str(path))
    store = store_ids(text, Vocabularies(joint, joint), CorpusOptions().max_length)
    return Corpus(
        texts=texts,
        store=folder,
        key=store.key,
        vocabulary_size=len(joint),
        subwords=path,
        num_pairs=len(store.train),
        num_tokens=store.train.num_tokens,
    )


def make_digest(*parts: object) -> str:
    """Make a short digest of a list of values."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=5).hexdigest()


def hash_contents(paths: Iterable[Path]) -> str:
    """Hash the contents of files."""
    from dragoman.data.corpus import CorpusFiles

    return CorpusFiles(tsv=tuple(paths)).content_hash()
