"""The built-in corpus as a folder of text files."""

import json
from collections.abc import Iterator
from pathlib import Path

from dragoman.data.builtin.generator import (
    LANGUAGE_PAIRS,
    SPLITS,
    AlignedPair,
    check_choice,
    generate_pairs,
)
from dragoman.data.builtin.tasks import MOST_WORDS, TASK_SIDES, TASKS, generate_task
from dragoman.errors import FolderError, OptionError
from dragoman.files import written_beside

_MANIFEST = "corpus.json"
_WRITER = "dragoman built-in corpus"


def _name_sides(languages: str) -> tuple[str, str]:
    """Return the suffixes of the files of both sides."""
    source, target = TASK_SIDES if languages in TASKS else languages.split("-")
    return source, target


def _name_files(languages: str) -> list[str]:
    """List all files of a corpus folder except the manifest."""
    names = []
    for split in SPLITS:
        names.append(f"{split}.align")
        for language in _name_sides(languages):
            names += [f"{split}.{language}", f"{split}.words.{language}"]
    return names


def _check_folder(folder: Path) -> None:
    """Refuse a folder that holds anything not written by write_corpus."""
    if folder.is_file():
        raise FolderError(f"{folder}: is a file; name a new folder for the corpus")
    if not folder.exists():
        return
    present = {path.name for path in folder.iterdir()}
    if not present:
        return
    if _MANIFEST not in present:
        raise FolderError(
            f"{folder}: is not empty and holds no {_MANIFEST} of a built-in corpus; "
            "name a new or empty folder"
        )
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        own = manifest["writer"] == _WRITER
        known = {_MANIFEST, *_name_files(manifest["languages"])}
    except (ValueError, KeyError, TypeError, AttributeError):
        own, known = False, set()
    if not own:
        raise FolderError(
            f"{folder / _MANIFEST}: was not written with a built-in corpus; "
            "name a new or empty folder"
        )
    foreign = sorted(present - known)
    if foreign:
        raise FolderError(
            f"{folder / foreign[0]}: is no part of a built-in corpus; move it away or name a new "
            "folder"
        )


def _generate(
    languages: str, *, split: str, count: int, seed: int, max_words: int | None
) -> Iterator[AlignedPair]:
    """Generate pairs of the grammar or of a task."""
    check_choice("languages", languages, LANGUAGE_PAIRS + TASKS)
    if languages in TASKS:
        longest = MOST_WORDS if max_words is None else max_words
        return generate_task(languages, split=split, count=count, seed=seed, max_words=longest)
    if max_words is not None:
        raise OptionError(
            f"max_words: {max_words} means nothing for “{languages}”, whose sentences have the "
            f"length they have; leave it out, or choose {' or '.join(TASKS)}"
        )
    return generate_pairs(languages, split=split, count=count, seed=seed)


def _write_split(
    folder: Path, languages: str, pairs: Iterator[AlignedPair], split: str
) -> dict[str, int]:
    source_language, target_language = _name_sides(languages)
    columns: dict[str, list[str]] = {
        name: []
        for name in (
            f"{split}.{source_language}",
            f"{split}.{target_language}",
            f"{split}.words.{source_language}",
            f"{split}.words.{target_language}",
            f"{split}.align",
        )
    }
    for pair in pairs:
        fields = (
            pair.source,
            pair.target,
            " ".join(pair.source_words),
            " ".join(pair.target_words),
            " ".join(f"{source}-{target}" for source, target in pair.alignment),
        )
        for lines, field in zip(columns.values(), fields, strict=True):
            lines.append(field)
    for name, lines in columns.items():
        text = "".join(line + "\n" for line in lines)
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return {name: len(lines) for name, lines in columns.items()}


def write_corpus(
    folder: Path,
    *,
    languages: str,
    count: int,
    held_out: int,
    seed: int,
    max_words: int | None = None,
) -> dict[str, int]:
    """Write a corpus folder: training, validation and test texts with their alignments.

    Notes
    -----
    Line n of “train.fr” and “train.en” is a pair. Line n of “train.align” holds links such as
    “0-0 2-1” between the blank-separated words of line n of “train.words.fr” and
    “train.words.en”, counted from 0. The files of a task end in “source” and “target” instead of
    language codes: “train.source”, “train.words.target”. The files are made beside the folder and
    moved into it, the manifest “corpus.json” last.
    """
    if held_out < 1:
        raise OptionError(f"held_out: {held_out} is too few sentence pairs; ask for 1 or more")
    _generate(languages, split="train", count=count, seed=seed, max_words=max_words)
    _check_folder(folder)
    num_lines: dict[str, int] = {}
    with written_beside(folder) as beside:
        beside.mkdir()
        for split in SPLITS:
            wanted = count if split == "train" else held_out
            pairs = _generate(languages, split=split, count=wanted, seed=seed, max_words=max_words)
            num_lines |= _write_split(beside, languages, pairs, split)
        manifest = {
            "writer": _WRITER,
            "languages": languages,
            "count": count,
            "held_out": held_out,
            "seed": seed,
            "lines": num_lines,
        }
        text = json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
        (beside / _MANIFEST).write_text(text, encoding="utf-8", newline="\n")
    return num_lines
