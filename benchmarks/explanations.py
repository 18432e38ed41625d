"""Whether explanations tell the truth: RISE, occlusion, gradient × input and attention compared.

    python benchmarks/explanations.py MODEL [--pairs 150]

The model must be trained on a pair of the built-in corpus, such as the demonstration's
“demo/fr-en”, of which the true word alignment is known. The model is made to say the references.
Measured are how often the source word that each account finds most important for a target word is
one that it truly translates; how well RISE from a hundred random masks ranks what it would find
from all masks, and how well that ranks what leaving out each word by itself finds, among the
effects that change a probability by a twentieth or more; whether its errors are as large as they
say; and what regressing on all words together gains over the mean difference of each.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from dragoman.data.builtin import LANGUAGE_PAIRS, generate_pairs
from dragoman.data.builtin.generator import link_spaced_words
from dragoman.decoding.translator import Translator
from dragoman.insight.explanation import NUM_MASKS, explain
from dragoman.insight.rise import HIDDEN_SHARE, MaskedScorer, Rise, occlude, regress
from record import RESULTS, require_commit, write_result

SEED = 1
FEW_MASKS = 100
MOST_WORDS = 14
LEAST_EFFECT = 0.05
SHORT = range(6, 9)


def correlate_ranks(one: np.ndarray, other: np.ndarray) -> float:
    """Compute Spearman's correlation.

    Parameters
    ----------
    one : np.ndarray
        Numbers.
    other : np.ndarray
        As many.

    Returns
    -------
    float
        From −1 to 1.
    """
    ranks = [np.argsort(np.argsort(each.ravel())) for each in (one, other)]
    return float(np.corrcoef(*ranks)[0, 1])


def measure_short(scorer: MaskedScorer, seed: int) -> dict[str, float]:
    """Compare estimates with what they estimate, where all masks can be tried.

    Parameters
    ----------
    scorer : MaskedScorer
        A sentence of few words.
    seed : int
        Of the masks.

    Returns
    -------
    dict[str, float]
        Correlations, squared errors in units of the stated ones, and variances.
    """
    exact = Rise(scorer, 1 << scorer.num_words).estimate().values
    found = Rise(scorer, min(FEW_MASKS, (1 << scorer.num_words) - 1), seed=seed).estimate()
    alone = occlude(scorer)
    matters, counts = np.abs(alone) >= LEAST_EFFECT, np.abs(exact) >= LEAST_EFFECT
    random = np.random.default_rng(seed)
    visible = random.random((FEW_MASKS, scorer.num_words)) > HIDDEN_SHARE
    scores = scorer.score(visible)
    apart = np.stack([scores[one].mean(0) - scores[~one].mean(0) for one in visible.T], axis=1)
    return {
        "rank_correlation_with_all_masks": correlate_ranks(found.values[counts], exact[counts]),
        "rank_correlation_with_occlusion": correlate_ranks(exact[matters], alone[matters]),
        "rank_correlation_with_occlusion_of_words": correlate_ranks(exact.sum(0), alone.sum(0)),
        "squared_error_over_stated": float(np.mean(((found.values - exact) / found.errors) ** 2)),
        "squared_error_together": float(np.mean((regress(visible, scores).values - exact) ** 2)),
        "squared_error_apart": float(np.mean((apart - exact) ** 2)),
    }


def main() -> None:
    """Measure, print a table and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="a model of a built-in language pair")
    parser.add_argument("--pairs", type=int, default=150)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    require_commit()
    translator = Translator.load(given.model, "cpu")
    facts = translator.folder.facts
    languages = f"{facts.source_language}-{facts.target_language}"
    if languages not in LANGUAGE_PAIRS:
        parser.error(f"{given.model} translates {languages}, not {' or '.join(LANGUAGE_PAIRS)}")
    pairs = [
        pair
        for pair in generate_pairs(languages, split="test", count=4 * given.pairs, seed=SEED)
        if 3 <= len(pair.source.split()) <= MOST_WORDS
    ][: given.pairs]
    hits: dict[str, list[bool]] = {}
    seconds = []
    for pair in pairs:
        begin = time.perf_counter()
        found = explain(translator, pair.source, translation=pair.target, num_masks=NUM_MASKS)
        seconds.append(time.perf_counter() - begin)
        links = link_spaced_words(pair)
        accounts = {
            "rise": found.rise.values,
            "occlusion": occlude(MaskedScorer.of(translator, pair.source, pair.target)),
            "gradient": np.abs(found.gradient),
            "attention": found.attention,
        }
        for target in {target for _, target in links}:
            for name, numbers in accounts.items():
                is_true = (int(numbers[target].argmax()), target) in links
                hits.setdefault(name, []).append(is_true)
    short = [
        measure_short(MaskedScorer.of(translator, pair.source, pair.target), seed)
        for seed, pair in enumerate(pairs)
        if len(pair.source.split()) in SHORT
    ]
    prefix = f"builtin_{languages.replace('-', '_')}_explanation"
    mean: Callable[[str], float] = lambda name: float(np.mean([each[name] for each in short]))  # noqa: E731
    figures = {
        f"{prefix}_top_word_is_true_{name}": float(np.mean(all_)) for name, all_ in hits.items()
    }
    for name in ("with_all_masks", "with_occlusion", "with_occlusion_of_words"):
        figures[f"{prefix}_rise_rank_correlation_{name}"] = mean(f"rank_correlation_{name}")
    figures[f"{prefix}_rise_error_over_stated_error"] = mean("squared_error_over_stated") ** 0.5
    gain = mean("squared_error_together") / mean("squared_error_apart")
    figures[f"{prefix}_rise_variance_ratio_to_mean_differences"] = gain
    figures[f"{prefix}_rise_seconds_per_sentence"] = float(np.median(seconds))
    for key, value in figures.items():
        print(f"{value:8.3f}  {key.removeprefix(prefix + '_')}")
    notes = {
        "pairs": len(pairs), "short": len(short), "masks": NUM_MASKS, "few_masks": FEW_MASKS,
        "model": facts.scores, "threads": torch.get_num_threads(),
    }  # fmt: skip
    name = f"explanations-{languages}"
    print(write_result(name, figures, seeds=[SEED], notes=notes, folder=given.results))


if __name__ == "__main__":
    main()
