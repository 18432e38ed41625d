"""Label-smoothed cross-entropy of rows of logits on a CPU, and its gradient in their place."""

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import compiled_freely
from dragoman.kernels.cpu_search.vectors import BITS, power_of_two
from dragoman.kernels.training.cpu.arrays import read, write

_f32 = np.float32


@compiled_freely
def logits_to_gradient(logits, targets, pad_id, smoothing, losses):
    """Compute the loss of each row, and write the gradient of their sum over the logits.

    Rows whose target is padding have neither; padding is never predicted.
    """
    num_rows, num_words = logits.shape
    scores = np.empty(num_words, _f32)
    share = _f32(smoothing / (num_words - 1))
    for index in range(num_rows):
        row, target = logits[index], targets[index]
        if target == pad_id:
            losses[index] = _f32(0)
            for word in range(num_words):
                write(row, word, _f32(0))
            continue
        for word in range(num_words):
            scores[word] = read(row[word])
        true = scores[target]
        scores[pad_id] = _f32(0)
        plain = _f32(0)
        for word in range(num_words):
            plain += scores[word]
        scores[pad_id] = _f32(-1e30)
        top = scores[0]
        for word in range(num_words):
            top = max(top, scores[word])
        total = _f32(0)
        for word in range(num_words):
            scores[word] = power_of_two((scores[word] - top) * BITS)
            total += scores[word]
        losses[index] = top + np.log(total) - _f32(1 - smoothing) * true - share * plain
        inverse = _f32(1) / total
        for word in range(num_words):
            write(row, word, scores[word] * inverse - share)
        write(row, target, scores[target] * inverse - share - _f32(1 - smoothing))
        write(row, pad_id, _f32(0))
