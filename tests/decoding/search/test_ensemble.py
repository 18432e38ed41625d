"""Models that translate together."""

from dataclasses import replace

import pytest
import torch
from tests.decoding.random_model import EOS, PAD, SIZE, RandomModel
from tests.models import contract
from tests.models.variants import FAMILIES

from dragoman.data.batches import flatten, make_batch, pad_sequences
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search.beam import search
from dragoman.decoding.search.ensemble import Ensemble, join_folders
from dragoman.decoding.translator import Translator
from dragoman.errors import OptionError
from dragoman.models.build import build_model
from dragoman.models.interface import DecoderState, TranslationModel, Vocabulary
from dragoman.text.vocabulary import Vocabularies
from dragoman.text.word_vocabulary import learn_words
from dragoman.weights import vocabulary_of, write_model

SOURCES = [[3, 4, EOS], [4, EOS], [3, 3, 4, EOS]]
TEXTS = ["The dog sees a house.", "A red tree.", "dog"]


def make(name, seed):
    torch.manual_seed(seed)
    model = build_model(FAMILIES[name], contract.VOCABULARY).eval()
    with torch.no_grad():
        model.output.words.normal_(std=3.0)[model.output.pad_id] = 0
    return model


def find(model, **rest):
    pairs = contract.make_pairs(4, seed=2)
    source = pad_sequences(flatten([ids for ids, _ in pairs]), contract.VOCABULARY.pad_id)
    options = SearchOptions(beam_size=3, max_extra_tokens=4, **rest)
    return search(model, source, options, contract.VOCABULARY, num_best=3)


def test_it_is_a_model_like_any_other():
    ensemble = Ensemble([make(name, 1) for name in list(FAMILIES)[:2]])
    assert isinstance(ensemble, TranslationModel)
    source = contract.batch_of(contract.make_pairs(2)).source
    assert isinstance(ensemble.start(ensemble.encode(source), 3), DecoderState)


# Untrained and without residual connections, all words are alike: hypotheses tie.
@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "no-residual"])
def test_a_model_with_itself_is_itself(name):
    model = make(name, 1)
    for alone, together in zip(find(model), find(Ensemble([model] * 3)), strict=True):
        assert [each.tokens for each in together] == [each.tokens for each in alone]
        scores = [each.score for each in alone]
        assert [each.score for each in together] == pytest.approx(scores, abs=1e-4)


def test_families_of_all_kinds_average_their_probabilities():
    members = [make(name, number) for number, name in enumerate(FAMILIES)]
    batch = contract.batch_of(contract.make_pairs(5, seed=1))
    with torch.no_grad():
        shares = [each.output(each.forward(batch).hidden).softmax(-1) for each in members]
        expected = torch.stack(shares).mean(0)
        found = Ensemble(members).forward(batch).hidden.exp()
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-4)
    contract.check_step_equals_forward(Ensemble(members), tolerance=1e-4)


def test_the_best_of_both_is_the_best_by_the_mean_probability():
    models = [RandomModel(seed, size=SIZE) for seed in (1, 2)]
    options = SearchOptions(beam_size=64, max_extra_tokens=1)
    vocabulary = Vocabulary(SIZE, SIZE, PAD, EOS)
    found = search(
        Ensemble(models), pad_sequences(flatten(SOURCES), PAD), options, vocabulary, num_best=2
    )
    for source, hypotheses in zip(SOURCES, found, strict=True):
        for each in hypotheses:
            log = 0.0
            for place, word in enumerate((*each.tokens, EOS)):
                logs = [
                    model.log_probability(tuple(source), each.tokens[:place], word)
                    for model in models
                ]
                log += torch.tensor(logs).exp().mean().log().item()
            assert each.log_probability == pytest.approx(log, abs=1e-4)


def test_coverage_is_the_mean_and_unknown_if_one_cannot_tell():
    models = [RandomModel(seed, size=SIZE, has_attention=True) for seed in (1, 2)]
    source = pad_sequences(flatten(SOURCES), PAD)
    start = torch.full((3, 1), PAD)

    def coverage(*members):
        ensemble = Ensemble(members)
        return ensemble.step(start, ensemble.start(ensemble.encode(source), 3))[1].coverage

    expected = (coverage(models[0]) + coverage(models[1])) / 2
    torch.testing.assert_close(coverage(*models), expected)
    assert coverage(models[0], RandomModel(3, size=SIZE)) is None


# On folders


def test_folders_translate_together(tiny_folder, tmp_path):
    torch.manual_seed(9)
    other = build_model(tiny_folder.folder.options, vocabulary_of(tiny_folder.folder.vocabularies))
    facts = replace(tiny_folder.folder.facts, longest_source=30)
    write_model(tmp_path / "other", replace(tiny_folder.folder, facts=facts), other)
    alone = Translator.load(tiny_folder.path, device="cpu").translate_all(TEXTS)
    same = Translator.load(tiny_folder.path, device="cpu", others=[tiny_folder.path])
    assert [each.text for each in same.translate_all(TEXTS)] == [each.text for each in alone]
    both = Translator.load(tiny_folder.path, device="cpu", others=[tmp_path / "other"])
    assert both.folder.facts.longest_source == 30
    (found,) = both.translate_all(TEXTS[:1], options=SearchOptions(beam_size=1))
    batch = make_batch(flatten([both.encode(TEXTS[0])]), flatten([found.tokens]), 2)
    with torch.no_grad():
        shares = [
            each.output(each.forward(batch).hidden).softmax(-1)
            for each in (tiny_folder.model, other.eval())
        ]
    logs = torch.stack(shares).mean(0).log().gather(2, torch.tensor(found.tokens).view(1, -1, 1))
    assert found.log_probabilities == pytest.approx(logs.flatten().tolist(), abs=1e-4)


def test_the_shortest_limit_counts(tiny_folder):
    options = replace(tiny_folder.folder.options, positions="learned", max_positions=9)
    other = replace(tiny_folder.folder, options=options)
    assert join_folders([tiny_folder.folder, other]).options.max_length == options.max_length
    assert join_folders([other, tiny_folder.folder]).options.max_length == options.max_length


def test_other_subwords_are_refused_by_name(tiny_folder, tmp_path):
    words = learn_words(["the dog"], vocabulary_size=2)
    folder = replace(tiny_folder.folder, vocabularies=Vocabularies(words, words))
    other = build_model(folder.options, vocabulary_of(folder.vocabularies))
    write_model(tmp_path / "other", folder, other)
    with pytest.raises(OptionError) as caught:
        Translator.load(tiny_folder.path, device="cpu", others=[tmp_path / "other"])
    assert str(caught.value) == (
        f"{tmp_path / 'other'}: has other subwords than {tiny_folder.path}, so they cannot "
        "translate together; train it with “--from” that model, or on the same text with the same "
        "vocabulary"
    )
