"""Words that must not be said, read word by word along with each hypothesis.

`dragoman.decoding.constraints.forbidden` makes the table.
"""

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import compiled


@compiled
def is_ruled_out(word, is_banned, forbidden, place) -> bool:
    """Say whether a word must not come next."""
    if is_banned[word]:
        return True
    if len(forbidden.may_begin) == 0:
        return False
    if forbidden.is_complete[place] and forbidden.ends_word[word]:
        return True
    return word in forbidden.closing[place]


@compiled
def follow_forbidden(slot, slots, forbidden, column) -> None:
    """Take note of what the newest words of a slot's hypotheses write of what is forbidden."""
    if len(forbidden.may_begin) == 0:
        return
    for beam in range(slots.counts[slot]):
        word, place = slots.newest[slot, beam], slots.progress[slot, beam, column]
        key = place * forbidden.defaults.shape[1] + word
        index = np.searchsorted(forbidden.keys, key)
        if index < len(forbidden.keys) and forbidden.keys[index] == key:
            slots.progress[slot, beam, column] = forbidden.targets[index]
        else:
            slots.progress[slot, beam, column] = forbidden.defaults[
                forbidden.may_begin[place], word
            ]
