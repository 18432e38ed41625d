import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serving.documents.word_by_word import translate_text
from tests.work import grows_linearly

from dragoman.serving.markup.placeholders import parse_message

PLACEHOLDERS = [
    "{name}", "{0}", "{}", "{price:.2f}", "{n, number, percent}", "{ $user }", "{{x}}",
    "{{{html}}}", "{{ user.name | title }}", "{% url x %}", "${total}", "$name", "$(home)",
    "%{count}", "#{count}", "%s", "%d", "%1$s", "%2$d", "%-5.2f", "%lu", "%@", "%1$@", "%%",
    "%(who)s", "%(n)d", "%n", "%1", "%L2", "%name%", "$t(common.ok)", "$t(a, { b: (c) })",
    "@:menu.open", "@count", ":count", "__name__", "[[name]]", "<<name>>", "&nbsp;", "&#160;",
    "https://a.example/b?c=d", "ann@b.example",
]  # fmt: skip


def rewrite(text, change=translate_text):
    message = parse_message(text)
    return message.rebuild([change(each) for each in message.segments])


@pytest.mark.parametrize("placeholder", PLACEHOLDERS)
@pytest.mark.parametrize("frame", ["{}", "see {}", "{} is here", "open the {} file", "<b>a {}</b>"])
def test_placeholders_are_kept_and_words_translated(placeholder, frame):
    text = frame.replace("{}", placeholder)
    assert placeholder not in "".join(parse_message(text).segments)
    expected = frame.upper().replace("<B>", "<b>").replace("</B>", "</b>")
    assert rewrite(text) == expected.replace("{}", placeholder)


def test_what_is_no_placeholder_is_translated():
    text = "100% sure, 50% of it; a: b, 5 < 6 & 7 > 2, $5"
    assert parse_message(text).segments == [text]
    assert rewrite(text) == text.upper()


PLURAL = (
    "You have {n, plural, offset:1 =0 {no letters} one {# new letter} "
    "other {# <b>new</b> {x}}} now."
)


def test_forms_of_plurals_are_sentences_of_their_own():
    assert parse_message(PLURAL).segments == [
        "You have now.", "no letters", "new letter", "new",
    ]  # fmt: skip
    assert rewrite(PLURAL) == (
        "YOU HAVE {n, plural, offset:1 =0 {NO LETTERS} one {# NEW LETTER} "
        "other {# <b>NEW</b> {x}}} NOW."
    )


def test_plurals_may_be_in_choices():
    text = (
        "{sex, select, female {{n, plural, one {her dog} other {her # dogs}}} other {their dogs}}"
    )
    assert parse_message(text).segments == ["her dog", "her dogs", "their dogs"]
    assert rewrite(text) == (
        "{sex, select, female {{n, plural, one {HER DOG} other {HER # DOGS}}} other {THEIR DOGS}}"
    )


@pytest.mark.parametrize(
    "text", ["a {n, plural, one {b} other {c}", "{n, plural, one {{x, select, a {b}}"]
)
def test_plurals_with_wrong_braces_stay_as_they_are(text):
    assert parse_message(text).segments == []
    assert rewrite(text) == text


def test_line_breaks_stay():
    text = "One line\n  of {x}\r\n\nand another"
    assert parse_message(text).segments == ["One line", "of", "and another"]
    assert rewrite(text) == "ONE LINE\n  OF {x}\r\n\nAND ANOTHER"


def test_tags_in_a_message_are_kept():
    text = 'Click <a href="{url}">here</a> or <0>there</0><br/>& <code>keep me</code>'
    assert rewrite(text) == (
        'CLICK <a href="{url}">HERE</a> OR <0>THERE</0><br/>& <code>keep me</code>'
    )


@given(text=st.text("ab {}%s$(t)<>&;:#/,\n\"'-1pluraone", max_size=60))
def test_anything_is_read_and_kept(text):
    written = rewrite(text, lambda each: (each, [(0, len(each), 0, len(each))]))
    assert Counter("".join(written.split())) == Counter("".join(text.split()))


@given(
    parts=st.lists(st.sampled_from([*PLACEHOLDERS, "dog", "the", "house"]), max_size=12),
    words=st.lists(st.sampled_from(["chien", "le", "maison"]), max_size=12),
    seed=st.randoms(use_true_random=False),
)
def test_nothing_is_lost_or_doubled_whatever_the_translation_and_its_alignment(parts, words, seed):
    def change(text):
        shown = " ".join(words)
        spans = [
            (begin, begin + 1, place, place + 1)
            for place in range(len(shown))
            for begin in [seed.randrange(len(text))]
        ]
        return shown, spans

    written = rewrite(" ".join(parts), change)
    kept = Counter(part for part in parts if part in PLACEHOLDERS)
    for word in ("chien", "le", "maison"):
        written = re.sub(rf"(?<![\w.=/$]){word}(?![\w.])", " ", written)
    found = Counter(re.sub(r"\s", "", written))
    assert found == Counter(re.sub(r"\s", "", "".join(kept.elements())))


@pytest.mark.parametrize(
    "piece",
    ["{", "}", "{{", "$t(", "a", "%", "{a, plural, one {", "__", "[[", " ", "<a ", "&", "a@"],
)
def test_time_is_linear(piece):
    assert grows_linearly(lambda size: rewrite(piece * (size // len(piece))), 1500)
