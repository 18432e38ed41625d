"""Forbidden words against exhaustive search, and every way to spell them."""

import re
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.decoding.random_model import EOS, PAD, UNK, RandomModel
from tests.decoding.small_vocabulary import SmallVocabulary

from dragoman.data.batches import flatten, pad_sequences
from dragoman.decoding.constraints.forbidden import make_forbidden_table
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search.beam import search
from dragoman.decoding.search.scorer import ForbiddenWordTracker
from dragoman.models.interface import Vocabulary

CPU = torch.device("cpu")
PIECES = ("▁c", "at", "▁ca", "t", "▁", "T", ".", "at.")
PHRASES = ["cat", "at", "t", "cat t", "t.", "c at", ".", "ca"]


def contains(text, phrases):
    """Say whether a phrase stands in a text as whole words, in whatever case."""
    for phrase in phrases:
        before = r"(?<!\w)" if phrase[0].isalpha() else ""
        after = r"(?!\w)" if phrase[-1].isalpha() else ""
        if re.search(before + re.escape(phrase) + after, text, re.IGNORECASE):
            return True
    return False


def search_exhaustively(model, source, options, vocabulary, phrases):
    source = tuple(source)
    found = []
    for length in range(len(source) + options.max_extra_tokens):
        for words in product(range(3, len(vocabulary)), repeat=length):
            if not contains(vocabulary.decode([words])[0], phrases):
                log = sum(
                    model.log_probability(source, words[:place], word)
                    for place, word in enumerate((*words, EOS))
                )
                found.append((log / ((6 + length) / 6) ** options.length_penalty, words))
    return sorted(found, reverse=True)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    phrases=st.lists(st.sampled_from(PHRASES), min_size=1, max_size=3),
)
def test_wide_beam_finds_the_best_of_all_without_them(seed, phrases):
    target = SmallVocabulary(*PIECES)
    model = RandomModel(seed, size=len(target))
    options = SearchOptions(beam_size=600, max_extra_tokens=2)
    sources = [[3, EOS], [EOS]]
    forbidden = ForbiddenWordTracker(make_forbidden_table(phrases, target), CPU)
    found = search(
        model, pad_sequences(flatten(sources), PAD), options,
        Vocabulary(len(target), len(target), PAD, EOS), num_best=3, banned_ids=(UNK,),
        forbidden=forbidden,
    )  # fmt: skip
    for source, hypotheses in zip(sources, found, strict=True):
        expected = search_exhaustively(model, source, options, target, phrases)[:3]
        assert [each.tokens for each in hypotheses] == [words for _, words in expected]
        scores = [score for score, _ in expected]
        assert [each.score for each in hypotheses] == pytest.approx(scores, abs=1e-4)


def may_write(table, tokens, size):
    """Say whether a sequence of subwords and then the end are possible."""
    forbidden = ForbiddenWordTracker(table, CPU)
    for token in (*tokens, EOS):
        logits = torch.zeros(1, 1, size)
        forbidden.rule_out(logits)
        if logits[0, 0, token] == -torch.inf:
            return False
        forbidden.follow(torch.zeros(1, 1, dtype=torch.int64), torch.tensor([[token]]))
    return True


@settings(max_examples=80)
@given(data=st.data())
def test_every_spelling_with_subwords_and_bytes_is_seen(subwords, data):
    """By a vocabulary with bytes, however a text is cut into pieces and bytes."""
    words = ["chien", "achète", "Été", "arbre vieux", "maison", "no"]
    table = make_forbidden_table(["chien", "ACHÈTE", "été", "Arbre vieux"], subwords)
    pieces = subwords.pieces(range(len(subwords)))
    chosen = data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=3))
    text = " ".join(chosen) + data.draw(st.sampled_from(["", ".", "s", " ."]))
    ids = []
    rest = "▁" + text.replace(" ", "▁")
    while rest:
        fitting = [
            number
            for number, piece in enumerate(pieces)
            if number > 2 and rest.startswith(piece) and not piece.startswith("<0x")
        ]
        number = data.draw(st.sampled_from([*fitting, None]))
        if number is None:
            plain = rest[0].replace("▁", " ")
            ids += [pieces.index(f"<0x{byte:02X}>") for byte in plain.encode()]
            rest = rest[1:]
        else:
            ids.append(number)
            rest = rest[len(pieces[number]) :]
    written = subwords.decode([ids])[0]
    expected = contains(written, ["chien", "achète", "été", "arbre vieux"])
    assert may_write(table, ids, len(subwords)) == (not expected)


def test_company_is_followed_row_by_row(subwords):
    table = make_forbidden_table(["chien"], subwords)
    (ids,) = subwords.encode(["chien"])
    forbidden = ForbiddenWordTracker(table, CPU)
    for token in ids:
        forbidden.rule_out(torch.zeros(2, 2, len(subwords)))
        forbidden.follow(torch.tensor([[0, 1], [1, 0]]), torch.tensor([[token, 5], [5, token]]))
        forbidden._places = forbidden._places.clone()
    forbidden.keep(torch.tensor([1, 0]))
    logits = torch.zeros(2, 2, len(subwords))
    forbidden.rule_out(logits)
    is_closed = logits[:, :, EOS] == -torch.inf
    assert is_closed[1].tolist() == [True, False]
