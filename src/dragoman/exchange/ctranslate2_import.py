"""Import model folders of CTranslate2, in any precision; eight bits stay as they are."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.eight_bits import SCALES
from dragoman.errors import FolderError, OptionError
from dragoman.exchange.ctranslate2_file import ModelFile, read_model_file
from dragoman.exchange.ctranslate2_layout import (
    ACTIVATIONS,
    GATED,
    WORDS,
    attention_layers,
    linear_layers,
    norms,
)
from dragoman.exchange.foreign_files import MOST_VOCABULARY_BYTES, read_object
from dragoman.exchange.huggingface_layout import OUTPUT, SOURCE, TARGET, drop_zero_biases
from dragoman.exchange.names import build_vocabularies, own_order
from dragoman.exchange.sinusoid_layout import concatenated_order, to_interleaved_sinusoids
from dragoman.exchange.unsupported import check_new
from dragoman.files import read_bounded, written_beside
from dragoman.folder import WEIGHTS_FILE, Facts, ModelFolder, write_description
from dragoman.models.build import build_model, count_parameters
from dragoman.models.options import TransformerOptions
from dragoman.models.positions.sinusoids import sinusoids
from dragoman.options import from_plain, to_plain
from dragoman.quantised import restore
from dragoman.text.piece_order import END, PADDING, UNKNOWN
from dragoman.weights import put_weights, vocabulary_of, write_weights

MODEL, CONFIG = "model.bin", "config.json"
SHARED, SIDES = "shared_vocabulary", ("source_vocabulary", "target_vocabulary")
SUBWORDS = (("source.spm", "target.spm"), ("sentencepiece.model",) * 2, ("spm.model",) * 2)
"""How the SentencePiece models of source and target may be called; others, if there is only one."""

SPECIFICATIONS = {"TransformerSpec": None, "TransformerBase": 8, "TransformerBig": 16}
"""What can be read, and how many heads it has where that is not said."""
OLDEST_REVISION = 2
NEWEST_WITHOUT_CONFIG = 5
"""The newest version of files that say how sentences begin and end in the model itself."""
STACKS = ("encoder", "decoder")
POSITION_TABLE = "position_encodings/encodings"
POSITIONS = 1024
"""Rows of a table of positions that CTranslate2 would compute."""
USUAL_EPSILON, LARGEST_EPSILON = 1e-5, 1e-4
TOLERANCE = 2e-3
"""By how much sinusoids of other tools, in 32 or 16 bits, may differ from exact ones."""

REFUSED = {
    "relative_position": "relative positions",
    "relative_attention": "relative positions",
    "relative_asymmetric": "relative positions",
    "rotary": "rotary positions",
    "alibi": "ALiBi positions",
    "layernorm_embedding": "a norm after the embeddings",
    "embeddings_1": "several inputs a word (factors)",
    "scale_outputs": "scaled outputs",
    "project_in": "embeddings of another width than the layers",
    "sliding_window": "attention in a window",
    "num_heads_kv": "heads that share keys and values",
    "multi_query": "heads that share keys and values",
    "q_norm": "norms in attention",
    "k_norm": "norms in attention",
    "head_dim": "heads of another width than model_dim / num_heads",
    "softcapping": "capped logits",
    "weight_zero": "weights in four bits (AWQ)",
    "shared_layer_norm": "parallel sub-layers",
    "input_layer_norm": "norms before and after the sub-layers",
    "post_attention": "norms before and after the sub-layers",
    "feedforward_layer_norm": "norms before and after the sub-layers",
    "merged_encoder": "joint attention to both sides",
}
"""What variables tell of models that cannot be represented, by parts of their names."""
IGNORED = (
    "alignment_layer", "alignment_heads", "embeddings_merge", "alibi_use_positive_positions",
    "scale_alibi", "rotary_interleave", "start_from_zero_embedding",
)  # fmt: skip
MULTILINGUAL = {"__en__": "M2M-100", "eng_Latn": "NLLB", "en_XX": "mBART"}
"""Entries of vocabularies whose models are told languages in other ways."""


def import_ctranslate2(
    path: Path,
    out: Path,
    *,
    subwords: Sequence[Path] = (),
    facts: Facts | None = None,
    search: Mapping[str, Any] | None = None,
) -> None:
    """Convert a model folder of CTranslate2.

    Parameters
    ----------
    path : Path
        The folder: “model.bin”, vocabularies (.json or .txt), and SentencePiece models.
    out : Path
        The new model folder.
    subwords : Sequence[Path]
        The SentencePiece model, or that of the source and that of the target; none given: those in
        the folder.
    facts : Facts | None
        What is known of the model; None: nothing.
    search : Mapping[str, Any] | None
        How the model is meant to be searched.

    Notes
    -----
    Weights in 16 bits become 32. Int8 weights keep their integers and their scales; int16 ones are
    multiplied out. Where the start of a translation is a word of the vocabulary, its row is copied
    to the padding, which is the start here.
    """
    check_new(out)
    file = read_model_file(path / MODEL)
    if file.specification not in SPECIFICATIONS or file.revision < OLDEST_REVISION:
        raise FolderError(
            f"{path / MODEL}: is a “{file.specification}” of revision {file.revision}; of "
            "CTranslate2's models only encoder–decoder Transformers (TransformerSpec, from "
            f"revision {OLDEST_REVISION} on) can be imported"
        )
    reader = _Reader(file, path / MODEL)
    conventions = _read_conventions(path, file)
    names = _read_names(path, conventions)
    models = tuple(
        read_bounded(each, MOST_VOCABULARY_BYTES) for each in subwords or _find_subwords(path)
    )
    orders = tuple(own_order(each.names, place=str(path)) for each in names)
    ordered = tuple(
        [side.names[i] for i in order] for side, order in zip(names, orders, strict=True)
    )
    vocabularies = build_vocabularies((models[0], models[-1]), (ordered[0], ordered[1]), place=path)
    weights, options = reader.read(names, orders, conventions)
    plain, options = drop_zero_biases(weights, options, vocabularies.pad_id)
    folder = ModelFolder(
        path=out,
        config={
            "model": to_plain(options),
            "text": {"joint": vocabularies.is_joint},
            "search": dict(search or {}),
        },
        options=options,
        vocabularies=vocabularies,
        facts=replace(facts or Facts(), weights="imported from CTranslate2"),
    )
    _write(folder, plain, path / MODEL)


def _write(folder: ModelFolder, weights: Mapping[str, Tensor], place: Path) -> None:
    """Check weights by a model, and write the folder."""
    model = build_model(folder.options, vocabulary_of(folder.vocabularies))
    put_weights(model, restore(weights, place), place)
    with written_beside(folder.path) as beside:
        write_description(beside, replace(folder, path=beside), count_parameters(model))
        write_weights(beside / WEIGHTS_FILE, weights, folder.identity)


@dataclass(frozen=True, kw_only=True)
class _Conventions:
    """What a folder says of its special words.

    Parameters
    ----------
    unknown : str
        What unknown words are called.
    end : str
        What ends a translation.
    start : str | None
        What begins a translation; None: nothing, a zero vector.
    reads_end : bool
        Whether the end of the source is read.
    epsilon : float
        What norms add to the variance.
    """

    unknown: str
    end: str
    start: str | None
    reads_end: bool
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class _Names:
    """The vocabulary of one side.

    Parameters
    ----------
    names : list[str]
        By id, with special words called as everywhere here.
    start_id : int | None
        Which row the padding has, if it is added at the end; None: a row of zeros.
    is_padded : bool
        Whether the padding is added at the end.
    """

    names: list[str]
    start_id: int | None
    is_padded: bool


def _read_conventions(path: Path, file: ModelFile) -> _Conventions:
    """Read how sentences begin and end, from the config or, in old files, from the model."""
    said: dict[str, Any] = {}
    if (path / CONFIG).exists():
        said = read_object(path / CONFIG)
    flags = file.variables
    if file.version <= NEWEST_WITHOUT_CONFIG:
        begins = bool(flags.get("with_target_bos", np.ones(())))
        said = {
            "add_source_bos": bool(flags.get("with_source_bos", np.zeros(()))),
            "add_source_eos": bool(flags.get("with_source_eos", np.zeros(()))),
            "decoder_start_token": "<s>" if begins else "</s>",
        }
        if bool(flags.get("user_decoder_start_tokens", np.zeros(()))):
            said["decoder_start_token"] = None
    is_zero = bool(flags.get("decoder/start_from_zero_embedding", np.zeros(())))
    start = said.get("decoder_start_token", "<s>")
    words = (said.get("unk_token", "<unk>"), said.get("eos_token", "</s>"))
    if not all(isinstance(each, str) for each in words):
        raise FolderError(f"{path / CONFIG}: unk_token and eos_token are no words; get it again")
    if not is_zero and not isinstance(start, str):
        raise FolderError(
            f"{path / CONFIG}: names no decoder_start_token, so whoever calls the model chooses "
            "the first word, as with M2M-100 and NLLB; this is not supported here"
        )
    if said.get("add_source_bos"):
        raise FolderError(f"{path / CONFIG}: add_source_bos is on, which is not supported here")
    epsilon = said.get("layer_norm_epsilon")
    if epsilon is not None and not (isinstance(epsilon, float) and 0 < epsilon <= LARGEST_EPSILON):
        raise FolderError(f"{path / CONFIG}: layer_norm_epsilon is {epsilon}, not supported here")
    # Who converts a MarianMT folder gives the end himself, as its tokeniser does.
    reads_end = is_zero or bool(said.get("add_source_eos"))
    return _Conventions(
        unknown=words[0],
        end=words[1],
        start=None if is_zero else start,
        reads_end=reads_end,
        epsilon=epsilon or USUAL_EPSILON,
    )


def _read_names(path: Path, conventions: _Conventions) -> tuple[_Names, _Names]:
    """Read the vocabularies and call the special words as we do."""
    shared = _find_vocabulary(path, SHARED)
    files = [shared or _find_vocabulary(path, name) for name in SIDES]
    sides = []
    for file, name in zip(files, SIDES, strict=True):
        if file is None:
            raise FolderError(f"{path}: has no {SHARED} or {name} (.json, .txt); get it again")
        names = _read_list(file)
        for mark, kind in MULTILINGUAL.items():
            if mark in names:
                raise FolderError(f"{file}: has “{mark}” as {kind} has, which is not supported")
        is_target = name == SIDES[1] or shared is not None
        sides.append(_name_side(names, conventions, is_target=is_target, place=file))
    return sides[0], sides[1]


def _name_side(
    names: list[str], conventions: _Conventions, *, is_target: bool, place: Path
) -> _Names:
    start = conventions.start
    if is_target and start is not None and start not in names:
        raise FolderError(f"{place}: lacks the start “{start}”; get the model again")
    called = {conventions.unknown: UNKNOWN, conventions.end: END}
    if start == PADDING and PADDING in names:
        called[PADDING] = PADDING
    own = [
        called.get(name, f"{name}?" if name in (UNKNOWN, END, PADDING) else name) for name in names
    ]
    is_padded = PADDING not in own
    start_id = names.index(start) if is_padded and is_target and start is not None else None
    return _Names(
        names=[*own, PADDING] if is_padded else own, start_id=start_id, is_padded=is_padded
    )


def _find_vocabulary(path: Path, name: str) -> Path | None:
    found = (path / f"{name}{suffix}" for suffix in (".json", ".txt"))
    return next((each for each in found if each.exists()), None)


def _read_list(file: Path) -> list[str]:
    """Read a vocabulary: a JSON list, or one entry a line."""
    try:
        text = read_bounded(file, MOST_VOCABULARY_BYTES).decode()
        found = json.loads(text) if file.suffix == ".json" else text.removesuffix("\n").split("\n")
    except (ValueError, RecursionError):
        raise FolderError(f"{file}: is no list of words in UTF-8; get the model again") from None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise FolderError(f"{file}: is no list of words; get the model again")
    names = [each.removesuffix("\r") if file.suffix == ".txt" else each for each in found]
    if len(set(names)) < len(names):
        raise FolderError(f"{file}: has an entry twice; get the model again")
    return names


def _find_subwords(path: Path) -> tuple[Path, Path]:
    """Find the SentencePiece models beside a model."""
    for source, target in SUBWORDS:
        if (path / source).exists() and (path / target).exists():
            return path / source, path / target
    found = sorted({*path.glob("*.spm"), *path.glob("*.model")})
    if len(found) != 1:
        raise FolderError(
            f"{path}: has {len(found)} SentencePiece models (source.spm and target.spm, or "
            "sentencepiece.model); put them there, or name them with --vocabulary"
        )
    return found[0], found[0]


class _Reader:
    """Takes the variables of a model one by one, each once and checked for its shape."""

    def __init__(self, file: ModelFile, place: Path) -> None:
        self._variables = file.variables
        self._heads = SPECIFICATIONS[file.specification]
        self._place = place
        self._taken: set[str] = set()
        for name in self._variables:
            self._refuse(name)

    def read(
        self, names: tuple[_Names, _Names], orders: Sequence[list[int]], conventions: _Conventions
    ) -> tuple[dict[str, Tensor], TransformerOptions]:
        """Convert all weights, with scales beside int8 matrices, and find the options."""
        factors = [self._factor(stack) for stack in STACKS]
        options, positions, is_concatenated = self._options(names, factors)
        options = replace(
            options, source_end=conventions.reads_end, norm_epsilon=conventions.epsilon
        )
        weights = dict(self._words(options, names, orders, factors))
        for theirs, parts in linear_layers(options).items():
            weights |= self._linear(theirs, parts, options)
        for theirs, ours in norms(options).items():
            shape = (options.model_dim,)
            weights[f"{ours}.weight"] = self._float(f"{theirs}/gamma", shape)
            if options.norm == "layer":
                weights[f"{ours}.bias"] = self._float(f"{theirs}/beta", shape)
        rest = sorted(self._variables.keys() - self._taken)
        if rest:
            raise FolderError(f"{self._place}: holds “{rest[0]}”, which is not supported here")
        if is_concatenated:
            weights = to_interleaved_sinusoids(weights)
        if positions is not None:
            weights["source_embedding.positions.weight"] = positions
        return weights, options

    def _refuse(self, name: str) -> None:
        """Refuse variables of models that cannot be represented, and pass over harmless ones."""
        parts = name.split("/")
        is_off = not self._variables[name].any()
        if parts[-1] in IGNORED or parts[0].startswith(("with_", "user_decoder")):
            self._taken.add(name)
            return
        found = next((each for part, each in REFUSED.items() if part in name), None)
        if found is not None and not (is_off and not self._variables[name].ndim):
            raise FolderError(f"{self._place}: has {found} ({name}), which is not supported here")
        if found is not None:
            self._taken.add(name)

    def _options(
        self, names: tuple[_Names, _Names], factors: Sequence[float]
    ) -> tuple[TransformerOptions, Tensor | None, bool]:
        """Find the options, learned positions if there are any, and whether sines come first."""
        width = self._peek(f"{self._scope(TARGET)}/weight").shape[-1]
        inner = self._peek("encoder/layer_0/ffn/linear_0/weight").shape[0]
        is_gated = "encoder/layer_0/ffn/linear_0_noact/weight" in self._variables
        pre_norm = {bool(self._attribute(stack, "pre_norm", 1)) for stack in STACKS}
        heads = {int(self._attribute(stack, "num_heads", self._heads or 8)) for stack in STACKS}
        numbers = {int(self._attribute(stack, "activation", 0)) for stack in STACKS}
        activations = [
            ours
            for ours, number in ACTIVATIONS.items()
            if {number} == numbers and (ours in GATED) == is_gated
        ]
        if len(pre_norm) > 1 or len(heads) > 1 or not activations:
            raise FolderError(
                f"{self._place}: has the activation {sorted(numbers)} and {sorted(heads)} heads, "
                "which is not supported here"
            )
        kind, table, is_concatenated = self._positions(width)
        plain = {
            "num_encoder_layers": self._count_layers("encoder"),
            "num_decoder_layers": self._count_layers("decoder"),
            "model_dim": width,
            "feed_forward_dim": inner,
            "feed_forward": activations[0],
            "num_heads": heads.pop(),
            "attention_bias": True,
            "output_bias": True,
            "norm": "layer" if "encoder/layer_0/ffn/layer_norm/beta" in self._variables else "rms",
            "norm_position": "pre" if pre_norm.pop() else "post",
            "positions": kind,
            "max_positions": POSITIONS if table is None else len(table),
            "tied_embeddings": self._tying(names, factors),
        }
        try:
            options: TransformerOptions = from_plain(
                TransformerOptions, plain, place=str(self._place)
            )
        except OptionError as error:
            raise FolderError(f"{self._place}: {error}") from None
        return replace(options, scaled=self._is_scaled(options)), table, is_concatenated

    def _attribute(self, stack: str, name: str, default: float) -> float:
        """Take a number that is said of encoder and decoder, or in old files of the model."""
        found = [each for each in (f"{stack}/{name}", name) if each in self._variables]
        if not found:
            return default
        self._taken.update(found)
        value = self._variables[found[0]]
        if value.size != 1:
            raise FolderError(f"{self._place}: “{found[0]}” is no number; get the model again")
        return float(value.reshape(()))

    def _factor(self, stack: str) -> float:
        """Take what embeddings are multiplied by, over what we multiply them by (√d)."""
        scope = self._scope(SOURCE if stack == "encoder" else TARGET)
        width = self._peek(f"{scope}/weight").shape[-1]
        old = f"{scope}/multiply_by_sqrt_depth"
        names = [each for each in (f"{stack}/scale_embeddings", old) if each in self._variables]
        self._taken.update(names)
        if not names:
            return 1.0
        value = self._variables[names[0]]
        if value.size != 1:
            raise FolderError(f"{self._place}: “{names[0]}” is no number; get the model again")
        number = float(value.reshape(()))
        if value.dtype == np.int8:
            return 1.0 if number else width**-0.5
        return number / math.sqrt(width) if number > 0 else 1.0

    def _tying(self, names: tuple[_Names, _Names], factors: Sequence[float]) -> str:
        """Find out which matrices of words are one."""
        source, target, output = (
            self._variables.get(f"{self._scope(each)}/weight") for each in (SOURCE, TARGET, OUTPUT)
        )
        assert source is not None
        assert target is not None
        if not _is_same(target, output) or factors[1] != 1.0:
            return "none"
        is_joint = names[0] == names[1] and factors[0] == 1.0
        return "all" if is_joint and _is_same(source, target) else "target"

    def _scope(self, words: str) -> str:
        """Find the name of a matrix of words, which has changed over time."""
        scope = WORDS[words]
        short = scope.removesuffix("_0")
        return scope if f"{scope}/weight" in self._variables else short

    def _positions(self, width: int) -> tuple[str, Tensor | None, bool]:
        """Recognise a table of positions, or take it as a learned one.

        Returns
        -------
        tuple[str, Tensor | None, bool]
            What we call it, the table if it must be kept, and whether sines come first.
        """
        found = [self._variables.get(f"{stack}/{POSITION_TABLE}") for stack in STACKS]
        self._taken.update(f"{stack}/{POSITION_TABLE}" for stack in STACKS)
        if found[0] is None and found[1] is None:
            # What CTranslate2 computes itself counts from 1, with Marian's wavelengths.
            table = sinusoids(1, POSITIONS, width, is_inclusive=True)
            return "learned", torch.from_numpy(table[:, _sines_first(width)]).float(), False
        if found[0] is None or found[1] is None or found[0].ndim != 2 or found[1].ndim != 2:
            raise FolderError(f"{self._place}: only one side has positions; not supported here")
        rows = min(len(found[0]), len(found[1]))
        table = found[0][:rows]
        if table.shape[1] != width or not np.array_equal(table, found[1][:rows]):
            raise FolderError(f"{self._place}: the two sides have different positions")
        if not table.any():
            return "none", None, False
        if np.array_equal(table, np.arange(1, rows + 1)[:, None].repeat(width, 1)):
            return "index", None, False
        for kind, is_inclusive in (("sinusoidal", False), ("marian", True)):
            if width % 2 == 0:
                exact = sinusoids(0, rows, width, is_inclusive=is_inclusive)
                for is_concatenated in (False, True):
                    other = exact[:, _sines_first(width)] if is_concatenated else exact
                    if np.abs(table - other).max() < TOLERANCE:
                        return kind, None, is_concatenated
        return "learned", torch.from_numpy(table.astype(np.float32)), False

    def _is_scaled(self, options: TransformerOptions) -> bool:
        """Whether scores of attention are divided by √d_k, as they are unless said otherwise."""
        names = [f"{each}/queries_scale" for each in attention_layers(options)]
        said = {float(self._variables[each].max()) for each in names if each in self._variables}
        self._taken.update(names)
        if said == {1.0} and all(each in self._variables for each in names):
            return False
        if said and not np.allclose([*said], options.head_key_dim**-0.5):
            raise FolderError(f"{self._place}: scales queries by {min(said)}, not supported here")
        return True

    def _count_layers(self, stack: str) -> int:
        count = 0
        while f"{stack}/layer_{count}/ffn/linear_0/weight" in self._variables:
            count += 1
        return count

    def _words(
        self,
        options: TransformerOptions,
        names: tuple[_Names, _Names],
        orders: Sequence[list[int]],
        factors: Sequence[float],
    ) -> Iterator[tuple[str, Tensor]]:
        """Convert embeddings, output layer and its bias, adding the padding."""
        tied = options.tied_embeddings
        wanted = {"all": (SOURCE,), "target": (SOURCE, TARGET), "none": (SOURCE, TARGET, OUTPUT)}
        for ours in WORDS:
            side, order = names[ours != SOURCE], torch.tensor(orders[ours != SOURCE])
            start_id = None if ours == OUTPUT else side.start_id
            factor = {SOURCE: factors[0], TARGET: factors[1]}.get(ours, 1.0)
            rows, width = len(side.names) - side.is_padded, options.model_dim

            def pad(each: Tensor, side: _Names = side, start_id: int | None = start_id) -> Tensor:
                row = torch.zeros_like(each[:1]) if start_id is None else each[start_id][None]
                return torch.cat([each, row]) if side.is_padded else each

            for name, each in self._matrix(self._scope(ours), rows, width).items():
                if ours in wanted[tied]:
                    is_factored = name == SCALES or each.dtype != torch.int8
                    yield ours + name, (pad(each) * factor if is_factored else pad(each))[order]
        side, order = names[1], torch.tensor(orders[1])
        count = len(side.names) - side.is_padded
        bias = self._bias(WORDS[OUTPUT], count)
        yield "output.bias", torch.cat([bias, torch.zeros(int(side.is_padded))])[order]

    def _linear(
        self, theirs: str, parts: tuple[str, ...], options: TransformerOptions
    ) -> dict[str, Tensor]:
        """Convert one linear layer, which may be several of ours."""
        width, inner = options.model_dim, options.feed_forward_dim
        outputs = inner if "/ffn/linear_0" in theirs else width
        inputs = inner if theirs.endswith("/ffn/linear_1") else width
        matrix = self._matrix(theirs, outputs * len(parts), inputs)
        bias = self._bias(theirs, outputs * len(parts))
        found: dict[str, Tensor] = {}
        for number, part in enumerate(parts):
            rows = slice(number * outputs, (number + 1) * outputs)
            found |= {f"{part}.weight{name}": each[rows] for name, each in matrix.items()}
            found[f"{part}.bias"] = bias[rows]
        return found

    def _matrix(self, scope: str, rows: int, columns: int) -> dict[str, Tensor]:
        """Take a matrix: as floats, or as int8 with scales."""
        numbers = self._take(f"{scope}/weight", (rows, columns))
        scale_name = f"{scope}/weight_scale"
        if numbers.dtype == np.float32:
            return {"": torch.from_numpy(numbers.copy())}
        scale = self._peek(scale_name)
        self._taken.add(scale_name)
        if scale.shape not in ((), (1,), (rows,)) or not (np.isfinite(scale) & (scale > 0)).all():
            raise FolderError(f"{self._place}: damaged (the scales of {scope}); get it again")
        if numbers.dtype == np.int8:
            scales = np.broadcast_to(1 / scale.astype(np.float32), (rows,)).copy()
            return {"": torch.from_numpy(numbers.copy()), SCALES: torch.from_numpy(scales)}
        if numbers.dtype != np.int16:
            raise FolderError(f"{self._place}: “{scope}/weight” is stored as {numbers.dtype}")
        wide = numbers.astype(np.float32) / scale.reshape(-1, 1)
        return {"": torch.from_numpy(wide.astype(np.float32))}

    def _bias(self, scope: str, count: int) -> Tensor:
        """Take a bias; where there is none, it is zero."""
        name = f"{scope}/bias"
        return self._float(name, (count,)) if name in self._variables else torch.zeros(count)

    def _float(self, name: str, shape: tuple[int, ...]) -> Tensor:
        found = self._take(name, shape)
        if found.dtype != np.float32:
            raise FolderError(f"{self._place}: “{name}” is stored as {found.dtype}; get it again")
        return torch.from_numpy(found.copy())

    def _take(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        found = self._peek(name)
        if found.shape != shape:
            raise FolderError(
                f"{self._place}: “{name}” has shape {found.shape}, not {shape}; get the model again"
            )
        self._taken.add(name)
        return found

    def _peek(self, name: str) -> np.ndarray:
        if name not in self._variables:
            raise FolderError(f"{self._place}: lacks “{name}”; get the model again")
        return self._variables[name]


def _is_same(one: np.ndarray, other: np.ndarray | None) -> bool:
    return one is other or (other is not None and np.array_equal(one, other))


def _sines_first(width: int) -> np.ndarray:
    return concatenated_order(width).numpy()
