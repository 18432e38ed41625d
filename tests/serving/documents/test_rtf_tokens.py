import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.work import grows_linearly

from dragoman.serving.documents.rtf_tokens import (
    ISLAND,
    MOST_GROUPS,
    MOST_ISLANDS,
    SPAN,
    split_rtf,
)
from dragoman.serving.service_types import ServiceError

FONTS = (
    r"{\fonttbl{\f0\fswiss\fcharset0 Arial;}{\f1\fcharset204 Arial;}{\f2\fcharset2 Symbol;}"
    r"{\f3\fcharset128 Mincho;}}"
)


def rtf(body, head=r"\ansi\ansicpg1252\deff0"):
    return f"{{\\rtf1{head}{FONTS}{body}}}"


def shown(body, **head):
    return [each.shown for each in split_rtf(rtf(body, **head)) if each.kind == "text"]


PIECES = ["{", "}", "{\\b ", "\\b0 ", "\\par\n", "\\u233?", "\\'e9", "a b", "\n", "\\uc2 ",
          "{\\*\\x ", "{\\pict 00", "\\bin2 ", "{\\footnote ", "\\~", "\\\n", "é"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_joined_tokens_are_the_input(body):
    try:
        tokens = split_rtf(rtf(body))
    except ServiceError as error:
        assert "the file" in error.message  # noqa: PT017
        return
    assert "".join(each.raw for each in tokens) == rtf(body)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (r"caf\'e9", "café"),
        ("caf\xe9", "café"),
        (r"caf\u233\'e9 ole", "café ole"),
        (r"\uc2 caf\u233ee ole", "café ole"),
        (r"\uc0 caf\u233  ole", "café ole"),
        (r"\u-10179?\u-8704?", "😀"),
        (r"\f1\'cf\'f0\'e8", "При"),
        (r"\f3\'93\'fa\'96\'7b", "日本"),
        (
            r"\'93a\'94 \ldblquote b\rdblquote  \emdash\~\-\_\{\}\\",
            "“a” “b” —\u00a0\u00ad\u2011{}\\",
        ),
        ("wo\r\nrd", "word"),
        (r"\f1\plain\'e9", "é"),
    ],
)
def test_text_in_every_spelling(body, text):
    assert shown(body) == [text]


@pytest.mark.parametrize(
    ("head", "text"),
    [
        (r"\ansi\ansicpg1251", "й"),
        (r"\mac\deff9", "È"),
        (r"\pc\deff9", "Θ"),
        (r"\ansi\ansicpg99999\deff9", "é"),
        (r"\ansi\ansicpg1251\deff1", "й"),
    ],
)
def test_encodings_of_the_file(head, text):
    assert shown(r"\f9\'e9", head=head) == [text]


def test_a_group_ends_what_is_said_in_it():
    assert shown(r"{\f1\uc2\'cf\u233ee}\'cf\u233e") == ["Пé", "Ïé"]


def test_what_nobody_reads_is_one_token():
    kept = [
        r"{\*\unknown {text} more}", r"{\info{\title A}}", r"{\pict\wmetafile8 0{0}}",
        r"{\stylesheet{\s1 heading 1;}}", r"{\*\bkmkstart here}", r"{\listtext 1.\tab}",
        "{\\pict\\bin3 }}}0}",
    ]  # fmt: skip
    for each in kept:
        tokens = split_rtf(rtf(f"a{each}b"))
        assert ("other", each) in [token[:2] for token in tokens]
        assert [token.shown for token in tokens if token.kind == "text"] == ["a", "b"]


def test_hidden_and_deleted_text_and_letters_that_are_pictures_are_not_read():
    assert shown(r"a{\v b}{\deleted c}{\f2 d}{\v0 e}") == ["a", "e"]


def test_what_is_read_by_itself_is_an_island():
    names = {
        body: [each.name for each in split_rtf(rtf(body)) if each.kind == "start"]
        for body in (r"{\footnote a}", r"{\*\footnote a}", r"{\shp{\*\shpinst{\shptxt a}}}")
    }
    assert [each.count(ISLAND) for each in names.values()] == [1, 1, 2]


def spans(body):
    """Show spans as angle brackets."""
    marks = {"start": "<", "end": ">"}
    return "".join(
        marks[each.kind] if each.name == SPAN else each.shown or ""
        for each in split_rtf(rtf(body))
        if each.kind == "text" or each.name == SPAN
    )


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (r"a \b b\b0  c", "a <b> c"),
        (r"a \f1\b b\f0\b0  c", "a <b> c"),
        (r"a \b b\i c\i0 d\b0  e", "a <b<c>d> e"),
        (r"a \b b\i c\b0 d\i0  e", "a bcd e"),
        (r"a \ul b\ulnone  c \super d\nosupersub  e", "a <b> c <d> e"),
        (r"\fs20 a \fs28 b\fs20  c", "a <b> c"),
        (r"a \b b\par c\b0  d", "a bc d"),
        (r"a {\b b}\i c\plain d", "a b<c>d"),
    ],
)
def test_control_words_that_end_each_others_effect_are_spans(body, found):
    assert spans(body) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Hello", r"the file is no RTF: it does not begin with \{\\rtf"),
        (r"{\rtf1 a", "the file is damaged: it ends inside of a group"),
        (r"{\rtf1 {a}", "the file is damaged: it ends inside of a group"),
        ("{\\rtf1 a\\", "the file is damaged: it ends in a backslash"),
        ("{\\rtf1 " + "{" * MOST_GROUPS, f"the file has more than {MOST_GROUPS} groups in each ot"),
        (
            "{\\rtf1 " + "{\\footnote " * (MOST_ISLANDS + 1),
            f"the file has more than {MOST_ISLANDS} notes in each other",
        ),
    ],
)
def test_wrong_and_hostile_files_are_refused(text, message):
    with pytest.raises(ServiceError, match=message) as caught:
        split_rtf(text)
    assert caught.value.kind == "bad_request"


def test_what_stands_behind_the_end_stays():
    assert split_rtf(rtf("a") + "\n}\0")[-1][:2] == ("other", "\n}\0")


@pytest.mark.parametrize(
    "piece",
    ["\\b a\\b0 ", "\\b \\i ", "{\\b a}", "\\'e9", "\\u233?", "\\f1 a\\f2 ", "{\\pict 00}", "\n"],
)
def test_time_is_linear(piece):
    assert grows_linearly(lambda size: split_rtf(rtf(piece * size)), 2000)
