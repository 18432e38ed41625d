"""Map our Transformer to CTranslate2's names of layers, for both ways."""

from typing import Literal

from dragoman.exchange.huggingface_layout import OUTPUT, SOURCE, TARGET
from dragoman.models.options import TransformerOptions

ACTIVATIONS = {
    "relu": 0, "swish": 2, "gelu": 3, "gelu-sigmoid": 4, "swiglu": 2, "geglu": 3,
}  # fmt: skip
"""Our feed-forward layers by CTranslate2's numbers; the last two are gated."""
GATED = ("swiglu", "geglu")
WORDS = {
    SOURCE: "encoder/embeddings_0",
    TARGET: "decoder/embeddings",
    OUTPUT: "decoder/projection",
}


def stored_words(name: str, tied: Literal["all", "target", "none"]) -> str:
    """Say under which name a matrix of words is stored, if it is tied to others."""
    if tied == "all":
        return SOURCE
    return TARGET if tied == "target" and name == OUTPUT else name


def linear_layers(options: TransformerOptions) -> dict[str, tuple[str, ...]]:
    """Pair CTranslate2's linear layers with ours, of which it stacks those with the same input."""
    is_gated = options.feed_forward in GATED
    layers: dict[str, tuple[str, ...]] = {}
    for stack, theirs, ours in _layers(options):
        for block, other in _attentions(stack).items():
            query, key, value, output = (
                f"{ours}.{block}.{part}" for part in ("query", "key", "value", "output")
            )
            parts: tuple[tuple[str, ...], ...] = ((query, key, value), (output,))
            if block == "cross_attention":
                parts = ((query,), (key, value), (output,))
            for number, each in enumerate(parts):
                layers[f"{theirs}/{other}/linear_{number}"] = each
        inner, outer = f"{ours}.feed_forward.inner", f"{ours}.feed_forward.outer"
        layers[f"{theirs}/ffn/linear_0"] = (f"{ours}.feed_forward.gate" if is_gated else inner,)
        if is_gated:
            layers[f"{theirs}/ffn/linear_0_noact"] = (inner,)
        layers[f"{theirs}/ffn/linear_1"] = (outer,)
    return layers


def norms(options: TransformerOptions) -> dict[str, str]:
    """Pair CTranslate2's norms with ours."""
    found = {}
    for stack, theirs, ours in _layers(options):
        for block, other in _attentions(stack).items():
            found[f"{theirs}/{other}/layer_norm"] = f"{ours}.{block}_norm.norm"
        found[f"{theirs}/ffn/layer_norm"] = f"{ours}.feed_forward_norm.norm"
    if options.norm_position == "pre":
        found |= {f"{stack}/layer_norm": f"{stack}_norm" for stack in ("encoder", "decoder")}
    return found


def attention_layers(options: TransformerOptions) -> list[str]:
    """List CTranslate2's attention layers."""
    return [
        f"{theirs}/{other}"
        for stack, theirs, _ in _layers(options)
        for other in _attentions(stack).values()
    ]


def _layers(options: TransformerOptions) -> list[tuple[str, str, str]]:
    """List the layers: whose they are, what CTranslate2 calls them, and what we do."""
    counts = {"encoder": options.num_encoder_layers, "decoder": options.num_decoder_layers}
    return [
        (stack, f"{stack}/layer_{index}", f"{stack}.{index}")
        for stack, count in counts.items()
        for index in range(count)
    ]


def _attentions(stack: str) -> dict[str, str]:
    blocks = {"self_attention": "self_attention"}
    return blocks | ({"cross_attention": "attention"} if stack == "decoder" else {})
