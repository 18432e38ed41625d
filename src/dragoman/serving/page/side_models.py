"""Models that are looked into but translate for nobody: broken ones, and snapshots of runs."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from dragoman.decoding.translator import Translator
from dragoman.errors import FolderError
from dragoman.folder import WEIGHTS_FILE, read_folder
from dragoman.models.build import build_model
from dragoman.serving.page.page_insight import look_for_page
from dragoman.serving.page.page_request import SentencePair, check_length
from dragoman.serving.service_types import ServiceError
from dragoman.training.checkpoints.checkpoint import list_checkpoints, step_of
from dragoman.training.checkpoints.snapshots import SNAPSHOTS, list_snapshots
from dragoman.training.run import CHECKPOINTS
from dragoman.weights import put_weights, read_weights, vocabulary_of

T = TypeVar("T")

MOST_WAITING = 8
"""Questions that wait for the thread; whoever comes then is asked to try again."""

TOO_LONG = "The translation is too long to look into."


class SideModels:
    """Loads models and works with them on a thread of its own, holding one at a time."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="side-models")
        self._num_waiting = 0
        self._key: object = None
        self._translator: Translator | None = None

    async def run(
        self, key: object, load: Callable[[], Translator], work: Callable[[Translator], T]
    ) -> T:
        """Load a model, unless it is the one that was used last, and work with it.

        Parameters
        ----------
        key : object
            What tells the model from others.
        load : Callable[[], Translator]
            Loads it, on the thread.
        work : Callable[[Translator], T]
            What to do with it, on the thread.
        """
        if self._num_waiting >= MOST_WAITING:
            raise ServiceError("overloaded", "too many questions at once", retry_after=1.0)
        self._num_waiting += 1
        future = self._pool.submit(self._work, key, load, work)
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda done: self._note_end(loop, done))
        return await asyncio.wrap_future(future)

    def _note_end(self, loop: asyncio.AbstractEventLoop, _done: Future) -> None:
        """Count one question less, on the loop, whether or not anybody still waits for it."""
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._forget_one)

    def _forget_one(self) -> None:
        self._num_waiting -= 1

    def _work(
        self, key: object, load: Callable[[], Translator], work: Callable[[Translator], T]
    ) -> T:
        if self._translator is None or self._key != key:
            self._translator = None  # freed before the next one is loaded
            self._translator, self._key = load(), key
        return work(self._translator)


def load_weights(folder: Path, weights: Path) -> Translator:
    """Load a model folder with weights of a file, to look into on the CPU."""
    described = read_folder(folder, needs_weights=False)
    model = build_model(described.options, vocabulary_of(described.vocabularies))
    try:
        put_weights(model, read_weights(weights), weights)
    except OSError as error:
        raise FolderError(
            f"{weights}: cannot be read ({error.strerror}); a run keeps only its newest checkpoints"
        ) from None
    return Translator(described, model.eval(), torch.device("cpu"))


def list_stages(run: Path) -> dict[str, tuple[int, Path]]:
    """List the weights that a run has kept, by a name, with their steps in order.

    Returns
    -------
    dict[str, tuple[int, Path]]
        Snapshots, checkpoints, and as “model” those of the model folder, which are the best.
    """
    kept = {
        f"update {step}": (step, path)
        for step, path in (
            *list_snapshots(run / SNAPSHOTS).items(),
            *((step_of(each), each / WEIGHTS_FILE) for each in list_checkpoints(run / CHECKPOINTS)),
        )
    }
    stages = dict(sorted(kept.items(), key=lambda each: each[1][0]))
    if (run / WEIGHTS_FILE).exists():
        last = max((step for step, _ in stages.values()), default=0)
        stages["model"] = (last, run / WEIGHTS_FILE)
    return stages


def translate_and_look(translator: Translator, text: str, say: str = "") -> dict[str, Any]:
    """Translate a sentence, greedily and fast, and record the attention.

    Parameters
    ----------
    translator : Translator
        The model.
    text : str
        The sentence.
    say : str
        What to make the model say while it is looked into, so that several models can be compared;
        empty: its own translation.

    Returns
    -------
    dict[str, Any]
        For JSON: as `look_for_page`, but ``translation`` is the model's own, and what it was made
        to say is ``said``; without maps if that is too long.
    """
    check_length(translator, SentencePair("", text, say))
    greedy = replace(translator.options, beam_size=1)
    translation = translator.translate(text, options=greedy).text
    said = say or translation
    try:
        check_length(translator, SentencePair("", text, said))
    except ServiceError:
        found: dict[str, Any] = {"source": text, "remark": TOO_LONG, "maps": []}
    else:
        found = look_for_page(translator, text, said)
    return found | {"translation": translation, "said": said}
