"""Positions inside attention: rotary, ALiBi and relative."""

import math

import torch
from torch import Tensor, nn

from dragoman.data.packed_mask import PackedMask
from dragoman.models.attention.scaled_dot_product_attention import score_scale
from dragoman.models.positions.positional_encoding import SinusoidalPositions
from dragoman.shapes import Float, Int


class RotaryPositions(nn.Module):
    r"""Rotate queries and keys by angles that grow with position (Su et al., 2021).

    Parameters
    ----------
    key_dim : int
        Width of one head's queries and keys; even.

    Notes
    -----
    Each pair of entries :math:`(x_{2i},x_{2i+1})` at place p is turned by the angle
    :math:`p\,10000^{-2i/d_k}`, the angle of the paper's sinusoids, whose table is used. The dot
    product of a turned query and a turned key depends on their distance alone. Lengths are kept,
    and there is no end.
    """

    def __init__(self, key_dim: int) -> None:
        super().__init__()
        self.sinusoids = SinusoidalPositions(key_dim)

    def forward(
        self, vectors: Float[Tensor, "batch heads length key_dim"], first: int
    ) -> Float[Tensor, "batch heads length key_dim"]:
        """Rotate queries or keys before their dot product."""
        return _turn(vectors, self.sinusoids(first, vectors.size(-2), None))

    def packed(
        self,
        columns: Float[Tensor, "tokens columns"],
        mask: PackedMask,
        num_vectors: int,
    ) -> Float[Tensor, "tokens columns"]:
        """Rotate the queries and keys of packed sentences."""
        key_dim = self.sinusoids.model_dim
        vectors, rest = columns.tensor_split([num_vectors * key_dim], dim=1)
        sinusoids = self.sinusoids(0, mask.longest, None)[mask.places.long()]
        turned = _turn(vectors.unflatten(1, (num_vectors, key_dim)), sinusoids[:, None])
        return torch.cat([turned.flatten(1), rest], dim=1)


class AlibiBias(nn.Module):
    r"""Subtract from scores a multiple of the distance, with one slope a head (Press et al., 2022).

    Parameters
    ----------
    num_heads : int
        Heads.

    Notes
    -----
    :math:`-m_h|i-j|` is added to the score of query i and key j, after its division by √d_k. The
    slopes are :math:`m_h=2^{-8h/H}` for heads h = 1 … H where H is a power of two; otherwise, as
    published, those of the next lower power of two, followed by every other slope of twice as many
    heads. Nothing is learnt, and there is no end. Press et al. look only back; in the encoder the
    distance to what follows counts the same.
    """

    slopes: Tensor

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.register_buffer("slopes", torch.tensor(alibi_slopes(num_heads)), persistent=False)

    def forward(
        self, query: Float[Tensor, "batch heads queries key_dim"], num_keys: int
    ) -> Float[Tensor, "1 heads queries {num_keys}"]:
        """Compute the bias of the scores."""
        distances = _distances(query.size(-2), num_keys, query.device).abs()
        return (-self.slopes[:, None, None] * distances).unsqueeze(0).to(query.dtype)


class RelativeBias(nn.Module):
    r"""Learn a vector for each clipped distance, which is added to the key (Shaw et al., 2018).

    Parameters
    ----------
    num_heads : int
        Heads; each has vectors of its own.
    key_dim : int
        Width of one head's queries and keys.
    max_distance : int
        The distance beyond which all are one.
    scaled : bool
        Whether the scores to which the bias is added were divided by √d_k.

    Notes
    -----
    :math:`e_{ij}=q_i^\top(k_j+a_{\mathrm{clip}(j-i,-D,D)})/\sqrt{d_k}`, of which the second summand
    is computed here. Row r of `weight` belongs to the distance j − i = r − D. The values get no
    such vectors: Shaw et al. found them to add nothing. The dot products with all 2D + 1 vectors
    are taken first and then dealt out to the keys, so no vector is ever copied. Initialised here,
    normal with variance 1/d_k, like learned positions.
    """

    def __init__(
        self, num_heads: int, key_dim: int, max_distance: int, *, scaled: bool = True
    ) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.scale = score_scale(key_dim, scaled)
        self.weight = nn.Parameter(torch.empty(2 * max_distance + 1, num_heads, key_dim))
        nn.init.normal_(self.weight, std=1 / math.sqrt(key_dim))

    def forward(
        self, query: Float[Tensor, "batch heads queries key_dim"], num_keys: int
    ) -> Float[Tensor, "batch heads queries {num_keys}"]:
        """Compute the bias of the scores."""
        distances = _distances(query.size(-2), num_keys, query.device)
        rows = distances.clamp(-self.max_distance, self.max_distance) + self.max_distance
        products = torch.einsum("bhqd,rhd->bhqr", query * self.scale, self.weight)
        return products.gather(-1, rows.expand(*products.shape[:3], -1)).to(query.dtype)


def _turn(vectors: Tensor, sinusoids: Tensor) -> Tensor:
    """Rotate each pair of entries by the angle whose sine and cosine are given."""
    sine, cosine = sinusoids.unflatten(-1, (-1, 2)).unbind(-1)
    even, odd = vectors.unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1)
    return turned.flatten(-2).to(vectors.dtype)


def alibi_slopes(num_heads: int) -> list[float]:
    """Compute the slope of each head."""
    power = 2 ** (num_heads.bit_length() - 1)
    slopes = [2 ** (-8 * head / power) for head in range(1, power + 1)]
    between = [2 ** (-4 * head / power) for head in range(1, 2 * power, 2)]
    return slopes + between[: num_heads - power]


def _distances(
    num_queries: int, num_keys: int, device: torch.device
) -> Int[Tensor, "{num_queries} {num_keys}"]:
    """Compute key position minus query position."""
    keys = torch.arange(num_keys, device=device)
    queries = torch.arange(num_keys - num_queries, num_keys, device=device)
    return keys - queries[:, None]
