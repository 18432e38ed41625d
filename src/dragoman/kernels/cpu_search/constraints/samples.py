"""Draw tokens at random: the compiled form of `dragoman.decoding.search.sampling`."""

import numpy as np

from dragoman.kernels.cpu_search.best_tokens import is_forbidden
from dragoman.kernels.cpu_search.compiler.instructions import compiled
from dragoman.kernels.cpu_search.slots import SAMPLE, append_token, commit_step, finish_hypothesis
from dragoman.kernels.cpu_search.tiles import ROWS, fill_tiles, multiply_rows


@compiled
def load_uniforms(slot, beam, slots, samples, uniforms) -> None:
    """Copy the uniform random numbers for the next token of a hypothesis."""
    sentence, length = slots.sentences[slot], slots.lengths[slot]
    if length == 0:
        uniforms[:] = samples.uniforms[sentence, :, 0]
    else:
        uniforms[0] = samples.uniforms[sentence, slots.progress[slot, beam, SAMPLE], length]


@compiled
def is_more_probable(one, other, scores) -> bool:
    """Compare two tokens by score, ties by lower id."""
    return scores[one] > scores[other] or (scores[one] == scores[other] and one < other)


@compiled
def sift_down(position, count, heap, scores) -> None:
    """Restore the heap below an entry, with the least probable tokens at the bottom."""
    token = heap[position]
    while 2 * position + 1 < count:
        below = 2 * position + 1
        if below + 1 < count and is_more_probable(heap[below + 1], heap[below], scores):
            below += 1
        if not is_more_probable(heap[below], token, scores):
            break
        heap[position] = heap[below]
        position = below
    heap[position] = token


@compiled
def select_most_probable(scores, samples, heap, shares) -> int:
    """Select the tokens of top-k and top-p, in falling order of probability."""
    size, top, total = len(scores), scores.max(), 0.0
    for token in range(size):
        heap[token] = token
        total += np.exp((scores[token] - top) / samples.temperature)
    for position in range(size // 2 - 1, -1, -1):
        sift_down(position, size, heap, scores)
    count, kept = 0, 0.0
    most = min(size, samples.top_k) if samples.top_k else size
    if samples.top_k:
        total = np.inf
    while count < most and kept < samples.top_p * total:
        token = heap[0]
        heap[0] = heap[size - 1 - count]
        heap[size - 1 - count] = token
        shares[count] = np.exp((scores[token] - top) / samples.temperature)
        kept += shares[count]
        count += 1
        sift_down(0, size - count, heap, scores)
    if samples.top_k and samples.top_p < 1:
        total, kept, most = kept, 0.0, count
        count = 0
        while count < most and kept < samples.top_p * total:
            kept += shares[count]
            count += 1
    return count


@compiled
def sample_token(scores, uniforms, samples, heap, shares) -> int:
    """Draw one token by a uniform random number."""
    size, is_cut = len(scores), samples.top_k > 0 or samples.top_p < 1
    if scores.max() == -np.inf:
        return 0
    if is_cut:
        count = select_most_probable(scores, samples, heap, shares)
    else:
        count, top = size, scores.max()
        for token in range(size):
            shares[token] = np.exp((scores[token] - top) / samples.temperature)
    left = uniforms * shares[:count].sum()
    for position in range(count):
        left -= shares[position]
        if left < 0:
            break
    return heap[size - 1 - position] if is_cut else position


@compiled
def sample_tokens(
    states, count, output, is_banned, forced, blocked, forbidden, forbidden_states, samples,
    uniforms, is_first, best, tokens,
) -> None:  # fmt: skip
    """Draw the next tokens of hypotheses.

    `best` receives the model's own log-probabilities of the tokens drawn, whatever the temperature;
    `is_first` marks rows from which all samples of a sentence begin. The rest is as in
    `dragoman.kernels.cpu_search.best_tokens.find_best_tokens`.
    """
    size = len(is_banned)
    products = np.empty((fill_tiles(ROWS), size), np.float32)
    heap, shares = np.empty(size, np.int64), np.empty(size, np.float64)
    best[:count] = -np.inf
    tokens[:count] = 0
    for row in range(count):
        if row % ROWS == 0:
            multiply_rows(
                states[row:], min(ROWS, count - row), output.panels, output.outputs, output.width,
                products,
            )  # fmt: skip
        scores = products[row % ROWS]
        for token in blocked[row]:
            if token >= 0:
                scores[token] = -np.inf
        top, total = scores.max(), 0.0
        for token in range(size):
            total += np.exp(np.float64(scores[token] - top))
        normaliser = top + np.log(total)
        for token in range(size):
            if scores[token] > -np.inf and is_forbidden(
                token, is_banned, forbidden, forbidden_states[row]
            ):
                scores[token] = -np.inf
        for index in range(tokens.shape[1] if is_first[row] else 1):
            token = forced[row]
            if token < 0:
                token = sample_token(scores, uniforms[row, index], samples, heap, shares)
            tokens[row, index], best[row, index] = token, scores[token] - normaliser


@compiled
def extend_by_samples(slot, first_row, best, tokens, slots, rules) -> None:
    """Append to each sample of a slot its drawn token, or end it."""
    is_first, living = slots.lengths[slot] == 0, 0
    own = np.empty(rules.num_beams, np.int64)
    for index in range(rules.num_beams if is_first else slots.counts[slot]):
        parent = 0 if is_first else index
        rank = index if is_first else 0
        token, total = tokens[first_row + parent, rank], best[first_row + parent, rank]
        total += slots.alive[slot, parent]
        if total == -np.inf:
            continue
        if token == rules.eos_id:
            finish_hypothesis(slot, total, parent, slots, rules)
            continue
        append_token(slot, living, token, parent, total, slots)
        own[living] = index if is_first else slots.progress[slot, parent, SAMPLE]
        living += 1
    commit_step(slot, living, slots)
    slots.progress[slot, :living, SAMPLE] = own[:living]
