"""Alignments: from tokens to words, from weights to links, for every family with attention."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.decoding.constraints.constraints import Constraints
from dragoman.decoding.engines.search_engine import SearchRequest
from dragoman.decoding.output.alignments import (
    Aligner,
    _merge,
    link_words,
    token_words,
    word_tokens,
    write_pharaoh,
)
from dragoman.decoding.output.unknown_words import layer_attention
from dragoman.decoding.translation import TranslatedPart, Translation
from dragoman.decoding.translator import Translator
from dragoman.errors import OptionError
from dragoman.kernels.processor import can_compile
from dragoman.models.build import build_model
from dragoman.models.convolutional.options import ByteNetOptions, ConvS2SOptions
from dragoman.models.recurrent.options import (
    GNMTOptions,
    LuongOptions,
    RNNsearchOptions,
    Seq2seqOptions,
)
from dragoman.text.normalise import normalise
from dragoman.text.subwords import Subwords
from dragoman.text.word_vocabulary import learn_words
from dragoman.weights import vocabulary_of

TEXTS = ["The dog sees a house.", "A red tree.", "Old garden near the big house!", "dog"]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def translator(tiny_folder):
    return Translator.load(tiny_folder.path, device="cpu")


# From tokens to words


@given(st.text(max_size=40))
def test_tokens_spell_the_words_they_are_of(subwords, text):
    found = token_words(subwords, text)
    words = text.split()
    assert found.num_words == len(words)
    assert found.words == sorted(found.words)
    for index, word in enumerate(words):
        ids = [token for token, place in zip(found.ids, found.words, strict=True) if place == index]
        assert subwords.decode([ids])[0] == normalise(word)


def test_tokens_of_a_closed_vocabulary(sentence_pairs):
    vocabulary = learn_words([pair[0] for pair in sentence_pairs], vocabulary_size=30)
    found = token_words(vocabulary, "The dog  sees\u00ad, \u00ad a house.")
    assert found.num_words == 6
    assert found.words == [0, 1, 2, 2, 4, 5, 5]


def test_a_vocabulary_that_finds_other_words_is_asked_word_by_word(subwords):
    class Joining(Subwords):
        """Joins all words, as a model trained across white space may."""

        def encode(self, texts, num_threads=1):
            joined = [text.replace(" ", "") for text in texts]
            return super().encode(joined, num_threads)

    found = token_words(Joining(subwords.to_bytes()), "The dog sees")
    assert found.num_words == 3
    for index, word in enumerate(["The", "dog", "sees"]):
        assert found.words.count(index) == len(subwords.encode([word])[0])


# From weights to links


def test_each_target_word_is_linked_and_then_the_source_words_left():
    weights = np.array([[0.8, 0.1, 0.1], [0.1, 0.5, 0.4]])
    assert link_words(weights) == {(0, 0), (1, 1), (2, 1)}


def test_both_sides_must_agree():
    """A source word that every word looks at, as models do at full stops, is not preferred."""
    weights = np.array([[0.45, 0.0, 0.55], [0.0, 0.45, 0.55], [0.0, 0.0, 1.0]])
    assert link_words(weights) == {(0, 0), (1, 1), (2, 2)}


def test_what_nobody_looks_at_is_not_linked():
    weights = np.array([[0.98, 0.02, 0.0], [0.0, 0.0, 0.0]])
    assert link_words(weights) == {(0, 0)}
    assert link_words(np.zeros((0, 2))) == frozenset()
    assert link_words(np.zeros((2, 0))) == frozenset()


@given(
    st.integers(1, 6).flatmap(
        lambda size: st.permutations(range(size)).map(lambda order: np.eye(size)[list(order)])
    ),
    st.floats(0, 0.05),
)
def test_a_permutation_is_found(weights, noise):
    links = link_words(weights + noise)
    assert links == {
        (int(source), int(target)) for target, source in zip(*weights.nonzero(), strict=True)
    }


def test_written_sorted():
    assert write_pharaoh(frozenset({(10, 1), (2, 3), (2, 0)})) == "2-0 2-3 10-1"
    assert write_pharaoh(frozenset()) == ""


# From a model


def test_company_changes_nothing(translator):
    aligner = Aligner.of(translator)
    pairs = [(text, translator.translate(text).text) for text in TEXTS]
    alone = [aligner.align([pair])[0] for pair in pairs]
    assert aligner.align(pairs) == alone
    assert aligner.align(pairs[::-1]) == alone[::-1]
    assert sum(map(bool, alone)) > 2
    assert aligner.align([("", "a"), ("a", ""), pairs[0]]) == [frozenset(), frozenset(), alone[0]]


def test_small_batches_change_nothing(translator, monkeypatch):
    aligner = Aligner.of(translator)
    pairs = [(text, translator.translate(text).text) for text in TEXTS]
    whole = aligner.align(pairs)
    monkeypatch.setattr("dragoman.decoding.output.alignments.BATCH_PLACES", 1)
    assert aligner.align(pairs) == whole


def test_follows_the_attention(translator, monkeypatch):
    """A model that looks only at the last word, and one that looks a step later."""
    aligner = Aligner(translator.model, translator.folder.vocabularies, CPU)
    source, target = "dog house tree", "chien maison arbre"
    one, other = (
        token_words(each, text)
        for each, text in zip(translator.folder.vocabularies, (source, target), strict=True)
    )
    last = one.words.index(2)

    def look(model, batch):
        weights = torch.zeros(1, len(other.ids) + 1, len(one.ids) + 1)
        weights[0, :-1, last] = 1.0
        late = torch.zeros_like(weights)
        for place, word in enumerate(other.words):
            late[0, place + 1, one.words.index(word)] = 1.0
        return {"first": weights, "second": late}

    monkeypatch.setattr("dragoman.decoding.output.unknown_words.layer_attention", look)
    assert aligner.layers() == ["first", "second"]
    assert aligner.align([(source, target)], layer="first") == [{(2, 0), (2, 1), (2, 2)}]
    shifted = aligner.align([(source, target)], layer="second", is_shifted=True)
    assert shifted == [{(0, 0), (1, 1), (2, 2)}]


def test_parts_of_a_long_text_are_counted_on(translator, monkeypatch):
    aligner = Aligner.of(translator)
    monkeypatch.setattr(
        aligner, "align", lambda pairs: [frozenset({(0, 0), (1, 0)}) for _ in pairs]
    )
    text = "One two.  Three four fi ve six"
    parts = (
        TranslatedPart("One two.  ", "un deux.", " "),
        TranslatedPart("Three four f", "trois quat", ""),
        TranslatedPart("i ve six", "re cinq", ""),
    )
    translation = Translation(text="un deux. trois quatre cinq", score=0.0, parts=parts)
    empty = Translation(text="", score=0.0)
    found = aligner.align_translations([text, " "], [translation, empty])
    assert found == [
        {(0, 0), (1, 0), (2, 2), (3, 2), (4, 3), (5, 3)},
        frozenset(),
    ]


def test_the_parts_of_a_translation_are_the_text(translator):
    facts = replace(translator.folder.facts, longest_source=9)
    short = Translator(replace(translator.folder, facts=facts), translator.model, CPU)
    text = " ".join(TEXTS) + "  \u00ad " + "qxz" * 9 + " dog " * 5
    (translation,) = short.translate_all([text])
    assert len(translation.parts) > 3
    place = 0
    for part in translation.parts:
        gap = text[place : text.index(part.source, place)]
        assert not normalise(gap)
        place += len(gap) + len(part.source)
    joined = "".join(part.text + part.space for part in translation.parts)
    assert joined.strip() == translation.text
    (links,) = Aligner.of(short).align_translations([text], [translation])
    assert links
    assert max(source for source, _ in links) < len(text.split())
    assert max(target for _, target in links) < len(translation.text.split())


@pytest.mark.parametrize(
    "shape",
    [
        RNNsearchOptions(model_dim=16, embedding_dim=16, maxout_dim=16),
        LuongOptions(model_dim=16, num_layers=2),
        GNMTOptions(model_dim=16, num_encoder_layers=2, num_decoder_layers=2),
        ConvS2SOptions(encoder_blocks="1x8k3", decoder_blocks="2x8k3", model_dim=8, output_dim=8),
    ],
    ids=lambda shape: type(shape).__name__,
)
def test_every_family_with_attention(shape, tiny_folder, vocabularies):
    torch.manual_seed(2)
    model = build_model(shape, vocabulary_of(vocabularies)).eval()
    folder = replace(tiny_folder.folder, options=shape)
    aligner = Aligner.of(Translator(folder, model, CPU))
    assert aligner.layers()
    pairs = [("The dog sees.", "Le chien voit."), ("A house", "une maison ici")]
    for links, (source, target) in zip(aligner.align(pairs), pairs, strict=True):
        assert {place for _, place in links} == set(range(len(target.split())))
        assert {place for place, _ in links} <= set(range(len(source.split())))


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        (Seq2seqOptions(model_dim=16, num_layers=1), "Seq2seq"),
        (ByteNetOptions(num_encoder_sets=1, num_decoder_sets=1, model_dim=12), "ByteNet"),
    ],
)
def test_a_family_without_attention_is_refused_by_name(shape, name, vocabularies):
    model = build_model(shape, vocabulary_of(vocabularies)).eval()
    with pytest.raises(OptionError) as caught:
        Aligner(model, vocabularies, CPU)
    assert str(caught.value) == (
        f"--alignments: {name} has no attention to the source words by which to align; leave it out"
    )


def test_compiled_functions_align_as_the_model_does(tiny_folder, translator):
    plain = Translator(translator.folder, tiny_folder.model, CPU)
    pairs = [(text, "Le chien voit un arbre.") for text in TEXTS]
    assert Aligner.of(translator).align(pairs) == Aligner.of(plain).align(pairs)


def test_words_that_the_model_cannot_read_have_no_links(translator):
    aligner = Aligner(translator.model, translator.folder.vocabularies, CPU, max_length=4)
    seen = []

    def spy(model, batch):
        seen.append((batch.source.ids.size(1), batch.target.ids.size(1)))
        return layer_attention(model, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dragoman.decoding.output.unknown_words.layer_attention", spy)
        (links,) = aligner.align([("dog house tree garden the a", "chien maison arbre un le")])
    assert seen == [(4, 4)]
    assert links
    assert max(max(link) for link in links) < 3


@pytest.mark.skipif(not can_compile(), reason="nothing is compiled here")
@pytest.mark.parametrize("precision", ["int8", "float32"])
class TestCollected:
    """What the compiled search tells of attention is what reading once more finds."""

    @pytest.fixture
    def translator(self, tiny_folder, precision):
        return Translator.load(tiny_folder.path, "cpu", precision=precision)

    @pytest.mark.parametrize("num_beams", [1, 3])
    def test_attention_is_that_of_given_translations(self, translator, num_beams):
        engine, eos_id = translator.cpu_engine, translator.folder.vocabularies.eos_id
        sources = [translator.encode(text) for text in TEXTS]
        request = SearchRequest(num_beams, num_beams, 0.6, (), num_beams > 1, is_aligned=True)
        every = engine.find(sources, [9, 14, 20, 5], request)
        plain = engine.find(sources, [9, 14, 20, 5], request._replace(is_aligned=False))
        for source, found, same in zip(sources, every, plain, strict=True):
            assert [each.tokens for each in found] == [each.tokens for each in same]
            targets = [(*each.tokens, eos_id) for each in found]
            attended = engine.attend([source] * len(found), targets)
            for each, expected, other in zip(found, attended, same, strict=True):
                np.testing.assert_allclose(each.attention, expected[:-1, :-1], rtol=1e-5, atol=1e-6)
                assert other.attention is None

    def test_links_are_those_of_reading_once_more(self, translator):
        text, aligner = " ".join(TEXTS), Aligner.of(translator)
        both, eos_id = translator.folder.vocabularies, translator.folder.vocabularies.eos_id
        constraints = Constraints(is_aligned=True)
        found = translator.translate_all([*TEXTS, text, ""], num_best=3, constraints=constraints)
        parts = [p for best in found for each in (best, *best.alternatives) for p in each.parts]
        num_linked = 0
        for part in parts:
            attended = part.attended
            sides = (
                word_tokens(both.source, part.source, attended.source),
                word_tokens(both.target, part.text, attended.target),
            )
            if None in sides:  # words of the translation are not those of its tokens
                assert aligner._link_attended(part) is None
                continue
            ended = [[(*ids, eos_id)] for ids in (attended.source, attended.target)]
            (weights,) = translator.cpu_engine.attend(*ended)
            links = aligner.align_translations([part.source], [Translation(
                text=part.text, score=0.0, parts=(part,)
            )])[0]  # fmt: skip
            assert links == link_words(_merge(weights[:-1, :-1], *sides))
            num_linked += len(links)
        assert num_linked
        assert len(aligner.align_translations([text], [found[4]])) == 1
