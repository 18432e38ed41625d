"""Restricted self-attention: each token attends to its neighbours (section 4 of the paper)."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.models.attention.multihead_attention import KeysAndValues
from dragoman.models.attention.observer import Observer
from dragoman.models.attention.scaled_dot_product_attention import attend, score_scale
from dragoman.shapes import Bool, Float, Int

# Smaller products cost a CPU more than the arithmetic that they save.
_FEWEST_QUERIES = 16
# Fused kernels want rows of scores in such multiples.
_KEYS_MULTIPLE = 8


class _Blocks(NamedTuple):
    """Division of a sequence into blocks of queries, each with the keys around it."""

    num_blocks: int
    num_queries: int
    num_keys: int
    num_leading: int  # keys before a block's first query


class RestrictedAttention(nn.Module):
    r"""Attend with several heads to a window of tokens around each, or just before it.

    Parameters
    ----------
    model_dim : int
        Width of what comes in and goes out (d_model).
    num_heads : int
        Heads (h).
    key_dim : int
        Width of one head's queries and keys (d_k).
    value_dim : int
        Width of one head's values (d_v).
    bias : bool
        Whether the four projections have biases.
    scaled : bool
        Whether scores are divided by √d_k.
    window : int
        Words seen (r), the word itself among them; at least 1.
    causal : bool
        Whether the window ends at the word itself.
    dropout : float
        Share of the weights that is dropped in training, unless an observer looks.

    Notes
    -----
    :math:`\mathrm{softmax}_{j\in N(i)}(q_i^\top k_j/\sqrt{d_k})`-weighted averages of the
    :math:`v_j`, where :math:`N(i)=\{j:|i-j|\le\lfloor r/2\rfloor\}`, or for a decoder
    :math:`\{i-r+1,\ldots,i\}`. Where both sides are seen, an even r thus means r + 1 words.

    Time and memory are O(r·n·d): about r queries at a time meet the some 2r keys that any of
    them may see, and no n × n matrix exists (unless an observer asks for a picture of it). A
    signal needs some 2n/r layers to cross a sentence of n words where full attention needs one.
    """

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        *,
        key_dim: int,
        value_dim: int,
        bias: bool,
        scaled: bool,
        window: int,
        causal: bool,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.window = window
        self.causal = causal
        self.dropout = dropout
        self.num_before = window - 1 if causal else window // 2
        self.num_after = 0 if causal else window // 2
        self.scale = score_scale(key_dim, scaled)
        self.query = nn.Linear(model_dim, num_heads * key_dim, bias=bias)
        self.key = nn.Linear(model_dim, num_heads * key_dim, bias=bias)
        self.value = nn.Linear(model_dim, num_heads * value_dim, bias=bias)
        self.output = nn.Linear(num_heads * value_dim, model_dim, bias=bias)
        self.observer: Observer | None = None

    def attend(
        self, states: Float[Tensor, "batch length model_dim"], lengths: Int[Tensor, "batch"] | None
    ) -> Float[Tensor, "batch length model_dim"]:
        """Attend with all tokens at once.

        Parameters
        ----------
        states : Float[Tensor, "batch length model_dim"]
            The words.
        lengths : Int[Tensor, "batch"] | None
            Words of each sentence; those beyond are padding, which no word sees. None: all are
            words.
        """
        length = states.size(1)
        query, key, value = self.query(states), self.key(states), self.value(states)
        if self.observer is not None:
            may_attend = self._may_attend(_Blocks(1, length, length, 0), lengths, states)
            weights = self._weights(self._heads(query), self._heads(key), may_attend)
            found = self.observer(weights) @ self._heads(value)
            return self.output(found.transpose(1, 2).flatten(-2))
        blocks = self._cut(length)
        found = attend(
            self._heads(_queries_of_blocks(query, blocks)),
            self._heads(_keys_of_blocks(key, blocks)),
            self._heads(_keys_of_blocks(value, blocks)),
            self._may_attend(blocks, lengths, states).flatten(0, 1).unsqueeze(1),
            scale=self.scale,
            dropout=self.dropout if self.training else 0.0,
        )
        joined = found.transpose(1, 2).reshape(len(states), -1, self.output.in_features)
        return self.output(joined[:, :length])

    def start(self, num_rows: int, capacity: int, like: Float[Tensor, "..."]) -> KeysAndValues:
        """Make an empty cache.

        Returns
        -------
        KeysAndValues
            Room for the last r words, however many there will be: word j lies in slot j mod r.
        """
        assert self.causal, "only a causal attention can go word by word"
        shape = (num_rows, self.num_heads, min(self.window, capacity))
        dims = (self.key.out_features, self.value.out_features)
        return KeysAndValues(*(like.new_zeros(*shape, dim // self.num_heads) for dim in dims))

    def step(
        self, states: Float[Tensor, "rows 1 model_dim"], cache: KeysAndValues, length: int
    ) -> tuple[Float[Tensor, "rows 1 model_dim"], KeysAndValues]:
        """Attend with the newest token.

        Notes
        -----
        An observer sees a weight for every word so far. It may change those within the window;
        words beyond it are forgotten.
        """
        query = self._heads(self.query(states))
        num_slots = cache.keys.size(2)
        slot = length % num_slots
        cache.keys[:, :, slot : slot + 1] = self._heads(self.key(states))
        cache.values[:, :, slot : slot + 1] = self._heads(self.value(states))
        if self.observer is None:
            # The order of the ring buffer does not matter to the sum over a window.
            keys, values = (each[:, :, : length + 1] for each in cache)
            found = functional.scaled_dot_product_attention(query, keys, values, scale=self.scale)
        else:
            first = max(length + 1 - num_slots, 0)
            slots = torch.arange(first, length + 1, device=states.device) % num_slots
            weights = self._weights(query, cache.keys[:, :, slots])
            weights = self.observer(functional.pad(weights, (first, 0)))
            found = weights[..., first:] @ cache.values[:, :, slots]
        return self.output(found.transpose(1, 2).flatten(-2)), cache

    def _heads(self, joined: Tensor) -> Tensor:
        """Split the last dimension into heads and move them before the positions."""
        return joined.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def _weights(self, query: Tensor, key: Tensor, may_attend: Tensor | None = None) -> Tensor:
        """Compute the weights of all keys for all queries explicitly."""
        scores = query @ key.transpose(-2, -1) * self.scale
        if may_attend is not None:
            scores = scores.masked_fill(~may_attend, -math.inf)
        return scores.softmax(dim=-1)

    def _cut(self, length: int) -> _Blocks:
        """Choose blocks of about r queries; a sequence no longer than that is one block."""
        num_around = self.num_before + self.num_after
        num_keys = max(self.window, _FEWEST_QUERIES) + num_around
        num_keys += -num_keys % _KEYS_MULTIPLE
        num_queries = num_keys - num_around
        if length <= num_queries:
            return _Blocks(1, length, length, 0)
        return _Blocks(-(-length // num_queries), num_queries, num_keys, self.num_before)

    def _may_attend(
        self, blocks: _Blocks, lengths: Tensor | None, states: Tensor
    ) -> Bool[Tensor, "batch blocks queries keys"]:
        """Return which keys of its block each query attends to; at least itself."""
        num_blocks, num_queries, num_keys, num_leading = blocks
        firsts = torch.arange(num_blocks, device=states.device)[:, None, None] * num_queries
        query = firsts + torch.arange(num_queries, device=states.device)[:, None]
        key = firsts - num_leading + torch.arange(num_keys, device=states.device)
        is_near = (key >= query - self.num_before) & (key <= query + self.num_after)
        end = states.size(1) if lengths is None else lengths[:, None, None, None]
        may_attend = is_near & (key >= 0) & (key < end) | (key == query)
        return may_attend.expand(len(states), -1, -1, -1)


def _queries_of_blocks(queries: Tensor, blocks: _Blocks) -> Tensor:
    """Cut [batch, length, width] into [batch · blocks, queries, width]."""
    missing = blocks.num_blocks * blocks.num_queries - queries.size(1)
    return functional.pad(queries, (0, 0, 0, missing)).reshape(
        -1, blocks.num_queries, queries.size(2)
    )


def _keys_of_blocks(keys: Tensor, blocks: _Blocks) -> Tensor:
    """Gather from [batch, length, width] the keys of each block: [batch · blocks, keys, width]."""
    num_blocks, num_queries, num_keys, num_leading = blocks
    missing = (num_blocks - 1) * num_queries + num_keys - num_leading - keys.size(1)
    padded = functional.pad(keys, (0, 0, num_leading, missing))
    return padded.unfold(1, num_keys, num_queries).transpose(2, 3).flatten(0, 1)
