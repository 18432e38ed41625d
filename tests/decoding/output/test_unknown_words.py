"""Unknown words become what they point at: on models that point where they are told."""

import pytest
import torch
from torch import nn

from dragoman.data.batches import flatten, make_batch
from dragoman.decoding.output import unknown_words
from dragoman.decoding.output.unknown_words import Draft, replace_unknown, source_attention
from dragoman.models.build import build_model
from dragoman.models.convolutional.options import ByteNetOptions, ConvS2SOptions
from dragoman.models.interface import Output, Vocabulary
from dragoman.models.layers.embedding import OutputLayer
from dragoman.models.options import TransformerOptions
from dragoman.models.recurrent.options import RNNsearchOptions, Seq2seqOptions
from dragoman.text.dictionary import Dictionary
from dragoman.text.vocabulary import Vocabularies
from dragoman.text.word_vocabulary import UNKNOWN, learn_words, split_words

CPU = torch.device("cpu")
SOURCE = "Mr. Zzyzx (from Qom) visits l’Afrique in 1987, now."
TARGET = "the man (visits) Africa - it is, is."


class Attention(nn.Module):
    """Shows whoever looks the weights it is given."""

    def __init__(self):
        super().__init__()
        self.observer = None

    def forward(self, weights):
        if self.observer is not None:
            self.observer(weights)


class Pointing(nn.Module):
    """A model that attends as it is told, in one call or a word at a time."""

    def __init__(self, layers, *, word_by_word=False, name="cross_attention"):
        super().__init__()
        self.layers = layers
        self.word_by_word = word_by_word
        self.decoder = nn.ModuleList(nn.ModuleDict({name: Attention()}) for _ in layers)
        self.name = name
        self.output = OutputLayer(nn.Parameter(torch.zeros(4, 2)), pad_id=2)
        self.batches = []

    def forward(self, batch):
        self.batches.append(batch)
        length, keys = batch.target.ids.size(1), batch.source.ids.size(1)
        rows = len(batch.source.ids)
        for layer, weights in zip(self.decoder, self.layers, strict=True):
            known = weights[:, :length, :keys]
            room = (0, keys - known.size(2), 0, length - known.size(1))
            shown = nn.functional.pad(known, room).expand(rows, -1, -1, -1)
            for part in shown.split(1, dim=2) if self.word_by_word else [shown]:
                layer[self.name](part)
        return Output(torch.zeros(rows, length, 2), None)

    def encode(self, source):
        raise NotImplementedError

    start = step = encode


def pointers(*places, heads=1, keys=17):
    """Give one layer in which word i points at place i of these."""
    weights = torch.zeros(heads, len(places), keys)
    weights[:, range(len(places)), places] = 1.0
    return weights


def vocabularies(dictionary=None):
    source = learn_words(["visits in now the"], vocabulary_size=100)
    target = learn_words([TARGET], vocabulary_size=100)
    return Vocabularies(source, target, Dictionary(dictionary) if dictionary else None)


def draft(text, source=SOURCE):
    """Encode a translation; every word that is not known will be unknown."""
    return Draft(source, tuple(vocabularies().target.encode([text])[0]))


def write(text, places, dictionary=None, **options):
    model = Pointing([pointers(*places)], **options)
    return replace_unknown(model, vocabularies(dictionary), [draft(text)], CPU)[0]


@pytest.mark.parametrize("word_by_word", [False, True])
def test_unknown_words_are_copied_as_they_are_written(word_by_word):
    found = write("the X is X", (0, 2, 7, 12), word_by_word=word_by_word)
    assert found == "the Zzyzx is 1987"


def test_the_dictionary_comes_first():
    found = write("X visits", (10, 7), {"Afrique": " Africa"})
    assert write("X visits", (10, 7)) == "Afrique visits"
    assert found == "Africa visits"


def test_a_text_without_unknown_words_is_left_alone_and_costs_nothing():
    model = Pointing([pointers(0)])
    known = draft("the man (visits) Africa")
    assert replace_unknown(model, vocabularies(), [known], CPU) == ["the man (visits) Africa"]
    assert replace_unknown(model, vocabularies(), [], CPU) == []
    assert not model.batches


@pytest.mark.parametrize(
    ("text", "places", "dictionary", "expected"),
    [
        # The source's space, or none, except between words.
        ("the X", (0, 4), None, "the from"),
        ("the X", (0, 10), None, "the Afrique"),
        ("the (X", (0, 3, 4), None, "the (from"),
        ("the (X", (0, 3, 5), None, "the ( Qom"),
        ("the X", (0, 13), None, "the,"),
        ("the X X", (0, 4, 10), None, "the from Afrique"),
        ("X is", (4, 7), None, "from is"),
        # What the dictionary says of the space.
        ("the X", (0, 2), {"Zzyzx": ","}, "the,"),
        ("the X", (0, 2), {"Zzyzx": "city"}, "the city"),
        ("the (X", (0, 3, 2), {"Zzyzx": "city"}, "the (city"),
    ],
)
def test_spaces(text, places, dictionary, expected):
    assert write(text, places, dictionary) == expected


def test_the_end_symbol_is_no_word():
    weights = pointers(0, 3)
    assert len(split_words(SOURCE)) == 16
    weights[0, 1, 16] = 9.0
    weights[0, 1, 2] = 2.0
    model = Pointing([weights])
    assert replace_unknown(model, vocabularies(), [draft("the X")], CPU) == ["the Zzyzx"]


def test_heads_and_layers_count_alike():
    one, other = torch.zeros(2, 2, 17), torch.zeros(2, 2, 17)
    one[:, 1, 2] = torch.tensor([0.9, 0.0])
    other[:, 1, 2] = torch.tensor([0.1, 0.1])
    for layer in (one, other):
        layer[:, 1, 5] = 0.3
    text = [draft("the X")]
    assert replace_unknown(Pointing([one]), vocabularies(), text, CPU) == ["the Zzyzx"]
    assert replace_unknown(Pointing([one, other]), vocabularies(), text, CPU) == ["the Qom"]


@pytest.mark.parametrize(
    "model",
    [
        Pointing([]),
        Pointing([pointers(0, 2)], name="self_attention"),
    ],
)
def test_without_attention_the_unknown_word_stays_visible(model):
    assert replace_unknown(model, vocabularies(), [draft("the X")], CPU) == [f"the {UNKNOWN}"]
    assert write("the X", (0, 2)) == "the Zzyzx"


def test_batches_change_nothing(monkeypatch):
    drafts = [
        draft("the X is X"),
        draft("the man"),
        draft("X", source="only this"),
        draft("it is X X X now", source="a b c d e f g"),
        draft("the X", source="some Words"),
    ]
    layers = [pointers(0, 1, 5, 3, 4, 6)]
    alone = [replace_unknown(Pointing(layers), vocabularies(), [each], CPU)[0] for each in drafts]
    assert alone[:3] == ["the. is (", "the man", "only"]
    for places in (1, 20, 10_000):
        monkeypatch.setattr(unknown_words, "BATCH_PLACES", places)
        model = Pointing(layers)
        assert replace_unknown(model, vocabularies(), drafts, CPU) == alone
        assert len(model.batches) == {1: 4, 20: 3, 10_000: 1}[places]


# Real models

WITH_ATTENTION = {
    "transformer": TransformerOptions(
        num_encoder_layers=1, num_decoder_layers=2, model_dim=8, feed_forward_dim=8, num_heads=2
    ),
    "rnnsearch": RNNsearchOptions(model_dim=8, embedding_dim=8, maxout_dim=4),
    "convs2s": ConvS2SOptions(
        encoder_blocks="1x8k3", decoder_blocks="2x8k3", model_dim=8, output_dim=8, max_positions=32
    ),
}
WITHOUT = {
    "seq2seq": Seq2seqOptions(num_layers=1, model_dim=8),
    "bytenet": ByteNetOptions(num_encoder_sets=1, num_decoder_sets=1, max_dilation=2, model_dim=12),
}


def build(options):
    torch.manual_seed(4)
    model = build_model(options, Vocabulary(12, 12, 2, 0)).eval()
    for parameter in model.parameters():  # some families begin with even attention
        nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize("options", WITH_ATTENTION.values(), ids=WITH_ATTENTION)
def test_attention_of_families(options):
    """It is shared out among the words of the source, and neighbours in a batch see nothing."""
    model = build(options)
    pairs = [([3, 4, 5, 6, 0], [7, 0]), ([6, 7, 0], [8, 9, 10, 11, 0])]
    together = source_attention(model, make_batch(*map(flatten, zip(*pairs, strict=True)), 2))
    assert together.shape == (2, 5, 5)
    for row, (source, target) in enumerate(pairs):
        alone = source_attention(model, make_batch(flatten([source]), flatten([target]), 2))[0]
        torch.testing.assert_close(alone.sum(1), torch.ones(len(target)))
        assert alone.std() > 0
        part = together[row, : len(target), : len(source)]
        torch.testing.assert_close(part, alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", WITHOUT.values(), ids=WITHOUT)
def test_families_without_attention(options):
    batch = make_batch(flatten([[3, 4, 0]]), flatten([[5, 0]]), 2)
    assert source_attention(build(options), batch) is None
