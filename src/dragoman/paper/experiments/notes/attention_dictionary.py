"""Attention as a dictionary: hard and soft look-up, and the effect of the temperature.

A hard dictionary gives the value whose key equals the query, or nothing. Attention gives the
average of all values, each weighted by how well its key matches: with the temperature τ,
softmax(q·k/τ). As τ falls to zero the best key takes all, and for a query that equals a key the
soft dictionary becomes the hard one. The table is that of one of the notes: name → Quinn,
position → quarterback, Handedness → right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.options import option, require
from dragoman.paper.report.result import Cell, Column, Experiment, Lines, Plot, Say, Series, Table

if TYPE_CHECKING:
    import torch

ENTRIES = {"name": "Quinn", "position": "quarterback", "Handedness": "right"}
# The table's keys, and words similar to one of them, for which hard look-up fails.
_DEFAULT_QUERIES = ("name", "names", "Handedness", "hand", "position", "handedness")
_NUM_DRAWN = 4


@dataclass(frozen=True, kw_only=True)
class DictionaryOptions:
    """Options: the queries and the lowest temperature."""

    queries: tuple[str, ...] = option(_DEFAULT_QUERIES, "words to look up in the notes' table")
    coldest: float = option(0.01, "lowest temperature: 1, 0.5, 0.2, 0.1, … down to it")

    def __post_init__(self) -> None:
        require(1e-6 <= self.coldest < 1, "--coldest", self.coldest, "give one in [1e-6, 1)")
        require(bool(self.queries), "--queries", "empty", "give at least one word")
        for query in self.queries:
            require(bool(query.strip()), "--queries", f"“{query}”", "a word has letters")

    @property
    def temperatures(self) -> list[float]:
        """Temperatures in falling order."""
        steps = [float(f"{digit}e-{power}") for power in range(1, 7) for digit in (5, 2, 1)]
        return [1.0, *(each for each in steps if each >= self.coldest)]


def spell(word: str) -> "torch.Tensor":
    """Embed a word so that words of similar spelling are near each other.

    Returns
    -------
    torch.Tensor
        Of length 1: how often each pair of neighbouring characters occurs, capitals as such and
        as small letters, so that “handedness” is near “Handedness” and not the same.
    """
    import zlib

    import torch

    vector = torch.zeros(512, dtype=torch.float64)
    for spelling in (word, word.lower()):
        framed = f"^{spelling}$"
        for index in range(len(framed) - 1):
            # Python's own hash differs from run to run.
            vector[zlib.crc32(framed[index : index + 2].encode()) % len(vector)] += 1
    return vector / vector.norm()


def look_up_hard(query: str) -> str | None:
    """Look a word up exactly, as a dictionary does."""
    return ENTRIES.get(query)


def look_up_soft(query: str, temperature: float) -> dict[str, float]:
    """Look a word up by attention over all keys."""
    import torch

    from dragoman.models.attention.mask import Mask
    from dragoman.models.attention.scaled_dot_product_attention import attention_weights

    keys = torch.stack([spell(key) for key in ENTRIES])
    scores_wanted = spell(query).view(1, 1, 1, -1) / temperature
    weights = attention_weights(scores_wanted, keys.view(1, 1, *keys.shape), Mask(), scaled=False)
    return dict(zip(ENTRIES.values(), weights.flatten().tolist(), strict=True))


def run(options: DictionaryOptions, say: Say) -> Experiment:
    """Compare hard and soft look-up."""
    say(f"looking up {len(options.queries)} words")
    queries = list(dict.fromkeys(options.queries))
    found = _tabulate(queries, options.temperatures)
    coldest = options.temperatures[-1]
    known = [query for query in queries if look_up_hard(query) is not None]
    equal = [query for query in known if _best(look_up_soft(query, coldest)) == look_up_hard(query)]
    unknown = [query for query in queries if look_up_hard(query) is None]
    guessed = ", ".join(f"“{query}” → {_best(look_up_soft(query, coldest))}" for query in unknown)
    return Experiment(
        title="Attention as a dictionary: hard and soft look-up",
        claim="A hard dictionary requires the query to equal a key; a soft one matches it with "
        "similar keys and gives the weighted value.",
        findings=(
            f"At temperature {coldest:g}, {len(equal)} of {len(known)} queries that equal a key "
            "give the very value of the hard look-up.",
            *((f"Where hard look-up finds nothing, the soft one takes the nearest key: {guessed}.",)
              if unknown else ()),
        ),
        tables=(_tabulate_entries(), found),
        plots=(_plot(queries, options.temperatures),),
    )  # fmt: skip


def _best(shares: dict[str, float]) -> str:
    return max(shares, key=lambda value: shares[value])


def _tabulate_entries() -> Table:
    return Table(
        name="entries",
        title="The dictionary of one of the notes (000:88)",
        columns=(Column("key"), Column("value")),
        rows=tuple(ENTRIES.items()),
    )


def _tabulate(queries: Sequence[str], temperatures: Sequence[float]) -> Table:
    """Look every word up at every temperature."""
    rows: list[tuple[Cell, ...]] = []
    for query in queries:
        for temperature in temperatures:
            shares = look_up_soft(query, temperature)
            rows.append((query, look_up_hard(query) or "nothing", temperature,
                         *shares.values(), _best(shares)))  # fmt: skip
    return Table(
        name="look-ups",
        title="What is found",
        columns=(
            Column("query"), Column("hard look-up"), Column("temperature", ".3g"),
            *(Column(f"soft: {value}", ".4f") for value in ENTRIES.values()), Column("most of it"),
        ),
        rows=tuple(rows),
        notes=(
            "Words are vectors of their letter pairs, of length 1, so scores are between 0 and 1 "
            "and 1 for the same word. In a Transformer the vectors are learnt and the temperature "
            "is √d_k.",
        ),
    )  # fmt: skip


def _plot(queries: Sequence[str], temperatures: Sequence[float]) -> Plot:
    """Plot the weight of each value over the temperature."""
    panels = tuple(
        Lines(
            title=f"“{query}”: {look_up_hard(query) or 'no such key'}",
            x_label="temperature (colder to the left)", y_label="share of the answer",
            x_scale="log", y_limits=(0, 1.03),
            series=tuple(
                Series(name=value, x=temperatures,
                       y=[look_up_soft(query, each)[value] for each in temperatures])
                for value in ENTRIES.values()
            ),
        )
        for query in queries[:_NUM_DRAWN]
    )  # fmt: skip
    return Plot(name="temperature", title="The colder, the harder the look-up", panels=panels)
