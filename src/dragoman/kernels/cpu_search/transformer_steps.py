"""The Transformer's encoder, and its decoder one token at a time, on a CPU."""

from typing import NamedTuple

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import borrow, compiled, is_float, keep_alive
from dragoman.kernels.cpu_search.team import multiply_together
from dragoman.kernels.cpu_search.tiles import fill_tiles
from dragoman.kernels.cpu_search.vectors import activate, attend, normalise, update_cell, write_kv
from dragoman.kernels.cpu_search.weight_layout import COLUMNS, ENTRIES, LANES, LARGEST

_f32 = np.float32
NO_ATTENTION = np.zeros((1, 0), np.float32)
"""Argument `attention` where it is not recorded."""


class Pool(NamedTuple):
    """KV pool: keys and values, [layers, heads, entries, width], and recurrent cells.

    `cells` are [layers, entries, width], in float32: those of a recurrent decoder after each token.
    Keys and values are float32, or bfloat16 where products are in int8. An entry holds one token of
    a source or of a hypothesis; the lists of entries are elsewhere.
    """

    keys: np.ndarray
    values: np.ndarray
    cells: np.ndarray


@compiled
def embed_token(embedding, token, scale, position, vector) -> None:
    """Look up the embedding of a token, scale it and add its position."""
    panel, column = token // COLUMNS, token % COLUMNS
    numbers = embedding.panels[panel]
    if is_float(numbers):
        for entry in range(embedding.width):
            vector[entry] = _f32(numbers[entry, column]) * _f32(scale) + position[entry]
        return
    scale *= embedding.outputs[panel, 1, column] * _f32(LARGEST)
    start = column * ENTRIES
    for entry in range(embedding.width):
        number = numbers[entry // ENTRIES, start + entry % ENTRIES]
        vector[entry] = _f32(number) * scale + position[entry]


@compiled
def norm_before(states, count, norm, shape, normed) -> np.ndarray:
    """Return the input of a sub-layer: normalised in a pre-norm model."""
    if not shape.is_norm_first:
        return states
    for row in range(count):
        normalise(states[row], norm, shape, normed[row])
    return normed


@compiled
def add_and_norm(states, count, update, norm, shape) -> None:
    """Add the output of a sub-layer to the residual stream; normalise it in a post-norm model."""
    width = norm.shape[1]
    total = np.empty(width, np.float32)
    for row in range(count):
        old, more = states[row], update[row]
        for place in range(width):
            total[place] = old[place] + more[place]
        if shape.is_norm_first:
            old[:] = total
        else:
            normalise(total, norm, shape, old)


@compiled
def norm_at_end(states, count, norm, shape, room) -> None:
    """Apply the final norm of a pre-norm model."""
    if shape.is_norm_first:
        for row in range(count):
            normalise(states[row], norm, shape, room[row])
            states[row] = room[row]


@compiled
def allocate(count, matrices) -> np.ndarray:
    """Allocate an uninitialised matrix for products, with rows padded to whole tiles."""
    return np.empty((fill_tiles(count), matrices.outputs.shape[1] * COLUMNS), np.float32)


@compiled
def multiply(states, count, matrices, index, products, team) -> None:
    """Multiply vectors by the matrix of one layer."""
    multiply_together(
        states, count, matrices.panels[index], matrices.outputs[index], matrices.width, products,
        team,
    )  # fmt: skip


@compiled
def feed_forward(normed, count, layers, index, shape, inner, update, team) -> None:
    """Apply a feed-forward layer."""
    multiply(normed, count, layers.inner, index, inner, team)
    activate(inner, count, layers.outer.width, shape.activation)
    multiply(inner, count, layers.outer, index, update, team)


@compiled
def encode(states, lengths, encoder, shape, team) -> None:
    """Run all layers of the encoder.

    Parameters
    ----------
    states : ndarray
        Their vectors, one a row, sentence behind sentence; overwritten by what the last layer says.
    lengths : ndarray
        Words of each sentence.
    encoder : Encoder
        The layers.
    shape : Shape
        What they have in common.
    team : Team
        Who helps.
    """
    count, longest = len(states), lengths.max()
    keys_start = shape.num_heads * shape.key_dim
    values_start = 2 * keys_start
    own_arrays = (
        np.empty((shape.num_heads, count, shape.key_dim), shape.cached.dtype),
        np.empty((shape.num_heads, count, shape.value_dim), shape.cached.dtype),
        np.arange(count).astype(np.uint32),
        np.empty(longest + LANES, np.float32),
        allocate(count, encoder.joined),
        allocate(count, encoder.inner),
        allocate(count, encoder.outer),
        np.empty((count, shape.num_heads * shape.value_dim), np.float32),
        np.empty_like(states),
        np.empty(0, np.float32),
    )
    keys, values, places, shares, joined, inner, update, found, room, none = borrow(own_arrays)
    for index in range(len(encoder.norms)):
        norms = encoder.norms[index]
        normed = norm_before(states, count, norms[0], shape, room)
        multiply(normed, count, encoder.joined, index, joined, team)
        for row in range(count):
            write_kv(joined[row], keys_start, row, keys)
            write_kv(joined[row], values_start, row, values)
        start = 0
        for length in lengths:
            own = places[start : start + length]
            for row in range(start, start + length):
                attend(
                    joined[row], keys, values, own, length, shape.scale, shares, found[row], none
                )
            start += length
        multiply(found, count, encoder.output, index, update, team)
        add_and_norm(states, count, update, norms[0], shape)
        normed = norm_before(states, count, norms[1], shape, room)
        feed_forward(normed, count, encoder, index, shape, inner, update, team)
        add_and_norm(states, count, update, norms[1], shape)
    norm_at_end(states, count, encoder.final, shape, room)
    keep_alive(own_arrays)


@compiled
def write_source_kv(states, places, decoder, shape, pool, team) -> None:
    """Write the keys and values of sources for the cross-attention of all layers."""
    count = len(states)
    memory = allocate(count, decoder.memory)
    values_start = shape.num_heads * shape.key_dim
    for index in range(len(decoder.norms)):
        multiply(states, count, decoder.memory, index, memory, team)
        for row in range(count):
            write_kv(memory[row], 0, places[row], pool.keys[index])
            write_kv(memory[row], values_start, places[row], pool.values[index])


class Rows(NamedTuple):
    """What each row, one hypothesis, attends to: its own tokens, newest last, and its source.

    `own` and `source` have a list of KV entries for each hypothesis and each sentence; `owners` and
    `sentences` say which list belongs to a row, `own_counts` and `source_counts` how long it is.
    """

    own: np.ndarray
    owners: np.ndarray
    own_counts: np.ndarray
    source: np.ndarray
    sentences: np.ndarray
    source_counts: np.ndarray


@compiled
def decode_step(states, count, rows, decoder, shape, pool, attention, team) -> None:
    """Run the newest token of each hypothesis through all layers of the decoder.

    Parameters
    ----------
    states : ndarray
        Embedded tokens, one row a hypothesis; overwritten by the output of the last layer.
    count : int
        Number of rows.
    rows : Rows
        KV entries that each row attends to.
    decoder : Decoder
        The layers.
    shape : Shape
        Hyper-parameters.
    pool : Pool
        Keys and values; those of the newest tokens are written.
    attention : ndarray
        To which cross-attention is added, one row a hypothesis, summed over layers and heads;
        `NO_ATTENTION`: nowhere.
    team : Team
        Helping cores.
    """
    keys_start = shape.num_heads * shape.key_dim
    values_start = 2 * keys_start
    longest = max(rows.own.shape[1], rows.source.shape[1])
    own_arrays = (
        np.empty(longest + LANES, np.float32),
        allocate(count, decoder.joined),
        allocate(count, decoder.query),
        allocate(count, decoder.inner),
        allocate(count, decoder.outer),
        np.empty((count, shape.num_heads * shape.value_dim), np.float32),
        np.empty_like(states),
        np.empty(0, np.float32),
        np.zeros(pool.cells.shape[2], np.float32),
    )
    shares, joined, query, inner, update, found, room, none, nothing = borrow(own_arrays)
    for index in range(len(decoder.norms)):
        norms, keys, values = decoder.norms[index], pool.keys[index], pool.values[index]
        normed = norm_before(states, count, norms[0], shape, room)
        multiply(normed, count, decoder.joined, index, joined, team)
        for row in range(count):
            own, own_count = rows.own[rows.owners[row]], rows.own_counts[row]
            newest = own[own_count - 1]
            if shape.is_recurrent:
                cells = pool.cells[index]
                before = cells[own[own_count - 2]] if own_count > 1 else nothing
                update_cell(joined[row], before, cells[newest], update[row])
                continue
            write_kv(joined[row], keys_start, newest, keys)
            write_kv(joined[row], values_start, newest, values)
            attend(joined[row], keys, values, own, own_count, shape.scale, shares, found[row], none)
        if not shape.is_recurrent:
            multiply(found, count, decoder.output, index, update, team)
        add_and_norm(states, count, update, norms[0], shape)
        normed = norm_before(states, count, norms[1], shape, room)
        multiply(normed, count, decoder.query, index, query, team)
        for row in range(count):
            source, source_count = rows.source[rows.sentences[row]], rows.source_counts[row]
            attend(
                query[row], keys, values, source, source_count, shape.scale, shares, found[row],
                attention[row % len(attention)],
            )  # fmt: skip
        multiply(found, count, decoder.source_output, index, update, team)
        add_and_norm(states, count, update, norms[1], shape)
        normed = norm_before(states, count, norms[2], shape, room)
        feed_forward(normed, count, decoder, index, shape, inner, update, team)
        add_and_norm(states, count, update, norms[2], shape)
    norm_at_end(states, count, decoder.final, shape, room)
    keep_alive(own_arrays)
