"""The model folder: everything a translator needs, in files that cannot run code.

``dragoman.json`` (format, languages, limits, scores), ``config.toml`` (the resolved options of the
run), ``model.safetensors`` (weights), the subword models, and ``README.md`` (a model card made
from the others).

Every file can be checked for damage: the first three carry a digest of themselves, and
``dragoman.json`` those of the subword models. The weights also name the options and subwords to
which they belong. What a person has edited is read again once its digest is deleted.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError, FolderError, OptionError
from dragoman.files import digest_of, read_small, write_file
from dragoman.models.families import ModelOptions
from dragoman.options import from_section, parse_toml, to_plain, write_toml
from dragoman.tensor_files import TensorFile
from dragoman.text.target_marks import FORMALITY, is_mark
from dragoman.text.vocabulary import Vocabularies

FORMAT = 1
FACTS_FILE = "dragoman.json"
CONFIG_FILE = "config.toml"
WEIGHTS_FILE = "model.safetensors"
CARD_FILE = "README.md"
RUN_FILE = "run.json"
"""Written by a training run; its paths hold on the machine of that run alone."""
IDENTITY = "model"
"""Under which name a file of weights says to which options and subwords it belongs."""

LARGEST_DESCRIPTION = 1 << 20
LARGEST_COUNT = 1 << 20
LONGEST_SOURCE = 1 << 20
DIGEST_COMMENT = "# Digest of all lines above; delete this line after editing them: "
TRIES, PAUSE = 5, 0.05
_UNRELATED = ("dropout", "balance_weight", "epsilon")
_ADDED = {"source_end": True, "decoder_mask": True, "residual": True}
"""Options that weights of older folders do not count in, by what these models have."""
_REPEATED = ("layers", "sets", "experts")
_OPTIONAL = {"source_language": str, "target_language": str, "one_sentence_a_line": bool}


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a model folder says of itself besides its options.

    Parameters
    ----------
    source_language : str | None
        Code of the language it translates from.
    target_language : str | None
        Code of the language it translates to.
    longest_source : int
        Subwords of the longest source sentence it was trained on.
    training_pairs : int
        Sentence pairs it was trained on.
    steps : int
        Updates that made these weights.
    weights : str
        Which weights these are: “best”, “average of …”.
    scores : dict[str, str]
        What they scored where, with signatures.
    fits_int8 : bool
        Whether nothing measurable is lost when it translates in eight bits.
    target_languages : list[str]
        Those of a model that has several, as its marks spell them: “fra” for “>>fra<<”.
    formality : dict[str, str]
        With which word a source begins whose translation is to be formal (“more”), and informal
        (“less”); what is not there cannot be asked for.
    about : str
        What its makers say of it, where it comes from elsewhere: readme and licence.
    one_sentence_a_line : bool | None
        Whether nearly every line it was trained on was a single sentence, so that texts are split
        into sentences for it; None: nobody knows, and they are, as most corpora are like that.
    """

    source_language: str | None = None
    target_language: str | None = None
    longest_source: int = 0
    training_pairs: int = 0
    steps: int = 0
    weights: str = ""
    scores: dict[str, str] = field(default_factory=dict)
    fits_int8: bool = False
    target_languages: list[str] = field(default_factory=list)
    formality: dict[str, str] = field(default_factory=dict)
    about: str = ""
    one_sentence_a_line: bool | None = None


@dataclass(frozen=True, kw_only=True)
class ModelFolder:
    """A model folder as read from the disk, without its weights.

    Parameters
    ----------
    path : Path
        Where it is.
    config : dict[str, Any]
        The resolved options of the run that made it.
    options : ModelOptions
        The model's family and shape, from `config`.
    vocabularies : Vocabularies
        Its subwords.
    facts : Facts
        What it says of itself.
    weights : TensorFile | None
        Its weights, opened when the rest was read; None: opened when they are asked for.
    """

    path: Path
    config: dict[str, Any]
    options: ModelOptions
    vocabularies: Vocabularies
    facts: Facts
    weights: TensorFile | None = field(default=None, compare=False)

    @cached_property
    def identity(self) -> str:
        """What distinguishes models whose weights cannot be exchanged: options and subwords."""
        plain = {
            name: value
            for name, value in to_plain(self.options).items()
            if not any(each in name for each in _UNRELATED)
            and not (name in _ADDED and value == _ADDED[name])
        }
        return digest_of(json.dumps([plain, self.vocabularies.content_hash()]).encode())

    def open_weights(self) -> TensorFile:
        """Give the open file of weights.

        Returns
        -------
        TensorFile
            The one that was opened with the folder, whatever is in its place now.
        """
        return self.weights or TensorFile(self.path / WEIGHTS_FILE)


def read_folder(path: Path, *, needs_weights: bool = True) -> ModelFolder:
    """Read a model folder, checking that its parts are whole and belong together.

    Parameters
    ----------
    path : Path
        The folder.
    needs_weights : bool
        Whether it must have weights; a run that is not yet validated has none.

    Returns
    -------
    ModelFolder
        With its weights opened, not read; their numbers are checked when they are.

    Notes
    -----
    This is where every engine gets its model from, so what is checked here need not be checked by
    them: counts are bounded by what the weights hold, matrices of words have the sizes of the
    vocabularies, and special symbols are within these. A folder that is replaced while it is read
    is read again.
    """
    for attempt in range(TRIES):
        before = _signature(path)
        try:
            return _read_folder(path, needs_weights)
        except DragomanError:
            if attempt == TRIES - 1 or before == _signature(path):
                raise
        time.sleep(PAUSE)
    raise AssertionError("the last attempt returns or raises")


def _read_folder(path: Path, needs_weights: bool) -> ModelFolder:
    if not path.is_dir():
        raise FolderError(f"{path}: no such model folder; train one with “dragoman train”")
    for name in (FACTS_FILE, CONFIG_FILE):
        if not (path / name).exists():
            raise FolderError(f"{path}: not a model folder ({name} is missing)")
    if needs_weights and not (path / WEIGHTS_FILE).exists():
        raise FolderError(f"{path}: has no {WEIGHTS_FILE} yet; let training reach a validation")
    facts, digests = _read_facts(path / FACTS_FILE)
    config = _read_config(path / CONFIG_FILE)
    folder = ModelFolder(
        path=path,
        config=config,
        options=from_section(ModelOptions, config, "model", path / CONFIG_FILE),
        vocabularies=Vocabularies.read(path),
        facts=facts,
        weights=TensorFile(path / WEIGHTS_FILE) if needs_weights else None,
    )
    _check_vocabularies(folder, digests)
    if folder.weights is not None:
        _check_weights(folder, folder.weights)
    return folder


def from_plain_facts(plain: Mapping[str, Any], place: Path) -> Facts:
    """Build the facts of a folder, refusing invalid ones.

    Parameters
    ----------
    plain : Mapping[str, Any]
        The contents of ``dragoman.json``.
    place : Path
        Where they were found.

    Returns
    -------
    Facts
        The facts.
    """
    defaults = asdict(Facts())
    for name, value in plain.items():
        if name == "format":
            continue
        if name not in defaults:
            raise FolderError(f"{place}: unknown entry “{name}”; get the folder again")
        wanted = _OPTIONAL.get(name) or type(defaults[name])
        is_off = value is None and defaults[name] is None
        is_negative = wanted is int and isinstance(value, int) and value < 0
        is_odd = wanted is str and name != "about" and not str(value).isprintable()
        if (not is_off and type(value) is not wanted) or is_negative or is_odd:
            raise FolderError(f"{place}: {name} is {repr(value)[:80]}; get the folder again")
    longest = plain.get("longest_source", 0)
    if longest > LONGEST_SOURCE:
        raise FolderError(f"{place}: longest_source is {longest:,}; get the folder again")
    for name, values in (
        ("scores", plain.get("scores", {}).values()),
        ("target_languages", plain.get("target_languages", [])),
    ):
        if not all(isinstance(each, str) for each in values):
            raise FolderError(f"{place}: {name} are not text; get the folder again")
    for kind, mark in plain.get("formality", {}).items():
        if kind not in FORMALITY or not isinstance(mark, str) or not is_mark(mark):
            raise FolderError(
                f"{place}: formality is {repr({kind: mark})[:80]}; get the folder again"
            )
    return Facts(**{name: value for name, value in plain.items() if name != "format"})


def join_sentence_facts(facts: Sequence[Facts]) -> bool | None:
    """Say whether texts are split into sentences for models that become one.

    Parameters
    ----------
    facts : Sequence[Facts]
        Of the models.

    Returns
    -------
    bool | None
        True if any of them has only seen single sentences, None if of any nobody knows, False if
        all have seen several at once.
    """
    known = {each.one_sentence_a_line for each in facts}
    return True if True in known else None if None in known else False


def write_description(path: Path, folder: ModelFolder, num_parameters: int) -> None:
    """Write everything of a model folder but its weights.

    Parameters
    ----------
    path : Path
        The folder; made if missing.
    folder : ModelFolder
        What to write.
    num_parameters : int
        The model's size, for the card.
    """
    write_config(path, folder.config)
    files = folder.vocabularies.files()
    for name, contents in files.items():
        write_file(path / name, contents)
    facts = {"format": FORMAT} | asdict(folder.facts)
    facts["digests"] = {name: digest_of(contents) for name, contents in files.items()}
    facts["digest"] = digest_of(_canonical(facts))
    write_file(path / FACTS_FILE, json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    write_file(path / CARD_FILE, model_card(folder, num_parameters))


def write_config(path: Path, config: Mapping[str, Any]) -> None:
    """Write the options of a run into its folder, with their digest.

    Parameters
    ----------
    path : Path
        The folder; made if missing.
    config : Mapping[str, Any]
        The resolved options.
    """
    text = write_toml(config)
    write_file(path / CONFIG_FILE, f"{text}\n{DIGEST_COMMENT}{digest_of(text.encode())}\n")


def check_shape(place: Path, name: str, found: Sequence[int], wanted: Sequence[int]) -> None:
    """Check that a weight has the shape that a model needs.

    Parameters
    ----------
    place : Path
        Where it comes from.
    name : str
        Its name.
    found : Sequence[int]
        Its shape.
    wanted : Sequence[int]
        What it must be.
    """
    if tuple(found) != tuple(wanted):
        shapes = f"{tuple(found)}, not {tuple(wanted)}"
        raise FolderError(f"{place}: holds another model ({name} has shape {shapes})")


def model_card(folder: ModelFolder, num_parameters: int) -> str:
    """Describe a model to people who find its folder.

    Parameters
    ----------
    folder : ModelFolder
        The model.
    num_parameters : int
        Its size.

    Returns
    -------
    str
        Markdown with a YAML head.
    """
    facts = folder.facts
    languages = [each for each in (facts.source_language, facts.target_language) if each]
    head = ["---", "tags: [translation]", "library_name: dragoman"]
    head += [f"language: [{', '.join(languages)}]"] if languages else []
    pair = " → ".join(languages) if len(languages) == 2 else "translation"
    lines = [*head, "---", "", f"# A {pair} model", ""]
    lines += [f"- {num_parameters:,} parameters, {facts.training_pairs:,} training pairs"]
    lines += [f"- weights: {facts.weights}, step {facts.steps:,}"] if facts.weights else []
    lines += [f"- {name}: {score}" for name, score in facts.scores.items()]
    targets = facts.target_languages
    lines += [f"- target languages: {', '.join(targets)}"] if targets else []
    lines += [
        f"- formality “{kind}”: sources begin with {mark}" for kind, mark in facts.formality.items()
    ]
    choice = f" --into {targets[0]}" if targets else ""
    command = f"$ dragoman translate FOLDER{choice} < text > translation"
    lines += ["", "```console", command, "```", ""]
    lines += ["## What its makers say", "", facts.about.strip(), ""] if facts.about else []
    return "\n".join(lines)


def _signature(path: Path) -> list[tuple[int, ...]]:
    """Return inode, time and size of the main files, to notice that a folder was replaced."""
    names = (FACTS_FILE, CONFIG_FILE, WEIGHTS_FILE)
    try:
        found = [each.stat() for each in (path, *(path / name for name in names))]
    except OSError:
        return []
    return [(each.st_ino, each.st_mtime_ns, each.st_size) for each in found]


def _read_facts(path: Path) -> tuple[Facts, Any]:
    """Read and check ``dragoman.json``; return facts and digests of other files."""
    try:
        plain = json.loads(read_small(path, LARGEST_DESCRIPTION))
        found = plain["format"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        message = f"{path}: damaged, or not written by this program; get the folder again"
        raise FolderError(message) from None
    if found != FORMAT:
        raise FolderError(
            f"{path}: format {str(found)[:20]}, but this version reads format {FORMAT}; "
            "use the version of Dragoman that wrote it"
        )
    digest = plain.pop("digest", None)
    actual = digest_of(_canonical(plain))
    digests = plain.pop("digests", {})
    facts = from_plain_facts(plain, path)
    if digest not in (None, actual):
        raise FolderError(
            f"{path}: damaged; get the folder again, or delete its “digest” if you edited it"
        )
    return facts, digests


def _canonical(plain: Mapping[str, Any]) -> bytes:
    """Serialise JSON in one form, whatever its white space."""
    return json.dumps(plain, sort_keys=True).encode()


def _read_config(path: Path) -> dict[str, Any]:
    """Parse ``config.toml`` and check its digest."""
    try:
        contents = read_small(path, LARGEST_DESCRIPTION)
    except OSError as error:
        raise OptionError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    config = parse_toml(contents, path)
    text, comment, digest = contents.partition(f"\n{DIGEST_COMMENT}".encode())
    if comment and digest.decode("utf-8", "replace").strip() != digest_of(text):
        raise FolderError(
            f"{path}: damaged; get the folder again, or delete its last line if you edited it"
        )
    return config


def _check_vocabularies(folder: ModelFolder, digests: Any) -> None:  # noqa: ANN401
    """Check subword models against their digests, and options against vocabularies."""
    if not isinstance(digests, dict):
        raise FolderError(f"{folder.path / FACTS_FILE}: digests are no table; get the folder again")
    if digests:
        for name, contents in folder.vocabularies.files().items():
            if digests.get(name) != digest_of(contents):
                raise FolderError(
                    f"{folder.path / name}: damaged, or of another model; get the folder again"
                )
    sizes = [len(each) for each in folder.vocabularies]
    if folder.options.tied_embeddings == "all" and sizes[0] != sizes[1]:
        raise FolderError(
            f"{folder.path / CONFIG_FILE}: model.tied_embeddings is “all”, but the vocabularies "
            f"have {sizes[0]} and {sizes[1]} subwords; get the folder again"
        )


def _check_weights(folder: ModelFolder, weights: TensorFile) -> None:
    """Check that weights belong to the folder, before a model is built."""
    belongs_to = weights.metadata.get(IDENTITY)
    if belongs_to is not None and belongs_to != folder.identity:
        raise FolderError(
            f"{weights.path}: belongs to another model than {CONFIG_FILE} and the subwords beside "
            "it; get the folder again"
        )
    for each in fields(folder.options):
        value = getattr(folder.options, each.name)
        is_repeated = each.name.endswith(_REPEATED)
        most = len(weights.names) if is_repeated else LARGEST_COUNT
        if isinstance(value, int) and value > most:
            raise FolderError(
                f"{folder.path / CONFIG_FILE}: model.{each.name} is {value:,}, but {WEIGHTS_FILE} "
                f"has {len(weights.names)} tensors; get the folder again"
            )
    sizes = [len(each) for each in folder.vocabularies]
    matrices = {"source_embedding": sizes[0], "target_embedding": sizes[1], "output": sizes[1]}
    for name, size in matrices.items():
        if f"{name}.words" in weights.names:
            found = weights.shape(f"{name}.words")
            check_shape(weights.path, f"{name}.words", found[:1], (size,))
