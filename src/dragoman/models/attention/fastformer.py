"""Fastformer: attention by two global vectors in place of n × n weights (Wu et al., 2021)."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.models.attention.observer import Observer
from dragoman.shapes import Float, Int

# Tokens whose running averages are computed at once, by a small triangular matrix.
_CHUNK = 32


class RunningSum(NamedTuple):
    """Running softmax-weighted sum, relative to the largest score so far."""

    maxima: Float[Tensor, "rows heads"]
    totals: Float[Tensor, "rows heads"]
    weighted: Float[Tensor, "rows heads head_dim"]

    def add(
        self, scores: Float[Tensor, "rows heads"], values: Float[Tensor, "rows heads head_dim"]
    ) -> "RunningSum":
        """Add one vector."""
        maxima = self.maxima.maximum(scores)
        old, new = (self.maxima - maxima).exp(), (scores - maxima).exp()
        weighted = self.weighted * old.unsqueeze(-1) + values * new.unsqueeze(-1)
        return RunningSum(maxima, self.totals * old + new, weighted)

    @property
    def mean(self) -> Float[Tensor, "rows heads head_dim"]:
        """Return the average so far."""
        return self.weighted / self.totals.unsqueeze(-1)


class FastformerCache(NamedTuple):
    """Cache of the causal form, of constant size."""

    queries: RunningSum
    keys: RunningSum

    def rows(self, chosen: Int[Tensor, "chosen"], length: int) -> "FastformerCache":
        """Copy the caches of some hypotheses."""
        del length
        return FastformerCache(*(RunningSum(*(each[chosen] for each in sums)) for sums in self))


class Fastformer(nn.Module):
    r"""Mix a sequence through a global query and a global key, in linear time.

    Parameters
    ----------
    model_dim : int
        Width of inputs and outputs.
    num_heads : int
        Heads.
    head_dim : int
        Width of a head's queries, keys and values (d).
    causal : bool
        Whether a word may look only back: our variant, below.

    Notes
    -----
    As published, in each head, for all words i of a sentence:

    .. math::
        \alpha_i &= \mathrm{softmax}_i(w_q^\top q_i/\sqrt d), & \bar q &= \sum_i\alpha_i q_i, &
        p_i &= \bar q\odot k_i, \\
        \beta_i &= \mathrm{softmax}_i(w_k^\top p_i/\sqrt d), & \bar k &= \sum_i\beta_i p_i, &
        u_i &= \bar k\odot v_i,

    and over the joined heads :math:`\mathrm{out}_i = W_r u_i + q_i`. The value shares the query's
    projection, :math:`v_i=q_i`, as published; the sharing of projections between layers, which
    the paper also proposes, is left out. There are no biases. Where the joined heads are not as
    wide as the model, one more linear map makes them so.

    The causal form is ours, not published: every softmax and every sum runs over the words up to
    the present one,

    .. math::
        \bar q_j=\sum_{i\le j}\frac{e^{a_i}}{\sum_{i'\le j}e^{a_{i'}}}\,q_i,\quad
        a_i = w_q^\top q_i/\sqrt d,\quad p_j=\bar q_j\odot k_j,

    likewise :math:`\bar k_j` over the :math:`p_i`, and :math:`u_j=\bar k_j\odot v_j`. At the last
    word q̄ is thus the published one; k̄ is not, since each p has its own q̄.

    Both are O(n·d) in time and memory, and the cache of the causal form does not grow. What an
    observer sees, and may replace, is β: in the published form the same row for every word.
    """

    def __init__(self, model_dim: int, num_heads: int, *, head_dim: int, causal: bool) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.causal = causal
        width = num_heads * head_dim
        self.query = nn.Linear(model_dim, width, bias=False)
        self.key = nn.Linear(model_dim, width, bias=False)
        self.query_scorer = nn.Parameter(torch.empty(num_heads, head_dim))
        self.key_scorer = nn.Parameter(torch.empty(num_heads, head_dim))
        self.transform = nn.Linear(width, width, bias=False)
        fits = width == model_dim
        self.output = nn.Identity() if fits else nn.Linear(width, model_dim, bias=False)
        for scorer in (self.query_scorer, self.key_scorer):
            nn.init.normal_(scorer, std=1 / math.sqrt(head_dim))
        self.observer: Observer | None = None

    def attend(
        self, states: Float[Tensor, "batch length model_dim"], lengths: Int[Tensor, "batch"] | None
    ) -> Float[Tensor, "batch length model_dim"]:
        """Mix all tokens at once.

        Parameters
        ----------
        states : Float[Tensor, "batch length model_dim"]
            The words.
        lengths : Int[Tensor, "batch"] | None
            Words of each sentence; those beyond are padding, which no word sees. None: all are
            words. The causal form needs none, since its padding stands at the end.
        """
        joined = self.query(states)
        query, key = self._heads(joined), self._heads(self.key(states))
        scores = self._score(query, self.query_scorer, lengths)
        mixed = self._average(scores, query) * key
        scores = self._score(mixed, self.key_scorer, lengths)
        if self.observer is None:
            global_key = self._average(scores, mixed)
        else:
            global_key = self.observer(self._weights(scores)) @ mixed
        return self._finish(global_key * query, joined)

    def start(self, num_rows: int, capacity: int, like: Float[Tensor, "..."]) -> FastformerCache:
        """Make an empty cache.

        Parameters
        ----------
        num_rows : int
            Hypotheses.
        capacity : int
            Ignored: the cache does not grow.
        like : Float[Tensor, "..."]
            A tensor of the device and type to use; sums are kept in at least 32 bits.
        """
        del capacity
        assert self.causal, "only a causal attention can go word by word"
        nothing = _exact(like).new_zeros(num_rows, self.num_heads)
        vectors = nothing.new_zeros(num_rows, self.num_heads, self.head_dim)
        empty = RunningSum(torch.full_like(nothing, -math.inf), nothing, vectors)
        return FastformerCache(empty, empty)

    def step(
        self, states: Float[Tensor, "rows 1 model_dim"], cache: FastformerCache, length: int
    ) -> tuple[Float[Tensor, "rows 1 model_dim"], FastformerCache]:
        """Mix the newest token with those before.

        Notes
        -----
        Observers are not called: the words before are no longer told apart.
        """
        del length
        joined = self.query(states)
        query, key = self._heads(joined), self._heads(self.key(states))
        scores = self._score(query, self.query_scorer, None)
        queries = cache.queries.add(scores[:, :, 0], query[:, :, 0])
        mixed = queries.mean.unsqueeze(2) * key
        scores = self._score(mixed, self.key_scorer, None)
        keys = cache.keys.add(scores[:, :, 0], mixed[:, :, 0])
        found = self._finish(keys.mean.unsqueeze(2) * query, joined)
        return found, FastformerCache(queries, keys)

    def _heads(self, joined: Tensor) -> Tensor:
        """Split the last dimension into heads, and move them before the positions."""
        return _exact(joined).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def _score(self, vectors: Tensor, scorer: Tensor, lengths: Tensor | None) -> Tensor:
        """Score [batch, heads, length, head_dim] by each head's vector; −∞ for padding."""
        scores = (vectors * scorer.unsqueeze(1)).sum(-1) / math.sqrt(self.head_dim)
        if lengths is None or self.causal:
            return scores
        is_word = torch.arange(scores.size(-1), device=scores.device) < lengths[:, None, None]
        return scores.where(is_word, torch.finfo(scores.dtype).min)

    def _average(self, scores: Tensor, values: Tensor) -> Tensor:
        """Average the values of all tokens, or up to each token."""
        if self.causal:
            return running_averages(scores, values)
        return scores.softmax(-1).unsqueeze(-2) @ values

    def _weights(self, scores: Tensor) -> Tensor:
        """Compute the weights as a matrix, for observers."""
        if self.causal:
            return _triangle(scores).softmax(-1)
        return scores.softmax(-1).unsqueeze(-2).repeat(1, 1, scores.size(-1), 1)

    def _finish(self, values: Tensor, joined_queries: Tensor) -> Tensor:
        """Join the heads, project them and add the queries."""
        joined = values.transpose(1, 2).flatten(-2).to(joined_queries.dtype)
        return self.output(self.transform(joined) + joined_queries)


def running_averages(
    scores: Float[Tensor, "*batch length"], values: Float[Tensor, "*batch length dim"]
) -> Float[Tensor, "*batch length dim"]:
    r"""Average vectors up to each position, weighted by the softmax of their scores.

    Returns
    -------
    Float[Tensor, "*batch length dim"]
        :math:`\sum_{i\le j}e^{s_i}v_i\,/\sum_{i\le j}e^{s_i}` for each place j.

    Notes
    -----
    A cumulative sum of :math:`e^{s_i-\max s}` would be shorter, but would see the largest score of
    the future, and vanish before it. So each place looks through a small triangular softmax at
    its own chunk and, as one more vector, at the average of all chunks before, whose score is the
    logarithm of their summed exponentials. Those are running averages again, of as many vectors
    as there are chunks: this function calls itself. The cost is O(n·d), for chunks of constant
    length; no exponent is ever positive, and nothing later than j is looked at.
    """
    length = scores.size(-1)
    if length <= _CHUNK:
        return _triangle(scores).softmax(-1) @ values
    missing = -length % _CHUNK
    scores = functional.pad(scores, (0, missing), value=-math.inf).unflatten(-1, (-1, _CHUNK))
    values = functional.pad(values, (0, 0, 0, missing)).unflatten(-2, (-1, _CHUNK))
    full = scores[..., :-1, :]
    means = (full.softmax(-1).unsqueeze(-2) @ values[..., :-1, :, :]).squeeze(-2)
    masses = full.logsumexp(-1)
    # Nothing precedes the first chunk.
    earlier_means = functional.pad(running_averages(masses, means), (0, 0, 1, 0))
    earlier_masses = functional.pad(masses.logcumsumexp(-1), (1, 0), value=-math.inf)
    rows = _triangle(scores)
    rows = torch.cat([earlier_masses[..., None, None].expand_as(rows[..., :1]), rows], dim=-1)
    averages = rows.softmax(-1) @ torch.cat([earlier_means.unsqueeze(-2), values], dim=-2)
    return averages.flatten(-3, -2)[..., :length, :]


def _triangle(scores: Tensor) -> Tensor:
    """Expand the last dimension to a lower-triangular matrix of scores."""
    length = scores.size(-1)
    is_past = torch.ones(length, length, dtype=torch.bool, device=scores.device).tril()
    return scores.unsqueeze(-2).where(is_past, -math.inf)


def _exact(tensor: Tensor) -> Tensor:
    """Cast to at least float32: sums over many tokens need it."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))
