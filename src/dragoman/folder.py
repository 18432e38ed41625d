"""The model folder: everything a translator needs, in files that cannot run code.

``dragoman.json`` (format, languages, limits, scores), ``config.toml`` (the resolved options of the
run), ``model.safetensors`` (weights), the subword models, and ``README.md`` (a model card made
from the others).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dragoman.errors import FolderError
from dragoman.files import write_file
from dragoman.models.families import ModelOptions
from dragoman.options import from_section, read_toml, write_toml
from dragoman.text.vocabulary import Vocabularies

FORMAT = 1
FACTS_FILE = "dragoman.json"
CONFIG_FILE = "config.toml"
WEIGHTS_FILE = "model.safetensors"
CARD_FILE = "README.md"


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
    """

    source_language: str | None = None
    target_language: str | None = None
    longest_source: int = 0
    training_pairs: int = 0
    steps: int = 0
    weights: str = ""
    scores: dict[str, str] = field(default_factory=dict)
    fits_int8: bool = False


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
    """

    path: Path
    config: dict[str, Any]
    options: ModelOptions
    vocabularies: Vocabularies
    facts: Facts


def read_folder(path: Path, *, needs_weights: bool = True) -> ModelFolder:
    """Read a model folder, checking that it is one.

    Parameters
    ----------
    path : Path
        The folder.
    needs_weights : bool
        Whether it must have weights; a run that is not yet validated has none.

    Returns
    -------
    ModelFolder
        All but the weights.
    """
    if not path.is_dir():
        raise FolderError(f"{path}: no such model folder; train one with “dragoman train”")
    for name in (FACTS_FILE, CONFIG_FILE):
        if not (path / name).exists():
            raise FolderError(f"{path}: not a model folder ({name} is missing)")
    if needs_weights and not (path / WEIGHTS_FILE).exists():
        raise FolderError(f"{path}: has no {WEIGHTS_FILE} yet; let training reach a validation")
    plain = _read_facts(path / FACTS_FILE)
    config = read_toml(path / CONFIG_FILE)
    return ModelFolder(
        path=path,
        config=config,
        options=from_section(ModelOptions, config, "model", path / CONFIG_FILE),
        vocabularies=Vocabularies.read(path),
        facts=from_plain_facts(plain, path / FACTS_FILE),
    )


def from_plain_facts(plain: Mapping[str, Any], place: Path) -> Facts:
    """Build the facts of a folder, complaining about what they should not hold.

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
        wanted = str if defaults[name] is None else type(defaults[name])
        is_off = value is None and defaults[name] is None
        is_negative = wanted is int and isinstance(value, int) and value < 0
        if (not is_off and type(value) is not wanted) or is_negative:
            raise FolderError(f"{place}: {name} is {value!r}; get the folder again")
    return Facts(**{name: value for name, value in plain.items() if name != "format"})


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
    write_file(path / CONFIG_FILE, write_toml(folder.config))
    for name, contents in folder.vocabularies.files().items():
        write_file(path / name, contents)
    facts = {"format": FORMAT} | asdict(folder.facts)
    write_file(path / FACTS_FILE, json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    write_file(path / CARD_FILE, model_card(folder, num_parameters))


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
    lines += ["", "```console", "$ dragoman translate FOLDER < text > translation", "```", ""]
    return "\n".join(lines)


def _read_facts(path: Path) -> dict[str, Any]:
    """Read ``dragoman.json`` and check its format."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        found = plain["format"]
    except (OSError, ValueError, KeyError, TypeError):
        message = f"{path}: damaged, or not written by this program; get the folder again"
        raise FolderError(message) from None
    if found != FORMAT:
        raise FolderError(
            f"{path}: format {found}, but this version reads format {FORMAT}; "
            "use the version of Dragoman that wrote it"
        )
    return plain
