"""Nothing of a text is lost where it is split, and every part can be read."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.decoding.options import SearchOptions
from dragoman.decoding.splitting import Splitter

TEXTS = st.text(st.sampled_from(list("aB1 .!?\n\u2028é。中")) | st.characters(codec="utf-8"))


@pytest.mark.parametrize("splits", ["auto", "on", "off"])
@pytest.mark.parametrize("is_single", [True, False, None])
@given(text=TEXTS, longest=st.integers(8, 30))
def test_parts_give_back_the_text_and_fit(tiny_folder, text, longest, splits, is_single):
    facts = replace(tiny_folder.folder.facts, longest_source=longest, one_sentence_a_line=is_single)
    splitter = Splitter(replace(tiny_folder.folder, facts=facts))
    options = SearchOptions(split_sentences=splits)
    parts = splitter.split(text, options, cuts_long=True)
    assert "".join(parts) == text
    segments = splitter.segments([text, text], options, lambda _: 1)
    for index in (0, 1):
        own = [segment for segment in segments if segment.text_index == index]
        assert [segment.is_first for segment in own] == [True, *[False] * len(own)][: len(own)]
        assert all(len(segment.ids) <= longest for segment in own)
        assert [segment.text for segment in own] == [
            part for part in parts if encode(splitter, part)
        ]
        assert all(segment.text.rstrip() + segment.space == segment.text for segment in own)


@given(texts=st.lists(TEXTS, max_size=4), longest=st.integers(8, 30))
def test_known_ids_are_used_in_place_of_encoding(tiny_folder, texts, longest):
    facts = replace(tiny_folder.folder.facts, longest_source=longest)
    splitter = Splitter(replace(tiny_folder.folder, facts=facts))
    options = SearchOptions()
    encoded = {text: encode(splitter, text) for text in texts[::2]}
    plain = splitter.segments(texts, options, lambda _: 1)
    assert splitter.segments(texts, options, lambda _: 1, encoded) == plain


def encode(splitter, part):
    return splitter._subwords.encode([part])[0]
