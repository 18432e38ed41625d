"""Which engine is taken for which model, where."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dragoman.cli.command import main
from dragoman.data.batches import flatten
from dragoman.decoding.engines import select as engines
from dragoman.decoding.engines.cuda.cuda_engine import CudaEngine
from dragoman.decoding.engines.select import choose_engine, fits_int8, load_engine
from dragoman.decoding.quantise import write_int8
from dragoman.decoding.translator import Translator
from dragoman.errors import OptionError
from dragoman.folder import read_folder
from dragoman.kernels.processor import can_compile, choose_instructions
from dragoman.models.transformer import Transformer
from dragoman.weights import vocabulary_of

CPU = torch.device("cpu")
needs_compiler = pytest.mark.skipif(not can_compile(), reason="needs Numba")
RESTRICTED = {"encoder_attention": "restricted"}


@pytest.fixture
def folder(tiny_folder):
    return read_folder(tiny_folder.path)


def some_pairs(folder):
    """Make sentences, each its own translation, as a store gives them."""
    vocabulary = vocabulary_of(folder.vocabularies)
    generator = np.random.default_rng(2)
    rows = generator.integers(4, vocabulary.source_size, (4, 5)).tolist()
    rows = [[*row, vocabulary.eos_id] for row in rows]
    return flatten(rows), flatten(rows)


def with_options(folder, changes):
    return replace(folder, options=replace(folder.options, **changes))


def choose(folder, device, precision):
    return choose_engine(folder, device, precision)[:2]


@needs_compiler
class TestOnACpu:
    def test_float_is_taken_unless_the_folder_says_that_eight_bits_do(self, folder):
        assert choose(folder, "cpu", "auto") == ("cpu", "float32")
        fitting = replace(folder, facts=replace(folder.facts, fits_int8=True))
        assert choose(fitting, "cpu", "auto") == ("cpu", "int8")
        assert choose(fitting, "cpu", "float32") == ("cpu", "float32")
        assert choose(folder, "cpu", "int8") == ("cpu", "int8")

    def test_a_folder_in_eight_bits_is_taken_at_its_word(self, folder, tmp_path):
        write_int8(folder, tmp_path / "int8")
        assert choose(read_folder(tmp_path / "int8"), "cpu", "auto") == ("cpu", "int8")

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"positions": "rotary"}, ("reference", "float32")),
            ({"norm": "batch"}, ("reference", "float32")),
            (RESTRICTED, ("reference", "float32")),
            ({"num_experts": 2}, ("reference", "float32")),
        ],
    )
    def test_what_cannot_be_compiled_is_pytorchs(self, folder, changes, expected):
        assert choose(with_options(folder, changes), "cpu", "auto") == expected

    def test_it_says_why(self, folder, monkeypatch):
        monkeypatch.setattr(engines.processor, "choose_instructions", lambda: "avx2")
        said = choose_engine(folder, "cpu", "int8").explain()
        assert said == "compiled for this processor (avx2), in int8: as was asked for"


def test_without_a_compiler_the_model_itself_translates(folder, monkeypatch):
    monkeypatch.setattr(engines.processor, "can_compile", lambda: False)
    monkeypatch.setattr("dragoman.decoding.engines.cpu.cpu_weights.can_compile", lambda: False)
    choice = choose_engine(folder, "cpu", "auto")
    assert choice[:2] == ("reference", "float32")
    assert (
        choice.why == "Numba, which compiles for this processor, is not installed or switched off"
    )
    assert isinstance(load_engine(folder, CPU, choice), Transformer)
    with pytest.raises(
        OptionError, match=r"but Numba, which compiles .*; give --precision float32"
    ):
        choose_engine(folder, "cpu", "int8")
    translator = Translator.load(folder.path, "cpu")
    assert isinstance(translator.engine, Transformer)
    assert translator.translate("the cat sees a dog .").text


@needs_compiler
def test_the_command_tells_which_engine_translates(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_INSTRUCTIONS", "")
    text = tmp_path / "text"
    text.write_text("the cat sees a dog .\n")
    main(["translate", str(folder.path), str(text), "--device", "cpu", "--explain-engine"])
    said = capsys.readouterr().err.splitlines()[0]
    name = choose_instructions()
    assert said == (
        f"engine: compiled for this processor ({name}), in float32: nobody measured what eight "
        "bits would cost"
    )


class TestObstacles:
    @pytest.mark.parametrize(
        ("device", "precision", "changes", "obstacle"),
        [
            ("mps", "int8", {}, "the device is mps, and eight bits are for the CPU"),
            pytest.param("cpu", "int8", RESTRICTED, engines.NOT_COMPILED, marks=needs_compiler),
            pytest.param(
                "cpu", "int8", {"positions": "rotary"}, engines.NOT_COMPILED, marks=needs_compiler
            ),
            ("cpu", "float16", {}, "the device is cpu, and half precision is for NVIDIA cards"),
            ("mps", "float16", {}, "the device is mps, and half precision is for NVIDIA cards"),
            ("cuda", "float16", {"num_experts": 2}, engines.NOT_REBUILT),
        ],
    )
    def test_what_stands_in_the_way_is_said(self, folder, device, precision, changes, obstacle):
        with pytest.raises(OptionError) as caught:
            choose_engine(with_options(folder, changes), device, precision)
        assert str(caught.value) == (
            f"precision is “{precision}”, but {obstacle}; give --precision float32"
        )


class TestElsewhere:
    """On a card, without one: nothing is computed there."""

    @pytest.mark.parametrize("has_triton", [True, False])
    def test_a_card_takes_half_precision_for_what_can_be_rebuilt(
        self, folder, monkeypatch, has_triton
    ):
        monkeypatch.setattr("dragoman.kernels.language.has_triton", has_triton)
        graph = ("cuda",) * 2 if has_triton else ("rebuilt", "reference")
        assert choose(folder, "cuda", "auto") == (graph[0], "float16")
        assert choose(folder, "cuda", "float16") == (graph[0], "float16")
        assert choose(folder, "cuda", "float32") == (graph[1], "float32")
        rotary = with_options(folder, {"positions": "rotary"})
        assert choose(rotary, "cuda", "auto") == ("rebuilt", "float16")
        assert choose(rotary, "cuda", "float32") == ("reference", "float32")
        assert choose(with_options(folder, RESTRICTED), "cuda", "auto") == ("reference", "float32")

    def test_another_device_takes_the_model_as_it_is(self, folder):
        fitting = replace(folder, facts=replace(folder.facts, fits_int8=True))
        assert choose(fitting, "mps", "auto") == ("reference", "float32")
        choice = choose_engine(fitting, "mps", "auto")
        assert isinstance(load_engine(folder, CPU, choice), Transformer)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float16", "float32"])
def test_a_card_has_an_engine_with_a_search_of_its_own(folder, precision):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    texts = ["the cat sees a dog .", "a dog", "we read the books ."]
    fast = Translator.load(folder.path, "cuda", precision=precision)
    assert isinstance(fast.engine, CudaEngine)
    found = [each.text for each in fast.translate_all(texts, num_best=2)]
    exact = Translator.load(folder.path, "cpu", precision="float32")
    same = [each.text for each in exact.translate_all(texts, num_best=2)]
    assert found == same or precision == "float16"


def test_translations_are_those_of_the_model(folder):
    fast = Translator.load(folder.path, "cpu", precision="float32")
    plain = Translator(folder, fast.model, CPU)
    texts = ["the cat sees a dog .", "a dog", "we read the books ."]
    both = [each.translate_all(texts) for each in (fast, plain)]
    for one, other in zip(*both, strict=True):
        numbers = {"score": other.score, "log_probabilities": other.log_probabilities}
        assert replace(one, **numbers) == other
        assert one.score == pytest.approx(other.score, abs=1e-5)
        assert one.log_probabilities == pytest.approx(other.log_probabilities, abs=1e-5)


@needs_compiler
class TestFitting:
    @pytest.mark.parametrize(("change", "expected"), [(0.0099, True), (0.0101, False)])
    def test_what_counts_is_how_the_loss_changes(self, folder, monkeypatch, change, expected):
        monkeypatch.setattr("dragoman.decoding.quantise.int8_loss_change", lambda *_: change)
        assert fits_int8(folder, *some_pairs(folder)) is expected

    def test_what_cannot_be_compiled_does_not_fit(self, folder):
        assert not fits_int8(with_options(folder, RESTRICTED), *some_pairs(folder))
