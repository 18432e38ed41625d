"""How far a name is carried."""

import pytest

from dragoman.errors import OptionError
from dragoman.paper.experiments.notes.name_distance import (
    RecallOptions,
    RecallResult,
    _find,
    recall_names,
    run,
)
from dragoman.paper.tasks import name_recall

TINY = RecallOptions(limit=8, max_distance=16, steps=2, seeds=2, sentences=5)


def test_distances_go_from_the_shortest_over_the_limit_to_the_longest():
    assert TINY.distances == (5, 6, 8, 16)
    distances = RecallOptions().distances
    assert distances[0] == name_recall.SHORTEST
    assert RecallOptions().limit in distances
    assert distances[-1] == RecallOptions().max_distance
    assert list(distances) == sorted(set(distances))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"limit": 5}, "--limit is 5: give ≥ 6"),
        ({"max_distance": 10}, "--max-distance is 10: give ≥ 20"),
        ({"steps": 0}, "--steps is 0: give ≥ 1"),
        ({"seeds": 0}, "--seeds is 0: give ≥ 1"),
        ({"sentences": 0}, "--sentences is 0: give ≥ 1"),
    ],
)
def test_bad_options_are_refused(wrong, message):
    with pytest.raises(OptionError, match=message):
        RecallOptions(**wrong)


def test_reach_ends_where_a_tenth_is_lost():
    def made(*means: float) -> RecallResult:
        return RecallResult(1, (1.0,), {5 * place: (mean,) for place, mean in enumerate(means, 1)})

    assert made(1, 0.95, 0.9, 0.5).reach == 15
    # What comes after a gap does not count.
    assert made(1, 0.5, 1).reach == 5
    assert made(0.5, 1).reach is None


def test_every_seed_is_measured_at_every_distance():
    recalled = recall_names("RNN", TINY)
    assert tuple(recalled.accuracies) == TINY.distances
    for several in recalled.accuracies.values():
        assert len(several) == TINY.seeds
        # Shares of five sentences.
        assert all(0 <= 5 * each <= 5 and (5 * each) % 1 == 0 for each in several)


def test_experiment_tells_every_reader_and_distance():
    said = []
    experiment = run(TINY, said.append)
    table = experiment.table("accuracy")
    assert table.column("reader")[::2] == list(name_recall.KINDS)
    assert len(table.columns) == 2 + len(TINY.distances)
    assert len(said) == len(name_recall.KINDS)
    assert experiment.seeds == (1, 2)
    (plot,) = experiment.plots
    drawn = [series.name for panel in plot.panels for series in panel.series]
    assert [name for name in drawn if name != "guessing"] == list(name_recall.KINDS)
    for row in experiment.table("sentences").rows:
        # The distance is what stands between name and blank.
        assert len(str(row[1]).split()) - 2 == row[0]
        assert str(row[1]).split()[0] == row[2]


def test_positions_are_blamed_only_for_what_they_cost():
    def made(first: float, last: float) -> RecallResult:
        between = dict.fromkeys(TINY.distances[1:-1], (first, first))
        ends = {TINY.distances[0]: (first, first), TINY.distances[-1]: (last, last)}
        return RecallResult(1, (1.0, 1.0), {at: (ends | between)[at] for at in TINY.distances})

    flat = dict.fromkeys(name_recall.KINDS, made(1.0, 1.0))
    fallen = flat | {"Transformer": made(1.0, 0.5)}
    assert not any("never seen" in finding for finding in _find(flat, TINY))
    assert any("never seen" in finding for finding in _find(fallen, TINY))
