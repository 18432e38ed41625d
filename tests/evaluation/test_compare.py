"""Planted differences are found, absent ones are not, and both tests keep their laws."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest, Result, _paired_ar_test

from dragoman.errors import DataError, OptionError
from dragoman.evaluation.compare import (
    Comparison,
    Difference,
    _test_by_randomisation,
    compare_systems,
)

SENTENCE = "the house is small but it has a garden with old trees and one big dog in it"
QUICK = {"num_samples": 300, "num_trials": 300}


def make_reference(num_lines: int, seed: int) -> list[str]:
    generator = random.Random(seed)
    return [
        " ".join(generator.choices(SENTENCE.split(), k=generator.randint(5, 15)))
        for _ in range(num_lines)
    ]


def corrupt(lines: list[str], share: float, seed: int) -> list[str]:
    generator = random.Random(seed)
    return [
        " ".join("wrong" if generator.random() < share else word for word in line.split())
        for line in lines
    ]


@pytest.fixture(scope="module")
def reference() -> list[str]:
    return make_reference(150, seed=0)


@pytest.mark.parametrize("metric", ["bleu", "chrf", "chrf++", "ter"])
def test_a_corrupted_system_is_found_worse(metric, reference):
    good, bad = corrupt(reference, 0.1, seed=1), corrupt(reference, 0.3, seed=2)
    result = compare_systems([reference], {"good": good, "bad": bad}, metric=metric, **QUICK)
    (difference,) = result.differences
    assert (difference.value > 0) == (metric == "ter") == result.lower_is_better
    assert difference.low < difference.value < difference.high
    assert max(difference.p_bootstrap, difference.p_randomisation) < 0.01
    assert result.in_words().startswith("good is better than bad by ")


def test_identical_systems_cannot_be_told_apart(reference):
    system = corrupt(reference, 0.2, seed=1)
    result = compare_systems([reference], {"A": system, "B": list(system)}, **QUICK)
    (difference,) = result.differences
    assert difference.value == difference.low == difference.high == 0
    assert difference.p_bootstrap == difference.p_randomisation == 1
    assert difference.num_changed_lines == 0
    assert (
        result.in_words() == "A and B are the same, line for line: there is nothing to tell apart."
    )


def test_equal_quality_is_seldom_significant():
    num_significant = 0
    for seed in range(20):
        reference = make_reference(60, seed)
        systems = {
            "A": corrupt(reference, 0.25, seed=1000 + seed),
            "B": corrupt(reference, 0.25, seed=2000 + seed),
        }
        (difference,) = compare_systems(
            [reference], systems, num_samples=200, num_trials=200
        ).differences
        num_significant += min(difference.p_bootstrap, difference.p_randomisation) < 0.05
    # With one chance in twenty each, five or more of twenty happen in 0.3 % of cases.
    assert num_significant < 5


@pytest.mark.parametrize("metric", ["bleu", "ter"])
def test_exchanging_the_systems_only_turns_the_sign(metric, reference):
    systems = {"A": corrupt(reference, 0.2, seed=1), "B": corrupt(reference, 0.22, seed=2)}
    exchanged = dict(reversed(systems.items()))
    (forth,) = compare_systems([reference], systems, metric=metric, **QUICK).differences
    (back,) = compare_systems([reference], exchanged, metric=metric, **QUICK).differences
    assert back.value == pytest.approx(-forth.value)
    assert (back.low, back.high) == pytest.approx((-forth.high, -forth.low))
    assert (back.p_bootstrap, back.p_randomisation) == (forth.p_bootstrap, forth.p_randomisation)


def test_scores_are_those_of_sacrebleu_and_signed(reference):
    systems = {"A": corrupt(reference, 0.2, seed=1), "B": corrupt(reference, 0.4, seed=2)}
    other = make_reference(len(reference), seed=9)
    result = compare_systems([reference, other], systems, seed=7, **QUICK)
    for name, lines in systems.items():
        expected = sacrebleu.corpus_bleu(lines, [reference, other]).score
        assert result.scores[name].value == pytest.approx(expected, abs=1e-12)
        assert result.scores[name].low < expected < result.scores[name].high
        assert result.scores[name].signature.startswith("nrefs:2|bs:300|ar:300|seed:7|case:mixed")
    assert result.differences[0].value == pytest.approx(
        result.scores["B"].value - result.scores["A"].value
    )
    assert result.metric == "BLEU"
    assert result.num_lines == len(reference)


def test_randomisation_agrees_with_sacrebleu(reference):
    systems = {"A": corrupt(reference, 0.2, seed=1), "B": corrupt(reference, 0.215, seed=3)}
    _, oracle = PairedTest(
        list(systems.items()), {"BLEU": BLEU()}, [reference], test_type="ar", n_samples=3000
    )()
    (difference,) = compare_systems(
        [reference], systems, num_samples=1, num_trials=3000
    ).differences
    assert 0.005 < oracle["BLEU"][1].p_value < 0.9
    assert difference.p_randomisation == pytest.approx(oracle["BLEU"][1].p_value, abs=0.04)


class SameDraws:
    """A source of coins that gives sacreBLEU's test and ours the same ones."""

    def __init__(self, coins: np.ndarray):
        self.coins = coins

    def integers(self, _high, *, size, dtype):
        assert size == self.coins.shape
        return self.coins.astype(dtype)


@pytest.mark.parametrize("metric", [BLEU(), CHRF()], ids=["bleu", "chrf"])
@pytest.mark.parametrize("seed", range(4))
def test_randomisation_is_that_of_sacrebleu_for_the_same_draws(metric, seed, monkeypatch):
    """Here no trial is just as large as the real difference: only those they count otherwise."""
    reference = make_reference(60, seed=seed)
    systems = {"A": corrupt(reference, 0.2, seed=1), "B": corrupt(reference, 0.24, seed=2)}
    coins = np.random.default_rng(seed).integers(2, size=(400, 60))
    statistics = [metric._extract_corpus_statistics(each, [reference]) for each in systems.values()]
    result = Result(metric._aggregate_and_compute(statistics[0]).score)
    monkeypatch.setattr(np.random, "default_rng", lambda _seed=None: SameDraws(coins))
    _, expected = _paired_ar_test(
        {"metric": (np.array(statistics[0]), result)},
        "B", systems["B"], [reference], {"metric": metric}, n_samples=400,
    )  # fmt: skip
    found = _test_by_randomisation(metric, *statistics, 400, 0)
    assert found == expected["metric"].p_value


def test_the_interval_of_a_system_is_that_of_sacrebleu(reference):
    systems = {"A": corrupt(reference, 0.2, seed=1), "B": corrupt(reference, 0.24, seed=2)}
    _, oracle = PairedTest(
        list(systems.items()), {"BLEU": BLEU()}, [reference], test_type="bs", n_samples=300
    )()
    scores = compare_systems([reference], systems, **QUICK).scores
    for score, expected in zip(scores.values(), oracle["BLEU"], strict=True):
        assert (score.high - score.low) / 2 == pytest.approx(expected.ci, rel=1e-6)


@pytest.mark.parametrize("test_type", ["ar", "bs"])
def test_sacrebleu_still_finds_a_system_better_than_itself(test_type, reference):
    """Why its tests are not used; if this fails, use them."""
    system = corrupt(reference, 0.2, seed=1)
    _, oracle = PairedTest(
        [("A", system), ("B", list(system))],
        {"BLEU": BLEU()}, [reference], test_type=test_type, n_samples=200,
    )()  # fmt: skip
    assert oracle["BLEU"][1].p_value == pytest.approx(1 / 201)


def test_both_tests_approach_the_exact_ones():
    reference = ["a b c d", "e f g h i", "j k l", "m n o p q r"]
    systems = {
        "A": ["a b x d", "e f g h i", "x k l", "m x x p q r"],
        "B": ["a b c d", "e x g h i", "j k l", "m n x p x r"],
    }
    # Edits and words of every line, counted by hand; TER is their quotient.
    edits, words = {"A": [1, 0, 1, 2], "B": [0, 1, 0, 2]}, [4, 5, 3, 6]
    real = abs(sum(edits["A"]) - sum(edits["B"])) / sum(words)
    swapped = [
        abs(sum(s * (a - b) for s, a, b in zip(signs, edits["A"], edits["B"], strict=True)))
        / sum(words)
        for signs in itertools.product((1, -1), repeat=4)
    ]
    drawn = [
        sum(edits["B"][line] - edits["A"][line] for line in lines)
        for lines in itertools.product(range(4), repeat=4)
    ]
    exact_randomisation = np.mean([value >= real - 1e-12 for value in swapped])
    exact_bootstrap = 2 * min(
        np.mean([value <= 0 for value in drawn]), np.mean([value >= 0 for value in drawn])
    )
    (difference,) = compare_systems(
        [reference], systems, metric="ter", num_samples=8000, num_trials=8000
    ).differences
    assert difference.value == pytest.approx(-100 / 18)
    assert difference.p_randomisation == pytest.approx(exact_randomisation, abs=0.03)
    assert difference.p_bootstrap == pytest.approx(min(1, exact_bootstrap), abs=0.03)


def test_fractional_counts_keep_ties():
    # Three references of 1, 2 and 2 words: TER divides by 5/3 words, which is not a binary number.
    references = [["a"] * 30, ["a b"] * 30, ["a c"] * 30]
    systems = {"A": ["x", "a"] * 15, "B": ["a", "x"] * 15}
    assert TER().corpus_score(systems["A"], references).score > 0
    (difference,) = compare_systems(references, systems, metric="ter", **QUICK).differences
    assert difference.value == pytest.approx(0)
    assert difference.p_randomisation == 1


def test_a_result_does_not_depend_on_the_other_systems(reference):
    systems = {name: corrupt(reference, 0.2, seed=i) for i, name in enumerate("ABC")}
    three = compare_systems([reference], systems, **QUICK)
    two = compare_systems([reference], {"A": systems["A"], "C": systems["C"]}, **QUICK)
    assert three.differences[1] == two.differences[0]
    assert list(three.scores) == ["A", "B", "C"]
    assert three.in_words().splitlines()[-1] == (
        "Each system was tested by itself; of 2 tests, one may succeed by chance. "
        "To be strict, ask for p < 0.025."
    )


def test_the_tokeniser_and_case_are_passed_on():
    systems = {"A": ["Das Haus ist alt"] * 3, "B": ["das haus ist alt"] * 3}
    mixed = compare_systems([systems["A"]], systems, **QUICK)
    folded = compare_systems([systems["A"]], systems, lowercase=True, tokenize="char", **QUICK)
    assert mixed.scores["B"].value < 100
    assert folded.scores["B"].value == pytest.approx(100)
    assert "case:lc" in folded.scores["B"].signature
    assert "tok:char" in folded.scores["B"].signature


FOUND = Difference(
    baseline="A",
    system="B",
    value=1.31,
    low=0.4,
    high=2.2,
    p_bootstrap=0.003,
    p_randomisation=0.0002,
    num_changed_lines=9,
)


def words_for(difference: Difference, *, metric: str = "BLEU", alpha: float = 0.05) -> str:
    return Comparison(
        metric=metric,
        lower_is_better=metric == "TER",
        num_lines=10,
        scores={},
        differences=(difference,),
    ).in_words(alpha)


def test_words_for_a_difference():
    expected = (
        "B is better than A by 1.3 BLEU (p = 0.003 by bootstrap, p < 0.001 by randomisation)."
    )
    assert words_for(FOUND) == expected
    assert words_for(replace(FOUND, value=-1.31)).startswith("A is better than B by 1.3 BLEU (")
    assert words_for(FOUND, metric="TER").startswith(
        "A is better than B by 1.3 TER, where lower is better ("
    )
    assert words_for(replace(FOUND, value=-1.31), metric="TER").startswith("B is better than A")
    assert words_for(FOUND, alpha=0.002).startswith("The tests disagree on A and B")


def test_words_for_no_difference():
    chance = replace(FOUND, value=0.12, p_bootstrap=0.412, p_randomisation=0.0971)
    assert words_for(chance) == (
        "No difference can be shown between A and B: 0.1 BLEU (p = 0.41 by bootstrap, p = 0.097 by "
        "randomisation); that does not prove they are equal."
    )
    assert ": 0.07 BLEU (" in words_for(replace(chance, value=-0.07))
    assert ": less than 0.01 BLEU (" in words_for(replace(chance, value=0.0))


def test_words_when_the_tests_disagree():
    split = replace(FOUND, value=-0.5, p_bootstrap=0.04, p_randomisation=0.06)
    assert words_for(split) == (
        "The tests disagree on A and B: A is ahead by 0.5 BLEU, but p = 0.040 by bootstrap and "
        "p = 0.060 by randomisation; take it as undecided at 0.05 and test on more lines."
    )


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 5])
def test_alpha_must_be_a_probability(alpha):
    with pytest.raises(OptionError, match=f"alpha is {alpha}; give a number between 0 and 1"):
        words_for(FOUND, alpha=alpha)


def test_unusable_input_is_refused():
    with pytest.raises(OptionError, match="systems to compare: 1 given; give two or more"):
        compare_systems([["a"]], {"A": ["a"]})
    with pytest.raises(DataError, match="system “B”: 3 lines, but the reference has 2 lines"):
        compare_systems([["a", "b"]], {"A": ["a", "b"], "B": ["a", "b", "c"]})
    with pytest.raises(DataError, match="system “A”: 0 lines"):
        compare_systems([[]], {"A": [], "B": []})
    pair = {"A": ["a"], "B": ["b"]}
    with pytest.raises(OptionError, match="0 resamples were asked for; give 1 or more"):
        compare_systems([["a"]], pair, num_samples=0)
    with pytest.raises(OptionError, match="0 trials of randomisation were asked for; give 1"):
        compare_systems([["a"]], pair, num_trials=0)
    with pytest.raises(OptionError, match="the seed is -1"):
        compare_systems([["a"]], pair, seed=-1)
    with pytest.raises(OptionError, match="unknown metric “bleau”; did you mean “bleu”"):
        compare_systems([["a"]], pair, metric="bleau")
