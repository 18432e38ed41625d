"""A Transformer on a CPU: sources read, and one word more of every hypothesis."""

from typing import NamedTuple

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import borrow, compiled, is_float, keep
from dragoman.kernels.cpu_search.team import multiply_together
from dragoman.kernels.cpu_search.tiles import fill_tiles
from dragoman.kernels.cpu_search.vectors import activate, look, normalise, remember, update_cell
from dragoman.kernels.cpu_search.weight_layout import COLUMNS, ENTRIES, LANES, LARGEST

_f32 = np.float32
NOBODY_ASKS = np.zeros((1, 0), np.float32)
"""In place of attention that nobody wants to see."""


class Pool(NamedTuple):
    """Keys and values of words, [layers, heads, places, width] each, and cells.

    `cells` are [layers, places, width], in float32: those of a recurrent decoder after each word.

    They are in float32, or, where products are in eight bits, in 16: the upper half of a float32.
    A place is one word's, of a source or of a hypothesis; whose, others know.
    """

    keys: np.ndarray
    values: np.ndarray
    cells: np.ndarray


@compiled
def read_word(words, word, scale, position, vector) -> None:
    """Look a word up."""
    panel, column = word // COLUMNS, word % COLUMNS
    numbers = words.panels[panel]
    if is_float(numbers):
        for entry in range(words.width):
            vector[entry] = _f32(numbers[entry, column]) * _f32(scale) + position[entry]
        return
    scale *= words.outputs[panel, 1, column] * _f32(LARGEST)
    start = column * ENTRIES
    for entry in range(words.width):
        number = numbers[entry // ENTRIES, start + entry % ENTRIES]
        vector[entry] = _f32(number) * scale + position[entry]


@compiled
def ask(states, count, norm, shape, asked) -> np.ndarray:
    """Say what a sub-layer reads: the vectors, normalised if norms stand before the sub-layers."""
    if not shape.is_norm_first:
        return states
    for row in range(count):
        normalise(states[row], norm, shape, asked[row])
    return asked


@compiled
def add(states, count, update, norm, shape) -> None:
    """Add what a sub-layer says to what went around it, and normalise if norms stand behind."""
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
def end(states, count, norm, shape, room) -> None:
    """Normalise what the last layer says, if norms stand before the sub-layers."""
    if shape.is_norm_first:
        for row in range(count):
            normalise(states[row], norm, shape, room[row])
            states[row] = room[row]


@compiled
def make_room(count, matrices) -> np.ndarray:
    """Make room for products.

    Returns
    -------
    ndarray
        One row a vector, and as many more as fill tiles, with nothing in it yet.
    """
    return np.empty((fill_tiles(count), matrices.outputs.shape[1] * COLUMNS), np.float32)


@compiled
def multiply(states, count, matrices, index, products, team) -> None:
    """Multiply vectors by one layer's matrix."""
    multiply_together(
        states, count, matrices.panels[index], matrices.outputs[index], matrices.width, products,
        team,
    )  # fmt: skip


@compiled
def feed(asked, count, layers, index, shape, inner, update, team) -> None:
    """Apply a feed-forward layer."""
    multiply(asked, count, layers.inner, index, inner, team)
    activate(inner, count, layers.outer.width, shape.activation)
    multiply(inner, count, layers.outer, index, update, team)


@compiled
def encode(states, lengths, encoder, shape, team) -> None:
    """Let words of sources look at one another, through all layers.

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
        make_room(count, encoder.joined),
        make_room(count, encoder.inner),
        make_room(count, encoder.outer),
        np.empty((count, shape.num_heads * shape.value_dim), np.float32),
        np.empty_like(states),
        np.empty(0, np.float32),
    )
    keys, values, places, shares, joined, inner, update, found, room, none = borrow(own_arrays)
    for index in range(len(encoder.norms)):
        norms = encoder.norms[index]
        asked = ask(states, count, norms[0], shape, room)
        multiply(asked, count, encoder.joined, index, joined, team)
        for row in range(count):
            remember(joined[row], keys_start, row, keys)
            remember(joined[row], values_start, row, values)
        start = 0
        for length in lengths:
            own = places[start : start + length]
            for row in range(start, start + length):
                look(joined[row], keys, values, own, length, shape.scale, shares, found[row], none)
            start += length
        multiply(found, count, encoder.output, index, update, team)
        add(states, count, update, norms[0], shape)
        asked = ask(states, count, norms[1], shape, room)
        feed(asked, count, encoder, index, shape, inner, update, team)
        add(states, count, update, norms[1], shape)
    end(states, count, encoder.final, shape, room)
    keep(own_arrays)


@compiled
def remember_sources(states, places, decoder, shape, pool, team) -> None:
    """Write down the keys and values of sources in all layers."""
    count = len(states)
    memory = make_room(count, decoder.memory)
    values_start = shape.num_heads * shape.key_dim
    for index in range(len(decoder.norms)):
        multiply(states, count, decoder.memory, index, memory, team)
        for row in range(count):
            remember(memory[row], 0, places[row], pool.keys[index])
            remember(memory[row], values_start, places[row], pool.values[index])


class Rows(NamedTuple):
    """Where each row, one hypothesis, looks: its own words, the newest the last, and its source.

    `own` and `source` have a line of places for each hypothesis and for each sentence there may be;
    `owners` and `sentences` say whose a row is, `own_counts` and `source_counts` how many places of
    these lines count.
    """

    own: np.ndarray
    owners: np.ndarray
    own_counts: np.ndarray
    source: np.ndarray
    sentences: np.ndarray
    source_counts: np.ndarray


@compiled
def step(states, count, rows, decoder, shape, pool, attention, team) -> None:
    """Let the newest word of each hypothesis go through all layers.

    Parameters
    ----------
    states : ndarray
        Their vectors, one row a hypothesis; overwritten by what the last layer says.
    count : int
        How many of them.
    rows : Rows
        Where they look.
    decoder : Decoder
        The layers.
    shape : Shape
        What they have in common.
    pool : Pool
        Of words so far and of sources; the newest words' are written.
    attention : ndarray
        Where what each row gives its source's words is added, one row for each, layers and heads
        together; `NOBODY_ASKS`: nowhere.
    team : Team
        Who helps.
    """
    keys_start = shape.num_heads * shape.key_dim
    values_start = 2 * keys_start
    longest = max(rows.own.shape[1], rows.source.shape[1])
    own_arrays = (
        np.empty(longest + LANES, np.float32),
        make_room(count, decoder.joined),
        make_room(count, decoder.query),
        make_room(count, decoder.inner),
        make_room(count, decoder.outer),
        np.empty((count, shape.num_heads * shape.value_dim), np.float32),
        np.empty_like(states),
        np.empty(0, np.float32),
        np.zeros(pool.cells.shape[2], np.float32),
    )
    shares, joined, query, inner, update, found, room, none, nothing = borrow(own_arrays)
    for index in range(len(decoder.norms)):
        norms, keys, values = decoder.norms[index], pool.keys[index], pool.values[index]
        asked = ask(states, count, norms[0], shape, room)
        multiply(asked, count, decoder.joined, index, joined, team)
        for row in range(count):
            own, own_count = rows.own[rows.owners[row]], rows.own_counts[row]
            newest = own[own_count - 1]
            if shape.is_recurrent:
                cells = pool.cells[index]
                before = cells[own[own_count - 2]] if own_count > 1 else nothing
                update_cell(joined[row], before, cells[newest], update[row])
                continue
            remember(joined[row], keys_start, newest, keys)
            remember(joined[row], values_start, newest, values)
            look(joined[row], keys, values, own, own_count, shape.scale, shares, found[row], none)
        if not shape.is_recurrent:
            multiply(found, count, decoder.output, index, update, team)
        add(states, count, update, norms[0], shape)
        asked = ask(states, count, norms[1], shape, room)
        multiply(asked, count, decoder.query, index, query, team)
        for row in range(count):
            source, source_count = rows.source[rows.sentences[row]], rows.source_counts[row]
            look(
                query[row], keys, values, source, source_count, shape.scale, shares, found[row],
                attention[row % len(attention)],
            )  # fmt: skip
        multiply(found, count, decoder.source_output, index, update, team)
        add(states, count, update, norms[1], shape)
        asked = ask(states, count, norms[2], shape, room)
        feed(asked, count, decoder, index, shape, inner, update, team)
        add(states, count, update, norms[2], shape)
    end(states, count, decoder.final, shape, room)
    keep(own_arrays)
