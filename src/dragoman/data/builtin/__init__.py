"""The built-in corpus: French–English and English–Spanish sentence pairs from a small grammar."""

from dragoman.data.builtin.corpus_folder import write_corpus
from dragoman.data.builtin.generator import (
    LANGUAGE_PAIRS,
    SPLITS,
    AlignedPair,
    generate_pairs,
)

__all__ = ["LANGUAGE_PAIRS", "SPLITS", "AlignedPair", "generate_pairs", "write_corpus"]
