"""The verb “train”; nothing heavy is imported before it runs."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.flags import TEXT_FILES, Parser, add_flags, add_verb, given_flags
from dragoman.errors import OptionError
from dragoman.options import check_names, read_toml
from dragoman.presets import preset_names
from dragoman.training.configuration import RunOptions

if TYPE_CHECKING:
    from dragoman.training.preparation import RunRequest
    from dragoman.training.updates.distributed import Workers


def add_train(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “train”."""
    parser = add_verb(verbs, "train", "train a model from sentence pairs", _train)
    _add_corpus(parser, "", "train on")
    _add_corpus(parser, "valid-", "validate on")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the model folder")
    parser.add_argument(
        "--source-language", metavar="CODE", help="such as de; else from file names"
    )
    parser.add_argument(
        "--target-language", metavar="CODE", help="such as en; else from file names"
    )
    recipes = [name for name in preset_names() if not name.startswith("paper-")]
    parser.add_argument(
        "--preset", default="auto", metavar="NAME",
        help=f"a recipe: {', '.join(recipes)}, or paper-NAME for the shapes that were published "
        "(default: auto, by the size of the corpus or for the family)",
    )  # fmt: skip
    parser.add_argument("--config", type=Path, metavar="FILE", help="a TOML file of options")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")
    parser.add_argument(
        "--from", dest="start_from", type=Path, metavar="MODEL",
        help="a model folder whose weights and subwords to begin with (fine-tuning)",
    )  # fmt: skip
    parser.add_argument(
        "--store", type=Path, metavar="DIR",
        help="folder of the prepared corpus, to share it between runs (default: in --out)",
    )  # fmt: skip
    parser.add_argument(
        "--dry-run", action="store_true",
        help="print the configuration, the parameter count and the memory, and stop",
    )  # fmt: skip
    parser.add_argument(
        "--find-learning-rate", action="store_true",
        help="try ever higher learning rates, suggest one, leave a plot in --out, and stop",
    )  # fmt: skip
    add_flags(parser, RunOptions)


def _add_corpus(parser: Parser, prefix: str, what: str) -> None:
    """Add the flags that name a corpus."""
    for side in ("source", "target"):
        parser.add_argument(
            f"--{prefix}{side}", nargs="+", type=Path, default=[], metavar="FILE",
            help=f"{side} sentences to {what}: {TEXT_FILES}",
        )  # fmt: skip
    parser.add_argument(
        f"--{prefix}tsv", nargs="+", type=Path, default=[], metavar="FILE",
        help="files with source, tab, target on each line instead",
    )  # fmt: skip


def _train(options: argparse.Namespace) -> None:
    from dragoman.data.corpus import CorpusFiles
    from dragoman.training.preparation import RunRequest
    from dragoman.training.run import resume_run, start_run
    from dragoman.training.run_setup import describe_run
    from dragoman.training.updates.distributed import find_workers

    flags = given_flags(options, RunOptions)
    files = CorpusFiles(
        source=tuple(options.source), target=tuple(options.target), tsv=tuple(options.tsv)
    )
    valid_files = CorpusFiles(
        source=tuple(options.valid_source),
        target=tuple(options.valid_target),
        tsv=tuple(options.valid_tsv),
    )
    config = read_toml(options.config) if options.config else {}
    check_names(RunOptions, config, place=str(options.config))
    if options.resume:
        _check_resume(options)
        _or_exit(lambda workers: resume_run(options.out, flags, _say, workers))
        return
    if not files.all:
        raise OptionError("dragoman train: give --source and --target, or --tsv")
    request = RunRequest(
        out=options.out,
        files=files,
        valid_files=valid_files if valid_files.all else None,
        preset=options.preset,
        config=config,
        flags=flags,
        source_language=options.source_language,
        target_language=options.target_language,
        start_from=options.start_from,
        store=options.store,
    )
    if options.find_learning_rate:
        _find_learning_rate(request, find_workers(os.environ), is_dry=options.dry_run)
    elif not options.dry_run:
        _or_exit(lambda workers: start_run(request, _say, workers))
    elif find_workers(os.environ).is_first:
        describe_run(request, print)


def _find_learning_rate(request: "RunRequest", workers: "Workers", *, is_dry: bool) -> None:
    """Test learning rates and print what is found."""
    from dragoman.training.optimisers.learning_rate_finder import describe_test, find_learning_rate

    if is_dry:
        raise OptionError("--find-learning-rate and --dry-run do different things; leave one out")
    print(describe_test(find_learning_rate(request, _say, workers), request.out))


def _check_resume(options: argparse.Namespace) -> None:
    """Refuse what a resumed run would not heed."""
    unheeded = "source target tsv valid_source valid_target valid_tsv config start_from store"
    for name in (*unheeded.split(), "source_language", "target_language", "dry_run",
                 "find_learning_rate"):  # fmt: skip
        if getattr(options, name):
            flag = {"start_from": "from"}.get(name, name).replace("_", "-")
            raise OptionError(f"--{flag} means nothing with --resume; leave it out")


def _or_exit(train: "Callable[[Workers], None]") -> None:
    """Train, perhaps with others; if somebody stops it, leave with an interruption's status."""
    from dragoman.training.run import InterruptedRunError
    from dragoman.training.updates.distributed import joined_workers

    is_interrupted = False
    with joined_workers() as workers:
        try:
            train(workers)
        except InterruptedRunError:
            is_interrupted = True
    if is_interrupted:
        sys.exit(130)


def _say(text: str) -> None:
    """Tell a person something that is not the result."""
    print(text, file=sys.stderr)
