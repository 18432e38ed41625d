"""A run from its files to its model folder: prepare, train, finish."""

from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from dragoman.data.segmentation.segmentation import SegmentedPairs
from dragoman.data.store.mapped import read_facts, write_facts
from dragoman.data.store.store import PairStore, Store, make_key, open_store
from dragoman.decoding.confidence import write_calibration
from dragoman.decoding.device import choose_device
from dragoman.decoding.engines.select import fits_int8
from dragoman.decoding.translator import Translator
from dragoman.errors import DataError, FolderError
from dragoman.evaluation.calibration import check_enough, fit_confidence
from dragoman.files import locked, sweep, write_file
from dragoman.folder import (
    CONFIG_FILE,
    RUN_FILE,
    WEIGHTS_FILE,
    ModelFolder,
    read_folder,
    write_config,
    write_description,
)
from dragoman.models.build import build_model, count_parameters
from dragoman.options import Plain, read_toml, to_plain
from dragoman.presets import TUNING
from dragoman.training.assembly import Assembly, assemble_training, make_training_state
from dragoman.training.checkpoints.average import average_weights
from dragoman.training.checkpoints.checkpoint import (
    SINGLE_PROCESS,
    Progress,
    averaged_checkpoints,
    save_checkpoint,
)
from dragoman.training.checkpoints.recovery import find_readable, restore_newest
from dragoman.training.configuration import (
    RunOptions,
    resumed_options,
)
from dragoman.training.log import Log, SilentLog, format_time
from dragoman.training.loop import Loop, train
from dragoman.training.optimisers.schedule import paper_peak
from dragoman.training.preparation import RunRequest, describe_model
from dragoman.training.run_setup import (
    GENERAL,
    PREPARING_FILE,
    Prepared,
    build_initial_model,
    check_output_folder,
    prepare_corpus,
)
from dragoman.training.stopping import (
    INTERRUPTED,
    describe_short_run,
    stop_requests,
    terminable,
)
from dragoman.training.tuning.general_text import read_general
from dragoman.training.tuning.outcome import (
    GENERAL_LINES,
    START_FILE,
    TUNED_FILE,
    YOUR_LINES,
    Outcome,
    finish_tuning,
    held_out,
)
from dragoman.training.updates.distributed import Workers, check_device
from dragoman.training.updates.gradients import precision_context
from dragoman.training.updates.update_planner import segment_pairs
from dragoman.training.validation import Validation, Validator
from dragoman.weights import put_weights, vocabulary_of, weights_of, write_weights

CHECKPOINTS = "checkpoints"
NUM_INT8_PAIRS = 100
MOST_CALIBRATION_PAIRS = 2000


def start_run(
    request: RunRequest, say: Callable[[str], None], workers: Workers = SINGLE_PROCESS
) -> None:
    """Prepare a new run and train it.

    Parameters
    ----------
    request : RunRequest
        What to do.
    say : Callable[[str], None]
        Tells a person one line.
    workers : Workers
        Who trains; the first one prepares. If they were restarted in the middle of this very run,
        they go on with it.
    """
    with ExitStack() as stack:
        workers.run_on_first(lambda: _lock_run(request.out, stack))
        is_ours = workers.is_restarted and _was_launched_by(request.out, workers)
        (is_known,) = workers.all_reduce_max(workers.is_first and is_ours)
        if not is_known:
            workers.run_on_first(lambda: _prepare(request, say, workers))
        _continue_run(request.out, {}, say, workers, is_new=not is_known)


def resume_run(
    out: Path, flags: Plain, say: Callable[[str], None], workers: Workers = SINGLE_PROCESS
) -> None:
    """Resume a run from its last checkpoint.

    Parameters
    ----------
    out : Path
        The run's folder.
    flags : dict[str, Any]
        New limits, perhaps.
    say : Callable[[str], None]
        Tells a person one line.
    workers : Workers
        Who trains; they may be more or fewer than before.
    """
    with ExitStack() as stack:
        workers.run_on_first(lambda: _lock_run(out, stack))
        _continue_run(out, flags, say, workers)


class InterruptedRunError(Exception):
    """A run that was interrupted; its checkpoint is written."""


class _Run(NamedTuple):
    """A run as it was read from its folder."""

    options: RunOptions
    folder: ModelFolder
    store: Store
    pairs: PairStore | SegmentedPairs
    is_tuning: bool


def _lock_run(out: Path, stack: ExitStack) -> None:
    """Lock the run's folder, and clean up on SIGTERM; called on the first worker."""
    stack.enter_context(terminable())
    stack.enter_context(locked(out))


def _prepare(request: RunRequest, say: Callable[[str], None], workers: Workers) -> None:
    """Prepare the corpus, and write the model folder with the initial checkpoint."""
    check_output_folder(request.out)
    sweep(request.out)
    ready = prepare_corpus(request, say, workers)
    folder = describe_model(request, ready.options, ready.vocabularies, ready.store, ready.start)
    _write_initial_checkpoint(folder, ready)
    facts = {
        "store": str(ready.store_folder.resolve()),
        "store_key": ready.store.key,
        "preset": ready.preset,
        "launch": workers.launch,
    }
    write_facts(request.out / RUN_FILE, facts)


def _write_initial_checkpoint(folder: ModelFolder, ready: Prepared) -> None:
    """Write the model's description and the initial checkpoint."""
    settings = ready.options.training
    model = build_initial_model(ready.options, folder.vocabularies, ready.start)
    write_file(folder.path / PREPARING_FILE, "")
    write_description(folder.path, folder, count_parameters(model))
    if ready.preset == TUNING:
        write_weights(folder.path / CHECKPOINTS / START_FILE, weights_of(model), folder.identity)
    save_checkpoint(
        folder.path / CHECKPOINTS,
        make_training_state(model, settings),
        Progress(wall_seconds=ready.seconds, planned_seconds=ready.planned_seconds),
        validate_every=settings.validate_every,
        keep=settings.average_checkpoints,
    )


def _was_launched_by(out: Path, workers: Workers) -> bool:
    """Whether torchrun restarted these workers in the middle of this run."""
    return read_facts(out / RUN_FILE).get("launch") == workers.launch


def _open_run(out: Path, flags: Plain, workers: Workers) -> _Run:
    """Read a run from the disk."""
    if not (out / RUN_FILE).exists() and not workers.is_first:
        raise FolderError(
            f"{out}: process {workers.rank} sees no run here; name a folder that all machines share"
        )
    if not (out / RUN_FILE).exists():
        raise FolderError(f"{out}: holds no run to resume; leave --resume out to start one")
    run = read_facts(out / RUN_FILE)
    if not {"store", "store_key"} <= run.keys():
        raise FolderError(
            f"{out / RUN_FILE}: damaged; start anew with --from {out} and another --out"
        )
    options = resumed_options(read_toml(out / CONFIG_FILE), flags)
    folder = read_folder(out, needs_weights=False)
    folder = replace(folder, config=to_plain(options))
    if workers.is_first:
        for each in (out, out / CHECKPOINTS):
            sweep(each, is_ours=each != out)
        (out / PREPARING_FILE).unlink(missing_ok=True)
        write_config(out, folder.config)
    store_folder = Path(run["store"])
    store = _open_store(store_folder, run["store_key"], folder, options)
    pairs = segment_pairs(store.train, store_folder, folder.vocabularies, options, workers)
    return _Run(options, folder, store, pairs, run.get("preset") == TUNING)


def _open_store(store_folder: Path, key: str, folder: ModelFolder, options: RunOptions) -> Store:
    """Open the prepared corpus of a run, and check that it has not changed."""
    if read_facts(store_folder / "ids.json").get("key") != key:
        raise FolderError(
            f"{store_folder}: the prepared corpus of the run is missing, damaged or no longer the "
            f"same; have it prepared again by “dragoman train” with --store {store_folder} and a "
            f"new --out, or start anew with --from {folder.path} and another --out"
        )
    store = open_store(store_folder, options.corpus.mix, options.corpus.mix_temperature)
    if make_key(store.text_key, folder.vocabularies, options.corpus.max_length) != key:
        raise FolderError(
            f"{folder.path}: its subwords are damaged, or others than those of the prepared "
            f"corpus; get them again, or take those in {store_folder}"
        )
    return store


def _continue_run(
    out: Path,
    flags: Plain,
    say: Callable[[str], None],
    workers: Workers,
    *,
    is_new: bool = False,
) -> None:
    """Train from the last checkpoint."""
    run = workers.run_first_then_all(lambda: _open_run(out, flags, workers))
    settings = run.options.training
    device = choose_device(settings.device)
    check_device(workers, device)
    vocabulary = vocabulary_of(run.folder.vocabularies)
    model = build_model(run.options.model, vocabulary)
    parts = assemble_training(model, run.options, vocabulary, run.pairs, device, workers)
    progress = restore_newest(
        out / CHECKPOINTS, parts.trained, say, workers=workers, seed=settings.seed
    )
    if workers.is_first and not is_new:
        say(f"going on from step {progress.step:,}")
    _train(run, parts, progress, workers)


def _train(run: _Run, parts: Assembly, progress: Progress, workers: Workers) -> None:
    """Train to the end, and leave the best weights in the model folder."""
    settings, folder, model = run.options.training, run.folder, parts.trained.model
    device = choose_device(settings.device)
    width = run.options.model.model_dim
    loop = Loop(
        gradients=parts.gradients,
        trained=parts.trained,
        planner=parts.planner,
        validator=_validator(run, parts.full_model, device) if workers.is_first else None,
        whole=parts.full_model,
        options=settings,
        peak_learning_rate=settings.peak_learning_rate or paper_peak(width, settings.warmup_steps),
        checkpoints=folder.path / CHECKPOINTS,
        device=device,
        workers=workers,
    )
    writer = _BestWriter(folder, parts.full_model or model, is_tuning=run.is_tuning)
    with _open_log(run, progress, workers) as log:
        log.event(
            "start",
            step=progress.step,
            parameters=count_parameters(model),
            pairs=len(run.store.train),
            tokens=run.store.train.num_tokens,
            device=device.type,
            workers=workers.num_workers,
        )
        why = train(loop, progress, log, writer.write)
        if why == INTERRUPTED or _is_interrupted(
            lambda: _finish(run, loop, progress, log, writer), workers
        ):
            log.event("stop", step=progress.step, why=INTERRUPTED)
            log.say(f"stopped at step {progress.step:,}; nothing is lost")
            log.say(f"go on with: dragoman train --resume --out {folder.path}")
            raise InterruptedRunError
        log.event("end", step=progress.step, why=why, seconds=progress.seconds)
        log.say(f"done: {why} in {format_time(progress.seconds)}; the model is in {folder.path}")
        short = "" if run.is_tuning else describe_short_run(settings, progress)
        if short:
            log.say(short)


def _is_interrupted(finish: Callable[[], None], workers: Workers) -> bool:
    """Finish on the first worker; return whether it was interrupted, with all saved by then."""

    def work() -> bool:
        try:
            finish()
        except KeyboardInterrupt:
            return True
        return False

    # Stop requests sent to the other workers are handled by the first one.
    with nullcontext() if workers.is_first else stop_requests():
        is_interrupted = workers.run_on_first(work)
    return bool(*workers.all_reduce_max(bool(is_interrupted)))


def _open_log(run: _Run, progress: Progress, workers: Workers) -> Log | SilentLog:
    """Open the run's log on the first worker."""
    if not workers.is_first:
        return SilentLog()
    settings = run.options.training
    return Log(
        run.folder.path,
        resumed_step=progress.step,
        tensorboard=settings.tensorboard,
        may_end_sooner=settings.patience is not None,
    )


def _validator(run: _Run, model: nn.Module | None, device: torch.device) -> Validator:
    """Make the validator of a model."""
    settings = run.options.training
    return Validator(
        Translator(run.folder, model, device),  # type: ignore[arg-type]
        run.store.valid,
        beam_size=settings.valid_beam_size,
        precision=precision_context(settings, device),
    )


class _BestWriter:
    """Keeps the best weights so far in the model folder."""

    def __init__(self, folder: ModelFolder, model: nn.Module, *, is_tuning: bool) -> None:
        self.folder = folder
        self._model = model
        self._is_tuning = is_tuning

    def write(self, progress: Progress, found: Validation, weights: str = "best") -> None:
        """Write the current weights and their scores."""
        path, now = self.folder.path, weights_of(self._model)
        if self._is_tuning:  # to be averaged with those of before, however often the run ends
            write_weights(path / CHECKPOINTS / TUNED_FILE, now, self.folder.identity)
        write_weights(path / WEIGHTS_FILE, now, self.folder.identity)
        self.describe(
            steps=progress.step,
            weights=weights,
            scores={"validation": f"BLEU {found.bleu:.2f}, perplexity {found.perplexity:.2f}"},
        )

    def describe(self, **facts: Any) -> None:  # noqa: ANN401
        """Update the facts in the folder's description."""
        changed = replace(self.folder.facts, **facts)
        self.folder = replace(self.folder, facts=changed)
        write_description(self.folder.path, self.folder, count_parameters(self._model))


def _finish(
    run: _Run, loop: Loop, progress: Progress, log: Log | SilentLog, writer: _BestWriter
) -> None:
    """Keep the best average of weights, and test int8 quantisation."""
    if run.is_tuning:
        _finish_tuning(run, loop, log, writer)
    else:
        _average_last(loop, progress, log, writer)
    some_pairs = run.store.valid.ids(np.arange(min(len(run.store.valid), NUM_INT8_PAIRS)))
    writer.describe(fits_int8=fits_int8(writer.folder, *some_pairs))
    _calibrate(writer.folder.path, run.store.valid, loop.device, log)


def _average_last(
    loop: Loop, progress: Progress, log: Log | SilentLog, writer: _BestWriter
) -> None:
    """Validate the average of the last checkpoints, and keep it if it is the best.

    Damaged checkpoints are left out.
    """
    settings = loop.options
    regular = averaged_checkpoints(
        loop.checkpoints, settings.validate_every, settings.average_checkpoints
    )
    paths = [each / WEIGHTS_FILE for each in regular]
    if len(paths) > 1:
        paths = find_readable(paths, log.say)
    if len(paths) > 1:
        assert loop.whole is not None
        assert loop.validator is not None
        put_weights(loop.whole.to(loop.device), average_weights(paths), paths[-1])
        found = loop.validator.validate()
        value = found.value(settings.best_by)
        is_best = progress.is_better(value, found.loss)
        some = "" if len(paths) == len(regular) else f"{len(paths)} of "
        name = f"average of {some}the last {len(regular)} checkpoints"
        log.say(f"{name}: BLEU {found.bleu:.2f}, perplexity {found.perplexity:.2f}")
        if is_best:
            writer.write(progress, found, weights=name)


def _calibrate(path: Path, valid: PairStore, device: torch.device, log: Log | SilentLog) -> None:
    """Fit the confidence in translations on validation pairs, translated as users will."""
    num_pairs = min(len(valid), MOST_CALIBRATION_PAIRS)
    rows = np.linspace(0, len(valid) - 1, num_pairs).astype(int).tolist()
    sources, references = zip(*(valid.text(row) for row in rows), strict=True)
    place = "validation lines"
    try:
        check_enough(num_pairs, num_pairs // 2, place)  # before they are translated
        translator = Translator.load(path, device.type)
        found = translator.translate_all(sources)
        calibration = fit_confidence(found, [references], place)
    except DataError as error:
        log.say(f"confidence is not calibrated: {error}")
    else:
        write_calibration(translator.folder, calibration)
        log.say(
            f"confidence calibrated on {num_pairs:,} validation lines, calibration error "
            f"{calibration.reliability.calibration_error:.1%}"
        )


def _finish_tuning(run: _Run, loop: Loop, log: Log | SilentLog, writer: _BestWriter) -> None:
    """Average with the start weights, report gain and loss, and keep the better model."""
    assert loop.whole is not None
    own = held_out(YOUR_LINES, [run.store.valid.text(row) for row in range(len(run.store.valid))])
    general = read_general(run.folder.path / GENERAL)
    outcome = Outcome(
        folder=writer.folder,
        checkpoints=loop.checkpoints,
        translator=Translator(writer.folder, loop.whole.to(loop.device), loop.device),  # type: ignore[arg-type]
        own=own,
        general=held_out(GENERAL_LINES, general) if general else None,
        precision=precision_context(loop.options, loop.device),
    )
    finish_tuning(outcome, loop.options.start_share, log, writer.describe)
