"""Plans of runs, and their results as read from the files that “dragoman train” writes."""

import json
import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.files import write_file
from dragoman.paper.training_runs.corpora import Corpus

SCORES, TRANSLATIONS = "scores.json", "translations.txt"
_FACTS, _EVENTS, _WEIGHTS = "dragoman.json", "metrics.jsonl", "model.safetensors"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of one run.

    Parameters
    ----------
    name : str
        What to call it; with the seed, the beginning of its folder's name.
    preset : str
        The recipe.
    seed : int
        Of all chance in it.
    corpus : Corpus
        What it is trained and tested on.
    flags : tuple[str, ...]
        Words for “dragoman train” that differ from the recipe.
    search : tuple[str, ...]
        Words for “dragoman evaluate” about the search.
    is_whole : bool
        Whether lines longer than any in training are translated in one piece, and not, as the
        translator does with them by itself, sentence by sentence.
    """

    name: str
    preset: str
    seed: int
    corpus: Corpus
    flags: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    is_whole: bool = False

    @property
    def title(self) -> str:
        """The label of the run."""
        return f"{self.name}, seed {self.seed}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The results of a run.

    Parameters
    ----------
    plan : Plan
        What was wanted.
    folder : Path
        The model folder.
    num_parameters, num_updates : int
        Of the model; done in training.
    seconds : float
        Of training, without validations.
    tokens_per_second : float
        The median over the log's lines, source plus target.
    loss : float
        Nats per subword on the validation set, of the weights that were kept.
    bleu, chrf : float
        On the test set, by sacreBLEU.
    signature : str
        sacreBLEU's, of BLEU.
    translations : tuple[str, ...]
        Of the test set.
    """

    plan: Plan
    folder: Path
    num_parameters: int
    num_updates: int
    seconds: float
    tokens_per_second: float
    loss: float
    bleu: float
    chrf: float
    signature: str
    translations: tuple[str, ...]

    @property
    def perplexity(self) -> float:
        """Per subword, on the validation set."""
        return math.exp(min(self.loss, 700.0))


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run that failed.

    Parameters
    ----------
    plan : Plan
        What was wanted.
    why : str
        One line, with the place of the log.
    """

    plan: Plan
    why: str


def is_finished(model: Path) -> bool:
    """Tell whether a run is finished."""
    return any(event.get("event") == "end" for event in _read_events(model)[-1:])


def date_weights(model: Path) -> int:
    """Return the time when weights were written, to detect scores of older weights."""
    return (model / _WEIGHTS).stat().st_mtime_ns


def forget_longest(model: Path) -> None:
    """Delete the longest source's length from a model's facts, so that no text is split by it."""
    facts = read_json(model / _FACTS)
    if facts["longest_source"]:
        facts.pop("digest", None)  # a checksum of the old contents
        write_json(model / _FACTS, facts | {"longest_source": 0})


def read_outcome(plan: Plan, folder: Path) -> Outcome:
    """Read the results of a finished run."""
    model = folder / "model"
    events = _read_events(model)
    told = read_json(folder / SCORES)
    scores = {each["name"]: each for each in told["scores"]}
    updates = [each for each in events if each["event"] == "update"]
    speeds = [each["tokens_per_second"] for each in updates]
    text = (folder / TRANSLATIONS).read_text(encoding="utf-8")
    return Outcome(
        plan=plan,
        folder=model,
        num_parameters=next(each["parameters"] for each in events if each["event"] == "start"),
        num_updates=events[-1]["step"],
        seconds=events[-1]["seconds"],
        tokens_per_second=statistics.median(speeds) if speeds else math.nan,
        loss=_read_loss(model, events),
        bleu=scores["BLEU"]["value"],
        chrf=scores["chrF2"]["value"],
        signature=scores["BLEU"]["signature"],
        translations=tuple(text.split("\n")[:-1]),
    )


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def write_json(path: Path, told: dict[str, Any]) -> None:
    """Write a JSON object."""
    write_file(path, json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def _read_events(model: Path) -> list[dict[str, Any]]:
    """Read a run's log."""
    try:
        lines = (model / _EVENTS).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]
    except (OSError, ValueError):
        return []


def _read_loss(model: Path, events: Sequence[dict[str, Any]]) -> float:
    """Find the validation loss of the weights that were kept."""
    facts = read_json(model / _FACTS)
    best = [each for each in events if each["event"] == "validation" and each["is_best"]]
    if facts.get("weights") == "best" and best:
        return float(best[-1]["loss"])
    # The average of checkpoints is no event of the log; the folder tells its perplexity.
    found = re.search(r"perplexity ([\d.]+)", str(facts.get("scores")))
    return math.log(float(found[1])) if found else math.nan
