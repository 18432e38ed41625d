"""A million lines through “dragoman translate”: memory over time, order, and interruptions.

    python benchmarks/million_lines.py demo/fr-en [--lines 1000000] [--interrupted-lines 20000]

The lines are drawn from some thousands of sentences of the built-in corpus. Order is kept if every
line of the output is what its sentence becomes by itself, which is found by translating each
sentence once. The memory is what the system says the process has resident, once a second; flat is
what is no higher in the second half of the run than in its first tenth. For the interruptions a
process is killed outright (SIGKILL) again and again while it writes, and started again with the
same command; the file must in the end be the same to the byte as that of a run that nobody
disturbed.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dragoman.data.builtin import generate_pairs
from record import RESULTS, require_commit, write_result

SEED = 1


def command(given: argparse.Namespace, *words: Path | str) -> list[str]:
    """Write the command that translates.

    Parameters
    ----------
    given : argparse.Namespace
        Model, device and beam size.
    *words : Path | str
        What else to say.

    Returns
    -------
    list[str]
        Its words.
    """
    fixed = ["--device", given.device, "--beam-size", str(given.beam_size)]
    return [
        sys.executable,
        "-m",
        "dragoman",
        "translate",
        str(given.model),
        *map(str, words),
        *fixed,
    ]


def write_lines(path: Path, sentences: list[str], count: int) -> None:
    """Write lines drawn from some sentences.

    Parameters
    ----------
    path : Path
        Where to.
    sentences : list[str]
        What to draw from.
    count : int
        How many lines.
    """
    generator = random.Random(SEED)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(count):
            file.write(generator.choice(sentences) + "\n")


def resident_bytes(process: subprocess.Popen) -> int:
    """Ask the system how much memory a process has resident.

    Parameters
    ----------
    process : subprocess.Popen
        The process.

    Returns
    -------
    int
        Bytes; 0 if it has ended.
    """
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return 0
    lines = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(lines[0].split()[1]) * 1024 if lines else 0


def run_watched(given: argparse.Namespace, source: Path, output: Path) -> tuple[float, list[int]]:
    """Translate a file and look at the memory once a second.

    Parameters
    ----------
    given : argparse.Namespace
        What was asked for.
    source : Path
        The lines.
    output : Path
        Where their translations go.

    Returns
    -------
    tuple[float, list[int]]
        Seconds, and bytes resident over time.
    """
    start = time.perf_counter()
    memory = []
    with source.open("rb") as lines, output.open("wb") as file:
        if given.pipe:
            cat = subprocess.Popen(["cat"], stdin=lines, stdout=subprocess.PIPE)
            process = subprocess.Popen(command(given), stdin=cat.stdout, stdout=file)
        else:
            process = subprocess.Popen(command(given, source, "--output", output))
        while process.poll() is None:
            memory.append(resident_bytes(process))
            time.sleep(1)
    if process.returncode:
        sys.exit(f"translating failed with status {process.returncode}")
    return time.perf_counter() - start, [each for each in memory if each]


def count_misplaced(source: Path, output: Path, meaning: dict[str, str]) -> tuple[int, int]:
    """Count the lines of the output that are not what their sentence becomes by itself.

    Parameters
    ----------
    source : Path
        The lines.
    output : Path
        Their translations.
    meaning : dict[str, str]
        What each sentence becomes by itself.

    Returns
    -------
    tuple[int, int]
        How many there are, and how many lines there are in all.
    """
    misplaced = count = 0
    with source.open(encoding="utf-8") as lines, output.open(encoding="utf-8") as results:
        for line, result in zip(lines, results, strict=True):
            misplaced += meaning[line.rstrip("\n")] != result.rstrip("\n")
            count += 1
    return misplaced, count


def run_interrupted(given: argparse.Namespace, source: Path, output: Path, seconds: float) -> int:
    """Translate a file with a process that is killed again and again.

    Parameters
    ----------
    given : argparse.Namespace
        What was asked for.
    source : Path
        The lines.
    output : Path
        Where their translations go.
    seconds : float
        How long an undisturbed run takes.

    Returns
    -------
    int
        How often it was killed.
    """
    generator = random.Random(SEED)
    num_kills = 0
    while True:
        with subprocess.Popen(command(given, source, "--output", output)) as process:
            try:
                patience = (
                    generator.uniform(0.2, 0.6) * seconds if num_kills < given.kills else None
                )
                process.wait(patience)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                num_kills += 1
                continue
        if process.returncode:
            sys.exit(f"translating failed with status {process.returncode}")
        return num_kills


def measure(given: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Measure everything.

    Parameters
    ----------
    given : argparse.Namespace
        What was asked for.
    folder : Path
        Where to put lines and translations.

    Returns
    -------
    dict[str, float]
        The figures.
    """
    pairs = generate_pairs(given.languages, split="train", count=given.sentences, seed=SEED)
    sentences = [pair.source for pair in pairs]
    own = folder / "sentences"
    own.write_text("".join(f"{each}\n" for each in sentences), encoding="utf-8")
    run_watched(given, own, folder / "meanings")
    meanings = (folder / "meanings").read_text(encoding="utf-8").splitlines()
    meaning = dict(zip(sentences, meanings, strict=True))
    many, output = folder / "lines", folder / "translations"
    write_lines(many, sentences, given.lines)
    seconds, memory = run_watched(given, many, output)
    misplaced, number = count_misplaced(many, output, meaning)
    early, late = max(memory[: len(memory) // 10 + 1]), max(memory[len(memory) // 2 :])
    few, whole, parts = (folder / name for name in ("few", "whole", "parts"))
    write_lines(few, sentences, given.interrupted_lines)
    undisturbed, _ = run_watched(argparse.Namespace(**vars(given) | {"pipe": False}), few, whole)
    num_kills = run_interrupted(given, few, parts, undisturbed)
    return {
        "lines": number,
        "lines_per_second": number / seconds,
        "lines_that_differ_from_their_sentence_alone": misplaced,
        "resident_megabytes_at_most_in_the_first_tenth": early / 1e6,
        "resident_megabytes_at_most_in_the_second_half": late / 1e6,
        "resident_growth": late / early - 1,
        "interrupted_lines": given.interrupted_lines,
        "interruptions": num_kills,
        "interrupted_equals_uninterrupted": float(whole.read_bytes() == parts.read_bytes()),
    }


def main() -> None:
    """Measure, print the figures and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="a model of a built-in language pair")
    parser.add_argument("--languages", default="fr-en")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--sentences", type=int, default=20_000, help="different ones")
    parser.add_argument("--interrupted-lines", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--beam-size", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--pipe", action="store_true", help="through a pipe, not from a file")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    require_commit()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(given, Path(folder))
    for key, value in figures.items():
        print(f"{value:14,.3f}  {key}")
    prefix = "translate_pipe" if given.pipe else "translate_file"
    named = {f"{prefix}_{key}": value for key, value in figures.items()}
    print(write_result("million-lines", named, seeds=[SEED], folder=given.results))


if __name__ == "__main__":
    main()
