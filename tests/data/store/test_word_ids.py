"""Numbered words: those of the text, done once."""

from collections import Counter

import numpy as np
import pytest

from dragoman.data.options import CorpusOptions
from dragoman.data.store import word_ids
from dragoman.data.store.clean_text import store_text
from dragoman.data.store.mapped import SIDES, mapped, slice_of
from dragoman.data.store.word_ids import END_WORD, store_words


@pytest.fixture
def folder(tmp_path, corpus_files):
    store_text(tmp_path / "store", corpus_files, None, CorpusOptions(valid_pairs=5))
    return tmp_path / "store"


@pytest.mark.parametrize("block_lines", [4096, 7])
def test_numbers_spell_the_text(folder, monkeypatch, block_lines):
    monkeypatch.setattr(word_ids, "ENCODED_LINES", block_lines)
    for side, found in zip(SIDES, store_words(folder), strict=True):
        text = mapped(folder / f"train.{side}.text", np.uint8)
        ends = mapped(folder / f"train.{side}.text-ends")
        names = [
            slice_of(found.texts, found.text_ends, number).tobytes().decode()
            for number in range(len(found.text_ends))
        ]
        assert len(set(names)) == len(names)
        seen = Counter()
        for line in range(len(ends)):
            words = slice_of(found.words, found.ends, line).tolist()
            assert words.pop() == END_WORD
            assert END_WORD not in words
            spelt = " ".join(names[word] for word in words)
            assert spelt == slice_of(text, ends, line).tobytes().decode()
            seen.update(words)
        assert len(found.ends) == len(ends)
        assert found.counts.tolist() == [len(ends), *(seen[word] for word in range(1, len(names)))]


def test_it_is_done_once_for_the_same_text(folder, monkeypatch):
    store_words(folder)
    with monkeypatch.context() as patched:
        patched.setattr(word_ids, "_number_words", None)
        store_words(folder)
    (folder / "words.json").write_text('{"key": "of another text"}')
    (folder / "train.source.words").write_bytes(b"")
    assert len(store_words(folder)[0].words)
