"""Training SentencePiece models with the special symbols and normalisation of this project."""

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sentencepiece

from dragoman.text.normalise import sentencepiece_rules
from dragoman.text.specification import SPACE_MARK

RESERVED = (SPACE_MARK, "\u2585")
"""How SentencePiece writes a space and, while training, an unknown character."""
NUM_FIXED_PIECES = 256 + 3 + 1
"""Bytes; end, unknown, padding; the space mark."""
LOG_NOTHING = 4


def train_sentencepiece(sentences: Iterator[str], **settings: Any) -> bytes:  # noqa: ANN401
    """Train a model with byte fallback; settings are SentencePiece's own.

    Returns
    -------
    bytes
        The model: “</s>” is id 0, “<unk>” 1, “<pad>” 2, there is no “<s>”. Equal sentences give
        equal bytes.
    """
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        rules_path = Path(folder) / "rules.tsv"
        rules_path.write_text(sentencepiece_rules(), encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=sentences,
            model_writer=model,
            byte_fallback=True,
            character_coverage=1.0,
            eos_id=0,
            unk_id=1,
            pad_id=2,
            bos_id=-1,
            normalization_rule_tsv=str(rules_path),
            minloglevel=LOG_NOTHING,
            **settings,
        )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    # A temporary name would make the bytes of equal training differ.
    processor.override_normalizer_spec(normalization_rule_tsv="")
    return processor.serialized_model_proto()
