"""Make `opus_zip`: a zip as OPUS-MT publishes them, of a tiny model that Marian trained.

    PATH=$PATH:RIVALS/bin python tests/exchange/make_opus_zip.py

Needs the program “pymarian” 1.12.42 (see benchmarks/marian_nmt.py). The model translates French
sentences of the built-in corpus to English (“>>eng<<”) and copies them (“>>fra<<”). “expected.json”
has sentences and what Marian makes of them in either language, greedily and with a beam.
"""

import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import sentencepiece

OUT = Path(__file__).parent / "opus_zip"
SENTENCES, BEAM, LONGEST = 8, 3, 70
MODEL, VOCABULARY = "opus1m.spm-spm.transformer.model1.npz", "opus1m.spm-spm.vocab.yml"
README = """# opus1m-2021-02-18.zip

* dataset: opus1m
* model: transformer
* source language(s): fra
* target language(s): eng fra
* raw source language(s): fra
* pre-processing: normalization + SentencePiece (spm,spm)
* a sentence initial language token is required in the form of `>>id<<`
"""
SCRIPT = "#!/bin/bash\ntouch /tmp/this-must-never-be-run\n"


def main() -> None:
    """Train the model, pack it, and write what Marian makes of sentences."""
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
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
        subprocess.run([sys.executable, "-m", "dragoman", *command, folder / "data"], check=True)
        texts = {name: lines_of(folder / "data" / f"train.{name}") for name in ("fr", "en")}
        models = {}
        for side in ("source", "target"):
            lines = texts["fr"] if side == "source" else [*texts["fr"], *texts["en"]]
            models[side] = learn_subwords(folder / f"{side}.spm", lines)
        pairs = [
            *zip([f">>eng<< {line}" for line in texts["fr"]], texts["en"], strict=True),
            *zip([f">>fra<< {line}" for line in texts["fr"]], texts["fr"], strict=True),
        ]
        for index, side in enumerate(("source", "target")):
            lines = [cut(models[side], pair[index]) for pair in pairs]
            write_lines(folder / f"train.{side}", lines)
        train(folder)
        every = lines_of(folder / "data" / "test.fr")
        sentences = [line for line in every if len(line) < LONGEST][:SENTENCES]
        expected: dict[str, object] = {"texts": sentences, "beam": BEAM}
        for target in ("eng", "fra"):
            lines = [cut(models["source"], f">>{target}<< {line}") for line in sentences]
            write_lines(folder / "texts", lines)
            for kind, beam in (("greedy", 1), ("beam", BEAM)):
                words = ["--input", "texts", "--beam-size", str(beam), "--max-length-factor", "9"]
                words += ["--normalize", "0", "-v", VOCABULARY, VOCABULARY]
                expected[f"{target} {kind}"] = run("decode", *words, folder=folder)
        pack(folder)
    text = json.dumps(expected, indent=1, ensure_ascii=False) + "\n"
    (OUT / "expected.json").write_text(text, encoding="utf-8")


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def learn_subwords(path: Path, lines: list[str]) -> sentencepiece.SentencePieceProcessor:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(path), vocab_size=250, minloglevel=2,
        normalization_rule_name="identity",
        hard_vocab_limit=False, num_threads=1,
    )  # fmt: skip
    path.with_name(f"{path.name}.model").rename(path)
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def cut(model: sentencepiece.SentencePieceProcessor, text: str) -> str:
    """Cut as preprocess.sh does: what tells the target language stands before the pieces."""
    mark, space, rest = text.partition("<< ")
    head = [mark + space.strip()] if space else []
    return " ".join([*head, *model.encode(rest if space else text, out_type=str)])


def train(folder: Path) -> None:
    lines = [*lines_of(folder / "train.source"), *lines_of(folder / "train.target")]
    pieces = sorted({piece for line in lines for piece in line.split()})
    names = ["</s>", "<unk>", *pieces]
    entries = [f"{json.dumps(name, ensure_ascii=False)}: {i}" for i, name in enumerate(names)]
    write_lines(folder / VOCABULARY, entries)
    run(
        "train", "--type", "transformer", "--dim-emb", "24", "--transformer-dim-ffn", "32",
        "--transformer-heads", "2", "--enc-depth", "1", "--dec-depth", "1", "--after", "3000u",
        "--mini-batch", "16", "--learn-rate", "0.008", "--seed", "1", "--tied-embeddings-all",
        "-v", VOCABULARY, VOCABULARY, "--train-sets", "train.source", "train.target",
        "--overwrite", "--no-restore-corpus", "--workspace", "200", folder=folder,
    )  # fmt: skip


def run(*words, folder):
    """Run Marian in a folder, and return the lines it prints."""
    command = ["pymarian", words[0], "-m", MODEL, "--cpu-threads", "1", "--quiet", *words[1:]]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return done.stdout.splitlines()


def pack(folder: Path) -> None:
    """Write the zip with the files that OPUS-MT's have."""
    names = [MODEL, VOCABULARY, "source.spm", "target.spm"]
    contents = {name: (folder / name).read_bytes() for name in names}
    settings = [
        "relative-paths: true", "models:", f"  - {MODEL}", "vocabs:", f"  - {VOCABULARY}",
        f"  - {VOCABULARY}", "beam-size: 6", "normalize: 1", "word-penalty: 0", "mini-batch: 1",
    ]  # fmt: skip
    contents["decoder.yml"] = "\n".join(settings).encode()
    contents["README.md"], contents["preprocess.sh"] = README.encode(), SCRIPT.encode()
    contents["LICENSE"] = b"Attribution 4.0 International\n"
    with zipfile.ZipFile(OUT / "opus1m-2021-02-18.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, each in contents.items():
            zipped.writestr(zipfile.ZipInfo(name, (2021, 2, 18, 0, 0, 0)), each)


if __name__ == "__main__":
    main()
