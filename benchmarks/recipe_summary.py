"""The study's table, plot and dated result, made from its ledger."""

import re
import statistics
from pathlib import Path

from dragoman.evaluation.bleu import tokenizer_for
from dragoman.evaluation.compare import compare_systems
from dragoman.files import write_file
from recipe_corpora import SELF_TEST, STUDIES, find_missing, read_sets
from recipe_factors import PAPER, find_factor, list_names
from recipe_ledger import (
    FINISHED,
    Line,
    append_lines,
    find_translations,
    newest_runs,
    read_ledger,
)
from recipe_plot import SURVIVES, Cell, Cells, draw
from record import write_result

# The names that the figures of “auto” have, whatever the others are called.
GAINS = {
    "tatoeba-en-de-10k": "tatoeba_10k_gain_over_paper",
    "tatoeba-en-de-50k": "tatoeba_50k_gain_over_paper",
    "tatoeba-en-de-full": "tatoeba_full_gain_over_paper",
}

RECIPE = (
    "the paper's recipe (the preset `paper-base`, its vocabulary as large as the corpus allows)"
)

HEAD = """# What helps where

Made by `python benchmarks/recipes.py --summary` from `benchmarks/results/recipes.jsonl`; nothing
here is typed in by hand. Each row is one change to {recipe}; all runs of a column saw equally many
tokens. A cell has the mean difference in BLEU with the same seeds, ± the standard deviation over
the seeds, and the largest p of the seeds by paired bootstrap. In bold what is better with every
seed at p < 0.05. What did not help is there too.
"""


def summarise(
    ledger: Path, data: Path, work: Path, *, results: Path, docs: Path, around: str = PAPER
) -> None:
    """Make the table, the plot and the dated result.

    Parameters
    ----------
    ledger : Path
        The ledger; comparisons that can be made are added to it.
    data : Path
        The folder of all data, for the references.
    work : Path
        The work folder, for the translations.
    results : Path
        Where the dated result goes.
    docs : Path
        Where the table and the plot go.
    around : str
        What the others are compared with.
    """
    add_comparisons(ledger, data, work, around)
    lines = read_ledger(ledger)
    cells = find_cells(lines, around)
    corpora = [name for name in STUDIES if (name, around) in cells]
    corpora = [name for name in corpora if name != SELF_TEST] or corpora
    if not any(cells[name, around].report for name in corpora):
        raise SystemExit(f"{ledger}: no finished run of “{around}” yet, so no difference to it")
    factors = _order({factor for corpus, factor in cells if corpus in corpora})
    suffix = "" if around == PAPER else f"-around-{around}"
    table, picture = docs / f"recipes-table{suffix}.md", f"pictures/recipes{suffix}.png"
    draw(cells, corpora, factors, docs / picture, around)
    write_file(table, make_page(cells, corpora, factors, lines, around, picture))
    seeds = sorted({line["seed"] for line in lines if line["kind"] == "run"})
    notes = {
        "runs": sum(run["status"] == FINISHED for run in newest_runs(lines).values()),
        "machines": sorted({line["machine"] for line in lines if line["kind"] == "run"}),
        "tokens": {name: _budget(lines, name) for name in corpora},
        "signatures": next(line["signature"] for line in lines if "choose" in line),
        "survivors": {name: list_survivors(cells, name, factors) for name in corpora},
    }
    figures = list_figures(cells, corpora, factors, around)
    name = f"recipes{suffix}"
    path = write_result(name, figures, seeds=seeds, notes=notes, folder=results)
    print(f"{table}\n{docs / picture}\n{path}")


def add_comparisons(ledger: Path, data: Path, work: Path, around: str) -> None:
    """Compare every run with one recipe of the same seed, where that was not done.

    Parameters
    ----------
    ledger : Path
        The ledger to read and to add to.
    data : Path
        The folder of all data.
    work : Path
        The work folder.
    around : str
        The recipe to compare with.
    """
    lines = read_ledger(ledger)
    known = {(line["digest"], line["baseline"]) for line in lines if line["kind"] == "comparison"}
    runs = newest_runs(lines)
    for (corpus, factor, seed), run in runs.items():
        paper = runs.get((corpus, around, seed))
        is_over = _is_laid_over(factor, around)
        if factor == around or not is_over or not _is_comparable(run, paper):
            continue
        assert paper is not None
        pair = (run["digest"], paper["digest"])
        texts = [find_translations(work, digest) for digest in pair]
        if pair in known or None in texts or find_missing(corpus, data):
            continue
        sets = read_sets(corpus, data, work)
        for name, pairs in sets.report.items():
            systems = {around: texts[1][name], factor: texts[0][name]}
            tokenizer = tokenizer_for(STUDIES[corpus].languages[1])
            references = [target for _, target in pairs]
            found = compare_systems([references], systems, tokenize=tokenizer, num_trials=1000)
            (difference,) = found.differences
            line = {
                "kind": "comparison", "corpus": corpus, "factor": factor, "seed": seed,
                "set": name, "metric": "BLEU", "digest": pair[0], "baseline": pair[1],
                "difference": round(difference.value, 3), "low": round(difference.low, 3),
                "high": round(difference.high, 3), "p_bootstrap": round(difference.p_bootstrap, 5),
                "p_randomisation": round(difference.p_randomisation, 5),
                "signature": found.scores[factor].signature,
            }  # fmt: skip
            append_lines(ledger, [line])


def _is_comparable(run: Line, paper: Line | None) -> bool:
    return (
        paper is not None
        and run["status"] == FINISHED
        and paper["status"] == FINISHED
        and run["tokens"] == paper["tokens"]
    )


def _why_not(run: Line, paper: Line | None, around: str) -> str:
    """Say why a run cannot be compared."""
    if run["status"] != FINISHED:
        return run["status"]
    is_there = paper is not None and paper["status"] == FINISHED
    return "other tokens" if is_there else f"no “{around}” yet"


def find_cells(lines: list[Line], around: str = PAPER) -> Cells:
    """Find how each factor differs from one recipe on each corpus.

    Parameters
    ----------
    lines : list[dict[str, Any]]
        Of the ledger.
    around : str
        The recipe; another than the paper's is compared only with what is laid over it.

    Returns
    -------
    dict[tuple[str, str], Cell]
        By corpus and factor.
    """
    runs = newest_runs(lines)
    p_values = {
        (line["digest"], line["baseline"], line["set"]): line["p_bootstrap"]
        for line in lines
        if line["kind"] == "comparison"
    }
    cells: Cells = {}
    for (corpus, factor, seed), run in sorted(runs.items(), key=lambda item: item[0]):
        if factor != around and not _is_laid_over(factor, around):
            continue
        paper = runs.get((corpus, around, seed))
        cell = cells.setdefault((corpus, factor), Cell())
        if not _is_comparable(run, paper):
            cell.status = _why_not(run, paper, around)
            continue
        assert paper is not None
        shown = STUDIES[corpus].report
        cell.scores.append(run["report"][shown]["bleu"])
        cell.choose.append(run["choose"]["bleu"] - paper["choose"]["bleu"])
        cell.report.append(run["report"][shown]["bleu"] - paper["report"][shown]["bleu"])
        p = p_values.get((run["digest"], paper["digest"], shown))
        if p is not None:
            cell.p_values.append(p)
    return cells


def _is_laid_over(factor: str, around: str) -> bool:
    """Say whether a factor is a change to a recipe; changes to another are on its own page."""
    if around == PAPER:
        return not factor.startswith("recipe-") or "+" not in factor
    return factor.startswith(f"{around}+")


def make_page(
    cells: Cells,
    corpora: list[str],
    factors: list[str],
    lines: list[Line],
    around: str,
    picture: str,
) -> str:
    """Write the table.

    Parameters
    ----------
    cells : dict[tuple[str, str], Cell]
        From `find_cells`.
    corpora, factors : list[str]
        Columns and rows, in order.
    lines : list[dict[str, Any]]
        Of the ledger.
    around : str
        The recipe that the others are compared with.
    picture : str
        The plot, seen from the page.

    Returns
    -------
    str
        A Markdown page.
    """
    titles = " | ".join(STUDIES[name].title for name in corpora)
    rule = "|---" * (len(corpora) + 1) + "|"
    papers = [cells[name, around].scores for name in corpora]
    tokens = " | ".join(f"{_budget(lines, name) / 1e6:,.4g} M" for name in corpora)
    means = " | ".join(f"{statistics.mean(each):.2f}" if each else "–" for each in papers)
    parts = [HEAD.format(recipe=RECIPE if around == PAPER else f"“{around}”")]
    for title, which in (
        ("On the lines that report", "report"),
        ("On the lines that choose", "choose"),
    ):
        rows = [
            f"| {name} | " + " | ".join(_show(cells.get((each, name)), which) for each in corpora)
            for name in factors
            if name != around
        ]
        head = [f"| | {titles} |", rule, f"| training tokens | {tokens} |"]
        if which == "report":
            head.append(f"| BLEU of “{around}” | {means} |")
        parts.append(f"## {title}\n\n" + "\n".join([*head, *(f"{row} |" for row in rows)]) + "\n")
    survivors = [
        f"- {STUDIES[name].title}: {', '.join(list_survivors(cells, name, factors)) or 'nothing'}"
        for name in corpora
    ]
    parts.append(
        f"## What survives\n\nAt least {SURVIVES} BLEU better on the lines that choose, the best "
        "first.\n\n" + "\n".join(survivors) + "\n"
    )
    told = [f"| {name} | {_tell(name)} |" for name in factors]
    parts.append("## What the rows mean\n\n| name | varies | how |\n|---|---|---|\n")
    return "\n".join(parts) + "\n".join(told) + f"\n\n![What helps where]({picture})\n"


def _tell(name: str) -> str:
    """Say what a factor varies, and how in words for “dragoman train”."""
    try:
        factor = find_factor(name)
    except SystemExit:  # tried once, and kept here
        return "| no longer among the factors; its words are in the ledger"
    words = [f"--preset {factor.preset}", *factor.words]
    if factor.vocabulary_size:
        words.append(f"--vocabulary-size {factor.vocabulary_size}")
    share = f", warm-up over {factor.warmup_share:.0%}" if factor.warmup_share else ""
    return f"{factor.group} | `{' '.join(words)}`{share}"


def _show(cell: Cell | None, which: str) -> str:
    """Write one cell."""
    if cell is None:
        return ""
    values = getattr(cell, which)
    if not values:
        return cell.status
    text = f"{statistics.mean(values):+.2f}"
    text += f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else " (one seed)"
    if which == "report" and cell.largest_p is not None:
        p = cell.largest_p
        text = f"**{text}**" if cell.is_shown else text
        text += f", p ≤ {max(p, 0.001):.3f}"
    return text


def list_survivors(cells: Cells, corpus: str, factors: list[str]) -> list[str]:
    """List the factors that what chooses is for.

    Parameters
    ----------
    cells : dict[tuple[str, str], Cell]
        From `find_cells`.
    corpus : str
        Where.
    factors : list[str]
        All of them.

    Returns
    -------
    list[str]
        The best first.
    """
    found = [name for name in factors if cells.get((corpus, name), Cell()).survives]
    return sorted(found, key=lambda name: -statistics.mean(cells[corpus, name].choose))


def list_figures(
    cells: Cells, corpora: list[str], factors: list[str], around: str
) -> dict[str, float]:
    """List the figures of the dated result.

    Parameters
    ----------
    cells : dict[tuple[str, str], Cell]
        From `find_cells`.
    corpora, factors : list[str]
        What there is.
    around : str
        The recipe that the others are compared with.

    Returns
    -------
    dict[str, float]
        Gains on the lines that report.
    """
    figures: dict[str, float] = {}
    over = re.sub(r"\W", "_", around)
    for corpus in corpora:
        for factor in factors:
            cell = cells.get((corpus, factor))
            if cell is None or not cell.report:
                continue
            key = re.sub(r"\W", "_", f"{corpus}_{factor}")
            figures[f"{key}_bleu_mean"] = statistics.mean(cell.scores)
            if factor == around:
                continue
            figures[f"{key}_bleu_gain_over_{over}"] = statistics.mean(cell.report)
            if len(cell.report) > 1:
                figures[f"{key}_bleu_gain_deviation"] = statistics.stdev(cell.report)
            if cell.largest_p is not None:
                figures[f"{key}_largest_p"] = cell.largest_p
            if (factor, around) == ("auto", PAPER) and corpus in GAINS:
                figures[GAINS[corpus]] = statistics.mean(cell.report)
    return figures


def _budget(lines: list[Line], corpus: str) -> int:
    """Find how many tokens the newest run of a corpus was trained on."""
    return [line["tokens"] for line in lines if line["kind"] == "run" and line["corpus"] == corpus][
        -1
    ]


def _order(factors: set[str]) -> list[str]:
    """Put factors in the order in which they are tried, with what was named by hand at the end."""
    known = [name for name in list_names() if name in factors]
    return known + sorted(factors - set(known))
