"""Choices against the model's own distribution, followed word by word without any search."""

import math
from dataclasses import replace

import pytest
import torch

from dragoman.data.batches import flatten, make_batch
from dragoman.decoding.translator import Translator
from dragoman.errors import DataError, OptionError
from dragoman.insight import choices as choices_module
from dragoman.insight.choices import list_choices
from dragoman.insight.word_groups import begins_word
from dragoman.models.build import build_model
from dragoman.text.vocabulary import Vocabularies
from dragoman.text.word_vocabulary import Words
from dragoman.weights import vocabulary_of

SOURCE = "le chien voit la maison"
# Some of these go on with a word, or close it.
WORDS = Words([" le", " la", " un", " chien", " maison", " voit", " l", "’", "homme", "s", "."])
MOST_SUBWORDS = 12


@pytest.fixture(scope="module")
def translator(tiny_folder, tiny_options):
    vocabularies = Vocabularies(WORDS, WORDS)
    torch.manual_seed(3)
    model = build_model(tiny_options, vocabulary_of(vocabularies)).eval()
    with torch.no_grad():
        model.output.words.mul_(3.0)
    folder = replace(tiny_folder.folder, vocabularies=vocabularies)
    return Translator(folder, model, torch.device("cpu"))


@pytest.fixture
def subword_translator(tiny_folder):
    return Translator.load(tiny_folder.path, "cpu", precision="float32")


def next_logs(translator, ids):
    """The log-probability of every subword after some."""
    vocabularies = translator.folder.vocabularies
    batch = make_batch(
        flatten([translator.encode(SOURCE)]), flatten([(*ids, vocabularies.eos_id)]),
        vocabularies.pad_id,
    )  # fmt: skip
    with torch.inference_mode():
        logs = translator.model.output(translator.model.forward(batch).hidden)[0, -1].log_softmax(
            -1
        )
        logs[[vocabularies.pad_id, vocabularies.target.unk_id]] = -torch.inf
    return logs


def follow(translator, prefix_ids, first):
    """The most probable word that begins with a subword, and its log-probability."""
    vocabulary = translator.folder.vocabularies.target
    ids, total = [*prefix_ids, first], float(next_logs(translator, prefix_ids)[first])
    while len(ids) < len(prefix_ids) + MOST_SUBWORDS:
        logs = next_logs(translator, ids)
        best = int(logs.argmax())
        before, piece = vocabulary.pieces([ids[-1], best])
        if best == vocabulary.eos_id or begins_word(piece, before):
            return vocabulary.decode([ids])[0], total
        ids.append(best)
        total += float(logs[best])
    return None, total


@pytest.mark.parametrize("prefix", ["", "le", "le chien", "l’homme voit un"])
def test_words_and_probabilities_are_those_of_the_model(translator, prefix):
    vocabulary = translator.folder.vocabularies.target
    prefix_ids = vocabulary.encode([prefix])[0]
    expected: dict[str, float] = {}
    logs = next_logs(translator, prefix_ids)
    for first in range(len(vocabulary)):
        if choices_module._may_follow(translator, prefix_ids, first) and logs[first] > -torch.inf:
            text, total = follow(translator, prefix_ids, first)
            if text is not None:
                expected[text] = expected.get(text, 0) + math.exp(total)
    found = list_choices(translator, SOURCE, prefix, num_choices=8)
    chances = [each.probability for each in found]
    assert chances == sorted(chances, reverse=True)
    compared = [each for each in found if each.word and each.prefix in expected]
    assert len(compared) >= 4
    for each in compared:
        assert each.probability == pytest.approx(expected[each.prefix], rel=1e-3)
        assert each.prefix.startswith(prefix)
        assert each.prefix.endswith(each.word)
        assert each.translation.startswith(each.prefix)
    end = math.exp(float(logs[vocabulary.eos_id]))
    ends = [each.probability for each in found if not each.word]
    assert ends == pytest.approx([end] * len(ends), rel=1e-4)


def test_translation_shown_is_the_greedy_one_from_there(translator):
    greedy = translator.options_with(
        {"beam_size": 1, "replace_unknown": False, "search_again": False}
    )
    shown = [each for each in list_choices(translator, SOURCE, "le") if each.word]
    for each in shown:
        if WORDS.unk_id not in WORDS.encode([each.translation])[0]:
            found = translator.translate(SOURCE, prefix=each.prefix, options=greedy).text
            # A longer prefix leaves more room, so that one of them may go on.
            assert found.startswith(each.translation) or each.translation.startswith(found)
    assert len(shown) >= 4


def test_end_is_a_choice_where_the_model_would_stop(translator, monkeypatch):
    eos_id = translator.folder.vocabularies.eos_id
    monkeypatch.setattr(choices_module, "_first_subwords", lambda *_: [(eos_id, -0.5)])
    (end,) = list_choices(translator, SOURCE, "le chien")
    assert (end.word, end.prefix, end.translation) == ("", "le chien", "le chien")
    assert end.probability == pytest.approx(math.exp(-0.5))


def test_letters_do_not_make_another_word_of_the_one_before(subword_translator):
    translator = subword_translator
    vocabulary = translator.folder.vocabularies.target
    names = vocabulary.pieces(range(len(vocabulary)))
    prefix_ids = vocabulary.encode(["Le"])[0]
    for token_id, name in enumerate(names):
        may_follow = choices_module._may_follow(translator, prefix_ids, token_id)
        if token_id == vocabulary.eos_id:
            assert not may_follow
        else:
            assert may_follow == (name.startswith("▁") or not name[0].isalnum())


def test_what_cannot_be_asked_is_refused(translator):
    with pytest.raises(DataError, match="the sentence to translate is empty; give at least one"):
        list_choices(translator, " ", "")


def test_prefix_that_cannot_be_written_is_refused(subword_translator, monkeypatch):
    translator = subword_translator
    subwords = type(translator.folder.vocabularies.target)
    unknown = translator.folder.vocabularies.target.unk_id
    monkeypatch.setattr(subwords, "encode", lambda *_: [[unknown]])
    with pytest.raises(OptionError, match="prefix: “x” has characters that the model cannot write"):
        list_choices(translator, SOURCE, "x")
