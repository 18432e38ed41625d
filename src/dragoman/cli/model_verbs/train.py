"""The verb “train”; nothing heavy is imported before it runs."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, get_type_hints

from dragoman.cli.flags import add_flags, add_verb, given_flags
from dragoman.cli.topics import TopicHelp, Topics, owners_of
from dragoman.errors import OptionError
from dragoman.model_home import find_model
from dragoman.options import Plain, check_names, read_toml, section_kinds
from dragoman.presets import AUTO, TUNING, preset_names, read_preset
from dragoman.training.configuration import DEFAULT_FAMILY, RunOptions

if TYPE_CHECKING:
    from dragoman.training.preparation import RunRequest
    from dragoman.training.updates.distributed import Workers


COMMON = frozenset(
    (
        *("source", "target", "tsv", "tmx", "general", "valid_source", "valid_target", "out"),
        *("preset", "config"),
        *("start_from", "resume", "dry_run", "family", "dropout", "vocabulary_size"),
        *("batch_tokens", "max_steps", "max_minutes", "patience", "device", "seed"),
    )
)
"""The options that most people need."""
IN_FILE_ONLY = frozenset(
    (
        *("key_dim", "value_dim", "attention_bias", "scaled", "output_bias", "source_end"),
        *("decoder_mask", "residual"),
        *("max_positions", "window", "experts_per_token", "balance_weight", "norm_epsilon"),
        *("decay_share", "cutoff", "reward_samples", "likelihood_weight"),
        *("best_by", "valid_beam_size", "start_share", "max_length_ratio", "deduplicate"),
        *("length_penalty", "coverage_penalty", "replace_unknown", "split_sentences"),
        *("search_again", "into", "formality", "formal_mark", "informal_mark"),
    )
)
"""Options without a flag: of another option's values, for studies, or said at translation."""
TOPICS = Topics(
    common=COMMON,
    groups={
        "model": ("model",),
        "training": ("run", "training"),
        "text": ("text",),
        "corpus": ("files", "corpus"),
        "search": ("search",),
    },
    section="model",
    kinds=section_kinds(get_type_hints(RunOptions)["model"]),
    flag="--family",
    epilog="Defaults are those of the paper's base model; a preset lays its own over them, and "
    "--dry-run prints what a run will take. The rest: “--help all”, or a topic, such as “--help "
    "training”; for another family of models, “--family luong --help model”.",
)


def add_train(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “train”."""
    text = "train a model from sentence pairs"
    parser = add_verb(verbs, "train", text, _train, add_help=False)
    parser.usage = "%(prog)s --source FILE --target FILE --out DIR [OPTION ...]"
    parser.add_argument("-h", "--help", action=TopicHelp, topics=TOPICS)
    _add_files(parser.add_argument_group("files"))
    _add_run(parser.add_argument_group("run"))
    add_flags(parser, RunOptions, IN_FILE_ONLY)


def _add_files(group: argparse._ArgumentGroup) -> None:
    """Add the flags that name the corpus, and where it is prepared."""
    for prefix, what in (("", ""), ("valid-", " to validate on")):
        texts = {
            "source": f"source sentences{what}, one a line, .gz or .xz too",
            "target": f"target sentences{what}, line by line",
            "tsv": f"files{what} of source, tab, target on each line instead",
        }
        for name, text in texts.items():
            group.add_argument(
                f"--{prefix}{name}", nargs="+", type=Path, default=[], metavar="FILE", help=text
            )
    group.add_argument(
        "--tmx", nargs="+", type=Path, default=[], metavar="FILE",
        help="translation memories instead, .gz or .xz too",
    )  # fmt: skip
    group.add_argument(
        "--general", nargs="+", type=Path, default=[], metavar="FILE",
        help="TSV or .tmx to mix in with --from, so that little is forgotten (default: what that "
        "model was trained on, if it is there)",
    )  # fmt: skip
    for side, code in (("source", "de"), ("target", "en")):
        group.add_argument(
            f"--{side}-language", metavar="CODE", help=f"such as {code}; else from file names"
        )
    group.add_argument(
        "--store", type=Path, metavar="DIR",
        help="folder of the prepared corpus, to share it between runs (default: in --out)",
    )  # fmt: skip


def _add_run(group: argparse._ArgumentGroup) -> None:
    """Add the flags that say what is done, and from what it begins."""
    group.add_argument("--out", type=Path, required=True, metavar="DIR", help="the model folder")
    recipes = [name for name in preset_names() if not name.startswith("paper-")]
    group.add_argument(
        "--preset", default="auto", metavar="NAME",
        help=f"a recipe: {', '.join(recipes)}, or paper-NAME for the shapes that were published "
        "(default: auto, by the size of the corpus or for the family)",
    )  # fmt: skip
    group.add_argument("--config", type=Path, metavar="FILE", help="a TOML file of options")
    group.add_argument("--resume", action="store_true", help="go on with the run in --out")
    group.add_argument(
        "--from", dest="start_from", type=find_model, metavar="MODEL",
        help="a model folder or an installed model to begin with: fine-tuning, with a report of "
        "gain and loss",
    )  # fmt: skip
    group.add_argument(
        "--dry-run", action="store_true",
        help="print configuration, parameters and memory, and stop",
    )  # fmt: skip
    group.add_argument(
        "--find-learning-rate", action="store_true",
        help="try ever higher learning rates, suggest one, leave a plot in --out, and stop",
    )  # fmt: skip


def _train(options: argparse.Namespace) -> None:
    from dragoman.data.corpus import CorpusFiles
    from dragoman.training.preparation import RunRequest
    from dragoman.training.run import resume_run, start_run
    from dragoman.training.run_setup import describe_run
    from dragoman.training.updates.distributed import find_workers

    flags = given_flags(options, RunOptions)
    files = CorpusFiles(
        source=tuple(options.source),
        target=tuple(options.target),
        tsv=tuple(options.tsv),
        tmx=tuple(options.tmx),
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
        raise OptionError("dragoman train: give --source and --target, or --tsv, or --tmx")
    _check_family(options, flags, config)
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
        general=tuple(options.general),
    )
    if options.find_learning_rate:
        _find_learning_rate(request, find_workers(os.environ), is_dry=options.dry_run)
    elif not options.dry_run:
        _or_exit(lambda workers: start_run(request, _say, workers))
    elif find_workers(os.environ).is_first:
        describe_run(request, print)


def _check_family(options: argparse.Namespace, flags: Plain, config: Plain) -> None:
    """Refuse options of other families of models than the one that is asked for."""
    recipe = {} if options.preset == AUTO else read_preset(options.preset)
    if options.start_from and options.preset in (AUTO, TUNING):
        return  # the model's own family: what does not fit it is refused with it
    layers = (flags, config, recipe)
    said = (layer.get("model", {}).get("family") for layer in layers)
    family = next(filter(None, said), DEFAULT_FAMILY)
    for name in flags.get("model", {}):
        owners = owners_of(options.parser, name)
        if family not in owners:
            flag = name.replace("_", "-")
            raise OptionError(
                f"dragoman train: --{flag} belongs to {', '.join(map(str, owners))}, but the "
                f"family is {family}; give --family {owners[0]}, or leave it out"
            )


def _find_learning_rate(request: "RunRequest", workers: "Workers", *, is_dry: bool) -> None:
    """Test learning rates and print what is found."""
    from dragoman.training.learning_rate_finder import describe_test, find_learning_rate

    if is_dry:
        raise OptionError("--find-learning-rate and --dry-run do different things; leave one out")
    print(describe_test(find_learning_rate(request, _say, workers), request.out))


def _check_resume(options: argparse.Namespace) -> None:
    """Refuse what a resumed run would not heed."""
    unheeded = (
        "source target tsv tmx general valid_source valid_target valid_tsv config start_from store"
    )
    for name in (*unheeded.split(), "source_language", "target_language", "dry_run",
                 "find_learning_rate"):  # fmt: skip
        if getattr(options, name):
            flag = {"start_from": "from"}.get(name, name).replace("_", "-")
            raise OptionError(f"--{flag} means nothing with --resume; leave it out")


def _or_exit(train: "Callable[[Workers], None]") -> None:
    """Train, perhaps with others; if somebody stops it, leave with an interruption's status."""
    from dragoman.training.run import InterruptedRunError
    from dragoman.training.updates.distributed import process_group

    is_interrupted = False
    with process_group() as workers:
        try:
            train(workers)
        except InterruptedRunError:
            is_interrupted = True
    if is_interrupted:
        sys.exit(130)


def _say(text: str) -> None:
    """Tell a person something that is not the result."""
    print(text, file=sys.stderr)
