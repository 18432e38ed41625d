"""The verb “compare”; nothing heavy is imported before it runs."""

import argparse
from pathlib import Path

from dragoman.cli.flags import TEXT_FILES, add_verb
from dragoman.errors import OptionError


def add_compare(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “compare”."""
    text = "tell whether one system is better than another"
    parser = add_verb(verbs, "compare", text, _compare)
    parser.add_argument("reference", type=Path, metavar="REFERENCE", help=TEXT_FILES)
    parser.add_argument("systems", type=Path, nargs="+", metavar="TRANSLATION",
                        help="two or more; each is compared with the first")  # fmt: skip
    parser.add_argument("--metric", default="bleu", metavar="NAME", help="bleu, chrf or ter")
    parser.add_argument("--seed", type=int, default=12345, metavar="INT", help="of the resampling")


def _compare(options: argparse.Namespace) -> None:
    from dragoman.data.corpus import read_aligned
    from dragoman.evaluation.compare import compare_systems

    if len(options.systems) < 2:
        raise OptionError("dragoman compare: give at least two translations to compare")
    names = [str(path) for path in options.systems]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise OptionError(f"dragoman compare: {twice} is named twice; give different files")
    paths = [options.reference, *options.systems]
    roles = ["reference"] + ["translation"] * len(names)
    reference, *outputs = read_aligned(paths, roles)
    systems = dict(zip(names, outputs, strict=True))
    comparison = compare_systems([reference], systems, metric=options.metric, seed=options.seed)
    print(comparison.in_words())
