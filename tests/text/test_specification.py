"""The specification of a model: which ones encode each word by itself."""

import io
import struct

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from dragoman.text.characters import learn_characters
from dragoman.text.specification import (
    is_cut_at_spaces,
    is_merged,
    read_fields,
    read_merges,
    write_field,
)
from dragoman.text.subwords import Subwords, train_subwords

CORPUS = ["the small dog sees a small house", "der kleine Hund sieht ein kleines Haus 1987"] * 20


def train(tmp_path, **options):
    """A model by SentencePiece itself, with the special symbols and rules of Dragoman's own."""
    rules = tmp_path / "rules.tsv"
    rules.write_text("41\t61\n")
    model = io.BytesIO()
    settings = {
        "model_type": "bpe",
        "vocab_size": 330,
        "byte_fallback": True,
        "eos_id": 0,
        "unk_id": 1,
        "pad_id": 2,
        "bos_id": -1,
        "normalization_rule_tsv": str(rules),
        "hard_vocab_limit": False,
        "minloglevel": 4,
    } | options
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, **settings
    )
    return model.getvalue()


def test_own_models_encode_each_word_by_itself():
    for model in (train_subwords(CORPUS, vocabulary_size=340), learn_characters(CORPUS)):
        assert is_cut_at_spaces(model)
        assert Subwords.from_bytes(model).splits_at_spaces


def test_what_decides_is_found_in_the_model(tmp_path):
    model = train(tmp_path)
    assert Subwords.from_bytes(model).splits_at_spaces


@pytest.mark.parametrize(
    "options",
    [
        {"model_type": "unigram"},
        {"treat_whitespace_as_suffix": True},
        {"add_dummy_prefix": False},
        {"remove_extra_whitespaces": False},
        {"normalization_rule_tsv": ""},
        {"split_by_whitespace": False},
        {"user_defined_symbols": "small▁dog"},
        {"byte_fallback": False},
        {"eos_id": 2, "pad_id": 0},
    ],
)
def test_of_other_models_it_is_not_assumed(tmp_path, options):
    assert not Subwords.from_bytes(train(tmp_path, **options)).splits_at_spaces


def test_fields_are_those_of_the_library():
    model = train_subwords(CORPUS, vocabulary_size=340)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    entries = [dict(read_fields(value)) for number, value in read_fields(model) if number == 1]
    assert [entry[1].decode() for entry in entries] == [
        processor.id_to_piece(piece_id) for piece_id in range(len(processor))
    ]


@pytest.mark.parametrize(
    "options", [{}, {"model_type": "unigram"}, {"user_defined_symbols": "small,▁dog"}]
)
def test_pieces_are_those_of_sentencepieces_own_buffers(options, tmp_path):
    model = train(tmp_path, **options)
    expected = ModelProto.FromString(model)
    found = [dict(read_fields(value)) for number, value in read_fields(model) if number == 1]
    assert [
        (each[1].decode(), *struct.unpack("<f", each.get(2, bytes(4))), each.get(3, 1))
        for each in found
    ] == [(each.piece, each.score, each.type) for each in expected.pieces]
    assert read_merges(model) == {
        each.piece: (piece_id, each.score)
        for piece_id, each in enumerate(expected.pieces)
        if each.type == 1
    }
    trainer = expected.trainer_spec
    assert is_merged(model) == (trainer.model_type == 2 and not trainer.user_defined_symbols)


@given(st.text(max_size=20), st.floats(width=32, allow_nan=False), st.integers(1, 6))
def test_fields_are_written_as_sentencepieces_own_buffers_are(text, score, kind):
    piece = ModelProto.SentencePiece(piece=text, score=score, type=kind)
    written = write_field(1, text) + write_field(2, score) + write_field(3, kind)
    assert written == piece.SerializeToString()


@given(
    st.lists(
        st.tuples(
            st.integers(1, 5000),
            st.one_of(st.integers(0, 2**60), st.binary(max_size=300), st.text(max_size=20)),
        )
    )
)
def test_fields_are_read_as_they_are_written(fields):
    written = b"".join(write_field(number, value) for number, value in fields)
    expected = [
        (number, value.encode() if isinstance(value, str) else value) for number, value in fields
    ]
    assert list(read_fields(written)) == expected


def test_fractions_are_four_bytes():
    ((number, value),) = read_fields(write_field(2, -1.5))
    assert (number, struct.unpack("<f", value)) == (2, (-1.5,))


def test_numbers_without_an_end_are_refused():
    with pytest.raises(ValueError, match="a number of over ten bytes"):
        list(read_fields(b"\x80" * 1_000_000))
