"""The verbs of the command, each in a file of its own that is imported when it is called."""

import argparse
from collections.abc import Callable

VERBS = (
    "train", "translate", "score", "shortlist", "quantise", "evaluate", "compare", "average",
    "check", "look", "export", "import", "serve", "explain", "watch", "data", "paper", "completion",
)  # fmt: skip


def add_verbs(verbs: argparse._SubParsersAction, word: str | None = None) -> None:
    """Add the verb that is called to the command; all of them if no verb is called."""
    for name in (word,) if word in VERBS else VERBS:
        _find_verb(name)(verbs)


def _find_verb(name: str) -> Callable[[argparse._SubParsersAction], None]:
    """Import what adds a verb and its flags."""
    match name:
        case "train":
            from dragoman.cli.train import add_train as add
        case "translate":
            from dragoman.cli.translate import add_translate as add
        case "score":
            from dragoman.cli.score import add_score as add
        case "shortlist":
            from dragoman.cli.shortlist import add_shortlist as add
        case "quantise":
            from dragoman.cli.quantise import add_quantise as add
        case "evaluate":
            from dragoman.cli.evaluate import add_evaluate as add
        case "compare":
            from dragoman.cli.compare import add_compare as add
        case "average":
            from dragoman.cli.average import add_average as add
        case "check":
            from dragoman.cli.check import add_check as add
        case "look":
            from dragoman.cli.look import add_look as add
        case "export":
            from dragoman.cli.export_model import add_export as add
        case "import":
            from dragoman.cli.import_model import add_import as add
        case "serve":
            from dragoman.cli.serve import add_serve as add
        case "explain":
            from dragoman.cli.explain import add_explain as add
        case "watch":
            from dragoman.cli.watch import add_watch as add
        case "data":
            from dragoman.cli.data import add_data as add
        case "paper":
            from dragoman.cli.paper import add_paper as add
        case "completion":
            from dragoman.cli.completion import add_completion as add
        case _:
            raise ValueError(name)
    return add
