import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from defusedxml import ElementTree
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.work import grows_linearly

from dragoman.serving.markup.markup import parse_markup
from dragoman.serving.markup.markup_elements import MAX_DEPTH, MAX_ISLAND_DEPTH
from dragoman.serving.markup.markup_tokens import decode_xml, split_html, split_xml
from dragoman.serving.service_types import ServiceError

WORDS = st.sampled_from(["the", "old", "dog", "H2O", "l'eau", "日本", "a&amp;b", "&lt;", "?", "—"])
SPANS = st.lists(st.tuples(*[st.integers(-2, 60)] * 4), max_size=12)
TRANSLATIONS = st.lists(
    st.sampled_from(["le", "vieux", "chien.", "H2O", "«", "日本語", "<b>", "&", "l’eau"]),
    max_size=9,
).map(" ".join)


def word_spans(text):
    return [match.span() for match in re.finditer(r"\S+", text)]


def translate(text, kind, *answers, **said):
    """Rebuild with translations, each a text and pairs of words that belong together."""
    marked = parse_markup(text, kind, **said)
    translations = []
    for segment, (answer, links) in zip(marked.segments, answers, strict=True):
        source, target = word_spans(segment), word_spans(answer)
        translations.append((answer, [(*source[one], *target[other]) for one, other in links]))
    return marked.rebuild(translations)


def keep(text, kind, **said):
    """Rebuild with every text as it is."""
    marked = parse_markup(text, kind, **said)
    return marked.rebuild(
        [(each, [(*span, *span) for span in word_spans(each)]) for each in marked.segments]
    )


@st.composite
def trees(draw, names=("b", "i", "x"), depth=3):
    """Give well formed markup with a number in each element."""
    numbers = iter(range(1000))

    def build(level):
        parts = []
        for _ in range(draw(st.integers(0, 3))):
            choice = draw(st.integers(0, 4 if level else 2))
            if choice <= 1:
                parts.append(" ".join(draw(st.lists(WORDS, max_size=3))))
                parts.append(draw(st.sampled_from(["", " ", "\n "])))
            else:
                name, number = draw(st.sampled_from(names)), next(numbers)
                if choice == 2:
                    parts.append(f'<{name} id="{number}"/>')
                else:
                    parts.append(f'<{name} id="{number}">{build(level - 1)}</{name}>')
        return "".join(parts)

    return build(depth)


def paths(text):
    """Say of each element of XML which ones it is inside of, and count them."""
    found = Counter()

    def walk(element, path):
        path = (*path, (element.tag, element.get("id")))
        found[path] += 1
        for each in element:
            walk(each, path)

    root = ElementTree.fromstring(f"<root>{text}</root>")
    walk(root, ())
    return found, "".join(root.itertext())


@given(text=trees(), data=st.data())
@settings(max_examples=120)
def test_elements_of_xml_survive_any_translation_and_any_alignment(text, data):
    marked = parse_markup(text, "xml")
    translations = [data.draw(st.tuples(TRANSLATIONS, SPANS)) for _ in marked.segments]
    rebuilt = marked.rebuild(translations)
    before, _ = paths(text)
    after, read = paths(rebuilt)
    assert after == before
    # Nothing of the translations is lost or doubled, and nothing is added but white space.
    kept = "".join(each for each in marked.parts if isinstance(each, str))
    kept = "".join(decode_xml(each.raw) for each in split_xml(kept) if each.kind == "text")
    expected = "".join(each for each, _ in translations) + kept
    assert Counter("".join(read.split())) == Counter("".join(expected.split()))


@given(text=trees(names=("b", "code", "p", "button", "em")), data=st.data())
@settings(max_examples=120)
def test_elements_of_html_survive_any_translation_and_any_alignment(text, data):
    marked = parse_markup(text, "html")
    rebuilt = marked.rebuild([data.draw(st.tuples(TRANSLATIONS, SPANS)) for _ in marked.segments])
    assert paths(rebuilt)[0] == paths(text)[0]


class Seen(HTMLParser):
    """Counts all that is no text, as the standard library reads it."""

    def __init__(self, text):
        super().__init__()
        self.tags = Counter()
        self.feed(text)
        self.close()

    def handle_starttag(self, *_):
        self.tags[self.get_starttag_text()] += 1

    def handle_endtag(self, tag):
        self.tags[f"</{tag}>"] += 1

    def handle_comment(self, data):
        self.tags[data] += 1


SOUP = st.lists(
    st.sampled_from(
        [
            "<b>",
            "</b>",
            "<i class=x>",
            "</i>",
            "<p>",
            "</p>",
            "<br>",
            "<img/>",
            "<li>",
            "<ul>",
            "</ul>",
            "<span translate=no>",
            "</span>",
            "<!--c-->",
            "<code>",
            "</code>",
            "<button>",
            "</button>",
            "<td>",
            "<a>",
            "</a>",
            "&amp;",
            "&",
            "one",
            "two",
            "three",
            ".",
            "1",
            "<pre>",
            "</pre>",
            "<title>",
            "</title>",
        ]
    )
    | st.sampled_from([" ", "\n"]),
    max_size=25,
).map("".join)


@given(text=SOUP, data=st.data())
@settings(max_examples=150)
@example("<title><b>", None)
def test_tags_of_wrong_html_survive_too(text, data):
    marked = parse_markup(text, "html")
    translations = [
        data.draw(st.tuples(TRANSLATIONS, SPANS)) if data else ("x", ()) for _ in marked.segments
    ]
    rebuilt = marked.rebuild(translations)
    tags = [
        Counter(each.raw for each in split_html(some) if each.kind != "text")
        for some in (text, rebuilt)
    ]
    assert tags[0] == tags[1]
    if "title>" not in text:  # Which older standard libraries do not know to have no tags inside.
        assert Seen(rebuilt).tags == Seen(text).tags


@given(text=SOUP)
@settings(max_examples=80)
def test_what_stands_for_itself_stays_where_it_is(text):
    """Translated word by word into itself, a text keeps the order of its tags."""
    rebuilt = keep(text, "html")
    tags = [
        [each.raw for each in split_html(some) if each.kind in ("start", "end")]
        for some in (text, rebuilt)
    ]
    assert tags[0] == tags[1]


@given(text=st.text(max_size=60))
def test_any_text_is_read_as_html(text):
    try:
        marked = parse_markup(text, "html")
    except ServiceError:
        assert re.search("<!(doctype|entity)", text, re.IGNORECASE)
    else:
        marked.rebuild([(each, ()) for each in marked.segments])


def test_tags_follow_their_words():
    assert (
        translate(
            "<p>The <b>red house</b> is <i>big</i>.</p>",
            "html",
            ("La maison rouge est grande.", [(0, 0), (1, 2), (2, 1), (3, 3), (4, 4)]),
        )
        == "<p>La <b>maison rouge</b> est <i>grande</i>.</p>"
    )


def test_elements_may_change_places():
    assert (
        translate("<i>white</i> <b>wine</b>", "html", ("vin blanc", [(0, 1), (1, 0)]))
        == "<b>vin</b> <i>blanc</i>"
    )


def test_a_torn_element_keeps_its_longest_stretch():
    assert (
        translate(
            "He <b>does not want</b> it.",
            "html",
            ("Il ne le veut pas.", [(0, 0), (2, 1), (4, 2), (3, 3), (2, 4)]),
        )
        == "Il ne le <b>veut pas</b>."
    )


def test_copied_words_keep_tags_inside_them():
    assert (
        translate("Drink H<sub>2</sub>O!", "html", ("Bois H2O !", [(0, 0), (1, 1)]))
        == "Bois H<sub>2</sub>O !"
    )


@pytest.mark.parametrize(
    "mark",
    [
        "<sup>1</sup>",
        '<sup id="a"><a href="#b"><span>[</span>12<span>]</span></a></sup>',
        '<a href="#1"><sup>[1]</sup></a>',
        '<a href="#1">[note 1]</a>',
        "<sup>*</sup>",
    ],
)
def test_marks_that_point_to_notes_stay_where_they_are(mark):
    page = f"<p>It is good.{mark} Sophie sings{mark} well.</p>"
    assert parse_markup(page, "html").segments == ["It is good. Sophie sings well."]
    links = [(0, 0), (1, 0), (2, 1), (3, 2), (4, 3), (5, 4)]
    assert translate(page, "html", ("C’est bon. Sophie chante bien.", links)) == (
        f"<p>C’est bon.{mark} Sophie chante{mark} bien.</p>"
    )


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("H<sub>2</sub>O!", "H2O ?", "H<sub>2</sub>O ?"),
        ("un<b>believ</b>able", "incroyable", "in<b>croy</b>able"),
        ("<b>H</b>ello", "Bonjour", "<b>B</b>onjour"),
        ("<b>H</b>ello", "Hallo", "<b>H</b>allo"),
        ("1<sup>er</sup>", "1st", "1<sup>st</sup>"),
        ("singer<i>(1)</i>.", "chanteur(1).", "chanteur<i>(1)</i>."),
        ("a<b>b</b>c<i>d</i>e", "vwxyz", "v<b>w</b>x<i>y</i>z"),
        ("x<b>7</b>y", "vw", "vw<b></b>"),  # nothing else is made bold for it
    ],
)
def test_tags_inside_a_word_stay_around_their_characters(text, answer, expected):
    assert translate(f"<p>{text}</p>", "html", (answer, [(0, 0)])) == f"<p>{expected}</p>"


def test_marks_belong_to_marks():
    links = [(0, 0), (1, 1), (2, 2)]
    assert translate("the (<b>old</b>) <i>dog</i>.", "html", ("le (vieux) chien.", links)) == (
        "le (<b>vieux</b>) <i>chien</i>."
    )


def test_what_is_not_translated_has_its_place_and_its_spaces():
    rebuilt = translate(
        "Please open the page <x>Settings</x> to configure your system.",
        "xml",
        (
            "Bitte öffnen Sie die Seite, um Ihr System einzustellen.",
            [(0, 0), (1, 1), (2, 3), (3, 4), (4, 5), (5, 8), (6, 6), (7, 7)],
        ),
        ignore_tags=frozenset({"x"}),
    )
    expected = "Bitte öffnen Sie die Seite, <x>Settings</x> um Ihr System einzustellen."
    assert rebuilt.replace("Seite <x>Settings</x>,", "Seite, <x>Settings</x>") == expected


def test_placeholders_of_weblate_survive():
    rebuilt = translate(
        'Found <x id="7"></x> of <x id="9"/> files.',
        "xml",
        ("Fichiers trouvés sur.", [(0, 1), (1, 2), (2, 0)]),
        ignore_tags=frozenset({"x"}),
    )
    assert rebuilt == 'Fichiers trouvés <x id="7"></x> sur <x id="9"/>.'


def test_empty_elements_keep_the_spaces_beside_them():
    links = [(0, 0), (1, 1)]
    for around, expected in [
        ("{}<img>{}", "un<img> deux"),
        ("{} <img>{}", "un <img>deux"),
        ("{}<img> {}", "un<img> deux"),
        ("{} <img> {}", "un <img> deux"),
    ]:
        text = around.format("one", "two")
        answer = ("un deux", links if " " in text.replace("<img>", "") else [])
        assert translate(text, "html", answer) == expected


def test_leading_and_trailing_things_stay_at_the_ends():
    text = " <img> <b> the dog</b> <br/> <i>sees </i><img>"
    answers = [("le chien", [(0, 0), (1, 1)]), ("voit", [(0, 0)])]
    assert translate(text, "html", *answers) == " <img> <b>le chien</b> <br/> <i>voit</i> <img>"


def test_entities_are_read_and_written():
    marked = parse_markup("a &lt; b &amp; caf&eacute;&nbsp;!", "html")
    assert marked.segments == ["a < b & café\xa0!"]
    assert marked.rebuild([("c < d & e", ())]) == "c &lt; d &amp; e"


@pytest.mark.parametrize(
    "text",
    [
        "<script>var text = 'hello';</script>",
        "<style>p { color: red }</style>",
        "<code>print it</code>",
        '<p translate="no">Bob</p>',
        "<p translate=NO>Bob <b>and</b> Alice</p>",
        '<span class="a notranslate b">Bob</span>',
        "<div class=notranslate><p>one<p>two</div>",
        "<textarea>mine <b></textarea>",
        "<!-- a comment -->",
        "<svg><text>label</text></svg>",
        "<p> — </p><hr> … 😀",
        "",
    ],
)
def test_some_things_are_left_alone(text):
    marked = parse_markup(text, "html")
    assert marked.segments == []
    assert marked.rebuild([]) == text


def test_what_is_left_alone_does_not_end_a_sentence():
    text = "Use <code>print</code> or <b class='notranslate'>Bob</b> here"
    assert parse_markup(text, "html").segments == ["Use or here"]
    assert keep(text, "html") == text


def test_blocks_end_sentences_and_inline_elements_do_not():
    text = (
        "<h1>One</h1><p>two <em>three</em> <a href=x>four</a><br>five<ul><li>six<li>seven</ul>"
        "<table><tr><td>eight<td>nine</table><title>ten <b></title>"
    )
    expected = ["One", "two three four", "five", "six", "seven", "eight", "nine", "ten <b>"]
    assert parse_markup(text, "html").segments == expected
    assert keep(text, "html") == text.replace("ten <b>", "ten &lt;b&gt;")


def test_elements_around_breaks_stay_in_place():
    text = "<b>one<br>two</b> <a><div>three</div></a> <i>four <p>five</i> six"
    assert parse_markup(text, "html").segments == ["one", "two", "three", "four", "five", "six"]
    assert keep(text, "html") == text


def test_a_button_is_translated_by_itself():
    text = "Press the <button class=x><b>big</b> one</button> to <b>go on</b>"
    assert parse_markup(text, "html").segments == ["Press the to go on", "big one"]
    assert keep(text, "html") == text
    assert parse_markup("<button>only</button>", "html").segments == ["only"]


def test_white_space_of_html_is_one_space_but_for_preformatted_text():
    text = "<p>one\n   two</p><pre>three\n   four</pre>"
    assert parse_markup(text, "html").segments == ["one two", "three\n   four"]


def test_outline_of_xml():
    text = "<doc><title>One</title><par>Two <b>three</b> four</par><par><b>five</b></par></doc>"
    assert parse_markup(text, "xml").segments == ["One", "Two three four", "five"]
    assert parse_markup(text, "xml", finds_outline=False).segments == ["OneTwo three fourfive"]
    split = parse_markup(
        text, "xml", splitting_tags=frozenset({"b"}), inline_tags=frozenset({"par"})
    )
    assert split.segments == ["One", "Two", "three", "four", "five"]
    joined = parse_markup(text, "xml", inline_tags=frozenset({"title", "par"}))
    assert joined.segments == ["OneTwo three four", "five"]


def test_tags_of_html_can_be_told_what_they_are():
    text = "<p>one</p><x>two</x> three"
    marked = parse_markup(
        text, "html", splitting_tags=frozenset({"x"}), inline_tags=frozenset({"p"})
    )
    assert marked.segments == ["one", "two", "three"]
    assert parse_markup(text, "html", frozenset({"X"})).segments == ["one", "three"]


def test_foreign_entities_of_xml_are_not_lost():
    assert keep("Weighs 5 &unit; or more", "xml") == "Weighs 5 &unit; or more"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<a>one", "the text ends where <a> is open"),
        ("one</a>", "</a> stands where no element is open"),
        ("<a><b>one</a></b>", "</a> stands where <b> is open"),
    ],
)
def test_wrong_xml_is_refused(text, message):
    with pytest.raises(ServiceError, match=f"{message}; close every element in order") as caught:
        parse_markup(text, "xml")
    assert caught.value.kind == "bad_request"


@pytest.mark.parametrize("kind", ["html", "xml"])
def test_depth_is_limited(kind):
    def nest(depth, name):
        return f"<{name}>" * depth + "text" + f"</{name}>" * depth

    assert keep(nest(MAX_DEPTH, "b"), kind) == nest(MAX_DEPTH, "b")
    with pytest.raises(ServiceError, match=f"<b> is more than {MAX_DEPTH} elements deep"):
        parse_markup(nest(MAX_DEPTH + 1, "b"), kind)
    with pytest.raises(ServiceError, match="elements deep; send parts"):
        parse_markup("<div>" * 100_000, kind)


def test_islands_in_islands_are_limited():
    def nest(depth):
        return "a <button>" * depth + "text" + "</button> b" * depth

    assert keep(nest(MAX_ISLAND_DEPTH), "html") == nest(MAX_ISLAND_DEPTH)
    with pytest.raises(ServiceError, match=f"more than {MAX_ISLAND_DEPTH} elements deep"):
        parse_markup(nest(MAX_ISLAND_DEPTH + 1), "html")


def test_unclosed_items_of_html_are_not_deep():
    text = "<ul>" + "<li>one<p>two" * 1000
    assert len(parse_markup(text, "html").segments) == 2000


HOSTILE = {
    "void": "a <wbr>",
    "wrong ends": "a </b>",
    "many tags": "<b>a</b> ",
    "empty tags": "<b></b>",
    "islands": "a <button>b</button> ",
    "torn": "<b>a<br></b>",
    "items": "<li>a",
    "opaque": "a <code>b</code> ",
    "text": "some text. ",
}


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_time_is_linear(piece):
    def rebuild(size):
        text = piece * (size // len(piece))
        assert len(keep(text, "html")) >= len(text) - 2

    assert grows_linearly(rebuild, 4000)


@pytest.mark.slow
def test_the_cost_of_deep_and_long_text_is_linear():
    def rebuild(size):
        text = "<b>a " * (MAX_DEPTH - 1) + "word " * size + "</b>" * (MAX_DEPTH - 1)
        assert keep(text, "html").count("<b>") == MAX_DEPTH - 1

    assert grows_linearly(rebuild, 1250)


def test_there_must_be_a_translation_of_every_text():
    with pytest.raises(AssertionError, match="0 translations of 1"):
        parse_markup("text", "html").rebuild([])
