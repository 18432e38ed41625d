"""Write a rule-based sentence splitter as an ONNX network, which Argos Translate loads offline.

Argos splits text with MiniSBD, which fetches a network for the language from the Internet unless
the package brings one along. This one is not trained: each of its units is a rule, such as “a full
stop, a space and no small letter”, and the file is written by hand as ONNX lays it down.
"""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.text.sentence_splitting import list_abbreviations
from dragoman.text.specification import write_field

END, EAST_END, CLOSING, SPACE, LOWER, UPPER, LETTER, DOT = range(8)
"""Sorts of characters; after them each letter of an abbreviation is a sort of its own."""

SORTS = {
    END: ".!?…‼⁇⁈⁉؟۔।॥։።",
    EAST_END: "。！？｡",
    CLOSING: "\"'“”‘’»›)]}」』）》〉】〕",
    SPACE: " ",
    DOT: ".",
}
LAST_CHARACTER = 0xFFFF  # letters beyond this are rare, and of no sort
NUM_RESERVED = 2  # padding, and every character that is of no sort
AFTER = 2  # characters that a rule sees beyond the one in question
SURE, UNSURE, VETO, NEVER = 10.0, -5.0, -100.0, -1000.0

# ONNX's numbers for its types, and the versions of its format and operators.
_FLOAT, _INT64, _INTS = 1, 7, 7
_FORMAT_VERSION, _OPERATORS_VERSION = 8, 13


class Rule(NamedTuple):
    """Character classes that must, and must not, stand at some offsets."""

    wanted: tuple[tuple[int, int], ...]
    unwanted: tuple[tuple[int, int], ...]
    is_veto: bool = False


ENDS = (
    Rule(((0, END), (1, SPACE)), ((2, LOWER), (2, SPACE))),
    Rule(((-1, END), (0, CLOSING), (1, SPACE)), ((2, LOWER), (2, SPACE))),
    Rule(((0, EAST_END),), ((1, EAST_END), (1, CLOSING))),
    Rule(((-1, EAST_END), (0, CLOSING)), ((1, EAST_END), (1, CLOSING))),
)
INITIAL = Rule(((-1, UPPER), (0, DOT)), ((-2, LETTER),), is_veto=True)


def write_splitter(language: str) -> bytes:
    """Write the ONNX network for a language.

    Returns
    -------
    bytes
        An ONNX model as MiniSBD reads it: for each character of a text it says whether a sentence
        ends there.

    Notes
    -----
    Each character is a vector of its sorts. A convolution has one unit a rule, which is 1 where
    everything wanted is there and nothing unwanted, and 0 elsewhere; a sentence ends where a rule
    says so and no veto speaks against it.
    """
    abbreviations = sorted(list_abbreviations(language))
    letters = sorted({letter for word in abbreviations for letter in word})
    sort_of = {letter: LETTER + 2 + index for index, letter in enumerate(letters)}
    rules = [*ENDS, INITIAL]
    for word in abbreviations:
        places = [(index - len(word), sort_of[letter]) for index, letter in enumerate(word)]
        no_letter = (-len(word) - 1, LETTER)
        rules.append(Rule((*places, (0, DOT)), (no_letter,), is_veto=True))
    characters = _sort_characters(sort_of)
    table = np.zeros((NUM_RESERVED + len(characters), DOT + 1 + len(letters)), np.float32)
    for row, sorts in enumerate(characters.values(), start=NUM_RESERVED):
        table[row, sorts] = 1
    kernel, bias, before = _make_kernel(rules, table.shape[1])
    answers = np.zeros((len(rules), 3), np.float32)
    answers[:, 2] = [VETO if rule.is_veto else SURE for rule in rules]
    tensors = {
        "table": table,
        "kernel": kernel,
        "bias": bias,
        "answers": answers,
        "usually": np.array([0, NEVER, UNSURE], np.float32),
    }
    graph = _write_graph(tensors, pads=(before, AFTER), width=kernel.shape[2])
    return _write_model(graph, _describe(language, list(characters)))


def _sort_characters(sort_of: Mapping[str, int]) -> dict[str, list[int]]:
    """Find the classes of each character that has any."""
    found: dict[str, list[int]] = {}
    for character in map(chr, range(32, LAST_CHARACTER + 1)):
        sorts = [sort for sort, members in SORTS.items() if character in members]
        if character.lower() != character.upper():
            sorts += [LETTER, LOWER if character.islower() else UPPER]
        if character.lower() in sort_of:
            sorts.append(sort_of[character.lower()])
        if sorts:
            found[character] = sorts
    return found


def _make_kernel(rules: Sequence[Rule], num_sorts: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Turn each rule into a convolution unit; also return the left context."""
    before = -min(place for rule in rules for place, _ in (*rule.wanted, *rule.unwanted))
    kernel = np.zeros((len(rules), num_sorts, before + 1 + AFTER), np.float32)
    bias = np.zeros(len(rules), np.float32)
    for unit, rule in enumerate(rules):
        for place, sort in rule.wanted:
            kernel[unit, sort, before + place] = 1
        for place, sort in rule.unwanted:
            kernel[unit, sort, before + place] = -len(rule.wanted)
        bias[unit] = 1 - len(rule.wanted)
    return kernel, bias, before


def _describe(language: str, characters: list[str]) -> dict[str, str]:
    """Write the metadata that MiniSBD reads."""
    names = ["<PAD>", "<UNK>", *characters]
    vocabulary = {
        "lang": language,
        "idx": 0,
        "cutoff": 0,
        "lower": False,
        "_unit2id": {name: index for index, name in enumerate(names)},
        "_id2unit": names,
    }
    config = {"feat_funcs": ["capitalized"], "batch_size": 32, "max_seqlen": 1000}
    return {
        "lang_code": language,
        "config": json.dumps(config),
        "vocab": json.dumps(vocabulary),
        "lexicon": "null",
    }


def _write_graph(tensors: Mapping[str, np.ndarray], pads: tuple[int, int], width: int) -> bytes:
    turn = _write_numbers("perm", 0, 2, 1)
    conv = _write_numbers("pads", *pads) + _write_numbers("kernel_shape", width)
    nodes = [
        _write_node("Gather", ("table", "units"), "sorts", b""),
        _write_node("Transpose", ("sorts",), "columns", turn),
        _write_node("Conv", ("columns", "kernel", "bias"), "sums", conv),
        _write_node("Relu", ("sums",), "rules", b""),
        _write_node("Transpose", ("rules",), "rows", turn),
        _write_node("MatMul", ("rows", "answers"), "said", b""),
        _write_node("Add", ("said", "usually"), "scores", b""),
    ]
    return (
        b"".join(write_field(1, node) for node in nodes)
        + write_field(2, "sentence ends")
        + b"".join(write_field(5, _write_tensor(*each)) for each in tensors.items())
        + write_field(11, _write_value("units", _INT64, ("texts", "length")))
        + write_field(11, _write_value("features", _FLOAT, ("texts", "length", "kinds")))
        + write_field(12, _write_value("scores", _FLOAT, ("texts", "length", "answers")))
    )


def _write_model(graph: bytes, said: Mapping[str, str]) -> bytes:
    operators = write_field(1, "") + write_field(2, _OPERATORS_VERSION)
    properties = (write_field(1, key) + write_field(2, value) for key, value in said.items())
    return (
        write_field(1, _FORMAT_VERSION)
        + write_field(2, "dragoman")
        + write_field(7, graph)
        + write_field(8, operators)
        + b"".join(write_field(14, each) for each in properties)
    )


def _write_node(kind: str, inputs: Sequence[str], output: str, attributes: bytes) -> bytes:
    names = b"".join(write_field(1, name) for name in inputs) + write_field(2, output)
    return names + write_field(3, output) + write_field(4, kind) + attributes


def _write_numbers(name: str, *numbers: int) -> bytes:
    """Write a node attribute that is a list of numbers."""
    values = b"".join(write_field(8, number) for number in numbers)
    return write_field(5, write_field(1, name) + values + write_field(20, _INTS))


def _write_tensor(name: str, values: np.ndarray) -> bytes:
    dims = b"".join(write_field(1, size) for size in values.shape)
    raw = values.astype("<f4").tobytes()
    return dims + write_field(2, _FLOAT) + write_field(8, name) + write_field(9, raw)


def _write_value(name: str, kind: int, dims: Sequence[str]) -> bytes:
    shape = b"".join(write_field(1, write_field(2, dim)) for dim in dims)
    tensor = write_field(1, kind) + write_field(2, shape)
    return write_field(1, name) + write_field(2, write_field(1, tensor))
