"""Models of Marian: what was written as Marian does comes back, and CTranslate2 reads the same."""

import io
import json
import os
import tracemalloc
import zipfile
from dataclasses import replace

import ctranslate2
import numpy as np
import pytest
import torch
import yaml
from benchmarks.attacks.mutations import strip_digests
from ctranslate2.converters import MarianConverter
from hypothesis import given
from hypothesis import strategies as st
from tests.exchange.marian_writer import write_marian

from dragoman.errors import FolderError, OptionError
from dragoman.exchange import archives, marian_files
from dragoman.exchange.marian import import_marian
from dragoman.exchange.marian_files import read_npz, read_yaml_vocabulary
from dragoman.exchange.sinusoid_layout import to_concatenated_sinusoids
from dragoman.folder import read_folder
from dragoman.weights import load_model, weights_of, write_model

SHAPES = [
    {"feed_forward": "swish", "attention_bias": True, "output_bias": True},
    {"feed_forward": "gelu-sigmoid", "norm_position": "pre", "attention_bias": True,
     "tied_embeddings": "target", "output_bias": True},
    {"attention_bias": True, "output_bias": True, "tied_embeddings": "none"},
]  # fmt: skip


@pytest.mark.parametrize("changes", SHAPES, ids=lambda each: "-".join(map(str, each.values())))
def test_comes_back(make_model, vocabularies, own, texts, others, tmp_path, changes):
    path = make_model(vocabularies, positions="marian", norm_epsilon=1e-6, **changes)
    foreign = write_marian(tmp_path / "opus", read_folder(path))
    import_marian(foreign, tmp_path / "model", source_language="en", target_language="fr")
    before, after = own(path), own(tmp_path / "model")
    assert after.folder.options == replace(before.folder.options, dropout=0.1)
    assert after.greedy(max_length=20) == before.greedy(max_length=20)
    torch.testing.assert_close(after.likelihoods(texts, others), before.likelihoods(texts, others))
    assert (after.folder.facts.source_language, after.folder.facts.target_language) == ("en", "fr")


@pytest.mark.parametrize("changes", SHAPES, ids=lambda each: "-".join(map(str, each.values())))
def test_ctranslate2_reads_the_same(
    make_model, vocabularies, own, texts, others, tmp_path, changes
):
    path = make_model(vocabularies, positions="marian", norm_epsilon=1e-6, **changes)
    foreign = write_marian(tmp_path / "opus", read_folder(path))
    import_marian(foreign / "model.npz", tmp_path / "model")
    # CTranslate2 gives every model of Marian the paper's sinusoids.
    config = tmp_path / "model" / "config.toml"
    strip_digests(config.parent)
    config.write_text(config.read_text().replace('"marian"', '"sinusoidal"'))
    vocabulary = str(foreign / "opus.vocab.yml")
    converter = MarianConverter(str(foreign / "model.npz"), [vocabulary, vocabulary])
    converter.convert(str(tmp_path / "converted"))
    translator = ctranslate2.Translator(str(tmp_path / "converted"), compute_type="float32")
    model = own(tmp_path / "model")
    pieces = [
        [side.pieces(ids) for ids in side.encode(lines)]
        for side, lines in zip(model.folder.vocabularies, (texts, others), strict=True)
    ]
    scored = translator.score_batch(*pieces)
    sums = [sum(each.log_probs) for each in scored]
    expected = model.likelihoods(texts, others)
    np.testing.assert_allclose(sums, expected, atol=1e-4, rtol=1e-5)


def test_a_vocabulary_of_sentencepiece_itself(make_model, vocabularies, own, texts, tmp_path):
    shape = {
        "positions": "marian",
        "norm_epsilon": 1e-6,
        "attention_bias": True,
        "output_bias": True,
    }
    path = make_model(vocabularies, **shape)
    folder = read_folder(path)
    foreign = write_marian(tmp_path / "opus", folder)
    (foreign / "opus.vocab.yml").unlink()
    # Marian counts all pieces, so the one called padding has a row there.
    words = to_concatenated_sinusoids(weights_of(load_model(folder)))[
        "source_embedding.words"
    ].numpy()
    bias = load_model(folder).output.bias.detach().numpy()
    write_marian(foreign, folder, {"Wemb": words, "decoder_ff_logit_out_b": bias[None]})
    (foreign / "opus.vocab.yml").unlink()
    (foreign / "vocab.spm").write_bytes(folder.vocabularies.source.to_bytes())
    import_marian(foreign, tmp_path / "model")
    after = own(tmp_path / "model")
    assert len(after.folder.vocabularies.target) == len(words) + 1
    expected = own(path).likelihoods(texts, texts)
    assert after.folder.vocabularies.source.encode(texts) != []
    difference = after.likelihoods(texts, texts) - expected
    assert (difference <= 1e-4).all()  # for a little goes to the entry that is called padding


def test_a_vocabulary_in_yaml(tmp_path):
    names = ["</s>", "<unk>", "▁a", "'", '"', ":", "a: b", "\\", "\x07", "- x", "?", "é",
             "~", "123", "#x", "null", "\u00a0", "it's", "x" * 300]  # fmt: skip
    written = {name: i for i, name in enumerate(names)}
    path = tmp_path / "vocab.yml"
    for options in ({"allow_unicode": True}, {}):
        path.write_text(yaml.safe_dump(written, sort_keys=False, width=10_000, **options))
        assert read_yaml_vocabulary(path) == written
    path.write_text(json.dumps(written))
    assert read_yaml_vocabulary(path) == written


@pytest.mark.parametrize("options", [{}, {"allow_unicode": True}])
@given(
    subwords=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\x85\u2028\u2029"),
                min_size=1, max_size=12),
        max_size=30, unique=True,
    )
)  # fmt: skip
def test_a_vocabulary_in_yaml_is_read_as_by_pyyaml(options, subwords, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "parity.yml"
    written = {name: i for i, name in enumerate(["</s>", *subwords])}
    text = yaml.safe_dump(written, sort_keys=False, width=10_000, **options)
    path.write_text(text, encoding="utf-8", newline="")
    pyyamls = {name: int(number) for name, number in yaml.load(text, yaml.BaseLoader).items()}
    assert read_yaml_vocabulary(path) == pyyamls == written


@pytest.mark.parametrize("name", ["a\u2028", "a\u2028b", "a\x85b", "\x7f", "'\u2029'", "a: b"])
def test_pyyaml_still_refuses_what_marian_writes(name, tmp_path):
    """Why it is not used: Marian's library writes such subwords as they are, being YAML 1.2."""
    path = tmp_path / "vocab.yml"
    path.write_text(f"{name}: 7\n", encoding="utf-8", newline="")
    assert read_yaml_vocabulary(path) == {name.strip("'"): 7}
    with pytest.raises(yaml.YAMLError):
        yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)


@pytest.fixture
def foreign(make_model, vocabularies, tmp_path):
    shape = {
        "positions": "marian",
        "norm_epsilon": 1e-6,
        "attention_bias": True,
        "output_bias": True,
    }
    folder = read_folder(make_model(vocabularies, **shape))
    return lambda *changes, **said: write_marian(tmp_path / "opus", folder, *changes, **said)


def message_of(path, kind=FolderError, **said):
    with pytest.raises(kind) as caught:
        import_marian(path, path.parent / "out", **said)
    assert "\n" not in str(caught.value)
    assert not (path.parent / "out").exists()
    return str(caught.value)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"transformer-heads": 5}, "num_heads is 5"),
        ({"enc-depth": 3}, "lacks “encoder_l3_self_Wq”"),
        ({"enc-depth": 1}, "holds “encoder_l2_ffn_W1”, which is not supported here"),
        ({"transformer-tied-layers": [1, 1]}, "holds “decoder_l2_context_Wk”, which is not"),
        ({"transformer-dim-ffn": 40}, "“encoder_l1_ffn_W1” has shape (32, 48), not (32, 40)"),
    ],
    ids=lambda each: "-".join(each) if isinstance(each, dict) else "",
)
def test_weights_that_do_not_fit(foreign, said, message):
    assert message in message_of(foreign(**said))


@pytest.mark.parametrize(
    "text", ["moe/experts: 8\n", "type: transformer\n", '"quoted": 1\n', "{type: transformer}\n"]
)
def test_options_that_could_mean_anything(foreign, text):
    path = foreign()
    arrays, said = read_npz(path / "model.npz")
    del arrays
    contents = np.frombuffer((said + "\n" + text).encode(), np.int8)
    assert "has a damaged special:model.yml; get it again" in (
        message_of(foreign({"special:model.yml": contents}))
    )


@pytest.mark.parametrize("name", ["enc-depth", "dec-depth"])
def test_more_layers_than_fit_anywhere(foreign, name):
    assert "_l3_self_Wq”; get the model again" in message_of(foreign(**{name: 999_999_999}))


def test_words_that_are_one_number(foreign):
    message = message_of(foreign({"Wemb": np.float32(1)}))
    assert "“Wemb” has shape (), not a row for each word; get the model again" in message


def test_numbers_that_are_not_plain(foreign):
    path = foreign({"Wemb": np.zeros((3, 3), np.int8)})
    assert "“Wemb” is stored as int8; give the model before it was packed" in message_of(path)
    path = foreign({"Wemb": np.array([{"code": 1}])})
    assert "is no .npz file of plain numbers, or damaged" in message_of(path)


@pytest.mark.parametrize("contents", [b"", b"nothing", b"PK\x03\x04 nothing"])
def test_a_damaged_file(foreign, contents):
    path = foreign()
    (path / "model.npz").write_bytes(contents)
    assert "model.npz: " in message_of(path)


def test_a_damaged_packed_file(foreign):
    path = foreign()
    file = path / "model.npz"
    with np.load(file) as arrays:
        np.savez_compressed(file, **arrays)
    raw = file.read_bytes()
    start = 30 + int.from_bytes(raw[26:28], "little") + int.from_bytes(raw[28:30], "little")
    file.write_bytes(raw[:start] + b"\xff" * 20 + raw[start + 20 :])
    assert "is no .npz file of plain numbers, or damaged" in message_of(path)
    entry = raw.index(b"PK\x01\x02")  # its kind of compression
    file.write_bytes(raw[: entry + 10] + b"\x60\x00" + raw[entry + 12 :])
    assert "is no .npz file of plain numbers, or damaged" in message_of(path)


def add_entry(path, contents, packing):
    with zipfile.ZipFile(path / "model.npz", "a", packing) as zipped:
        zipped.writestr("more.npy", contents)
    return message_of(path)


@pytest.mark.parametrize(
    ("size", "packing"), [(400 << 20, zipfile.ZIP_DEFLATED), (1 << 20, zipfile.ZIP_BZIP2)]
)
def test_an_archive_that_inflates_is_refused_before_it_does(foreign, size, packing):
    tracemalloc.start()
    try:
        path = foreign()
        stream = io.BytesIO()
        np.lib.format.write_array(stream, np.zeros(size // 4, np.float32))
        contents = stream.getvalue()
        del stream
        assert "is no .npz file of plain numbers" in add_entry(path, contents, packing)
        del contents
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        message_of(path)
        assert tracemalloc.get_traced_memory()[1] - before < size
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", [(10**6, 10**6), (-1,), (2**63, 2), (3,)])
def test_a_header_that_says_too_much(foreign, shape):
    stream = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    assert "is no .npz file of plain numbers" in (
        add_entry(foreign(), stream.getvalue(), zipfile.ZIP_STORED)
    )


def test_too_many_arrays(foreign, monkeypatch):
    monkeypatch.setattr(marian_files, "MOST_ARRAYS", 3)
    assert "is no .npz file of plain numbers" in message_of(foreign())
    monkeypatch.undo()
    monkeypatch.setattr(archives, "MOST_DIRECTORY_BYTES", 100)
    assert "is no .npz file of plain numbers" in message_of(foreign())


@pytest.mark.parametrize("kind", ["<c8", "<u8", "<U2", "<f2"])
def test_other_kinds_of_numbers(foreign, kind):
    message = message_of(foreign({"more": np.zeros(3, kind)}))
    # Half precision can be read, but nothing is called so.
    assert ("“more”, which is not supported" if kind == "<f2" else "“more” is stored as") in message


def test_arrays_whose_columns_come_first(foreign, own, tmp_path):
    path = foreign()
    import_marian(path, tmp_path / "one")
    with np.load(path / "model.npz") as file:
        arrays = {name: np.asfortranarray(file[name]) for name in file.files}
    np.savez_compressed(path / "model.npz", **arrays)
    import_marian(path, tmp_path / "other")
    assert own(tmp_path / "one").greedy(max_length=9) == own(tmp_path / "other").greedy(
        max_length=9
    )


@pytest.mark.parametrize("name", ["model.npz", "opus.vocab.yml", "source.spm"])
def test_pipes_and_devices(foreign, name):
    path = foreign()
    (path / name).unlink()
    os.mkfifo(path / name)
    assert f"{name}: is a folder, pipe or device, not a file" in message_of(path)
    (path / name).unlink()
    (path / name).symlink_to("/dev/zero")
    assert f"{name}: is a folder, pipe or device, not a file" in message_of(path)


def test_options_that_go_on_for_long(foreign):
    text = "type: transformer\n" + "  x\n" * 200_000
    text = np.frombuffer(text.encode(), np.int8)
    assert "type is “transformer x x" in message_of(foreign({"special:model.yml": text}))
    text = np.zeros(2 << 20, np.int8)
    assert "more than belong there" in message_of(foreign({"special:model.yml": text}))


def test_options_that_are_damaged(foreign):
    assert "does not say dim-emb as a number" in message_of(foreign(**{"dim-emb": "9" * 5000}))
    text = np.frombuffer(b'type: "\\UFFFFFFFF"\n', np.int8)
    assert "has a damaged special:model.yml" in message_of(foreign({"special:model.yml": text}))


def test_no_model_of_marian(tmp_path):
    np.savez(tmp_path / "model.npz", a=np.zeros(3))
    with pytest.raises(
        FolderError, match=r"has no special:model\.yml, so it is no model of Marian"
    ):
        import_marian(tmp_path / "model.npz", tmp_path / "out")
    with pytest.raises(FolderError, match="cannot be read"):
        import_marian(tmp_path / "other.npz", tmp_path / "out")


def test_vocabularies_that_are_not_there_or_too_many(foreign):
    path = foreign()
    file = path / "opus.vocab.yml"
    assert "give one for both sides, or that of each" in (
        message_of(path, OptionError, vocabularies=[file] * 3)
    )
    file.rename(path / "words.yml")
    assert "has no vocabulary (*vocab*.yml, *vocab*.spm); name the right one" in message_of(path)
    assert "cannot be read" in message_of(path, vocabularies=[path / "none.yml"])
    (path / "vocab.spm").write_bytes(b"nothing")
    assert "is not a SentencePiece model" in message_of(path)
    (path / "source.spm").unlink()
    assert "put the SentencePiece model that cut the text at" in (
        message_of(path, vocabularies=[path / "words.yml"])
    )
    (path / "model2.npz").write_bytes(b"")
    assert "has 2 models (*.npz, *.bin); name the one to import" in message_of(path)


@pytest.mark.parametrize(
    "contents",
    ["a\n", "a: b\n", "a: 0\na: 1\n", "{", "a: 5\n", '"\\UFFFFFFFF": 0\n', '"\\uD800": 0\n',
     f"a: {'9' * 5000}\n", '{"a":' * 50_000],
    ids=lambda each: each[:20],
)  # fmt: skip
def test_damaged_vocabularies(foreign, contents):
    path = foreign()
    (path / "opus.vocab.yml").write_text(contents)
    assert "opus.vocab.yml" in message_of(path)
    (path / "opus.vocab.yml").write_bytes(b"\xff: 0\n")
    assert "is not UTF-8" in message_of(path)


def test_one_matrix_for_two_vocabularies(foreign):
    path = foreign()
    lines = (path / "opus.vocab.yml").read_text().splitlines()
    lines[0], lines[1] = "</s>: 1", "<unk>: 0"
    (path / "other.yml").write_text("\n".join(lines))
    assert "one matrix serves two vocabularies; give one vocabulary" in (
        message_of(path, vocabularies=[path / "opus.vocab.yml", path / "other.yml"])
    )


def test_the_model_can_be_written_again(foreign, own, tmp_path):
    import_marian(foreign(), tmp_path / "model")
    model = own(tmp_path / "model")
    write_model(tmp_path / "again", model.folder, model.model)
    assert own(tmp_path / "again").greedy(max_length=9) == model.greedy(max_length=9)
