"""Lay constraints out as arrays for the compiled search."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from dragoman.decoding.constraints.constraints import draw_chance
from dragoman.decoding.constraints.term_automaton import NUM_KINDS
from dragoman.decoding.engines.search_engine import TermConstraints
from dragoman.decoding.options import SamplingOptions
from dragoman.kernels.cpu_search.task import Samples, Terms
from dragoman.shapes import Int


def find_starts(lengths: Sequence[int]) -> Int[np.ndarray, "more"]:
    """Compute the offsets of consecutive stretches from their lengths."""
    return np.fromiter(accumulate(lengths, initial=0), np.int64, len(lengths) + 1)


def lay_out_terms(required: TermConstraints, order: Sequence[int]) -> Terms:
    """Lay the required terms of sentences out as arrays."""
    machines = [required.machines[index] for index in order]
    most_met = max(each.met.shape[2] for each in machines)
    most_leads = max(each.leads.shape[1] for each in machines)
    entries = [each.met.reshape(-1, each.met.shape[2]) for each in machines]
    return Terms(
        np.concatenate([each.alphabet for each in machines]),
        find_starts([len(each.alphabet) for each in machines]),
        np.concatenate([each.sizes for each in machines]),
        find_starts([len(each.sizes) for each in machines]),
        np.concatenate([each.targets.ravel() for each in machines]),
        np.concatenate([_fill_up(each, most_met) for each in entries]),
        find_starts(list(map(len, entries))),
        np.concatenate([_fill_up(each.leads, most_leads) for each in machines]),
        find_starts([len(each.leads) for each in machines]),
        required.kinds,
        NUM_KINDS,
    )


def prepare_samples(
    sampling: SamplingOptions,
    sources: Sequence[Sequence[int]],
    order: Sequence[int],
    num_samples: int,
    capacity: int,
) -> Samples:
    """Draw the random numbers of sampling."""
    chance = [draw_chance(sampling.seed, sources[index], num_samples, capacity) for index in order]
    top_p = 1.0 if sampling.top_p is None else float(sampling.top_p)
    return Samples(np.stack(chance), float(sampling.temperature), sampling.top_k or 0, top_p)


def _fill_up(
    table: Int[np.ndarray, "rows own *rest"], most: int
) -> Int[np.ndarray, "rows most *rest"]:
    """Pad a table with zeros."""
    filler = [(0, 0)] * (table.ndim - 2)
    return np.pad(table, [(0, 0), (0, most - table.shape[1]), *filler])
