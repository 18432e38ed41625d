"""Plan updates: divide the corpus into updates, and each update among workers and accumulation.

The pairs of an update do not depend on the number of workers: first they are divided among the
workers, then each worker's pairs into as many accumulation steps as its memory needs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from dragoman.data.batches import Batch, make_batch, plan_epoch, split_rows
from dragoman.data.packing import Capacity, PackedBatch, choose_capacity, pack, plan_packed
from dragoman.data.segmentation.segmentation import EpochPairs, SegmentedPairs
from dragoman.data.store.store import PairStore
from dragoman.data.workers import count_cores
from dragoman.shapes import Int
from dragoman.text.vocabulary import Vocabularies
from dragoman.training.configuration import RunOptions
from dragoman.training.options import TrainingOptions
from dragoman.training.updates.cpu_data_parallel import count_threads
from dragoman.training.updates.distributed import Workers
from dragoman.training.updates.gradients import Gradients, can_pack

LARGEST_OF = 1000


def segment_pairs(
    pairs: PairStore,
    store_folder: Path,
    vocabularies: Vocabularies,
    options: RunOptions,
    workers: Workers,
) -> PairStore | SegmentedPairs:
    """Wrap the training pairs in BPE-dropout, if the options say so."""
    if not options.text.bpe_dropout:
        return pairs
    return SegmentedPairs(
        pairs,
        store_folder,
        vocabularies,
        dropout=options.text.bpe_dropout,
        max_length=options.corpus.max_length,
        num_workers=max(1, count_cores() // workers.num_workers),
    )


@dataclass(frozen=True, kw_only=True)
class Update:
    """The batches of one worker for one update of the weights.

    Parameters
    ----------
    rows : Int[np.ndarray, "rows"]
        The pairs of all workers.
    num_target_tokens : int
        Their target tokens.
    num_parts : int
        Number of accumulation steps of each worker, if it has enough pairs.
    batches : tuple[Batch | PackedBatch, ...]
        This worker's share, part by part, each part as many batches as threads compute it; none if
        there are fewer pairs than workers.
    dummy_batches : tuple[Batch | PackedBatch, ...]
        Dummy batches, so that all workers take part in the same collectives.
    max_pairs : int
        Pairs of the largest batch.
    """

    rows: Int[np.ndarray, "rows"]
    num_target_tokens: int
    num_parts: int
    batches: tuple[Batch | PackedBatch, ...]
    dummy_batches: tuple[Batch | PackedBatch, ...]
    max_pairs: int


class UpdatePlanner:
    """Plans the updates of each pass, and makes the batches of one worker.

    Parameters
    ----------
    pairs : PairStore | SegmentedPairs
        The training corpus.
    options : TrainingOptions
        For the size of an update and the seed of their order.
    workers : Workers
        Among whom updates are divided.
    pad_id : int
        The padding.
    equal_counts : bool
        Whether every worker must compute equally many parts, because they exchange weights within
        each.
    packs : bool
        Whether batches are packed instead of padded.
    num_threads : int
        Threads of a CPU that compute a part together, each a batch of its own.
    is_captured : bool
        Whether packed batches all get one shape, in memory from which a CUDA device fetches.
    """

    def __init__(
        self,
        pairs: PairStore | SegmentedPairs,
        options: TrainingOptions,
        *,
        workers: Workers,
        pad_id: int,
        equal_counts: bool = False,
        packs: bool = False,
        num_threads: int = 1,
        is_captured: bool = True,
    ) -> None:
        self._all_pairs = pairs
        self._pairs: PairStore | EpochPairs = pairs.without_dropout  # until a pass is planned
        self._options = options
        self._workers = workers
        self._pad_id = pad_id
        self._keeps_pace = equal_counts
        self._num_threads = num_threads
        self._is_captured = is_captured
        self._capacity = self._choose_capacity() if packs else None

    def plan(self, epoch: int) -> Iterator[Int[np.ndarray, "rows"]]:
        """Divide the corpus into updates, independent of the number of workers.

        Parameters
        ----------
        epoch : int
            The pass over the corpus. Until another is planned, batches are made of the pairs as
            this one sees them.
        """
        self._pairs = self._all_pairs.for_epoch(self._options.seed, epoch)
        lengths = (self._pairs.source_lengths, self._pairs.target_lengths)
        order = self._all_pairs.epoch_order(self._options.seed, epoch)
        if self._capacity is not None:
            return plan_packed(*lengths, order, self._capacity)
        return plan_epoch(
            *lengths,
            order,
            batch_tokens=self._options.batch_tokens,
            seed=self._options.seed,
            epoch=epoch,
        )

    def make_update(self, rows: Int[np.ndarray, "rows"], num_parts: int) -> Update:
        """Make this worker's batches of an update."""
        shares = split_rows(rows, self.count_tokens(rows), self._workers.num_workers)
        own = shares[self._workers.rank]
        num_batches = num_parts * self._num_threads
        parts = [each for each in split_rows(own, self.count_tokens(own), num_batches) if len(each)]
        num_idle = 0
        if self._keeps_pace:
            num_idle = min(num_parts, max(map(len, shares))) - len(parts)
        return Update(
            rows=rows,
            num_target_tokens=int(self._pairs.target_lengths[rows].sum()),
            num_parts=num_parts,
            batches=tuple(self._make_batch(part, num_parts) for part in parts),
            dummy_batches=(self._make_batch(rows[:1], num_parts),) * num_idle,
            max_pairs=max(map(len, parts), default=0),
        )

    def make_largest(self, rows: Int[np.ndarray, "rows"], num_parts: int) -> Update:
        """Make the batch of an update that needs most memory, of any worker."""
        shares = split_rows(rows, self.count_tokens(rows), self._workers.num_workers)
        num_batches = num_parts * self._num_threads
        parts = [
            part for own in shares for part in split_rows(own, self.count_tokens(own), num_batches)
        ]
        largest = max((part for part in parts if len(part)), key=self._count_places)
        return Update(
            rows=rows,
            num_target_tokens=int(self._pairs.target_lengths[rows].sum()),
            num_parts=num_parts,
            batches=(self._make_batch(largest, num_parts),),
            dummy_batches=(),
            max_pairs=len(largest),
        )

    def count_tokens(self, rows: Int[np.ndarray, "rows"]) -> Int[np.ndarray, "rows"]:
        """Count the tokens of some pairs."""
        return self._pairs.source_lengths[rows] + self._pairs.target_lengths[rows]

    def find_largest(self, epoch: int) -> Int[np.ndarray, "rows"]:
        """Return the update that needs most memory."""
        return max(islice(self.plan(epoch), LARGEST_OF), key=self._count_places)

    def _count_places(self, rows: np.ndarray) -> int:
        sides = (self._pairs.source_lengths, self._pairs.target_lengths)
        return len(rows) * sum(int(lengths[rows].max()) for lengths in sides)

    def _make_batch(self, rows: np.ndarray, num_parts: int) -> Batch | PackedBatch:
        source, target = self._pairs.ids(rows)
        if self._capacity is None:
            return make_batch(source, target, self._pad_id)
        if not self._is_captured:
            return pack(source, target, self._pad_id, self._capacity._replace(source=0, target=0))
        room = self._capacity.share(self._workers.num_workers * num_parts)
        return pack(source, target, self._pad_id, room).pinned()

    def _choose_capacity(self) -> Capacity:
        """Choose a capacity for all passes: BPE-dropout changes their lengths only slightly."""
        lengths = (self._pairs.source_lengths, self._pairs.target_lengths)
        capacity = choose_capacity(*lengths, self._options.batch_tokens)
        return capacity._replace(longest=self._all_pairs.longest)


def prepare_updates(
    step: torch.nn.Module,
    pairs: PairStore | SegmentedPairs,
    options: RunOptions,
    pad_id: int,
    device: torch.device,
    *,
    workers: Workers,
    is_whole: bool = True,
) -> tuple[Gradients, UpdatePlanner]:
    """Make the gradient computation, and a planner of batches that suits it.

    Parameters
    ----------
    step : nn.Module
        The training step, on its device.
    pairs : PairStore | SegmentedPairs
        The training corpus.
    options : RunOptions
        Of the model and its training.
    pad_id : int
        The padding.
    device : torch.device
        Where gradients are computed.
    workers : Workers
        Among whom updates are divided.
    is_whole : bool
        Whether this process holds the whole model. Of a part of it nothing is captured, packed or
        divided among threads.
    """
    settings = options.training
    num_threads = count_threads(options.model, settings, device) if is_whole else 1
    gradients = Gradients(step, settings, device, captures=is_whole, num_threads=num_threads)
    planner = UpdatePlanner(
        pairs,
        settings,
        workers=workers,
        pad_id=pad_id,
        equal_counts=not is_whole,
        packs=is_whole and can_pack(options.model, settings, device),
        num_threads=num_threads,
        is_captured=device.type == "cuda",
    )
    return gradients, planner
