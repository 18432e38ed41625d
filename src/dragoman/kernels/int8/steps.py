"""What the compiled search does by itself, for others to call: sources read, one word more."""

import numpy as np

from dragoman.kernels.int8.instructions import compiled
from dragoman.kernels.int8.transformer import encode, read_word, remember_sources, step


@compiled
def read_sources(ids, lengths, places, model, pool) -> None:
    """Read source sentences, and write down their keys and values for the decoder.

    Parameters
    ----------
    ids : ndarray
        Their words, sentence behind sentence.
    lengths : ndarray
        Words of each sentence.
    places : ndarray
        Where each word's keys and values go.
    model : Model
        The model.
    pool : Pool
        Where they are written.
    """
    states = np.empty((len(ids), model.positions.shape[1]), np.float32)
    row = 0
    for length in lengths:
        for position in range(length):
            read_word(
                model.source_words, ids[row], model.shape.word_scale, model.positions[position],
                states[row],
            )  # fmt: skip
            row += 1
    encode(states, lengths, model.encoder, model.shape)
    remember_sources(states, places, model.decoder, model.shape, pool)


@compiled
def read_newest(words, length, rows, model, pool, states) -> None:
    """Read the newest word of each hypothesis.

    Parameters
    ----------
    words : ndarray
        The words, one a hypothesis.
    length : int
        Words that each has read before.
    rows : Rows
        Where each looks.
    model : Model
        The model.
    pool : Pool
        Of words so far and of sources; the newest words' are written.
    states : ndarray
        Where what the decoder now says is written, one vector a hypothesis.
    """
    position = model.positions[length]
    for row in range(len(words)):
        read_word(model.target_words, words[row], model.shape.word_scale, position, states[row])
    step(states, len(words), rows, model.decoder, model.shape, pool)
