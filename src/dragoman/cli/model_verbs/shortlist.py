"""The verb “shortlist”; nothing heavy is imported before it runs."""

import argparse
import sys
from itertools import islice
from pathlib import Path

from dragoman.cli.flags import add_model, add_verb
from dragoman.errors import DataError, OptionError

HELD_OUT_SHARE = 20
MOST_HELD_OUT = 1000


def add_shortlist(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “shortlist”."""
    text = "learn which few words a translation may need, for “translate --short-list”"
    parser = add_verb(verbs, "shortlist", text, _learn)
    add_model(parser)
    for side, what in (("source", "sentences, one a line"), ("target", "their translations")):
        parser.add_argument(f"--{side}", type=Path, required=True, metavar="FILE", help=what)


def _learn(options: argparse.Namespace) -> None:
    from dragoman.data.corpus import CorpusFiles, read_pairs
    from dragoman.decoding.engines.select import can_rebuild
    from dragoman.decoding.search.shortlist import MOST_PAIRS, learn_short_list, measure_coverage
    from dragoman.folder import read_folder
    from dragoman.text.normalise import normalise

    folder = read_folder(options.model)
    if not can_rebuild(folder.options):
        raise OptionError(
            f"{options.model}: only Transformers with full attention and without experts search "
            "among some words alone; use the folder without a short-list"
        )
    files = CorpusFiles(source=(options.source,), target=(options.target,))
    worded = (pair for pair in read_pairs(files) if all(map(normalise, pair)))
    pairs = list(islice(worded, MOST_PAIRS + MOST_HELD_OUT))
    if not pairs:
        raise DataError(
            f"{options.source}, {options.target}: have no words to learn a short-list from; give "
            "sentences and their translations"
        )
    num_held_out = min(MOST_HELD_OUT, len(pairs) // HELD_OUT_SHARE)
    learnt, held_out = pairs[: len(pairs) - num_held_out], pairs[len(pairs) - num_held_out :]
    short_list = learn_short_list(learnt, folder.vocabularies)
    short_list.write(folder.path)
    if held_out:
        share = measure_coverage(short_list, held_out, folder.vocabularies)
        sys.stderr.write(
            f"{100 * share:.1f} % of the subwords of {num_held_out:,} other translations are on "
            "their sentence's list\n"
        )
