"""Dragoman trains, runs and explains translation models.

What `__all__` lists is the public interface; the rest may change between two versions. PyTorch is
imported only when something needs it.

>>> import dragoman
>>> translator = dragoman.load("my-model")                      # doctest: +SKIP
>>> translator.translate("Jane visite l’Afrique en septembre.").text   # doctest: +SKIP
'Jane visits Africa in September.'
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.decoding.options import SearchOptions
    from dragoman.decoding.translation import Translation
    from dragoman.decoding.translator import Translator
    from dragoman.errors import DragomanError
    from dragoman.evaluation.compare import Comparison
    from dragoman.evaluation.evaluate import Evaluation
    from dragoman.insight.attention import Look
    from dragoman.insight.explanation import Explanation

    __version__: str

__all__ = [
    "Comparison",
    "DragomanError",
    "Evaluation",
    "Explanation",
    "Look",
    "SearchOptions",
    "Translation",
    "Translator",
    "compare",
    "draw",
    "evaluate",
    "explain",
    "load",
    "look",
    "train",
]

_CLASSES = {
    "Comparison": "dragoman.evaluation.compare",
    "DragomanError": "dragoman.errors",
    "Evaluation": "dragoman.evaluation.evaluate",
    "Explanation": "dragoman.insight.explanation",
    "Look": "dragoman.insight.attention",
    "SearchOptions": "dragoman.decoding.options",
    "Translation": "dragoman.decoding.translation",
    "Translator": "dragoman.decoding.translator",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import a public class, or look the version up, when it is first asked for."""
    if name in _CLASSES:
        found = getattr(import_module(_CLASSES[name]), name)
    elif name == "__version__":
        found = _find_version()
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found  # so that it is looked up once
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def _find_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("dragoman")
    except PackageNotFoundError:  # run from a source tree that was not installed
        return "0+unknown"


def load(path: str | Path, device: str = "auto") -> "Translator":
    """Load a trained model.

    Parameters
    ----------
    path : str | Path
        Its folder, or the name of an installed model, such as ``de-en``.
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``mps``.

    Returns
    -------
    Translator
        Translates text.
    """
    from dragoman.decoding.translator import Translator

    return Translator.load(path, device)


def train(
    source: str | Path | Sequence[str | Path],
    target: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    valid_source: str | Path | None = None,
    valid_target: str | Path | None = None,
    preset: str = "auto",
    options: Mapping[str, Any] | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    start_from: str | Path | None = None,
    general: str | Path | Sequence[str | Path] | None = None,
    say: Callable[[str], None] = print,
) -> "Translator":
    """Train a model on files of sentence pairs and load it.

    Parameters
    ----------
    source : str | Path | Sequence[str | Path]
        One file or several, plain, ``.gz`` or ``.xz``, with one source sentence a line.
    target : str | Path | Sequence[str | Path]
        The same number of files, whose lines translate those of `source`.
    out : str | Path
        The model folder to make; it must not hold a model yet.
    valid_source : str | Path | None
        Source sentences of the validation set; None: pairs are set aside from the corpus.
    valid_target : str | Path | None
        Their translations.
    preset : str
        A recipe's name; ``auto`` chooses by the size of the corpus.
    options : Mapping[str, Any] | None
        Options that differ from the preset, by section, as in a TOML file given to
        ``dragoman train --config``: ``{"training": {"max_minutes": 15}}``.
    source_language : str | None
        Its code, such as ``de``; None: guessed from the names of the files.
    target_language : str | None
        Likewise.
    start_from : str | Path | None
        A model folder, or an installed model, whose weights and subwords to begin with
        (fine-tuning, by the recipe ``tuning`` unless `preset` names another).
    general : str | Path | Sequence[str | Path] | None
        Files of general text, source, tab, target on each line, or ``.tmx``, to mix into a
        fine-tuning; None: what the model was trained on, if its folder still has it.
    say : Callable[[str], None]
        Receives the lines that tell what is prepared and chosen before training.

    Returns
    -------
    Translator
        The best model found, loaded from `out`.

    Raises
    ------
    DragomanError
        If a file or an option cannot be used; the message says which, and the remedy.
    InterruptedRunError
        If somebody pressed Ctrl-C. All is saved: ``dragoman train --resume --out OUT`` goes on.
    """
    from dragoman.data.corpus import CorpusFiles
    from dragoman.model_home import find_model
    from dragoman.options import check_names
    from dragoman.training.configuration import RunOptions
    from dragoman.training.preparation import RunRequest
    from dragoman.training.run import start_run

    config = dict(options or {})
    check_names(RunOptions, config, place="options")
    valid = CorpusFiles(source=_paths(valid_source), target=_paths(valid_target))
    request = RunRequest(
        out=Path(out),
        files=CorpusFiles(source=_paths(source), target=_paths(target)),
        valid_files=valid if valid.all else None,
        preset=preset,
        config=config,
        source_language=source_language,
        target_language=target_language,
        start_from=None if start_from is None else find_model(start_from),
        general=_paths(general),
    )
    start_run(request, say)
    return load(out, config.get("training", {}).get("device", "auto"))


def _paths(files: str | Path | Sequence[str | Path] | None) -> tuple[Path, ...]:
    """Turn one name, several or none into paths."""
    if files is None:
        return ()
    return tuple(map(Path, [files] if isinstance(files, str | Path) else files))


def evaluate(
    model: str | Path,
    source: str | Path,
    reference: str | Path | Sequence[str | Path],
    *,
    metrics: Sequence[str] = ("bleu", "chrf", "ter"),
    device: str = "auto",
    search: Mapping[str, Any] | None = None,
    calibrate: bool = False,
) -> "Evaluation":
    """Translate a test set and score the translations against references.

    Parameters
    ----------
    model : str | Path
        A model folder, or the name of an installed model.
    source : str | Path
        The file of source sentences.
    reference : str | Path | Sequence[str | Path]
        One file of reference translations or several.
    metrics : Sequence[str]
        Of ``bleu``, ``chrf`` and ``ter``.
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``mps``.
    search : Mapping[str, Any] | None
        Options of the search (fields of `SearchOptions`) that differ from the model folder's.
    calibrate : bool
        Whether to fit `Translation.confidence` on these lines, on which the model was not trained,
        and write that into the model folder.

    Returns
    -------
    Evaluation
        Translations, scores with sacreBLEU's signatures and confidence intervals, and perplexity.
    """
    from dragoman.evaluation.evaluate import evaluate_model

    return evaluate_model(
        Path(model),
        Path(source),
        _paths(reference),
        metrics=metrics,
        device=device,
        search=search,
        calibrate=calibrate,
    )


def compare(
    systems: Mapping[str, Sequence[str]],
    reference: Sequence[str],
    *,
    metric: str = "bleu",
    seed: int = 12345,
) -> "Comparison":
    """Say whether one system translates better than another, and how sure that is.

    Parameters
    ----------
    systems : Mapping[str, Sequence[str]]
        The translations of each system, line by line, by its name; the first is the baseline.
    reference : Sequence[str]
        The lines of the reference translation.
    metric : str
        ``bleu``, ``chrf``, ``chrf++`` or ``ter``.
    seed : int
        Of the resampling.

    Returns
    -------
    Comparison
        Scores, differences from the baseline, and p-values by paired bootstrap and by
        approximate randomisation.
    """
    from dragoman.evaluation.compare import compare_systems

    return compare_systems([reference], systems, metric=metric, seed=seed)


def look(
    translator: "Translator",
    source: str,
    *,
    translation: str | None = None,
    kinds: Sequence[str] = (),
    layers: Sequence[int] = (),
    heads: Sequence[int] = (),
) -> "Look":
    """Translate a sentence and record the attention of every layer and head.

    Parameters
    ----------
    translator : Translator
        The model.
    source : str
        The sentence.
    translation : str | None
        What to make the model say; None: its own translation.
    kinds : Sequence[str]
        Of ``encoder``, ``decoder``, ``cross`` and ``gradient``; none: all attention there is.
    layers : Sequence[int]
        Counted from 1; none: all.
    heads : Sequence[int]
        Counted from 1; none: all.

    Returns
    -------
    Look
        The translation and one map of weights for each layer; `draw` makes a picture of them.
    """
    from dragoman.insight.attention import look_at

    return look_at(
        translator, source, translation=translation, kinds=kinds, layers=layers, heads=heads
    )


def explain(
    translator: "Translator",
    source: str,
    *,
    translation: str | None = None,
    num_masks: int = 300,
    seed: int = 1,
) -> "Explanation":
    """Say which source words each word of a translation depends on, and how sure that is.

    Parameters
    ----------
    translator : Translator
        The model.
    source : str
        The sentence.
    translation : str | None
        What to explain; None: the model's own translation.
    num_masks : int
        Variants of the source, with words left out at random, that RISE tries.
    seed : int
        Of these variants.

    Returns
    -------
    Explanation
        By RISE with standard errors, by gradient × input, and by mean attention.
    """
    from dragoman.insight.explanation import explain as explain_translation

    return explain_translation(
        translator, source, translation=translation, num_masks=num_masks, seed=seed
    )


def draw(seen: "Look | Explanation", path: str | Path) -> None:
    """Draw what `look` or `explain` found.

    Parameters
    ----------
    seen : Look | Explanation
        What to draw.
    path : str | Path
        The picture to write, ``.png`` or ``.svg``.
    """
    from dragoman.insight.attention import Look

    if isinstance(seen, Look):
        from dragoman.insight.picture import draw_maps

        title = f"{seen.source}  →  {seen.translation}"
        draw_maps(seen.maps, Path(path), title=title, subtitle=seen.legend)
    else:
        from dragoman.insight.explanation_picture import draw_explanation

        draw_explanation(seen, Path(path))
