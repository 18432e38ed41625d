"""Read the options of a Marian model, refusing by name every one that is not supported."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import FolderError, OptionError
from dragoman.models.options import TransformerOptions
from dragoman.options import from_plain

EPSILON = 1e-6
"""What Marian adds to the variance in the norms of its Transformers."""
LAST_APPROXIMATE = (1, 12, 0)
"""The last version whose GELU was x·sigmoid(1.702x)."""
MOST_DIGITS = 9
"""Of a number in Marian's options."""
MOST_TIED_LAYERS = 256
"""Layers that share weights are copies here, so few weights could ask for much memory."""

ACTIVATIONS = ("relu", "swish", "gelu")
NORMS = {
    ("", "an", ""): ("layer", "post"),
    ("n", "a", "n"): ("layer", "pre"),
    ("", "ar", ""): ("rms", "post"),
    ("r", "a", "r"): ("rms", "pre"),
}
"""What Marian does before a sub-layer, after it, and at the end of a stack, but for dropout."""
DECODERS = {("self-attention", None): "full", ("rnn", "ssru"): "ssru"}
"""What the decoder remembers its words by, and in which cell if it is recurrent."""

READ = frozenset({
    "dec-cell", "dec-depth", "dim-emb", "enc-depth", "transformer-decoder-autoreg",
    "transformer-decoder-dim-ffn", "transformer-dim-ffn", "transformer-disable-position-embeddings",
    "transformer-ffn-activation", "transformer-heads", "transformer-no-projection",
    "transformer-postprocess", "transformer-postprocess-top", "transformer-preprocess",
    "transformer-tied-layers", "version",
})  # fmt: skip
NEEDED = {
    "type": ("transformer",),
    "right-left": ("false",),
    "transformer-attention-mask": ("default",),
    "transformer-decoder-ffn-depth": ("0", "2"),
    "transformer-ffn-depth": ("2",),
    "transformer-pool": ("false",),
    "transformer-postprocess-emb": ("", "d"),
    "transformer-rnn-projection": ("false",),
    "transformer-train-positions": ("false",),
    "ulr": ("false",),
    "factors-combine": ("sum",),
    "lemma-dependency": ("",),
    "lemma-dim-emb": ("0",),
    "special-vocab": ("[]", ""),
}
"""Options that must have one of these values, if they are there at all."""
WITHOUT_EFFECT = frozenset({
    # Of recurrent models, of average attention, of classifiers and of training.
    "bert-train-type-embeddings", "bert-type-vocab-size", "char-conv-filters-num",
    "char-conv-filters-widths", "char-highway", "char-stride", "dec-cell-base-depth",
    "dec-cell-high-depth", "dim-rnn", "enc-cell", "enc-cell-depth", "enc-type", "factors-dim-emb",
    "input-types", "skip", "transformer-aan-activation", "transformer-aan-depth",
    "transformer-aan-nogate", "transformer-depth-scaling", "transformer-dim-aan",
    "transformer-guided-alignment-layer", "ulr-dim-emb", "ulr-trainable-transformation",
    # Of ALiBi, which “transformer-attention-mask” switches on.
    "separator-symbol", "transformer-alibi-shift", "transformer-alibi-trainable",
    # The weights themselves tell these.
    "dim-vocabs", "output-omit-bias", "tied-embeddings", "tied-embeddings-all",
    "tied-embeddings-src",
    # Marian writes them, but pays no heed to them in models of this type.
    "transformer-no-affine", "transformer-no-bias", "transformer-train-position-embeddings",
})  # fmt: skip
CELL_NORM = "layer-normalization"
"""Means something in recurrent cells alone, where it is not supported."""


@dataclass(frozen=True, kw_only=True)
class MarianOptions:
    """What a Marian model's weights mean.

    Parameters
    ----------
    model : TransformerOptions
        The same model here.
    encoder_inner, decoder_inner : int
        Widths of the feed-forward layers; the wider one is the model's here.
    decoder_layers : tuple[int, ...]
        For each layer of the decoder the number, from 1, of the one whose weights it has; empty:
        each has its own.
    has_projection : bool
        Whether attention ends in a linear map.
    """

    model: TransformerOptions
    encoder_inner: int
    decoder_inner: int
    decoder_layers: tuple[int, ...]
    has_projection: bool


def read_options(said: Mapping[str, str], tied: str, place: Path) -> MarianOptions:
    """Read a model's options.

    Parameters
    ----------
    said : Mapping[str, str]
        The options by their names, as the model says them.
    tied : str
        Which matrices of words its weights share.
    place : Path
        The model, for error messages.
    """
    _check_names(said, place)
    norm, norm_position = _read_norm(said, place)
    inner = _read_number(said, "transformer-dim-ffn", place)
    decoder_inner = _read_number(said, "transformer-decoder-dim-ffn", place, "0") or inner
    decoder_depth = _read_number(said, "dec-depth", place)
    is_placed = not _read_flag(said, "transformer-disable-position-embeddings", place)
    plain = {
        "num_encoder_layers": _read_number(said, "enc-depth", place),
        "num_decoder_layers": decoder_depth,
        "model_dim": _read_number(said, "dim-emb", place),
        "feed_forward_dim": max(inner, decoder_inner),
        "num_heads": _read_number(said, "transformer-heads", place),
        "feed_forward": _read_activation(said, place),
        "norm": norm,
        "norm_position": norm_position,
        "norm_epsilon": EPSILON,
        "decoder_attention": _read_decoder(said, place),
        "positions": "marian" if is_placed else "none",
        "tied_embeddings": tied,
        "attention_bias": True,
        "output_bias": True,
    }
    try:
        model = from_plain(TransformerOptions, plain, place=str(place))
    except OptionError as error:
        raise FolderError(f"{place}: {error}") from None
    return MarianOptions(
        model=model,
        encoder_inner=inner,
        decoder_inner=decoder_inner,
        decoder_layers=_read_tied_layers(said, decoder_depth, place),
        has_projection=not _read_flag(said, "transformer-no-projection", place),
    )


def _check_names(said: Mapping[str, str], place: Path) -> None:
    """Refuse unknown options, and known ones with unsupported values."""
    for name, values in NEEDED.items():
        value = said.get(name, "" if name == "type" else values[0])
        if value.replace("~", "") not in values:
            raise FolderError(f"{place}: {name} is “{value}”, which is not supported here")
    known = READ | WITHOUT_EFFECT | NEEDED.keys() | {CELL_NORM}
    for name in said:
        if name not in known:
            raise FolderError(
                f"{place}: says “{name}”, an option that is not known here; nothing is imported"
            )
    if "class" in said.get("input-types", ""):
        raise FolderError(
            f"{place}: input-types is “{said['input-types']}”, which is not supported here"
        )


def _read_number(
    said: Mapping[str, str], name: str, place: Path, default: str | None = None
) -> int:
    text = said.get(name, default)
    if text is None or not text.isdecimal() or len(text) > MOST_DIGITS:
        raise FolderError(f"{place}: does not say {name} as a number; get the model again")
    return int(text)


def _read_flag(said: Mapping[str, str], name: str, place: Path) -> bool:
    text = said.get(name, "false")
    if text not in ("true", "false"):
        raise FolderError(f"{place}: {name} is “{text}”, not true or false; get the model again")
    return text == "true"


def _read_norm(said: Mapping[str, str], place: Path) -> tuple[str, str]:
    """Read which norms there are, and where they stand; dropout is left out."""
    names = [f"transformer-{name}" for name in ("preprocess", "postprocess", "postprocess-top")]
    given = [said.get(name, "") for name in names]
    first, second, third = (re.sub("[d~]", "", each) for each in given)
    if (first, second, third) not in NORMS:
        spelt = ", ".join(f"{name} “{each}”" for name, each in zip(names, given, strict=True))
        raise FolderError(
            f"{place}: has {spelt}; supported are norms after each sum (“”, “dan”, “”) or before "
            "each sub-layer and at the top (“n”, “da”, “n”), with “r” in place of “n” or not"
        )
    return NORMS[first, second, third]


def _read_activation(said: Mapping[str, str], place: Path) -> str:
    """Read the activation; which GELU is meant depends on the version."""
    name = said.get("transformer-ffn-activation", "swish")
    if name not in ACTIVATIONS:
        raise FolderError(
            f"{place}: transformer-ffn-activation is “{name}”, which is not supported here"
        )
    if name != "gelu":
        return name
    version = re.match(r"v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})", said.get("version", ""))
    if version is None:
        raise FolderError(
            f"{place}: does not say which version of Marian made it, and its GELU is another one "
            "from version to version; get the model again"
        )
    is_exact = tuple(map(int, version.groups())) > LAST_APPROXIMATE
    return "gelu" if is_exact else "gelu-sigmoid"


def _read_decoder(said: Mapping[str, str], place: Path) -> str:
    memory = said.get("transformer-decoder-autoreg", "self-attention")
    cell = said.get("dec-cell") if memory == "rnn" else None
    if (memory, cell) not in DECODERS:
        what = memory if cell is None else f"{memory}, with the cell “{cell}”"
        raise FolderError(
            f"{place}: transformer-decoder-autoreg is “{what}”, which is not supported here"
        )
    if memory == "rnn" and _read_flag(said, CELL_NORM, place):
        raise FolderError(f"{place}: {CELL_NORM} is “true”, which is not supported in cells here")
    return DECODERS[memory, cell]


def _read_tied_layers(said: Mapping[str, str], depth: int, place: Path) -> tuple[int, ...]:
    """Read which layers of the decoder have the weights of which."""
    text = said.get("transformer-tied-layers", "[]")
    numbers = re.findall(r"\d+", text)
    if not numbers and not text.strip("[]~- "):
        return ()
    layers = tuple(int(each) for each in numbers if len(each) <= MOST_DIGITS)
    is_sane = len(layers) == depth <= MOST_TIED_LAYERS
    if not is_sane or not all(1 <= each <= own for own, each in enumerate(layers, 1)):
        raise FolderError(
            f"{place}: transformer-tied-layers is “{text[:100]}”, which names no earlier layer for "
            f"each of the {depth}; get the model again"
        )
    return layers
