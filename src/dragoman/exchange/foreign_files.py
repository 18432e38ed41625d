"""Read small files of other tools, defensively."""

import json
import re
from pathlib import Path
from typing import Any

from dragoman.errors import FolderError
from dragoman.files import read_bounded

LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8}){0,3}")
MOST_SETTINGS_BYTES = 1 << 20
"""Of a file of settings."""
MOST_VOCABULARY_BYTES = 16 << 20
"""Of a vocabulary or SentencePiece model: ten times what 250,000 subwords take."""


def read_object(path: Path, most_bytes: int = MOST_SETTINGS_BYTES) -> dict[str, Any]:
    """Read a JSON file that holds one flat object.

    Returns
    -------
    dict[str, Any]
        Its entries. Lists and objects within are replaced by a word for them: nobody needs them,
        and they may be too deep to be compared or printed.
    """
    return parse_object(read_bounded(path, most_bytes), path)


def parse_object(contents: bytes, path: Path) -> dict[str, Any]:
    """Parse one flat JSON object, as `read_object` does."""
    try:
        found = json.loads(contents.decode())
    except (ValueError, RecursionError):
        raise FolderError(f"{path}: is not JSON; get the model again") from None
    if not isinstance(found, dict):
        raise FolderError(f"{path}: holds no object; get the model again")
    words: dict[type, str] = {list: "a list", dict: "an object"}
    return {name: words.get(type(value), value) for name, value in found.items()}
