"""BPE-dropout: nothing dropped is SentencePiece's own encoding; what is dropped follows a law."""

import io
from collections import defaultdict
from itertools import product

import pytest
import sentencepiece
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.errors import OptionError
from dragoman.text.bpe_dropout import LONGEST_DROPPED, BytePairs, check_merges
from dragoman.text.characters import learn_characters
from dragoman.text.normalise import normalise
from dragoman.text.subwords import Subwords, train_subwords
from dragoman.text.vocabulary import Vocabularies
from dragoman.text.word_vocabulary import learn_words

CORPUS = [
    "the smallest dog sees another small house, and a hen",
    "der kleinste Hund sieht ein kleines Häuschen (1987).",
    "ananas banana aaaa aaa aa a häää ßß l'été naïve здесь 犬が家を見る",
    "unrelated relations relate to unrelenting relatives",
] * 20
SUBWORDS = Subwords.from_bytes(train_subwords(CORPUS, vocabulary_size=520))
PAIRS = BytePairs(SUBWORDS)
WORDS = sorted({word for line in CORPUS for word in line.split()})

known = st.text(sorted({letter for word in WORDS for letter in word}), min_size=1, max_size=20)
words = st.one_of(
    st.sampled_from(WORDS),
    st.lists(st.sampled_from(WORDS), min_size=2, max_size=4).map("".join),
    known,
    st.text("a", max_size=40),
    st.text("0123456789.,aé\u2581", max_size=12),
    st.text(max_size=12),
)


def keep_all(word):
    """Segment a word with no merge dropped."""
    (found,), places = PAIRS.segment(word, [[0] * PAIRS.count_merges(word)])
    assert places == [0]
    return found


@given(words)
@example("")
@example("\u2581")
@example("x\u2581the")
@example("</s>")
@example("<0x41>")
@example("🙂smallest")
@example("a" * LONGEST_DROPPED)
@example("a" * (LONGEST_DROPPED + 1))
@example("relate" * 50)
def test_nothing_dropped_is_the_usual_encoding(text):
    for word in normalise(text).split(" "):
        assert keep_all(word) == SUBWORDS.encode([word])[0]


@given(words, st.data())
def test_whatever_is_dropped_the_text_stays(text, data):
    for word in normalise(text).split(" "):
        number = st.lists(
            st.integers(0, 5),
            min_size=PAIRS.count_merges(word),
            max_size=PAIRS.count_merges(word),
        )
        found, places = PAIRS.segment(word, data.draw(st.lists(number, min_size=1, max_size=5)))
        assert len(set(map(tuple, found))) == len(found) == max(places) + 1
        for ids in found:
            assert SUBWORDS.decode([ids]) == [word]


def all_merges_dropped(word):
    found, _ = PAIRS.segment(word, [[99] * PAIRS.count_merges(word)])
    return SUBWORDS.pieces(found[0])


def test_with_all_dropped_a_word_is_its_characters():
    assert all_merges_dropped("smallest") == ["\u2581", *"smallest"]


def enumerate_drops(pieces, scores, dropout):
    """The law of the paper: every set of dropped merges in turn, with its probability."""
    law = defaultdict(float)
    possible = [
        (-scores[pieces[place] + pieces[place + 1]], place)
        for place in range(len(pieces) - 1)
        if pieces[place] + pieces[place + 1] in scores
    ]
    for dropped in product([True, False], repeat=len(possible)):
        chance = 1.0
        for each in dropped:
            chance *= dropout if each else 1 - dropout
        left = [
            merge for merge, is_dropped in zip(possible, dropped, strict=True) if not is_dropped
        ]
        if not left:
            law[pieces] += chance
            continue
        _, place = min(left)
        merged = (*pieces[:place], pieces[place] + pieces[place + 1], *pieces[place + 2 :])
        for result, share in enumerate_drops(merged, scores, dropout).items():
            law[result] += chance * share
    return law


@pytest.mark.parametrize("word", ["hen", "small", "aaa", "sees", "relat"])
def test_segmentations_follow_the_law_of_the_paper(word):
    dropout = 0.3
    processor = sentencepiece.SentencePieceProcessor(model_proto=SUBWORDS.to_bytes())
    normal = [each for each in range(len(SUBWORDS)) if not processor.is_byte(each)][3:]
    scores = {processor.id_to_piece(each): processor.get_score(each) for each in normal}
    expected = enumerate_drops(("\u2581", *word), scores, dropout)
    num_merges = len(word)
    times = list(product(range(num_merges + 1), repeat=num_merges))
    found, places = PAIRS.segment(word, times)
    chances = [dropout**each * (1 - dropout) for each in range(num_merges)] + [dropout**num_merges]
    law = defaultdict(float)
    for time, place in zip(times, places, strict=True):
        chance = 1.0
        for each in time:
            chance *= chances[each]
        law[tuple(SUBWORDS.pieces(found[place]))] += chance
    assert len(expected) > 2
    assert dict(law) == pytest.approx(dict(expected))


def train(**options):
    model = io.BytesIO()
    settings = {"vocab_size": 400, "hard_vocab_limit": False, "byte_fallback": True, "pad_id": 3}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, minloglevel=4, **settings | options
    )
    return model.getvalue()


def with_own_piece():
    """Dragoman's own model, but for one piece that is declared a user's."""
    model = bytearray(SUBWORDS.to_bytes())
    piece = "\u2581relat".encode()
    place = model.index(bytes([len(piece)]) + piece) - 3  # the piece's key and size, and its text's
    size = model[place + 1]
    model[place + 1] = size + 2
    model[place + 2 + size : place + 2 + size] = b"\x18\x04"
    return bytes(model)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Subwords.from_bytes(train(model_type="unigram")),
        lambda: Subwords.from_bytes(train(model_type="bpe")),
        lambda: Subwords.from_bytes(learn_characters(CORPUS)),
        lambda: Subwords.from_bytes(with_own_piece()),
        lambda: learn_words(CORPUS),
    ],
)
def test_other_subwords_are_refused(make):
    with pytest.raises(OptionError) as caught:
        check_merges(Vocabularies(*2 * [make()]))
    assert str(caught.value) == (
        "bpe_dropout: the subwords are not byte pairs of Dragoman's making, which are cut at "
        "spaces; leave --bpe-dropout out, or --subwords so that they are learnt"
    )


def test_own_subwords_are_accepted():
    check_merges(Vocabularies(SUBWORDS, SUBWORDS))
