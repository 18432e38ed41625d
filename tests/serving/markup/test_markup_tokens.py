import contextlib
import html
from collections import Counter
from html.parser import HTMLParser

import pytest
from defusedxml import ElementTree
from hypothesis import example, given
from hypothesis import strategies as st
from tests.work import grows_linearly

from dragoman.serving.markup.markup_tokens import (
    decode_html,
    decode_xml,
    encode_text,
    read_attributes,
    split_html,
    split_xml,
)
from dragoman.serving.service_types import ServiceError

PIECES = st.sampled_from(
    [
        "<",
        ">",
        "/",
        "=",
        "&",
        ";",
        "!",
        "-",
        "--",
        "?",
        "'",
        '"',
        "a",
        "b",
        "i",
        "p",
        "br",
        "x",
        "script",
        "style",
        "title",
        "textarea",
        "<a>",
        "</a>",
        "<b/>",
        "<!--",
        "-->",
        "<!doctype",
        "<?",
        "]]>",
        "<![CDATA[",
        "&amp;",
        "&lt",
        "&#39;",
        "&#x27;",
        "&bad;",
        "é",
        "日",
        "\n",
        "\t",
    ]
)
SOUP = st.lists(PIECES | st.sampled_from([" ", "word"]), max_size=40).map("".join)


@given(text=SOUP | st.text(max_size=40))
@example("<a title='x>y")
@example("<title>a<b></title>c")
@example("</")
@example("<script>if (a</b>c) {}</SCRIPT >x")
def test_joined_tokens_of_html_are_the_text(text):
    try:
        tokens = list(split_html(text))
    except ServiceError:
        assert "<!doctype" in text.lower() or "<!entity" in text.lower()
        return
    assert "".join(token.raw for token in tokens) == text


@given(text=SOUP | st.text(max_size=40))
def test_joined_tokens_of_xml_are_the_text_or_it_is_refused(text):
    try:
        tokens = list(split_xml(text))
    except ServiceError:
        assert "<" in text
    else:
        assert "".join(token.raw for token in tokens) == text


class Oracle(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.seen = []

    def handle_starttag(self, tag, attributes):
        self.seen.append(("start", tag, dict(reversed([(k, v or "") for k, v in attributes]))))

    def handle_endtag(self, tag):
        self.seen.append(("end", tag))

    def handle_data(self, data):
        self.seen.append(("text", data))


NAMES = st.sampled_from(["a", "B", "my-tag", "h1", "p"])
VALUES = st.text("ab &;'<>=\n", max_size=6)


@st.composite
def attributes(draw):
    name = draw(st.sampled_from(["id", "CLASS", "data-x", "disabled"]))
    value = draw(VALUES)
    quoted = st.sampled_from(
        [
            f'{name}="{html.escape(value)}"',
            f"{name} = '{html.escape(value)}'",
            f"{name}=plain",
            name,
        ]
    )
    return draw(quoted)


@st.composite
def tags(draw):
    if draw(st.booleans()):
        return f"</{draw(NAMES)}>"
    return f"<{' '.join([draw(NAMES), *draw(st.lists(attributes(), max_size=3))])}>"


@given(parts=st.lists(tags() | st.text("ab &;\n", min_size=1, max_size=6), max_size=12))
def test_tags_and_attributes_are_those_of_the_standard_library(parts):
    text = "".join(parts)
    oracle = Oracle()
    oracle.feed(text)
    oracle.close()
    seen = []
    for token in split_html(text):
        if token.kind == "start":
            seen.append(("start", token.name, read_attributes(token.raw)))
        elif token.kind == "end":
            seen.append(("end", token.name))
        else:
            seen.append(("text", decode_html(token.raw)))
    expected = [each for each in oracle.seen if each[0] != "text"]
    assert [each for each in seen if each[0] != "text"] == expected
    texts = ["".join(each[1] for each in some if each[0] == "text") for some in (seen, oracle.seen)]
    assert texts[0] == texts[1]


@given(text=st.text(max_size=50))
def test_text_survives_being_written_and_read(text):
    assert decode_html(encode_text(text)) == text
    assert decode_xml(encode_text(text)) == text
    assert "<" not in encode_text(text)


@given(text=st.text("&#x123;ampltgquos ", max_size=30))
def test_references_of_html_are_those_of_the_standard_library(text):
    assert decode_html(text) == html.unescape(text)


@pytest.mark.parametrize("digits", [8, 5000])
def test_endless_references_are_left(digits):
    for raw in (f"&#{'9' * digits};", f"&#x{'f' * digits};"):
        assert decode_html(raw) == raw
        assert decode_xml(raw) == raw


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("&amp;&lt;&gt;&quot;&apos;", "&<>\"'"),
        ("&#233;&#xe9;", "éé"),
        ("&nbsp;&bad; &", "&nbsp;&bad; &"),
        ("&#0;&#xD800;&#xFFFF;&#8;", "&#0;&#xD800;&#xFFFF;&#8;"),
    ],
)
def test_xml_knows_five_names_and_all_its_characters(raw, text):
    assert decode_xml(raw) == text


def test_foreign_entities_are_tokens_by_themselves():
    kinds = [(token.kind, token.raw) for token in split_xml("a &amp; b &unit; c&#0;")]
    assert kinds == [("text", "a &amp; b "), ("other", "&unit;"), ("text", " c"), ("other", "&#0;")]


XML = "<a b=\"1\" c='2'><!-- x --><d/>text<![CDATA[<raw>]]><?pi?></a>"


def test_tokens_of_xml():
    kinds = Counter(token.kind for token in split_xml(XML))
    expected = {"start": 1, "end": 1, "empty": 1, "text": 1, "other": 2, "declaration": 1}
    assert kinds == expected
    assert ElementTree.fromstring(XML).tag == "a"


@pytest.mark.parametrize(
    "text",
    ["a < b", "<1>", "<a b>", "<a b=c>", "</a/>", "<a", "<!-- ", "<![CDATA[ ", "<?x", '<a b="<">'],
)
def test_wrong_xml_is_refused(text):
    with pytest.raises(
        ServiceError, match=r"Tag handling parsing failed: character . begins no tag"
    ):
        list(split_xml(f"{text}"))


BOMB = '<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol1 "&lol;&lol;">]><x>&lol1;</x>'


@pytest.mark.parametrize("split", [split_html, split_xml])
@pytest.mark.parametrize("text", [BOMB, BOMB.replace("DOCTYPE", "doctype"), '<!ENTITY a "b">'])
def test_declared_entities_are_refused(split, text):
    with pytest.raises(ServiceError, match="character 1 declares entities; leave them out"):
        list(split(text))


def test_a_plain_declaration_is_kept():
    for split in (split_html, split_xml):
        token = next(iter(split('<!DOCTYPE html SYSTEM "about:legacy-compat"><p/>')))
        assert token.kind == "declaration"


HOSTILE = ["<", "<a ", "<a b=", "<a b='", "<!--", "<!-- -", "</", "<title>", "<a/", "&", "&#", "<!"]


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("split", [split_html, split_xml])
def test_time_is_linear(split, piece):
    def count_tokens(size):
        with contextlib.suppress(ServiceError):
            assert sum(1 for _ in split(piece * size)) > 0

    assert grows_linearly(count_tokens, 4000)
