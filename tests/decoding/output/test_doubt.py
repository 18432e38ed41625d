"""What a doubt is."""

import dataclasses

import pytest

from dragoman.decoding.output.doubt import Doubt


def test_doubts_are_values():
    doubt = Doubt(kind="name", side="source", begin=0, end=3, words="told")
    assert doubt == dataclasses.replace(doubt)
    with pytest.raises(dataclasses.FrozenInstanceError):
        doubt.begin = 1
