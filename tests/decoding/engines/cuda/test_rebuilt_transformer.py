"""A rebuilt Transformer says what the plain one says, word by word and in searches."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from dragoman.data.batches import flatten, pad_sequences
from dragoman.decoding.engines.cuda.rebuilt_transformer import RebuiltTransformer
from dragoman.decoding.engines.select import can_rebuild
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search.beam import search
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.options import TransformerOptions
from dragoman.models.recurrent.options import LuongOptions

VOCABULARY = Vocabulary(40, 40, 2, 0)
SMALL = TransformerOptions(
    num_encoder_layers=2, num_decoder_layers=2, model_dim=16, feed_forward_dim=24, num_heads=2
)
KINDS = {
    "paper": {},
    "pre-norm": {"norm_position": "pre"},
    "rms": {"norm": "rms"},
    "batch": {"norm": "batch"},
    "learned": {"positions": "learned"},
    "normalised": {"positions": "normalised"},
    "rotary": {"positions": "rotary"},
    "alibi": {"positions": "alibi"},
    "relative": {"positions": "relative"},
    "none": {"positions": "none"},
    "swiglu": {"feed_forward": "swiglu"},
    "geglu": {"feed_forward": "geglu"},
    "swish": {"feed_forward": "swish"},
    "gelu": {"feed_forward": "gelu"},
    "gelu-sigmoid": {"feed_forward": "gelu-sigmoid"},
    "biases": {"attention_bias": True, "output_bias": True},
    "unscaled": {"scaled": False},
    "widths": {"key_dim": 6, "value_dim": 10},
    "untied": {"tied_embeddings": "none"},
    "no end": {"source_end": False},
}


def make_model(**changes):
    torch.manual_seed(5)
    model = build_model(replace(SMALL, **changes), VOCABULARY).eval()
    for each in model.parameters():  # biases and norms too, so that none is forgotten unseen
        if each.dim() == 1:
            torch.nn.init.normal_(each, mean=float(each.detach().mean()), std=0.3)
    return model


def sentences(*lengths):
    generator = torch.Generator().manual_seed(7)
    rows = [[*torch.randint(3, 40, (n,), generator=generator).tolist(), 0] for n in lengths]
    return pad_sequences(flatten(rows), VOCABULARY.pad_id)


@pytest.mark.parametrize("kind", KINDS)
def test_every_step_says_what_the_plain_model_says(kind):
    model = make_model(**KINDS[kind])
    engine = RebuiltTransformer(model)
    source = sentences(3, 9, 5)
    with torch.inference_mode():
        states = [each.start(each.encode(source), 12) for each in (model, engine)]
        tokens = torch.full((3, 1), VOCABULARY.pad_id)
        generator = torch.Generator().manual_seed(3)
        for length in range(6):
            both = [
                each.step(tokens, state)
                for each, state in zip((model, engine), states, strict=True)
            ]
            scores = [
                each.output(hidden) for each, (hidden, _) in zip((model, engine), both, strict=True)
            ]
            torch.testing.assert_close(scores[1], scores[0], rtol=1e-4, atol=1e-4)
            states = [state for _, state in both]
            if length == 2:  # a sentence leaves, and hypotheses multiply
                states = [each.keep(torch.tensor([0, 2])) for each in states]
            beams = torch.randint(0, states[0].num_beams, (2 if length > 1 else 3, 4))
            states = [each.reorder(beams) for each in states]
            tokens = torch.randint(3, 40, beams.shape, generator=generator)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_searches_find_the_same(beam_size):
    model = make_model()
    source = sentences(3, 9, 5, 9, 1)
    options = SearchOptions(beam_size=beam_size, max_extra_tokens=5)
    found, expected = (
        search(each, source, options, VOCABULARY, num_best=beam_size)
        for each in (RebuiltTransformer(model), model)
    )
    for ours, theirs in zip(found, expected, strict=True):
        assert [each.tokens for each in ours] == [each.tokens for each in theirs]
        scores = [[each.score for each in some] for some in (ours, theirs)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_is_near(kind):
    model = make_model(**KINDS[kind])
    source = sentences(3, 9, 5)
    words = torch.randint(3, 40, (4, 3, 1), generator=torch.Generator().manual_seed(3))
    rounded = deepcopy(model).half()
    with torch.inference_mode():
        engines = [RebuiltTransformer(each) for each in (model, rounded)]
        states = [each.start(each.encode(source), 12) for each in engines]
        for tokens in words:
            both = [each.step(tokens, state) for each, state in zip(engines, states, strict=True)]
            states = [state for _, state in both]
        exact, near = (
            each.output(hidden).float() for each, (hidden, _) in zip(engines, both, strict=True)
        )
    assert near.isfinite().sum() == exact.isfinite().sum()
    torch.testing.assert_close(near.softmax(2), exact.softmax(2), rtol=0.1, atol=0.01)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"norm": "batch-per-step"}, False),
        ({}, True),
        ({"encoder_attention": "restricted"}, False),
        ({"decoder_attention": "feedback"}, False),
        ({"num_experts": 4}, False),
    ],
)
def test_only_full_attention_can_be_rebuilt(changes, expected):
    assert can_rebuild(replace(SMALL, **changes)) is expected


def test_other_families_cannot_be_rebuilt():
    assert not can_rebuild(LuongOptions())
