"""Models in eight bits: near the float ones, blind to neighbours, and a quarter of the size."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.decoding.engines.cuda.test_rebuilt_transformer import SMALL
from torch.nn import functional

from dragoman.data.batches import flatten, make_batch, pad_sequences
from dragoman.decoding.engines.cpu.cpu_decoder import CpuDecoder
from dragoman.decoding.engines.cpu.cpu_engine import CpuEngine
from dragoman.decoding.quantise import int8_loss_change, write_int8
from dragoman.errors import FolderError, OptionError
from dragoman.folder import WEIGHTS_FILE, Facts, ModelFolder, read_folder
from dragoman.kernels.processor import can_compile
from dragoman.models.build import build_model
from dragoman.options import to_plain
from dragoman.tensor_files import TensorFile
from dragoman.weights import load_model, vocabulary_of, write_model

pytestmark = pytest.mark.skipif(not can_compile(), reason="needs Numba")

KINDS = {
    "paper": {},
    "untied": {"tied_embeddings": "none"},
    "target tied": {"tied_embeddings": "target"},
    "learned": {"positions": "learned"},
    "biases": {"attention_bias": True, "output_bias": True},
    "swiglu": {"feed_forward": "swiglu"},
}


@pytest.fixture
def make_folder(tmp_path, vocabularies):
    def make(**changes):
        torch.manual_seed(4)
        options = replace(SMALL, **changes)
        config = {"model": to_plain(options)}
        folder = ModelFolder(
            path=tmp_path / "float",
            config=config,
            options=options,
            vocabularies=vocabularies,
            facts=Facts(weights="best"),
        )
        model = build_model(options, vocabulary_of(vocabularies)).eval()
        for each in model.parameters():
            if each.dim() == 1:
                torch.nn.init.normal_(each, mean=float(each.detach().mean()), std=0.3)
        write_model(folder.path, folder, model)
        return read_folder(folder.path), model

    return make


def load_int8(folder):
    return CpuDecoder(CpuEngine.load(folder, "int8", searches=False))


def some_sentences(vocabulary, count=6):
    generator = torch.Generator().manual_seed(7)
    rows = [
        [*torch.randint(4, vocabulary.source_size, (n,), generator=generator).tolist(), 0]
        for n in range(2, 2 + count)
    ]
    return [[*row[:-1], vocabulary.eos_id] for row in rows]


def first_scores(engine, source, vocabulary):
    with torch.inference_mode():
        state = engine.start(engine.encode(source), 4)
        tokens = torch.full((len(source.lengths), 1), vocabulary.pad_id)
        hidden, _ = engine.step(tokens, state)
        return engine.output(hidden)[:, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_near_those_in_float(make_folder, kind):
    folder, model = make_folder(**KINDS[kind])
    vocabulary = vocabulary_of(folder.vocabularies)
    source = pad_sequences(flatten(some_sentences(vocabulary)), vocabulary.pad_id)
    exact = first_scores(model, source, vocabulary)
    rounded = first_scores(load_int8(folder), source, vocabulary)
    is_word = torch.arange(vocabulary.target_size) != vocabulary.pad_id
    exact, rounded = exact[:, is_word], rounded[:, is_word]
    assert (exact - rounded).norm() < 0.08 * exact.norm()
    assert not torch.equal(exact, rounded)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_in_eight_bits_gives_the_same_engine(make_folder, tmp_path, kind):
    folder, _ = make_folder(**KINDS[kind])
    write_int8(folder, tmp_path / "int8")
    small = read_folder(tmp_path / "int8")
    vocabulary = vocabulary_of(folder.vocabularies)
    source = pad_sequences(flatten(some_sentences(vocabulary)), vocabulary.pad_id)
    found, expected = (
        first_scores(load_int8(each), source, vocabulary) for each in (small, folder)
    )
    assert torch.equal(found, expected)
    assert small.facts.weights == "best, in eight bits"


def test_the_plain_model_of_a_folder_in_eight_bits_is_near_too(make_folder, tmp_path):
    folder, model = make_folder()
    write_int8(folder, tmp_path / "int8")
    restored = load_model(read_folder(tmp_path / "int8"))
    for one, other in zip(restored.parameters(), model.parameters(), strict=True):
        assert (one - other).abs().max() <= other.abs().max() / 200


def test_matrices_take_a_quarter(make_folder, tmp_path):
    folder, _ = make_folder(model_dim=64, feed_forward_dim=256)
    write_int8(folder, tmp_path / "int8")
    sizes = [(path / WEIGHTS_FILE).stat().st_size for path in (tmp_path / "int8", folder.path)]
    assert sizes[0] < 0.33 * sizes[1]


def test_the_change_of_the_loss_is_that_of_teacher_forcing(make_folder, tmp_path):
    folder, model = make_folder()
    vocabulary = vocabulary_of(folder.vocabularies)
    rows = some_sentences(vocabulary)
    batch = make_batch(flatten(rows), flatten(rows[::-1]), vocabulary.pad_id)
    write_int8(folder, tmp_path / "int8")
    restored = load_model(read_folder(tmp_path / "int8"))

    def loss(each):
        with torch.inference_mode():
            scores = each.output(each.forward(batch).hidden)
        is_token = batch.target.is_token
        return functional.cross_entropy(scores[is_token], batch.target.ids[is_token]).item()

    change = int8_loss_change(folder, batch.source, batch.target)
    # Weights alone are rounded in what was restored; activations too in what is measured.
    assert change == pytest.approx(loss(restored) - loss(model), abs=0.02)
    assert abs(change) < 0.05


class TestComplaints:
    def test_what_cannot_be_rebuilt(self, make_folder, tmp_path):
        folder, _ = make_folder(encoder_attention="restricted")
        with pytest.raises(OptionError) as caught:
            write_int8(folder, tmp_path / "int8")
        assert str(caught.value) == (
            f"{folder.path}: only Transformers with full attention and without experts are "
            "computed in eight bits; use the folder as it is"
        )
        assert not (tmp_path / "int8").exists()

    def test_a_folder_that_is_there(self, make_folder, tmp_path):
        folder, _ = make_folder()
        with pytest.raises(FolderError) as caught:
            write_int8(folder, tmp_path)
        assert str(caught.value) == (
            f"{tmp_path}: is there already; give a new folder, or remove it first"
        )

    def test_eight_bits_twice(self, make_folder, tmp_path):
        folder, _ = make_folder()
        write_int8(folder, tmp_path / "int8")
        with pytest.raises(FolderError) as caught:
            write_int8(read_folder(tmp_path / "int8"), tmp_path / "again")
        assert (
            str(caught.value) == f"{tmp_path / 'int8'}: is in eight bits already; use it as it is"
        )

    def test_another_model(self, make_folder):
        folder, _ = make_folder()
        path = folder.path / WEIGHTS_FILE
        weights = load_file(path)
        name = "decoder.0.feed_forward.inner.weight"
        save_file({key: each for key, each in weights.items() if key != name}, path)
        with pytest.raises(FolderError) as caught:
            load_int8(read_folder(folder.path))
        assert str(caught.value) == f"{path}: holds another model ({name} is missing)"

    def test_a_matrix_of_another_shape(self, make_folder):
        folder, _ = make_folder()
        path = folder.path / WEIGHTS_FILE
        name = "decoder.0.feed_forward.inner.weight"
        save_file(load_file(path) | {name: torch.zeros(24, 15)}, path)
        with pytest.raises(FolderError) as caught:
            load_int8(read_folder(folder.path))
        assert str(caught.value) == (
            f"{path}: holds another model ({name} has shape (24, 15), not (24, 16))"
        )

    @pytest.mark.parametrize(
        "name", ["decoder.0.feed_forward.inner.weight", "decoder.0.feed_forward.inner.bias"]
    )
    def test_numbers_that_are_none(self, make_folder, name):
        folder, _ = make_folder()
        path = folder.path / WEIGHTS_FILE
        weights = load_file(path)
        weights[name][1:2] = torch.nan
        save_file(weights, path)
        with pytest.raises(FolderError) as caught:
            load_int8(read_folder(folder.path))
        assert str(caught.value) == (
            f"{path}: has numbers that are not finite ({name}); get it again"
        )

    @pytest.mark.parametrize(
        ("scales", "message"),
        [
            (None, "has whole numbers without scales ({})"),
            (torch.ones(16), "damaged ({} and its scales do not fit)"),
            (torch.full((24,), torch.inf), "has numbers that are not finite ({})"),
        ],
    )
    @pytest.mark.parametrize("load", [load_int8, load_model])
    def test_damaged_scales(self, make_folder, tmp_path, scales, message, load):
        folder, _ = make_folder()
        write_int8(folder, tmp_path / "int8")
        path = tmp_path / "int8" / WEIGHTS_FILE
        weights = load_file(path)
        name = "decoder.0.feed_forward.inner.weight"
        del weights[name + ".scales"]
        save_file(weights if scales is None else weights | {f"{name}.scales": scales}, path)
        with pytest.raises(FolderError) as caught:
            load(read_folder(path.parent))
        found = str(caught.value).replace(f"({name}.scales)", f"({name})")
        assert found == f"{path}: {message.format(name)}; get it again"

    def test_a_broken_file(self, tmp_path):
        path = tmp_path / "broken"
        path.write_bytes(b"nothing")
        with pytest.raises(FolderError, match=f"{path}: missing, cut short or not a safetensors"):
            TensorFile(path)
