"""Alignment error rate."""

from collections.abc import Iterable, Set

Link = tuple[int, int]


def alignment_error_rate(
    pairs: Iterable[tuple[Set[Link], Set[Link]]],
) -> float:
    r"""Compute the alignment error rate over several sentences.

    Parameters
    ----------
    pairs : Iterable[tuple[Set[Link], Set[Link]]]
        For each sentence the links that were found and the true ones, all of them sure.

    Returns
    -------
    float
        0 where found and true are the same, 1 where they have nothing in common.

    Notes
    -----
    :math:`\mathrm{AER} = 1 - (|A\cap S| + |A\cap P|) / (|A| + |S|)` (Och and Ney, 2003), over all
    sentences together, with P = S.
    """
    num_common = num_links = 0
    for found, true in pairs:
        num_common += 2 * len(found & true)
        num_links += len(found) + len(true)
    return 1 - num_common / num_links if num_links else 0.0
