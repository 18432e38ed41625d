"""The verb “serve”; nothing heavy is imported before it runs."""

import argparse
import contextlib
import gc
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, get_args

from dragoman.cli.flags import (
    add_allow_host,
    add_device,
    add_flags,
    add_verb,
    check_extra,
    given_flags,
)
from dragoman.decoding.options import Precision
from dragoman.errors import DragomanError, OptionError
from dragoman.model_home import find_model, list_installed, models_folder
from dragoman.options import from_plain
from dragoman.serving.options import ServeOptions

if TYPE_CHECKING:
    from dragoman.serving.http.api_keys import ApiKeys
    from dragoman.serving.language_pairs import ServedModels
    from dragoman.serving.service import Service

MOST_PROCESSES = 4
# How long Python lets one thread run before another may: the loop should not wait for a model.
SWITCH_SECONDS = 0.001
GARBAGE_OBJECTS = 20_000


def add_serve(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “serve”."""
    text = "serve models to translation clients and browsers"
    parser = add_verb(verbs, "serve", text, _serve)
    parser.add_argument(
        "models", type=find_model, nargs="*", metavar="MODEL",
        help="model folders or names (else all installed models); languages that none joins are "
        "joined through a third",
    )  # fmt: skip
    parser.add_argument(
        "--keys", type=Path, metavar="FILE",
        help="a TOML file of API keys; clients then need one (see docs/serving.md)",
    )  # fmt: skip
    parser.add_argument(
        "--state", metavar="DIR|URL",
        help="a folder, or the address of a database of PostgreSQL (postgresql://…), for limits, "
        "usage and glossaries, which then survive a restart and are shared by servers (default: "
        "in memory)",
    )  # fmt: skip
    parser.add_argument(
        "--broken", type=Path, metavar="DIR",
        help="models without one part each, for the page: the --models of “dragoman paper broken”",
    )  # fmt: skip
    add_device(parser)
    parser.add_argument(
        "--precision", default="auto", choices=get_args(Precision),
        help="of the products; auto: eight bits on a CPU where that loses nothing",
    )  # fmt: skip
    add_flags(parser, ServeOptions)
    add_allow_host(parser)


def _serve(options: argparse.Namespace) -> None:
    check_extra("serve")
    from dragoman.serving.app import build_app
    from dragoman.serving.documents.document_store import remove_stale_folders
    from dragoman.serving.http.api_keys import ApiKeys, read_keys
    from dragoman.serving.http.log_lines import limit_log_lines
    from dragoman.serving.http.request_heads import is_loopback
    from dragoman.serving.language_pairs import load_models
    from dragoman.serving.page.broken_models import BrokenModels
    from dragoman.serving.server import BACKLOG, Server, listen, name_url
    from dragoman.serving.service import Service
    from dragoman.serving.state.server_state import open_state

    how = from_plain(ServeOptions, given_flags(options, ServeOptions), place="options")
    entries = None if options.keys is None else read_keys(options.keys)
    paths = options.models or list_installed()
    if not paths:
        raise OptionError(
            f"serve: no models in {models_folder()}; name a model folder, or bring a published "
            "model by “dragoman pull de-en”"
        )
    broken = None if options.broken is None else BrokenModels(options.broken)
    limit_log_lines()
    remove_stale_folders()
    with (
        listen(how.host, how.port) as listener,
        contextlib.closing(open_state(options.state)) as state,
    ):
        keys = ApiKeys(entries, requests_per_minute=how.requests_per_minute, state=state)
        if options.keys is not None:
            _read_keys_again_on_hangup(keys, options.keys)
        models = load_models(paths, options.device, options.precision)
        how = replace(how, processes=_choose_processes(models, how.processes))
        service = Service(models, how)
        _tune()
        _start(service)
        app = build_app(service, keys, broken=broken)
        server = Server(app, service, how, keys, options.allow_host)
        for model in models.all:
            print(f"{model.name}: {model.source} → {model.target}")
        if not is_loopback(how.host) and not keys.is_required:
            _say("warning: whoever can reach this machine can use the server; see --keys")
        listener.listen(BACKLOG)  # so that whoever reads the next line can connect
        print(name_url(listener), flush=True)
        server.run(listener)
        gc.unfreeze()  # what stays to the end is freed at the end


def _choose_processes(models: "ServedModels", wanted: int | None) -> int:
    """Say how many processes each model gets: together no more than twice as many as cores."""
    from dragoman.serving.queue.model_queue import count_cores

    device = models.all[0].translator.device.type
    if wanted and device != "cpu":
        raise OptionError(f"processes is {wanted}, but the device is {device}; leave it out")
    if wanted is not None or device != "cpu":
        return wanted or 0
    cores = count_cores()
    return max(1, min(MOST_PROCESSES, cores, 2 * cores // len(models.all)))


def _start(service: "Service") -> None:
    """Begin, and wait until all processes have loaded their models."""
    service.start()
    while not service.is_loaded:
        if not service.is_ready:
            service.stop()
            raise DragomanError("a process could not load its model; see the lines above")
        time.sleep(0.05)


def _read_keys_again_on_hangup(keys: "ApiKeys", path: Path) -> None:
    """Read the file of keys again on SIGHUP; keep those that there are if it is wrong."""
    from dragoman.serving.http.api_keys import read_keys

    def _read(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        try:
            keys.replace(read_keys(path))
        except DragomanError as error:
            _say(f"{error}; the keys stay as they were")
        else:
            _say(f"{path}: read again")

    if hasattr(signal, "SIGHUP"):  # Windows has none
        signal.signal(signal.SIGHUP, _read)


def _tune() -> None:
    """Let whoever looks inside a model leave a core to the loop, and let the loop have its turn.

    A search for garbage stops the loop: it is to be rare, and to spare what is there to stay.
    """
    import torch

    from dragoman.serving.queue.model_queue import count_cores

    torch.set_num_threads(max(1, count_cores() - 1))
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.freeze()
    gc.set_threshold(GARBAGE_OBJECTS, *gc.get_threshold()[1:])


def _say(text: str) -> None:
    print(f"dragoman: {text}", file=sys.stderr)
