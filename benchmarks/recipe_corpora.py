"""The corpora of the study: what trains, what chooses, what reports, and how many tokens.

All files are written into the work folder once, as plain text: cut to size, with the lines that
choose and the lines that report kept apart.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from dragoman.data.corpus import read_lines
from dragoman.files import write_file
from dragoman.paper.training_runs.corpora import Corpus, Texts, prepare_corpus
from multi30k import find

CUT_SEED = 1
VALIDATION_LINES = 1000
OLDER_NEWS = tuple(
    ("newstest", f"{name}.en-de")
    for name in ("news-test2008", "newstest2009", "newstest2010", "newstest2011")
)

Say = Callable[[str], None]
Pairs = list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Study:
    """A corpus of the study.

    Parameters
    ----------
    languages : tuple[str, str]
        Of source and target.
    folder : str
        Its folder within the data; empty: the built-in corpus.
    num_pairs : int
        Sentence pairs to train on, about as many if the whole corpus is taken.
    is_cut : bool
        Whether that is a part, drawn at random, always the same.
    tokens : int
        Subwords of source and target that every run is trained on.
    report : str
        The set of lines whose score is shown first.
    title : str
        What to call it to people.
    also : tuple[tuple[str, str], ...]
        Folders and sets of lines that are trained on besides.
    """

    languages: tuple[str, str]
    folder: str
    num_pairs: int
    is_cut: bool = False
    tokens: int
    report: str = "valid"
    title: str
    also: tuple[tuple[str, str], ...] = ()


def _tatoeba(target: str, num_pairs: int, tokens: int, size: str) -> Study:
    return Study(
        languages=("en", target), folder=f"tatoeba-en-{target}", num_pairs=num_pairs,
        is_cut=size != "full", tokens=tokens, title=f"Tatoeba en→{target}, {size}",
    )  # fmt: skip


# Equal training tokens for all runs of a corpus. The paper's batches of 50,000 make 2,000 updates
# of 100 million tokens, smaller batches more.
STUDIES: dict[str, Study] = {
    "multi30k-en-de": Study(
        languages=("en", "de"), folder="multi30k", num_pairs=29_000, tokens=100_000_000,
        report="test2016", title="Multi30k en→de",
    ),
    "tatoeba-en-de-10k": _tatoeba("de", 10_000, 60_000_000, "10k"),
    "tatoeba-en-de-50k": _tatoeba("de", 50_000, 100_000_000, "50k"),
    "tatoeba-en-de-full": _tatoeba("de", 202_723, 200_000_000, "full"),
    "tatoeba-en-fr-10k": _tatoeba("fr", 10_000, 60_000_000, "10k"),
    "tatoeba-en-fr-50k": _tatoeba("fr", 50_000, 100_000_000, "50k"),
    "tatoeba-en-fr-full": _tatoeba("fr", 185_438, 200_000_000, "full"),
    "europarl-en-de": Study(
        languages=("en", "de"), folder="europarl-en-de", num_pairs=1_678_569, tokens=600_000_000,
        report="newstest2012", title="Europarl en→de",
    ),
    "europarl-tatoeba-en-de": Study(
        languages=("en", "de"), folder="europarl-en-de", num_pairs=1_891_360,
        tokens=1_000_000_000, report="newstest2012", title="Europarl, Tatoeba and news en→de",
        also=(("tatoeba-en-de", "train"), *OLDER_NEWS),
    ),
    "mixed-en-de": Study(
        languages=("en", "de"), folder="tatoeba-en-de", num_pairs=241_791, tokens=60_000_000,
        title="Tatoeba, Multi30k and news en→de", also=(("multi30k", "train"), *OLDER_NEWS),
    ),
    "builtin": Study(
        languages=("fr", "en"), folder="", num_pairs=1000, tokens=400_000,
        report="test", title="built-in fr→en (self-test)",
    ),
}  # fmt: skip
SELF_TEST = "builtin"


@dataclass(frozen=True, kw_only=True)
class Sets:
    """The held-out lines of a corpus.

    Parameters
    ----------
    choose : Pairs
        Lines that choose between recipes and checkpoints.
    report : dict[str, Pairs]
        Lines that report, by the name of their set; the first one is shown first.
    """

    choose: Pairs
    report: dict[str, Pairs]

    @property
    def all(self) -> dict[str, Pairs]:
        """Every set by its name, those that choose first."""
        return {"choose": self.choose} | self.report


def read_sets(name: str, data: Path, work: Path) -> Sets:
    """Read the held-out lines of a corpus.

    Parameters
    ----------
    name : str
        The corpus.
    data : Path
        The folder of all data.
    work : Path
        The work folder, for the built-in corpus.

    Returns
    -------
    Sets
        What chooses and what reports.
    """
    study = STUDIES[name]
    folder = _folder(name, data, work)
    if study.folder == "multi30k":
        report = {"test2016": _read_pairs(folder, "test_2016_flickr", study)}
        return Sets(choose=_read_pairs(folder, "val", study), report=report)
    if study.folder == "europarl-en-de":
        news = data / "newstest"
        report = {
            "newstest2012": _read_pairs(news, "newstest2012.en-de", study),
            "europarl_valid": _read_pairs(folder, "valid", study),
        }
        return Sets(choose=_read_pairs(news, "newstest2013.en-de", study), report=report)
    if name == SELF_TEST:
        report = {"test": _read_pairs(folder, "test", study)}
        return Sets(choose=_read_pairs(folder, "valid", study), report=report)
    valid = _read_pairs(folder, "valid", study)
    rest = [pair for place, pair in enumerate(valid) if place % 3]
    return Sets(choose=valid[::3], report={"valid": rest})


def find_missing(name: str, data: Path) -> str:
    """Say what of a corpus is not there.

    Parameters
    ----------
    name : str
        The corpus.
    data : Path
        The folder of all data.

    Returns
    -------
    str
        What is missing; empty if nothing is.
    """
    study = STUDIES[name]
    needed = [data / each for each in (study.folder, *(folder for folder, _ in study.also))]
    if study.folder == "europarl-en-de":
        needed.append(data / "newstest")
    return ", ".join(dict.fromkeys(str(path) for path in needed if not path.is_dir()))


def prepare_study(name: str, data: Path, work: Path, vocabulary: int | None, say: Say) -> Corpus:
    """Write a corpus into the work folder, clean it and learn its subwords, once for all runs.

    Parameters
    ----------
    name : str
        The corpus.
    data : Path
        The folder of all data.
    work : Path
        The work folder.
    vocabulary : int | None
        Subwords to ask for; the corpus may give fewer. None: by the size of the corpus.
    say : Callable[[str], None]
        Tells a person one line.

    Returns
    -------
    Corpus
        Ready for many runs at once.

    Notes
    -----
    Long sets are cut to every n-th line for the validations within training, which would else
    take longer than the training. The whole set still chooses between recipes.
    """
    study = STUDIES[name]
    folder = work / "text" / name
    texts = _name_texts(folder, study.languages)
    sets = read_sets(name, data, work)
    step = -(-len(sets.choose) // VALIDATION_LINES)
    if not texts.target.exists():
        train = _read_training(name, data, work)
        if study.is_cut:
            rows = np.random.default_rng(CUT_SEED).permutation(len(train))[: study.num_pairs]
            train = [train[row] for row in np.sort(rows)]
        _write_pairs(texts.valid_source, texts.valid_target, sets.choose[::step])
        lines = [pair for each in sets.all.values() for pair in each]
        _write_pairs(texts.test_source, texts.test_reference, lines)
        _write_pairs(texts.source, texts.target, train)
    say(f"{name}: {vocabulary or 'as many as suit'} subwords")
    return prepare_corpus(texts, work, vocabulary, say)


def _name_texts(folder: Path, languages: tuple[str, str]) -> Texts:
    source, target = languages
    return Texts(
        source=folder / f"train.{source}", target=folder / f"train.{target}",
        valid_source=folder / f"valid.{source}", valid_target=folder / f"valid.{target}",
        test_source=folder / f"all.{source}", test_reference=folder / f"all.{target}",
    )  # fmt: skip


def _folder(name: str, data: Path, work: Path) -> Path:
    """Find a corpus; make the built-in one if it is not there."""
    study = STUDIES[name]
    if study.folder:
        return data / study.folder
    folder = work / "builtin"
    if not folder.exists():
        from dragoman.data.builtin import write_corpus

        write_corpus(folder, languages="fr-en", count=study.num_pairs, held_out=60, seed=1)
    return folder


def _read_training(name: str, data: Path, work: Path) -> Pairs:
    study = STUDIES[name]
    folder = _folder(name, data, work)
    more = [pair for place, split in study.also for pair in _read_pairs(data / place, split, study)]
    shards = sorted(folder.glob("train.*.tsv.xz"))
    if not shards:
        return _read_pairs(folder, "train", study) + more
    lines = (line for shard in shards for line in read_lines(shard))
    split = (line.split("\t") for line in lines)
    return [(each[0], each[1]) for each in split if len(each) == 2] + more


def _read_pairs(folder: Path, split: str, study: Study) -> Pairs:
    sides = (read_lines(Path(find(folder, f"{split}.{each}"))) for each in study.languages)
    return list(zip(*sides, strict=True))


def _write_pairs(source: Path, target: Path, pairs: Pairs) -> None:
    for side, path in enumerate((source, target)):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, "".join(f"{pair[side]}\n" for pair in pairs))


def read_translations(path: Path, sets: Sets) -> dict[str, list[str]]:
    """Read the translations of all sets, which were translated as one file.

    Parameters
    ----------
    path : Path
        The translations.
    sets : Sets
        What was translated.

    Returns
    -------
    dict[str, list[str]]
        The lines of each set by its name.
    """
    lines = iter(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"))
    found = {name: list(islice(lines, len(pairs))) for name, pairs in sets.all.items()}
    if any(len(found[name]) != len(pairs) for name, pairs in sets.all.items()) or any(lines):
        raise SystemExit(f"{path}: not as many lines as there are sentences; remove it")
    return found
