"""The verb “pull”; nothing heavy is imported before it runs."""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.flags import add_verb
from dragoman.errors import OptionError

if TYPE_CHECKING:
    from dragoman.catalogue.download import Advance, Network

SOURCES = ("mozilla", "registry", "bergamot", "opus", "argos", "huggingface", "box")
LONGEST_TIMEOUT = 86_400.0


def add_pull(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “pull”."""
    text = "download a published model and install it: the only verb that uses the network"
    parser = add_verb(verbs, "pull", text, _pull)
    parser.add_argument(
        "model", nargs="?", metavar="MODEL",
        help="languages such as de-en, an address (https://…), a file, or OWNER/NAME of Hugging "
        "Face; else the sources' lists of models are brought up to date",
    )  # fmt: skip
    parser.add_argument(
        "--source", choices=SOURCES,
        help="where to look for languages (default: the first that has them); box: the small "
        "models of a checkout",
    )  # fmt: skip
    parser.add_argument(
        "--variant", metavar="TEXT", help="which of a source's models: part of its variant's name"
    )
    parser.add_argument("--name", metavar="NAME", help="what to call it (default: its languages)")
    parser.add_argument(
        "--save", type=Path, metavar="FILE",
        help="write a bundle instead, for “dragoman install” on a machine without a network",
    )  # fmt: skip
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be downloaded, and stop"
    )
    parser.add_argument(
        "--manifest", metavar="ADDRESS", help="where the --source's list of models lies instead"
    )
    parser.add_argument(
        "--timeout", type=float, default=30.0, metavar="SECONDS",
        help="without a byte, after which a connection counts as broken (default: 30)",
    )  # fmt: skip
    parser.add_argument(
        "--trust-new",
        action="store_true",
        help="take a file though it differs from what its address gave before",
    )


def _pull(options: argparse.Namespace) -> None:
    from dragoman.catalogue.download import Network
    from dragoman.catalogue.installation import PullRequest, choose_name, find_offer, install
    from dragoman.catalogue.sources import read_catalogue
    from dragoman.model_home import home_folder

    if not 0 < options.timeout <= LONGEST_TIMEOUT:
        raise OptionError(
            f"--timeout is {options.timeout}; give a number of seconds above 0, at most a day"
        )
    network = Network(
        timeout=options.timeout, digests=home_folder() / "digests", trusts_new=options.trust_new
    )
    if options.model is None:
        for name in ("variant", "name", "save", "dry_run", "trust_new"):
            if getattr(options, name):
                flag = name.replace("_", "-")
                raise OptionError(f"--{flag} means nothing without a model; name one")
        _refresh_lists(options, network)
        return
    request = PullRequest(
        model=options.model, source=options.source, variant=options.variant, name=options.name,
        manifest=options.manifest, save=options.save,
    )  # fmt: skip
    name = choose_name(request)
    offer, origin = find_offer(request, read_catalogue(), network)
    say(offer.describe())
    if options.dry_run:
        return
    with ExitStack() as stack:
        out = install(
            offer, name, network,
            origin=origin, save=options.save, say=say, advance=show_progress(stack),
        )  # fmt: skip
    print(out)


def _refresh_lists(options: argparse.Namespace, network: "Network") -> None:
    """Ask the sources for their lists, for “dragoman models --available”."""
    from dragoman.catalogue.download import fetch
    from dragoman.catalogue.sources import HUB, read_catalogue, read_manifest, remember_offers

    catalogue = read_catalogue()
    asked = tuple(each for each in catalogue.order if each != HUB)  # which has no list of them
    names = (options.source,) if options.source else asked
    if options.manifest and not options.source:
        raise OptionError("--manifest: say by --source whose list of models it is")
    for name in names:
        source = catalogue.sources[name]
        offers = read_manifest(
            source, options.manifest or source.manifest,
            lambda url, origin: fetch(url, network, origin=origin),
        )  # fmt: skip
        remember_offers(name, offers)
        print(f"{name}: {len(offers)} models")


def show_progress(stack: ExitStack) -> "Advance":
    """Show on a terminal how far a download is, until the stack is closed."""
    if not sys.stderr.isatty():
        return lambda _have, _total: None
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

    bar = stack.enter_context(
        Progress(
            BarColumn(), DownloadColumn(), TransferSpeedColumn(),
            console=Console(file=sys.stderr), transient=True,
        )
    )  # fmt: skip
    task = bar.add_task("")
    return lambda have, total: bar.update(task, completed=have, total=total)


def say(text: str) -> None:
    """Tell a person something that is not the result."""
    print(text, file=sys.stderr)
