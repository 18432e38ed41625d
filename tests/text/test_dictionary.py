"""IBM Model 1: the textbook's numbers, a plain implementation, and true alignments."""

import json
from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.builtin import LANGUAGE_PAIRS, generate_pairs
from dragoman.errors import FolderError
from dragoman.text.dictionary import Dictionary, estimate_translations, learn_dictionary

TEXTBOOK = [
    (["das", "Haus"], ["the", "house"]),
    (["das", "Buch"], ["the", "book"]),
    (["ein", "Buch"], ["a", "book"]),
]


def probabilities(pairs, num_iterations):
    table = estimate_translations(pairs, num_iterations=num_iterations)
    columns = (table.source_ids, table.target_ids, table.probabilities)
    return {
        (table.source_words[source], table.target_words[target]): float(probability)
        for source, target, probability in zip(*columns, strict=True)
    }


def estimate_plainly(pairs, num_iterations):
    """Model 1 in dictionaries, a word at a time."""
    table = {(e, f): 1.0 for source, target in pairs for e in source for f in target}
    for _ in range(num_iterations):
        counts, totals = defaultdict(float), defaultdict(float)
        for source, target in pairs:
            for f in target:
                norm = sum(table[e, f] for e in source)
                for e in source:
                    counts[e, f] += table[e, f] / norm
                    totals[e] += table[e, f] / norm
        table = {(e, f): counts[e, f] / totals[e] for e, f in table}
    return table


@pytest.mark.parametrize(
    ("num_iterations", "numbers"),
    [
        (1, (0.5, 0.25, 0.25, 0.25, 0.5, 0.25, 0.5, 0.5, 0.5, 0.5)),
        (2, (0.6364, 0.1818, 0.1818, 0.1818, 0.6364, 0.1818, 0.4286, 0.5714, 0.4286, 0.5714)),
        (3, (0.7479, 0.1208, 0.1313, 0.1208, 0.7479, 0.1313, 0.3466, 0.6534, 0.3466, 0.6534)),
    ],
)
def test_textbook_example(num_iterations, numbers):
    """The table of Koehn's “Statistical Machine Translation”, section 4.2."""
    words = (
        "das the, das book, das house, Buch the, Buch book, Buch a, ein book, ein a, Haus the, "
        "Haus house"
    )
    expected = {
        tuple(pair.split()): number for pair, number in zip(words.split(", "), numbers, strict=True)
    }
    found = probabilities(TEXTBOOK, num_iterations)
    assert {pair: round(value, 4) for pair, value in found.items()} == expected


def test_textbook_example_converges():
    found = probabilities(TEXTBOOK, 3000)
    right = {("das", "the"), ("Haus", "house"), ("Buch", "book"), ("ein", "a")}
    assert all(
        value == pytest.approx(float(pair in right), abs=1e-3) for pair, value in found.items()
    )
    assert learn_dictionary(TEXTBOOK).translations == dict(right)


sentences = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5)


@given(st.lists(st.tuples(sentences, sentences), max_size=6), st.integers(1, 4))
def test_equals_a_plain_implementation(pairs, num_iterations):
    assert probabilities(pairs, num_iterations) == pytest.approx(
        estimate_plainly(pairs, num_iterations)
    )


def test_empty_sentences_teach_nothing():
    assert learn_dictionary([]).translations == {}
    assert learn_dictionary([([], ["a"]), (["b"], [])]).translations == {}
    pairs = [([], ["x"]), *TEXTBOOK, (["y"], [])]
    assert probabilities(pairs, 3) == pytest.approx(probabilities(TEXTBOOK, 3))


@pytest.mark.parametrize("languages", LANGUAGE_PAIRS)
def test_finds_the_true_translations(languages):
    """The best translation of nearly every word is one to which it is truly aligned."""
    pairs = list(generate_pairs(languages, split="train", count=1500, seed=3))
    true: dict[str, Counter] = defaultdict(Counter)
    for pair in pairs:
        for source, target in pair.alignment:
            true[pair.source_words[source]][pair.target_words[target]] += 1
    words = ((pair.source_words, pair.target_words) for pair in pairs)
    found = learn_dictionary(words).translations
    right = sum(found[word] in true[word] for word in found)
    best = sum(true[word][found[word]] == max([1, *true[word].values()]) for word in found)
    assert len(found) > 0.85 * len({word for pair in pairs for word in pair.source_words})
    assert right > 0.92 * len(found)
    assert best > 0.9 * len(found)
    chance = sum(1 / len(set(pair.target_words)) for pair in pairs) / len(pairs)
    assert chance < 0.2


def test_improbable_translations_are_left_out():
    pairs = [(["x"], [word]) for word in "aaabbcdefg"]
    assert learn_dictionary(pairs, least_probability=0.3).translations == {"x": "a"}
    assert learn_dictionary(pairs, least_probability=0.31).translations == {}


def test_of_equals_the_first_in_the_alphabet():
    pairs = [(["x"], ["b", "a", "c"])]
    assert learn_dictionary(pairs).translations == {"x": "a"}
    assert learn_dictionary(pairs[::-1]).translations == {"x": "a"}


def test_a_large_corpus_is_thinned_evenly():
    pairs = [([f"s{index}"], [f"t{index}"]) for index in range(100)]
    taken = learn_dictionary(iter(pairs), max_links=30).translations
    indices = sorted(int(word[1:]) for word in taken)
    assert indices == list(range(0, 100, 4))
    assert all(target == f"t{source[1:]}" for source, target in taken.items())
    assert len(learn_dictionary(pairs, max_links=100).translations) == 100
    assert learn_dictionary([(["x"] * 9, ["y"] * 9)], max_links=1).translations == {"x": "y"}


def test_written_and_read(tmp_path):
    dictionary = Dictionary({"Afrique": " Africa", "’": "'", "می\u200cخواهم": " want"})
    path = tmp_path / "dictionary.json"
    path.write_bytes(dictionary.to_bytes())
    read = Dictionary.from_file(path)
    assert read == dictionary
    assert read.translate("Afrique") == " Africa"
    assert read.translate("Asie") is None


def contents(**changed):
    return json.dumps({"format": "dragoman dictionary 1", "words": {"a": " b"}} | changed).encode()


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (b"", "is not a dictionary, or damaged; get the file again"),
        (b"\xff", "is not a dictionary, or damaged; get the file again"),
        (b"[" * 100_000, "is not a dictionary, or damaged; get the file again"),
        (b"[1]", "is not a dictionary, or damaged; get the file again"),
        (contents()[:-3], "is not a dictionary, or damaged; get the file again"),
        (contents(format="other"), "is not a dictionary, or damaged; get the file again"),
        (contents(words=["a"]), "is not a dictionary, or damaged; get the file again"),
        (contents(words={"a": 3}), "3 is no translation of 'a'; get the file again"),
        (contents(words={"a": ""}), "'' is no translation of 'a'; get the file again"),
        (contents(words={"a": "b\nc"}), r"'b\\nc' is no translation of 'a'; get the file again"),
        (contents(words={"a": "  b"}), "'  b' is no translation of 'a'; get the file again"),
    ],
)
def test_damaged_files(tmp_path, damaged, message):
    path = tmp_path / "dictionary.json"
    path.write_bytes(damaged)
    with pytest.raises(FolderError, match=message) as caught:
        Dictionary.from_file(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    path.write_bytes(contents())
    assert Dictionary.from_file(path).translate("a") == " b"


def test_missing_file(tmp_path):
    with pytest.raises(FolderError, match=r"cannot be read \(No such file.*get the model folder"):
        Dictionary.from_file(tmp_path / "none.json")
