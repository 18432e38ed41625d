"""Which engine is taken for which model, where."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dragoman.data.batches import flatten
from dragoman.decoding import engines
from dragoman.decoding.engine import Engine
from dragoman.decoding.engines import choose_precision, fits_int8, load_engine
from dragoman.decoding.graph_engine import GraphEngine
from dragoman.decoding.products import has_int8
from dragoman.decoding.quantise import write_int8
from dragoman.decoding.translator import Translator
from dragoman.errors import OptionError
from dragoman.folder import read_folder
from dragoman.weights import vocabulary_of

CPU = torch.device("cpu")
needs_int8 = pytest.mark.skipif(not has_int8(), reason="this processor has no FBGEMM")


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


@needs_int8
class TestPrecision:
    def test_float_is_taken_unless_the_folder_says_that_eight_bits_do(self, folder, monkeypatch):
        assert choose_precision(folder, CPU, "auto") == "float32"
        fitting = replace(folder, facts=replace(folder.facts, fits_int8=True))
        assert choose_precision(fitting, CPU, "auto") == "float32"  # too narrow to be faster
        monkeypatch.setattr(engines, "LEAST_WIDTH", 1)
        assert choose_precision(fitting, CPU, "auto") == "int8"
        assert choose_precision(fitting, CPU, "float32") == "float32"

    def test_a_folder_in_eight_bits_is_taken_at_its_word(self, folder, tmp_path):
        write_int8(folder, tmp_path / "int8")
        assert choose_precision(read_folder(tmp_path / "int8"), CPU, "auto") == "int8"

    def test_elsewhere_it_is_float(self, folder):
        fitting = replace(folder, facts=replace(folder.facts, fits_int8=True))
        assert choose_precision(fitting, torch.device("meta"), "auto") == "float32"

    @pytest.mark.parametrize(
        ("device", "changes", "has", "obstacle"),
        [
            ("meta", {}, True, "the device is meta, and eight bits are for the CPU"),
            (
                "cpu",
                {},
                False,
                "this processor, or this build of PyTorch, does not multiply in eight bits",
            ),
            (
                "cpu",
                {"encoder_attention": "restricted"},
                True,
                "only Transformers with full attention and without experts are computed so",
            ),
        ],
    )
    def test_what_stands_in_the_way_is_said(
        self, folder, monkeypatch, device, changes, has, obstacle
    ):
        monkeypatch.setattr(engines, "has_int8", lambda: has)
        other = replace(folder, options=replace(folder.options, **changes))
        with pytest.raises(OptionError) as caught:
            choose_precision(other, torch.device(device), "int8")
        assert str(caught.value) == (
            f"precision is “int8”, but {obstacle}; give --precision float32"
        )


class TestHalfPrecision:
    """On a card, without one: nothing is computed there."""

    CARD = torch.device("cuda")

    def test_a_card_takes_it_for_what_can_be_rebuilt(self, folder):
        assert choose_precision(folder, self.CARD, "auto") == "float16"
        assert choose_precision(folder, self.CARD, "float16") == "float16"
        assert choose_precision(folder, self.CARD, "float32") == "float32"
        other = replace(folder, options=replace(folder.options, encoder_attention="restricted"))
        assert choose_precision(other, self.CARD, "auto") == "float32"

    @pytest.mark.parametrize(
        ("device", "changes", "obstacle"),
        [
            ("cpu", {}, "the device is cpu, and half precision is for NVIDIA cards"),
            ("mps", {}, "the device is mps, and half precision is for NVIDIA cards"),
            (
                "cuda",
                {"num_experts": 2},
                "only Transformers with full attention and without experts are computed so",
            ),
        ],
    )
    def test_what_stands_in_the_way_is_said(self, folder, device, changes, obstacle):
        other = replace(folder, options=replace(folder.options, **changes))
        with pytest.raises(OptionError) as caught:
            choose_precision(other, torch.device(device), "float16")
        assert str(caught.value) == (
            f"precision is “float16”, but {obstacle}; give --precision float32"
        )


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float16", "float32"])
def test_a_card_has_an_engine_with_a_search_of_its_own(folder, precision):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    texts = ["the cat sees a dog .", "a dog", "we read the books ."]
    fast = Translator.load(folder.path, "cuda", precision=precision)
    assert isinstance(fast.engine, GraphEngine)
    found = [each.text for each in fast.translate_all(texts, num_best=2)]
    exact = Translator.load(folder.path, "cpu", precision="float32")
    same = [each.text for each in exact.translate_all(texts, num_best=2)]
    assert found == same or precision == "float16"


class TestLoading:
    def test_a_transformer_is_rebuilt(self, folder):
        assert isinstance(load_engine(folder, CPU), Engine)

    def test_translations_are_those_of_the_model(self, folder):
        fast = Translator.load(folder.path, "cpu")
        plain = Translator(folder, fast.model, CPU)
        texts = ["the cat sees a dog .", "a dog", "we read the books ."]
        both = [each.translate_all(texts) for each in (fast, plain)]
        for one, other in zip(*both, strict=True):
            numbers = {"score": other.score, "log_probabilities": other.log_probabilities}
            assert replace(one, **numbers) == other
            assert one.score == pytest.approx(other.score, abs=1e-5)
            assert one.log_probabilities == pytest.approx(other.log_probabilities, abs=1e-5)

    @needs_int8
    def test_the_translator_asks_for_what_is_wanted(self, folder, monkeypatch):
        monkeypatch.setattr("dragoman.decoding.translator.is_compiled", lambda *_: False)
        seen = []

        def load(*arguments):
            seen.append(arguments[2])
            return load_engine(*arguments)

        monkeypatch.setattr("dragoman.decoding.engines.load_engine", load)
        assert Translator.load(folder.path, "cpu", precision="int8").translate("a dog").text
        assert seen == ["int8"]


@needs_int8
class TestFitting:
    @pytest.mark.parametrize(("change", "expected"), [(0.0099, True), (0.0101, False)])
    def test_what_counts_is_how_the_loss_changes(self, folder, monkeypatch, change, expected):
        monkeypatch.setattr(engines, "int8_loss_change", lambda *_: change)
        assert fits_int8(folder, *some_pairs(folder)) is expected
