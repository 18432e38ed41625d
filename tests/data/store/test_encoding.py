"""Encoding in blocks: the ids that the vocabulary itself gives, whatever the number of workers."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data import workers
from dragoman.data.store import encoding
from dragoman.data.store.encoding import CachingEncoder, encode_blocks
from dragoman.text.characters import learn_characters
from dragoman.text.normalise import normalise
from dragoman.text.subwords import Subwords, train_subwords
from dragoman.text.word_vocabulary import learn_words

CORPUS = ["the small dog sees a small house", "der kleine Hund sieht ein Haus, 1987 Bäume"] * 20
VOCABULARIES = {
    "subwords": Subwords.from_bytes(train_subwords(CORPUS, vocabulary_size=340)),
    "characters": Subwords.from_bytes(learn_characters(CORPUS)),
    "words": learn_words(CORPUS),
}
TRAPS = ["▁", "a▁b", "▅", "</s>", "<0x41>", "⁇", "\U0010ffff", "e\u0301", "\u0301", "\u200d", "­"]
texts = st.lists(
    st.one_of(st.text(max_size=8), st.sampled_from([*TRAPS, " ", *CORPUS[1].split()]))
).map(lambda parts: normalise("".join(parts)))


def encoded_alone(vocabulary, sentences):
    return [[*ids, vocabulary.eos_id] for ids in vocabulary.encode(sentences)]


def split(ids, lengths):
    return [part.tolist() for part in np.split(ids, np.cumsum(lengths)[:-1])]


@pytest.mark.parametrize("name", VOCABULARIES)
@given(sentences=st.lists(texts, min_size=1, max_size=6))
def test_known_words_are_encoded_as_in_their_sentence(name, sentences):
    vocabulary = VOCABULARIES[name]
    assert vocabulary.splits_at_spaces
    encoder = CachingEncoder(vocabulary)
    for _ in range(2):  # unknown at first, then remembered
        found = encoder.encode(sentences)
        assert found[0].dtype == np.uint32
        assert split(*found) == encoded_alone(vocabulary, sentences)


def test_words_are_forgotten_before_they_fill_memory(monkeypatch):
    monkeypatch.setattr(encoding, "MOST_KNOWN_WORDS", 20)
    vocabulary = VOCABULARIES["subwords"]
    encoder = CachingEncoder(vocabulary)
    for first in range(0, 200, 10):
        sentences = [f"word{number} and {number}" for number in range(first, first + 10)]
        assert split(*encoder.encode(sentences)) == encoded_alone(vocabulary, sentences)
        assert len(encoder._places) <= 20 + 22


def as_bytes(sentences):
    raw = [sentence.encode() for sentence in sentences]
    text = np.frombuffer(b"".join(raw), np.uint8)
    return text, np.cumsum([len(each) for each in raw], dtype=np.int64)


def make_sentences(count):
    random = np.random.default_rng(1)
    words = np.array([*TRAPS, *CORPUS[0].split(), *CORPUS[1].split()])
    return [normalise(" ".join(random.choice(words, random.integers(0, 9)))) for _ in range(count)]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(encoding, "ENCODED_LINES", 30)
    monkeypatch.setattr(workers, "INLINE_BLOCKS", 1)


@pytest.mark.parametrize("num_workers", [1, 2])
@pytest.mark.parametrize("name", [*VOCABULARIES, "foreign"])
def test_any_number_of_workers_gives_the_same(small_blocks, name, num_workers, monkeypatch):
    vocabulary = VOCABULARIES["subwords" if name == "foreign" else name]
    if name == "foreign":
        monkeypatch.setattr(Subwords, "splits_at_spaces", False)
    sentences = make_sentences(400)
    blocks = list(encode_blocks(*as_bytes(sentences), vocabulary, num_workers=num_workers))
    assert len(blocks) == 14
    found = [ids for block in blocks for ids in split(*block)]
    assert found == encoded_alone(vocabulary, sentences)


def test_nothing_to_encode():
    assert list(encode_blocks(*as_bytes([]), VOCABULARIES["words"])) == []


@pytest.mark.parametrize("module", ["encoding", "cleaning"])
def test_what_workers_import_is_light(module):
    program = f"import sys, dragoman.data.store.{module}; print('torch' in sys.modules)"
    words = [sys.executable, "-c", program]
    found = subprocess.run(words, capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
