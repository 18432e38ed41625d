"""Terms are found word by word."""

import pytest
from tests.work import grows_linearly

from dragoman.serving.term_tree import TermTree, split_words

TERMS = ["dog", "old dog", "dog house", "l'eau"]


@pytest.mark.parametrize(
    ("text", "found", "count"),
    [
        ("A dog, a DOG.", ["dog", "dog"], 2),
        ("An old  dog house.", ["old dog", "dog", "dog house"], 1),
        ("The dog house.", ["dog", "dog house"], 1),
        ("Dogs bark; l'eau.", ["l'eau"], 1),
        ("", [], 0),
    ],
)
def test_terms_are_found_and_counted(text, found, count):
    tree = TermTree(TERMS)
    assert [TERMS[place] for place in tree.find(text)] == found
    assert tree.count(text) == count


def test_the_cost_does_not_depend_on_the_number_of_terms():
    def count(size):  # as many terms as words: their product would grow as the square
        tree = TermTree(f"a {number}" for number in range(size))
        assert tree.count("a 7 " * size) == size

    assert grows_linearly(count, 600)


def test_case_and_spaces_do_not_matter():
    assert split_words(" An  OLD-dog ß") == ["an", "old", "-", "dog", "ss"]
