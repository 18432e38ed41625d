"""Make `marian_models`: tiny models that Marian trained, and what it makes of a few sentences.

    PATH=$PATH:RIVALS/bin python tests/exchange/make_marian_models.py

Needs the program “pymarian” 1.12.42 (see benchmarks/marian_nmt.py). One folder each; vocabularies
that several share lie above. “expected.json” has, for each model, the words Marian was called with,
the log-probabilities of given translations, and the translations of greedy search and of a beam;
of models with norms before self-attention only the first, since Marian's decoder does not
normalise the keys there after the first word.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

OUT = Path(__file__).parent / "marian_models"
SENTENCES = 8
LONGEST = 40  # characters of a sentence, so that tiny models learn to end theirs
COMPARED = 60  # characters of a translation: what does not end for long ends elsewhere
BEAM = 3
JOINT, SIDES, WORDS = ("joint.spm",) * 2, ("source.spm", "target.spm"), ("fr.yml", "en.yml")
SPM = "--normalization_rule_name=identity"
TIED = "--tied-embeddings-all"
PRE = "--transformer-preprocess {0} --transformer-postprocess da --transformer-postprocess-top {1}"
CELLS = "--transformer-decoder-autoreg rnn --dec-cell ssru"
CONFIGURATIONS = {
    "post-norm": (JOINT, TIED),
    "pre-norm": (JOINT, f"{TIED} {PRE.format('nd', 'n')}"),
    "cells": (JOINT, f"{TIED} {CELLS}"),
    "cells-pre-norm": (JOINT, f"{TIED} {CELLS} {PRE.format('n', 'n')}"),
    "gelu": (JOINT, f"{TIED} --transformer-ffn-activation gelu"),
    "two-vocabularies": (SIDES, "--tied-embeddings --transformer-ffn-activation relu"),
    "source-and-target-tied": (JOINT, "--tied-embeddings-src"),
    "nothing-tied": (SIDES, ""),
    "words": (WORDS, "--output-omit-bias --tied-embeddings"),
    "tied-layers": (JOINT, f"{TIED} --dec-depth 2 --transformer-tied-layers 1 1"),
    "rms-norm": (JOINT, f"{TIED} --transformer-postprocess dar"),
    "rms-pre-norm": (JOINT, f"{TIED} {PRE.format('r', 'r')}"),
    "no-positions": (JOINT, f"{TIED} --transformer-disable-position-embeddings"),
    "no-positions-pre-norm": (
        SIDES, f"--tied-embeddings --transformer-disable-position-embeddings {PRE.format('n', 'n')}"
    ),
    "no-positions-nothing-tied": (SIDES, "--transformer-disable-position-embeddings"),
    "wide-decoder": (JOINT, f"{TIED} --transformer-decoder-dim-ffn 20"),
    "narrow-decoder": (JOINT, f"{TIED} --transformer-decoder-dim-ffn 6"),
    "no-projection": (JOINT, f"{TIED} --transformer-no-projection"),
    "no-heed": (
        JOINT,
        f"{TIED} --transformer-no-bias --transformer-no-affine --layer-normalization "
        "--transformer-train-position-embeddings",
    ),
}  # fmt: skip


def main() -> None:
    """Train all models, and write what Marian makes of sentences."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        corpus = Path(scratch) / "data"
        command = ["data", "builtin", "--pair", "fr-en", "--sentences", "12000"]
        command += ["--held-out", "60", "--out"]
        subprocess.run([sys.executable, "-m", "dragoman", *command, corpus], check=True)
        for split in ("train", "test"):
            keep_short(corpus, split)
        for side in ("fr", "en"):
            write_words(corpus / f"train.{side}", OUT / f"{side}.yml")
        texts = lines_of(corpus / "test.fr")[:SENTENCES]
        others = lines_of(corpus / "test.en")[:SENTENCES]
        found: dict[str, object] = {"texts": texts, "others": others}
        found |= {"beam": BEAM, "compared": COMPARED}
        found["models"] = {
            name: make_model(name, corpus, vocabularies, flags.split(), texts, others)
            for name, (vocabularies, flags) in CONFIGURATIONS.items()
        }
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    (OUT / "expected.json").write_text(text, encoding="utf-8")


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def keep_short(corpus: Path, split: str) -> None:
    """Leave the short pairs in two files."""
    paths = [corpus / f"{split}.{side}" for side in ("fr", "en")]
    pairs = zip(*map(lines_of, paths), strict=True)
    kept = [pair for pair in pairs if max(map(len, pair)) <= LONGEST]
    for path, lines in zip(paths, zip(*kept, strict=True), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_words(corpus: Path, path: Path) -> None:
    """Write a vocabulary of all words between spaces."""
    counts = Counter(word for line in lines_of(corpus) for word in line.split())
    names = ["</s>", "<unk>", *sorted(word for word, _ in counts.most_common(150))]
    lines = (f"{json.dumps(name, ensure_ascii=False)}: {i}\n" for i, name in enumerate(names))
    path.write_text("".join(lines), encoding="utf-8")


def make_model(name, corpus, vocabularies, flags, texts, others):
    """Train one model in a folder of its own, and see what Marian makes of sentences."""
    folder = OUT / name
    folder.mkdir()
    print(name, flush=True)
    files = ["--vocabs", *(f"../{each}" for each in vocabularies)]
    sizes = ["0", "0"] if vocabularies == WORDS else ["100", "100"]
    words = [
        "--type", "transformer", "--dim-vocabs", *sizes, "--dim-emb", "8",
        "--transformer-dim-ffn", "12", "--transformer-heads", "2", "--enc-depth", "1",
        "--dec-depth", "1", "--after", "1000u", "--mini-batch", "16", "--learn-rate", "0.01",
        "--seed", "1", *flags,
    ]  # fmt: skip
    if "--dec-depth" in flags:
        place = words.index("--dec-depth")
        del words[place : place + 2]
    run(
        "train", *words, *files, folder=folder, more=[
            "--train-sets", str(corpus / "train.fr"), str(corpus / "train.en"),
            "--sentencepiece-options", SPM, "--overwrite", "--no-restore-corpus",
            "--workspace", "200",
        ],
    )  # fmt: skip
    for each in folder.iterdir():
        if each.name != "model.npz":
            each.unlink()
    sides = {"texts": texts, "others": others}
    for side, lines in sides.items():
        (folder / side).write_text("\n".join(lines) + "\n", encoding="utf-8")
    scores = run("score", *files, "--train-sets", *sides, folder=folder)
    expected = {"flags": " ".join(words), "vocabularies": vocabularies}
    expected["scores"] = [float(line) for line in scores]
    if "preprocess" not in expected["flags"] or "ssru" in flags:
        for kind, beam in (("greedy", 1), ("beam", BEAM)):
            asked = ["--input", "texts", "--beam-size", str(beam), "--max-length-factor", "9"]
            lines = run("decode", *files, *asked, folder=folder)
            expected[kind] = [line[:COMPARED] for line in lines]
    for side in sides:
        (folder / side).unlink()
    return expected


def run(*words, folder, more=()):
    """Run Marian in a folder, and return the lines it prints."""
    command = ["pymarian", *words, *more, "-m", "model.npz", "--cpu-threads", "1", "--quiet"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return done.stdout.splitlines()


if __name__ == "__main__":
    main()
