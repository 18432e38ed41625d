"""Alignment error rate of a model's attention on the built-in corpus.

    python benchmarks/alignments.py MODEL [--pairs 500]

The model must be trained on a pair of the built-in corpus, such as the demonstration's
“demo/fr-en”. Its references are aligned, not its translations, since of those the grammar
knows the true alignment. Measured are the default (all layers together), each layer by itself, and
both with the attention while a word is being read, which comes a step later (Chen et al., 2020);
beside them what a diagonal gives, which knows nothing of words.
"""

import argparse
from pathlib import Path

from dragoman.data.builtin import LANGUAGE_PAIRS, generate_pairs
from dragoman.data.builtin.generator import link_spaced_words
from dragoman.decoding.output.alignments import Aligner
from dragoman.decoding.translator import Translator
from dragoman.evaluation.alignment import alignment_error_rate
from record import RESULTS, require_commit, write_result

SEED = 1


def diagonal(num_source: int, num_target: int) -> frozenset[tuple[int, int]]:
    """Align words by their place alone.

    Parameters
    ----------
    num_source : int
        Words of the source.
    num_target : int
        Words of the target.

    Returns
    -------
    frozenset[tuple[int, int]]
        A source word for each target word.
    """
    return frozenset((place * num_source // num_target, place) for place in range(num_target))


def main() -> None:
    """Measure, print a table and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="a model of a built-in language pair")
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    require_commit()
    translator = Translator.load(given.model, given.device)
    facts = translator.folder.facts
    languages = f"{facts.source_language}-{facts.target_language}"
    if languages not in LANGUAGE_PAIRS:
        parser.error(f"{given.model} translates {languages}, not {' or '.join(LANGUAGE_PAIRS)}")
    pairs = list(generate_pairs(languages, split="test", count=given.pairs, seed=SEED))
    texts = [(pair.source, pair.target) for pair in pairs]
    true = [link_spaced_words(pair) for pair in pairs]
    aligner = Aligner(translator.model, translator.folder.vocabularies, translator.device)
    prefix = f"builtin_{languages.replace('-', '_')}_alignment_error_rate"
    guesses = [diagonal(len(one.split()), len(other.split())) for one, other in texts]
    figures = {f"{prefix}_diagonal": alignment_error_rate(zip(guesses, true, strict=True))}
    ways = [("default", None), *((each, each) for each in aligner.layers())]
    for name, layer in ways:
        for is_shifted in (False, True):
            found = aligner.align(texts, layer=layer, is_shifted=is_shifted)
            key = f"{prefix}_{name.replace('.', '_')}{'_while_read' if is_shifted else ''}"
            figures[key] = alignment_error_rate(zip(found, true, strict=True))
    for key, value in figures.items():
        print(f"{value:6.1%}  {key.removeprefix(prefix + '_')}")
    name = f"alignments-{languages}"
    notes = {"pairs": given.pairs, "model": facts.scores, "steps": facts.steps}
    print(write_result(name, figures, seeds=[SEED], notes=notes, folder=given.results))


if __name__ == "__main__":
    main()
