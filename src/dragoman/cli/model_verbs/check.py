"""The verb “check”; nothing heavy is imported before it runs."""

import argparse

from dragoman.cli.flags import add_verb
from dragoman.errors import FolderError
from dragoman.model_home import find_model


def add_check(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “check”."""
    parser = add_verb(verbs, "check", "check a model folder or a run for damage", _check)
    parser.add_argument(
        "folder", type=find_model, metavar="MODEL|RUN", help="the folder, or an installed model"
    )


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
