"""What is written for Marian comes back, and what Marian cannot be is refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import yaml

from dragoman.cli.command import main
from dragoman.errors import FolderError
from dragoman.exchange.marian import import_marian
from dragoman.exchange.marian_export import export_marian
from dragoman.exchange.marian_files import read_decoder_settings, read_npz, read_settings
from dragoman.folder import read_folder
from dragoman.text.subwords import Subwords
from dragoman.text.vocabulary import Vocabularies
from dragoman.text.whole_words import make_whole_words

COMMON = {"positions": "marian", "norm_epsilon": 1e-6}
SHAPES = {
    "post-norm": {},
    "swish": {"feed_forward": "swish", "attention_bias": True, "output_bias": True},
    "pre-norm": {"norm_position": "pre", "tied_embeddings": "target", "attention_bias": True},
    "untied": {"tied_embeddings": "none", "output_bias": True},
    "cells": {"decoder_attention": "ssru"},
    "cells, pre-norm": {"decoder_attention": "ssru", "norm_position": "pre"},
    "RMS norms": {"norm": "rms"},
    "RMS norms, pre-norm": {"norm": "rms", "norm_position": "pre"},
    "no positions": {"positions": "none", "tied_embeddings": "target"},
    "no positions, pre-norm": {"positions": "none", "norm_position": "pre"},
    "no positions, untied": {"positions": "none", "tied_embeddings": "none"},
}


@pytest.mark.parametrize("kind", SHAPES)
def test_comes_back(make_model, vocabularies, own, texts, others, tmp_path, kind):
    path = make_model(vocabularies, **COMMON | SHAPES[kind])
    export_marian(path, tmp_path / "marian")
    import_marian(tmp_path / "marian", tmp_path / "model")
    before, after = own(path), own(tmp_path / "model")
    options = after.folder.options
    assert options == replace(before.folder.options, attention_bias=options.attention_bias,
                              dropout=options.dropout)  # fmt: skip
    torch.testing.assert_close(after.likelihoods(texts, others), before.likelihoods(texts, others))
    found, expected = (
        [each.folder.vocabularies.target.pieces(ids) for ids in each.greedy(max_length=20)]
        for each in (after, before)
    )
    assert found == expected


def test_names_and_shapes_are_marians(make_model, vocabularies, tmp_path):
    path = make_model(vocabularies, **COMMON, decoder_attention="ssru")
    export_marian(path, tmp_path / "marian")
    file = tmp_path / "marian" / "model.npz"
    arrays, text = read_npz(file)
    said = read_settings(text, file)
    assert (said["transformer-decoder-autoreg"], said["dec-cell"]) == ("rnn", "ssru")
    size = len(read_folder(path).vocabularies.target) - 1  # Marian knows no padding
    assert said["dim-vocabs"] == f"[{size}, {size}]"
    shapes = {name: each.shape for name, each in arrays.items()}
    assert shapes["Wemb"] == (size, 32)
    assert shapes["decoder_ff_logit_out_b"] == (1, size)
    assert shapes["encoder_l1_self_Wq"] == shapes["decoder_l2_rnn_Wf"] == (32, 32)
    assert shapes["encoder_l1_ffn_W1"] == (32, 48)
    assert shapes["decoder_l1_rnn_bf"] == shapes["decoder_l1_rnn_ffn_ln_scale"] == (1, 32)
    assert not any("self" in name for name in shapes if name.startswith("decoder"))
    assert all(each.dtype == np.float32 for each in arrays.values())
    settings = read_decoder_settings(tmp_path / "marian" / "model.npz.decoder.yml")
    assert settings["vocabs"] == "[source.spm, target.spm]"


def test_the_vocabularies_that_the_settings_name_are_taken(
    make_model, vocabularies, own, texts, tmp_path
):
    path = make_model(vocabularies, **COMMON)
    export_marian(path, tmp_path / "marian")
    (tmp_path / "marian" / "vocab.spm").write_bytes(b"another model's")
    import_marian(tmp_path / "marian", tmp_path / "model")
    expected = own(path).likelihoods(texts, texts)
    torch.testing.assert_close(own(tmp_path / "model").likelihoods(texts, texts), expected)
    settings = tmp_path / "marian" / "model.npz.decoder.yml"
    settings.write_text("vocabs:\n  - /there/source.spm\n  - /there/target.spm\n")
    import_marian(tmp_path / "marian", tmp_path / "again")
    settings.write_bytes(b"\xff\xfe")
    with pytest.raises(FolderError, match=r"decoder\.yml: is damaged; get it again"):
        import_marian(tmp_path / "marian", tmp_path / "third")


def test_attention_that_is_not_scaled_comes_back_scaled(
    make_model, vocabularies, own, texts, others, tmp_path
):
    path = make_model(vocabularies, **COMMON, scaled=False, attention_bias=True)
    export_marian(path, tmp_path / "marian")
    import_marian(tmp_path / "marian", tmp_path / "model")
    before, after = own(path), own(tmp_path / "model")
    assert after.folder.options.scaled
    torch.testing.assert_close(after.likelihoods(texts, others), before.likelihoods(texts, others))


def test_whole_words_are_written_as_a_list(make_model, tmp_path):
    words = Subwords.from_bytes(make_whole_words(["</s>", "<unk>", "<pad>", "▁a", '▁"', "▁é"]))
    path = make_model(Vocabularies(words, words), **COMMON)
    export_marian(path, tmp_path / "marian")
    text = (tmp_path / "marian" / "source.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(text) == {"</s>": 0, "<unk>": 1, "a": 2, '"': 3, "é": 4}
    settings = read_decoder_settings(tmp_path / "marian" / "model.npz.decoder.yml")
    assert settings["vocabs"] == "[source.yml, target.yml]"
    import_marian(tmp_path / "marian", tmp_path / "model")
    back = read_folder(tmp_path / "model").vocabularies.source
    pieces = back.pieces(back.encode(["é new old a"])[0])
    assert pieces == ["▁é", "<unk>", "<unk>", "▁a"]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"positions": "sinusoidal"}, "“sinusoidal” positions (train with --positions marian)"),
        ({"feed_forward": "swiglu"}, "the activation “swiglu”"),
        ({"decoder_attention": "restricted"}, "“restricted” attention"),
        ({"residual": False}, "no residual connections"),
        ({"decoder_mask": False}, "a decoder without a mask"),
    ],
    ids=str,
)
def test_what_marian_cannot_be_is_refused(make_model, vocabularies, tmp_path, changes, what):
    path = make_model(vocabularies, **{"positions": "marian"} | changes)
    with pytest.raises(FolderError) as caught:
        export_marian(path, tmp_path / "marian")
    assert str(caught.value) == (
        f"{path}: has {what}, which Marian cannot represent; nothing is written"
    )
    assert not (tmp_path / "marian").exists()


def test_cells_are_marians_alone(make_model, vocabularies, tmp_path, capsys):
    path = make_model(vocabularies, decoder_attention="ssru")
    with pytest.raises(SystemExit):
        main(["export", str(path), "--to", "huggingface", str(tmp_path / "hf")])
    assert "has “ssru” attention, which Hugging Face's MarianMT" in capsys.readouterr().err
    words = ["export", str(path), "--to", "marian", str(tmp_path / "m"), "--quantisation=int8"]
    with pytest.raises(SystemExit):
        main(words)
    assert "--quantisation means nothing with --to marian" in capsys.readouterr().err
