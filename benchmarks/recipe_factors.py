"""What the study of recipes varies: one factor at a time, and combinations of what survives.

A factor is a handful of words for “dragoman train”. A flag that this Dragoman does not know makes
the factor “not available”, which the ledger says too. Several names joined by “+” are a
combination: later words win over earlier ones.
"""

from dataclasses import dataclass, replace

PAPER = "paper"
PAPER_VOCABULARY = 37_000
PAPER_PEAK = 0.0007
"""What the paper's schedule comes to at the end of its warm-up: 1/√(512 · 4000)."""


@dataclass(frozen=True, kw_only=True)
class Factor:
    """One way to train that differs from the paper's recipe.

    Parameters
    ----------
    group : str
        What it varies.
    words : tuple[str, ...]
        For “dragoman train”.
    preset : str
        The recipe that it starts from.
    vocabulary_size : int | None
        Subwords to ask for; the corpus may give fewer. None: by the size of the corpus.
    warmup_share : float | None
        Warm-up as a share of all updates; None: as many updates as the recipe says.
    """

    group: str
    words: tuple[str, ...] = ()
    preset: str = "paper-base"
    vocabulary_size: int | None = PAPER_VOCABULARY
    warmup_share: float | None = None


def _vary(group: str, words: str) -> Factor:
    return Factor(group=group, words=tuple(words.split()))


def _shape(layers: tuple[int, int], width: int, inner: int, heads: int) -> Factor:
    words = f"--num-encoder-layers {layers[0]} --num-decoder-layers {layers[1]} "
    words += f"--model-dim {width} --feed-forward-dim {inner} --num-heads {heads}"
    return _vary("size", words)


def _rate(peak: float, words: str = "") -> Factor:
    """Warm up within the time there is: the paper's 4,000 updates can be more than all."""
    group = "schedule" if words else "learning rate"
    rate = ("--peak-learning-rate", f"{peak:g}")
    return Factor(group=group, words=(*words.split(), *rate), warmup_share=0.1)


def _recipe(name: str) -> Factor:
    return Factor(group="whole recipe", preset=name, vocabulary_size=None)


# The order is that in which they are tried: what promises most comes first.
FACTORS: dict[str, Factor] = {
    PAPER: Factor(group="the paper's recipe"),
    "auto": _recipe("auto"),
    "shape-tiny": _shape((4, 4), 128, 256, 4),
    "shape-small": _shape((6, 6), 256, 1024, 4),
    "dropout-0": _vary("dropout", "--dropout 0"),
    "dropout-0.05": _vary("dropout", "--dropout 0.05"),
    "dropout-0.2": _vary("dropout", "--dropout 0.2"),
    "dropout-0.3": _vary("dropout", "--dropout 0.3"),
    "dropout-0.4": _vary("dropout", "--dropout 0.4"),
    "vocabulary-2k": Factor(group="vocabulary", vocabulary_size=2000),
    "vocabulary-4k": Factor(group="vocabulary", vocabulary_size=4000),
    "vocabulary-8k": Factor(group="vocabulary", vocabulary_size=8000),
    "vocabulary-auto": Factor(group="vocabulary", vocabulary_size=None),
    "batch-4k": _vary("batch", "--batch-tokens 4000"),
    "batch-8k": _vary("batch", "--batch-tokens 8000"),
    "batch-16k": _vary("batch", "--batch-tokens 16000"),
    "batch-25k": _vary("batch", "--batch-tokens 25000"),
    "warm-up-tenth": _rate(PAPER_PEAK),
    "rate-0.0003": _rate(0.0003),
    "rate-0.001": _rate(0.001),
    "rate-0.002": _rate(0.002),
    "rate-0.003": _rate(0.003),
    "rate-0.005": _rate(0.005),
    "bpe-dropout-0.1": _vary("noise", "--bpe-dropout 0.1"),
    "r-drop": _vary("noise", "--consistency r-drop --consistency-weight 5"),
    "simcut": _vary("noise", "--consistency simcut --consistency-weight 3"),
    "cut-off": _vary("noise", "--token-cutoff 0.05"),
    "smoothing-0": _vary("label smoothing", "--label-smoothing 0"),
    "smoothing-0.2": _vary("label smoothing", "--label-smoothing 0.2"),
    "ema-0.999": _vary("average", "--ema-decay 0.999"),
    "schedule-free": _rate(PAPER_PEAK, "--optimiser schedule-free --schedule constant"),
    "muon": _vary("optimiser", "--optimiser muon"),
    "cosine": _rate(PAPER_PEAK, "--schedule cosine"),
    "stable-decay": _rate(PAPER_PEAK, "--schedule warmup-stable-decay"),
    "pre-norm": _vary("model", "--norm-position pre"),
    "rms-norm": _vary("model", "--norm rms"),
    "swiglu": _vary("model", "--feed-forward swiglu"),
    "rotary": _vary("model", "--positions rotary"),
    "deep-shallow": _vary("model", "--num-encoder-layers 12 --num-decoder-layers 2"),
    "attention-dropout": _vary("dropout", "--attention-dropout 0.1"),
    "activation-dropout": _vary("dropout", "--activation-dropout 0.1"),
    "weight-decay-0.01": _vary("weight decay", "--weight-decay 0.01"),
    "weight-decay-0.1": _vary("weight decay", "--weight-decay 0.1"),
    "recipe-nano": _recipe("nano"),
    "recipe-tiny": _recipe("tiny"),
    "recipe-small": _recipe("small"),
    "recipe-base": _recipe("base"),
}

# What survived, put together. Any other combination can be named as “a+b+c”.
COMBINATIONS: dict[str, list[str]] = {
    "tiny-regular": ["shape-tiny", "dropout-0.3", "vocabulary-8k", "batch-16k", "rate-0.005"],
    "small-regular": ["shape-small", "dropout-0.3", "vocabulary-8k", "batch-16k", "rate-0.001"],
    "base-regular": ["dropout-0.3", "vocabulary-8k", "batch-16k", "warm-up-tenth"],
    "tiny-noisy": ["tiny-regular", "bpe-dropout-0.1"],
    "small-noisy": ["small-regular", "bpe-dropout-0.1"],
    "tiny-consistent": ["tiny-noisy", "r-drop"],
    "small-consistent": ["small-noisy", "r-drop"],
}


def list_names() -> list[str]:
    """List the factors and combinations in the order in which they are tried.

    Returns
    -------
    list[str]
        Their names.
    """
    return [*FACTORS, *COMBINATIONS]


def find_factor(name: str) -> Factor:
    """Find a factor, or put a combination together.

    Parameters
    ----------
    name : str
        Of a factor, of a combination, or several of them with “+” between.

    Returns
    -------
    Factor
        What to do.
    """
    if name in FACTORS:
        return FACTORS[name]
    parts = COMBINATIONS.get(name) or name.split("+")
    if parts == [name]:
        raise SystemExit(f"{name}: no such factor; there are {', '.join(list_names())}")
    return _combine([find_factor(part) for part in parts])


def _combine(factors: list[Factor]) -> Factor:
    """Lay factors over one another; the last one that says something is heard."""
    plain = Factor(group="combination")
    found = plain
    for each in factors:
        said = {
            name: getattr(each, name)
            for name in ("preset", "vocabulary_size", "warmup_share")
            if getattr(each, name) != getattr(plain, name)
        }
        found = replace(found, words=(*found.words, *each.words), **said)
    return found
