import html

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.serving.markup.tag_placement import Tag, place_tags

WORDS = ["un", "deux", "H2O", "日本", "«", "l’eau", "."]
SPANS = st.lists(st.tuples(*[st.integers(-3, 40)] * 4), max_size=12)


@st.composite
def sentences(draw):
    """Give a sentence of ten words, and elements that are around some of them."""
    source = " ".join(f"w{number}" for number in range(10))
    places = [0, *(place for place, each in enumerate(source) if each == " "), len(source)]
    names = iter("abcdefghijklmnopqrstuvwxyz")

    def build(first, last, depth):
        inner, place = [], first
        while depth and place <= last and draw(st.booleans()):
            begin = draw(st.integers(place, last))
            end = draw(st.integers(begin, last))
            name = next(names, None)
            if name is None:
                break
            inner.append(
                Tag(
                    opening=f"<{name}>",
                    closing=f"</{name}>",
                    begin=places[begin],
                    end=places[end],
                    is_spaced_before=draw(st.booleans()),
                    is_spaced_after=draw(st.booleans()),
                    inner=build(begin, end, depth - 1),
                )
            )
            place = end
        return inner

    return source, Tag(begin=0, end=len(source), inner=build(0, len(places) - 1, 3))


def nesting(tag):
    """Write elements without text, those beside each other in the order of their names."""
    inner = "".join(sorted(nesting(each) for each in tag.inner))
    return f"{tag.opening}{inner}{tag.closing}"


def read(written):
    """Read what `nesting` writes back from a marked up text."""
    stack, text = [[]], []
    place = 0
    while place < len(written):
        if written[place] != "<":
            text.append(written[place])
            place += 1
            continue
        end = written.index(">", place) + 1
        tag = written[place:end]
        if tag.startswith("</"):
            inner = "".join(sorted(stack.pop()))
            stack[-1].append(f"<{tag[2:-1]}>{inner}{tag}")
        else:
            stack.append([])
        place = end
    assert len(stack) == 1
    return "".join(sorted(stack[0])), html.unescape("".join(text))


@given(
    sentence=sentences(),
    translation=st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join),
    spans=SPANS,
)
@settings(max_examples=150)
def test_every_tag_is_there_once_in_its_place_for_any_alignment(sentence, translation, spans):
    source, root = sentence
    written = place_tags(root, source, translation, spans, encode=html.escape)
    elements, text = read(written)
    assert elements == "".join(sorted(nesting(each) for each in root.inner))
    assert "".join(text.split()) == "".join(translation.split())


@given(sentence=sentences())
def test_a_sentence_that_stays_keeps_its_elements_around_the_same_words(sentence):
    source, root = sentence
    places = [(match, match + 2) for match in range(0, len(source), 3)]
    spans = [(*each, *each) for each in places]
    written = place_tags(root, source, source, spans, encode=str)
    for tag in root.inner:
        inside = written.split(tag.opening)[1].split(tag.closing)[0]
        assert read(inside)[1].split() == source[tag.begin : tag.end].split()


def tags(*around):
    """Put elements around parts of “the old dog sees it”."""
    source = "the old dog sees it"
    inner = [
        Tag(opening=f"<{name}>", closing=f"</{name}>", begin=begin, end=begin + len(part))
        for name, part in around
        for begin in [source.index(part)]
    ]
    return Tag(begin=0, end=len(source), inner=inner), source


def link(source, translation, pairs):
    return [
        (source.index(one), source.index(one) + len(one), translation.index(other),
         translation.index(other) + len(other))
        for one, other in pairs
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("around", "translation", "pairs", "expected"),
    [
        ([("b", "old dog")], "le chien vieux", [("old", "vieux"), ("dog", "chien")],
         "le <b>chien vieux</b>"),
        ([("b", "old"), ("i", "dog")], "le chien vieux", [("old", "vieux"), ("dog", "chien")],
         "le <i>chien</i> <b>vieux</b>"),
        ([("b", "the old dog")], "il le voit", [("it", "il"), ("sees", "voit")],
         "<b></b>il le voit"),
        ([("b", "the old dog sees it")], "il le voit", [("dog", "le")], "<b>il le voit</b>"),
        ([("b", "dog")], "日本語", [("old", "日"), ("dog", "本"), ("it", "語")], "日<b>本</b>語"),
    ],
)  # fmt: skip
def test_words_take_their_tags_along(around, translation, pairs, expected):
    root, source = tags(*around)
    spans = link(source, translation, pairs)
    assert place_tags(root, source, translation, spans, encode=str) == expected


def test_without_alignment_words_are_in_the_same_order():
    root, source = tags(("b", "old dog"))
    assert place_tags(root, source, "AAA BBB CCC DDDD EE", (), encode=str) == (
        "AAA <b>BBB CCC</b> DDDD EE"
    )


def test_white_space_around_is_as_wanted():
    root, source = tags()
    assert place_tags(root, source, "  un ", (), encode=str, around=("\n", "\t")) == "\nun\t"


def test_text_stands_only_where_it_may():
    runs = [
        Tag(opening=f"<{name}>", closing=f"</{name}>", begin=begin, end=end)
        for name, begin, end in (("r", 0, 4), ("s", 4, 11), ("t", 11, 19))
    ]
    root = Tag(begin=0, end=19, holds_text=False, inner=runs)
    source, translation = "the old dog sees it", "le chien vieux voit"
    spans = link(source, translation, [("the", "le"), ("dog", "chien"), ("sees", "voit")])
    assert place_tags(root, source, translation, spans, encode=str, around=(" ", "")) == (
        "<r> le </r><s>chien vieux </s><t>voit</t>"
    )
    assert (
        place_tags(root, source, "", (), encode=str, around=(" ", " ")) == "<r></r><s></s><t></t>"
    )
    assert place_tags(root, source, "x", [(0, 0, 0, 0)], encode=str).count("x") == 1


def test_an_element_that_is_white_space_replaces_some():
    space = Tag(opening="<s/>", begin=7, end=7, holds_text=False, is_space=True)
    root = Tag(begin=0, end=19, inner=[space])
    assert place_tags(root, "the old dog sees it", "AAA BBB CCC DDDD EE", (), encode=str) == (
        "AAA BBB<s/>CCC DDDD EE"
    )
