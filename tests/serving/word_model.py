"""A small model that translates in earnest: word by word, after some seconds of training."""

import random
from pathlib import Path

import torch

from dragoman.data.batches import flatten, make_batch
from dragoman.folder import Facts, ModelFolder
from dragoman.models.build import build_model
from dragoman.models.likelihood import token_log_probabilities
from dragoman.models.options import TransformerOptions
from dragoman.options import to_plain
from dragoman.text.vocabulary import Vocabularies
from dragoman.weights import vocabulary_of, write_model

DICTIONARY = {
    "the": "le", "a": "un", "small": "petit", "old": "vieux", "dog": "chien", "house": "maison",
    "tree": "arbre", "garden": "jardin", "sees": "voit", "likes": "achète",
}  # fmt: skip
SHAPE = TransformerOptions(
    num_encoder_layers=1, num_decoder_layers=2, model_dim=32, feed_forward_dim=64, num_heads=4,
    dropout=0.0, norm_position="pre",
)  # fmt: skip
STEPS, ROWS = 240, 24


def make_pair(generator: random.Random) -> tuple[str, str]:
    """Put three to seven words together, and their translations."""
    words = generator.choices(list(DICTIONARY), k=generator.randint(3, 7))
    return " ".join(words), " ".join(DICTIONARY[word] for word in words)


def write_word_model(
    path: Path, vocabularies: Vocabularies, source: str = "en", target: str = "fr", seed: int = 1
) -> Path:
    """Train a model for some seconds, from English to French or back, and write its folder."""
    torch.manual_seed(seed)
    generator = random.Random(seed)
    model = build_model(SHAPE, vocabulary_of(vocabularies))
    optimiser = torch.optim.Adam(model.parameters(), lr=6e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 6e-3, STEPS)
    eos_id = vocabularies.eos_id
    for _ in range(STEPS):
        pairs = [make_pair(generator)[:: 1 if source == "en" else -1] for _ in range(ROWS)]
        sides = [
            flatten([(*ids, eos_id) for ids in vocabulary.encode([pair[side] for pair in pairs])])
            for side, vocabulary in enumerate(vocabularies)
        ]
        batch = make_batch(*sides, vocabularies.pad_id)
        loss = -token_log_probabilities(model, batch).sum() / batch.num_target_tokens
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    config = {"model": to_plain(SHAPE), "search": {"beam_size": 2, "max_extra_tokens": 8}}
    facts = Facts(
        source_language=source, target_language=target, longest_source=40, training_pairs=1,
        steps=STEPS, weights="best", scores={},
    )  # fmt: skip
    folder = ModelFolder(
        path=path, config=config, options=SHAPE, vocabularies=vocabularies, facts=facts
    )
    write_model(path, folder, model.eval())
    return path
