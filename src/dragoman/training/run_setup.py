"""Setup of a run: check its folder, prepare the corpus, resolve the options, build the model."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from dragoman.data.options import CorpusOptions
from dragoman.data.store.clean_text import store_text
from dragoman.data.store.mapped import read_facts
from dragoman.data.store.store import Store, store_ids
from dragoman.decoding.device import choose_device
from dragoman.errors import FolderError
from dragoman.files import list_own, locked, sweep
from dragoman.folder import RUN_FILE, WEIGHTS_FILE, ModelFolder, read_folder
from dragoman.models.build import Model, build_model, count_parameters
from dragoman.options import Plain, merge, to_plain, write_toml
from dragoman.presets import AUTO
from dragoman.text.bpe_dropout import check_merges
from dragoman.text.vocabulary import Vocabularies
from dragoman.training.budget.plan import describe_plan, find_budget, make_plan
from dragoman.training.checkpoints.checkpoint import SINGLE_PROCESS
from dragoman.training.configuration import (
    DEFAULT_FAMILY,
    RunOptions,
    has_accelerator,
    resolve_corpus,
)
from dragoman.training.log import check_tensorboard
from dragoman.training.preparation import (
    RunRequest,
    check_search,
    complete_request,
    learn_subwords,
    predict_vocabulary,
    resolve_request,
)
from dragoman.training.tuning.general_text import TRAIN_FILE, collect_general
from dragoman.training.tuning.recipe import describe_tuning, measure_corpus, plan_tuning
from dragoman.training.updates.distributed import Workers, check_device
from dragoman.training.updates.memory_estimate import estimate_run_memory
from dragoman.training.updates.precision import choose_precision
from dragoman.weights import put_weights, read_weights, vocabulary_of

STORE = "store"
RATE_FILE = "learning-rate.json"
RATE_PICTURE = "learning-rate.png"
PREPARING_FILE = ".preparing"
"""Marks a folder whose first files are still being written: after a kill they are overwritten."""
GENERAL = "general"
_BEFORE_A_RUN = frozenset((STORE, GENERAL, RATE_FILE, RATE_PICTURE))


class Prepared(NamedTuple):
    """A prepared corpus, with the vocabularies and the resolved options of its run."""

    preset: str
    options: RunOptions
    vocabularies: Vocabularies
    store: Store
    store_folder: Path
    start: ModelFolder | None
    seconds: float
    planned_seconds: float


def describe_run(request: RunRequest, say: Callable[[str], None]) -> None:
    """Print the options, parameters and memory of a run without training (“--dry-run”)."""
    start = read_folder(request.start_from) if request.start_from else None
    request = complete_request(request, start)
    corpus_options = resolve_corpus(request.config, request.flags)
    with tempfile.TemporaryDirectory() as scratch:
        store_folder = Path(scratch) / "store"
        if request.is_tuning:
            request = _add_general(request, start, Path(scratch) / GENERAL, say)
        if request.is_tuning or _find_budget(request) is not None:  # planned on the real corpus
            scratched = replace(request, store=store_folder)
            ready = _fill_store(scratched, store_folder, corpus_options, start, SINGLE_PROCESS, say)
            preset, options, corpus = ready.preset, ready.options, ready.store.report
            vocabulary = vocabulary_of(ready.vocabularies)
        else:
            text = store_text(store_folder, request.files, request.valid_files, corpus_options)
            corpus = text.report
            preset, options = resolve_request(request, start, text.num_pairs)
            vocabulary = predict_vocabulary(text, options.text, start)
    with torch.device("meta"):
        model = build_model(options.model, vocabulary)
    check_search(model, options.search, vocabulary)
    device = choose_device(options.training.device)
    memory = estimate_run_memory(options, vocabulary, device)
    say(write_toml(to_plain(options)))
    say(f"corpus: {corpus.in_words()}")
    say(f"preset: {preset}; device: {device.type}")
    size = f"{vocabulary.target_size:,} {options.text.units}"
    say(f"parameters: {count_parameters(model):,} with {size}")
    say(
        f"memory: {memory.total / 1e9:.2f} GB (weights, gradients and optimiser "
        f"{memory.weights / 1e9:.2f}, activations of a batch about {memory.activations / 1e9:.2f})"
    )


def check_output_folder(out: Path) -> None:
    """Refuse an output folder that holds something else.

    Parameters
    ----------
    out : Path
        The folder, or where it is to be. A prepared corpus, the outcome of a rate test and what a
        kill left of a run that had not begun may be there.
    """
    if (out / RUN_FILE).exists():
        raise FolderError(
            f"{out}: holds another run; give --resume to go on with it, or another --out"
        )
    there = {each.name for each in list_own(out)}
    is_free = PREPARING_FILE in there or there <= _BEFORE_A_RUN
    if out.exists() and not (out.is_dir() and is_free):
        raise FolderError(f"{out}: already holds something else; name a new folder with --out")


def prepare_corpus(request: RunRequest, say: Callable[[str], None], workers: Workers) -> Prepared:
    """Prepare the corpus, or reuse a store that was prepared before."""
    began = time.monotonic()
    start = read_folder(request.start_from) if request.start_from else None
    request = complete_request(request, start)
    corpus_options = resolve_corpus(request.config, request.flags)
    _, early = resolve_request(request, start, 0)
    check_device(workers, choose_device(early.training.device))
    if early.training.tensorboard:
        check_tensorboard()
    if request.is_tuning:
        request = _add_general(request, start, request.out / GENERAL, say)
    store_folder = request.store or request.out / STORE
    with locked(store_folder, wait=say):
        return _fill_store(request, store_folder, corpus_options, start, workers, say, began)


def _fill_store(
    request: RunRequest,
    store_folder: Path,
    corpus_options: CorpusOptions,
    start: ModelFolder | None,
    workers: Workers,
    say: Callable[[str], None],
    began: float | None = None,
) -> Prepared:
    """Clean the text, learn the vocabularies and encode the text, each unless the store has it."""
    began = time.monotonic() if began is None else began
    is_own = request.store is None
    text = store_text(
        store_folder, request.files, request.valid_files, corpus_options, may_replace=is_own
    )
    sweep(store_folder, is_ours=True)
    say(text.report.in_words())
    if text.valid_report.dropped:
        say(f"validation: {text.valid_report.in_words()}")
    preset, options = resolve_request(request, start, text.num_pairs)
    vocabularies = start.vocabularies if start else learn_subwords(text, options, say)
    if options.text.bpe_dropout:
        check_merges(vocabularies)
    store = store_ids(
        text,
        vocabularies,
        options.corpus.max_length,
        mix=options.corpus.mix,
        mix_temperature=options.corpus.mix_temperature,
        may_replace=is_own,
    )
    say(f"{store.report.in_words()}; {len(store.valid):,} validation pairs")
    budget = _find_budget(request) if workers.is_single else None
    preset, options, planned = _resolve(request, start, store, vocabularies, budget, began, say)
    say(f"preset {preset}")
    spent = time.monotonic() - began
    return Prepared(preset, options, vocabularies, store, store_folder, start, spent, planned)


def _find_budget(request: RunRequest) -> float | None:
    """Return the time budget of a run in minutes, if any."""
    said = merge(request.config, request.flags)
    is_accelerated = has_accelerator(said)
    starts_anew = request.start_from is None
    return find_budget(
        request.preset, said, has_accelerator=is_accelerated, starts_anew=starts_anew
    )


def _resolve(
    request: RunRequest,
    start: ModelFolder | None,
    store: Store,
    vocabularies: Vocabularies,
    budget: float | None,
    began: float,
    say: Callable[[str], None],
) -> tuple[str, RunOptions, float]:
    """Resolve preset and options, with a plan if there is a time budget; return its seconds too."""

    def resolve(recipe: Plain) -> tuple[str, RunOptions]:
        return resolve_request(request, start, len(store.train), recipe)

    preset, options = resolve({})
    settings = options.training
    device = choose_device(settings.device)
    precision = {"precision": choose_precision(settings, options.model.model_dim, device)}
    said = merge(request.config, request.flags)
    if request.is_tuning:
        corpus = measure_corpus(store.train, request.files.num_own)
        recipe = plan_tuning(corpus, options.model.model_dim, said, is_on_cpu=device.type == "cpu")
        preset, options = resolve(merge({"training": precision}, recipe))
        for line in describe_tuning(corpus, options, len(store.valid)):
            say(line)
        return preset, options, 0.0
    if budget is None:
        return *resolve({"training": precision}), 0.0
    family = said.get("model", {}).get("family", DEFAULT_FAMILY)
    plan = make_plan(
        lambda recipe: resolve(merge({"training": precision}, recipe))[1],
        store,
        vocabulary_of(vocabularies),
        budget,
        may_choose_size=request.preset == AUTO and family == DEFAULT_FAMILY,
        elapsed=time.monotonic() - began,
    )
    is_default = said.get("training", {}).get("max_minutes") is None
    for line in describe_plan(plan, budget, is_default=is_default):
        say(line)
    preset, options = resolve(merge({"training": precision}, plan.recipe))
    return preset, options, plan.seconds


def _add_general(
    request: RunRequest, start: ModelFolder | None, folder: Path, say: Callable[[str], None]
) -> RunRequest:
    """Sample general text into a folder, and add it to the files of a fine-tuning."""
    assert start is not None
    given = replace(request.files, source=(), target=(), tsv=(), tmx=(), general=request.general)
    run = read_facts(start.path / RUN_FILE)
    remembered = Path(run["store"]) if "store" in run else None
    if not collect_general(given, remembered, folder, say):
        return request
    return replace(request, files=replace(request.files, general=(folder / TRAIN_FILE,)))


def build_initial_model(
    options: RunOptions, vocabularies: Vocabularies, start: ModelFolder | None
) -> Model:
    """Build the model with its initial weights: random by seed, or those of ``--from``."""
    vocabulary = vocabulary_of(vocabularies)
    torch.manual_seed(options.training.seed)
    model = build_model(options.model, vocabulary)
    check_search(model, options.search, vocabulary)
    if start:
        start_weights = start.path / WEIGHTS_FILE
        put_weights(model, read_weights(start_weights), start_weights)
    return model
