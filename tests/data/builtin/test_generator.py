"""The sequence of pairs: its laws, its splits and the two sentences that must be in reach."""

import random
import subprocess
import sys
from collections import Counter
from itertools import islice

import pytest

from dragoman.data.builtin import LANGUAGE_PAIRS, SPLITS, generate_pairs
from dragoman.data.builtin.generator import (
    AlignedPair,
    find_split,
    link_spaced_words,
    make_key,
    realise_pair,
)
from dragoman.data.builtin.lexicon.adjectives import ADJECTIVE_OF
from dragoman.data.builtin.lexicon.moments import Month
from dragoman.data.builtin.lexicon.nouns import NOUN_OF, PLACES
from dragoman.data.builtin.lexicon.verbs import SER, VERBS
from dragoman.data.builtin.meaning import (
    Attribute,
    Clause,
    Determiner,
    Linked,
    Nominal,
    Person,
    Quality,
    Sentence,
    Statement,
)
from dragoman.data.builtin.sampling.choosing import Chooser
from dragoman.data.builtin.sampling.sentence_templates import SentenceSampler
from dragoman.errors import OptionError

MARKS = set(".,?!¿¡")
AFRICA = next(place for place in PLACES if place.english == "Africa")
VISIT = next(verb for verb in VERBS if verb.english.base == "visit")
JANE_VISITS = Sentence(
    Statement(
        (
            Linked(
                "", Clause(subject=Person("Jane", True), verb=VISIT, object=AFRICA, time=Month(8))
            ),
        )
    )
)
LARGE_CAT = Sentence(
    Statement(
        (
            Linked(
                "",
                Clause(
                    subject=Nominal(NOUN_OF["cat"], False, Determiner.DEMONSTRATIVE),
                    verb=SER,
                    predicate=Attribute(Quality(ADJECTIVE_OF["large"], "very")),
                ),
            ),
        )
    ),
    "",
)


def _draw(languages, count):
    """Draw pairs as they come, with repetitions and of all splits."""
    sampler = SentenceSampler(random.Random(7), hidden_gender=languages == "fr-en")
    return [realise_pair(sampler.draw(), languages) for _ in range(count)]


@pytest.fixture(scope="module", params=LANGUAGE_PAIRS)
def drawn(request):
    return _draw(request.param, 4000)


@pytest.mark.slow
@pytest.mark.parametrize("languages", LANGUAGE_PAIRS)
def test_laws_of_translation_hold_at_length(languages):
    many = _draw(languages, 20_000)
    test_translation_is_a_function(many)
    test_most_draws_are_distinct(many)
    test_splits_are_disjoint_on_both_sides(many)
    test_every_word_but_a_few_is_aligned(many)


def test_translation_is_a_function(drawn):
    exact, keyed = {}, {}
    for pair in drawn:
        assert exact.setdefault(pair.source, pair.target) == pair.target
        target_key = make_key(pair.target_words)
        assert keyed.setdefault(make_key(pair.source_words), target_key) == target_key


def test_most_draws_are_distinct(drawn):
    assert len({pair.source for pair in drawn}) > 0.95 * len(drawn)


def test_lengths_have_a_tail(drawn):
    lengths = [sum(word not in MARKS for word in pair.source_words) for pair in drawn]
    assert 8.5 < sum(lengths) / len(lengths) < 11.5
    assert min(lengths) <= 2
    assert 0.02 < sum(length > 25 for length in lengths) / len(lengths) < 0.06
    assert sum(length >= 40 for length in lengths) > 0.003 * len(lengths)


def test_splits_are_disjoint_on_both_sides(drawn):
    splits_of_source, splits_of_target = {}, {}
    for pair in drawn:
        split = find_split(pair.target_words)
        assert splits_of_source.setdefault(make_key(pair.source_words), split) == split
        assert splits_of_target.setdefault(make_key(pair.target_words), split) == split
    shares = Counter(splits_of_source.values())
    assert set(shares) == set(SPLITS)
    assert 0.06 < shares["valid"] / len(splits_of_source) < 0.1
    assert 0.06 < shares["test"] / len(splits_of_source) < 0.1


def test_words_stand_in_the_text_in_order(drawn):
    for pair in drawn:
        for text, words in ((pair.source, pair.source_words), (pair.target, pair.target_words)):
            place = 0
            for word in words:
                found = text.find(word, place)
                assert found >= 0
                assert text[place:found].strip() == ""
                place = found + len(word)
            assert place == len(text)
            assert text == " ".join(text.split())


def test_alignment_is_sorted_and_in_range(drawn):
    for pair in drawn:
        assert list(pair.alignment) == sorted(set(pair.alignment))
        for source_index, target_index in pair.alignment:
            assert 0 <= source_index < len(pair.source_words)
            assert 0 <= target_index < len(pair.target_words)


def test_every_word_but_a_few_is_aligned(drawn):
    # “Aujourd’hui, c’est lundi.” has a comma of its own; all other words translate something.
    for pair in drawn:
        sources = {source for source, _ in pair.alignment}
        targets = {target for _, target in pair.alignment}
        for index, word in enumerate(pair.source_words):
            assert index in sources or word == ",", (pair.source, pair.target, word)
        for index, word in enumerate(pair.target_words):
            assert index in targets, (pair.source, pair.target, word)


def test_style_carries_over(drawn):
    for pair in drawn:
        assert (pair.source[-1] in ".?!") == (pair.target[-1] in ".?!")
        if pair.source[-1] in ".?!":
            assert pair.source[-1] == pair.target[-1]
            assert pair.source[0].isupper()
            assert pair.target.lstrip("¿¡")[0].isupper()


def test_names_numbers_and_years_are_aligned_with_themselves(drawn):
    invariant = {"Jane", "Paul", "Marie"}
    num_seen = 0
    for pair in drawn:
        links = {}
        for source_index, target_index in pair.alignment:
            links.setdefault(source_index, set()).add(pair.target_words[target_index])
        for index, word in enumerate(pair.source_words):
            if word in invariant or word.isdigit():
                assert word in links[index]
                num_seen += 1
    assert num_seen > 300


@pytest.mark.parametrize("languages", LANGUAGE_PAIRS)
def test_generated_pairs_belong_to_their_split_once(languages):
    targets = {}
    for split in SPLITS:
        pairs = list(generate_pairs(languages, split=split, count=150, seed=3))
        assert len({pair.source for pair in pairs}) == 150
        assert all(find_split(pair.target_words) == split for pair in pairs)
        targets[split] = {make_key(pair.target_words) for pair in pairs}
    assert not targets["train"] & (targets["valid"] | targets["test"])
    assert not targets["valid"] & targets["test"]


@pytest.mark.parametrize("languages", LANGUAGE_PAIRS)
def test_a_larger_count_extends_the_sequence(languages):
    short = list(generate_pairs(languages, split="train", count=50, seed=1))
    long = list(generate_pairs(languages, split="train", count=120, seed=1))
    assert long[:50] == short
    other = list(generate_pairs(languages, split="train", count=50, seed=2))
    assert other != short


def test_another_process_draws_the_same():
    program = (
        "from dragoman.data.builtin import generate_pairs\n"
        "for pair in generate_pairs('fr-en', split='valid', count=40, seed=9): print(repr(pair))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    own = "".join(
        f"{pair!r}\n" for pair in generate_pairs("fr-en", split="valid", count=40, seed=9)
    )
    assert {output.decode() for output in outputs} == {own}


def test_reach_of_french():
    pair = realise_pair(JANE_VISITS, "fr-en")
    assert pair.source == "Jane visite l’Afrique en septembre."
    assert pair.target == "Jane visits Africa in September."
    assert pair.source_words == ("Jane", "visite", "l’", "Afrique", "en", "septembre", ".")
    assert pair.alignment == ((0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (5, 4), (6, 5))
    assert find_split(pair.target_words) == "test"


def test_reach_of_spanish():
    pair = realise_pair(LARGE_CAT, "en-es")
    assert pair.source == "this cat is very large"
    assert pair.target == "este gato es muy grande"
    assert pair.alignment == ((0, 0), (1, 1), (2, 2), (3, 3), (4, 4))
    assert find_split(pair.target_words) == "test"


@pytest.mark.parametrize("key", ["THIS cat is very large!", "¡Este gato es muy grande!"])
def test_variants_of_the_reserved_sentences_are_held_out(key):
    words = tuple("".join(f" {c} " if c in MARKS else c for c in key).split())
    assert find_split(words) == "test"


@pytest.mark.parametrize(
    ("languages", "sentence", "wanted"),
    [
        ("fr-en", JANE_VISITS, [VISIT, AFRICA, "Jane"]),
        ("en-es", LARGE_CAT, [NOUN_OF["cat"], ADJECTIVE_OF["large"]]),
    ],
)
def test_the_random_grammar_draws_the_reserved_sentences(monkeypatch, languages, sentence, wanted):
    # Lead each choice among ranked words to the wanted one where it is among the choices: only
    # choices that chance could make are made.
    plain = Chooser.pick_ranked

    def pick_led(self, items):
        led = next((item for item in items if item in wanted), None)
        return led if led is not None and self.happens(0.9) else plain(self, items)

    monkeypatch.setattr(Chooser, "pick_ranked", pick_led)
    sampler = SentenceSampler(random.Random(1), hidden_gender=languages == "fr-en")
    assert any(sampler.draw_simple() == sentence for _ in range(60_000))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"languages": "fr-es"}, "languages: “fr-es” is not in the built-in corpus"),
        ({"languages": "klingon"}, "known are fr-en, en-es"),
        ({"split": "trian"}, "did you mean “train”?"),
        ({"count": 0}, "count: 0 is too few"),
    ],
)
def test_unknown_options_are_refused_at_once(arguments, message):
    options = {"languages": "fr-en", "split": "train", "count": 1, "seed": 0} | arguments
    with pytest.raises(OptionError, match=message.replace("?", r"\?")):
        generate_pairs(options.pop("languages"), **options)


def test_generation_is_lazy():
    pairs = generate_pairs("en-es", split="train", count=10**9, seed=0)
    assert len(list(islice(pairs, 3))) == 3


def test_clitics_and_punctuation_join_their_neighbours():
    pair = AlignedPair(
        source="Où est l’homme ?",
        target="Where is the man?",
        source_words=("Où", "est", "l’", "homme", "?"),
        target_words=("Where", "is", "the", "man", "?"),
        alignment=((0, 0), (1, 1), (2, 2), (3, 3), (4, 4)),
    )
    assert link_spaced_words(pair) == {(0, 0), (1, 1), (2, 2), (2, 3), (3, 3)}


@pytest.mark.parametrize("languages", ["fr-en", "en-es"])
def test_every_true_link_is_kept_between_the_parts_that_hold_its_words(languages):
    """Seen from the other end: the spelling of each part is that of the words in it."""
    for pair in generate_pairs(languages, split="valid", count=60, seed=3):
        links = link_spaced_words(pair)
        source, target = pair.source.split(" "), pair.target.split(" ")
        for one, other in pair.alignment:
            words = pair.source_words[one], pair.target_words[other]
            assert any(
                words[0] in source[left] and words[1] in target[right] for left, right in links
            )
        assert len(links) <= len(pair.alignment)
        assert max(left for left, _ in links) < len(source)
        assert max(right for _, right in links) < len(target)
