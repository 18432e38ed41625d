"""Write the corpus that one of the models in this folder is trained on, as a TSV file.

    python models/corpus.py DATA LANGUAGE-LANGUAGE OUTPUT [--seed 1] [--part odd] [--pairs N]

DATA is a folder with the parallel texts named below; one language is English. Tatoeba is
taken whole, of Europarl its first shard, technical texts whole. Beside these stand single words
and their translations, learnt from the same text by IBM Model 1, names by themselves and in the
place of others, and changed copies of sentences, so that a model does not break on a name, a
heading, a line in capitals, a missing full stop or a typing error. These alone are the part “odd”,
the sentences as they are “plain”; --pairs draws so many pairs at random.
"""

import argparse
import lzma
import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from dragoman.text.dictionary import learn_dictionary

EUROPARL_SHARD, EUROPARL_PAIRS = "train.0.tsv.xz", 180_000
EUROPARL_WORDS = 60  # longest sentence
TECHNICAL = {
    "de": ("libreoffice-help-en-de",),
    "fr": ("libreoffice-help-en-fr", "python-docs-en-fr"),
    "es": (),
}
CHANGED_SHARE = {"tatoeba": 0.5, "europarl": 0.15}
NAMES_ALONE, RENAMED_SHARE = 20_000, 0.1
PARTS = ("all", "plain", "odd")
LEAST_COUNT, LEAST_PROBABILITY = 4, 0.3
WORD = re.compile(r"[^\W\d_]+(?:[’'-][^\W\d_]+)*")
SMALL_WORDS = frozenset(
    ("a", "an", "the", "and", "or", "of", "in", "on", "to", "for", "at", "by", "with", "from")
)

Pair = tuple[str, str]


def read_pairs(data: Path, folder: str, languages: Pair) -> Iterator[Pair]:
    """Yield the sentence pairs of a folder.

    Parameters
    ----------
    data : Path
        The folder of all texts.
    folder : str
        Its name; its languages are English and another.
    languages : tuple[str, str]
        Of source and target.

    Yields
    ------
    tuple[str, str]
        Source and target sentence.
    """
    shard = data / folder / EUROPARL_SHARD
    if shard.exists():
        with lzma.open(shard, "rt", encoding="utf-8", newline="\n") as lines:
            for line in islice(lines, EUROPARL_PAIRS):
                english, other = line.rstrip("\n").split("\t")
                yield (english, other) if languages[0] == "en" else (other, english)
    else:
        paths = [data / folder / f"train.{language}.xz" for language in languages]
        with (
            lzma.open(paths[0], "rt", encoding="utf-8", newline="\n") as sources,
            lzma.open(paths[1], "rt", encoding="utf-8", newline="\n") as targets,
        ):
            for source, target in zip(sources, targets, strict=True):
                yield source.rstrip("\n"), target.rstrip("\n")


def mistype(text: str, chance: random.Random) -> str:
    """Put a typing error into a sentence: a letter too few, too many, or two exchanged."""
    places = [index for index in range(1, len(text) - 1) if text[index].isalpha()]
    chosen = chance.sample(places, min(len(places), 1 + len(text) // 60))
    for place in sorted(chosen, reverse=True):  # so that those before stay where they are
        change = chance.randrange(3)
        if change == 0:
            text = text[:place] + text[place + 1 :]
        elif change == 1:
            text = text[:place] + text[place] + text[place:]
        else:
            text = text[:place] + text[place : place + 2][::-1] + text[place + 2 :]
    return text


def write_as_title(text: str, language: str) -> str:
    """Write a sentence as a heading: in English with capitals, without a full stop."""
    text = text.rstrip(".")
    if language != "en":
        return text
    words = text.split(" ")
    return " ".join(
        word if index and word in SMALL_WORDS else word[:1].upper() + word[1:]
        for index, word in enumerate(words)
    )


def change(pair: Pair, languages: Pair, chance: random.Random) -> Pair:
    """Write a pair as people also write: no full stop, capitals, a heading, a typing error."""
    draw = chance.random()
    source, target = pair
    if draw < 0.3:
        return source.rstrip(".!?。"), target.rstrip(".!?")
    if draw < 0.5:
        return source.upper(), target.upper()
    if draw < 0.65:
        return write_as_title(source, languages[0]), write_as_title(target, languages[1])
    if draw < 0.75:
        return source[:1].lower() + source[1:].rstrip("."), target
    return mistype(source, chance), target


def list_words(pairs: list[Pair]) -> list[Pair]:
    """List single words with their translations, where both directions agree on them."""
    texts = [(WORD.findall(source), WORD.findall(target)) for source, target in pairs]
    # What begins a sentence tells nothing about how a word is written elsewhere.
    inner = [(source[1:] or source, target[1:] or target) for source, target in texts]
    counts = Counter(word for source, _ in inner for word in source)
    there = learn_dictionary(inner, least_probability=LEAST_PROBABILITY)
    back = learn_dictionary(
        ((target, source) for source, target in inner),
        least_probability=LEAST_PROBABILITY,
    )
    return [
        (word, translation)
        for word, translation in there.translations.items()
        if counts[word] >= LEAST_COUNT and back.translate(translation) == word
    ]


def list_names(pairs: list[Pair]) -> Counter[str]:
    """Count words written alike, with a capital, within both sentences, and seldom without one."""
    names: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for pair in pairs:
        source, target = ({*WORD.findall(side.partition(" ")[2])} for side in pair)
        names.update(word for word in source & target if word[0].isupper() and len(word) > 1)
        small.update(word for word in source | target if word.islower())
    return Counter({word: count for word, count in names.items() if count > small[word.lower()]})


def rename(pair: Pair, known: Counter[str], names: list[str], chance: random.Random) -> Pair:
    """Put other names in the place of those that stand in both sentences."""
    both = [{*WORD.findall(side)} for side in pair]
    there = sorted(word for word in both[0] & both[1] if word in known)
    others = {word: chance.choice(names) for word in there}

    def exchange(found: re.Match[str]) -> str:
        return others.get(found[0], found[0])

    return WORD.sub(exchange, pair[0]), WORD.sub(exchange, pair[1])


def write_names(pairs: list[Pair], chance: random.Random) -> Iterator[Pair]:
    """Yield names by themselves, one, two or three words, and sentences with other names."""
    known = list_names(pairs)
    names = sorted(known)
    for _ in range(NAMES_ALONE):
        name = " ".join(chance.sample(names, chance.choice((1, 1, 2, 2, 2, 3))))
        yield name, name
    for pair in chance.sample(pairs, int(RENAMED_SHARE * len(pairs))):
        renamed = rename(pair, known, names, chance)
        if renamed != pair:
            yield renamed


def make_corpus(data: Path, languages: Pair, part: str, chance: random.Random) -> Iterator[Pair]:
    """Yield all pairs to train on.

    Parameters
    ----------
    data : Path
        The folder of all texts.
    languages : tuple[str, str]
        Of source and target.
    part : str
        One of `PARTS`.
    chance : random.Random
        Of everything that is drawn.

    Yields
    ------
    tuple[str, str]
        Source and target.
    """
    other = next(language for language in languages if language != "en")
    sentences = list(read_pairs(data, f"tatoeba-en-{other}", languages))
    speeches = [
        pair
        for pair in read_pairs(data, f"europarl-en-{other}", languages)
        if all(len(side.split()) <= EUROPARL_WORDS for side in pair)
    ]
    if part != "odd":
        yield from sentences
        yield from speeches
        for folder in TECHNICAL[other]:
            yield from read_pairs(data, folder, languages)
    if part != "plain":
        yield from write_odd_pairs(sentences, speeches, languages, chance)


def write_odd_pairs(
    sentences: list[Pair], speeches: list[Pair], languages: Pair, chance: random.Random
) -> Iterator[Pair]:
    """Yield changed copies of sentences, names, and single words."""
    for name, texts in (("tatoeba", sentences), ("europarl", speeches)):
        for pair in chance.sample(texts, int(CHANGED_SHARE[name] * len(texts))):
            yield change(pair, languages, chance)
    yield from write_names(sentences + speeches, chance)
    for source, target in list_words(sentences + speeches[:100_000]):
        yield source, target
        if chance.random() < 0.2:
            yield source.upper(), target.upper()
        if chance.random() < 0.5:
            yield source[:1].upper() + source[1:], target[:1].upper() + target[1:]


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("languages")
    parser.add_argument("output", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", choices=PARTS, default="all")
    parser.add_argument("--pairs", type=int, help="draw so many; default: all")
    given = parser.parse_args()
    source, target = given.languages.split("-")
    chance = random.Random(given.seed)
    pairs = make_corpus(given.data, (source, target), given.part, chance)
    if given.pairs is not None:
        whole = list(pairs)
        pairs = iter(chance.sample(whole, min(given.pairs, len(whole))))
    with given.output.open("w", encoding="utf-8", newline="\n") as lines:
        lines.writelines(f"{one}\t{two}\n" for one, two in pairs if one.strip() and two.strip())


if __name__ == "__main__":
    main()
