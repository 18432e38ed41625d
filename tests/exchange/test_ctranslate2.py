"""CTranslate2 runs what is exported, with the same tokens and scores, and needs nothing of ours."""

import json
import sys
from dataclasses import replace

import ctranslate2
import numpy as np
import pytest
import sentencepiece

from dragoman.errors import FolderError, OptionError
from dragoman.exchange.ctranslate2 import export_ctranslate2, make_specification
from dragoman.folder import read_folder

LENGTH = 25
SHAPES = [
    {"norm_position": "pre"},
    {"norm_position": "pre", "norm": "rms"},
    {"feed_forward": "swiglu", "num_encoder_layers": 1},
    {"feed_forward": "geglu"},
    {"feed_forward": "gelu"},
    {"feed_forward": "swish", "attention_bias": True, "output_bias": True},
    {"feed_forward": "gelu-sigmoid", "tied_embeddings": "target"},
    {"positions": "learned", "max_positions": 200},
    {"positions": "none"},
    {"positions": "marian", "tied_embeddings": "none"},
    {"scaled": False},
]


def load(path, compute_type="float32"):
    return ctranslate2.Translator(
        str(path), device="cpu", compute_type=compute_type, intra_threads=1
    )


def cut(folder, texts, name="source"):
    """Cut texts with the SentencePiece model that lies beside CTranslate2's."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.spm"))
    return processor.encode(texts, out_type=str)


def compare(own, folder, texts, others, length=LENGTH):
    """Check tokens of greedy search, and scores of given translations."""
    translator = load(folder)
    found = translator.translate_batch(
        cut(folder, texts), beam_size=1, max_decoding_length=length, disable_unk=True
    )
    expected = own.pieces(texts, max_length=length + 1)
    assert [each.hypotheses[0][:length] for each in found] == [each[:length] for each in expected]
    scored = translator.score_batch(cut(folder, texts), cut(folder, others, "target"))
    sums = np.array([sum(each.log_probs) for each in scored])
    np.testing.assert_allclose(sums, own.likelihoods(texts, others), atol=1e-4, rtol=1e-5)


def test_a_trained_model(trained, own, texts, others, tmp_path):
    export_ctranslate2(trained, tmp_path / "out")
    compare(own(trained), tmp_path / "out", texts, others, length=100)
    found = load(tmp_path / "out").translate_batch(cut(tmp_path / "out", texts), beam_size=1)
    assert all(len(each.hypotheses[0]) < 60 for each in found)


@pytest.mark.parametrize("changes", SHAPES, ids=lambda each: "-".join(map(str, each.values())))
def test_other_shapes(make_model, vocabularies, own, texts, others, tmp_path, changes):
    path = make_model(vocabularies, **changes)
    export_ctranslate2(path, tmp_path / "out")
    compare(own(path), tmp_path / "out", texts, others)


def test_a_vocabulary_for_each_side(make_model, side_vocabularies, own, texts, others, tmp_path):
    path = make_model(side_vocabularies, tied_embeddings="target")
    export_ctranslate2(path, tmp_path / "out")
    compare(own(path), tmp_path / "out", texts, others)


def test_scores_of_a_search_are_sums_of_log_probabilities(trained, own, texts, tmp_path):
    export_ctranslate2(trained, tmp_path / "out")
    found = load(tmp_path / "out").translate_batch(
        cut(tmp_path / "out", texts),
        beam_size=1,
        length_penalty=0,
        min_decoding_length=0,
        return_scores=True,
    )
    scores = [each.scores[0] for each in found]
    np.testing.assert_allclose(scores, own(trained).scores(texts), atol=1e-4, rtol=1e-5)


def test_positions_go_far_enough_and_are_ours(trained, own):
    spec = make_specification(read_folder(trained))
    tables = [each.position_encodings.encodings for each in (spec.encoder, spec.decoder)]
    expected = own(trained).model.source_embedding.positions(0, 2048)
    for table in tables:
        np.testing.assert_array_equal(table, expected)


def test_long_sentences(trained, own, others, tmp_path):
    export_ctranslate2(trained, tmp_path / "out")
    text = "The old dog sees a small house. " * 40
    scored = load(tmp_path / "out").score_batch(
        cut(tmp_path / "out", [text]), cut(tmp_path / "out", others[:1]), max_input_length=0
    )
    expected = own(trained).likelihoods([text], others[:1])
    assert sum(scored[0].log_probs) == pytest.approx(expected.item(), abs=1e-3)


@pytest.mark.parametrize("quantisation", ["int8", "int16", "float16", "bfloat16", "int8_float32"])
def test_quantisation_makes_it_smaller_and_changes_little(
    trained, own, texts, others, tmp_path, quantisation
):
    export_ctranslate2(trained, tmp_path / "whole")
    export_ctranslate2(trained, tmp_path / "out", quantisation)
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("out", "whole")]
    assert sizes[0] < 0.85 * sizes[1]
    translator = load(tmp_path / "out")
    scored = translator.score_batch(
        cut(tmp_path / "out", texts), cut(tmp_path / "out", others, "target")
    )
    sums = np.array([sum(each.log_probs) for each in scored])
    np.testing.assert_allclose(sums, own(trained).likelihoods(texts, others), rtol=0.05)
    assert load(tmp_path / "out", "int8").translate_batch(cut(tmp_path / "out", texts))


def test_quantising_leaves_the_weights_alone(trained, tmp_path):
    before = (trained / "model.safetensors").read_bytes()
    folder = read_folder(trained)
    spec = make_specification(folder)
    kept = spec.decoder.projection.weight.copy()
    second = make_specification(folder)
    second.validate()
    second.optimize(quantization="int8")
    np.testing.assert_array_equal(spec.decoder.projection.weight, kept)
    assert (trained / "model.safetensors").read_bytes() == before


def test_its_configuration(trained, tmp_path):
    export_ctranslate2(trained, tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["add_source_eos"]
    assert config["decoder_start_token"] == "<pad>"
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"model.bin", "config.json", "shared_vocabulary.json", "source.spm",
                     "target.spm"}  # fmt: skip


@pytest.mark.parametrize("kind", ["normalised", "rotary", "alibi", "relative"])
def test_other_positions_are_refused(make_model, vocabularies, tmp_path, kind):
    path = make_model(vocabularies, positions=kind)
    with pytest.raises(FolderError) as caught:
        export_ctranslate2(path, tmp_path / "out")
    assert str(caught.value) == (
        f"{path}: has “{kind}” positions, which CTranslate2 cannot represent; nothing is written"
    )
    assert not (tmp_path / "out").exists()


def test_a_place_that_is_taken(trained, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FolderError, match="already holds something; name a new place"):
        export_ctranslate2(trained, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_without_ctranslate2(trained, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2.specs", None)
    with pytest.raises(OptionError, match=r"pip install dragoman\[exchange\]"):
        export_ctranslate2(trained, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_two_subwords_of_one_name_are_refused(trained):
    folder = read_folder(trained)
    subwords = folder.vocabularies.source
    twin = type("Twin", (type(subwords),), {"pieces": lambda *_: ["a"] * len(subwords)})
    vocabularies = replace(folder.vocabularies, source=twin(subwords.to_bytes()))
    with pytest.raises(FolderError, match="two subwords would be called “a”; nothing is written"):
        make_specification(replace(folder, vocabularies=vocabularies))
