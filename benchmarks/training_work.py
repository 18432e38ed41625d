"""What the training benchmark is measured on: sizes, sentence sets, and the work they are."""

import lzma
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional

from dragoman.data.batches import FlatSequences, flatten, plan_epoch
from dragoman.models.options import TransformerOptions

END_ID, UNKNOWN_ID, PAD_ID = 0, 1, 2
NUM_SPECIAL = 3
NUM_PAIRS = 200_000
LONGEST = 256
SEED = 1


@dataclass(frozen=True, kw_only=True)
class Size:
    """A model and the batches it is trained with.

    Parameters
    ----------
    name : str
        What it is called.
    options : TransformerOptions
        The model's shape.
    vocabulary_size : int
        Subwords, shared by both sides.
    batch_tokens : int
        Tokens of an update, source plus target, padding not counted.
    num_batches : int
        Updates a round.
    """

    name: str
    options: TransformerOptions
    vocabulary_size: int
    batch_tokens: int
    num_batches: int


SIZES = {
    size.name: size
    for size in (
        Size(
            name="base",
            options=TransformerOptions(),
            vocabulary_size=37_000,
            batch_tokens=50_000,
            num_batches=48,
        ),
        Size(
            name="big",
            options=TransformerOptions(
                model_dim=1024, feed_forward_dim=4096, num_heads=16, dropout=0.3
            ),
            vocabulary_size=37_000,
            batch_tokens=50_000,
            num_batches=16,
        ),
        Size(
            name="small",
            options=TransformerOptions(
                model_dim=256, feed_forward_dim=1024, num_heads=4, dropout=0.3
            ),
            vocabulary_size=8_000,
            batch_tokens=4_000,
            num_batches=8,
        ),
        Size(
            name="test",
            options=TransformerOptions(
                num_encoder_layers=2,
                num_decoder_layers=2,
                model_dim=64,
                feed_forward_dim=128,
                num_heads=4,
            ),
            vocabulary_size=500,
            batch_tokens=600,
            num_batches=3,
        ),
    )
}


class SentenceSet(NamedTuple):
    """The pairs of one update, each sentence ended by the end symbol."""

    source: FlatSequences
    target: FlatSequences

    @property
    def num_tokens(self) -> int:
        """Tokens of both sides."""
        return len(self.source.ids) + len(self.target.ids)


class Corpus(NamedTuple):
    """Lengths of all pairs, and a way to the ids of some."""

    source_lengths: np.ndarray
    target_lengths: np.ndarray
    ids: Callable[[np.ndarray], SentenceSet]


def select_sentences(flat: FlatSequences, rows: np.ndarray) -> FlatSequences:
    """Take some sentences out of many.

    Parameters
    ----------
    flat : FlatSequences
        Many sentences.
    rows : np.ndarray
        The places of those wanted.

    Returns
    -------
    FlatSequences
        The sentences in the order of the places.
    """
    pieces = np.split(flat.ids, np.cumsum(flat.lengths)[:-1])
    return FlatSequences(np.concatenate([pieces[row] for row in rows]), flat.lengths[rows])


def make_sentence_sets(size: Size, data: Path | None) -> list[SentenceSet]:
    """Make the batches that every system gets.

    Parameters
    ----------
    size : Size
        For the tokens of a batch.
    data : Path | None
        A folder with files of tab-separated pairs; None: random sentences.

    Returns
    -------
    list[SentenceSet]
        The first batches of Dragoman's own plan, which puts similar lengths together; that is
        kind to systems that pad.
    """
    corpus = _random_corpus(size) if data is None else _read_corpus(size, data)
    plan = plan_epoch(
        corpus.source_lengths,
        corpus.target_lengths,
        np.random.default_rng(SEED).permutation(len(corpus.source_lengths)),
        batch_tokens=size.batch_tokens,
        seed=SEED,
        epoch=0,
    )
    return [corpus.ids(rows) for rows in islice(plan, size.num_batches)]


def _random_corpus(size: Size) -> Corpus:
    """Draw lengths from a lognormal distribution, and ids from Zipf's."""
    random = np.random.default_rng(SEED)
    source = random.lognormal(np.log(28) - 0.6**2 / 2, 0.6, NUM_PAIRS)
    target = source * random.lognormal(0.0, 0.2, NUM_PAIRS)
    lengths = [np.clip(side.round(), 1, LONGEST).astype(np.int32) for side in (source, target)]
    weights = 1 / (np.arange(size.vocabulary_size - NUM_SPECIAL) + 3.0)
    limits = np.cumsum(weights / weights.sum())

    def draw(side: np.ndarray, rows: np.ndarray) -> FlatSequences:
        chosen = side[rows].astype(np.int64)
        places = np.searchsorted(limits[:-1], random.random(int(chosen.sum())))
        ids = places.astype(np.int64) + NUM_SPECIAL
        ids[np.cumsum(chosen) - 1] = END_ID
        return FlatSequences(ids, chosen)

    return Corpus(*lengths, lambda rows: SentenceSet(*(draw(side, rows) for side in lengths)))


def _read_corpus(size: Size, folder: Path) -> Corpus:
    """Read pairs, cut into pieces that stand for subwords.

    Speed asks for lengths and frequencies alone, so words are cut at every tenth letter, which
    gives about as many pieces as SentencePiece's, needs no training and is the same everywhere.
    """
    paths = sorted(path for path in folder.iterdir() if path.name.endswith((".tsv", ".tsv.xz")))
    if not paths:
        raise SystemExit(f"{folder}: holds no file of pairs (.tsv or .tsv.xz)")
    sides: tuple[list[list[str]], list[list[str]]] = ([], [])
    for source, target in islice(_pairs(paths), NUM_PAIRS):
        for side, text in zip(sides, (source, target), strict=True):
            side.append(re.findall(r"\w{1,10}|[^\w\s]", text)[: LONGEST - 1])
    counts = Counter(piece for side in sides for pieces in side for piece in pieces)
    frequent = counts.most_common(size.vocabulary_size - NUM_SPECIAL)
    known = {piece: place + NUM_SPECIAL for place, (piece, _) in enumerate(frequent)}

    def encode(side: list[list[str]], rows: Iterable[int]) -> FlatSequences:
        return flatten(
            [[*(known.get(piece, UNKNOWN_ID) for piece in side[row]), END_ID] for row in rows]
        )

    source_lengths, target_lengths = (
        np.fromiter((len(pieces) + 1 for pieces in side), np.int32, len(side)) for side in sides
    )
    return Corpus(
        source_lengths,
        target_lengths,
        lambda rows: SentenceSet(*(encode(side, rows) for side in sides)),
    )


def _pairs(paths: list[Path]) -> Iterable[tuple[str, str]]:
    """Yield the pairs of several files."""
    for path in paths:
        opened = lzma.open if path.suffix == ".xz" else open
        with opened(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                source, found, target = line.rstrip("\n").partition("\t")
                if found and source.strip() and target.strip():
                    yield source, target


def count_flops(size: Size, sentences: list[SentenceSet]) -> float:
    r"""Count the floating-point operations of an update's matrix products.

    Parameters
    ----------
    size : Size
        The model.
    sentences : list[SentenceSet]
        Updates.

    Returns
    -------
    float
        Of all the updates together.

    Notes
    -----
    Each weight of a matrix costs 2 operations a token forward and 4 backward. With s source and t
    target tokens of a pair, width d and inner width f: the encoder's 4d² + 2df weights a layer
    meet s tokens, of the decoder's 8d² + 2df those of the keys and values of cross-attention (2d²)
    meet s and the rest t, and the output layer's meet t. Attention's two products cost 4d a query
    and key forward and twice that backward: s² + st + t(t+1)/2 such pairs a layer. Padding,
    recomputation, norms, softmax and the optimiser count nothing.
    """
    options = size.options
    model_dim, inner_dim = options.model_dim, options.feed_forward_dim
    encoder = options.num_encoder_layers * (4 * model_dim**2 + 2 * model_dim * inner_dim)
    decoder = options.num_decoder_layers * (6 * model_dim**2 + 2 * model_dim * inner_dim)
    cross = options.num_decoder_layers * 2 * model_dim**2
    output = size.vocabulary_size * model_dim
    total = 0.0
    for source, target in sentences:
        of_source = source.lengths.astype(np.float64)
        of_target = target.lengths.astype(np.float64)
        total += 6 * (encoder + cross) * of_source.sum() + 6 * (decoder + output) * of_target.sum()
        met = options.num_encoder_layers * (of_source**2).sum()
        causal = of_target * (of_target + 1) / 2
        met += options.num_decoder_layers * (of_source * of_target + causal).sum()
        total += 12 * model_dim * met
    return total


def measure_limits(device: torch.device) -> dict[str, float]:
    """Measure how fast the machine multiplies large matrices.

    Parameters
    ----------
    device : torch.device
        Where.

    Returns
    -------
    dict[str, float]
        Operations a second of the best of several products, by precision. On a GPU 8192³ in
        bfloat16; on a CPU the best of two sizes, of MKL, oneDNN and NumPy's library.

    Notes
    -----
    With “medium” PyTorch gives products of float32 to oneDNN, which rounds to bfloat16 on some
    processors and on others does not: what comes out tells which precision it counts for.
    """
    if device.type == "cuda":
        left, right = (
            torch.randn(8192, 8192, device=device, dtype=torch.bfloat16) for _ in range(2)
        )
        return {"bfloat16": _time_product(lambda: left @ right, 8192, 10, device)}
    best = {"float32": 0.0, "bfloat16": 0.0}
    for side in (1024, 2048):
        left, right = (torch.randn(side, side) for _ in range(2))
        halves = (left.bfloat16(), right.bfloat16())
        medium = "float32" if medium_is_exact() else "bfloat16"
        products: list[tuple[str, str, Callable[[], object]]] = [
            ("float32", "highest", partial(torch.mm, left, right)),
            (medium, "medium", partial(torch.mm, left, right)),
            ("float32", "highest", partial(np.matmul, left.numpy(), right.numpy())),
            ("bfloat16", "highest", partial(torch.mm, *halves)),
            ("bfloat16", "highest", partial(functional.linear, *halves)),
        ]
        for precision, setting, product in products:
            with matmul_precision(setting):
                found = _time_product(product, side, 1, device)
            best[precision] = max(best[precision], found)
    return best


def _time_product(
    product: Callable[[], object], side: int, num_products: int, device: torch.device
) -> float:
    """Return the operations a second of a product of square matrices, the best of six times."""
    best = float("inf")
    for _ in range(6):
        synchronise(device)
        started = time.perf_counter()
        for _ in range(num_products):
            product()
        synchronise(device)
        best = min(best, (time.perf_counter() - started) / num_products)
    return 2 * side**3 / best


def medium_is_exact() -> bool:
    """Say whether PyTorch's “medium” products of float32 are as exact as float32 makes them.

    Returns
    -------
    bool
        False where they are rounded to bfloat16, which has an error of 1/256.
    """
    left, right = torch.randn(1024, 1024), torch.randn(1024, 1024)
    exact = left.double() @ right.double()
    with matmul_precision("medium"):
        error = (left @ right - exact).norm() / exact.norm()
    return error.item() < 1e-5


@contextmanager
def matmul_precision(setting: str) -> Iterator[None]:
    """Set how PyTorch multiplies float32, and set it back.

    Parameters
    ----------
    setting : str
        “highest”, “high” or “medium”.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(setting)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def synchronise(device: torch.device) -> None:
    """Wait until everything asked of a device is done.

    Parameters
    ----------
    device : torch.device
        Which.
    """
    if device.type == "cuda":
        torch.cuda.synchronize(device)
