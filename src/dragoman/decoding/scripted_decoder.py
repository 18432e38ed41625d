"""The decoder of a rebuilt Transformer as one script, for a CPU."""

from collections.abc import Callable, Sequence

from torch import Tensor

from dragoman.decoding.engine_cache import EngineCache, SourceCache
from dragoman.decoding.engine_layers import EngineDecoderLayer
from dragoman.decoding.products import FloatProduct, Int8Product, Product
from dragoman.kernels.decoder_step import Caches, Decoder, Layer, Matrix, Norm, read_word
from dragoman.kernels.scripts import scripted
from dragoman.models.normalisation import LayerNorm, RMSNorm
from dragoman.models.residual import AddAndNorm

ReadWord = Callable[[Tensor, int, Tensor, EngineCache, SourceCache], Tensor]


def script_decoder(layers: Sequence[EngineDecoderLayer]) -> ReadWord | None:
    """Make one script of a decoder's layers.

    Parameters
    ----------
    layers : Sequence[EngineDecoderLayer]
        The layers.

    Returns
    -------
    Callable[[Tensor, int, Tensor, EngineCache, SourceCache], Tensor] | None
        Reads one more word of each hypothesis, given its vectors, the number of words before, what
        is added to scores of the source, and the caches of the past and of the source. None: not
        on a CPU, or with positions or norms that only the layers themselves know.
    """
    if not all(_is_plain(layer) for layer in layers):
        return None
    decoder = Decoder(
        layers=[
            Layer(
                joined=_matrix(layer.own.joined),
                own_output=_matrix(layer.own.output),
                query=_matrix(layer.cross.query),
                source_output=_matrix(layer.cross.output),
                inner=_matrix(layer.feed.inner),
                outer=_matrix(layer.feed.outer),
                own_norm=_norm(layer.own_norm),
                source_norm=_norm(layer.cross_norm),
                feed_norm=_norm(layer.feed_norm),
            )
            for layer in layers
        ],
        num_heads=layers[0].own.heads.num_heads,
        scale=layers[0].own.heads.scale,
        is_norm_first=layers[0].own_norm.position == "pre",
        activation=layers[0].feed.kind,
    )

    run = scripted(read_word)  # now, as the threads that will call it must not all make it

    def read(
        states: Tensor, length: int, mask: Tensor, past: EngineCache, source: SourceCache
    ) -> Tensor:
        found: Tensor = run(states, length, mask, decoder, Caches(*past, *source))
        return found

    return read


def _is_plain(layer: EngineDecoderLayer) -> bool:
    """Say whether a layer is on a CPU, and knows positions neither in attention nor in norms."""
    attentions, norms = (layer.own, layer.cross), (layer.own_norm, layer.cross_norm)
    return (
        _matrix(layer.own.output).weight.device.type == "cpu"
        and all(each.rotation is None and each.score_bias is None for each in attentions)
        and all(isinstance(each.norm, LayerNorm | RMSNorm) for each in (*norms, layer.feed_norm))
    )


def _norm(part: AddAndNorm) -> Norm:
    """Take a norm's weights."""
    norm = part.norm
    assert isinstance(norm, LayerNorm | RMSNorm)
    bias = norm.bias.detach() if isinstance(norm, LayerNorm) else None
    return Norm(norm.weight.detach(), bias, norm.epsilon)


def _matrix(product: Product) -> Matrix:
    """Take a product's matrix."""
    assert isinstance(product, FloatProduct | Int8Product)
    return product.matrix
