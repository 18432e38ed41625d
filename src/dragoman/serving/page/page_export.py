"""Export the web page from the terminal as one self-contained file."""

from typing import Any

from dragoman.decoding.translator import Translator
from dragoman.insight.attention import Look
from dragoman.insight.explanation import Explanation
from dragoman.serving.languages import name_language
from dragoman.serving.page.page_document import write_document
from dragoman.serving.page.page_insight import (
    align_for_page,
    look_for_page,
    write_explanation,
    write_look,
)


def write_look_page(translator: Translator, seen: Look) -> str:
    """Write an attention page."""
    looked = write_look(translator, seen)
    shown = {"view": "attention", "kind": seen.maps[0].kind}
    snapshot = _snapshot(translator, seen.source, seen.translation, shown)
    return write_document(snapshot | {"attention": looked}, _title(seen.source, seen.translation))


def write_explanation_page(translator: Translator, found: Explanation) -> str:
    """Write an explanation page with its attention."""
    why = write_explanation(found, found.rise.num_masks)
    looked = look_for_page(translator, found.source, found.translation)
    snapshot = _snapshot(translator, found.source, found.translation, {"view": "why"})
    title = _title(found.source, found.translation)
    return write_document(snapshot | {"why": why, "attention": looked}, title)


def _title(source: str, translation: str) -> str:
    return f"{source}  →  {translation}"


def _snapshot(
    translator: Translator, source: str, translation: str, shown: dict[str, Any]
) -> dict[str, Any]:
    """Collect the data that the page needs for a sentence pair."""
    facts, options = translator.folder.facts, translator.folder.options
    codes = [facts.source_language or "source", facts.target_language or "target"]
    names = [name_language(code) for code in codes]
    aligned = align_for_page(translator, source, translation)
    sentence = {
        "source": source,
        "space": "",
        "text": translation,
        "alternatives": [],
        "alignment": aligned["alignment"],
        "sure": aligned["probabilities"],
    }
    model = {
        "name": translator.folder.path.resolve().name,
        "source": codes[0],
        "target": codes[1],
        "family": options.family,
        "beam": translator.options.beam_size,
    }
    return {
        "state": {"text": source, "from": codes[0], "to": codes[1]} | shown,
        "page": {
            "languages": [
                {"code": codes[0], "name": names[0], "targets": [codes[1]]},
                {"code": codes[1], "name": names[1], "targets": []},
            ],
            "models": [model],
            "runs": [],
            "limits": {},
        },
        "path": codes,
        "notes": [],
        "sentences": [sentence],
        "attention": None,
        "why": None,
        "inside": None,
        "runs": [],
    }
