import pytest

from dragoman.evaluation.bleu import corpus_bleu
from dragoman.paper.experiments.claims.length_curves import Curve, score_buckets


def test_buckets_are_scored_one_by_one():
    references = ["the first line is here", "the second line is there too",
                  "a third line is long gone", "and a fourth never came at all"]  # fmt: skip
    translations = [*references[:2], "nothing", references[3]]
    whole, half = score_buckets(translations, references, 2)
    assert whole == pytest.approx(100)
    assert half == corpus_bleu(translations[2:], [references[2:]]) < 100


def test_a_curve_falls_from_the_first_bucket_to_the_last_within():
    curve = Curve(title="some", is_scheme=False, runs=(), scores=((50, 40, 5), (70, 50, 15)))
    assert curve.means == [60, 45, 10]
    assert curve.deviations == pytest.approx([200**0.5, 50**0.5, 50**0.5])
    assert curve.fall(2) == 15
    assert curve.fall(3) == 50


def test_a_single_seed_has_no_deviation():
    assert Curve(title="some", is_scheme=True, runs=(), scores=((1.0, 2.0),)).deviations is None
