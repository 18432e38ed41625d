"""The small models of models/: scores on held-out lines, and what they do with odd input.

    python benchmarks/small_models.py MODEL … [--data DATA] [--results DIR]

MODEL is a folder of one of the archives. Scored are Tatoeba's held-out lines and, where there are
any, newstest2013. Then come 1,000 inputs that are no plain sentences: single words, headings (lines
of the Parliament's proceedings with capitals, or all in capitals), questions and names. Counted are
answers that are empty, that repeat themselves, that are in the source language by the server's own
identifier (of three words or more, where that is surer than nine in ten), and names that
did not stay as they are.
"""

import argparse
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman.data.corpus import read_lines
from dragoman.decoding.translator import Translator
from dragoman.evaluation.bleu import score_translations
from dragoman.serving.detection import LanguageDetector
from multi30k import find
from record import RESULTS, require_commit, write_result

SEED = 1
NUM_OF_KIND = 250
WORD = re.compile(r"[^\W\d_]{2,}")
REPEATED = re.compile(r"\b(\w+(?:\W+\w+){0,3}?)(?:\W+\1\b){2,}", re.IGNORECASE)
SURE, FEWEST_WORDS = 0.9, 3
FIRST_NAMES = (
    "Anna", "Peter", "Maria", "Thomas", "Angela", "Michael", "Claudia", "Robert", "Sophie", "Pablo",
    "Ingrid", "Juan", "Camille", "Oliver", "Elena", "Hassan", "Yuki", "Olga", "Pierre", "Fatima",
)  # fmt: skip
LAST_NAMES = (
    "Merkel", "Schneider", "Dubois", "García", "Smith", "Kowalski", "Nguyen", "Rossi", "Johnson",
    "Weber", "Lefebvre", "Martínez", "Okafor", "Yamamoto", "Petrov", "Hansen", "O’Brien", "Silva",
)  # fmt: skip
Pairs = list[tuple[str, str]]


def main() -> None:
    """Score and try all models that are given, print, and write the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    require_commit()
    figures: dict[str, float] = {}
    notes: dict[str, object] = {}
    for path in given.models:
        translator = Translator.load(path)
        facts = translator.folder.facts
        languages = (facts.source_language, facts.target_language)
        name = "_".join(languages)
        translate = _translate_with(translator)
        for text, pairs in read_held_out(given.data, languages).items():
            sources, references = zip(*pairs, strict=True)
            scores = score_translations(
                translate(sources), [references], metrics=("bleu", "chrf"), num_samples=1000
            )
            for score in scores:
                figures[f"{name}_{text}_{score.name.lower()}"] = score.value
            notes[f"{name}_{text}"] = [str(score) for score in scores]
        bad: list[str] = []
        inputs = make_inputs(given.data, languages)
        detector = LanguageDetector(languages)
        for kind, lines in inputs.items():
            answers = translate(lines)
            found = [find_fault(*pair, kind, detector) for pair in zip(lines, answers, strict=True)]
            for fault in ("empty", "repeated", "source_language", "changed"):
                if fault != "changed" or kind == "names":
                    figures[f"{name}_{kind}_{fault}"] = found.count(fault)
            bad += [
                f"{kind}, {fault}: {line} → {answer}"
                for line, answer, fault in zip(lines, answers, found, strict=True)
                if fault
            ]
        notes[f"{name}_faults"] = bad
        for key, value in figures.items():
            if key.startswith(name):
                print(f"{key:48} {value:8.2f}", flush=True)
    path = write_result("small_models", figures, seeds=[SEED], notes=notes, folder=given.results)
    print(path)


def _translate_with(translator: Translator) -> Callable[[Sequence[str]], list[str]]:
    def translate(lines: Sequence[str]) -> list[str]:
        return [each.text for each in translator.translate_all(list(lines))]

    return translate


def read_held_out(data: Path, languages: tuple[str, str]) -> dict[str, Pairs]:
    """Read the lines that report: Tatoeba's that did not choose, and newstest2013."""
    (other,) = (each for each in languages if each != "en")
    tatoeba = _read(data / f"tatoeba-en-{other}", "valid", languages)
    found = {"tatoeba": [pair for place, pair in enumerate(tatoeba) if place % 3]}
    if (data / "newstest" / f"newstest2013.en-{other}.en.xz").exists():
        found["newstest2013"] = _read(data / "newstest", f"newstest2013.en-{other}", languages)
    return found


def _read(folder: Path, split: str, languages: tuple[str, str]) -> Pairs:
    sides = (read_lines(Path(find(folder, f"{split}.{each}"))) for each in languages)
    return list(zip(*sides, strict=True))


def make_inputs(data: Path, languages: tuple[str, str]) -> dict[str, list[str]]:
    """Make words, headings, questions and names of the source language, always the same."""
    chance = random.Random(SEED)
    (other,) = (each for each in languages if each != "en")
    everyday = [one for one, _ in _read(data / f"tatoeba-en-{other}", "valid", languages)]
    speeches = [one for one, _ in _read(data / f"europarl-en-{other}", "valid", languages)]
    words = sorted({word for line in everyday + speeches for word in WORD.findall(line)[1:]})
    short = [line.rstrip(".") for line in speeches if 3 <= len(line.split()) <= 9]
    chosen = chance.sample(short, min(len(short), NUM_OF_KIND))
    headings = [
        line.upper() if place % 2 else re.sub(r"\b\w", lambda found: found[0].upper(), line)
        for place, line in enumerate(chosen)
    ]
    asked = [line for line in everyday if line.endswith("?")]
    names = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
    return {
        "words": chance.sample(words, NUM_OF_KIND),
        "headings": headings,
        "questions": chance.sample(asked, min(len(asked), NUM_OF_KIND)),
        "names": chance.sample(names, NUM_OF_KIND),
    }


def find_fault(source: str, answer: str, kind: str, detector: LanguageDetector) -> str:
    """Say what is wrong with an answer that anybody can see; nothing if nothing is."""
    if not answer.strip():
        return "empty"
    if REPEATED.search(answer) and not REPEATED.search(source):
        return "repeated"
    if kind == "names":
        return "" if answer.rstrip(".") == source else "changed"
    if len(answer.split()) >= FEWEST_WORDS:
        (source_language, _), *_ = detector.detect_all([source.lower()])[0]
        (code, share), *_ = detector.detect_all([answer.lower()])[0]
        if code == source_language and share > SURE and answer.lower() != source.lower():
            return "source_language"
    return ""


if __name__ == "__main__":
    main()
