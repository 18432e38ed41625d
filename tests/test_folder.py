"""Model folders: bit for bit there and back, and one line for every way to be damaged."""

import json
import os
import random
import shutil
from contextlib import suppress
from dataclasses import replace

import pytest
import torch
from benchmarks.attacks.mutations import mutate_folder, strip_digests
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from dragoman.decoding.translator import Translator
from dragoman.errors import DragomanError, FolderError
from dragoman.folder import (
    Facts,
    join_sentence_facts,
    model_card,
    read_folder,
    write_config,
    write_description,
)
from dragoman.models.build import build_model, count_parameters
from dragoman.options import to_plain
from dragoman.tensor_files import TensorFile
from dragoman.text.specification import write_field
from dragoman.text.subwords import Subwords, train_subwords
from dragoman.weights import (
    load_model,
    put_weights,
    read_weights,
    vocabulary_of,
    weights_of,
    write_model,
)

EVERYTHING = ["README.md", "config.toml", "dragoman.json", "model.safetensors", "subwords.model"]


@pytest.fixture
def copied(tiny_folder, tmp_path):
    return shutil.copytree(tiny_folder.path, tmp_path / "copy")


def message_of(action, kind=FolderError):
    with pytest.raises(kind) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    return message


# There and back


def test_everything_comes_back(tiny_folder):
    read = read_folder(tiny_folder.path)
    folder = tiny_folder.folder
    assert (read.config, read.options, read.facts) == (folder.config, folder.options, folder.facts)
    assert read.vocabularies.files() == folder.vocabularies.files()
    assert sorted(path.name for path in tiny_folder.path.iterdir()) == EVERYTHING


def test_weights_come_back_bit_for_bit(tiny_folder):
    model = load_model(read_folder(tiny_folder.path))
    assert not model.training
    before, after = (weights_of(each) for each in (tiny_folder.model, model))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("tied", ["all", "target", "none"])
def test_each_tied_matrix_is_saved_once(tiny_folder, tmp_path, tied):
    options = replace(tiny_folder.folder.options, tied_embeddings=tied)
    config = tiny_folder.folder.config | {
        "model": tiny_folder.folder.config["model"] | {"tied_embeddings": tied}
    }
    folder = replace(tiny_folder.folder, options=options, config=config)
    model = build_model(options, vocabulary_of(folder.vocabularies))
    write_model(tmp_path / "model", folder, model)
    saved = load_file(tmp_path / "model" / "model.safetensors")
    matrices = [name for name in saved if name.endswith(".words")]
    assert len(matrices) == {"all": 1, "target": 2, "none": 3}[tied]
    assert sum(each.numel() for each in saved.values()) == count_parameters(model)
    read = load_model(read_folder(tmp_path / "model"))
    assert all(map(torch.equal, read.parameters(), model.parameters()))
    tie = read.source_embedding.words is read.output.words
    assert tie == (tied == "all")


def test_the_weights_file_is_plain_safetensors(tiny_folder):
    with safe_open(tiny_folder.path / "model.safetensors", "pt") as file:
        assert sorted(file.keys()) == sorted(weights_of(tiny_folder.model))


def test_writing_again_replaces(tiny_folder, copied):
    model = build_model(tiny_folder.folder.options, vocabulary_of(tiny_folder.folder.vocabularies))
    facts = replace(tiny_folder.folder.facts, steps=99)
    write_model(copied, replace(tiny_folder.folder, facts=facts), model)
    read = read_folder(copied)
    assert read.facts.steps == 99
    assert all(map(torch.equal, load_model(read).parameters(), model.parameters()))
    assert sorted(path.name for path in copied.iterdir()) == EVERYTHING


def test_a_folder_without_weights_yet(tiny_folder, tmp_path):
    write_description(tmp_path / "run", tiny_folder.folder, 1)
    assert read_folder(tmp_path / "run", needs_weights=False).facts == tiny_folder.folder.facts
    assert message_of(lambda: read_folder(tmp_path / "run")) == (
        f"{tmp_path / 'run'}: has no model.safetensors yet; let training reach a validation"
    )


# Foreign and damaged


def test_no_folder(tmp_path):
    path = tmp_path / "nowhere"
    expected = f"{path}: no such model folder; train one with “dragoman train”"
    assert message_of(lambda: read_folder(path)) == expected
    path.write_text("a file")
    assert message_of(lambda: read_folder(path)) == expected


def test_a_foreign_folder(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert message_of(lambda: read_folder(tmp_path)) == (
        f"{tmp_path}: not a model folder (dragoman.json is missing)"
    )


@pytest.mark.parametrize("name", ["dragoman.json", "config.toml"])
def test_a_missing_description(copied, name):
    (copied / name).unlink()
    assert message_of(lambda: read_folder(copied)) == (
        f"{copied}: not a model folder ({name} is missing)"
    )


def test_missing_subwords(copied):
    (copied / "subwords.model").unlink()
    assert str(copied) in message_of(lambda: read_folder(copied))


@pytest.mark.parametrize("contents", ["", "{", "[]", "3", '"format"', "{}", '{"steps": 3}'])
def test_damaged_facts(copied, contents):
    path = copied / "dragoman.json"
    path.write_text(contents)
    expected = f"{path}: damaged, or not written by this program; get the folder again"
    assert message_of(lambda: read_folder(copied)) == expected


def test_facts_that_are_not_text(copied):
    (copied / "dragoman.json").write_bytes(b"\xff\xfe\x00")
    assert "dragoman.json: damaged" in message_of(lambda: read_folder(copied))


def test_facts_that_nobody_knows(copied):
    path = copied / "dragoman.json"
    facts = json.loads(path.read_text()) | {"colour": "red"}
    path.write_text(json.dumps(facts))
    message = message_of(lambda: read_folder(copied))
    assert message == f"{path}: unknown entry “colour”; get the folder again"
    assert "colour" in message


@pytest.mark.parametrize("value", [-5, True, 1.5, None])
def test_facts_that_cannot_be(copied, value):
    path = copied / "dragoman.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"longest_source": value}))
    assert message_of(lambda: read_folder(copied)) == (
        f"{path}: longest_source is {value!r}; get the folder again"
    )


@pytest.mark.parametrize("odd", [{"very": "x"}, {"more": 1}, {"more": "two words"}, {"less": ""}])
def test_formality_that_cannot_be(copied, odd):
    path = copied / "dragoman.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"formality": odd}))
    assert message_of(lambda: read_folder(copied)) == (
        f"{path}: formality is {odd!r}; get the folder again"
    )


@pytest.mark.parametrize("name", ["source_language", "target_language", "weights"])
def test_facts_that_would_control_a_terminal(copied, name):
    path = copied / "dragoman.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: "de\x1b[2J"}))
    assert message_of(lambda: read_folder(copied)) == (
        f"{path}: {name} is 'de\\x1b[2J'; get the folder again"
    )


@pytest.mark.parametrize("number", [2, 99, 0, "1"])
def test_another_format(copied, number):
    path = copied / "dragoman.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": number}))
    assert message_of(lambda: read_folder(copied)) == (
        f"{path}: format {number}, but this version reads format 1; "
        "use the version of Dragoman that wrote it"
    )


@pytest.mark.parametrize(
    "contents", ["[model", "model = 3", "[model]\nnum_heads = 'x'", "[model]\nheads = 3"]
)
def test_damaged_options(copied, contents):
    (copied / "config.toml").write_text(contents)
    message = message_of(lambda: read_folder(copied), DragomanError)
    assert str(copied / "config.toml") in message


def test_damaged_subwords(copied):
    (copied / "subwords.model").write_bytes(b"not a model")
    assert str(copied / "subwords.model") in message_of(lambda: read_folder(copied))


@pytest.mark.parametrize("share", [0, 0.001, 0.05, 0.5, 0.999])
def test_weights_cut_short(copied, share):
    path = copied / "model.safetensors"
    raw = path.read_bytes()
    path.write_bytes(raw[: int(share * len(raw))])
    message = message_of(lambda: load_model(read_folder(copied)))
    assert message.startswith(f"{path}: missing, cut short or not a safetensors file (")
    assert message.endswith("; get it again, or use another checkpoint")


@pytest.mark.parametrize(
    "contents", [b"PK\x03\x04 a pickle in a zip", b"\x08" + bytes(7) + b"notjson!"]
)
def test_weights_of_another_kind(copied, contents):
    (copied / "model.safetensors").write_bytes(contents)
    message = message_of(lambda: load_model(read_folder(copied)))
    assert str(copied / "model.safetensors") in message


def test_weights_that_are_not_there(tmp_path):
    message = message_of(lambda: read_weights(tmp_path / "nowhere.safetensors"))
    assert message.startswith(f"{tmp_path / 'nowhere.safetensors'}: missing, cut short")


def change_weights(folder, change):
    path = folder / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path)
    return path


def test_weights_of_another_shape(copied):
    name = "encoder.0.self_attention.query.weight"
    path = change_weights(copied, lambda weights: weights.update({name: torch.zeros(16, 12)}))
    assert message_of(lambda: load_model(read_folder(copied))) == (
        f"{path}: holds another model ({name} has shape (16, 12), not (16, 16))"
    )


def test_too_few_weights(copied):
    name = "decoder.1.feed_forward.inner.bias"
    path = change_weights(copied, lambda weights: weights.pop(name))
    assert message_of(lambda: load_model(read_folder(copied))) == (
        f"{path}: holds another model ({name} does not fit this one)"
    )


def test_too_many_weights(copied):
    path = change_weights(copied, lambda weights: weights.update({"extra": torch.zeros(1)}))
    assert message_of(lambda: load_model(read_folder(copied))) == (
        f"{path}: holds another model (extra does not fit this one)"
    )


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_no_numbers(copied, number):
    name = "decoder.1.feed_forward.inner.bias"
    path = change_weights(copied, lambda weights: weights[name][3:4].fill_(number))
    assert message_of(lambda: load_model(read_folder(copied))) == (
        f"{path}: has numbers that are not finite ({name}); get it again"
    )


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.bool])
def test_weights_in_whole_numbers(copied, dtype):
    name = "encoder.0.self_attention.query.weight"
    path = change_weights(copied, lambda weights: weights.update({name: weights[name].to(dtype)}))
    assert message_of(lambda: load_model(read_folder(copied))) == (
        f"{path}: has whole numbers without scales ({name}); get it again"
    )


def test_a_refusal_changes_no_weight(tiny_folder, tmp_path):
    model = build_model(tiny_folder.folder.options, vocabulary_of(tiny_folder.folder.vocabularies))
    before = {name: each.clone() for name, each in weights_of(model).items()}
    others = {name: each + 1 for name, each in before.items()}
    last = list(before)[-1]
    for bad in ({"extra": torch.zeros(1)}, {last: before[last] * torch.nan}):
        with pytest.raises(FolderError):
            put_weights(model, others | bad, tmp_path)
    assert all(torch.equal(each, before[name]) for name, each in weights_of(model).items())


# Parts that do not belong together, and damage


def rewrite_facts(folder, **changes):
    path = folder / "dragoman.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path


def load_and_translate(path):
    translator = Translator.load(path, "cpu")
    return [translator.translate(text).text for text in ("the old dog", "A small house sees.")]


def test_every_part_carries_a_digest(tiny_folder):
    facts = json.loads((tiny_folder.path / "dragoman.json").read_text())
    assert facts["digests"].keys() == {"subwords.model"}
    assert len(facts["digest"]) == 32
    assert (tiny_folder.path / "config.toml").read_text().splitlines()[-1].startswith("# Digest")
    folder = read_folder(tiny_folder.path)
    assert folder.weights.has_digests
    assert folder.weights.metadata["model"] == folder.identity


def test_an_option_that_older_folders_do_not_say_leaves_their_identity(tiny_folder):
    """Their weights carry the identity that they had before there was one for ε."""
    folder = read_folder(tiny_folder.path)
    other = replace(folder, options=replace(folder.options, norm_epsilon=1e-6))
    assert other.identity == folder.identity


@pytest.mark.parametrize("name", EVERYTHING[1:])
def test_damage_is_noticed_or_changes_nothing(copied, name):
    path = copied / name
    raw = bytearray(path.read_bytes())
    expected = load_and_translate(copied)
    before = read_folder(copied)
    chosen = random.Random(1)
    num_noticed = 0
    for _ in range(60):
        place, bit = chosen.randrange(len(raw)), 1 << chosen.randrange(8)
        raw[place] ^= bit
        path.write_bytes(raw)
        raw[place] ^= bit
        try:
            found = load_and_translate(copied)
        except DragomanError:
            num_noticed += 1
            continue
        after = read_folder(copied)
        assert found == expected
        assert (after.config, after.facts) == (before.config, before.facts)
    assert num_noticed > 50


def test_what_a_person_edited_is_read_without_its_digest(copied):
    path = rewrite_facts(copied, source_language="de")
    assert message_of(lambda: read_folder(copied)) == (
        f"{path}: damaged; get the folder again, or delete its “digest” if you edited it"
    )
    rewrite_facts(copied, digest=None)
    assert read_folder(copied).facts.source_language == "de"
    path = copied / "config.toml"
    edited = path.read_text().replace("beam_size = 3", "beam_size = 5")
    path.write_text(edited)
    assert message_of(lambda: read_folder(copied)) == (
        f"{path}: damaged; get the folder again, or delete its last line if you edited it"
    )
    path.write_text("".join(edited.splitlines(keepends=True)[:-1]))
    assert read_folder(copied).config["search"]["beam_size"] == 5


def test_folders_of_earlier_versions_have_no_digests(copied):
    strip_digests(copied)
    assert load_and_translate(copied)
    assert not read_folder(copied).weights.has_digests


def test_subwords_of_another_model(copied, sentence_pairs):
    path = copied / "subwords.model"
    path.write_bytes(train_subwords([source for source, _ in sentence_pairs], vocabulary_size=360))
    assert message_of(lambda: read_folder(copied)) == (
        f"{path}: damaged, or of another model; get the folder again"
    )


def test_options_of_another_model(tiny_folder, copied):
    folder = tiny_folder.folder
    changed = folder.config | {"model": folder.config["model"] | {"feed_forward": "swish"}}
    write_config(copied, changed)
    assert message_of(lambda: read_folder(copied)) == (
        f"{copied / 'model.safetensors'}: belongs to another model than config.toml and the "
        "subwords beside it; get the folder again"
    )


def test_dropout_makes_no_other_model(tiny_folder, copied):
    folder = tiny_folder.folder
    write_config(copied, folder.config | {"model": folder.config["model"] | {"dropout": 0.3}})
    assert read_folder(copied).options.dropout == 0.3


@pytest.mark.parametrize("tied", ["all", "target", "none"])
@pytest.mark.parametrize("precision", ["int8", "float32"])
def test_more_source_words_than_the_matrix_has(copied, subwords, sentence_pairs, tied, precision):
    """A joint matrix was once read where the ids of a larger source vocabulary say."""
    strip_digests(copied)
    sentences = [sentence for pair in sentence_pairs for sentence in pair]
    (copied / "subwords.model").rename(copied / "target.model")
    larger = train_subwords(sentences, vocabulary_size=420)
    assert len(Subwords.from_bytes(larger)) > len(subwords)
    (copied / "source.model").write_bytes(larger)
    config = (copied / "config.toml").read_text()
    (copied / "config.toml").write_text(
        config.replace('tied_embeddings = "all"', f'tied_embeddings = "{tied}"')
    )
    message = message_of(lambda: Translator.load(copied, "cpu", precision=precision))
    assert ("tied_embeddings" if tied == "all" else "source_embedding.words") in message


def with_size(model, size):
    """Say that a model has that many pieces, as those of other tools in their order do."""
    return write_field(200, size) + model


@pytest.mark.parametrize("size", [0, 1, 2])
def test_fewer_pieces_than_special_symbols(copied, subwords, size):
    strip_digests(copied)
    (copied / "subwords.model").write_bytes(with_size(subwords.to_bytes(), size))
    message = message_of(lambda: read_folder(copied))
    assert "cannot be end, unknown and padding" in message


@pytest.mark.parametrize("size", [2**40, 2**63, 10**6])
def test_more_pieces_than_there_are(copied, subwords, size):
    strip_digests(copied)
    (copied / "subwords.model").write_bytes(with_size(subwords.to_bytes(), size))
    assert "SentencePiece" in message_of(lambda: read_folder(copied))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_encoder_layers", 10_000_000),
        ("num_decoder_layers", 10**400),
        ("num_experts", 10_000_000),
        ("model_dim", 2**40),
        ("feed_forward_dim", 10**6),
        ("key_dim", 10**6),
        ("max_positions", 2**60),
    ],
)
@pytest.mark.parametrize("precision", ["int8", "float32"])
def test_counts_beyond_what_the_weights_hold(copied, name, value, precision):
    strip_digests(copied)
    path = copied / "config.toml"
    lines = [line for line in path.read_text().splitlines() if not line.startswith(f"{name} =")]
    place = lines.index("[model]") + 1
    path.write_text("\n".join([*lines[:place], f"{name} = {value}", *lines[place:]]))
    message = message_of(lambda: Translator.load(copied, "cpu", precision=precision), DragomanError)
    assert str(copied) in message


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "endless"])
@pytest.mark.parametrize("name", EVERYTHING[1:])
def test_what_is_no_ordinary_file(copied, name, kind):
    path = copied / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(1 << 42)
    assert str(path) in message_of(lambda: read_folder(copied), DragomanError)


@pytest.mark.parametrize(
    "contents", ["[" * 50_000, "a = " + "[" * 50_000, "a." * 50_000 + "a = 1", "a = " + "1" * 9999]
)
def test_deep_and_huge_descriptions(copied, contents):
    for name in ("dragoman.json", "config.toml"):
        before = (copied / name).read_bytes()
        (copied / name).write_text(contents)
        assert str(copied / name) in message_of(lambda: read_folder(copied), DragomanError)
        (copied / name).write_bytes(before)


def test_a_folder_that_is_replaced_while_it_is_read(tiny_folder, tmp_path, monkeypatch):
    """Between reading the description and opening the weights a new model takes its place."""
    options = replace(tiny_folder.folder.options, model_dim=32, feed_forward_dim=20)
    config = tiny_folder.folder.config | {"model": to_plain(options)}
    other = replace(tiny_folder.folder, options=options, config=config)
    write_model(tmp_path / "new", other, build_model(options, vocabulary_of(other.vocabularies)))
    path = shutil.copytree(tiny_folder.path, tmp_path / "served")
    opened = []

    def open_after_the_swap(weights_path):
        if not opened:
            path.rename(tmp_path / "old")
            (tmp_path / "new").rename(path)
        opened.append(weights_path)
        return TensorFile(weights_path)

    monkeypatch.setattr("dragoman.folder.TensorFile", open_after_the_swap)
    assert read_folder(path).options == options
    assert len(opened) == 2


def test_weights_are_read_from_the_file_that_was_opened(tiny_folder, copied, tmp_path):
    folder = read_folder(copied)
    other = build_model(folder.options, vocabulary_of(folder.vocabularies))
    write_model(copied, folder, other)
    before, after = load_model(folder), load_model(read_folder(copied))
    assert all(map(torch.equal, before.parameters(), tiny_folder.model.parameters()))
    assert all(map(torch.equal, after.parameters(), other.parameters()))


def test_damaged_folders_translate_or_are_refused(tiny_folder, tmp_path):
    other = shutil.copytree(tiny_folder.path, tmp_path / "other")
    for case in range(120):
        chosen = random.Random(case)
        folder = shutil.copytree(tiny_folder.path, tmp_path / f"case-{case}")
        mutate_folder(folder, [other], chosen)
        with suppress(DragomanError):
            load_and_translate(folder)
        shutil.rmtree(folder)


# The card


def test_card_tells_what_is_known(tiny_folder):
    card = (tiny_folder.path / "README.md").read_text()
    for part in (
        "language: [en, fr]", "# A en → fr model",
        f"{count_parameters(tiny_folder.model):,} parameters",
        "80 training pairs", "weights: best, step 12", "valid: BLEU 1.5",
    ):  # fmt: skip
        assert part in card
    assert card.startswith("---\n")
    assert card.split("---\n")[1].strip()


def test_card_is_silent_on_what_is_unknown(tiny_folder):
    card = model_card(replace(tiny_folder.folder, facts=Facts()), 1234)
    assert "language:" not in card
    assert "# A translation model" in card
    assert "weights:" not in card
    assert "1,234 parameters" in card


# Sentences


def test_a_folder_from_before_there_was_a_fact_is_read(tiny_folder, tmp_path):
    path = tmp_path / "old"
    shutil.copytree(tiny_folder.path, path)
    facts = json.loads((path / "dragoman.json").read_text(encoding="utf-8"))
    del facts["one_sentence_a_line"], facts["digest"]
    (path / "dragoman.json").write_text(json.dumps(facts), encoding="utf-8")
    assert read_folder(path).facts.one_sentence_a_line is None
    (path / "dragoman.json").write_text(json.dumps(facts | {"one_sentence_a_line": "no"}))
    with pytest.raises(FolderError, match="one_sentence_a_line is 'no'; get the folder again"):
        read_folder(path)


@pytest.mark.parametrize(
    ("known", "joined"),
    [
        ([True, True], True),
        ([False, True], True),
        ([None, True], True),
        ([False, False], False),
        ([False, None], None),
    ],
)
def test_models_together_are_spared_what_one_of_them_has_not_seen(known, joined):
    assert join_sentence_facts([Facts(one_sentence_a_line=each) for each in known]) is joined
