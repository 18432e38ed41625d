"""A server under load: what gathering gains, how long answers take, and what overload does.

    python benchmarks/serving_load.py MODEL [--clients 64] [--seconds 10] [--rounds 3] [--seed 1]

MODEL is a model folder trained on the built-in corpus. “dragoman serve MODEL” runs as a process of
its own, without its cache, and this process speaks LibreTranslate's protocol to it on loopback, one
sentence a request, none twice. In each round first one client asks one thing after another, then
many do at the same time. Then requests come at four times the rate that was just served, whether or
not there are answers, then nobody, then many clients send and go away at once, and at last the
server is stopped by SIGTERM while many clients ask. At the end many clients of one key ask two
servers by turns, of which one keeps its state in SQLite.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.data.builtin.generator import generate_pairs
from record import RESULTS, require_commit, write_result
from serving_client import Answer, Client, ask_once

OVERLOAD = 4
RECOVERED = 3.0
COOL_SECONDS = 3.0


@dataclass
class Tally:
    """What came back, and when."""

    answers: list[Answer] = field(default_factory=list)
    seconds: float = 0.0

    def latencies(self, status: int = 200) -> list[float]:
        """Sort the times of the answers of one status.

        Parameters
        ----------
        status : int
            The status.

        Returns
        -------
        list[float]
            Seconds.
        """
        return sorted(each.seconds for each in self.answers if each.status == status)

    def rate(self) -> float:
        """Count the translations a second.

        Returns
        -------
        float
            Of those that were translated.
        """
        return len(self.latencies()) / self.seconds


def share(values: list[float], part: float) -> float:
    """Find the value below which some part of sorted values lies.

    Parameters
    ----------
    values : list[float]
        The values, sorted.
    part : float
        Between 0 and 1.

    Returns
    -------
    float
        The value; NaN of nothing.
    """
    return values[min(len(values) - 1, int(part * len(values)))] if values else float("nan")


class Server:
    """A server in a process of its own.

    Parameters
    ----------
    model : Path
        What it serves.
    flags : list[str]
        More for its command line.
    """

    def __init__(self, model: Path, flags: list[str]) -> None:
        words = ["serve", str(model), "--port", "0", "--device", "cpu", "--cache-characters", "0"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", *words, *flags], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        url = next(line for line in self.process.stdout if line.startswith("http"))
        self.port = int(url.rstrip("/\n").rsplit(":", 1)[1])

    def memory(self) -> float:
        """Tell how much memory it and the processes that translate for it have.

        Returns
        -------
        float
            Resident megabytes, what they share counted once.
        """
        process = Path(f"/proc/{self.process.pid}")
        children = (process / "task" / process.name / "children").read_text().split()
        parts = [process, *(process.with_name(child) for child in children)]
        texts = [(part / "smaps_rollup").read_text() for part in parts]
        return sum(int(re.findall(r"Pss:\s+(\d+)", text)[0]) for text in texts) / 1024

    async def figure(self, name: str) -> float:
        """Add up one of its own figures.

        Parameters
        ----------
        name : str
            As Prometheus knows it.

        Returns
        -------
        float
            The sum over labels.
        """
        text = (await ask_once(self.port, "GET", "/metrics")).decode()
        found = re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, found))


async def ask_in_turn(port: int, bodies: Iterator[bytes], clients: int, seconds: float) -> Tally:
    """Let clients each ask one thing after another.

    Parameters
    ----------
    port : int
        Of the server.
    bodies : Iterator[bytes]
        What to ask.
    clients : int
        How many ask at the same time.
    seconds : float
        For how long.

    Returns
    -------
    Tally
        What came back.
    """
    tally = Tally()
    began = time.perf_counter()

    async def one() -> None:
        async with Client(port) as client:
            while time.perf_counter() - began < seconds:
                tally.answers.append(await client.ask(next(bodies)))

    await asyncio.gather(*(one() for _ in range(clients)))
    tally.seconds = time.perf_counter() - began
    return tally


async def ask_regardless(port: int, bodies: Iterator[bytes], rate: float, seconds: float) -> Tally:
    """Ask at some rate, whether or not there are answers.

    Parameters
    ----------
    port : int
        Of the server.
    bodies : Iterator[bytes]
        What to ask.
    rate : float
        Requests a second.
    seconds : float
        For how long.

    Returns
    -------
    Tally
        What came back, late answers included.
    """
    tally = Tally()
    idle: list[Client] = []
    began = time.perf_counter()

    async def one() -> None:
        client = idle.pop() if idle else await Client(port).open()
        tally.answers.append(await client.ask(next(bodies)))
        if client.is_open:
            idle.append(client)

    tasks = []
    for number in itertools.count():
        wait = began + number / rate - time.perf_counter()
        if number / rate >= seconds:
            break
        if wait > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(one()))
    tally.seconds = time.perf_counter() - began
    await asyncio.gather(*tasks)
    for client in idle:
        client.close()
    return tally


async def measure_overload(server: Server, bodies: Iterator[bytes], rate: float, seconds: float,
                           usual: float) -> dict[str, float]:  # fmt: skip
    """Ask four times as much as was answered, then see how the server recovers.

    Parameters
    ----------
    server : Server
        The server.
    bodies : Iterator[bytes]
        What to ask.
    rate : float
        What it can answer in a second.
    seconds : float
        For half as long as that goes on.
    usual : float
        Seconds that an answer takes when there is no load.

    Returns
    -------
    dict[str, float]
        Figures by name.
    """
    memory = [server.memory()]

    async def watch_memory() -> None:
        for _ in range(2):
            await asyncio.sleep(seconds)
            memory.append(server.memory())

    watching = asyncio.create_task(watch_memory())
    began = time.perf_counter()
    tally = await ask_regardless(server.port, bodies, OVERLOAD * rate, 2 * seconds)
    await watching
    answers = tally.answers
    later = [each for each in answers if each.began > began + seconds]
    refused = [Tally(part).latencies(429) for part in (answers, later)]
    kinds = Counter(each.status for each in answers)
    began = time.perf_counter()
    async with Client(server.port) as client:
        while (await client.ask(next(bodies))).seconds > RECOVERED * usual:
            pass
    return {
        "overload_offered_requests_per_second": OVERLOAD * rate,
        "overload_refused_429_percent": 100 * kinds[429] / len(answers),
        "overload_other_than_200_or_429": len(answers) - kinds[200] - kinds[429],
        "overload_429_p50_milliseconds": 1000 * share(refused[0], 0.5),
        "overload_429_p95_milliseconds": 1000 * share(refused[0], 0.95),
        "overload_second_half_429_p50_milliseconds": 1000 * share(refused[1], 0.5),
        "overload_second_half_429_p95_milliseconds": 1000 * share(refused[1], 0.95),
        "overload_translated_p95_seconds": share(tally.latencies(), 0.95),
        "overload_memory_before_megabytes": memory[0],
        "overload_memory_half_way_megabytes": memory[1],
        "overload_memory_after_megabytes": memory[2],
        "overload_recovery_seconds": time.perf_counter() - began,
    }


async def measure_leaving(
    server: Server, bodies: Iterator[bytes], clients: int
) -> dict[str, float]:
    """Let many clients send requests and go away while those wait.

    Parameters
    ----------
    server : Server
        The server.
    bodies : Iterator[bytes]
        What to ask.
    clients : int
        A tenth of those who do.

    Returns
    -------
    dict[str, float]
        How many requests waited, and how many sentences were begun after their clients had gone.
    """
    leaving = [await Client(server.port).open() for _ in range(10 * clients)]
    for client in leaving:
        client.send(next(bodies))
    waiting = 0.0
    while (now := await server.figure("dragoman_queue_sentences")) > waiting:
        waiting = now
        await asyncio.sleep(0.05)
    for client in leaving:
        client.close()
    while await server.figure("dragoman_queue_sentences"):
        await asyncio.sleep(0.01)
    begun = await server.figure("dragoman_batch_sentences_sum")
    await asyncio.sleep(COOL_SECONDS)
    ended = await server.figure("dragoman_batch_sentences_sum")
    return {
        "left_requests_waiting": waiting,
        # Batches are counted when they end: these were being translated when the queue was empty.
        "left_requests_translated_all_the_same": ended - begun,
    }


async def measure_stop(server: Server, bodies: Iterator[bytes], clients: int) -> dict[str, float]:
    """Stop the server by SIGTERM while clients ask.

    Parameters
    ----------
    server : Server
        The server.
    bodies : Iterator[bytes]
        What to ask.
    clients : int
        How many ask at the same time.

    Returns
    -------
    dict[str, float]
        What became of their requests.
    """
    load = asyncio.create_task(ask_in_turn(server.port, bodies, clients, 2.0))
    await asyncio.sleep(1.0)
    began = time.perf_counter()
    server.process.send_signal(signal.SIGTERM)
    tally = await load
    status = await asyncio.to_thread(server.process.wait, 60)
    before = [each for each in tally.answers if each.began < began]
    waiting = [each for each in before if each.began + each.seconds > began]
    return {
        "stop_requests_waiting_at_sigterm": len(waiting),
        "stop_requests_lost": sum(each.status != 200 for each in before),
        "stop_seconds": time.perf_counter() - began,
        "stop_exit_status": status,
    }


async def measure_state(given: argparse.Namespace, texts: Iterator[str]) -> dict[str, float]:
    """Let many clients of one key ask two servers by turns, of which one keeps a state.

    Parameters
    ----------
    given : argparse.Namespace
        What the user said.
    texts : Iterator[str]
        What to ask.

    Returns
    -------
    dict[str, float]
        Requests a second of both, and their ratio.
    """
    source, target = given.languages.split("-")
    fields = {"source": source, "target": target, "api_key": "a key of a client"}
    bodies = (json.dumps({"q": text} | fields).encode() for text in texts)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        keys = Path(folder) / "keys.toml"
        keys.write_text(
            '[client]\nkey = "a key of a client"\nrequests_per_minute = 100000000\n'
            "characters_per_month = 100000000000\n"
        )
        flags = {"memory": [], "sqlite": ["--state", f"{folder}/state"]}
        servers: dict[str, Server] = {}
        rates: dict[str, list[float]] = {name: [] for name in flags}
        for name, more in flags.items():
            words = [*given.flags, "--keys", str(keys), *more]
            servers[name] = await asyncio.to_thread(Server, given.model, words)
            running.callback(servers[name].process.wait)
            running.callback(servers[name].process.kill)
            await ask_in_turn(servers[name].port, bodies, given.clients, 2.0)
        for _ in range(given.rounds):
            for name, server in servers.items():
                tally = await ask_in_turn(server.port, bodies, given.clients, given.seconds)
                rates[name].append(tally.rate())
    ratios = [two / one for one, two in zip(rates["memory"], rates["sqlite"], strict=True)]
    return {
        "state_memory_requests_per_second": statistics.median(rates["memory"]),
        "state_sqlite_requests_per_second": statistics.median(rates["sqlite"]),
        "state_sqlite_ratio": statistics.median(ratios),
        "state_sqlite_ratio_lowest": min(ratios),
    }


async def measure(given: argparse.Namespace, bodies: Iterator[bytes]) -> dict[str, float]:
    """Measure everything, one after the other.

    Parameters
    ----------
    given : argparse.Namespace
        What the user said.
    bodies : Iterator[bytes]
        What to ask.

    Returns
    -------
    dict[str, float]
        Figures by name.
    """
    server = await asyncio.to_thread(Server, given.model, given.flags)
    single: list[Tally] = []
    many: list[Tally] = []
    try:
        await ask_in_turn(server.port, bodies, given.clients, 2.0)
        for _ in range(given.rounds):
            single.append(await ask_in_turn(server.port, bodies, 1, given.seconds))
            many.append(await ask_in_turn(server.port, bodies, given.clients, given.seconds))
            print(f"{single[-1].rate():8.1f} {many[-1].rate():8.1f} a second", flush=True)
        rates = [statistics.median(each.rate() for each in side) for side in (single, many)]
        alone = sorted(itertools.chain(*(each.latencies() for each in single)))
        together = sorted(itertools.chain(*(each.latencies() for each in many)))
        ratios = [two.rate() / one.rate() for one, two in zip(single, many, strict=True)]
        name = f"clients_{given.clients}"
        figures = {
            "one_by_one_requests_per_second": rates[0],
            f"{name}_requests_per_second": rates[1],
            f"{name}_ratio_to_one_by_one": statistics.median(ratios),
            f"{name}_ratio_to_one_by_one_lowest": min(ratios),
            "one_by_one_p50_milliseconds": 1000 * share(alone, 0.5),
            "one_by_one_p95_milliseconds": 1000 * share(alone, 0.95),
            f"{name}_p50_milliseconds": 1000 * share(together, 0.5),
            f"{name}_p95_milliseconds": 1000 * share(together, 0.95),
            f"{name}_failures": sum(each.status != 200 for tally in many for each in tally.answers),
        }
        usual = share(alone, 0.5)
        figures |= await measure_overload(server, bodies, rates[1], given.seconds, usual)
        figures |= await measure_leaving(server, bodies, given.clients)
        figures |= await measure_stop(server, bodies, given.clients)
    finally:
        server.process.kill()
        server.process.wait()
    return figures


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--languages", default="fr-en")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--flags", nargs=argparse.REMAINDER, default=[], help="for the server")
    given = parser.parse_args()
    require_commit()
    source, target = given.languages.split("-")
    pairs = generate_pairs(given.languages, split="test", count=5000, seed=given.seed)
    texts = itertools.cycle([pair.source for pair in pairs])
    bodies = (
        json.dumps({"q": text, "source": source, "target": target}).encode() for text in texts
    )
    figures = asyncio.run(measure(given, bodies))
    figures |= asyncio.run(measure_state(given, texts))
    for key, value in figures.items():
        print(f"{key:46} {value:10.3f}")
    notes = {"model": given.model.name, "rounds": given.rounds, "seconds": given.seconds}
    write = write_result("serving_load", figures, seeds=[given.seed], notes=notes,
                         folder=given.results)  # fmt: skip
    print(write)


if __name__ == "__main__":
    main()
