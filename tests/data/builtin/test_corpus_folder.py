"""The corpus as a folder of files."""

import pytest

from dragoman.data.builtin import TASKS, generate_pairs, generate_task, write_corpus
from dragoman.errors import FolderError, OptionError


def _read(folder, name):
    return (folder / name).read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("languages", ["fr-en", "en-es"])
def test_files_hold_the_generated_pairs(tmp_path, languages):
    folder = tmp_path / "a" / "corpus"
    num_lines = write_corpus(folder, languages=languages, count=60, held_out=12, seed=5)
    source, target = languages.split("-")
    for split, count in (("train", 60), ("valid", 12), ("test", 12)):
        pairs = list(generate_pairs(languages, split=split, count=count, seed=5))
        assert _read(folder, f"{split}.{source}") == [pair.source for pair in pairs]
        assert _read(folder, f"{split}.{target}") == [pair.target for pair in pairs]
        assert num_lines[f"{split}.{source}"] == num_lines[f"{split}.align"] == count
        read = zip(
            _read(folder, f"{split}.words.{source}"),
            _read(folder, f"{split}.words.{target}"),
            _read(folder, f"{split}.align"),
            strict=True,
        )
        for pair, (source_words, target_words, links) in zip(pairs, read, strict=True):
            assert tuple(source_words.split(" ")) == pair.source_words
            assert tuple(target_words.split(" ")) == pair.target_words
            links = tuple(tuple(map(int, link.split("-"))) for link in links.split(" "))
            assert links == pair.alignment
    assert {path.name for path in folder.parent.iterdir()} == {"corpus"}


@pytest.mark.parametrize("task", TASKS)
def test_files_hold_the_pairs_of_a_task(tmp_path, task):
    num_lines = write_corpus(tmp_path, languages=task, count=60, held_out=12, seed=5, max_words=4)
    assert {path.name for path in tmp_path.iterdir()} == {"corpus.json", *num_lines}
    for split, count in (("train", 60), ("valid", 12), ("test", 12)):
        pairs = list(generate_task(task, split=split, count=count, seed=5, max_words=4))
        for side in ("source", "target"):
            texts = [getattr(pair, side) for pair in pairs]
            assert _read(tmp_path, f"{split}.{side}") == texts
            assert _read(tmp_path, f"{split}.words.{side}") == texts
        links = [" ".join(f"{i}-{j}" for i, j in pair.alignment) for pair in pairs]
        assert _read(tmp_path, f"{split}.align") == links


def test_own_folder_of_a_task_is_written_anew(tmp_path):
    write_corpus(tmp_path, languages="copy", count=5, held_out=2, seed=1)
    write_corpus(tmp_path, languages="fr-en", count=5, held_out=2, seed=1)
    assert not (tmp_path / "train.source").exists()
    write_corpus(tmp_path, languages="reversal", count=5, held_out=2, seed=1)
    assert len(_read(tmp_path, "train.source")) == 5
    assert not (tmp_path / "train.fr").exists()


def test_own_folder_is_written_anew(tmp_path):
    folder = tmp_path / "corpus"
    write_corpus(folder, languages="fr-en", count=5, held_out=2, seed=1)
    write_corpus(folder, languages="en-es", count=7, held_out=2, seed=1)
    assert len(_read(folder, "train.en")) == 7
    assert not (folder / "train.fr").exists()


def test_empty_folder_is_used(tmp_path):
    write_corpus(tmp_path, languages="fr-en", count=2, held_out=1, seed=1)
    assert len(_read(tmp_path, "train.fr")) == 2


def _make_foreign(folder):
    (folder / "thesis.txt").write_text("mine")
    return "holds no corpus.json"


def _make_file_among_own(folder):
    write_corpus(folder, languages="fr-en", count=2, held_out=1, seed=1)
    (folder / "thesis.txt").write_text("mine")
    return "thesis.txt: is no part of a built-in corpus"


def _make_foreign_manifest(folder):
    (folder / "corpus.json").write_text('{"writer": "somebody", "languages": "fr-en"}')
    return "corpus.json: was not written with a built-in corpus"


def _make_broken_manifest(folder):
    (folder / "corpus.json").write_text("[")
    return "corpus.json: was not written with a built-in corpus"


@pytest.mark.parametrize(
    "make", [_make_foreign, _make_file_among_own, _make_foreign_manifest, _make_broken_manifest]
)
def test_other_peoples_files_are_safe(tmp_path, make):
    message = make(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FolderError, match=message):
        write_corpus(tmp_path, languages="fr-en", count=3, held_out=1, seed=2)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "corpus").write_text("mine")
    with pytest.raises(FolderError, match="is a file; name a new folder"):
        write_corpus(tmp_path / "corpus", languages="fr-en", count=3, held_out=1, seed=2)


def test_bad_options_leave_no_trace(tmp_path):
    with pytest.raises(OptionError, match="held_out: 0 is too few"):
        write_corpus(tmp_path / "c", languages="fr-en", count=3, held_out=0, seed=2)
    with pytest.raises(OptionError, match="count: 0 is too few"):
        write_corpus(tmp_path / "c", languages="fr-en", count=0, held_out=3, seed=2)
    with pytest.raises(OptionError, match="did you mean “reversal”"):
        write_corpus(tmp_path / "c", languages="reversl", count=3, held_out=3, seed=2)
    with pytest.raises(OptionError, match=r"max_words: 5 means nothing for “fr-en”.*leave it out"):
        write_corpus(tmp_path / "c", languages="fr-en", count=3, held_out=3, seed=2, max_words=5)
    with pytest.raises(OptionError, match=r"count: 900 is too many for “valid”: only .* different"):
        write_corpus(tmp_path / "c", languages="copy", count=9, held_out=900, seed=2, max_words=1)
    assert not list(tmp_path.iterdir())
