"""What the compiled search does by itself, for others to call: sources read, one word more."""

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import compiled, compiled_entry
from dragoman.kernels.cpu_search.slot_search import make_pool
from dragoman.kernels.cpu_search.team import work_alone
from dragoman.kernels.cpu_search.transformer_steps import (
    Rows,
    encode,
    read_word,
    remember_sources,
    step,
)


@compiled
def read_sources(ids, lengths, places, model, pool) -> None:
    """Read source sentences, and write down their keys and values for the decoder."""
    states = np.empty((len(ids), model.positions.shape[1]), np.float32)
    row = 0
    for length in lengths:
        for position in range(length):
            read_word(
                model.source_words, ids[row], model.shape.word_scale, model.positions[position],
                states[row],
            )  # fmt: skip
            row += 1
    team = work_alone()
    encode(states, lengths, model.encoder, model.shape, team)
    remember_sources(states, places, model.decoder, model.shape, pool, team)


@compiled
def read_newest(words, length, rows, model, pool, states, attention) -> None:
    """Read the newest word of each hypothesis."""
    position = model.positions[length]
    for row in range(len(words)):
        read_word(model.target_words, words[row], model.shape.word_scale, position, states[row])
    team = work_alone()
    step(states, len(words), rows, model.decoder, model.shape, pool, attention, team)


@compiled_entry
def attend(ids, lengths, words, word_lengths, model, found) -> None:
    """Read given translations, and write down what each word attends to while it is produced.

    Parameters
    ----------
    ids : ndarray
        Words of the sources, sentence behind sentence.
    lengths : ndarray
        Words of each source.
    words : ndarray
        Of each translation the words after which another comes: the start symbol and all its words
        but the last; [sentences, longest].
    word_lengths : ndarray
        How many of these count, in falling order.
    model : Model
        The model.
    found : ndarray
        Where the sums over all layers and heads are written: [sentences, words, source words], all
        zeros.
    """
    num_sentences, longest = words.shape
    pool, _ = make_pool(len(ids) + num_sentences * longest, model.decoder, model.shape)
    read_sources(ids, lengths, np.arange(len(ids)).astype(np.uint32), model, pool)
    source = np.zeros((num_sentences, lengths.max()), np.uint32)
    start = 0
    for sentence in range(num_sentences):
        for place in range(lengths[sentence]):
            source[sentence, place] = start + place
        start += lengths[sentence]
    own = (start + np.arange(num_sentences * longest)).astype(np.uint32)
    own = own.reshape(num_sentences, longest)
    states = np.empty((num_sentences, model.positions.shape[1]), np.float32)
    everyone, count = np.arange(num_sentences), num_sentences
    for length in range(longest):
        while word_lengths[count - 1] <= length:
            count -= 1
        rows = Rows(own, everyone, np.full(count, length + 1), source, everyone, lengths)
        newest = words[:count, length].copy()
        attention = np.zeros((count, source.shape[1]), np.float32)
        read_newest(newest, length, rows, model, pool, states, attention)
        found[:count, length, : source.shape[1]] = attention
