"""Record what a Transformer computes of a sentence and its translation, part by part."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.data.batches import Batch, flatten, make_batch
from dragoman.decoding.translator import Translator
from dragoman.errors import DataError, OptionError
from dragoman.insight.attention import START
from dragoman.insight.machine.attention_trace import (
    AttentionTrace,
    recorded_calls,
    trace_attention,
)
from dragoman.insight.word_groups import END
from dragoman.models.layers.feed_forward import FeedForward, activate
from dragoman.models.layers.normalisation import LayerNorm, RMSNorm
from dragoman.models.layers.residual import AddAndNorm
from dragoman.models.options import TransformerOptions
from dragoman.models.transformer import Transformer

Numbers = dict[str, np.ndarray]

LINEAR_MAPS = ("query", "key", "value", "output", "gate", "inner", "outer", "logit")


class Part(NamedTuple):
    """The numbers of one sub-layer, or of what stands before or behind the layers.

    Attributes
    ----------
    name : str
        “source”, “encoder.1.self”, “encoder.1.feed”, “encoder.norm”, “target”, “decoder.1.self”,
        “decoder.1.cross”, “decoder.1.feed”, “decoder.norm” or “output”.
    kind : str
        “embedding”, “attention”, “feed”, “norm” or “output”.
    numbers : dict[str, np.ndarray]
        Matrices by name; of attention [heads, rows, columns] where a head has its own.
    """

    name: str
    kind: str
    numbers: Numbers


class Terms(NamedTuple):
    """One entry of a product of a vector and a matrix, term by term.

    Attributes
    ----------
    left, right : np.ndarray
        The vector, and the column of the matrix that it is multiplied by.
    bias : float
        What is added; 0 if nothing is.
    """

    left: np.ndarray
    right: np.ndarray
    bias: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """All that a Transformer computes of a pair.

    Parameters
    ----------
    model : Transformer
        The model.
    options : TransformerOptions
        Its shape.
    source, read, said : tuple[str, ...]
        The source's subwords, those that the decoder reads, and those that it is made to say.
    source_ids, read_ids, said_ids : tuple[int, ...]
        Their places in the vocabularies.
    parts : dict[str, Part]
        By name, in the order in which they are computed.
    traces : dict[str, AttentionTrace]
        Of the parts that attend.
    """

    model: Transformer
    options: TransformerOptions
    source: tuple[str, ...]
    read: tuple[str, ...]
    said: tuple[str, ...]
    source_ids: tuple[int, ...]
    read_ids: tuple[int, ...]
    said_ids: tuple[int, ...]
    parts: dict[str, Part]
    traces: dict[str, AttentionTrace]

    def find_terms(self, part: str, name: str, row: int, column: int, head: int = 0) -> Terms:
        """Find the terms of which an entry of a linear map is the sum.

        Parameters
        ----------
        part : str
            A part's name.
        name : str
            One of `LINEAR_MAPS`.
        row, column : int
            Which entry, counted from 0; of logits the column is the subword's number.
        head : int
            Which head's query, key or value, counted from 0.

        Returns
        -------
        Terms
            With a rotation of queries and keys by their positions, of what is rotated.
        """
        found = self._find_map(part, name)
        if found is None:
            raise OptionError(f"there is no linear map “{name}” in “{part}”")
        vectors, weight, bias = found
        num_heads = self.options.num_heads if name in ("query", "key", "value") else 1
        width = len(weight) // num_heads
        head = head if num_heads > 1 else 0
        if not (0 <= row < len(vectors) and 0 <= column < width and 0 <= head < num_heads):
            raise OptionError(
                f"there is no entry ({row}, {column}) of “{name}” in “{part}”, head {head + 1}"
            )
        place = head * width + column
        added = 0.0 if bias is None else bias[place].item()
        return Terms(_array(vectors[row]), _array(weight[place]), added)

    def _find_map(self, part: str, name: str) -> tuple[Tensor, Tensor, Tensor | None] | None:
        """Find what a linear map reads, its matrix and its bias."""
        if part not in self.parts or name not in LINEAR_MAPS:
            return None
        numbers = self.parts[part].numbers
        if part == "output":
            layer = self.model.output
            hidden = torch.from_numpy(numbers["hidden"])
            return (hidden, layer.words, layer.bias) if name == "logit" else None
        trace = self.traces.get(part)
        if trace is not None:
            reads = {"query": trace.query_tokens, "key": trace.key_tokens,
                     "value": trace.key_tokens, "output": trace.joined}  # fmt: skip
            module: Any = trace.module
        else:
            side, layer_number, sublayer = [*part.split("."), "", ""][:3]
            if sublayer != "feed":
                return None
            module = getattr(self.model, side)[int(layer_number) - 1].feed_forward
            entered = torch.from_numpy(numbers.get("normed", numbers["x"]))
            reads = {"inner": entered, "outer": torch.from_numpy(numbers["active"])}
            if module.gate is not None:
                reads["gate"] = entered
        if name not in reads:
            return None
        linear: nn.Linear = getattr(module, name)
        return reads[name], linear.weight, linear.bias


def find_obstacle(options: object) -> str | None:
    """Say why a model cannot be followed step by step, and what can be seen instead.

    Returns
    -------
    str | None
        A sentence for people; None: it can be followed.
    """
    if not isinstance(options, TransformerOptions):
        family = getattr(options, "family", "of another family")
        what = f"This model is no Transformer ({family})"
    elif not options.is_usual:
        kinds = {options.encoder_attention, options.decoder_attention} - {"full"}
        named = [f"{kind} attention" for kind in sorted(kinds)]
        named += [] if options.num_experts is None else ["a mixture of experts"]
        named += [] if options.residual else ["no residual connections"]
        named += [] if options.decoder_mask else ["no mask in its decoder"]
        what = f"This Transformer has {' and '.join(named)}, unlike the paper’s"
    elif options.norm not in ("layer", "rms"):
        what = "This Transformer normalises over batches of words, not within one word"
    else:
        return None
    return (
        f"{what}, whose steps are not shown here. “Attention” and “Why” show what it looks at; "
        "the beam tree and the samples work with every model."
    )


@torch.no_grad()
def record_pair(translator: Translator, source: str, translation: str) -> Recording:
    """Run a Transformer on a sentence and its translation, and record every sub-layer.

    Parameters
    ----------
    translator : Translator
        The model, used by nobody else meanwhile; the plain model is run, not the engine.
    source : str
        The sentence.
    translation : str
        What the decoder is made to say. As it looks back only, the numbers of a place are those
        that it computes when it has read no more than that.

    Returns
    -------
    Recording
        In 32 bits; of the model itself, or computed from its own weights as it does.
    """
    obstacle = find_obstacle(translator.folder.options)
    if obstacle:
        raise OptionError(obstacle)
    model, options = translator.model, translator.folder.options
    assert isinstance(model, Transformer)
    assert isinstance(options, TransformerOptions)
    source_ids = translator.encode(source)
    if len(source_ids) == 1:
        raise DataError("the sentence is empty; give at least one word")
    vocabularies = translator.folder.vocabularies
    said_ids = (*vocabularies.target.encode([translation])[0], vocabularies.eos_id)
    sides = (flatten([source_ids]), flatten([said_ids]))
    batch = make_batch(*sides, vocabularies.pad_id).to(translator.device)
    with recorded_calls(_watched(model)) as calls:
        several = trace_attention(model, batch)
    traces = {_name_attention(each): each for each in several}
    said = (*vocabularies.target.pieces(said_ids[:-1]), END)
    parts = {each.name: each for each in _list_parts(model, batch, calls, traces)}
    return Recording(
        model=model,
        options=options,
        source=(*vocabularies.source.pieces(source_ids[:-1]), END),
        read=(START, *said[:-1]),
        said=said,
        source_ids=source_ids,
        read_ids=(vocabularies.pad_id, *said_ids[:-1]),
        said_ids=said_ids,
        parts=parts,
        traces=traces,
    )


def _watched(model: Transformer) -> Iterator[nn.Module]:
    """List the modules whose calls are recorded besides attention."""
    for each in model.modules():
        if isinstance(each, AddAndNorm | FeedForward | LayerNorm | RMSNorm):
            yield each
    yield model.source_embedding
    yield model.target_embedding


def _name_attention(trace: AttentionTrace) -> str:
    side = "encoder" if trace.kind == "encoder" else "decoder"
    return f"{side}.{trace.layer}.{'cross' if trace.kind == 'cross' else 'self'}"


def _list_parts(
    model: Transformer,
    batch: Batch,
    calls: dict[nn.Module, Any],
    traces: dict[str, AttentionTrace],
) -> Iterator[Part]:
    """Go through the model from bottom to top, the encoder first."""
    source = batch.source if model.reads_end else batch.source.without_end()
    words = {"source": source.read_ids, "target": batch.target.shifted(model.pad_id)}
    lengths = {"source": source.lengths, "target": batch.source.lengths}
    for side, stack in (("source", "encoder"), ("target", "decoder")):
        embedding = getattr(model, f"{side}_embedding")
        numbers = _embed(embedding, words[side], lengths[side])
        yield Part(side, "embedding", _arrays(numbers))
        last = numbers["x"]
        for index, layer in enumerate(getattr(model, stack), 1):
            kinds = ("self", "feed") if stack == "encoder" else ("self", "cross", "feed")
            for kind in kinds:
                name = f"{stack}.{index}.{kind}"
                if kind == "feed":
                    around, numbers = layer.feed_forward_norm, _feed(layer.feed_forward, calls)
                else:
                    around = getattr(layer, f"{kind}_attention_norm")
                    numbers = _attend(traces[name])
                last = calls[around][1][0]
                numbers |= _add(around, calls)
                yield Part(name, "feed" if kind == "feed" else "attention", _arrays(numbers))
        norm = getattr(model, f"{stack}_norm")
        if norm is not None:
            numbers = {"x": last, "result": norm(last)} | _measure(norm, last)
            last = numbers["result"]
            yield Part(f"{stack}.norm", "norm", _arrays(numbers))
    yield Part("output", "output", _arrays({"hidden": last, "logits": model.output(last)}))


def _embed(embedding: Any, tokens: Tensor, lengths: Tensor) -> dict[str, Tensor]:  # noqa: ANN401
    """Split the embedding into words and positions."""
    numbers = {"words": embedding.words[tokens[0]] * embedding.scale}
    if embedding.positions is not None:
        positions = embedding.positions(0, tokens.size(1), lengths)
        numbers["positions"] = positions[0] if positions.dim() == 3 else positions
    return numbers | {"x": embedding(tokens, lengths=lengths)[0]}


def _attend(trace: AttentionTrace) -> dict[str, Tensor]:
    """List the numbers of one attention."""
    products = trace.products * trace.scale
    numbers = {
        "query": trace.query, "key": trace.key, "value": trace.value,
        "products": trace.products, "scores": trace.scores, "weights": trace.weights,
        "contexts": trace.joined.unflatten(1, (len(trace.query), -1)).transpose(0, 1),
        "output": trace.output,
    }  # fmt: skip
    if trace.module.score_bias is not None:
        numbers["bias"] = trace.module.score_bias(trace.query.unsqueeze(0), trace.key.size(1))[0]
        numbers["bias"] = numbers["bias"].expand_as(products)
    if trace.kind == "cross":
        numbers["memory"] = trace.key_tokens
    return numbers


def _feed(layer: FeedForward, calls: dict[nn.Module, Any]) -> dict[str, Tensor]:
    """Compute the activations between both linear maps from the recorded input of the layer."""
    (given, *_), said = calls[layer]
    inner = layer.inner(given)
    gate = None if layer.gate is None else layer.gate(given)
    active = activate(inner.relu() if layer.kind == "relu" else inner, gate, layer.kind)
    numbers = {"inner": inner[0], "active": active[0], "output": said[0]}
    return numbers if gate is None else numbers | {"gate": gate[0]}


def _add(around: AddAndNorm, calls: dict[nn.Module, Any]) -> dict[str, Tensor]:
    """List the numbers of a residual connection and its norm."""
    (entered, *_), left = calls[around]
    (given, *_), said = calls[around.norm]
    numbers = {"x": entered[0]} | _measure(around.norm, given[0])
    if around.position == "pre":
        return numbers | {"normed": said[0], "result": left[0]}
    return numbers | {"sum": given[0], "result": left[0]}


def _measure(norm: nn.Module, vectors: Tensor) -> dict[str, Tensor]:
    """Compute the mean that a norm takes away and what it divides by, and list its weights."""
    assert isinstance(norm, LayerNorm | RMSNorm)
    if isinstance(norm, RMSNorm):
        mean = torch.zeros_like(vectors[:, 0])
        return {"mean": mean, "gain": norm.weight,
                "deviation": (vectors.square().mean(-1) + norm.epsilon).sqrt()}  # fmt: skip
    variance = vectors.var(-1, correction=0)
    return {"mean": vectors.mean(-1), "deviation": (variance + norm.epsilon).sqrt(),
            "gain": norm.weight, "shift": norm.bias}  # fmt: skip


def _arrays(numbers: dict[str, Tensor]) -> Numbers:
    return {name: _array(each) for name, each in numbers.items()}


def _array(numbers: Tensor) -> np.ndarray:
    return numbers.detach().float().cpu().contiguous().numpy()
