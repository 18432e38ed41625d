"""The cache that hypotheses share: what each remembers is what its ancestors wrote."""

import pytest
import torch

from dragoman.decoding.shared_cache import SharedCache
from dragoman.kernels.beam_attention import Heads

HEADS = Heads(2, 3, 4, 1.0)


class Followed:
    """A cache, and beside it what each hypothesis should remember, as plain lists of words."""

    def __init__(self, sentences):
        self.cache = SharedCache.make(2, sentences, HEADS)
        self.pasts = [[[]] for _ in range(sentences)]
        self.words = 0

    def step(self, rows, num_beams):
        """Let hypotheses continue others, and write a word of each."""
        if rows is not None:
            old = [past for beams in self.pasts for past in beams]
            chosen = [list(old[row]) for row in rows]
            self.pasts = [
                chosen[first : first + num_beams] for first in range(0, len(rows), num_beams)
            ]
            rows = torch.tensor(rows)
        self.cache = self.cache.moved(rows, num_beams, 0, 0)
        for sentence, beams in enumerate(self.pasts):
            for beam, past in enumerate(beams):
                self.words += 1
                past.append(self.words)
                place = self.cache.filled - num_beams + beam
                self.cache.keys[:, sentence, :, place] = float(self.words)
                self.cache.values[:, sentence, :, place] = -float(self.words)

    def check(self):
        """Look at what each hypothesis remembers."""
        for sentence, beams in enumerate(self.pasts):
            for beam, past in enumerate(beams):
                places = self.cache.mask[sentence, 0, beam] == 0
                for layer in range(2):
                    keys = self.cache.keys[layer, sentence][:, places]
                    assert sorted(keys[1, :, 2].tolist()) == past
                    values = self.cache.values[layer, sentence][:, places]
                    assert torch.equal(values[..., 0], -keys[..., 0])


@pytest.mark.parametrize("num_beams", [1, 2, 4, 5])
def test_each_hypothesis_remembers_its_ancestors(num_beams):
    generator = torch.Generator().manual_seed(num_beams)
    followed = Followed(3)
    followed.step(None, 1)
    followed.check()
    followed.step([sentence for sentence in range(3) for _ in range(num_beams)], num_beams)
    for _ in range(40):
        parents = torch.randint(num_beams, (3, num_beams), generator=generator)
        rows = parents + num_beams * torch.arange(3)[:, None]
        followed.step(rows.flatten().tolist(), num_beams)
        followed.check()
        assert followed.cache.mask.size(3) % 16 == 0
        assert followed.cache.keys.size(3) == followed.cache.mask.size(3)


def test_sentences_leave_and_others_take_their_places():
    followed = Followed(4)
    followed.step(None, 1)
    followed.step([0, 0, 1, 1, 2, 2, 3, 3], 2)
    followed.step([0, 1, 7, 7, 4, 5], 2)  # the second is gone, the last is in its place
    followed.check()
    assert followed.cache.keys[0].is_contiguous()
    for _ in range(20):
        followed.step([1, 0, 3, 2], 2)
        followed.check()


def test_what_is_nobodys_ancestor_is_forgotten():
    followed = Followed(2)
    followed.step(None, 1)
    followed.step([0, 0, 0, 0, 1, 1, 1, 1], 4)
    for _ in range(60):
        followed.step([0, 0, 0, 0, 4, 4, 4, 4], 4)  # all continue the first
    followed.check()
    assert followed.cache.mask.size(3) <= 62 + 16 + 16


def test_a_sentence_stands_at_the_same_places_within_blocks_whatever_its_neighbours():
    def places(num_sentences):
        """Follow the first sentence beside others that need more room."""
        followed = Followed(num_sentences)
        followed.step(None, 1)
        followed.step([row for row in range(num_sentences) for _ in range(4)], 4)
        others = list(range(4, 4 * num_sentences))
        for _ in range(30):
            followed.step([0, 0, 1, 1, *others], 4)
        seen = (followed.cache.mask[0, 0] == 0).nonzero()[:, 1]
        return (seen % 16).tolist(), followed.cache.mask.size(3)

    (alone, few), (together, many) = places(1), places(3)
    assert alone == together
    assert few < many
