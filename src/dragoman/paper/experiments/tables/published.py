"""The paper's three tables as printed, with what is known about how they were measured.

One of the notes calls the variation table “Table 2” and the table of BLEU and cost “Table 3”; the
paper numbers them 3 and 2, and so does this file.
"""

from dataclasses import dataclass


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

TABLE_2 = (
    SystemRow(system="ByteNet", german_bleu=23.75),
    SystemRow(system="Deep-Att + PosUnk", french_bleu=39.2, french_cost=1.0e20),
    SystemRow(
        system="GNMT + RL",
        german_bleu=24.6, french_bleu=39.92, german_cost=2.3e19, french_cost=1.4e20,
    ),
    SystemRow(
        system="ConvS2S",
        german_bleu=25.16, french_bleu=40.46, german_cost=9.6e18, french_cost=1.5e20,
    ),
    SystemRow(
        system="MoE",
        german_bleu=26.03, french_bleu=40.56, german_cost=2.0e19, french_cost=1.2e20,
    ),
    SystemRow(
        system="Deep-Att + PosUnk Ensemble", french_bleu=40.4, french_cost=8.0e20, is_ensemble=True
    ),
    SystemRow(
        system="GNMT + RL Ensemble", is_ensemble=True,
        german_bleu=26.30, french_bleu=41.16, german_cost=1.8e20, french_cost=1.1e21,
    ),
    SystemRow(
        system="ConvS2S Ensemble", is_ensemble=True,
        german_bleu=26.36, french_bleu=41.29, german_cost=7.7e19, french_cost=1.2e21,
    ),
    SystemRow(system=BASE, german_bleu=27.3, french_bleu=38.1, german_cost=3.3e18),
    SystemRow(system=BIG, german_bleu=28.4, french_bleu=41.8, german_cost=2.3e19),
)  # fmt: skip

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


TRAINING_TIMES = (
    TrainingTime(system="Deep-Att + PosUnk", pair="EN-FR", card="K40", num_cards=32, days=10),
    TrainingTime(system="GNMT + RL", pair="EN-DE", card="K80", num_cards=96, days=1),
    TrainingTime(system="GNMT + RL", pair="EN-FR", card="K80", num_cards=96, days=6),
    TrainingTime(system="ConvS2S", pair="EN-DE", card="M40", num_cards=1, days=18.5),
    TrainingTime(system="ConvS2S", pair="EN-FR", card="M40", num_cards=8, days=37),
    TrainingTime(system="MoE", pair="EN-DE", card="K40", num_cards=64, days=1),
    TrainingTime(system="MoE", pair="EN-FR", card="K40", num_cards=64, days=6),
    TrainingTime(
        system="Deep-Att + PosUnk Ensemble",
        pair="EN-FR", card="K40", num_cards=32, days=10, num_models=8,
    ),
    TrainingTime(
        system="GNMT + RL Ensemble", pair="EN-DE", card="K80", num_cards=96, days=1, num_models=8
    ),
    TrainingTime(
        system="GNMT + RL Ensemble", pair="EN-FR", card="K80", num_cards=96, days=6, num_models=8
    ),
    TrainingTime(
        system="ConvS2S Ensemble", pair="EN-DE", card="M40", num_cards=1, days=18.5, num_models=8
    ),
    TrainingTime(
        system="ConvS2S Ensemble", pair="EN-FR", card="M40", num_cards=8, days=37, num_models=8
    ),
    TrainingTime(system=BASE, pair="both", card="P100", num_cards=8, days=0.5),
    TrainingTime(system=BIG, pair="both", card="P100", num_cards=8, days=3.5),
)  # fmt: skip


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


TABLE_3 = (
    VariationRow(
        group="base", preset="paper-base", differs="", perplexity=4.92, bleu=25.8, millions=65
    ),
    VariationRow(
        group="(A)", preset="paper-a-1-head", differs="h = 1, d_k = d_v = 512",
        perplexity=5.29, bleu=24.9, num_heads=1, key_dim=512, value_dim=512,
    ),
    VariationRow(
        group="(A)", preset="paper-a-4-heads", differs="h = 4, d_k = d_v = 128",
        perplexity=5.00, bleu=25.5, num_heads=4, key_dim=128, value_dim=128,
    ),
    VariationRow(
        group="(A)", preset="paper-a-16-heads", differs="h = 16, d_k = d_v = 32",
        perplexity=4.91, bleu=25.8, num_heads=16, key_dim=32, value_dim=32,
    ),
    VariationRow(
        group="(A)", preset="paper-a-32-heads", differs="h = 32, d_k = d_v = 16",
        perplexity=5.01, bleu=25.4, num_heads=32, key_dim=16, value_dim=16,
    ),
    VariationRow(
        group="(B)", preset="paper-b-16", differs="d_k = 16",
        perplexity=5.16, bleu=25.1, millions=58, key_dim=16,
    ),
    VariationRow(
        group="(B)", preset="paper-b-32", differs="d_k = 32",
        perplexity=5.01, bleu=25.4, millions=60, key_dim=32,
    ),
    VariationRow(
        group="(C)", preset="paper-c-2-layers", differs="N = 2",
        perplexity=6.11, bleu=23.7, millions=36, num_layers=2,
    ),
    VariationRow(
        group="(C)", preset="paper-c-4-layers", differs="N = 4",
        perplexity=5.19, bleu=25.3, millions=50, num_layers=4,
    ),
    VariationRow(
        group="(C)", preset="paper-c-8-layers", differs="N = 8",
        perplexity=4.88, bleu=25.5, millions=80, num_layers=8,
    ),
    VariationRow(
        group="(C)", preset="paper-c-256", differs="d_model = 256, d_k = d_v = 32",
        perplexity=5.75, bleu=24.5, millions=28, model_dim=256, key_dim=32, value_dim=32,
    ),
    VariationRow(
        group="(C)", preset="paper-c-1024", differs="d_model = 1024, d_k = d_v = 128",
        perplexity=4.66, bleu=26.0, millions=168, model_dim=1024, key_dim=128, value_dim=128,
    ),
    VariationRow(
        group="(C)", preset="paper-c-ff-1024", differs="d_ff = 1024",
        perplexity=5.12, bleu=25.4, millions=53, feed_forward_dim=1024,
    ),
    VariationRow(
        group="(C)", preset="paper-c-ff-4096", differs="d_ff = 4096",
        perplexity=4.75, bleu=26.2, millions=90, feed_forward_dim=4096,
    ),
    VariationRow(
        group="(D)", preset="paper-d-dropout-0", differs="P_drop = 0.0",
        perplexity=5.77, bleu=24.6, dropout=0.0,
    ),
    VariationRow(
        group="(D)", preset="paper-d-dropout-0.2", differs="P_drop = 0.2",
        perplexity=4.95, bleu=25.5, dropout=0.2,
    ),
    VariationRow(
        group="(D)", preset="paper-d-smoothing-0", differs="ε_ls = 0.0",
        perplexity=4.67, bleu=25.3, smoothing=0.0,
    ),
    VariationRow(
        group="(D)", preset="paper-d-smoothing-0.2", differs="ε_ls = 0.2",
        perplexity=5.47, bleu=25.7, smoothing=0.2,
    ),
    VariationRow(
        group="(E)", preset="paper-e", differs="learned positions",
        perplexity=4.92, bleu=25.7, learned_positions=1024,
    ),
    VariationRow(
        group="big", preset="paper-big", differs="",
        perplexity=4.33, bleu=26.4, millions=213, model_dim=1024, feed_forward_dim=4096,
        num_heads=16, dropout=0.3, steps=300_000,
    ),
)  # fmt: skip
