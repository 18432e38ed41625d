"""Add & Norm of packed sentences on a CPU, forward and backward in one pass each."""

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import compiled_freely
from dragoman.kernels.training.cpu.arrays import is_kept, read, write

_f32, _u32 = np.float32, np.uint32


@compiled_freely
def load_dropped(row, first_place, drop, buffer):
    """Read a row into a buffer of float32 after dropout.

    `drop` is (low half of the seed, high half, threshold, what is kept is multiplied by); a
    threshold of 0 keeps everything.
    """
    seed_low, seed_high, threshold, scale = drop
    width = len(buffer)
    if threshold == _u32(0):
        for place in range(width):
            buffer[place] = read(row[place])
        return
    for place in range(width):
        kept = is_kept(seed_low, seed_high, first_place + place, threshold)
        buffer[place] = read(row[place]) * scale if kept else _f32(0)


@compiled_freely
def store(buffer, row):
    """Write a buffer of float32 into a row of an array."""
    for place in range(len(buffer)):
        write(row, place, buffer[place])


@compiled_freely
def normalise_rows(states, update, total, weight, bias, normed, statistics, drop, epsilon):
    """Add the update, after dropout, to the states, and normalise each row.

    Without rows of `update` nothing is added; with rows of `total` the sums are kept there,
    rounded, and the rounded ones are normalised; without `bias` no mean is subtracted (RMS norm).
    """
    num_rows, width = states.shape
    sums, added = np.empty(width, _f32), np.empty(width, _f32)
    is_centred, keeps = len(bias) > 0, len(total) > 0
    for index in range(num_rows):
        row = states[index]
        for place in range(width):
            sums[place] = read(row[place])
        if len(update) > 0:
            load_dropped(update[index], index * width, drop, added)
            for place in range(width):
                sums[place] += added[place]
        if keeps:
            kept_row = total[index]
            store(sums, kept_row)
            for place in range(width):
                sums[place] = read(kept_row[place])
        mean = _f32(0)
        if is_centred:
            for place in range(width):
                mean += sums[place]
            mean /= _f32(width)
        squares = _f32(0)
        for place in range(width):
            difference = sums[place] - mean
            squares += difference * difference
        spread = _f32(1) / np.sqrt(squares / _f32(width) + epsilon)
        statistics[0, index], statistics[1, index] = mean, spread
        if is_centred:
            for place in range(width):
                sums[place] = (sums[place] - mean) * spread * weight[place] + bias[place]
        else:
            for place in range(width):
                sums[place] = sums[place] * spread * weight[place]
        store(sums, normed[index])


@compiled_freely
def normalise_backward(
    states,
    update,
    weight,
    grad,
    other,
    is_sum,
    is_centred,
    statistics,
    drop,
    states_grad,
    update_grad,
    sums,
):
    """Compute the gradients of states and update, and the sums for gain and bias.

    With `is_sum` the states are the sums that were normalised, and `other` is the gradient of the
    sums; without it the update is added again, and `other` is a second gradient of what came out.
    """
    num_rows, width = states.shape
    total, back, added = np.empty(width, _f32), np.empty(width, _f32), np.empty(width, _f32)
    weight_sums, bias_sums = sums[0], sums[1]
    seed_low, seed_high, threshold, scale = drop
    for index in range(num_rows):
        row, grad_row = states[index], grad[index]
        for place in range(width):
            total[place] = read(row[place])
            back[place] = read(grad_row[place])
        if not is_sum:
            load_dropped(update[index], index * width, drop, added)
            for place in range(width):
                total[place] += added[place]
            if len(other) > 0:
                other_row = other[index]
                for place in range(width):
                    back[place] += read(other_row[place])
        mean, spread = statistics[0, index], statistics[1, index]
        along, flat = _f32(0), _f32(0)
        for place in range(width):
            normal = (total[place] - mean) * spread
            weight_sums[place] += back[place] * normal
            bias_sums[place] += back[place]
            total[place] = normal
            back[place] *= weight[place]
            along += back[place] * normal
            flat += back[place]
        along /= _f32(width)
        flat = flat / _f32(width) if is_centred else _f32(0)
        for place in range(width):
            back[place] = (back[place] - total[place] * along - flat) * spread
        if is_sum and len(other) > 0:
            other_row = other[index]
            for place in range(width):
                back[place] += read(other_row[place])
        store(back, states_grad[index])
        if len(update_grad) > 0:
            if threshold != _u32(0):
                for place in range(width):
                    kept = is_kept(seed_low, seed_high, index * width + place, threshold)
                    back[place] = back[place] * scale if kept else _f32(0)
            store(back, update_grad[index])


@compiled_freely
def rectify_and_sum(grad, out, passed, sums):
    """Pass the gradient where a ReLU's output is positive, and sum it over the rows.

    Without rows of `out` nothing was rectified, and nothing is written to `passed`.
    """
    num_rows, width = grad.shape
    buffer = np.empty(width, _f32)
    for index in range(num_rows):
        grad_row = grad[index]
        for place in range(width):
            buffer[place] = read(grad_row[place])
        if len(out) > 0:
            out_row = out[index]
            for place in range(width):
                buffer[place] = buffer[place] if read(out_row[place]) > 0 else _f32(0)
            store(buffer, passed[index])
        for place in range(width):
            sums[place] += buffer[place]
