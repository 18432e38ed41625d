"""The arithmetic of the benchmarks that compare Dragoman with its rivals."""

import sys
from pathlib import Path

import numpy as np
import pytest

PLACE = Path(__file__).parent.parent / "benchmarks"
LOG = """[date] Ep. 1 : Up. 1 : Sen. 8 : Cost 9.4 * 1,500 @ 9 after 1,500 : Time 6.00s : 250 words/s
[date] Starting data epoch 2 in logical epoch 2
[date] Ep. 1 : Up. 2 : Sen. 9 : Cost 9.1 * 500 @ 500 after 2,000 : Time 1.00s : 500.00 words/s
[date] Ep. 2 : Up. 3 : Sen. 5 : Cost 8.9 * 1,500 @ 9 after 3,500 : Time 2.25s : 666.67 words/s
[date] Ep. 2 : Up. 4 : Sen. 9 : Cost 8.8 * 500 @ 500 after 4,000 : Time 0.75s : 666.67 words/s
"""


@pytest.fixture(autouse=True)
def _scripts_find_one_another(monkeypatch):
    monkeypatch.syspath_prepend(str(PLACE))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if (PLACE / f"{name}.py").exists():
            del sys.modules[name]


def test_a_pass_of_marian_is_timed_after_the_first():
    from marian_nmt import measure_pass, read_updates

    updates = read_updates(LOG)
    assert [each.step for each in updates] == [1, 2, 3, 4]
    assert measure_pass(updates, 2000) == 3.0
    assert measure_pass(updates[:3], 2000) == 3.0  # 2.25 s for three quarters of a pass


def test_marian_spells_sentences_without_their_ends():
    from dragoman.data.batches import FlatSequences
    from marian_nmt import _spell

    side = FlatSequences(np.array([5, 7, 0, 9, 0]), np.array([3, 2]))
    assert _spell(side) == ["w5 w7\n", "w9\n"]


def test_figures_of_equal_minutes_are_means_over_seeds():
    from equal_minutes import list_equal_figures

    def curve(system, bleu):
        return {"system": system, "wall_seconds": 900.0, "report": {"valid": {"bleu": bleu}}}

    curves = [curve("auto", 30.0), curve("auto", 32.0), curve("huggingface-float32", 21.0)]
    figures = list_equal_figures("tatoeba-en-de-full", 15.0, curves)
    assert figures["tatoeba_full_15_minutes_bleu"] == 31.0
    assert figures["tatoeba_full_15_minutes_bleu_deviation"] == pytest.approx(2**0.5)
    assert figures["tatoeba_full_15_minutes_huggingface_float32_bleu"] == 21.0
    assert figures["tatoeba_full_15_minutes_bleu_above_huggingface_float32"] == 10.0
    assert figures["tatoeba_full_15_minutes_wall_minutes"] == 15.0


def test_warm_up_of_marian_grows_with_the_minutes():
    from equal_minutes import Recipe, Wanted, marian_words

    def warm_up(minutes):
        wanted = Wanted(study="", system="marian", minutes=minutes, seed=1, recipe=Recipe())
        words = marian_words(wanted, 10_000, 2)
        assert words[words.index("--transformer-dropout") + 1] == "0.3"
        return int(words[words.index("--lr-warmup") + 1])

    assert warm_up(30.0) == 2 * warm_up(15.0) > 0


def test_precision_of_products_is_set_back():
    import torch

    from training_work import matmul_precision

    before = torch.get_float32_matmul_precision()
    with matmul_precision("medium"):
        assert torch.get_float32_matmul_precision() == "medium"
    assert torch.get_float32_matmul_precision() == before
