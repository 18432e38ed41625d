"""The paper's three tables as printed, with what is known about how they were measured.

One of the notes calls the variation table “Table 2” and the table of BLEU and cost “Table 3”; the
paper numbers them 3 and 2, and so does this file.
"""

import tomllib
from dataclasses import dataclass
from importlib.resources import files

_ROWS = tomllib.loads((files(__package__) / "published.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, kw_only=True)
class LayerRow:
    """One row of table 1: orders in the length n, width d, kernel size k and window r.

    Parameters
    ----------
    layer : str
        The type of layer.
    complexity, sequential, path : str
        Operations in a layer, sequential operations, and longest path: the orders of each.
    """

    layer: str
    complexity: str
    sequential: str
    path: str


TABLE_1 = (
    LayerRow(layer="Self-Attention", complexity="O(n²·d)", sequential="O(1)", path="O(1)"),
    LayerRow(layer="Recurrent", complexity="O(n·d²)", sequential="O(n)", path="O(n)"),
    LayerRow(layer="Convolutional", complexity="O(k·n·d²)", sequential="O(1)", path="O(log_k(n))"),
    LayerRow(
        layer="Self-Attention (restricted)", complexity="O(r·n·d)", sequential="O(1)", path="O(n/r)"
    ),
)


@dataclass(frozen=True, kw_only=True)
class SystemRow:
    """One row of table 2: BLEU on newstest2014 and training cost in floating-point operations.

    Parameters
    ----------
    system : str
        Its name.
    german_bleu, french_bleu : float | None
        English to German and to French; None: the cell is empty.
    german_cost, french_cost : float | None
        Likewise. The costs of both Transformers stand across the two columns, once; they are
        written as German here.
    is_ensemble : bool
        Whether several models vote.
    """

    system: str
    german_bleu: float | None = None
    french_bleu: float | None = None
    german_cost: float | None = None
    french_cost: float | None = None
    is_ensemble: bool = False

    @property
    def cells(self) -> tuple[float | None, ...]:
        """The four cells as printed."""
        return self.german_bleu, self.french_bleu, self.german_cost, self.french_cost


BASE, BIG = "Transformer (base model)", "Transformer (big)"

TABLE_2 = tuple(SystemRow(**row) for row in _ROWS["table_2"])

# Sustained single-precision speed that the paper's footnote 5 assumes of each card, operations/s.
SPEEDS = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}


@dataclass(frozen=True, kw_only=True)
class TrainingTime:
    """The hardware behind one cost of table 2.

    Parameters
    ----------
    system : str
        The row.
    pair : str
        “EN-DE” or “EN-FR”; “both” where the cell stands across the columns.
    card : str
        A key of `SPEEDS`.
    num_cards : int
        How many of them.
    days : float
        For how long.
    num_models : int
        Models of an ensemble, each trained so.
    """

    system: str
    pair: str
    card: str
    num_cards: int
    days: float
    num_models: int = 1

    @property
    def operations(self) -> float:
        """Cards × seconds × speed."""
        return self.num_models * self.num_cards * self.days * 86_400 * SPEEDS[self.card]


TRAINING_TIMES = tuple(TrainingTime(**row) for row in _ROWS["training_times"])


@dataclass(frozen=True, kw_only=True)
class VariationRow:
    """One row of table 3, its empty cells filled from the base model.

    Parameters
    ----------
    group : str
        Where it stands: base, (A) to (E), big.
    preset : str
        The recipe that trains it.
    differs : str
        What it changes.
    perplexity, bleu : float
        Per subword, and on newstest2013.
    millions : int | None
        Parameters in millions; None: the cell is empty.
    num_layers, model_dim, feed_forward_dim, num_heads, key_dim, value_dim : int
        The paper's N, d_model, d_ff, h, d_k and d_v.
    dropout, smoothing : float
        P_drop and ε_ls.
    steps : int
        Of training.
    learned_positions : int
        Rows of a table of learned positions; 0: sinusoids.
    """

    group: str
    preset: str
    differs: str
    perplexity: float
    bleu: float
    millions: int | None = None
    num_layers: int = 6
    model_dim: int = 512
    feed_forward_dim: int = 2048
    num_heads: int = 8
    key_dim: int = 64
    value_dim: int = 64
    dropout: float = 0.1
    smoothing: float = 0.1
    steps: int = 100_000
    learned_positions: int = 0

    @property
    def title(self) -> str:
        """The label of the row."""
        return f"{self.group} {self.differs}".strip()


TABLE_3 = tuple(VariationRow(**row) for row in _ROWS["table_3"])
