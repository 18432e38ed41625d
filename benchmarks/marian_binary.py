"""A student of the Firefox shape, imported from Marian's binary file: how fast, and how faithful.

    PATH=$PATH:RIVALS/bin python benchmarks/marian_binary.py --source FILE --target FILE
        --test-source FILE [--sentences 1000] [--rounds 5] [--core 0] [--work FOLDER]
    PATH=$PATH:RIVALS/bin python benchmarks/marian_binary.py --trained MODEL
        --test-source FILE --test-target FILE

The student has 6 encoder layers and 2 decoder layers with SSRU cells, 256 and 1,536 wide, 8 heads,
and 32,000 subwords that both sides and the output share. Marian itself learns its subwords from the
given files, makes its weights (of one update: its end symbol is forbidden, so every translation
becomes as long as its source, where it is cut off), writes it in eight bits (intgemm8) and makes
its binary short-list (100 and 100 words, from a table that Dragoman learns). Dragoman imports both.
Each system translates the same raw lines, greedy, in a process of its own on one core, with the
short-list, in turns; Marian takes batches of 32 sentences. Loading does not count. Seconds are
those of the clock and, beside them, of the processor, which others on the machine disturb less.
Source words are those between spaces.

With --trained, a model folder of ours is written for Marian, put into eight bits by Marian and
imported again: BLEU of all on the test lines. Marian's decoder is no oracle for models with norms
before the sub-layers: it does not normalise keys after the first word. Needs the program “pymarian”
(see marian_nmt.py).
"""

import argparse
import gzip
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dragoman.data.corpus import read_lines
from marian_nmt import find_marian
from record import RESULTS, require_commit, write_result

SUBWORDS = 32_000
SHAPE = (
    f"--type transformer --dim-vocabs {SUBWORDS} {SUBWORDS} --dim-emb 256 --transformer-dim-ffn "
    "1536 --transformer-heads 8 --enc-depth 6 --dec-depth 2 --transformer-decoder-autoreg rnn "
    "--dec-cell ssru --transformer-ffn-activation relu --tied-embeddings-all --after 1u "
    "--mini-batch 32 --workspace 1000 --cpu-threads 1 --seed 1"
).split()
MOST_LEARNT = 40_000  # sentence pairs, for subwords and short-list
LEAST_PROBABILITY = 1e-4
LIMITS = ["100", "100", "0"]
SEARCH = [
    "--beam-size", "1", "--cpu-threads", "1", "--mini-batch", "32", "--maxi-batch", "100",
    "--maxi-batch-sort", "src", "--skip-cost", "--workspace", "512", "--quiet-translation",
]  # fmt: skip
TIME = re.compile(r"Total time: ([\d.]+)s wall")
WARM_UP = 32
TARGET = 3900
"""Source words a second: what was published of Bergamot's tiny student on a core with VNNI."""


def main() -> None:
    """Make the student, time both in turns, and write the result."""
    given = read_options()
    if given.child:
        print(json.dumps(translate_ours(given.child, given.lines)))
        return
    require_commit()
    figures: dict[str, float] = {}
    notes: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as scratch:
        work = given.work or Path(scratch)
        work.mkdir(exist_ok=True)
        lines = [" ".join(line.split()) for line in read_lines(given.test_source)]
        if given.trained:
            compare(given.trained, lines, list(read_lines(given.test_target)), work, figures)
        else:
            make_student(given.source, given.target, work)
            measure(work, lines[: given.sentences], given, figures, notes)
    name = "marian_binary" + ("-trained" if given.trained else "-firefox-shape")
    print(json.dumps(figures, indent=1))
    print(write_result(name, figures, seeds=[1], notes=notes, folder=given.results))


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, help="text to learn subwords and short-list from")
    parser.add_argument("--target", type=Path)
    parser.add_argument("--test-source", type=Path)
    parser.add_argument("--test-target", type=Path)
    parser.add_argument("--trained", type=Path, metavar="MODEL")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--work", type=Path, help="a folder that keeps the student")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--lines", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def make_student(source: Path, target: Path, work: Path) -> None:
    """Let Marian make a student and its short-list, and import both, unless they are there."""
    if (work / "imported").exists():
        return
    pairs = [list(read_lines(path))[:MOST_LEARNT] for path in (source, target)]
    files = [work / "train.source", work / "train.target"]
    for path, lines in zip(files, pairs, strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    vocabularies = ["--vocabs", *[str(work / "vocab.spm")] * 2]
    first, model = work / "first.npz", work / "model.npz"
    run("train", *SHAPE, *vocabularies, "--train-sets", *map(str, files), "-m", str(first))
    with np.load(first) as file:
        arrays = dict(file)
    bias = arrays["decoder_ff_logit_out_b"].copy()
    bias[0, :2] = -1e4  # neither the end nor the unknown word
    np.savez(model, **arrays | {"decoder_ff_logit_out_b": bias})
    folder = work / "binary"
    folder.mkdir(exist_ok=True)
    (folder / "vocab.spm").write_bytes((work / "vocab.spm").read_bytes())
    run("convert", "-f", str(model), "-t", str(folder / "model.intgemm8.bin"), "-g", "intgemm8")
    write_lexicon(pairs, work / "vocab.spm", folder / "lex.s2t.gz")
    run(
        "convert", *vocabularies, "--shortlist", str(folder / "lex.s2t.gz"), *LIMITS,
        "--dump-shortlist", str(folder / "lex.s2t.bin"),
    )  # fmt: skip
    import_folder(folder, work / "imported")


def import_folder(path: Path, out: Path) -> None:
    """Import a model of Marian."""
    command = [sys.executable, "-m", "dragoman", "import", str(path), str(out)]
    subprocess.run(command, check=True)


def write_lexicon(pairs: Sequence[Sequence[str]], vocabulary: Path, path: Path) -> None:
    """Learn which target subword is how probable for a source subword."""
    import sentencepiece

    from dragoman.text.lexicon import learn_lexicon

    cut = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary))
    sides = [[np.array([*ids, 0]) for ids in cut.encode(list(lines))] for lines in pairs]
    lexicon = learn_lexicon(*sides, len(cut), num_iterations=3)
    names = cut.id_to_piece(list(range(len(cut))))
    with gzip.open(path, "wt", encoding="utf-8") as file:
        entries = zip(lexicon.sources, lexicon.targets, lexicon.probabilities, strict=True)
        for source, target, probability in entries:
            if probability > LEAST_PROBABILITY:
                file.write(f"{names[target]} {names[source]} {probability:.8f}\n")


def measure(
    work: Path,
    lines: Sequence[str],
    given: argparse.Namespace,
    figures: dict[str, float],
    notes: dict[str, object],
) -> None:
    """Time both systems in turns on one core."""
    texts = {"all": work / "lines", "few": work / "few"}
    for name, chosen in (("all", lines), ("few", lines[:WARM_UP])):
        texts[name].write_text("".join(f"{line}\n" for line in chosen), encoding="utf-8")
    systems = {"dragoman": time_ours, "marian": time_marian}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in systems}
    for _ in range(given.rounds):
        for name, work_once in systems.items():
            runs[name].append(work_once(work, texts, given.core))
            print(name, runs[name][-1], flush=True)
    num_words = sum(len(line.split()) for line in lines)
    for name, found in runs.items():
        for kind in ("wall", "cpu"):
            seconds = statistics.median(each[kind] for each in found)
            figures[f"{name}_source_words_per_{kind}_second"] = num_words / seconds
    for kind in ("wall", "cpu"):
        ours, theirs = (figures[f"{name}_source_words_per_{kind}_second"] for name in systems)
        figures[f"speed_ratio_to_marian_by_{kind}"] = ours / theirs
    figures["target_source_words_per_second"] = TARGET
    notes |= {"sentences": len(lines), "source_words": num_words, "rounds": given.rounds,
              "seconds": runs, "load_average": os.getloadavg()}  # fmt: skip


def time_ours(work: Path, texts: dict[str, Path], core: int) -> dict[str, float]:
    """Translate with the imported model."""
    words = ["--child", str(work / "imported"), "--lines", str(texts["all"])]
    command = ["taskset", "-c", str(core), sys.executable, __file__, *words]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def translate_ours(folder: Path, path: Path) -> dict[str, float]:
    """Translate in this process, once to warm up, and say what it took."""
    from dragoman.decoding.constraints.constraints import Constraints
    from dragoman.decoding.search.shortlist import ShortList
    from dragoman.decoding.translator import Translator

    translator = Translator.load(folder, "cpu")
    translator.short_list = ShortList.read(translator.folder)
    options = translator.options_with(
        {"beam_size": 1, "max_extra_tokens": 0, "search_again": False, "split_sentences": "off"}
    )
    lines = path.read_text(encoding="utf-8").splitlines()
    constraints = Constraints(is_scored=False)
    translator.translate_all(lines[:WARM_UP], options=options, constraints=constraints)
    wall, cpu = time.perf_counter(), time.process_time()
    found = translator.translate_all(lines, options=options, constraints=constraints)
    return {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "target_subwords": sum(len(each.tokens) for each in found),
    }


def time_marian(work: Path, texts: dict[str, Path], core: int) -> dict[str, float]:
    """Translate with Marian; what it takes for a few lines is what it needs to load."""
    folder = work / "binary"
    found = []
    for name in ("few", "all"):
        words = [
            "decode", "-m", str(folder / "model.intgemm8.bin"), "--vocabs",
            *[str(folder / "vocab.spm")] * 2, "--input", str(texts[name]), *SEARCH,
            "--max-length-factor", "1",
            # Its check of what it wrote itself fails, so it is told not to check.
            "--shortlist", str(folder / "lex.s2t.bin"), "false",
        ]  # fmt: skip
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        log = run(*words, prefix=["taskset", "-c", str(core)]).stderr
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        wall = TIME.search(log)
        if wall is None:
            raise RuntimeError(f"Marian says no time: {log[-500:]}")
        found.append({"wall": float(wall[1]), "cpu": cpu})
    few, every = found
    return {"wall": every["wall"], "cpu": every["cpu"] - few["cpu"]}


def compare(
    trained: Path, lines: Sequence[str], references: list[str], work: Path, figures: dict
) -> None:
    """Compare BLEU of a trained model on all ways between Dragoman and Marian."""
    import sacrebleu

    folder = work / "trained"
    command = [sys.executable, "-m", "dragoman", "export", str(trained), "--to", "marian"]
    subprocess.run([*command, str(folder)], check=True)
    floats, integers = folder / "model.npz", work / "eight" / "model.bin"
    integers.parent.mkdir()
    for name in ("source.spm", "target.spm"):
        (integers.parent / name).write_bytes((folder / name).read_bytes())
    run("convert", "-f", str(floats), "-t", str(integers), "-g", "intgemm8")
    (integers.parent / f"{integers.name}.decoder.yml").write_text(
        "vocabs: [source.spm, target.spm]\n"
    )
    text = work / "text"
    text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found: dict[str, list[str]] = {}
    for kind, path in (("float32", floats), ("int8", integers)):
        vocabularies = ["--vocabs", *(str(folder / f"{side}.spm") for side in ("source", "target"))]
        words = [*vocabularies, "--input", str(text), *SEARCH, "--max-length-factor", "3"]
        found[f"marian_{kind}"] = run("decode", "-m", str(path), *words).stdout.splitlines()
        import_folder(path, work / f"imported-{kind}")
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", "translate", work / f"imported-{kind}", text,
             "--beam-size=1", "--no-search-again", "--split-sentences=off"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        found[f"dragoman_{kind}"] = done.stdout.splitlines()
    for name, texts in found.items():
        figures[f"{name}_bleu"] = sacrebleu.corpus_bleu(texts, [references]).score
        same = sum(map(str.__eq__, texts, found["marian_float32"]))
        figures[f"{name}_same_as_marian_float32_share"] = same / len(lines)


def run(*words: str, prefix: Sequence[str] = ()) -> subprocess.CompletedProcess:
    """Run Marian."""
    command = [*prefix, find_marian(), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return done


if __name__ == "__main__":
    main()
