"""The decoder of a rebuilt Transformer as one script, for a CPU."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from dragoman.decoding.engine_cache import SourceCache
from dragoman.decoding.engine_layers import EngineDecoderLayer
from dragoman.decoding.products import FloatProduct, Int8Product, Product, has_bfloat16
from dragoman.decoding.shared_cache import SharedCache
from dragoman.kernels.decoder_step import Caches, Decoder, Layer, Matrix, Norm, read_word
from dragoman.kernels.scripts import scripted
from dragoman.models.normalisation import LayerNorm, RMSNorm
from dragoman.models.residual import AddAndNorm


class ScriptedDecoder:
    """A decoder's layers, to be run one word at a time on a CPU.

    Parameters
    ----------
    layers : Sequence[EngineDecoderLayer]
        The layers, those of `script_decoder`.
    """

    def __init__(self, layers: Sequence[EngineDecoderLayer]) -> None:
        self._decoder = Decoder(
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
            scale=layers[0].own.heads.scale,
            is_norm_first=layers[0].own_norm.position == "pre",
            activation=layers[0].feed.kind,
        )
        is_int8 = isinstance(layers[0].own.joined, Int8Product)
        # One hypothesis has so little to multiply that a product of 16 bits takes longer to begin.
        self.beams_dtype = torch.bfloat16 if is_int8 and has_bfloat16() else None
        self._run = scripted(read_word)  # now, as the threads that will call it must not make it

    def __call__(
        self,
        states: Float[Tensor, "rows model_dim"],
        past: SharedCache,
        source: SourceCache,
        mask: Float[Tensor, "sentences 1 1 places"],
    ) -> Float[Tensor, "rows model_dim"]:
        """Read one more word of each hypothesis.

        Parameters
        ----------
        states : Float[Tensor, "rows model_dim"]
            Their vectors.
        past : SharedCache
            Of words so far, with places taken for these, which are written.
        source : SourceCache
            Of the sources, in the same precision.
        mask : Float[Tensor, "sentences 1 1 places"]
            What is added to scores of the source.

        Returns
        -------
        Float[Tensor, "rows model_dim"]
            What the last layer says.
        """
        caches = Caches(past.keys, past.values, past.mask, past.filled, *source, mask)
        found: Tensor = self._run(states, self._decoder, caches)
        return found


def script_decoder(layers: Sequence[EngineDecoderLayer]) -> ScriptedDecoder | None:
    """Make one script of a decoder's layers.

    Parameters
    ----------
    layers : Sequence[EngineDecoderLayer]
        The layers.

    Returns
    -------
    ScriptedDecoder | None
        None: not on a CPU, or with positions or norms that only the layers themselves know.
    """
    return ScriptedDecoder(layers) if all(_is_plain(layer) for layer in layers) else None


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
