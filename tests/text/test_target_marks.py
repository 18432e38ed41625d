"""Marks of target languages: found in vocabularies, typed before texts, or chosen by a code."""

import pytest

from dragoman.errors import OptionError
from dragoman.text.target_marks import (
    TWO_LETTERS,
    choose_target,
    find_formality,
    find_targets,
    is_mark,
    match_target,
    shorten,
    take_mark,
)

TARGETS = ["cmn_Hans", "fra", "pt_br", "zlm_Latn"]


def test_they_are_found_in_a_vocabulary():
    pieces = ["</s>", "▁>>fra<<", ">>pt_br<<", "▁a", "<<", ">>", ">>b"]
    assert find_targets(pieces) == ["fra", "pt_br"]


def test_marks_of_formality_are_no_languages():
    pieces = ["▁>>fra<<", "▁>>formal<<", ">>informal<<", "▁formal"]
    assert find_targets(pieces) == ["fra"]
    assert find_formality(pieces) == {"more": ">>formal<<", "less": ">>informal<<"}
    assert find_formality(pieces[:1]) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (">>formal<<", True), ("<2formal>", True), ("é", True), ("a" * 40, True), ("a" * 41, False),
        ("", False), ("a b", False), (" a", False), ("a\n", False), ("a\x1b", False),
    ],
)  # fmt: skip
def test_a_mark_is_one_word(text, expected):
    assert is_mark(text) == expected


@pytest.mark.parametrize(
    ("code", "target"),
    [("fra", "fra"), ("fr", "fra"), ("FR", "fra"), ("pt-BR", "pt_br"), ("pt", None),
     ("zh-Hans", "cmn_Hans"), ("zlm_Latn", "zlm_Latn"), ("deu", None), ("", None)],
)  # fmt: skip
def test_codes_match_long_or_short(code, target):
    assert match_target(code, TARGETS) == target


def test_codes_become_short():
    assert [shorten(each) for each in TARGETS] == ["zh-Hans", "fr", "pt-br", "zlm-Latn"]
    assert all(len(each) == 3 for each in TWO_LETTERS)
    assert all(len(each) == 2 for each in TWO_LETTERS.values())


@pytest.mark.parametrize(
    ("text", "rest", "target"),
    [(">>fra<< Yes.", "Yes.", "fra"), (" >>fr<<Yes.", "Yes.", "fra"), ("Yes.", "Yes.", None),
     (">>deu<< Yes.", ">>deu<< Yes.", None), ("Yes. >>fra<< No.", "Yes. >>fra<< No.", None),
     (">><< x", ">><< x", None)],
)  # fmt: skip
def test_a_text_may_say_it_itself(text, rest, target):
    assert take_mark(text, TARGETS) == (rest, target)


def test_a_choice_is_needed_where_there_are_several():
    assert choose_target(None, ["fra"]) == "fra"
    assert choose_target("fr", TARGETS) == "fra"
    with pytest.raises(OptionError, match="the model has several target languages; choose one"):
        choose_target(None, TARGETS)
    with pytest.raises(OptionError) as caught:
        choose_target("deu", TARGETS)
    assert str(caught.value).endswith(
        "choose one with --into, or begin the text with its mark, as >>cmn_Hans<<: "
        "cmn_Hans, fra, pt_br, zlm_Latn"
    )
