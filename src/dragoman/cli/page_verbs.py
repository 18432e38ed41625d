"""The verbs “explain” and “watch”; nothing heavy is imported before one runs."""

import argparse
import os
import sys
from pathlib import Path

from dragoman.cli.flags import Parser, add_device, add_verb
from dragoman.errors import OptionError

PORT = 5001
SUFFIXES = (".html", ".svg", ".png")


def add_page(verbs: argparse._SubParsersAction) -> None:
    """Add the verbs “explain” and “watch”."""
    text = "say which source words each word of a translation depends on, and how sure that is"
    parser = add_verb(verbs, "explain", text, _explain)
    parser.add_argument("model", type=Path, metavar="MODEL", help="a model folder")
    parser.add_argument("sentence", metavar="SENTENCE", help="a sentence to translate")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help=".html, .svg or .png"
    )
    parser.add_argument("--translation", metavar="WORDS", help="explain this instead")
    parser.add_argument(
        "--masks", type=int, default=300, metavar="N",
        help="sentences with words left out that the model is asked about (default: 300)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, metavar="INT", help="of what is left out")
    add_device(parser)
    text = "show training runs in a browser while they go on"
    parser = add_verb(verbs, "watch", text, _watch)
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN",
        help="the --out of “dragoman train”, or a folder of such",
    )  # fmt: skip
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS",
        help="address to listen at (default: 127.0.0.1)",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=int, default=PORT, metavar="PORT",
        help=f"port to listen at; 0 takes a free one (default: {PORT})",
    )  # fmt: skip
    add_allow_host(parser)
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")


def add_allow_host(parser: Parser) -> None:
    """Let a user say by which names clients know the server."""
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME",
        help="a name by which browsers, clients or a proxy know the server, besides its address; "
        "may be given several times, * for any",
    )  # fmt: skip


def _explain(options: argparse.Namespace) -> None:
    if options.out.suffix.lower() not in SUFFIXES:
        raise OptionError(
            f"{options.out}: a picture of “{options.out.suffix}” is unknown; use .html, .svg or "
            ".png"
        )
    from dragoman.decoding.translator import Translator
    from dragoman.files import write_file
    from dragoman.insight.explanation import explain
    from dragoman.insight.explanation_picture import draw_explanation
    from dragoman.serving.page.page_export import write_explanation_page

    translator = Translator.load(options.model, options.device)
    found = explain(
        translator,
        options.sentence,
        translation=options.translation,
        num_masks=options.masks,
        seed=options.seed,
    )
    if options.out.suffix.lower() == ".html":
        write_file(options.out, write_explanation_page(translator, found))
    else:
        draw_explanation(found, options.out)
    sys.stdout.write(f"{found.source}\n{found.translation}\n{options.out}\n")


def _watch(options: argparse.Namespace) -> None:
    from dragoman.cli.serve import check_extra

    check_extra("watch")
    from dragoman.serving.app import build_app
    from dragoman.serving.http.api_keys import Keys
    from dragoman.serving.http.log_lines import bound_log
    from dragoman.serving.http.request_heads import is_loopback
    from dragoman.serving.language_pairs import Models
    from dragoman.serving.options import ServeOptions
    from dragoman.serving.page.page_runs import find_runs
    from dragoman.serving.server import Server, listen, name_url
    from dragoman.serving.service import Service

    bound_log()
    runs = find_runs(options.runs)
    how = ServeOptions(host=options.host, port=options.port)
    with listen(how.host, how.port) as listener:
        service = Service(Models([]), how)
        app = build_app(service, Keys(), runs)
        server = Server(app, service, how, other_names=options.allow_host)
        if not is_loopback(how.host):
            sys.stderr.write("dragoman: warning: whoever can reach this machine can see the runs\n")
        # Who comes before the server is up waits for it.
        listener.listen()
        url = f"{name_url(listener)}#view=training"
        sys.stdout.write("".join(f"{name}: {path}\n" for name, path in runs.items()))
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        if not options.no_browser and _has_screen():
            import webbrowser

            webbrowser.open(url)
        server.run(listener)


def _has_screen() -> bool:
    """Whether a browser would open a window, not take over the terminal."""
    is_desktop = sys.platform in ("darwin", "win32")
    return is_desktop or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
