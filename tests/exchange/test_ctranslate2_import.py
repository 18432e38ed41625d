"""What CTranslate2 has written becomes a model folder that says the same as CTranslate2."""

import json
import struct
from contextlib import suppress

import ctranslate2
import numpy as np
import pytest
import sentencepiece
import torch
from ctranslate2.converters import MarianConverter, OpenNMTPyConverter, TransformersConverter
from ctranslate2.specs import TransformerDecoderModelSpec, TransformerSpec, WhisperSpec
from tests.exchange.marian_writer import write_marian
from tests.exchange.opennmt_writer import opennmt_names, write_checkpoint

from dragoman.decoding.translator import Translator
from dragoman.errors import FolderError
from dragoman.exchange.ctranslate2 import export_ctranslate2, make_specification
from dragoman.exchange.ctranslate2_file import read_model_file
from dragoman.exchange.ctranslate2_import import import_ctranslate2
from dragoman.exchange.foreign_model import import_model
from dragoman.exchange.huggingface import export_huggingface
from dragoman.folder import read_folder
from dragoman.tensor_files import TensorFile

LENGTH = 25
SHAPES = [
    {"norm_position": "pre", "norm_epsilon": 1e-6},
    {"norm_position": "pre", "norm": "rms"},
    {"feed_forward": "swiglu", "num_encoder_layers": 1},
    {"feed_forward": "geglu"},
    {"feed_forward": "gelu", "num_decoder_layers": 1},
    {"feed_forward": "swish", "attention_bias": True, "output_bias": True},
    {"feed_forward": "gelu-sigmoid", "tied_embeddings": "target"},
    {"positions": "learned", "max_positions": 200},
    {"positions": "index"},
    {"positions": "none"},
    {"positions": "marian", "tied_embeddings": "none"},
    {"scaled": False},
    {"source_end": False, "norm_position": "pre"},
]


def greedy(path, texts, compute_type="float32", name="source.spm", end=()):
    """What CTranslate2 itself says."""
    translator = ctranslate2.Translator(
        str(path), device="cpu", compute_type=compute_type, intra_threads=1
    )
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path / name))
    pieces = [[*line, *end] for line in processor.encode(texts, out_type=str)]
    found = translator.translate_batch(
        pieces, beam_size=1, max_decoding_length=LENGTH, disable_unk=True
    )
    return [each.hypotheses[0][:LENGTH] for each in found]


def ours(own, path, texts):
    return [each[:LENGTH] for each in own(path).pieces(texts, max_length=LENGTH + 1)]


def tensors(path):
    file = TensorFile(path / "model.safetensors")
    return {name: file.read(name) for name in file.names}


@pytest.fixture(scope="module")
def random_path(make_model, vocabularies):
    return make_model(vocabularies, norm_position="pre", attention_bias=True, feed_forward="gelu")


@pytest.fixture(scope="module")
def opennmt(tmp_path_factory, random_path, vocabularies):
    """Give a folder that CTranslate2's own converter made of an OpenNMT-py checkpoint."""
    folder = tmp_path_factory.mktemp("opennmt")
    names = opennmt_names(vocabularies.source)
    checkpoint = write_checkpoint(folder / "model.pt", read_folder(random_path), names)
    converter = OpenNMTPyConverter(str(checkpoint), unsafe_deserialization=True)
    converter.convert(str(folder / "out"))
    (folder / "out" / "sentencepiece.model").write_bytes(vocabularies.source.to_bytes())
    return folder / "out"


@pytest.mark.parametrize("changes", SHAPES, ids=lambda each: "-".join(map(str, each.values())))
def test_there_and_back(make_model, vocabularies, own, texts, tmp_path, changes):
    path = make_model(vocabularies, **changes)
    export_ctranslate2(path, tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "ours", source_language="en")
    assert ours(own, tmp_path / "ours", texts) == greedy(tmp_path / "theirs", texts)
    before, after = tensors(path), tensors(tmp_path / "ours")
    assert before.keys() == after.keys()
    for name, each in before.items():
        is_same = np.array_equal(each, after[name][: len(each)])
        assert is_same or name == "output.bias", name  # that of the padding counts for nothing
    folder = read_folder(tmp_path / "ours")
    assert folder.facts.source_language == "en"
    assert folder.facts.weights == "imported from CTranslate2"
    assert folder.options.norm_epsilon == changes.get("norm_epsilon", 1e-5)


def test_a_vocabulary_for_each_side(make_model, side_vocabularies, own, texts, tmp_path):
    path = make_model(side_vocabularies, tied_embeddings="target")
    export_ctranslate2(path, tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "ours")
    assert ours(own, tmp_path / "ours", texts) == greedy(tmp_path / "theirs", texts)


def test_opennmt_reads_no_end_and_begins_with_a_word(opennmt, own, texts, tmp_path):
    import_model(opennmt, tmp_path / "ours")
    expected = greedy(opennmt, texts, name="sentencepiece.model")
    assert ours(own, tmp_path / "ours", texts) == expected
    folder = read_folder(tmp_path / "ours")
    assert not folder.options.source_end
    assert folder.options.positions == "sinusoidal"
    translator = Translator.load(tmp_path / "ours", "cpu")
    options = translator.options_with(
        {"beam_size": 1, "split_sentences": "off", "max_extra_tokens": 0, "search_again": False}
    )
    found = translator.translate_all(texts, options=options)
    for one, other in zip(found, expected, strict=True):
        pieces = folder.vocabularies.target.pieces(one.tokens)
        kept = [piece for piece in pieces if piece != "</s>"]
        assert kept[: len(other)] == other[: len(kept)]


@pytest.mark.parametrize("quantisation", ["int8", "int8_float16", "int16", "float16", "bfloat16"])
def test_other_precisions(random_path, own, texts, tmp_path, quantisation):
    export_ctranslate2(random_path, tmp_path / "theirs", quantisation)
    import_model(tmp_path / "theirs", tmp_path / "ours")
    # CTranslate2 rounds activations too, unless it computes in 32 bits.
    assert ours(own, tmp_path / "ours", texts) == greedy(tmp_path / "theirs", texts)
    kinds = {each.dtype for each in tensors(tmp_path / "ours").values()}
    assert (np.dtype(np.int8) in kinds) == quantisation.startswith("int8")


def test_eight_bits_are_the_same_integers(random_path, tmp_path):
    export_ctranslate2(random_path, tmp_path / "theirs", "int8")
    import_model(tmp_path / "theirs", tmp_path / "ours")
    variables = read_model_file(tmp_path / "theirs" / "model.bin").variables
    theirs = variables["encoder/layer_0/self_attention/linear_0/weight"]
    scale = variables["encoder/layer_0/self_attention/linear_0/weight_scale"]
    found = tensors(tmp_path / "ours")
    names = [f"encoder.0.self_attention.{name}.weight" for name in ("query", "key", "value")]
    np.testing.assert_array_equal(np.concatenate([found[name] for name in names]), theirs)
    scales = np.concatenate([found[f"{name}.scales"] for name in names])
    np.testing.assert_allclose(scales, 1 / scale, rtol=1e-7)


def rewrite(path, version, revision=None):
    """Write a model.bin as an older CTranslate2 would."""
    file = read_model_file(path)
    sizes = {"float32": 4, "int16": 2, "int8": 1}
    variables, aliases = {}, []
    for name, each in file.variables.items():
        if each.dtype == np.int32:
            each = each.astype(np.int16)
        same = next((old for old, other in variables.items() if other is each), None)
        if same is not None and version >= 3:
            aliases.append((name, same))
        else:
            variables[name] = each

    def text(word):
        return struct.pack("<H", len(word) + 1) + word.encode() + b"\0"

    parts = [struct.pack("<I", version), text(file.specification)]
    parts += [struct.pack("<II", revision or file.revision, len(variables))]
    for name, each in variables.items():
        parts += [text(name), struct.pack(f"<B{each.ndim}I", each.ndim, *each.shape)]
        kinds = ["float32", "int8", "int16"]
        if version < 4:
            parts += [struct.pack("<BI", sizes[each.dtype.name], each.size)]
        else:
            parts += [struct.pack("<BI", kinds.index(each.dtype.name), each.nbytes)]
        parts += [each.tobytes()]
    if version >= 3:
        parts += [struct.pack("<I", len(aliases))]
        parts += [text(word) for pair in aliases for word in pair]
    path.write_bytes(b"".join(parts))


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_older_files(opennmt, own, texts, tmp_path, version):
    """They say in the model how sentences begin, and their vocabularies are lines."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    for name in ("model.bin", "sentencepiece.model"):
        (folder / name).write_bytes((opennmt / name).read_bytes())
    words = json.loads((opennmt / "shared_vocabulary.json").read_text())
    (folder / "shared_vocabulary.txt").write_text("\n".join(words) + "\n")
    rewrite(folder / "model.bin", version)
    import_model(folder, tmp_path / "ours")
    expected = greedy(folder, texts, name="sentencepiece.model")
    assert expected == greedy(opennmt, texts, name="sentencepiece.model")
    assert ours(own, tmp_path / "ours", texts) == expected


def test_a_model_of_marian_begins_with_nothing(make_model, vocabularies, own, texts, tmp_path):
    path = make_model(
        vocabularies, feed_forward="relu", attention_bias=True, output_bias=True,
        positions="marian",
    )  # fmt: skip
    theirs = write_marian(tmp_path / "marian", read_folder(path))
    converter = MarianConverter(str(theirs / "model.npz"), [str(theirs / "opus.vocab.yml")] * 2)
    converter.convert(str(tmp_path / "theirs"))
    for name in ("source.spm", "target.spm"):
        (tmp_path / "theirs" / name).write_bytes((theirs / name).read_bytes())
    import_model(tmp_path / "theirs", tmp_path / "ours")
    assert ours(own, tmp_path / "ours", texts) == greedy(tmp_path / "theirs", texts)
    # CTranslate2's converter gives models of Marian the paper's wavelengths.
    assert read_folder(tmp_path / "ours").options.positions == "sinusoidal"


def test_a_model_of_transformers_reads_an_end_that_its_tokeniser_adds(
    make_model, vocabularies, own, texts, tmp_path
):
    export_huggingface(make_model(vocabularies, output_bias=True), tmp_path / "hf")
    TransformersConverter(str(tmp_path / "hf")).convert(str(tmp_path / "theirs"))
    for name in ("source.spm", "target.spm"):
        (tmp_path / "theirs" / name).write_bytes((tmp_path / "hf" / name).read_bytes())
    import_model(tmp_path / "theirs", tmp_path / "ours")
    expected = greedy(tmp_path / "theirs", texts, end=["</s>"])
    assert ours(own, tmp_path / "ours", texts) == expected
    assert read_folder(tmp_path / "ours").options.source_end


def save(spec, path, vocabularies):
    spec.validate()
    spec.optimize(quantization="float32")
    path.mkdir()
    spec.save(str(path))
    for name in ("source.spm", "target.spm"):
        (path / name).write_bytes(vocabularies.source.to_bytes())
    return path


def test_positions_that_are_not_said_count_from_one(
    random_path, vocabularies, own, texts, tmp_path
):
    spec = make_specification(read_folder(random_path))
    for each in (spec.encoder, spec.decoder):
        each.position_encodings.encodings = "__optional"
    path = save(spec, tmp_path / "theirs", vocabularies)
    import_model(path, tmp_path / "ours")
    assert ours(own, tmp_path / "ours", texts) == greedy(path, texts)


@pytest.mark.parametrize("scales", [(False, False), (2.5, 2.5), (True, 3.0)])
def test_other_scales_of_words(random_path, vocabularies, own, texts, tmp_path, scales):
    spec = make_specification(read_folder(random_path))
    spec.encoder.scale_embeddings, spec.decoder.scale_embeddings = scales
    path = save(spec, tmp_path / "theirs", vocabularies)
    import_model(path, tmp_path / "ours")
    assert ours(own, tmp_path / "ours", texts) == greedy(path, texts)


def refusal(path, tmp_path):
    with pytest.raises(FolderError) as caught:
        import_ctranslate2(path, tmp_path / "ours")
    assert not (tmp_path / "ours").exists()
    return str(caught.value)


def set_all(spec, name, value):
    for each in (spec.encoder, spec.decoder):
        setattr(each, name, value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda spec: setattr(spec.decoder, "alibi", True), "has ALiBi positions (decoder/alibi)"),
        (lambda spec: setattr(spec.decoder, "scale_outputs", 0.5), "has scaled outputs"),
        (lambda spec: set_all(spec, "activation", np.int8(1)), "has the activation [1]"),
        (lambda spec: set_all(spec, "num_heads", np.int16(5)), "model.num_heads is 5"),
        (lambda spec: setattr(spec.decoder, "num_heads", np.int16(2)), "[2, 4] heads"),
        (lambda spec: setattr(spec.config, "add_source_bos", True), "add_source_bos is on"),
        (lambda spec: setattr(spec.config, "decoder_start_token", None), "no decoder_start_token"),
        (lambda spec: setattr(spec.config, "decoder_start_token", "zz"), "lacks the start “zz”"),
        (lambda spec: setattr(spec.config, "layer_norm_epsilon", 0.1), "epsilon is 0.1"),
        (lambda spec: setattr(spec.config, "unk_token", 3), "unk_token and eos_token are no words"),
        (
            lambda spec: setattr(spec.encoder.layer[0].self_attention, "queries_scale", 0.3),
            "scales queries by 0.3",
        ),
        (
            lambda spec: setattr(spec.encoder.position_encodings, "encodings", "__optional"),
            "only one side has positions",
        ),
        (
            lambda spec: setattr(
                spec.encoder.position_encodings, "encodings", np.ones((9, 32), np.float32)
            ),
            "the two sides have different positions",
        ),
        (
            lambda spec: setattr(spec.encoder.layer[0].ffn.linear_1, "bias", np.ones(7, "f4")),
            "“encoder/layer_0/ffn/linear_1/bias” has shape (7,), not (32,)",
        ),
    ],
)
def test_what_is_not_supported_is_named(random_path, vocabularies, tmp_path, change, words):
    spec = make_specification(read_folder(random_path))
    change(spec)
    path = save(spec, tmp_path / "theirs", vocabularies)
    assert words in refusal(path, tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"with_relative_position": True}, "has relative positions"),
        ({"layernorm_embedding": True}, "has a norm after the embeddings"),
        ({"num_source_embeddings": 2}, "has several inputs a word (factors)"),
        ({"multi_query_attention": True}, "has heads that share keys and values"),
    ],
)
def test_other_specifications_are_named(random_path, vocabularies, tmp_path, options, words):
    folder = read_folder(random_path)
    spec = TransformerSpec.from_config((1, 1), 4, **options)
    fill(spec, 32)
    size = len(vocabularies.source)
    for each in (*spec.encoder.embeddings, spec.decoder.embeddings, spec.decoder.projection):
        each.weight = np.ones((size, 32), np.float32)
    names = folder.vocabularies.source.pieces(range(size))
    for _ in spec.encoder.embeddings:
        spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    assert words in refusal(save(spec, tmp_path / "theirs", vocabularies), tmp_path)


def fill(spec, width):
    """Give every weight that a specification asks for some numbers."""

    def visit(part, name, value):
        if value is None:
            setattr(part, name.split("/")[-1], np.ones((width, width), np.float32))

    spec._visit(visit)


@pytest.mark.parametrize("kind", ["TransformerDecoderSpec", "WhisperSpec"])
def test_language_models_and_speech_are_refused(tmp_path, kind):
    if kind == "WhisperSpec":
        spec = WhisperSpec(1, 4, 1, 4)
    else:
        spec = TransformerDecoderModelSpec.from_config(1, 4)
    spec.register_vocabulary(["a"])
    fill(spec, 1)
    spec.validate()
    spec.optimize()
    (tmp_path / "theirs").mkdir()
    spec._serialize(str(tmp_path / "theirs" / "model.bin"))
    message = refusal(tmp_path / "theirs", tmp_path)
    assert f"is a “{kind}” of revision" in message
    assert "only encoder–decoder Transformers (TransformerSpec" in message


def test_vocabularies(opennmt, tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "model.bin").write_bytes((opennmt / "model.bin").read_bytes())
    (folder / "config.json").write_bytes((opennmt / "config.json").read_bytes())
    assert "has no shared_vocabulary or source_vocabulary (.json, .txt)" in refusal(
        folder, tmp_path
    )
    shared = folder / "shared_vocabulary.json"
    for text, words in (
        ("{}", "is no list of words"),
        ("[1]", "is no list of words"),
        ("[", "is no list of words in UTF-8"),
        ('["a", "a"]', "has an entry twice"),
        ('["__en__"]', "has “__en__” as M2M-100 has"),
    ):
        shared.write_text(text)
        assert words in refusal(folder, tmp_path)
    shared.write_bytes((opennmt / "shared_vocabulary.json").read_bytes())
    assert "has 0 SentencePiece models" in refusal(folder, tmp_path)
    (folder / "other.model").write_bytes((opennmt / "sentencepiece.model").read_bytes())
    import_ctranslate2(folder, tmp_path / "ours")
    assert (tmp_path / "ours" / "model.safetensors").exists()


def test_hostile_files(opennmt, tmp_path):
    """Every cut and many changed bytes give one line that names the file, or a sound model."""
    contents = (opennmt / "model.bin").read_bytes()
    path = tmp_path / "model.bin"
    for size in (0, 3, 4, 9, 30, 200, len(contents) // 2, len(contents) - 1):
        path.write_bytes(contents[:size])
        with pytest.raises(FolderError, match=r"is no model\.bin of CTranslate2, or damaged"):
            read_model_file(path)
    generator = np.random.default_rng(4)
    for _ in range(150):
        place = int(generator.integers(0, 400))
        changed = bytearray(contents)
        changed[place] = int(generator.integers(0, 256))
        path.write_bytes(changed)
        with suppress(FolderError):  # anything else would be a fault
            read_model_file(path)
    path.write_bytes(struct.pack("<I", 7) + contents[4:])
    with pytest.raises(FolderError, match="is version 7 of CTranslate2's files, but 2 to 6"):
        read_model_file(path)
    with pytest.raises(FolderError, match=r"cannot be read \(No such file"):
        read_model_file(tmp_path / "none.bin")


def test_it_can_be_trained_further(opennmt, tmp_path):
    """The start's row is no zero, and nothing changes it."""
    import_model(opennmt, tmp_path / "ours")
    from dragoman.weights import load_model

    model = load_model(read_folder(tmp_path / "ours"))
    assert model.target_embedding.words[model.pad_id].abs().max() > 0
    assert torch.isfinite(model.target_embedding.words).all()
