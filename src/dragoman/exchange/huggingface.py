"""Import and export MarianMT folders of Hugging Face, as OPUS-MT publishes them."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.decoding.options import SearchOptions
from dragoman.errors import FolderError, OptionError
from dragoman.exchange.foreign_files import MOST_VOCABULARY_BYTES, read_object
from dragoman.exchange.huggingface_layout import (
    ACTIVATIONS,
    MAX_POSITIONS,
    check_tying,
    drop_zero_biases,
    from_huggingface,
    read_positions,
    to_huggingface,
)
from dragoman.exchange.names import (
    build_vocabularies,
    marian_order,
    names_by_id,
    names_of,
    own_order,
    plain_marks,
)
from dragoman.exchange.unsupported import check_for_huggingface, check_new, subwords_of
from dragoman.files import read_bounded, written_beside
from dragoman.folder import Facts, ModelFolder, read_folder
from dragoman.models.build import build_model
from dragoman.models.options import TransformerOptions
from dragoman.options import from_plain, to_plain
from dragoman.tensor_files import write_tensors
from dragoman.text.subwords import Subwords
from dragoman.weights import (
    load_model,
    put_weights,
    read_weights,
    vocabulary_of,
    weights_of,
    write_model,
)

CONFIG, GENERATION, WEIGHTS = "config.json", "generation_config.json", "model.safetensors"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
SUBWORDS = ("source.spm", "target.spm")
TOKENISER = "tokenizer_config.json"
MOST_LONGEST = 1 << 20
MOST_BEAMS = 1000
"""More words of a sentence, or hypotheses, than these are not taken over."""

NEEDED = {"encoder_layers", "decoder_layers", "d_model", "pad_token_id"}


def export_huggingface(path: Path, out: Path) -> None:
    """Write a model as a folder that the library transformers loads.

    Parameters
    ----------
    path : Path
        The model folder.
    out : Path
        The new folder.

    Notes
    -----
    The padding is the last entry of the vocabulary, as Marian has it, if both sides share theirs.
    Its bias leaves it no probability, so that scores are those of Dragoman.
    """
    folder = read_folder(path)
    options = check_for_huggingface(folder)
    check_new(out)
    source, target = subwords_of(folder)
    names = tuple(plain_marks(names_of(each, place=path)) for each in (source, target))
    is_shared = names[0] == names[1]
    orders = tuple(_order(each, is_shared=is_shared) for each in (source, target))
    weights = to_huggingface(
        weights_of(load_model(folder)), options, (orders[0], orders[1]), target.pad_id
    )
    vocabularies = [
        {side[piece_id]: index for index, piece_id in enumerate(order)}
        for side, order in zip(names, orders, strict=True)
    ]
    ids = {
        "pad": orders[1].index(target.pad_id),
        "eos": orders[1].index(target.eos_id),
        "unk": orders[1].index(target.unk_id),
    }
    with written_beside(out) as beside:
        beside.mkdir()
        write_tensors(beside / WEIGHTS, weights, {"format": "pt"})
        _write_json(beside / CONFIG, _describe(options, ids, [len(each) for each in vocabularies]))
        _write_json(beside / GENERATION, _generation(folder, ids))
        _write_json(beside / TOKENISER, _tokeniser(folder, is_shared=is_shared))
        _write_json(beside / VOCABULARY, vocabularies[0])
        if not is_shared:
            _write_json(beside / TARGET_VOCABULARY, vocabularies[1])
        for name, side in zip(SUBWORDS, (source, target), strict=True):
            (beside / name).write_bytes(side.to_bytes())


def import_huggingface(
    path: Path, out: Path, source_language: str | None, target_language: str | None
) -> None:
    """Convert a MarianMT folder to a model folder.

    Parameters
    ----------
    path : Path
        The folder, such as that of an OPUS-MT model.
    out : Path
        The new model folder.
    source_language : str | None
        The language it translates from; None: what the folder says.
    target_language : str | None
        The language it translates to; None: what the folder says.
    """
    config = read_object(path / CONFIG)
    options = _options_of(config, path / CONFIG)
    check_new(out)
    _check_files(path)
    tokeniser = read_object(path / TOKENISER) if (path / TOKENISER).exists() else {}
    first = names_by_id(
        read_object(path / VOCABULARY, MOST_VOCABULARY_BYTES), place=str(path / VOCABULARY)
    )
    names = (first, first)
    if tokeniser.get("separate_vocabs"):
        file = path / TARGET_VOCABULARY
        names = (first, names_by_id(read_object(file, MOST_VOCABULARY_BYTES), place=str(file)))
    _check_padding(config, names[1], path / CONFIG)
    orders = tuple(own_order(each, place=str(path / VOCABULARY)) for each in names)
    check_tying(options, orders, path / VOCABULARY)
    ordered = tuple([side[i] for i in order] for side, order in zip(names, orders, strict=True))
    models = tuple(read_bounded(path / name, MOST_VOCABULARY_BYTES) for name in SUBWORDS)
    vocabularies = build_vocabularies((models[0], models[1]), (ordered[0], ordered[1]), place=path)
    file = path / WEIGHTS
    theirs = read_weights(file)
    options = replace(options, positions=read_positions(theirs, options.model_dim, file))
    weights = from_huggingface(theirs, options, (orders[0], orders[1]), file)
    weights, options = drop_zero_biases(weights, options, vocabularies.pad_id)
    facts = Facts(
        source_language=source_language or _language_of(tokeniser, "source_lang"),
        target_language=target_language or _language_of(tokeniser, "target_lang"),
        longest_source=_longest_of(config),
        weights="imported from Hugging Face",
    )
    folder = ModelFolder(
        path=out,
        config={
            "model": to_plain(options),
            "text": {"joint": names[0] == names[1]},
            "search": _search_of(path, config),
        },
        options=options,
        vocabularies=vocabularies,
        facts=facts,
    )
    model = build_model(options, vocabulary_of(vocabularies))
    put_weights(model, weights, file)
    with written_beside(out) as beside:
        write_model(beside, folder, model)


def _order(subwords: Subwords, *, is_shared: bool) -> list[int]:
    """Choose the order of ids: Marian's, unless two vocabularies must share the padding id."""
    return marian_order(subwords) if is_shared else list(range(len(subwords)))


def _describe(options: TransformerOptions, ids: dict[str, int], sizes: list[int]) -> dict[str, Any]:
    """Make the MarianConfig of a model."""
    activation = next(
        theirs for theirs, ours in ACTIVATIONS.items() if ours == options.feed_forward
    )
    sides: dict[str, Any] = {}
    for side in ("encoder", "decoder"):
        sides[f"{side}_layers"] = getattr(options, f"num_{side}_layers")
        sides[f"{side}_attention_heads"] = options.num_heads
        sides[f"{side}_ffn_dim"] = options.feed_forward_dim
        sides[f"{side}_layerdrop"] = 0.0
    return sides | {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "vocab_size": sizes[0],
        "decoder_vocab_size": sizes[1],
        "d_model": options.model_dim,
        "activation_function": activation,
        "scale_embedding": True,
        "max_position_embeddings": MAX_POSITIONS,
        "pad_token_id": ids["pad"],
        "eos_token_id": ids["eos"],
        "bos_token_id": None,
        "forced_eos_token_id": ids["eos"],
        "decoder_start_token_id": ids["pad"],
        "share_encoder_decoder_embeddings": options.tied_embeddings == "all",
        "tie_word_embeddings": options.tied_embeddings != "none",
        "dropout": options.dropout,
        "attention_dropout": options.attention_dropout,
        "activation_dropout": options.activation_dropout,
        "is_encoder_decoder": True,
        "use_cache": True,
        "dtype": "float32",
    }


def _generation(folder: ModelFolder, ids: dict[str, int]) -> dict[str, Any]:
    """Make the generation config: our search options, as far as they exist there."""
    place = f"{folder.path}: search"
    search = from_plain(SearchOptions, folder.config.get("search", {}), place=place)
    return {
        "pad_token_id": ids["pad"],
        "eos_token_id": ids["eos"],
        "forced_eos_token_id": ids["eos"],
        "decoder_start_token_id": ids["pad"],
        "bad_words_ids": [[ids["pad"]], [ids["unk"]]],
        "num_beams": search.beam_size,
        "length_penalty": search.length_penalty,
        "max_length": MAX_POSITIONS // 2,
    }


def _tokeniser(folder: ModelFolder, *, is_shared: bool) -> dict[str, Any]:
    """Make the files that MarianTokenizer reads."""
    return {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": folder.facts.source_language,
        "target_lang": folder.facts.target_language,
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "model_max_length": MAX_POSITIONS,
        "separate_vocabs": not is_shared,
        "clean_up_tokenization_spaces": False,
    }


def _options_of(config: dict[str, Any], place: Path) -> TransformerOptions:
    """Read a model's options from its config, refusing what is not supported."""
    kind = config.get("model_type")
    if kind != "marian":
        raise FolderError(f"{place}: model_type is “{kind}”; only “marian” can be imported")
    for name in sorted(NEEDED - config.keys()):
        raise FolderError(f"{place}: does not say {name}; get the model again")
    for name, other in (
        ("encoder_attention_heads", "decoder_attention_heads"),
        ("encoder_ffn_dim", "decoder_ffn_dim"),
    ):
        if config.get(name) != config.get(other):
            raise FolderError(
                f"{place}: {name} is {config.get(name)} and {other} {config.get(other)}; a model "
                "here has the same on both sides"
            )
    activation = config.get("activation_function", "gelu")
    refused = {
        "scale_embedding": config.get("scale_embedding", False) is not True,
        "normalize_before": bool(config.get("normalize_before")),
        "normalize_embedding": bool(config.get("normalize_embedding")),
        "static_position_embeddings": not config.get("static_position_embeddings", True),
        "activation_function": activation not in list(ACTIVATIONS),
    }
    for name in (name for name, is_refused in refused.items() if is_refused):
        raise FolderError(f"{place}: {name} is {config.get(name)}, which is not supported here")
    tied = "target" if config.get("tie_word_embeddings", True) else "none"
    is_shared = config.get("share_encoder_decoder_embeddings", True)
    plain = {
        "num_encoder_layers": config["encoder_layers"],
        "num_decoder_layers": config["decoder_layers"],
        "model_dim": config["d_model"],
        "feed_forward_dim": config.get("encoder_ffn_dim"),
        "feed_forward": ACTIVATIONS[activation],
        "num_heads": config.get("encoder_attention_heads"),
        "attention_bias": True,
        "output_bias": True,
        "tied_embeddings": "all" if is_shared and tied == "target" else tied,
        "dropout": config.get("dropout", 0.1),
        "attention_dropout": config.get("attention_dropout", 0.0),
        "activation_dropout": config.get("activation_dropout", 0.0),
    }
    try:
        return from_plain(TransformerOptions, plain, place=str(place))
    except OptionError as error:
        raise FolderError(str(error)) from None


def _check_files(path: Path) -> None:
    """Refuse a folder with missing files."""
    if not (path / WEIGHTS).exists():
        pickled = path / "pytorch_model.bin"
        if pickled.exists():
            raise FolderError(
                f"{pickled}: is a pickle, which can run code and is never opened here; convert it "
                "to model.safetensors (transformers: from_pretrained, then save_pretrained)"
            )
        raise FolderError(f"{path}: has no {WEIGHTS}; get the model again")
    for name in (*SUBWORDS, VOCABULARY):
        if not (path / name).exists():
            raise FolderError(f"{path}: has no {name}; get the model again")


def _check_padding(config: dict[str, Any], names: list[str], place: Path) -> None:
    """Refuse a model whose start symbol is not its padding."""
    pad_id = config["pad_token_id"]
    start_id = config.get("decoder_start_token_id", pad_id)
    is_id = type(pad_id) is int and pad_id in range(len(names))
    if start_id != pad_id or not is_id or names[pad_id] != "<pad>":
        raise FolderError(
            f"{place}: pad_token_id is {pad_id} and decoder_start_token_id {start_id}, but both "
            f"must be that of “<pad>” in {VOCABULARY}"
        )


def _language_of(tokeniser: dict[str, Any], name: str) -> str | None:
    """Read a language code, if it is valid."""
    said = tokeniser.get(name)
    return said if isinstance(said, str) and re.fullmatch(r"[\w+-]{1,40}", said) else None


def _longest_of(config: dict[str, Any]) -> int:
    """Read the length limit, if there is one."""
    said = config.get("max_position_embeddings")
    return said if type(said) is int and 0 < said <= MOST_LONGEST else MAX_POSITIONS


def _search_of(path: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Take over the beam size; the length penalty has another meaning there."""
    said = read_object(path / GENERATION) if (path / GENERATION).exists() else config
    beams = said.get("num_beams") or config.get("num_beams")
    return {"beam_size": beams} if type(beams) is int and 1 <= beams <= MOST_BEAMS else {}


def _write_json(path: Path, contents: dict[str, Any]) -> None:
    path.write_text(json.dumps(contents, indent=1) + "\n", encoding="utf-8")
