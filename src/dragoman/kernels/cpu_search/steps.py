"""Entry points of single steps for searches in Python: encode sources, decode one token."""

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import compiled, compiled_entry
from dragoman.kernels.cpu_search.slot_search import make_pool
from dragoman.kernels.cpu_search.team import make_single_core_team
from dragoman.kernels.cpu_search.transformer_steps import (
    Rows,
    decode_step,
    embed_token,
    encode,
    write_source_kv,
)


@compiled
def encode_sources(ids, lengths, places, model, pool) -> None:
    """Encode source sentences and write their keys and values for cross-attention."""
    states = np.empty((len(ids), model.positions.shape[1]), np.float32)
    row = 0
    for length in lengths:
        for position in range(length):
            embed_token(
                model.source_embedding, ids[row], model.shape.embedding_scale,
                model.positions[position], states[row],
            )  # fmt: skip
            row += 1
    team = make_single_core_team()
    encode(states, lengths, model.encoder, model.shape, team)
    write_source_kv(states, places, model.decoder, model.shape, pool, team)


@compiled
def decode_newest(tokens, length, rows, model, pool, states, attention) -> None:
    """Run the decoder on the newest token of each hypothesis."""
    position = model.positions[length]
    for row in range(len(tokens)):
        embed_token(
            model.target_embedding, tokens[row], model.shape.embedding_scale, position, states[row]
        )
    team = make_single_core_team()
    decode_step(states, len(tokens), rows, model.decoder, model.shape, pool, attention, team)


@compiled_entry
def force_decode(ids, lengths, tokens, target_lengths, model, found) -> None:
    """Run the decoder over given translations and record its cross-attention.

    Parameters
    ----------
    ids : ndarray
        Source tokens, sentences concatenated.
    lengths : ndarray
        Number of tokens of each source.
    tokens : ndarray
        Decoder inputs of each translation, the start symbol and all tokens but the last;
        [sentences, longest].
    target_lengths : ndarray
        How many of these count, in falling order.
    model : Model
        The model.
    found : ndarray
        Output: attention summed over layers and heads, [sentences, tokens, source tokens]; zeros.
    """
    num_sentences, longest = tokens.shape
    pool, _ = make_pool(len(ids) + num_sentences * longest, model.decoder, model.shape)
    encode_sources(ids, lengths, np.arange(len(ids)).astype(np.uint32), model, pool)
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
        while target_lengths[count - 1] <= length:
            count -= 1
        rows = Rows(own, everyone, np.full(count, length + 1), source, everyone, lengths)
        newest = tokens[:count, length].copy()
        attention = np.zeros((count, source.shape[1]), np.float32)
        decode_newest(newest, length, rows, model, pool, states, attention)
        found[:count, length, : source.shape[1]] = attention
