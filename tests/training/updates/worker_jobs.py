"""Runs of very small models, one after another, by all the processes that torchrun starts.

Called with a JSON file that lists them; each names its folder, its corpus and its options. The
tests of several workers start it, once for many runs, since starting is what takes time.
"""

import json
import os
import signal
import sys
from pathlib import Path

import torch

from dragoman.data.corpus import CorpusFiles
from dragoman.training import loop
from dragoman.training.checkpoints.checkpoint import list_checkpoints
from dragoman.training.preparation import RunRequest
from dragoman.training.run import resume_run, start_run
from dragoman.training.updates.distributed import Workers, process_group


def do_job(job: dict, workers: Workers) -> None:
    """Start or resume one run."""
    torch.set_default_dtype(torch.float64 if job.get("float64") else torch.float32)
    out = Path(job["out"])
    if "damages" in job:
        if workers.is_first:
            path = list_checkpoints(out / "checkpoints")[-1] / job["damages"]
            path.write_bytes(path.read_bytes()[:99])
        workers.all_reduce_max(0)
    if job.get("resume"):
        resume_run(out, job.get("flags", {}), print, workers)
        return
    files = CorpusFiles(source=(Path(job["source"]),), target=(Path(job["target"]),))
    request = RunRequest(
        out=out,
        files=files,
        preset="tiny",
        config=job["options"],
        store=Path(job["store"]) if "store" in job else None,
    )
    start_run(request, print, workers)


def die_at(step: int, rank: int) -> None:
    """Let one worker be killed when it begins an update, the first time."""
    update = loop._update

    def fatal(*arguments: object) -> object:
        is_first_time = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
        if is_first_time and arguments[2].step == step and int(os.environ["RANK"]) == rank:
            os.kill(os.getpid(), signal.SIGKILL)
        return update(*arguments)

    loop._update = fatal


if __name__ == "__main__":
    torch.set_num_threads(1)
    jobs = json.loads(Path(sys.argv[1]).read_text())
    with process_group() as workers:
        for job in jobs:
            if "die_at" in job:
                die_at(*job["die_at"])
            do_job(job, workers)
