"""What all tests share: checked shapes, few threads, and small things to test with."""

import os
import random
import sys
import tempfile
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from beartype import BeartypeConf, beartype
from hypothesis import settings
from jaxtyping import config, install_import_hook

# Kernels are tested in Triton's interpreter where there is no GPU.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")
# What is compiled is what is tested, from the first text on.
os.environ.setdefault("DRAGOMAN_COMPILE", "now")
# Nobody's installed models take part.
os.environ["DRAGOMAN_HOME"] = str(Path(tempfile.gettempdir()) / "dragoman-tests-without-models")
# Before the first import of these, so that every shape in every signature is checked. The folders
# of text and of the built-in corpus have no shapes, and their inner loops would become slow.
CHECKED = ("models", "decoding", "training", "evaluation", "insight", "folder")
CHECKED_DATA = (
    "batches",
    "corpus",
    "lines",
    "options",
    "order",
    "packed_mask",
    "packing",
    "prefetch",
    "segmentation",
    "store",
)
# A whole number is good enough where a float is asked for.
checker = types.ModuleType("dragoman_checker")
checker.check = beartype(conf=BeartypeConf(is_pep484_tower=True))
sys.modules["dragoman_checker"] = checker
install_import_hook(
    [
        *(f"dragoman.{name}" for name in CHECKED),
        *(f"dragoman.data.{name}" for name in CHECKED_DATA),
    ],
    "dragoman_checker.check",
)

from dragoman.data.corpus import CorpusFiles  # noqa: E402
from dragoman.decoding.translator import Translator  # noqa: E402
from dragoman.folder import Facts, ModelFolder  # noqa: E402
from dragoman.models.build import build_model  # noqa: E402
from dragoman.models.families import ModelOptions  # noqa: E402
from dragoman.models.options import TransformerOptions  # noqa: E402
from dragoman.models.transformer import Transformer  # noqa: E402
from dragoman.options import to_plain  # noqa: E402
from dragoman.text.subwords import Subwords, train_subwords  # noqa: E402
from dragoman.text.vocabulary import Vocabularies  # noqa: E402
from dragoman.weights import vocabulary_of, write_model  # noqa: E402

# A busy machine is no failure.
settings.register_profile("dragoman", deadline=None)
settings.load_profile("dragoman")

torch.set_num_threads(1)

# Whole runs and whole servers are not checked for shapes, which would take a quarter of their time:
# the tests of their parts are.
WHOLE = ("serving/", "training/test_run.py", "training/test_sharding.py", "test_cli.py")

ENGLISH = ["the", "a", "small", "old", "dog", "house", "tree", "garden", "sees", "likes", "finds"]
FRENCH = ["le", "un", "petit", "vieux", "chien", "maison", "arbre", "jardin", "voit", "achète"]


def make_sentences(words: list[str], count: int, seed: int) -> list[str]:
    """Put words together at random, three to nine in a sentence."""
    generator = random.Random(seed)
    return [
        " ".join(generator.choices(words, k=generator.randint(3, 9))).capitalize() + "."
        for _ in range(count)
    ]


@pytest.fixture(autouse=True)
def _shapes_are_checked_in_parts(request: pytest.FixtureRequest) -> None:
    """Check shapes, but not those of whole programs."""
    place = request.path.relative_to(Path(__file__).parent).as_posix()
    config.update("jaxtyping_disable", place.startswith(WHOLE))


@pytest.fixture(scope="session")
def sentence_pairs() -> list[tuple[str, str]]:
    """Give a few dozen pairs without meaning."""
    return list(zip(make_sentences(ENGLISH, 80, 1), make_sentences(FRENCH, 80, 2), strict=True))


@pytest.fixture(scope="session")
def subwords(sentence_pairs: list[tuple[str, str]]) -> Subwords:
    """Give a joint subword model of the pairs."""
    sentences = [sentence for pair in sentence_pairs for sentence in pair]
    return Subwords.from_bytes(train_subwords(sentences, vocabulary_size=360))


@pytest.fixture(scope="session")
def vocabularies(subwords: Subwords) -> Vocabularies:
    """Give the same subwords for both sides."""
    return Vocabularies(subwords, subwords)


@pytest.fixture(scope="session")
def tiny_options() -> TransformerOptions:
    """Give the shape of a model that costs nothing."""
    return TransformerOptions(
        num_encoder_layers=2, num_decoder_layers=2, model_dim=16, feed_forward_dim=24, num_heads=2
    )


@pytest.fixture(scope="session")
def tiny_model(tiny_options: TransformerOptions, vocabularies: Vocabularies) -> Transformer:
    """Give an untrained model that makes clear choices, and seldom chooses a byte."""
    torch.manual_seed(5)
    model = build_model(tiny_options, vocabulary_of(vocabularies)).eval()
    pieces = vocabularies.target.pieces(range(len(vocabularies.target)))
    is_byte = torch.tensor([piece.startswith("<0x") for piece in pieces])
    with torch.no_grad():
        model.output.words.mul_(torch.where(is_byte, 0.1, 3.0).unsqueeze(1))
    return model


@dataclass(frozen=True)
class TinyFolder:
    """A model folder, and what was written into it."""

    path: Path
    folder: ModelFolder
    model: Transformer


@pytest.fixture(scope="session")
def tiny_folder(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_options: TransformerOptions,
    tiny_model: Transformer,
    vocabularies: Vocabularies,
) -> TinyFolder:
    """Give a model folder on the disk; tests that change it must copy it first."""
    path = tmp_path_factory.mktemp("models") / "tiny"
    config = {
        "model": to_plain(tiny_options),
        "search": {"beam_size": 3, "length_penalty": 0.6, "max_extra_tokens": 6},
    }
    facts = Facts(
        source_language="en",
        target_language="fr",
        longest_source=40,
        training_pairs=80,
        steps=12,
        weights="best",
        scores={"valid": "BLEU 1.5"},
    )
    folder = ModelFolder(
        path=path, config=config, options=tiny_options, vocabularies=vocabularies, facts=facts
    )
    write_model(path, folder, tiny_model)
    return TinyFolder(path, folder, tiny_model)


@pytest.fixture(scope="session")
def corpus_files(
    tmp_path_factory: pytest.TempPathFactory, sentence_pairs: list[tuple[str, str]]
) -> CorpusFiles:
    """Give the pairs as two text files."""
    folder = tmp_path_factory.mktemp("corpus")
    paths = [folder / "corpus.en", folder / "corpus.fr"]
    for path, sentences in zip(paths, zip(*sentence_pairs, strict=True), strict=True):
        path.write_text("\n".join(sentences) + "\n", encoding="utf-8")
    return CorpusFiles(source=(paths[0],), target=(paths[1],))


@pytest.fixture
def translator(tiny_folder: TinyFolder) -> Translator:
    """Load that folder."""
    return Translator.load(tiny_folder.path, "cpu")


@pytest.fixture
def translator_of(
    translator: Translator, vocabularies: Vocabularies
) -> Callable[[ModelOptions], Translator]:
    """Make translators of other shapes with the same vocabularies, untrained."""

    def make(shape: ModelOptions) -> Translator:
        torch.manual_seed(1)
        model = build_model(shape, vocabulary_of(vocabularies)).eval()
        return Translator(replace(translator.folder, options=shape), model, torch.device("cpu"))

    return make
