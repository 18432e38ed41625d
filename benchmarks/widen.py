"""Make a Transformer of the paper's base shape that says what a smaller trained one says.

    python benchmarks/widen.py MODEL OUT [--vocabulary 32000]

A model of width 256 trains in two minutes, one of width 512 does not, but speed is asked of the
latter, on translations that end where they should. So every vector is written down twice, side by
side: the mean and variance of a norm stay what they are, and matrices of four halved copies make of
a doubled vector the doubled result. Subwords that never come fill the vocabulary up.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from dragoman.folder import read_folder
from dragoman.models.build import build_model
from dragoman.models.options import TransformerOptions
from dragoman.models.transformer import Transformer
from dragoman.options import to_plain
from dragoman.text.subwords import Subwords
from dragoman.text.vocabulary import Vocabularies
from dragoman.weights import load_model, vocabulary_of, write_model

NEVER = -30.0  # the score of a word that never comes
NORMAL_PIECE = b"\x15\x00\x00\xc8\xc2"  # field 2 of a piece: a score of −100, as a float


def main() -> None:
    """Widen one model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--vocabulary", type=int, default=32_000)
    given = parser.parse_args()
    folder = read_folder(given.model)
    narrow, options = load_model(folder), folder.options
    assert isinstance(narrow, Transformer)
    assert isinstance(options, TransformerOptions)
    assert options.tied_embeddings == "all", "the words of source, target and output must be one"
    assert narrow.source_embedding.positions is not None, "positions must be added to words"
    subwords = fill_up(folder.vocabularies.source.to_bytes(), given.vocabulary)
    vocabularies = Vocabularies(subwords, subwords)
    options = replace(
        options,
        model_dim=2 * options.model_dim,
        feed_forward_dim=2 * options.feed_forward_dim,
        num_heads=2 * options.num_heads,
        positions="learned",
        output_bias=True,
    )
    wide = build_model(options, vocabulary_of(vocabularies))
    wide.load_state_dict(widen(narrow, wide, options.norm_position), strict=True)
    config = folder.config | {"model": to_plain(options)}
    folder = replace(folder, path=given.out, config=config, options=options)
    write_model(given.out, replace(folder, vocabularies=vocabularies), wide)


def fill_up(model: bytes, size: int) -> Subwords:
    """Add subwords that never come.

    Parameters
    ----------
    model : bytes
        A SentencePiece model.
    size : int
        How many subwords there shall be.

    Returns
    -------
    Subwords
        Those of the model, and as many of characters that no text has as are missing.
    """
    for number in range(len(Subwords(model)), size):
        piece = f"\ue000{number}".encode()  # of the private use area
        field = b"\n" + bytes([len(piece)]) + piece + NORMAL_PIECE
        model += b"\n" + bytes([len(field)]) + field
    return Subwords(model)


@torch.no_grad()
def widen(narrow: Transformer, wide: Transformer, norm_position: str) -> dict[str, Tensor]:
    """Write every vector down twice.

    Parameters
    ----------
    narrow : Transformer
        The trained model.
    wide : Transformer
        One of twice its width.
    norm_position : str
        Where the norms stand.

    Returns
    -------
    dict[str, Tensor]
        The weights of the wide model.

    Notes
    -----
    The words are divided by √2, as the paper multiplies them by the root of the width; as they are
    the output's too, which adds both halves up, so is the last norm.
    """
    root = 2**0.5
    last = "decoder_norm" if norm_position == "pre" else f"decoder.{len(narrow.decoder) - 1}.feed"
    weights, shapes = narrow.state_dict(), wide.state_dict()
    found: dict[str, Tensor] = {}
    for name, shape in shapes.items():
        if name.endswith("positions.weight"):
            table = narrow.source_embedding.positions(0, len(shape), None)
            found[name] = table.tile(1, 2)
        elif name.endswith("words"):
            found[name] = torch.zeros_like(shape)
            found[name][: len(weights[name])] = weights[name].tile(1, 2) / root
        elif name == "output.bias":
            found[name] = torch.full_like(shape, NEVER)
            bias = narrow.output.bias
            found[name][: len(narrow.output.words)] = 0 if bias is None else bias
        elif weights[name].dim() == 2:
            found[name] = weights[name].tile(2, 2) / 2
        else:
            is_last = name.startswith(last) and "norm" in name
            found[name] = weights[name].tile(2) / (root if is_last else 1)
    return found


if __name__ == "__main__":
    main()
