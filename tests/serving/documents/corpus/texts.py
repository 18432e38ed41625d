"""Files of text in which what is translated stands between “⟦” and “⟧”: those of marked/."""

import re
from pathlib import Path

_FOLDER = Path(__file__).parent / "marked"
TEXTS = tuple(sorted(path.name for path in _FOLDER.iterdir()))
_PIECE = re.compile(r"(<[^<>]*>|&#?\w+;|\\u\w{4})|([^<&\\]+|[<&\\])")


def make_text(name):
    """Make a file, and what becomes of it where every word is written in capitals."""
    text = (_FOLDER / name).read_bytes().decode()

    def write(match):
        return _PIECE.sub(lambda piece: piece[1] or piece[2].upper(), match[1])

    return re.sub("[⟦⟧]", "", text), re.sub("⟦(.*?)⟧", write, text, flags=re.DOTALL)
