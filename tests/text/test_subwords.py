import random
import subprocess
import sys

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError, FolderError, OptionError
from dragoman.text import subwords as subwords_module
from dragoman.text.normalise import normalise
from dragoman.text.options import TextOptions
from dragoman.text.specification import SPACE_MARK, read_fields
from dragoman.text.subwords import Subwords, choose_vocabulary_size, train_subwords

SENTENCE = "the dog sees a small house and der Hund sieht ein kleines Haus über 1987 Bäume ;"
WORDS = SENTENCE.split()
TRAPS = ["▁", "▅", "<pad>", "</s>", "<s>", "<unk>", "<0x41>", "⁇", "\U0010ffff", "\ud800", " "]

texts = st.lists(st.one_of(st.text(max_size=8), st.sampled_from(TRAPS + WORDS))).map("".join)


def make_corpus(num_sentences, words=WORDS, seed=0):
    generator = random.Random(seed)
    return [" ".join(generator.choices(words, k=8)) for _ in range(num_sentences)]


def make_words(num_words, alphabet, seed=0):
    generator = random.Random(seed)
    return ["".join(generator.choices(alphabet, k=6)) for _ in range(num_words)]


@pytest.fixture(scope="module")
def model():
    return train_subwords(make_corpus(300), vocabulary_size=400)


@pytest.fixture(scope="module")
def subwords(model):
    return Subwords.from_bytes(model)


def train_foreign(**options):
    """A model made by SentencePiece itself, with its own defaults."""
    path = options.pop("path")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(make_corpus(300)),
        model_prefix=str(path.with_suffix("")),
        hard_vocab_limit=False,
        minloglevel=4,
        **options,
    )
    return path


# Training


def test_training_is_reproducible(model):
    assert train_subwords(iter(make_corpus(300)), vocabulary_size=400) == model


def test_special_symbols(subwords):
    assert (subwords.eos_id, subwords.unk_id, subwords.pad_id) == (0, 1, 2)
    assert subwords.pieces([0, 1, 2]) == ["</s>", "<unk>", "<pad>"]


def test_vocabulary_has_the_size_wanted_or_less_if_the_corpus_is_small(subwords):
    rich = make_corpus(500, make_words(300, "abcdefghijklmnop"))
    assert len(Subwords.from_bytes(train_subwords(rich, vocabulary_size=640))) == 640
    poor = Subwords.from_bytes(train_subwords(["one two"], vocabulary_size=8000))
    assert 259 < len(poor) < 300


def test_more_characters_than_vocabulary():
    corpus = ["".join(map(chr, range(start, start + 50))) for start in range(0x4E00, 0x5C00, 50)]
    corpus += ["的一是"] * 200
    subwords = Subwords.from_bytes(train_subwords(corpus, vocabulary_size=400))
    assert len(subwords) <= 400
    ids = subwords.encode(["的一是", "嗨"])
    assert [piece.startswith("<0x") for piece in subwords.pieces(ids[1])] == [False] + [True] * 3
    assert not any(piece.startswith("<0x") for piece in subwords.pieces(ids[0]))
    assert subwords.decode(ids) == ["的一是", "嗨"]


def test_rare_characters_are_bytes_in_a_large_corpus():
    corpus = [*make_corpus(6000), "☃" * 9, "♥" * 10]
    subwords = Subwords.from_bytes(train_subwords(corpus, vocabulary_size=400))
    assert len(subwords.encode(["☃"])[0]) == 1 + 3
    assert len(subwords.encode(["♥"])[0]) <= 2


@pytest.mark.parametrize(
    "long_text", ["q" + "the dog " * 10_000, "abc" * 50_000 + "q", "the dog " * 20_000 + "q"]
)
def test_long_lines_are_trained_on_whole(long_text):
    subwords = Subwords.from_bytes(train_subwords([long_text, "qqqqqqqqq"], vocabulary_size=400))
    assert "q" in subwords.pieces(range(len(subwords)))
    alone = Subwords.from_bytes(train_subwords([long_text + "q" * 10], vocabulary_size=400))
    assert "q" in alone.pieces(range(len(alone)))


def test_sentences_with_reserved_characters_are_not_lost():
    subwords = Subwords.from_bytes(train_subwords(["zebra ▅ ▁ quagga"] * 9, vocabulary_size=400))
    assert {"▁zebra", "▁quagga"} <= set(subwords.pieces(range(len(subwords))))


def test_every_digit_is_a_piece(subwords):
    assert subwords.pieces(subwords.encode(["1987"])[0]) == ["▁", "1", "9", "8", "7"]


def test_counted_words_teach_what_sentences_teach(monkeypatch):
    """SentencePiece itself, given the sentences, is the oracle."""
    corpus = make_corpus(300, ["Ödön", "1987", "l’été", "wort-wort", "x" * 40], seed=3)
    model = train_subwords(corpus, vocabulary_size=420)
    monkeypatch.setattr(subwords_module, "_prepare_for_training", lambda *_: iter(corpus))
    train = sentencepiece.SentencePieceTrainer.train

    def train_on_sentences(**options):
        options.pop("input_format")
        train(**options)

    monkeypatch.setattr(sentencepiece.SentencePieceTrainer, "train", train_on_sentences)
    sentences = train_subwords(corpus, vocabulary_size=420)
    pieces = [
        [fields for number, fields in read_fields(each) if number == 1]
        for each in (model, sentences)
    ]
    assert pieces[0] == pieces[1]
    assert len(pieces[0]) > 300


@pytest.mark.parametrize("corpus", [[], ["", " \n", "\u200b"], ["▅ ▁"]])
def test_empty_corpus(corpus):
    with pytest.raises(DataError, match="the corpus has no text to train on; check the files"):
        train_subwords(corpus, vocabulary_size=400)


def test_vocabulary_too_small():
    with pytest.raises(OptionError, match=r"vocabulary_size: 300 is too small.*at least 320"):
        train_subwords(["text"], vocabulary_size=300)


def test_nothing_is_logged():
    program = (
        "from dragoman.text.subwords import Subwords, train_subwords\n"
        "model = train_subwords(['some words'] * 9, vocabulary_size=400)\n"
        "try:\n    Subwords.from_bytes(model[:99])\nexcept Exception: pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")


# Encoding and decoding


@given(st.lists(texts, max_size=4))
def test_round_trip(subwords, lines):
    ids = subwords.encode(lines)
    assert subwords.decode(ids) == [normalise(line) for line in lines]
    special = {subwords.eos_id, subwords.unk_id, subwords.pad_id}
    assert special.isdisjoint(piece_id for line in ids for piece_id in line)


@given(texts)
def test_encoding_ignores_how_a_text_is_spelled(subwords, text):
    assert subwords.encode([text]) == subwords.encode([f"\u200b {normalise(text)}\u00a0"])


def test_threads_do_not_matter(subwords):
    lines = make_corpus(200, seed=1)
    ids = [subwords.encode([line])[0] for line in lines]
    assert subwords.encode(lines, num_threads=3) == ids
    assert subwords.decode(ids, num_threads=3) == subwords.decode(ids)


def test_nothing_to_do(subwords):
    assert subwords.encode([]) == subwords.decode([]) == subwords.pieces([]) == []
    assert subwords.encode([""]) == [[]]
    assert subwords.decode([[], [subwords.eos_id]]) == ["", ""]


@given(st.data())
def test_decoding_takes_any_ids(subwords, data):
    some_ids = st.lists(st.integers(0, len(subwords) - 1), max_size=20)
    ids = data.draw(st.lists(some_ids, max_size=3))
    decoded = subwords.decode(ids)
    assert len(decoded) == len(ids)
    assert decoded == [normalise(text) for text in decoded]
    special = (subwords.eos_id, subwords.pad_id)
    assert decoded == subwords.decode([[i for i in line if i not in special] for line in ids])


@given(st.text(st.characters(categories=["L", "N", "S"])).map(normalise))
def test_bytes_are_put_together(subwords, text):
    first = subwords.pieces(range(len(subwords))).index("<0x00>")
    assert subwords.decode([[first + byte for byte in text.encode()]]) == [text]


def test_bytes_that_are_not_utf_8(subwords):
    first = subwords.pieces(range(len(subwords))).index("<0x00>")
    letter, broken = first + ord("A"), first + 0xE2
    assert subwords.decode([[letter, broken, letter]]) == ["A\ufffdA"]


@given(texts)
def test_pieces_spell_the_text(subwords, text):
    text = normalise(text).replace("▁", "").replace("<", "")
    spelled = b""
    for piece in subwords.pieces(subwords.encode([text])[0]):
        is_byte = piece.startswith("<0x")
        spelled += bytes([int(piece[3:5], 16)]) if is_byte else piece.encode()
    assert spelled.decode().replace("▁", " ").strip() == normalise(text)


# Loading


def test_bytes_and_file_give_the_same_model(model, subwords, tmp_path):
    path = tmp_path / "subwords.model"
    path.write_bytes(subwords.to_bytes())
    loaded = Subwords.from_file(path)
    assert loaded.to_bytes() == model
    assert loaded.encode(make_corpus(9)) == subwords.encode(make_corpus(9))


def test_missing_file(tmp_path):
    with pytest.raises(FolderError, match=r"none.model: cannot be read \(No such file.*; give"):
        Subwords.from_file(tmp_path / "none.model")


@pytest.mark.parametrize("content", [b"", b"text" * 99])
def test_file_that_is_no_model(content, tmp_path):
    path = tmp_path / "subwords.model"
    path.write_bytes(content)
    with pytest.raises(FolderError, match=r"subwords.model: is not a SentencePiece model.*again"):
        Subwords.from_file(path)
    with pytest.raises(FolderError, match=r"subword model: is not a SentencePiece model"):
        Subwords.from_bytes(content)


def test_half_a_model(model):
    with pytest.raises(FolderError, match="damaged"):
        Subwords.from_bytes(model[: len(model) - 1000])


def test_a_piece_that_is_no_text(model):
    damaged = bytearray(model)
    damaged[model.index(SPACE_MARK.encode())] &= 127
    with pytest.raises(FolderError, match="is not a SentencePiece model, or damaged"):
        Subwords.from_bytes(bytes(damaged))


def test_foreign_model_pads_with_the_unused_beginning(tmp_path):
    path = train_foreign(path=tmp_path / "foreign.model", model_type="unigram", vocab_size=60)
    subwords = Subwords.from_file(path)
    assert (subwords.unk_id, subwords.pad_id, subwords.eos_id) == (0, 1, 2)
    assert subwords.pieces([1]) == ["<s>"]
    lines = make_corpus(20, seed=2)
    assert subwords.decode(subwords.encode(lines)) == lines
    assert subwords.decode([[1, *subwords.encode(lines)[0], 2, 1]]) == lines[:1]
    assert subwords.decode(subwords.encode(["the▁dog"])) == ["the dog"]


def test_foreign_model_keeps_its_own_padding(tmp_path):
    path = train_foreign(path=tmp_path / "foreign.model", vocab_size=60, pad_id=3)
    assert Subwords.from_file(path).pad_id == 3


def test_foreign_model_without_padding(tmp_path):
    path = train_foreign(path=tmp_path / "foreign.model", vocab_size=60, bos_id=-1)
    with pytest.raises(FolderError, match=r"foreign.model: has no piece for padding.*--pad_id"):
        Subwords.from_file(path)


def test_foreign_model_without_end(tmp_path):
    path = train_foreign(path=tmp_path / "foreign.model", vocab_size=60, eos_id=-1)
    with pytest.raises(FolderError, match=r"foreign.model: has no piece for the end.*--eos_id"):
        Subwords.from_file(path)


# The size of the vocabulary, and the options


@given(st.integers(0, 10**8), st.integers(0, 10**8))
def test_vocabulary_grows_with_the_corpus(one, other):
    sizes = [choose_vocabulary_size(num_pairs) for num_pairs in sorted((one, other))]
    assert sizes == sorted(sizes)
    assert all(size % 64 == 0 and 1024 <= size <= 32_000 for size in sizes)


@pytest.mark.parametrize(
    ("num_pairs", "size"),
    [(0, 1024), (30_000, 8_000), (200_000, 9_984), (600_000, 16_000), (2_000_000, 32_000)],
)
def test_known_good_sizes(num_pairs, size):
    assert choose_vocabulary_size(num_pairs) == size
    assert abs(choose_vocabulary_size(num_pairs + 1) - size) <= 64


def test_options_explain_themselves():
    fields = TextOptions.__dataclass_fields__.values()
    assert all(field.metadata["help"].endswith(".") for field in fields)
    assert TextOptions(vocabulary_size=320, joint=False).vocabulary_size == 320
    assert TextOptions(subwords="some.model").joint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocabulary_size": 12}, "vocabulary_size: 12 is too small.*at least 320"),
        ({"subwords": ""}, "subwords: the path is empty; give"),
        ({"subwords": "a", "vocabulary_size": 999}, "vocabulary_size: 999 means nothing.*leave"),
        ({"subwords": "a", "joint": False}, "joint: no, but.*'a' serve both.*leave"),
    ],
)
def test_options_that_cannot_be_meant(options, message):
    with pytest.raises(OptionError, match=message):
        TextOptions(**options)
