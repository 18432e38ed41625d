"""Attention over packed sentences on a CPU: one sentence and one head at a time, in float32.

A sentence's queries, keys and values fit the L1 cache, so only the output is written to memory; the
backward pass computes the weights again.
"""

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import compiled, compiled_freely
from dragoman.kernels.cpu_search.vectors import BITS
from dragoman.kernels.cpu_search.weight_layout import LANES
from dragoman.kernels.training.cpu.arrays import is_kept, read, write
from dragoman.kernels.training.cpu.products import multiply
from dragoman.kernels.training.cpu.rows import softmax, softmax_backward, transpose_square

_f32, _u32 = np.float32, np.uint32

BLOCK = 32
"""Queries, or keys, that are multiplied together where not all see the same: what none of a block
sees is left out."""


@compiled
def _find_longest(first, end):
    """Return the most queries that share their first key, and the most keys of a query."""
    most, longest, start = 1, 1, 0
    for query in range(len(first)):
        if first[query] != first[start]:
            start = query
        most = max(most, query - start + 1)
        longest = max(longest, end[query] - first[query])
    return most, longest


@compiled
def _end_of_run(first, start):
    """Return the end of the run of queries that share their first key: those of one sentence."""
    stop = start + 1
    while stop < len(first) and first[stop] == first[start]:
        stop += 1
    return stop


@compiled
def _round_up(number):
    return (number + 15) // 16 * 16


@compiled_freely
def _load(table, row, column, count, width, scale, found):
    """Load some columns of some rows, times a scale, padded with zeros."""
    for index in range(count):
        given, own = table[row + index, column : column + width], found[index]
        for place in range(width):
            own[place] = read(given[place]) * scale
        for place in range(width, found.shape[1]):
            own[place] = _f32(0)
    for index in range(count, _round_up(count)):
        found[index, :] = _f32(0)


@compiled
def _transpose(table, count, found):
    """Transpose rows into columns."""
    row, column = 4 * table.shape[1], 4 * found.shape[1]
    for index in range(0, count, LANES):
        for place in range(0, table.shape[1], LANES):
            at = table.ctypes.data + index * row + 4 * place
            transpose_square(at, row, found.ctypes.data + place * column + 4 * index, column)


@compiled
def _count_seen(seen, query):
    """Count the queries of a block, and the keys that they attend to."""
    end, start, num_queries, first, block = seen
    count = min(block, num_queries - query)
    return count, end[start + query + count - 1] - first


@compiled
def _who_sees(end, start, num_queries, first):
    """Return how many keys each query of a sentence attends to; one block if all are the same.

    Queries never see less than those before them.
    """
    last = end[start + num_queries - 1]
    block = max(num_queries, last - first) if end[start] == last else BLOCK
    return end, start, num_queries, first, block


@compiled
def _make_scores(queries, keys, depth, seen, scores):
    """Multiply queries by transposed keys, as far as a block of queries attends to them."""
    _, _, num_queries, _, block = seen
    row = queries.shape[1]
    for query in range(0, num_queries, block):
        count, num_keys = _count_seen(seen, query)
        address = queries.ctypes.data + 4 * query * row
        multiply(address, row, 1, keys, scores[query:], count, depth, _round_up(num_keys))


@compiled
def _make_weights(scores, seen):
    """Softmax over the keys of each query; scores are in units of log 2."""
    end, start, num_queries, first, block = seen
    row = 4 * scores.shape[1]
    for query in range(num_queries):
        num_keys = _count_seen(seen, query // block * block)[1]
        address, count = scores.ctypes.data + query * row, end[start + query] - first
        softmax(address, count, _round_up(num_keys) // LANES)


@compiled
def _add_up_seen(weights, table, width, seen, found):
    """Multiply each query's weights by the rows of its keys."""
    _, _, num_queries, _, block = seen
    row = weights.shape[1]
    for query in range(0, num_queries, block):
        count, num_keys = _count_seen(seen, query)
        address = weights.ctypes.data + 4 * query * row
        multiply(address, row, 1, table, found[query:], count, num_keys, width)


@compiled
def _add_up_seers(weights, table, width, seen, num_keys, found):
    """Multiply the transposed weights by the rows of the queries."""
    _, _, num_queries, _, block = seen
    row, query = weights.shape[1], 0
    for key in range(0, num_keys, block):
        while _count_seen(seen, query)[1] <= key:
            query += block
        address = weights.ctypes.data + 4 * (query * row + key)
        count, depth = min(block, num_keys - key), num_queries - query
        multiply(address, 1, row, table[query:], found[key:], count, depth, width)


@compiled_freely
def _drop(weights, num_queries, num_keys, first_place, drop):
    """Apply dropout to weights, by a hash of head, query and key."""
    seed_low, seed_high, threshold, scale = drop
    for query in range(num_queries):
        row = weights[query]
        for key in range(num_keys):
            place = first_place + query * num_keys + key
            kept = is_kept(seed_low, seed_high, place, threshold)
            row[key] = row[key] * scale if kept else _f32(0)


@compiled_freely
def _store(found, num_rows, width, scale, table, row, column):
    """Store rows, times a scale, into some columns of a table."""
    for index in range(num_rows):
        own, given = found[index], table[row + index, column : column + width]
        for place in range(width):
            write(given, place, own[place] * scale)


@compiled
def attend(query, memory, columns, first, end, heads, scale, drop, found):
    """Let each query attend to its range of keys, in every head.

    `columns` are where queries, keys and values begin in their tables; `heads` are their number
    and the widths of keys and values; the output of queries without keys is 0.
    """
    num_heads, key_dim, value_dim = heads
    most, longest = _find_longest(first, end)
    room, key_room, value_room = _round_up(longest), _round_up(key_dim), _round_up(value_dim)
    query_room = _round_up(most)
    queries, found_rows = np.empty((query_room, key_room), _f32), np.empty((most, value_room), _f32)
    keys, values = np.empty((room, key_room), _f32), np.empty((room, value_room), _f32)
    turned, scores = np.empty((key_room, room), _f32), np.empty((most, room), _f32)
    start = 0
    while start < len(first):
        stop = _end_of_run(first, start)
        num_queries, top = stop - start, first[start]
        num_keys = end[stop - 1] - top
        if num_keys <= 0:
            for index in range(start, stop):
                for place in range(found.shape[1]):
                    write(found[index], place, _f32(0))
            start = stop
            continue
        seen = _who_sees(end, start, num_queries, top)
        for head in range(num_heads):
            at = columns[0] + head * key_dim
            _load(query, start, at, num_queries, key_dim, _f32(scale) * BITS, queries)
            _load(memory, top, columns[1] + head * key_dim, num_keys, key_dim, _f32(1), keys)
            _load(memory, top, columns[2] + head * value_dim, num_keys, value_dim, _f32(1), values)
            _transpose(keys, num_keys, turned)
            _make_scores(queries, turned, key_dim, seen, scores)
            _make_weights(scores, seen)
            if drop[2] != _u32(0):
                place = (head * len(first) + start) * longest
                _drop(scores, num_queries, num_keys, place, drop)
            _add_up_seen(scores, values, value_room, seen, found_rows)
            _store(found_rows, num_queries, value_dim, _f32(1), found, start, head * value_dim)
        start = stop


@compiled
def _score_gradient(weights, grads, seen):
    """Replace the gradient of weights by that of scores."""
    _, _, num_queries, _, block = seen
    row = 4 * weights.shape[1]
    for query in range(num_queries):
        num_keys = _count_seen(seen, query // block * block)[1]
        at, at_grad = weights.ctypes.data + query * row, grads.ctypes.data + query * row
        softmax_backward(at, at_grad, _round_up(num_keys) // LANES)


@compiled
def _head_backward(
    query,
    memory,
    grad,
    query_grad,
    memory_grad,
    seen,
    num_keys,
    at,
    widths,
    scale,
    drop,
    place,
    rooms,
):
    """Compute the gradients of one sentence in one head."""
    queries, grads, keys, values, turned, weights, dropped, weight_grads, rows = rooms
    _, start, num_queries, top, _ = seen
    key_dim, value_dim = widths
    at_query, at_key, at_value, at_grad = at
    key_room, value_room = queries.shape[1], grads.shape[1]
    used = _round_up(num_keys)
    _load(query, start, at_query, num_queries, key_dim, _f32(scale) * BITS, queries)
    _load(memory, top, at_key, num_keys, key_dim, _f32(1), keys)
    _load(memory, top, at_value, num_keys, value_dim, _f32(1), values)
    _load(grad, start, at_grad, num_queries, value_dim, _f32(1), grads)
    _transpose(keys, num_keys, turned)
    _make_scores(queries, turned, key_dim, seen, weights)
    _make_weights(weights, seen)
    _transpose(values, num_keys, turned)
    _make_scores(grads, turned, value_dim, seen, weight_grads)
    kept = weights
    if drop[2] != _u32(0):
        dropped[:num_queries, :used] = weights[:num_queries, :used]
        _drop(dropped, num_queries, num_keys, place, drop)
        _drop(weight_grads, num_queries, num_keys, place, drop)
        kept = dropped
    _add_up_seers(kept, grads, value_room, seen, num_keys, rows)
    _store(rows, num_keys, value_dim, _f32(1), memory_grad, top, at_value)
    _score_gradient(weights, weight_grads, seen)
    _add_up_seen(weight_grads, keys, key_room, seen, rows)
    _store(rows, num_queries, key_dim, _f32(scale), query_grad, start, at_query)
    _add_up_seers(weight_grads, queries, key_room, seen, num_keys, rows)
    _store(rows, num_keys, key_dim, _f32(1) / BITS, memory_grad, top, at_key)


@compiled
def _clear(table, start, stop, column, width):
    """Zero some columns of some rows."""
    for index in range(start, stop):
        row = table[index, column : column + width]
        for place in range(width):
            write(row, place, _f32(0))


@compiled
def attend_backward(
    query, memory, columns, first, end, heads, scale, drop, grad, query_grad, memory_grad
):
    """Compute the gradients of queries, keys and values; sentences see keys in rising order."""
    num_heads, key_dim, value_dim = heads
    most, longest = _find_longest(first, end)
    room, key_room, value_room = _round_up(longest), _round_up(key_dim), _round_up(value_dim)
    query_room = _round_up(most)
    queries = np.empty((query_room, key_room), _f32)
    grads = np.empty((query_room, value_room), _f32)
    keys, values = np.empty((room, key_room), _f32), np.empty((room, value_room), _f32)
    turned = np.empty((max(key_room, value_room), room), _f32)
    weights, dropped = np.empty((most, room), _f32), np.empty((most, room), _f32)
    weight_grads = np.empty((most, room), _f32)
    rows = np.empty((max(most, longest), max(key_room, value_room)), _f32)
    room_of_head = (
        queries, grads, keys, values, turned, weights, dropped, weight_grads, rows
    )  # fmt: skip
    start, unseen = 0, 0
    while start < len(first):
        stop = _end_of_run(first, start)
        num_queries, top = stop - start, first[start]
        num_keys = end[stop - 1] - top
        if num_keys <= 0:
            _clear(query_grad, start, stop, columns[0], num_heads * key_dim)
            start = stop
            continue
        _clear(memory_grad, unseen, top, columns[1], num_heads * (key_dim + value_dim))
        unseen = max(unseen, top + num_keys)
        seen = _who_sees(end, start, num_queries, top)
        for head in range(num_heads):
            at = (
                columns[0] + head * key_dim,
                columns[1] + head * key_dim,
                columns[2] + head * value_dim,
                head * value_dim,
            )
            place = (head * len(first) + start) * longest
            widths = (key_dim, value_dim)
            _head_backward(
                query, memory, grad, query_grad, memory_grad, seen, num_keys, at, widths,
                scale, drop, place, room_of_head,
            )  # fmt: skip
        start = stop
    _clear(memory_grad, unseen, len(memory_grad), columns[1], num_heads * (key_dim + value_dim))
