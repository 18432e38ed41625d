"""The same sentences through Dragoman and through the tools that a model is exported to.

    python benchmarks/exchange.py --model MODEL --source FILE --target FILE

Exports a trained model to Hugging Face, CTranslate2 and Argos Translate and compares, in float32:
the tokens of greedy search, and the log-probability of given translations. What cannot be exported
is named in the result. Then imports what was written for CTranslate2, in float32 and in int8, and
for Argos, and compares translations with those of the original engine, greedily and with a beam. A
beam of CTranslate2 lets a hypothesis end only where that is among its best few, so some
translations differ; then it is counted where ours is at least as probable by CTranslate2's own
scores. Needs the packages transformers, ctranslate2 and argostranslate.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from dragoman.data.batches import flatten, make_batch, pad_sequences
from dragoman.data.corpus import read_lines
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search.beam import search
from dragoman.decoding.translator import Translator
from dragoman.errors import FolderError
from dragoman.evaluation.bleu import score_translations
from dragoman.exchange.argos import export_argos
from dragoman.exchange.ctranslate2 import export_ctranslate2
from dragoman.exchange.foreign_model import import_model
from dragoman.exchange.huggingface import export_huggingface, import_huggingface
from dragoman.folder import read_folder
from dragoman.models.likelihood import token_log_probabilities
from dragoman.weights import load_model, vocabulary_of
from record import RESULTS, require_commit, write_result

BATCH = 50
LONGEST = 256  # tokens of a translation; the tools differ in what they do with the last few
COMPARED = 250
BEAM, PATIENCE = 4, 5
IMPORTED = 500
TIE = 1e-3  # nats
# Argos keeps folders and models for the whole process, so it has one of its own, offline.
ARGOS = """
import json, pathlib, socket, sys

def refuse(*_, **__):
    raise OSError("no Internet in this measurement")

socket.socket.connect = socket.create_connection = refuse
from argostranslate import package, translate
package.install_from_path(pathlib.Path(sys.argv[1]))
source, target, texts = json.load(sys.stdin)
translation = translate.get_translation_from_codes(source, target)
print(json.dumps([translation.translate(text) for text in texts]))
"""


class Ours:
    """A model folder: greedy translations as pieces, and log-probabilities."""

    def __init__(self, path: Path) -> None:
        self.folder = read_folder(path)
        self.model = load_model(self.folder)

    def translate(self, texts: Sequence[str]) -> list[list[str]]:
        """Translate greedily."""
        source, target = self.folder.vocabularies
        found = []
        for batch in batches(texts):
            ids = flatten([(*line, source.eos_id) for line in source.encode(batch)])
            found += search(
                self.model,
                pad_sequences(ids, source.pad_id),
                SearchOptions(beam_size=1, max_extra_tokens=LONGEST),
                vocabulary_of(self.folder.vocabularies),
                num_best=1,
                banned_ids=(target.unk_id,),
                max_length=LONGEST,
            )
        return [target.pieces(best.tokens) for best, *_ in found]

    @torch.inference_mode()
    def score(self, texts: Sequence[str], others: Sequence[str]) -> torch.Tensor:
        """Find the log-probability of each given translation."""
        scores = []
        for pairs in zip(batches(texts), batches(others), strict=True):
            sides = [
                flatten([(*line, side.eos_id) for line in side.encode(lines)])
                for side, lines in zip(self.folder.vocabularies, pairs, strict=True)
            ]
            batch = make_batch(*sides, self.folder.vocabularies.pad_id)
            scores.append(token_log_probabilities(self.model, batch).sum(1))
        return torch.cat(scores)


class HuggingFace:
    """The same of a MarianMT folder."""

    def __init__(self, path: Path) -> None:
        from transformers import MarianMTModel, MarianTokenizer

        self.tokeniser = MarianTokenizer.from_pretrained(path)
        self.model = MarianMTModel.from_pretrained(path).eval()

    def translate(self, texts: Sequence[str]) -> list[list[str]]:
        """Translate greedily."""
        special = {self.tokeniser.pad_token, self.tokeniser.eos_token}
        found = []
        for lines in batches(texts):
            batch = self.tokeniser(lines, return_tensors="pt", padding=True)
            rows = self.model.generate(**batch, num_beams=1, do_sample=False, max_length=LONGEST)
            names = [self.tokeniser.convert_ids_to_tokens(row) for row in rows]
            found += [[name for name in row if name not in special] for row in names]
        return found

    @torch.inference_mode()
    def score(self, texts: Sequence[str], others: Sequence[str]) -> torch.Tensor:
        """Find the log-probability of each given translation."""
        scores = []
        for lines, translations in zip(batches(texts), batches(others), strict=True):
            batch = self.tokeniser(
                lines, text_target=translations, return_tensors="pt", padding=True
            )
            labels = batch["labels"]
            chosen = self.model(**batch).logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1))
            is_word = labels != self.tokeniser.pad_token_id
            scores.append(chosen.squeeze(-1).where(is_word, 0.0).sum(1))
        return torch.cat(scores)


class CTranslate2:
    """The same of a CTranslate2 folder, cut with the SentencePiece models that lie in it."""

    def __init__(self, path: Path, compute_type: str = "float32") -> None:
        import ctranslate2
        import sentencepiece

        self.translator = ctranslate2.Translator(str(path), compute_type=compute_type)
        self.sides = [
            sentencepiece.SentencePieceProcessor(model_file=str(path / f"{side}.spm"))
            for side in ("source", "target")
        ]

    def translate(self, texts: Sequence[str]) -> list[list[str]]:
        """Translate greedily."""
        return self.search(texts, 1)

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        """Cut source texts."""
        return self.sides[0].encode(list(texts), out_type=str)

    def decode(self, lines: Sequence[list[str]]) -> list[str]:
        """Join the pieces of translations."""
        return self.sides[1].decode(list(lines))

    def search(self, texts: Sequence[str], beam: int) -> list[list[str]]:
        """Translate by log-probability alone."""
        found = self.translator.translate_batch(
            self.cut(texts),
            beam_size=beam,
            length_penalty=0,
            patience=1 if beam == 1 else PATIENCE,
            max_batch_size=BATCH,
            disable_unk=True,
            max_decoding_length=LONGEST,
        )
        return [each.hypotheses[0] for each in found]

    def score(self, texts: Sequence[str], others: Sequence[str]) -> torch.Tensor:
        """Find the log-probability of each given translation."""
        pieces = [
            side.encode(list(lines), out_type=str)
            for side, lines in zip(self.sides, (texts, others), strict=True)
        ]
        found = self.translator.score_batch(*pieces, max_batch_size=BATCH)
        return torch.tensor([sum(each.log_probs) for each in found])


def compare_imports(
    model: Path, texts: list[str], truths: list[str], folder: Path
) -> dict[str, float]:
    """Compare imported models with the engine that they come from."""
    figures: dict[str, float] = {}
    for kind in ("float32", "int8"):
        theirs, back = folder / f"for-import-{kind}", folder / f"imported-{kind}"
        export_ctranslate2(model, theirs, kind)
        import_model(theirs, back)
        original = CTranslate2(theirs, kind)
        translator = Translator.load(back, "cpu", (), kind)
        for name, beam in (("greedy", 1), ("beam", BEAM)):
            found = original.search(texts, beam)
            own = search_alone(translator, texts, beam)
            same = [one == other for one, other in zip(own, found, strict=True)]
            prefix = f"import_ctranslate2_{kind}_{name}"
            figures[f"{prefix}_identical_tokens_share"] = sum(same) / len(same)
            if kind == "float32":
                figures[f"{prefix}_at_least_as_probable_share"] = compare_scores(
                    original, texts, own, found
                )
            scores = [bleu(original.decode(each), truths) for each in (own, found)]
            figures[f"{prefix}_bleu"], figures[f"{prefix}_bleu_of_original"] = scores
    return figures


def search_alone(
    translator: Translator, texts: Sequence[str], beam: int, splits: str = "off"
) -> list[list[str]]:
    """Translate lines by log-probability alone."""
    said = {
        "beam_size": beam, "length_penalty": 0.0, "split_sentences": splits, "search_again": False,
        "max_extra_tokens": LONGEST,
    }  # fmt: skip
    found = translator.translate_all(texts, options=translator.options_with(said))
    target = translator.folder.vocabularies.target
    return [
        target.pieces([token for token in each.tokens if token != target.eos_id]) for each in found
    ]


def compare_scores(
    original: CTranslate2, texts: Sequence[str], own: list[list[str]], found: list[list[str]]
) -> float:
    """Find the share of translations that the original finds as probable as its own, or more."""
    pieces = original.cut(texts)
    ours, theirs = (
        [sum(each.log_probs) for each in original.translator.score_batch(pieces, lines)]
        for lines in (own, found)
    )
    return sum(one >= other - TIE for one, other in zip(ours, theirs, strict=True)) / len(ours)


def bleu(translations: Sequence[str], truths: list[str]) -> float:
    """Score translations."""
    (score,) = score_translations(translations, [truths], metrics=["bleu"])
    return score.value


def batches(lines: Sequence[str]) -> Iterator[list[str]]:
    """Cut lines into equal batches."""
    for start in range(0, len(lines), BATCH):
        yield list(lines[start : start + BATCH])


def translate_with_argos(
    package: Path, folder: Path, texts: list[str], pair: list[str], kind: str = "float32"
) -> list:
    """Install a package in a process of its own and translate greedily."""
    places = ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    settings = {"ARGOS_COMPUTE_TYPE": kind, "ARGOS_BEAM_SIZE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ARGOS, str(package)],
        input=json.dumps([*pair, texts]),
        env=os.environ | dict.fromkeys(places, str(folder)) | settings,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Export, run every tool, and write what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    require_commit()
    texts, others = (
        list(read_lines(each))[: given.sentences] for each in (given.source, given.target)
    )
    ours = Ours(given.model)
    expected, scores = ours.translate(texts), ours.score(texts, others)
    figures: dict[str, float] = {"exchange_sentences": len(texts)}
    notes: dict[str, object] = {"model": given.model.name}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)

        def compare(name: str, tool: Ours | HuggingFace | CTranslate2) -> None:
            found = tool.translate(texts)
            same = [a[:COMPARED] == b[:COMPARED] for a, b in zip(found, expected, strict=True)]
            figures[f"exchange_{name}_identical_tokens_share"] = sum(same) / len(same)
            difference = (tool.score(texts, others) - scores).abs().max().item()
            figures[f"exchange_{name}_largest_score_difference_nats"] = difference

        export_ctranslate2(given.model, folder / "ctranslate2")
        compare("ctranslate2", CTranslate2(folder / "ctranslate2"))
        try:
            export_huggingface(given.model, folder / "huggingface")
        except FolderError as error:
            notes["huggingface"] = str(error).replace(str(given.model), given.model.name)
        else:
            compare("huggingface", HuggingFace(folder / "huggingface"))
            import_huggingface(folder / "huggingface", folder / "back", None, None)
            compare("huggingface_there_and_back", Ours(folder / "back"))
        figures |= compare_argos(given.model, ours, texts[:IMPORTED], expected[:IMPORTED], folder)
        figures |= compare_imports(given.model, texts[:IMPORTED], others[:IMPORTED], folder)
    print(json.dumps(figures, indent=1))
    print(write_result("exchange", figures, seeds=[], notes=notes, folder=given.results))


def compare_argos(
    model: Path, ours: Ours, texts: list[str], expected: list[list[str]], folder: Path
) -> dict[str, float]:
    """Translate with an exported Argos package, and with the same package imported again."""
    package, facts = folder / "model.argosmodel", ours.folder.facts
    export_argos(model, package)
    pair = [facts.source_language or "", facts.target_language or ""]
    found = translate_with_argos(package, folder / "argos", texts, pair)
    import_model(package, folder / "imported-argos")
    translator = Translator.load(folder / "imported-argos", "cpu", (), "float32")
    own = search_alone(translator, texts, 1, "on")
    figures: dict[str, float] = {
        "exchange_argos_translated_sentences": sum(bool(text) for text in found)
    }
    for name, pieces in (("exchange", expected), ("import", own)):
        plain = [text.replace("_", " ") for text in decoded(ours, pieces)]
        same = [one == other for one, other in zip(found, plain, strict=True)]
        figures[f"{name}_argos_identical_text_share"] = sum(same) / len(same)
    return figures


def decoded(ours: Ours, pieces: list[list[str]]) -> list[str]:
    """Join pieces."""
    target = ours.folder.vocabularies.target
    ids = {name: piece_id for piece_id, name in enumerate(target.pieces(range(len(target))))}
    return target.decode([[ids[piece] for piece in line] for line in pieces])


if __name__ == "__main__":
    main()
