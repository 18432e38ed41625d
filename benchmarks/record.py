"""Writing down a measurement: what was run where, with which seeds, and what came out."""

import json
import os
import platform
import subprocess
import sys
from datetime import date
from pathlib import Path

from dragoman.data.workers import count_cores

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
UNKNOWN = "unknown"
# What is measured is what users have from the second translation on; processes inherit it.
os.environ.setdefault("DRAGOMAN_COMPILE", "now")


def describe_machine() -> str:
    """Describe this machine in words.

    Returns
    -------
    str
        Cores, processor and accelerator.
    """
    import torch

    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        processor = names[0].split(":", 1)[1].strip() if names else processor
    cores, all_cores = count_cores(), os.cpu_count() or 1
    told = f"{cores} cores" if cores == all_cores else f"{cores} of {all_cores} cores"
    words = f"{told}, {processor}"
    if os.environ.get("CUDA_VISIBLE_DEVICES") != "" and torch.cuda.is_available():
        words += f", one {torch.cuda.get_device_name()}"
    return f"{words}, torch {torch.__version__}"


def status_bytes(name: str) -> int:
    """Read one of Linux's figures about the memory of this process.

    Parameters
    ----------
    name : str
        “VmRSS”, what is resident, or “VmHWM”, the most that was.

    Returns
    -------
    int
        Bytes.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def find_commit() -> str:
    """Find which commit is measured.

    Returns
    -------
    str
        Its short name, with “+changes” if files under ``src`` differ from it; “unknown” if there is
        no telling.

    Notes
    -----
    On a machine to which only a copy of the tree was sent, the variable DRAGOMAN_COMMIT names the
    commit.
    """
    given = os.environ.get("DRAGOMAN_COMMIT", "").strip()
    if given:
        return given
    commit = _ask_git("rev-parse", "--short", "HEAD")
    changes = "+changes" if _ask_git("status", "--porcelain", "--", "src") else ""
    return f"{commit}{changes}" if commit else UNKNOWN


def require_commit() -> str:
    """Find which commit is measured, or end the program: for the beginning of a measurement.

    Returns
    -------
    str
        As `find_commit` says it, but never “unknown”.
    """
    commit = find_commit()
    if commit == UNKNOWN:
        raise SystemExit(
            f"{ROOT}: git knows no commit here, and a result must name the one that it measures; "
            "set DRAGOMAN_COMMIT to its short name"
        )
    return commit


def _ask_git(*words: str) -> str:
    """Ask git about the tree that this file belongs to; nothing if it cannot tell."""
    asked = ["git", "-C", str(ROOT), *words]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no git on this machine
        return ""


def write_result(
    name: str,
    figures: dict[str, float],
    *,
    seeds: list[int],
    notes: dict[str, object] | None = None,
    folder: Path = RESULTS,
    machine: str | None = None,
) -> Path:
    """Write one dated result.

    Parameters
    ----------
    name : str
        What was measured.
    figures : dict[str, float]
        Numbers whose keys say unit and subject.
    seeds : list[int]
        The seeds they were measured with.
    notes : dict[str, object] | None
        What else there is to know: signatures, losses, settings.
    folder : Path
        Where results are kept.
    machine : str | None
        Where it was measured; None: here.

    Returns
    -------
    Path
        The file, named by date and name.

    Notes
    -----
    Where no commit is known nothing is written: the result is printed, so that nothing that was
    measured is lost, and the program ends. `require_commit` says so before the measurement.
    """
    result = {
        "name": name,
        "date": date.today().isoformat(),
        "commit": find_commit(),
        "machine": machine or describe_machine(),
        "command": " ".join(["python", *_without_places(sys.argv)]),
        "seeds": seeds,
        "figures": figures,
    } | ({"notes": notes} if notes else {})
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    if result["commit"] == UNKNOWN:
        print(text)
        require_commit()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['date']}-{name}.json"
    path.write_text(text, encoding="utf-8")
    return path


def _without_places(words: list[str]) -> list[str]:
    """Leave out where files are on this machine, which is no part of the measurement."""
    if "--results" in words:
        place = words.index("--results")
        words = words[:place] + words[place + 2 :]
    return [Path(word).name if Path(word).is_absolute() else word for word in words]
