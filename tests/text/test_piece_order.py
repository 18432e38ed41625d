"""Models in another tool's order: text is cut as before, and ids are the vocabulary's."""

import io
import random

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import FolderError
from dragoman.text.piece_order import drop_padding, order_pieces, plain_name, read_size
from dragoman.text.specification import write_field
from dragoman.text.subwords import Subwords

WORDS = (
    "the cat sat on a mat with green eyes and another long sentence where everything overlaps",
    "le chat était sur un tapis avec des yeux verts et une autre phrase où tout se chevauche",
)


def train(words, kind):
    """Train a model as Marian's users do, on sentences without meaning."""
    model, generator = io.BytesIO(), random.Random(len(words))
    sentences = [" ".join(generator.choices(words.split(), k=8)) for _ in range(200)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=model, model_type=kind, vocab_size=90,
        hard_vocab_limit=False, minloglevel=4,
    )  # fmt: skip
    return model.getvalue()


def load(model):
    return sentencepiece.SentencePieceProcessor(model_proto=model)


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def pair(request):
    """Two models and a vocabulary of most of their pieces, in an order of its own."""
    models = [train(words, request.param) for words in WORDS]
    names = {load(each).id_to_piece(i) for each in models for i in range(3, len(load(each)))}
    shuffled = sorted(names)
    random.Random(1).shuffle(shuffled)
    return models, ["</s>", "<unk>", "<pad>", *shuffled[8:], ">>fra<<"]


def test_ids_are_those_of_the_vocabulary(pair):
    models, names = pair
    ids = {name: piece_id for piece_id, name in enumerate(names)}
    generator = random.Random(2)
    for model in models:
        subwords = Subwords(order_pieces(model, names, place="here"))
        assert len(subwords) == len(names)
        assert (subwords.eos_id, subwords.unk_id, subwords.pad_id) == (0, 1, 2)
        for _ in range(200):
            text = " ".join(generator.choices(" ".join(WORDS).split(), k=7))
            expected = [ids.get(piece, 1) for piece in load(model).encode(text, out_type=str)]
            assert subwords.encode([text]) == [expected]


def test_every_piece_can_be_written_by_both(pair):
    models, names = pair
    one, other = (Subwords(order_pieces(model, names, place="here")) for model in models)
    pieces = [piece_id for piece_id, name in enumerate(names) if name.startswith("▁")]
    expected = " ".join("".join(names[i] for i in pieces).replace("▁", " ").split())
    expected = expected.removesuffix(" >>fra<<")
    for subwords in (one, other):
        assert subwords.decode([pieces[:-1] if names[pieces[-1]] == ">>fra<<" else pieces]) == (
            [expected]
        )
        assert subwords.pieces(range(len(names) - 1)) == names[:-1]
        assert subwords.decode([[], [0, 2]]) == ["", ""]


def test_marks_of_languages_are_kept_whole(pair):
    models, names = pair
    subwords = Subwords(order_pieces(models[0], names, place="here"))
    (ids,) = subwords.encode([">>fra<< the cat"])
    assert subwords.pieces(ids)[0] == "▁>>fra<<"
    assert ids[1:] == subwords.encode(["the cat"])[0]


def test_ordering_again_changes_the_order_alone(pair):
    models, names = pair
    turned = [*names[:3], *reversed(names[3:])]
    once = order_pieces(models[0], names, place="here")
    twice = Subwords(order_pieces(once, turned, place="here"))
    at_once = Subwords(order_pieces(models[0], turned, place="here"))
    text = " ".join(WORDS)
    assert twice.encode([text]) == at_once.encode([text])


def test_a_model_in_order_is_left_alone(subwords):
    names = subwords.pieces(range(len(subwords)))
    assert order_pieces(subwords.to_bytes(), names, place="here") == subwords.to_bytes()
    assert read_size(subwords.to_bytes()) is None


@given(size=st.integers(1, 40))
def test_the_size_is_found(subwords, size):
    names = ["</s>", "<unk>", "<pad>"]
    names += [name for name in subwords.pieces(range(3, 2 + size)) if name not in names]
    model = order_pieces(subwords.to_bytes(), names, place="here")
    assert read_size(model) == len(names)
    assert sorted(load(model).id_to_piece(i) for i in range(len(load(model)))) == (
        sorted(subwords.pieces(range(len(subwords))))
    )


def test_names_are_plain():
    assert plain_name("▁a") == "▁a"
    assert plain_name("\U0010ffff▁a") == "▁a"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["</s>", "<pad>"], "here: the vocabulary lacks <unk>; get the model again"),
        (["</s>", "<pad>", "<unk>", "a", "a"], "here: the vocabulary has 1 entries twice"),
    ],
)
def test_vocabularies_that_cannot_be(subwords, names, message):
    with pytest.raises(FolderError) as caught:
        order_pieces(subwords.to_bytes(), names, place="here")
    assert str(caught.value).startswith(message)


def test_another_name_for_the_unknown():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(WORDS), model_writer=model, vocab_size=60, unk_piece="[UNK]",
        hard_vocab_limit=False, minloglevel=4,
    )  # fmt: skip
    with pytest.raises(FolderError, match="calls the unknown piece something else than <unk>"):
        order_pieces(model.getvalue(), ["</s>", "<unk>", "<pad>"], place="here")


def test_more_pieces_than_there_are(pair):
    models, names = pair
    ordered = order_pieces(models[0], names, place="here")
    size = write_field(200, len(names))
    assert ordered.startswith(size)
    with pytest.raises(FolderError, match="is not a SentencePiece model, or damaged"):
        Subwords(write_field(200, 5000) + ordered[len(size) :])


def test_a_piece_without_a_text(pair):
    models, names = pair
    piece = write_field(1, "text") + write_field(1, 3)
    with pytest.raises(FolderError, match="here: has a damaged SentencePiece model"):
        order_pieces(write_field(1, piece) + models[0], names, place="here")


def test_the_padding_is_dropped(pair):
    """Ids behind it move up by one; those before it, and how text is cut, stay."""
    models, names = pair
    for model in models:
        ordered = order_pieces(model, names, place="here")
        without = drop_padding(ordered)
        kept = [name for name in names if name != "<pad>"]
        assert read_size(without) == len(kept)
        processor, before = load(without), load(ordered)
        assert "<pad>" not in processor.id_to_piece(list(range(len(processor))))
        text = " ".join(WORDS[0].split()[:5])
        assert processor.encode(text, out_type=str) == before.encode(text, out_type=str)
        assert processor.eos_id() == 0
