"""The verbs of the command, each in a file of its own that is imported when it is called."""

import argparse
from collections.abc import Callable

VERBS = (
    "train", "translate", "score", "shortlist", "quantise", "evaluate", "compare", "average",
    "check", "look", "pull", "models", "install", "export", "import", "serve", "explain", "watch",
    "data", "paper", "completion",
)  # fmt: skip


def add_verbs(verbs: argparse._SubParsersAction, word: str | None = None) -> None:
    """Add the verb that is called to the command; all of them if no verb is called."""
    for name in (word,) if word in VERBS else VERBS:
        _find_verb(name)(verbs)


def _find_verb(name: str) -> Callable[[argparse._SubParsersAction], None]:
    """Import what adds a verb and its flags."""
    match name:
        case "train":
            from dragoman.cli.model_verbs.train import add_train as add
        case "translate":
            from dragoman.cli.text_verbs.translate import add_translate as add
        case "score":
            from dragoman.cli.text_verbs.score import add_score as add
        case "shortlist":
            from dragoman.cli.model_verbs.shortlist import add_shortlist as add
        case "quantise":
            from dragoman.cli.model_verbs.quantise import add_quantise as add
        case "evaluate":
            from dragoman.cli.text_verbs.evaluate import add_evaluate as add
        case "compare":
            from dragoman.cli.text_verbs.compare import add_compare as add
        case "average":
            from dragoman.cli.model_verbs.average import add_average as add
        case "check":
            from dragoman.cli.model_verbs.check import add_check as add
        case "look":
            from dragoman.cli.text_verbs.look import add_look as add
        case "pull":
            from dragoman.cli.model_verbs.pull import add_pull as add
        case "models":
            from dragoman.cli.model_verbs.models import add_models as add
        case "install":
            from dragoman.cli.model_verbs.install import add_install as add
        case "export":
            from dragoman.cli.model_verbs.export_model import add_export as add
        case "import":
            from dragoman.cli.model_verbs.import_model import add_import as add
        case "serve":
            from dragoman.cli.text_verbs.serve import add_serve as add
        case "explain":
            from dragoman.cli.text_verbs.explain import add_explain as add
        case "watch":
            from dragoman.cli.model_verbs.watch import add_watch as add
        case "data":
            from dragoman.cli.model_verbs.data import add_data as add
        case "paper":
            from dragoman.cli.model_verbs.paper import add_paper as add
        case "completion":
            from dragoman.cli.completion import add_completion as add
        case _:
            raise ValueError(name)
    return add
