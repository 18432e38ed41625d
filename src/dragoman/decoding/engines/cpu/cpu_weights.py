"""Read a Transformer's weights into the layout of the compiled search."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dragoman.decoding.engines.cpu.weight_file import WeightFile
from dragoman.decoding.options import CpuPrecision
from dragoman.eight_bits import Rounded
from dragoman.folder import ModelFolder, check_shape
from dragoman.kernels.cpu_search.model import (
    ACTIVATIONS,
    Decoder,
    Encoder,
    Model,
    Shape,
    make_cached,
)
from dragoman.kernels.cpu_search.weight_layout import Matrix, lay_out, lay_out_floats, stack
from dragoman.kernels.processor import can_compile
from dragoman.models.options import TransformerOptions
from dragoman.models.positions.sinusoids import sinusoids
from dragoman.shapes import Float32

FIRST_POSITIONS = 512
_Vectors = Float32[np.ndarray, "..."]


def can_be_compiled(options: object) -> bool:
    """Say whether the compiled search supports a model on this processor.

    Returns
    -------
    bool
        True for Transformers in which attention and norms know no positions, also with cells in
        place of the decoder's self-attention.
    """
    return (
        isinstance(options, TransformerOptions)
        and (options.is_usual or _has_cells(options))
        and options.positions in ("sinusoidal", "marian", "learned", "none")
        and options.norm in ("layer", "rms")
        and can_compile()
    )


def _has_cells(options: TransformerOptions) -> bool:
    """Say whether a model differs from the default only in its recurrent decoder."""
    return options.is_recurrent and replace(options, decoder_attention="full").is_usual


def read_cpu_model(folder: ModelFolder, precision: CpuPrecision) -> Model:
    """Read a model for the compiled search."""
    options = folder.options
    assert isinstance(options, TransformerOptions)
    file = WeightFile(folder.open_weights())
    return _Reader(file, options, is_rounded=precision == "int8").model(folder)


def make_positions(options: TransformerOptions, count: int) -> Float32[np.ndarray, "count width"]:
    """Compute positional encodings."""
    if options.positions == "none":
        return np.zeros((count, options.model_dim), np.float32)
    is_inclusive = options.positions == "marian"
    table = sinusoids(0, count, options.model_dim, is_inclusive=is_inclusive)
    return table.astype(np.float32)


class _Reader:
    """Reads the weights of one model."""

    def __init__(self, file: WeightFile, options: TransformerOptions, *, is_rounded: bool) -> None:
        self._file, self._options, self._is_rounded = file, options, is_rounded
        dims = options.head_key_dim, options.head_value_dim
        self._heads = tuple(options.num_heads * dim for dim in dims)

    def model(self, folder: ModelFolder) -> Model:
        """Read the whole model."""
        options = self._options
        sizes = [len(each) for each in folder.vocabularies]
        output = self._words("output.words", sizes[1], folder.vocabularies.pad_id)
        if options.tied_embeddings == "all":
            source = target = output
        else:
            source = self._words("source_embedding.words", sizes[0], None)
            is_tied = options.tied_embeddings == "target"
            target = output if is_tied else self._words("target_embedding.words", sizes[1], None)
        return Model(
            source, target, output, self._positions(), self._encoder(), self._decoder(),
            self._shape(),
        )  # fmt: skip

    def _shape(self) -> Shape:
        options = self._options
        return Shape(
            options.num_heads,
            options.head_key_dim,
            options.head_value_dim,
            options.head_key_dim**-0.5 if options.scaled else 1.0,
            options.norm_position == "pre",
            options.norm == "layer",
            options.norm_epsilon,
            ACTIVATIONS.index(options.feed_forward),
            options.model_dim**0.5,
            options.is_recurrent,
            make_cached(self._is_rounded),
        )

    def _encoder(self) -> Encoder:
        count = self._options.num_encoder_layers
        return Encoder(
            self._each("encoder", count, self._joined("self_attention")),
            self._each("encoder", count, self._output("self_attention")),
            self._each("encoder", count, self._inner),
            self._each("encoder", count, self._outer),
            self._norms("encoder", count, ("self_attention", "feed_forward")),
            self._final("encoder"),
        )

    def _decoder(self) -> Decoder:
        count, width = self._options.num_decoder_layers, self._options.model_dim
        key_dim, value_dim = self._heads

        def query(layer: str) -> Matrix:
            return self._side_by_side(f"{layer}.cross_attention", {"query": key_dim}, width)

        def memory(layer: str) -> Matrix:
            sizes = {"key": key_dim, "value": value_dim}
            return self._side_by_side(f"{layer}.cross_attention", sizes, width)

        if self._options.is_recurrent:
            joined = output = self._each("decoder", count, self._gates)
        else:
            joined = self._each("decoder", count, self._joined("self_attention"))
            output = self._each("decoder", count, self._output("self_attention"))
        return Decoder(
            joined,
            output,
            self._each("decoder", count, query),
            self._each("decoder", count, memory),
            self._each("decoder", count, self._output("cross_attention")),
            self._each("decoder", count, self._inner),
            self._each("decoder", count, self._outer),
            self._norms("decoder", count, ("self_attention", "cross_attention", "feed_forward")),
            self._final("decoder"),
        )

    def _each(self, side: str, count: int, read: Callable[[str], Matrix]) -> Matrix:
        """Read the same matrix of all layers."""
        return stack((read(f"{side}.{index}") for index in range(count)), count)

    def _joined(self, attention: str) -> Callable[[str], Matrix]:
        key_dim, value_dim = self._heads
        sizes = {"query": key_dim, "key": key_dim, "value": value_dim}
        width = self._options.model_dim
        return lambda layer: self._side_by_side(f"{layer}.{attention}", sizes, width)

    def _output(self, attention: str) -> Callable[[str], Matrix]:
        sizes = {"output": self._options.model_dim}
        return lambda layer: self._side_by_side(f"{layer}.{attention}", sizes, self._heads[1])

    def _gates(self, layer: str) -> Matrix:
        """Read the gates of a recurrent cell and their biases."""
        width = self._options.model_dim
        names = [f"{layer}.self_attention.{name}" for name in ("forget", "update")]
        bias = np.zeros(2 * width, np.float32)
        bias[:width] = self._vectors(f"{names[0]}.bias", (width,))
        return self._lay_out([(f"{name}.weight", (width, width)) for name in names], bias)

    def _inner(self, layer: str) -> Matrix:
        names = (
            ["inner", "gate"] if self._options.feed_forward in ("swiglu", "geglu") else ["inner"]
        )
        sizes = dict.fromkeys(names, self._options.feed_forward_dim)
        return self._side_by_side(f"{layer}.feed_forward", sizes, self._options.model_dim)

    def _outer(self, layer: str) -> Matrix:
        sizes = {"outer": self._options.model_dim}
        return self._side_by_side(f"{layer}.feed_forward", sizes, self._options.feed_forward_dim)

    def _side_by_side(self, place: str, sizes: dict[str, int], width: int) -> Matrix:
        """Read linear layers with the same input as one matrix."""
        names = [f"{place}.{name}" for name in sizes]
        has_bias = "feed_forward" in place or self._options.attention_bias
        shapes = [(f"{place}.{name}.weight", (size, width)) for name, size in sizes.items()]
        biases = [
            self._vectors(f"{name}.bias", (size,))
            for name, size in zip(names, sizes.values(), strict=True)
            if has_bias
        ]
        return self._lay_out(shapes, np.concatenate(biases) if biases else None)

    def _words(self, name: str, size: int, pad_id: int | None) -> Matrix:
        """Read embeddings; as an output layer, the padding's score is −∞."""
        shape = (size, self._options.model_dim)
        bias = np.zeros(size, np.float32)
        if pad_id is not None:
            if self._options.output_bias:
                bias = self._vectors("output.bias", (size,))
            bias[pad_id] = -np.inf
            if self._options.tied_embeddings == "all":
                name = "source_embedding.words"
            elif self._options.tied_embeddings == "target":
                name = "target_embedding.words"
        return self._lay_out([(name, shape)], bias)

    def _positions(self) -> _Vectors:
        if self._options.positions != "learned":
            return make_positions(self._options, FIRST_POSITIONS)
        shape = (self._options.max_positions, self._options.model_dim)
        return self._vectors("source_embedding.positions.weight", shape)

    def _norms(self, side: str, count: int, names: Sequence[str]) -> _Vectors:
        layers = [
            [self._norm(f"{side}.{index}.{name}_norm.norm") for name in names]
            for index in range(count)
        ]
        return np.array(layers)

    def _final(self, side: str) -> _Vectors:
        """Read the final norm; pre-norm models have one, post-norm models none."""
        if self._options.norm_position == "post":
            return np.zeros((2, self._options.model_dim), np.float32)
        return self._norm(f"{side}_norm")

    def _norm(self, name: str) -> _Vectors:
        shape = (self._options.model_dim,)
        weight = self._vectors(f"{name}.weight", shape)
        is_centred = self._options.norm == "layer"
        bias = self._vectors(f"{name}.bias", shape) if is_centred else np.zeros_like(weight)
        return np.stack([weight, bias])

    def _lay_out(
        self, shapes: Sequence[tuple[str, tuple[int, ...]]], bias: _Vectors | None
    ) -> Matrix:
        """Stack matrices, given by name and shape."""
        for name, shape in shapes:
            check_shape(self._file.path, name, self._file.tensors.shape(name), shape)
        if not self._is_rounded:
            floats = [self._file.restored(name).astype(np.float32) for name, _ in shapes]
            return lay_out_floats(np.concatenate(floats), bias)
        parts = [self._file.matrix(name) for name, _ in shapes]
        return lay_out(Rounded(*map(np.concatenate, zip(*parts, strict=True))), bias)

    def _vectors(self, name: str, shape: tuple[int, ...]) -> _Vectors:
        check_shape(self._file.path, name, self._file.tensors.shape(name), shape)
        return self._file.fractions(name).astype(np.float32)
