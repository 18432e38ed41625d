"""The verbs of the command: their flags, and the one call that each makes.

Nothing heavy is imported before a verb runs, so that ``--help`` answers at once.
"""

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.flags import Parser, add_device, add_flags, add_verb, given_flags
from dragoman.decoding.options import SearchOptions
from dragoman.errors import FolderError, OptionError
from dragoman.options import check_names, read_toml
from dragoman.presets import preset_names

if TYPE_CHECKING:
    from dragoman.training.preparation import RunRequest
    from dragoman.training.updates.distributed import Workers

TEXT_FILES = "plain text, .gz or .xz, one sentence a line"


def add_verbs(verbs: argparse._SubParsersAction, word: str | None = None) -> None:
    """Give the command its verbs.

    Parameters
    ----------
    verbs : argparse._SubParsersAction
        Where to add them.
    word : str | None
        The verb that is called: only its flags, and those of what belongs to it, are made then.
        None, or no verb: all are.
    """
    from dragoman.cli.exchange import add_exchange
    from dragoman.cli.model_verbs import add_decoding
    from dragoman.cli.serve import add_serving

    groups: dict[tuple[str, ...], Callable] = {
        ("train",): _add_train,
        ("translate", "score", "shortlist", "quantise"): add_decoding,
        ("evaluate",): _add_evaluate,
        ("compare",): _add_compare,
        ("average",): _add_average,
        ("check",): _add_check,
        ("look",): _add_look,
        ("export", "import"): add_exchange,
        ("serve", "watch", "explain"): add_serving,
        ("data",): _add_data,
        ("paper",): _add_paper,
    }
    wanted = [add for names, add in groups.items() if word in names]
    for add in wanted or groups.values():
        add(verbs)


def _add_paper(verbs: argparse._SubParsersAction) -> None:
    from dragoman.cli.paper import add_paper

    add_paper(verbs)


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


def _add_train(verbs: argparse._SubParsersAction) -> None:
    from dragoman.training.configuration import RunOptions

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


def _train(options: argparse.Namespace) -> None:
    from dragoman.data.corpus import CorpusFiles
    from dragoman.training.configuration import RunOptions
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


def _add_evaluate(verbs: argparse._SubParsersAction) -> None:
    parser = add_verb(verbs, "evaluate", "score a model on a test set", _evaluate)
    parser.add_argument("model", type=Path, metavar="MODEL", help="a model folder")
    parser.add_argument("--source", type=Path, required=True, metavar="FILE", help=TEXT_FILES)
    parser.add_argument("--reference", type=Path, required=True, nargs="+", metavar="FILE",
                        help="one or more reference translations")  # fmt: skip
    parser.add_argument("--output", type=Path, metavar="FILE", help="keep the translations here")
    _add_metrics(parser, ("bleu", "chrf", "ter"))
    parser.add_argument("--json", action="store_true", help="print the scores as JSON")
    add_device(parser)
    add_flags(parser, SearchOptions)


def _add_metrics(parser: Parser, default: tuple[str, ...]) -> None:
    parser.add_argument("--metrics", nargs="+", default=list(default), metavar="NAME",
                        help="of bleu, chrf, chrf++, ter")  # fmt: skip
    parser.add_argument("--lowercase", action="store_true", help="ignore case")
    parser.add_argument("--tokenize", metavar="NAME", help="sacreBLEU's tokeniser for BLEU")


def _evaluate(options: argparse.Namespace) -> None:
    from dragoman.evaluation.evaluate import evaluate_model

    inputs = [options.source, *options.reference]
    if options.output and options.output.resolve() in [path.resolve() for path in inputs]:
        raise OptionError(f"--output {options.output} is also an input; name another file")
    found = evaluate_model(
        options.model,
        options.source,
        options.reference,
        metrics=options.metrics,
        lowercase=options.lowercase,
        tokenize=options.tokenize,
        device=options.device,
        search=given_flags(options, SearchOptions),
    )
    print(found.as_json() if options.json else found.in_words(), flush=True)
    if options.output:
        from dragoman.files import write_file

        write_file(options.output, "".join(f"{line}\n" for line in found.translations))


def _add_compare(verbs: argparse._SubParsersAction) -> None:
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


def _add_average(verbs: argparse._SubParsersAction) -> None:
    parser = add_verb(verbs, "average", "average checkpoints or models into one", _average)
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL",
                        help="model folders, or checkpoints (RUN/checkpoints/step-…)")  # fmt: skip
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="the new model folder"
    )
    parser.add_argument("--greedy", action="store_true",
                        help="keep only what helps on the validation files")  # fmt: skip
    parser.add_argument("--valid-source", type=Path, metavar="FILE", help=TEXT_FILES)
    parser.add_argument("--valid-target", type=Path, metavar="FILE", help=TEXT_FILES)
    add_device(parser)


def _average(options: argparse.Namespace) -> None:
    from dragoman.training.checkpoints.soup import average_models

    line = average_models(
        options.models,
        options.out,
        greedy=options.greedy,
        valid_source=options.valid_source,
        valid_target=options.valid_target,
        device=options.device,
    )
    print(line)


def _add_check(verbs: argparse._SubParsersAction) -> None:
    parser = add_verb(verbs, "check", "check a model folder or a run for damage", _check)
    parser.add_argument("folder", type=Path, metavar="MODEL|RUN", help="the folder")


def _check(options: argparse.Namespace) -> None:
    from dragoman.checks import find_damage, lacks_digests

    damage = find_damage(options.folder)
    for line in damage:
        print(line)
    if damage:
        raise FolderError(
            f"{options.folder}: {len(damage)} of its parts are broken, see above; get them again"
        )
    if lacks_digests(options.folder):
        print(f"{options.folder}: can be used; its weights carry no digests, so damage of their "
              "numbers would not be noticed")  # fmt: skip
    else:
        print(f"{options.folder}: all is well")


def _add_look(verbs: argparse._SubParsersAction) -> None:
    text = "draw what the attention heads look at, or which words decide a word"
    parser = add_verb(verbs, "look", text, _look)
    parser.add_argument("model", type=Path, metavar="MODEL", help="a model folder")
    parser.add_argument("sentence", metavar="SENTENCE", help="a sentence to translate")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help=".png, .svg or .html"
    )
    parser.add_argument("--translation", metavar="WORDS", help="make the model say this")
    parser.add_argument(
        "--kind", nargs="+", default=[], metavar="KIND",
        help="of encoder, decoder, cross, gradient (default: all attention that there is)",
    )  # fmt: skip
    parser.add_argument("--layer", nargs="+", type=int, default=[], metavar="N", help="from 1; all")
    parser.add_argument("--head", nargs="+", type=int, default=[], metavar="N", help="from 1; all")
    parser.add_argument("--average-heads", action="store_true", help="one map a layer")
    add_device(parser)


def _look(options: argparse.Namespace) -> None:
    from dragoman.decoding.translator import Translator
    from dragoman.files import write_file
    from dragoman.insight.attention import look_at
    from dragoman.insight.picture import draw_maps, mean_heads
    from dragoman.serving.page.page_export import write_look_page

    translator = Translator.load(options.model, options.device)
    seen = look_at(
        translator,
        options.sentence,
        translation=options.translation,
        kinds=options.kind,
        layers=options.layer,
        heads=options.head,
    )
    if seen.remark:
        _say(seen.remark)
    if options.average_heads:
        seen = replace(seen, maps=tuple(mean_heads(seen.maps)))
    if options.out.suffix.lower() == ".html":
        write_file(options.out, write_look_page(translator, seen))
    else:
        title = f"{seen.source}  →  {seen.translation}"
        draw_maps(seen.maps, options.out, title=title, subtitle=seen.legend)
    print(f"{seen.source}\n{seen.translation}\n{options.out}")


def _add_data(verbs: argparse._SubParsersAction) -> None:
    parser = add_verb(verbs, "data", "make data to learn and test with", _no_data)
    sorts = parser.add_subparsers(title="kinds", metavar="KIND", parser_class=Parser)
    text = "sentence pairs of the built-in grammar or tasks, with their word alignment"
    builtin = add_verb(sorts, "builtin", text, _builtin)
    builtin.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder")
    builtin.add_argument("--pair", default="fr-en", metavar="PAIR",
                         help="fr-en (default) or en-es; or the task copy or reversal")  # fmt: skip
    builtin.add_argument("--sentences", type=int, default=20_000, metavar="N",
                         help="training pairs (default: 20000)")  # fmt: skip
    builtin.add_argument("--held-out", type=int, default=1000, metavar="N",
                         help="validation pairs, and as many to test (default: 1000)")  # fmt: skip
    builtin.add_argument("--max-words", type=int, metavar="N",
                         help="the longest source of copy and reversal (default: 10)")  # fmt: skip
    builtin.add_argument("--seed", type=int, default=1, metavar="INT", help="which sentences")


def _no_data(options: argparse.Namespace) -> None:
    raise OptionError(f"{options.parser.prog}: which kind? “builtin” is there")


def _builtin(options: argparse.Namespace) -> None:
    from dragoman.data.builtin import write_corpus

    counts = write_corpus(
        options.out,
        languages=options.pair,
        count=options.sentences,
        held_out=options.held_out,
        seed=options.seed,
        max_words=options.max_words,
    )
    for name, count in counts.items():
        print(f"{options.out / name}: {count:,} lines")
