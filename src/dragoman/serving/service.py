"""Translation service behind all protocols: plan, queue, answer."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from dragoman.decoding.translator import Translator
from dragoman.serving.detection import LanguageDetector
from dragoman.serving.language_pairs import ServedModels
from dragoman.serving.metrics import Metrics
from dragoman.serving.options import ServeOptions
from dragoman.serving.queue.model_queue import ModelQueue
from dragoman.serving.queue.translation_cache import TranslationCache
from dragoman.serving.request_plan import (
    TextPlan,
    check_request,
    choose_formality,
    join_pivot_translations,
    plan_texts,
    split_planned,
    write_answer,
)
from dragoman.serving.sentence_translation import SentenceTranslation, TranslationSettings
from dragoman.serving.service_types import (
    Answer,
    Client,
    Formality,
    Language,
    Request,
    ServedModel,
    ServiceError,
    Span,
    record_pivot_paths,
)

__all__ = ["Answer", "Language", "Request", "ServedModel", "Service", "ServiceError", "Span"]

T = TypeVar("T")
# Longer requests are split into sentences on a thread, so as not to block the event loop.
LONG_CHARACTERS = 2000


class Service:
    """Translates requests with the served models.

    Parameters
    ----------
    models : ServedModels
        The served models.
    options : ServeOptions
        How to serve.
    metrics : Metrics | None
        Receives measurements; None: its own.

    Notes
    -----
    Requests are accepted whole or not at all. Of an accepted one nothing is lost: until it is
    answered, or its client has gone (then its task is cancelled, and what waits of it leaves the
    queues).
    """

    def __init__(
        self,
        models: ServedModels,
        options: ServeOptions | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.options = ServeOptions() if options is None else options
        self.metrics = Metrics() if metrics is None else metrics
        self._models = models
        self._detector = LanguageDetector(models.codes)
        self._cache: TranslationCache[SentenceTranslation] = TranslationCache(
            self.options.cache_characters
        )
        self._model_queues = {
            name: ModelQueue(models.named(name)[0], self.options, self._cache, self.metrics)
            for name in dict.fromkeys(model.name for model in models.all)
        }
        self._has_started = self._is_stopping = self._is_stop_requested = False

    @property
    def is_ready(self) -> bool:
        """Whether all model threads run and no stop is in progress."""
        return not self._is_stopping and all(
            queue.is_alive for queue in self._model_queues.values()
        )

    @property
    def is_accepting(self) -> bool:
        """Whether new requests are accepted, besides those in progress."""
        return self.is_ready and not self._is_stop_requested

    @property
    def is_loaded(self) -> bool:
        """Whether every process that translates has loaded its model."""
        return all(queue.is_loaded for queue in self._model_queues.values())

    def start(self) -> None:
        """Start the model queues once."""
        if not self._has_started:
            self._has_started = True
            for queue in self._model_queues.values():
                queue.start()

    def begin_stop(self) -> None:
        """Report not ready; requests in progress may still queue sentences."""
        self._is_stop_requested = True

    def stop_accepting(self) -> None:
        """Reject new sentences; queued ones are still translated."""
        self._is_stopping = True

    def stop(self, seconds: float = 10.0) -> None:
        """Translate the queued sentences, then stop."""
        self.stop_accepting()
        until = time.monotonic() + seconds
        for queue in self._model_queues.values():
            queue.close()
        for queue in self._model_queues.values():
            queue.stop(max(0.0, until - time.monotonic()))

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
            self.metrics.count_failure(error.kind)
            raise

    def seconds_until_room(self, client: str, num_tokens: int) -> float | None:
        """Return the seconds until some model queue accepts more of a client.

        Returns
        -------
        float | None
            None: at least one would. Otherwise how many seconds it may take until one does.
        """
        if not self._model_queues or any(
            queue.has_room(client, num_tokens) for queue in self._model_queues.values()
        ):
            return None
        return min(queue.estimate_seconds() for queue in self._model_queues.values())

    def detect(self, text: str) -> list[tuple[str, float]]:
        """Rank the languages of a text by confidence."""
        return self._detector.detect_all([text])[0]

    def split(self, text: str, request: Request) -> list[str]:
        """Split a text into the sentences that would be translated."""
        return split_planned(text, request, self._models, self._detector.detect_all)

    def languages(self) -> list[Language]:
        """List the languages that can be translated."""
        return self._models.languages()

    def check_formality(self, source: str | None, target: str, wanted: Formality | None) -> None:
        """Raise if the models from one language to another have not the formality wanted."""
        path = None if source is None else self._models.find_path(source, target)
        choose_formality(wanted, path or ())

    def models(self) -> list[ServedModel]:
        """List the models."""
        return list(self._models.all)

    async def run_side_task(self, model: str, work: Callable[[Translator], T]) -> T:
        """Run a function with a model, such as to read its attention, between two batches.

        Parameters
        ----------
        model : str
            The model's name.
        work : Callable[[Translator], T]
            What to do, on the model's own thread. Nothing is translated meanwhile: let long work
            be many short ones.
        """
        queue = self._model_queues.get(model)
        if queue is None:
            names = ", ".join(self._model_queues)
            raise ServiceError("not_found", f"no model is called “{model}”; there are {names}")
        if not self.is_ready:
            raise ServiceError("not_ready", "the server is stopping or not ready", retry_after=1.0)
        return await queue.run_side_task(work)

    async def _translate(self, request: Request) -> list[Answer]:
        """Plan, translate and answer; group texts by their path of models."""
        if sum(map(len, request.texts)) > LONG_CHARACTERS:
            plans = await asyncio.to_thread(self._plan, request)
        else:
            plans = self._plan(request)
        by_path: dict[tuple[str, ...], list[int]] = {}
        for index, plan in enumerate(plans):
            path = tuple(f"{model.name} {model.target}" for model in plan.path)
            by_path.setdefault(path, []).append(index)
        groups = list(by_path.values())
        calls = [
            self._translate_plans([plans[index] for index in each], request) for each in groups
        ]
        if len(calls) == 1:
            found = [await calls[0]]
        else:
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(call) for call in calls]
            except BaseExceptionGroup as failures:
                raise failures.exceptions[0] from None
            found = [task.result() for task in tasks]
        answers = {
            index: answer
            for indices, some in zip(groups, found, strict=True)
            for index, answer in zip(indices, some, strict=True)
        }
        record_pivot_paths(answer.path for answer in answers.values())
        return [answers[index] for index in range(len(plans))]

    def _plan(self, request: Request) -> list[TextPlan]:
        return plan_texts(request, self._models, self._detector.detect_all)

    async def _translate_plans(self, plans: Sequence[TextPlan], request: Request) -> list[Answer]:
        """Translate and answer texts that share a path of models."""
        path = plans[0].path
        if not path:
            return [write_answer(plan, [], request) for plan in plans]
        settings = TranslationSettings(
            num_best=request.num_alternatives + 1,
            beam_size=request.beam_size,
            terms=request.terms if len(path) == 1 else (),
            wants_alignment=request.wants_alignment or request.markup != "text",
            wants_confidence=request.wants_confidence,
            formality=choose_formality(request.formality, path),
            splits_sentences=request.splits_sentences,
        )
        sentences = [sentence for plan in plans for sentence in plan.sentences]
        prefix = request.prefix.strip()
        if len(sentences) == 1:
            settings = replace(settings, prefix=prefix)
        translations = await self._translate_along_path(path, sentences, settings, request.client)
        if prefix and len(sentences) > 1:
            await self._force_prefix(path, sentences, translations, settings, request)
        rest = iter(translations)
        return [write_answer(plan, [next(rest) for _ in plan.sentences], request) for plan in plans]

    async def _force_prefix(
        self,
        path: tuple[ServedModel, ...],
        sentences: Sequence[str],
        translations: list[SentenceTranslation],
        settings: TranslationSettings,
        request: Request,
    ) -> None:
        """Constrain a text's translation to begin with the client’s prefix.

        As far as the beginning is what the first sentences become anyway, they stay; the first
        sentence of which that is not so must begin with the rest.
        """
        rest = request.prefix.strip()
        for index, translation in enumerate(translations):
            text = translation.candidates[0].text
            if not rest.startswith(text) or index == len(translations) - 1:
                break
            rest = rest[len(text) :].lstrip()
            if not rest:
                return
        forced = replace(settings, prefix=rest)
        found = await self._translate_along_path(
            path, [sentences[index]], forced, request.client, is_accepted=True
        )
        translations[index] = found[0]

    async def _translate_along_path(
        self,
        path: tuple[ServedModel, ...],
        sentences: Sequence[str],
        settings: TranslationSettings,
        client: Client,
        *,
        is_accepted: bool = False,
    ) -> list[SentenceTranslation]:
        """Translate sentences with one model, or with two through a pivot language."""
        first = self._model_queues[path[0].name]
        settings = replace(settings, into=path[-1].into)
        if len(path) == 1:
            return await first.translate(sentences, settings, client, is_accepted=is_accepted)
        plain = replace(settings, num_best=1, prefix="", into=path[0].into, formality=None)
        to_pivot = await first.translate(sentences, plain, client, is_accepted=is_accepted)
        between = [each.candidates[0].text for each in to_pivot]
        second = self._model_queues[path[1].name]
        from_pivot = await second.translate(between, settings, client, is_accepted=True)
        return [
            join_pivot_translations(one, other)
            for one, other in zip(to_pivot, from_pivot, strict=True)
        ]
