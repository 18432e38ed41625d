import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.paper.tasks.joined_lines import (
    LONGEST_SENTENCE,
    SHORTEST_LINE,
    Pool,
    count_words,
    make_buckets,
    write_lines,
)

SENTENCES = [
    (" ".join(["mot"] * (length - 1) + [f"fin{length}."]), f"end{length}.")
    for length in range(1, LONGEST_SENTENCE + 4)
]


@given(
    num_within=st.integers(2, 8), words_each=st.integers(3, 12), num_beyond=st.integers(0, 4),
    more=st.integers(0, 7),
)  # fmt: skip
def test_buckets_cover_every_length_once(num_within, words_each, num_beyond, more):
    max_words = num_within * words_each + more
    buckets = make_buckets(max_words, num_within, num_beyond)
    assert len(buckets) == num_within + num_beyond
    assert buckets[0].first == SHORTEST_LINE
    assert buckets[num_within - 1].last == max_words
    assert all(first.last + 1 == second.first for first, second in pairwise(buckets))
    assert [each.is_beyond for each in buckets] == [False] * num_within + [True] * num_beyond
    widths = [each.last - each.first + 1 for each in buckets[1:]]
    assert max(widths) - min(widths) <= 1


@given(num_words=st.integers(SHORTEST_LINE, 60), seed=st.integers(0, 1000))
def test_a_line_has_just_the_wanted_words(num_words, seed):
    source, target = Pool(SENTENCES).join(num_words, random.Random(seed))
    assert count_words(source) == num_words
    used = [word.removeprefix("fin") for word in source.split() if word.startswith("fin")]
    assert target.split() == [f"end{each}" for each in used]
    assert all(SHORTEST_LINE <= int(each.rstrip(".")) <= LONGEST_SENTENCE for each in used)


def test_phrases_without_an_end_are_left_out():
    pool = Pool([("et sans fin", "without end"), ("et avec fin.", "with an end.")])
    lines = {pool.join(6, random.Random(seed)) for seed in range(20)}
    assert lines == {("et avec fin. et avec fin.", "with an end. with an end.")}


def test_what_cannot_be_joined_is_refused():
    pool = Pool([("un deux trois quatre.", "four."), ("un deux trois quatre cinq six.", "six.")])
    assert len(pool) == 2
    for num_words in range(3, 40):
        if num_words % 2:
            with pytest.raises(DataError, match=f"no line of {num_words} words can be joined from"):
                pool.join(num_words, random.Random(1))
        else:
            assert count_words(pool.join(num_words, random.Random(1))[0]) == num_words


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("joined")
    buckets = make_buckets(9, 3, 1)
    write_lines(folder, num_lines=900, buckets=buckets, lines_per_bucket=12)
    return folder


def read(folder, name):
    return (folder / name).read_text(encoding="utf-8").splitlines()


def test_training_lengths_are_even_and_end_where_they_should(folder):
    lengths = [count_words(line) for line in read(folder, "train.fr")]
    counts = {length: lengths.count(length) for length in set(lengths)}
    assert sorted(counts) == list(range(SHORTEST_LINE, 10))
    mean = len(lengths) / len(counts)
    # Five deviations of a binomial count: a wrong distribution is farther off.
    assert all(abs(count - mean) < 5 * mean**0.5 for count in counts.values())


def test_the_test_set_is_bucket_after_bucket(folder):
    sources = read(folder, "test.fr")
    assert len(sources) == len(read(folder, "test.en")) == 4 * 12
    for index, bucket in enumerate(make_buckets(9, 3, 1)):
        lengths = [count_words(line) for line in sources[index * 12 : (index + 1) * 12]]
        assert all(bucket.first <= length <= bucket.last for length in lengths)


def test_no_sentence_of_the_test_was_trained_on(folder):
    def sentences(name):
        text = " ".join(read(folder, name)).replace(" !", "!").replace(" ?", "?")
        for mark in "!?":
            text = text.replace(mark, ".")
        return {each.strip() for each in text.split(".") if each.strip()}

    assert not sentences("train.en") & sentences("test.en")
