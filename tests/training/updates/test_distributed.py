"""Several real processes: the same as one, in shares of the work or of the model, killed or not."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.training.conftest import SMALL
from torch import nn
from torch.distributed import HashStore

from dragoman.errors import OptionError
from dragoman.training.checkpoints.checkpoint import checkpoint_path, list_checkpoints
from dragoman.training.preparation import RunRequest
from dragoman.training.run import resume_run, start_run
from dragoman.training.updates.distributed import (
    Workers,
    _buckets,
    check_device,
    check_local_rank,
    find_unused_prefix,
    find_workers,
    process_group,
)

NUM_STEPS = 50
JOBS = Path(__file__).parent / "worker_jobs.py"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
ROOT = Path(__file__).parents[3]
ENVIRONMENT = os.environ | {
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
}


def options(dropout=0.0, **training):
    """The options of a very small run, which moves fast enough to see a difference."""
    plain = json.loads(json.dumps(SMALL))
    plain["model"]["dropout"] = dropout
    plain["corpus"]["valid_pairs"] = 5
    plain["search"] = {"max_extra_tokens": 2}
    settings = {"max_steps": NUM_STEPS, "validate_every": 25, "ema_decay": 0.9, "clip_norm": 1.0}
    settings |= {"kernels": "off"}  # what is shared out among processes is padded
    plain["training"] |= settings | {"log_every": 5, "accumulate": 1} | training
    return plain


def weights(out, step=NUM_STEPS, names=("model", "optimiser", "average")):
    """Everything that a checkpoint holds but the random states."""
    path = checkpoint_path(out / "checkpoints", step)
    files = {name: load_file(path / f"{name}.safetensors") for name in names}
    return {
        f"{file}/{name}": each
        for file, tensors in files.items()
        for name, each in tensors.items()
        if not name.startswith("random/")
    }


def largest_difference(one, other):
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Where all runs of this file are."""
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def alone(place, corpus):
    """The same runs by one process: in double precision, in single precision, and half a run."""
    for name, dtype in (("float64", torch.float64), ("float32", torch.float32)):
        torch.set_default_dtype(dtype)
        try:
            for suffix, settings in (("", {}), ("-half", {"max_steps": 25})):
                request = RunRequest(
                    out=place / f"{name}{suffix}",
                    files=corpus,
                    preset="tiny",
                    config=options(**settings),
                    store=place / "store",
                )
                start_run(request, lambda _: None)
        finally:
            torch.set_default_dtype(torch.float32)
    return place


@pytest.fixture(scope="module")
def together(alone, corpus):
    """Runs by two processes, all in one launch of torchrun."""
    source, target = str(corpus.source[0]), str(corpus.target[0])
    files = {"source": source, "target": target, "store": str(alone / "store")}

    def start(name, float64=True, **settings):
        config = options(**settings)
        return files | {"out": str(alone / name), "options": config, "float64": float64}

    def resume(name, float64=True, **settings):
        flags = {"training": settings}
        return {"out": str(alone / name), "resume": True, "float64": float64, "flags": flags}

    jobs = [
        start("replicate"),
        start("shard", parallel="shard", accumulate=2),
        start("replicate-32", float64=False),
        start("shard-32", float64=False, parallel="shard"),
        resume("float64-half", max_steps=NUM_STEPS, parallel="shard"),
        start("shard-half", parallel="shard", max_steps=25),
        start("dropout", float64=False, dropout=0.1, max_steps=9),
        start("dropout-parts", float64=False, dropout=0.1, max_steps=4),
        resume("dropout-parts", float64=False, max_steps=9),
        start("damaged", float64=False, dropout=0.1, max_steps=9),
        resume("damaged", float64=False) | {"damages": "optimiser.safetensors"},
        start("few-replicate", batch_tokens=8, max_steps=12, validate_every=12),
        start("few-shard", batch_tokens=8, max_steps=12, validate_every=12, parallel="shard"),
    ]
    (alone / "jobs.json").write_text(json.dumps(jobs))
    launch = subprocess.run(
        [*TORCHRUN, str(JOBS), str(alone / "jobs.json")],
        capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=300,
    )  # fmt: skip
    assert launch.returncode == 0, launch.stderr[-4000:]
    return alone


@pytest.mark.parametrize("name", ["replicate", "shard", "float64-half"])
def test_two_processes_equal_one(together, name):
    one = weights(together / "float64")
    assert largest_difference(one, weights(together / name)) < 1e-9
    moved = largest_difference(
        weights(together / "float64", 25, ["model"]), weights(together / name, 50, ["model"])
    )
    assert moved > 0.01


@pytest.mark.parametrize("name", ["replicate-32", "shard-32"])
def test_in_single_precision_only_rounding_differs(together, name):
    difference = largest_difference(weights(together / "float32"), weights(together / name))
    assert difference < 1e-5


def test_what_several_divided_one_can_resume(together):
    torch.set_default_dtype(torch.float64)
    try:
        flags = {"training": {"max_steps": NUM_STEPS, "parallel": "replicate"}}
        resume_run(together / "shard-half", flags, lambda _: None)
    finally:
        torch.set_default_dtype(torch.float32)
    one = weights(together / "float64")
    assert largest_difference(one, weights(together / "shard-half")) < 1e-9


def test_log_and_model_are_those_of_one_process(together, events):
    for kind, name in (("update", "loss"), ("update", "padding_share"), ("validation", "loss")):
        one, two, shard = (
            [each[name] for each in events(together / folder, kind)]
            for folder in ("float64", "replicate", "shard")
        )
        assert two == pytest.approx(one, abs=0.2 if name == "padding_share" else 1e-6)
        assert shard == pytest.approx(one, abs=0.2 if name == "padding_share" else 1e-6)
    assert [each["workers"] for each in events(together / "replicate", "start")] == [2]
    one, two, shard = (
        load_file(together / folder / "model.safetensors")
        for folder in ("float64", "replicate", "shard")
    )
    assert largest_difference(one, two) < 1e-9
    assert largest_difference(one, shard) < 1e-9


def test_resuming_with_as_many_processes_is_exact(together):
    whole, parts = (together / name for name in ("dropout", "dropout-parts"))
    assert largest_difference(weights(whole, 9), weights(parts, 9)) == 0
    states = load_file(checkpoint_path(whole / "checkpoints", 9) / "optimiser.safetensors")
    assert not torch.equal(states["random/cpu"], states["random/1/cpu"])


def test_all_go_on_from_the_checkpoint_before_a_damaged_one(together, events):
    whole, damaged = (together / name for name in ("dropout", "damaged"))
    assert largest_difference(weights(whole, 9), weights(damaged, 9)) == 0
    assert [each["step"] for each in events(damaged, "start")] == [0, 0]


def test_fewer_pairs_than_processes(together, corpus):
    one = together / "few"
    torch.set_default_dtype(torch.float64)
    try:
        config = options(batch_tokens=8, max_steps=12, validate_every=12)
        request = RunRequest(
            out=one, files=corpus, preset="tiny", config=config, store=together / "store"
        )
        start_run(request, lambda _: None)
    finally:
        torch.set_default_dtype(torch.float32)
    for name in ("few-replicate", "few-shard"):
        assert largest_difference(weights(one, 12), weights(together / name, 12)) < 1e-9


def find_worker(launcher, rank):
    """Find the process of a rank among torchrun's children."""
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    for child in map(int, children):
        if f"RANK={rank}" in Path(f"/proc/{child}/environ").read_text().split("\0"):
            return child
    raise AssertionError(f"no rank {rank} among {children}")


def steps_so_far(out):
    """The last step in a run's log, or −1."""
    try:
        lines = (out / "metrics.jsonl").read_text().splitlines()
        return max((json.loads(line).get("step", 0) for line in lines), default=-1)
    except (OSError, ValueError):
        return -1


@pytest.fixture
def command(tmp_path, corpus):
    """Words of a training that can be watched."""
    config = tmp_path / "config.toml"
    config.write_text("[model]\nmodel_dim = 16\nfeed_forward_dim = 32\nnum_heads = 2\n")
    return [
        *("-m", "dragoman", "train", "--out", tmp_path / "run", "--preset", "tiny"),
        *("--config", config, "--source", *corpus.source, "--target", *corpus.target),
        *("--vocabulary-size", "320", "--valid-pairs", "5", "--max-extra-tokens", "2"),
        *("--batch-tokens", "200", "--device", "cpu", "--log-every", "1"),
    ]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds workers in /proc")
@pytest.mark.parametrize("rank", [1, 0])
@pytest.mark.slow
def test_a_killed_worker_costs_no_more_than_the_steps_since_the_last_checkpoint(
    tmp_path, command, events, rank
):
    out, every, until = tmp_path / "run", 25, 180
    limits = ["--max-steps", str(until), "--validate-every", str(every)]
    launcher = subprocess.Popen(
        [*TORCHRUN, "--max-restarts", "1", *map(str, command), *limits],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
    )  # fmt: skip
    try:
        while steps_so_far(out) < 30 and launcher.poll() is None:
            time.sleep(0.02)
        os.kill(find_worker(launcher, rank), signal.SIGKILL)
        killed_at = steps_so_far(out)
        _, errors = launcher.communicate(timeout=200)
    finally:
        launcher.kill()
    assert launcher.returncode == 0, errors[-4000:]
    first, second = (each["step"] for each in events(out, "start"))
    assert first == 0
    assert killed_at - every <= second < until
    assert [each["step"] for each in events(out, "update")] == list(range(1, until + 1))
    assert list_checkpoints(out / "checkpoints")[-1].name == f"step-{until:08d}"
    assert "going on from step" in errors
    lines = [line for line in errors.splitlines() if line.startswith("dragoman:")]
    assert all(f"process {1 - rank}: lost contact with the others" in line for line in lines)
    assert "Traceback" not in errors


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds workers in /proc")
def test_stopping_one_worker_stops_all_and_loses_nothing(tmp_path, command, events):
    out = tmp_path / "run"
    limits = ["--max-steps", "100000", "--validate-every", "1000"]
    launcher = subprocess.Popen(
        [*TORCHRUN, *map(str, command), *limits],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
    )  # fmt: skip
    try:
        while steps_so_far(out) < 10 and launcher.poll() is None:
            time.sleep(0.02)
        os.kill(find_worker(launcher, 1), signal.SIGTERM)
        _, errors = launcher.communicate(timeout=100)
    finally:
        launcher.kill()
    (stop,) = events(out, "stop")
    assert list_checkpoints(out / "checkpoints")[-1].name == f"step-{stop['step']:08d}"
    assert "nothing is lost" in errors
    assert "exitcode: 130" in errors.replace(" ", "").replace("exitcode:", "exitcode: ")


@pytest.mark.slow
def test_an_error_is_told_once(tmp_path, command):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("three years")
    launch = subprocess.run(
        [*TORCHRUN, "--max-restarts", "1", *map(str, command)],
        capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=200,
    )  # fmt: skip
    lines = [line for line in launch.stderr.splitlines() if line.startswith("dragoman:")]
    assert len(lines) == 2  # once for each try
    assert all("already holds something else" in line for line in lines)
    assert (tmp_path / "run" / "thesis.txt").read_text() == "three years"


def test_words_of_the_dead_mislead_nobody():
    store = HashStore()
    is_fresh = []
    for _ in range(3):  # as torchrun would restart them, with the same store
        store.set("word/1", "of one who died before the others came")

        def meet(rank, found):
            workers = Workers(rank=rank, num_workers=3)
            part = find_unused_prefix(store, workers)
            part.set(f"from {rank}", str(rank))
            found.append([part.get(f"from {other}") for other in range(3)])
            if rank == 0:
                is_fresh.append(not part.check(["used"]))
                part.set("used", "yes")

        found = []
        threads = [threading.Thread(target=meet, args=(rank, found)) for rank in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
        assert found == [[b"0", b"1", b"2"]] * 3
    assert is_fresh == [True] * 3


def test_without_torchrun_there_is_one_worker():
    assert find_workers({}) == Workers()
    assert find_workers({"WORLD_SIZE": "4"}) == Workers()
    with process_group() as workers:
        assert workers.is_single
    assert workers.is_first
    assert workers.all_reduce_max(3, 0) == (3, 0)
    assert workers.all_reduce_sum(1.5) == (1.5,)
    assert workers.run_first_then_all(lambda: "done") == "done"
    numbers = torch.arange(3, dtype=torch.uint8)
    assert [each.tolist() for each in workers.gather(numbers)] == [[0, 1, 2]]
    model = nn.BatchNorm1d(2)
    workers.sum_gradients(model.parameters())
    workers.average_statistics(model)
    assert model.weight.grad is None


def test_torchrun_says_who_is_who():
    said = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}
    workers = find_workers(said)
    assert (workers.rank, workers.num_workers, workers.local_rank) == (5, 8, 1)
    assert not workers.is_first
    assert not workers.is_restarted
    assert workers.launch == find_workers(said).launch
    again = said | {"TORCHELASTIC_RESTART_COUNT": "2", "TORCHELASTIC_RUN_ID": "job7"}
    assert find_workers(again).is_restarted
    assert find_workers(again).launch == "job7"
    with pytest.raises(OptionError, match=r"RANK=x, .*: not numbers; start .* with torchrun"):
        find_workers(said | {"RANK": "x"})


def test_what_cannot_be_shared_is_refused():
    two = Workers(rank=1, num_workers=2, local_rank=1)
    check_local_rank(two, 2)
    with pytest.raises(OptionError, match="process 2 on a machine with 1 CUDA devices; give"):
        check_local_rank(two, 1)
    check_device(Workers(), torch.device("mps"))
    check_device(two, torch.device("cpu"))
    with pytest.raises(OptionError, match="device is “mps”, on which one process trains alone"):
        check_device(two, torch.device("mps"))


def test_buckets_hold_every_weight_once(monkeypatch):
    monkeypatch.setattr("dragoman.training.updates.distributed.BUCKET_NUMBERS", 10)
    chance = random.Random(3)
    parameters = [
        nn.Parameter(
            torch.zeros(chance.randint(1, 14), dtype=chance.choice([torch.float32, torch.float64]))
        )
        for _ in range(40)
    ]
    frozen = nn.Parameter(torch.zeros(3), requires_grad=False)
    buckets = list(_buckets([*parameters, frozen]))
    assert sorted(id(each) for bucket in buckets for each in bucket) == sorted(map(id, parameters))
    for bucket in buckets:
        assert len({each.dtype for each in bucket}) == 1
        assert len(bucket) == 1 or sum(each.numel() for each in bucket) <= 10


def test_a_failure_of_the_first_worker_is_its_own():
    with pytest.raises(ZeroDivisionError):
        Workers().run_on_first(lambda: 1 / 0)
