"""The splitter of sentences, as MiniSBD runs it, against the rules it is made of."""

import numpy as np
import pytest

from dragoman.exchange.sentence_splitter import ENDS, INITIAL, write_splitter
from dragoman.text.sentence_splitting import list_abbreviations, split_sentences

minisbd = pytest.importorskip("minisbd")

ENGLISH = [
    "Hello there. How are you? I'm fine!",
    "Dr. Smith met J. R. Tolkien. He said no... and left.",
    "“Really?” He laughed. (It was late.) Mrs. Jones went home.",
    "It cost 3.5 dollars. Then 4. Nothing else.",
    "one only",
    "See www.example.com for more. Then come back.",
]


def split(tmp_path, language, text):
    path = tmp_path / f"{language}.onnx"
    path.write_bytes(write_splitter(language))
    return minisbd.SBDetect(str(path), use_gpu=False, max_threads=1).sentences(text)


@pytest.mark.parametrize("text", ENGLISH)
def test_splits_as_we_do(tmp_path, text):
    expected = [each.strip() for each in split_sentences(text, "en")]
    assert split(tmp_path, "en", text) == expected


def test_chinese_marks_need_no_space(tmp_path):
    text = "他说。「是。」很好！！吗？"
    assert split(tmp_path, "zh", text) == ["他说。", "「是。」", "很好！！", "吗？"]


def test_every_abbreviation_is_known(tmp_path):
    for language in ("fr", "de"):
        words = sorted(list_abbreviations(language))
        text = ". ".join(f"Voilà {word.capitalize()}. Dupont" for word in words)
        assert len(split(tmp_path, language, text)) == len(words)
        assert len(split(tmp_path, "en", "Voilà Mme. Dupont")) == 2


def test_nothing_long_and_white_space(tmp_path):
    assert split(tmp_path, "en", "") == []
    assert split(tmp_path, "en", "A line\nand  spaces. Here.") == ["A line\nand  spaces.", "Here."]
    assert len(split(tmp_path, "en", "This is a sentence. " * 300)) == 300


def test_a_rule_sees_no_further_than_the_network():
    for rule in (*ENDS, INITIAL):
        assert max(place for place, _ in (*rule.wanted, *rule.unwanted)) <= 2


def test_equal_languages_give_equal_bytes():
    assert write_splitter("en") == write_splitter("en")
    assert np.frombuffer(write_splitter("en")[:8], np.uint8).any()
