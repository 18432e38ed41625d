"""Import models of Marian (``.npz``, ``.bin``), as OPUS-MT and Firefox release them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dragoman.errors import FolderError
from dragoman.exchange.huggingface_layout import NO_WORD, check_tying, drop_zero_biases
from dragoman.exchange.marian_binary import is_binary, read_binary
from dragoman.exchange.marian_files import read_npz, read_settings
from dragoman.exchange.marian_options import read_options
from dragoman.exchange.marian_shortlist import find_short_list, read_short_list
from dragoman.exchange.marian_vocabularies import read_vocabularies
from dragoman.exchange.marian_weights import Arrays, convert_weights
from dragoman.exchange.names import build_vocabularies, own_order
from dragoman.exchange.unsupported import check_new
from dragoman.files import written_beside
from dragoman.folder import WEIGHTS_FILE, Facts, ModelFolder, write_description
from dragoman.models.build import build_model, count_parameters
from dragoman.options import to_plain
from dragoman.quantised import round_again
from dragoman.weights import put_weights, vocabulary_of, weights_of, write_weights

OPTIMISER = ".optimizer.npz"
TARGET_WORDS = {
    "Wemb": 0, "decoder_Wemb": 0, "decoder_ff_logit_out_Wt": 0, "decoder_ff_logit_out_W": 1,
    "decoder_ff_logit_out_b": 1,
}  # fmt: skip
"""Weights with something for each word of the target, and along which axis."""


def import_marian(
    path: Path,
    out: Path,
    *,
    vocabularies: Sequence[Path] = (),
    short_list: Path | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
) -> None:
    """Convert a model of Marian to a model folder.

    Parameters
    ----------
    path : Path
        The ``.npz`` or ``.bin`` file, or a folder with one.
    out : Path
        The new model folder.
    vocabularies : Sequence[Path]
        The vocabulary, or that of the source and that of the target: “.spm” where Marian counted
        by SentencePiece itself, or “.yml” with “source.spm” and “target.spm” beside the model, or
        without where text is cut at spaces. None given: what the “.decoder.yml” beside the model
        names, or else what lies there.
    short_list : Path | None
        Its short-list, binary or in text. None given: “lex*.s2t.bin”, “.s2t.gz” or “.s2t” beside
        the model, if there is one.
    source_language : str | None
        Code of the language it translates from.
    target_language : str | None
        Code of the language it translates to.

    Notes
    -----
    What Marian has and we have not is expressed exactly: layers that share weights become copies,
    a narrower feed-forward layer is filled up with zeros, attention without a last linear map gets
    the identity, and where there are no positions, and so no scaling of words by √d, the scale is
    taken out of the words (and put into the last norm if the output layer shares their matrix).
    Matrices in eight bits stay so, number by number.
    """
    file = _find_model(path) if path.is_dir() else path
    arrays, settings, multipliers = read_binary(file) if is_binary(file) else (*read_npz(file), {})
    arrays = _drop_unwritable(arrays)
    weights = Arrays(arrays, file)
    options = read_options(read_settings(settings, file), weights.tying(), file)
    check_new(out)
    sides = read_vocabularies(file, vocabularies, weights.num_words())
    orders = [own_order(side.names, place=str(side.file)) for side in sides]
    check_tying(options.model, orders, file)
    names = [[side.names[i] for i in order] for side, order in zip(sides, orders, strict=True)]
    subwords = build_vocabularies(
        (sides[0].model, sides[1].model), (names[0], names[1]), place=file.parent
    )
    own, model_options = drop_zero_biases(
        convert_weights(weights, options, orders), options.model, subwords.pad_id
    )
    is_joint = sides[0].names == sides[1].names
    folder = ModelFolder(
        path=out,
        config={"model": to_plain(model_options), "text": {"joint": is_joint}},
        options=model_options,
        vocabularies=subwords,
        facts=Facts(
            source_language=source_language,
            target_language=target_language,
            weights="imported from Marian" + ", in eight bits" * bool(multipliers),
        ),
    )
    model = build_model(model_options, vocabulary_of(subwords))
    put_weights(model, own, file)
    numbers = weights_of(model)
    if multipliers:
        steps = Arrays(_make_steps(arrays, multipliers), file)
        numbers = round_again(numbers, convert_weights(steps, options, orders))
    found = short_list or find_short_list(file.parent)
    listed = found and read_short_list(found, [side.names for side in sides], orders, subwords)
    with written_beside(out) as beside:
        write_description(beside, replace(folder, path=beside), count_parameters(model))
        write_weights(beside / WEIGHTS_FILE, numbers, folder.identity)
        if listed:
            listed.write(beside)


def _make_steps(
    arrays: Mapping[str, np.ndarray], multipliers: Mapping[str, float]
) -> dict[str, np.ndarray]:
    """Say of which step every number is a multiple; 0: of none."""
    return {
        name: np.full(each.shape, 1 / multipliers.get(name, math.inf), np.float32)
        for name, each in arrays.items()
    }


def _drop_unwritable(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Drop words at the end that cannot be written, which Bergamot's products may need."""
    kept = dict(arrays)
    bias = kept.get("decoder_ff_logit_out_b", np.zeros(1))
    if bias.ndim == 2 and bias.shape[1] and bias[0, -1] <= NO_WORD:
        count = int(np.flatnonzero(bias[0] > NO_WORD).max(initial=-1)) + 1
        for name, axis in TARGET_WORDS.items():
            if name in kept and kept[name].ndim == 2 and kept[name].shape[axis] == bias.shape[1]:
                kept[name] = kept[name][:count] if axis == 0 else kept[name][:, :count]
    return kept


def _find_model(folder: Path) -> Path:
    """Find the one model in a folder; what training goes on from is none."""
    named = sorted((*folder.glob("*.npz"), *folder.glob("*.bin")))
    found = [
        each
        for each in named
        if (is_binary(each) if each.suffix == ".bin" else not each.name.endswith(OPTIMISER))
    ]
    if len(found) != 1:
        raise FolderError(
            f"{folder}: has {len(found)} models (*.npz, *.bin); name the one to import"
        )
    return found[0]
