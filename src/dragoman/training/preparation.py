"""What is decided before a run begins: options, subwords, the model's description."""

import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import torch

from dragoman.data.clean_text import CleanText, store_text
from dragoman.data.corpus import CorpusFiles
from dragoman.data.store import Store
from dragoman.decoding.device import choose_device
from dragoman.errors import OptionError
from dragoman.files import written_beside
from dragoman.folder import (
    Facts,
    ModelFolder,
    read_folder,
    vocabulary_of,
)
from dragoman.models.build import build_model, count_parameters
from dragoman.models.interface import Vocabulary
from dragoman.options import Plain, merge, to_plain, write_toml
from dragoman.text.subwords import Subwords, choose_vocabulary_size, train_subwords
from dragoman.text.vocabulary import Vocabularies
from dragoman.training.configuration import (
    RunOptions,
    resolve_corpus,
    resolve_options,
)
from dragoman.training.loop import precision_context
from dragoman.training.loss import TrainingStep
from dragoman.training.memory import estimate_memory


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
    preset, options = resolve_request(request, start, text.num_pairs)
    if start:
        vocabulary = vocabulary_of(start.vocabularies)
    elif options.text.subwords:
        joint = Subwords.from_file(options.text.subwords)
        vocabulary = vocabulary_of(Vocabularies(joint, joint))
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


def resolve_request(
    request: RunRequest, start: ModelFolder | None, num_pairs: int
) -> tuple[str, RunOptions]:
    """Put a run's options together.

    Parameters
    ----------
    request : RunRequest
        What is asked for.
    start : ModelFolder | None
        A model to start from, which decides its own shape.
    num_pairs : int
        Sentence pairs to train on.

    Returns
    -------
    tuple[str, RunOptions]
        The preset's name, and the options.
    """
    given = request.config
    if start:
        own = start.config.get("text", {})
        if any(own.get(name) != value for name, value in merge(request.config, request.flags)
               .get("text", {}).items()):  # fmt: skip
            raise OptionError("--from brings its own subwords; leave the options of text out")
        said = merge(request.config, request.flags).get("model", {})
        for name, value in said.items():
            if name != "dropout" and start.config["model"].get(name) != value:
                flag = name.replace("_", "-")
                raise OptionError(
                    f"--{flag} is {value}, but --from {start.path} brings its own shape; leave "
                    "it out"
                )
        shape = {"model": start.config["model"], "text": own}
        given = merge(shape, request.config)
    return resolve_options(request.preset, given, request.flags, num_pairs)


def learn_subwords(
    text: CleanText, options: RunOptions, say: Callable[[str], None]
) -> Vocabularies:
    """Read the subwords a user names, or learn them, or find that it was done before.

    Parameters
    ----------
    text : CleanText
        The text to learn from.
    options : RunOptions
        For the number of subwords, and whether both sides share them.
    say : Callable[[str], None]
        Tells a person one line.

    Returns
    -------
    Vocabularies
        The subwords of both sides.
    """
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
        with written_beside(folder) as beside:
            beside.mkdir()
            for name, contents in Vocabularies(learnt[0], learnt[-1]).files().items():
                (beside / name).write_bytes(contents)
    return Vocabularies.read(folder)


def describe_model(
    request: RunRequest,
    options: RunOptions,
    vocabularies: Vocabularies,
    store: Store,
    start: ModelFolder | None,
) -> ModelFolder:
    """Describe the model that a run will make.

    Parameters
    ----------
    request : RunRequest
        For the languages, or the files whose names tell them.
    options : RunOptions
        The resolved options.
    vocabularies : Vocabularies
        Its subwords.
    store : Store
        Its corpus.
    start : ModelFolder | None
        The model it starts from.

    Returns
    -------
    ModelFolder
        All but the weights.
    """
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
