"""Words drawn at random: what `dragoman.decoding.search.sampling` does with any model, compiled."""

import numpy as np

from dragoman.kernels.cpu_search.best_tokens import is_ruled_out
from dragoman.kernels.cpu_search.compiler.instructions import compiled
from dragoman.kernels.cpu_search.slots import SAMPLE, finish, go_on, settle
from dragoman.kernels.cpu_search.tiles import ROWS, fill_tiles, multiply_rows


@compiled
def take_chance(slot, beam, slots, samples, chance) -> None:
    """Bring the numbers by which the next words of a hypothesis are drawn."""
    sentence, length = slots.sentences[slot], slots.lengths[slot]
    if length == 0:
        chance[:] = samples.chance[sentence, :, 0]
    else:
        chance[0] = samples.chance[sentence, slots.progress[slot, beam, SAMPLE], length]


@compiled
def comes_before(one, other, scores) -> bool:
    """Say whether a word is more probable than another; of equal ones the first is."""
    return scores[one] > scores[other] or (scores[one] == scores[other] and one < other)


@compiled
def sink(place, count, heap, scores) -> None:
    """Let a word of a heap sink below all that are more probable."""
    word = heap[place]
    while 2 * place + 1 < count:
        below = 2 * place + 1
        if below + 1 < count and comes_before(heap[below + 1], heap[below], scores):
            below += 1
        if not comes_before(heap[below], word, scores):
            break
        heap[place] = heap[below]
        place = below
    heap[place] = word


@compiled
def cut_off(scores, samples, heap, shares) -> int:
    """List the words among which to draw, if not among all, in falling order."""
    size, top, total = len(scores), scores.max(), 0.0
    for word in range(size):
        heap[word] = word
        total += np.exp((scores[word] - top) / samples.temperature)
    for place in range(size // 2 - 1, -1, -1):
        sink(place, size, heap, scores)
    count, kept = 0, 0.0
    most = min(size, samples.top_k) if samples.top_k else size
    if samples.top_k:
        total = np.inf
    while count < most and kept < samples.top_p * total:
        word = heap[0]
        heap[0] = heap[size - 1 - count]
        heap[size - 1 - count] = word
        shares[count] = np.exp((scores[word] - top) / samples.temperature)
        kept += shares[count]
        count += 1
        sink(0, size - count, heap, scores)
    if samples.top_k and samples.top_p < 1:
        total, kept, most = kept, 0.0, count
        count = 0
        while count < most and kept < samples.top_p * total:
            kept += shares[count]
            count += 1
    return count


@compiled
def draw(scores, chance, samples, heap, shares) -> int:
    """Draw a word, each as often as it is probable."""
    size, is_cut = len(scores), samples.top_k > 0 or samples.top_p < 1
    if scores.max() == -np.inf:
        return 0
    if is_cut:
        count = cut_off(scores, samples, heap, shares)
    else:
        count, top = size, scores.max()
        for word in range(size):
            shares[word] = np.exp((scores[word] - top) / samples.temperature)
    left = chance * shares[:count].sum()
    for place in range(count):
        left -= shares[place]
        if left < 0:
            break
    return heap[size - 1 - place] if is_cut else place


@compiled
def draw_words(
    states, count, output, is_banned, forced, blocked, forbidden, places, samples, chance, is_first,
    best, words,
) -> None:  # fmt: skip
    """Draw the next words of hypotheses.

    Parameters
    ----------
    states : ndarray
        What the decoder says, one vector a row.
    count : int
        How many of them.
    output : Matrix
        The vocabulary.
    is_banned : ndarray
        As `find_words` is told.
    forced : ndarray
        Likewise.
    blocked : ndarray
        Likewise.
    forbidden : ForbiddenTable
        Likewise.
    places : ndarray
        Likewise.
    samples : Samples
        How to draw.
    chance : ndarray
        For each vector the numbers by which words are drawn.
    is_first : ndarray
        Whether a vector is that of all samples of a sentence, which begin there.
    best : ndarray
        Where the log-probabilities of the words are written: the model's own, whatever the
        temperature.
    words : ndarray
        Where the words are written; as many as samples of a vector, or one.
    """
    size = len(is_banned)
    products = np.empty((fill_tiles(ROWS), size), np.float32)
    heap, shares = np.empty(size, np.int64), np.empty(size, np.float64)
    best[:count] = -np.inf
    words[:count] = 0
    for row in range(count):
        if row % ROWS == 0:
            multiply_rows(
                states[row:], min(ROWS, count - row), output.panels, output.outputs, output.width,
                products,
            )  # fmt: skip
        scores = products[row % ROWS]
        for word in blocked[row]:
            if word >= 0:
                scores[word] = -np.inf
        top, total = scores.max(), 0.0
        for word in range(size):
            total += np.exp(np.float64(scores[word] - top))
        normaliser = top + np.log(total)
        for word in range(size):
            if scores[word] > -np.inf and is_ruled_out(word, is_banned, forbidden, places[row]):
                scores[word] = -np.inf
        for index in range(words.shape[1] if is_first[row] else 1):
            word = forced[row]
            if word < 0:
                word = draw(scores, chance[row, index], samples, heap, shares)
            words[row, index], best[row, index] = word, scores[word] - normaliser


@compiled
def extend_by_samples(slot, first_row, best, words, slots, rules) -> None:
    """Extend each sample of a slot by the word that was drawn for it, or end it."""
    is_first, living = slots.lengths[slot] == 0, 0
    own = np.empty(rules.num_beams, np.int64)
    for index in range(rules.num_beams if is_first else slots.counts[slot]):
        parent = 0 if is_first else index
        rank = index if is_first else 0
        word, total = words[first_row + parent, rank], best[first_row + parent, rank]
        total += slots.alive[slot, parent]
        if total == -np.inf:
            continue
        if word == rules.eos_id:
            finish(slot, total, parent, slots, rules)
            continue
        go_on(slot, living, word, parent, total, slots)
        own[living] = index if is_first else slots.progress[slot, parent, SAMPLE]
        living += 1
    settle(slot, living, slots)
    slots.progress[slot, :living, SAMPLE] = own[:living]
