"""The verb “watch”; nothing heavy is imported before it runs."""

import argparse
import os
import sys
from pathlib import Path

from dragoman.cli.flags import add_allow_host, add_verb, check_extra

PORT = 5001


def add_watch(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “watch”."""
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


def _watch(options: argparse.Namespace) -> None:
    check_extra("watch")
    from dragoman.serving.app import build_app
    from dragoman.serving.http.api_keys import ApiKeys
    from dragoman.serving.http.log_lines import limit_log_lines
    from dragoman.serving.http.request_heads import is_loopback
    from dragoman.serving.language_pairs import ServedModels
    from dragoman.serving.options import ServeOptions
    from dragoman.serving.page.page_runs import WatchedRuns
    from dragoman.serving.server import Server, listen, name_url
    from dragoman.serving.service import Service

    limit_log_lines()
    runs = WatchedRuns(options.runs)
    how = ServeOptions(host=options.host, port=options.port)
    with listen(how.host, how.port) as listener:
        service = Service(ServedModels([]), how)
        app = build_app(service, ApiKeys(), runs)
        server = Server(app, service, how, other_names=options.allow_host)
        if not is_loopback(how.host):
            sys.stderr.write("dragoman: warning: whoever can reach this machine can see the runs\n")
        # Who comes before the server is up waits for it.
        listener.listen()
        url = f"{name_url(listener)}#view=training"
        sys.stdout.write("".join(f"{run.name}: {run.path}\n" for run in runs.list_runs()))
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
