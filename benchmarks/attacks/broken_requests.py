"""Sends odd requests to a server of models and to one of runs, and counts what becomes of them."""

import argparse
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

from odd_requests import Outcome, attack


def main() -> None:
    """Start both servers on loopback, attack them, and print counts; status 1: something failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, metavar="MODEL", help="a model folder")
    parser.add_argument("--requests", type=int, default=20_000, help="to each server")
    parser.add_argument("--seconds", type=float, default=240.0, help="for each server, at most")
    parser.add_argument("--seed", type=int, default=1, help="of the requests")
    options = parser.parse_args()
    is_sound = True
    for verb, *more in (("serve", "--client-seconds", "2"), ("watch", "--no-browser")):
        command = [sys.executable, "-m", "dragoman", verb, str(options.model), "--port", "0", *more]
        began = time.monotonic()
        outcome, num_lines = _attack(command, options)
        seconds = time.monotonic() - began
        print(
            f"{verb}: {outcome.num_tried:,} requests in {seconds:,.0f} s, "
            f"{len(outcome.failures):,} answered with 5xx, {len(outcome.hangs):,} hung, "
            f"{num_lines:,} lines logged; statuses {dict(sorted(outcome.statuses.items()))}"
        )
        for request in [*outcome.failures, *outcome.hangs][:10]:
            print(f"  {request[:300]!r}")
        is_sound &= outcome.num_tried > 0 and not outcome.failures and not outcome.hangs
    sys.exit(0 if is_sound else 1)


def _attack(command: list[str], options: argparse.Namespace) -> tuple[Outcome, int]:
    """Attack a server that is started for it; the lines that it logs are counted."""
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as server,
    ):
        assert server.stdout is not None
        try:
            lines = iter(server.stdout.readline, "")
            url = next(line for line in lines if line.startswith("http://"))
            port = urllib.parse.urlsplit(url).port
            assert port is not None
            outcome = attack(port, options.seed, options.requests, options.seconds)
        finally:
            server.terminate()
        server.wait(timeout=120)
        log.seek(0)
        return outcome, log.read().count(b"\n")


if __name__ == "__main__":
    main()
