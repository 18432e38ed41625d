"""What is recorded of a Transformer, against the plain equations and observed attention."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.models.variants import FAMILIES

from dragoman.data.batches import flatten, make_batch
from dragoman.errors import DataError, OptionError
from dragoman.insight.machine.recording import find_obstacle, record_pair
from dragoman.models.attention.observer import observed_attention
from dragoman.models.options import TransformerOptions
from dragoman.models.positions.sinusoids import sinusoids
from dragoman.models.recurrent.options import RNNsearchOptions

SOURCE, TARGET = "The old dog sees.", "Le vieux chien."
FOLLOWED = (
    *("transformer", "pre-norm", "rms", "unscaled", "no-source-end", "swiglu", "geglu", "opus"),
    *("marian", "dims", "positions-learned", "positions-none", "positions-rotary"),
    *("positions-alibi", "positions-relative", "positions-normalised", "positions-index"),
)
CLOSE = {"rtol": 1e-4, "atol": 2e-5}


@pytest.fixture(params=FOLLOWED)
def recorded(request, translator_of):
    translator = translator_of(FAMILIES[request.param])
    with torch.no_grad():  # gains, shifts and biases that do nothing would hide mistakes
        for each in translator.model.parameters():
            if each.dim() == 1:
                each.add_(torch.randn(each.shape) / 3)
    return translator, record_pair(translator, SOURCE, TARGET)


def normalise(numbers, options, vectors):
    """Layer norm or RMS norm, as their definitions say."""
    vectors = vectors.astype(np.float64)
    epsilon, gain = options.norm_epsilon, numbers["gain"]
    if options.norm == "rms":
        return vectors / np.sqrt((vectors**2).mean(-1, keepdims=True) + epsilon) * gain
    deviation = np.sqrt(vectors.var(-1, keepdims=True) + epsilon)
    return (vectors - vectors.mean(-1, keepdims=True)) / deviation * gain + numbers["shift"]


def soften(scores):
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def softplus_gates(kind, inner, gate):
    functional = torch.nn.functional
    inner = torch.from_numpy(inner).double()
    gate = None if gate is None else torch.from_numpy(gate).double()
    found = {
        "relu": lambda: inner.clamp(min=0),
        "swish": lambda: functional.silu(inner),
        "gelu-sigmoid": lambda: inner * torch.sigmoid(1.702 * inner),
        "swiglu": lambda: functional.silu(gate) * inner,
        "geglu": lambda: functional.gelu(gate) * inner,
    }[kind]()
    return found.numpy()


def rebuild(recording, part, name, head=None):
    """Multiply what a linear map reads by its matrix, entry by entry."""
    shape = recording.parts[part].numbers[name if name != "outer" else "output"].shape
    made = np.empty(shape if head is None else shape[1:])
    for row in range(made.shape[0]):
        for column in range(made.shape[1]):
            terms = recording.find_terms(part, name, row, column, head or 0)
            made[row, column] = terms.left.astype(np.float64) @ terms.right + terms.bias
    return made


def list_attention(recording):
    return [each for each in recording.parts.values() if each.kind == "attention"]


def test_weights_are_those_of_observed_attention(recorded):
    translator, recording = recorded
    pad_id = translator.folder.vocabularies.pad_id
    sides = (flatten([recording.source_ids]), flatten([recording.said_ids]))
    with torch.inference_mode(), observed_attention(translator.model) as maps:
        translator.model.forward(make_batch(*sides, pad_id))
    assert len(maps) == len(list_attention(recording))
    for name, (weights,) in maps.items():
        stack, layer, kind = name.split(".")
        part = f"{stack}.{int(layer) + 1}.{kind.removesuffix('_attention')}"
        np.testing.assert_allclose(
            recording.parts[part].numbers["weights"], weights[0].numpy(), atol=1e-6
        )


def test_attention_follows_its_equations(recorded):
    _, recording = recorded
    options = recording.options
    for part in list_attention(recording):
        numbers = {name: each.astype(np.float64) for name, each in part.numbers.items()}
        products = numbers["query"] @ numbers["key"].transpose(0, 2, 1)
        np.testing.assert_allclose(numbers["products"], products, **CLOSE)
        root = np.sqrt(options.head_key_dim) if options.scaled else 1.0
        scores = products / root + numbers.get("bias", 0.0)
        may = numbers["scores"] > -np.inf
        np.testing.assert_allclose(numbers["scores"][may], scores[may], **CLOSE)
        if part.name.startswith("decoder") and part.name.endswith("self"):
            assert np.array_equal(may[0], np.tri(may.shape[1], dtype=bool))
        elif options.source_end:
            assert may.all()
        else:
            assert may[..., :-1].all()
            assert not may[..., -1].any()
        weights = soften(np.where(may, scores, -np.inf))
        np.testing.assert_allclose(numbers["weights"], weights, **CLOSE)
        np.testing.assert_allclose(numbers["contexts"], weights @ numbers["value"], **CLOSE)


def test_linear_maps_are_the_sums_that_are_told(recorded):
    _, recording = recorded
    is_turned = recording.options.positions == "rotary"
    for part in list_attention(recording):
        for name in ("query", "key", "value"):
            if is_turned and name != "value" and part.name.endswith("self"):
                continue
            for head in range(recording.options.num_heads):
                expected = rebuild(recording, part.name, name, head)
                np.testing.assert_allclose(part.numbers[name][head], expected, **CLOSE)
        expected = rebuild(recording, part.name, "output")
        np.testing.assert_allclose(part.numbers["output"], expected, **CLOSE)
    for part in recording.parts.values():
        if part.kind == "feed":
            for name in ("inner", "gate"):
                if name in part.numbers:
                    expected = rebuild(recording, part.name, name)
                    np.testing.assert_allclose(part.numbers[name], expected, **CLOSE)
            expected = rebuild(recording, part.name, "outer")
            np.testing.assert_allclose(part.numbers["output"], expected, **CLOSE)
            active = softplus_gates(
                recording.options.feed_forward, part.numbers["inner"], part.numbers.get("gate")
            )
            np.testing.assert_allclose(part.numbers["active"], active, **CLOSE)


def test_residual_stream_goes_from_part_to_part(recorded):
    _, recording = recorded
    options = recording.options
    last = {}
    for part in recording.parts.values():
        numbers = part.numbers
        stack = {"source": "encoder", "target": "decoder", "output": "decoder"}.get(
            part.name, part.name.split(".")[0]
        )
        if part.kind == "embedding":
            total = numbers["words"] + numbers.get("positions", 0.0)
            np.testing.assert_allclose(numbers["x"], total, **CLOSE)
            last[stack] = numbers["x"]
            continue
        if part.kind == "output":
            assert np.array_equal(numbers["hidden"], last["decoder"])
            continue
        assert np.array_equal(numbers["x"], last[stack])
        last[stack] = numbers["result"]
        if part.kind == "norm":
            expected = normalise(numbers, options, numbers["x"])
        elif options.norm_position == "pre":
            expected = numbers["x"] + numbers["output"]
            normed = normalise(numbers, options, numbers["x"])
            np.testing.assert_allclose(numbers["normed"], normed, **CLOSE)
        else:
            total = numbers["x"] + numbers["output"]
            np.testing.assert_allclose(numbers["sum"], total, **CLOSE)
            expected = normalise(numbers, options, total)
        np.testing.assert_allclose(numbers["result"], expected, **CLOSE)
        if "deviation" in numbers:
            entered = numbers.get("sum", numbers["x"])
            shown = (entered - numbers["mean"][:, None]) / numbers["deviation"][:, None]
            shown = shown * numbers["gain"] + numbers.get("shift", 0.0)
            after = numbers.get("normed", numbers["result"])
            np.testing.assert_allclose(shown, after, **CLOSE)


def test_output_is_that_of_the_model(recorded):
    translator, recording = recorded
    pad_id = translator.folder.vocabularies.pad_id
    sides = (flatten([recording.source_ids]), flatten([recording.said_ids]))
    with torch.inference_mode():
        logits = translator.model.output(
            translator.model.forward(make_batch(*sides, pad_id)).hidden
        )
    output = recording.parts["output"].numbers
    np.testing.assert_allclose(output["logits"], logits[0].numpy(), **CLOSE)
    for row, column in ((0, 5), (2, 40)):
        terms = recording.find_terms("output", "logit", row, column)
        total = terms.left @ terms.right + terms.bias
        assert output["logits"][row, column] == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize(("kind", "is_inclusive"), [("sinusoidal", False), ("marian", True)])
def test_positions_are_the_sinusoids(translator_of, kind, is_inclusive):
    options = replace(FAMILIES["transformer"], positions=kind)
    recording = record_pair(translator_of(options), SOURCE, TARGET)
    for side in ("source", "target"):
        shown = recording.parts[side].numbers["positions"]
        expected = sinusoids(0, len(shown), options.model_dim, is_inclusive=is_inclusive)
        np.testing.assert_allclose(shown, expected, atol=1e-6)


def test_beginnings_have_the_numbers_of_the_whole(translator):
    """What the decoder computes at a place does not depend on what comes later."""
    whole = record_pair(translator, SOURCE, TARGET)
    begun = record_pair(translator, SOURCE, "Le vieux")
    count = len(begun.read)
    assert whole.read[:count] == begun.read
    for name, part in begun.parts.items():
        if part.kind == "feed":
            np.testing.assert_allclose(
                whole.parts[name].numbers["result"][:count], part.numbers["result"][:count], **CLOSE
            )


def test_subwords_are_those_that_are_read_and_said(translator):
    recording = record_pair(translator, SOURCE, TARGET)
    vocabulary = translator.folder.vocabularies.target
    assert recording.source[-1] == recording.said[-1] == "⟨end⟩"
    assert recording.read == ("⟨start⟩", *recording.said[:-1])
    assert recording.read_ids == (vocabulary.pad_id, *recording.said_ids[:-1])
    assert vocabulary.decode([recording.said_ids[:-1]]) == [TARGET]


def test_nothing_is_left_behind_in_the_model(translator):
    before = translator.translate(SOURCE).text
    record_pair(translator, SOURCE, TARGET)
    modules = list(translator.model.modules())
    assert not any(module._forward_hooks for module in modules)
    assert all(getattr(module, "observer", None) is None for module in modules)
    assert translator.translate(SOURCE).text == before


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (RNNsearchOptions(), "This model is no Transformer (rnnsearch)"),
        (TransformerOptions(decoder_attention="ssru"), "has ssru attention, unlike"),
        (TransformerOptions(num_experts=4), "has a mixture of experts, unlike"),
        (TransformerOptions(norm="batch"), "normalises over batches of words"),
        (TransformerOptions(residual=False), "has no residual connections, unlike"),
        (TransformerOptions(decoder_mask=False), "has no mask in its decoder, unlike"),
    ],
)
def test_others_say_what_can_be_seen_instead(translator_of, options, what):
    told = find_obstacle(options)
    assert what in told
    assert "“Attention” and “Why” show what it looks at" in told


def test_model_of_another_family_is_refused(translator_of):
    translator = translator_of(FAMILIES["rnnsearch"])
    with pytest.raises(OptionError, match="no Transformer"):
        record_pair(translator, SOURCE, TARGET)


def test_empty_sentence_is_refused(translator):
    with pytest.raises(DataError, match="the sentence is empty; give at least one word"):
        record_pair(translator, " ", TARGET)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("encoder.9.self", "query", 0, 0), "no linear map “query” in “encoder.9.self”"),
        (("source", "query", 0, 0), "no linear map “query” in “source”"),
        (("encoder.1.feed", "query", 0, 0), "no linear map “query” in “encoder.1.feed”"),
        (("output", "inner", 0, 0), "no linear map “inner” in “output”"),
        (("encoder.1.self", "weights", 0, 0), "no linear map “weights”"),
        (("encoder.1.self", "query", 0, 10_000), r"no entry \(0, 10000\) of “query”"),
        (("encoder.1.self", "query", 99, 0), r"no entry \(99, 0\)"),
        (
            ("encoder.1.self", "query", 0, 0, 99),
            r"no entry \(0, 0\) of “query” in “encoder.1.self”, head 100",
        ),
    ],
)
def test_terms_that_are_not_there_are_refused(translator, asked, message):
    with pytest.raises(OptionError, match=message):
        record_pair(translator, SOURCE, TARGET).find_terms(*asked)
