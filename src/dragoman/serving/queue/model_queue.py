"""Model queue: one model with its batching queue, threads or processes, and the cache."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from dragoman.decoding.translator import Translator
from dragoman.serving.metrics import Metrics
from dragoman.serving.options import ServeOptions
from dragoman.serving.queue.batching import BatchQueue
from dragoman.serving.queue.model_thread import ModelThread
from dragoman.serving.queue.pending_requests import PendingRequest, SideTask
from dragoman.serving.queue.process_translator import ProcessTranslator
from dragoman.serving.queue.translation_cache import TranslationCache
from dragoman.serving.sentence_translation import (
    SentenceTask,
    SentenceTranslation,
    SentenceTranslator,
    TranslationSettings,
)
from dragoman.serving.service_types import Client, ServedModel, ServiceError
from dragoman.serving.term_tree import TermTree

T = TypeVar("T")
MOST_TERMS = 20
"""Times that terms of a glossary may occur in a sentence."""
TERMS_WEIGHT = 8
"""A sentence with terms takes as long as so many: the search keeps up to eight beams for it."""

# Larger batches are not faster on a CPU, and increase latency.
CPU_TOKENS, GPU_TOKENS = 1024, 8192


class ModelQueue:
    """Translates sentences of all clients with one model, in batches.

    Parameters
    ----------
    model : ServedModel
        The model.
    options : ServeOptions
        How to serve.
    cache : TranslationCache[SentenceTranslation]
        Translations of all models.
    metrics : Metrics
        Receives measurements.

    Notes
    -----
    The model has a thread of its own, or processes of its own, for each of which a thread waits.
    """

    def __init__(
        self,
        model: ServedModel,
        options: ServeOptions,
        cache: TranslationCache[SentenceTranslation],
        metrics: Metrics,
    ) -> None:
        self.model = model
        self._cache = cache
        self._metrics = metrics
        self._queue = self._make_queue(options)
        self._figures = metrics.watch_model(model.name, self._queue)
        num_processes = options.processes or 0
        self._processes = [
            ProcessTranslator(
                model.translator.folder.path,
                model.precision,
                max(1, count_cores() // num_processes),
            )
            for _ in range(num_processes)
        ]
        own = SentenceTranslator(model.translator)
        # Side tasks run between batches, or in parallel if batches run in processes.
        if self._processes:
            self._side_queue = self._make_queue(options)
            self._threads = [
                self._make_thread(self._queue, process, process.load) for process in self._processes
            ]
            self._threads.append(self._make_thread(self._side_queue, own))
        else:
            self._side_queue = self._queue
            self._threads = [self._make_thread(self._queue, own)]

    @property
    def is_alive(self) -> bool:
        """Whether all threads run."""
        return all(thread.is_alive for thread in self._threads)

    @property
    def is_loaded(self) -> bool:
        """Whether all processes have loaded the model."""
        return all(process.is_ready for process in self._processes)

    @property
    def num_waiting(self) -> int:
        """Number of queued sentences."""
        return self._queue.num_sentences

    def has_room(self, client: str, num_tokens: int) -> bool:
        """Return whether the queue accepts more subwords of a client."""
        return self._queue.has_room(client, num_tokens)

    def estimate_seconds(self) -> float:
        """Estimate the seconds until the queue is empty."""
        return self._queue.estimate_seconds()

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Close the queues; threads end when they are empty."""
        for queue in (self._queue, self._side_queue):
            queue.close()

    def stop(self, seconds: float) -> None:
        """Translate the queued sentences, then stop threads and processes."""
        until = time.monotonic() + seconds
        self.close()
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        for process in self._processes:
            process.close()

    async def translate(
        self,
        sentences: Sequence[str],
        settings: TranslationSettings,
        client: Client,
        *,
        is_accepted: bool = False,
    ) -> list[SentenceTranslation]:
        """Translate sentences; look up the cache first."""
        name = self.model.name
        known: dict[str, SentenceTranslation | None] = {
            sentence: self._cache.get((name, sentence, settings))
            for sentence in dict.fromkeys(sentences)
        }
        missing = [sentence for sentence, translation in known.items() if translation is None]
        self._metrics.count_cache_lookups(len(known) - len(missing), len(missing))
        if missing:
            found = await self._enqueue(missing, settings, client, is_accepted=is_accepted)
            known.update(found)
            for sentence, new in found.items():
                self._cache.put((name, sentence, settings), new, len(sentence) + new.size)
            self._figures.count_target_tokens(sum(each.num_tokens for each in found.values()))
        return [translation for each in sentences if (translation := known[each]) is not None]

    async def run_side_task(self, work: Callable[[Translator], T]) -> T:
        """Run a function with the model between two batches."""
        translator = self.model.translator
        side_task = SideTask(work=lambda: work(translator), loop=asyncio.get_running_loop())
        self._side_queue.submit_side_task(side_task)
        try:
            return await side_task.done
        finally:
            self._side_queue.withdraw_side_task(side_task)

    def _make_queue(self, options: ServeOptions) -> BatchQueue[SentenceTask, SentenceTranslation]:
        is_cpu = self.model.translator.device.type == "cpu"
        return BatchQueue(
            batch_tokens=options.batch_tokens or (CPU_TOKENS if is_cpu else GPU_TOKENS),
            queue_tokens=options.queue_tokens,
            queue_seconds=options.queue_seconds,
            wait_seconds=options.wait_milliseconds / 1000,
        )

    def _make_thread(
        self,
        queue: BatchQueue[SentenceTask, SentenceTranslation],
        work: Callable[[Sequence[SentenceTask]], list[SentenceTranslation]],
        prepare: Callable[[], None] | None = None,
    ) -> ModelThread[SentenceTask, SentenceTranslation]:
        record_batch = self._figures.record_batch
        return ModelThread(
            self.model.name, queue, work, lambda task: task.settings, record_batch, prepare
        )

    async def _enqueue(
        self,
        sentences: Sequence[str],
        settings: TranslationSettings,
        client: Client,
        *,
        is_accepted: bool,
    ) -> dict[str, SentenceTranslation]:
        """Queue sentences and await their translations; remove them if the request is cancelled."""
        translator = self.model.translator
        encoded = translator.folder.vocabularies.source.encode(sentences)
        beam = max(settings.beam_size or 0, settings.num_best)
        weight = max(1, beam // translator.options.beam_size)
        weights = weigh_terms(sentences, settings.terms)
        pending: PendingRequest[SentenceTask, SentenceTranslation] = PendingRequest(
            client=client,
            tasks=[
                SentenceTask(sentence, settings, ids)
                for sentence, ids in zip(sentences, encoded, strict=True)
            ],
            costs=[
                weight * more * (len(ids) + 1) for ids, more in zip(encoded, weights, strict=True)
            ],
            loop=asyncio.get_running_loop(),
        )
        self._queue.submit(pending, is_accepted=is_accepted)
        try:
            return dict(zip(sentences, await pending.done, strict=True))
        finally:
            self._queue.withdraw(pending)


def weigh_terms(sentences: Sequence[str], terms: Sequence[tuple[str, str]]) -> list[int]:
    """Return cost factors of sentences with glossary terms; raise if one has too many."""
    if not terms:
        return [1] * len(sentences)
    tree = TermTree(source for source, _ in terms)
    counts = [tree.count(sentence) for sentence in sentences]
    if max(counts) > MOST_TERMS:
        raise ServiceError(
            "bad_request",
            f"terms of the glossary occur {max(counts)} times in a sentence, but {MOST_TERMS} are "
            "the most; send shorter sentences, or do without the glossary",
        )
    return [TERMS_WEIGHT if count else 1 for count in counts]


def count_cores() -> int:
    """Count the cores available to this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
