"""Tables and plots of the worked example of attention."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from dragoman.insight.machine.attention_trace import AttentionTrace, Kind
from dragoman.paper.report.result import Cell, Column, HeatMap, Plot, Table

TITLES: dict[Kind, str] = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder masked self-attention",
    "cross": "Attention of the decoder to the source",
}
_MOST_HEADS_DRAWN = 8


@dataclass(frozen=True, kw_only=True)
class ShownModule:
    """The parts of one attention module that are shown.

    Parameters
    ----------
    worked : AttentionTrace
        Its numbers.
    queries, keys : tuple[str, ...]
        The tokens that look, and those looked at.
    head : int
        The head worked out in full, counted from 1.
    token : int
        The token worked out in full, counted from 1.
    entries : int
        How many entries of each vector are shown.
    """

    worked: AttentionTrace
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    head: int
    token: int
    entries: int

    @property
    def place(self) -> str:
        """The name of the module's place in the model."""
        title = TITLES[self.worked.kind]
        return f"{title}, layer {self.worked.layer}, head {self.head} of {len(self.worked.query)}"


def number_tokens(tokens: Sequence[str]) -> list[str]:
    """Write tokens with their numbers, as the notes do."""
    return [f"<{place}> {token}" for place, token in enumerate(tokens, start=1)]


def tabulate_vectors(shown: ShownModule) -> Table:
    """Tabulate the input, query, key and value of each token."""
    worked, head = shown.worked, shown.head - 1
    vectors = (worked.query_tokens, worked.query[head], worked.key[head], worked.value[head])
    rows: list[tuple[Cell, ...]] = []
    for place, name in enumerate(number_tokens(shown.queries)):
        rows.append((name, *(entry for each in vectors for entry in _take(shown, each[place]))))
    widths = " × ".join(str(each) for each in reversed(worked.module.query.weight.shape))
    turned = " Queries and keys are turned by their positions." if worked.module.rotation else ""
    return Table(
        name=f"{shown.worked.kind}-vectors",
        title=f"{shown.place}: q = x W^Q, k = x W^K, v = x W^V",
        columns=(
            Column("token"),
            *(column for letter in "xqkv" for column in _name_entries(shown, letter)),
        ),
        rows=tuple(rows),
        notes=(
            f"First {shown.entries} of {worked.query_tokens.size(1)} entries of x and of "
            f"{worked.query.size(2)} of q and k, {worked.value.size(2)} of v. W^Q of all heads is "
            f"{widths}.{turned}",
            "X14: one of the notes (001:205) projects q, k and v once more in each head; two "
            "linear maps one after another are one.",
        ),
    )


def tabulate_scores(shown: ShownModule) -> Table:
    """Tabulate the scaled scores."""
    worked = shown.worked
    scores = worked.scores[shown.head - 1].tolist()
    cells = [["−∞" if math.isinf(each) else each for each in row] for row in scores]
    added = " What positions add is in them." if worked.module.score_bias else ""
    masked = " −∞: what a token may not see, as it comes later." if worked.kind == "decoder" else ""
    divided = f"divided by √{worked.query.size(2)}" if worked.module.scaled else "not divided"
    return _tabulate_matrix(
        shown, "scores", f"{shown.place}: scores Q Kᵀ/√d_k", cells, ".3f",
        f"Dot products {divided}.{added}{masked}",
    )  # fmt: skip


def tabulate_weights(shown: ShownModule) -> Table:
    """Tabulate the weights."""
    weights = shown.worked.weights[shown.head - 1].tolist()
    return _tabulate_matrix(
        shown, "weights", f"{shown.place}: weights softmax(Q Kᵀ/√d_k)", weights, ".4f",
        "As the module itself computed them. Every row sums to 1.",
    )  # fmt: skip


def tabulate_sum(shown: ShownModule) -> Table:
    """Tabulate one token's attention as the sum that the notes write.

    Returns
    -------
    Table
        A row for each token it looks at, the sum, and twice the same as the model has it.
    """
    head, place = shown.head - 1, shown.token - 1
    steps = shown.worked.compute_token(head, place)
    unseen = (None,) * shown.entries
    rows: list[tuple[Cell, ...]] = [
        (name, product, score, exponential, weight,
         *(unseen if product is None else _take(shown, share)))
        for name, product, score, exponential, weight, share in zip(
            number_tokens(shown.keys), steps.products, steps.scores, steps.exponentials,
            steps.weights, steps.shares, strict=True,
        )
    ]  # fmt: skip
    total = math.fsum(each for each in steps.exponentials if each is not None)
    blank = (None, None)
    width = shown.worked.value.size(2)
    seen = shown.worked.joined[place, head * width : (head + 1) * width]
    rows += [
        ("sum over tokens", *blank, total, math.fsum(steps.weights), *_take(shown, steps.total)),
        ("matrix form", *blank, None, None, *_take(shown, shown.worked.contexts[head, place])),
        ("the module's own", *blank, None, None, *_take(shown, seen)),
    ]
    asks = number_tokens(shown.queries)[place]
    return Table(
        name=f"{shown.worked.kind}-sum",
        title=f"{shown.place}: A<{shown.token}>, what “{asks}” finds",
        columns=(
            Column("looks at"), Column("q·k", ".4f"), Column("q·k/√d_k", ".4f"),
            Column("exp", ".4f"), Column("weight α", ".4f"),
            *_name_entries(shown, "α·v"),
        ),
        rows=tuple(rows),
        notes=(
            f"A<{shown.token}> = Σ_i exp(q·k<i>/√d_k)/Σ_j exp(q·k<j>/√d_k) · v<i> (001:141, with "
            "the scaling of 001:188, which that line leaves out: X13).",
        ),
    )  # fmt: skip


def tabulate_contexts(shown: ShownModule) -> Table:
    """Tabulate the outputs A of all tokens, as sums and as a matrix product."""
    head = shown.head - 1
    together = shown.worked.contexts[head]
    rows = []
    for place, name in enumerate(number_tokens(shown.queries)):
        alone = shown.worked.compute_token(head, place).total
        difference = (alone - together[place]).abs().max().item()
        rows.append((f"A{name}", *_take(shown, alone), *_take(shown, together[place]), difference))
    return Table(
        name=f"{shown.worked.kind}-contexts",
        title=f"{shown.place}: A<1> … A<{len(rows)}> token by token, and all at once",
        columns=(
            Column("token"), *_name_entries(shown, "Σ αv "), *_name_entries(shown, "(softmax V)"),
            Column("largest difference", ".1e"),
        ),
        rows=tuple(rows),
        notes=(f"First {shown.entries} of {together.size(1)} entries; the difference is of all.",),
    )  # fmt: skip


def tabulate_heads(shown: ShownModule) -> Table:
    """Tabulate the output of each head for one token, and their concatenation.

    Returns
    -------
    Table
        A row for each head, their sum, and the same as the model has it.
    """
    worked, place = shown.worked, shown.token - 1
    through = worked.heads_through_output()[:, place]
    rows: list[tuple[Cell, ...]] = []
    for head, found in enumerate(worked.contexts[:, place]):
        most = int(worked.weights[head, place].argmax())
        rows.append((
            f"head {head + 1}", number_tokens(shown.keys)[most],
            worked.weights[head, place, most].item(), *_take(shown, found),
            *_take(shown, through[head]),
        ))  # fmt: skip
    bias = worked.module.output.bias
    total = through.sum(0) if bias is None else through.sum(0) + bias
    nothing = (None,) * (2 + shown.entries)
    rows += [
        ("sum over heads" if bias is None else "sum over heads, and bias", *nothing,
         *_take(shown, total)),
        ("the module's own", *nothing, *_take(shown, worked.output[place])),
    ]  # fmt: skip
    title = f"{TITLES[worked.kind]}, layer {worked.layer}: all heads of A<{shown.token}> joined"
    return Table(
        name=f"{shown.worked.kind}-heads",
        title=title,
        columns=(
            Column("head"), Column("looks most at"), Column("weight", ".4f"),
            *_name_entries(shown, "A"), *_name_entries(shown, "A W^O"),
        ),
        rows=tuple(rows),
        notes=(
            "Concat(head_1, …, head_h) W^O is the sum of each head times its own rows of W^O. X2: "
            "one of the notes (000:116) puts a non-linearity here; there is none.",
        ),
    )  # fmt: skip


def tabulate_checks(several: Sequence[AttentionTrace]) -> Table:
    """Tabulate the differences between recomputed and recorded values."""
    rows = tuple((TITLES[each.kind], each.layer, *each.compare()) for each in several)
    headings = ("x W", "softmax", "row sums", "token by token", "heads", "W^O", "fused kernel")
    return Table(
        name="checks",
        title="Largest differences between what is worked out here and what the modules did",
        columns=(
            Column("attention"), Column("layer"), *(Column(each, ".1e") for each in headings),
        ),
        rows=rows,
        notes=(
            "All heads and tokens of every layer, in double precision: x W against the queries, "
            "keys and values seen; softmax of the scores against the weights seen; their sums "
            "against 1; the sums token by token against the product of matrices; that against what "
            "was seen to enter W^O; that times W^O against what the module said; and this against "
            "what it says by the fused kernel, when nobody looks.",
        ),
    )  # fmt: skip


def plot_steps(shown: ShownModule) -> Plot:
    """Plot scores and weights of one head."""
    head = shown.head - 1
    scores, weights = shown.worked.scores[head].tolist(), shown.worked.weights[head].tolist()
    return Plot(
        name=f"{shown.worked.kind}-steps",
        title=shown.place,
        panels=(
            HeatMap(title="Scores Q Kᵀ/√d_k", x_label="looked at", y_label="looks",
                    value_label="score", values=scores, x_names=shown.keys, y_names=shown.queries,
                    is_signed=True),
            HeatMap(title="Weights: softmax of each row", x_label="looked at", y_label="looks",
                    value_label="weight", values=weights, x_names=shown.keys,
                    y_names=shown.queries),
        ),
    )  # fmt: skip


def plot_heads(shown: ShownModule) -> Plot:
    """Plot the weights of all heads, or of the first few."""
    weights = shown.worked.weights
    drawn = weights[:_MOST_HEADS_DRAWN]
    rest = f", heads 1 to {len(drawn)} of {len(weights)}" if len(drawn) < len(weights) else ""
    return Plot(
        name=f"{shown.worked.kind}-heads",
        title=f"{TITLES[shown.worked.kind]}, layer {shown.worked.layer}{rest}",
        panels=tuple(
            HeatMap(title=f"Head {index}", x_label="looked at", y_label="looks",
                    value_label="weight", values=each.tolist(), x_names=shown.keys,
                    y_names=shown.queries, largest=1.0)
            for index, each in enumerate(drawn, start=1)
        ),
    )  # fmt: skip


def _tabulate_matrix(
    shown: ShownModule, what: str, title: str, cells: Sequence[Sequence[Cell]], form: str, note: str
) -> Table:
    """Make a table with a number for each pair of tokens."""
    rows = tuple(
        (name, *row) for name, row in zip(number_tokens(shown.queries), cells, strict=True)
    )
    return Table(
        name=f"{shown.worked.kind}-{what}",
        title=title,
        columns=(
            Column("looks, at →"), *(Column(name, form) for name in number_tokens(shown.keys)),
        ),
        rows=rows,
        notes=(note,),
    )  # fmt: skip


def _name_entries(shown: ShownModule, letter: str) -> list[Column]:
    """Make the columns of the first entries of a vector."""
    return [Column(f"{letter}[{index}]", ".4f") for index in range(1, shown.entries + 1)]


def _take(shown: ShownModule, vector: Tensor) -> list[float]:
    """Return the first entries of a vector."""
    return vector[: shown.entries].tolist()
