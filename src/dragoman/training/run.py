"""A run from its files to its model folder: prepare, train, finish."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from dragoman.data.clean_text import store_text
from dragoman.data.store import Store, open_store, store_ids
from dragoman.decoding.device import choose_device
from dragoman.decoding.translator import Translator
from dragoman.errors import FolderError
from dragoman.files import write_file
from dragoman.folder import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    ModelFolder,
    put_weights,
    read_folder,
    read_weights,
    vocabulary_of,
    weights_of,
    write_description,
    write_weights,
)
from dragoman.models.build import build_model, count_parameters
from dragoman.options import Plain, read_toml, to_plain, write_toml
from dragoman.training.average import average_weights
from dragoman.training.checkpoint import (
    Progress,
    Trained,
    averaged_checkpoints,
    list_checkpoints,
    restore_checkpoint,
    save_checkpoint,
    sweep_checkpoints,
)
from dragoman.training.configuration import (
    RunOptions,
    resolve_corpus,
    resumed_options,
)
from dragoman.training.log import Log, check_tensorboard, format_time
from dragoman.training.loop import Loop, precision_context, train
from dragoman.training.optimiser import MovingAverage, build_optimiser
from dragoman.training.options import TrainingOptions
from dragoman.training.preparation import (
    RunRequest,
    check_search,
    describe_model,
    learn_subwords,
    resolve_request,
)
from dragoman.training.reward import make_step
from dragoman.training.schedule import paper_peak
from dragoman.training.validation import Validation, Validator

RUN_FILE = "run.json"
CHECKPOINTS = "checkpoints"


def start_run(request: RunRequest, say: Callable[[str], None]) -> None:
    """Prepare a new run and train it.

    Parameters
    ----------
    request : RunRequest
        What to do.
    say : Callable[[str], None]
        Tells a person one line.
    """
    out = request.out
    if (out / RUN_FILE).exists():
        raise FolderError(
            f"{out}: holds another run; give --resume to go on with it, or another --out"
        )
    if out.exists() and (not out.is_dir() or any(each.name != "store" for each in out.iterdir())):
        raise FolderError(f"{out}: already holds something else; name a new folder with --out")
    start = read_folder(request.start_from) if request.start_from else None
    corpus_options = resolve_corpus(request.config, request.flags)
    _, early = resolve_request(request, start, 0)
    choose_device(early.training.device)
    if early.training.tensorboard:
        check_tensorboard()
    store_folder = request.store or out / "store"
    is_own = request.store is None
    text = store_text(
        store_folder, request.files, request.valid_files, corpus_options, may_replace=is_own
    )
    say(text.report.in_words())
    if text.valid_report.dropped:
        say(f"validation: {text.valid_report.in_words()}")
    preset, options = resolve_request(request, start, text.num_pairs)
    vocabularies = start.vocabularies if start else learn_subwords(text, options, say)
    store = store_ids(text, vocabularies, options.corpus.max_length, may_replace=is_own)
    folder = describe_model(request, options, vocabularies, store, start)
    facts = {"store": str(store_folder.resolve()), "store_key": store.key, "preset": preset}
    say(f"preset {preset}; {store.report.in_words()}; {len(store.valid):,} validation pairs")
    torch.manual_seed(options.training.seed)
    vocabulary = vocabulary_of(vocabularies)
    model = build_model(options.model, vocabulary)
    check_search(model, options.search, vocabulary)
    if start:
        start_weights = start.path / WEIGHTS_FILE
        put_weights(model, read_weights(start_weights), start_weights)
    write_description(out, folder, count_parameters(model))
    trained = _on_device(model, options.training)
    settings = options.training
    save_checkpoint(
        out / CHECKPOINTS,
        trained,
        Progress(),
        validate_every=settings.validate_every,
        keep=settings.average_checkpoints,
    )
    write_file(out / RUN_FILE, json.dumps(facts, indent=1))
    _train(folder, options, store, trained, Progress())


def resume_run(out: Path, flags: Plain, say: Callable[[str], None]) -> None:
    """Go on with a run as if it had never stopped.

    Parameters
    ----------
    out : Path
        The run's folder.
    flags : dict[str, Any]
        New limits, perhaps.
    say : Callable[[str], None]
        Tells a person one line.
    """
    if not (out / RUN_FILE).exists():
        raise FolderError(f"{out}: holds no run to resume; leave --resume out to start one")
    try:
        run = json.loads((out / RUN_FILE).read_text(encoding="utf-8"))
        store_folder = Path(run["store"])
    except (OSError, ValueError, KeyError, TypeError):
        raise FolderError(
            f"{out / RUN_FILE}: damaged; start anew with --from {out} and another --out"
        ) from None
    options = resumed_options(read_toml(out / CONFIG_FILE), flags)
    folder = read_folder(out, needs_weights=False)
    try:
        store = open_store(store_folder)
        is_same = store.key == run["store_key"]
    except (FolderError, OSError, ValueError, KeyError):
        is_same = False
    if not is_same:
        raise FolderError(
            f"{store_folder}: the prepared corpus of the run is missing, damaged or no longer the "
            f"same; start anew with --from {out} and another --out"
        )
    model = build_model(options.model, vocabulary_of(folder.vocabularies))
    folder = replace(folder, config=to_plain(options))
    write_file(out / CONFIG_FILE, write_toml(folder.config))
    sweep_checkpoints(out / CHECKPOINTS)
    checkpoints = list_checkpoints(out / CHECKPOINTS)
    if not checkpoints:
        raise FolderError(f"{out}: has no checkpoint to go on from; start anew with another --out")
    trained = _on_device(model, options.training)
    try:
        progress = restore_checkpoint(checkpoints[-1], trained)
    except FolderError as error:
        before = f" to go on from {checkpoints[-2].name}" if len(checkpoints) > 1 else ""
        raise FolderError(f"{error}; or remove {checkpoints[-1]}{before}") from None
    say(f"going on from step {progress.step:,}")
    _train(folder, options, store, trained, progress)


class InterruptedRunError(Exception):
    """A run that somebody stopped; everything is saved."""


def _on_device(model: torch.nn.Module, settings: TrainingOptions) -> Trained:
    """Put a model where it is trained, with its optimiser."""
    model.to(choose_device(settings.device))
    average = MovingAverage(model, settings.ema_decay) if settings.ema_decay else None
    return Trained(model=model, optimiser=build_optimiser(model, settings), average=average)


def _train(
    folder: ModelFolder,
    options: RunOptions,
    store: Store,
    trained: Trained,
    progress: Progress,
) -> None:
    """Train a prepared model to the end, and leave the best weights in its folder."""
    settings, model = options.training, trained.model
    device = choose_device(settings.device)
    vocabulary = vocabulary_of(folder.vocabularies)
    writer = _BestWriter(folder, model)
    validator = Validator(
        Translator(folder, model, device),  # type: ignore[arg-type]
        store.valid,
        beam_size=settings.valid_beam_size,
        precision=precision_context(settings, device),
    )
    peak = settings.peak_learning_rate or paper_peak(options.model.model_dim, settings.warmup_steps)
    loop = Loop(
        step=make_step(model, settings, vocabulary, options.model.max_length),  # type: ignore[arg-type]
        trained=trained,
        pairs=store.train,
        validator=validator,
        options=settings,
        peak_learning_rate=peak,
        checkpoints=folder.path / CHECKPOINTS,
        device=device,
        pad_id=vocabulary.pad_id,
    )
    log = Log(folder.path, resumed_step=progress.step, tensorboard=settings.tensorboard)
    with log:
        log.event(
            "start",
            step=progress.step,
            parameters=count_parameters(model),
            pairs=len(store.train),
            tokens=store.train.num_tokens,
            device=device.type,
        )
        why = train(loop, progress, log, writer.write)
        if why == "interrupted":
            log.event("stop", step=progress.step, why=why)
            log.say(f"stopped at step {progress.step:,}; nothing is lost")
            log.say(f"go on with: dragoman train --resume --out {folder.path}")
            raise InterruptedRunError
        _finish(loop, progress, log, writer)
        log.event("end", step=progress.step, why=why, seconds=progress.seconds)
        log.say(f"done: {why} in {format_time(progress.seconds)}; the model is in {folder.path}")


class _BestWriter:
    """Keeps the best weights so far in the model folder."""

    def __init__(self, folder: ModelFolder, model: torch.nn.Module) -> None:
        self._folder = folder
        self._model = model

    def write(self, progress: Progress, found: Validation, weights: str = "best") -> None:
        """Write the model as it is now."""
        path = self._folder.path
        write_weights(path / WEIGHTS_FILE, weights_of(self._model))
        self.describe(
            steps=progress.step,
            weights=weights,
            scores={"validation": f"BLEU {found.bleu:.2f}, perplexity {found.perplexity:.2f}"},
        )

    def describe(self, **facts: Any) -> None:  # noqa: ANN401
        """Write the folder's description with new facts."""
        changed = replace(self._folder.facts, **facts)
        self._folder = replace(self._folder, facts=changed)
        write_description(self._folder.path, self._folder, count_parameters(self._model))


def _finish(loop: Loop, progress: Progress, log: Log, writer: _BestWriter) -> None:
    """Try the average of the last checkpoints, and keep it if it is better than the best."""
    settings = loop.options
    regular = averaged_checkpoints(
        loop.checkpoints, settings.validate_every, settings.average_checkpoints
    )
    paths = [each / WEIGHTS_FILE for each in regular]
    if len(paths) > 1:
        put_weights(loop.trained.model, average_weights(paths), paths[-1])
        found = loop.validator.validate()
        value = found.value(settings.best_by)
        is_best = progress.is_better(value, found.loss)
        name = f"average of the last {len(paths)} checkpoints"
        log.say(f"{name}: BLEU {found.bleu:.2f}, perplexity {found.perplexity:.2f}")
        if is_best:
            writer.write(progress, found, weights=name)
