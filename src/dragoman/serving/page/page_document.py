"""Static files of the web page, and the page as one self-contained document."""

import gzip
import hashlib
import html
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

# In topological order: each imports only those before it.
MODULES = (
    "dom.js",
    "wording.js",
    "colours.js",
    "pen.js",
    "tensors.js",
    "server.js",
    "state.js",
    "pictures.js",
    "charts.js",
    "canvas.js",
    "undo.js",
    "sentences.js",
    "words.js",
    "choices.js",
    "bench.js",
    "rows.js",
    "doubts.js",
    "translate.js",
    "glossary.js",
    "files.js",
    "past.js",
    "compare.js",
    "texts.js",
    "speech.js",
    "keys.js",
    "desk.js",
    "attention.js",
    "why.js",
    "numbers.js",
    "inside_steps.js",
    "inside_sums.js",
    "inside_map.js",
    "tree.js",
    "samples.js",
    "inside.js",
    "stages.js",
    "break.js",
    "training.js",
    "meanings.js",
    "lesson_texts.js",
    "lessons.js",
    "export.js",
    "app.js",
)
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
STYLES = ("style.css", "desk.css", "inside.css", "lessons.css")
ASSETS = ("index.html", *STYLES, "icon.svg", *MODULES)
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_SLOT = "@SNAPSHOT@"


class Asset(NamedTuple):
    """A static file, plain and compressed."""

    content: bytes
    compressed: bytes
    media_type: str
    tag: str


@cache
def read_asset(name: str) -> Asset:
    """Read a file of the page."""
    content = (files("dragoman.serving.page") / "static" / name).read_bytes()
    media_type = _MEDIA_TYPES[name[name.rindex(".") :]]
    tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    return Asset(content, gzip.compress(content, 9, mtime=0), media_type, tag)


@cache
def write_shell() -> str:
    """Write the page as one self-contained document with a slot for its data."""
    page = read_asset("index.html").content.decode()
    style = "".join(read_asset(name).content.decode() for name in STYLES)
    script = "".join(join_module(name) for name in MODULES)
    icon = read_asset("icon.svg").content.decode()
    policy = (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "img-src blob: data:; base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<link rel="icon" href="data:image/svg+xml,{_quote_icon(icon)}">\n'
        f"<style>\n{style}</style>\n"
        f'<script type="application/json" id="snapshot">{_SLOT}</script>\n'
        f'<script type="module">\n{script}</script>\n'
    )
    return re.sub(r"<!-- files -->.*<!-- end of files -->\n", lambda _: head, page, flags=re.DOTALL)


def join_module(name: str) -> str:
    """Wrap a JavaScript module in a function so that modules can be concatenated.

    Notes
    -----
    Imports must stand on a line of their own and rename nothing, and only functions, classes and
    constants can be exported, where they are defined: a test sees to it.
    """
    code = read_asset(name).content.decode()
    exported = ", ".join(match[2] for match in _EXPORT.finditer(code))
    code = _IMPORT.sub(r"const \1 = module_\2;", _EXPORT.sub(r"\1", code))
    return f"const module_{name[:-3]} = (() => {{\n{code}return {{ {exported} }};\n}})();\n"


def write_document(snapshot: dict[str, Any], title: str) -> str:
    """Write a snapshot of the page as one self-contained file.

    Parameters
    ----------
    snapshot : dict[str, Any]
        What the server answered, and the state of the page, by the names that the page's
        “export.js” gives them.
    title : str
        Of the document.
    """
    data = json.dumps(snapshot, ensure_ascii=False, separators=(",", ":"))
    # Escape “<” so that data cannot close the script element.
    data = data.replace("<", "\\u003c").encode("utf-8", "backslashreplace").decode()
    # Replaced last: the title may contain the placeholder of the slot.
    before, after = write_shell().split(_SLOT, 1)
    named = f"<title>{html.escape(title)}</title>"
    return re.sub(r"<title>.*?</title>", lambda _: named, before) + data + after


def _quote_icon(svg: str) -> str:
    """Encode an SVG as a data URL."""
    return "".join(f"%{ord(each):02X}" if each in '"#%<>&\n' else each for each in svg)
