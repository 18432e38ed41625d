"""Distributed training: several processes started by torchrun train one model.

Every worker runs the same program on its shard of each update. The first one alone prepares,
validates and writes; it decides for all of them what depends on clocks, signals or files.
"""

import os
import socket
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor, distributed, nn

from dragoman.errors import OptionError, TrainingError
from dragoman.shapes import UInt8

# The others wait while the first worker prepares a corpus or validates, which may take hours; a
# worker that dies closes its connections, which the others notice at once.
TIMEOUT = timedelta(days=1)
BUCKET_NUMBERS = 1 << 26

Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class Workers:
    """The processes of a run, as seen from one of them, with their collectives.

    Parameters
    ----------
    rank : int
        This process's number among all of them.
    num_workers : int
        How many there are. A lone worker's methods do nothing.
    local_rank : int
        This process's number on its machine, which is also that of its GPU.
    launch : str
        What started them: the same after torchrun has restarted them.
    is_restarted : bool
        Whether torchrun started them anew after one of them died.
    """

    rank: int = 0
    num_workers: int = 1
    local_rank: int = 0
    launch: str = ""
    is_restarted: bool = False

    @property
    def is_first(self) -> bool:
        """Whether this worker has rank 0, which writes, validates, logs and decides."""
        return self.rank == 0

    @property
    def is_single(self) -> bool:
        """Whether this is the only worker."""
        return self.num_workers == 1

    def all_reduce_max(self, *values: int) -> tuple[int, ...]:
        """All-reduce values by their maximum, so that all workers decide the same."""
        if self.is_single:
            return values
        message = torch.tensor(values, dtype=torch.int64)
        with _reporting_lost_worker(self.rank):
            distributed.all_reduce(message, distributed.ReduceOp.MAX)
        return tuple(message.tolist())

    def all_reduce_sum(self, *values: float) -> tuple[float, ...]:
        """All-reduce values by their sum."""
        if self.is_single:
            return values
        message = torch.tensor(values, dtype=torch.float64)
        with _reporting_lost_worker(self.rank):
            distributed.all_reduce(message)
        return tuple(message.tolist())

    def run_on_first(self, work: Callable[[], Found]) -> Found | None:
        """Run a function on the first worker while the others wait; if it fails, all exit.

        Parameters
        ----------
        work : Callable[[], Found]
            What to run. If it fails, the others exit silently: the first one reports the error.
        """
        found = None
        try:
            if self.is_first:
                found = work()
        except BaseException:
            with suppress(TrainingError):  # the others may be gone; report the error of this worker
                self.all_reduce_max(True)
            raise
        (has_failed,) = self.all_reduce_max(False)
        if has_failed:
            sys.exit(2)
        return found

    def run_first_then_all(self, work: Callable[[], Found]) -> Found:
        """Run a function on the first worker, then on the others."""
        found = self.run_on_first(work)
        return work() if found is None else found

    def gather(self, numbers: UInt8[Tensor, "count"]) -> list[UInt8[Tensor, "count"]]:
        """All-gather the values of every worker."""
        if self.is_single:
            return [numbers]
        shown = [torch.empty_like(numbers) for _ in range(self.num_workers)]
        with _reporting_lost_worker(self.rank):
            distributed.all_gather(shown, numbers)
        return shown

    @torch.no_grad()
    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """All-reduce the gradients by their sum.

        Parameters
        ----------
        parameters : Iterable[nn.Parameter]
            The weights, the same on all workers. A gradient that a worker has not got counts as
            zero.

        Notes
        -----
        Once an update, in a few large messages: the loss has been divided by the tokens of all
        workers, so nothing is left to divide.
        """
        if self.is_single:
            return
        for bucket in _buckets(parameters):
            for each in bucket:
                if each.grad is None:
                    each.grad = torch.zeros_like(each)
            gradients = [each.grad for each in bucket if each.grad is not None]
            flat = torch.cat([each.reshape(-1) for each in gradients])
            with _reporting_lost_worker(self.rank):
                distributed.all_reduce(flat)
            parts = flat.split([each.numel() for each in gradients])
            torch._foreach_copy_(
                gradients, [part.view_as(each) for part, each in zip(parts, gradients, strict=True)]
            )

    @torch.no_grad()
    def average_statistics(self, model: nn.Module) -> None:
        """All-reduce the model's buffers (running statistics) by their mean."""
        if self.is_single:
            return
        kept = model.state_dict().keys()
        for name, each in model.named_buffers():
            if name in kept and each.is_floating_point():
                distributed.all_reduce(each)
                each.div_(self.num_workers)


def find_workers(environment: Mapping[str, str]) -> Workers:
    """Read rank and number of workers from torchrun's environment variables."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    said = [environment.get(name) for name in names]
    if None in said:
        return Workers()
    try:
        rank, num_workers, local_rank = (int(each or "") for each in said)
    except ValueError:
        found = ", ".join(f"{name}={value}" for name, value in zip(names, said, strict=True))
        raise OptionError(f"{found}: not numbers; start several processes with torchrun") from None
    run_id = environment.get("TORCHELASTIC_RUN_ID", "none")
    return Workers(
        rank=rank,
        num_workers=num_workers,
        local_rank=local_rank,
        # torchrun stays the parent of those it restarts, and has no name of its own by default.
        launch=run_id if run_id != "none" else f"{socket.gethostname()} {os.getppid()}",
        is_restarted=environment.get("TORCHELASTIC_RESTART_COUNT", "0") not in ("", "0"),
    )


@contextmanager
def process_group() -> Iterator[Workers]:
    """Open the process group of torchrun's workers, if there are any, while the context lasts."""
    workers = find_workers(os.environ)
    if workers.is_single:
        yield workers
        return
    backend = "gloo"
    if torch.cuda.is_available():
        check_local_rank(workers, torch.cuda.device_count())
        torch.cuda.set_device(workers.local_rank)
        backend = "cpu:gloo,cuda:nccl"
    meeting_point, _, _ = next(distributed.rendezvous("env://", timeout=TIMEOUT))
    distributed.init_process_group(
        backend,
        store=find_unused_prefix(meeting_point, workers),
        rank=workers.rank,
        world_size=workers.num_workers,
        timeout=TIMEOUT,
    )
    yield workers
    # Not after an error: the others may wait for a collective that never comes.
    distributed.destroy_process_group()


def find_unused_prefix(store: distributed.Store, workers: Workers) -> distributed.Store:
    """Find a prefix of torchrun's store that no dead worker has used.

    Parameters
    ----------
    store : distributed.Store
        Where workers exchange keys. It outlives them when torchrun restarts them,
        and an address left there by a dead worker would mislead its successors.
    workers : Workers
        Who this process is.

    Notes
    -----
    Every worker writes a new random token. The first one answers each such token
    with its own, until all the others have confirmed it: tokens of dead workers are
    answered without effect, and replaced by those of living ones.
    """
    own = uuid.uuid4().hex
    if not workers.is_first:
        store.set(f"word/{workers.rank}", own)
        name = store.get(f"answer/{own}").decode()
        store.set(f"{name}/{workers.rank}", "read")
        return distributed.PrefixStore(name, store)
    answered = dict.fromkeys(range(1, workers.num_workers), "")
    while answered:
        for rank, known in list(answered.items()):
            if store.check([f"{own}/{rank}"]):
                del answered[rank]
            elif store.check([f"word/{rank}"]):
                word = store.get(f"word/{rank}").decode()
                if word != known:
                    store.set(f"answer/{word}", own)
                    answered[rank] = word
        time.sleep(0.01)
    return distributed.PrefixStore(own, store)


def check_local_rank(workers: Workers, num_devices: int) -> None:
    """Raise an error if a machine has more processes than GPUs."""
    if workers.local_rank >= num_devices:
        raise OptionError(
            f"process {workers.local_rank + 1} on a machine with {num_devices} CUDA devices; give "
            f"torchrun --nproc-per-node {num_devices}"
        )


def check_device(workers: Workers, device: torch.device) -> None:
    """Raise an error for a device without a communication backend."""
    if not workers.is_single and device.type not in ("cpu", "cuda"):
        raise OptionError(
            f"device is “{device.type}”, on which one process trains alone; leave torchrun out, or "
            "give --device cpu"
        )


@contextmanager
def _reporting_lost_worker(rank: int) -> Iterator[None]:
    """Turn the error of a lost connection into a one-line message."""
    try:
        yield
    except RuntimeError as error:
        why = str(error).split("\n", maxsplit=1)[0]
        raise TrainingError(
            f"process {rank}: lost contact with the others ({why}); go on from the last checkpoint "
            "with --resume, or let torchrun --max-restarts do it"
        ) from error


def _buckets(parameters: Iterable[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Group weights of one type into buckets of limited size."""
    waiting: dict[torch.dtype, list[nn.Parameter]] = {}
    for each in parameters:
        if not each.requires_grad:
            continue
        bucket = waiting.setdefault(each.dtype, [])
        if bucket and sum(one.numel() for one in bucket) + each.numel() > BUCKET_NUMBERS:
            yield bucket
            bucket = waiting[each.dtype] = []
        bucket.append(each)
    yield from waiting.values()
