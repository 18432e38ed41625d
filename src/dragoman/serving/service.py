"""The service: texts of clients in, translations out, whatever protocol they came by."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from dragoman.decoding.translator import Translator
from dragoman.serving.detection import Detector
from dragoman.serving.language_pairs import Models
from dragoman.serving.metrics import Metrics
from dragoman.serving.options import ServeOptions
from dragoman.serving.pivot_path import note_ways
from dragoman.serving.protocols.client import Client
from dragoman.serving.queue.model_queue import Lane
from dragoman.serving.queue.translation_cache import Cache
from dragoman.serving.request_plan import (
    Plan,
    check_request,
    join_legs,
    plan_text,
    split_planned,
    write_answer,
)
from dragoman.serving.sentence_translation import Manner, Rendering
from dragoman.serving.service_types import (
    Answer,
    Language,
    Request,
    ServedModel,
    ServiceError,
    Span,
)

__all__ = ["Answer", "Language", "Request", "ServedModel", "Service", "ServiceError", "Span"]

T = TypeVar("T")
# Longer requests are taken apart on a thread of their own, so that others need not wait for that.
LONG_CHARACTERS = 2000


class Service:
    """Translates what clients send.

    Parameters
    ----------
    models : Models
        What there is to translate with.
    options : ServeOptions
        How to serve.
    metrics : Metrics | None
        Takes figures; None: its own.

    Notes
    -----
    Requests are accepted whole or not at all. Of an accepted one nothing is lost: until it is
    answered, or its client has gone (then its task is cancelled, and what waits of it leaves the
    queues).
    """

    def __init__(
        self, models: Models, options: ServeOptions | None = None, metrics: Metrics | None = None
    ) -> None:
        self.options = ServeOptions() if options is None else options
        self.metrics = Metrics() if metrics is None else metrics
        self._models = models
        self._detector = Detector(models.codes)
        self._cache: Cache[Rendering] = Cache(self.options.cache_characters)
        self._lanes = {
            model.name: Lane(model, self.options, self._cache, self.metrics) for model in models.all
        }
        self._has_started = self._is_stopping = self._is_leaving = False

    @property
    def is_ready(self) -> bool:
        """Whether requests are accepted: all models run, and nobody is stopping them."""
        return not self._is_stopping and all(lane.is_alive for lane in self._lanes.values())

    @property
    def is_accepting(self) -> bool:
        """Whether new requests of clients are welcome, besides those in progress."""
        return self.is_ready and not self._is_leaving

    @property
    def is_loaded(self) -> bool:
        """Whether every process that translates has loaded its model."""
        return all(lane.is_loaded for lane in self._lanes.values())

    def start(self) -> None:
        """Begin to translate, unless that has begun."""
        if not self._has_started:
            self._has_started = True
            for lane in self._lanes.values():
                lane.start()

    def take_leave(self) -> None:
        """Say that a stop has begun; requests in progress may still ask for more."""
        self._is_leaving = True

    def refuse_more(self) -> None:
        """Accept nothing more; what was accepted is still translated."""
        self._is_stopping = True

    def stop(self, seconds: float = 10.0) -> None:
        """Translate what waits, and end."""
        self.refuse_more()
        until = time.monotonic() + seconds
        for lane in self._lanes.values():
            lane.close()
        for lane in self._lanes.values():
            lane.stop(max(0.0, until - time.monotonic()))

    async def translate(self, request: Request) -> list[Answer]:
        """Translate the texts of a request."""
        try:
            if not self.is_ready:
                raise ServiceError(
                    "not_ready", "the server is stopping or not ready", retry_after=1.0
                )
            check_request(request, self.options)
            return await self._translate(request)
        except ServiceError as error:
            self.metrics.note_failure(error.kind)
            raise

    def wait_for_room(self, client: str, num_tokens: int) -> float | None:
        """Say whether any model would accept something of a client.

        Returns
        -------
        float | None
            None: at least one would. Otherwise how many seconds it may take until one does.
        """
        if not self._lanes or any(
            lane.has_room(client, num_tokens) for lane in self._lanes.values()
        ):
            return None
        return min(lane.guess_seconds() for lane in self._lanes.values())

    def detect(self, text: str) -> list[tuple[str, float]]:
        """Find the language of a text, among those that are served."""
        return self._detector.detect(text)

    def split(self, text: str, request: Request) -> list[str]:
        """Split a text into the parts that are translated one by one."""
        return split_planned(text, request, self._models, self.detect)

    def languages(self) -> list[Language]:
        """List the languages that can be translated."""
        return self._models.languages()

    def models(self) -> list[ServedModel]:
        """List the models."""
        return list(self._models.all)

    async def run_beside(self, model: str, work: Callable[[Translator], T]) -> T:
        """Do other work with a model, such as looking at its attention, between two batches.

        Parameters
        ----------
        model : str
            The model's name.
        work : Callable[[Translator], T]
            What to do, on the model's own thread. Nothing is translated meanwhile: let long work
            be many short ones.
        """
        lane = self._lanes.get(model)
        if lane is None:
            names = ", ".join(self._lanes)
            raise ServiceError("not_found", f"no model is called “{model}”; there are {names}")
        if not self.is_ready:
            raise ServiceError("not_ready", "the server is stopping or not ready", retry_after=1.0)
        return await lane.run_beside(work)

    async def _translate(self, request: Request) -> list[Answer]:
        """Plan, translate and write; texts that take the same way go together."""
        if sum(map(len, request.texts)) > LONG_CHARACTERS:
            plans = await asyncio.to_thread(self._plan, request)
        else:
            plans = self._plan(request)
        groups: dict[tuple[str, ...], list[int]] = {}
        for index, plan in enumerate(plans):
            groups.setdefault(tuple(model.name for model in plan.path), []).append(index)
        answers: dict[int, Answer] = {}

        async def translate_group(indices: list[int]) -> None:
            found = await self._render([plans[index] for index in indices], request)
            for index, renderings in zip(indices, found, strict=True):
                answers[index] = write_answer(plans[index], renderings, request)

        if len(groups) == 1:
            await translate_group(list(range(len(plans))))
        else:
            try:
                async with asyncio.TaskGroup() as tasks:
                    for indices in groups.values():
                        tasks.create_task(translate_group(indices))
            except BaseExceptionGroup as failures:
                raise failures.exceptions[0] from None
        note_ways(answer.path for answer in answers.values())
        return [answers[index] for index in range(len(plans))]

    def _plan(self, request: Request) -> list[Plan]:
        return [plan_text(text, request, self._models, self.detect) for text in request.texts]

    async def _render(self, plans: Sequence[Plan], request: Request) -> list[list[Rendering]]:
        """Translate the sentences of texts that take the same way."""
        path = plans[0].path
        if not path:
            return [[] for _ in plans]
        manner = Manner(
            num_best=request.num_alternatives + 1,
            beam_size=request.beam_size,
            terms=request.terms if len(path) == 1 else (),
            wants_alignment=request.wants_alignment or request.markup != "text",
            splits_sentences=request.splits_sentences,
        )
        sentences = [sentence for plan in plans for sentence in plan.sentences]
        prefix = request.prefix.strip()
        if len(sentences) == 1:
            manner = replace(manner, prefix=prefix)
        renderings = await self._follow(path, sentences, manner, request.client)
        if prefix and len(sentences) > 1:
            await self._begin(path, sentences, renderings, manner, request)
        rest = iter(renderings)
        return [[next(rest) for _ in plan.sentences] for plan in plans]

    async def _begin(
        self,
        path: tuple[ServedModel, ...],
        sentences: Sequence[str],
        renderings: list[Rendering],
        manner: Manner,
        request: Request,
    ) -> None:
        """Make a text's translation begin as the client wants.

        As far as the beginning is what the first sentences become anyway, they stay; the first
        sentence of which that is not so must begin with the rest.
        """
        rest = request.prefix.strip()
        for index, rendering in enumerate(renderings):
            text = rendering.candidates[0].text
            if not rest.startswith(text) or index == len(renderings) - 1:
                break
            rest = rest[len(text) :].lstrip()
            if not rest:
                return
        forced = replace(manner, prefix=rest)
        found = await self._follow(
            path, [sentences[index]], forced, request.client, is_promised=True
        )
        renderings[index] = found[0]

    async def _follow(
        self,
        path: tuple[ServedModel, ...],
        sentences: Sequence[str],
        manner: Manner,
        client: Client,
        *,
        is_promised: bool = False,
    ) -> list[Rendering]:
        """Translate sentences by one model, or by two, one after the other."""
        first = self._lanes[path[0].name]
        if len(path) == 1:
            return await first.translate(sentences, manner, client, is_promised=is_promised)
        plain = replace(manner, num_best=1, prefix="")
        halves = await first.translate(sentences, plain, client, is_promised=is_promised)
        between = [each.candidates[0].text for each in halves]
        second = self._lanes[path[1].name]
        wholes = await second.translate(between, manner, client, is_promised=True)
        return [join_legs(one, other) for one, other in zip(halves, wholes, strict=True)]
