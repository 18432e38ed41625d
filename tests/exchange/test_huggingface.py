"""MarianMT folders: transformers loads what is exported, and what it saved is imported."""

import json
import random
import shutil

import numpy as np
import pytest
import sentencepiece
import torch
from benchmarks.attacks.mutations import strip_digests
from safetensors.torch import load_file, save_file
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

from dragoman.errors import FolderError
from dragoman.exchange.huggingface import export_huggingface, import_huggingface
from dragoman.folder import read_folder
from dragoman.models.recurrent.options import RNNsearchOptions
from dragoman.options import to_plain
from dragoman.text.specification import SPACE_MARK
from dragoman.text.vocabulary import Vocabularies
from dragoman.text.word_vocabulary import learn_words

LENGTH = 30


class Theirs:
    """What transformers makes of a folder, with nothing of ours."""

    def __init__(self, path):
        self.tokeniser = MarianTokenizer.from_pretrained(path)
        self.model = MarianMTModel.from_pretrained(path).eval()
        self.pad_id = self.model.config.pad_token_id

    def greedy(self, texts, length=LENGTH):
        """The pieces of greedy translations."""
        batch = self.tokeniser(texts, return_tensors="pt", padding=True)
        found = self.model.generate(
            **batch, num_beams=1, do_sample=False, max_length=length, max_new_tokens=None
        )
        rows = [[i for i in row if i != self.pad_id] for row in found.tolist()]
        return [self.tokeniser.convert_ids_to_tokens(row) for row in rows]

    @torch.inference_mode()
    def likelihoods(self, texts, others):
        """The log-probability of each given translation; the padding is none."""
        batch = self.tokeniser(texts, text_target=others, return_tensors="pt", padding=True)
        start = torch.full((len(texts), 1), self.pad_id)
        before = torch.cat([start, batch["labels"][:, :-1]], 1)
        logits = self.model(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            decoder_input_ids=before,
        ).logits
        logits[..., self.pad_id] = -torch.inf
        chosen = logits.log_softmax(-1).gather(-1, batch["labels"].unsqueeze(-1)).squeeze(-1)
        return chosen.where(batch["labels"] != self.pad_id, 0.0).sum(1)


def compare(own, theirs, texts, others, length=LENGTH):
    expected = [each[: length - 2] for each in own.pieces(texts, max_length=length)]
    assert [each[: length - 2] for each in theirs.greedy(texts, length)] == [
        each if len(each) == length - 2 else [*each, "</s>"][: length - 2] for each in expected
    ]
    torch.testing.assert_close(
        theirs.likelihoods(texts, others), own.likelihoods(texts, others), atol=1e-4, rtol=1e-5
    )


# Export


def test_a_trained_model(trained, own, texts, others, tmp_path):
    export_huggingface(trained, tmp_path / "out")
    theirs = Theirs(tmp_path / "out")
    compare(own(trained), theirs, texts, others, length=80)
    batch = theirs.tokeniser(texts, return_tensors="pt", padding=True)
    found = theirs.model.generate(**batch, num_beams=1)
    assert theirs.tokeniser.batch_decode(found, skip_special_tokens=True) == own(trained).texts()


def test_scores_of_a_search(trained, own, texts, tmp_path):
    export_huggingface(trained, tmp_path / "out")
    theirs = Theirs(tmp_path / "out")
    for text, expected in zip(texts, own(trained).scores(), strict=True):
        batch = theirs.tokeniser([text], return_tensors="pt")
        found = theirs.model.generate(
            **batch, num_beams=1, output_logits=True, return_dict_in_generate=True
        )
        steps = torch.stack(found.logits, 1).log_softmax(-1)
        chosen = steps.gather(-1, found.sequences[:, 1:, None]).sum().item()
        assert chosen == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"feed_forward": "swish", "attention_bias": True, "output_bias": True},
        {"feed_forward": "gelu", "tied_embeddings": "target", "num_decoder_layers": 1},
        {"feed_forward": "gelu-sigmoid", "tied_embeddings": "none"},
        {"scaled": False},
        {"positions": "marian"},
    ],
    ids=lambda each: "-".join(map(str, each.values())),
)
def test_other_shapes_there_and_back(
    make_model, vocabularies, own, texts, others, tmp_path, changes
):
    path = make_model(vocabularies, **changes)
    export_huggingface(path, tmp_path / "out")
    compare(own(path), Theirs(tmp_path / "out"), texts, others)
    import_huggingface(tmp_path / "out", tmp_path / "back", None, None)
    back = own(tmp_path / "back")
    assert back.greedy(max_length=LENGTH) == own(path).greedy(max_length=LENGTH)
    torch.testing.assert_close(
        back.likelihoods(texts, others), own(path).likelihoods(texts, others)
    )
    if "scaled" not in changes:
        assert back.folder.options == own(path).folder.options


def test_a_vocabulary_for_each_side(make_model, side_vocabularies, own, texts, others, tmp_path):
    path = make_model(side_vocabularies, tied_embeddings="target")
    export_huggingface(path, tmp_path / "out")
    compare(own(path), Theirs(tmp_path / "out"), texts, others)
    import_huggingface(tmp_path / "out", tmp_path / "back", None, None)
    assert own(tmp_path / "back").greedy(max_length=9) == own(path).greedy(max_length=9)


def test_there_and_back_is_bit_for_bit(trained, tmp_path):
    export_huggingface(trained, tmp_path / "out")
    import_huggingface(tmp_path / "out", tmp_path / "back", None, None)
    before, after = (load_file(each / "model.safetensors") for each in (trained, tmp_path / "back"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    for name in ("subwords.model",):
        assert (trained / name).read_bytes() == (tmp_path / "back" / name).read_bytes()
    facts = read_folder(tmp_path / "back").facts
    assert (facts.source_language, facts.target_language) == ("en", "fr")


def test_tokeniser_gives_our_ids_in_marians_order(trained, own, texts, tmp_path):
    export_huggingface(trained, tmp_path / "out")
    tokeniser = MarianTokenizer.from_pretrained(tmp_path / "out")
    subwords = own(trained).folder.vocabularies.source
    vocabulary = json.loads((tmp_path / "out" / "vocab.json").read_text())
    assert (vocabulary["</s>"], vocabulary["<unk>"]) == (0, 1)
    assert vocabulary["<pad>"] == len(subwords) - 1
    strange = ["Ünïcode ☃ 𝔘", "it's 1,234.5", "a  b\tc", ""]
    for text in (*texts, *strange):
        ids = tokeniser(text)["input_ids"]
        pieces = subwords.pieces(subwords.encode([text])[0])
        assert ids == [*(vocabulary[piece] for piece in pieces), 0]
        assert (
            tokeniser.decode(ids, skip_special_tokens=True)
            == (subwords.decode(subwords.encode([text]))[0])
        )


def test_padding_has_a_zero_row_and_no_probability(trained, texts, others, tmp_path):
    export_huggingface(trained, tmp_path / "out")
    theirs = Theirs(tmp_path / "out")
    assert not theirs.model.model.shared.weight[theirs.pad_id].any()
    batch = theirs.tokeniser(texts, text_target=others, return_tensors="pt", padding=True)
    logits = theirs.model(**batch).logits
    assert (logits.softmax(-1)[..., theirs.pad_id] == 0).all()
    assert [theirs.pad_id] in theirs.model.generation_config.bad_words_ids


def test_ctranslate2_converts_what_is_exported(trained, own, texts, tmp_path):
    from ctranslate2 import Translator
    from ctranslate2.converters import TransformersConverter

    export_huggingface(trained, tmp_path / "out")
    TransformersConverter(str(tmp_path / "out")).convert(str(tmp_path / "converted"))
    translator = Translator(str(tmp_path / "converted"), compute_type="float32")
    subwords = own(trained).folder.vocabularies.source
    pieces = [[*subwords.pieces(ids), "</s>"] for ids in subwords.encode(texts)]
    found = translator.translate_batch(pieces, beam_size=1)
    assert [each.hypotheses[0] for each in found] == own(trained).pieces()


# Import


@pytest.fixture(scope="module")
def foreign(tmp_path_factory, sentence_pairs):
    """A folder as OPUS-MT's are: two SentencePiece models, one vocabulary in its own order."""
    path = tmp_path_factory.mktemp("foreign") / "opus"
    path.mkdir()
    names = []
    for name, side in zip(("source", "target"), zip(*sentence_pairs, strict=True), strict=True):
        with (path / f"{name}.spm").open("wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(side), model_writer=file, vocab_size=60,
                model_type="unigram", hard_vocab_limit=False, minloglevel=4,
            )  # fmt: skip
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path / f"{name}.spm"))
        names += [processor.id_to_piece(i) for i in range(3, len(processor))]
    names = sorted(set(names))
    random.Random(4).shuffle(names)
    # The vocabulary lacks some pieces of both models, and has marks of target languages.
    names = ["</s>", "<unk>", *names[6:], ">>fra<<", ">>spa<<", "<pad>"]
    (path / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    config = MarianConfig(
        vocab_size=len(names), d_model=32, encoder_layers=2, decoder_layers=1,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=40,
        decoder_ffn_dim=40, activation_function="swish", scale_embedding=True,
        max_position_embeddings=128, pad_token_id=len(names) - 1, eos_token_id=0,
        decoder_start_token_id=len(names) - 1, forced_eos_token_id=0,
    )  # fmt: skip
    torch.manual_seed(1)
    model = MarianMTModel(config)
    with torch.no_grad():
        for each in model.parameters():
            each.add_(torch.randn_like(each) * 0.5)
        model.model.shared.weight[-1] = 0
        model.final_logits_bias.normal_()
        model.final_logits_bias[0, -3:-1] = -30  # no mark is ever said
        model.final_logits_bias[0, -1] = 0
    model.generation_config.bad_words_ids = [[len(names) - 1], [1]]
    model.generation_config.num_beams = 6
    model.save_pretrained(path)
    files = [str(path / name) for name in ("source.spm", "target.spm", "vocab.json")]
    MarianTokenizer(*files, source_lang="en").save_pretrained(path)
    return path


@pytest.fixture
def copied(foreign, tmp_path):
    return shutil.copytree(foreign, tmp_path / "copy")


def test_a_model_of_transformers(foreign, own, texts, others, tmp_path):
    import_huggingface(foreign, tmp_path / "model", None, "fr")
    model = own(tmp_path / "model")
    compare(model, Theirs(foreign), texts, others)
    assert len({piece for each in model.pieces(max_length=LENGTH) for piece in each}) >= 3
    assert model.folder.options.attention_bias
    assert model.folder.options.output_bias
    assert model.folder.config["search"] == {"beam_size": 6}
    facts = model.folder.facts
    assert (facts.source_language, facts.target_language) == ("en", "fr")


def test_its_tokens(foreign, own, texts, others, tmp_path):
    import_huggingface(foreign, tmp_path / "model", None, None)
    source, target = own(tmp_path / "model").folder.vocabularies
    theirs = MarianTokenizer.from_pretrained(foreign)
    mixed = [*texts, *others, ">>fra<< The dog sees a house.", "été ☃"]
    for text in mixed:
        pieces = theirs.convert_ids_to_tokens(theirs(text)["input_ids"])[:-1]
        expected = [f"▁{each}" if each.startswith(">>") else each for each in pieces]
        assert source.pieces(source.encode([text])[0]) == expected
        other = theirs.convert_ids_to_tokens(theirs(text_target=text)["input_ids"])[:-1]
        if not text.startswith(">>"):
            assert target.pieces(target.encode([text])[0]) == other
    ids = random.Random(1).choices(range(3, len(target) - 2), k=40)
    joined = theirs.spm_target.decode_pieces(target.pieces(ids)).replace("▁", " ")
    assert target.decode([ids]) == [" ".join(joined.split())]


def test_imported_and_exported_again_is_what_it_was(foreign, tmp_path):
    import_huggingface(foreign, tmp_path / "model", None, None)
    export_huggingface(tmp_path / "model", tmp_path / "again")
    before, after = (
        load_file(each / "model.safetensors") for each in (foreign, tmp_path / "again")
    )
    assert before.keys() == after.keys()
    for name, each in before.items():
        if name == "final_logits_bias":
            each, after[name] = each[:, :-1], after[name][:, :-1]
        torch.testing.assert_close(after[name], each, atol=0, rtol=0)
    assert json.loads((foreign / "vocab.json").read_text()) == (
        json.loads((tmp_path / "again" / "vocab.json").read_text())
    )


def test_an_imported_model_can_be_trained(foreign, own, corpus_files, tmp_path):
    from dragoman.cli.command import main

    import_huggingface(foreign, tmp_path / "model", "en", "fr")
    before = own(tmp_path / "model")
    main(
        ["train", "--source", str(corpus_files.source[0]), "--target", str(corpus_files.target[0]),
         "--from", str(tmp_path / "model"), "--out", str(tmp_path / "run"), "--max-steps", "6",
         "--validate-every", "6", "--batch-tokens", "400", "--valid-pairs", "10",
         "--device", "cpu", "--warmup-steps", "1", "--peak-learning-rate", "0.003",
         "--preset", "tiny"]
    )  # fmt: skip
    after = own(tmp_path / "run")
    assert not torch.equal(before.model.output.bias, after.model.output.bias)
    pairs = [each.read_text().splitlines()[:40] for each in (*corpus_files.source,
                                                              *corpus_files.target)]  # fmt: skip
    assert after.likelihoods(*pairs).mean() > before.likelihoods(*pairs).mean()


# Refusals


def message_of(action):
    with pytest.raises(FolderError) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"norm_position": "pre"}, "norms before the sub-layers (pre-norm)"),
        ({"norm": "rms"}, "RMS norms"),
        ({"norm": "batch"}, "batch normalisation"),
        ({"feed_forward": "swiglu"}, "gated feed-forward layers (swiglu)"),
        ({"positions": "learned"}, "“learned” positions"),
        ({"positions": "none"}, "“none” positions"),
        ({"decoder_attention": "feedback"}, "feedback memory"),
        ({"encoder_attention": "restricted"}, "“restricted” attention"),
        ({"num_experts": 2}, "a mixture of experts"),
        ({"key_dim": 4}, "heads of another width than model_dim / num_heads (key_dim 4)"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_cannot_be_represented(make_model, vocabularies, tmp_path, changes, what):
    path = make_model(vocabularies, **changes)
    assert message_of(lambda: export_huggingface(path, tmp_path / "out")) == (
        f"{path}: has {what}, which Hugging Face's MarianMT cannot represent; nothing is written"
    )
    assert not (tmp_path / "out").exists()


def change_weights(folder, change):
    """Change the weights of a folder in a file."""
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize("positions", ["sinusoidal", "marian"])
def test_a_table_of_sinusoids_is_recognised(make_model, vocabularies, tmp_path, positions):
    """Old folders bring transformers' own; those of Marian's sinusoids must."""
    export_huggingface(make_model(vocabularies, positions=positions), tmp_path / "out")
    table = MarianMTModel.from_pretrained(tmp_path / "out").model.encoder.embed_positions.weight

    def bring(weights):
        for side in ("encoder", "decoder"):
            weights[f"model.{side}.embed_positions.weight"] = table.detach().clone().half()

    change_weights(tmp_path / "out", bring)
    import_huggingface(tmp_path / "out", tmp_path / "back", None, None)
    assert read_folder(tmp_path / "back").options.positions == positions


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_other_tables_of_positions_are_refused(make_model, vocabularies, tmp_path, side):
    path, name = tmp_path / "out", f"model.{side}.embed_positions.weight"
    export_huggingface(make_model(vocabularies, positions="marian"), path)
    shutil.copytree(path, tmp_path / "narrow")
    change_weights(path, lambda weights: weights[name].mul_(1.1))
    refused = f"model.safetensors: “{name}” has other positions than sinusoids, not supported"
    assert refused in message_of(lambda: import_huggingface(path, tmp_path / "back", None, None))
    path = tmp_path / "narrow"
    change_weights(path, lambda weights: weights.update({name: torch.zeros(3, 5)}))
    refused = f"“{name}” has shape (3, 5), not (3, 32); get the model again"
    assert refused in message_of(lambda: import_huggingface(path, tmp_path / "back", None, None))


def test_other_families_and_words_are_refused(trained, tmp_path):
    path = shutil.copytree(trained, tmp_path / "model")
    strip_digests(path)
    (path / "config.toml").write_text(f'[model]\nfamily = "{RNNsearchOptions().family}"\n')
    assert "a model of the family “rnnsearch”" in (
        message_of(lambda: export_huggingface(path, tmp_path / "out"))
    )
    shutil.copy(trained / "config.toml", path)
    (path / "subwords.model").unlink()
    words = learn_words(["a b a b"])
    for name, contents in Vocabularies(words, words).files().items():
        (path / name).write_bytes(contents)
    weights = load_file(path / "model.safetensors")
    weights["source_embedding.words"] = torch.zeros(len(words), 16)
    save_file(weights, path / "model.safetensors")
    assert "a closed vocabulary of words" in (
        message_of(lambda: export_huggingface(path, tmp_path / "out"))
    )
    assert not (tmp_path / "out").exists()


def imported(path):
    return lambda: import_huggingface(path, path.parent / "out", None, None)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"model_type": "bart"}, "model_type is “bart”; only “marian” can be imported"),
        ({"d_model": None}, "model_dim"),
        ({"decoder_ffn_dim": 41}, "encoder_ffn_dim is 40 and decoder_ffn_dim 41"),
        ({"scale_embedding": False}, "scale_embedding is False, which is not supported here"),
        ({"normalize_before": True}, "normalize_before is True, which is not supported here"),
        ({"normalize_embedding": True}, "normalize_embedding is True"),
        ({"static_position_embeddings": False}, "static_position_embeddings is False"),
        ({"activation_function": "mish"}, "activation_function is mish"),
        ({"activation_function": [1]}, "activation_function is a list"),
        ({"pad_token_id": 3.0, "decoder_start_token_id": 3.0}, "pad_token_id is 3.0"),
        ({"decoder_start_token_id": 0}, "decoder_start_token_id 0, but both must be"),
        ({"pad_token_id": 3, "decoder_start_token_id": 3}, "pad_token_id is 3"),
        ({"encoder_attention_heads": 5, "decoder_attention_heads": 5}, "num_heads is 5"),
        ({"encoder_layers": 10**7}, "too few for the 10000001 layers of config.json"),
        ({"encoder_layers": 3}, "lacks “model.encoder.layers.2."),
        ({"encoder_layers": 1}, "layers.1."),
        ({"encoder_ffn_dim": 44, "decoder_ffn_dim": 44}, "has shape (40, 32), not (44, 32)"),
    ],
    ids=lambda each: "-".join(each) if isinstance(each, dict) else "",
)
def test_configurations_that_do_not_fit(copied, said, message):
    file = copied / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | said))
    found = message_of(imported(copied))
    assert message in found
    assert found.count(str(file)) <= 1
    assert not (copied.parent / "out").exists()


def test_a_configuration_that_lacks_something(copied):
    file = copied / "config.json"
    config = json.loads(file.read_text())
    del config["encoder_layers"]
    file.write_text(json.dumps(config))
    assert message_of(imported(copied)) == (
        f"{file}: does not say encoder_layers; get the model again"
    )


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "source.spm", "vocab.json"])
def test_missing_files(copied, name):
    (copied / name).unlink()
    assert name in message_of(imported(copied))


@pytest.mark.parametrize("contents", ["{", "[]", "", "[" * 50_000], ids=lambda each: each[:3])
@pytest.mark.parametrize("name", ["config.json", "vocab.json", "tokenizer_config.json"])
def test_damaged_files(copied, name, contents):
    (copied / name).write_text(contents)
    assert message_of(imported(copied)).startswith(f"{copied / name}: ")


def test_a_pickle_is_never_opened(copied):
    (copied / "model.safetensors").rename(copied / "pytorch_model.bin")
    assert "is a pickle, which can run code and is never opened here; convert it to " in (
        message_of(imported(copied))
    )


def test_damaged_weights_and_subwords(copied):
    weights = load_file(copied / "model.safetensors")
    save_file(weights | {"extra": torch.zeros(1)}, copied / "model.safetensors")
    assert message_of(imported(copied)) == (
        f"{copied / 'model.safetensors'}: holds “extra”, which no MarianMT model has"
    )
    (copied / "model.safetensors").write_bytes(b"\x00" * 40)
    assert "not a safetensors file" in message_of(imported(copied))
    (copied / "target.spm").write_bytes(b"nothing")
    assert "has a damaged SentencePiece model" in message_of(imported(copied))


def test_a_piece_that_is_no_text(copied):
    model = bytearray((copied / "target.spm").read_bytes())
    model[model.rindex(SPACE_MARK.encode())] &= 127
    (copied / "target.spm").write_bytes(model)
    assert "has a damaged SentencePiece model" in message_of(imported(copied))


def test_names_that_cannot_be_written(copied):
    file = copied / "vocab.json"
    ids = json.loads(file.read_text())
    file.write_text(json.dumps({f"{name}\ud800": i for name, i in ids.items()}))
    assert "is half a character; get the model again" in message_of(imported(copied))


def test_numbers_that_are_none_are_left_out(copied):
    for name, said in (("generation_config.json", "num_beams"),
                       ("config.json", "max_position_embeddings")):  # fmt: skip
        file = copied / name
        file.write_text(json.dumps(json.loads(file.read_text()) | {said: True}))
    imported(copied)()
    folder = read_folder(copied.parent / "out")
    assert folder.config["search"] == {}
    assert folder.facts.longest_source == 1024


def test_a_full_disk_leaves_nothing(copied, monkeypatch):
    def fail(path, tensors, metadata):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    out = copied.parent / "out"
    with monkeypatch.context() as patch:
        patch.setattr("dragoman.weights.write_tensors", fail)
        assert message_of(imported(copied)).startswith(
            f"{out}/model.safetensors: cannot be written (No space left on device)"
        )
    assert not out.exists()
    imported(copied)()


def test_a_vocabulary_with_gaps(copied):
    file = copied / "vocab.json"
    ids = json.loads(file.read_text())
    file.write_text(json.dumps(ids | {">>fra<<": 500}))
    assert "“>>fra<<” has the id 500, but the" in message_of(imported(copied))
    del ids["<unk>"]
    names = sorted(ids, key=ids.get)
    file.write_text(json.dumps({name: i for i, name in enumerate(names)}))
    config = json.loads((copied / "config.json").read_text())
    config |= {"pad_token_id": len(names) - 1, "decoder_start_token_id": len(names) - 1}
    (copied / "config.json").write_text(json.dumps(config))
    assert "has no entry “<unk>”" in message_of(imported(copied))


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        (torch.float8_e4m3fn, "{} has the type F8_E4M3, which no model has"),
        (torch.int64, "“{}” is stored as torch.int64; give the model in 32 or 16 bits"),
        (torch.uint8, "“{}” is stored as torch.uint8; give the model in 32 or 16 bits"),
    ],
)
def test_numbers_that_are_not_plain(copied, dtype, message):
    weights = load_file(copied / "model.safetensors")
    name = "model.encoder.layers.0.fc1.weight"
    save_file(weights | {name: weights[name].to(dtype)}, copied / "model.safetensors")
    assert message.format(name) in message_of(imported(copied))


@pytest.mark.parametrize("piece_id", [-1, True, 1.0, None, [0], 10**30])
def test_ids_that_are_none(copied, piece_id):
    file = copied / "vocab.json"
    ids = json.loads(file.read_text())
    file.write_text(json.dumps(ids | {next(iter(ids)): piece_id}))
    assert "ids must count up from 0" in message_of(imported(copied))


def test_half_precision_is_read(copied, own, texts, others):
    weights = load_file(copied / "model.safetensors")
    save_file({name: each.half() for name, each in weights.items()}, copied / "model.safetensors")
    imported(copied)()
    assert own(copied.parent / "out").likelihoods(texts, others).dtype == torch.float32
    assert np.isfinite(own(copied.parent / "out").likelihoods(texts, others)).all()


@pytest.mark.parametrize("odd", [("many", ["en"], "six"), (10**30, "en]\nx: y", 10**9)])
def test_what_is_said_oddly_is_not_taken_over(copied, own, odd):
    for name, said in (
        ("config.json", {"max_position_embeddings": odd[0]}),
        ("tokenizer_config.json", {"source_lang": odd[1], "target_lang": ""}),
        ("generation_config.json", {"num_beams": odd[2]}),
    ):
        file = copied / name
        file.write_text(json.dumps(json.loads(file.read_text()) | said))
    imported(copied)()
    folder = own(copied.parent / "out").folder
    assert folder.facts.longest_source == 1024
    assert (folder.facts.source_language, folder.facts.target_language) == (None, None)
    assert folder.config["search"] == {}


def test_plain_options_are_written(foreign, tmp_path):
    import_huggingface(foreign, tmp_path / "model", None, None)
    folder = read_folder(tmp_path / "model")
    assert folder.config["model"] == to_plain(folder.options)
