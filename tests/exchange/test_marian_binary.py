"""Binary models that Marian wrote are read in every form, and damaged ones refused in one line."""

import json
import random
import struct
from pathlib import Path

import numpy as np
import pytest

from dragoman.cli.command import main
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.translator import Translator
from dragoman.eight_bits import SCALES
from dragoman.errors import FolderError
from dragoman.exchange.marian import import_marian
from dragoman.exchange.marian_binary import (
    BERGAMOT8,
    INTGEMM8,
    is_binary,
    read_binary,
    write_binary,
)
from dragoman.exchange.marian_export import export_marian
from dragoman.exchange.marian_files import CONFIG, read_npz
from dragoman.folder import read_folder
from dragoman.tensor_files import TensorFile

BINARIES = Path(__file__).parent / "marian_binaries"
LAYOUTS, STUDENT = BINARIES / "layouts", BINARIES / "student"
EXPECTED = json.loads((STUDENT / "expected.json").read_text(encoding="utf-8"))
FORMS = sorted(path.stem for path in LAYOUTS.glob("*.bin"))
NUM_MUTATIONS = 400


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_marian(form):
    expected, settings = read_npz(LAYOUTS / "float32.npz")
    found = read_binary(LAYOUTS / f"{form}.bin")
    assert found.settings.strip() == settings.strip()
    assert found.arrays.keys() == expected.keys()
    for name, each in expected.items():
        is_matrix = "W" in name and name != "Wemb"  # whose embeddings Marian leaves as they are
        step = 0.0
        if is_matrix and form.startswith("intgemm8"):
            step = np.abs(each).max() / 127
            assert found.multipliers[name] == pytest.approx(1 / step)
        elif is_matrix and form.startswith("intgemm16"):
            step = 1 / 1024
        np.testing.assert_allclose(found.arrays[name], each, atol=step * 0.501, rtol=1e-6)
    assert len(found.multipliers) == 2 * form.startswith("intgemm8")


@pytest.mark.parametrize("form", ["float32", "intgemm8"])
def test_what_is_written_is_what_marian_writes(form, tmp_path):
    arrays, settings = read_npz(LAYOUTS / "float32.npz")
    arrays[CONFIG] = np.frombuffer(settings.encode() + b"\0", np.int8)
    path = tmp_path / "model.bin"
    write_binary(path, arrays, quantised=INTGEMM8 if form == "intgemm8" else None)
    own, marians = read_binary(path), read_binary(LAYOUTS / f"{form}.bin")
    assert own.settings.strip() == marians.settings.strip()
    assert own.multipliers == pytest.approx(marians.multipliers)
    for name, each in marians.arrays.items():
        np.testing.assert_allclose(own.arrays[name], each, rtol=1e-6)
    assert path.stat().st_size == (LAYOUTS / f"{form}.bin").stat().st_size


@pytest.fixture
def student(tmp_path):
    import_marian(STUDENT, tmp_path / "student", short_list=STUDENT / "lex.s2t.bin")
    return tmp_path / "student"


def translate(folder, precision="auto"):
    options = SearchOptions(beam_size=1, max_extra_tokens=200, search_again=False)
    translator = Translator.load(folder, "cpu", precision=precision)
    return [each.text for each in translator.translate_all(EXPECTED["texts"], options=options)]


def test_a_student_translates_as_in_marian(student):
    found = translate(student)
    for kind in ("int8", "float32"):
        same = sum(one == other for one, other in zip(found, EXPECTED[kind], strict=True))
        between = sum(map(str.__eq__, EXPECTED["int8"], EXPECTED["float32"]))
        assert same >= between - 6, kind  # what eight bits change there, they may change here
    assert len(set(found)) > 50


def test_eight_bits_stay_as_they_are(student):
    """Number by number: what is read is what the file holds, with its one multiplier."""
    file, binary = TensorFile(student / "model.safetensors"), read_binary(STUDENT / "model.bin")
    names = {"encoder.0.feed_forward.inner.weight": "encoder_l1_ffn_W1",
             "decoder.0.self_attention.forget.weight": "decoder_l1_rnn_Wf"}  # fmt: skip
    for ours, theirs in names.items():
        numbers, scales = file.read(ours), file.read(ours + SCALES)
        multiplier = binary.multipliers[theirs]
        np.testing.assert_allclose(scales, 1 / multiplier, rtol=1e-6)
        expected = np.rint(binary.arrays[theirs].T * multiplier)
        assert sorted(numbers.ravel().tolist()) == sorted(expected.ravel().tolist())
    quantised = {name for name in file.names if name + SCALES in file.names}
    assert len(quantised) == len(binary.multipliers)
    assert "source_embedding.words" not in quantised
    assert read_folder(student).facts.weights == "imported from Marian, in eight bits"


@pytest.mark.parametrize("container", ["npz", "bin", "intgemm8", "bergamot"])
def test_goes_back_and_forth(container, student, tmp_path):
    export_marian(student, tmp_path / "marian", container)
    import_marian(tmp_path / "marian", tmp_path / "again")
    before, after = (
        TensorFile(each / "model.safetensors") for each in (student, tmp_path / "again")
    )
    if container == "bergamot":
        # Embeddings are in eight bits too, in one scale.
        assert "source_embedding.words" + SCALES in after.names
        export_marian(tmp_path / "again", tmp_path / "marian2", container)
        import_marian(tmp_path / "marian2", tmp_path / "third")
        before = after
        after = TensorFile(tmp_path / "third" / "model.safetensors")
    if container in ("intgemm8", "bergamot"):
        assert before.names == after.names
        for name in before.names:
            np.testing.assert_allclose(after.read(name), before.read(name), rtol=1e-6, atol=1e-9)
    assert len(translate(tmp_path / "again")) == len(EXPECTED["texts"])
    folders = (read_folder(student), read_folder(tmp_path / "again"))
    one, other = (each.vocabularies.target for each in folders)
    assert one.pieces(range(len(one))) == other.pieces(range(len(other)))


def test_bergamots_alphas_are_left_out_and_its_embeddings_are_not_transposed(tmp_path):
    chance = np.random.default_rng(2)
    words = chance.normal(size=(16, 64)).astype(np.float32)
    settings = np.frombuffer(b"type: transformer\n\0", np.int8)
    arrays = {"Wemb": words, "encoder_l1_ffn_W1": words.T,
              "encoder_l1_ffn_W1_QuantMultA": np.ones((1, 1)), CONFIG: settings}  # fmt: skip
    path = tmp_path / "model.bin"
    write_binary(path, arrays, quantised=BERGAMOT8)
    found = read_binary(path)
    assert found.arrays.keys() == found.multipliers.keys() == {"Wemb", "encoder_l1_ffn_W1"}
    step = np.abs(words).max() / 127
    np.testing.assert_allclose(found.arrays["Wemb"], words, atol=step * 0.501)
    np.testing.assert_allclose(found.arrays["encoder_l1_ffn_W1"], words.T, atol=step * 0.501)
    # Both are stored word by word.
    raw = path.read_bytes()
    integers = np.rint(words / step).astype(np.int8).tobytes()
    assert raw.count(integers) == 2


def test_half_precision(tmp_path):
    """The same bytes, said to be halves: as many numbers as before from half as many bytes."""
    arrays, _ = read_npz(LAYOUTS / "float32.npz")
    raw = (LAYOUTS / "float32.bin").read_bytes()
    path = tmp_path / "model.bin"
    path.write_bytes(raw.replace(struct.pack("<Q", 0x0404), struct.pack("<Q", 0x0402)))
    found = read_binary(path).arrays
    for name, each in arrays.items():
        halves = np.ascontiguousarray(each).view(np.float16).ravel()[: each.size]
        np.testing.assert_array_equal(found[name].ravel(), halves.astype(np.float32))


def message_of(path):
    with pytest.raises(FolderError) as caught:
        read_binary(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("kind", "name"), [(0x802, "packed16"), (0x1801, "packed8avx2")])
def test_packed_for_fbgemm(kind, name, tmp_path):
    path = tmp_path / "model.bin"
    raw = bytearray((LAYOUTS / "intgemm8.bin").read_bytes())
    place = raw.index(struct.pack("<Q", INTGEMM8))
    struct.pack_into("<Q", raw, place, kind)
    path.write_bytes(raw)
    assert message_of(path) == (
        f"{path}: is {name}, which FBGEMM packs for one processor; give the model before it was "
        "packed, or as intgemm8"
    )


def damaged(path, place, kind, value):
    raw = bytearray((LAYOUTS / "intgemm8.bin").read_bytes())
    struct.pack_into(kind, raw, place, value)
    path.write_bytes(raw)
    return message_of(path)


NAMES = 16 + 5 * 32
SHAPES = NAMES + sum(map(len, [*read_binary(LAYOUTS / "intgemm8.bin").arrays, CONFIG])) + 5


@pytest.mark.parametrize(
    ("place", "kind", "value", "message"),
    [
        (8, "<Q", 1 << 60, "1,152,921,504,606,846,976 tensors"),
        (8, "<Q", 9000, "cut short"),
        (16, "<Q", 1 << 50, "a name of 1,125,899,906,842,624 bytes"),
        (16, "<Q", 1, "a name of 1 bytes"),
        (16, "<Q", 4, "a name that does not end where it should"),
        (NAMES, "<B", 0xFF, "codec can't decode"),
        (24, "<Q", 0x77, "has numbers of the unknown type 0x77"),
        (32, "<Q", 1 << 40, "a tensor of 1,099,511,627,776 dimensions"),
        (40, "<Q", 1 << 63, "are announced"),
        (40, "<Q", 0, "are announced"),
        (SHAPES, "<i", -3, "has the shape (-3, "),
        (SHAPES, "<i", 1 << 30, "bytes for the shape (1073741824, "),
    ],
)
def test_what_is_damaged(place, kind, value, message, tmp_path):
    path = tmp_path / "model.bin"
    found = damaged(path, place, kind, value)
    assert message in found
    assert found.startswith(f"{path}: damaged (")
    assert found.endswith("); get it again")


@pytest.mark.parametrize("multiplier", [0.0, -1.0, float("inf"), float("nan")])
def test_multipliers_that_are_none(multiplier, tmp_path):
    raw = (LAYOUTS / "intgemm8.bin").read_bytes()
    value = next(iter(read_binary(LAYOUTS / "intgemm8.bin").multipliers.values()))
    place = raw.index(struct.pack("<f", value))
    assert "has the multiplier " in damaged(tmp_path / "model.bin", place, "<f", multiplier)


def test_shapes_that_no_register_holds(tmp_path):
    raw = bytearray((LAYOUTS / "intgemm8avx512.bin").read_bytes())
    for one, other in (((64, 16), (16, 64)), ((128, 16), (16, 128))):
        place = raw.index(struct.pack("<ii", *one))
        struct.pack_into("<ii", raw, place, *other)
    path = tmp_path / "model.bin"
    path.write_bytes(raw)
    assert "in registers of 64" in message_of(path)


def test_two_tensors_of_one_name(tmp_path):
    raw = (LAYOUTS / "float32.bin").read_bytes()
    path = tmp_path / "model.bin"
    path.write_bytes(raw.replace(b"encoder_l1_self_Wq", b"encoder_l1_self_bq"))
    assert "a name twice" in message_of(path)
    path.write_bytes(raw.replace(CONFIG.encode(), b"special:m0del.yml"))
    assert "has numbers of the unknown type 0x101" in message_of(path)
    assert is_binary(path)
    assert not is_binary(tmp_path / "nothing")


def test_anything_that_happens_to_a_file_is_one_line(tmp_path):
    """Every length of a cut, and changed bytes where they count, and where they do not."""
    raw = (LAYOUTS / "intgemm8avx2.bin").read_bytes()
    chance = random.Random(3)
    path = tmp_path / "model.bin"
    messages = []
    for number in range(NUM_MUTATIONS):
        changed = bytearray(raw)
        if number % 4 == 0:
            del changed[chance.randrange(len(raw) - 256) :]
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(min(512, len(changed)) or 1)
            changed[place : place + 1] = bytes([chance.randrange(256)])
        path.write_bytes(changed)
        try:
            read_binary(path)
        except FolderError as error:
            messages.append(str(error))
    assert all(each.startswith(f"{path}: ") and "\n" not in each for each in messages)
    assert len(messages) > NUM_MUTATIONS / 2


def test_a_folder_with_a_binary_model_is_imported(tmp_path, capsys):
    main(["import", str(STUDENT), str(tmp_path / "model"), "--source-language", "fr"])
    assert capsys.readouterr().out == f"{tmp_path / 'model'}\n"
    # The short-list beside it came along.
    assert (tmp_path / "model" / "short-list.safetensors").exists()
    words = ["export", str(tmp_path / "model"), "--to", "bergamot", str(tmp_path / "out")]
    main(words)
    assert read_binary(tmp_path / "out" / "model.bin").multipliers.keys() >= {"Wemb"}
    main([*words[:3], "marian-bin", str(tmp_path / "eight"), "--quantisation", "int8"])
    assert "Wemb" not in read_binary(tmp_path / "eight" / "model.bin").multipliers
    main([*words[:3], "marian-bin", str(tmp_path / "floats")])
    assert not read_binary(tmp_path / "floats" / "model.bin").multipliers
    with pytest.raises(SystemExit):
        main([*words[:3], "marian-bin", str(tmp_path / "no"), "--quantisation", "int16"])
    assert "--quantisation int16: marian-bin has float32 and int8" in capsys.readouterr().err


def test_widths_that_bergamot_cannot_compute(make_model, vocabularies, tmp_path):
    path = make_model(vocabularies, positions="marian")
    with pytest.raises(FolderError) as caught:
        export_marian(path, tmp_path / "out", "bergamot")
    assert str(caught.value) == (
        f"{path}: is 32 and 48 wide, but Bergamot needs multiples of 64; nothing is written"
    )


def test_words_are_added_for_bergamot_and_dropped_again(student, tmp_path):
    export_marian(student, tmp_path / "out", "bergamot")
    size = len(read_folder(student).vocabularies.target) - 1
    rows = len(read_binary(tmp_path / "out" / "model.bin").arrays["Wemb"])
    assert rows % 8 == 0
    assert size < rows < size + 8
    import_marian(tmp_path / "out", tmp_path / "again")
    assert len(read_folder(tmp_path / "again").vocabularies.target) == size + 1
    file = TensorFile(tmp_path / "again" / "model.safetensors")
    assert file.shape("source_embedding.words") == (size + 1, 64)
