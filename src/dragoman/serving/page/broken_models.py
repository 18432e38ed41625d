"""Models without one part each, as “dragoman paper broken” leaves them, for the view “Break it”."""

import json
import math
from pathlib import Path
from typing import Any

from dragoman.errors import DataError, FolderError
from dragoman.files import read_bounded
from dragoman.folder import FACTS_FILE, WEIGHTS_FILE

MANIFEST = "broken.json"
MOST_BYTES = 1 << 20
MOST_MODELS = 16
_REMEDY = "make it by “dragoman paper broken”"
_TEXTS = ("name", "title", "change", "section", "says")
_NUMBERS = ("bleu", "perplexity", "seconds", "parameters")


class BrokenModels:
    """The models of a folder and what is to be shown of them.

    Parameters
    ----------
    folder : Path
        Where “dragoman paper broken” left them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        content = read_bounded(folder / MANIFEST, MOST_BYTES, _REMEDY)
        try:
            told = json.loads(content)
            self.description: dict[str, Any] = {
                "corpus": str(told["corpus"]),
                "updates": int(told["updates"]),
                "examples": [[str(source), str(target)] for source, target in told["examples"]],
                "models": [_read_model(each) for each in told["models"]],
            }
        except (ValueError, TypeError, KeyError, RecursionError):
            raise DataError(f"{folder / MANIFEST}: is damaged; {_REMEDY}") from None
        self._paths = {each["name"]: folder / each["name"] for each in self.description["models"]}
        if not 0 < len(self._paths) <= MOST_MODELS:
            raise DataError(
                f"{folder / MANIFEST}: names {len(self._paths)} models, must be 1 to {MOST_MODELS}"
            )
        for path in self._paths.values():
            for name in (FACTS_FILE, WEIGHTS_FILE):
                if not (path / name).is_file():
                    raise FolderError(f"{path / name}: is missing; {_REMEDY}")

    def find(self, name: str) -> Path | None:
        """Find the folder of a model by its name."""
        return self._paths.get(name)


def _read_model(told: dict[str, Any]) -> dict[str, Any]:
    """Read the description of one model; refuse a name that leads elsewhere."""
    model = {name: str(told[name]) for name in _TEXTS}
    if not model["name"].replace("-", "").isalnum():
        raise ValueError(model["name"])
    numbers = {name: float(told[name]) for name in _NUMBERS}
    published = told.get("published") or {}
    figures = {name: float(published[name]) for name in ("bleu", "perplexity") if published}
    if not all(map(math.isfinite, [*numbers.values(), *figures.values()])):
        raise ValueError(model["name"])
    return {**model, **numbers, "published": figures or None}
