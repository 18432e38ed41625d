"""The verb “score”; nothing heavy is imported before it runs."""

import argparse
from pathlib import Path

from dragoman.cli.flags import add_device, add_model, add_verb
from dragoman.errors import OptionError

WINDOW_LINES = 2048


def add_score(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “score”."""
    text = "tell how probable a model finds given translations, one number a line"
    parser = add_verb(verbs, "score", text, _score)
    add_model(parser)
    parser.add_argument("--source", type=Path, metavar="FILE", help="sentences, one a line")
    parser.add_argument("--target", type=Path, metavar="FILE", help="their translations")
    parser.add_argument(
        "--tsv", type=Path, metavar="FILE",
        help="source, tab, target on each line instead (default: standard input)",
    )  # fmt: skip
    parser.add_argument(
        "--normalise", action="store_true",
        help="print the mean of a subword's log-probability, not their sum",
    )  # fmt: skip
    parser.add_argument(
        "--per-token",
        action="store_true",
        help="print each subword's too, after a tab",
    )
    add_device(parser)


def _score(options: argparse.Namespace) -> None:
    from dragoman.data.lines import open_lines
    from dragoman.decoding.device import choose_device
    from dragoman.decoding.output.sequence_scores import PairScorer, open_both, split_pair
    from dragoman.decoding.stream.line_stream import PrintedOutput, run_stream
    from dragoman.decoding.stream.progress import ProgressDisplay
    from dragoman.folder import read_folder

    if (options.source is None) != (options.target is None):
        raise OptionError("dragoman score: give both --source and --target, or --tsv")
    if options.source is not None and options.tsv is not None:
        raise OptionError("dragoman score: give --source and --target, or --tsv, not both")
    scorer = PairScorer(read_folder(options.model), choose_device(options.device))
    if options.source is not None:
        reader = open_both(options.source, options.target)
    else:
        reader = open_lines(options.tsv)

    def work(lines: list[str], first: int) -> list[str]:
        def name_of(index: int) -> str:
            return f"{reader.place}, line {first + index}"

        pairs = [split_pair(line, name_of(index)) for index, line in enumerate(lines)]
        return [
            each.in_words(normalise=options.normalise, per_token=options.per_token)
            for each in scorer.score(pairs, name_of)
        ]

    with ProgressDisplay(num_bytes=reader.num_bytes) as display:
        run_stream(reader, work, PrintedOutput(), display, WINDOW_LINES)
