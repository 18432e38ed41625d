"""Weight averaging: the last checkpoints of a run, or several models (model soups)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from dragoman.errors import FolderError
from dragoman.files import written_beside
from dragoman.folder import (
    FACTS_FILE,
    WEIGHTS_FILE,
    Facts,
    ModelFolder,
    join_sentence_facts,
    read_folder,
)
from dragoman.models.build import build_model
from dragoman.weights import put_weights, read_weights, vocabulary_of, write_model

Weights = dict[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Soup:
    """Averaged weights, with the members chosen and their scores.

    Parameters
    ----------
    weights : Weights
        The averaged weights.
    chosen : tuple[Path, ...]
        The files that were averaged.
    scores : tuple[float, ...]
        For a greedy soup, what each tried soup scored.
    """

    weights: Weights
    chosen: tuple[Path, ...]
    scores: tuple[float, ...] = ()


def average_weights(paths: Sequence[Path]) -> Weights:
    """Compute the mean of several weights files.

    Returns
    -------
    dict[str, Tensor]
        The mean of each weight, summed in double precision, one file in memory at a time.
    """
    total: Weights = {}
    first: Weights = {}
    for path in paths:
        weights = read_weights(path)
        first = first or weights
        _check_same_shape(first, weights, path)
        for name, each in weights.items():
            total[name] = each.double() if name not in total else total[name] + each.double()
    return {name: (each / len(paths)).to(first[name].dtype) for name, each in total.items()}


def greedy_soup(paths: Sequence[Path], score: Callable[[Weights], float]) -> Soup:
    """Build a greedy soup: add a model only if the average then validates better.

    Notes
    -----
    Wortsman et al. (2022): sort the models by their own score, then add each in turn if the
    average with it does not score less.
    """
    own_scores = {path: score(read_weights(path)) for path in paths}
    ranked = sorted(paths, key=lambda path: -own_scores[path])
    chosen, best = [ranked[0]], own_scores[ranked[0]]
    scores = [best]
    for path in ranked[1:]:
        tried = score(average_weights([*chosen, path]))
        scores.append(tried)
        if tried >= best:
            chosen.append(path)
            best = tried
    return Soup(weights=average_weights(chosen), chosen=tuple(chosen), scores=tuple(scores))


def find_weights(places: Iterable[Path]) -> list[Path]:
    """List the weights files of model folders, checkpoints or runs."""
    found = []
    for place in places:
        path = place / WEIGHTS_FILE if place.is_dir() else place
        if not path.is_file():
            raise FolderError(f"{place}: neither a model folder nor a checkpoint")
        found.append(path)
    return found


def write_average(out: Path, model_of: Path, soup: Soup) -> None:
    """Write an average as a model folder."""
    folder = read_folder(model_of)
    model = build_model(folder.options, vocabulary_of(folder.vocabularies))
    put_weights(model, soup.weights, soup.chosen[0])
    members = [_facts_of(each, folder) for each in dict.fromkeys(map(folder_of, soup.chosen))]
    facts = replace(
        folder.facts,
        weights=f"average of {len(soup.chosen)} models",
        scores={},
        about="\n\n".join(dict.fromkeys(each.about for each in members if each.about)),
        one_sentence_a_line=join_sentence_facts(members),
    )
    with written_beside(out) as beside:
        write_model(beside, replace(folder, facts=facts), model)


def folder_of(weights: Path) -> Path:
    """Find the model folder to which a weights file belongs."""
    parent = weights.resolve().parent
    return parent.parent.parent if parent.parent.name == "checkpoints" else parent


def _facts_of(member: Path, folder: ModelFolder) -> Facts:
    """Read the facts of a member; lone weights files take those of `folder`."""
    is_there = (member / FACTS_FILE).exists()
    return read_folder(member, needs_weights=False).facts if is_there else folder.facts


def _check_same_shape(first: Weights, other: Weights, path: Path) -> None:
    different = sorted(first.keys() ^ other.keys())
    different += [
        name for name in first.keys() & other.keys() if first[name].shape != other[name].shape
    ]
    if different:
        raise FolderError(
            f"{path}: has another shape than the first model ({different[0]}); only models of one "
            "shape and one set of subwords can be averaged"
        )
