"""A small model that has learnt something, so that its choices are clear and its sentences end."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from dragoman.data.batches import Batch, flatten, make_batch, pad_sequences
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search.beam import search
from dragoman.folder import Facts, ModelFolder, read_folder
from dragoman.models.build import build_model
from dragoman.models.likelihood import token_log_probabilities
from dragoman.models.options import TransformerOptions
from dragoman.options import to_plain
from dragoman.text.subwords import Subwords, train_subwords
from dragoman.text.vocabulary import Vocabularies
from dragoman.training.objectives.loss import TrainingStep
from dragoman.weights import load_model, vocabulary_of, write_model

SHAPE = TransformerOptions(
    num_encoder_layers=2,
    num_decoder_layers=2,
    model_dim=32,
    feed_forward_dim=48,
    num_heads=4,
    dropout=0.0,
)
TEXTS = [
    "The old dog sees a small house.",
    "A tree likes the garden.",
    "Zoë’s 27 cats — “finds”.",
    "A house.",
    "The small dog finds the old tree in the garden likes a house the dog sees.",
]


@pytest.fixture(autouse=True)
def threads_as_before():
    """Undo what CTranslate2 does to all of a process: it sets the number of threads."""
    yield
    torch.set_num_threads(1)  # as all tests begin


def batch_of(folder: ModelFolder, texts, others) -> Batch:
    sides = [
        flatten([(*line, subwords.eos_id) for line in subwords.encode(lines)])
        for subwords, lines in zip(folder.vocabularies, (texts, others), strict=True)
    ]
    return make_batch(*sides, folder.vocabularies.pad_id)


def make_folder(path: Path, options, vocabularies) -> ModelFolder:
    facts = Facts(source_language="en", target_language="fr", longest_source=60)
    config = {"model": to_plain(options), "search": {"beam_size": 2, "max_extra_tokens": 20}}
    return ModelFolder(
        path=path, config=config, options=options, vocabularies=vocabularies, facts=facts
    )


def teach(model, batch: Batch, steps: int) -> list[float]:
    step = TrainingStep(model, 0.1)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = step(batch) / batch.num_target_tokens
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def shake(model) -> None:
    """Move everything that begins as zero or one, and let the model make clear choices."""
    with torch.no_grad():
        for name, each in model.named_parameters():
            if each.dim() == 1:
                each.add_(torch.randn_like(each) * 0.2)
            elif name.endswith(".words"):
                each.mul_(3.0)


@pytest.fixture(scope="session")
def make_model(tmp_path_factory):
    """Give a function that writes the folder of a random model of some shape."""

    def make(vocabularies: Vocabularies, **changes) -> Path:
        options = replace(SHAPE, **changes)
        path = tmp_path_factory.mktemp("random") / "model"
        torch.manual_seed(3)
        model = build_model(options, vocabulary_of(vocabularies))
        shake(model)
        write_model(path, make_folder(path, options, vocabularies), model)
        return path

    return make


@pytest.fixture(scope="session")
def trained(tmp_path_factory, vocabularies, sentence_pairs) -> Path:
    """Give the folder of a model as the paper has it, whose sentences end."""
    path = tmp_path_factory.mktemp("trained") / "model"
    folder = make_folder(path, SHAPE, vocabularies)
    torch.manual_seed(3)
    model = build_model(SHAPE, vocabulary_of(vocabularies))
    teach(model, batch_of(folder, *zip(*sentence_pairs[:32], strict=True)), 60)
    write_model(path, folder, model)
    return path


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """Give sentences to translate."""
    return TEXTS


@pytest.fixture(scope="session")
def others(sentence_pairs) -> list[str]:
    """Give as many translations to score."""
    return [target for _, target in sentence_pairs[: len(TEXTS)]]


@pytest.fixture(scope="session")
def side_vocabularies(sentence_pairs) -> Vocabularies:
    """Give a vocabulary for each side, of different sizes."""
    sides = zip(*sentence_pairs, strict=True)
    return Vocabularies(
        *(
            Subwords.from_bytes(train_subwords(side, vocabulary_size=size))
            for side, size in zip(sides, (340, 350), strict=True)
        )
    )


@dataclass
class Own:
    """What Dragoman itself makes of a model folder."""

    path: Path

    def __post_init__(self):
        self.folder = read_folder(self.path)
        self.model = load_model(self.folder)

    def greedy(self, texts=TEXTS, max_length=None) -> list[list[int]]:
        """The ids of greedy translations, without the end."""
        return [list(each.tokens) for each in self._search(texts, max_length)]

    def scores(self, texts=TEXTS) -> list[float]:
        """Their log-probabilities, the end included."""
        return [each.log_probability for each in self._search(texts, None)]

    def pieces(self, texts=TEXTS, max_length=None) -> list[list[str]]:
        """Their pieces."""
        return [
            self.folder.vocabularies.target.pieces(ids) for ids in self.greedy(texts, max_length)
        ]

    def texts(self, texts=TEXTS) -> list[str]:
        """Them as text."""
        return self.folder.vocabularies.target.decode(self.greedy(texts))

    def likelihoods(self, texts, others) -> torch.Tensor:
        """The log-probability of each given translation."""
        with torch.inference_mode():
            return token_log_probabilities(self.model, batch_of(self.folder, texts, others)).sum(1)

    def _search(self, texts, max_length):
        subwords = self.folder.vocabularies.source
        ids = [(*line, subwords.eos_id) for line in subwords.encode(texts)]
        found = search(
            self.model,
            pad_sequences(flatten(ids), subwords.pad_id),
            SearchOptions(beam_size=1, max_extra_tokens=60),
            vocabulary_of(self.folder.vocabularies),
            num_best=1,
            prefixes=None,
            banned_ids=(self.folder.vocabularies.target.unk_id,),
            max_length=max_length,
        )
        return [best for best, *_ in found]


@pytest.fixture(scope="session")
def own():
    """Give what reads a model folder."""
    return Own
