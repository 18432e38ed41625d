"""What markup costs a server: sentences as HTML beside the same as plain text.

    python benchmarks/serving_markup.py MODEL --source FILE [--languages en-de] [--lines 100]
        [--rounds 5] [--flags --processes 0]

MODEL is a folder of “dragoman train”. In every round each sentence is asked for once as text and
once as a paragraph of HTML with a word in bold, by LibreTranslate's protocol on loopback, first one
by one, then all in one request. The server has no cache. Figures are medians of the rounds' ratios.
"""

import argparse
import asyncio
import json
import statistics
from html import escape
from pathlib import Path

from dragoman.data.corpus import read_lines
from record import RESULTS, require_commit, write_result
from serving_client import Client
from serving_load import Server


def mark_up(line: str) -> str:
    """Write a sentence as a paragraph, its second word in bold.

    Parameters
    ----------
    line : str
        The sentence.

    Returns
    -------
    str
        HTML.
    """
    words = [escape(word) for word in line.split()]
    place = min(1, len(words) - 1)
    words[place] = f"<b>{words[place]}</b>"
    return f"<p>{' '.join(words)}</p>"


async def measure(given: argparse.Namespace, lines: list[str]) -> dict[str, float]:
    """Ask in turns, and compare.

    Parameters
    ----------
    given : argparse.Namespace
        The command line.
    lines : list[str]
        Sentences.

    Returns
    -------
    dict[str, float]
        Figures by name.
    """
    source, target = given.languages.split("-")
    texts = {"text": lines, "html": list(map(mark_up, lines))}
    server = await asyncio.to_thread(Server, given.model, given.flags)

    async def ask(client: Client, kind: str, what: str | list[str]) -> float:
        body = {"q": what, "source": source, "target": target, "format": kind}
        answer = await client.ask(json.dumps(body).encode())
        if answer.status != 200:
            raise SystemExit(f"status {answer.status} for {kind}")
        return answer.seconds

    alone: dict[str, list[float]] = {kind: [] for kind in texts}
    together: dict[str, list[float]] = {kind: [] for kind in texts}
    try:
        async with Client(server.port) as client:
            for round_ in range(given.rounds + 1):  # the first one loads and warms up
                for kind, some in texts.items():
                    seconds = [await ask(client, kind, line) for line in some]
                    whole = await ask(client, kind, some)
                    if round_:
                        alone[kind].append(statistics.median(seconds))
                        together[kind].append(whole)
    finally:
        server.process.kill()
        server.process.wait()
    figures: dict[str, float] = {}
    for name, seconds_of in (("one_by_one", alone), ("together", together)):
        for kind, seconds in seconds_of.items():
            scale = 1 if name == "one_by_one" else len(lines)
            figures[f"{name}_{kind}_milliseconds"] = 1000 * statistics.median(seconds) / scale
        pairs = zip(seconds_of["text"], seconds_of["html"], strict=True)
        ratios = [two / one for one, two in pairs]
        figures[f"{name}_html_ratio_to_text"] = statistics.median(ratios)
    return figures


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--languages", default="en-de")
    parser.add_argument("--lines", type=int, default=100, help="128 at most")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--flags", nargs=argparse.REMAINDER, default=[], help="for the server")
    given = parser.parse_args()
    require_commit()
    lines = [line for line in read_lines(given.source) if line.strip()][: given.lines]
    figures = asyncio.run(measure(given, lines))
    for key, value in figures.items():
        print(f"{key:40} {value:10.3f}")
    notes: dict[str, object] = {"model": given.model.name, "lines": len(lines)}
    print(write_result("serving_markup", figures, seeds=[], notes=notes, folder=given.results))


if __name__ == "__main__":
    main()
