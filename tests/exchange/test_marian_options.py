"""Options of Marian: what is read, and that everything else is refused by its name."""

from pathlib import Path

import pytest

from dragoman.errors import FolderError
from dragoman.exchange.marian_options import read_options

PLACE = Path("model.npz")
SAID = {
    "type": "transformer", "version": "v1.12.42 b7be0e964", "enc-depth": "6", "dec-depth": "4",
    "dim-emb": "32", "transformer-heads": "4", "transformer-dim-ffn": "48",
    "transformer-ffn-activation": "swish", "transformer-preprocess": "",
    "transformer-postprocess": "dan", "transformer-postprocess-top": "",
    "transformer-postprocess-emb": "d", "transformer-tied-layers": "[]",
    "transformer-decoder-autoreg": "self-attention", "dec-cell": "gru",
}  # fmt: skip
PRE = ("transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top")


def read(tied="all", **said):
    return read_options(SAID | {name.replace("_", "-"): each for name, each in said.items()}, tied,
                        PLACE)  # fmt: skip


def test_a_plain_model():
    found = read()
    model = found.model
    assert (model.num_encoder_layers, model.num_decoder_layers, model.num_heads) == (6, 4, 4)
    assert (model.model_dim, model.feed_forward_dim, model.feed_forward) == (32, 48, "swish")
    assert (model.norm, model.norm_position, model.norm_epsilon) == ("layer", "post", 1e-6)
    assert (model.positions, model.decoder_attention) == ("marian", "full")
    assert model.tied_embeddings == "all"
    assert (found.encoder_inner, found.decoder_inner) == (48, 48)
    assert found.decoder_layers == ()
    assert found.has_projection


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (("", "dan", ""), ("layer", "post")),
        (("d", "an", ""), ("layer", "post")),
        (("~", "dan", "~"), ("layer", "post")),
        (("n", "da", "n"), ("layer", "pre")),
        (("nd", "a", "nd"), ("layer", "pre")),
        (("dn", "da", "n"), ("layer", "pre")),
        (("", "dar", ""), ("rms", "post")),
        (("rd", "da", "r"), ("rms", "pre")),
    ],
)
def test_where_norms_stand(steps, expected):
    model = read(**dict(zip(PRE, steps, strict=True))).model
    assert (model.norm, model.norm_position) == expected


@pytest.mark.parametrize(
    "steps", [("n", "da", ""), ("", "d", ""), ("", "dan", "n"), ("n", "dan", ""), ("r", "da", "n"),
              ("", "dhn", ""), ("", "dna", "")],
)  # fmt: skip
def test_other_orders_are_refused(steps):
    with pytest.raises(FolderError) as caught:
        read(**dict(zip(PRE, steps, strict=True)))
    spelt = ", ".join(f"{name} “{each}”" for name, each in zip(PRE, steps, strict=True))
    assert str(caught.value) == (
        f"model.npz: has {spelt}; supported are norms after each sum (“”, “dan”, “”) or before "
        "each sub-layer and at the top (“n”, “da”, “n”), with “r” in place of “n” or not"
    )


@pytest.mark.parametrize(
    ("version", "kind"),
    [("v1.12.42 b7be0e964 2025", "gelu"), ("v1.12.1", "gelu"), ("v2.0.0", "gelu"),
     ("v1.12.0 65bf82f", "gelu-sigmoid"), ("v1.9.56", "gelu-sigmoid"), ("1.7.8", "gelu-sigmoid")],
)  # fmt: skip
def test_gelu_depends_on_the_version(version, kind):
    found = read(transformer_ffn_activation="gelu", version=version)
    assert found.model.feed_forward == kind


@pytest.mark.parametrize("version", ["", "unknown", "v1.12"])
def test_gelu_of_no_version_is_refused(version):
    with pytest.raises(FolderError, match="does not say which version of Marian made it, and its "):
        read(transformer_ffn_activation="gelu", version=version)


def test_what_marian_has_and_we_have_not():
    assert read(transformer_tied_layers="- 1 - 1 - 3 - 3").decoder_layers == (1, 1, 3, 3)
    assert read(transformer_tied_layers="[1, 2, 2, 1]").decoder_layers == (1, 2, 2, 1)
    found = read(transformer_decoder_dim_ffn="64")
    assert (found.encoder_inner, found.decoder_inner) == (48, 64)
    assert found.model.feed_forward_dim == 64
    found = read(transformer_decoder_dim_ffn="0")
    assert found.decoder_inner == 48
    assert read(transformer_disable_position_embeddings="true").model.positions == "none"
    assert not read(transformer_no_projection="true").has_projection
    cells = read(transformer_decoder_autoreg="rnn", dec_cell="ssru")
    assert cells.model.decoder_attention == "ssru"


def test_what_marian_pays_no_heed_to():
    said = {"transformer_no_bias": "true", "transformer_no_affine": "true", "skip": "true",
            "layer_normalization": "true", "transformer_train_position_embeddings": "true",
            "enc_cell": "lstm", "input_types": "[sequence, sequence, alignment]"}  # fmt: skip
    assert read(**said) == read()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("type", "s2s"),
        ("type", "multi-transformer"),
        ("right-left", "true"),
        ("transformer-attention-mask", "alibi"),
        ("transformer-decoder-ffn-depth", "3"),
        ("transformer-ffn-depth", "3"),
        ("transformer-pool", "true"),
        ("transformer-postprocess-emb", "nd"),
        ("transformer-rnn-projection", "true"),
        ("transformer-train-positions", "true"),
        ("ulr", "true"),
        ("factors-combine", "concat"),
        ("lemma-dependency", "re-embedding"),
        ("lemma-dim-emb", "64"),
        ("special-vocab", "- 1 - 2"),
        ("input-types", "- class - sequence"),
        ("transformer-ffn-activation", "tanh"),
        ("transformer-decoder-autoreg", "average-attention"),
    ],
)
def test_values_that_are_refused(name, value):
    with pytest.raises(FolderError) as caught:
        read(**{name: value})
    assert str(caught.value) == f"model.npz: {name} is “{value}”, which is not supported here"


def test_a_model_of_no_type_is_refused():
    said = {name: each for name, each in SAID.items() if name != "type"}
    with pytest.raises(FolderError, match="type is “”, which is not supported here"):
        read_options(said, "all", PLACE)


def test_cells_that_are_refused():
    with pytest.raises(FolderError, match="autoreg is “rnn, with the cell “gru””, which is not"):
        read(transformer_decoder_autoreg="rnn")
    with pytest.raises(FolderError, match="layer-normalization is “true”, which is not supported"):
        read(transformer_decoder_autoreg="rnn", dec_cell="ssru", layer_normalization="true")


@pytest.mark.parametrize("name", ["transformer-new-thing", "moe-experts", "rotary"])
def test_an_unknown_option_is_refused(name):
    with pytest.raises(FolderError) as caught:
        read(**{name: "false"})
    assert str(caught.value) == (
        f"model.npz: says “{name}”, an option that is not known here; nothing is imported"
    )


@pytest.mark.parametrize(
    "name",
    ["enc-depth", "dec-depth", "dim-emb", "transformer-heads", "transformer-dim-ffn",
     "transformer-decoder-dim-ffn"],
)  # fmt: skip
@pytest.mark.parametrize("value", ["wide", "-1", "9" * 10, ""])
def test_numbers_that_are_none(name, value):
    with pytest.raises(FolderError) as caught:
        read(**{name: value})
    message = f"model.npz: does not say {name} as a number; get the model again"
    assert str(caught.value) == message


def test_numbers_that_are_not_there():
    said = {name: each for name, each in SAID.items() if name != "dim-emb"}
    with pytest.raises(FolderError, match="does not say dim-emb as a number"):
        read_options(said, "all", PLACE)


def test_sizes_that_cannot_be():
    with pytest.raises(FolderError, match=r"model\.npz: model\.num_heads is 5"):
        read(transformer_heads="5")


@pytest.mark.parametrize(
    "name", ["transformer-disable-position-embeddings", "transformer-no-projection"]
)
def test_flags_that_are_none(name):
    with pytest.raises(FolderError) as caught:
        read(**{name: "maybe"})
    assert (
        str(caught.value) == f"model.npz: {name} is “maybe”, not true or false; get the model again"
    )


@pytest.mark.parametrize("value", ["[1, 1]", "[1, 3, 1, 1]", "[0, 1, 1, 1]", "[1, 1, 1, 5]",
                                   "nothing", f"[{'9' * 5000}, 1, 1, 1]"])  # fmt: skip
def test_tied_layers_that_are_none(value):
    with pytest.raises(FolderError) as caught:
        read(transformer_tied_layers=value)
    assert str(caught.value) == (
        f"model.npz: transformer-tied-layers is “{value[:100]}”, which names no earlier layer for "
        "each of the 4; get the model again"
    )


def test_so_many_tied_layers_are_refused():
    """Each would be a copy: few weights, and much memory."""
    with pytest.raises(FolderError, match="for each of the 300; get the model again"):
        read(dec_depth="300", transformer_tied_layers=" ".join(["- 1"] * 300))
