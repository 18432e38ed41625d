"""Marian NMT, the rival written in C++, trained on the CPU as a process of its own.

It comes with the package “pymarian”, which works without a GPU. Give it an environment of its own
and put that on the path:

    python -m venv RIVALS && RIVALS/bin/pip install pymarian==1.12.42
    PATH=$PATH:RIVALS/bin python benchmarks/…

(marian.py is Hugging Face's model of that name.)
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from dragoman.data.batches import FlatSequences
from dragoman.models.options import TransformerOptions
from training_work import END_ID, LONGEST, SEED, UNKNOWN_ID, SentenceSet, Size

UPDATE = re.compile(r"Up\. (\d+) .* after ([\d,]+) : Time ([\d.]+)s")


class Update(NamedTuple):
    """One line of the log: updates and target tokens so far, seconds since the line before."""

    step: int
    num_tokens: int
    seconds: float


def find_marian() -> str:
    """Find the program.

    Returns
    -------
    str
        Its path.
    """
    found = shutil.which("pymarian")
    if found is None:
        raise FileNotFoundError("“pymarian” is not on the path; see benchmarks/marian_nmt.py")
    return found


def shape_words(shape: TransformerOptions) -> list[str]:
    """Write a model's shape as flags.

    Parameters
    ----------
    shape : TransformerOptions
        The shape.

    Returns
    -------
    list[str]
        Words for “pymarian train”: all word vectors tied, dropout where the paper has it.
    """
    return [
        "--type", "transformer", "--tied-embeddings-all",
        "--enc-depth", str(shape.num_encoder_layers), "--dec-depth", str(shape.num_decoder_layers),
        "--dim-emb", str(shape.model_dim), "--transformer-dim-ffn", str(shape.feed_forward_dim),
        "--transformer-heads", str(shape.num_heads), "--transformer-ffn-activation", "relu",
        "--transformer-dropout", str(shape.dropout), "--label-smoothing", "0.1",
    ]  # fmt: skip


def read_updates(log: str) -> list[Update]:
    """Read what was logged of each update.

    Parameters
    ----------
    log : str
        What Marian said.

    Returns
    -------
    list[Update]
        In order.
    """
    return [
        Update(int(step), int(tokens.replace(",", "")), float(seconds))
        for step, tokens, seconds in UPDATE.findall(log)
    ]


def measure_pass(updates: Sequence[Update], pass_tokens: int) -> float:
    """Find how long a pass takes, once a first one is over.

    Parameters
    ----------
    updates : Sequence[Update]
        Of at least two passes.
    pass_tokens : int
        Target tokens of a pass.

    Returns
    -------
    float
        Seconds.

    Notes
    -----
    Threads that do not wait for one another finish passes in no order, so tokens are counted, not
    passes.
    """
    first = next(place for place, each in enumerate(updates) if each.num_tokens >= pass_tokens)
    num_tokens = updates[-1].num_tokens - updates[first].num_tokens
    return sum(each.seconds for each in updates[first + 1 :]) * pass_tokens / num_tokens


class Marian:
    """Marian NMT in the benchmark of a training step.

    Parameters
    ----------
    size : Size
        The model, and the tokens of an update.
    sentences : list[SentenceSet]
        The sentences; Marian makes batches of similar length of them itself.
    device : torch.device
        The CPU.
    num_threads : int | None
        Of Marian; None: PyTorch's.
    waits : bool
        Whether the threads share each update, or make updates of their own at any time.
    num_parts : int
        In which the gradient of an update is computed.
    """

    num_places = None
    precision = "float32"

    def __init__(
        self,
        size: Size,
        sentences: list[SentenceSet],
        device: torch.device,
        *,
        num_threads: int | None = None,
        waits: bool = True,
        num_parts: int = 1,
    ) -> None:
        if device.type != "cpu":
            raise ValueError("Marian NMT is measured on the CPU")
        self._scratch = tempfile.TemporaryDirectory()  # removed with this object
        self._folder = Path(self._scratch.name)
        self._pass_tokens = sum(len(each.target.ids) for each in sentences)
        num_source = sum(len(each.source.ids) for each in sentences)
        for side in ("source", "target"):
            lines = (line for each in sentences for line in _spell(getattr(each, side)))
            (self._folder / side).write_text("".join(lines), encoding="utf-8")
        names = {"</s>": END_ID, "<unk>": UNKNOWN_ID}
        names |= {f"w{word}": word for word in range(2, size.vocabulary_size)}
        text = "".join(f"{name}: {word}\n" for name, word in names.items())
        (self._folder / "words.yml").write_text(text, encoding="utf-8")
        threads = str(num_threads or torch.get_num_threads())
        self._command = [
            find_marian(), "train", *shape_words(size.options),
            "--train-sets", "source", "target", "--vocabs", "words.yml", "words.yml",
            "--after", "2e", "--disp-freq", "1u",
            "--max-length", str(LONGEST), "--clip-norm", "0", "--learn-rate", "1e-4",
            "--mini-batch-words", str(num_source // len(sentences) // num_parts),
            "--optimizer-delay", str(num_parts), "--maxi-batch", "1000",
            "--maxi-batch-sort", "src", "--cpu-threads", threads,
            "--seed", str(SEED), "--model", "model.npz", "--overwrite", "--no-restore-corpus",
            *(["--sync-sgd"] if waits else []),
        ]  # fmt: skip

    def time_round(self) -> float:
        """Return the seconds of a pass over the sentences; a first one is not counted."""
        for path in self._folder.glob("model.npz*"):
            path.unlink()
        done = subprocess.run(
            self._command, cwd=self._folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"pymarian: {done.stderr[-500:]}")
        return measure_pass(read_updates(done.stderr), self._pass_tokens)


def _spell(side: FlatSequences) -> list[str]:
    """Write sentences as words that stand for ids, without their ends."""
    pieces = np.split(side.ids, np.cumsum(side.lengths)[:-1])
    return [" ".join(f"w{word}" for word in piece[:-1]) + "\n" for piece in pieces]


SETTINGS = {
    "threads share an update": Marian,
    "threads share an update, in two parts": partial(Marian, num_parts=2),
    "threads by themselves": partial(Marian, waits=False),
    "one thread": partial(Marian, num_threads=1),
}
