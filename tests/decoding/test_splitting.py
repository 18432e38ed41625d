"""Nothing of a text is lost where it is split, and every part can be read."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.decoding.options import SearchOptions
from dragoman.decoding.splitting import Splitter
from dragoman.errors import OptionError

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


MARKS = {"more": ">>formal<<", "less": "<less>"}


def mark_folder(folder, **more):
    return replace(folder, facts=replace(folder.facts, formality=MARKS, **more))


@pytest.mark.parametrize("kind", MARKS)
def test_a_formality_is_the_mark_before_every_sentence(tiny_folder, kind):
    splitter = Splitter(mark_folder(tiny_folder.folder))
    sentences = ["The old dog.", "A tree sees the house."]
    typed = splitter.segments(
        [f"{MARKS[kind]} {each}" for each in sentences],
        SearchOptions(split_sentences="off"),
        lambda _: 1,
    )
    text = " ".join(sentences)
    found = splitter.segments([text], SearchOptions(formality=kind), lambda _: 1)
    assert [each.ids for each in found] == [each.ids for each in typed]
    assert all(each.num_marks > 0 for each in found)
    plain = splitter.segments([text], SearchOptions(), lambda _: 1)
    assert [each.ids for each in plain] == [each.ids[each.num_marks :] for each in found]


def test_marks_leave_less_room_for_a_sentence(tiny_folder):
    splitter = Splitter(mark_folder(tiny_folder.folder, longest_source=30))
    found = splitter.segments(["dog " * 60], SearchOptions(formality="more"), lambda _: 1)
    assert len(found) > 2
    assert max(len(each.ids) for each in found) <= 30


def test_a_formality_that_the_model_does_not_know_is_refused(tiny_folder):
    for facts, known in (
        ({}, "has no formality setting"),
        ({"less": "<less>"}, "knows only “less”"),
    ):
        folder = replace(
            tiny_folder.folder, facts=replace(tiny_folder.folder.facts, formality=facts)
        )
        with pytest.raises(OptionError, match=f"“more”, but this model {known}; leave it out"):
            Splitter(folder).segments(["A dog."], SearchOptions(formality="more"), lambda _: 1)
