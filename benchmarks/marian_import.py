r"""The same sentences through Marian and through Dragoman, which imported Marian's model.

    PATH=$PATH:RIVALS/bin python benchmarks/marian_import.py --source FILE --target FILE \
        --test-source FILE --test-target FILE --models FOLDER

Trains a small model of each configuration with Marian itself (a minute or two; one that is in the
folder already is not trained again), imports it, and compares in float32: the translations of
greedy search and of a beam, and the log-probability of the given translations. Marian's decoder
does not normalise the keys of pre-norm models after the first word, as its trainer and scorer do:
the translations of these that must agree are those of its scorer, which finds what Dragoman wrote
as probable as Dragoman does. Where a beam differs, Marian's scorer says which translation is more
probable: Dragoman lets a hypothesis end beside those that go on, so that it finds more of these.
Needs the program “pymarian” (see marian_nmt.py).
"""

import argparse
import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from dragoman.data.batches import flatten, make_batch
from dragoman.data.corpus import read_lines
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.translator import Translator
from dragoman.exchange.marian import import_marian
from dragoman.folder import read_folder
from dragoman.models.likelihood import token_log_probabilities
from dragoman.weights import load_model
from marian_nmt import find_marian
from record import RESULTS, require_commit, write_result

JOINT = ("joint.spm", "joint.spm")
SIDES = ("source.spm", "target.spm")
WORDS = ("source.yml", "target.yml")
SUBWORDS, MOST_WORDS = 3000, 6000
BEAM = 4
BATCH = 16
COMPARED = 120  # characters and subwords: what repeats itself for ever ends elsewhere
TIE = 0.001  # nats between translations that float32 cannot tell apart


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """What a model is trained with, and whether Marian's scorer is the only oracle.

    So it is of pre-norm models, and of one that learns so little that its sentences do not end.
    """

    flags: str = ""
    vocabularies: tuple[str, str] = JOINT
    tied: str = "--tied-embeddings-all"
    by_scorer: bool = False


PRE = "--transformer-preprocess {0} --transformer-postprocess da --transformer-postprocess-top {1}"
CELLS = "--transformer-decoder-autoreg rnn --dec-cell ssru"
CONFIGURATIONS = {
    "post_norm": Configuration(),
    "pre_norm": Configuration(flags=PRE.format("nd", "n"), by_scorer=True),
    "cells": Configuration(flags=CELLS),
    "cells_pre_norm": Configuration(flags=f"{CELLS} {PRE.format('n', 'n')}"),
    "gelu": Configuration(flags="--transformer-ffn-activation gelu"),
    "two_vocabularies_relu": Configuration(
        flags="--transformer-ffn-activation relu", vocabularies=SIDES, tied="--tied-embeddings"
    ),
    "source_and_target_tied": Configuration(tied="--tied-embeddings-src"),
    "nothing_tied": Configuration(vocabularies=SIDES, tied=""),
    "words_no_output_bias": Configuration(
        flags="--output-omit-bias", vocabularies=WORDS, tied="--tied-embeddings"
    ),
    "tied_layers": Configuration(flags="--transformer-tied-layers 1 1"),
    "rms_norm": Configuration(flags="--transformer-postprocess dar", by_scorer=True),
    "rms_pre_norm": Configuration(flags=PRE.format("r", "r"), by_scorer=True),
    "no_positions": Configuration(flags="--transformer-disable-position-embeddings"),
    "wide_decoder": Configuration(flags="--transformer-decoder-dim-ffn 192"),
    "no_projection": Configuration(flags="--transformer-no-projection"),
}


class Marian:
    """Marian's programs, for one model of a folder."""

    def __init__(self, folder: Path, configuration: Configuration) -> None:
        self.folder = folder
        self._configuration = configuration
        files = [f"../{name}" for name in configuration.vocabularies]
        self._model = ["-m", "model.npz", "--vocabs", *files, "--cpu-threads", "1", "--quiet"]

    def train(self, num_updates: int) -> None:
        """Train the model, unless it is there."""
        if (self.folder / "model.npz").exists():
            return
        self.folder.mkdir(exist_ok=True)
        sizes = ["0", "0"] if self._configuration.vocabularies == WORDS else [str(SUBWORDS)] * 2
        self._run(
            "train", *self._model, "--type", "transformer", "--train-sets", *self._corpus(),
            "--dim-vocabs", *sizes, "--dim-emb", "64", "--transformer-dim-ffn", "128",
            "--transformer-heads", "4", "--enc-depth", "2", "--dec-depth", "2", "--after",
            f"{num_updates}u", "--mini-batch-words", "1000", "--maxi-batch", "100",
            "--learn-rate", "0.003", "--lr-warmup", "150", "--workspace", "1000", "--seed", "1",
            "--sentencepiece-max-lines", "30000", "--overwrite", "--no-restore-corpus",
            *self._configuration.tied.split(), *self._configuration.flags.split(),
        )  # fmt: skip
        (self.folder / "model.npz.optimizer.npz").unlink()

    def translate(self, texts: Sequence[str], beam_size: int) -> list[str]:
        """Translate lines."""
        words = [
            "--beam-size",
            str(beam_size),
            "--max-length-factor",
            "100",
            "--mini-batch",
            str(BATCH),
        ]
        return self._run("decode", *self._model, *words, text="\n".join(texts) + "\n").split("\n")

    def score(self, texts: Sequence[str], others: Sequence[str]) -> np.ndarray:
        """Find the log-probability of each given translation."""
        for name, lines in (("texts", texts), ("others", others)):
            (self.folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        found = self._run("score", *self._model, "--train-sets", "texts", "others")
        return np.array([float(line) for line in found.split()])

    def _corpus(self) -> list[str]:
        kind = ".words" if self._configuration.vocabularies == WORDS else ""
        return [f"../train.{side}{kind}" for side in ("source", "target")]

    def _run(self, *words: str, text: str = "") -> str:
        done = subprocess.run(
            [find_marian(), *words], cwd=self.folder, input=text, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"pymarian {words[0]} in {self.folder}: {done.stderr[-1000:]}")
        return done.stdout.removesuffix("\n")


class Ours:
    """What Dragoman makes of a model of Marian."""

    def __init__(self, model: Path, vocabularies: Sequence[Path], out: Path) -> None:
        import_marian(model, out, vocabularies=vocabularies)
        self._translator = Translator.load(out, "cpu", precision="float32")
        self.folder = read_folder(out)

    def translate(self, texts: Sequence[str], beam_size: int) -> list[str]:
        """Translate lines."""
        search = SearchOptions(
            beam_size=beam_size,
            length_penalty=0.0,
            max_extra_tokens=COMPARED,
            split_sentences="off",
            search_again=False,
        )
        found = [
            self._translator.translate_all(texts[start : start + BATCH], options=search)
            for start in range(0, len(texts), BATCH)
        ]
        return [each.text for batch in found for each in batch]

    @torch.inference_mode()
    def score(self, texts: Sequence[str], others: Sequence[str]) -> np.ndarray:
        """Find the log-probability of each given translation."""
        model, vocabularies = load_model(self.folder), self.folder.vocabularies
        scores = []
        for start in range(0, len(texts), BATCH):
            sides = [
                flatten(
                    [(*line, side.eos_id) for line in side.encode(lines[start : start + BATCH])]
                )
                for side, lines in zip(vocabularies, (texts, others), strict=True)
            ]
            batch = make_batch(*sides, vocabularies.pad_id)
            scores.append(token_log_probabilities(model, batch).sum(1))
        return torch.cat(scores).numpy()


def compare(
    theirs: Marian, ours: Ours, texts: Sequence[str], others: Sequence[str], *, by_scorer: bool
) -> tuple[dict[str, float], dict[str, object]]:
    """Translate and score the same sentences on both sides."""
    figures: dict[str, float] = {}
    notes: dict[str, object] = {}
    difference = np.abs(theirs.score(texts, others) - ours.score(texts, others))
    figures["largest_score_difference_nats"] = float(difference.max())
    for name, beam_size in (("greedy", 1), ("beam", BEAM)):
        found = ours.translate(texts, beam_size)
        if by_scorer:  # where Marian's decoder is no oracle, its scorer is
            difference = np.abs(theirs.score(texts, found) - ours.score(texts, found))
            figures[f"{name}_same_score_share"] = float((difference < TIE).mean())
            continue
        expected = theirs.translate(texts, beam_size)
        places = [
            place
            for place, (one, other) in enumerate(zip(found, expected, strict=True))
            if one[:COMPARED] != " ".join(other.split())[:COMPARED]
        ]
        few = [texts[place] for place in places]
        pairs = [[each[place] for place in places] for each in (found, expected)]
        scores = [theirs.score(few, each) if few else np.zeros(0) for each in pairs]
        worse = int((scores[0] < scores[1] - TIE).sum())
        figures[f"{name}_identical_share"] = 1 - len(places) / len(texts)
        figures[f"{name}_identical_or_as_probable_share"] = 1 - worse / len(texts)
        if places:
            columns = zip(*pairs, *(each.tolist() for each in scores), strict=True)
            notes[f"{name}_differences"] = [
                {"ours": one, "marian": other, "ours_nats": first, "marian_nats": second}
                for one, other, first, second in columns
            ]
    return figures, notes


def main() -> None:
    """Train, import, compare, and write what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("source", "target", "test-source", "test-target", "models"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--only", choices=CONFIGURATIONS, nargs="*", default=list(CONFIGURATIONS))
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--pairs", type=int, default=60_000)
    parser.add_argument("--updates", type=int, default=500)
    parser.add_argument("--name", default="marian_import", help="of the result")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    require_commit()
    given.models.mkdir(exist_ok=True)
    prepare(given.models, given.source, given.target, given.pairs)
    texts, others = (
        list(read_lines(each))[: given.sentences] for each in (given.test_source, given.test_target)
    )
    figures: dict[str, float] = {"marian_import_sentences": len(texts)}
    notes: dict[str, object] = {"beam": BEAM, "updates": given.updates}
    for name in given.only:
        configuration = CONFIGURATIONS[name]
        theirs = Marian(given.models / name, configuration)
        theirs.train(given.updates)
        is_words = configuration.vocabularies == WORDS
        sides = [
            [as_words(line) for line in side] if is_words else side for side in (texts, others)
        ]
        vocabularies = [given.models / each for each in configuration.vocabularies]
        with tempfile.TemporaryDirectory() as scratch:
            ours = Ours(theirs.folder / "model.npz", vocabularies, Path(scratch) / "model")
            own, remarks = compare(theirs, ours, *sides, by_scorer=configuration.by_scorer)
        figures |= {f"marian_import_{name}_{key}": value for key, value in own.items()}
        notes |= {f"{name}_{key}": value for key, value in remarks.items()}
        print(name, json.dumps(own), flush=True)
        path = write_result(given.name, figures, seeds=[1], notes=notes, folder=given.results)
    print(path)


def prepare(folder: Path, source: Path, target: Path, num_pairs: int) -> None:
    """Write the corpus, as it is and as words, and the vocabularies of words."""
    for side, path in (("source", source), ("target", target)):
        lines = list(read_lines(path))[:num_pairs]
        (folder / f"train.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
        words = [as_words(line) for line in lines]
        (folder / f"train.{side}.words").write_text("\n".join(words) + "\n", encoding="utf-8")
        counts = Counter(" ".join(words).split(" "))
        names = ["</s>", "<unk>", *(word for word, _ in counts.most_common(MOST_WORDS) if word)]
        text = "".join(f"{json.dumps(name)}: {place}\n" for place, name in enumerate(names))
        (folder / f"{side}.yml").write_text(text, encoding="utf-8")


def as_words(line: str) -> str:
    """Put spaces around punctuation marks, as those who train on words do."""
    return " ".join("".join(f" {c} " if c in '.,!?;:"' else c for c in line).split())


if __name__ == "__main__":
    main()
