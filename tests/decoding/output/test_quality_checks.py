"""Translations that cannot be right, found and searched for again."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.text.test_repetition import most_times
from tests.work import grows_linearly

from dragoman.decoding.engines.search_engine import Hypothesis
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.output.quality_checks import (
    LONGEST_SYLLABLE,
    MOST_SYLLABLES,
    SHORTEST_BABBLE,
    find_quality_issue,
    search_again,
)
from dragoman.decoding.segment import Segment
from dragoman.decoding.translation import Part

GOOD = "The man who came from Paris yesterday will visit the old museum with his two daughters."
FRENCH = "L’homme qui est venu de Paris hier visitera le vieux musée avec ses deux filles."


@given(st.text("ab ", max_size=30), st.text("abcdefghijkl", min_size=1), st.integers(1, 40))
def test_no_run_of_syllables_is_missed(before, syllable, num_times):
    syllable = syllable[:LONGEST_SYLLABLE]
    text = before + syllable * num_times + "."
    runs = re.finditer(rf"(.{{1,{LONGEST_SYLLABLE}}}?)\1{{{MOST_SYLLABLES - 1},}}", text)
    if any(len(each.group()) >= SHORTEST_BABBLE for each in runs):
        assert find_quality_issue("", text).kind == "repetition"


@pytest.mark.parametrize(
    ("source", "translation", "words"),
    [
        (FRENCH, "The man " + "came " * 5, "says “came” 5 times in a row"),
        (FRENCH, "I am sorry. " * 4, "says “I am sorry.” 4 times in a row"),
        (FRENCH, "the man " + "ha" * 20, "says “ha” 20 times in a row"),
        ("他昨天来了。" * 2, "彼は" * 12, "says “彼は” 12 times in a row"),
        ("ha ha ha", "ha " * 9, "says “ha” 9 times in a row"),
        (FRENCH, (GOOD + " ") * 3 + " ".join(GOOD.split()[::-1]) * 3, "far too long (4"),
        (FRENCH * 4, "The man came.", "far too short (11 characters from 2"),
        (FRENCH, "", "empty"),
        ("am", " ", "empty"),
    ],
)
def test_suspicious(source, translation, words):
    found = find_quality_issue(source, translation)
    assert found is not None
    assert found.words.startswith(words)
    assert found.kind in ("repetition", "short", "long")
    assert (found.kind == "repetition") == words.startswith("says")


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        (FRENCH, GOOD),
        ("", ""),
        ("Oui.", "Yes, that is how it is done."),
        ("He likes it very, very much.", "Le gusta mucho mucho mucho."),
        ("ha ha ha ha", "ja ja ja ja ja"),
        ("." * 40, "." * 60),
        ("Number 1000000000000", "Nummer 1000000000000000"),
        ("This is what everybody says about the weather in town.", "大家都这么说。"),
        ("大家都这么说城里的天气。", "This is what everybody says about the weather in town."),
    ],
)
def test_not_suspicious(source, translation):
    assert find_quality_issue(source, translation) is None


@given(st.text(alphabet="abc ", max_size=60))
def test_characters_are_judged_as_trying_all_would(text):
    found = find_quality_issue("x" * len(text), text)
    pattern = re.compile(r"(?=((.{1,12}?)\2{7,}))")
    babbles = any(len(match.group(1)) >= 24 for match in pattern.finditer(text))
    words = text.split()
    repeats = most_times(words, 12) >= 4
    source_times = most_times("x" * len(text), 12)
    if found is None or found.kind != "repetition":
        assert not repeats
        assert not babbles or most_times(text, 12) <= 2 * source_times
    else:
        assert repeats or babbles


def test_the_cost_of_a_long_line_is_linear():
    assert grows_linearly(lambda n: find_quality_issue("x" * 100 * n, GOOD * n), 125)
    assert grows_linearly(lambda n: find_quality_issue(GOOD, "a b " * n), 3000)


def part(source, text, notes=()):
    segment = Segment(text_index=0, text=source, ids=(5, 0), space="", is_first=True)
    hypothesis = Hypothesis(tokens=(7,), log_probability=-1.0, score=-1.0)
    return Part(segment, [(text, hypothesis)], notes)


def texts_of(parts):
    return [each.candidates[0][0] for each in parts]


def test_the_second_search_is_kept_where_it_is_not_suspicious():
    loop, short = "no " * 9, "The man."
    long = " ".join(f"{word}{n}" for n, word in enumerate(GOOD.split() * 8))
    sources = [FRENCH, FRENCH, FRENCH * 4, FRENCH, FRENCH]
    before = list(map(part, sources, (GOOD, loop, short, long, loop + "!")))
    asked = []

    def search(segments, how, *, is_unrepeated):
        asked.append((tuple(each.text for each in segments), how, is_unrepeated))
        if is_unrepeated:
            return [part(FRENCH, GOOD), part(FRENCH, loop)]
        return [part(each.text, GOOD * 3 if how.length_penalty else GOOD) for each in segments]

    options = SearchOptions(beam_size=2, length_penalty=0.6)
    after = search_again(before, search, options)
    assert texts_of(after) == [GOOD, GOOD, GOOD * 3, GOOD, loop + "!"]
    assert [len(each.notes) for each in after] == [0, 1, 1, 1, 1]
    assert after[1].notes == ("translation says “no” 9 times in a row; another search did better",)
    assert after[4].notes[0].endswith("; another search did no better")
    by_kind = {(unrepeated, how.length_penalty): (texts, how) for texts, how, unrepeated in asked}
    assert by_kind[True, 0.6] == ((FRENCH, FRENCH), options)
    assert by_kind[False, 1.6][0] == (FRENCH * 4,)
    assert by_kind[False, 0.0][0] == (FRENCH,)
    assert by_kind[False, 0.0][1].beam_size == 8
    assert len(asked) == 3
    with_what = [None, options, by_kind[False, 1.6][1], by_kind[False, 0.0][1], None]
    assert [each.anew for each in after] == with_what


def test_nothing_is_searched_for_where_nothing_is_wrong():
    def refuse(*args, **kwargs):
        raise AssertionError

    found = [part(FRENCH, GOOD), part("", "")]
    assert search_again(found, refuse, SearchOptions()) == found


def test_a_second_search_that_drops_a_demand_is_not_better():
    first = part(FRENCH, "cha " * 5, ("no room",))

    def search(note):
        new = part(FRENCH, GOOD, ("no room", *note))
        (found,) = search_again([first], lambda *_, **__: [new], SearchOptions())
        assert found.notes[1:] == ("no room",)
        return found.candidates[0][0], found.notes[0].rpartition(" did ")[2]

    assert search(()) == (GOOD, "better")
    assert search(("found no translation with “cha cha”",)) == ("cha " * 5, "no better")


def test_the_length_penalty_is_raised_no_further_than_it_may_be():
    def search(segments, how, *, is_unrepeated):
        assert (how.length_penalty, is_unrepeated) == (10, False)
        return [part(each.text, GOOD) for each in segments]

    (found,) = search_again([part(FRENCH, "")], search, SearchOptions(length_penalty=9.5))
    assert found.candidates[0][0] == GOOD


def test_the_best_candidate_without_fault_is_kept_with_those_behind_it():
    empty, one, two = (part("am", text).candidates[0] for text in ("", "on", "at"))
    first = Part(part("am", "").segment, [empty, one])
    new = first._replace(candidates=[empty, two, empty, one])
    (found,) = search_again([first], lambda *_, **__: [new], SearchOptions())
    assert found.candidates == [two, empty]
    assert found.notes == ("translation empty; another search did better",)
    few = first._replace(candidates=[empty, two])
    (found,) = search_again([first], lambda *_, **__: [few], SearchOptions())
    assert found.candidates == first.candidates
    assert found.notes == ("translation empty; another search did no better",)
