"""One sentence through the attention of a model."""

import pytest
import torch

from dragoman.decoding.translator import Translator
from dragoman.errors import DataError, FolderError, OptionError
from dragoman.folder import Facts, ModelFolder
from dragoman.models.build import build_model
from dragoman.models.options import TransformerOptions
from dragoman.models.recurrent.options import LuongOptions
from dragoman.options import to_plain
from dragoman.paper.experiments.notes.worked_example import (
    ExampleOptions,
    find_model,
    read_pair,
    run,
)
from dragoman.paper.report.result import Experiment
from dragoman.paper.training_runs import corpora
from dragoman.paper.training_runs import experiment_runs as runs
from dragoman.paper.training_runs.experiment_runs import WorkOptions
from dragoman.paper.training_runs.outcomes import Outcome
from dragoman.weights import vocabulary_of, write_model

SENTENCE = "The old dog sees a small tree."
WORDS = "Le petit chien voit."


def say_nothing(_text: str) -> None:
    """Tell nobody."""


def tell_story(tiny_folder, **changes) -> Experiment:
    chosen = {"model": str(tiny_folder.path), "sentence": SENTENCE, "translation": WORDS}
    return run(ExampleOptions(**chosen | changes), say_nothing)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"layer": 0}, "--layer is 0: give ≥ 1"),
        ({"head": 0}, "--head is 0: give ≥ 1"),
        ({"entries": 0}, "--entries is 0: give ≥ 1"),
        ({"steps": 0}, "--steps is 0: give ≥ 1"),
        ({"sentences": 0}, "--sentences is 0: give ≥ 1"),
        ({"token": 0}, "--token is 0: give ≥ 1, or off"),
        ({"work": ""}, "--work is empty: name a folder"),
        ({"model": "here", "untrained": True}, "--untrained cannot be combined with --model"),
    ],
)
def test_bad_options_are_refused(wrong, message):
    with pytest.raises(OptionError, match=message):
        ExampleOptions(**wrong)


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"model": "nowhere"}, FolderError, "nowhere: no such model folder"),
        ({"layer": 3}, OptionError, "--layer is 3: the encoder has 2"),
        ({"head": 3}, OptionError, "--head is 3: the model has 2"),
        ({"token": 99}, OptionError, "--token is 99: the sentence has .*, the end symbol included"),
        ({"sentence": " "}, DataError, "--sentence is empty; give at least one word"),
        ({"sentence": SENTENCE * 9}, DataError, "--sentence has .* tokens; the example shows 40"),
        ({"translation": WORDS * 9}, DataError, "--translation has .* tokens; .* a shorter one"),
    ],
)
def test_what_cannot_be_shown_is_refused(tiny_folder, changes, kind, message):
    with pytest.raises(kind, match=message):
        tell_story(tiny_folder, **changes)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (LuongOptions(num_layers=1, model_dim=8), "is of the family luong; give a Transformer"),
        (
            TransformerOptions(model_dim=8, num_heads=1, encoder_attention="fastformer"),
            "has fastformer attention; give a Transformer with full attention",
        ),
        (
            TransformerOptions(model_dim=8, num_heads=1, decoder_attention="feedback"),
            "has feedback attention",
        ),
    ],
)
def test_other_models_are_refused_in_one_line(tmp_path, vocabularies, shape, message):
    folder = ModelFolder(path=tmp_path, config={"model": to_plain(shape)}, options=shape,
                         vocabularies=vocabularies, facts=Facts())  # fmt: skip
    write_model(tmp_path, folder, build_model(shape, vocabulary_of(vocabularies)))
    with pytest.raises(OptionError, match=message) as caught:
        find_model(ExampleOptions(model=str(tmp_path)), say_nothing)
    assert "\n" not in str(caught.value)


def test_every_number_is_told_and_right(tiny_folder):
    experiment = tell_story(tiny_folder, layer=2, head=2, entries=2)
    names = [table.name for table in experiment.tables]
    assert len(set(names)) == len(names)
    assert {"encoder-sum", "decoder-weights", "cross-weights", "encoder-heads"} <= set(names)
    checks = experiment.table("checks")
    assert len(checks.rows) == 6
    assert "layer 2, head 2 of 2" in experiment.table("cross-weights").title
    assert len({plot.name for plot in experiment.plots}) == len(experiment.plots) == 4
    assert f"“{SENTENCE}” → “{WORDS}”" in experiment.findings[1]
    assert experiment.seeds == ()


def test_weights_in_the_tables_are_those_that_look_shows(tiny_folder):
    from dragoman.insight.attention import look_at

    look = look_at(Translator.load(tiny_folder.path, "cpu"), SENTENCE, translation=WORDS)
    maps = {(each.kind, each.layer): each.weights for each in look.maps}
    experiment = tell_story(tiny_folder, layer=2, head=2)
    for kind in ("encoder", "decoder", "cross"):
        rows = [row[1:] for row in experiment.table(f"{kind}-weights").rows]
        expected = torch.from_numpy(maps[kind, 2][1]).double()
        torch.testing.assert_close(torch.tensor(rows, dtype=torch.float64), expected,
                                   rtol=0, atol=1e-5)  # fmt: skip


def test_decoder_reads_the_start_symbol_and_each_word_after_the_one_before(tiny_folder):
    reading = read_pair(
        Translator.load(tiny_folder.path, "cpu"),
        ExampleOptions(sentence=SENTENCE, translation=WORDS),
    )
    assert reading.read[0] == "⟨start⟩"
    assert reading.read[1:] == reading.said[:-1]
    assert reading.said[-1] == reading.source[-1] == "⟨end⟩"
    words = SENTENCE.split()
    # Tokens joined by words give the sentence back.
    for number, word in enumerate(words, start=1):
        pieces = [token for token, at in zip(reading.source, reading.words, strict=True)
                  if at == number]  # fmt: skip
        assert "".join(pieces).replace("␣", "") == word
    assert max(reading.words) == len(words)
    assert reading.words[-1] == 0


def test_third_word_is_worked_out_unless_another_token_is_asked_for(tiny_folder):
    reading = read_pair(
        Translator.load(tiny_folder.path, "cpu"),
        ExampleOptions(sentence=SENTENCE, translation=WORDS),
    )
    last = max(place for place, word in enumerate(reading.words, start=1) if word == 3)
    assert f": A<{last}>, " in tell_story(tiny_folder).table("encoder-sum").title
    assert ": A<2>, " in tell_story(tiny_folder, token=2).table("encoder-sum").title
    # Of a sentence that has no third word, the last token before the end symbol.
    short = tell_story(tiny_folder, sentence="dog")
    last = len(short.table("encoder-weights").rows) - 1
    assert f": A<{last}>, " in short.table("encoder-sum").title


def test_without_words_to_say_the_model_says_its_own(tiny_folder):
    translator = Translator.load(tiny_folder.path, "cpu")
    reading = read_pair(translator, ExampleOptions(sentence=SENTENCE))
    assert reading.translation == reading.own == translator.translate(SENTENCE).text


def test_fresh_weights_say_what_the_notes_say_or_what_they_are_told():
    options = ExampleOptions(untrained=True)
    translator, story = find_model(options, say_nothing)
    assert "fresh" in story
    reading = read_pair(translator, options)
    assert reading.translation == "Jane visits Africa in September"
    assert reading.own is None
    with pytest.raises(OptionError, match="--translation is missing: fresh weights"):
        read_pair(translator, ExampleOptions(untrained=True, sentence="Jane dort."))


def test_a_model_is_trained_where_none_is_given(tiny_folder, tmp_path, monkeypatch):
    plans = []

    def stand_in(given, options: WorkOptions, _say):
        plans.extend(given)
        assert options.jobs == 1
        return [Outcome(plan=given[0], folder=tiny_folder.path, num_parameters=1, num_updates=7,
                        seconds=1.0, tokens_per_second=1.0, loss=1.0, bleu=12.5, chrf=1.0,
                        signature="", translations=())], []  # fmt: skip

    monkeypatch.setattr(runs, "run_all", stand_in)
    monkeypatch.setattr(
        corpora,
        "prepare_corpus",
        lambda texts, work, size, _say: corpora.Corpus(
            texts=texts, store=work, key="", vocabulary_size=size, subwords=work, num_pairs=30,
            num_tokens=1,
        ),
    )  # fmt: skip
    said = []
    options = ExampleOptions(sentences=30, steps=9, work=str(tmp_path))
    translator, story = find_model(options, said.append)
    assert translator.folder.path == tiny_folder.path
    assert "trained first" in said[0]
    assert "7 updates on 30 pairs" in story
    assert "BLEU 12.5" in story
    (plan,) = plans
    assert plan.preset == "nano"
    assert plan.flags[:2] == ("--max-steps", "9")
    assert (tmp_path / "data").exists()
