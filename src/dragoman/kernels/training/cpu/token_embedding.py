"""Embed packed tokens on a CPU: look-up, position, dropout."""

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import compiled_freely
from dragoman.kernels.training.cpu.arrays import is_kept, read
from dragoman.kernels.training.cpu.norms import store

_f32, _u32 = np.float32, np.uint32


@compiled_freely
def look_up(words, ids, positions, places, scale, drop, sums):
    """Write each token's embedding times a scale, plus its position's if there are positions."""
    num_tokens, width = sums.shape
    buffer = np.empty(width, _f32)
    seed_low, seed_high, threshold, keep_scale = drop
    for token in range(num_tokens):
        word = words[ids[token]]
        for place in range(width):
            buffer[place] = read(word[place]) * scale
        if len(positions) > 0:
            position = positions[places[token]]
            for place in range(width):
                buffer[place] += read(position[place])
        if threshold != _u32(0):
            for place in range(width):
                kept = is_kept(seed_low, seed_high, token * width + place, threshold)
                buffer[place] = buffer[place] * keep_scale if kept else _f32(0)
        store(buffer, sums[token])


@compiled_freely
def add_to_embedding(grad, ids, pad_id, scale, drop, words_grad):
    """Add the gradient of each token to its row of the embedding, in the order of tokens."""
    num_tokens, width = grad.shape
    buffer = np.empty(width, _f32)
    seed_low, seed_high, threshold, keep_scale = drop
    for token in range(num_tokens):
        if ids[token] == pad_id:
            continue
        row, word = grad[token], words_grad[ids[token]]
        for place in range(width):
            buffer[place] = read(row[place])
        if threshold != _u32(0):
            for place in range(width):
                kept = is_kept(seed_low, seed_high, token * width + place, threshold)
                buffer[place] = buffer[place] * keep_scale if kept else _f32(0)
        for place in range(width):
            word[place] += buffer[place] * scale
