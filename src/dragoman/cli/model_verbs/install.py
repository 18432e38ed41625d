"""The verb “install”; nothing heavy is imported before it runs."""

import argparse
from pathlib import Path

from dragoman.cli.flags import add_verb
from dragoman.errors import FolderError


def add_install(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “install”."""
    parser = add_verb(verbs, "install", "install a model from a file, without a network", _install)
    parser.add_argument(
        "file", type=Path, metavar="FILE",
        help="what “dragoman pull --save” wrote, or an archive of a model as it was published",
    )  # fmt: skip
    parser.add_argument(
        "--name", metavar="NAME", help="what to call it (default: as the file says)"
    )


def _install(options: argparse.Namespace) -> None:
    from dragoman.catalogue.download import Network
    from dragoman.catalogue.installation import PullRequest, choose_name, find_offer, install
    from dragoman.catalogue.sources import read_catalogue
    from dragoman.cli.model_verbs.pull import say

    if not options.file.is_file():
        raise FolderError(f"{options.file}: is no file; “dragoman pull … --save FILE” writes one")
    request = PullRequest(model=str(options.file), name=options.name)
    name = choose_name(request)
    offer, _ = find_offer(request, read_catalogue(), Network())
    print(install(
        offer, name, Network(), origin=None, save=None, say=say, advance=lambda _have, _total: None
    ))  # fmt: skip
