"""What is scored is what is served: every way to a translation gives the same one."""

import asyncio
import shutil
from contextlib import nullcontext

import pytest

import dragoman
from dragoman.cli.command import main
from dragoman.data.corpus import CorpusFiles
from dragoman.data.options import CorpusOptions
from dragoman.data.store.clean_text import store_text
from dragoman.data.store.store import store_ids
from dragoman.decoding.output.quality_checks import find_quality_issue
from dragoman.decoding.translator import Translator
from dragoman.evaluation.evaluate import evaluate_model
from dragoman.serving.language_pairs import load_models
from dragoman.serving.service import Service
from dragoman.serving.service_types import Client, Request
from dragoman.training.run import resume_run
from dragoman.training.validation import Validator, choose_probes
from dragoman.weights import load_model

TEXTS = [
    "The old dog sees a house.",
    "A small tree. The dog likes the old garden! Finds a house",
    "garden",
    "The dog sees the tree the dog sees the tree the dog sees. Old garden.",
]


@pytest.fixture(scope="module")
def path(tiny_folder, tmp_path_factory):
    """A model that nobody quantised, whose translations look wrong more often than not."""
    copied = tmp_path_factory.mktemp("models") / "one"
    shutil.copytree(tiny_folder.path, copied)
    return copied


@pytest.fixture(scope="module")
def expected(path):
    found = dragoman.load(str(path), device="cpu").translate_all(TEXTS)
    assert {len(each.parts) for each in found} == {1, 2, 3}
    assert any("another search did better" in note for each in found for note in each.notes)
    return [each.text for each in found]


@pytest.fixture
def files(tmp_path):
    for name in ("source", "reference"):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return tmp_path / "source", tmp_path / "reference"


def test_the_command(path, expected, files, capsys):
    main(["translate", str(path), str(files[0]), "--device", "cpu"])
    assert capsys.readouterr().out.split("\n")[:-1] == expected


def test_the_score(path, expected, files):
    found = evaluate_model(path, files[0], [files[1]], metrics=["chrf"], device="cpu")
    assert list(found.translations) == expected


def test_the_server(path, expected):
    service = Service(load_models([path], "cpu"))

    async def ask():
        service.start()
        try:
            request = Request(
                texts=tuple(TEXTS), source="en", target="fr", client=Client(name="somebody")
            )
            return await service.translate(request)
        finally:
            await asyncio.to_thread(service.stop)

    assert [each.text for each in asyncio.run(ask())] == expected


def test_validations(path, expected, files, tiny_folder, tmp_path, corpus_files, monkeypatch):
    pairs = CorpusFiles(source=files[:1], target=files[1:])
    text = store_text(tmp_path / "store", corpus_files, pairs, CorpusOptions())
    store = store_ids(text, tiny_folder.folder.vocabularies, 256)
    translator = Translator(tiny_folder.folder, load_model(tiny_folder.folder), "cpu")
    validator = Validator(translator, store.valid, beam_size=3, precision=nullcontext())
    seen = []

    def look(translations, references, **_):
        seen.append((translations, references))
        return 12.5

    monkeypatch.setattr("dragoman.training.validation.corpus_bleu", look)
    found = validator.validate()
    assert seen == [(expected, [TEXTS])]
    assert found.bleu == 12.5
    assert len(found.probes) == 3
    assert all(tuple(each) in zip(TEXTS, TEXTS, expected, strict=True) for each in found.probes)


def test_both_can_be_switched_off(path, expected, files, capsys):
    words = ["translate", str(path), str(files[0]), "--device", "cpu", "--no-search-again"]
    main([*words, "--split-sentences", "off"])
    raw = capsys.readouterr().out.split("\n")[:-1]
    translator = Translator.load(path, "cpu")
    options = translator.options_with({"search_again": False, "split_sentences": "off"})
    found = translator.translate_all(TEXTS, options=options)
    assert [each.text for each in found] == raw != expected
    assert all(len(each.parts) == 1 and not each.notes for each in found)
    doubts = [find_quality_issue(text, each) for text, each in zip(TEXTS, raw, strict=True)]
    assert any(doubts)


@pytest.mark.parametrize(
    ("lengths", "rows"),
    [
        ([], []),
        ([5], [0]),
        ([9, 4], [1, 0]),
        ([9, 4, 6], [1, 2, 0]),
        ([7, 7, 7, 7, 7, 7], [1, 3, 5]),  # of equal ones in their order
        ([60, 50, 40, 30, 20, 10], [4, 2, 0]),
    ],
)
def test_probes_are_a_short_a_middling_and_a_longer_sentence(lengths, rows):
    assert choose_probes(lengths) == rows


def test_every_validation_shows_the_same_probes_also_of_a_resumed_run(run, small, events, tmp_path):
    out = run(tmp_path / "out", small)
    resume_run(out, {"training": {"max_steps": 12}}, print)
    probes = [each["probes"] for each in events(out, "validation")]
    assert len(probes) == 3
    assert len({str([pair[:2] for pair in each]) for each in probes}) == 1
    lengths = [len(source.split()) for source, _, _ in probes[0]]
    assert len(lengths) == 3
    assert lengths[0] < lengths[2]
    updates = events(out, "update")
    assert updates[-1]["share_done"] == 1
    assert all(0 < each["share_done"] <= 1 for each in updates)
