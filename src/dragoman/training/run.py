"""A run from its files to its model folder: prepare, train, finish."""

import json
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from dragoman.data.clean_text import CleanText, store_text
from dragoman.data.corpus import CorpusFiles
from dragoman.data.store import Store, open_store, store_ids
from dragoman.decoding.device import choose_device
from dragoman.decoding.translator import Translator
from dragoman.errors import FolderError, OptionError
from dragoman.files import write_file
from dragoman.folder import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    Facts,
    ModelFolder,
    load_model,
    put_weights,
    read_folder,
    read_weights,
    vocabulary_of,
    weights_of,
    write_description,
    write_weights,
)
from dragoman.models.build import build_model, count_parameters
from dragoman.models.interface import Vocabulary
from dragoman.options import Plain, merge, read_toml, to_plain, write_toml
from dragoman.text.subwords import Subwords, choose_vocabulary_size, train_subwords
from dragoman.text.vocabulary import Vocabularies
from dragoman.training.average import average_weights
from dragoman.training.checkpoint import Progress, Trained, list_checkpoints, restore_checkpoint
from dragoman.training.configuration import (
    RunOptions,
    resolve_corpus,
    resolve_options,
    resumed_options,
)
from dragoman.training.log import Log, format_time
from dragoman.training.loop import Loop, precision_context, train
from dragoman.training.loss import TrainingStep
from dragoman.training.memory import estimate_memory
from dragoman.training.optimiser import MovingAverage, build_optimiser
from dragoman.training.schedule import paper_peak
from dragoman.training.validation import Validation, Validator

RUN_FILE = "run.json"


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What somebody asks “dragoman train” to do.

    Parameters
    ----------
    out : Path
        The run's folder, which becomes the model folder.
    files : CorpusFiles
        The training corpus.
    valid_files : CorpusFiles | None
        The validation corpus, if one is given.
    preset : str
        The recipe's name.
    config : dict[str, Any]
        What a TOML file says.
    flags : dict[str, Any]
        What the command line says.
    source_language : str | None
        Code of the language to translate from; None: guessed from the files' names.
    target_language : str | None
        Likewise of the language to translate to.
    start_from : Path | None
        A model folder whose weights and subwords to begin with.
    store : Path | None
        Folder of the prepared corpus; None: within the run's folder.
    """

    out: Path
    files: CorpusFiles = field(default_factory=CorpusFiles)
    valid_files: CorpusFiles | None = None
    preset: str = "auto"
    config: Plain = field(default_factory=dict)
    flags: Plain = field(default_factory=dict)
    source_language: str | None = None
    target_language: str | None = None
    start_from: Path | None = None
    store: Path | None = None


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
    _, early = _resolve(request, start, 0)
    choose_device(early.training.device)
    store_folder = request.store or out / "store"
    text = store_text(store_folder, request.files, request.valid_files, corpus_options)
    say(text.report.in_words())
    preset, options = _resolve(request, start, text.num_pairs)
    vocabularies = start.vocabularies if start else _learn_subwords(text, options, say)
    store = store_ids(text, vocabularies, options.corpus.max_length)
    folder = _new_folder(request, options, vocabularies, store, start)
    facts = {"store": str(store_folder.resolve()), "store_key": store.key, "preset": preset}
    say(f"preset {preset}; {store.report.in_words()}; {len(store.valid):,} validation pairs")
    torch.manual_seed(options.training.seed)
    model = build_model(options.model, vocabulary_of(vocabularies))
    if start:
        put_weights(model, weights_of(load_model(start)), start.path)
    write_description(out, folder, count_parameters(model))
    write_file(out / RUN_FILE, json.dumps(facts, indent=1))
    _train(folder, options, store, model, Progress(), say)


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
    try:
        run = json.loads((out / RUN_FILE).read_text(encoding="utf-8"))
        store_folder = Path(run["store"])
    except (OSError, ValueError, KeyError):
        message = f"{out}: holds no run to resume; leave --resume out to start one"
        raise FolderError(message) from None
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
    _train(folder, options, store, model, None, say)


def describe_run(request: RunRequest, say: Callable[[str], None]) -> None:
    """Say what a run would do, and do none of it.

    Parameters
    ----------
    request : RunRequest
        What to describe.
    say : Callable[[str], None]
        Tells a person one line.
    """
    start = read_folder(request.start_from) if request.start_from else None
    corpus_options = resolve_corpus(request.config, request.flags)
    with tempfile.TemporaryDirectory() as scratch:
        store_folder = Path(scratch) / "store"
        text = store_text(store_folder, request.files, request.valid_files, corpus_options)
    preset, options = _resolve(request, start, text.num_pairs)
    if start:
        vocabulary = vocabulary_of(start.vocabularies)
    else:
        size = options.text.vocabulary_size or choose_vocabulary_size(text.num_pairs)
        vocabulary = Vocabulary(size, size, 2, 0)
    with torch.device("meta"):
        model = build_model(options.model, vocabulary)
    step = TrainingStep(model, options.training.label_smoothing)
    device = choose_device(options.training.device)
    is_half = not isinstance(precision_context(options.training, device), nullcontext)
    memory = estimate_memory(step, options.training, half=is_half)
    say(write_toml(to_plain(options)))
    say(f"corpus: {text.report.in_words()}")
    say(f"preset: {preset}; device: {device.type}")
    say(f"parameters: {count_parameters(model):,} with {vocabulary.target_size:,} subwords")
    say(
        f"memory: {memory.total / 1e9:.2f} GB (weights, gradients and optimiser "
        f"{memory.weights / 1e9:.2f}, activations of a batch about {memory.activations / 1e9:.2f})"
    )


def _resolve(
    request: RunRequest, start: ModelFolder | None, num_pairs: int
) -> tuple[str, RunOptions]:
    """Put the options together; a model to start from decides its own shape."""
    given = request.config
    if start:
        if request.flags.get("text") or request.config.get("text"):
            raise OptionError("--from brings its own subwords; leave the options of text out")
        shape = {"model": start.config["model"], "text": start.config.get("text", {})}
        given = merge(shape, request.config)
    return resolve_options(request.preset, given, request.flags, num_pairs)


def _learn_subwords(
    text: CleanText, options: RunOptions, say: Callable[[str], None]
) -> Vocabularies:
    """Read the subwords a user names, or learn them, or find that it was done before."""
    if options.text.subwords:
        joint = Subwords.from_file(options.text.subwords)
        return Vocabularies(joint, joint)
    size = options.text.vocabulary_size or choose_vocabulary_size(text.num_pairs)
    folder = text.folder / f"subwords-{size}-{'joint' if options.text.joint else 'separate'}"
    if not folder.exists():
        say(f"learning {size:,} subwords")
        sides = [("source", "target")] if options.text.joint else [("source",), ("target",)]
        learnt = [
            Subwords.from_bytes(train_subwords(text.lines(side), vocabulary_size=size))
            for side in sides
        ]
        for name, contents in Vocabularies(learnt[0], learnt[-1]).files().items():
            write_file(folder / name, contents)
    return Vocabularies.read(folder)


def _new_folder(
    request: RunRequest,
    options: RunOptions,
    vocabularies: Vocabularies,
    store: Store,
    start: ModelFolder | None,
) -> ModelFolder:
    """Describe the model that the run will make."""
    before = start.facts if start else Facts()
    files = request.files
    source_language = request.source_language or before.source_language
    target_language = request.target_language or before.target_language
    facts = Facts(
        source_language=source_language or _language_in_name(files.source),
        target_language=target_language or _language_in_name(files.target),
        longest_source=max(int(store.train.source_lengths.max()), before.longest_source),
        training_pairs=len(store.train),
    )
    return ModelFolder(
        path=request.out,
        config=to_plain(options),
        options=options.model,
        vocabularies=vocabularies,
        facts=facts,
    )


def _language_in_name(paths: tuple[Path, ...]) -> str | None:
    """Guess a language from names such as ``train.de`` or ``train.de.xz``."""
    for path in paths:
        for suffix in reversed(path.suffixes):
            code = suffix[1:]
            if code not in ("gz", "xz", "txt", "tok", "bpe"):
                return code if code.isalpha() and code.islower() and len(code) in (2, 3) else None
    return None


def _train(
    folder: ModelFolder,
    options: RunOptions,
    store: Store,
    model: torch.nn.Module,
    progress: Progress | None,
    say: Callable[[str], None],
) -> None:
    """Train a prepared model to the end, and leave the best weights in its folder."""
    settings = options.training
    device = choose_device(settings.device)
    model.to(device)
    average = MovingAverage(model, settings.ema_decay) if settings.ema_decay else None
    trained = Trained(model=model, optimiser=build_optimiser(model, settings), average=average)
    checkpoints = folder.path / "checkpoints"
    if progress is None:
        progress = restore_checkpoint(list_checkpoints(checkpoints)[-1], trained)
        say(f"going on from step {progress.step:,}")
    writer = _BestWriter(folder, model)
    validator = Validator(
        Translator(folder, model, device),  # type: ignore[arg-type]
        store.valid,
        beam_size=settings.valid_beam_size,
        precision=precision_context(settings, device),
    )
    peak = settings.peak_learning_rate or paper_peak(options.model.model_dim, settings.warmup_steps)
    loop = Loop(
        step=TrainingStep(model, settings.label_smoothing),  # type: ignore[arg-type]
        trained=trained,
        pairs=store.train,
        validator=validator,
        options=settings,
        peak_learning_rate=peak,
        checkpoints=checkpoints,
        device=device,
        pad_id=folder.vocabularies.pad_id,
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
            return
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
    paths = [each / WEIGHTS_FILE for each in list_checkpoints(loop.checkpoints)]
    paths = paths[-loop.options.average_checkpoints :]
    best_path = writer._folder.path / WEIGHTS_FILE
    if len(paths) > 1:
        put_weights(loop.trained.model, average_weights(paths), paths[-1])
        found = loop.validator.validate(progress.step)
        value = found.value(loop.options.best_by)
        is_best = progress.best_value is None or value > progress.best_value
        name = f"average of the last {len(paths)} checkpoints"
        log.say(f"{name}: BLEU {found.bleu:.2f}, perplexity {found.perplexity:.2f}")
        if is_best:
            writer.write(progress, found, weights=name)
    put_weights(loop.trained.model, read_weights(best_path), best_path)
