"""The view “Inside”: a sentence step by step, the tree of beam search, and samples, as JSON."""

import base64
from typing import Any

import numpy as np
import torch
from starlette.requests import Request as WebRequest
from starlette.responses import JSONResponse, Response

from dragoman.decoding.translator import Translator
from dragoman.insight.beam_tree import grow_tree
from dragoman.insight.machine.code_lines import find_code
from dragoman.insight.machine.recording import Recording, find_obstacle, record_pair
from dragoman.insight.sampling import (
    TEMPERATURES,
    NextWords,
    draw_samples,
    find_next_words,
    read_next_words,
)
from dragoman.models.options import TransformerOptions
from dragoman.serving.page.page_request import (
    SentencePair,
    check_length,
    read_question,
    service_of,
)
from dragoman.serving.service_types import ServiceError

LONGEST_INSIDE = 41
"""Subwords of a sentence, or of its translation, with the end symbol, that one can step through."""

PAPER = "https://arxiv.org/html/1706.03762v7"
"""Where the paper stands, section by section: a link for people, which the page never asks for."""

MOST_BEAMS = 8
MOST_SAMPLES = 12
COLDEST, HOTTEST = 5, 200
"""Of temperatures, in hundredths."""


async def give_inside(request: WebRequest) -> Response:
    """Answer with what there is to see of a pair, or with the numbers of one part."""
    pair, fields = await read_question(request)
    part = fields.text("part", "")
    found = await service_of(request).run_side_task(
        pair.model, lambda translator: look_inside(translator, pair, part)
    )
    return JSONResponse(found)


async def give_terms(request: WebRequest) -> Response:
    """Answer with the terms of one entry of a linear map."""
    pair, fields = await read_question(request)
    part, name = fields.text("part"), fields.text("map")
    row, column, head = (fields.number(each, 0, 1 << 24, 0) for each in ("row", "column", "head"))

    def find(translator: Translator) -> dict[str, Any]:
        check_length(translator, pair, LONGEST_INSIDE)
        recording = record_pair(translator, pair.source, pair.translation)
        terms = recording.find_terms(part, name, row, column, head)
        return {"left": pack(terms.left), "right": pack(terms.right), "bias": terms.bias}

    return JSONResponse(await service_of(request).run_side_task(pair.model, find))


async def give_tree(request: WebRequest) -> Response:
    """Answer with the tree of a beam search."""
    pair, fields = await read_question(request)
    beam = fields.number("beam", 1, MOST_BEAMS, 4)
    alone = pair._replace(translation="")

    def grow(translator: Translator) -> dict[str, Any]:
        check_length(translator, alone, LONGEST_INSIDE)
        return write_tree(translator, pair.source, beam)

    return JSONResponse(await service_of(request).run_side_task(pair.model, grow))


async def give_samples(request: WebRequest) -> Response:
    """Answer with samples at a temperature."""
    pair, fields = await read_question(request)
    temperature = fields.number("temperature", COLDEST, HOTTEST, 100) / 100
    count = fields.number("count", 1, MOST_SAMPLES, 6)
    seed = fields.number("seed", 0, 1 << 31, 1)

    def draw(translator: Translator) -> dict[str, Any]:
        check_length(translator, pair, LONGEST_INSIDE)
        samples = draw_samples(
            translator, pair.source, temperature=temperature, num_samples=count, seed=seed
        )
        places = find_next_words(translator, pair.source, pair.translation)
        return {
            "samples": [[each.text, round(each.log_probability, 4)] for each in samples],
            **write_next_words(places),
        }

    return JSONResponse(await service_of(request).run_side_task(pair.model, draw))


def look_inside(translator: Translator, pair: SentencePair, part: str) -> dict[str, Any]:
    """Describe the machine and a pair of sentences in it, or return the numbers of one part.

    Returns
    -------
    dict[str, Any]
        For JSON. Without a part: shape, subwords, parts and the code of each step, or, of models
        that cannot be followed, a remark. Of a part: matrices by name, each with its shape and its
        entries in 32 bits; of the output the most probable subwords alone.
    """
    obstacle = find_obstacle(translator.folder.options)
    if obstacle:
        return {"remark": obstacle}
    check_length(translator, pair, LONGEST_INSIDE)
    recording = record_pair(translator, pair.source, pair.translation)
    if not part:
        return _describe(recording)
    if part not in recording.parts:
        raise ServiceError("bad_request", f"there is no part “{part}” in this model")
    numbers = dict(recording.parts[part].numbers)
    told: dict[str, Any] = {}
    if part == "output":
        logits = torch.from_numpy(numbers.pop("logits"))
        told = write_next_words(read_next_words(translator, logits, recording.said_ids))
    return told | {"numbers": {name: write_matrix(each) for name, each in numbers.items()}}


def _describe(recording: Recording) -> dict[str, Any]:
    """Describe shape, subwords, parts and code."""
    options: TransformerOptions = recording.options
    return {
        "remark": "",
        "paper": PAPER,
        "hasPositions": "positions" in recording.parts["source"].numbers,
        "source": recording.source,
        "read": recording.read,
        "said": recording.said,
        "ids": {
            "source": recording.source_ids,
            "read": recording.read_ids,
            "said": recording.said_ids,
        },
        "parts": {name: each.kind for name, each in recording.parts.items()},
        "shape": {
            "encoderLayers": options.num_encoder_layers,
            "decoderLayers": options.num_decoder_layers,
            "modelDim": options.model_dim,
            "innerDim": options.feed_forward_dim,
            "heads": options.num_heads,
            "keyDim": options.head_key_dim,
            "isScaled": options.scaled,
            "isPre": options.norm_position == "pre",
            "norm": options.norm,
            "positions": options.positions,
            "activation": options.feed_forward,
            "vocabulary": len(recording.model.output.words),
            "readsEnd": options.source_end,
        },
        "code": {step: line._asdict() for step, line in find_code().items()},
    }


def write_matrix(numbers: np.ndarray) -> dict[str, Any]:
    """Convert an array to its shape and its entries."""
    return {"shape": list(numbers.shape), "entries": pack(numbers)}


def pack(numbers: np.ndarray) -> str:
    """Encode numbers as 32-bit floats, the least significant byte first, in base64."""
    return base64.b64encode(np.ascontiguousarray(numbers, dtype="<f4").tobytes()).decode()


def write_next_words(places: list[NextWords]) -> dict[str, Any]:
    """Convert distributions of the next word to JSON."""
    return {
        "temperatures": TEMPERATURES,
        "places": [
            {
                "ids": each.ids,
                "pieces": each.pieces,
                "logits": [round(logit, 5) for logit in each.logits],
                "normalisers": [round(log, 5) for log in each.normalisers],
            }
            for each in places
        ],
    }


def write_tree(translator: Translator, source: str, beam_size: int) -> dict[str, Any]:
    """Grow the tree of a beam search, and convert it to JSON.

    Returns
    -------
    dict[str, Any]
        Nodes as [step, subword, parent, log-probability, total, fate, score, whether it is best],
        and the translation that was found.
    """
    tree = grow_tree(translator, source, beam_size)
    return {
        "beam": tree.beam_size,
        "alpha": tree.length_penalty,
        "text": tree.text,
        "score": tree.best.score,
        "logProbability": tree.best.log_probability,
        "nodes": [
            [
                each.step,
                piece,
                each.parent,
                round(each.log_probability, 5),
                round(each.total, 5),
                each.fate,
                None if each.score is None else round(each.score, 5),
                each.is_best,
            ]
            for each, piece in zip(tree.nodes, tree.pieces, strict=True)
        ],
    }
