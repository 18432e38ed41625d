"""The systems whose training is timed: Dragoman's own, and its rivals.

Each is a function that builds a model of the same size with random weights and says how to make one
full update of the weights with a given batch: forward, backward, optimiser, gradients cleared.
Batches are laid out, and copied to the device, before anything is timed. Marian NMT is a process
of its own: see marian_nmt.py.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import marian_nmt
from dragoman.data.batches import Batch, FlatSequences, make_batch, split_rows
from dragoman.data.packing import Capacity, PackedBatch, choose_capacity, pack, plan_packed
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.positions.positional_encoding import sinusoidal_positions
from dragoman.training.objectives.loss import make_training_step
from dragoman.training.optimisers.optimiser import BETAS, EPSILON, build_optimiser
from dragoman.training.options import TrainingOptions
from dragoman.training.updates.cpu_data_parallel import count_threads
from dragoman.training.updates.gradients import Gradients, can_pack, precision_context
from dragoman.training.updates.precision import choose_precision
from marian import build_marian
from training_work import (
    END_ID,
    LONGEST,
    PAD_ID,
    SEED,
    SentenceSet,
    Size,
    matmul_precision,
    medium_is_exact,
    select_sentences,
    synchronise,
)

LEARNING_RATE = 1e-4
SMOOTHING = 0.1


class Timed(Protocol):
    """What takes part: it times its own rounds.

    Parameters
    ----------
    num_places : int | None
        Of all batches, padding counted; None if only the system itself knows.
    precision : str
        Of its products.
    """

    @property
    def num_places(self) -> int | None: ...  # noqa: D102

    @property
    def precision(self) -> str: ...  # noqa: D102

    def time_round(self) -> float:
        """Return the seconds that one update with each batch takes."""
        ...


class System(NamedTuple):
    """A model in training in this process: one full update a call, for all batches in turn."""

    update: Callable[[int], None]
    num_updates: int
    num_places: int
    precision: str
    device: torch.device

    def time_round(self) -> float:
        """Return the seconds that one update with each batch takes."""
        synchronise(self.device)
        started = time.perf_counter()
        for place in range(self.num_updates):
            self.update(place)
        synchronise(self.device)
        return time.perf_counter() - started


def ours(
    size: Size, sentences: list[SentenceSet], device: torch.device, *, precision: str = "auto"
) -> System:
    """Train with the objects that “dragoman train” uses.

    Parameters
    ----------
    size : Size
        The model.
    sentences : list[SentenceSet]
        The batches.
    device : torch.device
        Where.
    precision : str
        As “dragoman train --precision” takes it.

    Returns
    -------
    System
        Ready to be updated.

    Notes
    -----
    Where “dragoman train” packs, the same sentences are packed as it packs them: in a random order,
    into batches of one capacity. Copying a batch to the device is part of the update here, as
    there it is.
    """
    torch.manual_seed(SEED)
    vocabulary = Vocabulary(size.vocabulary_size, size.vocabulary_size, PAD_ID, END_ID)
    options = TrainingOptions(
        batch_tokens=size.batch_tokens, label_smoothing=SMOOTHING, precision=precision
    )
    options = replace(options, precision=choose_precision(options, size.options.model_dim, device))
    model = build_model(size.options, vocabulary).to(device).train()
    step = make_training_step(model, options, vocabulary, size.options.max_length)
    num_threads = count_threads(size.options, options, device)
    gradients = Gradients(step, options, device, num_threads=num_threads)
    optimiser = build_optimiser(model, options)
    for group in optimiser.param_groups:
        group["lr"] = LEARNING_RATE
    packs = can_pack(size.options, options, device)
    if packs and device.type == "cuda":
        updates = [[batch] for batch in _pack(size, sentences)]
    else:
        updates = [_share_out(each, num_threads, packs=packs) for each in sentences]

    def update(place: int) -> None:
        batches = updates[place]
        gradients(batches, sum(batch.num_target_tokens for batch in batches))
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    with precision_context(options, device):
        is_half = torch.is_autocast_enabled(device.type)
    num_places = sum(batch.num_places for batches in updates for batch in batches)
    return System(update, len(updates), num_places, "bfloat16" if is_half else "float32", device)


def list_float32() -> list[str]:
    """List Dragoman's ways to multiply float32 that are exact on this processor.

    Returns
    -------
    list[str]
        Values of “--precision”.
    """
    return ["float32", *(["float32-onednn"] if medium_is_exact() else [])]


def _share_out(
    sentences: SentenceSet, num_threads: int, *, packs: bool
) -> list[Batch | PackedBatch]:
    """Make a batch for each thread of a CPU, as “dragoman train” does."""
    tokens = sentences.source.lengths + sentences.target.lengths
    parts = [
        [select_sentences(side, rows) for side in sentences]
        for rows in split_rows(np.arange(len(tokens)), tokens, num_threads)
        if len(rows)
    ]
    if not packs:
        return [make_batch(*part, PAD_ID) for part in parts]
    return [pack(*part, PAD_ID, Capacity(0, 0, LONGEST)) for part in parts]


def _pack(size: Size, sentences: list[SentenceSet]) -> list[PackedBatch]:
    """Pack the sentences of all batches anew, into as many, with as little room as that takes."""
    joined = SentenceSet(
        *(
            FlatSequences(*map(np.concatenate, zip(*side, strict=True)))
            for side in zip(*sentences, strict=True)
        )
    )
    lengths = (joined.source.lengths, joined.target.lengths)
    order = np.random.default_rng(SEED).permutation(len(lengths[0]))
    for share in range(100, 200):
        capacity = choose_capacity(*lengths, size.batch_tokens * share // 100)
        plan = list(plan_packed(*lengths, order, capacity))
        if len(plan) <= len(sentences):
            break
    chosen = ([select_sentences(side, rows) for side in joined] for rows in plan)
    return [pack(source, target, PAD_ID, capacity).pinned() for source, target in chosen]


def _rival(
    size: Size,
    sentences: list[SentenceSet],
    device: torch.device,
    *,
    build: Callable[[Size], nn.Module],
    precision: str = "bfloat16",
    products: str = "highest",
    compiled: bool = False,
) -> System:
    """Train a model that maps a padded batch to logits by the usual recipe."""
    is_rounded = device.type == "cpu" and products == "medium" and not medium_is_exact()
    if precision == "float32" and is_rounded:
        raise ValueError("“medium” rounds to bfloat16 on this processor")
    torch.manual_seed(SEED)
    model = build(size).to(device).train()
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=LEARNING_RATE, betas=BETAS, eps=EPSILON, weight_decay=0.0, fused=True
    )
    batches = [make_batch(*each, PAD_ID).to(device) for each in sentences]
    inputs = [(batch.source.ids, batch.source.is_token, *_targets(batch)) for batch in batches]

    def compute_loss(source: Tensor, is_token: Tensor, before: Tensor, labels: Tensor) -> Tensor:
        logits = model(source, is_token, before)
        return functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), label_smoothing=SMOOTHING
        )

    if compiled:
        compute_loss = torch.compile(compute_loss, dynamic=True)
    is_half = precision == "bfloat16"
    shown = precision.removesuffix(" products")

    def update(place: int) -> None:
        with matmul_precision(products):
            with torch.autocast(device.type, torch.bfloat16, enabled=is_half):
                loss = compute_loss(*inputs[place])
            loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    num_places = sum(batch.num_places for batch in batches)
    return System(update, len(batches), num_places, shown, device)


def _targets(batch: Batch) -> tuple[Tensor, Tensor]:
    """Return what the decoder reads, and what it shall say, with padding that is not counted."""
    target = batch.target
    return target.shifted(PAD_ID), target.ids.masked_fill(~target.is_token, -100)


class _Marian(nn.Module):
    """Hugging Face's Marian, called as every rival is called."""

    def __init__(self, size: Size, attention: str = "sdpa") -> None:
        super().__init__()
        self.model = build_marian(
            size.options,
            vocabulary_size=size.vocabulary_size,
            pad_id=PAD_ID,
            end_id=END_ID,
            max_positions=512,
            attention=attention,
        )

    def forward(self, source: Tensor, is_token: Tensor, before: Tensor) -> Tensor:
        """Score every target place."""
        return self.model(
            input_ids=source, attention_mask=is_token, decoder_input_ids=before, use_cache=False
        ).logits


class _PyTorch(nn.Module):
    """nn.Transformer with tied word vectors, sinusoids and the paper's dropout, no more of it."""

    positions: Tensor

    def __init__(self, size: Size) -> None:
        super().__init__()
        shape = size.options
        self.words = nn.Parameter(torch.randn(size.vocabulary_size, shape.model_dim))
        nn.init.normal_(self.words, std=shape.model_dim**-0.5)
        self.register_buffer("positions", sinusoidal_positions(0, LONGEST, shape.model_dim))
        self.dropout = nn.Dropout(shape.dropout)
        self.transformer = nn.Transformer(
            shape.model_dim,
            shape.num_heads,
            shape.num_encoder_layers,
            shape.num_decoder_layers,
            shape.feed_forward_dim,
            shape.dropout,
            batch_first=True,
        )
        for module in self.transformer.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            if isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                module.dropout.p = 0.0

    def forward(self, source: Tensor, is_token: Tensor, before: Tensor) -> Tensor:
        """Score every target place."""
        causal = nn.Transformer.generate_square_subsequent_mask(
            before.size(1), device=before.device
        )
        hidden = self.transformer(
            self._embed(source),
            self._embed(before),
            tgt_mask=causal,
            src_key_padding_mask=~is_token,
            memory_key_padding_mask=~is_token,
            tgt_is_causal=True,
        )
        return functional.linear(hidden, self.words)

    def _embed(self, ids: Tensor) -> Tensor:
        words = functional.embedding(ids, self.words) * math.sqrt(self.words.size(1))
        return self.dropout(words + self.positions[: ids.size(1)])


Build = Callable[[Size, list[SentenceSet], torch.device], Timed]
_spelt_out = partial(_Marian, attention="eager")

# By device: the rivals, each with the settings that it may be used in. The fastest of them takes
# part. “medium” has PyTorch multiply float32 by oneDNN in place of MKL, which on some processors
# is more than twice as fast and, where nothing multiplies bfloat16 in tiles, as exact. Where it is
# not, its products count as bfloat16.
RIVALS: dict[str, dict[str, dict[str, Build]]] = {
    "cuda": {
        "huggingface_eager": {"": partial(_rival, build=_Marian)},
        "huggingface_compiled": {"": partial(_rival, build=_Marian, compiled=True)},
        "pytorch_eager": {"": partial(_rival, build=_PyTorch)},
        "pytorch_compiled": {"": partial(_rival, build=_PyTorch, compiled=True)},
    },
    "cpu": {
        "huggingface_float32": {
            "sdpa": partial(_rival, build=_Marian, precision="float32"),
            "eager attention": partial(_rival, build=_spelt_out, precision="float32"),
            "eager attention, compiled": partial(
                _rival, build=_spelt_out, precision="float32", compiled=True
            ),
            "sdpa, medium": partial(_rival, build=_Marian, precision="float32", products="medium"),
            "eager attention, medium": partial(
                _rival, build=_spelt_out, precision="float32", products="medium"
            ),
            "sdpa, medium, compiled": partial(
                _rival, build=_Marian, precision="float32", products="medium", compiled=True
            ),
        },
        "huggingface_bfloat16": {
            "sdpa": partial(_rival, build=_Marian),
            "sdpa, medium": partial(_rival, build=_Marian, products="medium"),
            "eager attention, medium": partial(_rival, build=_spelt_out, products="medium"),
            "eager attention, medium, compiled": partial(
                _rival, build=_spelt_out, products="medium", compiled=True
            ),
            "eager attention, no autocast, medium": partial(
                _rival, build=_spelt_out, precision="bfloat16 products", products="medium"
            ),
        },
        "pytorch_float32": {
            "": partial(_rival, build=_PyTorch, precision="float32"),
            "medium": partial(_rival, build=_PyTorch, precision="float32", products="medium"),
        },
        "pytorch_bfloat16": {
            "": partial(_rival, build=_PyTorch),
            "medium": partial(_rival, build=_PyTorch, products="medium"),
        },
        "marian": marian_nmt.SETTINGS,
    },
}
