"""Validation: the probe sentences."""

import pytest

from dragoman.training.run import resume_run
from dragoman.training.validation import choose_probes


@pytest.mark.parametrize(
    ("lengths", "rows"),
    [
        ([], []),
        ([5], [0]),
        ([9, 4], [1, 0]),
        ([9, 4, 6], [1, 2, 0]),
        ([7, 7, 7, 7, 7, 7], [1, 3, 5]),  # of equal ones in their order
        ([60, 50, 40, 30, 20, 10], [4, 2, 0]),
    ],
)
def test_probes_are_a_short_a_middling_and_a_longer_sentence(lengths, rows):
    assert choose_probes(lengths) == rows


def test_every_validation_shows_the_same_probes_also_of_a_resumed_run(run, small, events, tmp_path):
    out = run(tmp_path / "out", small)
    resume_run(out, {"training": {"max_steps": 12}}, print)
    probes = [each["probes"] for each in events(out, "validation")]
    assert len(probes) == 3
    assert len({str([pair[:2] for pair in each]) for each in probes}) == 1
    lengths = [len(source.split()) for source, _, _ in probes[0]]
    assert len(lengths) == 3
    assert lengths[0] < lengths[2]
    updates = events(out, "update")
    assert updates[-1]["share_done"] == 1
    assert all(0 < each["share_done"] <= 1 for each in updates)
