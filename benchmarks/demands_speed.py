"""What terms, alignments and samples cost: shares of the speed of plain translating.

    python benchmarks/demands_speed.py MODEL --source FILE --target FILE [--lines 400] [--rounds 5]

MODEL is a folder of “dragoman train”, the files are sentences and their translations. The glossary
has a word of every second sentence: the rarest of at least four letters, and the word of its
reference that the model aligns with it, where that is right in all sentences. Whatever is demanded
is measured in turns with plain translating, on this machine's CPU, loading not included; figures
are medians of the ratios of a round.
"""

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from dragoman.data.corpus import read_lines
from dragoman.decoding.constraints.constraints import Constraints, prepare_constraints
from dragoman.decoding.constraints.glossary import Glossary, Term
from dragoman.decoding.options import SamplingOptions
from dragoman.decoding.output.alignments import Aligner
from dragoman.decoding.translator import Translator
from record import RESULTS, require_commit, write_result

SHORTEST = 4
Work = Callable[[], object]


def main() -> None:
    """Measure, print and write the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    require_commit()
    lines, references = (
        list(read_lines(path))[: given.lines] for path in (given.source, given.target)
    )
    translator = Translator.load(given.model, "cpu")
    aligner = Aligner.of(translator)
    terms_of = make_terms(lines, references, aligner)
    glossary, num_terms = Glossary(terms_of), len(terms_of)
    target = translator.folder.vocabularies.target
    terms = prepare_constraints(target, glossary=glossary).constraints
    works: dict[str, Work] = {
        "plain": lambda: translator.translate_all(lines, constraints=Constraints(is_scored=False)),
        "glossary": lambda: translator.translate_all(lines, constraints=terms),
        "alignments": lambda: aligner.align_translations(
            lines,
            translator.translate_all(
                lines, constraints=Constraints(is_scored=False, is_aligned=True)
            ),
        ),
        "n_best": lambda: translator.translate_all(lines, num_best=4),
        "samples": lambda: translator.translate_all(
            lines, constraints=Constraints(sampling=SamplingOptions(seed=1))
        ),
    }
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():  # what is compiled or imported at the first use, is so now
        work()
    for _ in range(given.rounds):
        for name, work in works.items():
            started = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - started)
    figures: dict[str, float] = {}
    for name, each in seconds.items():
        figures[f"{name}_sentences_per_second"] = len(lines) / statistics.median(each)
        if name != "plain":
            shares = [one / own for one, own in zip(seconds["plain"], each, strict=True)]
            figures[f"{name}_share_of_plain_speed"] = statistics.median(shares)
        print(f"{name}: {len(lines) / statistics.median(each):,.0f} sentences/s")
    notes = {
        "source": given.source.name,
        "terms": num_terms,
        "engine": translator.choice.explain() if translator.choice else "",
        "seconds": seconds,
    }
    print(write_result("demands_speed-cpu", figures, seeds=[1], notes=notes, folder=given.results))


def make_terms(lines: list[str], references: list[str], aligner: Aligner) -> list[Term]:
    """Take a term of every second sentence, as somebody who knows both languages would.

    Parameters
    ----------
    lines : list[str]
        The sentences.
    references : list[str]
        Their translations.
    aligner : Aligner
        Says which word translates which.

    Returns
    -------
    list[Term]
        Of each sentence the rarest word of at least four letters that is aligned with one of as
        many, if all translations of sentences with the one have the other.
    """
    said, wanted = (
        [set(map(_strip, each.split())) for each in side] for side in (lines, references)
    )
    counts = Counter(word for words in said for word in words)
    terms: dict[str, Term] = {}
    pairs = list(zip(lines, references, strict=True))[::2]
    for (source, target), links in zip(pairs, aligner.align(pairs), strict=True):
        words, others = (list(map(_strip, each.split())) for each in (source, target))
        for one, other in sorted(links, key=lambda link: (counts[words[link[0]]], link)):
            word, meant = words[one], others[other]
            is_term = all(len(each) >= SHORTEST and each.isalpha() for each in (word, meant))
            is_usual = all(
                meant in their for own, their in zip(said, wanted, strict=True) if word in own
            )
            if is_term and is_usual:
                terms[word.casefold()] = Term(word, meant, "the reference")
                break
    return list(terms.values())


def _strip(word: str) -> str:
    return word.strip(".,;:!?\"'“”„")


if __name__ == "__main__":
    main()
