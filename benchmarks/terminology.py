"""Required terms on the built-in corpus: whether they are there, and what they cost.

    python benchmarks/terminology.py MODEL [--sentences 1000] [--seeds 1 2]

MODEL is a model folder trained on the built-in corpus. The glossary comes from the grammar's true
alignment of the test sentences: every word that is always aligned to one and the same word. Each
test sentence with a term is translated with and without the glossary, with the beam of the model
folder and greedily.
"""

import argparse
import time
from collections import Counter, defaultdict
from pathlib import Path

from dragoman.data.builtin.generator import AlignedPair, generate_pairs
from dragoman.decoding.constraints.constraints import Constraints, prepare_constraints
from dragoman.decoding.constraints.glossary import Glossary, Term
from dragoman.decoding.constraints.spelling import word_pattern
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.translator import Translator
from dragoman.evaluation.bleu import corpus_bleu
from record import RESULTS, require_commit, write_result

SHORTEST = 4


def make_glossary(pairs: list[AlignedPair]) -> Glossary:
    """Collect the words that have one translation in all sentences.

    Parameters
    ----------
    pairs : list[AlignedPair]
        Sentences and their true alignments.

    Returns
    -------
    Glossary
        Words of at least four letters, each aligned to the same single word wherever it occurs.
    """
    seen: dict[str, set[str | None]] = defaultdict(set)
    for pair in pairs:
        of_source, of_target = defaultdict(list), Counter(target for _, target in pair.alignment)
        for source, target in pair.alignment:
            of_source[source].append(target)
        for index, word in enumerate(pair.source_words):
            targets = of_source[index]
            is_single = len(targets) == 1 and of_target[targets[0]] == 1
            written = pair.target_words[targets[0]] if is_single else None
            seen[word.casefold()].add(written if written is None else _small(pair, targets[0]))
    return Glossary(
        [
            Term(source, str(next(iter(targets))), "the grammar")
            for source, targets in sorted(seen.items())
            if len(targets) == 1
            and None not in targets
            and min(len(source), len(str(next(iter(targets))))) >= SHORTEST
            and source.isalpha()
            and str(next(iter(targets))).isalpha()
        ]
    )


def _small(pair: AlignedPair, index: int) -> str:
    """Write a target word as within a sentence; a name begins with a capital anywhere."""
    word = pair.target_words[index]
    first = next(place for place, each in enumerate(pair.target_words) if each[0].isalpha())
    return word[0].lower() + word[1:] if index == first else word


def count_present(texts: list[str], wanted: list[list[str]]) -> tuple[int, int]:
    """Count the required terms that are there.

    Parameters
    ----------
    texts : list[str]
        Translations.
    wanted : list[list[str]]
        The terms that each must have.

    Returns
    -------
    tuple[int, int]
        Terms that are there as often as they must be, and translations that have all theirs.
    """
    num_terms = num_whole = 0
    for text, terms in zip(texts, wanted, strict=True):
        needed = Counter(terms)
        present = {
            term: min(count, len(word_pattern([term]).findall(text)))
            for term, count in needed.items()
        }
        num_terms += sum(present.values())
        num_whole += present == dict(needed)
    return num_terms, num_whole


def measure(
    translator: Translator, pairs: list[AlignedPair], wanted: list[list[str]],
    constraints: Constraints, options: SearchOptions,
) -> dict[str, float]:  # fmt: skip
    """Translate and judge.

    Parameters
    ----------
    translator : Translator
        The model.
    pairs : list[AlignedPair]
        What to translate, and the references.
    wanted : list[list[str]]
        The terms of each.
    constraints : Constraints
        With or without the glossary.
    options : SearchOptions
        How to search.

    Returns
    -------
    dict[str, float]
        Figures by name.
    """
    sources = [pair.source for pair in pairs]
    translator.translate_all(sources[:32], options=options, constraints=constraints)
    start = time.perf_counter()
    texts = [
        each.text
        for each in translator.translate_all(sources, options=options, constraints=constraints)
    ]
    seconds = time.perf_counter() - start
    num_terms, num_whole = count_present(texts, wanted)
    return {
        "terms_present_percent": 100 * num_terms / sum(map(len, wanted)),
        "sentences_with_all_terms_percent": 100 * num_whole / len(wanted),
        "bleu": corpus_bleu(texts, [[pair.target for pair in pairs]]),
        "sentences_per_second": len(pairs) / seconds,
    }


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--languages", default="fr-en")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    require_commit()
    translator = Translator.load(given.model, given.device)
    pairs = [
        pair
        for seed in given.seeds
        for pair in generate_pairs(given.languages, split="test", count=given.sentences, seed=seed)
    ]
    glossary = make_glossary(pairs)
    prepared = prepare_constraints(translator.folder.vocabularies.target, glossary=glossary)
    found = [[term.target for term in glossary.find(pair.source)] for pair in pairs]
    chosen = [(pair, terms) for pair, terms in zip(pairs, found, strict=True) if terms]
    kept, wanted = [pair for pair, _ in chosen], [terms for _, terms in chosen]
    figures: dict[str, float] = {
        "glossary_terms": len(glossary.terms),
        "sentences": len(kept),
        "terms_per_sentence": sum(map(len, wanted)) / len(kept),
    }
    for name, beam_size in (("beam", translator.options.beam_size), ("greedy", 1)):
        options = translator.options_with({"beam_size": beam_size})
        for kind, constraints in (("without", Constraints()), ("with", prepared.constraints)):
            measured = measure(translator, kept, wanted, constraints, options)
            figures |= {f"{name}_{kind}_terms_{key}": value for key, value in measured.items()}
        speeds = [
            figures[f"{name}_{kind}_terms_sentences_per_second"] for kind in ("with", "without")
        ]
        figures[f"{name}_speed_ratio_with_to_without_terms"] = speeds[0] / speeds[1]
    for key, value in figures.items():
        print(f"{key:58} {value:10.3f}")
    notes = {"model": given.model.name, "warnings": prepared.warnings}
    print(
        write_result("terminology", figures, seeds=given.seeds, notes=notes, folder=given.results)
    )


if __name__ == "__main__":
    main()
