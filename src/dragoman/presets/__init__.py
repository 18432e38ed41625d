"""Recipes: one TOML file each, and the choice of one by the size of the corpus."""

from importlib.resources import files

from dragoman.errors import OptionError
from dragoman.options import Plain, merge, suggest

AUTO = "auto"
TUNING = "tuning"
"""What `auto` is for a run that begins with a trained model."""
BASED_ON = "based_on"

# (pairs below which the row holds, recipe, dropout). The first row is the winner of the study of
# recipes (docs/recipes.md): on corpora of 10,000 to 200,000 pairs it leaves the paper's recipe more
# than ten BLEU behind.
BY_CORPUS_SIZE = (
    (400_000, "small", 0.3),
    (1_000_000, "base", 0.2),
    (3_000_000, "base", 0.1),
    (10_000_000, "big", 0.3),
)
# Without an accelerator that recipe would take a day for Multi30k, this one an hour or two; it
# is a point or two of BLEU behind.
ON_A_CPU = (150_000, "tiny", 0.3)
LARGEST = ("big", 0.1)


def preset_names() -> list[str]:
    """List the recipes."""
    found = (each.name for each in files(__name__).iterdir())
    return [AUTO, *sorted(name[:-5] for name in found if name.endswith(".toml"))]


def read_preset(name: str) -> Plain:
    """Read one recipe.

    Returns
    -------
    dict[str, Any]
        The options it sets, by section, laid over those of the recipe it is based on.
    """
    import tomllib

    if name not in preset_names() or name == AUTO:
        raise OptionError(f"--preset: unknown preset “{name}”{suggest(name, preset_names())}")
    recipe = tomllib.loads((files(__name__) / f"{name}.toml").read_text(encoding="utf-8"))
    return merge(read_preset(recipe.pop(BASED_ON)), recipe) if BASED_ON in recipe else recipe


def choose_preset(num_pairs: int, *, has_accelerator: bool = True) -> tuple[str, Plain]:
    """Choose a recipe for a corpus.

    Returns
    -------
    tuple[str, dict[str, Any]]
        The recipe's name, and the options it sets, with the dropout for that size.
    """
    rows = BY_CORPUS_SIZE if has_accelerator else (ON_A_CPU, *BY_CORPUS_SIZE)
    fitting = ((name, dropout) for limit, name, dropout in rows if num_pairs < limit)
    name, dropout = next(fitting, LARGEST)
    return name, merge(read_preset(name), {"model": {"dropout": dropout}})
