"""Attention among packed sentences on a CPU: one sentence and one head at a time, in float32.

A sentence's queries, keys and values fit the innermost cache, so nothing but what was found is
written to memory; on the way back the weights are computed again.
"""

import numpy as np

from dragoman.kernels.cpu.arrays import is_kept, read, write
from dragoman.kernels.cpu.products import multiply
from dragoman.kernels.int8.instructions import compiled, compiled_freely
from dragoman.kernels.int8.vectors import BITS, power_of_two

_f32, _u32 = np.float32, np.uint32


@compiled
def _find_longest(first, end):
    """Find how many queries share their first key at most, and how many keys a query sees."""
    most, longest, start = 1, 1, 0
    for query in range(len(first)):
        if first[query] != first[start]:
            start = query
        most = max(most, query - start + 1)
        longest = max(longest, end[query] - first[query])
    return most, longest


@compiled
def _end_of_run(first, start):
    """Find where the queries end that share their first key: those of one sentence."""
    stop = start + 1
    while stop < len(first) and first[stop] == first[start]:
        stop += 1
    return stop


@compiled
def _round_up(number):
    return (number + 15) // 16 * 16


@compiled_freely
def _load(table, row, column, count, width, scale, found):
    """Read some columns of some rows, times a scale; room at the end of a row becomes 0."""
    for index in range(count):
        given, own = table[row + index, column : column + width], found[index]
        for place in range(width):
            own[place] = read(given[place]) * scale
        for place in range(width, found.shape[1]):
            own[place] = _f32(0)


@compiled_freely
def _transpose(table, count, width, room, found):
    """Write rows as columns; columns up to `room` that stand for no row become 0."""
    for place in range(width):
        own = found[place]
        for index in range(count):
            own[index] = table[index, place]
        for index in range(count, room):
            own[index] = _f32(0)


@compiled_freely
def _make_weights(scores, end, start, num_queries, first, room):
    """Turn scores in units of log 2 into weights that sum to one over the keys a query sees."""
    for query in range(num_queries):
        row = scores[query]
        count = end[start + query] - first
        top = _f32(-1e30)
        for key in range(count):
            top = max(top, row[key])
        total = _f32(0)
        for key in range(count):
            row[key] = power_of_two(row[key] - top)
            total += row[key]
        inverse = _f32(1) / total if count > 0 else _f32(0)
        for key in range(count):
            row[key] *= inverse
        for key in range(count, room):
            row[key] = _f32(0)


@compiled_freely
def _drop(weights, num_queries, num_keys, first_place, drop):
    """Drop some weights, as decided by head, query and key."""
    seed_low, seed_high, threshold, scale = drop
    for query in range(num_queries):
        row = weights[query]
        for key in range(num_keys):
            place = first_place + query * num_keys + key
            kept = is_kept(seed_low, seed_high, place, threshold)
            row[key] = row[key] * scale if kept else _f32(0)


@compiled_freely
def _store(found, num_rows, width, scale, table, row, column):
    """Write rows, times a scale, into some columns of a table."""
    for index in range(num_rows):
        own, given = found[index], table[row + index, column : column + width]
        for place in range(width):
            write(given, place, own[place] * scale)


@compiled
def attend(query, memory, columns, first, end, heads, scale, drop, found):
    """Let each query look at its stretch of keys, in every head.

    `columns` are where queries, keys and values begin in their tables; `heads` are their number
    and the widths of keys and values; queries that may look at nothing find 0.
    """
    num_heads, key_dim, value_dim = heads
    most, longest = _find_longest(first, end)
    room, key_room, value_room = _round_up(longest), _round_up(key_dim), _round_up(value_dim)
    queries, found_rows = np.empty((most, key_room), _f32), np.empty((most, value_room), _f32)
    keys, values = np.empty((longest, key_room), _f32), np.empty((longest, value_room), _f32)
    turned, scores = np.empty((key_dim, room), _f32), np.empty((most, room), _f32)
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
        columns_used = _round_up(num_keys)
        for head in range(num_heads):
            at = columns[0] + head * key_dim
            _load(query, start, at, num_queries, key_dim, _f32(scale) * BITS, queries)
            _load(memory, top, columns[1] + head * key_dim, num_keys, key_dim, _f32(1), keys)
            _load(memory, top, columns[2] + head * value_dim, num_keys, value_dim, _f32(1), values)
            _transpose(keys, num_keys, key_dim, columns_used, turned)
            address = queries.ctypes.data
            multiply(address, key_room, 1, turned, scores, num_queries, key_dim, columns_used)
            _make_weights(scores, end, start, num_queries, top, columns_used)
            if drop[2] != _u32(0):
                place = (head * len(first) + start) * longest
                _drop(scores, num_queries, num_keys, place, drop)
            address = scores.ctypes.data
            multiply(address, room, 1, values, found_rows, num_queries, num_keys, value_room)
            _store(found_rows, num_queries, value_dim, _f32(1), found, start, head * value_dim)
        start = stop


@compiled_freely
def _score_gradient(weights, grads, num_queries, num_keys, room, back):
    """Compute the gradient of scores from weights and the gradient of weights."""
    for query in range(num_queries):
        own, grad, row = weights[query], grads[query], back[query]
        total = _f32(0)
        for key in range(num_keys):
            total += own[key] * grad[key]
        for key in range(room):
            row[key] = own[key] * (grad[key] - total)


@compiled
def _head_backward(
    query,
    memory,
    end,
    grad,
    query_grad,
    memory_grad,
    own,
    seen,
    at,
    widths,
    scale,
    drop,
    place,
    rooms,
):
    """Compute the gradients of one sentence in one head."""
    queries, grads, keys, values, turned, weights, dropped, weight_grads, rows = rooms
    (start, num_queries), (top, num_keys), (key_dim, value_dim) = own, seen, widths
    at_query, at_key, at_value, at_grad = at
    room, key_room, value_room = weights.shape[1], queries.shape[1], grads.shape[1]
    used = _round_up(num_keys)
    _load(query, start, at_query, num_queries, key_dim, _f32(scale) * BITS, queries)
    _load(memory, top, at_key, num_keys, key_dim, _f32(1), keys)
    _load(memory, top, at_value, num_keys, value_dim, _f32(1), values)
    _load(grad, start, at_grad, num_queries, value_dim, _f32(1), grads)
    _transpose(keys, num_keys, key_dim, used, turned)
    multiply(queries.ctypes.data, key_room, 1, turned, weights, num_queries, key_dim, used)
    _make_weights(weights, end, start, num_queries, top, used)
    _transpose(values, num_keys, value_dim, used, turned)
    address = grads.ctypes.data
    multiply(address, value_room, 1, turned, weight_grads, num_queries, value_dim, used)
    kept = weights
    if drop[2] != _u32(0):
        dropped[:num_queries, :used] = weights[:num_queries, :used]
        _drop(dropped, num_queries, num_keys, place, drop)
        _drop(weight_grads, num_queries, num_keys, place, drop)
        kept = dropped
    multiply(kept.ctypes.data, 1, room, grads, rows, num_keys, num_queries, value_room)
    _store(rows, num_keys, value_dim, _f32(1), memory_grad, top, at_value)
    _score_gradient(weights, weight_grads, num_queries, num_keys, used, weight_grads)
    address = weight_grads.ctypes.data
    multiply(address, room, 1, keys, rows, num_queries, num_keys, key_room)
    _store(rows, num_queries, key_dim, _f32(scale), query_grad, start, at_query)
    multiply(address, 1, room, queries, rows, num_keys, num_queries, key_room)
    _store(rows, num_keys, key_dim, _f32(1) / BITS, memory_grad, top, at_key)


@compiled
def _clear(table, start, stop, column, width):
    """Write 0 into some columns of some rows."""
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
    queries, grads = np.empty((most, key_room), _f32), np.empty((most, value_room), _f32)
    keys, values = np.empty((longest, key_room), _f32), np.empty((longest, value_room), _f32)
    turned = np.empty((max(key_dim, value_dim), room), _f32)
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
        for head in range(num_heads):
            at = (
                columns[0] + head * key_dim,
                columns[1] + head * key_dim,
                columns[2] + head * value_dim,
                head * value_dim,
            )
            place = (head * len(first) + start) * longest
            _head_backward(
                query,
                memory,
                end,
                grad,
                query_grad,
                memory_grad,
                (start, num_queries),
                (top, num_keys),
                at,
                (key_dim, value_dim),
                scale,
                drop,
                place,
                room_of_head,
            )
        start = stop
    _clear(memory_grad, unseen, len(memory_grad), columns[1], num_heads * (key_dim + value_dim))
