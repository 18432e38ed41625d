"""What is demanded of translations, by the compiled search and by that of all models."""

import re
import subprocess
import sys

import pytest

from dragoman.decoding.constraints.constraints import Constraints, prepare_constraints
from dragoman.decoding.constraints.glossary import ForbiddenPhrase, Glossary, Term
from dragoman.decoding.options import SamplingOptions
from dragoman.decoding.segment_search import SegmentSearch
from dragoman.decoding.translator import Translator
from dragoman.kernels import processor

pytestmark = pytest.mark.skipif(not processor.can_compile(), reason="nothing is compiled here")

TEXTS = [
    "The dog sees a house.",
    "A small tree.",
    "The old dog likes the dog and the house!",
    "dog",
    "a b c",
    "The small house sees a tree and an old dog.",
]
TERMS = [("dog", "teckel"), ("house", "vieux jardin"), ("tree", "arbre")]


@pytest.fixture(scope="module")
def translator(tiny_folder):
    return Translator.load(tiny_folder.path, device="cpu", precision="float32")


@pytest.fixture(scope="module")
def phrases(translator):
    """Give words that the model says where nothing is forbidden, and some others."""
    found = translator.translate_all(TEXTS, num_best=3)
    said = {
        word
        for best in found
        for each in (best, *best.alternatives)
        for word in re.findall(r"\w+", each.text)
    }
    return [*sorted(said)[:8], "le", "."]


def constrain(translator, terms=(), phrases=()):
    glossary = Glossary([Term(*pair, "here") for pair in terms]) if terms else None
    forbidden = tuple(ForbiddenPhrase(each, "there") for each in phrases)
    target = translator.folder.vocabularies.target
    return prepare_constraints(target, glossary=glossary, phrases=forbidden).constraints


def translate_both_ways(translator, monkeypatch, constraints, **said):
    how = {name: said.pop(name) for name in ("num_best", "prefix") if name in said}
    options = translator.options_with({"max_extra_tokens": 8, "search_again": False} | said)
    compiled = translator.translate_all(TEXTS, options=options, constraints=constraints, **how)
    with monkeypatch.context() as changed:
        changed.setattr(SegmentSearch, "_can_find", lambda *_: False)
        general = translator.translate_all(TEXTS, options=options, constraints=constraints, **how)
    return compiled, general


def assert_same(compiled, general):
    for ours, theirs in zip(compiled, general, strict=True):
        assert ours.notes == theirs.notes
        assert ours.tokens == theirs.tokens
        assert ours.score == pytest.approx(theirs.score, abs=1e-4)
        assert ours.log_probabilities == pytest.approx(theirs.log_probabilities, abs=1e-4)
        mine, others = ([each.text for each in best.alternatives] for best in (ours, theirs))
        assert mine == others


@pytest.mark.parametrize("prefix", ["", "Le vieux"])
@pytest.mark.parametrize(("beam_size", "num_best"), [(1, 1), (3, 3), (5, 2)])
@pytest.mark.parametrize("forbids", [False, True])
def test_terms_and_forbidden_words(
    translator, phrases, monkeypatch, prefix, beam_size, num_best, forbids
):
    """With room for few more words than the terms have, too."""
    constraints = constrain(translator, TERMS, phrases[:5] if forbids else ())
    for extra in (2, 8):
        found = translate_both_ways(
            translator, monkeypatch, constraints, prefix=prefix, beam_size=beam_size,
            num_best=num_best, max_extra_tokens=extra,
        )  # fmt: skip
        assert_same(*found)
    for text, each in zip(TEXTS, found[0], strict=True):
        assert "dog" not in text or "teckel" in each.text.lower()


@pytest.mark.parametrize("beam_size", [1, 4])
def test_forbidden_words_alone(translator, phrases, monkeypatch, beam_size):
    plain, _ = translate_both_ways(translator, monkeypatch, Constraints(), beam_size=beam_size)
    said = [each.text for each in plain if each.text]
    constraints = constrain(translator, phrases=[*phrases, *said])
    found = translate_both_ways(translator, monkeypatch, constraints, beam_size=beam_size)
    assert_same(*found)
    assert not set(said) & {each.text for each in found[0] if not each.notes}


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingOptions(seed=2),
        SamplingOptions(temperature=3.0, top_k=5),
        SamplingOptions(top_p=0.4),
        SamplingOptions(top_k=9, top_p=0.8),
    ],
)
@pytest.mark.parametrize("prefix", ["", "Le"])
def test_samples(translator, monkeypatch, sampling, prefix):
    constraints = Constraints(sampling=sampling)
    assert_same(
        *translate_both_ways(translator, monkeypatch, constraints, num_best=4, prefix=prefix)
    )


def test_samples_without_forbidden_words(translator, phrases, monkeypatch):
    target = translator.folder.vocabularies.target
    forbidden = tuple(ForbiddenPhrase(each, "there") for each in phrases)
    constraints = prepare_constraints(
        target, phrases=forbidden, sampling=SamplingOptions()
    ).constraints
    assert_same(*translate_both_ways(translator, monkeypatch, constraints, num_best=3))


def test_wide_beams(translator, monkeypatch):
    found = translate_both_ways(translator, monkeypatch, Constraints(), beam_size=40, num_best=40)
    assert_same(*found)


def test_a_short_list_does_not_stand_in_the_way_of_what_is_demanded(translator, tiny_folder):
    class FewWords:
        def words_of(self, _source):
            return [translator.folder.vocabularies.eos_id]

    listed = Translator.load(tiny_folder.path, device="cpu", precision="float32")
    listed.short_list = FewWords()
    options = listed.options_with({"search_again": False})
    assert listed.translate(TEXTS[0], options=options).text == ""
    for constraints in (
        constrain(listed, TERMS), constrain(listed, phrases=["le"]),
        Constraints(sampling=SamplingOptions()),
    ):  # fmt: skip
        expected = translator.translate(TEXTS[0], options=options, constraints=constraints)
        assert listed.translate(TEXTS[0], options=options, constraints=constraints) == expected


def test_nothing_that_may_be_demanded_needs_pytorch(tiny_folder, tmp_path):
    source, terms, phrases = (tmp_path / name for name in ("source", "terms", "phrases"))
    source.write_text("The dog sees a house.\n")
    terms.write_text("dog\tteckel\n")
    phrases.write_text("le\n")
    ways = [
        [],
        ["--n-best", "3"],
        ["--scores", "--prefix", "Le"],
        ["--terms", terms, "--forbid", phrases],
        ["--sample", "--top-k", "5"],
    ]
    code = (
        "import sys; from dragoman.cli.command import main\n"
        f"for way in {[list(map(str, way)) for way in ways]!r}:\n"
        f"    main(['translate', {str(tiny_folder.path)!r}, '--device', 'cpu', *way, "
        f"{str(source)!r}])\n"
        "print([name for name in ('torch', 'triton') if name in sys.modules], file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr.splitlines()[-1] == "[]", run.stderr
