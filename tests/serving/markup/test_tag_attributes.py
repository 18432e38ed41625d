import pytest

from dragoman.serving.markup.markup import parse_markup, parse_tokens
from dragoman.serving.markup.markup_tokens import split_html
from dragoman.serving.markup.tag_rules import HTML_PAGE


def translate(page):
    marked = parse_tokens(list(split_html(page)), HTML_PAGE)
    return marked.rebuild([(each.upper(), ()) for each in marked.segments])


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ('<img src="dog.png" alt="The dog">', '<img src="dog.png" alt="THE DOG">'),
        ("<img alt='A &amp; b'/>", "<img alt='A &amp; B'/>"),
        ("<img alt=dog src=x>", '<img alt="DOG" src=x>'),
        (
            '<input placeholder=" Your name " value="Ann">',
            '<input placeholder=" YOUR NAME " value="Ann">',
        ),
        ('<input type=submit value="Send">', '<input type=submit value="SEND">'),
        (
            '<p title="One">two <b title="three">four</b></p>',
            '<p title="ONE">TWO <b title="THREE">FOUR</b></p>',
        ),
        ('<meta name="description" content="A dog">', '<meta name="description" content="A DOG">'),
        ('<meta name="viewport" content="width=device-width">', None),
        ('<img alt="dog.png" title="12">', None),
        ('<img translate="no" alt="dog"><p class="notranslate" title="dog">x</p>', None),
        ('<p title="">A</p>', '<p title="">A</p>'),
        ("<textarea>One\n  two</textarea>", "<textarea>ONE\n  TWO</textarea>"),
        ("<title>One</title>", "<title>ONE</title>"),
        (
            "<p>a <svg id=b><metadata>c</metadata><style>d</style>"
            "<g><text><tspan>e</tspan> f</text>"
            "<desc>g</desc></g></svg> h</p>",
            "<p>A <svg id=b><metadata>c</metadata><style>d</style>"
            "<g><text><tspan>E</tspan> F</text>"
            "<desc>G</desc></g></svg> H</p>",
        ),
    ],
)
def test_all_that_people_read_of_a_page_is_translated(page, expected):
    assert translate(page) == (page if expected is None else expected)


def test_quotation_marks_do_not_end_an_attribute():
    marked = parse_tokens(list(split_html("<img alt='a \"b\"'>")), HTML_PAGE)
    assert marked.segments == ['a "b"']
    assert marked.rebuild([("l'« b »", ())]) == "<img alt='l&#39;« b »'>"


def test_attributes_stay_in_texts_of_other_programs():
    text = '<p><img alt=":cat:"> One <textarea>two</textarea></p>'
    assert parse_markup(text, "html").segments == ["One"]
