"""Make `marian_binaries`: what Marian writes as binary models and short-lists, and says with them.

    PATH=$PATH:RIVALS/bin python tests/exchange/make_marian_binaries.py

Needs the program “pymarian” 1.12.42 (see benchmarks/marian_nmt.py). “layouts” has the same few
matrices in every form that it converts to; “student” a tiny model in eight bits, its vocabulary,
short-lists in text and binary, and “expected.json” with translations by greedy search, by the model
in 32 bits and in eight.
"""

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

OUT = Path(__file__).parent / "marian_binaries"
FORMS = (
    "float32", "intgemm8", "intgemm8ssse3", "intgemm8avx2", "intgemm8avx512",
    "intgemm8avx512vnni", "intgemm16", "intgemm16sse2", "intgemm16avx2", "intgemm16avx512",
)  # fmt: skip
NUM_SENTENCES = 60
NUM_FREQUENT, NUM_LIKELY = 10, 25
SHAPE = [
    "--type",
    "transformer",
    "--dim-vocabs",
    "100",
    "100",
    "--dim-emb",
    "64",
    "--transformer-dim-ffn",
    "64",
    "--enc-depth",
    "1",
    "--dec-depth",
    "1",
    "--transformer-heads",
    "2",
    "--transformer-decoder-autoreg",
    "rnn",
    "--dec-cell",
    "ssru",
    "--transformer-ffn-activation",
    "relu",
    "--tied-embeddings-all",
    "--after",
    "1500u",
    "--mini-batch",
    "24",
    "--learn-rate",
    "0.003",
    "--lr-warmup",
    "100",
    "--seed",
    "1",
    "--overwrite",
    "--no-restore-corpus",
    "--workspace",
    "200",
    "--sentencepiece-options",
    "--normalization_rule_name=identity",
]


def main() -> None:
    """Write both folders."""
    shutil.rmtree(OUT, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        write_layouts(OUT / "layouts")
        write_student(Path(scratch), OUT / "student")


def write_layouts(out: Path) -> None:
    """Let Marian write matrices in every form."""
    out.mkdir(parents=True)
    chance = np.random.default_rng(1)
    arrays = {
        "Wemb": chance.normal(size=(3, 8)),
        "encoder_l1_self_Wq": chance.normal(size=(64, 16)),
        "encoder_l1_ffn_W2": chance.normal(size=(128, 16)),
        "encoder_l1_self_bq": chance.normal(size=(1, 16)),
    }
    settings = np.frombuffer(b"type: transformer\n\0", np.int8)
    written = {name: each.astype(np.float32) for name, each in arrays.items()}
    np.savez(out / "float32.npz", **written, **{"special:model.yml": settings})
    for form in FORMS:
        convert(out / "float32.npz", out / f"{form}.bin", form)


def write_student(work: Path, out: Path) -> None:
    """Train a tiny model, write it in eight bits, and translate with it."""
    out.mkdir(parents=True)
    command = [
        "data",
        "builtin",
        "--pair",
        "fr-en",
        "--sentences",
        "3000",
        "--held-out",
        "60",
        "--out",
    ]
    subprocess.run([sys.executable, "-m", "dragoman", *command, work / "data"], check=True)
    files = [str(work / "data" / f"train.{side}") for side in ("fr", "en")]
    vocabularies = ["--vocabs", *[str(out / "vocab.spm")] * 2]
    model = str(work / "model.npz")
    run("train", *SHAPE, *vocabularies, "--train-sets", *files, "-m", model)
    convert(Path(model), out / "model.bin", "intgemm8")
    texts = (work / "data" / "test.fr").read_text(encoding="utf-8").splitlines()[:NUM_SENTENCES]
    (work / "texts").write_text("\n".join(texts) + "\n", encoding="utf-8")
    asked = ["--input", str(work / "texts"), "--beam-size", "1", "--max-length-factor", "9"]
    found: dict[str, object] = {"texts": texts}
    for kind, path in (("float32", model), ("int8", str(out / "model.bin"))):
        found[kind] = run("decode", *vocabularies, *asked, "-m", path)
    write_lexicon(texts, found["float32"], out)
    limits = [str(NUM_FREQUENT), str(NUM_LIKELY), "0"]
    run(
        "convert", *vocabularies, "--shortlist", str(out / "lex.s2t.gz"), *limits,
        "--dump-shortlist", str(out / "lex.s2t.bin"),
    )  # fmt: skip
    for each in out.glob("vocab.spm.*"):
        each.unlink()
    (out / "expected.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def write_lexicon(sources, targets, out) -> None:
    """Count which subwords occur together, as a table of probabilities."""
    import sentencepiece

    cut = sentencepiece.SentencePieceProcessor(model_file=str(out / "vocab.spm"))
    counts: dict[tuple[str, str], int] = {}
    for source, target in zip(sources, targets, strict=True):
        for one in set(cut.encode(source, out_type=str)):
            for other in set(cut.encode(target, out_type=str)):
                counts[other, one] = counts.get((other, one), 0) + 1
    # No two are equally likely: which of these Marian would take, nobody knows.
    lines = (
        f"{other} {one} {count / 100 - place / 1e6:.6f}\n"
        for place, ((other, one), count) in enumerate(counts.items())
    )
    (out / "lex.s2t.gz").write_bytes(gzip.compress("".join(sorted(lines)).encode(), mtime=0))


def convert(source: Path, target: Path, form: str) -> None:
    """Convert a model."""
    run("convert", "-f", str(source), "-t", str(target), "-g", form)


def run(*words: str) -> list[str]:
    """Run Marian, and return the lines it prints."""
    quiet = [] if words[0] == "convert" else ["--cpu-threads", "1", "--quiet"]
    command = ["pymarian", *words, *quiet]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return done.stdout.splitlines()


if __name__ == "__main__":
    main()
