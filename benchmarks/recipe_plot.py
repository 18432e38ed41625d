"""The study's plot: what helps where."""

import statistics
from dataclasses import dataclass, field
from pathlib import Path

from recipe_corpora import STUDIES

SURVIVES = 0.3
"""BLEU on the lines that choose from which on a factor survives."""


@dataclass
class Cell:
    """A factor on a corpus.

    Parameters
    ----------
    choose, report : list[float]
        Differences to the paper's recipe in BLEU, one a seed.
    p_values : list[float]
        One a seed, as far as both translations were at hand.
    scores : list[float]
        BLEU on the set that reports.
    status : str
        What became of it, if nothing finished.
    """

    choose: list[float] = field(default_factory=list)
    report: list[float] = field(default_factory=list)
    p_values: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    status: str = ""

    @property
    def largest_p(self) -> float | None:
        """The largest p of all seeds; None if one is not known."""
        is_known = bool(self.p_values) and len(self.p_values) == len(self.report)
        return max(self.p_values) if is_known else None

    @property
    def is_shown(self) -> bool:
        """Whether the gain is shown with every seed."""
        p = self.largest_p
        return p is not None and p < 0.05 and min(self.report) > 0

    @property
    def survives(self) -> bool:
        """Whether what chooses is for it."""
        return bool(self.choose) and statistics.mean(self.choose) >= SURVIVES


Cells = dict[tuple[str, str], Cell]


def draw(cells: Cells, corpora: list[str], factors: list[str], path: Path, around: str) -> None:
    """Draw what helps where: a panel for each corpus, a point for each seed.

    Parameters
    ----------
    cells : dict[tuple[str, str], Cell]
        From `find_cells`.
    corpora, factors : list[str]
        Panels and rows.
    path : Path
        The picture.
    around : str
        The recipe that the others are compared with.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    rows = [name for name in factors if name != around and any(
        cells.get((corpus, name), Cell()).report for corpus in corpora)]  # fmt: skip
    size = (2.2 + 2.3 * len(corpora), 1.4 + 0.24 * max(len(rows), 4))
    figure, panels = pyplot.subplots(
        1, len(corpora), figsize=size, sharey=True, squeeze=False, layout="constrained"
    )
    for panel, corpus in zip(panels[0], corpora, strict=True):
        panel.axvline(0, color="0.6", linewidth=0.8)
        for row, name in enumerate(rows):
            cell = cells.get((corpus, name), Cell())
            if not cell.report:
                continue
            mean = statistics.mean(cell.report)
            colour = "tab:green" if mean > 0 else "tab:red"
            panel.plot([0, mean], [row, row], color=colour, linewidth=1.2, alpha=0.6)
            panel.plot(cell.report, [row] * len(cell.report), "|", color="0.4", markersize=6)
            face = colour if cell.largest_p is not None and cell.largest_p < 0.05 else "white"
            panel.plot(mean, row, "o", color=colour, markerfacecolor=face, markersize=5)
        panel.set_title(STUDIES[corpus].title, fontsize=8)
        panel.tick_params(labelsize=7)
        panel.grid(axis="y", color="0.92", linewidth=0.6)
        panel.set_axisbelow(True)
    panels[0][0].set_yticks(range(len(rows)), rows)
    panels[0][0].set_ylim(len(rows) - 0.5, -0.5)
    figure.supxlabel(
        f"BLEU over “{around}” (equal tokens; filled: p < 0.05 with every seed)", fontsize=8
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
