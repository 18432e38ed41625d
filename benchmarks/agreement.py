"""Whether a model says the same whichever engine, device, batch and order translates.

    python benchmarks/agreement.py MODEL --source FILE --target FILE [--single 200] [--beams 4 1]

MODEL is a folder of “dragoman train”. The plain engine is the model as it was trained, on a CPU in
float32. Every other way to translate on this machine is held against it: the share of sentences
whose translation is the same, letter for letter, and its BLEU. What differs in float32 differs by
ties: two translations whose scores are equal but for the order of a sum.
"""

import argparse
import random
from collections.abc import Callable
from pathlib import Path

import torch

from dragoman.data.corpus import read_lines
from dragoman.decoding.translator import Translator
from dragoman.evaluation.bleu import corpus_bleu
from dragoman.folder import read_folder
from dragoman.kernels.processor import can_compile
from dragoman.weights import load_model
from record import RESULTS, require_commit, write_result

SEED = 1
WAYS = {
    "cpu": ("cpu_plain_float32", "cpu_fast_float32", "cpu_fast_int8"),
    "cuda": ("cuda_plain_float32", "cuda_fast_float32", "cuda_fast_float16"),
}


def main() -> None:
    """Translate in every way, compare, print and write the result."""
    given = _read_options()
    require_commit()
    lines = list(read_lines(given.source))
    references = list(read_lines(given.target))
    ways = [*WAYS["cpu"]] + ([*WAYS["cuda"]] if torch.cuda.is_available() else [])
    if not can_compile():
        ways.remove("cpu_fast_int8")
    order = list(range(len(lines)))
    random.Random(SEED).shuffle(order)
    figures: dict[str, float] = {}
    for beam in given.beams:
        search = "greedy" if beam == 1 else f"beam{beam}"
        plain: list[str] = []
        for way in ways:
            translate = load_way(way, given.model, beam)
            found = translate(lines)
            plain = plain or found
            mixed = translate([lines[place] for place in order])
            alone = [translate([lines[place]])[0] for place in order[: given.single]]
            same = [found[place] for place in order]
            seen = {
                "bleu": corpus_bleu(found, [references]),
                "same_as_plain": _share(found, plain),
                "same_alone": _share(alone, same[: given.single]),
                "same_in_other_order": _share(mixed, same),
            }
            figures |= {f"{search}_{name}_{way}": value for name, value in seen.items()}
            told = ", ".join(f"{name} {value:.3f}" for name, value in seen.items())
            print(f"{search} {way}: {told}", flush=True)
    notes = {"sentences": len(lines), "alone": given.single, "source": given.source.name}
    print(write_result("agreement", figures, seeds=[SEED], notes=notes, folder=given.results))


def _read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--single", type=int, default=200, help="sentences also translated alone")
    parser.add_argument("--beams", type=int, nargs="+", default=[4, 1])
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def load_way(way: str, path: Path, beam_size: int) -> Callable[[list[str]], list[str]]:
    """Load a model for one way to translate.

    Parameters
    ----------
    way : str
        Device, engine and precision.
    path : Path
        The model folder.
    beam_size : int
        Hypotheses.

    Returns
    -------
    Callable[[list[str]], list[str]]
        Translates some lines together.
    """
    device, engine, precision = way.split("_")
    if engine == "plain":
        folder, where = read_folder(path), torch.device(device)
        translator = Translator(folder, load_model(folder).to(where).eval(), where)
    else:
        translator = Translator.load(path, device, precision=precision)
    options = translator.options_with({"beam_size": beam_size})
    return lambda lines: [each.text for each in translator.translate_all(lines, options=options)]


def _share(found: list[str], other: list[str]) -> float:
    return sum(one == two for one, two in zip(found, other, strict=True)) / len(found)


if __name__ == "__main__":
    main()
