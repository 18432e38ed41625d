"""Recipes: one TOML file each, and the choice of one by the size of the corpus."""

from importlib.resources import files

from dragoman.errors import OptionError
from dragoman.options import Plain, merge, suggest

AUTO = "auto"
BASED_ON = "based_on"

# (pairs below which the row holds, recipe, dropout). Small corpora want small models and much
# dropout: the tiny model beats base on Multi30k by 2.7 BLEU with a nineteenth of the parameters,
# and on low-resource pairs hyper-parameters alone were worth up to 7 BLEU (Araabi & Monz, 2020).
BY_CORPUS_SIZE = (
    (60_000, "tiny", 0.3),
    (150_000, "small", 0.3),
    (400_000, "small", 0.2),
    (1_000_000, "base", 0.2),
    (3_000_000, "base", 0.1),
    (10_000_000, "big", 0.3),
)
LARGEST = ("big", 0.1)


def preset_names() -> list[str]:
    """List the recipes.

    Returns
    -------
    list[str]
        ``auto`` and the names of the TOML files.
    """
    found = (each.name for each in files(__name__).iterdir())
    return [AUTO, *sorted(name[:-5] for name in found if name.endswith(".toml"))]


def read_preset(name: str) -> Plain:
    """Read one recipe.

    Parameters
    ----------
    name : str
        Its name; not ``auto``.

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


def choose_preset(num_pairs: int) -> tuple[str, Plain]:
    """Choose a recipe for a corpus.

    Parameters
    ----------
    num_pairs : int
        Its sentence pairs.

    Returns
    -------
    tuple[str, dict[str, Any]]
        The recipe's name, and the options it sets, with the dropout for that size.
    """
    fitting = ((name, dropout) for limit, name, dropout in BY_CORPUS_SIZE if num_pairs < limit)
    name, dropout = next(fitting, LARGEST)
    return name, merge(read_preset(name), {"model": {"dropout": dropout}})
