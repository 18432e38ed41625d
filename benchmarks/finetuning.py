"""What fine-tuning gains on somebody's own lines and loses on general ones, with and without care.

    python benchmarks/finetuning.py DATA [--model models/en-de.tar.xz] [--lines 2000]

DATA is a folder of parallel texts. A model that comes along is tuned on a sample of one of them in
three ways: by the default with general text (--general), by the default without, and naively: at
the learning rate that the model was first trained with, without averaging or stopping early.
Scored are held-out lines of that text and of the general one, beside the model of before.
"""

import argparse
import lzma
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from dragoman.decoding.translator import Translator
from dragoman.evaluation.bleu import score_translations
from dragoman.evaluation.compare import compare_systems
from record import RESULTS, ROOT, require_commit, write_result

SEED = 1
NAIVE = '[training]\npeak_learning_rate = 0.001\nstart_share = 0\npatience = "off"\n'

Pair = tuple[str, str]


def read_pairs(folder: Path, split: str, languages: Pair) -> list[Pair]:
    """Read a split of a text.

    Parameters
    ----------
    folder : Path
        The text's.
    split : str
        “train” or “valid”.
    languages : tuple[str, str]
        Of source and target.

    Returns
    -------
    list[tuple[str, str]]
        Source and target.
    """
    sides = []
    for language in languages:
        with lzma.open(folder / f"{split}.{language}.xz", "rt", encoding="utf-8") as lines:
            sides.append(lines.read().split("\n"))
    return [pair for pair in zip(*sides, strict=True) if all(pair)]


def write_tsv(path: Path, pairs: list[Pair]) -> None:
    """Write pairs, a tab between.

    Parameters
    ----------
    path : Path
        Where.
    pairs : list[tuple[str, str]]
        What.
    """
    path.write_text("".join(f"{one}\t{two}\n" for one, two in pairs), encoding="utf-8")


def main() -> None:
    """Tune in each way, score and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", type=Path, default=ROOT / "models" / "en-de.tar.xz")
    parser.add_argument("--domain", default="ddtp-en-de")
    parser.add_argument("--general", default="tatoeba-en-de")
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--test-lines", type=int, default=500)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    require_commit()
    place = Path(tempfile.mkdtemp())
    with tarfile.open(given.model) as archive:
        archive.extractall(place, filter="data")
    start = place / given.model.name.split(".")[0]
    languages = tuple(start.name.split("-"))
    own = read_pairs(given.data / given.domain, "train", languages)
    write_tsv(place / "own.tsv", random.Random(SEED).sample(own, given.lines))
    general = read_pairs(given.data / given.general, "train", languages)
    write_tsv(place / "general.tsv", general)
    (place / "naive.toml").write_text(NAIVE, encoding="utf-8")
    ways = {
        "tuned": ["--general", str(place / "general.tsv")],
        "without_general": [],
        "naive": ["--config", str(place / "naive.toml")],
    }
    tests = {
        name: read_pairs(given.data / text, "valid", languages)[: given.test_lines]
        for name, text in (("domain", given.domain), ("general", given.general))
    }
    outputs = {"before": translate(start, tests)}
    figures: dict[str, float] = {}
    for way, words in ways.items():
        train = [sys.executable, "-m", "dragoman", "train", "--from", str(start), "--tsv"]
        began = time.monotonic()
        out = place / way
        subprocess.run([*train, str(place / "own.tsv"), "--out", str(out), *words], check=True)
        figures[f"minutes_{way}"] = (time.monotonic() - began) / 60
        outputs[way] = translate(out, tests)
    notes = score(outputs, tests, figures) | {"naive": NAIVE, "model": start.name}
    name = f"finetuning-{given.domain}"
    print(write_result(name, figures, seeds=[SEED], notes=notes, folder=given.results))
    shutil.rmtree(place)


def translate(model: Path, tests: dict[str, list[Pair]]) -> dict[str, list[str]]:
    """Translate the test sets.

    Parameters
    ----------
    model : Path
        A model folder.
    tests : dict[str, list[tuple[str, str]]]
        Pairs by the name of their set.

    Returns
    -------
    dict[str, list[str]]
        Translations by that name.
    """
    translator = Translator.load(model, "cpu")
    return {
        name: [each.text for each in translator.translate_all([source for source, _ in pairs])]
        for name, pairs in tests.items()
    }


def score(
    outputs: dict[str, dict[str, list[str]]],
    tests: dict[str, list[Pair]],
    figures: dict[str, float],
) -> dict[str, object]:
    """Score every system on every set, and test its difference from the model of before.

    Parameters
    ----------
    outputs : dict[str, dict[str, list[str]]]
        Translations by system and set.
    tests : dict[str, list[tuple[str, str]]]
        Pairs by set.
    figures : dict[str, float]
        Takes the scores.

    Returns
    -------
    dict[str, object]
        Tests and signatures.
    """
    words: dict[str, object] = {}
    for name, pairs in tests.items():
        references = [target for _, target in pairs]
        for system, found in outputs.items():
            for each in score_translations(found[name], [references], metrics=("bleu", "chrf")):
                figures[f"{name}_{each.name.lower()}_{system}"] = each.value
                words["signature_" + each.name.lower()] = each.signature
        systems = {system: found[name] for system, found in outputs.items()}
        words[name] = compare_systems([references], systems).in_words().split("\n")
    return words


if __name__ == "__main__":
    main()
