import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serving.documents.word_by_word import keep, translate

from dragoman.serving.documents import resource_documents
from dragoman.serving.documents.documents import read_document
from dragoman.serving.service_types import ServiceError


def read(text, extension):
    return read_document(f"a{extension}", text.encode(), 10_000_000)


def rewrite(text, extension, write=translate):
    return write(read(text, extension)).decode()


TEXTS = st.text(st.characters(exclude_characters="%{}$@:&_[]<>", exclude_categories=["Cs"]))
VALUES = st.recursive(
    TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
JSON = """{
    "title" : "Hello {name}",
    "@title": {"description": "for people", "type": "text"},
    "list": ["one", 2, true, "say \\"yes\\"", null],
    "deep": {"key": {"n": "%1$d dogs\\nand cats"}, "empty": "", "number": "12"}
}
"""


def test_values_of_json_are_translated_and_nothing_else():
    expected = JSON
    for text in ("Hello", '"one"', "say", "yes", "dogs", "and cats"):
        expected = expected.replace(text, text.upper())
    assert rewrite(JSON, ".json") == expected
    assert rewrite(JSON, ".arb", keep) == JSON


def test_spelling_of_json_is_kept():
    text = '{"a": "caf\\u00e9", "b": "\\/x\\/ 1"}'
    assert rewrite(text, ".json", keep) == text
    assert rewrite(text, ".json") == '{"a": "CAF\\u00c9", "b": "/X/ 1"}'
    assert rewrite('{"a": "café"}', ".json") == '{"a": "CAFÉ"}'


@settings(max_examples=25)
@given(VALUES)
def test_any_json_is_kept(value):
    for ensure_ascii in (False, True):
        text = json.dumps(value, ensure_ascii=ensure_ascii)
        assert json.loads(rewrite(text, ".json", keep)) == value
        json.loads(rewrite(text, ".json"))


def test_half_a_surrogate_pair_stays():
    text = '["a \\ud800 b", "dog"]'
    assert rewrite(text, ".json") == '["a \\ud800 b", "DOG"]'


YAML = """\
# The words of the program
en:  # its language
  greeting: Hello {name}   # said first
  "quoted key": "Say \\"hi\\" & go"
  single: 'It''s %s'
  "yes": no
  count: 12
  date: 2024-01-01
  literal: |
    First line.
      Indented line.

    Last line.
  folded: >-
    Folded text
    goes on.

    Second paragraph.
  list: [one, 'two', three: four]
  anchor: &x some text
  alias: *x
  ruby: !ruby/symbol word
  string: !!str 12 dogs
  long: over
    two lines
  - not a list: here
  kept: |+
    to the end

last: "dog"
""".replace("  - not a list: here\n", "")
UPPER = """\
# The words of the program
en:  # its language
  greeting: HELLO {name}   # said first
  "quoted key": "SAY \\"HI\\" & GO"
  single: 'IT''S %s'
  "yes": no
  count: 12
  date: 2024-01-01
  literal: |
    FIRST LINE.
      INDENTED LINE.

    LAST LINE.
  folded: >-
    FOLDED TEXT GOES ON.

    SECOND PARAGRAPH.
  list: [ONE, 'TWO', three: FOUR]
  anchor: &x SOME TEXT
  alias: *x
  ruby: !ruby/symbol word
  string: !!str 12 DOGS
  long: OVER TWO LINES
  kept: |+
    TO THE END

last: "DOG"
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_values_of_yaml_are_translated_in_their_places(end):
    text = YAML.replace("\n", end)
    assert rewrite(text, ".yaml") == UPPER.replace("\n", end)
    assert rewrite(text, ".yml", keep) == text


@pytest.mark.parametrize(
    "translation",
    ["yes", "12", "a: b", "- a", "a #b", "[a", "*a", "!a", "a:", "'a", '"a', "?", "a, b", "null",
     "é\u2028b", "a\\b", "2024-13-45", "{x", "%a", "@a", "a]"],
)  # fmt: skip
@pytest.mark.parametrize(
    "text", ["k: dog", "k: [dog]", "k: 'dog'", 'k: "dog"', "k: |\n  dog", "k: >-\n  dog\n", "- dog"]
)
def test_whatever_a_translation_is_it_is_a_string_of_yaml(text, translation):
    written = read(text, ".yaml").write([(translation, ())]).decode()
    expected, found = str(yaml.safe_load(text)), str(yaml.safe_load(written))
    assert found == expected.replace("'dog'", repr(translation)).replace(
        "'dog\\n'", repr(f"{translation}\n")
    )


@settings(max_examples=25)
@given(VALUES)
@pytest.mark.parametrize("style", [None, "'", '"', "|", ">"])
def test_any_yaml_is_kept(style, value):
    text = yaml.safe_dump(value, allow_unicode=True, default_style=style)
    assert yaml.safe_load(rewrite(text, ".yaml", keep)) == yaml.safe_load(text)
    translate(read(text, ".yaml"))


@pytest.mark.parametrize(
    ("extension", "text", "message"),
    [
        (".json", '{"a": }', r"the file is not JSON \(Expecting value: line 1"),
        (".json", '{"a": NaN}', "NaN is no number of JSON"),
        (".json", "[" * 100_000, "the file has objects in objects too deep"),
        (".yaml", "a: [b", r"the file is not YAML \(line 1: "),
        (".yaml", "a: b: c", r"the file is not YAML \(line 1: "),
        (".yaml", "a: \x01", "a character that may not be there"),
        (".yaml", "[" * 300 + "]" * 300, "the file has objects in objects too deep"),
    ],
)
def test_wrong_files_are_refused(extension, text, message):
    with pytest.raises(ServiceError, match=message) as caught:
        read(text, extension)
    assert caught.value.kind == "bad_request"
    assert "\n" not in caught.value.message


def test_a_number_of_any_length_is_read():
    text = '{"a": ' + "1" * 10_000 + ', "b": "dog"}'
    assert rewrite(text, ".json") == text.replace("dog", "DOG")


def test_long_yaml_is_refused(monkeypatch):
    monkeypatch.setattr(resource_documents, "MOST_YAML", 5)
    with pytest.raises(ServiceError, match="the document has 6 characters, but 5 are the most"):
        read("a: dog", ".yaml")


def test_aliases_do_not_grow():
    text = "a: &a [dog]\n" + "".join(
        f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert read(text, ".yaml").texts == ["dog"]
