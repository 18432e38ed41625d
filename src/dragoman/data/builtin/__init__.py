"""The built-in corpus: sentence pairs from a small grammar, and the tasks copy and reversal."""

from dragoman.data.builtin.corpus_folder import write_corpus
from dragoman.data.builtin.generator import (
    LANGUAGE_PAIRS,
    SPLITS,
    AlignedPair,
    generate_pairs,
)
from dragoman.data.builtin.tasks import TASKS, generate_task

__all__ = [
    "LANGUAGE_PAIRS",
    "SPLITS",
    "TASKS",
    "AlignedPair",
    "generate_pairs",
    "generate_task",
    "write_corpus",
]
